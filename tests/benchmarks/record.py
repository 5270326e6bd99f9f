"""What is kept of a measurement: rows, the session that collects them, and the file that they are merged into.

A ratio says how many times better ours is: 2 is twice as fast, twice the draws a second, or half the memory.
"""

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.timing import quartiles

NUMBERS, PAGE = "benchmarks.json", "index.html"
# Of the file; one of another number is not merged into.
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Target:
    """A bound that we set ourselves, of the ratio or of our own figure."""

    value: float
    of: str = "ratio"
    at_least: bool = True

    def met(self, row: "Row") -> bool | None:
        """Whether a row keeps it; None if the row has no such figure."""
        value = row.ratio if self.of == "ratio" else row.ours
        if value is None:
            return None
        return value >= self.value if self.at_least else value <= self.value


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the page.

    Parameters
    ----------
    what
        What was measured, on what.
    ours, theirs
        Our figure and the other one, medians over the rounds, in `unit`; None if there is none.
    ours_name, theirs_name
        Whose they are.
    ratio, spread
        How many times better ours is, and the quartiles of that over the rounds; None for one round.
    rival
        Whether `theirs` is another package's: only then is there a win or a loss.
    error
        Standard error of `ours`, where it is an estimate.
    at
        Where in a grid: n, d, K, the data set.
    """

    what: str
    ours: float | None
    theirs: float | None
    ours_name: str
    theirs_name: str
    unit: str = "s"
    ratio: float | None = None
    spread: tuple[float, float] | None = None
    rounds: int = 1
    rival: bool = True
    target: Target | None = None
    error: float | None = None
    at: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def verdict(self) -> str | None:
        """`win` or `lose`; `even` if the middle half of the rounds has both; None without a rival's figure."""
        if not self.rival or self.ratio is None:
            return None
        low, high = self.spread or (self.ratio, self.ratio)
        if low <= 1 <= high:
            return "even"
        return "win" if self.ratio > 1 else "lose"

    def as_dict(self) -> dict[str, Any]:
        """All of it as JSON has it, with the verdicts."""
        met = None if self.target is None else self.target.met(self)
        return _plain(asdict(self) | {"verdict": self.verdict, "met": met})


def compared(what: str, ours: Sequence[float], theirs: Sequence[float], *, lower: bool = True, **words: Any) -> Row:
    """Return the row of two lists of figures that were measured in the same rounds.

    Parameters
    ----------
    what
        What was measured.
    ours, theirs
        (rounds,) figures, paired by round.
    lower
        Whether less is better, as for seconds.
    words
        Further fields of the row.
    """
    a, b = np.asarray(ours, dtype=float), np.asarray(theirs, dtype=float)
    ratios = b / a if lower else a / b
    low, middle, high = quartiles(ratios)
    spread = (low, high) if len(ratios) > 1 else None
    return Row(what, float(np.median(a)), float(np.median(b)), ratio=middle, spread=spread, rounds=len(ratios), **words)


@dataclass(slots=True)
class Session:
    """One run of one group: its sizes, and what it has measured so far."""

    name: str
    quick: bool = False
    rows: list[Row] = field(default_factory=list)
    series: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    def add(self, row: Row) -> None:
        """Keep a row, and say it."""
        self.rows.append(row)
        figure = "–" if row.ratio is None else f"× {row.ratio:.3g}"
        self.say(f"{row.what}: {row.ours_name} against {row.theirs_name} {figure} {row.verdict or ''}")

    def skip(self, text: str) -> None:
        """Note what was not measured, and why."""
        self.skipped.append(text)
        self.say(f"skipped: {text}")

    def say(self, text: str) -> None:
        """Show progress."""
        sys.stderr.write(f"[{self.name} {time.perf_counter() - self.begun:5.0f} s] {text}\n")
        sys.stderr.flush()

    def as_dict(self, title: str, reading: str, place: Mapping[str, Any]) -> dict[str, Any]:
        """The group as JSON has it.

        Parameters
        ----------
        title, reading
            Heading, and how to read the rows.
        place
            Machine and versions.
        """
        return _plain(
            {
                "title": title,
                "reading": reading,
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "seconds": round(time.perf_counter() - self.begun, 1),
                "quick": self.quick,
                "settings": self.settings,
                **place,
                "rows": [row.as_dict() for row in self.rows],
                "series": self.series,
                "skipped": self.skipped,
            }
        )


def merge(folder: Path, name: str, group: Mapping[str, Any]) -> Path:
    """Put one group into the file of all, and leave the others as they are; the file is whole at every moment."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / NUMBERS
    known = read(folder) if path.exists() else {"format": FORMAT, "groups": {}}
    known["groups"][name] = dict(group)
    draft = path.with_name(f"{NUMBERS}.{os.getpid()}.tmp")
    draft.write_text(json.dumps(known, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    draft.replace(path)
    return path


def read(folder: Path) -> dict[str, Any]:
    """Return what has been measured so far."""
    known: dict[str, Any] = json.loads((folder / NUMBERS).read_text(encoding="utf-8"))
    if known.get("format") != FORMAT:
        raise ValueError(f"{folder / NUMBERS} has format {known.get('format')!r}, not {FORMAT}. Move it away first.")
    return known


def _plain(value: Any) -> Any:
    """Python's own types; floats to six digits, which is more than any timing has, and None for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): _plain(x) for key, x in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(x) for x in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(f"{value:.6g}") if np.isfinite(value) else None
    return value
