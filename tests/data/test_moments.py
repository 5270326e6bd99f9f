"""Sufficient statistics: against direct sums, in any order, far from the origin, with weights, and when rows leave."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_gda.data import moments as module
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError


def simulate(n=500, d=3, K=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) @ rng.normal(size=(d, d)) + rng.normal(size=d), rng.integers(0, K, n)


def by_definition(X, y, K, w=None):
    w = np.ones(len(X)) if w is None else w
    count = np.array([w[y == k].sum() for k in range(K)])
    mean = np.array([w[y == k] @ X[y == k] / max(count[k], 1e-300) for k in range(K)])
    scatter = np.array([((X[y == k] - mean[k]).T * w[y == k]) @ (X[y == k] - mean[k]) for k in range(K)])
    return count, mean, scatter


def assert_close(a, b, rtol=1e-10):
    count, mean, scatter = (b.count, b.mean, b.scatter) if isinstance(b, Moments) else b
    scale = np.abs(scatter).max() or 1.0
    np.testing.assert_allclose(a.count, count, rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(a.mean, mean, rtol=rtol, atol=1e-10)
    np.testing.assert_allclose(a.scatter, scatter, rtol=rtol, atol=rtol * scale)


def test_equals_the_definition():
    X, y = simulate()
    assert_close(Moments.from_arrays(X, y, 3), by_definition(X, y, 3))


def test_the_size_of_the_blocks_does_not_matter(monkeypatch):
    X, y = simulate()
    monkeypatch.setattr(module, "BLOCK", 7)
    assert_close(Moments.from_arrays(X, y, 3), by_definition(X, y, 3))


def test_an_integer_weight_counts_as_repeated_rows():
    X, y = simulate(80)
    weight = np.random.default_rng(1).integers(0, 4, 80)
    repeated = Moments.from_arrays(np.repeat(X, weight, axis=0), np.repeat(y, weight), 3)
    assert_close(Moments.from_arrays(X, y, 3, sample_weight=weight), repeated)


def test_fractional_weights_equal_the_definition():
    X, y = simulate(80)
    weight = np.random.default_rng(1).random(80)
    assert_close(Moments.from_arrays(X, y, 3, sample_weight=weight), by_definition(X, y, 3, weight))


def test_chunks_and_sums_equal_one_batch():
    X, y = simulate(1000)
    whole = Moments.from_arrays(X, y, 3)
    cuts = [0, 1, 10, 400, 1000]
    chunks = [(X[a:b], y[a:b]) for a, b in pairwise(cuts)]
    assert_close(Moments.from_chunks(iter(chunks), 3), whole)
    weight = np.random.default_rng(2).random(1000)
    weighted = [(X[a:b], y[a:b], weight[a:b]) for a, b in pairwise(cuts)]
    assert_close(Moments.from_chunks(iter(weighted), 3), Moments.from_arrays(X, y, 3, sample_weight=weight))
    assert_close(sum((Moments.from_arrays(*c, 3) for c in chunks), start=Moments.empty(3, 3)), whole)


@given(seed=st.integers(0, 10_000), cut=st.integers(1, 59))
def test_removing_what_was_added_gives_back_the_rest(seed, cut):
    X, y = simulate(60, seed=seed)
    first, second = Moments.from_arrays(X[:cut], y[:cut], 3), Moments.from_arrays(X[cut:], y[cut:], 3)
    rest = (first + second) - second
    assert_close(rest, first, rtol=1e-8)


def test_a_class_that_is_removed_entirely_is_empty_again():
    X, y = simulate(60)
    whole = Moments.from_arrays(X, y, 3)
    only = y == 1
    rest = whole - Moments.from_arrays(X[only], y[only], 3)
    assert rest.count[1] == 0
    np.testing.assert_array_equal(rest.scatter[1], 0)
    assert_close(rest, Moments.from_arrays(X[~only], y[~only], 3), rtol=1e-8)


def test_a_large_offset_does_not_cancel():
    # Mean 1e8, sd 1: the textbook's Σxxᵀ − n x̄x̄ᵀ has no correct digit left here.
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(20_000, 4)) * 2**20) / 2**20  # exact in float64 after the shift, too
    y = rng.integers(0, 2, 20_000)
    near, far = Moments.from_arrays(X, y, 2), Moments.from_arrays(X + 1e8, y, 2)
    error = np.abs(far.scatter - near.scatter).max() / np.diagonal(near.scatter, axis1=1, axis2=2).min()
    assert error < 1e-8
    naive = (X + 1e8).T @ (X + 1e8) - 20_000 * np.outer(*[(X + 1e8).mean(axis=0)] * 2)
    assert np.abs(naive - near.scatter.sum(axis=0)).max() > 1  # so the test can fail


def test_classes_far_apart_do_not_spoil_each_other():
    X, y = simulate(3000)
    shift = np.array([0.0, 1e8, -1e8])
    far = Moments.from_arrays(X + shift[y, None], y, 3)
    np.testing.assert_allclose(far.scatter, Moments.from_arrays(X, y, 3).scatter, rtol=1e-5, atol=1e-4)


def test_fortran_order_integers_and_booleans_are_welcome():
    X, y = simulate(100)
    assert_close(Moments.from_arrays(np.asfortranarray(X), y.astype(np.int8), 3), Moments.from_arrays(X, y, 3))
    flags = X > 0
    assert_close(Moments.from_arrays(flags, y, 3), Moments.from_arrays(flags.astype(float), y, 3))


def test_an_empty_class_has_count_zero():
    X, y = simulate(50, K=2)
    moments = Moments.from_arrays(X, y, 4)
    np.testing.assert_array_equal(moments.count[2:], 0)
    np.testing.assert_array_equal(moments.mean[2:], 0)


def test_inputs_are_not_changed_and_results_are_frozen():
    X, y = simulate(50)
    before = X.copy()
    moments = Moments.from_arrays(X, y, 3)
    np.testing.assert_array_equal(X, before)
    with pytest.raises(ValueError, match="read-only"):
        moments.mean[0, 0] = 1.0


X, y = simulate(10, d=2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Moments.from_arrays(X[:, 0], y, 3), r"`X` must be 2-d; got shape \(10,\)"),
        (lambda: Moments.from_arrays(X[:, :0], y, 3), r"must have a feature, at least one; got shape \(10, 0\)"),
        (lambda: Moments.from_arrays(X + 1j, y, 3), "must hold real numbers; got dtype complex128"),
        (lambda: Moments.from_arrays(X, y[:5], 3), r"one code a row, shape \(10,\); got \(5,\)"),
        (lambda: Moments.from_arrays(X, y * 1.0, 3), "integer class codes 0…2; got dtype float64"),
        (lambda: Moments.from_arrays(X, y + 5, 3), "`y` must lie in 0…2; got 6…7"),
        (lambda: Moments.from_arrays(X, np.where(np.arange(10) == 4, 3, 0), 3), "`y` must lie in 0…2; got 0…3"),
        (lambda: Moments.from_arrays(X * [1, np.inf], y, 3), "NaN or inf in column 1"),
        (lambda: Moments(np.ones(1), np.ones(1), np.ones((1, 1, 1))), "Moments need `count`"),
        (lambda: Moments(np.array([1.0, -2.0]), np.ones((2, 1)), np.ones((2, 1, 1))), "must not be negative; got -2"),
        (lambda: Moments.from_arrays(X * np.nan, y, 3), r"NaN or inf in column 0 \(10 rows\)"),
        (lambda: Moments.from_arrays(X * 1e200, y, 3), "squares overflow"),
        (lambda: Moments.from_arrays(X, y, 3, sample_weight=-np.ones(10)), "finite and not negative"),
        (lambda: Moments.from_arrays(X, y, 3, sample_weight=np.ones(3)), r"shape \(10,\); got \(3,\)"),
        (lambda: Moments.from_chunks(iter([]), 3), "iterator of chunks is empty"),
        (lambda: Moments.empty(3, 2) + Moments.empty(2, 2), "3 classes × 2 features do not combine with 2 × 2"),
        (lambda: Moments.empty(3, 2) - Moments.from_arrays(X, y, 3), "only rows that were added can be removed"),
        (
            lambda: Moments.from_arrays(X, y, 3) - Moments.from_arrays(X[:3] * 50, y[:3], 3),
            "negative sum of squares",
        ),
    ],
)
def test_bad_input_is_refused_with_one_line(call, message):
    with pytest.raises(DataError, match=message):
        call()


def test_weights_that_were_summed_in_another_order_are_gone_when_removed():
    """(.1 + .2) + .3 is .6000000000000001, and .3 + .2 + .1 is .6."""
    rows, scatter = np.array([[1.0, 2.0]]), np.zeros((1, 2, 2))
    less, more = (Moments(np.array([weight]), rows, scatter) for weight in (0.3 + 0.2 + 0.1, 0.1 + 0.2 + 0.3))
    assert less.count < more.count
    for a, b in ((less, more), (more, less)):
        left = a - b
        assert left.count == 0
        np.testing.assert_array_equal(left.mean, 0)
    with pytest.raises(DataError, match="only rows that were added can be removed"):
        less - Moments(np.array([0.6 + 1e-6]), rows, scatter)


def test_whole_rows_have_moments_rows_with_gaps_none_and_infinite_ones_an_error():
    whole, expected = Moments.of_whole_rows(X, y, 3), Moments.from_arrays(X, y, 3)
    np.testing.assert_array_equal(whole.scatter, expected.scatter)
    for where in ((3, 0), (9, 1)):
        gap = X.copy()
        gap[where] = np.nan
        assert Moments.of_whole_rows(gap, y, 3) is None
    gap[9, 1] = np.inf
    with pytest.raises(DataError, match=r"NaN or inf in column 1 \(1 rows\)"):
        Moments.of_whole_rows(gap, y, 3)


@pytest.mark.parametrize("distance", [1.0, 1.9, 5.0, 10.0, 19.0])
def test_a_mean_off_zero_costs_the_scatter_one_digit_at_most(distance, monkeypatch):
    """Integers, of which all sums are exact: z in ±1 and a mean of `distance` sd."""
    monkeypatch.setattr(module, "BLOCK", 64)
    z = np.random.default_rng(0).permutation(np.repeat([-1.0, 1.0], 1024))
    third = (z + distance) / 3  # no binary fraction
    scatter = Moments.from_arrays(third[:, None], np.zeros(2048, dtype=int), 1).scatter[0, 0, 0]
    assert scatter == pytest.approx(2048 / 9, rel=4e-15)
