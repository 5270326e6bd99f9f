"""Ten data sets from easy to hopeless, on which verdicts and the choice of a method are held against long MCMC."""

import numpy as np
from scipy.special import expit

from bayes_gda.data.table import Dataset

# Rows, features, size of the effects (inf: separated), intercept.
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
    return Dataset.from_arrays(X, y)
