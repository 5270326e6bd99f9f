"""Intervals, entropies and decisions against loops over draws."""

import numpy as np
import pytest
from fitted import IRIS, MAKERS, generative, regression
from scipy.stats import entropy as shannon

import bayes_gda
from bayes_gda import Moments, linalg
from bayes_gda.errors import DataError
from bayes_gda.families.registry import HOMES, get_family
from bayes_gda.prediction.decisions import decide, decide_with_draws
from bayes_gda.prediction.uncertainty import decisions, entropy, interval, order_statistics

X = IRIS.X[::5]
MODELS = [*(generative(c) for c in MAKERS), *(regression(K, size=s) for K in (2, 3) for s in (None, 200))]
IDS = [*MAKERS, "binary", "binary draws", "softmax", "softmax draws"]
every_model = pytest.mark.parametrize("model", MODELS, ids=IDS)


@every_model
def test_intervals_are_quantiles_of_the_probability_over_draws(model):
    found = interval(model, X, prob=0.8, size=2000, random_seed=3)
    P, _ = model.probability_draws(model.draw_variables(2000, random_seed=3), X)
    expected = np.moveaxis(np.quantile(P, [0.1, 0.9], axis=0), 0, -1)
    # The binary Gaussian has a closed form: its quantiles and the draws' differ by Monte Carlo error.
    closed = model is MODELS[3]
    np.testing.assert_allclose(found, expected, atol=0.06 if closed else 1e-12)
    assert (found[..., 0] <= found[..., 1]).all()
    wider = interval(model, X, prob=0.95, size=2000, random_seed=3)
    assert (wider[..., 0] <= found[..., 0]).all()
    assert (wider[..., 1] >= found[..., 1]).all()


@pytest.mark.parametrize("covariance", MAKERS)
def test_intervals_of_two_gaussian_classes_are_quantiles_too_and_keep_small_probabilities(covariance):
    two = IRIS.subset(IRIS.y < 2)
    model = generative(covariance, moments=Moments.from_arrays(two.X, two.y, 2))
    rows = np.vstack([X, IRIS.X[IRIS.y == 0].mean(axis=0)])
    P, _ = model.probability_draws(model.draw_variables(300, random_seed=3), rows)
    expected = np.moveaxis(np.quantile(P, [0.1, 0.9], axis=0), 0, -1)
    np.testing.assert_allclose(
        interval(model, rows, prob=0.8, size=300, random_seed=3), expected, rtol=1e-7, atol=1e-300
    )


def test_the_closed_form_of_the_binary_interval_is_the_limit_of_draws():
    model = MODELS[3]
    P, _ = model.probability_draws(model.draw_variables(200_000, random_seed=0), X[:5])
    expected = np.moveaxis(np.quantile(P, [0.05, 0.95], axis=0), 0, -1)
    np.testing.assert_allclose(interval(model, X[:5], prob=0.9, size=1), expected, atol=0.005)


@pytest.mark.parametrize("prob", [0.0, 1.0, 1.5])
def test_an_interval_needs_a_probability(prob):
    with pytest.raises(DataError, match="`prob` must lie between 0 and 1"):
        interval(MODELS[0], X, prob=prob, size=10)


@every_model
def test_entropy_splits_that_of_the_reported_probability(model):
    split = entropy(model, X, size=4000, random_seed=0)
    # Closed forms, or the same draws.
    np.testing.assert_allclose(split.total, shannon(np.exp(model.log_probabilities(X)), axis=1), atol=1e-7)
    assert (split.epistemic >= 0).all()
    np.testing.assert_allclose(split.aleatoric + split.epistemic, split.total, atol=1e-12)
    P, weight = model.probability_draws(model.draw_variables(4000, random_seed=5), X)
    H = shannon(P, axis=2)
    mean = H.mean(axis=0) if weight is None else (weight * H).sum(axis=0)
    np.testing.assert_allclose(split.aleatoric, mean, atol=0.03)


