"""Novelty: tail probabilities against simulation and SciPy, and false alarms at the stated rate."""

import numpy as np
import pytest
from scipy import stats

from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian import novelty
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.gaussian.novelty import detect_novelty, tail_probabilities
from bayes_gda.families.gaussian.predictive import draw_rows
from bayes_gda.priors import NIG, NIW

FITS = {"lda": (lda_posterior, NIW), "qda": (qda_posterior, NIW), "naive": (naive_posterior, NIG)}
MODELS = pytest.mark.parametrize("name", FITS)


def fit(name, *, n=30, d=3, K=2):
    """Few rows, so that the Student-t's tails matter, and classes that overlap."""
    rng = np.random.default_rng(0)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=(K, d))[y]
    build, kind = FITS[name]
    moments = Moments.from_arrays(X, y, K)
    return build(moments, kind.default(moments))


def predictive(posterior, size, seed):
    return draw_rows(posterior.draw(size, random_seed=seed), random_seed=seed + 1)


@MODELS
@pytest.mark.parametrize("gap", [(), (1,), (0, 2)], ids=["complete", "one missing", "two missing"])
def test_the_probability_of_the_true_class_is_uniform(name, gap):
    posterior = fit(name)
    X, y = predictive(posterior, 4000, 1)
    X[:, gap] = np.nan
    p = tail_probabilities(posterior, X)
    for k in (0, 1):
        assert stats.kstest(p[y == k, k], "uniform").pvalue > 1e-3


@pytest.mark.parametrize("name", ["lda", "qda"])
def test_probability_is_the_mass_further_out(name):
    """Share of SciPy's Student-t draws with a lower density, which is the same as further out."""
    posterior = fit(name)
    x = np.array([[0.5, -1.0, 2.0]])
    got = tail_probabilities(posterior, x)[0]
    for k in (0, 1):
        g = 0 if name == "lda" else k
        dof = posterior.nu[g] - 3 + 1
        shape = posterior.Psi[g] * (posterior.kappa[k] + 1) / (posterior.kappa[k] * dof)
        t = stats.multivariate_t(posterior.m[k], shape, dof, seed=0)
        share = np.mean(t.pdf(t.rvs(40000)) <= t.pdf(x[0]))
        assert got[k] == pytest.approx(share, abs=4.5 * np.sqrt(share * (1 - share) / 40000) + 1e-4)


def test_one_feature_is_the_two_sided_tail_in_every_model():
    naive, qda = fit("naive", d=1), fit("qda", d=1)
    x = np.linspace(-6, 6, 25)[:, None]
    got = tail_probabilities(naive, x)
    scale = np.sqrt(naive.b * (naive.kappa + 1) / (naive.a * naive.kappa))[:, 0]
    want = 2 * stats.t(2 * naive.a[:, 0]).sf(np.abs(x - naive.m[:, 0]) / scale)
    np.testing.assert_allclose(got, want, rtol=1e-8)
    np.testing.assert_allclose(tail_probabilities(qda, x), want, rtol=1e-8)  # its default prior is the same


def test_draws_approach_the_exact_probability_as_data_grow():
    for name in FITS:
        posterior = fit(name, n=3000)
        X, _ = predictive(posterior, 200, 3)
        X[::4, 1] = np.nan
        exact, drawn = (tail_probabilities(s, X) for s in (posterior, posterior.draw(64, random_seed=0)))
        assert np.abs(exact - drawn).max() < 0.02


