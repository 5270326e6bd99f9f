"""Scikit-learn classifiers around the families."""

from typing import Any

from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.estimators.family import FamilyClassifier, make_class
from bayes_gda.estimators.gaussian import BayesianLDA, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.estimators.logistic import BayesianLogisticRegression
from bayes_gda.estimators.mixed import BayesianNaive
from bayes_gda.estimators.regularized import BayesianRDA
from bayes_gda.families.base import Family
from bayes_gda.families.registry import HOMES, get_family

__all__ = [
    "BayesianLDA",
    "BayesianLogisticRegression",
    "BayesianNaive",
    "BayesianNaiveGaussian",
    "BayesianQDA",
    "BayesianRDA",
    "FamilyClassifier",
    "estimator_class",
    "estimator_of",
]


def estimator_class(family: type[Family]) -> type[BayesianClassifier]:
    """Return the class of the estimator that fits a family."""
    cls: type[BayesianClassifier] | None = globals().get(family.estimator)
    return make_class(family) if cls is None else cls


def estimator_of(family: type[Family], **params: Any) -> BayesianClassifier:
    """Return the estimator of a family, not fitted yet, with those of the parameters that it takes."""
    cls = estimator_class(family)
    taken = cls._get_param_names()
    given = {name: value for name, value in params.items() if name in taken}
    return cls(**given, **({"family": family.name} if "family" in taken else {}))


def __getattr__(name: str) -> Any:
    """Return the estimator that is made from the family which names it."""
    if name.startswith("Bayesian"):
        for family in map(get_family, HOMES):
            if family.estimator == name:
                return make_class(family)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
