"""Packages that are not always installed: found, or named with the command that installs them."""

import importlib
from typing import Any

from bayes_gda.errors import MissingDependencyError

# The extra of bayes-gda that brings each package.
EXTRAS = {"pyarrow": "arrow", "formulaic": "formula", "openpyxl": "excel"}


def require(module: str, purpose: str) -> Any:
    """Return a package, or raise with the command that installs it.

    Parameters
    ----------
    module
        Name of the package.
    purpose
        What needs it, to open the message: "A .parquet file".
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != module:
            raise
        extra = EXTRAS[module]
        raise MissingDependencyError(
            f"{purpose} needs {module}, which is not installed. Install it: pip install 'bayes-gda[{extra}]'"
        ) from error
