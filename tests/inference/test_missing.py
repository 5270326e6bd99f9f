"""Training with missing values against complete data, brute force over rows, scikit-learn, ArviZ and simulation."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import ConvergenceError, DataError, PriorError
from bayes_gda.inference.augmentation import complete, draw_posterior
from bayes_gda.inference.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.inference.missing import (
    default_nig,
    default_niw,
    maximum_likelihood,
    maximum_likelihood_naive,
    maximum_posterior,
    naive_mode,
    naive_posterior_missing,
)
from bayes_gda.inference.patterns import PatternMoments
from bayes_gda.inference.priors import NIG, NIW, Dirichlet

SHARED = pytest.mark.parametrize("shared", [True, False], ids=["lda", "qda"])


def simulate(n=60, d=3, K=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2 * rng.normal(size=(K, d))[y], y


def remove(X, share, seed=0):
    """Take values away completely at random."""
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def each(Sigma, K):
    return Sigma if Sigma.ndim == 3 else np.tile(Sigma, (K, 1, 1))


def brute_log_likelihood(X, y, pi, mu, Sigma):
    """Row by row, with SciPy's multivariate normal of what each row has."""
    total = 0.0
    for x, k in zip(X, y, strict=True):
        o = ~np.isnan(x)
        total += np.log(pi[k])
        if o.any():
            total += stats.multivariate_normal(mu[k][o], Sigma[k][np.ix_(o, o)]).logpdf(x[o])
    return total


# ── patterns ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@SHARED
def test_log_likelihood_by_pattern_equals_row_by_row(shared):
    X, y = simulate(K=3)
    X = remove(X, 0.4)
    X[3] = np.nan
    rng = np.random.default_rng(1)
    mu, roots = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3, 3, 5))
    Sigma = (roots @ np.swapaxes(roots, -1, -2))[:, 0 if shared else slice(None)]
    pi = rng.dirichlet(np.ones(3), size=2)
    got = PatternMoments.from_arrays(X, y, 3).log_likelihood(pi, mu, Sigma)
    want = [brute_log_likelihood(X, y, pi[s], mu[s], each(Sigma[s], 3)) for s in range(2)]
    np.testing.assert_allclose(got, want, rtol=1e-11)


def test_regression_on_what_is_observed_equals_the_textbook_blocks():
    X, y = simulate(d=4)
    data = PatternMoments.from_arrays(remove(X, 0.5), y, 2)
    Sigma = np.cov(X.T)
    A, C = data.regress(np.tile(Sigma, (len(data.label), 1, 1)))
    for g, o in enumerate(data.observed):
        B = Sigma[np.ix_(~o, o)] @ np.linalg.inv(Sigma[np.ix_(o, o)])
        np.testing.assert_allclose(A[g][np.ix_(~o, o)], B, atol=1e-12)
        np.testing.assert_allclose(A[g][np.ix_(o, o)], np.eye(o.sum()))
        np.testing.assert_allclose(C[g][np.ix_(~o, ~o)], Sigma[np.ix_(~o, ~o)] - B @ Sigma[np.ix_(o, ~o)], atol=1e-12)
        assert not A[g][:, ~o].any()
        assert not C[g][o].any()


def test_groups_hold_all_rows_and_merge_to_the_moments():
    X, y = simulate()
    data = PatternMoments.from_arrays(X, y, 2)
    whole = Moments.from_arrays(X, y, 2)
    mean, scatter = data.merge(data.mean, data.scatter)
    np.testing.assert_allclose(mean, whole.mean)
    np.testing.assert_allclose(scatter, whole.scatter)
    gapped = remove(X, 0.3)
    gapped[:2] = np.nan
    data = PatternMoments.from_arrays(gapped, y, 2)
    np.testing.assert_allclose(data.class_count, np.bincount(y))
    np.testing.assert_allclose(data.values, [(~np.isnan(gapped[y == k])).sum(axis=0) for k in (0, 1)])
    np.testing.assert_allclose(data.used_count, np.bincount(y[~np.isnan(gapped).all(axis=1)]))


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
    S = 20000
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
            assert np.abs(np.cov(a.T) - np.cov(b.T)).max() < 0.06 * np.cov(b.T).max() + 1e-12


