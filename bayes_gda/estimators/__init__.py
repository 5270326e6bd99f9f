"""Scikit-learn classifiers around the families."""

from typing import Any

from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.estimators.family import FamilyClassifier
from bayes_gda.estimators.gaussian import BayesianLDA, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.estimators.logistic import BayesianLogisticRegression
from bayes_gda.estimators.regularized import BayesianRDA
from bayes_gda.families.base import Family

__all__ = [
    "BayesianLDA",
    "BayesianLogisticRegression",
    "BayesianNaiveGaussian",
    "BayesianQDA",
    "BayesianRDA",
    "FamilyClassifier",
    "estimator_class",
    "estimator_of",
]


def estimator_class(family: type[Family]) -> type[BayesianClassifier]:
    """Return the class of the estimator that fits a family."""
    cls: type[BayesianClassifier] = globals()[family.estimator]
    return cls


def estimator_of(family: type[Family], **params: Any) -> BayesianClassifier:
    """Return the estimator of a family, not fitted yet, with those of the parameters that it takes."""
    cls = estimator_class(family)
    taken = cls._get_param_names()
    given = {name: value for name, value in params.items() if name in taken}
    return cls(**given, **({"family": family.name} if "family" in taken else {}))
