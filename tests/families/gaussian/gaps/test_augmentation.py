"""Draws of the posterior given incomplete rows, against exact posteriors, weighting, filled-in rows and simulation."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from gaps import SHARED, each, remove, simulate
from scipy import stats

from bayes_gda.data.gaps import PatternMoments
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import lda_posterior, qda_posterior
from bayes_gda.families.gaussian.gaps.augmentation import complete, draw_posterior
from bayes_gda.families.gaussian.gaps.em import (
    maximum_likelihood,
    maximum_posterior,
    naive_posterior_missing,
)
from bayes_gda.priors import NIG, NIW
from bayes_gda.priors.defaults import default_niw


def test_completed_moments_are_distributed_as_those_of_completed_rows():
    """Groups of one row, of fewer rows than features, and of many, against filling in row by row."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(14, 4)) @ rng.normal(size=(4, 4))
    y = np.zeros(14, dtype=int)
    X[0, [0, 2]] = np.nan
    X[1:4, 0] = np.nan
    X[4:, [1, 3]] = np.nan
    data = PatternMoments.from_arrays(X, y, 1)
    mu, Sigma = rng.normal(size=4), np.cov(rng.normal(size=(4, 9)))
    S = 8000
    mean, scatter = complete(data, np.tile(mu, (S, 1, 1)), np.tile(Sigma, (S, 1, 1)), np.random.default_rng(3))
    for g, o in enumerate(data.observed):
        rows = np.flatnonzero((~np.isnan(X) == o).all(axis=1))
        B = Sigma[np.ix_(~o, o)] @ np.linalg.inv(Sigma[np.ix_(o, o)])
        noise = stats.multivariate_normal(np.zeros((~o).sum()), Sigma[np.ix_(~o, ~o)] - B @ Sigma[np.ix_(o, ~o)])
        filled = np.tile(X[rows], (S, 1, 1))
        center = mu[~o] + (X[rows][:, o] - mu[o]) @ B.T
        filled[:, :, ~o] = center + noise.rvs(S * len(rows), random_state=4).reshape(S, *center.shape)
        mean_rows = filled.mean(axis=1)
        z = filled - mean_rows[:, None]
        scatter_rows = np.einsum("snd,sne->sde", z, z)
        for a, b in ((mean[:, g], mean_rows), (scatter[:, g].reshape(S, -1), scatter_rows.reshape(S, -1))):
            for power in (1, 2):
                p, q = a**power, b**power
                error = np.sqrt((p.var(axis=0) + q.var(axis=0)) / S)
                off = np.abs(p.mean(axis=0) - q.mean(axis=0))
                assert (off <= 4.5 * error + 1e-9 * np.abs(q.mean(axis=0))).all()
            # How mean and scatter go together, too: correlations of the first missing feature with all else.
            assert np.abs(np.cov(a.T) - np.cov(b.T)).max() < 0.09 * np.cov(b.T).max() + 1e-12


def rhat(values):
    return float(array_stats.rhat(values, chain_axis=0, draw_axis=1))


def ess(values):
    return float(array_stats.ess(values, chain_axis=0, draw_axis=1))


@SHARED
def test_draws_without_gaps_come_from_the_exact_posterior(shared):
    X, y = simulate()
    prior = default_niw(X, y, 2)
    exact = (lda_posterior if shared else qda_posterior)(Moments.from_arrays(X, y, 2), prior)
    draws = draw_posterior(
        PatternMoments.from_arrays(X, y, 2), prior, shared=shared, draws=140, warmup=2, chains=10, random_seed=1
    )
    Sigma = each(exact.Psi / (exact.nu - 3 - 1)[:, None, None], 2)[:: 2 if shared else 1]
    for name, truth in (("mu", exact.m), ("Sigma", Sigma)):
        flat = draws[name].reshape(1400, -1)
        error = flat.std(axis=0) / np.sqrt(1400)
        assert (np.abs(flat.mean(axis=0) - truth.ravel()[: flat.shape[1]]) < 4.5 * error).all()


