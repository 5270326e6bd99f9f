"""Regions, ellipses, outlines and boundaries lie where the model puts them."""

import numpy as np
import pytest
from reporting.plots.fits import data, gaussians
from reporting.plots.scenes import lines, scene
from scipy.stats import chi2

from bayes_gda.errors import DataError
from bayes_gda.reporting import plots


def test_ellipses_hold_ninety_percent_of_a_gaussian():
    drawn = data("lda-mixture")
    axes = scene("regions-lda-mixture").figure.axes[0]
    for k, outline in enumerate(lines(axes)[-2:]):
        own = drawn.X[drawn.y == k]
        z = np.linalg.solve(np.linalg.cholesky(np.cov(own.T)), (outline - own.mean(axis=0)).T)
        np.testing.assert_allclose((z**2).sum(axis=0), chi2(2).ppf(0.9), rtol=1e-9)


def test_boundaries_lie_where_two_classes_are_equally_probable():
    axes = scene("densities-qda").figure.axes[0]
    model = gaussians("qda-mixture", False)
    *_, boundary, _truth = axes.collections
    vertices = np.concatenate([path.vertices for path in boundary.get_paths()])
    assert len(vertices) > 20
    delta = model.log_joint(vertices)
    # Linear interpolation on a grid of 200: off by about the square of a cell.
    np.testing.assert_allclose(delta[:, 0], delta[:, 1], atol=0.02)


def test_density_outlines_are_at_their_distances():
    axes = scene("densities-lda-mixture").figure.axes[0]
    model = gaussians("lda-mixture")
    outlines = axes.collections[2]  # after the points of two classes
    for path, share in zip(outlines.get_paths(), (0.5, 0.9, 0.99), strict=True):
        np.testing.assert_allclose(model.mahalanobis(path.vertices)[:, 0], chi2(2).ppf(share), atol=0.02)


def test_projection_puts_class_means_at_their_crosses():
    model = gaussians("iris")
    axes = scene("projection-iris").figure.axes[0]
    np.testing.assert_allclose(lines(axes)[0], model.projection().means[:, :2])


def test_regions_are_coloured_by_the_most_probable_class():
    """Where a class is certain its colour is deepest; where all are equal it is white."""
    from matplotlib.colors import to_rgb

    d = data("lda-mixture")

    def halves(X):
        p = np.where(X[:, 0] > d.X[:, 0].mean(), 1.0, 0.5)
        return np.column_stack([1 - p, p])

    image = plots.plot_regions(halves, d).figure.axes[0].get_images()[0].get_array()
    np.testing.assert_allclose(image[:, 0], 1.0)
    np.testing.assert_allclose(image[0, -1], 1 - 0.42 * (1 - np.array(to_rgb("#D55E00"))))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: plots.plot_regions(lambda X: np.full((len(X), 2), 0.5), data("iris")),
            r"must return shape \(150, 3\)",
        ),
        (lambda: plots.plot_densities(gaussians("iris"), data("pima")), "means of shape"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, match):
    with pytest.raises(DataError, match=match):
        call()
