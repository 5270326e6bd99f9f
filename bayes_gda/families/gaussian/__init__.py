"""Gaussian classes: LDA, QDA, naive and what lies between."""