@SHARED
def test_chains_agree_and_importance_sampling_agrees_with_them(shared):
    """Truth by weighting: draws of the complete rows' posterior times the likelihood of the rows with gaps."""
    X, y = simulate(n=60, d=2, seed=3)
    X[:15, 0], X[15:25, 1] = np.nan, np.nan
    prior = NIW(m=np.zeros(2), kappa=0.2, Psi=2 * np.eye(2), nu=5.0)
    draws = draw_posterior(
        PatternMoments.from_arrays(X, y, 2), prior, shared=shared, draws=500, warmup=30, chains=8, random_seed=0
    )
    full = ~np.isnan(X).any(axis=1)
    exact = (lda_posterior if shared else qda_posterior)(Moments.from_arrays(X[full], y[full], 2), prior)
    proposal = exact.draw(40000, random_seed=1)
    rest = PatternMoments.from_arrays(X[~full], y[~full], 2)
    log_w = rest.log_likelihood(proposal["pi"], proposal["mu"], proposal["Sigma"])
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    for name in ("mu", "Sigma"):
        chains = draws[name].reshape(8, 500, -1)
        truth = proposal[name].reshape(40000, -1)
        for j in range(chains.shape[2]):
            assert rhat(chains[..., j]) < 1.02
            for power in (1, 2):
                g, t = chains[..., j] ** power, truth[:, j] ** power
                want = w @ t
                error = np.sqrt(g.var() / ess(g) + w**2 @ (t - want) ** 2)
                assert abs(g.mean() - want) < 4.5 * error


