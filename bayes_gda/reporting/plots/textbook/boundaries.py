"""Decision boundaries of Gaussian classes as the textbook draws them: lines, conics, three classes, unequal priors."""

from itertools import combinations
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from bayes_gda.checks import Floats
from bayes_gda.data.examples import EXAMPLE_TRUTHS, GaussianTruth, simulate_gaussian
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.families.gaussian.discriminant import Gaussians, plug_in_lda, plug_in_qda
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.priors import Normal
from bayes_gda.reporting.plots.style import (
    BLACK,
    BLUE,
    GREY,
    Plot,
    class_style,
    legend,
    new_figure,
    styled,
)
from bayes_gda.reporting.plots.textbook.gaussians import GRID, mixture_density

# Three classes in the plane, at the corners of a triangle, whose covariance is not round.
THREE_CLASSES = GaussianTruth(
    np.full(3, 1 / 3), np.array([[-1.8, 0.0], [1.8, 0.3], [0.2, 3.0]]), np.array([[1.0, 0.5], [0.5, 0.8]])
)
# The same means with a covariance each: round, long, and tilted the other way.
THREE_SPREADS = GaussianTruth(
    THREE_CLASSES.pi,
    THREE_CLASSES.mu,
    np.array([[[0.5, 0.0], [0.0, 0.5]], [[1.2, 0.9], [0.9, 1.2]], [[1.5, -0.6], [-0.6, 0.5]]]),
)
THREE_ROWS = 100  # of each class
# Class probabilities of the second class, whose boundary is shown for each.
PRIORS = (0.1, 0.5, 0.9)


@styled
def plot_lda_mixture(n: int = 1000, *, random_seed: int = 0) -> Plot:
    """Show the mixture of the notes by filled contours, with simulated rows and the linear boundary.

        a = 2Σ⁻¹(μ₁ − μ₀),   b = μ₀ᵀΣ⁻¹μ₀ − μ₁ᵀΣ⁻¹μ₁,   boundary a·x + b = 0

    Parameters
    ----------
    n
        Number of rows.
    random_seed
        Seed of the rows.
    """
    truth = EXAMPLE_TRUTHS["lda-mixture"]
    data = simulate_gaussian(truth.mu, truth.Sigma, class_prob=truth.pi, n=n, random_seed=random_seed)
    figure, [[axes]] = new_figure(4.6)
    x, y, points = _grid((-4, 6), (-5, 8))
    axes.contourf(x, y, mixture_density(truth, points).reshape(x.shape), levels=9, cmap="Greys", alpha=0.45)
    _draw_classes(axes, data, alpha=0.7, edge=False)
    w, c = Gaussians(truth.pi, truth.mu, truth.Sigma).threshold_unit()
    a, b = 2 * w, 2 * c
    line_x = np.array([-4.0, 6.0])
    axes.plot(line_x, -(a[0] * line_x + b) / a[1], color=BLACK, linewidth=1.8)
    axes.set(xlim=(-4, 6), ylim=(-5, 8), xlabel="$x_1$", ylabel="$x_2$")
    _boundary_legend(figure, data, "boundary", "-")
    wrong = int(((data.X @ w + c > 0) != (data.y == 1)).sum())
    caption = (
        f"Mixture of two Gaussians with the same covariance, darker where denser, with {n} simulated rows. On the line "
        f"{a[0]:.3g} x₁ + {a[1]:.3g} x₂ − {-b:.3g} = 0 both classes are equally probable; {wrong} rows lie on the "
        "wrong side of it."
    )
    return Plot(figure, caption, f"Contours of a mixture of 2 Gaussians, {n} rows and the line between the classes.")


