"""Distances between samples against closed forms, quadrature and SciPy."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

from bayes_gda.errors import DataError
from bayes_gda.evaluation import distances
from bayes_gda.evaluation.distances import (
    energy_distance,
    gaussian_kl,
    skewness,
    thin,
    total_variation,
    wasserstein,
    whiten,
)

S = 4000


def normal(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def skew_normal(shape):
    """The skew normal of mean 0 and sd 1."""
    raw = stats.skewnorm(shape)
    return stats.skewnorm(shape, loc=-raw.mean() / raw.std(), scale=1 / raw.std())


def autoregressive(rho, draws, seed):
    x = normal(draws, seed=seed)
    for t in range(1, draws):
        x[t] = rho * x[t - 1] + np.sqrt(1 - rho**2) * x[t]
    return x


def quadrature(p, q):
    x = np.linspace(-30, 30, 600_001)
    return 0.5 * np.trapezoid(np.abs(p.pdf(x) - q.pdf(x)), x)


def estimates(p, q, *, draws=S, seeds=40):
    """Values and errors (seeds, 2) over repeated pairs of samples."""
    generators = [np.random.default_rng(seed) for seed in range(seeds)]
    return np.array([total_variation(p.rvs(draws, random_state=g), q.rvs(draws, random_state=g)) for g in generators])


# Total variation


@pytest.mark.parametrize("shift", [0.2, 1.0, 4.0])
def test_total_variation_of_shifted_normals(shift):
    truth = 2 * ndtr(shift / 2) - 1
    value, error = estimates(stats.norm(shift), stats.norm()).mean(axis=0)
    # Biased downwards, by less than half of what one estimate is uncertain by.
    assert -0.5 * error < value - truth < 0.3 * error


def test_total_variation_leaves_out_what_noise_explains():
    """Of a small shift and few draws: without it the estimate is too low by .035 on average."""
    values = estimates(stats.norm(0.5), stats.norm(), draws=200, seeds=100)[:, 0]
    assert values.mean() == pytest.approx(2 * ndtr(0.25) - 1, abs=0.02)


@pytest.mark.parametrize("sd", [1.2, 2.0, 10.0])
def test_total_variation_of_normals_of_different_spread(sd):
    # The densities cross at ±x, x² = 2 log(sd)/(1 − 1/sd²).
    x = np.sqrt(2 * np.log(sd) / (1 - 1 / sd**2))
    truth = 2 * (ndtr(x) - ndtr(x / sd))
    value, error = estimates(stats.norm(0, sd), stats.norm()).mean(axis=0)
    assert -0.5 * error < value - truth < 0.3 * error


@pytest.mark.parametrize(
    # skew_normal(20) is nearly a half normal: a series cannot follow its edge quite.
    ("other", "bias"),
    [(skew_normal(4), 0.6), (skew_normal(20), 1.0), (stats.t(3), 0.6), (stats.laplace(), 0.6)],
)
def test_total_variation_of_other_shapes(other, bias):
    truth = quadrature(other, stats.norm())
    value, error = estimates(other, stats.norm()).mean(axis=0)
    assert -bias * error < value - truth < 0.3 * error


def test_total_variation_of_two_modes():
    g = np.random.default_rng(0)
    modes = g.choice([-2, 2], S) + 0.5 * g.normal(size=S)
    x = np.linspace(-20, 20, 400_001)
    density = 0.5 * stats.norm.pdf(x, -2, 0.5) + 0.5 * stats.norm.pdf(x, 2, 0.5)
    truth = 0.5 * np.trapezoid(np.abs(density - stats.norm.pdf(x, 0, 2)), x)
    assert total_variation(modes, 2 * g.normal(size=S))[0] == pytest.approx(truth, abs=0.03)


@pytest.mark.parametrize(("draws", "level"), [(1000, 0.02), (4000, 0.011)])
def test_total_variation_of_equal_distributions_is_near_zero(draws, level):
    values, errors = estimates(stats.norm(), stats.norm(), draws=draws, seeds=60).T
    assert values.mean() < level
    assert (values < 3.5 * errors).all()


def test_total_variation_states_its_error():
    values, errors = estimates(stats.norm(1), stats.norm(), draws=1000, seeds=100).T
    assert values.std() == pytest.approx(errors.mean(), rel=0.25)


@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_autocorrelation_is_not_taken_for_difference(rho):
    ess = S * (1 - rho) / (1 + rho)
    pairs = [(autoregressive(rho, S, seed), autoregressive(rho, S, 100 + seed)) for seed in range(12)]
    values, errors = np.array([total_variation(a, b, ess=(ess, ess)) for a, b in pairs]).T
    assert values.mean() < 1.2 * errors.mean()
    assert (values < 3.5 * errors).all()


def test_resampled_draws_do_not_see_themselves():
    """800 draws, five times each, in random order: as an importance resample has them."""
    g = np.random.default_rng(1)
    pairs = [(g.permutation(np.repeat(g.normal(size=800), 5)), g.normal(size=S)) for _ in range(20)]
    values, errors = np.array([total_variation(a, b, ess=(800, S)) for a, b in pairs]).T
    assert values.mean() < 1.2 * errors.mean()


def test_total_variation_knows_order_only():
    a, b = normal(S), normal(S, seed=1) * 1.3 + 0.4
    assert total_variation(a, b) == total_variation(np.exp(a), np.exp(b)) == total_variation(a * 1e-200, b * 1e-200)


def test_total_variation_of_constants():
    same, other = np.zeros(100), np.ones(100)
    assert total_variation(same, same)[0] == 0
    assert total_variation(same, other)[0] == 1
    assert total_variation(same, normal(1000))[0] > 0.9
    a = normal(S)
    assert total_variation(a, a)[0] == 0


# Wasserstein, skewness


def test_wasserstein_of_shifts_and_spreads():
    a = normal(S)
    assert wasserstein(a + 0.7, a) == pytest.approx(0.7)
    assert wasserstein(3 * a + 2.1, 3 * a, scale=3.0) == pytest.approx(0.7)
    assert wasserstein(2 * a, a) == pytest.approx(np.abs(a).mean())  # ∫|F⁻¹ − G⁻¹|
    # The noise that the docstring states: ∫E|Brownian bridge| = √(2/π) ∫√(Φ(1 − Φ)).
    x = np.linspace(-12, 12, 100_001)
    factor = np.sqrt(2 / np.pi) * np.trapezoid(np.sqrt(ndtr(x) * ndtr(-x)), x)
    assert factor == pytest.approx(1.29, abs=0.005)
    null = np.mean([wasserstein(normal(S, seed=s), normal(S, seed=1000 + s)) for s in range(200)])
    assert null == pytest.approx(factor * np.sqrt(2 / S), rel=0.1)
    with pytest.raises(DataError, match="`scale` must be greater than 0; got 0"):
        wasserstein(a, a, scale=0.0)


@pytest.mark.parametrize("law", [stats.norm(), stats.gamma(4), skew_normal(3)])
def test_skewness_and_its_error(law):
    truth = float(law.stats(moments="s"))
    values, errors = np.array([skewness(law.rvs(S, random_state=seed)) for seed in range(200)]).T
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(200) + 0.01
    assert errors.mean() == pytest.approx(values.std(), rel=0.15)


def test_skewness_is_scipys_and_zero_for_constants():
    x = np.random.default_rng(0).gamma(2, size=500)
    assert skewness(x)[0] == pytest.approx(stats.skew(x))
    assert skewness(x, ess=125)[1] == pytest.approx(2 * skewness(x)[1])
    assert skewness(np.ones(50)) == (0.0, 0.0)
    assert skewness(1 + 1e-15 * normal(50)) == (0.0, 0.0)
    x = np.tile([0.0, 0.0, 0.0, 4.0], 5)  # in any unit, even one whose square is 0
    assert skewness(x * 5e-324)[0] == pytest.approx(skewness(x)[0])


# KL of Gaussians


def with_moments(mean, covariance, draws=500, seed=0):
    """Draws whose sample moments are these exactly."""
    z = normal(draws, len(mean), seed=seed)
    z -= z.mean(axis=0)
    z = z @ np.linalg.inv(np.linalg.cholesky(z.T @ z / draws)).T
    return mean + z @ np.linalg.cholesky(covariance).T


def test_gaussian_kl_is_its_formula():
    rng = np.random.default_rng(2)
    m_a, m_b = rng.normal(size=(2, 4))
    A, B = (f @ f.T + 0.1 * np.eye(4) for f in rng.normal(size=(2, 4, 4)))
    precision = np.linalg.inv(B)
    shift = m_a - m_b
    truth = 0.5 * (
        np.trace(precision @ A) + shift @ precision @ shift - 4 + np.log(np.linalg.det(B) / np.linalg.det(A))
    )
    value, noise = gaussian_kl(with_moments(m_a, A), with_moments(m_b, B, seed=1))
    assert value == pytest.approx(truth)
    assert noise == pytest.approx(0.25 * 4 * 7 * 2 / 500, rel=0.25)  # measured by 30 batches
    # Units do not matter.
    units = np.array([1e-6, 1.0, 1e5, 3.0])
    assert gaussian_kl(with_moments(m_a, A) * units, with_moments(m_b, B, seed=1) * units)[0] == pytest.approx(truth)


@pytest.mark.parametrize("dim", [1, 3, 20])
def test_gaussian_kl_has_the_noise_it_states(dim):
    pairs = [gaussian_kl(normal(2000, dim, seed=s), normal(3000, dim, seed=100 + s)) for s in range(80)]
    values, noise = np.array(pairs).T
    assert values.mean() == pytest.approx(noise.mean(), rel=0.25 if dim < 20 else 0.05)
    # By Wilks, half a unit for each of the means and covariances.
    assert noise.mean() == pytest.approx(0.25 * dim * (dim + 3) * (1 / 2000 + 1 / 3000), rel=0.05)


@pytest.mark.parametrize("rho", [-0.6, 0.5, 0.8])
def test_gaussian_kl_of_equal_posteriors_from_a_chain(rho):
    """Squares of draws with autocorrelation ρ have ρ²: an ESS of the means, above S for ρ < 0, is not theirs."""
    dim, R = 10, 3000
    chains = [np.column_stack([autoregressive(rho, R, 50 * s + j) for j in range(dim)]) for s in range(12)]
    values, noise = np.array([gaussian_kl(x, normal(R, dim, seed=99 + s)) for s, x in enumerate(chains)]).T
    assert values.mean() == pytest.approx(noise.mean(), rel=0.1)
    # In closed form: ½ dim (1/n + 1/R) + ¼ dim (dim + 1) (1/n₂ + 1/R), n = R(1 − ρ)/(1 + ρ), n₂ the same of ρ².
    n, n2 = (R * (1 - r) / (1 + r) for r in (rho, rho**2))
    truth = 0.5 * dim * (1 / n + 1 / R) + 0.25 * dim * (dim + 1) * (1 / n2 + 1 / R)
    assert noise.mean() == pytest.approx(truth, rel=0.1)


def test_gaussian_kl_of_heavy_tails_has_their_noise():
    draws = [np.random.default_rng(s).standard_t(7, size=(3000, 5)) for s in range(40)]
    values, noise = np.array([gaussian_kl(x, y) for x, y in zip(draws[::2], draws[1::2], strict=True)]).T
    assert values.mean() == pytest.approx(noise.mean(), rel=0.2)
    assert noise.mean() > 1.2 * 0.25 * 5 * 8 * 2 / 3000  # what a Gaussian would have


def test_gaussian_kl_of_resampled_draws_counts_the_draws_behind_them():
    """A thousand draws that are drawn from 4000 times are a thousand, whatever their order."""
    generators = [np.random.default_rng(s) for s in range(30)]
    samples = [g.normal(size=(1000, 6))[g.integers(1000, size=S)] for g in generators]
    values, noise = np.array(
        [gaussian_kl(x, normal(S, 6, seed=500 + s), ess=(800, S)) for s, x in enumerate(samples)]
    ).T  # 4000²/Σc² = 800 for multiplicities c ~ Poisson(4)
    assert values.mean() == pytest.approx(noise.mean(), rel=0.15)


def test_redundant_directions_are_left_out():
    """A simplex, a symmetric matrix and a constant have the distance of their free coordinates."""
    rng = np.random.default_rng(3)
    a, b = rng.dirichlet([3, 4, 5], size=S), rng.dirichlet([6, 8, 9], size=S)
    free = gaussian_kl(a[:, :2], b[:, :2])
    assert gaussian_kl(a, b) == pytest.approx(free, rel=1e-6)
    assert whiten(a, b).dim == 2
    padded = [np.column_stack([x, x[:, 0], np.zeros(S), np.full(S, 7.0)]) for x in (a, b)]
    assert gaussian_kl(*padded) == pytest.approx(free, rel=1e-6)
    assert energy_distance(*padded).value == pytest.approx(energy_distance(a[:, :2], b[:, :2]).value, rel=1e-6)


def test_single_precision_does_not_make_directions():
    pi = np.random.default_rng(4).dirichlet([30, 40, 50], size=S).astype(np.float32)
    assert whiten(pi, pi).dim == 2


def test_strong_correlation_is_not_redundant():
    x = normal(S, 2)
    x[:, 1] = x[:, 0] + 1e-3 * x[:, 1]
    pair = whiten(x + 0.1, x)
    assert (pair.dim, pair.flat) == (2, 0)
    np.testing.assert_allclose(np.cov(pair.b.T, ddof=0), np.eye(2), atol=1e-6)


def test_samples_that_do_not_share_their_directions():
    x = normal(500, 2)
    line = np.column_stack([x[:, 0], np.zeros(500)])
    assert gaussian_kl(x, line)[0] == np.inf
    assert gaussian_kl(line, x)[0] == np.inf
    assert gaussian_kl(line, line) == (pytest.approx(0), pytest.approx(0.25 * 4 * 2 / 500, rel=0.3))
    assert gaussian_kl(np.zeros((50, 2)), np.zeros((50, 2))) == (0, 0)
    assert gaussian_kl(np.zeros((50, 2)), np.ones((50, 2)))[0] == np.inf  # constants that differ
    assert np.isnan(gaussian_kl(normal(10, 30), normal(10, 30, seed=1))[0])
    assert energy_distance(x, line).p_value < 0.01
    assert energy_distance(np.zeros((50, 2)), np.zeros((50, 2))).value == 0


# Energy distance


def test_energy_distance_is_scipys_in_one_dimension():
    """SciPy's is √(2∫(F − G)²) of the empirical distributions: a V-statistic, which has the zeros on the diagonal."""
    a, b = normal(600, 1, seed=5), 0.8 * normal(1200, 1, seed=6) + 0.5
    pair = whiten(a, b[600:], by=b[:600])
    x, y = pair.a[:, 0], pair.b[:, 0]
    within = [np.abs(v[:, None] - v).sum() / 600**2 for v in (x, y)]
    truth = stats.energy_distance(x, y) ** 2 - sum(w / 599 for w in within)
    assert energy_distance(a, b).value == pytest.approx(truth, rel=1e-9)


