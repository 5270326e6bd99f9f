"""The pictures of the page: ratios over rows, effective draws as bars, growth as lines."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from bayes_gda.reporting.plots.style import (
    BLACK,
    BLUE,
    CLASS_COLORS,
    MARKERS,
    SKY,
    Plot,
    drawn,
    legend,
    new_figure,
    row_axis,
    styled,
)

# Panels in a row: four are still read at page width.
COLUMNS = 4


def figures(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, list[tuple[str, Plot]]]:
    """Return the figures of each group, with a title; only those whose numbers are there."""
    out: dict[str, list[tuple[str, Plot]]] = {}
    if "fit" in groups and _grid(groups["fit"]):
        out["fit"] = [("Ratio over the number of rows", ratios(groups["fit"]))]
    if "sampling" in groups and any(row["ratio"] for row in groups["sampling"]["rows"]):
        out["sampling"] = [("Effective draws per second", bars(groups["sampling"]))]
    if "growth" in groups and groups["growth"]["series"]:
        out["growth"] = [("Seconds over size", growth(groups["growth"]))]
    return out


def _grid(group: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The rows of two classes on the grid, by the pair that they compare."""
    pairs: dict[str, list[Mapping[str, Any]]] = {}
    for row in group["rows"]:
        if row["at"].get("model") and row["at"]["K"] == 2 and row["ratio"]:
            pairs.setdefault(f"{row['ours_name']} / {row['theirs_name']}", []).append(row)
    return pairs


def _logarithmic(ax: Any, which: str = "xy") -> None:
    """Logarithmic axes with ticks at powers of ten only: the ones between fill the file and say nothing."""
    for one in which:
        ax.set(**{f"{one}scale": "log"})
        axis = getattr(ax, f"{one}axis")
        axis.set_major_locator(LogLocator(numticks=7))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    ax.grid(visible=False, axis="x" if which == "xy" else "y")
    ax.tick_params(bottom=False, left=False)


def _decades(values: Iterable[float]) -> tuple[float, float]:
    """Powers of ten around all values."""
    logs = np.log10(list(values))
    return float(10 ** np.floor(logs.min())), float(10 ** np.ceil(logs.max()))


