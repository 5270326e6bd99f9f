"""Importance sampling: Pareto smoothing, proposals, and the verdict they give."""