def test_the_same_seed_gives_the_same_draws():
    X, y = simulate(n=30)
    data = PatternMoments.from_arrays(remove(X, 0.2), y, 2)
    prior = default_niw(X, y, 2)
    a, b, c = (
        draw_posterior(data, prior, shared=True, draws=5, warmup=1, chains=2, random_seed=seed)["mu"]
        for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(a, b)
    assert (a != c).all()


def coverage(repeats, seed, *, n, shared):
    """Share of 80 % intervals that hold the truth, drawn from the prior each time, and z-scores of the means."""
    rng = np.random.default_rng(seed)
    prior = NIW(m=np.zeros(3), kappa=0.3, Psi=4 * np.eye(3), nu=7.0)
    held, ranks = [], []
    for _ in range(repeats):
        truth = prior.draw(2, random_seed=rng)
        Sigma = np.tile(truth["Sigma"][0], (2, 1, 1)) if shared else truth["Sigma"]
        mu = truth["mu"]
        if shared:  # both means are drawn given the one covariance
            mu = rng.multivariate_normal(np.zeros(3), Sigma[0] / 0.3, size=2)
        y = np.concatenate([[0, 1], rng.integers(0, 2, n - 2)])
        X = mu[y] + (np.linalg.cholesky(Sigma)[y] @ rng.normal(size=(n, 3, 1)))[..., 0]
        X[rng.random(X.shape) < 0.25] = np.nan
        draws = draw_posterior(
            PatternMoments.from_arrays(X, y, 2), prior, shared=shared, draws=100, warmup=15, chains=4, random_seed=rng
        )
        for name, value in (("mu", mu), ("Sigma", Sigma[0] if shared else Sigma)):
            flat = draws[name].reshape(400, *value.shape)
            low, high = np.quantile(flat, [0.1, 0.9], axis=0)
            held.append(np.mean((low <= value) & (value <= high)))
            ranks.append(np.mean((flat < value).mean(axis=0)))
    return np.array(held), np.array(ranks)


def check_coverage(held, ranks):
    # Entries of one data set go together; data sets do not. The spread over data sets is the standard error.
    assert abs(held.mean() - 0.8) < 3.5 * held.std() / np.sqrt(len(held))
    assert abs(ranks.mean() - 0.5) < 3.5 * ranks.std() / np.sqrt(len(ranks))


@SHARED
def test_intervals_cover_the_truth(shared):
    check_coverage(*coverage(8, 0, n=40, shared=shared))


@pytest.mark.slow
@SHARED
def test_intervals_cover_the_truth_in_many_simulations(shared):
    check_coverage(*coverage(400, 1, n=40, shared=shared))


# ── borders ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@SHARED
def test_one_feature(shared):
    """A row without its only value tells of its class alone."""
    X, y = simulate(d=1)
    X = remove(X, 0.3)
    there = ~np.isnan(X[:, 0])
    point = maximum_likelihood(PatternMoments.from_arrays(X, y, 2), shared=shared)
    want = Moments.from_arrays(X[there], y[there], 2)
    np.testing.assert_allclose(point.mu, want.mean)
    np.testing.assert_allclose(point.pi, np.bincount(y) / len(y))
    prior = NIW(m=0.0, kappa=0.5, Psi=1.0, nu=3.0)
    draws = draw_posterior(
        PatternMoments.from_arrays(X, y, 2), prior, shared=shared, draws=200, warmup=5, chains=10, random_seed=0
    )
    exact = (lda_posterior if shared else qda_posterior)(want, prior)
    mu = draws["mu"].reshape(-1, 2)  # independent draws: nothing has to be filled in
    np.testing.assert_allclose(mu.mean(axis=0), exact.m[:, 0], atol=4.5 * (mu.std(axis=0) / np.sqrt(len(mu))).max())
    alpha = 1 + np.bincount(y)
    pi = draws["pi"].reshape(-1, 2)
    np.testing.assert_allclose(pi.mean(axis=0), alpha / alpha.sum(), atol=4.5 * pi.std() / np.sqrt(len(pi)))


@SHARED
def test_a_column_missing_in_a_class(shared):
    X, y = simulate(n=80)
    X[y == 1, 2] = np.nan
    data, prior = PatternMoments.from_arrays(X, y, 2), default_niw(X, y, 2)
    with pytest.raises(DataError, match="Class 1 has no values in column 2"):
        maximum_likelihood(data, shared=shared)
    point = maximum_posterior(data, prior, shared=shared)
    assert np.isfinite(point.mu).all()
    assert np.linalg.eigvalsh(point.Sigma).min() > 0
    draws = draw_posterior(data, prior, shared=shared, draws=400, warmup=50, chains=4, random_seed=0)
    assert rhat(draws["mu"][..., 1, 2]) < 1.03  # it does not follow its own imputations
    # All that is known of it is the prior, with sd σ/√κ about the regression on the other means.
    mu, Sigma = draws["mu"][..., 1, :], draws["Sigma"] if shared else draws["Sigma"][..., 1, :, :]
    slopes = np.linalg.solve(Sigma[..., :2, :2], Sigma[..., :2, 2:])[..., 0]
    expected = prior.m[2] + (slopes * (mu[..., :2] - prior.m[:2])).sum(axis=-1)
    conditional = Sigma[..., 2, 2] - (slopes * Sigma[..., :2, 2]).sum(axis=-1)
    z = ((mu[..., 2] - expected) / np.sqrt(conditional / prior.kappa)).ravel()
    assert stats.kstest(z, "norm").pvalue > 1e-3
    naive = naive_posterior_missing(X, y, 2, NIG(m=np.zeros(3), kappa=0.5, a=2.0, b=1.5))
    np.testing.assert_allclose([naive.kappa[1, 2], naive.a[1, 2], naive.b[1, 2], naive.m[1, 2]], [0.5, 2, 1.5, 0])


@SHARED
def test_a_class_without_rows_is_taken_from_the_prior(shared):
    X, y = simulate()
    data, prior = PatternMoments.from_arrays(remove(X, 0.2), y, 3), default_niw(X, y, 3)
    np.testing.assert_allclose(maximum_posterior(data, prior, shared=shared).mu[2], prior.m)
    draws = draw_posterior(data, prior, shared=shared, draws=50, warmup=5, chains=2, random_seed=0)
    assert draws["mu"][..., 2, :].std() > 5 * draws["mu"][..., 0, :].std(axis=(0, 1)).max()


def test_what_was_never_observed_has_the_prior_and_moves_freely():
    """Feature 2 is unseen in class 1: there the others have their exact posterior, and the rest is the prior's."""
    X, y = simulate(n=60, d=3, K=2, seed=8)
    X[y == 1, 2] = np.nan
    prior = NIW(m=np.array([0.0, 1.0, -1.0]), kappa=0.8, Psi=np.eye(3) + 0.4, nu=6.0)
    data = PatternMoments.from_arrays(X, y, 2)
    draws = draw_posterior(data, prior, shared=False, draws=500, random_seed=0)
    Sigma, mu = (draws[name][:, :, 1].reshape(2000, *draws[name].shape[3:]) for name in ("Sigma", "mu"))
    part = NIW(m=prior.m[:2], kappa=prior.kappa, Psi=prior.Psi[:2, :2], nu=prior.nu - 1)
    exact = qda_posterior(Moments.from_arrays(X[:, :2], y, 2), part).draw(2000, random_seed=1)
    fresh = stats.invwishart(prior.nu, prior.Psi).rvs(2000, random_state=2)
    B, Bp = (np.linalg.solve(S[:, :2, :2], S[:, :2, 2:])[..., 0] for S in (Sigma, fresh))
    C, Cp = (S[:, 2, 2] - np.einsum("si,si->s", b, S[:, :2, 2]) for S, b in ((Sigma, B), (fresh, Bp)))
    rest = mu[:, 2] + 1 - np.einsum("si,si->s", B, mu[:, :2] - prior.m[:2])
    pairs = [(Sigma[:, 0, 1], exact["Sigma"][:, 1, 0, 1]), (mu[:, 1], exact["mu"][:, 1, 1]), (B[:, 0], Bp[:, 0])]
    for ours, theirs in [*pairs, (C, Cp), (rest / np.sqrt(C / prior.kappa), stats.norm.rvs(size=2000, random_state=3))]:
        assert stats.ks_2samp(ours, theirs).pvalue > 0.001
    assert array_stats.rhat(draws["Sigma"][:, :, 1, 2, 2]) < 1.01
