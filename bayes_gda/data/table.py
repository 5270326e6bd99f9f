"""Read, validate, encode: from a table with a class column to the `Dataset` that everything downstream sees."""

from __future__ import annotations

import hashlib
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats
from bayes_gda.data import encoding as enc
from bayes_gda.data.encoding import Encoding, Label, Missing, columns_hint, listed, near_misses
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    import pandas as pd

# Rows hashed at a time: bounds the copy that makes the bytes canonical.
_BLOCK = 4096


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
    """

    X: Floats
    y: NDArray[np.intp]
    feature_names: tuple[str, ...]
    class_names: tuple[Label, ...]
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        X, y = _own_features(self.X), _as_codes(self.y)
        features, classes = _names(self.feature_names, X.shape[1]), tuple(enc.plain(name) for name in self.class_names)
        if len(y) != len(X):
            raise DataError(f"`X` and `y` must have as many rows; got {len(X)} and {len(y)}.")
        _check_infinite(X, features)
        enc.check_labels(classes, "`class_names`")
        enc.check_distinct(classes, "Class name")
        K = len(classes)
        if K < 2:
            raise DataError(f"A classifier needs at least two classes; got {listed(classes) or 'none'}.")
        if y.min() < 0 or y.max() >= K:
            bad = y[(y < 0) | (y >= K)][0]
            raise DataError(f"`y` must hold codes in 0…{K - 1}, one for each of the {K} class names; got {bad}.")
        if self.encoding is not None and self.encoding.feature_names != features:
            raise DataError("`encoding` must yield the features in `feature_names`; it was made for another table.")
        for name, value in (("X", X), ("y", y), ("feature_names", features), ("class_names", classes)):
            object.__setattr__(self, name, value)

    @classmethod
    def from_arrays(
        cls,
        X: ArrayLike,
        y: ArrayLike,
        *,
        feature_names: Sequence[str] | None = None,
        class_names: Sequence[Label] | None = None,
        missing: Missing = "error",
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
        _check_option(missing)
        if feature_names is None and all(isinstance(name, str) for name in getattr(X, "columns", (0,))):
            feature_names = list(X.columns)  # type: ignore[union-attr]
        rows = _as_features(X)
        n, d = rows.shape
        labels, order = enc.as_labels(y, "`y`")
        if len(labels) != n:
            raise DataError(f"`X` and `y` must have as many rows; got {n} and {len(labels)}.")
        names = _names([f"x{j + 1}" for j in range(d)] if feature_names is None else feature_names, d)
        _check_infinite(rows, names)
        keep = enc.complete_rows(dict(zip(names, np.isnan(rows).T, strict=True)), labels, "`y`", missing)
        if class_names is None:
            codes, classes = enc.code_labels(labels[keep], order, "`y`")
        else:
            codes, classes = _as_codes(labels[keep]), tuple(class_names)
        dataset = cls(_read_only(rows if keep.all() else rows[keep]), codes, names, classes)
        for k, count in enumerate(dataset.class_counts):
            if not count:
                raise DataError(f"Class {dataset.class_names[k]!r} has no rows; remove it from `class_names`.")
        for name, column in zip(names, dataset.X.T, strict=True):
            present = column[~np.isnan(column)]
            if not len(present):
                raise DataError(f"Column {name!r} has no values: all {dataset.n} rows are missing. Drop the column.")
            enc.check_constant(name, present)
        return dataset

    @classmethod
    def from_frame(
        cls, df: pd.DataFrame, *, target: str, categorical: Iterable[str] = (), missing: Missing = "error"
    ) -> Self:
        """Make a data set from a data frame; every column but the target is a feature.

        A text column counts as numeric if all its values are numbers, and as categorical if fewer than half are.

        Parameters
        ----------
        df
            Table of n rows.
        target
            Column that holds the classes. A pandas Categorical keeps its order, other labels get their natural order.
        categorical
            Columns to take as categorical even if they look numeric.
        missing
            What a missing value does: raise ("error"), drop its row ("drop"), or stay as NaN ("keep"). A missing label
            is an error unless its row is dropped.
        """
        _check_option(missing)
        enc.check_columns(df)
        if target not in df.columns:
            raise DataError(f"The table has no target column {target!r}.{columns_hint(target, df.columns)}")
        features = [name for name in df.columns if name != target]
        categorical = _check_categorical(categorical, features, target)
        if not len(df):
            raise DataError(f"The table is empty: {len(df.columns)} columns, but no rows. Add rows.")
        if not features:
            raise DataError(f"The table has no feature columns besides the target {target!r}. Add some.")
        what = f"Target {target!r}"
        raw = [enc.parse_column(name, df[name], name in categorical) for name in features]
        enc.check_infinite({r.name: int(np.isinf(r.cells).sum()) for r in raw if r.kind != "categorical"})
        labels, order = enc.as_labels(df[target], what)
        keep = enc.complete_rows({r.name: r.missing for r in raw}, labels, what, missing)
        codes, classes = enc.code_labels(labels[keep], order, what)
        encoding, X = enc.fit_encoding([r.take(keep) for r in raw])
        return cls(X, codes, encoding.feature_names, classes, encoding)

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
    def has_missing(self) -> bool:
        """Whether X has missing values (NaN)."""
        return bool(np.isnan(self.X).any())

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the contents: X, y and the names, but not how the columns were encoded.

        It is the same on every machine, and for −0 and 0, and for every kind of NaN.
        """
        digest = hashlib.sha256(repr((self.X.shape, self.feature_names, self.class_names)).encode())
        for start in range(0, self.n, _BLOCK):
            block = self.X[start : start + _BLOCK] + 0.0  # −0 + 0 = 0
            block[np.isnan(block)] = np.nan
            digest.update(block.astype("<f8").tobytes())
        digest.update(self.y.astype("<i8").tobytes())
        return digest.hexdigest()

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
        return type(self)(_read_only(self.X[index]), self.y[index], self.feature_names, self.class_names, self.encoding)

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
        if not isinstance(random_seed, int | np.integer) or isinstance(random_seed, bool) or random_seed < 0:
            raise DataError(f"`random_seed` must be a non-negative integer; got {random_seed!r}.")
        counts = self.class_counts
        share = _test_counts(counts, _test_rows(test_size, self.n), self.class_names)
        rng = np.random.default_rng(random_seed)
        drawn = [rng.permutation(np.flatnonzero(self.y == k))[: share[k]] for k in range(self.K)]
        in_test = np.zeros(self.n, dtype=bool)
        in_test[np.concatenate(drawn)] = True
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


