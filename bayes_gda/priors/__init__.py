"""Priors: what is believed before the data, and the defaults on the scale of the data."""

from bayes_gda.priors.distributions import LKJ, NIG, NIW, Dirichlet, HierarchicalScale, Normal, Seed

__all__ = ["LKJ", "NIG", "NIW", "Dirichlet", "HierarchicalScale", "Normal", "Seed"]
