"""Split HMC: exact for a Gaussian, right where it is not, honest where it cannot follow."""

import numpy as np
import pytest
from scipy import stats

from bayes_gda.errors import ConvergenceError
from bayes_gda.methods.hmc import split
from bayes_gda.methods.hmc.split import State, Whitened, draw, trajectory, warm_up
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo


class Function:
    """A log density as a function of points (S, dim) to values and gradients."""

    def __init__(self, dim, function):
        self.dim, self.function = dim, function

    def values_and_gradients(self, W):
        return self.function(W)


def gaussian(mean, covariance):
    L = np.linalg.cholesky(np.linalg.inv(covariance))
    return GaussianPosterior(np.asarray(mean, dtype=float), L, 0.0, NewtonInfo(True, 1, 0.0))


def normal(mean, covariance):
    H, mean = np.linalg.inv(covariance), np.asarray(mean)
    return Function(len(mean), lambda W: (-0.5 * np.einsum("si,ij,sj->s", W - mean, H, W - mean), (mean - W) @ H))


MEAN, COVARIANCE = np.array([1.0, -2.0, 3.0]), np.array([[2.0, 0.9, 0], [0.9, 1.0, -0.3], [0, -0.3, 0.5]])


def test_nothing_is_refused_where_the_density_is_the_gaussian():
    rng = np.random.default_rng(0)
    warm = warm_up(normal(MEAN, COVARIANCE), gaussian(MEAN, COVARIANCE), 16, rng)
    found = draw(warm, 400, rng)
    assert warm.kicks == 1
    np.testing.assert_allclose(found.acceptance, 1.0, atol=1e-9)
    w = found.w.reshape(-1, 3)
    np.testing.assert_allclose(w.mean(axis=0), MEAN, atol=4.5 * np.sqrt(2.0 / 6400))
    np.testing.assert_allclose(np.cov(w.T), COVARIANCE, atol=0.2)
    # A quarter of a turn and a little more: draws of a chain are nearly independent.
    lagged = np.corrcoef(found.w[:, :-1, 0].ravel(), found.w[:, 1:, 0].ravel())[0, 1]
    assert -0.4 < lagged < 0.05


def test_a_wrong_gaussian_is_mended_in_the_warm_up():
    rng = np.random.default_rng(1)
    warm = warm_up(normal(MEAN, COVARIANCE), gaussian(MEAN + 1.5, 0.2 * np.diag(np.diag(COVARIANCE))), 16, rng)
    found = draw(warm, 600, rng)
    w = found.w.reshape(-1, 3)
    z = (w.mean(axis=0) - MEAN) / np.sqrt(np.diag(COVARIANCE) / 4000)
    assert np.abs(z).max() < 4.5
    np.testing.assert_allclose(np.cov(w.T), COVARIANCE, atol=0.2)
    assert found.acceptance.mean() > 0.7


def test_a_skewed_density_against_its_closed_form():
    # log X ~ N for a gamma: w = log x, log p = a w − e^w, mean digamma(a), variance trigamma(a).
    a = np.array([1.5, 4.0])
    density = Function(2, lambda W: ((a * W - np.exp(W)).sum(axis=1), a - np.exp(W)))
    rng = np.random.default_rng(2)
    found = draw(warm_up(density, gaussian(np.log(a), np.diag(1 / a)), 16, rng), 1500, rng)
    for j in range(2):
        truth, w = stats.loggamma(a[j]), found.w[:, :, j]
        for power in (1, 2):
            values = ((w - truth.mean()) / truth.std()) ** power
            error = values.mean(axis=1).std(ddof=1) / np.sqrt(len(values))  # chains are independent
            assert abs(values.mean() - (0.0, 1.0)[power - 1]) < 4.5 * error


def test_a_trajectory_can_be_run_backwards_and_keeps_its_energy_to_second_order():
    density = Function(2, lambda W: (-np.cosh(W).sum(axis=1), -np.sinh(W)))
    whitened = Whitened(density, np.zeros(2), np.eye(2))
    start = whitened.at(np.random.default_rng(3).normal(size=(50, 2)))
    errors = [trajectory(whitened, start, kicks, np.random.default_rng(4)).error for kicks in (8, 16)]
    # Half the step leaves a quarter of the error.
    assert np.median(errors[0] / errors[1]) == pytest.approx(4, rel=0.1)


