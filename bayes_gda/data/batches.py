"""Tables larger than memory: files read batch by batch, with one encoding and one set of classes for all of them.

A first pass over the target and the columns of text learns the classes, the levels and the number of rows. After that
each pass yields (X, y), one batch at a time, so that memory is that of a few batches, whatever n is. Everything that is
a sum over rows needs no more: moments in one pass, a Newton step in one.

Arrow reads a whole row group of a Parquet file at once; write such files with row groups of at most 10⁶ rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.classes import Label, as_labels, check_labels
from bayes_gda.data.columns import parse_column
from bayes_gda.data.encoding import Column, Encoding
from bayes_gda.data.moments import Moments
from bayes_gda.data.validate import (
    check_categorical,
    check_distinct,
    check_labelled,
    check_missing,
    columns_hint,
    near_misses,
)
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import os

    import pandas as pd
    import pyarrow as pa

# Rows a batch: at 30 features 16 MB as float64. Smaller ones pay for calls, larger ones only for memory.
BATCH_ROWS = 65_536
# A column of text with more levels than this is an identifier or free text, and would make X as wide as it is long.
MAX_LEVELS = 1000
# Bytes of text that are parsed at a time, Arrow's default. It reads some 32 of them ahead, which are 32 MB.
TEXT_BLOCK = 2**20
# What an empty cell of a text file looks like, as pandas has it.
_EMPTY = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_TEXT = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Batches:
    """A table on disk as an iterable of (X, y), the same on each pass; `open_batches` makes one.

    Parameters
    ----------
    path, target
        File, or folder of Parquet files; the column that holds the classes.
    encoding, class_names
        How raw columns become X (m, d); code k in y (m,) stands for `class_names[k]`.
    rows
        Rows of the table, with those that `missing` drops.
    missing
        What a missing value does: raise ("error") or drop its row ("drop").
    batch_rows
        Rows of a batch, at most.
    progress
        Called after each batch with the rows read so far in this pass; None for no calls.
    """

    path: Path
    target: str
    encoding: Encoding
    class_names: tuple[Label, ...]
    rows: int
    missing: Literal["error", "drop"] = "error"
    batch_rows: int = BATCH_ROWS
    progress: Progress | None = None

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.class_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """(d,) names of the columns of X."""
        return self.encoding.feature_names

    def __iter__(self) -> Iterator[tuple[Floats, NDArray[np.intp]]]:
        """Read the table once, batch by batch."""
        columns = [self.target, *(column.name for column in self.encoding.columns)]
        done = 0
        for frame in _frames(self.path, self.target, columns, self.batch_rows):
            try:
                X, y = self._encode(frame)
            except DataError as error:
                raise DataError(f"Rows {done + 1} to {done + len(frame)}: {error}") from error
            done += len(frame)
            if len(X):
                yield X, y
            if self.progress is not None:
                self.progress(done)

    def _encode(self, frame: pd.DataFrame) -> tuple[Floats, NDArray[np.intp]]:
        what = f"target {self.target!r}"
        labels = as_labels(frame[self.target], what)
        y = labels.code_known(self.class_names, what, "class")
        X = self.encoding.encode(frame, missing="keep")
        gaps = np.isnan(X)
        if self.missing == "error":
            remedy = 'pass missing="drop", or fill them in.'
            check_labelled(labels.missing, what.capitalize(), remedy)
            if gaps.any():
                check_missing(dict(zip(self.feature_names, gaps.T, strict=True)), remedy)
            return X, y
        keep = ~(gaps.any(axis=1) | labels.missing)
        return (X, y) if keep.all() else (X[keep], y[keep])

    def moments(self) -> Moments:
        """Return the sufficient statistics of all rows, in one pass."""
        return Moments.from_chunks(self, self.K)

    def sample(self, size: int, *, random_seed: int = 0) -> tuple[Floats, NDArray[np.intp]]:
        """Return about `size` rows, each taken with the same probability, in one pass.

        Parameters
        ----------
        size
            Rows to expect; a table that has no more is returned whole.
        random_seed
            The same one takes the same rows, whatever the batches.
        """
        rng = np.random.default_rng(random_seed)
        share = min(1.0, size / max(1, self.rows))
        taken = []
        for X, y in self:
            chosen = rng.random(len(X)) < share
            taken.append((X[chosen], y[chosen]))
        if not taken:
            raise DataError("No row is complete. Drop the column that has most gaps.")
        return np.concatenate([X for X, _ in taken]), np.concatenate([y for _, y in taken])


def open_batches(
    path: str | os.PathLike[str],
    *,
    target: str,
    categorical: Iterable[str] = (),
    missing: Literal["error", "drop"] = "error",
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> Batches:
    """Learn the classes, the levels of text columns and the number of rows of a table, in one pass over those columns.

    Columns of numbers stay as they are, also where all values are equal; classes and levels get their natural order.

    Parameters
    ----------
    path
        .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .feather, or a folder of .parquet files.
    target
        Column that holds the classes; every other column is a feature.
    categorical
        Columns to take as categorical even if they look numeric.
    missing, batch_rows, progress
        As in `Batches`.
    """
    if missing not in ("error", "drop"):
        raise DataError(f'`missing` must be "error" or "drop" for a table read in batches; got {missing!r}.')
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise DataError(f"`batch_rows` must be a whole number of at least 1; got {batch_rows!r}.")
    source = Path(path)
    schema = _schema(source, target)
    check_distinct(schema.names, "Column name")
    if target not in schema.names:
        raise DataError(f"The table has no target column {target!r}.{columns_hint(target, schema.names)}")
    features = [name for name in schema.names if name != target]
    if not features:
        raise DataError(f"The table has no feature columns besides the target {target!r}. Add some.")
    chosen = check_categorical(categorical, features, target)
    read = [name for name in features if name in chosen or not _is_number(schema.field(name).type)]
    seen: dict[str, dict[Any, None]] = {name: {} for name in (target, *read)}
    rows = 0
    for frame in _frames(source, target, [target, *read], batch_rows):
        rows += len(frame)
        for name, values in seen.items():
            labels = as_labels(frame[name], f"Column {name!r}")
            values |= dict.fromkeys(labels.values)
            if len(values) > MAX_LEVELS:
                raise DataError(
                    f"Column {name!r} has more than {MAX_LEVELS} different values in {rows} rows, like an identifier. "
                    "Drop the column, or make it numeric."
                )
        if progress is not None:
            progress(rows)
    if not rows:
        raise DataError(f"The table is empty: {len(schema.names)} columns, but no rows. Add rows.")
    columns = tuple(
        _column(name, list(seen[name]), name in chosen)
        if name in seen
        else Column(name, "boolean" if str(schema.field(name).type) == "bool" else "numeric")
        for name in features
    )
    classes = _ordered(target, list(seen[target]))
    if len(classes) < 2:
        raise DataError(f"Target {target!r} has {len(classes)} classes; a classifier needs at least two.")
    return Batches(source, target, Encoding(columns), classes, rows, missing, batch_rows, progress)


def fit_moments(
    path: str | os.PathLike[str],
    *,
    target: str,
    categorical: Iterable[str] = (),
    missing: Literal["error", "drop"] = "error",
    progress: Progress | None = None,
) -> tuple[Moments, Batches]:
    """Return the sufficient statistics of a table on disk, and the table; parameters as in `open_batches`."""
    batches = open_batches(path, target=target, categorical=categorical, missing=missing, progress=progress)
    return batches.moments(), batches


def _column(name: str, values: list[Any], categorical: bool) -> Column:
    """Understand a column that is not of numbers by its distinct values, as `Dataset.from_frame` would."""
    import pandas as pd

    raw = parse_column(name, pd.Series(values, dtype=object), categorical)
    if raw.kind != "categorical":
        return Column(name, raw.kind)
    levels = _ordered(name, values)
    if len(levels) < 2:
        raise DataError(f"Column {name!r} has {len(levels)} levels; drop the column.")
    return Column(name, "categorical", levels)


def _ordered(name: str, values: list[Any]) -> tuple[Label, ...]:
    check_labels(values, f"Column {name!r}")
    return tuple(sorted(values))


def _is_number(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    if types.is_temporal(kind) or types.is_nested(kind):
        raise DataError(f"A column of type {kind} is no feature; turn it into numbers or text, or drop it.")
    return types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind) or types.is_boolean(kind)


# ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _frames(path: Path, target: str, columns: list[str], batch_rows: int) -> Iterator[pd.DataFrame]:
    """Read the columns of a table, a data frame at a time; whatever is wrong with the file is a `DataError`."""
    import pyarrow as pa

    read = {"parquet": _parquet_batches, "feather": _feather_batches}.get(_kind(path), _text_batches)
    try:
        for batch in read(path, target, columns, batch_rows):
            for start in range(0, len(batch), batch_rows):
                yield batch.slice(start, batch_rows).to_pandas()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def _parquet_batches(path: Path, _target: str, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Scan row group by row group: a scan of the whole reads ahead as fast as it can, and held 90 of 140 MB."""
    import pyarrow.dataset as ds

    dataset = ds.dataset(path, format="parquet")
    for file in dataset.get_fragments():
        for group in file.split_by_row_group():
            yield from group.to_batches(
                schema=dataset.schema, columns=columns, batch_size=batch_rows, batch_readahead=1
            )


