"""Discriminant functions: textbook identities, published error counts, the projection, and the boundaries."""

import numpy as np
import pytest
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayes_gda.data.examples import EXAMPLE_TRUTHS, load_example, load_example_split
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.discriminant import (
    Gaussians,
    mean_subspace,
    plug_in_lda,
    plug_in_naive,
    plug_in_qda,
)

PLUG_IN = {"lda": plug_in_lda, "qda": plug_in_qda, "naive": plug_in_naive}


def moments_of(data):
    return Moments.from_arrays(data.X, data.y, data.K)


# ── published numbers ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("example", "errors"),
    [("pima", {"lda": 67, "qda": 78, "naive": 80}), ("synth", {"lda": 108, "qda": 102, "naive": 101})],
)
def test_plug_in_test_errors(example, errors):
    train, test = load_example_split(example)
    found = {
        name: int((fit(moments_of(train)).log_joint(test.X).argmax(1) != test.y).sum()) for name, fit in PLUG_IN.items()
    }
    assert found == errors


@pytest.mark.parametrize(("name", "errors"), [("lda", 3), ("qda", 4)])
@pytest.mark.parametrize("unbiased", [False, True])
def test_leave_one_out_errors_on_iris(name, errors, unbiased):
    data = load_example("iris")
    whole = moments_of(data)
    wrong = 0
    for i in range(data.n):
        rest = whole - Moments.from_arrays(data.X[i : i + 1], data.y[i : i + 1], data.K)
        wrong += PLUG_IN[name](rest, unbiased=unbiased).log_joint(data.X[i : i + 1]).argmax() != data.y[i]
    assert wrong == errors


# ── another library ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("lda", LinearDiscriminantAnalysis(solver="lsqr")),
        ("qda", QuadraticDiscriminantAnalysis()),
        ("naive", GaussianNB(var_smoothing=0.0)),
    ],
)
def test_probabilities_equal_scikit_learns(name, model):
    data = load_example("wine")
    joint = PLUG_IN[name](moments_of(data)).log_joint(data.X)
    ours = np.exp(joint - np.logaddexp.reduce(joint, axis=1, keepdims=True))
    np.testing.assert_allclose(ours, model.fit(data.X, data.y).predict_proba(data.X), atol=1e-7)


def test_the_two_divisors_are_those_of_the_textbooks():
    data = load_example("iris")
    moments = moments_of(data)
    np.testing.assert_allclose(plug_in_lda(moments).Sigma * 150, plug_in_lda(moments, unbiased=True).Sigma * 147)
    residuals = data.X - moments.mean[data.y]
    np.testing.assert_allclose(plug_in_lda(moments, unbiased=True).Sigma, residuals.T @ residuals / (150 - 3))
    for k, S in enumerate(plug_in_qda(moments, unbiased=True).Sigma):
        np.testing.assert_allclose(S, np.cov(data.X[data.y == k].T))
        np.testing.assert_allclose(plug_in_qda(moments).Sigma[k], np.cov(data.X[data.y == k].T, ddof=0))
    np.testing.assert_allclose(
        np.diagonal(plug_in_naive(moments, unbiased=True).Sigma, axis1=1, axis2=2),
        [data.X[data.y == k].var(axis=0, ddof=1) for k in range(3)],
    )


# ── identities ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_log_joint_is_scipys_normal_density():
    truth = EXAMPLE_TRUTHS["qda-mixture"]
    model = Gaussians(truth.pi, truth.mu, truth.Sigma)
    X = np.random.default_rng(0).normal(size=(20, 2))
    expected = [
        np.log(p) + stats.multivariate_normal(m, S).logpdf(X)
        for p, m, S in zip(truth.pi, truth.mu, truth.Sigma, strict=True)
    ]
    np.testing.assert_allclose(model.log_joint(X), np.transpose(expected))


