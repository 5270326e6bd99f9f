"""Reliability curves against scikit-learn's isotonic regression, and bands against the coverage they state."""

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import chi2
from sklearn.isotonic import IsotonicRegression

from bayes_gda.errors import DataError
from bayes_gda.evaluation.calibration import interval_coverage
from bayes_gda.evaluation.reliability import (
    confidence_band,
    consistency_band,
    one_class,
    recalibrate,
    recalibrated,
    reliability_curve,
    tally,
    top_label,
)


def events(n, seed, decimals=None):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, n)
    p = p if decimals is None else p.round(decimals)
    return p, (rng.random(n) < p).astype(float)


@pytest.mark.parametrize("decimals", [None, 2, 1])
def test_recalibration_is_isotonic_regression(decimals):
    p, z = events(500, 1, decimals)
    expected = IsotonicRegression().fit(p, z).predict(p)
    assert recalibrate(p, z) == pytest.approx(expected, abs=1e-12)


def test_curve_counts_ties_and_increases():
    p, z = events(400, 2, decimals=1)
    curve = reliability_curve(p, z, resamples=99)
    assert curve.forecast == pytest.approx(np.unique(p))
    assert curve.count.sum() == 400
    assert (np.diff(curve.recalibrated) >= 0).all()
    assert curve.count @ curve.recalibrated == pytest.approx(z.sum())  # the fit keeps the number of events
    for band in (curve.consistency, curve.confidence):
        assert band.prob == 0.9
        assert band.forecast == pytest.approx(curve.forecast)
        assert (np.diff(band.lower) >= 0).all()
        assert (np.diff(band.upper) >= 0).all()
        assert (band.lower >= 0).all()
        assert (band.upper <= 1).all()
    assert (curve.confidence.lower <= curve.recalibrated).all()
    assert (curve.confidence.upper >= curve.recalibrated).all()


def test_hand_worked_curve():
    curve = reliability_curve([0.1, 0.1, 0.4, 0.6, 0.9], [0, 1, 0, 0, 1], resamples=99)
    assert curve.forecast == pytest.approx([0.1, 0.4, 0.6, 0.9])
    assert curve.recalibrated == pytest.approx([0.25, 0.25, 0.25, 1])
    assert curve.count == pytest.approx([2, 1, 1, 1])


def test_one_class_and_top_label():
    P = np.array([[0.2, 0.5, 0.3], [0.4, 0.4, 0.2], [0.1, 0.2, 0.7]])
    p, z = one_class(P, [1, 1, 0], 1)
    assert (p.tolist(), z.tolist()) == ([0.5, 0.4, 0.2], [1, 1, 0])
    p, z = top_label(P, [1, 1, 2])
    assert (p.tolist(), z.tolist()) == ([0.5, 0.4, 0.7], [1, 0, 1])  # of two equals, the first


def test_order_of_rows_and_seed():
    p, z = events(120, 3, decimals=2)
    order = np.random.default_rng(3).permutation(120)
    a, b = reliability_curve(p, z, resamples=99), reliability_curve(p[order], z[order], resamples=99)
    other = consistency_band(p, resamples=99, random_seed=1)
    for name in ("lower", "upper"):
        assert np.array_equal(getattr(a.consistency, name), getattr(b.consistency, name))
        assert np.array_equal(getattr(a.confidence, name), getattr(b.confidence, name))
    assert not np.array_equal(a.consistency.lower, other.lower)


def test_bands_stand_at_no_more_points_than_asked():
    p, z = events(1000, 4)
    curve = reliability_curve(p, z, points=30, resamples=19)
    assert len(curve.forecast) == 1000
    assert len(curve.consistency.forecast) == len(curve.confidence.forecast) == 30
    assert curve.confidence.forecast[[0, -1]] == pytest.approx([p.min(), p.max()])


def test_confidence_limits_are_those_of_a_binomial_likelihood_ratio():
    """One forecast, 7 of 20 events: the limits solve 2[log L(.35) − log L(θ)] = χ²₁."""
    band = confidence_band(np.full(20, 0.5), [1.0] * 7 + [0.0] * 13, prob=0.95)

    def log_likelihood(theta):
        return 7 * np.log(theta) + 13 * np.log1p(-theta)

    for theta in (band.lower[0], band.upper[0]):
        assert 2 * (log_likelihood(0.35) - log_likelihood(theta)) == pytest.approx(chi2.ppf(0.95, 1), abs=1e-6)
    assert band.lower[0] < 0.35 < band.upper[0]


