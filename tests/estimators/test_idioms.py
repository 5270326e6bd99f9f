"""What a scikit-learn user asks for: coefficients, decision functions, named costs, frames of intervals, RFE."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.feature_selection import RFE
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from bayes_gda import NIW, BayesianLDA, BayesianLogisticRegression, load_example
from bayes_gda.errors import DataError

PIMA, IRIS = load_example("pima"), load_example("iris")
LABELS = np.array(PIMA.class_names)[PIMA.y]
QUICK = {"inference": "laplace", "draws": 100}


def test_coefficients_are_in_the_units_of_the_features():
    """In the flat limit they are the maximum-likelihood estimates, which scikit-learn has without a penalty."""
    model = BayesianLogisticRegression(prior_scale=np.inf, intercept_scale=np.inf, **QUICK).fit(PIMA.X, LABELS)
    other = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(PIMA.X, LABELS)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-3)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=1e-3)


@pytest.mark.parametrize("data", [PIMA, IRIS], ids=["logistic", "softmax"])
def test_coefficients_give_the_activations_at_the_mean_weights(data):
    model = BayesianLogisticRegression(**QUICK).fit(data.X, data.y)
    a = data.X @ model.coef_.T + model.intercept_
    Phi, w = model.features_(data.X), model.model_.variables_of(model.model_.posterior.mode[None])["w"][0]
    np.testing.assert_allclose(a, Phi @ np.atleast_2d(w).T, atol=1e-8)


def test_products_of_features_have_no_coefficients_per_unit():
    model = BayesianLogisticRegression(features=2, **QUICK).fit(PIMA.X[:, :2], PIMA.y)
    assert not hasattr(model, "coef_")
    assert "odds_ratio" not in model.summary()


@pytest.mark.parametrize("estimator", [BayesianLDA(), BayesianLogisticRegression(**QUICK)])
def test_the_decision_function_is_the_log_odds(estimator):
    model = estimator.fit(PIMA.X, LABELS)
    p = model.predict_proba(PIMA.X)
    np.testing.assert_allclose(model.decision_function(PIMA.X), np.log(p[:, 1] / p[:, 0]), rtol=1e-8, atol=1e-10)
    three = type(estimator)(**estimator.get_params()).fit(IRIS.X, IRIS.y)
    assert three.decision_function(IRIS.X).shape == (150, 3)


def test_recursive_feature_elimination():
    chosen = RFE(BayesianLogisticRegression(**QUICK), n_features_to_select=3).fit(PIMA.X / PIMA.X.std(axis=0), LABELS)
    assert "glu" in np.array(PIMA.feature_names)[chosen.support_]


def test_permutation_importance_and_grids():
    model = BayesianLDA().fit(PIMA.X, LABELS)
    found = permutation_importance(model, PIMA.X, LABELS, n_repeats=3, random_state=0).importances_mean
    assert PIMA.feature_names[int(found.argmax())] == "glu"
    grid = GridSearchCV(BayesianLogisticRegression(**QUICK), {"prior_scale": [0.1, 2.5]}, cv=2)
    assert grid.fit(PIMA.X, LABELS).best_params_["prior_scale"] in (0.1, 2.5)


def test_intervals_as_a_frame():
    model = BayesianLDA(draws=100).fit(PIMA.X, LABELS)
    ends, table = model.predict_interval(PIMA.X[:3]), model.predict_interval(PIMA.X[:3], as_frame=True)
    assert list(table.columns) == ["low[No]", "high[No]", "low[Yes]", "high[Yes]"]
    np.testing.assert_array_equal(table.to_numpy(), ends.reshape(3, 4))


def test_costs_by_name():
    model = BayesianLDA(draws=100).fit(PIMA.X, LABELS)
    matrix = model.decide(PIMA.X, [[0, 10], [1, 0]], action_names=["wait", "treat"])
    by_name = {"wait": {"Yes": 10, "No": 0}, "treat": {"Yes": 0, "No": 1}}
    for costs in (by_name, pd.DataFrame(by_name).T):
        made = model.decide(PIMA.X, costs)
        assert made.names == matrix.names
        np.testing.assert_array_equal(made.action, matrix.action)
    with pytest.raises(DataError, match="`costs` of 'wait' must name the classes"):
        model.decide(PIMA.X, {"wait": {"Yes": 1}})


@pytest.mark.parametrize("estimator", [BayesianLDA(), BayesianLogisticRegression(**QUICK)])
def test_sparse_rows_are_refused_with_the_remedy(estimator):
    with pytest.raises(TypeError, match=r"Sparse data was passed.*toarray"):
        estimator.fit(csr_matrix(PIMA.X), LABELS)


# ── The discriminant space of LDA ───────────────────────────────────────────────────────────────────────────────────


def test_the_projection_is_that_of_scikit_learn_in_the_flat_limit():
    """Up to the sign and scale of each axis; class shares enter by their posterior mean, (n_k + 1)/(n + K)."""
    prior = NIW.jeffreys(IRIS.d)
    ours = BayesianLDA(prior=prior).fit(IRIS.X, IRIS.y)
    other = LinearDiscriminantAnalysis(priors=(np.bincount(IRIS.y) + 1) / (IRIS.n + 3)).fit(IRIS.X, IRIS.y)
    Z, theirs = ours.transform(IRIS.X), other.transform(IRIS.X)
    assert Z.shape == (150, 2)
    for j in range(2):
        assert abs(np.corrcoef(Z[:, j], theirs[:, j])[0, 1]) == pytest.approx(1, abs=1e-9)
    within = Z - np.array([Z[IRIS.y == k].mean(axis=0) for k in range(3)])[IRIS.y]
    np.testing.assert_allclose(within.T @ within / (within.T @ within)[0, 0], np.eye(2), atol=1e-9)
    assert list(ours.get_feature_names_out()) == ["bayesianlda0", "bayesianlda1"]
    table = clone(ours).set_output(transform="pandas").fit(IRIS.X, IRIS.y).transform(IRIS.X)
    assert list(table.columns) == ["bayesianlda0", "bayesianlda1"]
    assert make_pipeline(clone(ours), LogisticRegression()).fit(IRIS.X, IRIS.y).score(IRIS.X, IRIS.y) > 0.96
    gaps = np.where(IRIS.X[0, 0] == IRIS.X, np.nan, IRIS.X)
    whole = ~np.isnan(gaps).any(axis=1)
    assert 0 < whole.sum() < 150
    np.testing.assert_allclose(ours.transform(gaps)[whole], Z[whole], rtol=1e-12)
    assert np.isnan(ours.transform(gaps)[~whole]).all()


@pytest.mark.parametrize("data", [PIMA, IRIS], ids=["two", "three"])
def test_coefficients_of_lda_are_those_of_scikit_learn_and_of_the_draws(data):
    """Flat prior: scikit-learn's, but for a factor that goes to 1 with n; and the mean over draws of the posterior."""
    model = BayesianLDA(prior=NIW.jeffreys(data.d), draws=4000).fit(data.X, data.y)
    other = LinearDiscriminantAnalysis(solver="lsqr").fit(data.X, data.y)
    ours, theirs = model.coef_, other.coef_
    if data.K == 3:  # what all classes have in common is a convention
        theirs = theirs - np.bincount(data.y) / data.n @ theirs
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=0.05, atol=0.02 * np.abs(theirs).max())
    drawn = BayesianLDA(prior=NIW.jeffreys(data.d), inference="exact", draws=4000).fit(data.X, data.y)
    variables = drawn.model_.draw_variables(4000, random_seed=1)
    sampled = replace(drawn.model_, posterior=None, draws=variables)
    drawn.model_ = sampled
    np.testing.assert_allclose(drawn.coef_, ours, atol=0.02 * np.abs(ours).max())
    np.testing.assert_allclose(drawn.intercept_, model.intercept_, atol=0.02 * np.abs(model.intercept_).max())
    P = model.predict_proba(data.X)
    a = data.X @ ours.T + model.intercept_
    plugged = expit(a) if data.K == 2 else softmax(a, axis=1)[:, 1:]
    assert np.abs(plugged - P[:, 1:]).max() < 0.03


def test_feature_elimination_by_lda():
    chosen = RFE(BayesianLDA(), n_features_to_select=3).fit(PIMA.X / PIMA.X.std(axis=0), LABELS)
    assert "glu" in np.array(PIMA.feature_names)[chosen.support_]