def test_chains_that_fly_off_are_refused_and_counted():
    density = Function(1, lambda W: (-0.25 * (100 * W[:, 0]) ** 4, -100 * (100 * W) ** 3))
    whitened = Whitened(density, np.zeros(1), np.eye(1))
    state = whitened.at(np.full((4, 1), 0.5))
    moved = trajectory(whitened, state, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(moved.state.z, state.z)
    assert (moved.acceptance == 0).all()
    assert (moved.error > split.DIVERGENCE).all()


def test_a_density_that_no_gaussian_is_near_to_is_refused_with_the_remedy():
    # A funnel: the scale of the second coordinate runs from e⁻⁹ to e⁹.
    def funnel(W):
        v, x = W[:, 0], W[:, 1:]
        squares = (x**2).sum(axis=1)
        value = -(v**2) / 18 - 0.5 * squares * np.exp(-v) - 4.5 * v
        return value, np.column_stack([-v / 9 + 0.5 * squares * np.exp(-v) - 4.5, -x * np.exp(-v)[:, None]])

    with pytest.raises(ConvergenceError, match=r"too far from a Gaussian for sampler='hmc'. Use sampler='pymc'"):
        warm_up(Function(10, funnel), gaussian(np.zeros(10), 9 * np.eye(10)), 16, np.random.default_rng(0))


def test_starts_where_the_density_is_not_finite_are_drawn_in():
    def inside(W):
        with np.errstate(invalid="ignore"):
            return np.where((np.abs(W) < 2).all(axis=1), -0.5 * (W**2).sum(axis=1), -np.inf), -W

    state = split._start(Whitened(Function(3, inside), np.zeros(3), np.eye(3)), 64, np.random.default_rng(0))
    assert isinstance(state, State)
    assert np.isfinite(state.log_p).all()
    nowhere = Function(1, lambda W: (np.full(len(W), -np.inf), W))
    with pytest.raises(ConvergenceError, match="not finite about the centre"):
        split._start(Whitened(nowhere, np.zeros(1), np.eye(1)), 4, np.random.default_rng(0))


def test_an_interruption_returns_the_draws_so_far():
    rng = np.random.default_rng(0)
    warm = warm_up(normal(MEAN, COVARIANCE), gaussian(MEAN, COVARIANCE), 16, rng)

    def stop(done, divergences):
        if done == 7:
            raise KeyboardInterrupt

    assert draw(warm, 100, rng, stop).w.shape == (16, 7, 3)


# ── What is adapted, and how well ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("share", "ratio"), [(0.88, 1.0), (0.7618, 2**0.5), (0.55, 1.9903**0.5 * 2**0.5)])
def test_kicks_grow_with_the_root_of_the_energy_error(share, ratio):
    """Acceptance 2Φ(−s/2), s as ε²: 2Φ(−s/2) = .88 for s = .302, .7618 for twice and .55 for four times that."""
    s, wanted = (-2 * stats.norm.ppf(a / 2) for a in (share, split.TARGET))
    assert np.sqrt(s / wanted) == pytest.approx(ratio, rel=0.01)
    assert split._adapt(20, share) == pytest.approx(20 * ratio, abs=1)
    assert split._adapt(20, 1.0) == 10  # at most halved, and at most three times as many
    assert split._adapt(20, 0.0) == 60
    assert split._adapt(1, 1.0) == 1
    assert split._adapt(50, 0.0) == split.MOST_KICKS


def test_moments_are_pooled_as_if_all_points_had_come_at_once():
    W = np.random.default_rng(0).normal(size=(60, 3)) @ np.diag([1.0, 5.0, 0.1]) + 10
    weight, mean, scatter = split._pooled(split._pooled(split._pooled(None, W[:7]), W[7:20]), W[20:])
    assert weight == 60
    np.testing.assert_allclose(mean, W.mean(axis=0))
    np.testing.assert_allclose(scatter, 60 * np.cov(W.T, ddof=0))


def test_new_coordinates_are_of_the_same_points_and_the_given_covariance_counts_for_three_draws_a_parameter():
    density, rng = normal(MEAN, COVARIANCE), np.random.default_rng(0)
    whitened, W = Whitened(density, MEAN, np.eye(3)), rng.normal(size=(50, 3))
    state = whitened.at(rng.normal(size=(8, 3)))
    new, same = split._rewhiten(whitened, state, split._pooled(None, W), np.eye(3))
    np.testing.assert_allclose(new.points(same.z), whitened.points(state.z))
    np.testing.assert_allclose(same.log_p, state.log_p)
    np.testing.assert_allclose(new.mean, W.mean(axis=0))
    # As if nine further draws had had the covariance 1 about their mean.
    np.testing.assert_allclose(new.root @ new.root.T, (9 * np.eye(3) + 50 * np.cov(W.T, ddof=0)) / 59)


def test_starts_are_wider_than_the_gaussian_so_that_chains_must_meet():
    whitened = Whitened(normal(MEAN, COVARIANCE), MEAN, np.linalg.cholesky(COVARIANCE))
    starts = split._start(whitened, 4000, np.random.default_rng(0)).z
    assert 1.4 < starts.std() < 2.5


def test_successive_draws_of_a_gaussian_turn_by_a_little_more_than_a_quarter():
    """z′ = z cos α + p sin α: the correlation is E cos α, and that of squares E cos² α; both near 0 spare draws."""
    rng = np.random.default_rng(0)
    whitened = Whitened(normal(np.zeros(1), np.eye(1)), np.zeros(1), np.eye(1))
    state = whitened.at(rng.standard_normal((100_000, 1)))
    moved = trajectory(whitened, state, 1, rng).state
    assert -0.3 < np.mean(moved.z * state.z) < 0.0
    assert np.corrcoef(moved.z[:, 0] ** 2, state.z[:, 0] ** 2)[0, 1] < 0.1


def test_statistics_are_those_of_the_draws():
    """log p at the draws; the energy U + |p|²/2 has mean m and variance m for m normal coordinates, U about its top."""
    rng = np.random.default_rng(0)
    density = normal(MEAN, COVARIANCE)
    found = draw(warm_up(density, gaussian(MEAN, COVARIANCE), 16, rng), 500, rng)
    w = found.w.reshape(-1, 3)
    np.testing.assert_allclose(found.log_p.ravel(), density.values_and_gradients(w)[0], atol=1e-9)
    assert found.energy.mean() == pytest.approx(3, abs=0.15)
    assert found.energy.var() == pytest.approx(3, rel=0.1)
    assert not found.diverging.any()


def test_a_trajectory_that_is_refused_keeps_its_energy_and_one_that_is_taken_has_its_own():
    density = Function(2, lambda W: (-np.cosh(W).sum(axis=1), -np.sinh(W)))
    whitened = Whitened(density, np.zeros(2), np.eye(2))
    rng = np.random.default_rng(0)
    state = whitened.at(3 * rng.normal(size=(2000, 2)))
    p = np.random.default_rng(7)
    p.random((2000, 1))  # the angles
    momentum = p.standard_normal((2000, 2))
    before = 0.5 * (momentum**2).sum(axis=1) - state.log_p
    moved = trajectory(whitened, state, 2, np.random.default_rng(7))
    stays = (moved.state.z == state.z).all(axis=1)
    assert 0.05 < stays.mean() < 0.95
    np.testing.assert_allclose(moved.energy[stays], before[stays])
    np.testing.assert_allclose(np.abs(moved.energy - before)[~stays], moved.error[~stays], atol=1e-9)
    assert stays.mean() == pytest.approx(1 - moved.acceptance.mean(), abs=0.05)


def test_a_close_gaussian_is_left_after_one_round_and_a_far_one_is_adapted_to_the_target():
    rng = np.random.default_rng(0)
    assert warm_up(normal(MEAN, COVARIANCE), gaussian(MEAN, COVARIANCE), 16, rng).trajectories == 25
    a = np.array([0.5, 1.0, 3.0])
    skewed = Function(3, lambda W: ((a * W - np.exp(W)).sum(axis=1), a - np.exp(W)))
    warm = warm_up(skewed, gaussian(np.log(a), np.diag(1 / a)), 32, rng)
    assert warm.trajectories >= 4 * 20 + 5
    acceptance = draw(warm, 200, rng).acceptance.mean()
    assert 0.75 < acceptance < 0.99
    assert 2 <= warm.kicks <= 16