def test_energy_distance_of_shifted_normals():
    """E|N(δ, 2)| − E|N(0, 2)| twice, for normals of sd 1 that are δ apart."""
    delta = 0.6
    root = np.sqrt(2)
    mean_abs = root * np.sqrt(2 / np.pi) * np.exp(-(delta**2) / 4) + delta * (1 - 2 * ndtr(-delta / root))
    truth = 2 * (mean_abs - root * np.sqrt(2 / np.pi))
    values = [energy_distance(normal(S, 1, seed=s) + delta, normal(S, 1, seed=99 + s)).value for s in range(20)]
    assert np.mean(values) == pytest.approx(truth, abs=4 * np.std(values) / np.sqrt(20))


@pytest.mark.parametrize("dim", [2, 40])
def test_energy_distance_tells_noise_from_difference(dim):
    same = [energy_distance(normal(1500, dim, seed=s), normal(1500, dim, seed=99 + s)) for s in range(20)]
    values = np.array([e.value for e in same])
    assert abs(values.mean()) < 4 * values.std() / np.sqrt(20)  # unbiased
    assert sum(e.p_value <= 0.05 for e in same) <= 4  # Binomial(20, .05) is above 4 once in 400
    assert all((e.value > e.noise) == (e.p_value < 0.05) or abs(e.p_value - 0.05) < 0.011 for e in same)
    off = energy_distance(normal(1500, dim, seed=7) + 2 / np.sqrt(dim), normal(1500, dim, seed=8))
    assert off.value > 5 * off.noise
    assert off.p_value == 1 / 200


