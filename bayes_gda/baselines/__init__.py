"""Classical point learners to compare the Bayesian classifiers with, each a scikit-learn classifier."""

from bayes_gda.baselines.discriminant import PlugInLDA, PlugInNaiveGaussian, PlugInQDA
from bayes_gda.baselines.gradient import GradientLogistic
from bayes_gda.baselines.hinge import HingeClassifier
from bayes_gda.baselines.irls import IRLSLogistic
from bayes_gda.baselines.perceptron import Perceptron
from bayes_gda.baselines.steps import Steps

__all__ = [
    "GradientLogistic",
    "HingeClassifier",
    "IRLSLogistic",
    "Perceptron",
    "PlugInLDA",
    "PlugInNaiveGaussian",
    "PlugInQDA",
    "Steps",
]
