"""Bridge sampling against evidence that is known: closed forms, conjugacy, quadrature."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit

from bayes_gda.data.moments import Moments
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.families.gaussian.exact import naive_posterior
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.methods.bridge import bridge_log_evidence, effective_size
from bayes_gda.priors import NIG, Dirichlet, Normal


def autoregressive(rho, chains, draws, rng):
    x = rng.normal(size=(chains, draws))
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + np.sqrt(1 - rho**2) * x[:, t]
    return x


def correlated(dim):
    """A covariance with correlations of .4 and scales that differ."""
    scale = np.linspace(0.1, 3, dim)
    return (0.6 * np.eye(dim) + 0.4) * np.outer(scale, scale)


# Gaussian targets


@pytest.mark.parametrize("dim", [1, 5, 20])
def test_gaussian_target(dim):
    rng = np.random.default_rng(dim)
    law = stats.multivariate_normal(np.arange(dim), correlated(dim))
    draws = law.rvs(4000, random_state=rng).reshape(4000, dim)
    result = bridge_log_evidence(lambda w: np.atleast_1d(law.logpdf(w)) - 123.4, draws)
    assert abs(result.log_evidence + 123.4) < 4 * result.log_evidence_error
    assert result.log_evidence_error < 0.02
    assert 0.8 < result.overlap < 1.02


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_the_stated_error_covers(rho):
    """Normalised errors over repeated samples have mean 0 and sd 1, for autocorrelated draws too."""
    dim = 3
    V = correlated(dim)
    law, root = stats.multivariate_normal(np.zeros(dim), V), np.linalg.cholesky(V)
    z = []
    for seed in range(80):
        rng = np.random.default_rng(seed)
        chains = np.stack([autoregressive(rho, 4, 300, rng) for _ in range(dim)], axis=-1)
        result = bridge_log_evidence(law.logpdf, chains.reshape(-1, dim) @ root.T, chains=4, random_seed=rng)
        z.append(result.log_evidence / result.log_evidence_error)
    assert abs(np.mean(z)) < 4 / np.sqrt(80)
    assert 0.8 < np.std(z) < 1.25
    assert np.mean(np.abs(z) < 1.96) >= 0.88


def test_the_stated_error_covers_where_the_proposal_is_a_poor_one():
    """Density ∝ exp(−√|w|) in ten directions: proposal and posterior overlap by a quarter."""
    law = stats.gennorm(0.5)
    z = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        draws = law.rvs((1200, 10), random_state=rng)
        result = bridge_log_evidence(lambda w: law.logpdf(w).sum(axis=1), draws, random_seed=rng)
        z.append(result.log_evidence / result.log_evidence_error)
    assert 0.15 < result.overlap < 0.4
    assert abs(np.mean(z)) < 4 / np.sqrt(120)
    assert 0.8 < np.std(z) < 1.1


def test_autocorrelation_widens_the_error():
    rng = np.random.default_rng(0)
    chains = autoregressive(0.9, 4, 1000, rng).reshape(-1, 1)
    density = lambda w: stats.norm.logpdf(w[:, 0])  # noqa: E731
    honest = bridge_log_evidence(density, chains, chains=4)
    shuffled = bridge_log_evidence(density, rng.permutation(chains), chains=4)
    assert honest.log_evidence_error > 1.2 * shuffled.log_evidence_error
    assert honest.effective_draws < 0.4 * shuffled.effective_draws


def test_skewed_and_bounded_targets():
    """log-gamma is skewed; a half normal is zero where the proposal is not. Both have known integrals."""
    rng = np.random.default_rng(1)
    skewed = bridge_log_evidence(
        lambda w: stats.loggamma.logpdf(w[:, 0], 1.5) + 7, np.log(rng.gamma(1.5, size=(4000, 1)))
    )
    assert abs(skewed.log_evidence - 7) < 4 * skewed.log_evidence_error

    half = np.abs(rng.normal(size=(4000, 1)))
    bounded = bridge_log_evidence(lambda w: np.where(w[:, 0] > 0, -(w[:, 0] ** 2) / 2, -np.inf), half)
    assert abs(bounded.log_evidence - 0.5 * np.log(np.pi / 2)) < 4 * bounded.log_evidence_error
    undefined = bridge_log_evidence(lambda w: np.where(w[:, 0] > 0, -(w[:, 0] ** 2) / 2, np.nan), half)
    assert undefined == bounded


# Models


def test_naive_model_against_its_closed_form():
    """Unconstrained: μ, log σ², and the logit of π, with their Jacobians."""
    rng = np.random.default_rng(2)
    y = np.repeat([0, 1], [12, 20])
    X = rng.normal([[0.0, 1.0]], 1.0, size=(32, 2)) + y[:, None] * [1.5, -1.0]
    prior = NIG(m=np.zeros(2), kappa=0.5, a=2.0, b=np.array([1.0, 2.0]))
    posterior = naive_posterior(Moments.from_arrays(X, y, 2), prior, Dirichlet(2.0))

    draws = posterior.draw(6000, random_seed=3)
    logit = np.log(draws["pi"][:, 1]) - np.log(draws["pi"][:, 0])
    w = np.column_stack([draws["mu"].reshape(-1, 4), np.log(draws["sigma2"]).reshape(-1, 4), logit])

    def log_density(w):
        mu, log_s2, p = w[:, :4].reshape(-1, 2, 2), w[:, 4:8].reshape(-1, 2, 2), expit(w[:, 8])
        s2 = np.exp(log_s2)
        out = stats.beta.logpdf(p, 2, 2) + np.log(p * (1 - p))
        out += (stats.norm.logpdf(mu, 0, np.sqrt(s2 / 0.5)) + log_s2).sum(axis=(1, 2))
        out += stats.invgamma.logpdf(s2, 2.0, scale=prior.b).sum(axis=(1, 2))
        out += stats.norm.logpdf(X, mu[:, y], np.sqrt(s2[:, y])).sum(axis=(1, 2))
        return out + 20 * np.log(p) + 12 * np.log1p(-p)

    result = bridge_log_evidence(log_density, w)
    assert abs(result.log_evidence - posterior.log_evidence) < 4 * result.log_evidence_error
    assert result.log_evidence_error < 0.03


def test_logistic_regression_against_quadrature():
    rng = np.random.default_rng(4)
    Phi = np.column_stack([np.ones(25), rng.normal(size=25)])
    y = (rng.random(25) < expit(Phi @ [-1.0, 2.0])).astype(int)
    prior = Normal(scale=np.array([5.0, 2.5]))
    target = LogisticTarget(Phi, y, prior)

    def log_density(w):  # by hand: with every constant
        a = w @ Phi.T
        return (y * a + log_expit(-a)).sum(axis=1) + stats.norm.logpdf(w, 0, [5.0, 2.5]).sum(axis=1)

    axis = np.linspace(-20, 20, 801)
    grid = np.stack(np.meshgrid(axis, axis, indexing="ij"), axis=-1).reshape(-1, 2)
    density = np.exp(log_density(grid))
    # The trapezoidal rule is nearly exact for a smooth density that has vanished at the ends.
    truth = np.log(density.sum() * (axis[1] - axis[0]) ** 2)

    # A random walk of four chains, started on the grid in proportion to the density.
    w = grid[rng.choice(len(grid), 4, p=density / density.sum())]
    log_p, chain = log_density(w), []
    for _ in range(6000):
        move = w + rng.normal(size=w.shape) * [1.2, 1.4]
        log_q = log_density(move)
        accept = np.log(rng.random(4)) < log_q - log_p
        w, log_p = np.where(accept[:, None], move, w), np.where(accept, log_q, log_p)
        chain.append(w)
    draws = np.stack(chain, axis=1)[:, ::2].reshape(-1, 2)
    result = bridge_log_evidence(target.log_density, draws, chains=4)
    assert abs(result.log_evidence - truth) < 4 * result.log_evidence_error
    assert result.log_evidence_error < 0.03


# Effective size


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9, 0.97])
@pytest.mark.parametrize(("chains", "draws"), [(4, 1000), (1, 3001)])
def test_effective_size_is_arvizs(rho, chains, draws):
    from arviz_stats.base import array_stats

    x = autoregressive(rho, chains, draws, np.random.default_rng(5))
    assert effective_size(x) == pytest.approx(min(float(array_stats.ess(x, method="mean")), x.size), rel=0.01)


def test_effective_size_at_the_edges():
    rng = np.random.default_rng(6)
    assert effective_size(np.ones((2, 100))) == 200
    assert effective_size(autoregressive(-0.5, 4, 1000, rng)) == 4000  # never more than there are
    apart = rng.normal(size=(4, 500)) + 10 * np.arange(4)[:, None]
    assert effective_size(apart) < 10


# Border


def standard(w):
    return -0.5 * (w**2).sum(axis=1)


@pytest.mark.parametrize(
    ("draws", "options", "message"),
    [
        (np.zeros(10), {}, r"`draws` must be \(S, dim\); got shape \(10,\)"),
        (np.full((100, 2), np.nan), {}, "`draws` must be finite; got nan"),
        (np.zeros((100, 2)), {"chains": 3}, "`chains` must divide the 100 draws into equal parts; got 3"),
        (np.zeros((20, 6)), {}, "`draws` must be at least 24 in 6 dimensions; got 20"),
        (np.ones((100, 2)), {}, "`draws` must vary in every direction"),
    ],
)
def test_draws_that_cannot_be_used(draws, options, message):
    with pytest.raises(DataError, match=message):
        bridge_log_evidence(standard, draws, **options)


def test_densities_that_do_not_fit_the_draws():
    draws = np.random.default_rng(7).normal(size=(400, 2))
    with pytest.raises(DataError, match="`log_density` must be finite at posterior draws; got -inf"):
        bridge_log_evidence(lambda w: np.where(w[:, 0] > 0, 0.0, -np.inf), draws)
    # Finite at the draws alone: no proposal finds them.
    with pytest.raises(ConvergenceError, match="zero at every draw of the proposal"):
        bridge_log_evidence(lambda w: np.where(np.isin(w, draws).all(axis=1), 0.0, -np.inf), draws)
    # Far higher at the draws than anywhere else: finite, but nothing to go by.
    with pytest.raises(ConvergenceError, match="hardly overlap") as caught:
        bridge_log_evidence(lambda w: np.where(np.isin(w, draws).all(axis=1), 0.0, -5000.0), draws)
    assert np.isfinite(caught.value.partial)
