"""Rank-one updates against the batch formulas, over random sequences and long ones."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.families.gaussian.streaming import StreamingGaussian, StreamingNaive
from bayes_gda.priors import NIG, NIW, Dirichlet

KINDS = ("shared", "own", "diagonal")
every_kind = pytest.mark.parametrize("kind", KINDS)


def prior_of(kind, K, d):
    if kind == "diagonal":
        return NIGPosterior.from_prior(NIG(np.full(d, 0.3), 0.1, 1.5, 0.7), Dirichlet(), K)
    niw = NIW(np.full(d, 0.3), 0.1, np.eye(d) + 0.3, d + 2.0)
    return NIWPosterior.from_prior(niw, Dirichlet(), K, shared=kind == "shared")


def stream_of(kind, K, d):
    return (StreamingNaive if kind == "diagonal" else StreamingGaussian)(prior_of(kind, K, d))


def rows(n, K, d, seed):
    rng = np.random.default_rng(seed)
    mix = rng.normal(size=(d, d)) + 2 * np.eye(d)
    y = rng.integers(0, K, n)
    return 3.0 + rng.normal(size=(n, d)) @ mix + y[:, None], y


def assert_equal(found, truth, rtol):
    for name in ("m", "kappa", "alpha", *(("a", "b") if isinstance(truth, NIGPosterior) else ("Psi", "nu"))):
        expected = getattr(truth, name)
        np.testing.assert_allclose(getattr(found, name), expected, rtol=rtol, atol=rtol * np.abs(expected).max())
    assert found.log_evidence == pytest.approx(truth.log_evidence, rel=rtol, abs=rtol)


@every_kind
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 5), st.integers(2, 4), st.integers(0, 2**32 - 1), st.data())
def test_any_sequence_of_updates_and_removals_is_one_batch(kind, d, K, seed, data):
    X, y = rows(12, K, d, seed)
    stream, inside = stream_of(kind, K, d), []
    for _ in range(data.draw(st.integers(1, 40))):
        i = data.draw(st.integers(0, len(X) - 1))
        if i in inside:
            stream.remove(X[i], y[i])
            inside.remove(i)
        else:
            stream.update(X[i], int(y[i]))
            inside.append(i)
    truth = prior_of(kind, K, d).update(Moments.from_arrays(X[inside], y[inside], K))
    assert_equal(stream.posterior, truth, 1e-10)
    np.testing.assert_allclose(stream.log_joint(X[0]), truth.log_joint(X[:1])[0], rtol=1e-10)
    np.testing.assert_array_equal(stream.count, np.bincount(y[inside], minlength=K))


@pytest.mark.parametrize(
    "kind", ["own", pytest.param("shared", marks=pytest.mark.slow), pytest.param("diagonal", marks=pytest.mark.slow)]
)
def test_a_hundred_thousand_updates_do_not_drift(kind):
    """One window of 100 rows moves over 50 000: as many removals as updates, and the rows of the last remain."""
    n, window = 50_000, 100
    X, y = rows(n, 2, 3, 1)
    stream = stream_of(kind, 2, 3)
    for i in range(n):
        stream.update(X[i], y[i])
        if i >= window:
            stream.remove(X[i - window], y[i - window])
    truth = prior_of(kind, 2, 3).update(Moments.from_arrays(X[-window:], y[-window:], 2))
    assert_equal(stream.posterior, truth, 1e-8)
    np.testing.assert_allclose(stream.log_joint(X[0]), truth.log_joint(X[:1])[0], rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["shared", "own"])
def test_nor_do_they_in_thirty_dimensions(kind):
    n = 100_000
    X, y = rows(n, 3, 30, 2)
    stream = stream_of(kind, 3, 30)
    for i in range(n):
        stream.update(X[i], y[i])
    assert_equal(stream.posterior, prior_of(kind, 3, 30).update(Moments.from_arrays(X, y, 3)), 1e-8)


@every_kind
def test_the_evidence_is_the_product_of_the_predictions(kind):
    X, y = rows(30, 2, 3, 3)
    stream, total = stream_of(kind, 2, 3), 0.0
    for x, k in zip(X, y, strict=True):
        total += stream.log_joint(x)[k]
        stream.update(x, k)
    assert stream.log_evidence == pytest.approx(total, rel=1e-12)


@every_kind
def test_what_was_never_learnt_is_refused_and_nothing_changes(kind):
    X, y = rows(20, 2, 3, 4)
    stream = stream_of(kind, 2, 3)
    with pytest.raises(DataError, match="Class 0 has 0 rows"):
        stream.remove(X[0], 0)
    for x, k in zip(X, y, strict=True):
        stream.update(x, k)
    before = stream.posterior
    with pytest.raises(DataError, match="never learnt"):
        stream.remove(X[0] + 1e3, y[0])
    assert_equal(stream.posterior, before, 0)
    with pytest.raises(DataError, match="one row of 3 finite numbers"):
        stream.update([1.0, np.nan, 0.0], 0)
    with pytest.raises(DataError, match="one row of 3 finite numbers"):
        stream.log_joint(X)
    for bad in (2, -1, 0.5, True):
        with pytest.raises(DataError, match="`y` must be a class code in 0…1"):
            stream.update(X[0], bad)


def test_it_goes_on_from_a_batch_and_takes_its_rows_out():
    X, y = rows(50, 2, 3, 5)
    whole = prior_of("own", 2, 3).update(Moments.from_arrays(X, y, 2))
    stream = StreamingGaussian(whole, np.bincount(y))
    for x, k in zip(X[:20], y[:20], strict=True):
        stream.remove(x, k)
    assert_equal(stream.posterior, prior_of("own", 2, 3).update(Moments.from_arrays(X[20:], y[20:], 2)), 1e-10)
