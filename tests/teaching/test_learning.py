"""Learning curves: Efron's table, exact errors of linear rules, and learners that are what they are called."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from bayes_gda import BayesianLDA, BayesianLogisticRegression
from bayes_gda.teaching import learning
from bayes_gda.teaching.truths import TRUTHS, gaussian, seed_of


def test_seeds_depend_on_all_names():
    assert seed_of("a", 1) != seed_of("a", 2)
    assert seed_of("123456789") == 0xCBF43926  # the published check value of CRC-32


def test_efficiency_is_efrons_table():
    # Efron (1975), table of the efficiency at π = ½.
    published = {0: 1.000, 0.5: 1.000, 1: 0.995, 1.5: 0.968, 2: 0.899, 2.5: 0.786, 3: 0.641, 3.5: 0.486, 4: 0.343}
    for delta, value in published.items():
        assert learning.efficiency(delta) == pytest.approx(value, abs=5.1e-4)


def test_excess_of_a_linear_rule_against_drawn_rows():
    truth, w = gaussian(2.0), np.array([0.4, 1.0, 0.5])
    X, y = truth.draw(400_000, np.random.default_rng(0))
    wrong = ((w[0] + X @ w[1:] > 0) != (y == 1)).astype(float) - ((X[:, 0] > 0) != (y == 1))
    exact = learning.linear_excess(w, 2.0)
    assert wrong.mean() == pytest.approx(exact, abs=4 * wrong.std() / np.sqrt(len(y)))
    assert learning.linear_excess(np.array([0.0, 1.0, 0.0]), 2.0) == pytest.approx(0, abs=1e-15)
    # And by the mean over quasi-random rows that serves where there is no formula.
    Z = truth.test_rows(0)
    gain = 2 * truth.probability(Z) - 1
    by_rows = np.abs(gain)[(w[0] + Z @ w[1:] > 0) != (gain > 0)].sum() / len(Z)
    assert by_rows == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("name", list(TRUTHS))
def test_log_odds_of_a_truth_are_those_of_its_rows(name):
    # Logistic regression of the labels on the stated log-odds must find intercept 0 and slope 1.
    truth = TRUTHS[name]
    X, y = truth.draw(20_000, np.random.default_rng(3))
    a = truth.log_odds(X)
    w = learning.logistic_weights(a[:, None], y)
    p = 1 / (1 + np.exp(-a))
    Phi = np.column_stack([np.ones_like(a), a])
    error = np.sqrt(np.diag(np.linalg.inv((Phi * (p * (1 - p))[:, None]).T @ Phi)))
    assert np.all(np.abs(w - [0, 1]) < 4 * error)


def test_learners_are_what_they_are_called():
    truth = gaussian(2.0)
    X, y = truth.draw(60, np.random.default_rng(4))
    Z = truth.test_rows(1)[:500]
    unpenalised = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(X, y)
    w = learning.logistic_weights(X, y)
    np.testing.assert_allclose(w, [unpenalised.intercept_[0], *unpenalised.coef_[0]], rtol=1e-4)
    ours = BayesianLogisticRegression(inference="laplace").fit(X, y)
    w = learning.bayesian_logistic_weights(X, y)
    np.testing.assert_array_equal(w[0] + Z @ w[1:] > 0, ours.predict(Z) == 1)
    lda = BayesianLDA().fit(X, y)
    np.testing.assert_array_equal(learning.bayesian_lda_decides(X, y, Z), lda.predict(Z) == 1)


def test_rows_needed_and_crossing_of_known_curves():
    rows = (10, 100, 1000)
    curve = np.array([2 / n for n in rows])
    assert learning.rows_to_reach(rows, curve, 1 / 100) == pytest.approx(200)
    assert np.isnan(learning.rows_to_reach(rows, curve, 1e-9))
    # 1/n against a constant: they meet at n = 50.
    curves = np.column_stack([np.full(3, 0.02), [1 / n for n in rows]])
    assert learning.crossing(rows, curves)["rows"] == pytest.approx(50)
    assert learning.crossing(rows, curves[:, ::-1])["rows"] is None
    assert learning.crossing(rows, curves + np.array([1, 0]))["always"]
