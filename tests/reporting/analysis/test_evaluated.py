"""The pieces of an analysis, held to other ways to the same number."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import log_expit

from bayes_gda.data.examples import load_example
from bayes_gda.evaluation.loo import psis_loo_discriminative
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.methods.importance.trust import assess
from bayes_gda.priors import Normal
from bayes_gda.reporting.analysis.candidates import candidate
from bayes_gda.reporting.analysis.evaluated import _weighted_loo
from bayes_gda.reporting.analysis.fits import fit_methods
from bayes_gda.reporting.analysis.settings import Clock, ReportSettings


@pytest.fixture(scope="module")
def pima():
    return load_example("pima").subset(np.arange(0, 532, 4))


def test_softmax_of_two_classes_is_logistic_regression_with_a_wider_prior(pima):
    """w₁ − w₀ of N(0, s²) weights is N(0, 2s²), and w₁ + w₀ is Gaussian whatever the data: the evidences are equal."""
    softmax = candidate("softmax", pima)
    Phi = softmax.regression.features(pima.X)
    wider = replace(Normal.default(Phi.shape[1]), scale=np.sqrt(2) * Normal.default(Phi.shape[1]).scale)
    logistic = regression_laplace(LogisticTarget(Phi, pima.y.astype(float), wider))
    posterior = softmax.problem.laplace()
    assert posterior.log_evidence == pytest.approx(logistic.log_evidence, rel=1e-9)
    m = Phi.shape[1]
    np.testing.assert_allclose(posterior.mean[m:] - posterior.mean[:m], logistic.mean, atol=1e-6)


def test_weighted_leave_one_out_is_the_plain_one_for_equal_weights(pima):
    logistic = candidate("logistic", pima)
    w = logistic.problem.laplace().draw(500, random_seed=0)
    trust = SimpleNamespace(draws=w, log_weights=np.full(500, -np.log(500)))
    found = _weighted_loo(SimpleNamespace(candidate=logistic), trust, pima)
    a = w @ logistic.regression.features(pima.X).T
    plain = psis_loo_discriminative(np.stack([log_expit(-a), log_expit(a)], axis=2), pima.y)
    np.testing.assert_allclose(found.pointwise, plain.pointwise, rtol=1e-9)
    np.testing.assert_allclose(found.fitted, plain.fitted, rtol=1e-9)
    np.testing.assert_allclose(found.pareto_k, plain.pareto_k, atol=1e-9)


def test_weighted_leave_one_out_is_that_of_the_posterior(pima):
    """Brute force for three rows: fit without the row, and predict it."""
    logistic = candidate("logistic", pima)
    posterior = logistic.problem.laplace()
    trust = assess(logistic.regression.target, posterior)
    found = _weighted_loo(SimpleNamespace(candidate=logistic), trust, pima)
    Phi = logistic.regression.features(pima.X)
    for i in (0, 50, 100):
        rest = np.delete(np.arange(pima.n), i)
        target = LogisticTarget(Phi[rest], pima.y[rest].astype(float), Normal.default(Phi.shape[1]))
        without = assess(target, regression_laplace(target))
        p = np.exp(without.log_weights) @ (1 / (1 + np.exp(-(without.draws @ Phi[i]))))
        assert found.pointwise[i] == pytest.approx(np.log(p if pima.y[i] else 1 - p), abs=0.02)


@pytest.mark.parametrize("name", ["lda", "logistic"])
def test_methods_agree_on_the_evidence(pima, name):
    settings = ReportSettings(quick=True, draws=200)
    fitted = fit_methods(candidate(name, pima), settings, Clock(settings.progress, 1))
    assert fitted.method == ("exact" if name == "lda" else "corrected")
    value, error = fitted.best_evidence
    assert error < 0.05
    assert all(abs(other - value) < 0.3 for other, _ in fitted.evidence.values())
    assert {tree["posterior"].sizes["chain"] for tree in fitted.trees.values()} == {4}
