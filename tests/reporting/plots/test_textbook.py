"""The textbook's figures show what their formulas say."""

import numpy as np
import pytest
from reporting.plots.scenes import perceptron_path, scene
from scipy.stats import multivariate_normal, norm

from bayes_gda.data.examples import EXAMPLE_TRUTHS, load_example
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.discriminant import Gaussians, mean_subspace
from bayes_gda.reporting.plots import textbook
from bayes_gda.reporting.plots.textbook.gaussians import NOTE_GAUSSIANS, mixture_density


def test_the_bell_curve_is_scipys():
    [axes] = scene("textbook-gaussian").figure.axes
    x, density = axes.get_lines()[0].get_xydata().T
    np.testing.assert_allclose(density, norm.pdf(x))
    with pytest.raises(DataError, match="sd"):
        textbook.plot_gaussian(0, -1)


def test_the_notes_gaussians_are_these_and_their_outlines_lie_at_their_shares():
    parameters = [(truth.mu[0].tolist(), truth.Sigma.tolist()) for _, truth in NOTE_GAUSSIANS]
    assert parameters == [
        ([0, 0], [[1, 0], [0, 1]]),
        ([2, 3], [[2, 0], [0, 1]]),
        ([2, 3], [[2, 0.5], [0.5, 1]]),
    ]
    for axes, (_, truth) in zip(scene("textbook-bivariate_contours").figure.axes, NOTE_GAUSSIANS, strict=True):
        for path, share in zip(axes.collections[0].get_paths(), (0.5, 0.9, 0.99), strict=True):
            z = np.linalg.solve(np.linalg.cholesky(truth.Sigma), (path.vertices - truth.mu[0]).T)
            np.testing.assert_allclose((z**2).sum(axis=0), -2 * np.log(1 - share), atol=0.02)
        axis = axes.get_lines()[1].get_xydata()[1] - truth.mu[0]  # the longer half axis: Σ v = |v|² v
        np.testing.assert_allclose(truth.Sigma @ axis, axis @ axis * axis, atol=1e-12)


def test_mixture_density_is_scipys():
    for name in ("lda-mixture", "qda-mixture"):
        truth = EXAMPLE_TRUTHS[name]
        X = np.random.default_rng(0).normal(size=(20, 2)) * 3
        parts = [multivariate_normal(m, S).pdf(X) for m, S in zip(truth.mu, truth.covariances, strict=True)]
        np.testing.assert_allclose(mixture_density(truth, X), truth.pi @ parts, rtol=1e-12)
    with pytest.raises(DataError, match="two features"):
        textbook.plot_mixture_surface(EXAMPLE_TRUTHS["three-spheres"])


def test_the_line_between_the_classes_is_the_notes():
    """a₁x₁ + a₂x₂ + b = 0 with a = 2Σ⁻¹(μ₁ − μ₀), b = μ₀ᵀΣ⁻¹μ₀ − μ₁ᵀΣ⁻¹μ₁."""
    truth = EXAMPLE_TRUTHS["lda-mixture"]
    P = np.linalg.inv(truth.Sigma)
    a, b = 2 * P @ (truth.mu[1] - truth.mu[0]), truth.mu[0] @ P @ truth.mu[0] - truth.mu[1] @ P @ truth.mu[1]
    [axes] = scene("textbook-lda_mixture").figure.axes
    ends = axes.get_lines()[0].get_xydata()
    np.testing.assert_allclose(ends @ a + b, 0, atol=1e-12)
    joint = Gaussians(truth.pi, truth.mu, truth.Sigma).log_joint(ends)
    np.testing.assert_allclose(joint[:, 0], joint[:, 1])
    points = np.concatenate([c.get_offsets() for c in axes.collections if len(c.get_offsets()) > 100])
    assert len(points) == 1000


