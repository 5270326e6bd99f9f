"""Two reports against each other, for people and for programs."""

from dataclasses import asdict
from typing import Any

from bayes_gda.cli.outputs import COLORS, show, show_table
from bayes_gda.reporting.difference import Change, Difference

# Numbers that are listed before the rest is counted.
LISTED = 20


def as_json(difference: Difference, before: str, after: str) -> dict[str, Any]:
    """Return a difference for JSON."""
    numbers = [{**asdict(change), "difference": change.difference} for change in difference.numbers]
    return {"a": before, "b": after, "same": difference.same, **asdict(difference), "numbers": numbers}


def show_difference(difference: Difference, *, everything: bool) -> None:
    """Print what differs.

    Parameters
    ----------
    difference
        The difference.
    everything
        Whether to list the numbers that changed by no more than their noise, too.
    """
    _paragraph("Made differently", difference.made)
    _paragraph("Other data", difference.data)
    if difference.conclusions:
        lines = [(c["topic"], _light(c["before"]), _light(c["after"])) for c in difference.conclusions]
        show_table("Conclusions", ("topic", "before", "after"), lines, left=3)
        for c in difference.conclusions:
            if c["after"] is not None and c["after"]["light"] in COLORS:
                show(f"Now: {c['topic']} {c['after']['sentence']}", "")
    _paragraph("Models", difference.models)
    changed = difference.changed
    if changed:
        title = f"{len(changed)} of {len(difference.numbers)} numbers changed by more than their noise"
        _numbers(title, changed[:LISTED])
        if len(changed) > LISTED:
            show(f"and {len(changed) - LISTED} more: --json lists all.", "")
    if everything:
        _numbers("Within their noise", [c for c in difference.numbers if not c.beyond])
    show(*difference.predictions)
    if difference.same:
        count = len(difference.numbers)
        show(f"The reports agree: same data, conclusions and models; {count} numbers within their noise.")


def _numbers(title: str, changes: Any) -> None:
    head = ("number", "before", "after", "difference", "noise")
    show_table(title, head, [_line(c) for c in changes])


def _line(change: Change) -> tuple[str, ...]:
    figures = (change.before, change.after, change.difference, change.noise)
    return (change.name, *(f"{value:.3g}" if abs(value) < 1000 else f"{value:.1f}" for value in figures))


def _light(line: dict[str, Any] | None) -> str:
    return "–" if line is None else str(line["light"])


def _paragraph(title: str, lines: tuple[str, ...]) -> None:
    if lines:
        show(f"{title}:", *(f"  {line}" for line in lines), "")
