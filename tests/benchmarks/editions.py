"""What has changed since the first edition of the page, row by row; its ratios stand in first_edition.json."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FIRST_EDITION = Path(__file__).with_name("first_edition.json")
# Ratios of two runs on one machine differ by so much without any change of code.
NOISE = 1.25


@dataclass(frozen=True, slots=True)
class Change:
    """The rows of a group that both editions have.

    Parameters
    ----------
    title
        Of the group.
    rows
        Their number.
    before, now
        Medians of the ratios in the two editions.
    better, worse
        How many ratios have risen, or fallen, by more than NOISE.
    gain, loss
        The rows that changed most, each with its ratio then and now; None if none did by more than NOISE.
    """

    title: str
    rows: int
    before: float
    now: float
    better: int
    worse: int
    gain: tuple[str, float, float] | None
    loss: tuple[str, float, float] | None


def changes(groups: Mapping[str, Mapping[str, Any]]) -> tuple[list[Change], list[str], list[str]]:
    """Return the changes of the groups that were measured anew, the titles of those that were not, and of new ones.

    Parameters
    ----------
    groups
        The groups by name, as in benchmarks.json.
    """
    first = json.loads(FIRST_EDITION.read_text(encoding="utf-8"))
    anew, old, new = [], [], []
    for name, group in groups.items():
        if not any(row["verdict"] for row in group["rows"]):
            continue
        if name not in first:
            new.append(group["title"])
        elif group["commit"] == first[name]["commit"]:
            old.append(group["title"])
        elif change := _change(group, first[name]["ratios"]):
            anew.append(change)
    return anew, old, new


def key(row: Mapping[str, Any]) -> str:
    """Return what a row measures and of whom; a verdict in its name may have changed."""
    what = re.sub(r" \(verdict: [^)]*\)", "", row["what"])
    return " | ".join((what, row["ours_name"], row["theirs_name"]))


def _change(group: Mapping[str, Any], first: Mapping[str, float]) -> Change | None:
    pairs = [(row, first[key(row)]) for row in group["rows"] if row["verdict"] and key(row) in first]
    if not pairs:
        return None
    now, before = (np.array(values) for values in ([row["ratio"] for row, _ in pairs], [ratio for _, ratio in pairs]))
    moved = now / before

    def extreme(i: int) -> tuple[str, float, float]:
        row = pairs[i][0]
        return f"{row['what']}; {row['ours_name']} against {row['theirs_name']}", float(before[i]), float(now[i])

    better, worse = int((moved > NOISE).sum()), int((moved < 1 / NOISE).sum())
    return Change(
        title=group["title"],
        rows=len(pairs),
        before=float(np.median(before)),
        now=float(np.median(now)),
        better=better,
        worse=worse,
        gain=extreme(int(moved.argmax())) if better else None,
        loss=extreme(int(moved.argmin())) if worse else None,
    )
