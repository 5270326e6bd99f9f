"""The experiments of the debate: exact losses of linear rules, Efron's limit, and claims that must come out."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import multivariate_normal, norm

from bayes_gda.baselines import PlugInLDA
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.gaps.predictive import log_joint_observed
from bayes_gda.reporting.plots.textbook.debate import plot_excess
from bayes_gda.teaching import debate
from bayes_gda.teaching.comparison import decide_with_gaps, regret, standard_error
from bayes_gda.teaching.learning import efficiency
from bayes_gda.teaching.truths import gaussian


def by_learner(table, **where):
    for column, value in where.items():
        table = table[table[column] == value]
    return table.set_index("learner")


@pytest.mark.parametrize("ratio", [1, 5, 20])
def test_regret_of_a_linear_rule_is_its_closed_form(ratio):
    """Two Gaussian classes at distance 2: every expected loss of a linear rule is two values of Φ."""
    truth, costs = gaussian(2.0), [[0, 1], [ratio, 0]]
    Z = truth.test_rows(0)
    eta = truth.probability(Z)

    def loss(w):
        length = np.hypot(w[1], w[2])
        return 0.5 * ratio * norm.cdf((w[0] - w[1]) / length) + 0.5 * norm.cdf(-(w[0] + w[1]) / length)

    w = np.array([0.3, 1.0, 0.4])
    bayes = np.array([-np.log(ratio), 2.0, 0.0])  # log odds 2x₁ against log ratio
    rule = (w[0] + Z @ w[1:] > 0).astype(int)
    assert regret(rule, eta, costs) == pytest.approx(loss(w) - loss(bayes), rel=0.02)
    assert regret((bayes[0] + Z @ bayes[1:] > 0).astype(int), eta, costs) == pytest.approx(0, abs=1e-12)


def test_statistical_efficiency_has_efrons_limit_and_says_where_thirty_percent_hold():
    result = debate.statistical_efficiency((3.0,), (80, 160, 320), replicates=30)
    assert set(result.table["theory"]) == {1 / efficiency(3.0)}
    assert "they hold at a distance of 2.81" in result.finding
    assert efficiency(2.81) == pytest.approx(0.7, abs=0.003)
    after = by_learner(result.table, rows=320)["excess"]
    assert after["LDA"] < after["logistic"]
    again = debate.statistical_efficiency((3.0,), (80, 160, 320), replicates=30)
    pd.testing.assert_frame_equal(result.table, again.table)


@pytest.mark.slow
def test_rows_needed_approach_efrons_limit():
    table = debate.statistical_efficiency((3.0,), (160, 320, 640, 1280), replicates=400).table
    ratios = by_learner(table, rows=320)["rows_needed"]
    assert ratios["logistic"] == pytest.approx(1 / efficiency(3.0), abs=0.25)


def test_lda_is_direct_and_both_searches_find_the_same_rule():
    table = debate.computational_efficiency(500, 4).table.set_index("learner")
    assert table.loc["LDA", "passes"] == 1
    assert 1 < table.loc["logistic, Newton", "passes"] < 15 < table.loc["logistic, gradient", "passes"]
    assert table.loc["logistic, Newton", "excess"] == pytest.approx(table.loc["logistic, gradient", "excess"], abs=1e-4)
    assert not table.loc["perceptron", "converged"]
    assert (table["excess"] >= 0).all()


def test_probabilities_serve_every_loss_and_a_perceptron_one():
    table = debate.changing_loss((1, 10), replicates=4).table
    even, uneven = by_learner(table, cost_ratio=1), by_learner(table, cost_ratio=10)
    assert even.loc["perceptron, trained once", "excess"] == even.loc["perceptron, trained again", "excess"]
    for model in ("LDA", "logistic"):
        assert uneven.loc[model, "excess"] < 0.05 < uneven.loc["perceptron, trained once", "excess"]
    assert uneven.loc["perceptron, trained again", "excess"] < uneven.loc["perceptron, trained once", "excess"]
    pd.testing.assert_frame_equal(table, debate.changing_loss((1, 10), replicates=4).table)
    assert not table.equals(debate.changing_loss((1, 10), replicates=4, random_seed=1).table)


def test_lda_fails_where_classes_are_not_gaussian():
    result = debate.model_assumptions(("gaussian-3", "outliers"), replicates=5)
    far = by_learner(result.table, truth="outliers")
    assert far.loc["LDA", "excess"] > far.loc["logistic", "excess"] + 4 * far.loc["LDA", "se"]
    near = by_learner(result.table, truth="gaussian-3")["excess"]
    assert near["LDA"] < 0.01
    assert "under 1 of 1 truths" in result.finding


def test_missing_values_are_best_left_out_of_the_likelihood():
    table = debate.missing_values((0.0, 0.5), replicates=5).table
    none = by_learner(table, share=0.0, new_rows="complete")
    assert none.loc["logistic, complete rows", "excess"] == none.loc["logistic, means filled in", "excess"]
    half = by_learner(table, share=0.5, new_rows="with gaps")
    for other in ("logistic, complete rows", "logistic, means filled in"):
        assert half.loc["LDA, observed values", "excess"] < half.loc[other, "excess"]


def test_bayes_rule_for_rows_with_gaps_is_that_of_the_marginals():
    truth = debate.CORRELATED
    row = np.array([[0.4, np.nan, -0.2, np.nan]])
    stacked = {"pi": truth.pi[None], "mu": truth.mu[None], "Sigma": truth.Sigma[None]}
    seen = [0, 2]
    expected = [
        np.log(0.5) + multivariate_normal(m[seen], truth.Sigma[np.ix_(seen, seen)]).logpdf(row[0, seen])
        for m in truth.mu
    ]
    np.testing.assert_allclose(log_joint_observed(stacked, row)[0], expected)


def test_too_few_complete_rows_leave_the_larger_class():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    X[np.arange(60), np.arange(60) % 4] = np.nan  # every row lacks a value
    y = np.r_[np.zeros(25, dtype=np.intp), np.ones(35, dtype=np.intp)]
    found = decide_with_gaps(X, y, X)
    assert set(found["logistic, complete rows"]) == {1}
    np.testing.assert_array_equal(found["LDA, observed values"], PlugInLDA().fit(X, y).predict(X))


def test_corrupted_values_hurt_and_other_learners_can_be_tried():
    table = debate.noise((0.0, 0.1), replicates=4, learners={"plug-in": lambda X, y: PlugInLDA().fit(X, y)}).table
    clean, dirty = (by_learner(table, share=share)["excess"] for share in (0.0, 0.1))
    assert dirty["LDA"] > 3 * clean["LDA"]
    assert dirty["Student-t"] < 0.5 * min(dirty["LDA"], dirty["logistic"])
    assert clean["Student-t"] < clean["LDA"] + 0.005
    assert clean["plug-in"] == pytest.approx(clean["LDA"], abs=0.003)


def test_standard_errors():
    assert standard_error([1.0, 2.0, 3.0, 4.0]) == pytest.approx(np.sqrt(5 / 3) / 2)
    assert np.isnan(standard_error([1.0]))


def test_figures_show_the_table():
    table = pd.DataFrame(
        {"share": [0.0, 0.5] * 2, "learner": ["a"] * 2 + ["b"] * 2, "excess": [1, 2, 3, 4.0], "se": 0.1}
    )
    plot = plot_excess(table, "share", label="share")
    curve = plot.figure.axes[0].get_lines()[0]
    np.testing.assert_array_equal(curve.get_xydata(), [[0, 1], [0.5, 2]])
    with pytest.raises(DataError, match="lacks the columns rows"):
        plot_excess(table, "rows", label="rows")
    many = pd.concat([table.assign(learner=str(i)) for i in range(7)])
    with pytest.raises(DataError, match="at most 6 learners"):
        plot_excess(many, "share", label="share")
