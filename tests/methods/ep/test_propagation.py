"""The driver of expectation propagation, on factors whose answer is known."""

from types import SimpleNamespace

import numpy as np
import pytest

from bayes_gda.errors import ConvergenceError
from bayes_gda.methods.ep.propagation import VARIANCE_TOLERANCE, SiteSums, _Residual, expectation_propagation
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
    assert posterior.info.converged
    # The same from one pass, whose sites stand about a mean far from the answer.
    once = expectation_propagation(gaussian_factors(Phi, y, tau), gaussian_prior(m, precision), start, tolerance=1e3)
    assert once.info.n_iter == 1
    np.testing.assert_allclose(once.mean, posterior.mean, atol=1e-12)
    assert once.log_evidence == pytest.approx(truth, abs=1e-9)


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
    passes = []

    def site_pass(*_):
        passes.append(None)
        return SiteSums(np.eye(2), np.zeros(2), np.nan)

    with pytest.raises(ConvergenceError, match="did not converge in 5 passes") as caught:
        expectation_propagation(site_pass, prior, start, max_passes=5)
    assert len(passes) == 5
    assert not caught.value.partial.info.converged


def test_an_undetermined_direction_is_named():
    prior = gaussian_prior(2, 1.0)
    prior.precision[1, 1] = 0.0
    start = GaussianPosterior(np.zeros(2), np.eye(2), np.nan, NewtonInfo(True, 0, 0.0))
    with pytest.raises(ConvergenceError, match=r"undetermined\. Give a proper prior"):
        expectation_propagation(lambda *_: SiteSums(np.diag([1.0, 0.0]), np.zeros(2), 0.0), prior, start)


@pytest.mark.parametrize("m", [1, 30])
def test_passes_end_when_no_variance_changes_by_the_tolerance(m):
    """The mean is right from the start; precisions come a tenth nearer to the answer with each pass."""
    start = GaussianPosterior(np.zeros(m), np.sqrt(2) * np.eye(m), np.nan, NewtonInfo(True, 0, 0.0))
    changes = []

    def site_pass(mean, root, share):
        H = 1 / root[0, 0] ** 2
        changes.append(0.9 * (4 - H) / H)
        return SiteSums((H + 0.9 * (4 - H) - 1) * np.eye(m), mean.copy(), 0.0)

    expectation_propagation(site_pass, gaussian_prior(m, 1.0), start, tolerance=0.001)
    assert np.abs(changes[-1]) < 0.001 * VARIANCE_TOLERANCE < np.abs(changes[-2])


def test_the_covariance_that_a_pass_sees_is_that_of_the_sites_taken_so_far():
    """Passes overshoot, and so a share of them is taken: H ← H + ρ(H′ − H)."""
    H = 2 * np.eye(2)
    start = GaussianPosterior(np.zeros(2), np.linalg.cholesky(H), np.nan, NewtonInfo(True, 0, 0.0))
    goal, center, seen, shares = np.array([[5.0, 1.0], [1.0, 4.0]]), np.array([2.0, -1.0]), [], []

    def site_pass(mean, root, share):
        nonlocal H
        seen.append(np.abs(root @ root.T @ H - np.eye(2)).max())
        new = H + 1.8 * (goal - H)
        H = H + share * (new - H)
        shares.append(share)
        return SiteSums(new - np.eye(2), mean + 1.8 * (goal @ (center - mean)), 0.0)

    posterior = expectation_propagation(site_pass, gaussian_prior(2, 1.0), start, tolerance=1e-4)
    assert max(seen) < 1e-9
    assert min(shares) < 0.9
    np.testing.assert_allclose(posterior.mean, center, atol=1e-3)
    np.testing.assert_allclose(posterior.covariance, np.linalg.inv(goal), atol=1e-3)


@pytest.mark.parametrize("unit", [1.0, 1e-3])
@pytest.mark.parametrize("turn", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("part", ["mean", "precision", "both"])
def test_the_share_is_the_one_that_would_have_ended_at_zero(part, turn, unit):
    """A whole step turned the residual r into −turn·r: the share 1/(1 + turn) of it would have left nothing."""
    rng = np.random.default_rng(0)
    mean, precision = unit * rng.normal(size=3), unit * np.diag(rng.normal(size=3))
    last = _Residual(mean * (part != "precision"), precision * (part != "mean"), 1.0)
    now = _Residual(-turn * last.mean, -turn * last.precision, 1.0)
    assert now.next_share(last) == pytest.approx(1 / (1 + turn))


def test_the_share_minimises_the_residual_in_the_norm_of_natural_parameters():
    """|a|² + ½ tr A² is twice the divergence of nearby Gaussians, ½ tr because a precision counts for both sides."""
    rng = np.random.default_rng(1)
    A, B = rng.normal(size=(2, 3, 3))
    last = _Residual(rng.normal(size=3), A + A.T, 1.0)
    now = _Residual(-0.5 * last.mean + 0.1 * rng.normal(size=3), -last.precision + 0.1 * (B + B.T), 1.0)
    shares = np.linspace(0.1, 1, 90_001)
    a = last.mean + shares[:, None] * (now.mean - last.mean)
    P = last.precision.ravel() + shares[:, None] * (now.precision - last.precision).ravel()
    best = shares[((a**2).sum(axis=1) + 0.5 * (P**2).sum(axis=1)).argmin()]
    assert now.next_share(last) == pytest.approx(best, abs=1e-4)


def test_the_largest_change_of_a_variance_counts_and_not_the_sum():
    change = _Residual(np.zeros(9), 0.019 * np.eye(9), 1.0)
    assert change.changes_less_than(0.02)
    for largest in (0.021, -0.021):
        precision = np.diag([0.0, largest, 0.01])
        assert not _Residual(np.zeros(3), precision, 1.0).changes_less_than(0.02)


def test_the_mean_is_settled_before_every_pass_that_is_taken_whole():
    rng = np.random.default_rng(0)
    Phi, y, settled = rng.normal(size=(30, 3)), rng.normal(size=30), []

    def settle(mean, root, prior):
        settled.append(mean)
        return mean

    start = GaussianPosterior(np.zeros(3), np.eye(3), np.nan, NewtonInfo(True, 0, 0.0))
    passes = expectation_propagation(gaussian_factors(Phi, y, 2.0), gaussian_prior(3, 0.5), start, settle=settle)
    assert len(settled) == passes.info.n_iter
