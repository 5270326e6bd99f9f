"""Measurements that depend on each other beside columns that do not: QDA of the ones times `mixed` of the others.

The priors of the blocks are independent, so that the posterior is, and with it predictive density and evidence are
products over the blocks; p(y) stands in both factors, and is divided out once.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import gammaln, logsumexp

from bayes_gda import BayesianNaive, BayesianQDA
from bayes_gda.priors import NIW

K, D, LEVELS = 2, 2, ("a", "b", "c")
PRIOR = NIW(m=[0.2, -0.1], kappa=0.5, Psi=np.array([[1.5, 0.3], [0.3, 1.0]]), nu=5.0)
RNG = np.random.default_rng(8)
Y = RNG.integers(0, K, 60)
X = RNG.standard_normal((60, D)) @ np.array([[1.0, 0.8], [0.0, 0.6]]) + 0.7 * Y[:, None]
COLOUR = np.where(RNG.random(60) < 0.3 + 0.3 * Y, "a", RNG.choice(["b", "c"], 60))
NEW = X[:5] + 0.3
NEW_COLOUR = np.array(["a", "b", "c", "a", "b"], dtype=object)


def log_gaussian_evidence(x):
    """Log density of rows of one class under the prior, by the chain rule: each row given those before it."""
    return sum(log_student(x[i], x[:i]) for i in range(len(x)))


def log_student(new, x):
    """Log predictive density of a row given rows of its class, by the textbook's formulas."""
    n, p = len(x), PRIOR
    mean = x.mean(axis=0) if n else np.zeros(D)
    kappa, nu = p.kappa + n, p.nu + n
    m = (p.kappa * p.m + n * mean) / kappa
    gap = mean - p.m
    Psi = p.Psi + (x - mean).T @ (x - mean) + p.kappa * n / kappa * np.outer(gap, gap)
    df = nu - D + 1
    return stats.multivariate_t(m, Psi * (kappa + 1) / (kappa * df), df).logpdf(new)


def dirichlet_evidence(counts, alpha):
    """Log probability of a sequence with these counts under a Dirichlet prior."""
    alpha = np.broadcast_to(alpha, len(counts)).astype(float)
    return gammaln(alpha.sum()) - gammaln((alpha + counts).sum()) + (gammaln(alpha + counts) - gammaln(alpha)).sum()


@pytest.fixture(scope="module")
def blocks():
    measured = BayesianQDA(prior=PRIOR).fit(X, Y)
    return measured, BayesianNaive().fit(pd.DataFrame({"colour": COLOUR}), Y)


def test_probabilities_are_those_of_the_joint_predictive(blocks):
    measured, rest = blocks
    alpha = rest.prior_.columns[0].numbers  # with one more level for those that were never seen
    share = np.log((np.bincount(Y, minlength=K) + 1) / (len(Y) + K))
    log_p = np.empty((len(NEW), K))
    for i, (row, colour) in enumerate(zip(NEW, NEW_COLOUR, strict=True)):
        for k in range(K):
            counts = np.array([np.sum(COLOUR[k == Y] == level) for level in LEVELS])
            level = LEVELS.index(colour)
            log_colour = np.log((counts[level] + alpha[level]) / (counts.sum() + alpha.sum()))
            log_p[i, k] = share[k] + log_student(row, X[k == Y]) + log_colour
    truth = np.exp(log_p - logsumexp(log_p, axis=1, keepdims=True))
    joined = measured.predict_log_proba(NEW) + rest.predict_log_proba(pd.DataFrame({"colour": NEW_COLOUR})) - share
    p = np.exp(joined - logsumexp(joined, axis=1, keepdims=True))
    np.testing.assert_allclose(p, truth, rtol=1e-9)
    assert np.abs(p - measured.predict_proba(NEW)).max() > 0.05  # the colour says something


def test_evidence_is_that_of_the_joint_model(blocks):
    measured, rest = blocks
    alpha = rest.prior_.columns[0].numbers
    labels = dirichlet_evidence(np.bincount(Y, minlength=K), 1.0)
    truth = labels
    for k in range(K):
        counts = np.array([np.sum(COLOUR[k == Y] == level) for level in LEVELS] + [0] * (len(alpha) - len(LEVELS)))
        truth += log_gaussian_evidence(X[k == Y]) + dirichlet_evidence(counts, alpha)
    assert measured.log_evidence_ + rest.log_evidence_ - labels == pytest.approx(truth, rel=1e-10)
