"""Plain sentences from the numbers: where we win, where we lose, by how much and why, which targets are missed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bayes_gda.reporting.page.rendering import number
from bayes_gda.reporting.plots.style import counted

Rows = Sequence[Mapping[str, Any]]

# Why ours is slower, or needs more memory, in the rows that are lost, by group.
REASONS = {
    "fit": "The smallest fits consist of fixed costs, such as the checks of the input. A posterior needs its "
    "covariance, n·d² operations, and a checked one some further passes over the rows; a step of lbfgs needs n·d.",
    "families": "The peers return point estimates. Mixtures are fitted from several starts, with covariance and "
    "evidence; the check weighs thousands of draws, and predictions average over draws. LDA and QDA have closed "
    "forms, Student-t classes have none.",
    "verdict": "The covariance costs n·d² operations and the verdict further passes over the rows. A point estimate "
    "needs neither.",
    "sampling": "PyMC's NUTS, which ours uses, steps in Python; NumPyro's trajectories are compiled as a whole, which "
    "counts on a posterior of few parameters and rows.",
    "prediction": "A point estimate needs one product per row. Ours adds the variance of the activation, or a "
    "Student-t density, which are d² operations per row.",
    "memory": "Expectation propagation keeps several numbers per row and blocks of the design matrix; predictions keep "
    "blocks of temporaries where a point estimate needs a single product.",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence with its heading and its light: `green`, `amber` or `red`."""

    topic: str
    light: str
    sentences: tuple[str, ...]


def findings(groups: Mapping[str, Mapping[str, Any]]) -> list[Finding]:
    """Return what the page says first.

    Parameters
    ----------
    groups
        The groups by name, as in benchmarks.json.
    """
    rows = [row for group in groups.values() for row in group["rows"]]
    found = [_balance(rows), _wins(groups), _losses(groups), _targets(rows), _gaps(groups)]
    return [finding for finding in found if finding is not None]


def tally(rows: Rows) -> dict[str, int]:
    """Count the rows with each verdict."""
    return {verdict: sum(row["verdict"] == verdict for row in rows) for verdict in ("win", "even", "lose")}


def summary(rows: Rows) -> str:
    """Return one line on a group: wins and losses, and the ratio in the middle."""
    ratios = [row["ratio"] for row in rows if row["verdict"]]
    if not ratios:
        return "No other package is compared here."
    count = tally(rows)
    return (
        f"{count['win']} won, {count['even']} even, {count['lose']} lost; "
        f"the median ratio is {number(float(np.median(ratios)), 'g3')}."
    )


def times(ratio: float) -> str:
    """2.5 as `2.5 times`, three digits."""
    return f"{number(ratio, 'g3')} times"


def _balance(rows: Rows) -> Finding | None:
    count = tally(rows)
    total = sum(count.values())
    if not total:
        return None
    ratios = [row["ratio"] for row in rows if row["verdict"]]
    light = "green" if count["win"] > count["lose"] else "amber"
    return Finding(
        "All comparisons",
        light,
        (
            f"Of {total} comparisons with other packages, ours is better in {count['win']}, worse in {count['lose']}, "
            f"and even in {count['even']}. The median ratio is {number(float(np.median(ratios)), 'g3')}; above 1 ours "
            "is better.",
        ),
    )


def _wins(groups: Mapping[str, Mapping[str, Any]]) -> Finding | None:
    sentences = []
    for group in groups.values():
        won = [row for row in group["rows"] if row["verdict"] == "win"]
        if won:
            best = max(won, key=lambda row: row["ratio"])
            of = sum(row["verdict"] is not None for row in group["rows"])
            sentences.append(
                f"{group['title']}: better in {len(won)} of {of}, at best {times(best['ratio'])} "
                f"({best['what']}; {best['ours_name']} against {best['theirs_name']})."
            )
    return Finding("Where we win", "green", tuple(sentences)) if sentences else None


def _losses(groups: Mapping[str, Mapping[str, Any]]) -> Finding | None:
    sentences = []
    for name, group in groups.items():
        lost = [row for row in group["rows"] if row["verdict"] == "lose"]
        if not lost:
            continue
        of = sum(row["verdict"] is not None for row in group["rows"])
        worst = min(lost, key=lambda row: row["ratio"])
        against = {}
        for row in lost:
            against.setdefault(f"{row['ours_name']} against {row['theirs_name']}", []).append(row["ratio"])
        listed = sorted(against.items(), key=lambda item: float(np.median(item[1])))[:4]
        detail = ", ".join(f"{pair} ({counted(len(x), 'row')}, {times(1 / float(np.median(x)))})" for pair, x in listed)
        rest = len(against) - len(listed)
        more = f", and {counted(rest, 'other pair')}" if rest else ""
        because = f" {REASONS[name]}" if name in REASONS else ""
        sentences.append(
            f"{group['title']}: worse in {len(lost)} of {of}, at worst by {times(1 / worst['ratio'])} "
            f"({worst['what']}; {worst['ours_name']} against {worst['theirs_name']}). "
            f"By pairs, with the median loss: {detail}{more}.{because}"
        )
    if not sentences:
        return Finding("Where we lose", "green", ("In none of the rows measured.",))
    return Finding("Where we lose", "red", tuple(sentences))


def _targets(rows: Rows) -> Finding | None:
    held = [row for row in rows if row["met"] is not None]
    if not held:
        return None
    missed = [row for row in held if not row["met"]]
    first = f"{len(held) - len(missed)} of {len(held)} targets that we set ourselves are met."
    named = [
        f"Missed: {row['what']}, {number(row['ratio'] if row['target']['of'] == 'ratio' else row['ours'], 'g3')} "
        f"where {bound(row['target'])} was wanted."
        for row in missed
    ]
    return Finding("Targets", "amber" if missed else "green", (first, *named))


def _gaps(groups: Mapping[str, Mapping[str, Any]]) -> Finding | None:
    skipped = sum(len(group["skipped"]) for group in groups.values())
    places = {str(sorted(group["machine"].items())) for group in groups.values()}
    quick = [group["title"] for group in groups.values() if group["quick"]]
    # The load is an average over a minute: a group of ours that has just ended leaves up to the number of cores.
    busy = [g["title"] for g in groups.values() if (g["load_before"] or 0) > 1.5 * g["machine"]["cores"]]
    sentences = []
    if quick:
        sentences.append(f"Measured with --quick, which means nothing: {'; '.join(quick)}.")
    if busy:
        sentences.append(f"The machine was busy with other work when these began: {'; '.join(busy)}.")
    if len(places) > 1:
        sentences.append("The groups were measured on different machines.")
    if skipped:
        sentences.append(f"Not measured: {counted(skipped, 'combination')}. Each group lists its own, with the reason.")
    return Finding("What to keep in mind", "amber", tuple(sentences)) if sentences else None


def bound(target: Mapping[str, Any]) -> str:
    """`≥ 2` or `≤ 0.5`."""
    return f"{'≥' if target['at_least'] else '≤'} {number(target['value'], 'g3')}"
