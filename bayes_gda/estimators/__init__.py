"""Scikit-learn classifiers around the families, each imported when it is first used: one needs not all families."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayes_gda.families.registry import HOMES, get_family

if TYPE_CHECKING:
    from bayes_gda.estimators.base import BayesianClassifier
    from bayes_gda.estimators.family import FamilyClassifier
    from bayes_gda.estimators.gaussian import BayesianLDA, BayesianNaiveGaussian, BayesianQDA
    from bayes_gda.estimators.logistic import BayesianLogisticRegression
    from bayes_gda.estimators.mixed import BayesianNaive
    from bayes_gda.estimators.regularized import BayesianRDA
    from bayes_gda.families.base import Family

# Where each class lives; those of other families are made from these.
_CLASSES = {
    "BayesianClassifier": "base",
    "BayesianLDA": "gaussian",
    "BayesianLogisticRegression": "logistic",
    "BayesianNaive": "mixed",
    "BayesianNaiveGaussian": "gaussian",
    "BayesianQDA": "gaussian",
    "BayesianRDA": "regularized",
    "FamilyClassifier": "family",
}

__all__ = [
    "BayesianClassifier",
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


def estimator_class(family: "type[Family]") -> "type[BayesianClassifier]":
    """Return the class of the estimator that fits a family."""
    if family.estimator in _CLASSES:
        cls: type[BayesianClassifier] = __getattr__(family.estimator)
        return cls
    from bayes_gda.estimators.family import make_class

    return make_class(family)


def estimator_of(family: "type[Family]", **params: Any) -> "BayesianClassifier":
    """Return the estimator of a family, not fitted yet, with those of the parameters that it takes."""
    cls = estimator_class(family)
    taken = cls._get_param_names()
    given = {name: value for name, value in params.items() if name in taken}
    return cls(**given, **({"family": family.name} if "family" in taken else {}))


def __getattr__(name: str) -> Any:
    """Return a class by its name: one that is written out, or one that is made from the family which names it."""
    if name in _CLASSES:
        value = globals()[name] = getattr(import_module(f"bayes_gda.estimators.{_CLASSES[name]}"), name)
        return value
    if name.startswith("Bayesian"):
        for family in map(get_family, HOMES):
            if family.estimator == name:
                return estimator_class(family)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
