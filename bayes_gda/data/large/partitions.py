"""The partitions of a table on a cluster: of a Dask DataFrame, of Dask arrays, or of Parquet files.

Each kind names its columns and hands out its partitions. On a worker a partition becomes data frames, one at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self

from bayes_gda.data.large.layout import RawType
from bayes_gda.data.large.reading import column_types, parquet_files, read_groups
from bayes_gda.errors import DataError

# Rows of a partition of Parquet files, at most, unless a row group has more: at some 10⁶ rows a second a task takes a
# few seconds, against about a millisecond that the scheduler needs for it.
PART_ROWS = 4_000_000
# What the columns of arrays are called, as everywhere in the package, and their labels.
LABELS = "y"


class Parts(Protocol):
    """A table in partitions."""

    @property
    def target(self) -> str:
        """The column of the classes."""

    @property
    def columns(self) -> list[tuple[str, RawType]]:
        """Names and types of all columns."""

    @property
    def named(self) -> bool:
        """Whether the user gave the names."""

    @property
    def steady(self) -> bool:
        """Whether the partitions are the same for any selection of columns."""

    @property
    def part_rows(self) -> tuple[int, ...] | None:
        """(P,) rows of each partition, if they are known without reading it."""

    def parts(self, columns: list[str]) -> list[Any]:
        """Return the partitions with some of the columns: Dask's delayed values, or what `frames_of` takes."""


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """The partitions of a Dask DataFrame, which reads several small files as one if few of their columns are needed."""

    table: Any
    target: str
    named = True
    steady = False
    part_rows = None

    @property
    def columns(self) -> list[tuple[str, RawType]]:
        """Names and types of all columns."""
        return [(name, _understood(dtype)) for name, dtype in self.table.dtypes.items()]

    def parts(self, columns: list[str]) -> list[Any]:
        """Return the partitions; columns that are not needed are not read where Dask can help it."""
        return list(self.table[columns].to_delayed())


@dataclass(frozen=True, slots=True, eq=False)
class Arrays:
    """The blocks of a Dask array (n, d), and the labels of their rows; made by `Arrays.of`."""

    X: Any
    blocks: tuple[Any, ...]
    labels: tuple[Any, ...]
    target = LABELS
    named = False
    steady = True
    part_rows = None

    @classmethod
    def of(cls, X: Any, y: Any) -> Self:
        """Bring the blocks of rows and labels in line."""
        if X.ndim != 2 or math.isnan(X.shape[1]):
            raise DataError(f"`X` must be 2-d with a known number of columns; got shape {X.shape}.")
        if X.dtype.kind not in "biuf":
            raise DataError(f"`X` must hold numbers; got {X.dtype}. Use a Dask DataFrame for columns of text.")
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        if is_frame(y):
            if len(y.columns) != 1:
                raise DataError(f"`y` must have one column; got {len(y.columns)}. Choose one.")
            y = y[y.columns[0]]
        if not hasattr(y, "to_delayed"):
            raise DataError(
                f"`y` must be a Dask array or Series like `X`; got {type(y).__name__}. "
                "Use dask.array.from_array(y, chunks=X.chunks[0])."
            )
        if hasattr(y, "chunks"):
            y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
            if y.ndim != 1:
                raise DataError(f"`y` must be 1-d; got shape {y.shape}.")
            known = not math.isnan(X.shape[0] + y.shape[0])
            if known and X.shape[0] != y.shape[0]:
                raise DataError(f"`X` has {X.shape[0]} rows and `y` {y.shape[0]}; they must be as many.")
            y = y.rechunk(X.chunks[:1]) if known and y.chunks != X.chunks[:1] else y
        labels = tuple(y.to_delayed())
        if len(labels) != X.numblocks[0]:
            raise DataError(
                f"`X` has {X.numblocks[0]} blocks of rows and `y` {len(labels)}; they must have the same. "
                "Call compute_chunk_sizes() on both, so that they can be brought in line."
            )
        return cls(X, tuple(X.to_delayed()[:, 0]), labels)

    @property
    def columns(self) -> list[tuple[str, RawType]]:
        """Names and types of all columns."""
        return [*((name, _understood(self.X.dtype)) for name in self._names), (LABELS, RawType("text", "label"))]

    @property
    def _names(self) -> list[str]:
        return [f"x{j + 1}" for j in range(self.X.shape[1])]

    def parts(self, columns: list[str]) -> list[Any]:
        """Return the blocks with their labels; those of X only if they are asked for."""
        from dask.delayed import delayed

        join = delayed(_joined, pure=False)
        if columns == [LABELS]:
            return [join(None, y, []) for y in self.labels]
        return [join(X, y, self._names) for X, y in zip(self.blocks, self.labels, strict=True)]


