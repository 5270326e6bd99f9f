"""The scikit-learn classes: validate, choose a method, delegate."""

from bayes_gda.estimators.gaussian import BayesianLDA, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.estimators.logistic import BayesianLogisticRegression
from bayes_gda.estimators.regularized import BayesianRDA

__all__ = ["BayesianLDA", "BayesianLogisticRegression", "BayesianNaiveGaussian", "BayesianQDA", "BayesianRDA"]
