"""The promise of `auto`: on ten data sets from easy to separated its probabilities are those of long MCMC, to .01."""

import sys
import warnings

import numpy as np
import pytest
from scipy.special import expit
from ten_cases import CASES, simulate

from bayes_gda.errors import InferenceWarning
from bayes_gda.estimators import BayesianLogisticRegression


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_auto_agrees_with_long_mcmc_to_a_hundredth(case, record_property):
    from bayes_gda import sample
    from bayes_gda.models import logistic

    data = simulate(*CASES[case], seed=list(CASES).index(case))
    X, y = data.X, data.y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # it may have to sample, and says so
        model = BayesianLogisticRegression(draws=2500).fit(X, y)
    tree = sample(logistic.build(data), draws=10_000, chains=4, random_seed=1, progress=False)
    w = tree["posterior"]["w"].to_numpy().reshape(-1, X.shape[1] + 1)
    truth = expit(model.features_(X) @ w.T).mean(axis=1)
    error = np.abs(model.predict_proba(X)[:, 1] - truth).max()
    found = f"{case}: {model.inference_}, largest difference {error:.4f}"
    record_property("found", found)
    sys.stderr.write(f"\n{found}\n")
    assert error < 0.01
