"""From benchmarks.json to one page that opens offline; every figure on it comes from that file."""

import re
from collections.abc import Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bayes_gda.reporting.page.rendering import UNKNOWN, data_uri, number
from bayes_gda.reporting.plots.style import save
from benchmarks.editions import NOISE, changes
from benchmarks.figures import figures
from benchmarks.findings import bound, findings, summary
from benchmarks.record import NUMBERS, PAGE, read
from benchmarks.rows import power

# In the order of the page. A group is a module group_NAME with TITLE, READING and run(session).
GROUPS = tuple(
    name
    for name in ("fit", "families", "verdict", "sampling", "first", "prediction", "memory", "growth", "out_of_core")
    if find_spec(f"benchmarks.group_{name}") is not None
)
_HERE = Path(__file__).resolve().parent
# Units of a second, largest first, for figures that are read and not counted.
_SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def write_page(folder: Path) -> Path:
    """Write the page beside its numbers, whole or not at all."""
    page = folder / PAGE
    draft = page.with_suffix(".tmp")
    draft.write_text(render(read(folder)), encoding="utf-8")
    draft.replace(page)
    return page


def render(numbers: Mapping[str, Any]) -> str:
    """Return the page.

    Parameters
    ----------
    numbers
        All values, as in benchmarks.json.
    """
    groups = {name: numbers["groups"][name] for name in _ordered(numbers["groups"])}
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "breakable": breakable,
        "amount": amount,
        "ratio": _ratio,
        "bound": bound,
        "summary": summary,
        "power": power,
    }
    changed, unchanged, added = changes(groups)
    css = (files("bayes_gda.reporting.page") / "templates" / "report.css").read_text(encoding="utf-8")
    return environment.get_template("page.html.jinja").render(
        groups=groups,
        findings=findings(groups),
        changed=changed,
        unchanged=unchanged,
        added=added,
        noise=number(NOISE, "g3"),
        pictures=_pictures(groups),
        grids={name: grid(group) for name, group in groups.items()},
        css=Markup(css),  # ours, and free of anybody's text
        numbers_file=NUMBERS,
    )


def _ordered(groups: Mapping[str, Any]) -> list[str]:
    return sorted(groups, key=lambda name: (GROUPS.index(name) if name in GROUPS else len(GROUPS), name))


def _pictures(groups: Mapping[str, Any]) -> dict[str, list[dict[str, str]]]:
    out: dict[str, list[dict[str, str]]] = {}
    with TemporaryDirectory() as place:
        for name, plots in figures(groups).items():
            for title, plot in plots:
                svg = save(plot, Path(place) / "figure.svg").read_bytes()
                source = Markup(data_uri(svg))  # an address: all that HTML would mind is escaped there
                words = {"title": title, "caption": plot.caption, "alt": plot.alt, "source": source}
                out.setdefault(name, []).append(words)
    return out


def grid(group: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return ratios as a table of pairs and features by rows, and the rows beside it; None if there is no grid."""
    rows = [row for row in group["rows"] if "model" in row["at"] and row["at"].get("K") == 2]
    sizes = sorted({row["at"]["n"] for row in rows})
    if len(sizes) < 2:
        return None
    lines: dict[tuple[str, int], dict[int, Mapping[str, Any]]] = {}
    for row in rows:
        lines.setdefault((f"{row['ours_name']} against {row['theirs_name']}", row["at"]["d"]), {})[row["at"]["n"]] = row
    ordered = sorted(lines.items(), key=lambda item: (_first(rows, item[0][0]), item[0][1]))
    table = [{"pair": pair, "d": d, "cells": [x.get(n) for n in sizes]} for (pair, d), x in ordered]
    return {"sizes": sizes, "lines": table, "others": [row for row in group["rows"] if row not in rows]}


def _first(rows: list[Mapping[str, Any]], pair: str) -> int:
    return next(i for i, row in enumerate(rows) if f"{row['ours_name']} against {row['theirs_name']}" == pair)


def breakable(name: str) -> Markup:
    """Return a name that may go on in the next line before a capital and behind a point or dash below."""
    return Markup(re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[._])(?=\w)", "<wbr>", str(escape(name))))


def amount(value: float | None, unit: str) -> str:
    """Return a figure with its unit, seconds in s, ms or µs."""
    if value is None:
        return UNKNOWN
    if unit == "exponent":
        return number(value, "f2")
    if unit == "s":
        scale, unit = next(((s, u) for s, u in _SECONDS if value >= s), _SECONDS[-1])
        value /= scale
    elif value >= 1e6:
        value, unit = value / 1e6, f"M {unit}"
    return f"{number(value, 'g3')} {unit}".rstrip()


def _ratio(value: float | None) -> str:
    return number(value, "g3")
