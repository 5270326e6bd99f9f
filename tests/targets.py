"""Small logistic posteriors that several tests hold methods to."""

import numpy as np

from bayes_gda.data.examples import load_example
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.priors import Normal


def cushings():
    """27 rows, y = type "b", raw features with intercept, N(0, 5²)."""
    data = load_example("cushings")
    y = np.array([data.class_names[k] == "b" for k in data.y]).astype(int)
    return LogisticTarget(np.column_stack([np.ones(data.n), data.X]), y, Normal(scale=5.0))


def one_dimensional(n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(1, 1, n)
    y = (rng.random(n) < 1 / (1 + np.exp(-1.5 * x))).astype(int)
    return LogisticTarget(x[:, None], y, Normal(scale=5.0))
