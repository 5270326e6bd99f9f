"""Tables that are seen a part at a time: one encoding and one set of classes for all parts, and sums over them.

    plan     which columns there are, and which must be read to learn their levels
    survey   one pass over those: the values of each, and the number of rows; what two parts have seen adds
    layout   how every further part becomes (X, y)

What is computed of each part must add: numbers, arrays, `Moments`, lists (which are put one behind the other, in the
order of the rows) and tuples of these. Then it does not matter where the parts are, nor how many.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.classes import Label, as_labels, check_labels
from bayes_gda.data.columns import Column, Encoding, parse_column
from bayes_gda.data.validate import check_categorical, check_distinct, check_labelled, check_missing, columns_hint
from bayes_gda.errors import DataError
from bayes_gda.missing import COMPLETE, Complete

if TYPE_CHECKING:
    import pandas as pd

# A column of text with more levels than this is an identifier or free text, and would make X as wide as it is long.
MAX_LEVELS = 1000

type Codes = NDArray[np.intp]
# A frame, and the number of rows of the table before it, to something that adds; None if no row is left.
type Work[T] = Callable[["pd.DataFrame", int], T | None]


class RawType(NamedTuple):
    """What a column holds by its type, as far as that tells; `name` is how its library calls the type."""

    kind: Literal["numeric", "boolean", "text", "none"]
    name: str


@dataclass(frozen=True, slots=True)
class Plan:
    """Which columns a table has, and what is to be learnt of them.

    Parameters
    ----------
    target
        The column of the classes.
    features
        The columns of the features, with what they hold.
    categorical
        Those to take as categorical, whatever they hold.
    missing
        What a missing value does: raise, or drop its row.
    named
        Whether the user gave the names.
    """

    target: str
    features: tuple[tuple[str, RawType], ...]
    categorical: frozenset[str]
    missing: Complete
    named: bool = True

    @property
    def surveyed(self) -> list[str]:
        """Columns whose values must be seen: the target, and what is not of numbers."""
        read = [name for name, raw in self.features if name in self.categorical or raw.kind == "text"]
        return [self.target, *read]

    @property
    def columns(self) -> list[str]:
        """All columns that are used."""
        return [self.target, *(name for name, _ in self.features)]

    def layout(self, seen: Seen) -> Layout:
        """Return how parts become (X, y), by the values that all of them have."""
        if not seen.rows:
            raise DataError(f"The table is empty: {1 + len(self.features)} columns, but no rows. Add rows.")
        columns = tuple(
            _column(name, list(seen.levels[name]), name in self.categorical)
            if name in seen.levels
            else Column(name, "boolean" if raw.kind == "boolean" else "numeric")
            for name, raw in self.features
        )
        classes = _ordered(self.target, list(seen.levels[self.target]))
        if len(classes) < 2:
            raise DataError(f"Target {self.target!r} has {len(classes)} classes; a classifier needs at least two.")
        return Layout(self.target, Encoding(columns), classes, self.missing, self.named)


def make_plan(
    columns: Sequence[tuple[str, RawType]],
    target: str,
    *,
    categorical: Iterable[str] = (),
    drop: Iterable[str] = (),
    missing: Complete = "error",
    named: bool = True,
) -> Plan:
    """Check what is asked of a table against its columns.

    Parameters
    ----------
    columns
        Names and types, in the order of the table.
    target, categorical, missing, named
        As in `Plan`.
    drop
        Columns to leave out.
    """
    if missing not in COMPLETE:
        raise DataError(f'`missing` must be "error" or "drop" for a table read in batches; got {missing!r}.')
    names = [name for name, _ in columns]
    for name in names:
        if not isinstance(name, str):
            raise DataError(f"Column names must be text; got {name!r}. Use df.rename(columns=str).")
    check_distinct(names, "Column name")
    if target not in names:
        raise DataError(f"The table has no target column {target!r}.{columns_hint(target, names)}")
    if isinstance(drop, str):
        raise DataError(f"`drop` must be a list of columns; got {drop!r}. Use [{drop!r}].")
    left_out = set(drop)
    for name in left_out:
        if name not in names:
            raise DataError(f"`drop` names no column: {name!r}.{columns_hint(name, names)}")
        if name == target:
            raise DataError(f"`drop` names the target {name!r}. Leave it out.")
    features = tuple((name, raw) for name, raw in columns if name != target and name not in left_out)
    if not features:
        raise DataError(f"The table has no feature columns besides the target {target!r}. Add some.")
    chosen = check_categorical(categorical, [name for name, _ in features], target)
    for name, raw in features:
        if raw.kind == "none" and name not in chosen:
            raise DataError(
                f"A column of type {raw.name} is no feature; turn {name!r} into numbers or text, or drop it."
            )
    return Plan(target, features, frozenset(chosen), missing, named)


@dataclass(frozen=True, slots=True)
class Seen:
    """The values that some rows have, and how many rows these are; a + b is of both."""

    levels: dict[str, dict[Any, None]]
    rows: int

    def __add__(self, other: Seen) -> Seen:
        both = {name: mine | other.levels[name] for name, mine in self.levels.items()}
        for name, values in both.items():
            if len(values) > MAX_LEVELS:
                raise DataError(
                    f"Column {name!r} has more than {MAX_LEVELS} different values in "
                    f"{self.rows + other.rows} rows, like an identifier. Drop the column, or make it numeric."
                )
        return Seen(both, self.rows + other.rows)


@dataclass(frozen=True, slots=True)
class Survey:
    """The work of a first pass: the values of some columns."""

    columns: tuple[str, ...]

    @property
    def nothing(self) -> Seen:
        """What no rows hold."""
        return Seen({name: {} for name in self.columns}, 0)

    def __call__(self, frame: pd.DataFrame, first: int) -> Seen:
        """Return what a frame holds."""
        values = {}
        for name in self.columns:
            labels = as_labels(frame[name], f"Column {name!r}")
            check_labels(labels.values, f"Column {name!r}")  # what can be no label, a list, may not be hashable
            values[name] = dict.fromkeys(labels.values)
        return self.nothing + Seen(values, len(frame))  # the sum looks at the number of levels


@dataclass(frozen=True, slots=True)
class Layout:
    """How parts of a table become (X, y).

    Parameters
    ----------
    target
        The column of the classes.
    encoding, class_names
        How raw columns become X (m, d); code k in y (m,) stands for `class_names[k]`.
    missing
        What a missing value does: raise ("error") or drop its row ("drop").
    named
        Whether the user gave the names of the features.
    """

    target: str
    encoding: Encoding
    class_names: tuple[Label, ...]
    missing: Complete
    named: bool = True

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        return [self.target, *(column.name for column in self.encoding.columns)]

    def encode(self, frame: pd.DataFrame, first: int) -> tuple[Floats, Codes, NDArray[np.bool_] | slice]:
        """Return X and y of the rows that are kept, and which these are; `first` rows stand before the frame."""
        try:
            return self._encode(frame)
        except DataError as error:
            raise DataError(f"Rows {first + 1} to {first + len(frame)}: {error}") from error

    def _encode(self, frame: pd.DataFrame) -> tuple[Floats, Codes, NDArray[np.bool_] | slice]:
        what = f"target {self.target!r}"
        labels = as_labels(frame[self.target], what)
        y = labels.code_known(self.class_names, what, "class")
        X = self.encoding.encode(frame, missing="keep")
        gaps = np.isnan(X)
        if self.missing == "error":
            remedy = 'pass missing="drop", or fill them in.'
            check_labelled(labels.missing, what.capitalize(), remedy)
            if gaps.any():
                check_missing(dict(zip(self.encoding.feature_names, gaps.T, strict=True)), remedy)
            return X, y, slice(None)
        keep = ~(gaps.any(axis=1) | labels.missing)
        return (X, y, slice(None)) if keep.all() else (X[keep], y[keep], keep)


@dataclass(frozen=True, slots=True, eq=False)
class Encoded[T]:
    """The work of most passes: a function of (X, y)."""

    layout: Layout
    function: Callable[[Floats, Codes], T]

    def __call__(self, frame: pd.DataFrame, first: int) -> T | None:
        """Return the function of a frame's rows; None if none is kept."""
        X, y, _ = self.layout.encode(frame, first)
        return self.function(X, y) if len(X) else None


