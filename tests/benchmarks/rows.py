"""The data that the groups measure on."""

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset

# Squared distance of two class means in standard deviations: near 0.8 right of two classes, so that no model is
# separated and none is trivial.
DISTANCE = 3.0


def gaussian_rows(n: int, d: int, K: int = 2) -> tuple[Floats, np.ndarray]:
    """Return n rows (n, d) of K Gaussian classes that overlap, and their codes (n,)."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % K
    centre = rng.standard_normal((K, d)) * np.sqrt(DISTANCE / (2 * d))
    X = np.empty((n, d))
    rng.standard_normal(out=X)
    for k in range(K):
        X[k::K] += centre[k]
    return X, y


def correlated_rows(n: int) -> Dataset:
    """Return n rows of three correlated classes in four dimensions, on which the samplers are compared."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, 4)) + 2 * rng.standard_normal((3, 4))[y]
    return Dataset.from_arrays(X, y)


def power(n: int) -> str:
    """10 000 as 10⁴; numbers that are no power of ten as they are."""
    digits = len(str(n)) - 1
    return (
        f"10{str(digits).translate(str.maketrans('0123456789', '⁰¹²³⁴⁵⁶⁷⁸⁹'))}" if n == 10**digits >= 1000 else str(n)
    )
