"""Fitted regressions against quadrature, closed forms and loops over draws."""

from dataclasses import replace

import numpy as np
import pytest
from fitted import IRIS, regression
from scipy.integrate import quad
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax
from scipy.stats import norm

from bayes_gda import linalg
from bayes_gda.data.features import FeatureMap
from bayes_gda.errors import DataError
from bayes_gda.families.linear.classifier import RegressionClassifier
from bayes_gda.families.linear.predictors import BinaryPredictor, SoftmaxPredictor
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo


def test_binary_probabilities_are_the_logistic_normal_integral():
    model = regression(2)
    X = IRIS.X[:10]
    Phi = model.features(X)
    mu, s = Phi @ model.posterior.mean, np.sqrt(np.einsum("nm,mk,nk->n", Phi, model.posterior.covariance, Phi))
    for log_p, m, sd in zip(model.log_probabilities(X), mu, s, strict=True):
        for k, sign in enumerate((-1, 1)):
            p = quad(lambda a, m=m, sd=sd, sign=sign: expit(sign * a) * norm.pdf(a, m, sd), m - 12 * sd, m + 12 * sd)[0]
            assert np.exp(log_p[k]) == pytest.approx(p, rel=1e-6)


def test_tiny_probabilities_keep_their_digits():
    """E σ(N(−t, t)) = ½e^{−t/2} (Pirjol), where the mixture alone is off by all digits."""
    phi = FeatureMap.fit(np.array([[0.0], [1.0]]), standardize=False)
    t = 100.0
    # a = w₁x at x = 1 with w₁ ~ N(−t, t)
    posterior = GaussianPosterior(np.array([0.0, -t]), np.diag([1e8, t**-0.5]), 0.0, NewtonInfo(True, 1, 0.0))
    model = RegressionClassifier(phi, 2, True, False, np.array([0.5, 0.5]), posterior=posterior)
    assert model.log_probabilities(np.array([[1.0]]))[0, 1] == pytest.approx(np.log(0.5) - t / 2, abs=1e-7)


@pytest.mark.parametrize(("K", "reference"), [(2, False), (3, False), (3, True)])
def test_draws_are_averaged_as_probabilities(K, reference):
    model, X = regression(K, reference=reference, size=300), IRIS.X[::10]
    Phi, P = model.features(X), np.zeros((15, K))
    for w in model.draws:
        if K == 2:
            p = expit(Phi @ w)
            P += np.column_stack([1 - p, p])
        else:
            W = np.zeros((K, Phi.shape[1]))
            W[: K - reference] = w.reshape(K - reference, -1)
            P += softmax(Phi @ W.T, axis=1)
    np.testing.assert_allclose(np.exp(model.log_probabilities(X)), P / 300, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(
        model.probability_draws(model.draw_variables(300), X)[0].mean(axis=0), P / 300, rtol=1e-9, atol=1e-15
    )
    w = model.draw_variables(300)["w"]
    assert w.shape == ((300, 5) if K == 2 else (300, K, 5))
    if reference:
        assert (w[:, -1] == 0).all()


@pytest.mark.parametrize(("K", "reference"), [(2, False), (3, False), (3, True)])
def test_many_rows_many_draws_and_probabilities_below_any_float(K, reference):
    """Several blocks of rows, of draws and of threads, against a loop in logs."""
    model = regression(K, reference=reference, size=1300)
    mean = model.draws.mean(axis=0)
    model = replace(model, draws=mean + 0.05 * (model.draws - mean))  # that agree on what is impossible
    X = np.repeat(IRIS.X, 10, axis=0) + np.linspace(0, 400, 1500)[:, None]
    log_p = model.log_probabilities(X)
    assert log_p.min() < -1000
    for i in range(0, 1500, 37):
        a = model.draws.reshape(1300, -1, 5) @ model.features(X[i : i + 1])[0]
        terms = np.column_stack([log_expit(-a), log_expit(a)]) if K == 2 else log_softmax(_with_zero(a, K), axis=1)
        np.testing.assert_allclose(log_p[i], logsumexp(terms, axis=0) - np.log(1300), rtol=1e-11, atol=1e-14)


def _with_zero(a, K):
    return np.column_stack([a, np.zeros((len(a), K - a.shape[1]))])


@pytest.mark.parametrize(("K", "reference"), [(2, False), (4, False), (4, True)])
def test_weighted_averages_of_many_draws(K, reference):
    """Mean and importance error of several blocks of draws, by their definition."""
    model, rng = regression(K, reference=reference, size=1300), np.random.default_rng(0)
    weight = rng.exponential(size=1300)
    weight /= weight.sum()
    Phi = model.features(IRIS.X)
    predictor = BinaryPredictor(Phi) if K == 2 else SoftmaxPredictor(Phi, K, reference)
    mean, error = predictor.averaged(model.draws, weight)
    P = model.probability_draws({"w": model._full(model.draws)}, IRIS.X)[0]
    expected = np.tensordot(weight, P, axes=1)
    np.testing.assert_allclose(mean, expected, rtol=1e-12)
    np.testing.assert_allclose(error, np.sqrt(np.tensordot(weight**2, (P - expected) ** 2, axes=1)), rtol=1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_gaussian_and_its_draws_agree(K):
    gaussian, sampled = regression(K), regression(K, size=40_000)
    difference = np.exp(gaussian.log_probabilities(IRIS.X)) - np.exp(sampled.log_probabilities(IRIS.X))
    assert np.abs(difference).max() < 0.01


@pytest.mark.parametrize("size", [None, 50])
def test_other_shares_move_the_odds_of_a_regression(size):
    model, share = regression(2, size=size), np.array([0.9, 0.1])
    P, Q = np.exp(model.log_probabilities(IRIS.X)), np.exp(model.log_probabilities(IRIS.X, share))
    np.testing.assert_allclose(Q[:, 1] / Q[:, 0], P[:, 1] / P[:, 0] / 9, rtol=1e-9)
    variables = model.draw_variables(9, random_seed=0)
    P, Q = (model.probability_draws(variables, IRIS.X, c)[0] for c in (None, share))
    np.testing.assert_allclose(Q[..., 1] / Q[..., 0], P[..., 1] / P[..., 0] / 9, rtol=1e-9)


@pytest.mark.parametrize("size", [None, 60])
@pytest.mark.parametrize("K", [2, 3])
def test_the_size_of_the_blocks_changes_nothing(K, size, monkeypatch):
    model = regression(K, size=size)
    whole = model.log_probabilities(IRIS.X)
    monkeypatch.setattr(linalg, "WIDE_ELEMENTS", 1)
    monkeypatch.setattr(linalg, "BLOCK_ELEMENTS", 1)
    np.testing.assert_allclose(model.log_probabilities(IRIS.X), whole, rtol=1e-10, atol=1e-12)


def test_draws_at_hand_are_thinned_or_repeated():
    model, name = regression(3, size=20), "w"
    every = model.draw_variables(20)[name]
    assert len(np.unique(every.reshape(20, -1), axis=0)) == 20
    thinned = model.draw_variables(7)[name]
    assert len(np.unique(thinned.reshape(7, -1), axis=0)) == 7
    repeated = model.draw_variables(50, random_seed=0)[name]
    assert set(map(bytes, repeated)) <= set(map(bytes, np.ascontiguousarray(every)))
    np.testing.assert_array_equal(repeated, model.draw_variables(50, random_seed=0)[name])


def test_a_model_has_one_source():
    model = regression(2)
    with pytest.raises(DataError, match="either `posterior` or `draws`"):
        RegressionClassifier(model.features, 2, True, False, model.shares, model.posterior, np.zeros((3, 5)))
