"""The model that the page computes with is the model; contributions add up where the log odds are linear."""

import numpy as np
import pytest
from reporting.report_pages import report
from scipy.special import logit

from bayes_gda.data.examples import load_example
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.families.registry import get_family
from bayes_gda.methods.ladder import fit
from bayes_gda.methods.settings import Settings
from bayes_gda.reporting.analysis.explore import as_polynomial, contributions
from bayes_gda.reporting.page.sections import explore_section


def card(model, example):
    data = load_example(example)
    train, test = data.split(0.3, 0)
    settings = Settings()
    family = get_family(model)
    return Scorecard.of_fit(fit(family.bind(family.prepare(train, "auto")), settings), train, test, settings)


@pytest.mark.parametrize(
    ("model", "example"),
    [("lda", "iris"), ("qda", "iris"), ("naive", "pima"), ("logistic", "pima"), ("softmax", "iris")],
)
def test_polynomials_are_the_probabilities_of_each_draw(model, example):
    fitted = card(model, example)
    found = as_polynomial(fitted.model, fitted.train)
    X = fitted.test.X[:7]
    size = max(len(found.coefficients), 200)
    variables = fitted.model.draw_variables(size, random_seed=0)
    total = len(next(iter(variables.values())))
    kept = np.linspace(0, total - 1, len(found.coefficients)).round().astype(int)
    P, weight = fitted.model.probability_draws({k: v[kept] for k, v in variables.items()}, X)
    own, own_weight = found.probabilities(X)
    np.testing.assert_allclose(own, P, atol=1e-7)
    if weight is not None:
        np.testing.assert_allclose(own_weight, weight / weight.sum(axis=0), atol=1e-7)


def test_contributions_of_a_linear_model_add_up():
    fitted = card("logistic", "pima")
    rows = np.arange(5)
    found = contributions(fitted, rows)
    mean = fitted.train.X.mean(axis=0)
    assert found.shape == (5, 7)
    # The log odds at the mean of the weights are linear; the integrated ones nearly so.
    P = np.exp(fitted.log_probabilities[rows])
    top = P.argmax(axis=1)
    base = np.exp(fitted.model.log_probabilities(mean[None]))[0]
    total = logit(P[rows, top]) - logit(base[top])
    np.testing.assert_allclose(found.sum(axis=1), total, rtol=0.08, atol=0.05)


def test_what_is_too_large_for_a_page_is_left_out(monkeypatch):
    fitted = card("qda", "breast-cancer")
    assert as_polynomial(fitted.model, fitted.train) is None
    monkeypatch.setattr("bayes_gda.reporting.analysis.explore.MOST_CONTRIBUTIONS", 10)
    assert contributions(fitted, np.arange(3)) is None


def test_decisions_are_counted_over_all_rows_also_where_the_table_lists_a_few(monkeypatch):
    """Default has 3000 held-out rows: the confusion matrix of the panel was that of the 400 most uncertain."""
    analysis = report("pima").analysis
    monkeypatch.setattr("bayes_gda.reporting.page.sections.MOST_ROWS", 20)
    found = explore_section(analysis)
    assert len(found["rows"]) == 20
    assert found["left_out"] == analysis.test.n - 20
    assert found["all"]["left_out"] == 0
    np.testing.assert_array_equal(found["all"]["y"], analysis.test.y)
    np.testing.assert_allclose(found["all"]["p"], np.exp(analysis.chosen.log_probabilities[:, 1]), rtol=1e-5)
    monkeypatch.setattr("bayes_gda.reporting.page.sections.MOST_FORECASTS", 60)
    thinned = explore_section(analysis)["all"]
    assert len(thinned["y"]) == len(thinned["p"]) == 30
    assert thinned["left_out"] == analysis.test.n - 30
