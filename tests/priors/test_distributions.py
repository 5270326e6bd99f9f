"""Priors: they check themselves, their draws have the moments of the textbook, and their defaults follow the data."""

import numpy as np
import pytest
from judge import assert_same_mean
from scipy import optimize, stats

from bayes_gda.data.moments import Moments
from bayes_gda.errors import PriorError
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet, HierarchicalScale, Normal
from bayes_gda.priors.distributions import _finite_draws

SIZE = 40_000


@pytest.fixture
def moments():
    rng = np.random.default_rng(3)
    return Moments.from_arrays(rng.normal(size=(90, 3)) * [1, 10, 0.1] + 5, rng.integers(0, 2, 90), 2)


def test_niw_draws_have_the_textbook_moments():
    Psi = np.array([[2.0, 0.3], [0.3, 1.0]])
    draws = NIW(m=[1, -1], kappa=4, Psi=Psi, nu=9).draw(SIZE, random_seed=0)
    expected = Psi / (9 - 2 - 1)
    assert_same_mean(draws["Sigma"], expected)
    assert_same_mean(draws["mu"], [1, -1])
    centered = draws["mu"] - [1, -1]
    assert_same_mean(centered[:, :, None] * centered[:, None, :], expected / 4)


def test_nig_is_the_one_dimensional_niw():
    nig = NIG(m=[1.0], kappa=2.0, a=4.0, b=3.0).draw(SIZE, random_seed=0)
    niw = NIW(m=1.0, kappa=2.0, Psi=6.0, nu=8.0).draw(SIZE, random_seed=1)
    assert stats.ks_2samp(nig["sigma2"][:, 0], niw["Sigma"][:, 0, 0]).pvalue > 0.001
    assert stats.ks_2samp(nig["mu"][:, 0], niw["mu"][:, 0]).pvalue > 0.001


@pytest.mark.parametrize(("d", "eta"), [(2, 1.0), (3, 2.0), (5, 4.0)])
def test_lkj_correlations_have_their_known_beta_marginals(d, eta):
    Sigma = LKJ(scale=np.ones(d), m=0, mean_scale=1, eta=eta).draw(SIZE, random_seed=0)["Sigma"]
    sd = np.sqrt(np.diagonal(Sigma, axis1=1, axis2=2))
    R = Sigma / sd[:, :, None] / sd[:, None, :]
    # Each correlation of LKJ(η) in d dimensions is 2 Beta(b, b) − 1 with b = η − 1 + d/2.
    marginal = stats.beta(eta - 1 + d / 2, eta - 1 + d / 2, loc=-1, scale=2)
    for i, j in [(0, 1), (d - 2, d - 1), (0, d - 1)]:
        assert stats.kstest(R[:, i, j], marginal.cdf).pvalue > 0.001
    assert stats.kstest(sd[:, 0], stats.halfnorm.cdf).pvalue > 0.001


def test_dirichlet_draws_have_mean_alpha_over_sum():
    assert_same_mean(Dirichlet([1, 2, 5]).draw(SIZE, 3, random_seed=0)["pi"], np.array([1, 2, 5]) / 8)


def test_normal_covariance_and_scale_agree_and_density_is_normalised():
    S = np.array([[4.0, 1.0], [1.0, 2.0]])
    full = Normal(mean=[1, 2], covariance=S)
    w = np.array([0.3, -0.7])
    log_p = -0.5 * (w - [1, 2]) @ full.precision(2) @ (w - [1, 2]) - full.log_normalizer(2)
    assert log_p == pytest.approx(stats.multivariate_normal([1, 2], S).logpdf(w))
    draws = full.draw(SIZE, 2, random_seed=0)["w"] - [1, 2]
    assert_same_mean(draws[:, :, None] * draws[:, None, :], S)
    diagonal = Normal(mean=[1, 2], scale=[2, 3])
    same = Normal(mean=[1, 2], covariance=np.diag([4, 9]))
    np.testing.assert_allclose(diagonal.precision(2), same.precision(2))
    assert diagonal.log_normalizer(2) == pytest.approx(same.log_normalizer(2))


