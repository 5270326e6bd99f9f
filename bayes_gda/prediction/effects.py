"""Effects on the scale of probabilities, over the posterior: predictions, comparisons and slopes, averaged over rows.

    prediction    p_k(x, θ)                      comparison    p_k(x', θ) − p_k(x, θ)
    slope         [p_k(x + h, θ) − p_k(x − h, θ)] / 2h

with p_k(x, θ) = p(y=k | x, θ). Each is computed for every draw θ_s and averaged over rows, or over the rows of each
group; the mean, the interval and P(> 0) are then over the draws. So an average effect has the uncertainty of the
average, not the average uncertainty of the rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.linalg import wide_blocks
from bayes_gda.prediction.fitted import FittedModel


@dataclass(frozen=True, slots=True, eq=False)
class Effect:
    """An average over rows, by group and class, over the posterior.

    Parameters
    ----------
    draws
        (S, G, K) the average of each draw.
    """

    draws: Floats

    @property
    def estimate(self) -> Floats:
        """(G, K) posterior means."""
        return np.asarray(self.draws.mean(axis=0))

    @property
    def sd(self) -> Floats:
        """(G, K) posterior standard deviations."""
        return np.asarray(self.draws.std(axis=0, ddof=1))

    @property
    def positive(self) -> Floats:
        """(G, K) posterior probabilities of a value above 0; ties count half."""
        return np.asarray((self.draws > 0).mean(axis=0) + 0.5 * (self.draws == 0).mean(axis=0))

    def interval(self, prob: float = 0.9) -> Floats:
        """Return the central intervals (G, K, 2) that hold `prob`."""
        if not 0 < prob < 1:
            raise DataError(f"`prob` must lie between 0 and 1; got {prob:g}. Use 0.9 for 90 %.")
        return np.moveaxis(np.quantile(self.draws, [(1 - prob) / 2, (1 + prob) / 2], axis=0), 0, -1)


@dataclass(frozen=True, slots=True, eq=False)
class PartialEffect:
    """The average probability of a class over rows, as a function of one feature that is set to the same value in all.

    Parameters
    ----------
    model, feature, class_name
        Of what.
    x, mean
        (G,) values of the feature, and the average probability there.
    lower, upper
        (G,) ends of the interval of that average; None for models that were not chosen.
    """

    model: str
    feature: str
    class_name: str
    x: Floats
    mean: Floats
    lower: Floats | None = None
    upper: Floats | None = None


def average_prediction(
    model: FittedModel, variables: Mapping[str, Floats], X: Floats, groups: NDArray[np.intp] | None = None
) -> Effect:
    """Average p(y=k | x, θ_s) over rows.

    Parameters
    ----------
    model, variables
        The fitted model, and draws of its parameters, `{name: (S, …)}`.
    X
        (n, d) rows.
    groups
        (n,) the group 0…G−1 of each row; None is one group of all.
    """
    return Effect(_averages(model, variables, X, groups))


def average_comparison(
    model: FittedModel,
    variables: Mapping[str, Floats],
    low: Floats,
    high: Floats,
    groups: NDArray[np.intp] | None = None,
    *,
    step: float = 1.0,
) -> Effect:
    """Average [p(y=k | x', θ_s) − p(y=k | x, θ_s)]/step over pairs of rows; parameters as in `average_prediction`.

    Parameters
    ----------
    model, variables, groups
        As in `average_prediction`.
    low, high
        (n, d) rows x and x', which differ in what is compared.
    step
        Distance between them, for a slope.
    """
    if low.shape != high.shape:
        raise DataError(f"`low` and `high` must have one shape; got {low.shape} and {high.shape}.")
    return Effect((_averages(model, variables, high, groups) - _averages(model, variables, low, groups)) / step)


def _averages(
    model: FittedModel, variables: Mapping[str, Floats], X: Floats, groups: NDArray[np.intp] | None
) -> Floats:
    """Averages (S, G, K) of p(y=k | x, θ_s) over the rows of each group."""
    groups = np.zeros(len(X), dtype=np.intp) if groups is None else groups
    count = np.bincount(groups)
    if not count.all():
        raise DataError("`groups` must have rows for each of 0…G−1.")
    S = len(next(iter(variables.values())))
    sums = np.zeros((S, len(count), model.K))
    for rows in wide_blocks(len(X), S * model.K):
        P = model.probability_draws(variables, X[rows])[0]
        for g in np.unique(groups[rows]):
            sums[:, g] += P[:, groups[rows] == g].sum(axis=1)
    return np.asarray(sums / count[:, None])
