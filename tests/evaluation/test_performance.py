"""Confusion, recall, precision and curves, held to scikit-learn, SciPy and simulation."""

import numpy as np
import pytest
from scipy.stats import beta, norm
from sklearn import metrics

from bayes_gda.errors import DataError
from bayes_gda.evaluation.performance import auc_interval, confusion_matrix, curves, performance, share_interval


def forecasts(n, K, seed, digits=None):
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    logits = rng.normal(size=(n, K)) + 1.5 * np.eye(K)[y]
    P = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    if digits is not None:  # ties
        P = np.maximum(P.round(digits), 10.0**-digits)
        P /= P.sum(axis=1, keepdims=True)
    return P, y


@pytest.mark.parametrize("digits", [None, 1])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_agrees_with_scikit_learn(K, digits):
    P, y = forecasts(200, K, K, digits)
    found = performance(P, y)
    top = P.argmax(axis=1)
    np.testing.assert_array_equal(found.confusion, metrics.confusion_matrix(y, top))
    precision, recall, f1, rows = metrics.precision_recall_fscore_support(y, top)
    for name, values in {"precision": precision, "recall": recall, "f1": f1, "rows": rows}.items():
        np.testing.assert_allclose(found.table[name], values)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(y, top))
    assert found.balanced_accuracy == pytest.approx(metrics.balanced_accuracy_score(y, top))
    for k in range(K):
        z, p = y == k, P[:, k]
        assert found.table["auc"].iloc[k] == pytest.approx(metrics.roc_auc_score(z, p))
        assert found.table["average_precision"].iloc[k] == pytest.approx(metrics.average_precision_score(z, p))
        fall_out, recall, threshold = metrics.roc_curve(z, p, drop_intermediate=False)
        own = found.curves[str(k)]
        np.testing.assert_allclose(own.fall_out, fall_out)
        np.testing.assert_allclose(own.recall, recall)
        np.testing.assert_allclose(own.threshold, threshold)


def test_every_point_of_the_curves_is_what_its_threshold_gives():
    P, y = forecasts(80, 2, 1, digits=1)
    p, z = P[:, 1], y == 1
    found = curves(p, z)
    for t, recall, fall_out, precision in zip(
        found.threshold[1:], found.recall[1:], found.fall_out[1:], found.precision[1:], strict=True
    ):
        taken = p >= t
        assert recall == pytest.approx((taken & z).sum() / z.sum())
        assert fall_out == pytest.approx((taken & ~z).sum() / (~z).sum())
        assert precision == pytest.approx((taken & z).sum() / taken.sum())
    assert (found.threshold[0], found.recall[0], found.fall_out[0]) == (np.inf, 0, 0)
    assert found.precision[0] == found.precision[1] != found.precision[2]


def test_the_interval_of_the_average_precision_is_that_of_a_share_of_the_events():
    P, y = forecasts(80, 2, 1, digits=1)
    found = curves(P[:, 1], y, prob=0.8)
    events = (y == 1).sum()
    np.testing.assert_allclose(
        found.average_precision_interval, share_interval(found.average_precision * events, events, prob=0.8)
    )


def test_the_area_is_the_probability_of_the_right_order():
    P, y = forecasts(60, 2, 2, digits=1)
    events, others = P[y == 1, 1][:, None], P[y == 0, 1][None]
    assert curves(P[:, 1], y).auc == pytest.approx(((events > others) + 0.5 * (events == others)).mean())


def test_the_interval_of_a_share_is_that_of_jeffreys():
    low, high = share_interval(7, 20, prob=0.8)
    np.testing.assert_allclose([low, high], beta.ppf([0.1, 0.9], 7.5, 13.5))
    np.testing.assert_allclose(share_interval([0, 20], 20)[:, 0], [0, beta.ppf(0.05, 20.5, 0.5)])
    np.testing.assert_allclose(share_interval([0, 20], 20)[:, 1], [beta.ppf(0.95, 0.5, 20.5), 1])
    np.testing.assert_allclose(share_interval(0, 0), [0, 1])


def test_the_ends_of_the_interval_of_an_area_solve_its_equation():
    auc, m, n = 0.8, 12, 30
    N, z = (m + n) / 2, norm.ppf(0.95)
    for theta in auc_interval(auc, m, n):
        V = theta * (1 - theta) * (1 + (N - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))) / (m * n)
        assert (auc - theta) ** 2 == pytest.approx(z**2 * V, rel=1e-8)
    low, high = auc_interval(1.0, 5, 5)
    assert high == 1
    assert low < 0.85  # ten rows in perfect order do not make certain


@pytest.mark.parametrize(("events", "others", "shift"), [(10, 90, 1.0), (20, 20, 2.9), (5, 200, 1.0)])
def test_intervals_cover(events, others, shift):
    rng = np.random.default_rng(3)
    truth, z, covered = norm.cdf(shift / np.sqrt(2)), np.repeat([1, 0], [events, others]), []
    for _ in range(300):
        scores = np.concatenate([rng.normal(shift, 1, events), rng.normal(0, 1, others)])
        low, high = curves(scores, z).auc_interval
        covered.append(low <= truth <= high)
    assert np.mean(covered) > 0.9 - 3 * np.sqrt(0.09 / 300)


def test_a_class_without_rows_has_no_figures_and_no_curve():
    P, y = forecasts(50, 3, 4)
    y = np.where(y == 2, 0, y)
    found = performance(P, y, class_names=["a", "b", "c"])
    assert set(found.curves) == {"a", "b"}
    assert np.isnan(found.table.loc["c", ["recall", "recall_lower", "auc", "average_precision"]].to_numpy(float)).all()
    assert found.balanced_accuracy == pytest.approx(found.table["recall"][:2].mean())
    assert curves([0.2, 0.4], [1, 1]) is None


def test_bad_input_is_named():
    with pytest.raises(DataError, match="`y` and `decided` must be"):
        confusion_matrix([0, 1], [0], 2)
    with pytest.raises(DataError, match="class codes in 0…1"):
        confusion_matrix([0, 2], [0, 1], 2)
    for y, decided in (([-1, 1], [0, 1]), ([0, 1], [-1, 1]), ([0, 1], [0, 2])):
        with pytest.raises(DataError, match="class codes in 0…1"):
            confusion_matrix(y, decided, 2)
    with pytest.raises(DataError, match="between 0 and `trials`"):
        share_interval(3, 2)
    with pytest.raises(DataError, match="between 0 and `trials`"):
        share_interval([-1, 1], 2)
    with pytest.raises(DataError, match="of the same n"):
        curves([0.1, 0.2], [1])
