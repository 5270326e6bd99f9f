"""Random design matrices of the verdict study, and what its cases share."""

import numpy as np

from bayes_gda.checks import Floats

# New and far rows that are judged, and at most as many training rows; far ones are so much farther from the centre.
JUDGED = 300
FAR = 3.0
# A verdict is false if the true error exceeds the tolerance by more than so many standard errors of the truth.
NOISE = 3.5


def design(kind: str, N: int, d: int, rng: np.random.Generator) -> Floats:
    """Return N rows of d features."""
    X = rng.standard_normal((N, d))
    if kind == "t3":
        X = rng.standard_t(3, (N, d))
    elif kind == "binary":
        X = (rng.random((N, d)) < rng.uniform(0.03, 0.5, d)).astype(float)
    elif kind == "rare":  # half of the features are levels of a few rows each
        X[:, ::2] = rng.random((N, len(range(0, d, 2)))) < rng.uniform(1, 4, len(range(0, d, 2))) / N
    elif kind == "corr":
        Z = rng.standard_normal((N, max(1, d // 3)))
        X = Z @ rng.standard_normal((Z.shape[1], d)) / np.sqrt(Z.shape[1]) + 0.4 * X
    return X


def largest(values: Floats, some: slice) -> float:
    """Return the largest |value| of some rows."""
    return float(np.abs(values[some]).max())
