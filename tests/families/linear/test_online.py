"""Filtering against exact cases."""

import numpy as np
import pytest
from scipy.special import logsumexp

from bayes_gda.errors import DataError
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.online import FilteredTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo, laplace_approximation
from bayes_gda.priors import Normal


def gaussian(mean, covariance):
    L = np.linalg.cholesky(np.linalg.inv(covariance))
    return GaussianPosterior(np.asarray(mean, dtype=float), L, 0.0, NewtonInfo(True, 1, 0.0))


def test_filtering_with_a_gaussian_is_that_gaussian_as_a_prior():
    rng = np.random.default_rng(6)
    Phi, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    A = rng.normal(size=(3, 3))
    mean, S = rng.normal(size=3), A @ A.T + np.eye(3)
    flat = LogisticTarget(Phi, y, Normal(scale=np.inf))
    filtered, truth = FilteredTarget(flat, gaussian(mean, S)), LogisticTarget(Phi, y, Normal(mean=mean, covariance=S))
    W = rng.normal(size=(5, 3))
    np.testing.assert_allclose(filtered.log_density(W), truth.log_density(W), rtol=1e-12)
    np.testing.assert_allclose(filtered.gradient(W[0]), truth.gradient(W[0]), rtol=1e-10)
    np.testing.assert_allclose(filtered.precision(W[0]), truth.precision(W[0]), rtol=1e-10)
    for a, b in zip(filtered.value_gradient_precision(W[0]), truth.value_gradient_precision(W[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    np.testing.assert_allclose(filtered.third_order_trace(W[0], S), truth.third_order_trace(W[0], S), rtol=1e-12)
    np.testing.assert_allclose(filtered.third_order_form(W[0], W), truth.third_order_form(W[0], W), rtol=1e-12)
    assert laplace_approximation(filtered).log_evidence == pytest.approx(laplace_approximation(truth).log_evidence)
    with pytest.raises(DataError, match="The posterior has 2 weights, the batch 3"):
        FilteredTarget(flat, gaussian(np.zeros(2), np.eye(2)))


def test_the_evidence_of_filtering_is_the_integral():
    """One weight: the integral of likelihood × Gaussian by quadrature; a narrow Gaussian makes Laplace exact."""
    Phi, y = np.ones((6, 1)), np.array([1, 1, 0, 1, 0, 1])
    target = FilteredTarget(LogisticTarget(Phi, y, Normal(scale=np.inf)), gaussian([0.4], [[1e-4]]))
    w = np.linspace(0.4 - 0.1, 0.4 + 0.1, 20_001)
    quadrature = logsumexp(target.log_density(w[:, None])) + np.log(w[1] - w[0])
    assert laplace_approximation(target, np.array([0.4])).log_evidence == pytest.approx(quadrature, abs=1e-6)


def test_filtering_takes_a_prior_that_couples_the_classes():
    """Softmax weights of one feature: the derivative of log p is its gradient, and H its negative Hessian."""
    rng = np.random.default_rng(7)
    flat = SoftmaxTarget(rng.normal(size=(20, 2)), rng.integers(0, 3, 20), 3, Normal(scale=np.inf))
    A = rng.normal(size=(6, 6))
    target, w = FilteredTarget(flat, gaussian(rng.normal(size=6), A @ A.T + np.eye(6))), rng.normal(size=6)
    h = 1e-5 * np.eye(6)
    slope = [(target.log_density(w + e) - target.log_density(w - e)) / 2e-5 for e in h]
    curve = [(target.gradient(w - e) - target.gradient(w + e)) / 2e-5 for e in h]
    np.testing.assert_allclose(target.gradient(w), slope, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(target.precision(w), curve, rtol=1e-6, atol=1e-7)
