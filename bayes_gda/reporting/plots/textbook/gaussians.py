"""Gaussian densities as the textbook draws them: in one dimension, in two as contours and surfaces, and mixtures."""

from typing import Any

import numpy as np
from matplotlib.colors import LightSource, LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.special import logsumexp
from scipy.stats import norm

from bayes_gda.checks import Floats, frozen, positive
from bayes_gda.data.examples import EXAMPLE_TRUTHS, GaussianTruth
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.discriminant import Gaussians
from bayes_gda.reporting.plots.style import (
    BLACK,
    BLUE,
    FONT,
    GREY,
    SKY,
    VERMILLION,
    WIDTH,
    Plot,
    legend,
    new_figure,
    styled,
)

# The bivariate Gaussians of the lecture notes: standard, independent, dependent.
NOTE_GAUSSIANS: tuple[tuple[str, GaussianTruth], ...] = (
    ("standard", GaussianTruth(frozen([1.0]), frozen([[0, 0]]), frozen(np.eye(2)))),
    ("independent", GaussianTruth(frozen([1.0]), frozen([[2, 3]]), frozen([[2, 0], [0, 1]]))),
    ("dependent", GaussianTruth(frozen([1.0]), frozen([[2, 3]]), frozen([[2, 0.5], [0.5, 1]]))),
)
# Shares of a Gaussian within the outlines, and half the width of a view in standard deviations.
SHARES, REACH = (0.5, 0.9, 0.99), 3.5
# Points a side: of contours, whose lines are interpolated, and of surfaces, each facet of which is a polygon.
GRID, FACETS = 120, 90
# Where the light comes from: the front left, 50° above the horizon. What it does not reach keeps AMBIENT of its colour.
LIGHT, AMBIENT = LightSource(azdeg=200, altdeg=50), 0.55
# Blues of the package's style: light on a light page where the density is low.
SURFACE_COLORS = LinearSegmentedColormap.from_list("density", ["#E3F0F8", SKY, BLUE])


@styled
def plot_gaussian(mean: float = 0.0, sd: float = 1.0) -> Plot:
    """Show the density of a Gaussian in one dimension.

    p(x) = (2π)^−½ σ^−1 exp(−(x − μ)²/2σ²)

    Parameters
    ----------
    mean, sd
        μ and σ > 0.
    """
    sd = float(positive("sd", sd, error=DataError))
    figure, [[axes]] = new_figure(3.0)
    x = np.linspace(mean - 4 * sd, mean + 4 * sd, 401)
    density = norm.pdf(x, mean, sd)
    for deviations, alpha in ((2, 0.15), (1, 0.25)):
        inside = np.abs(x - mean) <= deviations * sd * (1 + 1e-12)
        axes.fill_between(x[inside], density[inside], color=BLUE, alpha=alpha, linewidth=0)
    axes.plot(x, density, color=BLUE)
    axes.axvline(mean, color=GREY, linestyle="--", linewidth=0.9)
    within = [100 * (2 * norm.cdf(k) - 1) for k in (1, 2)]
    axes.set(xlabel="x", ylabel="density p(x)", ylim=(0, 1.12 * density.max()))
    caption = (
        f"Density of a Gaussian with mean μ = {mean:g} (dashed) and standard deviation σ = {sd:g}. "
        f"The dark area, μ ± σ, holds {within[0]:.1f} % of it, both areas, μ ± 2σ, {within[1]:.1f} %; "
        f"the largest density is 1/(σ√2π) = {density.max():.3g}."
    )
    return Plot(figure, caption, f"Bell curve with mean {mean:g} and standard deviation {sd:g}.")


