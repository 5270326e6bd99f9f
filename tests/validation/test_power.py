"""Power held to the best test that there is, and chance counts to cases that are known."""

import numpy as np
import pytest
from scipy import stats

from bayes_gda.validation.power import chance_counts, detectable
from bayes_gda.validation.ranks import histogram

DRAWS = 99


@pytest.mark.parametrize("alpha", [0.05, 1e-5])
def test_a_detectable_shift_is_a_little_more_than_that_of_the_best_test(alpha):
    """The z test of a mean is the most powerful one; the band looks for anything at once."""
    found = detectable(300, DRAWS, alpha)
    best = (stats.norm.isf(alpha / 2) + stats.norm.isf(0.2)) / np.sqrt(300)
    assert best < found["shift"] < 1.5 * best
    assert found["narrow"] < 1 < found["wide"]
    # The χ² test of a variance, whose power is .8 where ratio · χ²(.2) = χ²(1 − α): of spreads 1/c and c.
    wide = np.sqrt(stats.chi2.isf(0.2, 300) / stats.chi2.ppf(alpha / 2, 300))
    assert found["wide"] > wide


def test_more_simulations_see_smaller_errors():
    few, many = detectable(100, DRAWS, 0.05), detectable(400, DRAWS, 0.05)
    assert many["shift"] == pytest.approx(few["shift"] / 2, rel=0.2)
    assert few["narrow"] < many["narrow"]


def test_what_so_few_cannot_see_is_none():
    assert detectable(8, DRAWS, 1e-5) == {"shift": None, "narrow": None, "wide": None}


def test_independent_quantities_leave_their_bands_as_a_binomial_number():
    ranks = np.random.default_rng(1).integers(DRAWS + 1, size=(400, 20))
    p = chance_counts(ranks, DRAWS, 0.05)
    k = np.arange(len(p))
    mean = p @ k
    assert p.sum() == pytest.approx(1)
    assert mean == pytest.approx(1.0, abs=0.25)
    assert p @ (k - mean) ** 2 == pytest.approx(0.95, rel=0.35)


def test_copies_of_one_quantity_leave_together():
    one = np.random.default_rng(2).integers(DRAWS + 1, size=(400, 1))
    p = chance_counts(np.repeat(one, 10, axis=1), DRAWS, 0.05)
    assert p[1:10].sum() == 0
    assert 0.01 < p[10] < 0.1


def test_histograms_count_every_rank():
    ranks = np.array([[0, 1, 2, 99], [50, 50, 51, 98]])
    counts = histogram(ranks, DRAWS)
    assert counts.sum(axis=1).tolist() == [4, 4]
    assert counts[0, [0, 1, 49]].tolist() == [2, 1, 1]
    assert counts[1, [25, 49]].tolist() == [3, 1]