def _feather_batches(path: Path, _target: str, columns: list[str], _batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Map the file into memory, and take one batch after the other as it was written."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i).select(columns)


def _text_batches(path: Path, target: str, columns: list[str], _batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Read text block by block."""
    with _open_text(path, target) as reader:
        for batch in reader:
            yield batch.select(columns)


def _open_text(path: Path, target: str) -> Any:
    """Open a text file; Arrow guesses types from its first megabyte, so whole numbers are taken as decimals too."""
    import pyarrow as pa
    import pyarrow.csv as csv

    def opened(types: dict[str, Any]) -> Any:
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, block_size=TEXT_BLOCK),
            parse_options=csv.ParseOptions(delimiter=_TEXT[_kind(path)]),
            convert_options=csv.ConvertOptions(null_values=list(_EMPTY), strings_can_be_null=True, column_types=types),
        )

    with opened({}) as first:
        guessed = first.schema
    whole = [f.name for f in guessed if pa.types.is_integer(f.type) or pa.types.is_null(f.type)]
    return opened({name: pa.float64() for name in whole if name != target})


def _schema(path: Path, target: str) -> pa.Schema:
    """Return the names and types of the columns."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"No such file: {str(path)!r}.{near_misses(path.name, siblings) or ' Check the path.'}")
    kind = _kind(path)
    try:
        if kind in ("parquet", "feather"):
            return ds.dataset(path, format=kind).schema
        with _open_text(path, target) as reader:
            return reader.schema
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def _kind(path: Path) -> str:
    """Return what the name says: "parquet", "feather", or the ending of a text file."""
    if path.is_dir():
        return "parquet"
    name = path.name.lower()
    for end in (".parquet", ".feather", *_TEXT):
        if name.endswith(end):
            return end if end in _TEXT else end[1:]
    kinds = ", ".join([*_TEXT, ".parquet", ".feather"])
    raise DataError(f"Cannot tell the type of {str(path)!r}; name it as one of {kinds}, or give a folder of .parquet.")


def _unreadable(path: Path, error: Exception) -> DataError:
    cause = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return DataError(f"Cannot read {str(path)!r}: {cause}. Check that the file is whole, and its columns of one type.")