@styled
def plot_bivariate_contours() -> Plot:
    """Show the three bivariate Gaussians of the notes by outlines of equal density, with their principal axes.

    Outlines are ellipses (x − μ)ᵀΣ⁻¹(x − μ) = c. Their axes point along the eigenvectors of Σ, and are as long as the
    roots of its eigenvalues. They are circles if Σ ∝ I, and parallel to the coordinate axes if Σ is diagonal.
    """
    figure, [axes_list] = new_figure(3.25, 1, 3)
    slopes = []
    for axes, (name, truth) in zip(axes_list, NOTE_GAUSSIANS, strict=True):
        gaussian = Gaussians(truth.pi, truth.mu, truth.Sigma)
        x, y, points = _square_grid(truth.mu[0], REACH * np.sqrt(truth.Sigma.diagonal().max()), GRID)
        D2 = gaussian.mahalanobis(points)[:, 0].reshape(x.shape)
        # A share s of a Gaussian in the plane lies within D² = −2 log(1 − s).
        axes.contour(x, y, D2, levels=[-2 * np.log1p(-s) for s in SHARES], colors=BLUE, linewidths=[1.8, 1.3, 0.8])
        values, vectors = np.linalg.eigh(truth.Sigma)
        for value, vector in zip(values, vectors.T, strict=True):
            ends = truth.mu[0] + np.outer([-1, 1], np.sqrt(value) * vector)
            axes.plot(*ends.T, color=VERMILLION, linewidth=1.4)
        slopes.append(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])) % 180)
        axes.set(title=f"{name}\nΣ = {_matrix_words(truth.Sigma)}", xlabel="$x_1$", aspect="equal")
    axes_list[0].set_ylabel("$x_2$")
    handles = [Line2D([], [], color=BLUE), Line2D([], [], color=VERMILLION)]
    legend(figure, handles, ["50, 90 and 99 % of the Gaussian", "principal axes, one standard deviation"])
    caption = (
        "Outlines of equal density of three Gaussians: circles where Σ is the identity, ellipses along the axes where "
        "it is diagonal, and tilted ones where it is not. Their axes are the eigenvectors of Σ; those of the third "
        f"are tilted by {slopes[2]:.1f}°."
    )
    alt = f"Contours of 3 bivariate Gaussians; the third is tilted by {slopes[2]:.1f} degrees."
    return Plot(figure, caption, alt)


@styled
def plot_bivariate_surfaces() -> Plot:
    """Show the densities of the three bivariate Gaussians of the notes as surfaces, on a common scale."""
    figure = Figure(figsize=(WIDTH, 2.9))
    peaks = []
    for i, (name, truth) in enumerate(NOTE_GAUSSIANS):
        axes: Any = figure.add_axes((0.328 * i + 0.005, 0.0, 0.315, 0.92), projection="3d")
        x, y, points = _square_grid(truth.mu[0], REACH * np.sqrt(truth.Sigma.diagonal().max()), FACETS)
        z = mixture_density(truth, points).reshape(x.shape)
        peaks.append(z.max())
        _draw_surface(axes, x, y, z)
        axes.set(zlim=(0, 0.16))
        figure.text(0.328 * i + 0.03, 0.97, f"{name}\nΣ = {_matrix_words(truth.Sigma)}", va="top", fontsize=FONT + 1)
        axes.set_zticks([0, 0.05, 0.1, 0.15])
        # Three ticks each: more run into each other in the corner where the axes meet.
        step = np.floor(0.75 * x.max() - 0.75 * truth.mu[0, 0])
        axes.set_xticks(truth.mu[0, 0] + step * np.array([-1, 0, 1]))
        axes.set_yticks(truth.mu[0, 1] + step * np.array([-1, 0, 1]))
        axes.set_box_aspect((1, 1, 0.75), zoom=0.88)
    caption = (
        "Densities of the same three Gaussians as surfaces, on one vertical scale. The peak is 1/(2π|Σ|^½): "
        + ", ".join(f"{peak:.3f}" for peak in peaks)
        + "."
    )
    return Plot(figure, caption, f"Surfaces of 3 bivariate Gaussians with peaks of {peaks[0]:.3f} at most.")


