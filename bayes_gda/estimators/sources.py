"""What `fit` takes: labels; and besides arrays a path, a table opened before, or Dask's collections."""

from os import PathLike
from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets

from bayes_gda.data.large.batches import Source, open_batches
from bayes_gda.data.large.cluster import is_dask, open_cluster
from bayes_gda.errors import DataError, warn_user
from bayes_gda.processes.state import Shared, warning_rule

_DOUBTS = Shared(lambda: warning_rule("ignore", "The number of unique classes", UserWarning))


# Labels that are looked at if they are whole numbers.
WHOLE_LABELS = 10_000


def require_source(batches: object) -> None:
    """Raise unless something is a table that was opened."""
    if not isinstance(batches, Source):
        raise DataError(
            f"`batches` must be a table from `open_batches` or `open_cluster`; got {type(batches).__name__}. "
            "Use fit(path, target), which opens it."
        )


def source_of(X: Any, y: Any, sample_weight: Any) -> Source | None:
    """Return the table that X is or names; None if it is neither, but rows in memory.

    Parameters
    ----------
    X
        A path of a table, a `Source`, a Dask DataFrame or a Dask array; or anything else.
    y
        Name of the target column; for a Dask array the labels; None for a `Source`, which has its own.
    sample_weight
        Must be None for a table.
    """
    path, opened = isinstance(X, (str, PathLike)), isinstance(X, Source)
    if not (path or opened or is_dask(X)):
        return None
    if sample_weight is not None:
        raise DataError(
            "`sample_weight` is for rows in memory; got it with a table. Leave it out, or read the rows into memory."
        )
    if opened:
        if y is not None:
            raise DataError("`y` must be None for a table that was opened with its target; got another. Leave it out.")
        source: Source = X
        return source
    named = path or hasattr(X, "columns")
    if named and not isinstance(y, str):
        kind = "a path" if path else "a Dask DataFrame"
        raise DataError(f"`y` must be the name of the target column where `X` is {kind}; got {type(y).__name__}.")
    return open_batches(X, target=y) if path else open_cluster(X, y)


def check_kinds(X: Any, y: Any = None) -> None:
    """Raise one line for arrays that hold complex numbers or dates, and labels that are no classes together.

    scikit-learn prints the whole array of the first, takes dates for numbers of nanoseconds, and calls labels that
    cannot be sorted a regression target.
    """
    for name, value in (("X", X), ("y", y)):
        kind = getattr(np.asarray(value) if isinstance(value, list | tuple) else value, "dtype", np.dtype("f8"))
        kind = getattr(kind, "kind", "")
        if kind == "c":  # scikit-learn's words, by which it checks an estimator
            raise DataError(
                f"Complex data not supported: `{name}` holds complex numbers. Use real and imaginary parts."
            )
        if name == "X" and kind in ("m", "M"):
            raise DataError("`X` holds dates or times. Turn them into numbers, such as days since a start.")
    values = y.tolist() if isinstance(y, np.ndarray) and y.dtype == object and y.ndim == 1 else None
    if values is None:
        return
    absent = sum(value is None for value in values)
    if absent:
        raise DataError(f"`y` is missing in {absent} of {len(values)} rows. Drop these rows.")
    kinds = sorted({type(value).__name__ for value in values if not isinstance(value, int | float | np.number)})
    numbers = any(isinstance(value, int | float | np.number) for value in values)
    if kinds and (numbers or len(kinds) > 1):
        both = " and ".join([*(["numbers"] if numbers else []), *kinds])
        raise DataError(f"`y` must hold labels of one type; got {both}. Turn all of them into text, as by str(label).")


def check_targets(y: Any) -> None:
    """Raise unless y can be classes; a doubt of scikit-learn's, as of 200 classes in 300 rows, is said by us."""
    if isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biu":
        y = y[:WHOLE_LABELS]  # whole numbers may always be classes, and so many show whether these are too many
    else:
        with _DOUBTS:
            check_classification_targets(y)
    n, K = len(y), len(np.unique(y))
    if 20 < n < 2 * K:
        warn_user(f"`y` has {K} classes in {n} rows; a number that is to be predicted needs a regression instead.")