@MODELS
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1])
def test_false_alarms_come_at_the_stated_rate(name, rate):
    """On fresh rows of the predictive, complete and with a gap, within the binomial error of both simulations."""
    posterior = fit(name)
    n = 12000
    X, _ = predictive(posterior, n, 11)
    X[n // 2 :, 0] = np.nan
    found = detect_novelty(posterior, X, false_alarm=rate)
    for part in (slice(0, n // 2), slice(n // 2, n)):
        error = np.sqrt(rate * (1 - rate) * (1 / (n // 2) + 1 / 50_000))
        assert abs(found.novel[part].mean() - rate) < 3.5 * error
    # max_k p_k ≥ p_y: the threshold is no lower than the rate, but for its own sampling error
    assert (found.threshold > rate - 4 * np.sqrt(rate / 50_000)).all()


@pytest.mark.parametrize("name", ["lda", "naive"])
def test_false_alarms_with_draws_come_at_the_stated_rate(name):
    draws = fit(name).draw(60, random_seed=5)
    rng = np.random.default_rng(6)
    chosen = rng.integers(60, size=4000)
    X, _ = draw_rows({key: value[chosen] for key, value in draws.items()}, random_seed=rng)
    assert abs(detect_novelty(draws, X, false_alarm=0.05).novel.mean() - 0.05) < 3.5 * np.sqrt(0.05 * 0.95 / 4000)


@MODELS
def test_far_rows_are_novel_and_empty_rows_never(name):
    posterior = fit(name)
    X = np.array([[1e6, -1e6, 1e6], [np.nan, 1e200, np.nan], [np.nan] * 3, posterior.m[0]])
    found = detect_novelty(posterior, X, false_alarm=0.01)
    np.testing.assert_array_equal(found.novel, [True, True, False, False])
    np.testing.assert_allclose(found.largest[2:], 1)
    np.testing.assert_array_equal(found.probability, tail_probabilities(posterior, X))
    again = detect_novelty(posterior, X, false_alarm=0.01)
    np.testing.assert_array_equal(found.threshold, again.threshold)


def test_errors_name_the_cause():
    with pytest.raises(DataError, match=r"`false_alarm` must lie between 0 and 1; got 1"):
        detect_novelty(fit("lda"), np.zeros((1, 3)), false_alarm=1.0)
    with pytest.raises(DataError, match="3 features that the model was fitted to; got 1"):
        tail_probabilities(fit("lda"), np.zeros((1, 1)))


def refitted_rates(name, K):
    """Shares of new rows of two classes, and of those with a gap, that are novel, over training sets of both."""
    build, kind = FITS[name]
    rng = np.random.default_rng(0)
    y, mu = np.repeat([0, 1], 8), np.array([[0.0, 0.0, 0.0], [6.0, 0.0, 3.0]])
    rates = []
    for _ in range(12):
        X, new = rng.normal(size=(16, 3)) + mu[y], rng.integers(0, 2, 1000)
        rows = rng.normal(size=(1000, 3)) + mu[new]
        rows[::2, 1] = np.nan
        moments = Moments.from_arrays(X, y, K)
        found = detect_novelty(build(moments, kind.default(moments)), rows, false_alarm=0.1, prior=kind.default)
        rates.append((found.novel[::2].mean(), found.novel[1::2].mean()))
    return np.array(rates)


@MODELS
def test_with_the_prior_the_rate_is_that_of_refits(name):
    """Over training sets and rows of known classes; with it the threshold holds in each pattern of missing features."""
    rates = refitted_rates(name, K=2)
    error = rates.std(axis=0) / np.sqrt(len(rates))
    assert (np.abs(rates.mean(axis=0) - 0.1) < 3.5 * error + 0.02).all()


@MODELS
def test_a_class_without_rows_learns_nothing_in_the_refits(name):
    """Its wide predictive takes in most rows, so few are novel; from a row that was never there it would narrow."""
    assert 0.005 < refitted_rates(name, K=3)[:, 1].mean() < 0.1


def test_the_threshold_is_that_of_the_seed():
    """It is simulated: another seed gives another one, within the error of a 1 % quantile of 50 000."""
    posterior = fit("lda")
    X = predictive(posterior, 3, 0)[0]
    a, b, other = (detect_novelty(posterior, X, random_seed=seed).threshold[0] for seed in (1, 1, 2))
    assert a == b != other
    assert other == pytest.approx(a, rel=0.2)


@pytest.mark.parametrize("freedom", [6.5, 3.0, 1.0])
def test_training_sets_drawn_anew_have_a_wishart_scatter(freedom):
    """E W = f Σ, Var W_ij = f (Σ_ij² + Σ_iiΣ_jj), and rank f where that is below d: here against the sum of squares."""
    rng = np.random.default_rng(0)
    L = np.array([[1.0, 0, 0], [0.5, 2.0, 0], [-0.3, 0.1, 0.4]])
    W = np.array([novelty._draw_wishart(L, freedom, rng) for _ in range(4000)])
    if freedom >= 3:
        Sigma = L @ L.T
        variance = freedom * (Sigma**2 + np.outer(np.diag(Sigma), np.diag(Sigma)))
        assert (np.abs(W.mean(axis=0) - freedom * Sigma) < 4.5 * np.sqrt(variance / 4000)).all()
        np.testing.assert_allclose(W.var(axis=0), variance, rtol=0.2)
    else:
        assert (np.linalg.matrix_rank(W[:50]) == freedom).all()