# ── EM ────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_em_without_gaps_is_scikit_learn():
    data = load_example("iris")
    groups = PatternMoments.from_arrays(data.X, data.y, 3)
    lda = maximum_likelihood(groups, shared=True)
    oracle = LinearDiscriminantAnalysis(solver="lsqr", store_covariance=True).fit(data.X, data.y)
    np.testing.assert_allclose(lda.Sigma, oracle.covariance_)
    np.testing.assert_allclose(lda.mu, oracle.means_)
    qda = maximum_likelihood(groups, shared=False)
    own = QuadraticDiscriminantAnalysis(store_covariance=True).fit(data.X, data.y)
    np.testing.assert_allclose(qda.Sigma, own.covariance_)
    naive = maximum_likelihood_naive(data.X, data.y, 3)
    bayes = GaussianNB(var_smoothing=0).fit(data.X, data.y)
    np.testing.assert_allclose(np.diagonal(naive.Sigma, axis1=1, axis2=2), bayes.var_)
    np.testing.assert_allclose(naive.mu, bayes.theta_)


@SHARED
def test_map_without_gaps_is_the_mode_of_the_exact_posterior(shared):
    X, y = simulate()
    prior = default_niw(X, y, 2)
    exact = (lda_posterior if shared else qda_posterior)(Moments.from_arrays(X, y, 2), prior)
    point = maximum_posterior(PatternMoments.from_arrays(X, y, 2), prior, shared=shared)
    np.testing.assert_allclose(point.mu, exact.m)
    np.testing.assert_allclose(point.pi, exact.alpha / exact.alpha.sum())
    # nothing near it has a higher density: log p(μ, Σ) of NIW and SciPy's inverse Wishart
    K, d = exact.m.shape

    def log_posterior(mu, Sigma):
        Sigma = Sigma if Sigma.ndim == 3 else Sigma[None]
        total = sum(stats.invwishart(nu, Psi).logpdf(S) for nu, Psi, S in zip(exact.nu, exact.Psi, Sigma, strict=True))
        return total + sum(
            stats.multivariate_normal(exact.m[k], Sigma[k % len(Sigma)] / exact.kappa[k]).logpdf(mu[k])
            for k in range(K)
        )

    best = log_posterior(point.mu, point.Sigma)
    rng = np.random.default_rng(0)
    for _ in range(50):
        noise = 0.01 * rng.normal(size=point.Sigma.shape)
        root = np.linalg.cholesky(point.Sigma) @ (np.eye(d) + noise)
        assert log_posterior(point.mu + 0.01 * rng.normal(size=(K, d)), root @ np.swapaxes(root, -1, -2)) < best


@SHARED
@pytest.mark.parametrize("with_prior", [False, True], ids=["ml", "map"])
def test_em_rises_to_a_maximum(shared, with_prior):
    X, y = simulate(n=120)
    X = remove(X, 0.3)
    data = PatternMoments.from_arrays(X, y, 2)
    prior = default_niw(X, y, 2)
    point = maximum_posterior(data, prior, shared=shared) if with_prior else maximum_likelihood(data, shared=shared)
    trace = point.info.log_density
    assert point.info.converged
    assert (np.diff(trace) > -1e-9).all()
    assert trace[-1] - trace[0] > 1
    if with_prior:
        return
    # against the rows: the likelihood that EM reports, and that no step from its answer raises it
    np.testing.assert_allclose(trace[-1], brute_log_likelihood(X, y, point.pi, point.mu, each(point.Sigma, 2)))
    rng = np.random.default_rng(0)
    for _ in range(200):
        root = np.linalg.cholesky(point.Sigma) @ (np.eye(3) + 0.01 * rng.normal(size=point.Sigma.shape))
        moved = point.mu + 0.01 * rng.normal(size=point.mu.shape)
        assert data.log_likelihood(point.pi, moved, root @ np.swapaxes(root, -1, -2)) < trace[-1]