def test_threshold_unit_discriminants_and_corrected_distance_all_decide_alike():
    data = load_example("lda-mixture")
    model = plug_in_lda(moments_of(data))
    w, c = model.threshold_unit()
    by_unit = (data.X @ w + c > 0).astype(int)
    by_distance = np.argmin(model.mahalanobis(data.X) - 2 * np.log(model.pi), axis=1)
    np.testing.assert_array_equal(by_unit, model.linear_discriminants(data.X).argmax(axis=1))
    np.testing.assert_array_equal(by_unit, model.quadratic_discriminants(data.X).argmax(axis=1))
    np.testing.assert_array_equal(by_unit, by_distance)
    difference = np.diff(model.linear_discriminants(data.X), axis=1)[:, 0]
    np.testing.assert_allclose(data.X @ w + c, difference, atol=1e-10)


def test_the_textbook_threshold_unit():
    """Σ = [[2, .7], [.7, 2]], means (0, 0) and (2, 4), equal priors: w = Σ⁻¹(2, 4), c = −½ (2, 4)Σ⁻¹(2, 4)."""
    truth = EXAMPLE_TRUTHS["lda-mixture"]
    w, c = Gaussians(truth.pi, truth.mu, truth.Sigma).threshold_unit()
    det = 2 * 2 - 0.7 * 0.7
    expected = np.array([2 * 2 - 0.7 * 4, -0.7 * 2 + 2 * 4]) / det
    np.testing.assert_allclose(w, expected)
    assert c == pytest.approx(-0.5 * (2 * expected[0] + 4 * expected[1]))


def test_with_spherical_covariance_and_equal_priors_the_boundary_bisects_the_means_at_right_angles():
    mu = np.array([[1.0, 2.0], [4.0, -1.0]])
    model = Gaussians(np.array([0.5, 0.5]), mu, 3.0 * np.eye(2))
    boundary = model.boundary(1, 0)
    direction = mu[1] - mu[0]
    assert boundary(mu.mean(axis=0)[None])[0] == pytest.approx(0)
    assert np.cross(np.append(boundary.b, 0), np.append(direction, 0))[2] == pytest.approx(0)  # normal ∥ line of means
    unequal = Gaussians(np.array([0.9, 0.1]), mu, 3.0 * np.eye(2)).boundary(1, 0)
    np.testing.assert_allclose(unequal.b, boundary.b)  # the prior only shifts the boundary …
    assert unequal.c < boundary.c  # … towards the rarer class


@pytest.mark.parametrize("name", ["lda", "qda", "naive"])
def test_a_boundary_is_the_difference_of_discriminants(name):
    data = load_example("iris")
    model = PLUG_IN[name](moments_of(data))
    joint = model.log_joint(data.X)
    for i, j in [(0, 1), (1, 2), (2, 0)]:
        boundary = model.boundary(i, j)
        np.testing.assert_allclose(boundary(data.X), joint[:, i] - joint[:, j], atol=1e-9 * np.abs(joint).max())
        assert np.any(boundary.A != 0) == (name != "lda")


def test_sphering_makes_the_pooled_covariance_the_identity():
    data = load_example("wine")
    moments = moments_of(data)
    model = plug_in_lda(moments)
    Z = model.sphere(data.X)
    sphered = Moments.from_arrays(Z, data.y, data.K)
    np.testing.assert_allclose(sphered.scatter.sum(axis=0) / data.n, np.eye(data.d), atol=1e-8)
    distance = ((Z[:, None] - model.sphere(model.mu)) ** 2).sum(axis=2)
    np.testing.assert_allclose(distance, model.mahalanobis(data.X), rtol=1e-8)