@dataclass(frozen=True, slots=True)
class Sampling:
    """The work of the pass that takes a random part: rows, and the number of all rows of each class."""

    layout: Layout
    share: float
    random_seed: int

    def __call__(self, frame: pd.DataFrame, first: int) -> tuple[Floats, list[tuple[Floats, Codes]]]:
        """Return the counts (K,), and the rows that were taken."""
        X, y, keep = self.layout.encode(frame, first)
        # Row i of the table has the i-th number of one stream, so that the rows taken do not depend on the parts.
        stream = np.random.PCG64(self.random_seed)
        stream.advance(first)
        chosen = (np.random.Generator(stream).random(len(frame)) < self.share)[keep]
        count = np.bincount(y, minlength=len(self.layout.class_names)).astype(np.float64)
        return count, [(X[chosen], y[chosen])]


# ── Sums ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def add(a: Any, b: Any) -> Any:
    """Return a + b, entry by entry for tuples; None is nothing."""
    if a is None or b is None:
        return b if a is None else a
    return tuple(map(add, a, b)) if isinstance(a, tuple) else a + b


def total[T](
    frames: Iterable[pd.DataFrame],
    work: Work[T],
    *,
    first: int = 0,
    tick: Callable[[int], None] | None = None,
    threads: int = 1,
) -> T | None:
    """Add up the work of one frame after the other, in their order, of which a few are held at a time.

    Parameters
    ----------
    frames
        Consecutive rows of a table.
    work
        What to compute of each.
    first
        Rows of the table before them.
    tick
        Called after each frame with the rows done, those before included.
    threads
        Frames that are worked on at a time, while the next one is read.
    """
    out = None
    with ThreadPoolExecutor(threads) as pool:
        for rows, part in _ahead(frames, work, first, pool, threads):
            out = add(out, part)
            if tick is not None:
                tick(rows)
    return out


def _ahead[T](
    frames: Iterable[pd.DataFrame], work: Work[T], first: int, pool: ThreadPoolExecutor, threads: int
) -> Iterator[tuple[int, T | None]]:
    """Yield the rows done and the work of each frame, in order, with at most `threads` under way."""
    waiting: deque[tuple[int, Future[T | None]]] = deque()
    try:
        for frame in frames:
            waiting.append((first + len(frame), pool.submit(work, frame, first)))
            first += len(frame)
            if len(waiting) > threads:
                rows, future = waiting.popleft()
                yield rows, future.result()
        while waiting:
            rows, future = waiting.popleft()
            yield rows, future.result()
    finally:
        for _, future in waiting:
            future.cancel()


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
