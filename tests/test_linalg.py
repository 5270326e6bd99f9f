"""The few helpers that all stations share: what they cut and solve is whole and right."""

import numpy as np
import pytest
import scipy.linalg

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
