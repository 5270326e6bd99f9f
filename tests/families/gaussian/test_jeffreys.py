"""Jeffreys' improper prior: the posterior is that of sampling theory, and where there is none it is said."""

import numpy as np
import pytest
from scipy import stats

from bayes_gda import BayesianLDA, BayesianNaiveGaussian, BayesianQDA, load, load_example, save
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.priors import NIG, NIW, Dirichlet

FITS = {"lda": (lda_posterior, NIW), "qda": (qda_posterior, NIW), "naive": (naive_posterior, NIG)}
ESTIMATORS = {"lda": BayesianLDA, "qda": BayesianQDA, "naive": BayesianNaiveGaussian}
MODELS = pytest.mark.parametrize("name", FITS)
IRIS = load_example("iris")
X, Y = IRIS.X[::3], IRIS.y[::3]


def fit(name, X=X, y=Y, K=3):
    build, kind = FITS[name]
    return build(Moments.from_arrays(X, y, K), kind.jeffreys(X.shape[1]))


@pytest.mark.parametrize("name", ["lda", "qda"])
def test_predictive_is_hotellings(name):
    """x | D ~ t with f − d + 1 degrees of freedom, scale (1 + 1/n_k) S/(f − d + 1), f = n_k − 1 or n − K."""
    got = fit(name).log_joint(IRIS.X)
    d, n = 4, np.bincount(Y)
    centred = [X[k == Y] - X[k == Y].mean(axis=0) for k in range(3)]
    for k in range(3):
        S = sum(Z.T @ Z for Z in centred) if name == "lda" else centred[k].T @ centred[k]
        dof = (n.sum() - 3 if name == "lda" else n[k] - 1) - d + 1
        want = stats.multivariate_t(X[k == Y].mean(axis=0), (1 + 1 / n[k]) * S / dof, dof).logpdf(IRIS.X)
        np.testing.assert_allclose(got[:, k], want + np.log((1 + n[k]) / (3 + n.sum())), rtol=1e-9)


def test_naive_predictive_is_a_product_of_students():
    got, n = fit("naive").log_joint(IRIS.X), np.bincount(Y)
    for k in range(3):
        rows = X[k == Y]
        scale = rows.std(axis=0, ddof=1) * np.sqrt(1 + 1 / n[k])
        want = stats.t(n[k] - 1, rows.mean(axis=0), scale).logpdf(IRIS.X).sum(axis=1)
        np.testing.assert_allclose(got[:, k], want + np.log((1 + n[k]) / (3 + n.sum())), rtol=1e-9)


@MODELS
def test_leave_one_out_is_a_refit(name):
    got = fit(name).leave_one_out(X, Y)
    for i in (0, 20, 49):
        keep = np.arange(len(X)) != i
        np.testing.assert_allclose(got[i], fit(name, X[keep], Y[keep]).log_joint(X[i : i + 1])[0], rtol=1e-8)


@MODELS
def test_it_is_the_limit_of_proper_priors(name):
    """ν, κ, Ψ → the improper values; μ | Σ keeps its factor |Σ|^{−1/2}, one degree of freedom for each class."""
    build, kind = FITS[name]
    moments = Moments.from_arrays(X, Y, 3)
    tiny = 1e-9
    if kind is NIW:  # a proper prior has ν > d − 1: rows are taken from the count instead
        limit = NIW(np.zeros(4), tiny, tiny * np.eye(4), 4.0)
        proper, improper = build(moments, limit), fit(name)
        lost = 4.0 + (3 if name == "lda" else 1)
        np.testing.assert_allclose(proper.nu - lost, improper.nu)
        np.testing.assert_allclose(proper.Psi, improper.Psi, atol=1e-5)
    else:
        proper, improper = build(moments, NIG(np.zeros(4), tiny, tiny, tiny)), fit(name)
        np.testing.assert_allclose(proper.a - 0.5, improper.a, atol=1e-8)
        np.testing.assert_allclose(proper.b, improper.b, atol=1e-5)
    np.testing.assert_allclose(proper.m, improper.m, atol=1e-7)
    assert np.isnan(improper.log_evidence)