@styled
def ratios(group: Mapping[str, Any]) -> Plot:
    """Ratio of fit times against n, a line for each d, a panel for each pair."""
    pairs = _grid(group)
    widths = sorted({row["at"]["d"] for rows in pairs.values() for row in rows})
    columns = min(COLUMNS, len(pairs))
    lines = -(-len(pairs) // columns)
    figure, axes = new_figure(0.6 + 1.75 * lines, lines, columns, sharex=True, sharey=True)
    for ax, (name, rows) in zip(axes.flat, pairs.items(), strict=False):
        for i, d in enumerate(widths):
            here = sorted((row["at"]["n"], row["ratio"]) for row in rows if row["at"]["d"] == d)
            if here:
                ax.plot(*zip(*here, strict=True), color=CLASS_COLORS[i], marker=MARKERS[i], markersize=3)
        ax.axhline(1, color=BLACK, linewidth=0.9, linestyle=(0, (4, 2)))
        _logarithmic(ax)
        ax.set_title("\nagainst ".join(drawn(part) for part in name.split(" / ")), fontsize=7.5)
    axes.flat[0].set_ylim(_decades(row["ratio"] for rows in pairs.values() for row in rows))
    for ax in list(axes.flat)[len(pairs) :]:
        ax.set_visible(False)
    figure.supxlabel("rows n", fontsize=8)
    figure.supylabel("times as fast as scikit-learn", fontsize=8)
    handles = [Line2D([], [], color=CLASS_COLORS[i], marker=MARKERS[i], markersize=3) for i in range(len(widths))]
    legend(figure, handles, [f"d = {d}" for d in widths])
    best = max((row for rows in pairs.values() for row in rows), key=lambda row: row["ratio"])
    worst = min((row for rows in pairs.values() for row in rows), key=lambda row: row["ratio"])
    return Plot(
        figure,
        "Above the dashed line ours is faster, below it scikit-learn is. One panel for each pair, one line for each "
        "number of features; both axes are logarithmic.",
        f"Ratios of fit times over the number of rows: from {worst['ratio']:.3g} to {best['ratio']:.3g}.",
    )


@styled
def bars(group: Mapping[str, Any]) -> Plot:
    """Effective draws per second of every sampler on every problem, of sampling alone and by wall clock."""
    rates: dict[str, dict[str, dict[str, float]]] = {}
    for row in group["rows"]:
        here = rates.setdefault(row["at"]["problem"], {})
        for name, value in ((row["ours_name"], row["ours"]), (row["theirs_name"], row["theirs"])):
            if value:
                here.setdefault(name, {})[row["at"]["clock"]] = value
    # One axis for all panels: the length of a bar on a logarithmic axis hangs on where it begins.
    limits = _decades(rate for samplers in rates.values() for seen in samplers.values() for rate in seen.values())
    columns = min(3, len(rates))
    lines = -(-len(rates) // columns)
    figure, axes = new_figure(0.6 + 1.6 * lines, lines, columns)
    for ax, (problem, samplers) in zip(axes.flat, rates.items(), strict=False):
        for shift, clock, colour in ((-0.2, "sampling", BLUE), (0.2, "wall clock", SKY)):
            ax.barh(
                np.arange(len(samplers)) + shift,
                [seen.get(clock, np.nan) for seen in samplers.values()],
                height=0.38,
                color=colour,
            )
        row_axis(ax, [drawn(name) for name in samplers])
        _logarithmic(ax, "x")
        ax.set_title(drawn(problem))
        ax.set_xlim(limits)
    for ax in list(axes.flat)[len(rates) :]:
        ax.set_visible(False)
    figure.supxlabel("smallest effective sample size a second", fontsize=8)
    handles = [Line2D([], [], color=colour, linewidth=5) for colour in (BLUE, SKY)]
    legend(figure, handles, ["sampling alone", "wall clock, with compilation"])
    most = max(row["ratio"] for row in group["rows"] if row["ratio"])
    return Plot(
        figure,
        "Longer is better; each step of the axis is ten times as many. A missing bar did not finish.",
        f"Effective draws per second of the samplers on {len(rates)} posteriors; the largest ratio is {most:.3g}.",
    )


@styled
def growth(group: Mapping[str, Any]) -> Plot:
    """Seconds against n, d and K of all our operations."""
    axes_of = {axis: [s for s in group["series"] if s["axis"] == axis] for axis in ("n", "d", "K")}
    kinds = list(dict.fromkeys(s["kind"] for s in group["series"]))
    names = list(
        dict.fromkeys(s["name"].replace("softmax", "logistic").replace("Laplace", "logistic") for s in group["series"])
    )
    figure, axes = new_figure(1.0 + 1.6 * len(kinds), len(kinds), 3, sharey="row", sharex="col")
    words = {"n": "rows n", "d": "features d", "K": "classes K"}
    for line, kind in enumerate(kinds):
        for ax, (axis, series) in zip(axes[line], axes_of.items(), strict=True):
            for one in (s for s in series if s["kind"] == kind):
                i = names.index(one["name"].replace("softmax", "logistic").replace("Laplace", "logistic"))
                ax.plot(one["x"], one["seconds"], color=CLASS_COLORS[i], marker=MARKERS[i], markersize=3)
            _logarithmic(ax)
            if axis != "n" and series:  # too short for powers of ten
                ax.set_xticks(series[0]["x"], [str(x) for x in series[0]["x"]])
            if line == len(kinds) - 1:
                ax.set_xlabel(words[axis])
        axes[line, 0].set_ylim(_decades(t for s in group["series"] if s["kind"] == kind for t in s["seconds"]))
        axes[line, 0].set_ylabel(f"{kind}: seconds")
    handles = [Line2D([], [], color=CLASS_COLORS[i], marker=MARKERS[i], markersize=3) for i in range(len(names))]
    legend(figure, handles, names)
    steepest = max((row for row in group["rows"] if row["unit"] == "exponent"), key=lambda row: row["ours"])
    return Plot(
        figure,
        "Seconds of our own operations; a straight line is a power of the size, its slope the exponent in the table.",
        f"Seconds over rows, features, classes; the steepest is {steepest['what']}, exponent {steepest['ours']:.2f}.",
    )