@pytest.mark.parametrize("example", ["wine", "three-spheres", "iris", "lda-mixture"])
def test_reduced_and_full_classification_agree_on_every_row(example):
    data = load_example(example)
    model = plug_in_lda(moments_of(data))
    projection = model.projection()
    assert projection.directions.shape == (data.d, data.K - 1)
    np.testing.assert_array_equal(projection.classify(data.X), model.linear_discriminants(data.X).argmax(axis=1))
    # Within classes the projected rows are uncorrelated with unit variance.
    projected = Moments.from_arrays(projection(data.X), data.y, data.K)
    np.testing.assert_allclose(projected.scatter.sum(axis=0) / data.n, np.eye(data.K - 1), atol=1e-8)
    assert (np.diff(projection.spread) <= 0).all()


def test_the_projection_spans_the_same_space_as_scikit_learns_and_the_textbooks():
    data = load_example("three-spheres")
    truth = EXAMPLE_TRUTHS["three-spheres"]
    directions = Gaussians(truth.pi, truth.mu, truth.Sigma).projection().directions
    W = (truth.mu[1:] - truth.mu[0]).T  # 3 × 2, as in the lecture: the projector is W W⁺
    np.testing.assert_allclose(directions @ np.linalg.pinv(directions), W @ np.linalg.pinv(W), atol=1e-10)
    sklearn = LinearDiscriminantAnalysis(solver="svd").fit(data.X, data.y).scalings_[:, :2]
    ours = plug_in_lda(moments_of(data)).projection().directions
    cosines = np.linalg.svd(np.linalg.qr(ours)[0].T @ np.linalg.qr(sklearn)[0])[1]
    np.testing.assert_allclose(cosines, 1, atol=1e-10)


def test_means_on_a_line_need_one_direction_only():
    mu = np.array([[0.0, 0], [1, 1], [3, 3]])
    projection = Gaussians(np.full(3, 1 / 3), mu, np.eye(2)).projection()
    assert projection.directions.shape == (2, 1)


def test_lda_in_the_augmented_space_has_a_quadratic_boundary():
    """LDA on (x₁, x₂, x₁², x₁x₂, x₂²) draws a curve that linear LDA cannot, and nears QDA on QDA's own data."""
    data = load_example("qda-mixture")
    phi = FeatureMap.fit(data.X, data.feature_names, degree=2, intercept=False)
    model = plug_in_lda(Moments.from_arrays(phi(data.X), data.y, 2))
    w, c = model.threshold_unit()
    with_intercept = FeatureMap.fit(data.X, data.feature_names, degree=2)
    _, _, _, q11, q12, q22 = with_intercept.to_original_units(np.append(c, w))
    A = np.array([[q11, q12 / 2], [q12 / 2, q22]])
    assert np.abs(A).max() > 0.1  # quadratic, and not by a hair
    # Along a line the sign of a linear rule changes at most once; this one's changes twice on some.
    t = np.linspace(-100, 100, 20_001)
    lines = [np.column_stack([t, np.full_like(t, height)]) for height in np.linspace(-6, 6, 25)]
    changes = [np.count_nonzero(np.diff(np.sign(phi(line) @ w + c))) for line in lines]
    assert max(changes) == 2
    errors = {
        "augmented": np.mean((phi(data.X) @ w + c > 0) != data.y),
        "linear": np.mean(plug_in_lda(moments_of(data)).log_joint(data.X).argmax(1) != data.y),
        "quadratic": np.mean(plug_in_qda(moments_of(data)).log_joint(data.X).argmax(1) != data.y),
    }
    assert errors["augmented"] <= min(errors["linear"], errors["quadratic"]) + 0.01


# ── the projection matrices of the textbook ───────────────────────────────────────────────────────────────────────────


