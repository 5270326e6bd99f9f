"""`trust_for`: errors of single rows by cause, against MCMC and closed forms, for every kind of posterior."""

import numpy as np
import pandas as pd
import pytest
from command_line import run
from proof.split_hmc import sample_truth

from bayes_gda import LKJ, BayesianLDA, BayesianLogisticRegression, BayesianQDA, Moments, load_example
from bayes_gda.errors import DataError
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.methods.settings import LINKS
from bayes_gda.store import load

IRIS = load_example("iris")


def small_rows(n=60, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + 40, d))
    y = (rng.random(n + 40) < 1 / (1 + np.exp(-2 * X[:, 0] + X[:, 1]))).astype(int)
    return X[:n], y[:n], X[n:]


@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_stated_errors_bound_the_distance_to_long_sampling(inference):
    X, y, new = small_rows()
    model = BayesianLogisticRegression(inference=inference, tolerance=0.2).fit(X, y)
    rows = np.vstack([new, 4 * new])
    Phi = model.features_(rows)
    target = LogisticTarget(np.ascontiguousarray(model.features_(X)), y.astype(float), model.prior_)
    truth = sample_truth(target, regression_laplace(target), np.ascontiguousarray(Phi), seconds=1.0)
    off = np.abs(model.predict_proba(rows)[:, 1] - truth.p)
    trust = model.trust_for(rows)
    assert (off <= trust.error + 3.5 * truth.error).all()
    assert off.max() > 10 * truth.error.max() if inference == "laplace" else True
    assert trust.error.max() < 0.2
    np.testing.assert_array_equal(trust.error, trust.approximation)  # nothing is drawn, and the link is integrated


def test_verdicts_of_rows_and_of_the_fit_are_two_things():
    """Laplace is accurate on the training rows, not on rows far outside them."""
    X, y, _ = small_rows(n=300)
    model = BayesianLogisticRegression().fit(X, y)
    assert model.trust_.verdict == "trusted"
    assert (model.trust_for(X).verdict == "trusted").all()
    # Far out, in a direction along which the log-odds hardly change: the activation is near 0 and its variance large.
    w = model.model_.posterior.mean[1:]
    v = np.cross(w, [0.0, 0.0, 1.0])
    far = np.outer([1.0, 100.0], v / np.linalg.norm(v))
    trust = model.trust_for(far)
    assert trust.verdict[0] == "trusted"
    assert trust.verdict[1] in ("corrected", "needs-mcmc")
    assert not trust.within[1]
    assert "1 of 2 rows may be off by more than the tolerance of 0.01" in str(trust)


def test_the_words_of_a_row_follow_the_tolerance():
    X, y, new = small_rows()
    model = BayesianLogisticRegression(inference="ep", tolerance=0.2).fit(X, y)
    trust = model.trust_for(new)
    laplace, ep = (getattr(model.model_.approximation_errors(new), name) for name in ("laplace", "corrected"))
    assert (ep < laplace).all()
    np.testing.assert_array_equal(trust.approximation, ep)
    for tolerance in np.quantile([laplace, ep], [0.1, 0.5, 0.9]):
        words = model.set_params(tolerance=float(tolerance)).trust_for(new).verdict
        np.testing.assert_array_equal(words == "trusted", laplace <= tolerance)
        np.testing.assert_array_equal(words == "needs-mcmc", ep > tolerance)


def test_exact_posteriors_have_no_error():
    trust = BayesianLDA().fit(IRIS.X, IRIS.y).trust_for(100 * IRIS.X)
    assert (trust.verdict == "exact").all()
    assert not trust.error.any()
    assert trust.within.all()


def test_sampled_draws_have_a_monte_carlo_error_alone():
    X, y, new = small_rows()
    model = BayesianLogisticRegression(inference="mcmc", draws=400, chains=2).fit(X, y)
    trust = model.trust_for(new)
    assert (trust.verdict == "sampled").all()
    assert not trust.approximation.any()
    _, error = model.predict_proba(new, return_std_error=True)
    np.testing.assert_array_equal(trust.monte_carlo, error.max(axis=1))
    np.testing.assert_allclose(trust.error, 2 * trust.monte_carlo)


def test_weighted_draws_judge_where_there_is_no_certificate():
    """Softmax and LKJ are judged by importance weights: of a row by its distance to the weighted draws."""
    codes = np.array(IRIS.y)
    corrected = BayesianLogisticRegression(prior_scale=0.3, tolerance=0.02).fit(IRIS.X, codes)
    prior = LKJ.default(Moments.from_arrays(IRIS.X, codes, 3))
    laplace = BayesianQDA(prior=prior, inference="laplace", tolerance=0.2, draws=500).fit(IRIS.X, codes)
    for model in (corrected, laplace):
        trust = model.trust_for(IRIS.X[::10])
        assert np.isfinite(trust.error).all()
        assert trust.within.all()
    assert laplace.trust_.verdict == "trusted"
    assert (laplace.trust_for(IRIS.X[::10]).approximation > 0).all()


