"""Probabilities that know their uncertainty against those of a point estimate, in one run.

predict_proba   scikit-learn's LogisticRegression: one activation a row, no uncertainty
fast            mean and variance of the activation from the Laplace posterior, and the probit-approximated link
"""

import numpy as np
import pytest
from benchmarks.timing import alternate, report
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from bayes_gda.inference.laplace import laplace_approximation
from bayes_gda.inference.logistic import LogisticTarget
from bayes_gda.inference.priors import Normal
from bayes_gda.prediction.regression import BinaryPredictor


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((1_000_000, 30))
    return Phi, rng.random(1_000_000) < expit(Phi @ rng.normal(0, 0.5, 30))


def test_probit_predictions_of_a_million_rows(benchmark, rows):
    Phi, y = rows
    classic = LogisticRegression().fit(Phi[:5000], y[:5000])
    posterior = laplace_approximation(LogisticTarget(Phi[:5000], y[:5000], Normal(scale=2.5)))
    predictor = BinaryPredictor(Phi)
    predictor.fast(posterior)
    seconds = alternate(
        {"predict_proba": lambda: classic.predict_proba(Phi), "fast": lambda: predictor.fast(posterior)}
    )
    ratio = seconds["fast"] / seconds["predict_proba"]
    report(benchmark, "Probit predictions / predict_proba on 1 000 000 × 30", ratio, 1.5, seconds)
    benchmark.pedantic(predictor.fast, args=(posterior,), rounds=5)
