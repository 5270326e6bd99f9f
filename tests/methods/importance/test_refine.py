"""More weighted draws say the same with less noise."""

import numpy as np
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.methods.importance import refine as module
from bayes_gda.methods.importance.refine import refine
from bayes_gda.methods.importance.trust import assess
from bayes_gda.priors import Normal

# One weight and three rows, so that the truth is a quadrature.
PHI, Y, PRIOR = np.array([[0.5], [1.0], [2.0]]), np.array([0.0, 1.0, 1.0]), Normal(scale=2.0)


def test_refined_draws_have_the_quadratures_evidence_and_probabilities(monkeypatch):
    target = LogisticTarget(PHI, Y, PRIOR)
    trust = assess(target, regression_laplace(target), predictor=BinaryPredictor(PHI), tolerance=0.0)
    assert refine(target.log_density, trust, 3, 0) is trust or trust.shift.error > module.WANTED_ERROR
    monkeypatch.setattr(module, "WANTED_ERROR", trust.shift.error / 4)
    refined = refine(target.log_density, trust, 3, 0)
    assert len(refined.importance.draws) > 10 * len(trust.importance.draws)
    assert refined.shift.error < trust.shift.error / 2

    def joint(w):
        a = PHI[:, 0] * w
        return norm.pdf(w, 0, 2) * np.prod(np.where(Y == 1, expit(a), expit(-a)))

    evidence = quad(joint, -30, 30, limit=200)[0]
    assert abs(refined.log_evidence - np.log(evidence)) < 4 * refined.log_evidence_error
    truth = [quad(lambda w, x=x: expit(x * w) * joint(w), -30, 30, limit=200)[0] / evidence for x in PHI[:, 0]]
    found, _ = BinaryPredictor(PHI).averaged(refined.importance.draws, np.exp(refined.importance.log_weights))
    assert np.abs(found[:, 1] - truth).max() < 4 * refined.shift.error


def test_work_is_bounded(monkeypatch):
    target = LogisticTarget(PHI, Y, PRIOR)
    trust = assess(target, regression_laplace(target), predictor=BinaryPredictor(PHI), tolerance=0.0)
    monkeypatch.setattr(module, "WANTED_ERROR", 1e-9)
    assert len(refine(target.log_density, trust, 3, 0).importance.draws) == module.MOST_DRAWS
    assert refine(target.log_density, trust, 10**9, 0) is trust