@dataclass(frozen=True, slots=True)
class FilePart:
    """Some row groups of a Parquet file, from `start` to before `stop`."""

    file: Path
    start: int
    stop: int
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Files:
    """Parquet files that the workers can read; made by `Files.of`."""

    target: str
    columns: list[tuple[str, RawType]]
    pieces: tuple[FilePart, ...]
    part_rows: tuple[int, ...]
    named = True
    steady = True

    @classmethod
    def of(cls, target: str, columns: list[tuple[str, RawType]], files: list[Path], groups: list[list[int]]) -> Self:
        """Cut files, given the rows of their row groups, into partitions of at most PART_ROWS rows."""
        pieces, rows = [], []
        for file, sizes in zip(files, groups, strict=True):
            start, size = 0, 0
            for i, group in enumerate(sizes):
                if size and size + group > PART_ROWS:
                    pieces.append(FilePart(file, start, i))
                    rows.append(size)
                    start, size = i, 0
                size += group
            pieces.append(FilePart(file, start, len(sizes)))
            rows.append(size)
        return cls(target, columns, tuple(pieces), tuple(rows))

    def parts(self, columns: list[str]) -> list[Any]:
        """Return the pieces of files."""
        return [FilePart(piece.file, piece.start, piece.stop, tuple(columns)) for piece in self.pieces]


def is_frame(value: Any) -> bool:
    """Whether a Dask collection is a data frame; a Series has columns too."""
    return hasattr(value, "columns") and value.ndim == 2


def look_at(path: Path, target: str) -> tuple[list[tuple[str, RawType]], list[Path]]:
    """On a worker: the columns of Parquet files, and the files."""
    if not path.is_dir() and path.suffix.lower() != ".parquet":
        raise DataError(f"A cluster reads .parquet files or a folder of them; got {str(path)!r}.")
    return column_types(path, target), parquet_files(path)


def frames_of(part: Any, batch_rows: int) -> Iterator[Any]:
    """On a worker: the rows of a partition, a data frame at a time."""
    if isinstance(part, FilePart):
        yield from read_groups(part.file, range(part.start, part.stop), list(part.columns), batch_rows)
        return
    for start in range(0, len(part), batch_rows):
        yield part.iloc[start : start + batch_rows]


def _joined(X: Any, y: Any, names: list[str]) -> Any:
    """On a worker: a block of an array and its labels as a data frame."""
    import numpy as np
    import pandas as pd

    labels = np.asarray(y)
    if X is not None and len(X) != len(labels):
        raise DataError(f"A block of `X` has {len(X)} rows and that of `y` {len(labels)}; they must be as many.")
    frame = pd.DataFrame(np.asarray(X), columns=names, copy=False) if X is not None else pd.DataFrame()
    return frame.assign(**{LABELS: labels})


def _understood(dtype: Any) -> RawType:
    """What pandas says that a column holds."""
    from pandas.api import types

    if types.is_bool_dtype(dtype):
        return RawType("boolean", str(dtype))
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return RawType("numeric", str(dtype))
    timed = types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype)
    return RawType("none" if timed else "text", str(dtype))
