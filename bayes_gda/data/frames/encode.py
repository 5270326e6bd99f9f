"""From a frame to features: by the kinds of its columns, or by a formula; with its classes, for a `Dataset`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.arrays import find_gaps
from bayes_gda.data.classes import Label, as_labels, code_classes
from bayes_gda.data.columns import BY_DTYPE, UNSEEN, Constant, Encoding, Unseen, fit_encoding, parse_columns
from bayes_gda.data.frames.convert import as_frame
from bayes_gda.data.frames.formula import FormulaEncoding, fit_formula, split_formula
from bayes_gda.data.validate import (
    Origin,
    check_categorical,
    check_filled,
    check_frame,
    check_labelled,
    check_option,
    check_target,
    complete_rows,
)
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

# How the columns of a frame become features: column by column, or by a formula.
AnyEncoding = Encoding | FormulaEncoding


class Encoded(NamedTuple):
    """Rows of a table: X (n, d), y (n,) codes, the classes, the encoding, and which rows were left out."""

    X: Floats
    y: NDArray[np.intp]
    class_names: tuple[Label, ...]
    encoding: AnyEncoding
    origin: Origin | None


def encode_table(
    table: Any,
    *,
    target: str | None = None,
    categorical: Iterable[str] = (),
    missing: str = "error",
    constant: Constant = "error",
    formula: str | None = None,
) -> Encoded:
    """Encode a table with its classes; parameters as in `Dataset.from_frame`."""
    check_option(missing)
    if constant not in ("error", "drop"):
        raise DataError(f"`constant` must be 'error' or 'drop'; got {constant!r}.")
    df = as_frame(table)
    if df is None:
        raise DataError(f"The table must be a data frame; got {type(table).__name__}. Use Dataset.from_arrays.")
    left, right = (None, None) if formula is None else split_formula(formula)
    target = left if target is None else target
    if target is None:
        raise DataError("`target` must name the column that holds the classes, or the formula: 'y ~ x + z'.")
    if left not in (None, target):
        raise DataError(f"`target` is {target!r}, but the formula has {left!r} on its left. Give one of them.")
    check_target(df, target)
    features = [name for name in df.columns if name != target]
    categorical = check_categorical(categorical, features, target)
    check_filled(df)
    if not features:
        raise DataError(f"The table has no feature columns besides the target {target!r}. Add some.")
    what = f"Target {target!r}"
    labels = as_labels(df[target], what)
    raw = parse_columns(df, features, categorical) if right is None else fit_formula(right, df, target, categorical)[1]
    gaps, origin = {r.name: r.missing for r in raw}, None
    keep = complete_rows(gaps, labels.missing, what, missing)
    if keep is not None:
        origin = Origin.of_complete(keep, gaps, labels.missing)
        raw, labels, df = [r.take(keep) for r in raw], labels.take(keep), df[keep]
    codes, classes = code_classes(labels, what)
    if right is None:
        encoding, X = fit_encoding(raw, constant)
        return Encoded(X, codes, classes, encoding, origin)
    made, _ = fit_formula(right, df, target, categorical)  # of the rows that are left, which may lack a level
    return Encoded(made.encode(df, missing="keep"), codes, classes, made, origin)


def encode_features(df: pd.DataFrame, formula: str | None) -> tuple[AnyEncoding, Floats]:
    """Learn how a frame without a target becomes features, and encode it; constant numbers stay, NaN is a gap.

    Parameters
    ----------
    df
        Rows.
    formula
        Right-hand side of a formula; None takes all columns by their kinds.
    """
    check_frame(df)
    check_filled(df)
    if formula is not None:
        made, _ = fit_formula(formula, df)
        return made, made.encode(df, missing="keep")
    return fit_encoding(parse_columns(df, list(df.columns), set(), BY_DTYPE), "keep")


def is_plain(df: pd.DataFrame) -> bool:
    """Whether all columns are NumPy's numbers or booleans, which become features as they are."""
    return all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in df.dtypes)


def encode_known(
    encoding: AnyEncoding, class_names: tuple[Label, ...], df: pd.DataFrame, target: str, missing: str, unseen: Unseen
) -> tuple[Floats, NDArray[np.intp], Origin | None]:
    """Return features, class codes and origin of new rows with their classes; see `Dataset.encode_labelled`."""
    check_target(df, target)
    check_filled(df)
    what, labels = f"Target {target!r}", as_labels(df[target], f"Target {target!r}")
    X = encoding.encode(df, missing="error" if missing == "error" else "keep", unseen=unseen)
    if unseen == "keep" and isinstance(encoding, Encoding):
        of_levels = [len(column.levels) > 0 for column in encoding.columns for _ in column.feature_names]
        X = np.where((X == UNSEEN) & np.array(of_levels), np.nan, X)
    gaps, origin = find_gaps(X, encoding.feature_names), None
    keep = complete_rows(gaps, labels.missing, what, missing)
    if keep is not None:
        origin = Origin.of_complete(keep, gaps, labels.missing)
        X, labels = X[keep], labels.take(keep)
    check_labelled(labels.missing, what, "fill in the labels, or drop these rows.")
    return X, labels.code_known(class_names, f"target {target!r}", "class"), origin
