"""Posteriors of one model by several methods: marginals, intervals, and two parameters together.

A posterior is a DataTree with a group `posterior`, by method. Where there are too many parameters to show, those are
shown on which the methods differ most, and the figure says how many are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from scipy.stats import gaussian_kde

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.evaluation.compare import PREFERENCE
from bayes_gda.methods.diagnostics import CONSTANT, scalars
from bayes_gda.reporting.plots.arviz_axes import draw_forest
from bayes_gda.reporting.plots.style import (
    FONT,
    GREY,
    NAME,
    Plot,
    drawn,
    labels,
    legend,
    listing,
    method_styles,
    new_figure,
    note,
    plain,
    row_axis,
    styled,
    text_width,
)

if TYPE_CHECKING:
    import xarray as xr

LABEL_INCHES = 1.9  # inches of a label, less its number: three panels stand side by side
SHORTEST_NAME, LONGEST_LABEL = 6, 80  # characters of a name in a label, and of a label: its room is what counts
# Densities are drawn between these quantiles: a few draws far out would squeeze the rest.
TAILS = (0.001, 0.999)
INNER_PROB = 0.5  # of the thick part of an interval
# In a forest of parameters as they are, the axis may be so many times longer than the usual interval.
LONGEST_AXIS = 30.0
PAIR_POINTS = 1000  # draws shown as points under contours
KDE_DRAWS = 4000  # of a two-dimensional density: more change nothing that one sees
PAIR_GRID = 80  # points a side of that density


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws (chain, draw) of the scalars that vary, by method and label; text to draw for each label; the reference."""

    by_method: dict[str, dict[str, Floats]]
    names: dict[str, str]
    reference: str


def read_draws(posteriors: "Mapping[str, xr.DataTree]", parameters: Sequence[str] | None = None) -> Draws:
    """Read the scalars that all methods have; constants and repeated draws (Σ_ji, equal to Σ_ij) are left out.

    Parameters
    ----------
    posteriors
        DataTrees by method.
    parameters
        Labels to read, such as `w[glu]`; None for all.
    """
    groups = {}
    for method, tree in posteriors.items():
        if "posterior" not in getattr(tree, "children", {}):
            raise DataError(f"`posteriors` must have a group 'posterior'; {method!r} has none. Fit the model first.")
        groups[method] = tree["posterior"].to_dataset()
    if not groups:
        raise DataError("`posteriors` must hold at least one method; got none.")
    reference = best_method(groups)
    reference_group = groups[reference]
    common = [name for name in reference_group.data_vars if all(name in group for group in groups.values())]
    if not common:
        raise DataError("The posteriors have no variable in common. Show methods of one model.")
    by_method = {method: scalars(group[common]) for method, group in groups.items()}
    shared = [label for label in by_method[reference] if all(label in own_draws for own_draws in by_method.values())]
    chosen: list[str] = []
    seen_draws: set[bytes] = set()
    for label in shared if parameters is None else parameters:
        if label not in shared:
            raise DataError(f"`parameters` must be labels such as {shared[0]!r}; got {label!r}.")
        x = by_method[reference][label]
        varies = any(
            np.ptp(own_draws[label]) > CONSTANT * np.abs(own_draws[label]).max() for own_draws in by_method.values()
        )
        if parameters is not None or (varies and x.tobytes() not in seen_draws):
            chosen.append(label)
            seen_draws.add(x.tobytes())
    if not chosen:
        raise DataError("No parameter varies; there is nothing to show.")
    names = _label_parts(reference_group[common])
    # One variable only: its name need not stand at each of its entries.
    single_variable = len({names[label][0] for label in chosen}) == 1 and all(names[label][1] for label in chosen)
    texts = labels([_fit_label(*names[label], single_variable) for label in chosen], LONGEST_LABEL)
    draws = {method: {label: own_draws[label] for label in chosen} for method, own_draws in by_method.items()}
    return Draws(draws, dict(zip(chosen, texts, strict=True)), reference)


def best_method(methods: Iterable[str]) -> str:
    """Return the reference method: the first of PREFERENCE that is present, or the first method if none is."""

    def rank(method: str) -> int:
        key = method.casefold().replace("_", "-")
        return PREFERENCE.index(key) if key in PREFERENCE else len(PREFERENCE)

    return min(methods, key=rank)