def test_confidence_limits_are_the_extremes_of_the_curves_the_likelihood_admits():
    """Against brute force: three forecasts, all increasing curves on a grid."""
    hits, count = np.array([3.0, 2, 8]), np.array([20.0, 12, 10])
    p = np.repeat([0.1, 0.5, 0.9], count.astype(int))
    z = np.concatenate([np.arange(c) < h for h, c in zip(hits, count, strict=True)]).astype(float)
    band = confidence_band(p, z, prob=0.9)
    grid = np.linspace(0, 1, 202)[1:-1]
    log_likelihood = [h * np.log(grid) + (c - h) * np.log1p(-grid) for h, c in zip(hits, count, strict=True)]
    total = log_likelihood[0][:, None, None] + log_likelihood[1][:, None] + log_likelihood[2]
    i, j, k = np.ogrid[:200, :200, :200]
    total[~((i <= j) & (j <= k))] = -np.inf
    admitted = np.array(np.nonzero(2 * (total.max() - total) <= chi2.ppf(0.9, 1)))
    assert band.lower == pytest.approx(grid[admitted.min(axis=1)], abs=0.006)
    # 42 rows share their upper limit among the first 6, which are all of the first forecast's.
    assert band.upper == pytest.approx(grid[admitted.max(axis=1)], abs=0.006)


# ── Coverage ────────────────────────────────────────────────────────────────────────────────────────────────────────


# Few resamples: the rank rule is exact for them as for many, 1 − 2·3/60 and 1 − 2·5/20.
@pytest.mark.parametrize(("prob", "resamples"), [(0.9, 59), (0.5, 19)])
def test_consistency_band_covers_calibrated_forecasts(prob, resamples, record_property):
    rng = np.random.default_rng(5)
    curves, lower, upper, middle = [], [], [], []
    for seed in range(300):
        p = rng.beta(0.7, 0.7, 150)
        cells = tally(p, rng.random(150) < p)
        band = consistency_band(p, prob=prob, resamples=resamples, random_seed=seed)
        curves.append(recalibrated(cells))
        lower.append(band.lower)
        upper.append(band.upper)
        middle.append((band.forecast > 0.2) & (band.forecast < 0.8))
    curves, lower, upper, middle = (np.array(a) for a in (curves, lower, upper, middle))
    inside, error = interval_coverage(lower, upper, curves)
    strictly = ((lower < curves) & (curves < upper)).mean(axis=1)
    record_property("coverage", float(inside))
    # Draws that tie with a limit count as inside or as outside: `prob` lies between the two shares.
    assert inside > prob - 3 * error
    assert strictly.mean() < prob + 3 * strictly.std() / np.sqrt(300)
    # Away from 0 and 1, where whole draws tie, the share is `prob` itself.
    share = ((lower <= curves) & (curves <= upper) & middle).sum(axis=1) / middle.sum(axis=1)
    assert share.mean() == pytest.approx(prob, abs=3 * share.std() / np.sqrt(300) + 0.01)


def test_consistency_band_shows_miscalibration():
    rng = np.random.default_rng(6)
    c = rng.random(1000)
    p = expit(2.5 * logit(c))
    curve = reliability_curve(p, rng.random(1000) < c, points=100, resamples=99)
    at = np.interp(curve.consistency.forecast, curve.forecast, curve.recalibrated)
    assert ((at < curve.consistency.lower) | (at > curve.consistency.upper)).mean() > 0.5


def sharpened(rng, n):
    c = rng.random(n)
    return expit(2 * logit(c)), c


def rare(rng, n):
    c = rng.beta(0.5, 8, n)
    return expit(0.6 * logit(c)), c


def tied(rng, n):
    p = rng.integers(0, 11, n) / 10
    return p, 0.1 + 0.8 * p


def no_skill(rng, n):
    return rng.random(n), np.full(n, 0.3)


@pytest.mark.parametrize(("forecaster", "most"), [(sharpened, 0.985), (rare, 0.995), (tied, 0.95), (no_skill, 0.97)])
def test_confidence_band_covers_the_true_curve(forecaster, most, record_property):
    rng = np.random.default_rng(7)
    covered = []
    for _ in range(300):
        p, c = forecaster(rng, 200)
        band = confidence_band(p, rng.random(200) < c, points=11)
        truth = dict(zip(p, c, strict=True))
        true = np.array([truth[x] for x in band.forecast])
        covered.append((band.lower <= true) & (true <= band.upper))
    shares = np.mean(covered, axis=1)
    error = shares.std() / np.sqrt(300)
    record_property("coverage", float(shares.mean()))
    assert shares.mean() > 0.9 - 3 * error
    assert shares.mean() < most
    assert np.mean(covered, axis=0).min() > 0.75  # at every point, the ends included


def test_curves_converge_to_the_truth():
    rng = np.random.default_rng(8)
    p, c = sharpened(rng, 50_000)
    z = rng.random(50_000) < c
    assert np.abs(recalibrate(p, z) - c).mean() < 0.015  # n^{−1/3} = .027, times about ½


# ── Bad input ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prob": 1.0}, r"`prob` must lie between 0 and 1; got 1. Use 0.9"),
        ({"prob": 0.99, "resamples": 99}, r"`resamples` must be at least 199 for a `prob` of 0.99; got 99"),
        ({"points": 1}, r"`points` must be at least 2; got 1"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(DataError, match=message):
        reliability_curve([0.2, 0.4], [0, 1], **settings)


def test_bad_forecasts_are_refused():
    with pytest.raises(DataError, match=r"between 0 and 1; got 1.5"):
        consistency_band([1.5])
    with pytest.raises(DataError, match=r"`p` must be \(n,\).*got shape \(0,\)"):
        consistency_band([])
