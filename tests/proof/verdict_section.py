"""The section of the page on the verdicts, out of verdict.json."""

from collections.abc import Mapping
from html import escape
from typing import Any

TITLES = {"all": "all", "logistic": "two classes", "softmax": "three to ten classes"}


def section(data: Mapping[str, Any]) -> str:
    """Return the section as HTML: conclusions, the table of rates, and what was done.

    Parameters
    ----------
    data
        The tree of verdict.json.
    """
    summary, tolerance = data["summary"], data["tolerance"]
    lights = [_light(summary["all"], word, tolerance) for word in ("trusted", "corrected")]
    lights.append(_rows_light(summary["all"]))
    items = "".join(
        f'<li class="light {tone}"><p class="head"><span class="sign">{ {"green": "●", "red": "■"}[tone] }</span> '
        f"{escape(head)}</p><p>{escape(text)}</p></li>"
        for tone, head, text in lights
    )
    return "".join(
        [
            "<h2>Verdicts on the fast approximations</h2>",
            f"<p>{escape(_lead(data))}</p>",
            f'<ul class="lights">{items}</ul>',
            _table(summary),
            f"<p>{escape(_sampling(summary['all']))}</p>",
            f'<p class="note">{escape(_how(data))}</p>',
        ]
    )


def _lead(data: Mapping[str, Any]) -> str:
    cases = data["cases"]
    n, d, K = (f"{min(values)} to {max(values)}" for key in ("n", "d", "K") if (values := [c[key] for c in cases]))
    return (
        f"{len(cases)} random logistic and softmax regressions were fitted with inference='auto', with {n} rows, "
        f"{d} features and {K} classes; Gaussian, heavy-tailed, binary and correlated features, rare levels, separated "
        "classes, weights. The errors of the probabilities were then measured by long sampling. No constant of the "
        "verdict was chosen on these cases."
    )


def _light(summary: Mapping[str, Any], word: str, tolerance: float) -> tuple[str, str, str]:
    rate = summary[word]
    text = (
        f"A probability of a training row was off by more than the tolerance of {tolerance:g} in {rate['false']} of "
        f"{rate['of']} cases that were called {word}; the rate is at most {_percent(rate['at_most'])} (95 % upper "
        "bound)."
    )
    return (
        ("red", f"{word} was wrong.", text)
        if rate["false"]
        else ("green", f"No false verdict {word} was observed.", text)
    )


def _rows_light(summary: Mapping[str, Any]) -> tuple[str, str, str]:
    parts = []
    for group in ("new", "far"):
        rows = summary[f"rows_{group}"]
        parts.append(
            f"of {rows['rows']} {group} rows {rows['claimed']} were claimed to be within the tolerance, "
            f"{rows['clear']} of them with a truth exact enough to tell, and {rows['false']} of these were not, in "
            f"{rows['cases']['false']} of {rows['cases']['of']} cases (rate of such cases at most "
            f"{_percent(rows['cases']['at_most'])})"
        )
    false = sum(summary[f"rows_{group}"]["false"] for group in ("new", "far"))
    text = "; ".join(parts)
    head = "Claims on single rows were wrong." if false else "No false claim on a single row was observed."
    return "red" if false else "green", head, f"{text[0].upper()}{text[1:]}."


def _table(summary: Mapping[str, Any]) -> str:
    head = "".join(
        f'<th class="num">{name}</th>'
        for name in ("cases", "judged", "trusted", "false", "at most", "corrected", "false", "at most", "sampled")
    )
    lines = []
    for name, part in summary.items():
        cells = [part["cases"], part["outcomes"].get("judged", 0)]
        for word in ("trusted", "corrected"):
            cells += [part[word]["of"], part[word]["false"], _percent(part[word]["at_most"])]
        cells.append(part["sampled"]["cases"])
        lines.append(
            f"<tr><td>{TITLES[name]}</td>" + "".join(f'<td class="num">{cell}</td>' for cell in cells) + "</tr>"
        )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="False verdicts"><table><thead><tr><th>classes</th>'
        f"{head}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _sampling(summary: Mapping[str, Any]) -> str:
    sampled = summary["sampled"]
    left = {name: count for name, count in summary["outcomes"].items() if name != "judged"}
    out = (
        f"{sampled['cases']} of the judged cases ({_percent(sampled['share'])}) had the verdict needs-mcmc; in "
        f"{sampled['needless']} of them the Gaussian that corrects Laplace was in fact within the tolerance on the "
        "training rows."
    )
    if left:
        out += f" Left out: {', '.join(f'{name} {count}' for name, count in left.items())}."
    return out


def _how(data: Mapping[str, Any]) -> str:
    return (
        f"Seed {data['seed']}; version {data['package']}. A claim is false if the truth is further off than the "
        f"tolerance and {data['noise']:g} of its own standard errors. Far rows are new rows, three times as far from "
        f"the mean. Rates have Clopper–Pearson bounds. {data['command']} repeats it and resumes an interrupted "
        "run; all cases are in verdict.json."
    )


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
