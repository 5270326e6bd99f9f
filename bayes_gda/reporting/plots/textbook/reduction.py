"""Dimension reduction as the textbook draws it: three classes in three dimensions, and in the plane of their means."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bayes_gda.data.examples import EXAMPLE_TRUTHS, load_example
from bayes_gda.families.gaussian.discriminant import mean_subspace
from bayes_gda.reporting.plots.style import BLACK, WIDTH, Plot, class_style, styled
from bayes_gda.reporting.plots.textbook.gaussians import style_cube


@styled
def plot_dimension_reduction(*, random_seed: int = 0) -> Plot:
    """Show three spherical classes in three dimensions, left, and projected to the plane of their means, right.

    The projection is R = UᵀP with P = WW⁺, of `bayes_gda.families.gaussian.discriminant.mean_subspace`.

    Parameters
    ----------
    random_seed
        Seed of the rows, 1000 of each class.
    """
    data, truth = load_example("three-spheres", random_seed=random_seed), EXAMPLE_TRUTHS["three-spheres"]
    space = mean_subspace(truth.mu)
    Z, means = space(data.X), space(truth.mu)
    figure = Figure(figsize=(WIDTH, 3.5))
    cube: Any = figure.add_axes((0.0, 0.0, 0.5, 0.9), projection="3d")
    plane: Any = figure.add_axes((0.57, 0.14, 0.41, 0.74))
    # Rows of all classes in one random order (as they come), so that none is drawn over the others.
    colors = np.array([class_style(k)[0] for k in range(3)])[data.y]
    cube.scatter(*data.X.T, c=colors, s=2, alpha=0.5, linewidths=0, rasterized=True, depthshade=False)
    plane.scatter(*Z.T, c=colors, s=2.5, alpha=0.5, linewidths=0, rasterized=True)
    cube.plot(*truth.mu.T, "+", color=BLACK, markersize=8, markeredgewidth=1.6, zorder=5)
    plane.plot(*means.T, "+", color=BLACK, markersize=8, markeredgewidth=1.6, zorder=5)
    style_cube(cube)
    for axis, label in zip("xyz", ("$x_1$", "$x_2$", "$x_3$"), strict=True):
        getattr(cube, f"set_{axis}label")(label, labelpad=-5)
        cube.locator_params(axis=axis, nbins=4)
    cube.set_box_aspect(None, zoom=0.98)
    plane.set(xlabel="first coordinate of R x", ylabel="second coordinate of R x")
    plane.set_aspect("equal", adjustable="datalim")
    styles = [class_style(k)[0] for k in range(3)]
    handles = [Line2D([], [], color=color, marker="o", linestyle="none", markersize=5) for color in styles]
    handles.append(Line2D([], [], color=BLACK, marker="+", linestyle="none", markersize=8))
    names = [*(f"class {label}" for label in data.class_names), "class means"]
    figure.legend(handles, names, loc="upper center", ncols=4)
    full = ((data.X[:, None] - truth.mu) ** 2).sum(axis=2).argmin(axis=1)
    reduced = ((Z[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    same, right = int((full == reduced).sum()), int((reduced == data.y).sum())
    caption = (
        f"Left, {data.n} rows of three classes with unit covariance in three dimensions; right, the same rows "
        "projected to the plane through the means, and turned into the page. The class of the nearest mean is the same "
        f"in both pictures for {same} rows, and the true one for {right}."
    )
    return Plot(figure, caption, f"Three classes in 3 dimensions and in the plane of their means; {same} rows agree.")
