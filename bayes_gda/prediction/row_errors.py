"""How far the probabilities of single rows may be off, by cause, with a verdict on each row.

    error of a row = approximation of the posterior + 2 Monte Carlo standard errors + link

The verdict on a fit is one on its training rows. A row far outside them has an answer of its own quality, and so a
verdict of its own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.linalg import wide_blocks
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.monte_carlo import ERRORS, small

type Words = NDArray[np.str_]


class RowErrors(NamedTuple):
    """Estimated errors of the probabilities of rows that are due to the approximation of the posterior, (n,) each.

    Parameters
    ----------
    own
        Of the posterior that the model predicts by.
    laplace, corrected
        Of the Laplace approximation, and of its correction.
    """

    own: Floats
    laplace: Floats
    corrected: Floats


@dataclass(frozen=True, slots=True, eq=False)
class RowTrust:
    """How far each row's probabilities may be off, the largest over its classes.

    Parameters
    ----------
    verdict
        (n,) `exact`; `trusted` if the Laplace approximation is within the tolerance for this row; `corrected` if it is
        not, but its correction is; `needs-mcmc` if neither is, or nothing is known; `sampled` for draws by MCMC.
    approximation
        (n,) estimated error that the approximation of the posterior causes in the probabilities that are returned; 0
        if they rest on the exact posterior or on MCMC, nan if it is not known.
    monte_carlo
        (n,) Monte Carlo standard errors, 0 for closed forms.
    link
        (n,) error of the probit link, 0 where the link is integrated.
    tolerance
        How far a probability may be off.
    """

    verdict: Words
    approximation: Floats
    monte_carlo: Floats
    link: Floats
    tolerance: float

    @property
    def error(self) -> Floats:
        """(n,) how far a probability may be off in all, with two Monte Carlo standard errors."""
        return self.approximation + ERRORS * self.monte_carlo + self.link

    @property
    def within(self) -> NDArray[np.bool_]:
        """(n,) whether the probabilities that are returned are within the tolerance."""
        return self.error <= self.tolerance  # nan is not

    @property
    def columns(self) -> dict[str, NDArray[Any]]:
        """The same by name, as a data frame takes it."""
        errors = {f"{name}_error": getattr(self, name) for name in ("approximation", "monte_carlo", "link")}
        return {"verdict": self.verdict.astype(object), "error": self.error, **errors}

    def __str__(self) -> str:
        n, beyond = len(self.verdict), int((~self.within).sum())
        text = f"{beyond} of {n} row{'s' * (n != 1)} may be off by more than the tolerance of {self.tolerance:g}"
        known = self.error[np.isfinite(self.error)]
        return f"{text}; the largest error is estimated at {small(float(known.max()))}." if len(known) else f"{text}."


def decide_rows(errors: RowErrors, rest: Floats, tolerance: float) -> Words:
    """Return the verdict on each row: whether Laplace is within the tolerance, or its correction, or neither.

    Parameters
    ----------
    errors
        Of the approximation.
    rest
        (n,) what Monte Carlo and link add.
    tolerance
        How far a probability may be off.
    """
    good, better = errors.laplace + rest <= tolerance, errors.corrected + rest <= tolerance
    return np.where(good, "trusted", np.where(better, "corrected", "needs-mcmc"))


def weighted_distance(
    model: FittedModel, variables: Mapping[str, Floats], log_weights: Floats, X: Floats, P: Floats
) -> Floats:
    """Return the largest distance (n,) of probabilities P (n, K) to those of weighted draws, with two of their errors.

    Parameters
    ----------
    model
        Says what the terms of rows are under draws.
    variables, log_weights
        Draws `{name: (S, …)}`, and the logarithms (S,) of their weights.
    X
        (n, d) rows.
    P
        (n, K) probabilities to be judged.
    """
    out = np.empty(len(X))
    for rows in wide_blocks(len(X), len(log_weights) * model.K):
        log_f = log_weights[:, None, None] + model.log_terms(variables, X[rows])
        f = np.exp(log_f - logsumexp(log_f, axis=(0, 2), keepdims=True))
        p = f.sum(axis=0)
        error = np.sqrt(((f - p * f.sum(axis=2, keepdims=True)) ** 2).sum(axis=0))
        out[rows] = (np.abs(P[rows] - p) + ERRORS * error).max(axis=1)
    return out