def test_an_infinite_scale_is_flat():
    prior = Normal(scale=[np.inf, 2.0])
    assert not prior.is_proper
    np.testing.assert_array_equal(prior.precision(2), np.diag([0, 0.25]))
    with pytest.raises(PriorError, match="flat prior cannot be drawn from"):
        prior.draw(1, 2)


def test_hierarchical_slopes_have_the_marginal_variance_of_the_hyperprior():
    draws = HierarchicalScale(scale=2.0, intercept_scale=3.0).draw(SIZE, 4, random_seed=0)
    assert_same_mean(draws["w"] ** 2, [9, 4, 4, 4])  # E[τ²] = scale²
    assert_same_mean(draws["tau"], 2 * np.sqrt(2 / np.pi))


def test_defaults_are_centred_and_scaled_by_the_data(moments):
    variance = np.diagonal(moments.scatter.sum(axis=0)) / 88  # 90 rows, 2 classes
    niw, nig, lkj = NIW.default(moments), NIG.default(moments), LKJ.default(moments)
    scale = np.diag(niw.Psi) / variance
    np.testing.assert_allclose(niw.Psi, np.diag(scale[0] * variance))
    np.testing.assert_allclose(nig.a / nig.b, 1 / variance)  # E[1/σ²]
    np.testing.assert_array_equal(2 * nig.a, 3)  # rows
    np.testing.assert_allclose(niw.m, moments.count @ moments.mean / 90)
    np.testing.assert_allclose(lkj.scale, 2 * np.sqrt(variance))
    scale = Normal.default(4).scale_vector(4)
    np.testing.assert_array_equal(scale, [5, 2.5, 2.5, 2.5])


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.99])
@pytest.mark.parametrize("rows", [3, 5, 40])
def test_the_default_scale_has_the_highest_evidence(correlation, rows):
    """Against SciPy's search over s, with p(S | s) = ∫ Wishart(S | Σ, f) IW(Σ | sD, ν) dΣ by SciPy's densities."""
    d, K = 4, 2
    rng = np.random.default_rng(rows)
    Sigma = correlation * np.ones((d, d)) + (1 - correlation) * np.eye(d)
    X, y = rng.multivariate_normal(np.zeros(d), Sigma, size=K * rows), np.repeat(np.arange(K), rows)
    moments = Moments.from_arrays(X * [1, 10, 0.1, 3], y, K)
    prior = NIW.default(moments)
    S, f = moments.scatter.sum(axis=0), K * rows - K
    D = np.diag(np.diag(S) / f)
    anywhere = np.diag([1.0, 100, 0.01, 9])

    def minus_log_evidence(log_s):
        """Bayes' rule at one Σ, whose factors that do not depend on s are left out: prior over posterior."""
        Psi = np.exp(log_s) * D
        posterior = stats.invwishart(prior.nu + f, Psi + S)
        return posterior.logpdf(anywhere) - stats.invwishart(prior.nu, Psi).logpdf(anywhere)

    best = optimize.minimize_scalar(minus_log_evidence, bounds=(-9, 3), method="bounded", options={"xatol": 1e-9})
    np.testing.assert_allclose(prior.Psi, np.exp(best.x) * D, rtol=1e-5)
    assert prior.nu == d + 2


def test_the_default_follows_units_and_knows_collinear_features(moments):
    factor = np.array([1e-3, 1.0, 50.0])
    other = Moments(moments.count, moments.mean * factor, moments.scatter * np.outer(factor, factor))
    np.testing.assert_allclose(NIW.default(other).Psi, NIW.default(moments).Psi * np.outer(factor, factor))
    twice = np.array([[1.0, 0, 0, 1], [0, 1, 0, 0], [0, 0, 1, 0]])  # the last column repeats the first
    collinear = Moments(moments.count, moments.mean @ twice, twice.T @ moments.scatter @ twice)
    variance = np.diagonal(collinear.scatter.sum(axis=0)) / 88
    np.testing.assert_allclose(np.diag(NIW.default(collinear).Psi), 1e-4 * variance)


