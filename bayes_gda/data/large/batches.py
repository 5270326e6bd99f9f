"""Tables larger than memory: sums over rows that are read batch by batch, here or elsewhere.

A first pass over the target and the columns of text learns the classes, the levels and the number of rows. After that
each pass sees (X, y), one batch at a time, so that memory is that of a few batches, whatever n is. Everything that is
a sum over rows needs no more: moments in one pass, a Newton step in one.

    Batches          one batch after the other, in this process; a file or a folder of Parquet files
    ClusterBatches   all parts at once, on the workers of a Dask cluster (`data.cluster`)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.classes import Label
from bayes_gda.data.large.layout import Codes, Encoded, Layout, Sampling, Survey, Work, make_plan, total
from bayes_gda.data.large.reading import column_types, read_frames
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.missing import Complete

if TYPE_CHECKING:
    import pandas as pd

    from bayes_gda.data.columns import Encoding

# Rows a batch: at 30 features 16 MB as float64. Smaller ones pay for calls, larger ones only for memory.
BATCH_ROWS = 65_536
# Batches that are worked on at a time. More would only wait for the reader, which takes a third of a Newton pass.
THREADS = 4

type Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Some rows of a table: X (m, d) and y (m,); and how many rows each class has in all of it, count (K,)."""

    X: Floats
    y: Codes
    count: Floats


class Source:
    """A table whose rows can be summed over, wherever they are; the subclasses say how.

    `layout` is how its columns become (X, y), and `rows` the number of its rows, with those that gaps drop.
    """

    __slots__ = ()

    layout: Layout
    rows: int

    def total[T](self, work: Work[T]) -> T | None:
        """Add up the work of all parts of the table, each a data frame with the columns of `layout`."""
        raise NotImplementedError

    @property
    def encoding(self) -> Encoding:
        """How raw columns become X."""
        return self.layout.encoding

    @property
    def class_names(self) -> tuple[Label, ...]:
        """Code k in y stands for entry k."""
        return self.layout.class_names

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.layout.class_names)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """(d,) names of the columns of X."""
        return self.layout.encoding.feature_names

    def sum[T](self, function: Callable[[Floats, Codes], T]) -> T:
        """Return Σ function(X, y) over all parts of the table, in one pass.

        Parameters
        ----------
        function
            From some rows X (m, d) and codes y (m,) to what adds: a number, an array, `Moments`, a list (put together
            in the order of the rows), or a tuple of such.
        """
        total = self.total(Encoded(self.layout, function))
        if total is None:
            raise DataError("No row is complete. Drop the column that has most gaps.")
        return total

    def moments(self) -> Moments:
        """Return the sufficient statistics of all rows, in one pass."""
        return self.sum(partial(Moments.from_arrays, K=self.K))

    def sample(self, size: int, *, random_seed: int = 0) -> Sample:
        """Return about `size` rows, each taken with the same probability, in one pass.

        Parameters
        ----------
        size
            Rows to expect; a table that has no more is returned whole.
        random_seed
            The same one takes the same rows, whatever the parts.
        """
        share = min(1.0, size / max(1, self.rows))
        drawn = self.total(Sampling(self.layout, share, random_seed))
        if drawn is None or not drawn[0].any():
            raise DataError("No row is complete. Drop the column that has most gaps.")
        count, parts = drawn
        return Sample(np.concatenate([X for X, _ in parts]), np.concatenate([y for _, y in parts]), count)


@dataclass(frozen=True, slots=True, eq=False)
class Batches(Source):
    """A table on disk, read batch by batch, the same on each pass; `open_batches` makes one.

    Parameters
    ----------
    path
        File, or folder of Parquet files.
    layout, rows
        As in `Source`.
    batch_rows
        Rows of a batch, at most.
    progress
        Called after each batch with the rows read so far in this pass; None for no calls.
    """

    path: Path
    layout: Layout
    rows: int
    batch_rows: int = BATCH_ROWS
    progress: Progress | None = None

    def __iter__(self) -> Iterator[tuple[Floats, Codes]]:
        """Read the table once, and yield (X, y) of each batch that has rows."""
        done = 0
        for frame in self._frames():
            X, y, _ = self.layout.encode(frame, done)
            done += len(frame)
            if len(X):
                yield X, y
            if self.progress is not None:
                self.progress(done)

    def total[T](self, work: Work[T]) -> T | None:
        """Add up the work of one batch after the other."""
        return total(self._frames(), work, tick=self.progress, threads=min(THREADS, os.cpu_count() or 1))

    def _frames(self) -> Iterator[pd.DataFrame]:
        return read_frames(self.path, self.layout.target, self.layout.columns, self.batch_rows)


def open_batches(
    path: str | os.PathLike[str],
    *,
    target: str,
    categorical: Iterable[str] = (),
    drop: Iterable[str] = (),
    missing: Complete = "error",
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
    categorical, drop
        Columns to take as categorical even if they look numeric, and columns to leave out.
    missing
        What a missing value does: raise ("error") or drop its row ("drop").
    batch_rows, progress
        As in `Batches`.
    """
    check_batch_rows(batch_rows)
    source = Path(path)
    plan = make_plan(column_types(source, target), target, categorical=categorical, drop=drop, missing=missing)
    survey = Survey(tuple(plan.surveyed))
    seen = total(read_frames(source, target, plan.surveyed, batch_rows), survey, tick=progress)
    seen = survey.nothing if seen is None else seen
    return Batches(source, plan.layout(seen), seen.rows, batch_rows, progress)


def fit_moments(
    path: str | os.PathLike[str],
    *,
    target: str,
    categorical: Iterable[str] = (),
    missing: Complete = "error",
    progress: Progress | None = None,
) -> tuple[Moments, Batches]:
    """Return the sufficient statistics of a table on disk, and the table; parameters as in `open_batches`."""
    batches = open_batches(path, target=target, categorical=categorical, missing=missing, progress=progress)
    return batches.moments(), batches


def check_batch_rows(batch_rows: int) -> None:
    """Raise if `batch_rows` is no number of rows."""
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise DataError(f"`batch_rows` must be a whole number of at least 1; got {batch_rows!r}.")
