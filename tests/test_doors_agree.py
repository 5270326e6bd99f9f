"""The doors agree: `compare`, `report --quick` and the estimator say the same of the same model, split and seed."""

import warnings

import numpy as np
import pytest

from bayes_gda.cli.actions.fits import FitOptions
from bayes_gda.cli.actions.scores import compare
from bayes_gda.cli.inputs import labels_of
from bayes_gda.data.examples import example_names, load_example
from bayes_gda.data.table import Dataset
from bayes_gda.errors import InferenceWarning
from bayes_gda.estimators import estimator_of
from bayes_gda.evaluation.scorecard import compare_models
from bayes_gda.families.registry import default_families
from bayes_gda.reporting.analysis.analysis import analyse
from bayes_gda.reporting.analysis.settings import ReportSettings

QUICK = {"cushings", "iris", "pima", "synth"}
EXAMPLES = [
    pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
    for name in example_names()
    if not load_example(name).has_missing
]


def small(name):
    """The example; of many rows a part, the same for every door."""
    data = load_example(name)
    step = max(1, data.n // 600)
    return data.subset(np.arange(0, data.n, step)) if step > 1 else data


@pytest.mark.parametrize("example", EXAMPLES)
def test_compare_report_and_estimator_give_the_same_numbers(example):
    data = small(example)
    names = [family.name for family in default_families(data.K) if not family.averages]
    report = analyse(data, ReportSettings(quick=True, models=tuple(names)))
    # What needs MCMC is left open by a quick report, and sampled by the others: there is nothing to compare but that.
    decided = [name for name in names if report.models[name].fitted.weighing.verdict != "needs-mcmc"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        compared = compare(data, decided, 0.3, FitOptions(), lambda stage, share: None)
    train, test = compared.train, compared.test
    labels, fresh = labels_of(train), labels_of(test)
    for name in decided:
        card, own = compared.cards[name], report.models[name]
        family = card.fitted.family
        estimator = estimator_of(type(family)).fit(train.X, labels)
        assert card.verdict.verdict == own.verdict.verdict == estimator.trust_.verdict
        assert card.method == own.method == estimator.inference_
        table = compare_models({name: estimator}, train.X, labels, X_test=test.X, y_test=fresh)
        np.testing.assert_allclose(card.log_probabilities, own.log_probabilities, rtol=1e-9, atol=1e-12)
        order = [list(estimator.classes_).index(label) for label in test.class_names]
        by_estimator = estimator.predict_proba(test.X)[:, order]
        np.testing.assert_allclose(np.exp(card.log_probabilities), by_estimator, rtol=1e-6, atol=1e-9)
        for ground in ("loo", "held_out"):
            lines = [getattr(tables, ground).loc[name] for tables in (compared.scores, report.comparison, table)]
            for column in ("elpd", "accuracy"):
                values = [line[column] for line in lines]
                assert values == pytest.approx([values[0]] * 3, rel=1e-6, abs=1e-8)
            if ground == "loo":
                assert len({line["bad_k"] for line in lines}) == 1


def test_a_declared_order_of_the_classes_changes_no_number():
    data = small("synth")
    turned = Dataset(data.X, 1 - data.y, data.feature_names, (1, 0))
    settings = {"quick": True, "models": ("logistic",), "draws": 250}
    costs = np.array([[0.0, 5.0], [1.0, 0.0]])
    plain = analyse(data, ReportSettings(costs=costs, **settings), test=data)
    other = analyse(turned, ReportSettings(costs=costs[::-1, ::-1], **settings), test=turned)
    assert other.data.class_names == plain.data.class_names == (0, 1)
    np.testing.assert_array_equal(other.costs, plain.costs)
    for name, card in plain.models.items():
        np.testing.assert_array_equal(other.models[name].log_probabilities, card.log_probabilities)
        np.testing.assert_array_equal(other.decisions[name].action, plain.decisions[name].action)