def read_table(
    path: str | os.PathLike[str], *, target: str, categorical: Iterable[str] = (), missing: Missing = "error"
) -> Dataset:
    """Read a table from a file: .csv, .tsv, .csv.gz, .tsv.gz, .parquet or .feather.

    In text files an empty cell, NA, NaN, null, None and the like are missing values, as pandas has it.

    Parameters
    ----------
    path
        File to read; its name says its type.
    target, categorical, missing
        As in `Dataset.from_frame`.
    """
    return Dataset.from_frame(_read_frame(Path(path)), target=target, categorical=categorical, missing=missing)


# -- files -------------------------------------------------------------------------------------------------------------


def _read_frame(path: Path) -> pd.DataFrame:
    import pandas as pd

    kinds = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t", ".parquet": None, ".feather": None}
    kind = next((kind for kind in kinds if path.name.lower().endswith(kind)), None)
    if kind is None:
        raise DataError(f"Cannot tell the type of {str(path)!r}; name it as one of {', '.join(kinds)}.")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"No such file: {str(path)!r}.{near_misses(path.name, siblings) or ' Check the path.'}")
    try:
        if kind == ".parquet":
            return pd.read_parquet(path)
        if kind == ".feather":
            return pd.read_feather(path)
        return _read_text(path, str(kinds[kind]))
    except DataError:
        raise
    except (ValueError, OSError, EOFError, NotImplementedError, zlib.error) as error:
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise DataError(
            f"Cannot read {str(path)!r} as {kind[1:]}: {cause}. Check that the file is whole and of that type."
        ) from error


def _read_text(path: Path, separator: str) -> pd.DataFrame:
    import pandas as pd

    options: dict[str, Any] = {"sep": separator, "encoding": "utf-8-sig"}
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **options).iloc[0].tolist()
    # Pandas would rename the second of two equal names to `a.1`, and call a nameless column `Unnamed: 0`.
    enc.check_distinct(header, "Column name")
    if "" in header:
        where = header.index("") + 1
        raise DataError(
            f"Column {where} of {str(path)!r} has no name; if it holds row names, write the file without them."
        )
    with warnings.catch_warnings():
        # Without index_col, rows longer than the header would become an index; with it they lose their end.
        warnings.simplefilter("error", pd.errors.ParserWarning)
        try:
            df: pd.DataFrame = pd.read_csv(path, index_col=False, low_memory=False, **options)
        except pd.errors.ParserWarning:
            raise ValueError("some rows have more fields than the header") from None
    return df


# -- checks ------------------------------------------------------------------------------------------------------------


def _check_option(missing: str) -> None:
    options = get_args(Missing.__value__)
    if missing not in options:
        raise DataError(f"`missing` must be one of {listed(options)}; got {missing!r}.")


def _check_categorical(categorical: Iterable[str], features: list[str], target: str) -> set[str]:
    if isinstance(categorical, str):
        raise DataError(f"`categorical` must be a list of columns; got {categorical!r}. Use [{categorical!r}].")
    categorical = set(categorical)
    for name in sorted(categorical - set(features), key=str):
        if name == target:
            raise DataError(f"`categorical` names the target {target!r}, whose classes need no coding; leave it out.")
        raise DataError(f"`categorical` names {name!r}, which is no column.{columns_hint(name, features)}")
    return categorical


