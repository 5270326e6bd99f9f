"""From the tree of values to one HTML page: one filter for all numbers, one macro for all tables, all text escaped.

A number is rendered from its address in the tree, and the address stays on the element (`data-key`), so that a test
can hold every number of the page to report.json.
"""

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from jinja2 import DictLoader, Environment, StrictUndefined
from markupsafe import Markup, escape

from bayes_gda.errors import DataError
from bayes_gda.reporting.analysis.words import listed_names
from bayes_gda.reporting.page.tables import TABLES, Column

# How each kind of number is written: decimals, and what stands behind it.
FIXED = {"int": 0, "f1": 1, "f2": 2, "f3": 3, "f4": 4, "pct": 1, "pct0": 0}
UNKNOWN = "–"
NARROW = "\u202f"  # between thousands: a space that does not break


def number(value: float | None, kind: str) -> str:
    """Return a number as the page shows it.

    Parameters
    ----------
    value
        The number, or None if it is not known.
    kind
        `int`, `f1`…`f4` (decimals), `pct`, `pct0` (a share as percent), `g3` (three significant digits), `p` (a
        p-value), `prob` (a posterior probability, never 0 or 1), `unit` (as it is) or `ratio` (three significant
        digits, of the distance from 1 two).
    """
    if value is None:
        return UNKNOWN
    if kind == "unit":
        return f"{value:,.10g}".replace(",", NARROW if abs(value) >= 1e4 else "")
    if kind == "p":
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    if kind == "prob":
        return "< 0.001" if value < 0.001 else "> 0.999" if value > 0.999 else f"{value:.3f}"
    if kind == "ratio" and 0 < abs(value - 1) < 0.1:
        return f"{value:.{min(8, 1 - math.floor(math.log10(abs(value - 1))))}f}"
    if kind in ("g3", "ratio"):
        digits = f"{value:#.3g}".rstrip(".") if kind == "ratio" else f"{value:.3g}"  # of a ratio all three are shown
        text = digits if value == 0 or 1e-3 <= abs(value) < 1e6 else f"{value:.1e}"
        text = f"{value:,.0f}" if 1e3 <= abs(value) < 1e6 else text
    elif kind in FIXED:
        text = f"{100 * value if kind.startswith('pct') else value:,.{FIXED[kind]}f}"
    else:
        raise DataError(f"`kind` must be g3, p, prob, ratio or one of {', '.join(FIXED)}; got {kind!r}.")
    text = text.replace(",", NARROW if abs(value) >= 1e4 else "")
    if float(text.replace(NARROW, "")) == 0:
        text = text.removeprefix("-")  # −0.00 is 0.00
    return text.replace("-", "\u2212") + (" %" if kind.startswith("pct") else "")


def lookup(tree: Any, address: str) -> Any:
    """Return the value at an address such as `comparison.loo.0.elpd`."""
    for part in address.split("."):
        tree = tree[int(part)] if isinstance(tree, list) else tree[part]
    return tree


def name(value: Any) -> Markup:
    """Return a name of the user's: apart from the direction of the text around it, cut if need be, in full on hover."""
    text = str(value)
    return Markup('<bdi class="name" title="{0}">{0}</bdi>').format(text)


def unbroken(sentence: str) -> Markup:
    """Return a sentence in which no line ends between a number and its sign, an error and its name, or in an option."""
    text = re.sub(r"(?<=\d) %|(?<=\(SE) ", lambda m: m[0].replace(" ", "\u00a0"), str(sentence))
    return Markup(re.sub(r"(?<![\w-])--[a-z][a-z-]*", r'<code class="option">\g<0></code>', str(escape(text))))


# Marks that may stand as they are in an address between double quotes; letters and digits may anyway.
_PLAIN = " /:;=,()'!*+@?[]{}|$~^_-."

# ── The page ────────────────────────────────────────────────────────────────────────────────────────────────────────


def render(tree: Mapping[str, Any], images: Mapping[str, bytes]) -> str:
    """Return the page.

    Parameters
    ----------
    tree
        All values, as in report.json.
    images
        SVG files by the name of their figure; they are embedded.
    """

    def value(address: str, kind: str = "f3") -> Markup:
        text = number(lookup(tree, address), kind)
        return Markup('<data data-key="{}" data-kind="{}">{}</data>').format(address, kind, text)

    sources = {key: data_uri(image) for key, image in images.items()}
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(report=tree, value=value, tables=TABLES, sources=sources, css=_css(), **_script(tree.get("explore")))
    )


def known_columns(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> list[Column]:
    """Return the columns in which some row has a value; the first names the rows."""
    return [c for i, c in enumerate(columns) if i == 0 or any(row.get(c.key) is not None for row in rows)]


def data_uri(svg: bytes) -> str:
    """Return an SVG file as an address that holds it: as text with few marks escaped, a fifth shorter than base 64.

    Values stand between single quotes, which need no escape there, and references are those of SVG 2, as browsers read.
    """
    text = re.sub(r'="([^"\']*)"', r"='\1'", _compact(svg.decode()).replace("xlink:href=", "href="))
    return f"data:image/svg+xml,{quote(text, safe=_PLAIN)}"


def _compact(svg: str) -> str:
    """Return a figure with less to carry: short names and styles, and no description, which is the page's alt text."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)  # nothing refers to a group
    names = {name: f"a{i:x}" for i, name in enumerate(dict.fromkeys(re.findall(r' id="([^"]+)"', svg)))}
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{names[m[1]]}"', svg)
    svg = re.sub(r'#([\w-]+)(?=[")])', lambda m: f"#{names.get(m[1], m[1])}", svg)  # colours stay as they are
    svg = re.sub(r'style="[^"]*"', lambda m: m[0].replace(": ", ":").replace("; ", ";"), svg)
    # Positions to hundredths of a point; scales, which have three digits after the point and more, stand behind them.
    return re.sub(r"translate\(([-\d.]+) ([-\d.]+)\)", lambda m: f"translate({float(m[1]):.2f} {float(m[2]):.2f})", svg)


def render_gallery(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the page that leads to several reports, each with its `name`, `page`, `description`, `conclusions`."""
    return _environment().get_template("gallery.html.jinja").render(entries=entries, css=_css())


def render_textbook(sections: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of the textbook's figures: sections with `name`, `title`, `contents`, as its template reads."""
    return _environment().get_template("textbook.html.jinja").render(sections=sections, css=_css())


def _script(explored: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the page's script, its hash for the content-security policy, and its data, which no browser runs."""
    script = _template("explore.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Inside a script element only `<` can end it; JSON has another way to write that.
    data = json.dumps(explored, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return {"script": Markup(script), "script_hash": f"sha256-{digest}", "script_data": Markup(data)}


def report_schema() -> dict[str, Any]:
    """Return the JSON schema of report.json."""
    schema: dict[str, Any] = json.loads(_template("report.schema.json"))
    return schema


def _css() -> Markup:
    return Markup(_template("report.css"))  # ours, and free of user text


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=DictLoader(
            {file: _template(file) for file in ("report.html.jinja", "gallery.html.jinja", "textbook.html.jinja")}
        ),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["name"] = name
    environment.filters["unbroken"] = unbroken
    environment.filters["listed"] = listed_names
    environment.filters["at"] = lookup
    environment.filters["known"] = known_columns
    return environment


def _template(file: str) -> str:
    return (files("bayes_gda.reporting.page") / "templates" / file).read_text(encoding="utf-8")