def test_em_of_a_monotone_pattern_is_the_factored_closed_form():
    """Two features, the second missing in some rows: regress x₂ on x₁ in the complete rows, x₁ on all (Anderson)."""
    rng = np.random.default_rng(5)
    X = rng.multivariate_normal([1, 2], [[1, 0.8], [0.8, 2]], size=80)
    y = np.repeat([0, 1], 40)
    X[y == 1] += 3
    X[::3, 1] = np.nan
    point = maximum_likelihood(PatternMoments.from_arrays(X, y, 2), shared=False)
    for k in (0, 1):
        rows = X[y == k]
        full = rows[~np.isnan(rows[:, 1])]
        slope = np.cov(full.T)[0, 1] / np.cov(full.T)[0, 0]
        mean = rows[:, 0].mean()
        np.testing.assert_allclose(point.mu[k, 1], full[:, 1].mean() + slope * (mean - full[:, 0].mean()), rtol=1e-7)
        np.testing.assert_allclose(point.Sigma[k, 0, 1], slope * rows[:, 0].var(), rtol=1e-7)
        rest = (full[:, 1] - full[:, 1].mean() - slope * (full[:, 0] - full[:, 0].mean())).var()
        np.testing.assert_allclose(point.Sigma[k, 1, 1], rest + slope**2 * rows[:, 0].var(), rtol=1e-7)


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
        PatternMoments.from_arrays(X, y, 2), prior, shared=shared, draws=1500, warmup=5, chains=2, random_seed=0
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


# ── naive ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_naive_without_gaps_is_the_exact_posterior():
    X, y = simulate(K=3)
    prior, shares = default_nig(X, y, 3), Dirichlet([1.0, 2.0, 0.5])
    want = naive_posterior(Moments.from_arrays(X, y, 3), prior, shares)
    got = naive_posterior_missing(X, y, 3, prior, shares)
    for name in ("m", "kappa", "a", "b", "alpha"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-12)
    assert got.log_evidence == pytest.approx(want.log_evidence, rel=1e-12)


def test_naive_evidence_is_the_product_of_sequential_predictives():
    """Row after row: p(y) times the Student-t of each value that is there, by SciPy."""
    X, y = simulate(n=25)
    X = remove(X, 0.4)
    prior = NIG(m=np.zeros(3), kappa=0.5, a=2.0, b=1.5)
    total = 0.0
    for i in range(len(X)):
        seen = naive_posterior_missing(X[:i], y[:i], 2, prior) if i else None
        m, kappa, a, b = (
            np.broadcast_to(p, (2, 3))[y[i]]
            for p in ((seen.m, seen.kappa, seen.a, seen.b) if seen else (prior.m, prior.kappa, prior.a, prior.b))
        )
        alpha = seen.alpha if seen else np.ones(2)
        there = ~np.isnan(X[i])
        scale = np.sqrt(b * (kappa + 1) / (a * kappa))
        total += np.log(alpha[y[i]] / alpha.sum()) + stats.t(2 * a, m, scale).logpdf(X[i])[there].sum()
    assert naive_posterior_missing(X, y, 2, prior).log_evidence == pytest.approx(total, rel=1e-10)


def test_naive_mode_is_where_the_density_is_highest():
    X, y = simulate()
    posterior = naive_posterior_missing(remove(X, 0.3), y, 2, default_nig(X, y, 2))
    point = naive_mode(posterior)
    best = np.diagonal(point.Sigma, axis1=1, axis2=2)

    def density(mu, s2):
        normal = stats.norm(posterior.m, np.sqrt(s2 / posterior.kappa)).logpdf(mu)
        return normal + stats.invgamma(posterior.a, scale=posterior.b).logpdf(s2)

    for factor in (0.99, 1.01):
        assert (density(point.mu, factor * best) < density(point.mu, best)).all()
        assert (density(point.mu + (factor - 1), best) < density(point.mu, best)).all()


