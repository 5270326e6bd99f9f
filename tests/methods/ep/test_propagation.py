"""The driver of expectation propagation, on factors whose answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from bayes_gda.errors import ConvergenceError
from bayes_gda.methods.ep.propagation import SiteSums, expectation_propagation
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo


def gaussian_prior(m, precision):
    log_norm = 0.5 * m * np.log(2 * np.pi) - 0.5 * m * np.log(precision)
    return SimpleNamespace(
        precision=precision * np.eye(m),
        gradient=lambda w: -precision * w,
        log_density=lambda w: np.asarray(-0.5 * precision * w @ w - log_norm),
    )


def gaussian_factors(Phi, y, tau):
    """N(y | wᵀφ, 1/τ): each site is the factor itself."""

    def site_pass(mean, root, share):
        r = y - Phi @ mean
        log_ratio = 0.5 * len(y) * np.log(tau / (2 * np.pi)) - 0.5 * tau * r @ r
        return SiteSums(tau * Phi.T @ Phi, tau * Phi.T @ r, float(log_ratio))

    return site_pass


@pytest.mark.parametrize("m", [1, 4, 12])
def test_gaussian_factors_are_solved_exactly(m):
    rng = np.random.default_rng(m)
    Phi, y, tau, precision = rng.normal(size=(30, m)), rng.normal(size=30), 2.0, 0.5
    start = GaussianPosterior(np.zeros(m), np.eye(m), np.nan, NewtonInfo(True, 0, 0.0))
    posterior = expectation_propagation(gaussian_factors(Phi, y, tau), gaussian_prior(m, precision), start)
    H = tau * Phi.T @ Phi + precision * np.eye(m)
    np.testing.assert_allclose(posterior.mean, np.linalg.solve(H, tau * Phi.T @ y), atol=1e-12)
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(H), atol=1e-12)
    S = Phi @ Phi.T / precision + np.eye(30) / tau
    truth = -0.5 * (y @ np.linalg.solve(S, y) + np.linalg.slogdet(2 * np.pi * S)[1])
    assert posterior.log_evidence == pytest.approx(truth, abs=1e-9)
    assert posterior.info.n_iter == 2


@pytest.mark.parametrize("overshoot", [0.5, 1.9, 3.0])
def test_passes_that_overshoot_are_damped(overshoot):
    """A pass that moves the mean by a multiple of the way turns about, and diverges from twice the way on."""
    goal, prior = np.array([3.0, -1.0]), gaussian_prior(2, 1.0)

    def site_pass(mean, root, share):
        return SiteSums(np.eye(2), 2 * overshoot * (goal - mean) + mean, 0.0)

    start = GaussianPosterior(np.zeros(2), np.sqrt(2) * np.eye(2), np.nan, NewtonInfo(True, 0, 0.0))
    posterior = expectation_propagation(site_pass, prior, start, tolerance=1e-6)
    np.testing.assert_allclose(posterior.mean, goal, atol=1e-5)
    assert posterior.info.n_iter < 30


def test_sites_that_cannot_be_matched_do_not_pass_as_converged():
    prior = gaussian_prior(2, 1.0)
    start = GaussianPosterior(np.zeros(2), np.sqrt(2) * np.eye(2), np.nan, NewtonInfo(True, 0, 0.0))
    with pytest.raises(ConvergenceError, match="did not converge in 5 passes") as caught:
        expectation_propagation(lambda *_: SiteSums(np.eye(2), np.zeros(2), np.nan), prior, start, max_passes=5)
    assert not caught.value.partial.info.converged


def test_an_undetermined_direction_is_named():
    prior = gaussian_prior(2, 1.0)
    prior.precision[1, 1] = 0.0
    start = GaussianPosterior(np.zeros(2), np.eye(2), np.nan, NewtonInfo(True, 0, 0.0))
    with pytest.raises(ConvergenceError, match=r"undetermined\. Give a proper prior"):
        expectation_propagation(lambda *_: SiteSums(np.diag([1.0, 0.0]), np.zeros(2), 0.0), prior, start)