@styled
def plot_mixture_surface(truth: GaussianTruth | None = None) -> Plot:
    """Show the density of a mixture of Gaussians in two dimensions as a shaded surface.

    p(x) = Σ_k π_k N(x | μ_k, Σ_k)

    Parameters
    ----------
    truth
        Parameters with two features; None for the two classes of the notes, which share Σ = [[2, .7], [.7, 2]].
    """
    truth = EXAMPLE_TRUTHS["lda-mixture"] if truth is None else truth
    if truth.mu.shape[1] != 2:
        raise DataError(f"`truth` must have two features for a surface; got {truth.mu.shape[1]}.")
    figure = Figure(figsize=(WIDTH, 4.3))
    axes: Any = figure.add_axes((0.0, 0.02, 1.0, 1.0), projection="3d")
    sd = np.sqrt(np.diagonal(truth.covariances, axis1=1, axis2=2)).max(axis=0)
    low, high = truth.mu.min(axis=0) - 3 * sd, truth.mu.max(axis=0) + 3 * sd
    x, y = np.meshgrid(*(np.linspace(a, b, 2 * FACETS) for a, b in zip(low, high, strict=True)), indexing="ij")
    z = mixture_density(truth, np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    _draw_surface(axes, x, y, z)
    axes.set_zlabel("density", labelpad=1)
    axes.locator_params(axis="z", nbins=5)
    axes.set_box_aspect((1.25, 1.25, 0.75), zoom=1.12)
    K = len(truth.pi)
    means = ", ".join(f"({a:g}, {b:g})" for a, b in truth.mu)
    shape = "covariances of their own" if truth.Sigma.ndim == 3 else f"covariance {_matrix_words(truth.Sigma)}"
    caption = (
        f"Density of a mixture of {K} Gaussians with means {means} and {shape}, lit from the front left. Each class is "
        "one peak; the density of all rows is their sum, weighted by the class probabilities."
    )
    return Plot(figure, caption, f"Surface of a mixture of {K} Gaussians with means {means}.")


def mixture_density(truth: GaussianTruth, X: Floats) -> Floats:
    """Return p(x) = Σ_k π_k N(x | μ_k, Σ_k) (n,) at rows X (n, d)."""
    return np.exp(logsumexp(Gaussians(truth.pi, truth.mu, truth.Sigma).log_joint(X), axis=1))


# ── Parts ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _square_grid(center: Floats, reach: float, points: int) -> tuple[Floats, Floats, Floats]:
    """Return x and y (points, points) of a square around the centre, and its points (points², 2)."""
    steps = np.linspace(-reach, reach, points)
    x, y = np.meshgrid(center[0] + steps, center[1] + steps, indexing="ij")
    return x, y, np.column_stack([x.ravel(), y.ravel()])


def _matrix_words(Sigma: Floats) -> str:
    """Return a covariance as text: I, or its rows, parted by semicolons."""
    if np.array_equal(Sigma, np.eye(len(Sigma))):
        return "I"
    return "[" + "; ".join(" ".join(f"{value:g}" for value in row) for row in Sigma) + "]"


def _draw_surface(axes: Any, x: Floats, y: Floats, z: Floats) -> None:
    """Draw a surface with light shading, as one bitmap, in the package's style."""
    # Slopes as steep as they look in the picture: the peak is three quarters of a side high.
    slope_x, slope_y = np.gradient(0.75 * len(z) * z / z.max())
    normals = np.dstack([-slope_x, -slope_y, np.ones_like(z)])
    normals /= np.linalg.norm(normals, axis=2, keepdims=True)
    brightness = np.clip(normals @ LIGHT.direction, 0, 1)[..., None]
    colors = SURFACE_COLORS(z / z.max())[..., :3] * (AMBIENT + (1 - AMBIENT) * brightness)
    axes.plot_surface(
        x, y, z, rstride=1, cstride=1, linewidth=0, antialiased=False, facecolors=colors, shade=False, rasterized=True
    )
    style_cube(axes)
    axes.set_xlabel("$x_1$", labelpad=-1)
    axes.set_ylabel("$x_2$", labelpad=-1)


def style_cube(axes: Any) -> None:
    """Give three-dimensional axes the thin grey lines of the package's plots."""
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_pane_color((1, 1, 1, 0))
        axis._axinfo["grid"].update(color="#E6E6E6", linewidth=0.6)
        axis.line.set_color(GREY)
    axes.tick_params(pad=-1, labelsize=FONT, labelcolor=BLACK)
    for axis in ("x", "y"):
        axes.locator_params(axis=axis, nbins=4)
