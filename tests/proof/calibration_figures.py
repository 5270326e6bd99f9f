"""Figures of the section on calibration: paired differences, coverage, learning curves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from proof.calibration_splits import OURS, RIVALS, SIZES

from bayes_gda.reporting.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    PURPLE,
    VERMILLION,
    Plot,
    legend,
    method_styles,
    new_figure,
    row_axis,
    styled,
)

# Differences range from thousandths to several nats: linear up to here, logarithmic beyond.
LINEAR = 0.02
SIZE_NAMES = {"few": "30 training rows", "most": "two thirds of the rows"}
# The rivals in the figure: plain, and calibrated by the method meant for few rows.
_SHOWN = {"plain": (VERMILLION, "o"), "sigmoid": (BLUE, "s")}
_LEARNERS = {
    "Bayesian LDA": (BLACK, "-"),
    "Bayesian logistic": (BLUE, "-"),
    "LDA": (ORANGE, (0, (4, 2))),
    "logistic": (GREEN, (0, (1, 1))),
}


@styled
def difference_plot(cases: Sequence[Mapping[str, Any]]) -> Plot:
    """Paired differences of the log score, ours less theirs, by data set, model and size."""
    data = list(dict.fromkeys(case["data"] for case in cases))
    sizes = [size for size in SIZES if any(case["size"] == size for case in cases)]
    figure, axes = new_figure(0.9 + 2.3 * len(sizes), len(sizes), len(OURS), sharex=True)
    for row, size in zip(axes, sizes, strict=True):
        for ax, model in zip(row, OURS, strict=True):
            _differences(ax, [case for case in cases if case["size"] == size], model, data)
            ax.axvline(0, color=BLACK, linewidth=0.8)
            ax.set_xscale("symlog", linthresh=LINEAR)
            ax.set_xticks([-1, -LINEAR, LINEAR, 1], ["−1", "−.02", ".02", "1"])
            _plain_axis(ax)
            row_axis(ax, data if ax is row[0] else [""] * len(data))
            ax.set_title(model)
        row[0].set_ylabel(SIZE_NAMES[size])
    marks = [Line2D([], [], color=c, marker=m, linestyle="none", markersize=4) for c, m in _SHOWN.values()]
    marks.append(Line2D([], [], color=PURPLE, marker="o", linestyle="none", markersize=4))
    legend(figure, marks, ["against plain", "against sigmoid-calibrated", "against unpenalised logistic regression"])
    found = [c for case in cases for c in case["comparisons"] if c["score"] == "log_loss"]
    wins, losses = (sum(c["verdict"] == verdict for c in found) for verdict in ("win", "lose"))
    return Plot(
        figure,
        "Difference in log loss, ours less scikit-learn's, with 95 % intervals by the corrected resampled t; left of "
        "the line ours is better. The scale is linear up to ±0.02 and logarithmic beyond.",
        f"Of {len(found)} paired differences in log loss, ours is better in {wins} and worse in {losses}.",
    )


def _differences(ax: Any, cases: Sequence[Mapping[str, Any]], model: str, data: Sequence[str]) -> None:
    shown = [
        (f"{rival} {variant}", color if rival != "LR C=1e6" else PURPLE, marker)
        for rival in RIVALS[model]
        for variant, (color, marker) in _SHOWN.items()
        if not (rival == "LR C=1e6" and variant != "plain")
    ]
    for i, (theirs, color, marker) in enumerate(shown):
        found = [
            (c["difference"], data.index(case["data"]) + 0.22 * (i - (len(shown) - 1) / 2), 2 * c["error"])
            for case in cases
            for c in case["comparisons"]
            if (c["ours"], c["theirs"], c["score"]) == (model, theirs, "log_loss")
        ]
        if found:
            # Two standard errors: the t quantile of some fifty splits.
            x, y, e = np.array(found).T
            ax.errorbar(x, y, xerr=e, color=color, marker=marker, markersize=3, elinewidth=0.9, linestyle="none")


def _plain_axis(ax: Any, *, grid: bool = True) -> None:
    """Leave out ticks: with many small panels they would be most of the file."""
    ax.minorticks_off()
    ax.tick_params(length=0)
    ax.grid(visible=grid)


@styled
def coverage_plot(lines: Sequence[Mapping[str, Any]], probs: Sequence[float]) -> Plot:
    """Coverage of 90 % intervals by number of rows, for each model, truth and method."""
    at = list(probs).index(0.9)
    models = list(dict.fromkeys(line["model"] for line in lines))
    truths = list(dict.fromkeys(line["truth"] for line in lines))
    styles = method_styles(dict.fromkeys(line["method"] for line in lines))
    figure, axes = new_figure(0.9 + 1.8 * len(truths), len(truths), len(models), sharex=True, sharey=True)
    for row, truth in zip(axes, truths, strict=True):
        for ax, model in zip(row, models, strict=True):
            ax.axhline(0.9, color=GREY, linewidth=0.8)
            for i, (method, (color, _)) in enumerate(styles.items()):
                own = [x for x in lines if (x["model"], x["truth"], x["method"]) == (model, truth, method)]
                # A little apart, so that errors do not hide each other.
                x = np.array([line["n"] for line in own]) * 1.13 ** (i - 1)
                y, e = [line["coverage"][at] for line in own], [2 * line["error"][at] for line in own]
                ax.errorbar(x, y, yerr=e, color=color, marker="o", markersize=2.5, linewidth=0.9)
            ax.set_xscale("log")
            ax.set_xticks(ticks := sorted({line["n"] for line in lines}), [str(n) for n in ticks])
            _plain_axis(ax, grid=False)
            ax.set_title(model if truth == truths[0] else "")
        row[0].set_ylim(min(0.7, min(line["coverage"][at] for line in lines) - 0.02), 1.005)
        row[0].set_ylabel("θ from the prior" if truth == "prior" else "one θ, default prior")
    figure.supxlabel("rows", fontsize=8)
    handles = [Line2D([], [], color=color, marker="o", markersize=3) for color, _ in styles.values()]
    legend(figure, handles, list(styles))
    worst = min(lines, key=lambda line: line["coverage"][at])
    return Plot(
        figure,
        "How often 90 % intervals of p(y | x, θ) hold the true value, with two standard errors over simulations.",
        f"Coverage of 90 % intervals; the lowest is {worst['coverage'][at]:.2f}, {worst['method']} for "
        f"{worst['model']} after {worst['n']} rows.",
    )


@styled
def learning_plot(curves: Sequence[Mapping[str, Any]]) -> Plot:
    """Excess error over Bayes' rule against the number of rows, one panel for each truth."""
    columns = min(4, len(curves))
    figure, axes = new_figure(0.9 + 1.9 * (-(-len(curves) // columns)), -(-len(curves) // columns), columns)
    for ax in axes.flat[len(curves) :]:
        ax.set_visible(False)
    for ax, curve in zip(axes.flat, curves, strict=False):
        for i, name in enumerate(curve["learners"]):
            color, dashes = _LEARNERS[name]
            y, e = np.array(curve["excess"])[:, i], np.array(curve["error"])[:, i]
            ax.plot(curve["rows"], y, color=color, linestyle=dashes, linewidth=1.2)
            if name.startswith("Bayesian"):
                ax.fill_between(curve["rows"], np.maximum(y - 2 * e, y / 10), y + 2 * e, color=LIGHT, linewidth=0)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(ticks := curve["rows"][::3], [str(n) for n in ticks])
        _plain_axis(ax)
        ax.set_title(curve["truth"])
    figure.supxlabel("training rows", fontsize=8)
    figure.supylabel("error in excess of Bayes'", fontsize=8)
    legend(figure, [Line2D([], [], color=c, linestyle=s) for c, s in _LEARNERS.values()], list(_LEARNERS))
    return Plot(
        figure,
        "Error in excess of Bayes' rule against training rows, both on logarithmic scales, with bands of two standard "
        "errors for the Bayesian learners. In the first panels the Gaussian model is true, in the others it is not.",
        f"Learning curves of four learners under {len(curves)} truths.",
    )
