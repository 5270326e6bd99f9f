"""Predictions with gaps against SciPy's marginals, quadrature, imputation by simulation, and brute force."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from bayes_gda.data.examples import load_example
from bayes_gda.data.gaps import PatternMoments
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.gaussian.gaps.augmentation import draw_posterior
from bayes_gda.families.gaussian.gaps.em import naive_posterior_missing
from bayes_gda.families.gaussian.gaps.predictive import (
    log_joint_observed,
    log_joint_observed_per_draw,
    marginal,
    thin,
    worth_measuring,
)
from bayes_gda.families.gaussian.predictive import draw_rows, log_joint_of_draws, log_joint_per_draw
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.priors import NIG, NIW, Dirichlet
from bayes_gda.priors.defaults import default_nig, default_niw

FITS = {"lda": (lda_posterior, NIW), "qda": (qda_posterior, NIW), "naive": (naive_posterior, NIG)}
MODELS = pytest.mark.parametrize("name", FITS)


def fit(name, *, n=50, d=3, K=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    X = rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=(K, d))[y]
    build, kind = FITS[name]
    moments = Moments.from_arrays(X, y, K)
    return build(moments, kind.default(moments), Dirichlet([1.0] * (K - 1) + [2.0])), X


def with_gaps(X, share=0.4, seed=1):
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    X[0], X[1] = np.nan, np.where(np.isnan(X[1]), 0.3, X[1])  # one with nothing, one with everything
    return X


def student(posterior, k, observed):
    """SciPy's predictive of class k, marginalised as Student-t's are: a part of the location and of the shape."""
    d = posterior.m.shape[1]
    g = 0 if posterior.shared else k
    dof = posterior.nu[g] - d + 1
    shape = posterior.Psi[g] * (posterior.kappa[k] + 1) / (posterior.kappa[k] * dof)
    return stats.multivariate_t(posterior.m[k, observed], shape[np.ix_(observed, observed)], dof)


# ── class probabilities ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["lda", "qda"])
def test_marginals_are_scipy_student_ts(name):
    posterior, X = fit(name)
    X = with_gaps(X)
    got = log_joint_observed(posterior, X)
    shares = posterior.alpha / posterior.alpha.sum()
    for i, x in enumerate(X):
        o = np.flatnonzero(~np.isnan(x))
        for k in range(3):
            density = student(posterior, k, o).logpdf(x[o]) if len(o) else 0.0
            assert got[i, k] == pytest.approx(np.log(shares[k]) + density, rel=1e-9)


@MODELS
def test_complete_rows_are_as_before_and_empty_ones_get_the_shares(name):
    posterior, X = fit(name)
    np.testing.assert_allclose(log_joint_observed(posterior, X), posterior.log_joint(X), rtol=1e-12)
    empty = log_joint_observed(posterior, np.full((2, 3), np.nan))
    np.testing.assert_allclose(np.exp(empty), np.tile(posterior.alpha / posterior.alpha.sum(), (2, 1)))


@MODELS
def test_a_missing_feature_is_integrated_out(name):
    """Quadrature of the complete rows' density over the feature."""
    posterior, X = fit(name)
    x = X[7].copy()
    x[1] = np.nan
    got = np.exp(log_joint_observed(posterior, x[None])[0])

    def density(value, k):
        return np.exp(posterior.log_joint(np.array([[x[0], value, x[2]]]))[0, k])

    for k in range(3):
        want, error = integrate.quad(density, -np.inf, np.inf, args=(k,), epsabs=0, epsrel=1e-9, limit=200)
        assert got[k] == pytest.approx(want, rel=1e-7)
        assert error < 1e-7 * want


@MODELS
def test_predictions_equal_imputation_from_the_predictive(name):
    """Fill in the gaps from p(x_mis | x_obs) many times and average p(y | x): the long way round."""
    posterior, X = fit(name, K=2)
    x = X[4].copy()
    x[[0, 2]] = np.nan
    got = np.exp(log_class_probabilities(log_joint_observed(posterior, x[None]))[0])
    # Candidates from the predictive itself, weighted by how well they go with what was observed.
    S = 40000
    imputed, _ = draw_rows(posterior.draw(S, random_seed=0), random_seed=1)
    proposal = np.logaddexp.reduce(
        log_joint_observed(marginal(posterior, np.array([True, False, True])), imputed[:, [0, 2]]), axis=1
    )
    imputed[:, 1] = x[1]
    joint = posterior.log_joint(imputed)
    log_w = np.logaddexp.reduce(joint, axis=1) - proposal
    w = np.exp(log_w - log_w.max())
    w /= w.sum()
    p = np.exp(log_class_probabilities(joint))[:, 1]
    want = w @ p
    error = np.sqrt(w**2 @ (p - want) ** 2)
    assert error < 0.01
    assert abs(got[1] - want) < 4.5 * error


