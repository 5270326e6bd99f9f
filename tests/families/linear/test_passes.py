"""Sums over chunks against the same sums over all rows at once."""

from functools import reduce

import numpy as np
import pytest

from bayes_gda.data.large.layout import add
from bayes_gda.errors import DataError
from bayes_gda.families.linear.ep.certificate import judge_laplace
from bayes_gda.families.linear.ep.summed import judge_summed
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.passes import CHUNKED_PASSES, ChunkedTarget, chunked_laplace, chunked_variational
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.certificate import judge_softmax
from bayes_gda.families.linear.variational.summed import Kept, Seen
from bayes_gda.families.linear.variational.summed import judge_summed as judge_softmax_summed
from bayes_gda.priors import Normal


class Chunks:
    """Rows in chunks, which counts the passes."""

    def __init__(self, Phi, y, cuts):
        self.Phi, self.y, self.cuts, self.passes = Phi, y, cuts, []

    def sum(self, function):
        self.passes.append(1)
        parts = np.split(np.arange(len(self.y)), self.cuts)
        return reduce(add, (function(self.Phi[rows], self.y[rows]) for rows in parts))


def case(K, n=900, m=4):
    rng = np.random.default_rng(K)
    Phi = np.column_stack([np.ones(n), rng.normal(size=(n, m - 1))])
    scores = Phi @ rng.normal(size=(m, K)) + rng.gumbel(size=(n, K))
    y = scores.argmax(axis=1)
    prior = Normal(mean=np.linspace(-1, 1, m), scale=np.linspace(1, 3, m))
    whole = LogisticTarget(Phi, y, prior) if K == 2 else SoftmaxTarget(Phi, y, K, prior)
    source = Chunks(Phi, y, [100, 101, 500])
    return ChunkedTarget(source, lambda X: X, m, K, prior), whole, source.passes


