"""Are the classes Gaussian? Their Mahalanobis distances beside those that Gaussian classes would have."""

from collections.abc import Mapping
from typing import Any

from bayes_gda.errors import DataError
from bayes_gda.families.assumptions import Quantiles
from bayes_gda.reporting.plots.style import (
    FONT,
    GREY,
    LIGHT,
    Plot,
    class_style,
    labels,
    new_figure,
    note,
    plain,
    styled,
)

PANELS = 6


@styled
def plot_distances(distances: Mapping[Any, Quantiles]) -> Plot:
    """Show ordered squared Mahalanobis distances of each class against those expected of a Gaussian one.

    Parameters
    ----------
    distances
        By class, from `Assumptions.distances`.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_distances
    >>> from bayes_gda.families.gaussian.assumptions import gaussian_assumptions
    >>> data = load_example("lda-mixture").subset(range(0, 1000, 5))
    >>> checks = gaussian_assumptions(data, shared=True, diagonal=False, random_seed=0)
    >>> plot_distances(checks.distances).alt
    'Rows outside the band of a Gaussian class: 0 25 %, 1 12 %.'
    """
    if not distances:
        raise DataError("`distances` must hold at least one class; got none.")
    outside = {name: float(((q.observed < q.lower) | (q.observed > q.upper)).mean()) for name, q in distances.items()}
    shown = sorted(sorted(distances, key=lambda name: -outside[name])[:PANELS], key=list(distances).index)
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure, grid = new_figure(0.4 + {1: 3.0, 2: 2.9, 3: 2.3}[columns] * rows, rows, columns)
    texts = dict(zip(distances, labels(distances, inches=1.5), strict=True))
    codes = {name: k for k, name in enumerate(distances)}
    for axes, name in zip(grid.flat, shown, strict=False):
        q = distances[name]
        color, marker = class_style(codes[name])
        end = 1.04 * max(q.observed[-1], q.upper[-1])
        axes.fill_between(q.expected, q.lower, q.upper, color=LIGHT, linewidth=0)
        axes.plot([0, end], [0, end], color=GREY, linewidth=0.8)
        axes.plot(q.expected, q.observed, linestyle="none", marker=marker, markersize=3, color=color, rasterized=False)
        axes.set(xlim=(0, 1.04 * q.expected[-1]), ylim=(0, end))
        axes.set_title(texts[name], fontsize=FONT)
        axes.set_xlabel("expected")
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for row in grid:
        row[0].set_ylabel("observed")
    left_out = f"{len(shown)} of {len(distances)} classes shown" if len(shown) < len(distances) else ""
    note(figure, left_out)
    caption = (
        "Squared Mahalanobis distances of the training rows to the mean of their class, ordered, against what a "
        "Gaussian class would have; the grey band holds 90 % at each place. Points above it on the right are tails "
        "that are too heavy."
    )
    figures = ", ".join(f"{plain(name, 40)} {100 * outside[name]:.0f} %" for name in shown)
    return Plot(figure, caption, f"Rows outside the band of a Gaussian class: {figures}.")
