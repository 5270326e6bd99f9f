"""Moments of activations against their definition."""

import tracemalloc

import numpy as np
import pytest

from bayes_gda import linalg
from bayes_gda.families.linear import softmax_links
from bayes_gda.families.linear.predictors import SoftmaxPredictor, softmax_activations
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo


@pytest.mark.parametrize("reference", [False, True])
@pytest.mark.parametrize("K", [2, 3, 4, 5])
def test_activations_less_the_last_have_the_moments_of_linear_functions(K, reference):
    """Few classes take a root of the covariance, more take it pair by pair."""
    m, rng = 3, np.random.default_rng(K)
    dim = m * (K - reference)
    A = rng.normal(size=(dim, dim))
    L = np.linalg.cholesky(A @ A.T + np.eye(dim))
    posterior = GaussianPosterior(rng.normal(size=dim), L, 0.0, NewtonInfo(True, 1, 0.0))
    Phi = rng.normal(size=(7, m))
    mean, cov = softmax_activations(posterior, K, reference_class=reference)(Phi)
    V = posterior.covariance
    for i, phi in enumerate(Phi):
        T = np.kron(np.eye(K)[:, : K - reference], phi)  # from weights to activations
        T = T - T[-1]
        np.testing.assert_allclose(mean[i], T @ posterior.mean, atol=1e-12)
        np.testing.assert_allclose(cov[i], T @ V @ T.T, atol=1e-12)


def test_weights_that_nothing_tells_apart_have_no_variance_of_their_difference():
    """The covariance of the differences is singular but for rounding: a root is found all the same."""
    shared = np.array([[1.0, 0.3], [0.3, 2.0]])
    V = np.kron(np.ones((3, 3)), shared) + 1e-13 * np.eye(6)
    L = np.linalg.cholesky(np.linalg.inv(V))
    posterior = GaussianPosterior(np.zeros(6), L, 0.0, NewtonInfo(True, 1, 0.0))
    mean, cov = softmax_activations(posterior, 3)(np.array([[1.0, -2.0]]))
    np.testing.assert_array_equal(mean, 0)
    np.testing.assert_allclose(cov, 0, atol=1e-2)
    assert (np.einsum("nkk->nk", cov) >= 0).all()


@pytest.mark.parametrize("link", ["exact", "probit"])
def test_probabilities_do_not_depend_on_the_blocks(link, monkeypatch):
    posterior, Phi, K = many_classes(n=40, K=5)
    whole = SoftmaxPredictor(Phi, K).gaussian(posterior, link)
    form = softmax_links.mean_field if link == "probit" else softmax_links.expected_softmax
    np.testing.assert_allclose(whole, form(*softmax_activations(posterior, K)(Phi)), rtol=1e-9)
    monkeypatch.setattr(linalg, "WIDE_ELEMENTS", 1000)
    assert linalg.moment_width(Phi.shape[1], K) > linalg.BLOCK_ELEMENTS / len(Phi)
    np.testing.assert_allclose(SoftmaxPredictor(Phi, K).gaussian(posterior, link), whole, rtol=1e-9)


def test_covariances_of_many_classes_are_not_all_in_memory():
    """1000 rows of 100 classes have covariances of 80 MB, and the link several numbers for each of them."""
    posterior, Phi, K = many_classes(n=1000, K=100)
    tracemalloc.start()
    try:
        P = SoftmaxPredictor(Phi, K).gaussian(posterior, "probit")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert most < 2e8


def many_classes(n, K, m=3):
    rng = np.random.default_rng(0)
    L = np.linalg.cholesky(np.eye(K * m) + 0.1)
    posterior = GaussianPosterior(rng.normal(size=K * m), L, 0.0, NewtonInfo(True, 1, 0.0))
    return posterior, rng.normal(size=(n, m)), K
