"""What the bands can see, and how many quantities leave their own band by chance.

Power. Let the truth be N(0, 1) given the data, and the method's posterior N(δ, c²). Then the rank of the truth z among
the draws is Binomial(L, Φ((z − δ)/c)). The shift |δ|, and the factors c below and above 1, that leave the band in 80 %
of the runs say what `inside the band` excludes. A posterior of another shape, or one that is wrong for some data sets
only, can be further off.

Chance. The number of quantities outside their own 95 % bands has the mean .05·Q whatever hangs together, but not the
variance of Q independent ones: the quantities of one simulation are functions of the same θ and data. Its distribution
is simulated with Gaussian ranks that have the observed correlations (of the normal scores of the ranks, Q × Q).
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from bayes_gda.checks import Floats
from bayes_gda.validation.bands import band, cumulative
from bayes_gda.validation.ranks import bins_of, histogram

# A misfit counts as detectable if it leaves the band in this share of runs.
POWER = 0.8
# Simulated runs of each candidate misfit: the share has an error of .03, the detectable misfit one of about 3 %.
RUNS = 200
# Simulated runs for the number of quantities outside by chance; a probability of .05 has an error of .013.
CHANCE_RUNS = 300


@lru_cache(maxsize=64)
def detectable(N: int, draws: int, alpha: float) -> dict[str, float | None]:
    """Return the misfits that N simulations detect with probability 80 %.

    Parameters
    ----------
    N
        Number of simulations.
    draws
        Of each posterior, that the truth is ranked among.
    alpha
        Probability that right ranks leave the band.

    Returns
    -------
    `shift` in posterior sd; `narrow` and `wide`, the posterior's sd over the right one. None if nothing in reach is
    detected.
    """
    limits = band(N, bins_of(draws), alpha)

    def share(shift: float, factor: float) -> float:
        rng = np.random.default_rng(N)  # the same truths for each misfit
        z = rng.standard_normal((RUNS, N))
        inner = cumulative(histogram(rng.binomial(draws, ndtr((z - shift) / factor)), draws))
        return float(((inner < limits.lower) | (inner > limits.upper)).any(axis=-1).mean())

    def find(misfit: Callable[[float], tuple[float, float]], near: float, far: float) -> float | None:
        if share(*misfit(far)) < POWER:
            return None
        for _ in range(9):  # to 1/500 of the interval, finer than the error of the share
            middle = (near + far) / 2
            near, far = (near, middle) if share(*misfit(middle)) >= POWER else (middle, far)
        return round(far, 4)

    return {
        "shift": find(lambda x: (x, 1.0), 0.0, 1.5),
        "narrow": find(lambda x: (0.0, x), 1.0, 0.2),
        "wide": find(lambda x: (0.0, x), 1.0, 6.0),
    }


def chance_counts(ranks: NDArray[np.int64], draws: int, alpha: float, *, random_seed: int = 0) -> Floats:
    """Return the probabilities (most + 1,) that 0, 1, … of the Q quantities leave their own band if all are right.

    Parameters
    ----------
    ranks
        (N, Q) ranks as observed, for their correlations alone.
    draws
        Of each posterior, that the truth is ranked among.
    alpha
        Probability that right ranks leave their own band.
    random_seed
        Of the simulated runs.
    """
    N = len(ranks)
    limits = band(N, bins_of(draws), alpha)
    scores = ndtri((ranks + 0.5) / (draws + 1))
    scores = scores - scores.mean(axis=0)
    scores /= np.sqrt((scores**2).mean(axis=0))
    # S = U diag(l) Vᵀ: rows g diag(l) Vᵀ/√N with g standard normal have the covariance SᵀS/N, the correlations.
    _, length, V = np.linalg.svd(scores, full_matrices=False)
    root = length[:, None] * V / np.sqrt(N)
    rng, outside = np.random.default_rng(random_seed), np.empty(CHANCE_RUNS, dtype=np.int64)
    for i in range(CHANCE_RUNS):
        z = rng.standard_normal((N, len(root))) @ root
        new = np.minimum((ndtr(z) * (draws + 1)).astype(np.int64), draws)
        inner = cumulative(histogram(new.T, draws))
        outside[i] = ((inner < limits.lower) | (inner > limits.upper)).any(axis=-1).sum()
    return np.bincount(outside) / CHANCE_RUNS
