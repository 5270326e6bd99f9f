"""The section of the page on calibration, coverage and learning curves, out of calibration.json."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from proof.calibration_coverage import miss
from proof.calibration_figures import SIZE_NAMES, coverage_plot, difference_plot, learning_plot
from proof.calibration_splits import RIVALS, SCORES, VARIANTS
from proof.calibration_words import coverage_sentences, learning_sentences, split_sentences

from bayes_gda.reporting.page.rendering import data_uri, number
from bayes_gda.reporting.plots.style import Plot, save

SCORE_NAMES = {"log_loss": "log loss", "brier": "Brier", "ece": "ECE, debiased", "error": "error rate"}
# The tables of single data sets leave the isotonic ones to the JSON file, to keep the page small.
TABLED = VARIANTS[:2]
# A sign beside the shade, so that colour is not needed.
SIGNS = {"win": " ▲", "tie": "", "lose": " ▼"}
SHADES = {"win": ' class="win"', "tie": "", "lose": ' class="lose"'}
_STYLE = """<style>
.cal td.win { background: var(--green-bg, rgba(26, 127, 55, .14)); }
.cal td.lose { background: var(--red-bg, rgba(207, 34, 46, .14)); }
.cal td, .cal th { padding: .15rem .55rem; font-size: .82rem; }
.cal tr.ours td { font-weight: 650; border-top: 2px solid var(--line, #8884); }
.cal summary { cursor: pointer; margin: .4rem 0; }
</style>"""


def section(data: dict[str, Any]) -> str:
    """Return the section as HTML: sentences, figures, then tables that open.

    Parameters
    ----------
    data
        The tree of calibration.json.
    """
    parts = [
        '<div class="cal">',
        _STYLE,
        "<h2>Calibration and coverage of predictions, learning curves</h2>",
        _edition(data["versions"]["bayes-gda"]),
        "<h3>On real data, against scikit-learn</h3>",
        _list(split_sentences(data)),
        _verdicts(data["splits"]),
        _figure(difference_plot(data["splits"])),
        f'<p class="note">{_how_scored(data)}</p>',
        *(_data_table(name, cases) for name, cases in _by(data["splits"], "data").items()),
        "<h3>Coverage of credible intervals</h3>",
        _list(coverage_sentences(data["coverage"], data["probs"])),
        _figure(coverage_plot(data["coverage"], data["probs"])),
        _coverage_table(data["coverage"], data["probs"]),
        "<h3>Learning curves: training rows and error</h3>",
        _list(learning_sentences(data["learning"])),
        _figure(learning_plot(data["learning"])),
        _needed_table(data["learning"]),
        f'<p class="note">{_provenance(data)}</p>',
        "</div>",
    ]
    return "\n".join(part for part in parts if part)


def _edition(version: str) -> str:
    """Say that the figures are not of a release, if they are not."""
    return (
        f'<p class="note">Computed by the development version {version}, before the release.</p>'
        if "dev" in version
        else ""
    )


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _verdicts(cases: Sequence[Mapping[str, Any]]) -> str:
    """Wins, ties and losses in log loss of each of our models, by rival and size."""
    sizes = list(_by(cases, "size"))
    head = ["ours", "scikit-learn's", *(f"{SIZE_NAMES[size]}: better / tie / worse" for size in sizes)]
    rows = []
    for model, names in RIVALS.items():
        for theirs in (f"{name} {variant}" for name in names for variant in VARIANTS):
            cells = [model, theirs]
            for size in sizes:
                found = Counter(
                    c["verdict"]
                    for case in cases
                    for c in case["comparisons"]
                    if case["size"] == size and (c["ours"], c["theirs"], c["score"]) == (model, theirs, "log_loss")
                )
                cells.append(f"{found['win']} / {found['tie']} / {found['lose']}")
            rows.append("".join(f"<td>{escape(cell)}</td>" for cell in cells))
    return _table(head, rows, "Data sets in which our log loss is better, tied, or worse")


def _data_table(name: str, cases: Sequence[Mapping[str, Any]]) -> str:
    first = cases[0]
    rows = []
    for case in cases:
        rows.append(
            f'<th colspan="{2 + len(SCORES)}">{case["n_train"]} rows to learn, {case["n_test"]} to test, '
            f"{case['splits']} splits</th>"
        )
        for model, names in RIVALS.items():
            own = case["means"][f"Bayesian {model}"]
            ways = ", ".join(f"{way} {count}" for way, count in case["methods"][model].items() if count)
            rows.append(
                f"<td>Bayesian {model}</td><td>{ways}</td>"
                + "".join(f"<td>{number(own[s], 'f3')}</td>" for s in SCORES)
            )
            for theirs in (f"{rival} {variant}" for rival in names for variant in TABLED):
                rows.append(f"<td></td><td>less {escape(theirs)}</td>" + _difference_cells(case, model, theirs))
    body = _table(["ours", "", *(SCORE_NAMES[s] for s in SCORES)], rows, "")
    return (
        f"<details><summary>{escape(name)}: {first['features']} features, {first['classes']} classes</summary>"
        f"{body}</details>"
    )


def _difference_cells(case: Mapping[str, Any], model: str, theirs: str) -> str:
    found = {c["score"]: c for c in case["comparisons"] if (c["ours"], c["theirs"]) == (model, theirs)}
    if not found:
        return f'<td colspan="{len(SCORES)}">cannot be fitted to these rows</td>'
    return "".join(
        f"<td{SHADES[c['verdict']]}>{_signed(c['difference'])} ± {c['error']:.3f}{SIGNS[c['verdict']]}</td>"
        for c in (found[s] for s in SCORES)
    )


def _coverage_table(lines: Sequence[Mapping[str, Any]], probs: Sequence[float]) -> str:
    head = ["truth", "model", "rows", "method", "simulations", *(f"{100 * p:g} %" for p in probs)]
    rows = []
    for x in lines:
        cells = [x["truth"], x["model"], str(x["n"]), x["method"], str(x["simulations"])]
        text = "".join(f"<td>{cell}</td>" for cell in cells)
        for c, e, gap in zip(x["coverage"], x["error"], miss(x, probs), strict=True):
            tone, sign = (' class="lose"', " ▼") if gap < 0 else ("", " △") if gap > 0 else ("", "")
            text += f"<td{tone}>{100 * c:.1f} ± {100 * e:.1f}{sign}</td>"
        rows.append(text)
    table = _table(head, rows, "Coverage in percent ± standard error; beyond chance ▼ too narrow, △ too wide")
    return f"<details><summary>Coverage of all intervals</summary>{table}</details>"


def _needed_table(curves: Sequence[Mapping[str, Any]]) -> str:
    gaussian = [curve for curve in curves if curve["delta"] is not None]
    if not gaussian:
        return ""
    rows = []
    for curve in gaussian:
        for pair, found in curve["needed"].items():
            for x in found:
                cells = [f"{curve['delta']:g}", pair, f"{x['n']}", f"{x['ratio']:.2f} ± {x['error']:.2f}"]
                cells.append(f"{1 / curve['efficiency']:.2f}")
                rows.append("".join(f"<td>{cell}</td>" for cell in cells))
    head = ["Δ", "learners", "rows of LDA", "times as many for logistic", "Efron, as n grows"]
    table = _table(head, rows, "Rows that logistic regression needs for LDA's error, if the classes are Gaussian")
    return f"<details><summary>Rows needed, against Efron's formula</summary>{table}</details>"


def _how_scored(data: Mapping[str, Any]) -> str:
    return (
        "All scores are the better the smaller. "
        f"Probabilities below {data['floor']:g} count as {data['floor']:g}, ours and theirs alike. "
        "Brier: sum over the classes. "
        f"ECE: of the most probable class, in {data['bins']} bins of equal mass, less what calibrated forecasts would "
        "show, so that values around 0 are as good as can be seen. "
        "Differences are paired over splits. As splits share rows, their error is the corrected one of Nadeau and "
        "Bengio, √(1/J + n_test/n_train) times the sd, which is rather too large than too small. "
        "Isotonic calibration is compared in the table above, and score by score in calibration.json. "
        "Shaded and marked ▲ (ours better) or ▼ (worse) is what is significant at 5 %; chance alone would mark one in "
        "forty each way. exact, laplace, corrected and mcmc count the splits that inference='auto' fitted in that way."
    )


def _provenance(data: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in data["versions"].items())
    seconds = ", ".join(f"{kind} {count} s" for kind, count in data["seconds"].items())
    return (
        f"Made by <code>{escape(data['command'])}</code>. Seeds: {escape(data['seeds'])}. {escape(versions)}. "
        f"Time of all processes together: {seconds}."
    )


# ── HTML ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _by(items: Iterable[Mapping[str, Any]], key: str) -> dict[Any, list[Mapping[str, Any]]]:
    out: dict[Any, list[Mapping[str, Any]]] = {}
    for item in items:
        out.setdefault(item[key], []).append(item)
    return out


def _list(sentences: Iterable[str]) -> str:
    return "<ul>" + "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def _table(head: Sequence[str], rows: Iterable[str], caption: str) -> str:
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(f"<tr{_own(row)}>{row}</tr>\n" for row in rows)
    return f'<div class="scroll" tabindex="0"><table>{title}<tr>{top}</tr>\n{body}</table></div>'


def _own(row: str) -> str:
    return ' class="ours"' if row.startswith("<td>Bayesian") else ""


def _figure(plot: Plot) -> str:
    with TemporaryDirectory() as folder:
        image = save(plot, Path(folder) / "figure.svg").read_bytes()
    image = slim(image)
    return (
        f'<figure><img src="{data_uri(image)}" alt="{escape(plot.alt)}">'
        f"<figcaption>{escape(plot.caption)}</figcaption></figure>"
    )


def slim(svg: bytes) -> bytes:
    """Return the SVG with each style written once, as a class, and without the numbers that nothing refers to.

    A figure of small panels is mostly the styles of its many equal lines.
    """
    names: dict[bytes, bytes] = {}

    def by_class(found: re.Match[bytes]) -> bytes:
        return b' class="%s"' % names.setdefault(found[1], b"s%d" % len(names))

    svg = re.sub(rb' id="[a-zA-Z0-9]+_\d+"', b"", svg)
    svg = re.sub(rb' style="([^"]*)"', by_class, svg)
    rules = b"".join(b".%s{%s}" % (name, style.replace(b"; ", b";")) for style, name in names.items())
    end = svg.index(b">", svg.index(b"<svg")) + 1
    svg = svg[:end] + b"<style>" + rules + b"</style>" + svg[end:]
    svg = svg.replace(b"DejaVuSans-", b"f").replace(b"xlink:href", b"href")
    # Groups of one part, from the inside out.
    while (fewer := re.sub(rb"<g>(<(?:use|path)[^>]*/>)</g>", rb"\1", svg)) != svg:
        svg = fewer
    # Double quotes take three letters in an address, single ones one.
    return svg.replace(b"'", b"&apos;").replace(b'"', b"'")


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("-", "−")
