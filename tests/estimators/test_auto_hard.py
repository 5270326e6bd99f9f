"""The promise of `auto`: on ten data sets from easy to separated its probabilities are those of long MCMC, to .01."""

import sys
import warnings

import numpy as np
import pytest
from scipy.special import expit

from bayes_gda.data.table import Dataset
from bayes_gda.errors import InferenceWarning
from bayes_gda.estimators import BayesianLogisticRegression

# Rows, features, size of the effects (inf: separated), intercept; as in tests/inference/test_trust_hard.py.
CASES = {
    "easy, 2000 rows": (2000, 3, 1.0, 0.0),
    "easy, 500 rows": (500, 3, 1.0, 0.0),
    "middling, 150 rows": (150, 5, 1.0, 0.0),
    "strong effects": (150, 3, 4.0, 0.0),
    "few rows": (40, 3, 1.0, 0.0),
    "rare class": (300, 3, 0.5, -4.0),
    "very rare class": (200, 2, 0.2, -4.5),
    "20 rows, 15 features": (20, 15, 1.0, 0.0),
    "separated": (60, 3, np.inf, 0.0),
    "separated, 30 features": (60, 30, np.inf, 0.0),
}


def simulate(n, d, effect, intercept, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    a = X @ rng.normal(size=d)
    y = (a > 0).astype(int) if np.isinf(effect) else (rng.random(n) < expit(intercept + effect * a)).astype(int)
    y[:2] = [0, 1]
    return X, y


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_auto_agrees_with_long_mcmc_to_a_hundredth(case, record_property):
    from bayes_gda.inference.mcmc import sample
    from bayes_gda.models import logistic

    X, y = simulate(*CASES[case], seed=list(CASES).index(case))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # it may have to sample, and says so
        model = BayesianLogisticRegression(draws=2500).fit(X, y)
    tree = sample(logistic.build(Dataset.from_arrays(X, y)), draws=10_000, chains=4, random_seed=1, progress=False)
    w = tree["posterior"]["w"].to_numpy().reshape(-1, X.shape[1] + 1)
    truth = expit(model.features_(X) @ w.T).mean(axis=1)
    error = np.abs(model.predict_proba(X)[:, 1] - truth).max()
    found = f"{case}: {model.inference_}, largest difference {error:.4f}"
    record_property("found", found)
    sys.stderr.write(f"\n{found}\n")
    assert error < 0.01