@MODELS
def test_draws_have_the_moments_of_the_posterior(name):
    posterior = fit(name)
    draws = posterior.draw(40_000, random_seed=0)
    np.testing.assert_allclose(draws["mu"].mean(axis=0), posterior.m, atol=0.01)
    if name == "naive":
        want = posterior.b / (posterior.a - 1)
        np.testing.assert_allclose(draws["sigma2"].mean(axis=0), want, rtol=0.02)
    else:
        want = posterior.Psi / (posterior.nu - 5)[:, None, None]
        np.testing.assert_allclose(draws["Sigma"].mean(axis=0), want if name == "qda" else want[0], atol=0.01)


@MODELS
def test_estimators_take_it_where_it_is_exact(name):
    kind = FITS[name][1]
    model = ESTIMATORS[name](prior=kind.jeffreys(4)).fit(X, Y)
    assert (model.inference_, model.trust_.verdict) == ("exact", "exact")
    assert np.isnan(model.log_evidence_)
    assert np.isnan(model.log_evidence_error_)
    assert "improper" in model.trust_.reason
    log_joint = fit(name).log_joint(IRIS.X)
    want = np.exp(log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(IRIS.X), want, rtol=1e-9)
    assert model.novelty(IRIS.X, 0.05).novel.mean() < 0.2
    for inference in ("laplace", "mcmc"):
        with pytest.raises(PriorError, match="is improper and has its exact posterior alone"):
            ESTIMATORS[name](prior=kind.jeffreys(4), inference=inference).fit(X, Y)
    gaps = X.copy()
    gaps[0, 0] = np.nan
    with pytest.raises(PriorError, match="need a proper `prior`"):
        ESTIMATORS[name](prior=kind.jeffreys(4)).fit(gaps, Y)


def test_too_few_rows_are_an_error_that_says_how_many():
    few = np.concatenate([np.arange(4), np.arange(20, 40)])
    with pytest.raises(DataError, match=r"needs 1 more row to estimate a covariance. Use the default prior"):
        fit("qda", X[few], Y[few])
    fit("lda", X[few], Y[few])
    with pytest.raises(DataError, match="class 2 has too few rows"):
        fit("lda", X[:30], Y[:30])
    with pytest.raises(DataError, match="Feature 1 does not vary in class 0"):
        fit("naive", np.where(Y[:, None] == 0, 1.0, X), Y)
    five = np.concatenate([np.arange(5), np.arange(20, 40)])
    with pytest.raises(DataError, match="Leave-one-out: the improper prior needs 1 more row"):
        fit("qda", X[five], Y[five]).leave_one_out(X[five], Y[five])
    with pytest.raises(PriorError, match="`prior` of BayesianQDA must be NIW"):
        BayesianQDA(prior=NIG.jeffreys(4)).fit(X, Y)
    assert np.isnan(qda_posterior(Moments.from_arrays(X, Y, 3), NIW.jeffreys(4), Dirichlet(2.0)).log_evidence)


@MODELS
def test_it_can_be_stored(name, tmp_path):
    model = ESTIMATORS[name](prior=FITS[name][1].jeffreys(4)).fit(X, Y)
    save(model, tmp_path / "model.nc")
    again = load(tmp_path / "model.nc")
    assert not again.prior_.is_proper
    np.testing.assert_array_equal(again.predict_proba(IRIS.X), model.predict_proba(IRIS.X))
    np.testing.assert_array_equal(again.novelty(IRIS.X).threshold, model.novelty(IRIS.X).threshold)


@pytest.mark.parametrize(("name", "enough"), [("lda", 2), ("qda", 6), ("naive", 3)])
def test_leave_one_out_needs_as_many_rows_as_the_fit_without_one_of_them(name, enough):
    """A mean takes one row of a class, a variance one more, a covariance of 4 features four more; LDA shares it."""
    y = np.repeat([0, 1, 2], [20, 20, enough])
    rows = np.random.default_rng(0).normal(size=(len(y), 4))
    left_out = fit(name, rows, y).leave_one_out(rows, y)
    without = fit(name, rows[:-1], y[:-1]).log_joint(rows[-1:])
    np.testing.assert_allclose(left_out[-1], without[0], rtol=1e-8)
    with pytest.raises(DataError, match="Leave-one-out: "):
        fit(name, rows[:-1], y[:-1]).leave_one_out(rows[:-1], y[:-1])


def test_one_class_with_collinear_features_is_enough_to_be_refused():
    rows = X.copy()
    rows[Y == 1, 2] = rows[Y == 1, 0] + rows[Y == 1, 1]
    with pytest.raises(DataError, match="Feature 3 is a sum of others"):
        fit("qda", rows)
    assert np.isfinite(fit("lda", rows).log_joint(X)).all()
