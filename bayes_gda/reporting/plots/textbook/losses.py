"""Links, losses and searches as the textbook draws them: sigmoid and probit, hinge, Laplace, the perceptron's path."""

from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import expit, log_expit, ndtr

from bayes_gda.checks import Floats, finite
from bayes_gda.errors import DataError
from bayes_gda.methods.laplace import laplace_1d
from bayes_gda.reporting.plots.style import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    VERMILLION,
    Plot,
    class_style,
    counted,
    legend,
    new_figure,
    styled,
)

# λ of the probit approximation: σ(a) and Φ(λa) have the same slope ¼ at 0.
PROBIT = np.sqrt(np.pi / 8)


@styled
def plot_links() -> Plot:
    """Show the logistic sigmoid beside the probit function Φ(λa), λ² = π/8, and their difference.

    σ(a) = 1/(1 + e^−a),   Φ(a) = ∫_−∞^a N(x | 0, 1) dx
    """
    figure, [[top], [bottom]] = new_figure(3.8, 2, 1, sharex=True, height_ratios=[2.2, 1])
    a = np.linspace(-8, 8, 801)
    sigmoid, probit = expit(a), ndtr(PROBIT * a)
    top.plot(a, sigmoid, color=VERMILLION)
    top.plot(a, probit, color=BLUE, linestyle=(0, (5, 2)))
    top.set_ylabel("probability")
    difference = sigmoid - probit
    bottom.axhline(0, color=GREY, linewidth=0.8)
    bottom.plot(a, difference, color=BLACK)
    bottom.set(xlabel="activation a", ylabel="σ(a) − Φ(λa)")
    handles = [Line2D([], [], color=VERMILLION), Line2D([], [], color=BLUE, linestyle=(0, (5, 2)))]
    legend(figure, handles, ["logistic sigmoid σ(a)", "probit Φ(λa), λ² = π/8"])
    largest, at = np.abs(difference).max(), abs(a[np.abs(difference).argmax()])
    caption = (
        "The logistic sigmoid and the probit function, scaled to the same slope at 0. Below, their difference: at most "
        f"{largest:.4f}, at a = ±{at:.2f}. The probit function has lighter tails."
    )
    return Plot(figure, caption, f"Sigmoid and scaled probit function differ by at most {largest:.4f}.")


@styled
def plot_losses() -> Plot:
    """Show the losses of a linear classifier as functions of the margin y wᵀx, with y = ±1.

    0/1: 1[u ≤ 0],  hinge: max(0, 1 − u),  perceptron: max(0, −u),  logistic: log₂(1 + e^−u)
    """
    figure, [[axes]] = new_figure(3.4)
    u = np.linspace(-2.5, 2.5, 501)
    axes.step([-2.5, 0, 2.5], [1, 1, 0], where="pre", color=BLACK, linewidth=2)
    axes.plot(u, np.maximum(0, 1 - u), color=BLUE, linestyle=(0, (5, 2)))
    axes.plot(u, np.maximum(0, -u), color=GREEN, linestyle=(0, (3, 1, 1, 1)))
    axes.plot(u, -log_expit(u) / np.log(2), color=VERMILLION)
    axes.set(xlabel="margin y w·x", ylabel="loss", ylim=(-0.1, 3.6))
    handles = [
        Line2D([], [], color=BLACK, linewidth=2),
        Line2D([], [], color=BLUE, linestyle=(0, (5, 2))),
        Line2D([], [], color=GREEN, linestyle=(0, (3, 1, 1, 1))),
        Line2D([], [], color=VERMILLION),
    ]
    legend(figure, handles, ["0/1", "hinge", "perceptron", "logistic, in bits"])
    caption = (
        "Losses of a row by its margin u = y w·x, which is negative where the row is misclassified. The 0/1 loss is "
        "constant on both sides, so that its gradient is 0. Hinge loss max(0, 1 − u) and logistic loss log₂(1 + e⁻ᵘ) "
        "are convex and never below it; the perceptron's max(0, −u) is below it for −1 < u ≤ 0."
    )
    return Plot(figure, caption, "Losses by margin: 0/1, hinge, perceptron and logistic, which is 1 at margin 0.")


