"""Bayesian classifiers that tell you whether to believe them.

The public names below are loaded when they are first used, so that ``import bayes_gda`` costs milliseconds and pulls in
neither PyMC, ArviZ, Matplotlib nor scikit-learn.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bayes_gda._version import __version__

if TYPE_CHECKING:
    from bayes_gda.data.examples import load_example
    from bayes_gda.data.moments import Moments
    from bayes_gda.data.table import Dataset, read_table
    from bayes_gda.errors import BayesGDAError, ConvergenceError, DataError, MissingDependencyError, PriorError
    from bayes_gda.inference.adapter import laplace, trust
    from bayes_gda.inference.priors import LKJ, NIG, NIW, Dirichlet, HierarchicalScale, Normal

# Where each public name lives.
_HOME = {
    "BayesGDAError": "errors",
    "ConvergenceError": "errors",
    "DataError": "errors",
    "Dataset": "data.table",
    "Dirichlet": "inference.priors",
    "HierarchicalScale": "inference.priors",
    "LKJ": "inference.priors",
    "MissingDependencyError": "errors",
    "Moments": "data.moments",
    "NIG": "inference.priors",
    "NIW": "inference.priors",
    "Normal": "inference.priors",
    "PriorError": "errors",
    "laplace": "inference.adapter",
    "load_example": "data.examples",
    "read_table": "data.table",
    "trust": "inference.adapter",
}

__all__ = [
    "LKJ",
    "NIG",
    "NIW",
    "BayesGDAError",
    "ConvergenceError",
    "DataError",
    "Dataset",
    "Dirichlet",
    "HierarchicalScale",
    "MissingDependencyError",
    "Moments",
    "Normal",
    "PriorError",
    "__version__",
    "laplace",
    "load_example",
    "read_table",
    "trust",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'bayes_gda' has no attribute {name!r}")
    value = getattr(import_module(f"bayes_gda.{_HOME[name]}"), name)
    globals()[name] = value  # found at once from now on
    return value


def __dir__() -> list[str]:
    return __all__
