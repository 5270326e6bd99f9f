"""Results of the experiments that compare learners: excess loss by setting, one line or mark for each learner."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from bayes_gda.errors import DataError
from bayes_gda.reporting.plots.style import (
    BLUE,
    GREEN,
    ORANGE,
    PURPLE,
    SKY,
    VERMILLION,
    Plot,
    drawn,
    labels,
    legend,
    new_figure,
    row_axis,
    styled,
)

# Colours, markers and dashes in turn; those of the first learners of each experiment are furthest apart.
_STYLES: tuple[tuple[str, str, Any], ...] = (
    (BLUE, "o", "-"),
    (VERMILLION, "s", (0, (5, 2))),
    (GREEN, "^", (0, (3, 1, 1, 1))),
    (PURPLE, "D", (0, (1, 1))),
    (ORANGE, "v", (0, (4, 1, 1, 1))),
    (SKY, "P", "-"),
)


@styled
def plot_excess(
    table: pd.DataFrame,
    setting: str,
    *,
    label: str,
    quantity: str = "excess error",
    panel: str | None = None,
    logarithmic: bool = False,
) -> Plot:
    """Show the excess loss of several learners by setting, with two standard errors to both sides.

    Parameters
    ----------
    table
        A row for each setting and learner, as the experiments of `bayes_gda.teaching.debate` return it: `learner`,
        `excess`, `se` and the columns named below.
    setting
        Column of the settings. Numbers make lines; names make a row of marks each.
    label
        What the settings are, for the axis.
    quantity
        What the excess is, for the axis.
    panel
        Column by whose values the figure is divided; None for one panel.
    logarithmic
        Whether the settings are shown on a logarithmic scale.
    """
    missing = {"learner", "excess", "se", setting, panel or setting} - set(table.columns)
    if missing:
        raise DataError(f"`table` lacks the columns {', '.join(sorted(missing))}.")
    learners = list(dict.fromkeys(table["learner"]))
    if len(learners) > len(_STYLES):
        raise DataError(f"`table` must have at most {len(_STYLES)} learners for their colours; got {len(learners)}.")
    parts = [("", table)] if panel is None else [(_plain(key), part) for key, part in table.groupby(panel, sort=False)]
    numeric = pd.api.types.is_numeric_dtype(table[setting])
    height = 3.4 if numeric else 1.2 + 0.32 * table[setting].nunique()
    figure, [axes_list] = new_figure(height, 1, len(parts), sharey=True)
    for axes, (title, part) in zip(axes_list, parts, strict=True):
        for i, learner in enumerate(learners):
            rows = part[part["learner"] == learner]
            (_draw_curve if numeric else _draw_marks)(axes, rows, setting, i, len(learners))
        axes.set_title(drawn(title) if panel is None else drawn(f"{panel.replace('_', ' ')}: {title}"))
        (axes.set_yscale if numeric else axes.set_xscale)("log")
        _plain_logarithm(axes.yaxis if numeric else axes.xaxis)
        if numeric and logarithmic:
            axes.set_xscale("log")
            axes.xaxis.set_minor_locator(NullLocator())
            ticks = sorted(part[setting].unique())
            axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        (axes.set_xlabel if numeric else axes.set_ylabel)(label)
        if not numeric:
            axes.set_xlabel(quantity)
    if numeric:
        axes_list[0].set_ylabel(quantity)
    else:
        row_axis(axes_list[0], labels(dict.fromkeys(table[setting])))
    handles = [
        Line2D([], [], color=color, marker=marker, markersize=5, linestyle=dashes if numeric else "none")
        for color, marker, dashes in _STYLES[: len(learners)]
    ]
    legend(figure, handles, labels(learners, 30))
    best = table.iloc[int(table["excess"].to_numpy().argmin())]
    caption = (
        f"Mean {quantity} over Bayes' rule by {label}, on a logarithmic scale; bars are two standard errors to both "
        "sides."
    )
    worst = table.iloc[int(table["excess"].to_numpy().argmax())]
    alt = (
        f"{quantity.capitalize()} of {len(learners)} learners, from {best['excess']:.2g} ({best['learner']}) to "
        f"{worst['excess']:.2g} ({worst['learner']})."
    )
    return Plot(figure, caption, alt)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _bars(rows: pd.DataFrame) -> Any:
    """Return bars of two standard errors (2, n) that stay above 0, as a logarithmic scale needs."""
    error = 2 * rows["se"].fillna(0).to_numpy()
    value = rows["excess"].to_numpy()
    return np.array([np.minimum(error, 0.9 * value), error])


def _draw_curve(axes: Any, rows: pd.DataFrame, setting: str, i: int, _count: int) -> None:
    color, marker, dashes = _STYLES[i]
    axes.errorbar(
        rows[setting],
        rows["excess"],
        yerr=_bars(rows),
        color=color,
        marker=marker,
        markersize=4,
        linestyle=dashes,
        elinewidth=0.9,
    )


def _draw_marks(axes: Any, rows: pd.DataFrame, setting: str, i: int, count: int) -> None:
    color, marker, _ = _STYLES[i]
    position = np.arange(len(rows)) + 0.18 * (i - (count - 1) / 2)
    axes.errorbar(
        rows["excess"],
        position,
        xerr=_bars(rows),
        color=color,
        marker=marker,
        markersize=4,
        linestyle="none",
        elinewidth=0.9,
    )


def _plain_logarithm(axis: Any) -> None:
    """Write a logarithmic axis in plain numbers: 0.001 rather than 10⁻³."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
