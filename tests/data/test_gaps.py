"""Moments by pattern of missingness, against rows and textbook blocks."""

import numpy as np
from gaps import SHARED, brute_log_likelihood, each, remove, simulate

from bayes_gda.data.gaps import PatternMoments
from bayes_gda.data.moments import Moments


@SHARED
def test_log_likelihood_by_pattern_equals_row_by_row(shared):
    X, y = simulate(K=3)
    X = remove(X, 0.4)
    X[3] = np.nan
    rng = np.random.default_rng(1)
    mu, roots = rng.normal(size=(2, 3, 3)), rng.normal(size=(2, 3, 3, 5))
    Sigma = (roots @ np.swapaxes(roots, -1, -2))[:, 0 if shared else slice(None)]
    pi = rng.dirichlet(np.ones(3), size=2)
    got = PatternMoments.from_arrays(X, y, 3).log_likelihood(pi, mu, Sigma)
    want = [brute_log_likelihood(X, y, pi[s], mu[s], each(Sigma[s], 3)) for s in range(2)]
    np.testing.assert_allclose(got, want, rtol=1e-11)


def test_regression_on_what_is_observed_equals_the_textbook_blocks():
    X, y = simulate(d=4)
    data = PatternMoments.from_arrays(remove(X, 0.5), y, 2)
    Sigma = np.cov(X.T)
    A, C = data.regress(np.tile(Sigma, (len(data.label), 1, 1)))
    for g, o in enumerate(data.observed):
        B = Sigma[np.ix_(~o, o)] @ np.linalg.inv(Sigma[np.ix_(o, o)])
        np.testing.assert_allclose(A[g][np.ix_(~o, o)], B, atol=1e-12)
        np.testing.assert_allclose(A[g][np.ix_(o, o)], np.eye(o.sum()))
        np.testing.assert_allclose(C[g][np.ix_(~o, ~o)], Sigma[np.ix_(~o, ~o)] - B @ Sigma[np.ix_(o, ~o)], atol=1e-12)
        assert not A[g][:, ~o].any()
        assert not C[g][o].any()


def test_groups_hold_all_rows_and_merge_to_the_moments():
    X, y = simulate()
    data = PatternMoments.from_arrays(X, y, 2)
    whole = Moments.from_arrays(X, y, 2)
    mean, scatter = data.merge(data.mean, data.scatter)
    np.testing.assert_allclose(mean, whole.mean)
    np.testing.assert_allclose(scatter, whole.scatter)
    gapped = remove(X, 0.3)
    gapped[:2] = np.nan
    data = PatternMoments.from_arrays(gapped, y, 2)
    np.testing.assert_allclose(data.class_count, np.bincount(y))
    np.testing.assert_allclose(data.values, [(~np.isnan(gapped[y == k])).sum(axis=0) for k in (0, 1)])
    np.testing.assert_allclose(data.used_count, np.bincount(y[~np.isnan(gapped).all(axis=1)]))