def _label_parts(dataset: "xr.Dataset") -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return name and coords of the variable behind each label, in the order of `scalars`."""
    label_parts = []
    for name, variable in dataset.data_vars.items():
        inner = [dim for dim in variable.dims if dim not in ("chain", "draw")]
        coords = [[str(label) for label in variable[dim].to_numpy()] for dim in inner]
        label_parts += [(str(name), label_coords) for label_coords in product(*coords)]
    return dict(zip(scalars(dataset), label_parts, strict=True))


def _fit_label(variable: str, coords: tuple[str, ...], single_variable: bool) -> str:
    """Return a label of at most LABEL_INCHES: each of the coords is cut, not the label as a whole."""
    text = plain(variable)
    for width in range(NAME, SHORTEST_NAME, -1) if coords else ():
        inner = ", ".join(plain(label, width) for label in coords)
        # `w` of a feature is called by the feature; a covariance would be read as the feature itself.
        text = inner if single_variable and variable == "w" else f"{plain(variable)}[{inner}]"
        if text_width(drawn(text)) <= LABEL_INCHES:
            break
    return text


def most_different(draws: Draws, most: int) -> tuple[list[str], str]:
    """Return at most `most` labels in their order, and a remark how they were chosen; empty if all are returned.

    Methods are compared with the reference by (difference of means)/sd plus the log ratio of sds. With one method, the
    parameters furthest from zero in posterior sds are chosen.
    """
    if most < 1:
        raise DataError(f"`most` must be at least 1; got {most}.")
    reference_draws = draws.by_method[draws.reference]
    if len(reference_draws) <= most:
        return list(reference_draws), ""
    other_draws = [own_draws for method, own_draws in draws.by_method.items() if method != draws.reference]
    score = {}
    for label, x in reference_draws.items():
        sd = max(float(x.std()), np.finfo(float).tiny)
        if other_draws:
            score[label] = max(
                abs(float(own_draws[label].mean() - x.mean())) / sd
                + abs(float(np.log(max(own_draws[label].std(), 1e-300) / sd)))
                for own_draws in other_draws
            )
        else:
            score[label] = abs(float(x.mean())) / sd
    chosen = set(sorted(score, key=lambda label: -score[label])[:most])
    criterion = "those on which the methods differ most" if other_draws else "those furthest from zero in posterior sds"
    remark = f"{most} of {len(reference_draws)} parameters shown, {criterion}"
    return [label for label in reference_draws if label in chosen], remark


# ── Plots ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@styled
def plot_marginals(
    posteriors: "Mapping[str, xr.DataTree]", *, parameters: Sequence[str] | None = None, most: int = 9
) -> Plot:
    """Show the posterior density of each parameter, one line per method.

    Lines on top of each other mean that the methods agree; a shifted line has another mean, a narrower one a smaller
    posterior sd.

    Parameters
    ----------
    posteriors
        DataTrees by method.
    parameters
        Labels such as `w[glu]`, all of which are shown; None for those on which the methods differ most.
    most
        How many of these at most.
    """
    draws = read_draws(posteriors, parameters)
    chosen, left_out = most_different(draws, most if parameters is None else len(parameters))
    styles = method_styles(draws.by_method)
    columns = min(3, len(chosen))
    rows = -(-len(chosen) // columns)
    figure, grid = new_figure(0.6 + 1.55 * rows, rows, columns)
    for axes, label in zip(grid.flat, chosen, strict=False):
        for method, own_draws in draws.by_method.items():
            x, density = _estimate_density(own_draws[label].ravel())
            axes.plot(x, density, color=styles[method][0], linestyle=styles[method][1], gid=f"{method}|{label}")
        axes.set_title(draws.names[label], fontsize=FONT)
        axes.set_yticks([])
        axes.set_ylim(bottom=0)
        axes.spines["left"].set_visible(False)
        axes.locator_params(axis="x", nbins=4)
    for axes in grid.flat[len(chosen) :]:
        axes.set_axis_off()
    _method_legend(figure, draws)
    note(figure, left_out)
    caption = "Posterior densities by method; where the lines lie on each other the methods agree."
    caption += f" {left_out}." if left_out else ""
    alt = f"Posterior marginals of {listing(chosen)} by {_list_methods(draws)}. {_describe_difference(draws)}"
    return Plot(figure, caption, alt)


@styled
def plot_forest(
    posteriors: "Mapping[str, xr.DataTree]",
    *,
    parameters: Sequence[str] | None = None,
    most: int = 20,
    prob: float = 0.9,
    standardised: bool | None = None,
) -> Plot:
    """Show the interval of each parameter, one line per method; drawn by ArviZ.

    Dots are medians, thick lines hold half of the posterior, thin lines `prob` of it. Methods agree if the lines of a
    parameter look the same.

    Parameters
    ----------
    posteriors
        DataTrees by method.
    parameters
        Labels such as `w[glu]`, all of which are shown; None for those on which the methods differ most.
    most
        How many of these at most.
    prob
        Probability of an interval.
    standardised
        Whether to show each parameter less the reference's mean, in its sd. None does so where the parameters' scales
        are too different for one axis.
    """
    if not INNER_PROB < prob < 1:
        raise DataError(f"`prob` must lie between {INNER_PROB} and 1; got {prob:g}.")
    draws = read_draws(posteriors, parameters)
    chosen, left_out = most_different(draws, most if parameters is None else len(parameters))
    reference_draws = draws.by_method[draws.reference]
    ends = np.array([np.quantile(reference_draws[label], [(1 - prob) / 2, (1 + prob) / 2]) for label in chosen])
    if standardised is None:
        standardised = bool(np.ptp(ends) > LONGEST_AXIS * np.median(ends[:, 1] - ends[:, 0]))
    n_methods = len(draws.by_method)
    figure, [[axes]] = new_figure(0.9 + len(chosen) * max(0.18, 0.1 + 0.075 * n_methods))
    q = [(1 - prob) / 2, (1 - INNER_PROB) / 2, 0.5, (1 + INNER_PROB) / 2, (1 + prob) / 2]
    values = np.array([[np.quantile(own[label], q) for label in chosen] for own in draws.by_method.values()])
    if standardised:
        center = np.array([reference_draws[label].mean() for label in chosen])
        scale = np.array([reference_draws[label].std() for label in chosen])
        values = (values - center[:, None]) / np.where(scale > 0, scale, 1.0)[:, None]
    draw_forest(figure, axes, values, [color for color, _ in method_styles(draws.by_method).values()])
    row_axis(axes, [draws.names[label] for label in chosen])
    axes.axvline(0, color=GREY, linewidth=0.8, zorder=1)
    variable = {label.split("[")[0] for label in chosen}
    axis_label = f"value of {drawn(plain(variable.pop()))}" if len(variable) == 1 else "value of the parameter"
    axes.set_xlabel(
        f"difference from the mean of {drawn(plain(draws.reference))}, in its sd" if standardised else axis_label
    )
    _method_legend(figure, draws, dashed=False)
    note(figure, left_out)
    caption = (
        f"Dots are posterior medians, thick lines hold {100 * INNER_PROB:.0f} % and thin lines {100 * prob:.0f} % of "
        "the posterior; methods agree where the lines of a parameter look alike."
    )
    if standardised:
        caption += f" Each parameter is shown less its mean by {plain(draws.reference)}, in posterior sds."
    caption += f" {left_out}." if left_out else ""
    alt = f"Intervals of {len(chosen)} parameters by {_list_methods(draws)}. {_describe_difference(draws)}"
    return Plot(figure, caption, alt)


@styled
def plot_pair(
    posteriors: "Mapping[str, xr.DataTree]", x: str, y: str, *, shares: tuple[float, float] = (0.5, 0.9)
) -> Plot:
    """Show two parameters together: regions that hold 50 and 90 % of each method's posterior, over draws of the best.

    Outlines of a Gaussian approximation are ellipses; those of a curved or skewed posterior are not.

    Parameters
    ----------
    posteriors
        DataTrees by method.
    x, y
        Labels of two parameters, such as `w[glu]`.
    shares
        Posterior probability that each outline holds.
    """
    draws = read_draws(posteriors, (x, y))
    if x == y or not 0 < min(shares) <= max(shares) < 1:
        raise DataError(f"`x` and `y` must differ and `shares` lie in (0, 1); got {x!r}, {y!r} and {shares}.")
    styles = method_styles(draws.by_method)
    figure, [[axes]] = new_figure(4.4)
    pairs = {method: np.stack([own[x].ravel(), own[y].ravel()]) for method, own in draws.by_method.items()}
    reference_pair, color = pairs[draws.reference], styles[draws.reference][0]
    step = max(1, reference_pair.shape[1] // PAIR_POINTS)
    axes.plot(*reference_pair[:, ::step], ".", color=color, markersize=3, alpha=0.25, rasterized=True)
    low = np.min([np.quantile(pair, TAILS[0], axis=1) for pair in pairs.values()], axis=0)
    high = np.max([np.quantile(pair, TAILS[1], axis=1) for pair in pairs.values()], axis=0)
    grid = np.meshgrid(*(np.linspace(a, b, PAIR_GRID) for a, b in zip(low, high, strict=True)))
    for method, pair in pairs.items():
        thinned = pair[:, :: max(1, pair.shape[1] // KDE_DRAWS)]
        if np.linalg.matrix_rank(np.cov(thinned)) < 2:
            raise DataError(f"`x` and `y` must not determine each other; {x!r} and {y!r} do by {method!r}.")
        kde = gaussian_kde(thinned)
        # The region of highest density that holds a share s is where the density exceeds its (1 − s)-quantile.
        thresholds = np.quantile(kde(thinned), sorted(1 - s for s in shares))
        color, dashes = styles[method]
        density = kde(np.stack([g.ravel() for g in grid])).reshape(grid[0].shape)
        axes.contour(*grid, density, levels=thresholds, colors=color, linestyles=[dashes], linewidths=[1.2, 1.8])
    # Both axes are named in full, as there is room.
    names = labels([x, y], 60, inches=3.4)
    axes.set(xlabel=names[0], ylabel=names[1], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    _method_legend(figure, draws)
    masses = " and ".join(f"{100 * s:.0f} %" for s in shares)
    correlation = float(np.corrcoef(reference_pair[0], reference_pair[1]).flat[1])
    caption = (
        f"Outlines hold {masses} of each posterior, points are draws of {plain(draws.reference)}; where they differ, "
        "the approximation misses the shape of the posterior, not only its middle."
    )
    alt = (
        f"Joint posterior of {plain(x, 40)} and {plain(y, 40)} by {_list_methods(draws)}; by {plain(draws.reference)} "
        f"their correlation is {correlation:.2f}."
    )
    return Plot(figure, caption, alt)


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _estimate_density(x: Floats) -> tuple[Floats, Floats]:
    """Return a grid between the TAILS quantiles of draws (S,), and the density on it."""
    from arviz_stats.base import array

    low, high = np.quantile(x, TAILS)
    if not high - low > CONSTANT * max(abs(low), abs(high)):
        return np.array([low, low]), np.array([0.0, 1.0])  # a constant: a bar
    # Scaled, because ArviZ takes a range below 1e-15 for constant.
    arviz: Any = array.array_stats
    center, scale = float(np.median(x)), float(high - low)
    grid, density, _ = arviz.kde((x - center) / scale)
    grid, density = center + scale * grid, density / scale
    inside = (grid >= low) & (grid <= high)
    return np.asarray(grid[inside]), np.asarray(density[inside])


def _method_legend(figure: Any, draws: Draws, *, dashed: bool = True) -> None:
    """Put a legend of the methods above the axes."""
    styles = method_styles(draws.by_method)
    handles = [Line2D([], [], color=color, linestyle=dashes if dashed else "-") for color, dashes in styles.values()]
    legend(figure, handles, labels(draws.by_method))


def _list_methods(draws: Draws) -> str:
    """Return the names of at most six methods for a sentence."""
    return listing(list(draws.by_method), 6)


def _describe_difference(draws: Draws) -> str:
    """Return a sentence with the largest difference of a posterior mean from that of the reference."""
    reference_draws = draws.by_method[draws.reference]
    differences = {
        (abs(float(own_draws[label].mean() - x.mean())) / float(x.std()), method, label)
        for method, own_draws in draws.by_method.items()
        if method != draws.reference
        for label, x in reference_draws.items()
        if x.std() > 0
    }
    if not differences:
        return "There is one method."
    size, method, label = max(differences)
    return (
        f"The largest difference of means from {plain(draws.reference)} is {size:.2f} posterior sd "
        f"({plain(method)}, {plain(label, 40)})."
    )