@every_model
@pytest.mark.parametrize("class_prior", [None, True])
def test_decisions_are_those_of_all_draws_at_once(model, class_prior, monkeypatch):
    rng = np.random.default_rng(0)
    n, K = len(X), model.K
    share = None if class_prior is None else np.arange(1, K + 1) / np.arange(1, K + 1).sum()
    costs, reject = rng.random((n, 4, K)), 0.3 + 0.2 * rng.random(n)
    monkeypatch.setattr(linalg, "WIDE_ELEMENTS", 2000)
    found = decisions(model, X, costs, size=100, random_seed=1, class_prior=share, reject_cost=reject)
    P = np.exp(model.log_probabilities(X, share))
    np.testing.assert_array_equal(found.action, decide(P, costs, reject_cost=reject).action)
    draws, weight = model.probability_draws(model.draw_variables(100, random_seed=1), X, share)
    whole = decide_with_draws(P, draws, costs, weights=weight, reject_cost=reject)
    np.testing.assert_allclose(found.probability_optimal, whole.probability_optimal, atol=1e-12)
    np.testing.assert_allclose(found.value_of_information, whole.value_of_information, atol=1e-12)
    np.testing.assert_allclose(found.probability_optimal.sum(axis=1), 1)


@pytest.mark.parametrize("share", [[0.05, 0.15, 0.8], [0.3, 0.7, 0.0]])
@every_model
def test_draws_under_other_class_shares_average_to_the_reweighed_prediction(model, share):
    """The weights of the draws are what makes the two the same; equal ones are off by more than Monte Carlo error."""
    share = np.array(share if model.K == 3 else share[:2]) / sum(share[: model.K])
    expected = np.exp(model.log_probabilities(X, share))
    at_hand = getattr(model, "draws", None) is not None
    P, weight = model.probability_draws(model.draw_variables(200 if at_hand else 40_000, random_seed=3), X, share)
    np.testing.assert_allclose(weight.sum(axis=0), 1)
    # Exact over draws that are all the model has; 40 000 draws of a closed form leave Monte Carlo error, the more where
    # the class that rows are almost sure to have is ruled out, and few draws carry the weight.
    error = 1e-12 if at_hand else 0.012 if share.min() > 0 else 0.04
    np.testing.assert_allclose((weight[..., None] * P).sum(axis=0), expected, atol=error)
    if at_hand and share.min() > 0:
        assert np.abs(P.mean(axis=0) - expected).max() > 0.03


@pytest.mark.parametrize("name", HOMES)
def test_every_family_decides_by_the_probabilities_that_it_reports(name):
    family = get_family(name)
    rows = slice(50, 150) if name == "logistic" else slice(None)
    data, y = IRIS.X[rows][:, :2], IRIS.y[rows]
    estimator = getattr(bayes_gda, family.estimator)
    model = estimator(**({"inference": "laplace"} if family.kind == "discriminative" else {})).fit(data[::2], y[::2])
    K = len(model.classes_)
    share, costs = np.arange(1, K + 1) / (K * (K + 1) / 2), np.random.default_rng(0).random((K + 1, K))
    P = model.predict_proba(data, share)
    np.testing.assert_array_equal(model.decide(data, costs, class_prior=share).action, (P @ costs.T).argmin(axis=1))
    draws, weight = model.model_.probability_draws(model.model_.draw_variables(20_000, random_seed=0), data, share)
    np.testing.assert_allclose((weight[..., None] * draws).sum(axis=0), P, atol=0.02)
    # What the draws expect to lose by the best single action is what the probabilities expect.
    loss = np.einsum("sn,snk,ak->na", weight, draws, costs)
    np.testing.assert_allclose(loss, P @ costs.T, atol=0.02)


def test_one_cost_of_rejecting_serves_all_rows():
    found = decisions(MODELS[0], X, 1 - np.eye(3), size=50, reject_cost=0.01, action_names=IRIS.class_names)
    assert found.rejected.any()
    assert set(found.chosen) <= {*IRIS.class_names, "reject"}


def test_order_statistics_are_those_of_the_sorted_values():
    """Also where values round to the same 32 bits, overflow in these, or are not there."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 400)) * 40
    values[1] = 1 + 1e-12 * rng.normal(size=400)
    values[2, :30], values[3, 5], values[4] = 1e300, np.nan, 7.0
    values[5, :200] = -np.inf
    places = np.array([0, 19, 20, 379, 380, 399])
    np.testing.assert_array_equal(order_statistics(values, places), np.sort(values, axis=1)[:, places])