@styled
def plot_laplace() -> Plot:
    """Show the Laplace approximation of a skewed density in one dimension: p(z) ∝ exp(−z²/2) σ(20z + 4).

    The Gaussian is N(z₀, 1/A) with z₀ the mode and A = −d²/dz² log f(z) there.
    """

    def log_f(z: Floats) -> Floats:
        return np.asarray(-0.5 * z**2 + log_expit(20 * z + 4))

    approximation = laplace_1d(
        lambda z: float(log_f(np.asarray(z))),
        derivative=lambda z: 20 * float(expit(-20 * z - 4)) - z,
        curvature=lambda z: 1 + 400 * float(expit(20 * z + 4) * expit(-20 * z - 4)),
    )
    mode, precision = float(approximation.mode[0]), float(1 / approximation.covariance[0, 0])
    Z = quad(lambda z: float(np.exp(log_f(np.asarray(z)))), -8, 8, points=[-0.2, mode])[0]
    estimate = float(np.exp(approximation.log_evidence))
    z = np.linspace(-2, 4, 601)
    exact = np.exp(log_f(z)) / Z
    gaussian = np.sqrt(precision / (2 * np.pi)) * np.exp(-0.5 * precision * (z - mode) ** 2)
    figure, [[left, right]] = new_figure(3.0, 1, 2)
    left.fill_between(z, exact, color=ORANGE, alpha=0.3, linewidth=0)
    left.plot(z, exact, color=ORANGE)
    left.plot(z, gaussian, color=VERMILLION, linestyle=(0, (5, 2)))
    left.set(xlabel="z", ylabel="density", ylim=(0, None))
    right.plot(z, -np.log(exact), color=ORANGE)
    right.plot(z, -np.log(gaussian), color=VERMILLION, linestyle=(0, (5, 2)))
    right.set(xlabel="z", ylabel="negative log density", ylim=(0, 30))
    handles = [Line2D([], [], color=ORANGE), Line2D([], [], color=VERMILLION, linestyle=(0, (5, 2)))]
    legend(figure, handles, ["density f(z)/Z", "Laplace approximation N(z₀, A⁻¹)"])
    caption = (
        f"The Laplace approximation of p(z) ∝ exp(−z²/2) σ(20z + 4): mode z₀ = {mode:.3f}, precision A = "
        f"{precision:.3f}. It has the mode of the density and the curvature of its logarithm there, but not its "
        f"skewness: the integral Z is {Z:.3f}, the approximation has {estimate:.3f}."
    )
    return Plot(
        figure, caption, f"Skewed density and its Laplace approximation; Z is {Z:.3f}, estimated {estimate:.3f}."
    )


