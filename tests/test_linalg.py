"""The few helpers that all stations share: what they cut and solve is whole and right."""

import threading

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from bayes_gda import linalg


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 4000)])
@pytest.mark.parametrize("transposed", [False, True])
def test_triangular_solves_are_scipys(shape, transposed):
    rng = np.random.default_rng(0)
    L = np.tril(rng.normal(size=(5, 5))) + 5 * np.eye(5)
    B = rng.normal(size=shape)
    found = linalg.solve_triangular(L, B, transposed=transposed)
    np.testing.assert_array_equal(found, scipy.linalg.solve_triangular(L, B, lower=True, trans=int(transposed)))


@pytest.mark.parametrize("n", [10, 10**6])
@pytest.mark.parametrize("S", [1, 100, 512, 513, 4000])
def test_draws_are_cut_into_parts_that_cover_them(S, n):
    parts = linalg.draw_parts(S, n)
    assert np.concatenate([np.arange(S)[part] for part in parts]).tolist() == list(range(S))
    assert max(part.stop - part.start for part in parts) <= linalg.BLOCK_DRAWS
    if (S, n) == (512, 10**6):
        assert len(parts) == linalg.PARTS


def test_triangular_solves_are_those_of_scipy():
    rng = np.random.default_rng(0)
    for m in (1, 5, 40):
        L = np.linalg.cholesky(np.cov(rng.normal(size=(m, 3 * m + 2))).reshape(m, m) + np.eye(m))
        for factor in (L, np.asfortranarray(L)):
            for B in (rng.normal(size=m), rng.normal(size=(m, 3)), np.eye(m)):
                for transposed in (False, True):
                    truth = scipy.linalg.solve_triangular(L, B, lower=True, trans="T" if transposed else "N")
                    kept = B.copy()
                    np.testing.assert_allclose(
                        linalg.solve_triangular(factor, B, transposed=transposed), truth, rtol=1e-12
                    )
                    np.testing.assert_array_equal(B, kept)
    with pytest.raises(np.linalg.LinAlgError, match="entry 1 of the diagonal is 0"):
        linalg.solve_triangular(np.array([[1.0, 0.0], [2.0, 0.0]]), np.ones(2))


@pytest.mark.parametrize("m", [3, 96, 130])
def test_linear_and_quadratic_forms(m):
    rng = np.random.default_rng(m)
    Phi, w = rng.normal(size=(50, m)), rng.normal(size=m)
    for root in (rng.normal(size=(m, m)), np.triu(rng.normal(size=(m, m)))):
        linear, quadratic = linalg.linear_and_quadratic(Phi, w, root)
        np.testing.assert_allclose(linear, Phi @ w, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(quadratic, ((Phi @ root) ** 2).sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_columns_that_are_sums_of_others_are_found_with_their_coefficients(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(80, 6)) * 10.0 ** rng.uniform(-6, 6, size=6)
    size = A.std(axis=0)
    first = 3 * A[:, 0] / size[0] - 2 * A[:, 4] / size[4]
    second = first + A[:, 5] / size[5]
    X = np.column_stack([A[:, :3], A[:, 3:], first, second, rng.normal(size=80)])
    sums = linalg.dependent_columns(X, tolerance=1e-9)
    assert sorted(sums) == [6, 7]
    for j, coefficients in sums.items():
        assert not coefficients[[6, 7]].any()
        np.testing.assert_allclose(X @ coefficients, X[:, j], rtol=1e-8, atol=1e-8)
    assert linalg.dependent_columns(rng.normal(size=(80, 60)), tolerance=1e-9) == {}
    near = np.column_stack([A, A[:, 0] + 1e-3 * size[0] * rng.normal(size=80)])
    assert linalg.dependent_columns(near, tolerance=1e-9) == {}


def test_the_limit_is_given_back_whoever_has_limited_blas_meanwhile():
    """threadpoolctl lets only the last thread that set a limit set another: ours would stay in force for good."""
    inside, leave = threading.Event(), threading.Event()

    def limit_as_well():
        with threadpool_limits(1, user_api="blas"):
            inside.set()
            leave.wait(20)

    def counts():
        return {line["num_threads"] for line in threadpool_info() if line["user_api"] == "blas"}

    with threadpool_limits(2, user_api="blas"):
        other = threading.Thread(target=limit_as_well)
        with linalg.one_blas_thread():
            other.start()
            assert inside.wait(20)
        assert counts() == {2}
        leave.set()
        other.join()
