"""Bayesian classifiers that tell you whether to believe them.

The public names below are loaded when they are first used, so that ``import bayes_gda`` costs milliseconds and pulls in
neither PyMC, ArviZ, Matplotlib nor scikit-learn.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayes_gda._version import __version__

# `bayes_gda/models` is a link to `models`. A clone without symlinks, as on Windows, has a file there: look beside it.
if not os.path.isdir(os.path.join(__path__[0], "models")):
    __path__.append(os.path.dirname(__path__[0]))

if TYPE_CHECKING:
    from bayes_gda.data.examples import load_example
    from bayes_gda.data.frames.reading import read_table
    from bayes_gda.data.moments import Moments
    from bayes_gda.data.table import Dataset
    from bayes_gda.effects import comparisons, predictions, slopes
    from bayes_gda.errors import (
        BayesGDAError,
        ConvergenceError,
        DataError,
        DataWarning,
        InferenceWarning,
        MissingDependencyError,
        PriorError,
        StoreError,
    )
    from bayes_gda.estimators import BayesianMixture, BayesianStudent
    from bayes_gda.estimators.family import FamilyClassifier
    from bayes_gda.estimators.gaussian import BayesianLDA, BayesianNaiveGaussian, BayesianQDA
    from bayes_gda.estimators.logistic import BayesianLogisticRegression
    from bayes_gda.estimators.mixed import BayesianNaive
    from bayes_gda.estimators.regularized import BayesianRDA
    from bayes_gda.evaluation.compare import compare_posteriors
    from bayes_gda.evaluation.scorecard import compare_models
    from bayes_gda.evaluation.sensitivity import prior_sensitivity
    from bayes_gda.families.built import sample
    from bayes_gda.methods.adapter import laplace, trust
    from bayes_gda.methods.diagnostics import diagnose
    from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet, HierarchicalScale, Normal
    from bayes_gda.reporting.report import write_report
    from bayes_gda.store import load, save

# Where each public name lives.
_HOME = {
    "BayesGDAError": "errors",
    "BayesianLDA": "estimators.gaussian",
    "BayesianLogisticRegression": "estimators.logistic",
    "BayesianMixture": "estimators",
    "BayesianNaive": "estimators.mixed",
    "BayesianNaiveGaussian": "estimators.gaussian",
    "BayesianQDA": "estimators.gaussian",
    "BayesianRDA": "estimators.regularized",
    "BayesianStudent": "estimators",
    "ConvergenceError": "errors",
    "DataError": "errors",
    "DataWarning": "errors",
    "Dataset": "data.table",
    "Dirichlet": "priors",
    "FamilyClassifier": "estimators.family",
    "HierarchicalScale": "priors",
    "InferenceWarning": "errors",
    "LKJ": "priors",
    "MissingDependencyError": "errors",
    "Moments": "data.moments",
    "NIG": "priors",
    "NIW": "priors",
    "Normal": "priors",
    "PriorError": "errors",
    "StoreError": "errors",
    "compare_models": "evaluation.scorecard",
    "compare_posteriors": "evaluation.compare",
    "comparisons": "effects",
    "diagnose": "methods.diagnostics",
    "laplace": "methods.adapter",
    "load": "store",
    "load_example": "data.examples",
    "predictions": "effects",
    "prior_sensitivity": "evaluation.sensitivity",
    "read_table": "data.frames.reading",
    "sample": "families.built",
    "save": "store",
    "slopes": "effects",
    "trust": "methods.adapter",
    "write_report": "reporting.report",
}

__all__ = [
    "LKJ",
    "NIG",
    "NIW",
    "BayesGDAError",
    "BayesianLDA",
    "BayesianLogisticRegression",
    "BayesianMixture",
    "BayesianNaive",
    "BayesianNaiveGaussian",
    "BayesianQDA",
    "BayesianRDA",
    "BayesianStudent",
    "ConvergenceError",
    "DataError",
    "DataWarning",
    "Dataset",
    "Dirichlet",
    "FamilyClassifier",
    "HierarchicalScale",
    "InferenceWarning",
    "MissingDependencyError",
    "Moments",
    "Normal",
    "PriorError",
    "StoreError",
    "__version__",
    "compare_models",
    "compare_posteriors",
    "comparisons",
    "diagnose",
    "laplace",
    "load",
    "load_example",
    "predictions",
    "prior_sensitivity",
    "read_table",
    "sample",
    "save",
    "slopes",
    "trust",
    "write_report",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bayes_gda' has no attribute {name!r}")
    value = getattr(import_module(f"bayes_gda.{_HOME[name]}"), name)
    globals()[name] = value  # found at once from now on
    return value


def __dir__() -> list[str]:
    return __all__
