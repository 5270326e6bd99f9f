"""The verdict of one pass against the one of many rounds, and its figures against closed forms."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.methods.importance.at_once import DRAWS_AT_ONCE, assess_at_once
from bayes_gda.methods.importance.trust import STEADY, assess
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.priors import Normal

COVARIANCE = np.array([[2.0, 0.6], [0.6, 0.5]])


class Counting:
    """A target that counts how often it is looked at, and how many points it sees."""

    def __init__(self, log_density):
        self.function, self.calls = log_density, []

    def log_density(self, w):
        self.calls.append(len(w))
        return self.function(w)


def gaussian(covariance):
    return GaussianPosterior(np.zeros(2), np.linalg.cholesky(np.linalg.inv(covariance)), 0.0, NewtonInfo(True, 1, 0.0))


def regression(n, slope):
    rng = np.random.default_rng(0)
    Phi = np.column_stack([np.ones(n), rng.normal(size=(n, 3))])
    y = (rng.random(n) < 1 / (1 + np.exp(-slope * Phi[:, 1] - 1))).astype(float)
    target = LogisticTarget(Phi, y, Normal(scale=2.5))
    return target, regression_laplace(target), BinaryPredictor(Phi[:500])


def test_a_gaussian_is_trusted_at_one_look_and_its_evidence_is_known():
    truth = multivariate_normal(np.zeros(2), COVARIANCE)
    target = Counting(lambda w: truth.logpdf(w) + 7.0)
    trust = assess_at_once(target, gaussian(COVARIANCE))
    assert target.calls == [DRAWS_AT_ONCE]
    assert trust.verdict == "trusted"
    assert trust.pareto_k == 0
    assert trust.ess_fraction == pytest.approx(1.0)
    assert abs(trust.log_evidence - 7.0) < 4 * trust.log_evidence_error < 0.1
    assert np.exp(trust.importance.log_weights).sum() == pytest.approx(1.0)
    np.testing.assert_allclose(trust.importance.covariance, COVARIANCE, rtol=0.25, atol=0.1)


def test_a_gaussian_that_is_too_narrow_is_found_out_and_corrected():
    truth = multivariate_normal(np.zeros(2), COVARIANCE)
    target = Counting(lambda w: truth.logpdf(w) - 3.0)
    trust = assess_at_once(target, gaussian(COVARIANCE / 4))
    assert target.calls == [DRAWS_AT_ONCE, 4000]
    assert trust.verdict == "corrected"
    assert abs(trust.log_evidence + 3.0) < 4 * trust.log_evidence_error < 0.2
    np.testing.assert_allclose(trust.importance.covariance, COVARIANCE, rtol=0.15, atol=0.05)


@pytest.mark.parametrize(("n", "slope", "verdict"), [(5000, 1.0, "trusted"), (60, 3.0, "corrected")])
def test_one_pass_says_what_many_rounds_say(n, slope, verdict):
    target, posterior, rows = regression(n, slope)
    options = {"mean": lindley_mean(posterior, target), "predictor": rows, "tolerance": 0.01}
    trust, truth = assess_at_once(target, posterior, **options), assess(target, posterior, **options)
    assert trust.verdict == truth.verdict == verdict
    error = np.hypot(trust.log_evidence_error, truth.log_evidence_error)
    assert abs(trust.log_evidence - truth.log_evidence) < 5 * error
    assert trust.shift.largest == pytest.approx(truth.shift.largest, abs=0.01)
    np.testing.assert_allclose(trust.importance.mean, truth.importance.mean, atol=0.25 * posterior.sd.max())


def test_a_target_that_is_nowhere_near_needs_mcmc():
    far = multivariate_normal(np.full(2, 30.0), COVARIANCE)
    trust = assess_at_once(Counting(far.logpdf), gaussian(COVARIANCE))
    assert trust.verdict == "needs-mcmc"


def test_a_heavy_tail_of_ratios_that_hardly_vary_is_no_alarm():
    """Ratios of 1 plus a thousandth of a Pareto variable of shape .9: k̂ is large, and nothing is wrong."""
    rng = np.random.default_rng(1)
    truth = multivariate_normal(np.zeros(2), COVARIANCE)

    def log_density(w):
        return truth.logpdf(w) + np.log1p(1e-3 * rng.pareto(1 / 0.9, len(w)))

    trust = assess_at_once(Counting(log_density), gaussian(COVARIANCE), draws=4000)
    assert trust.pareto_k > trust.importance.threshold
    assert trust.ess_fraction > STEADY
    assert trust.verdict == "trusted"
