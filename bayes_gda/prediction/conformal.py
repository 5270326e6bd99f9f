"""Prediction sets of guaranteed coverage, by split conformal prediction on top of any probabilities.

With scores s_i = 1 − p(y_i | x_i) of n calibration rows that the model has not seen, and q the ⌈(n + 1)c⌉-th smallest,

    C(x) = {k : 1 − p(k | x) ≤ q},        P(y ∈ C(x)) ≥ c

for a new row that is exchangeable with the calibration rows, whatever the model: a bad one has large sets, not less
coverage. The probability is over calibration rows and the new row together. If scores do not tie it is
⌈(n + 1)c⌉/(n + 1), less than 1/(n + 1) above c.

References
----------
Papadopoulos et al. (2002), Inductive confidence machines for regression; Sadinle, Lei & Wasserman (2019), Least
ambiguous set-valued classifiers with bounded error levels, JASA 114.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError


@dataclass(frozen=True, slots=True)
class Conformal:
    """A calibrated threshold.

    Parameters
    ----------
    threshold
        Largest score of a class that belongs to a set.
    coverage
        The probability that was asked for.
    n
        Calibration rows.
    """

    threshold: float
    coverage: float
    n: int

    @classmethod
    def calibrate(cls, P: Floats, y: NDArray[np.intp], coverage: float = 0.9) -> Self:
        """Find the threshold on rows that the model was not fitted to.

        Parameters
        ----------
        P, y
            (n, K) predicted probabilities, and (n,) class codes.
        coverage
            Probability that a set holds the class, between 0 and 1.
        """
        if not 0 < coverage < 1:
            raise DataError(f"`coverage` must lie between 0 and 1; got {coverage:g}. Use 0.9 for 90 %.")
        n = len(y)
        rank = math.ceil((n + 1) * coverage - 1e-9)  # 100 · 0.9 is 90, whatever rounding makes of it
        if rank > n:
            least = math.ceil(coverage / (1 - coverage) - 1e-9)
            raise DataError(f"Coverage {coverage:g} needs at least {least} calibration rows; got {n}. Add some.")
        scores = 1.0 - P[np.arange(n), y]
        return cls(float(np.partition(scores, rank - 1)[rank - 1]), coverage, n)

    def sets(self, P: Floats) -> NDArray[np.bool_]:
        """Return which classes belong to the set of each row, (n, K), given probabilities (n, K)."""
        return np.asarray(self.threshold >= 1.0 - P)