@styled
def plot_qda_mixture() -> Plot:
    """Show the mixture of two Gaussians with different covariances by contours, with its quadratic boundary, dashed."""
    truth = EXAMPLE_TRUTHS["qda-mixture"]
    figure, [[axes]] = new_figure(4.2)
    x, y, points = _grid((-2, 4), (-3, 5))
    contours = axes.contour(x, y, mixture_density(truth, points).reshape(x.shape), levels=8, colors=BLUE, linewidths=1)
    axes.clabel(contours, levels=contours.levels[1:-1:2], fontsize=8, fmt="%.2f")
    boundary = Gaussians(truth.pi, truth.mu, truth.Sigma).boundary(0, 1)
    axes.contour(x, y, boundary(points).reshape(x.shape), levels=[0.0], colors=BLACK, linestyles="dashed", linewidths=2)
    axes.plot(*truth.mu.T, "+", color=BLACK, markersize=9, markeredgewidth=1.6)
    axes.set(xlabel="$x_1$", ylabel="$x_2$")
    handles = [Line2D([], [], color=BLUE, linewidth=1), Line2D([], [], color=BLACK, linestyle="--")]
    legend(figure, handles, ["density of the mixture", "boundary"])
    # The conic xᵀAx + bᵀx + c = 0 is an ellipse, parabola or hyperbola by the sign of det A, here 0 but for rounding.
    determinant = float(np.linalg.det(boundary.A))
    rounding = 1e-12 * float(np.abs(boundary.A).max()) ** 2
    kind = "a parabola" if abs(determinant) < rounding else "an ellipse" if determinant > 0 else "a hyperbola"
    caption = (
        "Contours of a mixture of two Gaussians, each with its own covariance; crosses are the means. Both classes are "
        f"equally probable on the dashed curve, a quadric xᵀAx + bᵀx + c = 0: {kind}, by the sign of det A."
    )
    return Plot(figure, caption, f"Contours of a mixture of 2 Gaussians with a curved boundary: {kind}.")


@styled
def plot_three_classes(*, random_seed: int = 0) -> Plot:
    """Show the decision boundaries of three classes by four models that are fitted to the same rows.

    LDA and softmax regression have straight boundaries, QDA and softmax regression on products of the features conics.

    Parameters
    ----------
    random_seed
        Seed of the rows.
    """
    figure, axes_grid = new_figure(6.4, 2, 2, sharex=True, sharey=True)
    x, y, points = _grid((-5.5, 6), (-3.5, 6))
    accuracies = []
    for row, truth in zip(axes_grid, (THREE_CLASSES, THREE_SPREADS), strict=True):
        data = simulate_gaussian(truth.mu, truth.Sigma, counts=[THREE_ROWS] * 3, random_seed=random_seed)
        moments = Moments.from_arrays(data.X, data.y, 3)
        linear = truth is THREE_CLASSES
        generative = (plug_in_lda if linear else plug_in_qda)(moments)
        scores = {
            "LDA" if linear else "QDA": generative.log_joint,
            f"softmax, {'linear' if linear else 'quadratic'}": _softmax_scores(data, degree=1 if linear else 2),
        }
        for axes, (name, score) in zip(row, scores.items(), strict=True):
            _draw_classes(axes, data, alpha=0.6)
            for i, j in combinations(range(3), 2):
                A = score(points)
                k = 3 - i - j
                hidden = A[:, k] > np.maximum(A[:, i], A[:, j])
                difference = np.ma.masked_array(A[:, i] - A[:, j], hidden).reshape(x.shape)
                axes.contour(x, y, difference, levels=[0.0], colors=BLACK, linewidths=1.6)
            accuracy = float((score(data.X).argmax(axis=1) == data.y).mean())
            accuracies.append(f"{name} {100 * accuracy:.1f} %")
            axes.set(title=name, xlim=(-5.5, 6), ylim=(-3.5, 6))
    axes_grid[1, 0].set_xlabel("$x_1$")
    axes_grid[1, 1].set_xlabel("$x_1$")
    axes_grid[0, 0].set_ylabel("$x_2$")
    axes_grid[1, 0].set_ylabel("$x_2$")
    _boundary_legend(figure, data, "boundary", "-")
    caption = (
        "Three classes with one covariance (above) and with a covariance each (below), and the boundaries that four "
        "models learn from them: straight lines that meet in a point, or conics. Left, discriminant analysis; right, "
        f"softmax regression. Accuracy on these {3 * THREE_ROWS} rows: {', '.join(accuracies)}."
    )
    return Plot(figure, caption, f"Decision boundaries of 3 classes. Accuracy: {', '.join(accuracies)}.")


