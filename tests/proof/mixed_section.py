"""The section of the page on tables with columns of any type, out of mixed.json."""

from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from proof.mixed_study import REFERENCE, paired

NOTE = (
    "Log loss of held-out rows; the other models as differences from mixed, ± one standard error of the difference. "
    "Positive numbers are worse. A difference of more than two standard errors is bold."
)


WHY = (
    "mixed assumes that columns are independent within the classes; the regressions and LDA do not, which is why they "
    "have the lower log loss on some tables. Gaussian models treat counts, skewed amounts and dummies as normal."
)


def section(data: Mapping[str, Any]) -> str:
    """Return the section as HTML: conclusions, the table of log losses, and what was done.

    Parameters
    ----------
    data
        The tree of mixed.json.
    """
    tables = data["tables"]
    items = "".join(f"<li>{escape(text)}</li>" for text in conclusions(tables))
    return "".join(
        [
            "<h2>Tables with text, counts and gaps</h2>",
            f"<p>{escape(_lead(data))}</p>",
            f"<ul>{items}</ul>",
            f"<p>{WHY}</p>",
            _table(tables),
            f'<p class="note">{NOTE}</p>',
            "<details><summary>The distributions that were chosen, by the whole table</summary><ul>",
            *(f"<li>{escape(name)}: {escape(table['choice'])}</li>" for name, table in tables.items()),
            "</ul></details>",
        ]
    )


def conclusions(tables: Mapping[str, Any]) -> list[str]:
    """Return for each other model on how many tables `mixed` is better, or worse, by more than two standard errors."""
    out = []
    for model in next(iter(tables.values()))["loss"]:
        if model == REFERENCE:
            continue
        gaps = {name: paired(table, model) for name, table in tables.items()}
        better = [name for name, (gap, error) in gaps.items() if gap > 2 * error]
        worse = [name for name, (gap, error) in gaps.items() if gap < -2 * error]
        median = float(np.median([gap for gap, _ in gaps.values()]))
        out.append(
            f"{model}: mixed has the lower log loss on {len(better)} of {len(gaps)} tables"
            f"{_listed(better)} and the higher one on {len(worse)}{_listed(worse)}, by more than two standard errors; "
            f"the median difference is {median:+.3f}.".replace("-0", "\u22120")
        )
    return out


def _listed(names: list[str]) -> str:
    return f" ({', '.join(names)})" if names else ""


def _lead(data: Mapping[str, Any]) -> str:
    tables = data["tables"]
    rows = [table["train"] for table in tables.values()]
    return (
        f"{len(tables)} real tables, {data['splits']} stratified splits of each, {min(rows)} to {max(rows)} training "
        "rows. BayesianNaive takes text, truth values, counts and gaps as they are, and chooses a distribution for "
        "each column by its evidence. The other models see categories as 0/1 columns, and those that cannot take gaps "
        "have them filled in by the median or the most frequent level. Standard errors allow for splits that overlap "
        "(Nadeau & Bengio 2003)."
    )


def _table(tables: Mapping[str, Any]) -> str:
    models = list(next(iter(tables.values()))["loss"])
    head = "".join(f'<th class="num">{escape(model)}</th>' for model in models)
    lines = []
    for name, table in tables.items():
        cells = [
            f"<td>{escape(name)} ({table['train']} rows, {table['columns']} columns, {table['gaps']} with gaps)</td>"
        ]
        for model in models:
            if model == REFERENCE:
                cells.append(f'<td class="num">{np.mean(table["loss"][model]):.3f}</td>')
                continue
            gap, error = paired(table, model)
            text = f"{gap:+.3f} ± {error:.3f}".replace("-", "−")
            cells.append(f'<td class="num">{f"<b>{text}</b>" if abs(gap) > 2 * error else text}</td>')
        lines.append(f"<tr>{''.join(cells)}</tr>")
    body = f"<thead><tr><th>table</th>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Log loss"><table>{body}</table></div>'