@MODELS
def test_draws_equal_brute_force_and_approach_the_exact_answer(name):
    posterior, X = fit(name)
    X = with_gaps(X)[:12]
    draws = posterior.draw(3000, random_seed=0)
    few = {key: value[:3] for key, value in draws.items()}
    got = log_joint_observed_per_draw(few, X)
    for s in range(3):
        for i, x in enumerate(X):
            o = np.flatnonzero(~np.isnan(x))
            for k in range(3):
                if "sigma2" in few:
                    Sigma = np.diag(few["sigma2"][s, k])
                else:
                    Sigma = few["Sigma"][s] if few["Sigma"].ndim == 3 else few["Sigma"][s, k]
                want = np.log(few["pi"][s, k])
                if len(o):
                    want += stats.multivariate_normal(few["mu"][s, k, o], Sigma[np.ix_(o, o)]).logpdf(x[o])
                assert got[s, i, k] == pytest.approx(want, rel=1e-9)
    averaged = log_joint_observed(draws, X)
    np.testing.assert_allclose(averaged[1:2], log_joint_of_draws(draws, X[1:2]))
    np.testing.assert_allclose(log_joint_observed_per_draw(few, X[1:2]), log_joint_per_draw(few, X[1:2]))
    exact, approximate = (
        np.exp(log_class_probabilities(part)) for part in (log_joint_observed(posterior, X), averaged)
    )
    assert np.abs(exact - approximate).max() < 0.02


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), name=st.sampled_from(sorted(FITS)))
def test_order_of_rows_and_company_do_not_matter(seed, name):
    posterior, X = fit(name)
    X = with_gaps(X, seed=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    together = log_joint_observed(posterior, X)
    np.testing.assert_allclose(log_joint_observed(posterior, X[order]), together[order], rtol=1e-12)
    np.testing.assert_allclose(log_joint_observed(posterior, X[5:6]), together[5:6], rtol=1e-12)


# ── on real data ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pima_with_all_rows_beats_dropping_the_incomplete_ones():
    """300 rows, a third of them incomplete, to train; the 332 of Pima.te to test."""
    train, test = load_example("pima-missing"), load_example("pima").subset(np.arange(200, 532))
    complete = ~np.isnan(train.X).any(axis=1)
    assert complete.sum() == 200
    moments = Moments.from_arrays(train.X[complete], train.y[complete], 2)

    def score(log_joint):
        return log_class_probabilities(log_joint)[np.arange(test.n), test.y].mean()

    dropped, kept = {}, {}
    for name, (build, kind) in FITS.items():
        dropped[name] = score(build(moments, kind.default(moments)).log_joint(test.X))
    kept["naive"] = score(
        naive_posterior_missing(train.X, train.y, 2, default_nig(train.X, train.y, 2)).log_joint(test.X)
    )
    data, prior = PatternMoments.from_arrays(train.X, train.y, 2), default_niw(train.X, train.y, 2)
    for name in ("lda", "qda"):
        draws = draw_posterior(data, prior, shared=name == "lda", draws=100, warmup=50, chains=2, random_seed=0)
        flat = {key: value.reshape(-1, *value.shape[2:]) for key, value in draws.items()}
        kept[name] = score(log_joint_observed(flat, test.X))
    assert all(kept[name] > dropped[name] for name in FITS), (kept, dropped)


# ── what to measure ───────────────────────────────────────────────────────────────────────────────────────────────────


def brute_worth(posterior, x, j, costs, *, S=40000, points=60001):
    """Draw x_j from each class's conditional by weighting, decide with it, and compare with deciding without it."""
    before = (np.exp(log_class_probabilities(log_joint_observed(posterior, x[None]))) @ costs.T).min()
    grid = np.linspace(-60, 60, points)
    rows = np.tile(x, (len(grid), 1))
    rows[:, j] = grid
    joint = np.exp(log_joint_observed(posterior, rows))
    total = np.trapezoid(joint.sum(axis=1), grid)
    after = np.trapezoid((joint @ costs.T).min(axis=1), grid) / total
    # and the same by simulation: values from the mixture by inverting its distribution on the grid
    cdf = np.cumsum(joint.sum(axis=1))
    values = np.interp(np.random.default_rng(0).random(S), cdf / cdf[-1], grid)
    rows = np.tile(x, (S, 1))
    rows[:, j] = values
    losses = (np.exp(log_class_probabilities(log_joint_observed(posterior, rows))) @ costs.T).min(axis=1)
    return before - after, before - losses.mean(), losses.std() / np.sqrt(S)


@MODELS
@pytest.mark.parametrize("costs", [None, [[0, 10, 1], [1, 0, 2], [3, 3, 0], [1, 1, 1]]], ids=["errors", "costs"])
def test_worth_equals_brute_force(name, costs):
    posterior, X = fit(name, n=80)
    X = X[:4].copy()
    X[0, 1] = np.nan
    X[1, [0, 2]] = np.nan
    X[2] = np.nan
    got = worth_measuring(posterior, X, costs)
    C = 1 - np.eye(3) if costs is None else np.array(costs, dtype=float)
    np.testing.assert_array_equal(np.isnan(got), ~np.isnan(X))
    for i, j in np.argwhere(np.isnan(X)):
        grid, simulated, error = brute_worth(posterior, X[i], j, C)
        assert got[i, j] == pytest.approx(grid, abs=2e-5 * C.max())
        assert abs(got[i, j] - simulated) < 4.5 * error + 2e-5 * C.max()
    assert np.nanmax(got) > 0.01


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), name=st.sampled_from(sorted(FITS)), as_draws=st.booleans())
def test_worth_is_never_negative_nor_above_the_loss(seed, name, as_draws):
    posterior, X = fit(name, seed=seed % 7)
    rng = np.random.default_rng(seed)
    X = with_gaps(X[:10] * rng.choice([0.1, 1, 30]), seed=seed)
    costs = rng.normal(size=(rng.integers(2, 5), 3))
    source = posterior.draw(10, random_seed=0) if as_draws else posterior
    worth = worth_measuring(source, X, costs, nodes=16)
    P = np.exp(log_class_probabilities(log_joint_observed(posterior, X)))
    assert (worth[np.isnan(X)] >= 0).all()
    if not as_draws:
        # no more than to know the class itself, up to the error of so coarse a rule
        perfect = (P @ costs.T).min(axis=1) - P @ costs.min(axis=0)
        assert (np.nan_to_num(worth) <= perfect[:, None] + 0.1 * np.abs(costs).max()).all()


