"""What a scikit-learn user asks for: coefficients, decision functions, named costs, frames of intervals, RFE."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix
from sklearn.feature_selection import RFE
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

from bayes_gda import BayesianLDA, BayesianLogisticRegression, load_example
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
