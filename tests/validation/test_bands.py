"""Bands held to full enumeration, to simulation and to ArviZ's."""

from itertools import product
from math import factorial

import numpy as np
import pytest
from arviz_stats.ecdf_utils import get_pointwise_confidence_band, simulate_confidence_bands
from scipy import stats

from bayes_gda.validation.bands import _tails, band, cumulative, p_value, smallest_tail


def all_histograms(N, bins):
    return [np.array(c) for c in product(range(N + 1), repeat=bins) if sum(c) == N]


def probability(counts):
    N = counts.sum()
    return factorial(N) / np.prod([factorial(c) for c in counts]) / len(counts) ** N


def test_p_values_are_those_of_full_enumeration():
    every = all_histograms(6, 4)
    tails = np.array([smallest_tail(c) for c in every])
    weights = np.array([probability(c) for c in every])
    assert weights.sum() == pytest.approx(1)
    for counts, tail in zip(every, tails, strict=True):
        # Symmetric edges have equal tails up to rounding.
        assert p_value(counts) == pytest.approx(weights[tails <= tail * (1 + 1e-9)].sum(), abs=1e-9)


def test_the_band_is_left_with_the_probability_that_it_says():
    N, bins, alpha = 100, 50, 0.05
    counts = np.random.default_rng(1).multinomial(N, np.full(bins, 1 / bins), size=20_000)
    inner = cumulative(counts)
    limits = band(N, bins, alpha)
    left = ((inner < limits.lower) | (inner > limits.upper)).any(axis=1)
    # The steps of a discrete statistic leave the band a little on the safe side.
    assert 0.04 < left.mean() < alpha + 4 * np.sqrt(alpha * (1 - alpha) / len(left))
    some = counts[:300]
    assert [bool(p_value(c) <= alpha) for c in some] == left[:300].tolist()


@pytest.mark.parametrize("N", [60, 200])
def test_the_band_is_that_of_arviz(N):
    """ArviZ finds the level by simulation, so that its edges may lie a count beside ours."""
    points = np.arange(1, 50) / 50
    level = simulate_confidence_bands(N, 1, points, 0.95, 2000, np.random.default_rng(2))
    lower, upper = get_pointwise_confidence_band(level, N, points)
    limits = band(N, 50, 0.05)
    assert np.abs(N * lower - limits.lower).max() < 1.5
    assert np.abs(N * upper - limits.upper).max() < 1.5


def test_small_tails_are_not_rounded_away():
    low, high = _tails(1000, 50)
    assert high[24, 700] == pytest.approx(stats.binom.sf(699, 1000, 0.5), rel=1e-8)
    assert low[24, 300] == pytest.approx(stats.binom.cdf(300, 1000, 0.5), rel=1e-8)
    assert high[24, 700] < 1e-30


def test_a_single_bin_with_all_ranks_is_far_outside():
    counts = np.zeros(50, dtype=int)
    counts[0] = 100
    assert p_value(counts) < 1e-12
