"""Simultaneous bands for the ECDF of ranks, and how improbable it is that one leaves them.

Under a correct posterior the number C_j of N ranks in the first j of J equal bins is Binomial(N, j/J). How far out the
ECDF goes is measured by the smallest of all pointwise tail probabilities,

    T = min_j min(P(C_j ≤ c_j), P(C_j ≥ c_j)),

and the band of level 1 − α holds the counts with T above its α quantile. This is the band of Säilynoja, Bürkner and
Vehtari (2022) that ArviZ draws. ArviZ finds the quantile by simulation; with some hundred quantities to judge together
α is 10⁻⁵, which takes millions of them, so it is computed here. The paths of the counts are those of independent
Poisson increments given their sum, so that the probability of staying inside is a chain of convolutions:

    P(l_j ≤ C_j ≤ u_j for all j) = [Poisson steps, cut to l_j…u_j after each](N) / Poisson(N | N)
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, gammaln

from bayes_gda.checks import Floats

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """Smallest and largest counts (J − 1,) that are inside, at the inner edges of the bins."""

    lower: Counts
    upper: Counts


def cumulative(counts: Counts) -> Counts:
    """Return C_j (J − 1,) at the inner edges of J bins."""
    return np.cumsum(counts, axis=-1)[..., :-1]


def smallest_tail(counts: Counts) -> float:
    """Return T of the numbers of ranks (J,) in each bin."""
    low, high = _tails(int(counts.sum()), len(counts))
    edges, C = np.arange(len(counts) - 1), cumulative(counts)
    return float(min(low[edges, C].min(), high[edges, C].min()))


def p_value(counts: Counts) -> float:
    """Return the probability that uniform ranks go as far out as these (J,): P(T ≤ T observed)."""
    N, J = int(counts.sum()), len(counts)
    return float(max(1 - _inside(_band(N, J, smallest_tail(counts)), N, J), 0.0))


@lru_cache(maxsize=256)
def band(N: int, bins: int, alpha: float) -> Band:
    """Return the band that the ECDF of N uniform ranks leaves with probability at most α.

    Parameters
    ----------
    N
        Number of ranks.
    bins
        J, number of equal bins.
    alpha
        Probability of leaving it anywhere.
    """
    # T is at least α/2J, the bound of Bonferroni over edges and sides, and at most α/2 up to its steps.
    below, above = alpha / (4 * bins), alpha
    for _ in range(40):  # to a part in 10¹², far finer than the steps of T
        middle = float(np.sqrt(below * above))
        left = 1 - _inside(_band(N, bins, middle), N, bins)
        below, above = (middle, above) if left <= alpha else (below, middle)
    return _band(N, bins, below)


@lru_cache(maxsize=8)
def _tails(N: int, bins: int) -> tuple[Floats, Floats]:
    """Return P(C_j ≤ c) and P(C_j ≥ c), (J − 1, N + 1) each."""
    c, p = np.arange(N + 1), np.arange(1, bins)[:, None] / bins
    low = bdtr(c.astype(float), N, p)
    # P(C ≥ c) by the mirror image, not as 1 − P(C ≤ c − 1), which rounds small tails away.
    return low, low[::-1, ::-1]


def _band(N: int, bins: int, t: float) -> Band:
    """Return the counts whose tails both exceed t."""
    low, high = _tails(N, bins)
    return Band((low > t).argmax(axis=1), N - (high > t)[:, ::-1].argmax(axis=1))


def _inside(band: Band, N: int, bins: int) -> float:
    """Return the probability that all counts are inside a band."""
    steps = np.arange(N + 1)
    log_rate = np.log(N / bins)
    step = np.exp(steps * log_rate - N / bins - gammaln(steps + 1))
    state, first = np.ones(1), 0
    for low, high in zip([*band.lower, N], [*band.upper, N], strict=True):
        if high < low:
            return 0.0
        state = np.convolve(state, step[: high - first + 1])[low - first : high - first + 1]
        first = low
    total = np.exp(N * np.log(N) - N - gammaln(N + 1))
    return float(state[0] / total)
