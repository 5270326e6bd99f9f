"""What a model says of rows that are like nothing it has seen; families that model p(x, y) know."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats

__all__ = ["Novelty"]


@dataclass(frozen=True, slots=True, eq=False)
class Novelty:
    """How far out n rows lie, and which of them are like no class.

    Parameters
    ----------
    probability
        (n, K) for each class, the probability of a point at least as far out; 1 where nothing was observed.
    threshold
        (n,) a row is novel if its largest probability is below; it differs between patterns of missing features.
    novel
        (n,) whether it is.
    false_alarm
        The rate at which rows of the posterior predictive are called novel.
    """

    probability: Floats
    threshold: Floats
    novel: NDArray[np.bool_]
    false_alarm: float

    @property
    def largest(self) -> Floats:
        """(n,) probability of a point as far out under the class that is nearest in this sense."""
        return np.asarray(self.probability.max(axis=1))
