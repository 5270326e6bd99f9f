"""Point estimates and the naive posterior with missing values, against closed forms, rows and scikit-learn."""

import numpy as np
import pytest
from gaps import SHARED, brute_log_likelihood, each, remove, simulate
from scipy import stats
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import GaussianNB

from bayes_gda.data.examples import load_example
from bayes_gda.data.gaps import PatternMoments
from bayes_gda.data.moments import Moments
from bayes_gda.errors import ConvergenceError, DataError, PriorError
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.gaussian.gaps.augmentation import draw_posterior
from bayes_gda.families.gaussian.gaps.em import (
    maximum_likelihood,
    maximum_likelihood_naive,
    maximum_posterior,
    naive_mode,
    naive_posterior_missing,
)
from bayes_gda.priors import NIG, NIW, Dirichlet
from bayes_gda.priors.defaults import default_nig, default_niw

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


def test_values_removed_at_random_leave_no_bias():
    """Means over simulations of EM's estimates: those of complete data, though the gaps depend on what is observed."""
    rng = np.random.default_rng(0)
    mu, Sigma = np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[1.0, 0.7], [0.7, 1.0]])
    full, gapped, dropped = [], [], []
    for _ in range(100):
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
