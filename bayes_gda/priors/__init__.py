"""Priors: what is believed before the data, and the defaults on the scale of the data."""

from bayes_gda.priors.distributions import NIG, NIW, Dirichlet, HierarchicalScale, Normal, Seed
from bayes_gda.priors.lkj import LKJ

__all__ = ["LKJ", "NIG", "NIW", "Dirichlet", "HierarchicalScale", "Normal", "Seed"]