def test_worth_of_a_feature_that_cannot_change_the_decision_is_zero():
    posterior, _ = fit("naive", K=2)
    worth = worth_measuring(posterior, [[np.nan, 0.1, 0.2]], [[0, 0], [5, 5]])
    np.testing.assert_array_equal(worth[0, 0], 0.0)


@MODELS
def test_worth_with_draws_equals_brute_force_and_approaches_the_exact_one(name):
    posterior, X = fit(name, n=400)
    X = with_gaps(X[:12])
    gaps = np.isnan(X)
    draws = posterior.draw(2000, random_seed=0)
    exact, drawn = worth_measuring(posterior, X), worth_measuring(draws, X)
    assert np.sqrt(((exact - drawn)[gaps] ** 2).mean()) < 0.01  # 64 draws stand for the posterior
    few = thin(draws, 40)
    got = worth_measuring(few, X[:4], nodes=1000)
    for i, j in np.argwhere(np.isnan(X[:4]))[:4]:
        grid, _, _ = brute_worth(few, X[i], j, 1 - np.eye(3), S=10, points=6001)
        assert got[i, j] == pytest.approx(grid, abs=3e-4)


def test_errors_name_the_cause():
    posterior, X = fit("lda")
    with pytest.raises(DataError, match="3 features that the model was fitted to; got 2"):
        log_joint_observed(posterior, X[:, :2])
    with pytest.raises(DataError, match=r"`costs` must be \(A, 3\)"):
        worth_measuring(posterior, X, np.eye(2))
    with pytest.raises(DataError, match=r"`nodes` must be at least 1; got 0"):
        worth_measuring(posterior, X, nodes=0)
    with pytest.raises(DataError, match="got inf in row 0"):
        log_joint_observed(posterior, np.where(np.arange(3) == 1, np.inf, X[:1]))
