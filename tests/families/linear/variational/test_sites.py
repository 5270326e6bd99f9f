"""The Gaussian variational approximation of softmax regression: expectations, optimality, and the binary case."""

import numpy as np
import pytest
from scipy.special import log_softmax, logsumexp, softmax

from bayes_gda.data.examples import load_example
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.linear.ep.logistic import logistic_ep
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.sites import (
    RepeatedPrior,
    SoftmaxSites,
    average_over_points,
    expand,
    softmax_variational,
)
from bayes_gda.methods.ep.variational import variational_gaussian
from bayes_gda.priors import Normal


def activations(K, R, sd, b=60, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(b, R, R)) / np.sqrt(R)
    S = sd**2 * (A @ A.transpose(0, 2, 1) + 0.3 * np.eye(R))
    return 2 * rng.normal(size=(b, R)), S, rng.integers(0, K, b)


def sampled(mu, S, y, K, size=100_000):
    """The expectations by independent draws of each row's activations."""
    R, rng = mu.shape[1], np.random.default_rng(1)
    p, tau, log_p = np.empty((len(mu), R)), np.empty(S.shape), np.empty(len(mu))
    for i, (m, C, label) in enumerate(zip(mu, S, y, strict=True)):
        half = rng.standard_normal((size // 2, R))
        a = np.zeros((size, K))
        a[:, :R] = m + np.vstack([half, -half]) @ np.linalg.cholesky(C).T
        P = softmax(a, axis=1)
        p[i], log_p[i] = P.mean(axis=0)[:R], log_softmax(a, axis=1)[:, label].mean()
        tau[i] = (np.diag(P.mean(axis=0)) - P.T @ P / size)[:R, :R]
    return p, tau, log_p


@pytest.mark.parametrize(("K", "R"), [(2, 2), (4, 4), (4, 3)])
def test_expectations_against_plain_draws(K, R):
    narrow, wide = activations(K, R, 0.1, b=5), activations(K, R, 3.0, b=5)
    for got, truth in zip(expand(*narrow, K)[:3], sampled(*narrow, K), strict=True):
        np.testing.assert_allclose(got, truth, atol=3e-4)
    for sd_case, digits in ((narrow, 5e-5), (wide, 0.02)):
        averages = average_over_points(*(x.copy() for x in sd_case), K, 128)
        for got, truth in zip(averages[:2], sampled(*sd_case, K)[:2], strict=True):
            np.testing.assert_allclose(got, truth, atol=digits + 1e-3)


def test_integrating_each_activation_exactly_pays_where_they_are_wide():
    """sd 20: the plain average of p(1 − p) over as many points is several times as rough."""
    mu, S, y = activations(5, 5, 20.0)
    truth = average_over_points(mu, S.copy(), y, 5, 8192)[1]
    smooth = average_over_points(mu, S.copy(), y, 5, 128)[1] - truth
    z = np.random.default_rng(0).standard_normal((5, 128))
    P = softmax(mu[:, :, None] + np.linalg.cholesky(S) @ z, axis=1)
    plain = -P @ P.transpose(0, 2, 1) / 128
    plain[:, range(5), range(5)] += P.mean(axis=2)
    assert np.sqrt(np.mean(smooth**2)) < 0.3 * np.sqrt(np.mean((plain - truth) ** 2))


def test_the_precision_is_never_indefinite():
    mu, S, y = activations(6, 6, 30.0)
    assert np.linalg.eigvalsh(average_over_points(mu, S, y, 6, 32)[1]).min() > -1e-12


def iris():
    data = load_example("iris")
    X = (data.X - data.X.mean(0)) / data.X.std(0)
    return SoftmaxTarget(np.column_stack([np.ones(data.n), X]), data.y, 3, Normal.default(5))


def bound_by_draws(target, mean, root, z):
    """The evidence bound at N(mean, root rootᵀ), over fixed standard normal draws z."""
    dim = len(mean)
    entropy = 0.5 * dim * (1 + np.log(2 * np.pi)) + np.linalg.slogdet(root)[1]
    return float(target.log_density(mean + z @ root.T).mean()) + entropy


def test_the_bound_is_largest_there():
    """By common draws of all weights, which the method does not use, the bound falls in every direction."""
    target = iris()
    laplace = regression_laplace(target)
    posterior = softmax_variational(target, laplace)
    half = np.random.default_rng(0).standard_normal((4_000, target.dim))
    z = np.vstack([half, -half])
    mean, root = posterior.mean, np.linalg.cholesky(posterior.covariance)
    best = bound_by_draws(target, mean, root, z)
    assert posterior.log_evidence == pytest.approx(best, abs=0.15)
    assert best > bound_by_draws(target, laplace.mean, np.linalg.cholesky(laplace.covariance), z) + 1.0
    rng = np.random.default_rng(1)
    for _ in range(5):
        d = rng.standard_normal(target.dim)
        d /= np.linalg.norm(d)
        assert all(bound_by_draws(target, mean + t * root @ d, root, z) < best + 0.01 for t in (-0.3, 0.3))
        assert all(
            bound_by_draws(target, mean, root @ (np.eye(len(d)) + t * np.outer(d, d)), z) < best + 0.01
            for t in (-0.25, 0.3)
        )


def test_the_bound_is_below_the_evidence():
    target = iris()
    posterior = softmax_variational(target, regression_laplace(target))
    draws = posterior.draw(20_000, random_seed=0)
    log_ratio = target.log_density(draws) - posterior.log_density(draws)
    assert posterior.log_evidence < float(logsumexp(log_ratio)) - np.log(len(draws)) + 0.05


def test_two_classes_with_a_reference_are_logistic_regression():
    """The sites of the first class are E σ and E σ′ under its activation, by a sum over 4001 points."""
    rng = np.random.default_rng(3)
    Phi = np.column_stack([np.ones(40), rng.normal(size=(40, 2))])
    y = rng.integers(0, 2, 40)
    target = SoftmaxTarget(Phi, y, 2, Normal(scale=2.0), reference=True)
    mean, root = rng.normal(size=3), np.tril(rng.normal(size=(3, 3)))
    sums = SoftmaxSites(target)(mean, root)
    z = np.linspace(-9, 9, 4001)
    omega = np.exp(-(z**2) / 2)
    a = (Phi @ mean)[:, None] + np.linalg.norm(Phi @ root, axis=1)[:, None] * z
    p = 1 / (1 + np.exp(-a))
    omega = omega / omega.sum()
    np.testing.assert_allclose(sums.gradient, ((y == 0) - p @ omega) @ Phi, atol=0.01)
    np.testing.assert_allclose(sums.precision, Phi.T @ (((p * (1 - p)) @ omega)[:, None] * Phi), atol=0.01)


def test_weights_are_copies_and_classes_may_change_places():
    target = iris()
    laplace = regression_laplace(target)
    prior = RepeatedPrior(target.gaussian, 3)
    doubled = SoftmaxTarget(np.vstack([target.Phi] * 2), np.tile(target.y, 2), 3, target.prior)
    weighed = SoftmaxTarget(target.Phi, target.y, 3, target.prior, np.full(target.n, 2.0))
    root = np.linalg.cholesky(laplace.covariance)
    for a, b in zip(SoftmaxSites(doubled)(laplace.mean, root), SoftmaxSites(weighed)(laplace.mean, root), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)
    turned = SoftmaxTarget(target.Phi, (target.y + 1) % 3, 3, target.prior)
    first, second = (
        variational_gaussian(SoftmaxSites(t, 1024), prior, regression_laplace(t)) for t in (target, turned)
    )
    np.testing.assert_allclose(np.roll(first.mean.reshape(3, 5), 1, axis=0), second.mean.reshape(3, 5), atol=0.05)


def test_too_few_passes_raise_with_the_last_gaussian():
    target = iris()
    prior = RepeatedPrior(target.gaussian, 3)
    with pytest.raises(ConvergenceError, match=r"did not converge in 3 passes.*Use MCMC") as caught:
        variational_gaussian(SoftmaxSites(target), prior, regression_laplace(target), max_passes=3)
    assert not caught.value.partial.info.converged


def test_one_logistic_factor_is_close_to_its_posterior():
    """Two classes, symmetric coding, against the logistic posterior of the difference: w₁ − w₀ ~ N(0, 2·scale²)."""
    rng = np.random.default_rng(4)
    Phi = rng.normal(size=(200, 2))
    y = (rng.random(200) < 1 / (1 + np.exp(-Phi[:, 0]))).astype(int)
    both = SoftmaxTarget(Phi, y, 2, Normal(scale=1.0))
    posterior = softmax_variational(both, regression_laplace(both))
    difference = posterior.mean[2:] - posterior.mean[:2]
    one = LogisticTarget(Phi, y, Normal(scale=np.sqrt(2.0)))
    ep = logistic_ep(one, regression_laplace(one))[0]
    np.testing.assert_allclose(difference, ep.mean, atol=0.02 * ep.sd.max())


@pytest.mark.slow
def test_digits_converge():
    data = load_example("digits")
    X = (data.X - data.X.mean(0)) / data.X.std(0)
    target = SoftmaxTarget(np.column_stack([np.ones(data.n), X])[:1257], data.y[:1257], 10, Normal.default(62))
    posterior = softmax_variational(target, regression_laplace(target))
    assert posterior.info.converged
    assert posterior.info.n_iter < 60
