"""Classes in the plane: decision regions, Gaussian densities with their boundaries, the discriminant projection.

More than two features are projected to the directions that separate the classes best, in units of the spread within
classes. Decision regions show the probabilities that the model of all features has on that plane.
"""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.evaluation.reliability import check_probabilities
from bayes_gda.families.gaussian.discriminant import Gaussians, plug_in_lda
from bayes_gda.reporting.plots.plane import Plane, default_plane, independent_features, with_features
from bayes_gda.reporting.plots.style import (
    BLACK,
    GREY,
    MANY_POINTS,
    Plot,
    class_style,
    counted,
    drawn,
    labels,
    legend,
    listing,
    new_figure,
    note,
    plain,
    styled,
)

# Points a side of the grid: 40 000 probabilities, and finer than a screen shows at this size.
GRID = 200
# Share of a class that its ellipse holds if it is Gaussian; outlines of three shares for densities.
ELLIPSE, SHARES = 0.9, (0.5, 0.9, 0.99)
# Rows drawn: more of them hide each other.
ROWS = 1500
# How deep a region is coloured where its class is certain: points of the same colour still stand out.
DEPTH = 0.42
LOADINGS = 10  # features named beside a projection


# ── Plots ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@styled
def plot_regions(
    probabilities: Callable[[Floats], ArrayLike], data: Dataset, *, plane: Plane | None = None, model: str = "The model"
) -> Plot:
    """Show the most probable class at each point of the plane, and its probability.

    The most probable class colours a region, the deeper the larger its probability; black lines are the decision
    boundaries; rows with a black ring are misclassified.

    Parameters
    ----------
    probabilities
        Function of rows (n, d) that returns class probabilities (n, K).
    data
        Rows to draw; with one feature, curves of the probabilities are shown.
    plane
        Plane to draw; None for the features if there are two, else the discriminant plane.
    model
        Name for the caption.
    """
    P = check_probabilities(probabilities(data.X))
    if P.shape != (data.n, data.K):
        raise DataError(f"`probabilities` must return shape {(data.n, data.K)} for the rows; got {P.shape}.")
    misclassified = P.argmax(axis=1) != data.y
    accuracy = f"{plain(model)} classifies {int((~misclassified).sum())} of {counted(data.n, 'row')} correctly"
    if data.d == 1:
        return _plot_curves(probabilities, data, accuracy)
    plane = default_plane(data) if plane is None else plane
    figure, [[axes]] = new_figure(4.8)
    Z = plane.to_plane(data.X)
    grid, extent = _view_grid(Z)
    grid_P = check_probabilities(probabilities(plane.to_space(grid.reshape(-1, 2)))).reshape(GRID, GRID, data.K)
    axes.imshow(
        _color_regions(grid_P),
        extent=extent,
        origin="lower",
        aspect="auto",
        interpolation="bilinear",
        zorder=0,
        rasterized=True,
    )
    for k in range(data.K if data.K > 2 else 1):
        runner_up = np.delete(grid_P, k, axis=2).max(axis=2)
        margin = grid_P[..., k] - runner_up
        if margin.min() < 0 < margin.max():
            axes.contour(grid[..., 0], grid[..., 1], margin, levels=[0.0], colors=BLACK, linewidths=1.1)
    drawn_rows = _draw_rows(axes, Z, data, misclassified)
    _draw_ellipses(axes, Z, data)
    axes.set(xlim=extent[:2], ylim=extent[2:], xlabel=_axis_label(plane.names[0]), ylabel=_axis_label(plane.names[1]))
    axes.grid(visible=False)
    _class_legend(figure, data, ring=True)
    note(figure, _describe_hidden_rows(Z, extent, drawn_rows))
    caption = (
        "Colour is the most probable class at each point, the deeper the more probable; black lines are where the "
        f"decision changes, ellipses hold {100 * ELLIPSE:.0f} % of a Gaussian with the class's mean and covariance, "
        "and black rings mark misclassified rows."
    )
    if plane.projected:
        caption += (
            f" The picture is a plane through {data.d} features; a row that lies off it may be decided otherwise "
            "than the colour under it."
        )
    return Plot(figure, caption, f"Decision regions of {listing(data.class_names, 6)}: {accuracy}.")


