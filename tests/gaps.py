"""Data with gaps, and their likelihood row by row, that several tests share."""

import numpy as np
import pytest
from scipy import stats

from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.predictive import log_joint_per_draw
from bayes_gda.methods.bridge import effective_size
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.priors import NIG, NIW

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


def marginal_prior(prior, features):
    """Return the prior of some features alone."""
    if isinstance(prior, NIG):
        return NIG(*(getattr(prior, name)[features] for name in ("m", "kappa", "a", "b")))
    gone = len(prior.m) - len(features)
    return NIW(prior.m[features], prior.kappa, prior.Psi[np.ix_(features, features)], prior.nu - gone)


def with_gaps_in_one_feature(make, prior, X, y, gapped, rows):
    """Return log p(x, y=k | data) (n, 2) of complete `rows` and the log evidence, where one feature alone has gaps.

    In the normal-inverse-Wishart the regression of that feature on the others is independent of these. So they are
    learnt from all rows, and it is learnt from those that have it, as the conditional of the complete model:

        p(x, k) = p(x_others, k | all rows) · p(x, k | complete rows) / p(x_others, k | complete rows)
    """
    others = [j for j in range(X.shape[1]) if j != gapped]
    there = ~np.isnan(X[:, gapped])
    part = marginal_prior(prior, others)
    everywhere = make(Moments.from_arrays(X[:, others], y, 2), part)
    complete = make(Moments.from_arrays(X[there], y[there], 2), prior)
    beside = make(Moments.from_arrays(X[there][:, others], y[there], 2), part)
    log_joint = everywhere.log_joint(rows[:, others]) + complete.log_joint(rows) - beside.log_joint(rows[:, others])
    return log_joint, everywhere.log_evidence + complete.log_evidence - beside.log_evidence


def assert_predicts(model, rows, log_joint, *, chains=2, z=4.5):
    """Hold a fitted model to log p(x, y=k | data) (n, K): to rounding if exact, within `z` standard errors if drawn."""
    probabilities = np.exp(log_class_probabilities(log_joint))
    if model.model_.draws is None:
        np.testing.assert_allclose(model.model_.log_joint(rows), log_joint, rtol=1e-9)
        np.testing.assert_allclose(model.predict_proba(rows), probabilities, rtol=1e-9)
        return
    # Each draw's density in units of the truth, whose mean is one.
    ratio = np.exp(log_joint_per_draw(model.model_.draws, rows) - log_joint).reshape(chains, -1, log_joint.size)
    worth = np.array([effective_size(ratio[..., i]) for i in range(log_joint.size)])
    error = (ratio.std(axis=(0, 1)) / np.sqrt(worth)).reshape(log_joint.shape)
    score = np.abs(ratio.mean(axis=(0, 1)).reshape(log_joint.shape) - 1) / error
    assert score.max() < z, f"a density is {score.max():.1f} standard errors from the truth"
    assert np.median(error) < 0.1  # or else that would say nothing
    # A share of the two: its error follows from theirs, to first order.
    spread = probabilities * (1 - probabilities) * np.sqrt((error**2).sum(axis=1, keepdims=True))
    assert (np.abs(model.predict_proba(rows) - probabilities) < z * spread + 1e-9).all()