@styled
def plot_perceptron_path(path: ArrayLike, X: ArrayLike, signs: ArrayLike) -> Plot:
    """Show the lines that a perceptron passes through, and how many rows each misclassifies.

    Parameters
    ----------
    path
        (T, 3) weights (w₀, w₁, w₂) after each correction, the start first, such as `Perceptron.path_`.
    X
        (n, 2) rows.
    signs
        (n,) +1 or −1 for each row.
    """
    W, rows, y = (finite(name, value, error=DataError) for name, value in (("path", path), ("X", X), ("signs", signs)))
    if W.ndim != 2 or W.shape[1] != 3 or rows.shape != (len(y), 2) or not np.isin(y, [-1, 1]).all():
        raise DataError(
            "`path` must be (T, 3), `X` (n, 2) and `signs` (n,) of ±1; "
            f"got shapes {W.shape}, {rows.shape} and {np.shape(y)}."
        )
    errors = (y * (W[:, :1] + W[:, 1:] @ rows.T) <= 0).sum(axis=1)
    figure, [[plane, curve]] = new_figure(3.3, 1, 2, width_ratios=[1.25, 1])
    low, high = rows.min(axis=0) - 1, rows.max(axis=0) + 1
    shades = np.linspace(0.75, 0.35, max(len(W) - 2, 1))
    for i, w in enumerate(W[1:], 1):
        last = i == len(W) - 1
        style = (
            {"color": BLACK, "linewidth": 1.8, "zorder": 3} if last else {"color": str(shades[i - 1]), "linewidth": 0.8}
        )
        _draw_line(plane, w, low, high, style)
    for sign in (1, -1):
        color, marker = class_style(int(sign < 0))
        plane.scatter(*rows[y == sign].T, s=36, color=color, marker=marker, zorder=4, edgecolors="white")
    plane.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), xlabel="$x_1$", ylabel="$x_2$")
    curve.step(np.arange(len(W)), errors, where="post", color=BLACK)
    curve.set(xlabel="corrections", ylabel="rows not on their side", ylim=(-0.1, len(y) + 0.3))
    curve.yaxis.get_major_locator().set_params(integer=True)
    curve.xaxis.get_major_locator().set_params(integer=True)
    handles = [Line2D([], [], color=LIGHT), Line2D([], [], color=BLACK, linewidth=1.8)]
    styles = [class_style(0), class_style(1)]
    handles += [Line2D([], [], color=color, marker=marker, linestyle="none") for color, marker in styles]
    legend(figure, handles, ["lines on the way, later ones darker", "last line", "y = +1", "y = −1"])
    steps = counted(len(W) - 1, "correction")
    ending = (
        "every row is on its side" if errors[-1] == 0 else f"{counted(int(errors[-1]), 'row')} are not on their side"
    )
    w0, w1, w2 = W[-1]
    caption = (
        f"Path of a perceptron on {counted(len(y), 'row')}. After {steps} {ending}; the last line is "
        f"{_number(w1)} x₁ {'+' if w2 >= 0 else '−'} {abs(w2):g} x₂ {'+' if w0 >= 0 else '−'} {abs(w0):g} = 0."
    )
    return Plot(figure, caption, f"Perceptron path: after {steps} {ending}.")


@styled
def plot_separability() -> Plot:
    """Show two boolean functions of two features: AND, which a line separates, and exclusive or, which none does."""
    figure, [axes_list] = new_figure(2.9, 1, 2, sharey=True)
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    for axes, title, y in zip(
        axes_list,
        ("$x_1$ and $x_2$: separable", "exclusive or: not separable"),
        ([0, 0, 0, 1], [0, 1, 1, 0]),
        strict=True,
    ):
        for k in (0, 1):
            color, marker = class_style(k)
            axes.scatter(*corners[np.array(y) == k].T, s=60, color=color, marker=marker, zorder=3, edgecolors="white")
        axes.set(title=title, xlabel="$x_1$", xticks=[0, 1], yticks=[0, 1], xlim=(-0.5, 1.5), ylim=(-0.5, 1.5))
    axes_list[0].plot([0, 2], [1.5, -0.5], color=BLACK)
    axes_list[0].set_ylabel("$x_2$")
    handles = [Line2D([], [], color=BLACK)]
    handles += [Line2D([], [], color=c, marker=m, linestyle="none") for c, m in (class_style(0), class_style(1))]
    legend(figure, handles, ["x₁ + x₂ = 3/2", "y = 0", "y = 1"])
    caption = (
        "Left, the line x₁ + x₂ = 3/2 separates the one positive example of the conjunction. Right, no line does so "
        "for exclusive or: the midpoint of both pairs of equal class is (½, ½), which would have to be on both sides."
    )
    return Plot(figure, caption, "Four corners of a square: a line separates AND; none of 2 classes of exclusive or.")


def _number(value: float) -> str:
    """Return a number with a true minus sign."""
    return f"{value:g}".replace("-", "−")


def _draw_line(axes: Any, w: Floats, low: Floats, high: Floats, style: dict[str, Any]) -> None:
    """Draw the line w₀ + w₁x₁ + w₂x₂ = 0 across a view; nothing if it has no direction."""
    length = float(np.hypot(w[1], w[2]))
    if length == 0:
        return
    normal = w[1:] / length
    foot = -w[0] / length * normal
    center = (low + high) / 2
    # From the point of the line that is nearest to the centre, far enough to leave the view on both sides.
    start = center + ((foot - center) @ normal) * normal
    reach = float(np.linalg.norm(high - low))
    along = np.array([-normal[1], normal[0]])
    ends = np.array([start - reach * along, start + reach * along])
    axes.plot(*ends.T, **style)