def _names(names: Sequence[Any], d: int) -> tuple[str, ...]:
    names = tuple(names)
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"`feature_names` must be text; got {name!r}. Use str() on each.")
    if len(names) != d:
        raise DataError(f"`feature_names` must name {d} features; got {len(names)} names.")
    enc.check_distinct(names, "Feature name")
    return names


def _read_only(a: NDArray[Any]) -> NDArray[Any]:
    a.setflags(write=False)
    return a


def _as_features(X: ArrayLike) -> Floats:
    """Return X as float64 (n, d), n and d at least 1."""
    if hasattr(X, "toarray"):
        raise DataError("`X` is a sparse matrix; use X.toarray().")
    try:
        array = np.ma.getdata(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    except (ValueError, TypeError):
        raise DataError("`X` must be 2-d; got rows of different lengths. Give each row as many values.") from None
    if array.dtype.kind not in "biuf":
        raise DataError(_kind_message(array))
    if array.ndim != 2:
        hint = " Use X[:, None] for one feature." if array.ndim == 1 else ""
        raise DataError(f"`X` must be 2-d; got shape {array.shape}.{hint}")
    if 0 in array.shape:
        raise DataError(f"`X` is empty: its shape is {array.shape}. Give at least one row and one feature.")
    with np.errstate(over="ignore"):
        out = np.array(array, dtype=np.float64, order="C")
    out[np.ma.getmaskarray(X)] = np.nan  # a masked value is a missing one
    return out


def _kind_message(array: NDArray[Any]) -> str:
    if array.dtype.kind == "c":
        return f"`X` must be real; got {array.dtype}. Use X.real, or its parts as two columns."
    if array.dtype.kind == "O":
        try:
            array.astype(np.float64)
        except OverflowError:
            return "`X` has a number too large for float64, whose largest is 1.8e308. Rescale it."
        except (TypeError, ValueError):
            pass
    return f"`X` must be numeric; got dtype {array.dtype}. Use X.astype(float), or Dataset.from_frame for a table."


def _own_features(X: Any) -> Floats:
    """Return X checked and read-only; an array that is so already is not copied."""
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and X.size:
        flags = X.flags
        if flags.c_contiguous and flags.owndata and not flags.writeable:
            return X
    return _read_only(_as_features(X))


def _check_infinite(X: Floats, names: Sequence[str]) -> None:
    bad = np.isinf(X)
    if bad.any():
        enc.check_infinite(dict(zip(names, bad.sum(axis=0).tolist(), strict=True)))


def _as_codes(y: Any) -> NDArray[np.intp]:
    codes = np.asarray(y)
    if codes.ndim != 1:
        raise DataError(f"`y` must be 1-d; got shape {codes.shape}. Use np.ravel(y) for a single column.")
    bad = [] if codes.dtype.kind in "iu" else [value for value in codes.tolist() if type(value) is not int]
    if bad:
        raise DataError(f"`y` must hold integer codes; got {bad[0]!r}. Use Dataset.from_arrays without class_names.")
    return _read_only(codes.astype(np.intp))


# -- splitting ---------------------------------------------------------------------------------------------------------


def _test_rows(test_size: float, n: int) -> int:
    if isinstance(test_size, int | np.integer) and not isinstance(test_size, bool) and 0 < test_size < n:
        return int(test_size)
    if isinstance(test_size, float | np.floating) and 0 < test_size < 1:
        return round(float(test_size) * n)
    raise DataError(f"`test_size` must be a share between 0 and 1 or a whole number in 1…{n - 1}; got {test_size!r}.")


def _test_counts(counts: NDArray[np.intp], n_test: int, names: tuple[Label, ...]) -> NDArray[np.intp]:
    """Share the test rows among the classes by largest remainders, with at least one row on either side."""
    for name, count in zip(names, counts, strict=True):
        if count == 1:
            raise DataError(
                f"Class {name!r} has 1 row; a stratified split needs at least 2. Merge classes or add rows."
            )
    n, present = int(counts.sum()), int((counts > 0).sum())
    if not present <= n_test <= n - present:
        raise DataError(
            f"A stratified split of {n} rows in {present} classes needs {present} to {n - present} test rows; "
            f"`test_size` gives {n_test}."
        )
    quota = n_test * counts / n
    low, high = np.minimum(counts, 1), np.maximum(counts - 1, 0)
    share = np.clip(np.floor(quota).astype(np.intp), low, high)
    while (gap := n_test - int(share.sum())) != 0:
        rest = quota - share
        k = (
            np.argmax(np.where(share < high, rest, -np.inf))
            if gap > 0
            else np.argmin(np.where(share > low, rest, np.inf))
        )
        share[k] += np.sign(gap)
    return share
