"""The page of the proof, reports/proof/index.html: from sbc.json, verdict.json, mixed.json and calibration.json.

`python -m proof.page [FOLDER]` writes it. The same numbers make the same page.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from functools import partial, reduce
from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from proof.ranks import GROUPS
from proof.verdicts import BINS, band_of

from bayes_gda.reporting.analysis.words import listed_names
from bayes_gda.reporting.plots.style import BLUE, GREEN, ORANGE, SKY, VERMILLION
from bayes_gda.validation.bands import cumulative

HERE = Path(__file__).resolve().parent
FOLDER = HERE.parents[1] / "reports" / "proof"
PAGE = "index.html"
# Of the page's first edition, method by method: models, simulations, and quantities outside the bands.
FIRST_EDITION = HERE / "first_edition.json"
COLORS = (BLUE, VERMILLION, GREEN)
# On a dark ground the deep blue and vermillion are hard to see: their light neighbours of the same palette.
DARK = (SKY, ORANGE, "#2ED3A3")
# A plot in its own units; the drawing is scaled to the column it stands in.
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 248, 150, 30, 6, 16
# Curves are drawn through every second edge of the bins: a pixel's difference, and half of the file.
EVERY = 2
# Vertical scales; the plots of a model share the smallest one that holds them all.
SCALES = (0.1, 0.2, 0.3, 0.5, 1.0)


def write_page(folder: Path = FOLDER) -> Path:
    """Write the page from the numbers in a folder; a part without numbers is left out."""
    page = folder / PAGE
    draft = page.with_suffix(".tmp")
    parts = _calibration(folder / "calibration.json"), _verdict(folder / "verdict.json"), _mixed(folder / "mixed.json")
    parts = (*parts, _contamination(folder / "contamination.json"))
    draft.write_text(render(_read(folder / "sbc.json"), *parts), encoding="utf-8")
    draft.replace(page)
    return page


def render(
    sbc: Mapping[str, Any] | None,
    calibration: str | None = None,
    verdict: str | None = None,
    mixed: str | None = None,
    contamination: str | None = None,
) -> str:
    """Return the page.

    Parameters
    ----------
    sbc
        The numbers of `proof.sbc`, or None.
    calibration, verdict, mixed, contamination
        The sections on real data, on the verdicts, on tables with columns of any type (with mclust's) and on corrupted
        training rows as HTML, or None.
    """
    environment = Environment(
        loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["signed"] = lambda value, digits: f"{value:+.{digits}f}".replace("-", "\u2212")
    environment.filters["new_sections"] = lambda parts: listed_names([name for name, html in parts.items() if html])
    environment.filters["thousands"] = lambda value: f"{value:,}".replace(",", "\u202f")
    css = Markup((files("bayes_gda.reporting.page") / "templates" / "report.css").read_text(encoding="utf-8"))
    shown = {} if sbc is None else _content(sbc)
    sections = {
        name: None if html is None else Markup(html)
        for name, html in (
            ("calibration", calibration),
            ("verdict", verdict),
            ("mixed", mixed),
            ("contamination", contamination),
        )
    }
    template = environment.get_template("page.html.jinja")
    return template.render(sbc=sbc, **sections, css=css, colors=COLORS, dark=DARK, **shown)


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _calibration(path: Path) -> str | None:
    data = _read(path)
    if data is None:
        return None
    from proof.calibration_section import section

    return section(data)


def _verdict(path: Path) -> str | None:
    data = _read(path)
    if data is None:
        return None
    from proof.verdict_section import section

    return section(data)


def _mixed(path: Path) -> str | None:
    """Return the section on tables with columns of any type, then that on mixtures beside mclust."""
    from proof.mclust import NUMBERS
    from proof.mclust import section as beside_mclust
    from proof.mixed_section import section

    parts = (section, _read(path)), (beside_mclust, _read(path.with_name(NUMBERS)))
    return "".join(part(data) for part, data in parts if data is not None) or None


def _contamination(path: Path) -> str | None:
    data = _read(path)
    if data is None:
        return None
    from proof.contamination import section

    return section(data)


def _content(sbc: Mapping[str, Any]) -> dict[str, Any]:
    results = sbc["results"]
    alpha = sbc["family"]["alpha"]
    models = []
    for name, group in groupby(results, key=lambda r: r["model"]):
        members = list(group)
        scale = _scale(members, alpha)
        plots = [{"method": r["method"], "svg": _plot(r, alpha, scale), "caption": _caption(r)} for r in members]
        models.append({"name": name, "setting": members[0]["setting"], "plots": plots})
    leaving = [
        {"model": r["model"], "method": r["method"], "total": len(r["quantities"]), "rows": rows}
        for r in results
        if (rows := sorted((q for q in r["quantities"] if q["outside"]), key=lambda q: -abs(q["difference"])))
    ]
    sampled = [r["effective"] for r in results if r["effective"] is not None]
    return {
        "models": models,
        "leaving": leaving,
        "lights": _lights(sbc),
        "editions": _editions(results),
        "effective": f"{np.median(sampled):.0f}" if sampled else None,
        "minutes": f"{sum(sbc['seconds'].values()) / 60:.0f}",
        "counts": {
            "quantities": sum(len(r["quantities"]) for r in results),
            "simulations": sum(r["simulations"] + r["refused"] for r in results),
            "models": len(models),
        },
    }


def _editions(results: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what each method was held to in the first edition, and what it is held to now; None where it was not."""
    first = _read(FIRST_EDITION) or {}
    names = {**dict(SOUND_WORDS), **APPROXIMATIONS}
    rows = []
    for method in dict.fromkeys((*names, *(r["method"] for r in results))):
        now = [r for r in results if r["method"] == method]
        if now or method in first:
            rows.append({"name": names.get(method, method), "then": first.get(method), "now": _totals(now)})
    return rows


def _totals(results: Sequence[Mapping[str, Any]]) -> dict[str, int] | None:
    if not results:
        return None
    return {
        "models": len(results),
        "simulations": sum(r["simulations"] for r in results),
        "quantities": sum(len(r["quantities"]) for r in results),
        "outside": sum(r["outside"] for r in results),
    }


# ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────────


# Methods that must hold, and what their posterior is called.
SOUND_WORDS = (("exact", "exact"), ("corrected", "corrected"), ("mcmc", "sampled"), ("hmc", "split HMC"))
APPROXIMATIONS = {
    "laplace": "Laplace",
    "skew-modal": "Skew-modal",
    "ep": "Expectation propagation",
    "variational": "Gaussian variational",
    "empirical-bayes": "Empirical Bayes",
}


def _lights(sbc: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the conclusions: what must hold, by method, and how far the approximations are off."""
    results, out = sbc["results"], []
    for method, kind in SOUND_WORDS:
        rows = [r for r in results if r["method"] == method]
        if not rows:
            continue
        total = sum(len(r["quantities"]) for r in rows)
        bad = [r for r in rows if r["outside"]]
        chance = _chance(rows)
        if bad:
            where = "; ".join(f"{r['model']}: {r['outside']} of {len(r['quantities'])}, most {_worst(r)}" for r in bad)
            head, text = f"The {kind} posterior leaves the bands.", f"{where}. {chance}"
        else:
            head = f"The {kind} posterior holds, for {_names(rows)}."
            least = min(r["simulations"] for r in rows)
            text = f"All {total} quantities are inside the bands, in {least} simulations or more per model; {chance}"
        refused = [f"{r['model']} {r['refused']} of {r['refused'] + r['simulations']}" for r in rows if r["refused"]]
        if refused:
            text += f" It refused some data sets with an error or a verdict: {', '.join(refused)}."
        out.append({"tone": "red" if bad else "green", "head": head, "text": text})
    for method, name in APPROXIMATIONS.items():
        rows = [r for r in results if r["method"] == method]
        if rows:
            out.append(_approximation(name, rows))
    return out


def _chance(rows: Sequence[Mapping[str, Any]]) -> str:
    """Say how many quantities leave a 95 % band of their own, and how many do by chance, correlated as they are."""
    count, total = sum(r["outside_single"] for r in rows), sum(len(r["quantities"]) for r in rows)
    by_chance = reduce(np.convolve, [np.array(r["chance_single"]) for r in rows])
    by_chance = by_chance / by_chance.sum()
    k = np.arange(len(by_chance))
    mean = float(by_chance @ k)
    sd = float(np.sqrt(by_chance @ (k - mean) ** 2))
    independent = np.sqrt(0.05 * 0.95 * total)
    p = float(by_chance[count:].sum())
    tail = f"p = {p:.3f}" if p >= 0.0005 else "p < 0.001"
    return (
        f"{count} of {total} leave a 95 % band of their own; if all are right, {mean:.1f} do on average, with an sd of "
        f"{sd:.1f} ({independent:.1f} if they were independent), and {count} or more with {tail}."
    )


def _approximation(name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    bad = [r for r in rows if r["outside"]]
    if not bad:
        text = "All quantities are inside the bands; more simulations would distinguish it from the posterior."
        return {"tone": "green", "head": f"{name} shows no deviation, for {_names(rows)}.", "text": text}
    parts = [f"{r['model']} {r['outside']} of {len(r['quantities'])}, most {_worst(r)}" for r in bad]
    fine = [r for r in rows if not r["outside"]]
    text = f"Outside the bands: {'; '.join(parts)}." + (f" Inside: {_names(fine)}." if fine else "")
    why = "as an approximation may with so few rows"
    if rows[0]["method"] == "empirical-bayes":
        why = "as it may: it uses the data twice, and is no posterior of the model that the parameters were drawn from"
    head = f"{name} leaves the bands for {len(bad)} of {len(rows)} models, {why}."
    return {"tone": "amber", "head": head, "text": text}


def _worst(result: Mapping[str, Any]) -> str:
    q = next(q for q in result["quantities"] if q["name"] == result["worst"])
    return f"{q['name']} ({q['words']})"


def _names(rows: Sequence[Mapping[str, Any]]) -> str:
    *first, last = [r["model"] for r in rows]
    return f"{', '.join(first)} and {last}" if first else last


def _caption(result: Mapping[str, Any]) -> str:
    total = len(result["quantities"])
    where = f"all {total} inside" if result["outside"] == 0 else f"{result['outside']} of {total} outside"
    refused = f", {result['refused']} left out" if result["refused"] else ""
    return f"{where}; {result['simulations']} simulations{refused}"


# ── Figures ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _scale(results: Sequence[Mapping[str, Any]], alpha: float) -> float:
    """Return the smallest scale that holds all curves and bands of a model."""
    largest = max(
        max(r["largest_difference"], float(np.abs(edges).max())) for r in results for edges in _band_edges(r, alpha)
    )
    return next((scale for scale in SCALES if largest <= scale), 1.0)


def _band_edges(result: Mapping[str, Any], alpha: float) -> tuple[Any, Any]:
    band, N = band_of(result, alpha), result["simulations"]
    expected = np.arange(1, BINS) / BINS
    return band.lower / N - expected, band.upper / N - expected


def _plot(result: Mapping[str, Any], alpha: float, scale: float) -> Markup:
    """Return the differences of all ECDFs and the band as SVG, in a few kilobytes."""
    N = result["simulations"]
    lower, upper = (_points(edge, scale) for edge in _band_edges(result, alpha))
    band = f"M{_path(upper)}L{_path(lower[::-1])}z"
    expected = np.arange(1, BINS) / BINS
    lines = []
    for g, group in enumerate(GROUPS):
        curves = [cumulative(np.array(q["counts"])) / N for q in result["quantities"] if q["group"] == group]
        d = "".join(f"M{_path(_points(curve - expected, scale))}" for curve in curves)
        lines.append(Markup('<path class="g{}" d="{}"/>').format(g, d))
    middle = TOP + (HEIGHT - TOP - BOTTOM) // 2
    label = partial(Markup('<text x="{}" y="{}" text-anchor="{}">{}</text>').format)
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH,
        HEIGHT,
        f"ECDF differences of {result['model']} by {result['method']}: {_caption(result)}; "
        f"largest difference {result['largest_difference']:.3f}.",
        Markup("").join(
            [
                Markup('<path class="band" d="{}"/>').format(band),
                Markup('<path class="axis" d="M{} {}H{}"/>').format(LEFT, middle, WIDTH),
                *lines,
                label(LEFT - 3, TOP + 6, "end", f"+{scale:g}"),
                label(LEFT - 3, middle + 3, "end", "0"),
                label(LEFT - 3, HEIGHT - BOTTOM, "end", f"\u2212{scale:g}"),
                label(LEFT, HEIGHT - 4, "start", "lowest rank"),
                label(WIDTH, HEIGHT - 4, "end", "highest"),
            ]
        ),
    )


def _points(values: Any, scale: float) -> np.ndarray:
    """Return whole coordinates (points, 2) of a curve over the edges of the bins, with its ends at zero."""
    y = np.concatenate([[0.0], values, [0.0]])[::EVERY]
    x = np.linspace(0, 1, BINS + 1)[::EVERY]
    half = (HEIGHT - TOP - BOTTOM) / 2
    return (
        np.column_stack([LEFT + x * (WIDTH - LEFT), TOP + half * (1 - np.clip(y / scale, -1, 1))]).round().astype(int)
    )


def _path(points: np.ndarray) -> str:
    """Return the points as path data: the first as it is, then steps."""
    steps = np.diff(points, axis=0)
    return (
        f"{points[0][0]} {points[0][1]}l"
        + "".join(f"{' ' if x >= 0 else ''}{x}{'' if y < 0 else ' '}{y}" for x, y in steps).lstrip()
    )


if __name__ == "__main__":
    write_page(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
