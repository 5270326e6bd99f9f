"""Scores, decompositions and calibration errors against scikit-learn, closed forms and simulated forecasters."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, logit
from scipy.stats import kstest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from bayes_gda.errors import DataError
from bayes_gda.evaluation import calibration
from bayes_gda.evaluation.calibration import (
    binned_decomposition,
    brier_rows,
    brier_score,
    calibration_error,
    calibration_table,
    classwise_error,
    corp_decomposition,
    interval_coverage,
    log_score,
    log_score_rows,
    paired_difference,
    sharpness,
)
from bayes_gda.evaluation.cox import CoxFit, fit_cox
from bayes_gda.evaluation.reliability import one_class, recalibrate, tally, top_label


def draw_classes(P, rng):
    return (rng.random((len(P), 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)


def forecasts(n, K, seed):
    """Forecasts (n, K) and classes (n,) drawn from them."""
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    return P, draw_classes(P, rng)


def sharpened(n, seed):
    """Forecasts σ(2 logit c) of an event with probability c ~ U(0, 1): too sure on either side."""
    rng = np.random.default_rng(seed)
    c = rng.random(n)
    return expit(2 * logit(c)), (rng.random(n) < c).astype(float)


# Few different values make ties, and 0 and 1 the edges.
PROBABILITIES = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
EVENTS = st.lists(st.tuples(PROBABILITIES, st.booleans()), min_size=1, max_size=60).map(
    lambda rows: (np.array([p for p, _ in rows]), np.array([float(z) for _, z in rows]))
)


# ── Scores ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("K", [2, 3, 7])
def test_log_score_is_minus_scikit_learns_loss(K):
    P, y = forecasts(200, K, 1)
    assert log_score(P, y) == pytest.approx(-log_loss(y, P, labels=range(K)), abs=1e-13)
    assert log_score(P, y) == log_score_rows(P, y).mean()


def test_brier_score_is_scikit_learns_and_twice_its_binary_one():
    P, y = forecasts(200, 4, 2)
    assert brier_score(P, y) == pytest.approx(brier_score_loss(y, P, labels=range(4)), abs=1e-14)
    assert brier_score(P, y) == pytest.approx(sum(corp_decomposition(*one_class(P, y, k)).score for k in range(4)))
    P, y = forecasts(200, 2, 2)
    assert brier_score(P, y) == pytest.approx(2 * brier_score_loss(y, P[:, 1]), abs=1e-14)
    assert brier_rows(np.array([[0.0, 1.0], [0.5, 0.5]]), [0, 1]) == pytest.approx([2, 0.5])


def test_an_impossible_truth_is_minus_infinity_and_counted():
    P, y = np.array([[0.0, 1.0, 0.0], [0.2, 0.3, 0.5]]), np.array([0, 2])
    assert log_score(P, y) == -np.inf
    assert np.isneginf(log_score_rows(P, y)).tolist() == [True, False]
    table = calibration_table(P, y)
    assert table["impossible"].to_list() == [1, 1, 0, 1, 1]
    assert table["log_score"].to_list()[:2] == [-np.inf, -np.inf]
    # Cox's fit has estimates where the outcomes determine them, and belongs to one event.
    rest = table.drop(columns=["log_score", "ece_p_value", *CoxFit.COLUMNS])
    assert np.isfinite(rest).to_numpy().all()


def test_paired_difference_and_its_error():
    rng = np.random.default_rng(3)
    shared = 5 * rng.normal(size=400)
    a, b = shared + rng.normal(size=400), shared + 0.3
    mean, error = paired_difference(a, b)
    assert mean == pytest.approx((a - b).mean())
    assert error == pytest.approx(np.std(a - b, ddof=1) / 20)
    assert paired_difference([-np.inf, 0.0], [0.0, 0.0]) == (-np.inf, np.inf)
    assert paired_difference([0.0, 0.0], [-np.inf, 0.0]) == (np.inf, np.inf)
    assert np.isnan(paired_difference([0.0, np.inf, -np.inf], [0.0, 0.0, 0.0])).all()
    assert np.isnan(paired_difference([-np.inf, 0.0], [-np.inf, 0.0])).all()


def test_a_calibrated_forecaster_gets_what_it_promises():
    P, y = forecasts(20_000, 4, 4)
    promise = sharpness(P)
    for rows, expected in [
        (-log_score_rows(P, y), promise.entropy),
        (brier_rows(P, y), promise.impurity),
        (top_label(P, y)[1], promise.confidence),
    ]:
        mean, error = paired_difference(rows, np.full(len(y), expected))
        assert abs(mean) < 4 * error
    even = sharpness(np.full((3, 4), 0.25))
    assert (even.entropy, even.impurity, even.confidence) == pytest.approx((np.log(4), 0.75, 0.25))
    assert sharpness(np.eye(3)).entropy == 0


# ── Decompositions ──────────────────────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=100, deadline=None)
@given(EVENTS, st.integers(1, 20))
def test_decompositions_are_identities(events, bins):
    p, z = events
    for parts in (corp_decomposition(p, z), binned_decomposition(p, z, bins=bins)):
        total = parts.miscalibration - parts.discrimination + parts.uncertainty
        assert parts.score == pytest.approx(total, abs=1e-12)
        assert min(parts.miscalibration, parts.discrimination, parts.uncertainty) >= 0
        assert parts.uncertainty == pytest.approx(z.var(), abs=1e-12)
    assert corp_decomposition(p, z).score == pytest.approx(((p - z) ** 2).mean(), abs=1e-12)
    # With a bin for each forecast nothing is averaged.
    tied = np.round(p, 1)
    for bins in (10**4, 10**150):  # more than rows: each has its own
        assert binned_decomposition(tied, z, bins=bins).score == pytest.approx(((tied - z) ** 2).mean(), abs=1e-12)


@settings(max_examples=100, deadline=None)
@given(EVENTS)
def test_recalibrated_forecasts_are_calibrated(events):
    p, z = events
    again = corp_decomposition(recalibrate(p, z), z)
    assert again.miscalibration == pytest.approx(0, abs=1e-15)
    assert again.discrimination == pytest.approx(corp_decomposition(p, z).discrimination, abs=1e-12)


def test_corp_parts_have_their_population_values():
    """c ~ U(0, 1), forecast f(c) = σ(2 logit c): MCB = ∫(f − c)², DSC = Var c = 1/12, UNC = 1/4."""
    squared, _ = quad(lambda c: (expit(2 * logit(c)) - c) ** 2, 0, 1)
    parts = corp_decomposition(*sharpened(200_000, 5))
    # Standard errors are below .0006; isotonic overfit adds about n^{−2/3} = .0003 to MCB and DSC.
    assert parts.miscalibration == pytest.approx(squared, abs=0.0015)
    assert parts.discrimination == pytest.approx(1 / 12, abs=0.0025)
    assert parts.uncertainty == pytest.approx(1 / 4, abs=1e-4)
    assert parts.score == pytest.approx(squared + 1 / 6, abs=0.003)


def test_a_constant_forecast_discriminates_nothing():
    z = np.array([0.0, 1, 1, 1])
    for decompose in (corp_decomposition, binned_decomposition):
        parts = decompose(np.full(4, 0.5), z)
        assert (parts.miscalibration, parts.discrimination, parts.uncertainty) == pytest.approx((1 / 16, 0, 3 / 16))


# ── Calibration error ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bins", [1, 3, 7, 10, 15])
@pytest.mark.parametrize("n", [18, 102, 1010])  # n − 1 prime: no quantile is a row, so scikit-learn rounds none away
def test_bins_are_scikit_learns(bins, n):
    rng = np.random.default_rng(n)
    for p in (rng.random(n), rng.beta(0.5, 3, n).round(2)):
        z = (rng.random(n) < p).astype(float)
        true, forecast = calibration_curve(z, p, n_bins=bins, strategy="quantile")
        binned = calibration._pool_bins(tally(p, z), bins)
        assert binned.forecast == pytest.approx(forecast, abs=1e-14)
        assert binned.hits / binned.count == pytest.approx(true, abs=1e-14)
        error = calibration_error(p, z, bins=bins, resamples=1)
        assert error.ece == pytest.approx(binned.count / n @ np.abs(true - forecast), abs=1e-14)
        assert error.squared == pytest.approx(binned_decomposition(p, z, bins=bins).miscalibration, abs=1e-14)


def test_bins_have_equal_mass():
    p, z = sharpened(1000, 6)
    assert (calibration._pool_bins(tally(p, z), 10).count == 100).all()


def test_errors_have_their_population_values():
    """f − c changes sign at ½, an edge of 10 equal-mass bins, so the binned ECE is ∫|f − c|dc."""

    def gap(c):
        return expit(2 * logit(c)) - c

    absolute = 2 * quad(gap, 0.5, 1)[0]
    squared = sum(10 * quad(gap, b / 10, (b + 1) / 10)[0] ** 2 for b in range(10))
    error = calibration_error(*sharpened(200_000, 7), bins=10)
    # Σ_b |gap_b| has the standard error √(E c(1 − c)/n) = .0009.
    assert error.ece == pytest.approx(absolute, abs=0.004)
    assert error.squared_debiased == pytest.approx(squared, abs=0.001)


def test_debiased_errors_of_calibrated_forecasts_are_zero_on_average():
    rng = np.random.default_rng(8)
    errors = []
    for _ in range(300):
        p = rng.beta(0.8, 0.8, 300)
        e = calibration_error(p, rng.random(300) < p, resamples=100)
        errors.append([e.ece, e.ece_debiased, e.squared, e.squared_debiased])
    mean, se = np.mean(errors, axis=0), np.std(errors, axis=0) / np.sqrt(300)
    assert (np.abs(mean[[1, 3]]) < 4 * se[[1, 3]]).all()
    # The plain ones are not: E|N(0, v)| = √(2v/π) in each of 15 bins of 20 rows.
    assert mean[0] > 50 * se[0]
    assert mean[0] == pytest.approx(np.sqrt(2 / np.pi * 0.154 / 20), rel=0.15)
    assert mean[2] > 30 * se[2]


@pytest.mark.parametrize("bins", [2, 10])
def test_squared_debiased_is_unbiased_for_miscalibrated_forecasts_too(bins):
    """Ten forecast values with their own, wrong, event rates: the target is known for any grouping of them."""
    values, truth = np.arange(10) / 10 + 0.05, np.linspace(0.3, 0.6, 10)
    p, c = np.repeat(values, 20), np.repeat(truth, 20)
    gap = (values - truth).reshape(bins, -1).mean(axis=1)
    target = (gap**2).mean()
    rng = np.random.default_rng(9)
    drawn = [calibration_error(p, rng.random(200) < c, bins=bins, resamples=1) for _ in range(800)]
    estimates, plain = (np.array([getattr(e, name) for e in drawn]) for name in ("squared_debiased", "squared"))
    se = estimates.std() / np.sqrt(800)
    # Forecasts are fixed here, so their spread within two wide bins enters the subtracted variance but not the target.
    spread = np.var((values - truth).reshape(bins, -1), axis=1).mean() / (200 / bins - 1)
    assert estimates.mean() == pytest.approx(target - spread, abs=4 * se)
    assert plain.mean() > target + 5 * se


def test_squared_correction_is_that_of_kumar_where_forecasts_tie():
    rng = np.random.default_rng(10)
    p = np.repeat([0.2, 0.5, 0.7], 30)
    z = (rng.random(90) < p).astype(float)
    rate = z.reshape(3, 30).mean(axis=1)
    error = calibration_error(p, z, bins=3)
    assert error.squared - error.squared_debiased == pytest.approx((rate * (1 - rate) / 29).mean(), abs=1e-15)


def test_a_bin_of_one_row_takes_the_variance_of_its_forecast():
    error = calibration_error([0.3], [1.0])
    assert error.squared_debiased == pytest.approx(0.7**2 - 0.3 * 0.7)


def test_certain_and_right_forecasts_have_no_error():
    z = np.array([0.0, 1, 1, 0, 1])
    error = calibration_error(z, z)
    assert (error.ece, error.ece_debiased, error.squared, error.squared_debiased) == (0, 0, 0, 0)


def test_classwise_error_is_the_mean_over_classes():
    P, y = forecasts(300, 3, 11)
    mean = classwise_error(P, y, bins=5)
    each = [calibration_error(*one_class(P, y, k), bins=5) for k in range(3)]
    assert mean.ece == pytest.approx(np.mean([e.ece for e in each]))
    assert mean.squared_debiased == pytest.approx(np.mean([e.squared_debiased for e in each]))


def test_the_order_of_rows_does_not_matter():
    P, y = forecasts(150, 3, 12)
    P = (P * 8).round() / 8 + 1e-3  # ties
    P /= P.sum(axis=1, keepdims=True)
    order = np.random.default_rng(12).permutation(150)
    p, z = top_label(P, y)
    assert calibration_error(p, z) == calibration_error(p[order], z[order])
    assert corp_decomposition(p, z) == corp_decomposition(p[order], z[order])
    assert binned_decomposition(p, z) == binned_decomposition(p[order], z[order])
    first, second = calibration_table(P, y).to_numpy(), calibration_table(P[order], y[order]).to_numpy()
    assert first == pytest.approx(second, abs=1e-12, nan_ok=True)


# ── Intervals and the table ─────────────────────────────────────────────────────────────────────────────────────────


def test_interval_coverage_of_known_intervals():
    rng = np.random.default_rng(13)
    z = rng.normal(size=4000)
    coverage, error = interval_coverage(z - 1.645, z + 1.645, np.zeros(4000))
    assert error == pytest.approx(np.sqrt(0.9 * 0.1 / 4000), rel=0.1)
    assert abs(coverage - 0.9) < 4 * error
    # Ten copies of each interval are worth one.
    copies = np.repeat(z[:, None], 10, axis=1)
    assert interval_coverage(copies - 1.645, copies + 1.645, 0 * copies) == pytest.approx((coverage, error))
    assert interval_coverage([0.0, 0.0], [1.0, 1.0], [0.0, 1.0]) == (1.0, 0.0)


def test_table_agrees_with_the_functions_it_gathers():
    P, y = forecasts(300, 3, 14)
    table = calibration_table(P, y, class_names=["a", "b", "top label"], bins=8)
    assert list(table.index) == [
        ("class", "a"),
        ("class", "b"),
        ("class", "top label"),
        ("top label", ""),
        ("all classes", ""),
    ]
    classes, every = table.iloc[:3], table.loc[("all classes", "")]
    assert every["log_score"] == pytest.approx(log_score(P, y))
    assert every["brier"] == pytest.approx(brier_score(P, y))
    assert every["ece"] == pytest.approx(classwise_error(P, y, bins=8).ece)
    assert every["ece_debiased"] == pytest.approx(classwise_error(P, y, bins=8).ece_debiased)
    assert every["miscalibration"] == pytest.approx(classes["miscalibration"].sum())
    whole = table["miscalibration"] - table["discrimination"] + table["uncertainty"]
    assert table["brier"].to_numpy() == pytest.approx(whole.to_numpy(), abs=1e-12)
    for row, (p, z) in zip([0, 1, 2, 3], [*(one_class(P, y, k) for k in range(3)), top_label(P, y)], strict=True):
        assert table["log_score"].iloc[row] == pytest.approx(-log_loss(z, p), abs=1e-13)
        assert table["brier"].iloc[row] == pytest.approx(brier_score_loss(z, p), abs=1e-13)
        assert table["ece_debiased"].iloc[row] == calibration_error(p, z, bins=8).ece_debiased


@pytest.mark.parametrize(("K", "events"), [(2, 2), (3, 4), (5, 6)])
def test_all_intervals_of_a_table_hold_together(K, events):
    """Bonferroni: each of the classes and the top label at 1 − .1/events; of two classes one mirrors the other."""
    P, y = forecasts(200, K, 15)
    table = calibration_table(P, y)
    fit = fit_cox(*top_label(P, y), prob=1 - 0.1 / events)
    for name, value in fit.columns.items():
        assert table[name].iloc[K] == pytest.approx(value)


def test_two_rows_of_a_bin_have_the_variance_of_two():
    """p = ½ twice and one event: no gap, and z̄(1 − z̄)/(n − 1) = ¼ of noise."""
    assert calibration_error([0.5, 0.5], [0, 1], bins=1).squared_debiased == pytest.approx(-0.25)


def test_one_truth_that_is_nan_is_refused():
    with pytest.raises(DataError, match="none may be nan"):
        interval_coverage(np.zeros(3), np.ones(3), np.array([0.5, np.nan, 0.5]))


# ── Bad input ───────────────────────────────────────────────────────────────────────────────────────────────────────

GOOD = np.array([[0.3, 0.7], [0.6, 0.4]])


@pytest.mark.parametrize("measure", [log_score, brier_score, classwise_error, calibration_table, top_label])
@pytest.mark.parametrize(
    ("P", "y", "message"),
    [
        (GOOD[:, 0], [0, 1], r"`P` must be \(n, K\).*got shape \(2,\).*column_stack"),
        (np.empty((0, 2)), np.empty(0, int), r"at least one row.*got shape \(0, 2\)"),
        (np.ones((2, 1)), [0, 0], r"two classes; got shape \(2, 1\)"),
        (GOOD + np.array([0.1, 0]), [0, 1], r"sum to one; row \d sums to 1.1"),
        (np.array([[1.2, -0.2]]), [0], r"between 0 and 1; got 1.2"),
        (np.array([[np.nan, 1.0]]), [0], r"between 0 and 1; got nan"),
        (GOOD, [0, 1, 1], r"one code for each of the 2 rows of `P`; got shape \(3,\)"),
        (GOOD, [0, 2], r"`y` must lie in 0…1.*from 0 to 2"),
        (GOOD, [-1, 0], r"`y` must lie in 0…1.*from -1 to 0"),
        (GOOD, [0.0, 1.0], r"integer class codes; got float64"),
    ],
)
def test_bad_forecasts_are_refused(measure, P, y, message):
    with pytest.raises(DataError, match=message):
        measure(P, y)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: calibration_error([0.5], [2.0]), r"`outcome` must be 0 or 1; got 2"),
        (lambda: calibration_error([0.5, 0.1], [1.0]), r"shape of `p`, \(2,\); got \(1,\)"),
        (lambda: calibration_error([], []), r"at least one row; got shape \(0,\)"),
        (lambda: corp_decomposition(GOOD, [0, 1]), r"`p` must be \(n,\).*got shape \(2, 2\)"),
        (lambda: calibration_error([0.5], [1.0], bins=0), r"`bins` must be at least 1; got 0"),
        (lambda: calibration_error([0.5], [1.0], resamples=0), r"`resamples` must be at least 1; got 0"),
        (lambda: one_class(GOOD, [0, 1], 2), r"`k` must be a class code in 0…1; got 2"),
        (lambda: paired_difference([1.0], [1.0]), r"same n ≥ 2; got shapes \(1,\) and \(1,\)"),
        (lambda: interval_coverage([0.0], [1.0], [0.5]), r"at least 2 simulations.*got \(1,\), \(1,\) and \(1,\)"),
        (lambda: interval_coverage([0.0, 2.0], [1.0, 1.0], [0.5, 0.5]), r"`lower` must not exceed `upper`"),
        (lambda: calibration_table(GOOD, [0, 1], class_names=["a"]), r"must hold 2 names.*got 1"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_rounding_is_not_an_error():
    P = np.array([[1 + 2e-16, -1e-17], [0.5, 0.5 + 5e-7]])
    assert log_score(P, [0, 1]) == pytest.approx(np.log(0.5) / 2, abs=1e-6)


def test_the_p_value_is_that_of_the_ece():
    """Uniform under calibration, whatever the bins; and 1/(1 + resamples) where no drawn labels come near."""
    rng = np.random.default_rng(5)
    values = []
    for seed in range(100):
        p = rng.beta(2, 1, 80)
        values.append(calibration_error(p, rng.random(80) < p, bins=8, resamples=99, random_seed=seed).ece_p_value)
    assert kstest(values, "uniform").pvalue > 0.01
    p = rng.uniform(0.8, 1.0, 200)
    assert calibration_error(p, rng.random(200) < 0.5, resamples=99).ece_p_value == 0.01
    assert np.isnan(classwise_error(np.column_stack([1 - p, p]), np.ones(200, dtype=int)).ece_p_value)


def test_forecasts_that_are_sure_and_right_are_not_rejected():
    """Rounding of 1e-17 in an error of zero is no evidence: iris's setosa was rejected with p = .002."""
    rng = np.random.default_rng(0)
    outcome = rng.random(45) < 0.3
    p = np.where(outcome, 1 - 10 ** rng.uniform(-16, -9, 45), 10 ** rng.uniform(-30, -9, 45))
    found = calibration_error(p, outcome)
    assert found.ece < 1e-8
    assert found.ece_p_value > 0.5


def test_the_p_value_of_the_expected_error_is_that_of_the_seed():
    p = np.random.default_rng(0).random(80)
    outcome = np.random.default_rng(1).random(80) < p
    values = [calibration_error(p, outcome, bins=8, random_seed=seed).ece_p_value for seed in (0, 0, 1, 2, 3)]
    assert values[0] == values[1]
    assert len(set(values)) > 2
