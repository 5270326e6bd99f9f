"""Predicted probabilities: compared between methods, with their intervals, and compared with the outcomes."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.evaluation.reliability import check_forecasts, check_probabilities
from bayes_gda.prediction.effects import PartialEffect
from bayes_gda.reporting.plots.posteriors import best_method
from bayes_gda.reporting.plots.style import (
    BLACK,
    FONT,
    GREY,
    MANY_POINTS,
    MARKERS,
    Plot,
    class_style,
    counted,
    drawn,
    labels,
    legend,
    listing,
    method_styles,
    new_figure,
    note,
    plain,
    styled,
)

# Points a method: beyond, they only lie on each other.
POINTS = 3000
# Rows with an interval of their own: each has then about 1.5 pixels at page width.
INTERVALS = 300
# Strips of a separation plot, and bars in one: at page width a bar is then a pixel of 200 dpi.
STRIPS, BARS = 6, 1300


@styled
def plot_predictions(probabilities: Mapping[str, ArrayLike], *, reference: str | None = None) -> Plot:
    """Show the probabilities of each method against those of the reference, and their differences.

    On the left, points on the diagonal agree. The right panel has their differences from the reference in percentage
    points: it shows where a method is over- or underconfident.

    Parameters
    ----------
    probabilities
        (n, K) class probabilities of the same rows, by method; for two classes class 1 is shown, else all of them.
    reference
        Method on the horizontal axis; None for the best there is: exact, mcmc, nuts, corrected, …, else the first.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_predictions
    >>> from bayes_gda import BayesianLDA
    >>> train, test = load_example("pima").split()
    >>> model = BayesianLDA().fit(train)
    >>> plot_predictions({"LDA": model.predict_proba(test), "shares": [train.shares] * test.n}).alt
    'Probabilities of 133 rows and 2 classes; largest difference from LDA: shares 0.653.'
    """
    P = {method: check_probabilities(value) for method, value in probabilities.items()}
    if len(P) < 2 or len({p.shape for p in P.values()}) > 1:
        shapes = {method: p.shape for method, p in P.items()}
        raise DataError(f"`probabilities` must be of two methods or more, for the same rows and classes; got {shapes}.")
    if reference is None:
        reference = best_method(P)
    elif reference not in P:
        raise DataError(f"`reference` must be one of {', '.join(map(repr, P))}; got {reference!r}.")
    n, K = P[reference].shape
    row_index = _select_rows(P, reference, max(1, POINTS // (1 if K == 2 else K)))
    p_of = {method: p[row_index, 1] if K == 2 else p[row_index].ravel() for method, p in P.items()}
    p_reference = p_of.pop(reference)
    others = list(p_of)
    styles = method_styles(others)
    figure, [[left, right]] = new_figure(3.5, 1, 2)
    left.plot([0, 1], [0, 1], color=GREY, linewidth=0.9)
    right.axhline(0, color=GREY, linewidth=0.9)
    handles = []
    # Furthest from the reference first, so that the others are not hidden under it.
    for method in sorted(others, key=lambda name: -float(np.abs(p_of[name] - p_reference).max())):
        marker_style: dict[str, Any] = {
            "color": styles[method][0],
            "marker": MARKERS[others.index(method) % len(MARKERS)],
            "linestyle": "none",
            "markersize": 3.2,
            "markeredgewidth": 0,
            "alpha": 0.65,
            "rasterized": len(p_reference) > MANY_POINTS // 2,
        }
        p = p_of[method]
        left.plot(p_reference, p, **marker_style)
        right.plot(p_reference, 100 * (p - p_reference), **marker_style)
        handles.append((others.index(method), Line2D([], [], **marker_style | {"alpha": 1.0, "markersize": 5})))
    name = drawn(plain(reference))
    left.set(
        xlabel=f"probability by {name}", ylabel="probability by the method", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02)
    )
    right.set(xlabel=f"probability by {name}", ylabel="difference, percentage points", xlim=(-0.02, 1.02))
    legend(figure, [handle for _, handle in sorted(handles, key=lambda pair: pair[0])], labels(others))
    note(figure, f"{len(row_index)} of {n} rows shown, those that differ most among them" if len(row_index) < n else "")
    largest_difference = {method: float(np.abs(p - p_reference).max()) for method, p in p_of.items()}
    worst = max(largest_difference, key=lambda method: largest_difference[method])
    caption = (
        f"Probabilities against those of {plain(reference)}: left as they are, right their difference. Points on the "
        "grey lines agree."
    )
    figures = ", ".join(f"{plain(method)} {value:.3f}" for method, value in largest_difference.items())
    alt = (
        f"Probabilities of {counted(n, 'row')} and {K} classes; largest difference from {plain(reference)}: {figures}."
    )
    return Plot(
        figure,
        f"{caption} {plain(worst)} is furthest away, by up to {100 * largest_difference[worst]:.1f} points.",
        alt,
    )


def _select_rows(P: Mapping[str, Floats], reference: str, most: int) -> Any:
    """Return the indices of about `most` rows, evenly spread, and for each method of the row that differs most."""
    n = len(P[reference])
    evenly_spread = np.linspace(0, n - 1, min(n, most)).round().astype(int)
    worst = [int(np.abs(p - P[reference]).max(axis=1).argmax()) for p in P.values()]
    return np.unique([*evenly_spread, *worst])


@styled
def plot_intervals(
    probability: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    y: ArrayLike | None = None,
    class_name: Any = "the class",
    prob: float = 0.9,
    binary: bool = True,
) -> Plot:
    """Show the probability of a class for each row with its interval, rows sorted.

    A long line marks a row whose probability is uncertain under the posterior. If the posterior is concentrated, the
    lines are short and the points form an S.

    Parameters
    ----------
    probability, lower, upper
        (n,) probability of one class, and the ends of its interval.
    y
        (n,) whether the row is of the class; None if not known.
    class_name
        Name of the class.
    prob
        Posterior probability that the intervals hold, for the caption.
    binary
        Whether there are two classes, so that the more probable one changes at one half.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_intervals
    >>> from bayes_gda import BayesianLDA
    >>> train, test = load_example("pima").split()
    >>> model = BayesianLDA().fit(train)
    >>> P, limits = model.predict_proba(test), model.predict_interval(test)
    >>> plot_intervals(P[:, 1], *limits[:, 1].T, y=test.y, class_name="Yes").alt
    'Intervals of the probability of Yes for 133 rows: median width 0.150, largest 0.413, 20 across one half.'
    """
    p, low, high = (np.asarray(a, dtype=np.float64) for a in (probability, lower, upper))
    if p.ndim != 1 or not len(p) or not p.shape == low.shape == high.shape:
        raise DataError(f"`probability`, `lower`, `upper` must be (n,); got {p.shape}, {low.shape} and {high.shape}.")
    if not ((low >= 0) & (low <= high) & (high <= 1) & (p >= 0) & (p <= 1)).all():
        raise DataError("`lower` ≤ `upper` and `probability` must be probabilities between 0 and 1.")
    is_class = None if y is None else np.asarray(y).astype(bool)
    if is_class is not None and is_class.shape != p.shape:
        raise DataError(f"`y` must have one entry for each of the {len(p)} rows; got shape {is_class.shape}.")
    order = np.argsort(p, kind="stable")
    # Evenly spread over the ranks, with both ends.
    row_index = order[np.unique(np.linspace(0, len(p) - 1, min(len(p), INTERVALS)).round().astype(int))]
    rank = np.arange(1, len(row_index) + 1)
    figure, [[axes]] = new_figure(3.3)
    name = drawn(plain(class_name))
    groups = [(np.ones(len(row_index), bool), GREY, "o", "")]
    if is_class is not None:
        groups = [
            (is_class[row_index], *class_style(1), f"is {name}"),
            (~is_class[row_index], *class_style(0), "is not"),
        ]
    width = float(np.clip(200 / len(row_index), 0.6, 3))
    handles = []
    for mask, color, marker, _ in groups:
        axes.vlines(rank[mask], low[row_index][mask], high[row_index][mask], color=color, alpha=0.45, linewidth=width)
        handles += axes.plot(rank[mask], p[row_index][mask], marker, color=color, markersize=2.6)
    if binary:
        axes.axhline(0.5, color=GREY, linewidth=0.8, linestyle="--")
    axes.set(xlabel="rows, by their probability", ylabel=f"probability of {name}", ylim=(-0.02, 1.02))
    axes.set_xlim(0, len(row_index) + 1)
    if is_class is not None:
        legend(figure, handles, [text for *_, text in groups])
    note(figure, f"{len(row_index)} of {len(p)} rows shown, evenly spread" if len(row_index) < len(p) else "")
    caption = (
        f"Probability of {plain(class_name)} for each row, lowest first; lines are intervals that hold "
        f"{100 * prob:.0f} % of the posterior."
    )
    alt = (
        f"Intervals of the probability of {plain(class_name)} for {counted(len(p), 'row')}: median width "
        f"{np.median(high - low):.3f}, largest {np.max(high - low):.3f}"
    )
    if binary:
        crossing = int(((low < 0.5) & (high > 0.5)).sum())
        crosses = f"{counted(crossing, 'interval')} of {len(p)} {'crosses' if crossing == 1 else 'cross'} one half"
        caption += f" {crosses}: there the more probable class is not certain."
        alt += f", {crossing} across one half"
    return Plot(figure, caption, f"{alt}.")


@styled
def plot_separation(P: ArrayLike, y: ArrayLike, *, class_names: Sequence[Any] | None = None) -> Plot:
    """Show rows sorted by their probability of a class, dark where the row is of the class.

    A model that separates well has its dark bars on the right, where the black line (the probability) is high. The
    triangle is where the dark bars would begin if all of them, as many as the model expects, stood on the right.
    After Greenhill, Ward & Sacks (2011), The separation plot, American Journal of Political Science 55.

    Parameters
    ----------
    P, y
        (n, K) probabilities and (n,) class codes; for two classes class 1 is shown, else one strip per class.
    class_names
        (K,) names; by default the codes.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_separation
    >>> from bayes_gda import BayesianLDA
    >>> train, test = load_example("pima").split()
    >>> model = BayesianLDA().fit(train)
    >>> plot_separation(model.predict_proba(test), test.y).alt
    'Separation of 1; area under ROC: 1 0.827.'
    """
    P, codes = check_forecasts(P, y)
    n, K = P.shape
    names = list(range(K)) if class_names is None else list(class_names)
    if len(names) != K:
        raise DataError(f"`class_names` must hold {K} names, one for each column of `P`; got {len(names)}.")
    auc = {k: _roc_area(P[:, k], codes == k) for k in range(K)}
    # Of many classes the worst separated; those without rows have nothing to show.
    present = [k for k in ([1] if K == 2 else range(K)) if (codes == k).any() or K == 2]
    shown = sorted(sorted(present, key=lambda k: auc[k])[:STRIPS])
    figure, grid = new_figure(0.9 + 0.95 * len(shown), len(shown), 1, sharex=True)
    texts = labels(names)
    for [axes], k in zip(grid, shown, strict=True):
        order = np.argsort(P[:, k], kind="stable")
        p, is_class = P[order, k], (codes[order] == k).astype(np.float64)
        # Equal bars; if there are more rows than pixels, a bar has the share of its rows.
        edges = np.linspace(0, n, min(n, BARS) + 1).round().astype(int)
        share = np.add.reduceat(is_class, edges[:-1]) / np.diff(edges)
        color, _ = class_style(k)
        shades = LinearSegmentedColormap.from_list("share", ["#F4F4F4", color])
        axes.imshow(
            share[None, :], extent=(0, n, 0, 1), aspect="auto", cmap=shades, vmin=0, vmax=1, interpolation="nearest"
        )
        axes.plot(np.arange(n) + 0.5, p, color=BLACK, linewidth=1.3, drawstyle="steps-mid", rasterized=n > MANY_POINTS)
        axes.plot([n - p.sum()], [1.06], "v", color=BLACK, markersize=6, clip_on=False, zorder=5)
        axes.set_title(
            f"{texts[k]}: {int(is_class.sum())} rows, {p.sum():.1f} expected, AUC {_format_auc(auc[k])}",
            fontsize=FONT,
            pad=9,
        )
        axes.set(xlim=(0, n), ylim=(0, 1), yticks=[0, 1])
        axes.grid(visible=False)
    grid[-1, 0].set_xlabel("rows, by their probability of the class")
    left_out = f"{len(shown)} of {len(present)} classes shown, the worst separated" if len(shown) < len(present) else ""
    note(figure, left_out)
    caption = (
        "Rows sorted by their probability (black line), coloured where they are of the class; a good model has the "
        "coloured bars on the right. The triangle marks where they would begin if the expected number were all there."
    )
    caption += f" {left_out}." if left_out else ""
    figures = ", ".join(f"{plain(names[k], 40)} {_format_auc(auc[k])}" for k in shown)
    return Plot(figure, caption, f"Separation of {listing([names[k] for k in shown], 12)}; area under ROC: {figures}.")


def _format_auc(value: float) -> str:
    """Return an area with three decimals, or `undefined` if it is nan because all rows are of one class."""
    return f"{value:.3f}" if np.isfinite(value) else "undefined"


def _roc_area(p: Floats, is_class: Any) -> float:
    """Return the area under the ROC curve: the share of pairs whose row of the class has the higher p; or nan."""
    from scipy.stats import rankdata

    n1 = int(is_class.sum())
    n0 = len(is_class) - n1
    if not n1 or not n0:
        return float("nan")
    return float((rankdata(p)[is_class].sum() - n1 * (n1 + 1) / 2) / (n0 * n1))


@styled
def plot_effects(curves: Sequence[PartialEffect], best: str, prob: float = 0.9) -> Plot:
    """Show how the average probability of a class changes with one feature, a panel for each.

    The thick line is the chosen model's, with its interval; of two classes the thin lines are those of other models,
    of more classes there is a line for each class.

    Parameters
    ----------
    curves
        Partial effects, features one after the other.
    best
        The chosen model.
    prob
        Posterior probability of the bands.
    """
    if not curves:
        raise DataError("`curves` must hold at least one partial effect; got none. Two-valued features have none.")
    features = list(dict.fromkeys(curve.feature for curve in curves))
    classes = list(dict.fromkeys(curve.class_name for curve in curves))
    models = sorted(dict.fromkeys(curve.model for curve in curves), key=lambda name: name != best)
    keys = classes if len(classes) > 1 else models
    colors = {key: class_style(k)[0] for k, key in enumerate(keys)}
    columns = min(3, len(features))
    rows = -(-len(features) // columns)
    figure, grid = new_figure(0.6 + 1.6 * rows, rows, columns, sharey=True)
    for axes, feature in zip(grid.flat, features, strict=False):
        for curve in (curve for curve in curves if curve.feature == feature):
            color = colors[curve.class_name if len(classes) > 1 else curve.model]
            own = curve.model == best
            axes.plot(curve.x, curve.mean, color=color, linewidth=1.8 if own else 0.9, zorder=3 if own else 2)
            if curve.lower is not None and curve.upper is not None:
                axes.fill_between(curve.x, curve.lower, curve.upper, color=color, alpha=0.2, linewidth=0)
        axes.set_xlabel(labels([feature], 30, inches=2.0)[0])
        axes.margins(x=0)
        axes.locator_params(axis="x", nbins=4)
        axes.xaxis.set_major_formatter("{x:.6g}")  # a common factor would stand on the label
    for axes in grid.flat[len(features) :]:
        axes.set_axis_off()
    for row in grid:
        row[0].set_ylabel("average probability")
    grid[0, 0].set_ylim(0, 1)
    if len(keys) > 1:
        legend(figure, [Line2D([], [], color=colors[key]) for key in keys], labels(keys))
    what = f"of “{plain(classes[0], 40)}”" if len(classes) == 1 else "of each class"
    caption = (
        f"Average probability {what} over training rows in which the feature is set to the value below; bands hold "
        f"{100 * prob:.0f} % of the posterior of {plain(best)}."
    )
    if len(models) > 1:
        caption += " Thin lines are other models: where they differ, the shape of the effect depends on the model."
    span = {c.feature: float(np.ptp(c.mean)) for c in curves if c.model == best and c.class_name == classes[-1]}
    strongest = max(span, key=lambda name: span[name])
    alt = (
        f"Partial effects of {listing(features, 6)}; the largest range is {span[strongest]:.2f}, of "
        f"{plain(strongest, 40)}."
    )
    return Plot(figure, caption, alt)