def test_jeffreys_is_improper_and_says_so():
    for prior in (NIW.jeffreys(3), NIG.jeffreys(3)):
        assert not prior.is_proper
        with pytest.raises(PriorError, match="jeffreys is improper and cannot be drawn from"):
            prior.draw(1)


def test_a_feature_that_never_varies_within_classes_has_no_default(moments):
    flat = Moments(moments.count, moments.mean, moments.scatter * np.outer([1, 0, 1], [1, 0, 1]))
    with pytest.raises(PriorError, match="Feature 1 does not vary within any class"):
        NIW.default(flat)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NIW(m=[0, 0], kappa=0, Psi=np.eye(2), nu=4), "`kappa` must be finite and greater than 0; got 0"),
        (lambda: NIW(m=[0, 0], kappa=1, Psi=np.eye(2), nu=1), "`nu` must exceed d - 1 = 1 for 2 features; got 1"),
        (lambda: NIW(m=[0, 0, 0], kappa=1, Psi=np.eye(2), nu=4), "`m` must be a number or a vector of 2"),
        (lambda: NIW(m=0, kappa=1, Psi=[[1, 2], [2, 1]], nu=4), "positive definite; its smallest eigenvalue is -1"),
        (lambda: NIW(m=0, kappa=1, Psi=[[1, 2], [0, 1]], nu=4), "must be symmetric; the largest asymmetry is 2"),
        (lambda: NIW(m=0, kappa=1, Psi=[[1, 1e308], [-1e308, 1]], nu=4), "symmetric; the largest asymmetry is inf"),
        (lambda: NIW(m=0, kappa=1, Psi=np.ones((2, 3)), nu=4), "must be a square matrix"),
        (lambda: NIG(m=[0, np.nan], kappa=1, a=1, b=1), "`m` must be finite; got nan"),
        (lambda: NIG(m=[0, 0], kappa=1, a=[1, 2, 3], b=1), "`m` must be a number or a vector of 3"),
        (lambda: NIG(m=[0, 0], kappa=1, a="one", b=1), "`a` must be numeric; got 'one'"),
        (lambda: Dirichlet([1, -1]), "`alpha` must be finite and greater than 0; got -1"),
        (lambda: Dirichlet([1, 1]).vector(3), "`alpha` must be a number or a vector of 3"),
        (lambda: Dirichlet(np.ones((2, 2))), "one entry a class"),
        (lambda: LKJ(scale=[1, 1], m=0, mean_scale=1, eta=0), "`eta` must be finite and greater than 0"),
        (lambda: Normal(), "either `scale` or `covariance`"),
        (lambda: Normal(scale=0.0), "`scale` must be greater than 0; got 0"),
        (lambda: Normal(scale=[1, 2]).precision(3), "`scale` must be a number or a vector of 3"),
        (lambda: Normal(covariance=np.eye(2)).precision(3), "`covariance` must be a number or a vector of 3"),
        (lambda: HierarchicalScale(scale=np.inf), "`scale` must be finite and greater than 0; got inf"),
    ],
)
def test_bad_parameters_are_refused_with_one_line(make, message):
    with pytest.raises(PriorError, match=message):
        make()


def test_a_prior_is_jeffreys_only_if_all_its_numbers_are_zero():
    assert not NIW(m=0, kappa=0, Psi=np.zeros((2, 2)), nu=0).is_proper
    with pytest.raises(PriorError):
        NIW(m=0, kappa=0, Psi=np.diag([0.0, 1.0]), nu=0)


def test_draws_of_which_one_parameter_leaves_the_range_of_floats_are_refused():
    with pytest.raises(PriorError, match="leave the range of floats"):
        _finite_draws(lambda: {"Sigma": np.ones(2), "mu": np.array([1.0, np.inf])})
    assert _finite_draws(lambda: {"Sigma": np.ones(2)})["Sigma"].sum() == 2