@styled
def plot_prior_shift() -> Plot:
    """Show how the boundary of LDA moves with the class probabilities, for round and for other covariances.

    The boundary meets the line through the means at μ̄ + ((log π₀/π₁)/D²)(μ₁ − μ₀), where D is the Mahalanobis distance
    of the means. It is perpendicular to that line if Σ ∝ I.
    """
    mu = np.array([[-1.5, 0.0], [1.5, 0.0]])
    covariances = {"Σ = I": np.eye(2), "Σ = [1 0.6; 0.6 1]": np.array([[1, 0.6], [0.6, 1]])}
    figure, [axes_list] = new_figure(3.5, 1, 2, sharey=True)
    x, y, points = _grid((-4.2, 4.2), (-3.2, 3.2))
    dashes: tuple[Any, ...] = ((0, (1, 1)), "-", (0, (5, 2)))
    for axes, (title, Sigma) in zip(axes_list, covariances.items(), strict=True):
        D2 = Gaussians(np.full(2, 0.5), mu, Sigma).mahalanobis(points)
        for k in range(2):
            color, marker = class_style(k)
            level = [-2 * np.log1p(-0.5), -2 * np.log1p(-0.9)]
            axes.contour(x, y, D2[:, k].reshape(x.shape), levels=level, colors=color, linewidths=1.2)
            axes.plot(*mu[k], marker=marker, color=color, markersize=5)
        axes.plot(*mu.T, color=GREY, linewidth=0.9)
        for prior, dash in zip(PRIORS, dashes, strict=True):
            w, c = Gaussians(np.array([1 - prior, prior]), mu, Sigma).threshold_unit()
            ends = np.array([-3.2, 3.2])
            axes.plot(-(c + w[1] * ends) / w[0], ends, color=BLACK, linestyle=dash)
        axes.set(title=title, xlabel="$x_1$", xlim=(-4.2, 4.2), ylim=(-3.2, 3.2), aspect="equal")
    axes_list[0].set_ylabel("$x_2$")
    handles = [Line2D([], [], color=BLACK, linestyle=dash) for dash in dashes]
    legend(figure, handles, [f"boundary, π₁ = {prior:g}" for prior in PRIORS])
    caption = (
        "Boundaries of LDA for three probabilities of the second class (right). With equal probabilities the boundary "
        "passes midway between the means; a more frequent class pushes it away from its mean, parallel to itself. It "
        "is perpendicular to the line through the means where the covariance is round, and in general not otherwise."
    )
    return Plot(figure, caption, "Boundaries of LDA for 3 priors, with a round and with a tilted covariance.")


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _grid(x_range: tuple[float, float], y_range: tuple[float, float]) -> tuple[Floats, Floats, Floats]:
    """Return x and y (GRID, GRID) of a rectangle, and its points (GRID², 2)."""
    x, y = np.meshgrid(np.linspace(*x_range, GRID), np.linspace(*y_range, GRID))
    return x, y, np.column_stack([x.ravel(), y.ravel()])


def _softmax_scores(data: Dataset, degree: int) -> Any:
    """Return a function of rows (n, d) that has the activations (n, K) of softmax regression at its posterior mode."""
    features = FeatureMap.fit(data.X, degree=degree)
    Phi = features(data.X)
    target = SoftmaxTarget(Phi, data.y, data.K, Normal.default(Phi.shape[1]))
    W = regression_laplace(target).mean.reshape(data.K, -1)
    return lambda X: features(X) @ W.T


def _draw_classes(axes: Any, data: Dataset, *, alpha: float, edge: bool = True) -> None:
    """Draw the rows of each class in its colour and marker, as one bitmap if they are many."""
    for k in range(data.K):
        color, marker = class_style(k)
        rows = data.X[data.y == k]
        axes.scatter(
            *rows.T,
            s=9,
            color=color,
            marker=marker,
            alpha=alpha,
            linewidths=0.3 if edge else 0,
            edgecolors="white",
            rasterized=len(data.X) > 300,
        )


def _boundary_legend(figure: Any, data: Dataset, name: str, dashes: Any) -> None:
    """Put a legend of the boundary and the classes above the axes."""
    styles = [class_style(k) for k in range(data.K)]
    handles = [Line2D([], [], color=BLACK, linestyle=dashes)]
    handles += [Line2D([], [], color=color, marker=marker, linestyle="none") for color, marker in styles]
    legend(figure, handles, [name, *(f"class {label}" for label in data.class_names)])
