"""Data with gaps, and their likelihood row by row, that several tests share."""

import numpy as np
import pytest
from scipy import stats

SHARED = pytest.mark.parametrize("shared", [True, False], ids=["lda", "qda"])


def simulate(n=60, d=3, K=2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + 2 * rng.normal(size=(K, d))[y], y


def remove(X, share, seed=0):
    """Take values away completely at random."""
    X = X.copy()
    X[np.random.default_rng(seed).random(X.shape) < share] = np.nan
    return X


def each(Sigma, K):
    return Sigma if Sigma.ndim == 3 else np.tile(Sigma, (K, 1, 1))


def brute_log_likelihood(X, y, pi, mu, Sigma):
    """Row by row, with SciPy's multivariate normal of what each row has."""
    total = 0.0
    for x, k in zip(X, y, strict=True):
        o = ~np.isnan(x)
        total += np.log(pi[k])
        if o.any():
            total += stats.multivariate_normal(mu[k][o], Sigma[k][np.ix_(o, o)]).logpdf(x[o])
    return total