@styled
def plot_densities(
    gaussians: Gaussians, data: Dataset, *, plane: Plane | None = None, truth: Gaussians | None = None
) -> Plot:
    """Show the Gaussian densities of the classes and the boundaries between them.

    Outlines hold 50, 90 and 99 % of each class; on the black line two classes are equally probable. It is straight if
    the classes share one covariance, a conic if not.

    Parameters
    ----------
    gaussians
        Parameters of the classes: plug-in, posterior mean or a draw.
    data
        Rows to draw.
    plane
        Plane to draw; None for the features if there are two, else the discriminant plane. Densities are projected.
    truth
        Parameters that the data were simulated from; their boundary is dashed.
    """
    if gaussians.mu.shape != (data.K, data.d):
        raise DataError(f"`gaussians` must have means of shape {(data.K, data.d)}; got {gaussians.mu.shape}.")
    plane = default_plane(data) if plane is None else plane
    planar = _project_gaussians(gaussians, plane)
    figure, [[axes]] = new_figure(4.8)
    Z = plane.to_plane(data.X)
    grid, extent = _view_grid(Z)
    drawn_rows = _draw_rows(axes, Z, data, np.zeros(data.n, dtype=bool), alpha=0.35)
    D2 = planar.mahalanobis(grid.reshape(-1, 2)).reshape(GRID, GRID, data.K)
    for k in range(data.K):
        # A share s of a Gaussian in the plane lies within D² = −2 log(1 − s).
        levels = [-2 * np.log1p(-s) for s in SHARES]
        color = class_style(k)[0]
        axes.contour(*np.moveaxis(grid, 2, 0), D2[..., k], levels=levels, colors=color, linewidths=[1.8, 1.3, 0.8])
        axes.plot(*planar.mu[k], marker="+", color=BLACK, markersize=9, markeredgewidth=1.6, zorder=5)
    _draw_boundaries(axes, planar, grid, BLACK, "-")
    line_handles = [Line2D([], [], color=BLACK)]
    line_names = ["boundary"]
    if truth is not None:
        _draw_boundaries(axes, _project_gaussians(truth, plane), grid, GREY, "--")
        line_handles.append(Line2D([], [], color=GREY, linestyle="--"))
        line_names.append("boundary of the truth")
    axes.set(xlim=extent[:2], ylim=extent[2:], xlabel=_axis_label(plane.names[0]), ylabel=_axis_label(plane.names[1]))
    _class_legend(figure, data, line_handles=line_handles, line_names=line_names)
    note(figure, _describe_hidden_rows(Z, extent, drawn_rows))
    shape = (
        "straight, as the classes share one covariance" if planar.shared else "conics, as each class has its covariance"
    )
    caption = (
        "Outlines hold 50, 90 and 99 % of each class's Gaussian, with a cross at its mean; on the black lines two "
        f"classes are equally probable. These are {shape}."
    )
    caption += f" The {data.d} features are projected to a plane." if plane.projected else ""
    return Plot(figure, caption, f"Gaussian densities of {listing(data.class_names, 6)}; the boundaries are {shape}.")


