"""Moments against the matrix product that any method must at least pay for, in one run.

X.T @ X      one pass over the data at full speed, without classes or means
Moments      counts, means and scatter matrices of three classes, centred
"""

import numpy as np
import pytest
from benchmarks.timing import alternate, report

from bayes_gda.data.moments import Moments


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.standard_normal((1_000_000, 30)), rng.integers(0, 3, 1_000_000)


def test_moments_of_a_million_rows(benchmark, rows):
    X, y = rows
    Moments.from_arrays(X, y, 3)
    seconds = alternate({"X.T @ X": lambda: X.T @ X, "Moments": lambda: Moments.from_arrays(X, y, 3)})
    ratio = seconds["Moments"] / seconds["X.T @ X"]
    report(benchmark, "Moments / X.T @ X on 1 000 000 × 30, K = 3", ratio, 2.5, seconds)
    benchmark.pedantic(Moments.from_arrays, args=(X, y, 3), rounds=5)
