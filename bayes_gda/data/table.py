"""Read, validate, encode: from a table with a class column to the `Dataset` that everything downstream sees."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats, check_rows
from bayes_gda.data.arrays import (
    as_codes,
    as_features,
    as_names,
    check_columns_vary,
    digest_of,
    find_gaps,
    own_features,
    read_only,
)
from bayes_gda.data.classes import Label, as_labels, check_labels, code_classes, draw_test_rows, plain
from bayes_gda.data.frames.encode import AnyEncoding, encode_known, encode_table
from bayes_gda.data.validate import (
    Origin,
    check_distinct,
    check_missing,
    check_option,
    complete_rows,
    listed,
)
from bayes_gda.errors import DataError
from bayes_gda.missing import Training

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

    from bayes_gda.data.columns import Unseen

# Up to so many rows equal ones are pooled, which takes 10 ms here and would take longer than the fit for a million.
POOLED_ROWS = 10_000


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Dataset:
    """Rows of features with their classes; two of them are equal if their contents are.

    Parameters
    ----------
    X
        (n, d) features, float64, read-only; NaN is a missing value, infinite values are refused.
    y
        (n,) class codes in 0…K−1, read-only. A class may be without rows, as in a subset.
    feature_names
        (d,) distinct names.
    class_names
        (K,) distinct labels as they were in the raw data; code k stands for `class_names[k]`.
    encoding
        How the raw columns became X; None if it was made from arrays.
    weight
        (n,) weights > 0 of the rows, a row of weight 2 counting as two; None is 1 for all.
    original
        The rows before equal ones were merged by `pooled`; None if these are they.
    origin
        Where the rows stood in the table that was read, and what was left out; None if that is all of it.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_gda import Dataset
    >>> columns = {"size": [1.0, 2.0, 3.0, 4.0], "colour": ["red", "blue"] * 2, "sold": ["n", "y"] * 2}
    >>> frame = pd.DataFrame(columns)
    >>> data = Dataset.from_frame(frame, target="sold")
    >>> data.feature_names, data.class_names
    (('size', 'colour[red]'), ('n', 'y'))
    >>> data.X[0]
    array([1., 1.])
    """

    X: Floats
    y: NDArray[np.intp]
    feature_names: tuple[str, ...]
    class_names: tuple[Label, ...]
    encoding: AnyEncoding | None = None
    weight: Floats | None = None
    original: Dataset | None = None
    origin: Origin | None = None

    def __post_init__(self) -> None:
        X, y = own_features(self.X), as_codes(self.y)
        features, classes = as_names(self.feature_names, X.shape[1]), tuple(plain(name) for name in self.class_names)
        if len(y) != len(X):
            raise DataError(f"`X` and `y` must have as many rows; got {len(X)} and {len(y)}.")
        find_gaps(X, features)  # which raises if there are infinite values
        check_labels(classes, "`class_names`")
        check_distinct(classes, "Class name")
        K = len(classes)
        if K < 2:
            raise DataError(f"A classifier needs at least two classes; got {listed(classes) or 'none'}.")
        if y.min() < 0 or y.max() >= K:
            bad = y[(y < 0) | (y >= K)][0]
            raise DataError(f"`y` must hold codes in 0…{K - 1}, one for each of the {K} class names; got {bad}.")
        if self.encoding is not None and self.encoding.feature_names != features:
            raise DataError("`encoding` must yield the features in `feature_names`; it was made for another table.")
        weight = self.weight if self.weight is None else check_rows("weight", self.weight, len(X))
        if weight is not None and not (weight > 0).all():
            raise DataError(f"`weight` must be greater than 0; got {weight.min():g}. Leave such rows out.")
        values = {"X": X, "y": y, "feature_names": features, "class_names": classes, "weight": weight}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of_checked(
        cls,
        X: Floats,
        y: NDArray[np.intp],
        feature_names: tuple[str, ...],
        class_names: tuple[Label, ...],
        weight: Floats | None = None,
        original: Dataset | None = None,
        encoding: AnyEncoding | None = None,
    ) -> Self:
        """Make a data set from arrays that were checked before: nothing is copied, and no rows at all are fine too."""
        out = object.__new__(cls)
        values = (X, y, feature_names, class_names, encoding, weight, original, None)
        for item, value in zip(fields(cls), values, strict=True):
            object.__setattr__(out, item.name, value)
        return out

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[Label] | None = None,
        missing: Training = "error",
    ) -> Self:
        """Make a data set from arrays.

        Parameters
        ----------
        X
            (n, d) features, numeric or boolean.
        y
            (n,) labels of any kind; with `class_names`, codes in 0…K−1.
        feature_names
            (d,) names; by default those of a data frame's columns, or else x1, x2, …
        class_names
            (K,) names of the codes in `y`; by default the labels in `y`, in their natural order.
        missing
            What a NaN in X does: raise ("error"), drop its row ("drop"), or stay ("keep").
        """
        check_option(missing)
        columns = getattr(X, "columns", None)
        if feature_names is None and columns is not None and all(isinstance(name, str) for name in columns):
            feature_names = list(columns)
        rows = as_features(X)
        n, d = rows.shape
        labels = as_labels(y, "`y`")
        if len(labels) != n:
            raise DataError(f"`X` and `y` must have as many rows; got {n} and {len(labels)}.")
        names = as_names([f"x{j + 1}" for j in range(d)] if feature_names is None else feature_names, d)
        gaps, origin = find_gaps(rows, names), None
        keep = complete_rows(gaps, labels.missing, "`y`", missing)
        if keep is not None:
            origin = Origin.of_complete(keep, gaps, labels.missing)
            rows, labels = rows[keep], labels.take(keep)
        codes, classes = code_classes(labels, "`y`") if class_names is None else (labels.rows(), tuple(class_names))
        dataset = cls(read_only(rows), codes, names, classes, origin=origin)
        for k, count in enumerate(dataset.class_counts):
            if not count:
                raise DataError(f"Class {dataset.class_names[k]!r} has no rows; remove it from `class_names`.")
        check_columns_vary(dataset.X, names)
        return dataset

    @classmethod
    def from_frame(
        cls,
        df: Any,
        *,
        target: str | None = None,
        categorical: Iterable[str] = (),
        missing: Training = "error",
        constant: Literal["error", "drop"] = "error",
        formula: str | None = None,
    ) -> Self:
        """Make a data set from a data frame; every column but the target is a feature.

        A text column counts as numeric if all its values are numbers, and as categorical if fewer than half are.

        Parameters
        ----------
        df
            Table of n rows: a DataFrame of pandas or polars, or a PyArrow Table.
        target
            Column that holds the classes. A pandas Categorical keeps its order, other labels get their natural order.
            None takes that of the formula.
        categorical
            Columns to take as categorical even if they look numeric.
        missing
            What a missing value does: raise ("error"), drop its row ("drop"), or stay as NaN ("keep"). A missing label
            is an error unless its row is dropped.
        constant
            What columns do that have one value only: raise, all named at once ("error"), or stay out ("drop").
        formula
            Features as formulaic reads them, such as `species ~ bill + C(island)*sex`; None takes all columns.
        """
        rows = encode_table(
            df, target=target, categorical=categorical, missing=missing, constant=constant, formula=formula
        )
        return cls(rows.X, rows.y, rows.encoding.feature_names, rows.class_names, rows.encoding, origin=rows.origin)

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def class_counts(self) -> NDArray[np.intp]:
        """(K,) number of rows in each class."""
        return np.bincount(self.y, minlength=self.K)

    @property
    def shares(self) -> Floats:
        """(K,) shares of the classes, by weight."""
        count = np.bincount(self.y, weights=self.weight, minlength=self.K)
        return np.asarray(count / count.sum())

    @property
    def total_weight(self) -> float:
        """Number of rows, or the sum of their weights."""
        return float(self.n if self.weight is None else self.weight.sum())

    @property
    def row_numbers(self) -> NDArray[np.intp]:
        """(n,) numbers of the rows in the table that was read, from 1."""
        return 1 + (np.arange(self.n) if self.origin is None else self.origin.rows)

    @property
    def has_missing(self) -> bool:
        """Whether X has missing values (NaN)."""
        return bool(np.isnan(self.X).any())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of X, y and the names, but not of the encoding; the same on every machine."""
        return digest_of(self.X, self.y, (self.X.shape, self.feature_names, self.class_names))

    def __eq__(self, other: object) -> bool:
        return self.fingerprint == other.fingerprint if isinstance(other, Dataset) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return f"Dataset(n={self.n}, d={self.d}, K={self.K}, classes: {listed(self.class_names)})"

    def encode(self, df: pd.DataFrame, *, missing: Literal["error", "keep"] = "error") -> Floats:
        """Encode new rows as these were; see `Encoding.encode`."""
        if self.encoding is None:
            raise DataError("A data set made from arrays cannot encode a table; make it with Dataset.from_frame.")
        return self.encoding.encode(df, missing=missing)

    def encode_labelled(
        self, df: pd.DataFrame, *, target: str, missing: Training = "error", unseen: Unseen = "error"
    ) -> Self:
        """Encode a new table with its classes, such as a test file, by this encoding and these class codes.

        Parameters
        ----------
        df
            Rows that have the target and every raw column; further columns are ignored.
        target
            Column that holds the classes; each must be one of `class_names`, but not all of these need have rows.
        missing
            What a missing value does: raise ("error"), drop its row ("drop"), or become NaN ("keep"). A missing label
            is an error unless its row is dropped.
        unseen
            What a level does that these rows do not have: raise ("error"), count as the average level ("pool"), or
            be a missing value ("keep"), as not every model has a place for it.
        """
        if self.encoding is None:
            raise DataError("A data set made from arrays cannot encode a table; make it with Dataset.from_frame.")
        X, codes, origin = encode_known(self.encoding, self.class_names, df, target, missing, unseen)
        return type(self)(X, codes, self.feature_names, self.class_names, self.encoding, origin=origin)

    def complete(self) -> Self:
        """Return the rows without missing values."""
        return self.subset(~np.isnan(self.X).any(axis=1)) if self.has_missing else self

    def subset(self, rows: ArrayLike) -> Self:
        """Take some rows; the classes stay, even one that loses all its rows.

        Parameters
        ----------
        rows
            (m,) row indices in 0…n−1, in any order, or (n,) booleans.
        """
        index = np.asarray(rows)
        if index.dtype == np.bool_ and index.shape == (self.n,):
            index = np.flatnonzero(index)
        if index.ndim != 1 or (index.size and index.dtype.kind not in "iu"):
            got = f"{index.dtype} of shape {index.shape}"
            raise DataError(f"`rows` must be a vector of row indices or {self.n} booleans; got {got}.")
        if not index.size:
            raise DataError("`rows` selects no rows; a data set needs at least one.")
        if index.min() < 0 or index.max() >= self.n:
            bad = index.min() if index.min() < 0 else index.max()
            raise DataError(f"`rows` must lie in 0…{self.n - 1}; got {bad}.")
        names = self.feature_names, self.class_names, self.encoding
        weight = None if self.weight is None else self.weight[index]
        origin = None if self.origin is None else replace(self.origin, rows=self.origin.rows[index])
        return type(self)(read_only(self.X[index]), self.y[index], *names, weight, origin=origin)

    def in_natural_order(self) -> Self:
        """Return the same rows with their classes in the natural order, which scikit-learn's estimators have."""
        names = tuple(sorted(self.class_names))
        if names == self.class_names:
            return self
        code = np.array([names.index(name) for name in self.class_names])
        original = self.original and self.original.in_natural_order()
        return replace(self, y=code[self.y], class_names=names, original=original)

    def pooled(self) -> Dataset:
        """Merge equal rows into one of their summed weight, and sort: order and repetition then change nothing at all.

        A weight of 2 and two equal rows would otherwise differ by rounding, which a long chain of NUTS steps blows up
        to another, equally good set of draws. Many rows are left as they are.
        """
        if self.n > POOLED_ROWS:
            return self
        # Rows that differ in class or first feature are in their order by these, in a tenth of the time.
        order = np.lexsort((self.X[:, 0], self.y))
        first, codes = self.X[order, 0], self.y[order]
        if self.weight is None and ((first[1:] > first[:-1]) | (codes[1:] > codes[:-1])).all():
            return self.of_checked(
                self.X.take(order, axis=0), codes, self.feature_names, self.class_names, None, original=self
            )
        keys = np.column_stack([self.y, self.X])
        unique, index = np.unique(keys, axis=0, return_inverse=True)
        weight = np.bincount(index.ravel(), weights=self.weight).astype(np.float64)
        X, y = np.ascontiguousarray(unique[:, 1:]), unique[:, 0].astype(np.intp)
        merged = None if (weight == 1).all() else weight
        return self.of_checked(X, y, self.feature_names, self.class_names, merged, self, self.encoding)

    def split(self, test_size: float = 0.25, random_seed: int = 0) -> tuple[Self, Self]:
        """Split at random into training and test rows, each class in proportion and present in both.

        Parameters
        ----------
        test_size
            Share of the rows between 0 and 1, or a whole number of rows.
        random_seed
            Non-negative integer; the same one gives the same split.

        Returns
        -------
        The training part and the test part, each with its rows in their original order.
        """
        in_test = draw_test_rows(self.y, self.class_names, test_size, random_seed)
        return self.subset(~in_test), self.subset(in_test)

    def require_rows(self, minimum: int, model: str, *, remedy: str = "Merge classes or add rows.") -> None:
        """Raise if a class has too few rows for a model.

        Parameters
        ----------
        minimum
            Rows that each class must have.
        model
            Name of the model, for the message.
        remedy
            What the user can do, such as "Merge classes or use LDA."
        """
        for name, count in zip(self.class_names, self.class_counts, strict=True):
            if count < minimum:
                rows = "1 row" if count == 1 else f"{count} rows"
                raise DataError(f"Class {name!r} has {rows}; {model} needs at least {minimum}. {remedy}")

    def require_complete(self, model: str) -> None:
        """Raise if X has missing values, which `model` cannot use; the message counts them by column."""
        check_missing(
            find_gaps(self.X, self.feature_names), f'{model} needs complete rows: load the data with missing="drop".'
        )