def test_projection_matrices_are_those_of_the_textbook():
    """P = WW⁺ = W(WᵀW)⁻¹Wᵀ = UD(DᵀD)⁻¹DᵀUᵀ and R = UᵀP, for the three means in three dimensions."""
    mu = EXAMPLE_TRUTHS["three-spheres"].mu
    space = mean_subspace(mu)
    W = np.column_stack([mu[1] - mu[0], mu[2] - mu[0]])
    np.testing.assert_array_equal(space.W, W)
    np.testing.assert_allclose(space.P, W @ np.linalg.pinv(W), atol=1e-14)
    np.testing.assert_allclose(space.P, W @ np.linalg.inv(W.T @ W) @ W.T, atol=1e-14)
    U, size, _ = np.linalg.svd(W)
    D = np.zeros((3, 2))
    np.fill_diagonal(D, size)
    np.testing.assert_allclose(space.P, U @ D @ np.linalg.inv(D.T @ D) @ D.T @ U.T, atol=1e-14)
    # Signs of the columns of U are free, so rows of R agree up to theirs.
    np.testing.assert_allclose(np.abs(space.R), np.abs(U.T @ space.P), atol=1e-14)
    np.testing.assert_array_equal(space.R[2], 0)
    # worked by hand: the normal of the plane is (μ₂−μ₁)×(μ₃−μ₁) ∝ (−8, 1, −1), and P = I − nnᵀ/|n|²
    n = np.array([-8.0, 1.0, -1.0])
    np.testing.assert_allclose(space.P, np.eye(3) - np.outer(n, n) / 66, atol=1e-14)


def test_projection_to_the_means_keeps_every_decision():
    data = load_example("wine")
    model = plug_in_lda(moments_of(data))
    X, mu = model.sphere(data.X), model.sphere(model.mu)
    space = mean_subspace(mu)
    assert space.rank == 2
    Z, centres = space(X), space(mu)
    distance = ((Z[:, None] - centres) ** 2).sum(axis=2)
    whole = model.mahalanobis(data.X)
    # the same constant is lost from all three distances of a row
    np.testing.assert_allclose(distance - distance[:, :1], whole - whole[:, :1], atol=1e-6)
    np.testing.assert_array_equal((distance - 2 * np.log(model.pi)).argmin(1), model.log_joint(data.X).argmax(1))
    # the same plane as the discriminant directions, which are turned within it
    directions = model.projection()
    np.testing.assert_allclose(
        np.linalg.norm(centres[:, None] - centres, axis=2),
        np.linalg.norm(directions.means[:, None] - directions.means, axis=2),
    )


def test_means_on_a_line_span_a_line():
    """Where WᵀW has no inverse the pseudoinverse still projects."""
    space = mean_subspace(np.array([[0.0, 0, 1], [1, 2, 1], [2, 4, 1], [-3, -6, 1]]))
    assert space.rank == 1
    np.testing.assert_allclose(space.P, np.outer([1, 2, 0], [1, 2, 0]) / 5, atol=1e-15)
    np.testing.assert_allclose(space(np.array([[1.0, 2, 7]])), [[np.sqrt(5)]])
    with pytest.raises(DataError, match="at least 2 class means"):
        mean_subspace(np.array([1.0, 2.0]))


# ── refusals ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_needs_a_shared_covariance_says_so():
    data = load_example("iris")
    model = plug_in_qda(moments_of(data))
    for method in (model.threshold_unit, model.projection, model.linear_coefficients, lambda: model.sphere(data.X)):
        with pytest.raises(DataError, match="needs one covariance shared by all classes"):
            method()


def test_too_few_rows_and_singular_covariances_are_refused():
    X = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 0.0], [5.0, 5.0], [6.0, 5.5]])
    moments = Moments.from_arrays(X, np.array([0, 0, 0, 1, 1]), 2)
    with pytest.raises(DataError, match="Class 1 has 2 rows; plug-in QDA needs at least 3"):
        plug_in_qda(moments)
    with pytest.raises(DataError, match="needs more rows than classes"):
        plug_in_lda(Moments.from_arrays(X[2:4], np.array([0, 1]), 2), unbiased=True)
    collinear = np.column_stack([X[:, 0], 2 * X[:, 0]])
    with pytest.raises(DataError, match="LDA: the estimated covariance is singular"):
        plug_in_lda(Moments.from_arrays(collinear, np.array([0, 0, 0, 1, 1]), 2))
