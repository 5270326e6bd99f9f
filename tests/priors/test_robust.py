"""The default prior on the scale of most rows: outliers do not set it, and without any it is nearly the usual one."""

import numpy as np
import pytest
from scipy import stats

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.priors import NIW
from bayes_gda.priors.robust import robust_default, student_weights


def test_gross_outliers_do_not_set_the_units():
    data = load_example("iris")
    clean = robust_default(data.X, data.y, data.K)
    X = data.X.copy()
    X[::20] = 1e4 * np.random.default_rng(0).standard_normal(X[::20].shape)
    spoilt = robust_default(X, data.y, data.K)
    usual = NIW.default(Moments.from_arrays(X, data.y, data.K))
    scale = np.diag(clean.Psi)
    assert (np.abs(np.diag(spoilt.Psi) / scale - 1) < 1).all()
    assert (np.diag(usual.Psi) > 1e4 * scale).all()
    np.testing.assert_allclose(spoilt.m, clean.m, atol=0.3)


def test_gaussian_rows_have_nearly_the_usual_prior():
    """The scale of a t fit with ν = 4 to Gaussian rows of three features is 0.72 of their covariance, by quadrature."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((60_000, 3)), np.arange(60_000) % 2
    # The fixed point 1 = E[r δ]/d with δ = χ²/c, r = (4 + d)/(4 + δ).
    chi2 = stats.chi2(3).ppf((np.arange(200_000) + 0.5) / 200_000)
    factors = np.linspace(0.5, 1, 2001)
    mean = np.array([np.mean(7 * chi2[::50] / c / (4 + chi2[::50] / c)) / 3 for c in factors])
    c = factors[np.argmin(np.abs(mean - 1))]
    robust, usual = robust_default(X, y, 2), NIW.default(Moments.from_arrays(X, y, 2))
    np.testing.assert_allclose(np.diag(robust.Psi) / np.diag(usual.Psi), c, rtol=0.03)


def test_the_weights_are_the_fixed_point_of_the_student_fit():
    rng = np.random.default_rng(2)
    X = stats.multivariate_t([1.0, 2.0], [[2.0, 0.8], [0.8, 1.0]], df=3).rvs(4000, random_state=rng)
    r = student_weights(X, np.zeros(4000, dtype=np.intp), np.ones(4000))
    assert r.mean() == pytest.approx(1, abs=0.01)  # Kent, Tyler & Vardi
    mean = r @ X / r.sum()
    Sigma = (X - mean).T @ (r[:, None] * (X - mean)) / 4000
    delta = np.einsum("ni,ij,nj->n", X - mean, np.linalg.inv(Sigma), X - mean)
    np.testing.assert_allclose(r, 6 / (4 + delta), atol=0.01)


def test_few_rows_and_flat_features_are_fine():
    X = np.column_stack([np.arange(6.0), np.zeros(6), [0, 0, 0, 0, 0, 1.0]])
    prior = robust_default(X, np.array([0, 0, 0, 1, 1, 2]), 3)
    assert np.isfinite(prior.Psi).all()


def test_weights_count_rows():
    rng = np.random.default_rng(4)
    X, y, times = rng.standard_normal((50, 3)), np.arange(50) % 3, rng.integers(1, 5, size=50)
    repeated = robust_default(np.repeat(X, times, axis=0), np.repeat(y, times), 3)
    weighted = robust_default(X, y, 3, times.astype(float))
    np.testing.assert_allclose(weighted.Psi, repeated.Psi, rtol=1e-9)
    np.testing.assert_allclose(weighted.m, repeated.m, rtol=1e-9)
