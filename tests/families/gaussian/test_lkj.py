"""The LKJ densities far out: a step too far is a low density, not an error."""

import numpy as np
import pytest

from bayes_gda.checks import frozen
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.lkj import CholeskyBlock
from bayes_gda.methods.laplace import FunctionTarget, laplace_approximation
from bayes_gda.priors import LKJ


@pytest.fixture
def block():
    rng = np.random.default_rng(1)
    moments = Moments.from_arrays(rng.standard_normal((30, 2)), np.repeat([0, 1], 15), 2)
    prior = LKJ(scale=frozen([1.5, 1.5]), m=frozen([0.0, 0.0]), mean_scale=frozen([2.0, 2.0]))
    return CholeskyBlock(moments, prior, shared=True)


@pytest.mark.parametrize("t", [-200.0, -800.0, -1e6])
def test_a_scale_that_rounds_to_zero_has_a_low_density(block, t):
    """e^−800 is 0 in floating point; a Newton step went there for 1 in 200 simulated data sets."""
    near = block.start
    far = near.copy()
    far[2] = t  # log of the second diagonal of L
    with np.errstate(over="ignore", invalid="ignore"):
        values, _ = block.values_and_gradients(np.array([near, far]))
    assert np.isfinite(values[0])
    assert not values[1] >= values[0] - 1e100


def test_newton_comes_back_from_a_step_too_far(block):
    def value(w):
        return float(block.values_and_gradients(w)[0])

    target = FunctionTarget(block.dim, value, lambda w: block.values_and_gradients(w)[1])
    mode = laplace_approximation(target, block.start).mean
    away = block.start.copy()
    away[[0, 2]] = 3.0  # scales of e³ where 1 is right: the density is not concave there
    assert laplace_approximation(target, away).mean == pytest.approx(mode, abs=1e-4)


@pytest.mark.parametrize("eta", [1.0, 2.0, 3.5])
def test_the_log_prior_of_a_correlation_integrates_to_one(eta):
    """d = 2: p(ρ) ∝ (1 − ρ²)^{η−1} on (−1, 1), beside the half-normal scales, which are held at their place."""
    moments = Moments.from_arrays(np.random.default_rng(1).standard_normal((30, 2)), np.repeat([0, 1], 15), 2)
    prior = LKJ(scale=frozen([1.5, 1.5]), m=frozen([0.0, 0.0]), mean_scale=frozen([2.0, 2.0]), eta=eta)
    rho, weight = np.polynomial.legendre.leggauss(200)
    Sigma = np.stack([[np.ones(200), rho], [rho, np.ones(200)]]).transpose(2, 0, 1)
    mu = np.zeros((200, 2, 2))
    log_p = CholeskyBlock(moments, prior, shared=True).log_prior({"Sigma": Sigma, "mu": mu})["Sigma"]
    scales = 2 * (0.5 * np.log(2 / np.pi) - np.log(1.5) - 0.5 / 1.5**2)
    assert weight @ np.exp(log_p - scales) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("d", "eta", "volume"),
    [
        (2, 1.0, 2.0),
        (3, 1.0, np.pi**2 / 2),  # Rousseeuw & Molenberghs (1994): of a cube of volume 8
        (4, 1.0, 32 * np.pi**2 / 27),
        (2, 2.0, 4 / 3),
        (3, 2.0, 3 * np.pi**2 / 16),  # ∫∫ 4/3 [(1 − a²)(1 − b²)]^{3/2} da db, with (∫(1 − a²)^{3/2} da)² = (3π/8)²
    ],
)
def test_the_normaliser_is_the_volume_of_the_correlation_matrices(d, eta, volume):
    ones = frozen(np.ones(d))
    assert np.exp(-LKJ(scale=ones, m=ones, mean_scale=ones, eta=eta).log_normalizer) == pytest.approx(volume)
