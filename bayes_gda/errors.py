"""The errors that reach a user, each one line: what is wrong, the value received, the remedy."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = str(Path(__file__).resolve().parent)


class BayesGDAError(Exception):
    """Every error that this package raises on purpose; catch this one to catch them all.

    Examples
    --------
    >>> import bayes_gda
    >>> try:
    ...     bayes_gda.load_example("no such table")
    ... except bayes_gda.BayesGDAError as error:
    ...     print(type(error).__name__)
    DataError
    """


class DataError(BayesGDAError, ValueError):
    """The data cannot be used as they are; the message names the column, the row or the class, and the remedy.

    Examples
    --------
    >>> from bayes_gda import BayesianLDA, DataError
    >>> try:
    ...     BayesianLDA().fit([[1.0], [2.0]], ["a", "a"])
    ... except DataError as error:
    ...     print(error)
    `y` has 1 class only, 'a'; a classifier needs at least 2 classes. Add rows of another class.
    """


class PriorError(BayesGDAError, ValueError):
    """A prior's parameters are invalid, or do not fit the data's dimensions.

    Examples
    --------
    >>> from bayes_gda import NIW, PriorError
    >>> try:
    ...     NIW(m=[0.0], kappa=-1.0, Psi=[[1.0]], nu=3.0)
    ... except PriorError as error:
    ...     print(error)
    `kappa` must be finite and greater than 0; got -1.
    """


class MissingDependencyError(BayesGDAError, ImportError):
    """An optional package is not installed; the message holds the install command.

    Examples
    --------
    >>> from bayes_gda import BayesGDAError, MissingDependencyError
    >>> issubclass(MissingDependencyError, (BayesGDAError, ImportError))
    True
    """


class ClusterError(BayesGDAError, ConnectionError):
    """A Dask cluster cannot be reached, or went away; the message says which, and what to do."""


class SizeError(BayesGDAError, MemoryError):
    """A computation would take more memory than is free; the message says how much, and what to do instead."""


class StoreError(BayesGDAError, OSError):
    """A model cannot be saved or loaded; the message names the file or the part, the cause and the remedy.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayes_gda import StoreError, load
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.nc"
    ...     _ = path.write_bytes(b"no model")
    ...     try:
    ...         load(path)
    ...     except StoreError as error:
    ...         print("refused")
    refused
    """


class ConvergenceError(BayesGDAError, RuntimeError):
    """A computation stopped before its answer; what it reached so far is kept.

    Parameters
    ----------
    message
        Cause and remedy, in one line.
    partial
        The state that was reached, for inspection; None if there is none.

    Examples
    --------
    >>> from bayes_gda import BayesianLogisticRegression, ConvergenceError
    >>> model = BayesianLogisticRegression(prior_scale=float("inf"))
    >>> try:
    ...     model.fit([[-2.0], [-1.0], [1.0], [2.0]], [0, 0, 1, 1])  # separable, under a flat prior
    ... except ConvergenceError as error:
    ...     print(str(error).split(".")[0])
    The classes are perfectly separated along +1·x1, so under a flat prior the weights have no finite mode
    """

    def __init__(self, message: str, partial: Any = None) -> None:
        super().__init__(message)
        self.partial = partial

    def __reduce__(self) -> tuple[type, tuple[str, Any]]:
        return type(self), (str(self), self.partial)


class InferenceWarning(UserWarning):
    """The fast answer is not good enough here; the message says what was done instead, or what to do.

    Examples
    --------
    >>> import warnings
    >>> from bayes_gda import BayesianLogisticRegression, InferenceWarning, load_example
    >>> data = load_example("breast-cancer").subset(range(0, 569, 8))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = BayesianLogisticRegression(inference="ep").fit(data)
    >>> caught[0].category is InferenceWarning
    True
    """


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
        return None, explain(error)


def explain(error: Exception) -> str:
    """Return an error as one sentence; the name of its type stands before what is not our message."""
    own = "" if isinstance(error, BayesGDAError) else f"{type(error).__name__}: "
    text = " ".join(str(error).split()) or "no reason given"
    return f"{own}{text}" if text.endswith(".") else f"{own}{text}."


def one_line(text: str) -> str:
    """Return a name for a message, with what cannot be printed, such as a line's end, as its escape."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
