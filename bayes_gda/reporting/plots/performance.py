"""How well the classes of held-out rows are told apart: confusion matrix, curves, and what each feature adds to it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import finite
from bayes_gda.errors import DataError
from bayes_gda.evaluation.performance import Performance
from bayes_gda.reporting.plots.style import (
    BLACK,
    BLUE,
    FONT,
    GREY,
    Plot,
    class_style,
    counted,
    labels,
    legend,
    listing,
    new_figure,
    note,
    plain,
    row_axis,
    styled,
    text_width,
)

# Classes of a confusion matrix whose counts can be read, and of curves that can be told apart.
MOST_CLASSES, MOST_CURVES = 20, 6
# Inches for the names of the columns, side by side with some space between them.
ROOM = 4.0
# Features of a plot of importance.
MOST_FEATURES = 25
# On a shade darker than this share of the darkest, white is read better than black.
DARK = 0.6


@styled
def plot_confusion(confusion: NDArray[np.intp], class_names: Sequence[Any]) -> Plot:
    """Show how many rows of each true class were taken for each class; shades are shares of the true class.

    Parameters
    ----------
    confusion
        (K, K) counts, rows are true classes.
    class_names
        (K,) names.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_confusion
    >>> import numpy as np
    >>> plot_confusion(np.array([[40, 10], [5, 45]]), ["no", "yes"]).alt
    'Confusion matrix: 85 of 100 rows are right; most often no is taken for yes, 10 times.'
    """
    counts = np.asarray(confusion)
    if counts.ndim != 2 or counts.shape != (len(class_names),) * 2:
        raise DataError(f"`confusion` must be (K, K) for the {len(class_names)} classes; got shape {counts.shape}.")
    # Of many classes those that are mistaken most.
    wrong = counts.sum(axis=0) + counts.sum(axis=1) - 2 * np.diag(counts)
    kept = np.sort(np.argsort(-wrong, kind="stable")[:MOST_CLASSES])
    shown = counts[np.ix_(kept, kept)]
    share = shown / np.maximum(counts[kept].sum(axis=1, keepdims=True), 1)
    names = labels([class_names[k] for k in kept], 18, inches=1.4)
    K = len(kept)
    figure, [[axes]] = new_figure(1.0 + 0.34 * max(K, 2))
    axes.imshow(
        share, cmap=LinearSegmentedColormap.from_list("shares", ["#FFFFFF", BLUE]), vmin=0, vmax=1, aspect="auto"
    )
    for (i, j), count in np.ndenumerate(shown):
        color = "#FFFFFF" if share[i, j] > DARK else BLACK
        axes.text(j, i, f"{count}", ha="center", va="center", color=color, fontsize=FONT if K <= 12 else FONT - 2)
    axes.grid(visible=False)
    # Long names of many classes have no room side by side: numbers stand for them.
    numbered = K > 4 and K * max(text_width(name) for name in names) > ROOM
    axes.set_xticks(np.arange(K), [str(k + 1) for k in range(K)] if numbered else names)
    axes.set_yticks(np.arange(K), [f"{name}  {k + 1}" for k, name in enumerate(names)] if numbered else names)
    axes.set_xlabel("most probable class")
    axes.set_ylabel("true class")
    left_out = f"{K} of {len(counts)} classes shown, those that are mistaken most" if len(counts) > K else ""
    note(figure, left_out)
    caption = (
        "Held-out rows by true class (lines) and most probable class (columns): the diagonal is right. Shades are "
        "shares of the line."
    )
    caption += " Columns have the numbers that stand behind the names." if numbered else ""
    caption += f" {left_out}." if left_out else ""
    right, total = int(np.trace(counts)), int(counts.sum())
    off = np.where(np.eye(len(counts), dtype=bool), 0, counts)
    i, j = divmod(int(off.argmax()), len(off))
    often = "once" if off.max() == 1 else f"{off.max()} times"
    worst = f"; most often {plain(class_names[i], 40)} is taken for {plain(class_names[j], 40)}, {often}"
    return Plot(figure, caption, f"Confusion matrix: {right} of {total} rows are right{worst if off.any() else ''}.")


@styled
def plot_curves(performance: Performance, class_names: Sequence[Any]) -> Plot:
    """Show ROC and precision-recall curves, one for each class against the others; of two classes the second's.

    Parameters
    ----------
    performance
        From `performance`.
    class_names
        (K,) names, as they were given there.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_curves
    >>> from bayes_gda import BayesianLDA
    >>> train, test = load_example("pima").split()
    >>> model = BayesianLDA().fit(train)
    >>> from bayes_gda.evaluation.performance import performance
    >>> scores = performance(model.predict_proba(test), test.y, class_names=test.class_names)
    >>> plot_curves(scores, test.class_names).alt
    'ROC and precision-recall curves. Yes: AUC 0.827, average precision 0.715.'
    """
    names = [str(name) for name in class_names]
    wanted = [names[1]] if len(names) == 2 else names
    known = [name for name in wanted if name in performance.curves]
    if not known:
        raise DataError("There is no curve to show: it takes rows of two classes.")
    shown = sorted(sorted(known, key=lambda name: performance.curves[name].auc)[:MOST_CURVES], key=names.index)
    figure, [[left, right]] = new_figure(3.4, 1, 2)
    handles = []
    for name in shown:
        curve, color = performance.curves[name], class_style(names.index(name))[0]
        left.plot(curve.fall_out, curve.recall, color=color, drawstyle="default")
        right.step(curve.recall, curve.precision, color=color, where="pre")
        share = curve.events / (curve.events + curve.others)
        right.axhline(share, color=color, linewidth=0.8, linestyle=(0, (1, 2)))
        handles.append(Line2D([], [], color=color))
    left.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    for axes in (left, right):
        axes.set_box_aspect(1)
        axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    left.set(title="ROC curve", xlabel="false positive rate", ylabel="recall")
    right.set(title="Precision and recall", xlabel="recall", ylabel="precision")
    legend(figure, handles, labels(shown))
    left_out = (
        f"{len(shown)} of {len(known)} classes shown, those of the smallest AUC" if len(shown) < len(known) else ""
    )
    note(figure, left_out)
    caption = (
        "Left, recall against the false positive rate as the threshold falls; the diagonal is chance. Right, precision "
        "against recall; the dotted line is the share of the class, which is chance."
    )
    caption += f" {left_out}." if left_out else ""
    figures = [
        f"{plain(name, 40)}: AUC {c.auc:.3f}, average precision {c.average_precision:.3f}"
        for name, c in ((name, performance.curves[name]) for name in shown)
    ]
    return Plot(figure, caption, f"ROC and precision-recall curves. {'; '.join(figures)}.")


@styled
def plot_importance(importances: ArrayLike, feature_names: Sequence[Any], *, score: str = "accuracy") -> Plot:
    """Show by how much a score falls when the values of a feature are permuted among the rows.

    Parameters
    ----------
    importances
        (d, R) falls of the score, one for each permutation: `importances` of scikit-learn's `permutation_importance`.
    feature_names
        (d,) names.
    score
        What was scored, for the axis.

    Examples
    --------
    >>> from sklearn.inspection import permutation_importance
    >>> from bayes_gda import BayesianLDA, load_example
    >>> from bayes_gda.reporting.plots import plot_importance
    >>> train, test = load_example("iris").split()
    >>> model = BayesianLDA().fit(train)
    >>> y = [test.class_names[k] for k in test.y]
    >>> result = permutation_importance(model, test.X, y, n_repeats=10, random_state=0)
    >>> plot_importance(result.importances, test.feature_names).alt.partition(":")[0]
    'Permutation importance of 4 features'
    """
    falls = finite("importances", importances, error=DataError)
    if falls.ndim != 2 or not falls.size or len(falls) != len(feature_names):
        raise DataError(
            f"`importances` must be (d, R) for the {len(feature_names)} features; got shape {falls.shape}. Give "
            "`importances` of scikit-learn's permutation_importance."
        )
    mean = falls.mean(axis=1)
    order = np.argsort(-mean, kind="stable")
    kept = order[:MOST_FEATURES]
    figure, [[axes]] = new_figure(0.9 + 0.24 * max(4, len(kept)))
    position = np.arange(len(kept))
    axes.plot(falls[kept].ravel(), position.repeat(falls.shape[1]), ".", color=GREY, markersize=3)
    axes.plot(mean[kept], position, "o", color=BLUE, markersize=5)
    axes.axvline(0, color=BLACK, linewidth=0.8)
    row_axis(axes, labels([feature_names[j] for j in kept], 30, inches=2.2))
    axes.set_xlabel(f"fall of the {plain(score)} when the feature is permuted")
    left_out = f"{len(kept)} of {len(mean)} features shown, the most important" if len(kept) < len(mean) else ""
    note(figure, left_out)
    caption = (
        f"Permutation importance: by how much the {plain(score)} falls when the values of a feature are permuted among "
        f"the rows. Grey dots are single permutations ({falls.shape[1]} for each feature), blue dots their means. "
        "Features that carry the same information stand in for each other, so that each may look unimportant."
    )
    caption += f" {left_out}." if left_out else ""
    first = listing([f"{plain(feature_names[j], 40)} {mean[j]:.3f}" for j in order], 3)
    return Plot(figure, caption, f"Permutation importance of {counted(len(mean), 'feature')}: {first}.")