@pytest.mark.parametrize("K", [2, 3])
def test_every_sum_is_that_of_all_rows(K):
    target, whole, passes = case(K)
    rng = np.random.default_rng(1)
    assert target.dim == whole.dim
    W, V = rng.normal(size=(3, whole.dim)), np.cov(rng.normal(size=(whole.dim, 50)))
    for ask, args in [
        ("log_density", (W,)),
        ("log_density", (W[0],)),
        ("log_likelihood", (W,)),
        ("gradient", (W[0],)),
        ("precision", (W[0],)),
        ("third_order_trace", (W[0], V)),
        ("third_order_form", (W[0], W)),
    ]:
        found, truth = getattr(target, ask)(*args), getattr(whole, ask)(*args)
        assert np.shape(found) == np.shape(truth)
        np.testing.assert_allclose(found, truth, rtol=1e-10, atol=1e-9)
    passes.clear()
    for a, b in zip(target.value_gradient_precision(W[0]), whole.value_gradient_precision(W[0]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-9)
    assert len(passes) == 1


@pytest.mark.parametrize("K", [2, 3])
def test_laplace_is_that_of_all_rows_in_few_passes(K):
    target, whole, passes = case(K, n=20_000)
    truth = regression_laplace(whole)
    found = chunked_laplace(target)
    many = len(passes)
    passes.clear()
    some = (whole.Phi[::10], whole.y[::10].astype(np.intp))
    started = chunked_laplace(target, some, 20_000)
    for posterior in (found, started):
        np.testing.assert_allclose(posterior.mean, truth.mean, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(posterior.chol_precision, truth.chol_precision, rtol=1e-6, atol=1e-6)
        assert posterior.log_evidence == pytest.approx(truth.log_evidence, rel=1e-10)
    assert len(passes) <= 5 < many


@pytest.mark.parametrize(("n", "rare"), [(900, False), (30_000, False), (30_000, True)])
def test_the_certificate_of_sums_is_that_of_all_rows(n, rare):
    target, whole, passes = case(2, n=n)
    if rare:  # a level of three rows, whose activations are wide
        Phi = whole.Phi.copy()
        Phi[:, 3] = 0
        Phi[[5, 700, 20_000], 3] = 1
        whole = LogisticTarget(Phi, whole.y, whole.prior)
        target = ChunkedTarget(Chunks(Phi, whole.y.astype(np.intp), [100, 101, 500]), np.asarray, 4, 2, whole.prior)
        passes = target.source.passes
    laplace = regression_laplace(whole)
    posterior, truth, of_rows = judge_laplace(whole, laplace)
    spread = whole.Phi[:: n // 300]
    passes.clear()
    found, of_new = judge_summed(target.sum, n, laplace, posterior, spread)
    assert len(passes) == 1 + (n < 1000 or rare)  # the third cumulants have one of their own where they matter
    assert found.shift.rows == n
    assert found.shift.which == "training"
    for name in ("largest", "link_largest", "flips"):
        assert getattr(found.shift, name) == pytest.approx(getattr(truth.shift, name), rel=1e-9)
    assert found.shift.typical == pytest.approx(truth.shift.typical, rel=0.3)
    assert found.certificate == pytest.approx(truth.certificate, rel=0.3)  # a sketch of fewer pairs
    assert found.log_evidence == pytest.approx(truth.log_evidence, abs=max(truth.log_evidence_error, 1e-4))
    rows = np.vstack([spread, 4 * spread])
    np.testing.assert_allclose(of_new.errors(rows)[0], of_rows.errors(rows)[0], rtol=0.6, atol=1e-5)


@pytest.mark.parametrize("n", [600, 20_000])
def test_the_variational_gaussian_of_sums_is_that_of_all_rows(n):
    """Softmax: the same passes, and a certificate from a sample of the rows where these are many."""
    target, whole, passes = case(3, n=n)
    laplace = regression_laplace(whole)
    posterior, truth, of_rows = judge_softmax(whole, laplace)
    passes.clear()
    found = chunked_variational(target, laplace)
    assert len(passes) == found.info.n_iter == posterior.info.n_iter <= CHUNKED_PASSES
    np.testing.assert_allclose(found.mean, posterior.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found.chol_precision, posterior.chol_precision, rtol=1e-6, atol=1e-6)
    spread = target.of_rows(whole.Phi[:: n // 300], whole.y[:: n // 300])
    passes.clear()
    evidence, of_new = judge_softmax_summed(target.sum, 3, laplace, found, spread)
    assert len(passes) == 1
    assert (evidence.shift.rows, evidence.shift.which) == (n, "training")
    for name in ("largest", "flips"):
        assert getattr(evidence.shift, name) == pytest.approx(getattr(truth.shift, name), rel=1e-6)
    assert evidence.shift.link_largest >= truth.shift.link_largest * (1 - 1e-9)  # more rows are looked at, not fewer
    assert evidence.shift.typical == pytest.approx(truth.shift.typical, rel=0.3)
    assert evidence.certificate == pytest.approx(truth.certificate, rel=0.3)
    assert evidence.log_evidence == pytest.approx(truth.log_evidence, abs=0.5 * truth.log_evidence_error)
    rows = np.vstack([spread.Phi, 4 * spread.Phi])
    np.testing.assert_allclose(of_new.errors(rows)[0], of_rows.errors(rows)[0], rtol=0.3, atol=1e-5)


def test_a_sample_by_priority_is_unbiased():
    """Sums over the sample are those over all rows on average, however the rows are cut into chunks."""
    rng = np.random.default_rng(0)
    n, most = 400, 40
    size = rng.gamma(0.3, size=n)
    values = np.column_stack([np.ones(n), size, rng.normal(size=n) * size])
    sums = []
    for _ in range(2000):
        rank = size / (1 - rng.random(n))
        pieces = [Kept(values[i : i + 70], size[i : i + 70], rank[i : i + 70]) for i in range(0, n, 70)]
        sample = reduce(lambda a, b: a.joined(b, most + 1), pieces)
        drawn, counts = Seen(n, 0, 0.0, 0.0, sample, sample).drawn(most)
        assert len(drawn) == most
        sums.append(counts @ drawn)
    error = np.std(sums, axis=0) / np.sqrt(len(sums))
    np.testing.assert_array_less(np.abs(np.mean(sums, axis=0) - values.sum(axis=0)), 4 * error)
    # Szegedy (2006): the sum of the sizes themselves has a standard error of at most a share 1/√(k − 1).
    assert np.std(sums, axis=0)[1] < values[:, 1].sum() / np.sqrt(most - 1)


def test_many_rows_in_memory_are_judged_by_sums(monkeypatch):
    _, whole, _ = case(2, n=4000)
    laplace = regression_laplace(whole)
    few = judge_laplace(whole, laplace)
    monkeypatch.setattr("bayes_gda.families.linear.ep.logistic.STORED_ROWS", 1000)
    many = judge_laplace(whole, laplace)
    np.testing.assert_allclose(many[0].mean, few[0].mean, atol=1e-3 * few[0].sd.max())
    assert many[1].shift.largest == pytest.approx(few[1].shift.largest, rel=0.1)
    assert many[1].laplace_error == pytest.approx(few[1].laplace_error, rel=0.3)


def test_a_flat_prior_is_refused():
    with pytest.raises(DataError, match="`prior` must be proper"):
        ChunkedTarget(Chunks(np.ones((2, 2)), np.ones(2), []), np.asarray, 2, 2, Normal(scale=np.inf))
