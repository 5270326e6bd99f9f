"""Ranks of true values among posterior draws, and the test that they are uniform.

If θ ~ p(θ) and data ~ p(data | θ), then θ is one more draw of p(θ | data). The rank of any f(θ, data) among L draws of
it is uniform on 0…L, for parameters, for predicted probabilities and for the log likelihood alike (Talts et al. 2018;
the log likelihood also sees a method that ignores the data, Modrák et al. 2023).

How far a posterior is off is said in its own standard deviations. With z = Φ⁻¹((rank + ½)/(L + 1)), the mean of z says
how far the truth lies above the posterior, in posterior sd, and the sd of z is the true spread over the posterior's.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.validation.bands import Counts, band, cumulative, p_value

# Ranks are counted in at most so many bins: what a page can show, and the edges still see the outermost fiftieth.
MOST_BINS, LEAST_BINS = 50, 10
# A shift or a spread is put in words from three standard errors on.
ERRORS = 3.0
# Matrices that are symmetric in every draw: what stands above their diagonal is the same number as below it.
SYMMETRIC = frozenset({"Sigma"})


@dataclass(frozen=True, slots=True, eq=False)
class RankTest:
    """Whether the ranks of one quantity are uniform, and if not, in what way the posterior is wrong.

    Parameters
    ----------
    name
        Of the quantity.
    counts
        (J,) ranks in each of J equal bins.
    p_value
        Probability that the ECDF of uniform ranks goes as far out as this one.
    difference, at
        Largest distance of the ECDF from that of uniform ranks, with its sign, and the share of the ranks at which.
    shift
        How far the truth lies above the posterior's centre, in posterior standard deviations.
    spread
        The right standard deviation over the posterior's: above 1 the posterior is too narrow.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda.validation import rank_uniformity
    >>> test = rank_uniformity(np.arange(200) % 100, 99)
    >>> test.simulations, round(test.spread, 2)
    (200, 1.0)
    """

    name: str
    counts: Counts
    p_value: float
    difference: float
    at: float
    shift: float
    spread: float

    @property
    def simulations(self) -> int:
        """Number of ranks."""
        return int(self.counts.sum())

    @property
    def misfit(self) -> str:
        """In what way the posterior is wrong, as far as shift and spread are more than noise."""
        parts, N = [], self.simulations
        if abs(self.shift) > ERRORS / np.sqrt(N):
            parts.append(f"{'too low' if self.shift > 0 else 'too high'} by {abs(self.shift):.2f} sd")
        if self.spread - 1 > ERRORS / np.sqrt(2 * N):
            parts.append(f"too narrow: its sd is {1 / self.spread:.2f} of the right one")
        elif 1 - self.spread > ERRORS / np.sqrt(2 * N):
            parts.append(f"too wide: its sd is {1 / self.spread:.2f} of the right one")
        return ", ".join(parts) or "of another shape"

    def band(self, prob: float = 0.95) -> tuple[Floats, Floats]:
        """Return the limits (J − 1,) that the ECDF of uniform ranks stays inside, everywhere, with probability `prob`.

        At the inner edges 1/J, 2/J, … of the bins; the ECDF there is `np.cumsum(counts)[:-1] / simulations`.
        """
        limits = band(self.simulations, len(self.counts), 1 - prob)
        return limits.lower / self.simulations, limits.upper / self.simulations


def rank_uniformity(ranks: ArrayLike, draws: int, *, name: str = "") -> RankTest:
    """Test that ranks are uniform on 0…draws, by the simultaneous band of their ECDF.

        T = min_j min(P(C_j ≤ c_j), P(C_j ≥ c_j)),   C_j ~ Binomial(N, j/J) ranks in the first j of J equal bins

    The p-value P(T ≤ T observed) is computed, not simulated.

    Parameters
    ----------
    ranks
        (N,) whole numbers from 0 to `draws`.
    draws
        L, the draws that each true value was ranked among. L + 1 should have a divisor between 10 and 50, as 99 has.
    name
        Of the quantity, for tables.

    References
    ----------
    Säilynoja, Bürkner and Vehtari (2022), Graphical test for discrete uniformity and its applications in goodness of
    fit evaluation and multiple sample comparison, Statistics and Computing 32.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda.validation import rank_uniformity
    >>> rng = np.random.default_rng(1)
    >>> rank_uniformity(rng.integers(100, size=500), 99).p_value > 0.05
    True
    >>> rank_uniformity(rng.binomial(99, 0.5, size=500), 99).misfit  # far too often in the middle
    'too wide: its sd is 7.97 of the right one'
    """
    values = np.asarray(ranks)
    if values.ndim != 1 or len(values) < 2 or values.dtype.kind not in "iu":
        raise DataError(
            f"`ranks` must be (N,) whole numbers, N at least 2; got {values.dtype} of shape {values.shape}."
        )
    if values.min() < 0 or values.max() > draws:
        raise DataError(f"`ranks` must be from 0 to `draws` = {draws}; got {values.min()} to {values.max()}.")
    counts = histogram(values, draws)
    J = len(counts)
    difference = cumulative(counts) / len(values) - np.arange(1, J) / J
    at = int(np.abs(difference).argmax())
    z = ndtri((values + 0.5) / (draws + 1))
    # Ranks stop at the outermost draw: uniform ones have an sd a little below 1.
    uniform = ndtri((np.arange(draws + 1) + 0.5) / (draws + 1)).std()
    return RankTest(
        name,
        counts,
        p_value(counts),
        float(difference[at]),
        (at + 1) / J,
        float(z.mean()),
        float(z.std() / uniform),
    )


def bins_of(draws: int) -> int:
    """Return the number of equal bins for ranks 0…draws: a divisor of draws + 1 from 10 to 50, else draws + 1."""
    return next((J for J in range(MOST_BINS, LEAST_BINS - 1, -1) if (draws + 1) % J == 0), draws + 1)


def histogram(ranks: NDArray[np.int64], draws: int) -> Counts:
    """Return how many of the ranks (…, N) fall into each bin (…, J)."""
    J, lead = bins_of(draws), ranks.shape[:-1]
    rows = int(np.prod(lead))
    cells = (ranks * J // (draws + 1)).reshape(rows, -1) + J * np.arange(rows)[:, None]
    return np.bincount(cells.ravel(), minlength=rows * J).reshape(*lead, J)


def scalar_quantities(variables: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return every number (S,) of variables (S, …) by its name, such as `mu[0,1]`."""
    out: dict[str, Floats] = {}
    for name, values in variables.items():
        for index in np.ndindex(values.shape[1:]):
            if name in SYMMETRIC and index[-1] > index[-2]:
                continue
            label = f"{name}[{','.join(map(str, index))}]" if index else name
            out[label] = values[(slice(None), *index)]
    return out


def rank_truth(truth: Mapping[str, Floats], draws: Mapping[str, Floats], rng: np.random.Generator) -> dict[str, int]:
    """Return the rank of each true value (1,) among its draws (L,), 0…L; ties at random."""
    out = {}
    for name, values in draws.items():
        below, equal = int(np.sum(values < truth[name])), int(np.sum(values == truth[name]))
        out[name] = below + int(rng.integers(equal + 1))
    return out