def test_unknown_is_not_within():
    """A Laplace approximation that nothing could judge."""
    X, y, new = small_rows()
    model = BayesianLogisticRegression(inference="laplace", tolerance=0.2).fit(X, y)
    model.partial_fit(X, y)  # of the last batch alone: no certificate, and weights of that step
    model.trust_ = type(model.trust_)("needs-mcmc", "Nothing is known.", "Sample.")
    trust = model.trust_for(new)
    assert np.isnan(trust.approximation).all()
    assert (trust.verdict == "needs-mcmc").all()
    assert not trust.within.any()
    assert str(trust).endswith("tolerance of 0.2.")


def test_it_survives_a_file_and_the_command_line_adds_it(tmp_path):
    X, y, new = small_rows()
    model = BayesianLogisticRegression().fit(X, y)
    model.save(tmp_path / "model.nc")
    trust, again = model.trust_for(new), load(tmp_path / "model.nc").trust_for(new)
    np.testing.assert_array_equal(trust.verdict, again.verdict)
    np.testing.assert_array_equal(trust.error, again.error)
    table = tmp_path / "new.csv"
    np.savetxt(table, new, delimiter=",", header="x1,x2,x3", comments="")
    run("predict", tmp_path / "model.nc", table, "--trust", "--interval", "0", "--out", tmp_path / "out.csv")
    out = pd.read_csv(tmp_path / "out.csv")
    assert out["verdict"].tolist() == trust.verdict.tolist()
    np.testing.assert_allclose(out["approximation_error"], trust.approximation)
    assert not out[["monte_carlo_error", "link_error"]].to_numpy().any()
    np.testing.assert_allclose(out["error"], trust.error)


def test_the_probit_link_can_be_used_and_its_error_is_stated():
    X, y, new = small_rows()
    exact = BayesianLogisticRegression(inference="ep", tolerance=0.2).fit(X, y)
    probit = BayesianLogisticRegression(inference="ep", link="probit", tolerance=0.2).fit(X, y)
    np.testing.assert_array_equal(probit.model_.posterior.mean, exact.model_.posterior.mean)
    posterior, Phi = exact.model_.posterior, exact.features_(new)
    mu = Phi @ posterior.mean
    s2 = np.einsum("ij,jk,ik->i", Phi, posterior.covariance, Phi)
    P = probit.predict_proba(new)
    np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-mu / np.sqrt(1 + np.pi * s2 / 8))))
    trust = probit.trust_for(new)
    np.testing.assert_allclose(trust.link, np.abs(P - exact.predict_proba(new)).max(axis=1), atol=1e-12)
    np.testing.assert_allclose(trust.error, exact.trust_for(new).error + trust.link)
    assert trust.link.max() > 0.003
    # The verdict on the fit allows for it, too.
    stated = [model.trust_.propagation for model in (exact, probit)]
    assert stated[1].better_error == pytest.approx(stated[0].better_error + stated[0].shift.link_largest)


def test_the_probit_link_of_softmax_and_of_draws():
    codes, few = np.array(IRIS.y), {"draws": 200, "chains": 2, "tolerance": 0.5}
    both = [BayesianLogisticRegression(inference="laplace", link=link, **few).fit(IRIS.X, codes) for link in LINKS]
    P, Q = (model.predict_proba(IRIS.X) for model in both)
    np.testing.assert_allclose(Q.sum(axis=1), 1)
    assert 0.001 < np.abs(P - Q).max() < 0.05
    np.testing.assert_allclose(both[1].trust_for(IRIS.X).link, np.abs(P - Q).max(axis=1), atol=1e-12)
    assert not both[0].trust_for(IRIS.X).link.any()


def test_a_link_that_there_is_not():
    X, y, _ = small_rows()
    with pytest.raises(DataError, match="`link` must be 'exact' or 'probit'; got 'cloglog'"):
        BayesianLogisticRegression(link="cloglog").fit(X, y)


def test_the_link_survives_a_file_and_is_an_option_of_the_command_line(tmp_path):
    fitted = tmp_path / "model.nc"
    run("fit", "example:pima", "--model", "logistic", "--link", "probit", "--out", fitted)
    model = load(fitted)
    assert model.link == model.model_.link == "probit"
    result = run("fit", "example:pima", "--model", "lda", "--link", "probit", "--out", fitted, code=2)
    assert "`--link` are for logistic and softmax" in result.stderr