@styled
def plot_projection(data: Dataset, *, gaussians: Gaussians | None = None) -> Plot:
    """Show the rows along the directions that separate the classes best, and the features that define these directions.

    Distances are in standard deviations within classes, so classes whose means are 4 apart hardly overlap. A long bar
    marks a feature of which one standard deviation moves a row far along the direction.

    Parameters
    ----------
    data
        Rows with two features or more.
    gaussians
        LDA parameters; None for plug-in estimates.
    """
    given = data
    if gaussians is None:
        features = independent_features(data)
        data = with_features(data, features) if len(features) < data.d else data
    lda = plug_in_lda(Moments.from_arrays(data.X, data.y, data.K)) if gaussians is None else gaussians
    projection = lda.projection()
    Z, r = projection(data.X), min(2, len(projection.spread))
    share = projection.spread / projection.spread.sum()
    # A feature moves a row by its within-class sd times the direction.
    loading = projection.directions[:, :r] * np.sqrt(np.diag(lda.Sigma))[:, None]
    top_features = np.argsort(-np.abs(loading).max(axis=1), kind="stable")[:LOADINGS]
    figure, [[axes, bars]] = new_figure(3.9, 1, 2, width_ratios=[1.7, 1])
    if r == 1:
        edges = np.histogram_bin_edges(Z[:, 0], bins=40)
        for k in range(data.K):
            color, _ = class_style(k)
            axes.hist(Z[data.y == k, 0], bins=edges, color=color, alpha=0.35)
            axes.hist(Z[data.y == k, 0], bins=edges, color=color, histtype="step", linewidth=1.3)
            axes.axvline(projection.means[k, 0], color=color, linestyle="--", linewidth=1)
        axes.set(xlabel="discriminant direction 1 (sd within classes)", ylabel="rows")
        drawn_rows = data.n
    else:
        drawn_rows = _draw_rows(axes, Z[:, :2], data, np.zeros(data.n, dtype=bool))
        axes.plot(*projection.means[:, :2].T, "+", color=BLACK, markersize=10, markeredgewidth=1.8, zorder=5)
        for i, setter in enumerate((axes.set_xlabel, axes.set_ylabel)):
            setter(f"direction {i + 1} ({100 * share[i]:.0f} % of the spread of means)")
    height = 0.8 / r
    for i in range(r):
        position = np.arange(len(top_features)) + (i - (r - 1) / 2) * height
        bars.barh(
            position, loading[top_features, i], height=height, color=(GREY, "#BBBBBB")[i], label=f"direction {i + 1}"
        )
    bars.set_yticks(np.arange(len(top_features)), labels([data.feature_names[j] for j in top_features], 20))
    bars.set_ylim(len(top_features) - 0.4, -0.6)
    bars.axvline(0, color=BLACK, linewidth=0.7)
    bars.set_xlabel("shift by one sd of the feature")
    bar_handles = [Line2D([], [], color=color, linewidth=6) for color in (GREY, "#BBBBBB")[:r]]
    _class_legend(
        figure, data, line_handles=bar_handles, line_names=[f"feature's part in direction {i + 1}" for i in range(r)]
    )
    omissions = [f"{len(top_features)} of {data.d} features shown"] if len(top_features) < data.d else []
    omissions += [f"{drawn_rows} of {data.n} rows shown"] if drawn_rows < data.n else []
    note(figure, "; ".join(omissions))
    caption = (
        "Left, the rows along the directions that separate the classes best, in standard deviations within classes; "
        f"{'dashed lines' if r == 1 else 'crosses'} are class means. Right, how far one standard deviation of a "
        "feature moves a row along them"
    )
    caption += (
        f", for the {len(top_features)} of {data.d} features that count most." if len(top_features) < data.d else "."
    )
    if data.d < given.d:
        sums = [plain(name, 40) for name in given.feature_names if name not in data.feature_names]
        caption += f" Left out as linear functions of other features: {listing(sums, 6)}."
    alt = (
        f"Discriminant projection of {data.d} features and {data.K} classes: direction 1 has {100 * share[0]:.0f} % of "
        f"the spread of the means; most important is {plain(data.feature_names[top_features[0]], 40)}."
    )
    return Plot(figure, caption, alt)


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _axis_label(name: str) -> str:
    """Return the name of an axis as text that matplotlib can draw, at most 60 characters."""
    return drawn(plain(name, 60))


def _view_grid(Z: Floats) -> tuple[Floats, tuple[float, float, float, float]]:
    """Return the grid (GRID, GRID, 2) that covers the rows with some padding, and its left, right, low and high end."""
    low, high = Z.min(axis=0), Z.max(axis=0)
    padding = 0.06 * np.where(high > low, high - low, 1.0)
    # A few rows far away would leave no room for the others: the view ends at a third of the middle 99 % beyond them.
    low_quantile, high_quantile = np.quantile(Z, [0.005, 0.995], axis=0)
    span = (high_quantile - low_quantile) / 3 + (high_quantile == low_quantile) * padding
    low, high = np.maximum(low - padding, low_quantile - span), np.minimum(high + padding, high_quantile + span)
    x, y = (np.linspace(a, b, GRID) for a, b in zip(low, high, strict=True))
    return np.stack(np.meshgrid(x, y), axis=2), (float(x[0]), float(x[-1]), float(y[0]), float(y[-1]))


def _describe_hidden_rows(Z: Floats, extent: tuple[float, float, float, float], drawn_rows: int) -> str:
    """Return a remark how many rows were drawn and how many lie outside of the view; empty if all are shown."""
    x, y = Z.T
    inside = (x >= extent[0]) & (x <= extent[1]) & (y >= extent[2]) & (y <= extent[3])
    remarks = [f"{drawn_rows} of {len(Z)} rows drawn"] if drawn_rows < len(Z) else []
    if outside := int((~inside).sum()):
        remarks.append(f"{counted(outside, 'row')} outside of the picture")
    return "; ".join(remarks)


def _color_regions(P: Floats) -> Floats:
    """Return colours (…, 3): that of the most probable class, the deeper the larger its probability, white at 1/K."""
    K = P.shape[-1]
    colors = np.array([to_rgb(class_style(k)[0]) for k in range(K)])
    certainty = (P.max(axis=-1, keepdims=True) - 1 / K) / (1 - 1 / K)
    return np.asarray(1 - DEPTH * certainty * (1 - colors[P.argmax(axis=-1)]))


