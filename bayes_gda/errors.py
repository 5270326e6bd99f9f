"""The errors that reach a user, each one line: what is wrong, the value received, the remedy."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parent)


class BayesGDAError(Exception):
    """Every error that this package raises on purpose; catch this one to catch them all."""


class DataError(BayesGDAError, ValueError):
    """The data cannot be used as they are; the message names the column, the row or the class, and the remedy."""


class PriorError(BayesGDAError, ValueError):
    """A prior's parameters are invalid, or do not fit the data's dimensions."""


class MissingDependencyError(BayesGDAError, ImportError):
    """An optional package is not installed; the message holds the install command."""


class ClusterError(BayesGDAError, ConnectionError):
    """A Dask cluster cannot be reached, or went away; the message says which, and what to do."""


class SizeError(BayesGDAError, MemoryError):
    """A computation would take more memory than is free; the message says how much, and what to do instead."""


class StoreError(BayesGDAError, OSError):
    """A model cannot be saved or loaded; the message names the file or the part, the cause and the remedy."""


class ConvergenceError(BayesGDAError, RuntimeError):
    """A computation stopped before its answer; what it reached so far is kept.

    Parameters
    ----------
    message
        Cause and remedy, in one line.
    partial
        The state that was reached, for inspection; None if there is none.
    """

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial

    def __reduce__(self) -> tuple[type, tuple[str, Any]]:
        return type(self), (str(self), self.partial)


class InferenceWarning(UserWarning):
    """The fast answer is not good enough here; the message says what was done instead, or what to do."""


class DataWarning(UserWarning):
    """Something in the data is probably not meant as it stands; the message says what, and what to do."""


def warn_user(message: str, category: type[UserWarning] = InferenceWarning) -> None:
    """Give a warning that points to the line of the user."""
    warnings.warn(message, category, skip_file_prefixes=(_PACKAGE,), stacklevel=2)


def attempt[T](make: Callable[[], T]) -> tuple[T | None, str]:
    """Return a by-product of a fit, or None and the reason why it cannot be had.

    What took an hour to sample must not be lost with an evidence, a score or a figure that fails.
    """
    try:
        return make(), ""
    except Exception as error:
        own = "" if isinstance(error, BayesGDAError) else f"{type(error).__name__}: "
        text = " ".join(str(error).split()) or "no reason given"
        return None, f"{own}{text}" if text.endswith(".") else f"{own}{text}."


def one_line(text: str) -> str:
    """Return a name for a message, with what cannot be printed, such as a line's end, as its escape."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