# ── posterior by data augmentation ────────────────────────────────────────────────────────────────────────────────────


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
        PatternMoments.from_arrays(X, y, 2), prior, shared=shared, draws=700, warmup=2, chains=2, random_seed=1
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
        PatternMoments.from_arrays(X, y, 2), prior, shared=shared, draws=900, warmup=50, chains=4, random_seed=0
    )
    full = ~np.isnan(X).any(axis=1)
    exact = (lda_posterior if shared else qda_posterior)(Moments.from_arrays(X[full], y[full], 2), prior)
    proposal = exact.draw(60000, random_seed=1)
    rest = PatternMoments.from_arrays(X[~full], y[~full], 2)
    log_w = rest.log_likelihood(proposal["pi"], proposal["mu"], proposal["Sigma"])
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    for name in ("mu", "Sigma"):
        chains = draws[name].reshape(4, 900, -1)
        truth = proposal[name].reshape(60000, -1)
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
            PatternMoments.from_arrays(X, y, 2), prior, shared=shared, draws=250, warmup=30, chains=2, random_seed=rng
        )
        for name, value in (("mu", mu), ("Sigma", Sigma[0] if shared else Sigma)):
            flat = draws[name].reshape(500, *value.shape)
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
    check_coverage(*coverage(10, 0, n=40, shared=shared))


@pytest.mark.slow
@SHARED
def test_intervals_cover_the_truth_in_many_simulations(shared):
    check_coverage(*coverage(400, 1, n=40, shared=shared))


def test_values_removed_at_random_leave_no_bias():
    """Means over simulations of EM's estimates: those of complete data, though the gaps depend on what is observed."""
    rng = np.random.default_rng(0)
    mu, Sigma = np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[1.0, 0.7], [0.7, 1.0]])
    full, gapped, dropped = [], [], []
    for _ in range(150):
        y = np.repeat([0, 1], 60)
        X = mu[y] + rng.normal(size=(120, 2)) @ np.linalg.cholesky(Sigma).T
        full.append(X[y == 0, 1].mean())
        X[(X[:, 0] > mu[y, 0]) & (rng.random(120) < 0.8), 1] = np.nan  # at random given x₁
        gapped.append(maximum_likelihood(PatternMoments.from_arrays(X, y, 2), shared=True, tolerance=1e-4).mu[0, 1])
        dropped.append(np.nanmean(X[y == 0, 1]))
    gap = np.array(gapped)
    assert abs(gap.mean()) < 3.5 * gap.std() / np.sqrt(len(gap))
    assert np.std(full) < gap.std() < 2 * np.std(full)
    assert np.mean(dropped) < -0.2  # to drop rows is not so innocent


# ── borders ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_default_priors_without_gaps_are_the_defaults():
    X, y = simulate()
    moments = Moments.from_arrays(X, y, 2)
    for got, want in ((default_niw(X, y, 2), NIW.default(moments)), (default_nig(X, y, 2), NIG.default(moments))):
        for name in got.__slots__:
            np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-12)


def test_errors_name_the_cause():
    X, y = simulate(n=12)
    with pytest.raises(DataError, match=r"got inf in row 1, column 2"):
        PatternMoments.from_arrays(np.where(np.arange(36).reshape(12, 3) == 5, np.inf, X), y, 2)
    with pytest.raises(DataError, match="all are missing"):
        PatternMoments.from_arrays(np.full((4, 2), np.nan), y[:4], 2)
    with pytest.raises(DataError, match=r"`y` must lie in 0…1"):
        PatternMoments.from_arrays(X, y + 1, 2)
    with pytest.raises(PriorError, match="Feature 1 does not vary"):
        default_nig(X * [1, 0, 1], y, 2)
    data = PatternMoments.from_arrays(remove(X, 0.2), y, 2)
    with pytest.raises(PriorError, match=r"`prior` has 2 features, `X` has 3"):
        maximum_posterior(data, NIW(m=np.zeros(2), kappa=1.0, Psi=np.eye(2), nu=4.0), shared=True)
    with pytest.raises(ConvergenceError, match="did not settle in 2 steps") as caught:
        maximum_posterior(data, default_niw(X, y, 2), shared=True, max_iter=2)
    assert caught.value.partial.info.n_iter == 2
    with pytest.raises(DataError, match="singular"):
        maximum_likelihood(PatternMoments.from_arrays(X[:, [0, 1, 1]], y, 2), shared=True)
    with pytest.raises(DataError, match=r"`draws` must be at least 1"):
        draw_posterior(data, default_niw(X, y, 2), shared=True, draws=0)
    with pytest.raises(DataError, match="Class 1 has 0 values in column 0"):
        maximum_likelihood_naive(np.where((y == 1)[:, None] & [True, False, False], np.nan, X), y, 2)
