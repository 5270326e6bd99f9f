"""Lindley's mean and the skew-modal approximation, against quadrature."""

import numpy as np
import pytest
from scipy import integrate
from targets import cushings, one_dimensional

from bayes_gda.data.examples import load_example
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.methods.skew import SkewModal, lindley_mean
from bayes_gda.priors import Normal


def moment(target, power, low, high):
    peak = float(target.log_density(regression_laplace(target).mean))
    f = lambda w, p: w**p * np.exp(float(target.log_density(np.array([w]))) - peak)  # noqa: E731
    return integrate.quad(f, low, high, args=(power,))[0] / integrate.quad(f, low, high, args=(0,))[0]


def test_lindleys_mean_is_an_order_better_than_the_mode():
    target = one_dimensional()
    posterior = regression_laplace(target)
    sd = posterior.sd[0]
    truth = moment(target, 1, posterior.mean[0] - 12 * sd, posterior.mean[0] + 14 * sd)
    raw, corrected = abs(posterior.mean[0] - truth) / sd, abs(lindley_mean(posterior, target)[0] - truth) / sd
    assert raw > 0.15
    assert corrected < 0.35 * raw


def test_skew_modal_density_is_normalised_and_its_marginal_is_itself_in_one_dimension():
    target = one_dimensional()
    skew = SkewModal(regression_laplace(target), target)
    mode, sd = skew.gaussian.mean[0], skew.gaussian.sd[0]
    total = integrate.quad(lambda w: np.exp(float(skew.log_density(np.array([w])))), mode - 12 * sd, mode + 12 * sd)[0]
    assert total == pytest.approx(1, abs=1e-8)
    w = np.linspace(mode - 3 * sd, mode + 3 * sd, 7)
    np.testing.assert_allclose(skew.log_marginal_density(0, w), skew.log_density(w[:, None]))


def test_draws_follow_the_density():
    target = one_dimensional()
    skew = SkewModal(regression_laplace(target), target)
    mode, sd = skew.gaussian.mean[0], skew.gaussian.sd[0]
    draws = skew.draw(40_000, random_seed=0)[:, 0]
    density = lambda w: np.exp(float(skew.log_density(np.array([w]))))  # noqa: E731
    for q in (0.1, 0.5, 0.9):
        cut = np.quantile(draws, q)
        assert integrate.quad(density, mode - 12 * sd, cut)[0] == pytest.approx(q, abs=0.01)


@pytest.mark.parametrize("softmax", [False, True])
def test_marginals_in_several_dimensions_equal_those_of_draws(softmax):
    data = load_example("pima")
    Phi = np.column_stack([np.ones(data.n), (data.X - data.X.mean(0)) / data.X.std(0)])[:80, :3]
    prior = Normal(scale=3.0)
    target = SoftmaxTarget(Phi, data.y[:80], 2, prior) if softmax else LogisticTarget(Phi, data.y[:80], prior)
    skew = SkewModal(regression_laplace(target), target)
    draws = skew.draw(100_000, random_seed=1)
    for j in range(skew.dim):
        grid = np.linspace(draws[:, j].min(), draws[:, j].max(), 2001)
        density = np.exp(skew.log_marginal_density(j, grid))
        assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)
        mean = np.trapezoid(grid * density, grid)
        # The marginal replaces the cubic by its conditional mean: equal to the order of the approximation.
        assert abs(mean - draws[:, j].mean()) < 0.02 * draws[:, j].std()


def test_total_variation_to_the_truth_on_cushings():
    """Joint total variation by quadrature over three dimensions: .228 for Laplace, .142 for skew-modal, each ± .01."""
    target = cushings()
    posterior = regression_laplace(target)
    skew = SkewModal(posterior, target)
    # Whitened Laplace coordinates; the posterior's long side is covered to 14, found by widening until nothing changed.
    axes = [np.linspace(-9, 14, 93)] * 3
    log_p, log_q, log_s = [], [], []
    for first in axes[0]:
        z = np.stack(np.meshgrid([first], axes[1], axes[2], indexing="ij"), axis=-1).reshape(-1, 3)
        w = posterior.unwhiten(z)
        log_p.append(target.log_density(w))
        log_q.append(posterior.log_density(w))
        log_s.append(skew.log_density(w))
    cell = np.prod([a[1] - a[0] for a in axes]) / np.prod(np.diag(posterior.chol_precision))
    p = np.exp(np.concatenate(log_p) - posterior.log_evidence)
    p /= p.sum() * cell
    q, s = np.exp(np.concatenate(log_q)), np.exp(np.concatenate(log_s))
    assert q.sum() * cell == pytest.approx(1, abs=1e-6)
    assert s.sum() * cell == pytest.approx(1, abs=1e-3)
    assert 0.5 * np.abs(p - q).sum() * cell == pytest.approx(0.228, abs=0.01)
    assert 0.5 * np.abs(p - s).sum() * cell == pytest.approx(0.142, abs=0.01)
