"""What was observed feature by feature, against counting and NumPy's means column by column."""

import numpy as np
import pytest
from gaps import remove, simulate

from bayes_gda.data.gaps import ObservedCounts, PatternMoments, has_gaps, moments_by_feature
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.priors import NIG, NIW
from bayes_gda.priors.defaults import default_nig, default_niw, default_prior

X, Y = simulate(n=50, d=3, K=2, seed=0)
GAPS = remove(X, 0.3)
GAPS[2] = np.nan


def test_moments_are_those_of_each_column():
    values, mean, squares = PatternMoments.from_arrays(GAPS, Y, 2).by_feature()
    for j, part in enumerate(moments_by_feature(GAPS, Y, 2)):
        for k in range(2):
            column = GAPS[(k == Y) & ~np.isnan(GAPS[:, j]), j]
            for found in ((values, mean, squares), (part.count[:, None], part.mean, part.scatter[:, 0])):
                n, m, s = (each[k, min(j, each.shape[1] - 1)] for each in found)
                np.testing.assert_allclose([n, m, s], [len(column), column.mean(), column.var() * len(column)])


def test_without_gaps_the_default_priors_are_the_usual_ones():
    moments = Moments.from_arrays(X, Y, 2)
    for ours, usual in ((default_niw(X, Y, 2), NIW.default(moments)), (default_nig(X, Y, 2), NIG.default(moments))):
        for name in usual.__slots__:
            np.testing.assert_allclose(getattr(ours, name), getattr(usual, name))


def test_with_gaps_the_scale_is_that_of_complete_rows_and_of_no_correlations_without_any():
    prior, each = default_niw(GAPS, Y, 2), default_nig(GAPS, Y, 2)
    whole = ~np.isnan(GAPS).any(axis=1)
    moments = Moments.from_arrays(GAPS[whole], Y[whole], 2)
    complete = NIW.default(moments)
    variance = np.diagonal(moments.scatter.sum(axis=0)) / (moments.n - 2)
    scale = np.diag(complete.Psi) / variance
    np.testing.assert_allclose(np.diag(prior.Psi), scale * each.b / each.a)
    nothing_whole = GAPS.copy()
    nothing_whole[np.arange(len(X)), np.arange(len(X)) % 3] = np.nan
    prior, each = default_niw(nothing_whole, Y, 2), default_nig(nothing_whole, Y, 2)
    np.testing.assert_allclose(prior.Psi, np.diag(prior.nu * each.b / each.a))


def test_gaps_are_seen_and_large_numbers_are_none():
    assert has_gaps(GAPS)
    assert not has_gaps(X)
    assert not has_gaps(np.full((2, 2), 1e308))  # whose sum overflows


def test_counts_are_checked():
    counts = ObservedCounts(np.array([3.0, 2.0]), np.array([[3.0, 1.0, 0.0], [2.0, 2.0, 2.0]]))
    assert (counts.K, counts.d, counts.n) == (2, 3, 5.0)
    with pytest.raises(DataError, match=r"`count` \(K,\) and `values` \(K, d\); got \(2,\) and \(3, 1\)"):
        ObservedCounts(np.ones(2), np.ones((3, 1)))
    with pytest.raises(DataError, match="nor more than the rows"):
        ObservedCounts(np.ones(2), np.full((2, 1), 2.0))


@pytest.mark.parametrize("values", [(1e300, 1e300), (1.0, 1e300)])
def test_means_whose_squares_overflow_are_refused_without_a_warning(values):
    moments = Moments(np.ones(2), np.array(values)[:, None], np.zeros((2, 1, 1)))
    with pytest.raises(DataError, match="`X` is too large: its squares overflow float64"):
        default_prior(moments, NIW)
