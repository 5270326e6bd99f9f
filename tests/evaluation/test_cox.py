"""Cox's recalibration, held to scikit-learn's unpenalised fit, to its own level and coverage, and at its edges."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_expit, logit
from scipy.stats import binom, chi2
from sklearn.linear_model import LogisticRegression

from bayes_gda.errors import DataError
from bayes_gda.evaluation.cox import MOST_FORECASTS, fit_cox


def outcomes(rng, n, alpha=0.0, beta=1.0):
    p = rng.beta(0.7, 0.7, n)
    c = expit(alpha + beta * logit(p))
    return p, (rng.random(n) < c).astype(float), float(np.abs(p - c).mean())


def test_estimates_are_those_of_an_unpenalised_logistic_fit():
    p, z, _ = outcomes(np.random.default_rng(1), 300, -0.3, 0.6)
    x = logit(p)[:, None]
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(x, z)
    ours = fit_cox(p, z)
    assert ours.intercept == pytest.approx(theirs.intercept_[0], abs=1e-5)
    assert ours.slope == pytest.approx(theirs.coef_[0, 0], abs=1e-5)

    def loss(theta):
        a = theta[0] + theta[1] * x[:, 0]
        return -(z * log_expit(a) + (1 - z) * log_expit(-a)).sum()

    statistic = 2 * (loss(np.array([0.0, 1.0])) - minimize(loss, [0.0, 1.0], tol=1e-10).fun)
    assert ours.statistic == pytest.approx(statistic, rel=1e-6)
    assert ours.p_value == pytest.approx(chi2.sf(statistic, 2))
    # Standard errors: the inverse of the observed information, by differences of the loss.
    at, h = np.array([ours.intercept, ours.slope]), 1e-3
    e = h * np.eye(2)
    H = [
        [(loss(at + a + b) - loss(at + a - b) - loss(at - a + b) + loss(at - a - b)) / (4 * h * h) for a in e]
        for b in e
    ]
    errors = np.sqrt(np.diag(np.linalg.inv(H)))
    np.testing.assert_allclose([ours.intercept_error, ours.slope_error], errors, rtol=1e-4)


def test_level_and_coverage():
    """Within what a binomial of 300 data sets admits, 1 in 1000; coverage is of (α, β) at once, so at least nominal."""
    rng = np.random.default_rng(2)
    calibrated = [fit_cox(*outcomes(rng, 160)[:2]) for _ in range(300)]
    low, high = binom.ppf([0.0005, 0.9995], 300, 0.05)
    assert low <= sum(f.p_value <= 0.05 for f in calibrated) <= high
    assert sum(f.lower == 0 for f in calibrated) >= binom.ppf(0.0005, 300, 0.9)
    assert all((f.lower == 0) == (f.p_value >= 0.1) for f in calibrated)
    covered = 0
    for _ in range(150):
        p, z, error = outcomes(rng, 160, -0.3, 0.6)
        f = fit_cox(p, z)
        covered += f.lower <= error <= f.upper
    assert covered >= binom.ppf(0.0005, 150, 0.9)


def test_the_interval_narrows_with_the_rows_and_is_that_of_a_dense_grid():
    rng = np.random.default_rng(3)
    few, many = (fit_cox(*outcomes(rng, n)[:2]) for n in (60, 6000))
    assert few.upper > 0.08
    assert many.upper < 0.03
    p, z, _ = outcomes(rng, 100, 0.5, 0.5)
    found = fit_cox(p, z, prob=0.8)
    alpha, beta = (g[..., None] for g in np.meshgrid(np.linspace(-2, 3, 401), np.linspace(-1, 3, 401)))
    a = alpha + beta * logit(p)
    log_l = (z * log_expit(a) + (1 - z) * log_expit(-a)).sum(axis=-1)
    error = np.abs(expit(a) - p).mean(axis=-1)[2 * (log_l.max() - log_l) <= chi2.ppf(0.8, 2)]
    assert (found.lower, found.upper) == pytest.approx((error.min(), error.max()), abs=0.004)


def test_outcomes_that_do_not_determine_the_fit():
    p = np.linspace(0.7, 0.95, 40)
    always = fit_cox(p, np.ones(40))
    assert np.isnan(always.slope)
    assert always.statistic == pytest.approx(-2 * np.log(p).sum(), abs=1e-6)
    assert always.upper >= (1 - p).mean()  # c = 1 cannot be excluded, nor a curve that is lower at one end
    parted = fit_cox([0.1, 0.2, 0.8, 0.9], [0, 0, 1, 1])
    assert np.isnan(parted.slope)
    assert 0 <= parted.lower <= parted.upper <= 1
    constant = fit_cox(np.full(50, 0.3), np.arange(50) < 25)
    assert 0 <= constant.lower <= 0.2 <= constant.upper
    impossible = fit_cox([0.0, 0.0, 1.0, 0.5], [1, 0, 1, 0])
    assert impossible.p_value < 1e-6
    with pytest.raises(DataError, match="`prob` must"):
        fit_cox(p, np.ones(40), prob=90)


def test_pooling_of_many_forecasts_changes_next_to_nothing(monkeypatch):
    p, z, _ = outcomes(np.random.default_rng(4), 3 * MOST_FORECASTS, -0.2, 0.8)
    pooled = fit_cox(p, z)
    monkeypatch.setattr("bayes_gda.evaluation.cox.MOST_FORECASTS", 10**6)
    whole = fit_cox(p, z)
    assert (pooled.slope, pooled.lower, pooled.upper) == pytest.approx(
        (whole.slope, whole.lower, whole.upper), abs=2e-3
    )


def test_an_event_and_its_complement_have_the_same_calibration_however_many_forecasts_differ():
    rng = np.random.default_rng(4)
    p = rng.beta(0.3, 8, 3 * MOST_FORECASTS // 2)  # a rare event: Default of ISLR, 3000 held-out rows
    z = (rng.random(len(p)) < p).astype(float)
    event, complement = fit_cox(p, z), fit_cox(1 - p, 1 - z)
    assert complement.slope == pytest.approx(event.slope, rel=1e-6)
    assert complement.slope_error == pytest.approx(event.slope_error, rel=1e-6)
    assert complement.intercept == pytest.approx(-event.intercept, abs=1e-6)
    assert complement.statistic == pytest.approx(event.statistic, rel=1e-5)
    theirs = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(logit(np.clip(p, 1e-12, 1))[:, None], z)
    assert event.slope == pytest.approx(theirs.coef_[0, 0], abs=1e-4)
