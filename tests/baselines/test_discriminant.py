"""Plug-in discriminant analysis against scikit-learn, SciPy and the notes' worked examples."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayes_gda.baselines import PlugInLDA, PlugInNaiveGaussian, PlugInQDA
from bayes_gda.errors import DataError

IRIS = load_iris(return_X_y=True)


def with_moments(mu, Sigma):
    """2d rows whose mean and 1/n covariance are exactly these: μ ± √d L e_j."""
    mu, L = np.asarray(mu, float), np.linalg.cholesky(Sigma)
    d = len(mu)
    return mu + np.sqrt(d) * np.vstack([L.T, -L.T])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (PlugInLDA(), LinearDiscriminantAnalysis(solver="lsqr")),
        (PlugInQDA(), QuadraticDiscriminantAnalysis()),
        (PlugInNaiveGaussian(), GaussianNB(var_smoothing=0)),
    ],
)
def test_probabilities_equal_scikit_learn(ours, theirs):
    X, y = IRIS
    p, q = ours.fit(X, y).predict_proba(X), theirs.fit(X, y).predict_proba(X)
    np.testing.assert_allclose(p, q, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(np.exp(ours.predict_log_proba(X)), p)
    assert ours.learning_curve_["errors"].tolist() == [(theirs.predict(X) != y).sum()]
    assert ours.learning_curve_["loss"][0] == pytest.approx(-np.log(q[np.arange(150), y]).mean())


@pytest.mark.parametrize(
    "model", [PlugInLDA(unbiased=True), PlugInQDA(unbiased=True), PlugInNaiveGaussian(unbiased=True)]
)
def test_unbiased_divisors(model):
    """Joint densities by SciPy with NumPy's own covariances, which divide by n_k − 1."""
    X, y = IRIS
    covariances = [np.cov(X[y == k].T) for k in range(3)]
    if isinstance(model, PlugInLDA):
        covariances = [sum(covariances) / 3] * 3  # 50 rows each: Σ S_k/(n − K) is the plain mean
    if isinstance(model, PlugInNaiveGaussian):
        covariances = [np.diag(np.diag(S)) for S in covariances]
    truth = [multivariate_normal(X[y == k].mean(axis=0), S).logpdf(X) - np.log(3) for k, S in enumerate(covariances)]
    np.testing.assert_allclose(model.fit(X, y).decision_function(X), np.transpose(truth), rtol=1e-9)


def test_the_notes_linear_boundary():
    """μ₀ = (0, 0), μ₁ = (2, 4): a = 2Σ⁻¹(μ₁ − μ₀), b = −μ₁ᵀΣ⁻¹μ₁, and the boundary is aᵀx + b = 0."""
    Sigma, mu = np.array([[2, 0.7], [0.7, 2]]), np.array([2.0, 4.0])
    X = np.vstack([with_moments([0, 0], Sigma), with_moments(mu, Sigma)])
    model = PlugInLDA().fit(X, np.repeat([0, 1], 4))
    np.testing.assert_allclose(model.gaussians_.Sigma, Sigma, atol=1e-14)
    grid = np.random.default_rng(0).uniform(-4, 6, size=(50, 2))
    a, b = 2 * np.linalg.solve(Sigma, mu), -mu @ np.linalg.solve(Sigma, mu)
    np.testing.assert_allclose(model.decision_function(grid), (grid @ a + b) / 2, atol=1e-10)


def test_the_notes_quadratic_boundary():
    mu, Sigma = [[0, 0], [2, 2]], [[[1, 0.3], [0.3, 1]], [[0.3, 0.3], [0.3, 1]]]
    X = np.vstack([with_moments(m, S) for m, S in zip(mu, Sigma, strict=True)])
    model = PlugInQDA().fit(X, np.repeat([0, 1], 4))
    grid = np.random.default_rng(0).uniform(-3, 5, size=(50, 2))
    densities = [multivariate_normal(m, S).logpdf(grid) for m, S in zip(mu, Sigma, strict=True)]
    np.testing.assert_allclose(model.decision_function(grid), densities[1] - densities[0], atol=1e-9)


def test_too_few_rows_name_the_class():
    X, y = np.random.default_rng(0).normal(size=(12, 3)), ["a"] * 9 + ["b"] * 3
    with pytest.raises(DataError, match=r"Class 'b' has 3 rows; plug-in QDA needs at least 4. Merge classes"):
        PlugInQDA().fit(X, y)
    with pytest.raises(DataError, match=r"Class 'c' has 1 row .*; plug-in naive Gaussian needs at least 2"):
        PlugInNaiveGaussian().fit(X, [*y[:-1], "c"])
    with pytest.raises(DataError, match="singular"):
        PlugInLDA().fit(X[:, [0, 1, 1]], y)


# ── Gaps ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

EVERY = pytest.mark.parametrize("cls", [PlugInLDA, PlugInQDA, PlugInNaiveGaussian])


def gapped(share=0.2):
    X, y = IRIS
    return np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, X), y


@EVERY
def test_no_likelihood_of_what_was_observed_is_higher(cls):
    """The estimate against itself moved a little in every direction, by densities of SciPy."""
    X, y = gapped()
    found = cls().fit(X, y).gaussians_

    def log_likelihood(mu, Sigma):
        total = 0.0
        for x, k in zip(X, y, strict=True):
            o = ~np.isnan(x)
            if o.any():
                spread = Sigma if Sigma.ndim == 2 else Sigma[k]
                total += multivariate_normal(mu[k, o], spread[np.ix_(o, o)]).logpdf(x[o])
        return total

    best = log_likelihood(found.mu, found.Sigma)
    for j in range(4):
        step = 0.05 * np.eye(4)[j]
        for sign in (-1, 1):
            assert log_likelihood(found.mu + sign * step, found.Sigma) < best
            assert log_likelihood(found.mu, found.Sigma * (1 + sign * step) * (1 + sign * step)[:, None]) < best


@EVERY
def test_what_a_row_lacks_is_integrated_out(cls):
    X, y = IRIS
    model = cls().fit(X, y)
    row = X[70:71].copy()
    row[0, 2] = np.nan
    grid = np.linspace(-5, 15, 4001)
    filled = np.repeat(row, len(grid), axis=0)
    filled[:, 2] = grid
    joint = np.exp(model.gaussians_.log_joint(filled)).sum(axis=0)
    np.testing.assert_allclose(model.predict_proba(row)[0], joint / joint.sum(), rtol=1e-8)
    np.testing.assert_allclose(model.predict_proba(np.full((1, 4), np.nan)), 1 / 3)


@EVERY
def test_gaps_cost_little(cls):
    X, y = gapped()
    model = cls().fit(X, y)
    assert (model.predict(IRIS[0]) == y).mean() > 0.93
    assert (model.predict(X) == y).mean() > 0.85
    assert model.learning_curve_["errors"].tolist() == [(model.predict(X) != y).sum()]


@EVERY
def test_gaps_that_leave_too_little_are_named(cls):
    X, y = gapped()
    labels = np.array(["a", "b", "c"])[y]
    X[(y == 1).nonzero()[0][1:], 3] = np.nan
    X[(y == 1).nonzero()[0][0], 3] = 1.0
    with pytest.raises(DataError, match=r"Class 'b' has 1 observed values of feature '3'.*use the Bayesian model"):
        cls().fit(X, labels)
    with pytest.raises(DataError, match="unbiased=True needs complete rows"):
        cls(unbiased=True).fit(*gapped())