def test_the_quadratic_boundary_is_a_parabola_on_which_both_classes_are_equal():
    """det A = ¼ (1/.91 − 1/.21)(.91/.91 − .21/.21) = 0: by hand, from the inverses of the two covariances."""
    truth = EXAMPLE_TRUTHS["qda-mixture"]
    plot = scene("textbook-qda_mixture")
    boundary = plot.figure.axes[0].collections[-1]
    vertices = np.concatenate([path.vertices for path in boundary.get_paths()])
    joint = Gaussians(truth.pi, truth.mu, truth.Sigma).log_joint(vertices)
    np.testing.assert_allclose(joint[:, 0], joint[:, 1], atol=0.02)
    assert "a parabola" in plot.caption


def test_projected_rows_are_those_of_r():
    truth, data = EXAMPLE_TRUTHS["three-spheres"], load_example("three-spheres")
    plot = scene("textbook-dimension_reduction")
    points = plot.figure.axes[1].collections[0].get_offsets()
    R = mean_subspace(truth.mu).R
    np.testing.assert_allclose(points, (data.X @ R.T)[:, :2])
    assert "for 3000 rows" in plot.caption


def test_sigmoid_and_probit_differ_by_less_than_two_percent():
    assert "at most 0.0177" in scene("textbook-links").caption
    top = scene("textbook-links").figure.axes[0]
    (a, sigmoid), (_, probit) = (line.get_xydata().T for line in top.get_lines())
    slopes = [np.gradient(values, a)[len(a) // 2] for values in (sigmoid, probit)]
    np.testing.assert_allclose(slopes, 0.25, rtol=1e-3)


def test_losses_bound_the_zero_one_loss():
    [axes] = scene("textbook-losses").figure.axes
    _, hinge, perceptron, logistic = (line.get_xydata() for line in axes.get_lines())
    u = hinge[:, 0]
    zero_one = (u <= 0).astype(float)
    for loss in (hinge, logistic):
        assert (loss[:, 1] >= zero_one - 1e-12).all()
    np.testing.assert_allclose(perceptron[:, 1], np.where(u < 0, -u, 0))
    np.testing.assert_allclose(logistic[u == 0, 1], 1)


def test_laplace_has_the_mode_and_the_curvature_of_the_density():
    left, right = scene("textbook-laplace").figure.axes
    (z, exact), (_, gaussian) = (line.get_xydata().T for line in left.get_lines())
    assert z[exact.argmax()] == pytest.approx(z[gaussian.argmax()])
    np.testing.assert_allclose([np.trapezoid(f, z) for f in (exact, gaussian)], 1, atol=2e-3)
    curvature = [np.gradient(np.gradient(line.get_ydata(), z), z)[exact.argmax()] for line in right.get_lines()]
    assert curvature[0] == pytest.approx(curvature[1], rel=0.05)


def test_the_perceptrons_path_ends_where_every_row_is_on_its_side():
    path, X, _ = perceptron_path()
    plot = scene("textbook-perceptron_path")
    assert "every row is on its side" in plot.caption
    plane, curve = plot.figure.axes
    assert len(plane.get_lines()) == path[1:, 1:].any(axis=1).sum()  # weights without a direction have no line
    last = plane.get_lines()[-1].get_xydata()
    np.testing.assert_allclose(path[-1, 0] + last @ path[-1, 1:], 0, atol=1e-9)
    assert curve.get_lines()[0].get_ydata()[-1] == 0
    with pytest.raises(DataError, match=r"`signs` \(n,\) of ±1"):
        textbook.plot_perceptron_path(path, X, [1, 1, 0])


def test_three_classes_meet_where_all_are_equally_probable():
    plot = scene("textbook-three_classes")
    assert plot.caption.count("%") == 4
    lda = plot.figure.axes[0]
    vertices = [np.concatenate([p.vertices for p in c.get_paths()]) for c in lda.collections[3:]]
    assert len(vertices) == 3
    # Each boundary is straight: no vertex is off the line through its ends.
    for points in vertices:
        normal = np.array([-(points[-1] - points[0])[1], (points[-1] - points[0])[0]])
        offset = (points - points[0]) @ normal / np.linalg.norm(normal)
        assert np.abs(offset).max() < 1e-6