def test_energy_distance_takes_no_more_draws_than_are_effective(monkeypatch):
    taken = []
    monkeypatch.setattr(distances, "thin", lambda draws, size: taken.append(size) or thin(draws, size))
    energy_distance(normal(1500, 2, seed=0), normal(1500, 2, seed=1), ess=(300.0, 500.0))
    assert taken == [300, 250]  # half of the reference whitens
    energy_distance(normal(9000, 2, seed=0), normal(9000, 2, seed=1))
    assert taken[2:] == [1000, 1000]


def test_energy_distance_sees_what_moments_do_not():
    """Equal means and covariances: independent signs against a normal."""
    signs = np.random.default_rng(9).choice([-1.0, 1.0], size=(S, 2))
    assert gaussian_kl(signs, normal(S, 2))[0] < 0.01
    assert energy_distance(signs, normal(S, 2)).p_value < 0.01


@pytest.mark.slow
def test_whitening_by_the_reference_does_not_make_a_difference_in_many_dimensions():
    same = [energy_distance(normal(S, 300, seed=s), normal(S, 300, seed=99 + s)) for s in range(10)]
    assert sum(e.p_value <= 0.05 for e in same) <= 3


# Border


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: total_variation(np.zeros((5, 20)), np.zeros(20)), r"`a` must be a vector .* got shape \(5, 20\)"),
        (lambda: total_variation(np.zeros(20), np.zeros(3)), r"`b` must be a vector of at least 10 draws"),
        (lambda: skewness([np.nan] * 20), "`x` must be finite; got nan"),
        (lambda: gaussian_kl(np.zeros(20), np.zeros((20, 1))), r"`a` must be \(draws, scalars\)"),
        (lambda: gaussian_kl(np.zeros((20, 2)), np.zeros((20, 1))), "the same columns; got 2, 1"),
    ],
)
def test_errors(call, message):
    with pytest.raises(DataError, match=message):
        call()