def _draw_rows(axes: Any, Z: Floats, data: Dataset, misclassified: Any, alpha: float = 0.9) -> int:
    """Draw at most ROWS rows by class, misclassified ones with a black ring, and return how many were drawn."""
    row_index = np.arange(data.n)
    if data.n > ROWS:
        row_index = np.sort(np.random.default_rng(0).choice(data.n, ROWS, replace=False))
    size = float(np.clip(6000 / len(row_index), 7, 22))
    for k in range(data.K):
        color, marker = class_style(k)
        class_rows = row_index[data.y[row_index] == k]
        edge_colors = np.where(misclassified[class_rows, None], [[0, 0, 0, 1]], [[1, 1, 1, 0.8]])
        edge_widths = np.where(misclassified[class_rows], 1.0, 0.3)
        axes.scatter(
            *Z[class_rows].T,
            s=size,
            color=color,
            marker=marker,
            edgecolors=edge_colors,
            linewidths=edge_widths,
            alpha=alpha,
            zorder=3,
            rasterized=len(row_index) > MANY_POINTS,
        )
    return len(row_index)


def _draw_ellipses(axes: Any, Z: Floats, data: Dataset) -> None:
    """Draw for each class the ellipse that holds ELLIPSE of a Gaussian with the mean and covariance of its rows."""
    angle = np.linspace(0, 2 * np.pi, 121)
    circle = np.sqrt(-2 * np.log1p(-ELLIPSE)) * np.column_stack([np.cos(angle), np.sin(angle)])
    for k in range(data.K):
        class_rows = Z[data.y == k]
        if len(class_rows) < 3:
            continue  # two rows lie on a line
        values, vectors = np.linalg.eigh(np.cov(class_rows.T))
        outline = class_rows.mean(axis=0) + circle @ (vectors * np.sqrt(np.maximum(values, 0))).T
        axes.plot(*outline.T, color=class_style(k)[0], linewidth=1.6, zorder=4)


def _draw_boundaries(axes: Any, planar: Gaussians, grid: Floats, color: str, dashes: str) -> None:
    """Draw the boundary δ_i = δ_j of each pair of classes, where no third class is more probable."""
    points = grid.reshape(-1, 2)
    delta = planar.log_joint(points)
    for i, j in combinations(range(len(planar.mu)), 2):
        others = np.delete(delta, [i, j], axis=1).max(axis=1, initial=-np.inf)
        hidden = others > np.maximum(delta[:, i], delta[:, j])
        difference = np.ma.masked_array(planar.boundary(i, j)(points), hidden)
        if difference.count() and difference.min() < 0 < difference.max():
            axes.contour(
                *np.moveaxis(grid, 2, 0),
                difference.reshape(GRID, GRID),
                levels=[0.0],
                colors=color,
                linestyles=dashes,
                linewidths=1.6,
                zorder=4,
            )


def _project_gaussians(gaussians: Gaussians, plane: Plane) -> Gaussians:
    """Return the marginal distributions of the classes in the coordinates of the plane."""
    return Gaussians(gaussians.pi, plane.to_plane(gaussians.mu), plane.forward.T @ gaussians.Sigma @ plane.forward)


def _plot_curves(probabilities: Callable[[Floats], ArrayLike], data: Dataset, accuracy: str) -> Plot:
    """Return a plot of the class probabilities along the only feature, with the rows below them."""
    figure, [[axes]] = new_figure(3.2)
    x = np.linspace(data.X.min(), data.X.max(), 400)
    P = check_probabilities(probabilities(x[:, None]))
    for k in range(data.K):
        color, _ = class_style(k)
        axes.plot(x, P[:, k], color=color)
        class_rows = data.X[data.y == k, 0]
        axes.plot(
            class_rows, np.full(len(class_rows), -0.03 - 0.03 * k), "|", color=color, markersize=5, rasterized=True
        )
    axes.set(xlabel=_axis_label(data.feature_names[0]), ylabel="probability of the class")
    _class_legend(figure, data)
    caption = "Lines are the probabilities of the classes along the feature; ticks below are the rows of each class."
    return Plot(figure, caption, f"Class probabilities along {plain(data.feature_names[0], 40)}: {accuracy}.")


def _class_legend(
    figure: Any,
    data: Dataset,
    *,
    ring: bool = False,
    line_handles: list[Line2D] | None = None,
    line_names: list[str] | None = None,
) -> None:
    """Put a legend of the classes above the axes, after further lines or, with `ring`, the mark of missed classes."""
    handles = []
    for k in range(data.K):
        color, marker = class_style(k)
        handles.append(Line2D([], [], color=color, marker=marker, linestyle="none", markersize=5))
    texts = labels(data.class_names)
    if ring:
        line_handles = [Line2D([], [], marker="o", markerfacecolor="none", markeredgecolor=BLACK, linestyle="none")]
        line_names = ["misclassified"]
    legend(figure, [*(line_handles or []), *handles], [*(line_names or []), *texts])
