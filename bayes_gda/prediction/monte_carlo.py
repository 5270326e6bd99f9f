"""The Monte Carlo error of class probabilities that are means over draws, of each row, and whether it is tolerable.

With f_bk the mean of the terms p(x, y=k | θ_s), or p(y=k | x, θ_s), over batch b of B batches of draws, F_b = Σ_k f_bk:

    p_k = Σ_b f_bk / Σ_b F_b,    se(p_k) = √( Σ_b (f_bk − p_k F_b)² / (B (B − 1)) ) / mean_b F_b

which is the method of batch means, with the delta method for the ratio. Draws of a chain are batched in their order, so
that their autocorrelation is within the batches; so are the copies of a draw, where weighted draws were resampled. The
error is thus that of the effective draws for this row and class, not that of the draws that are stored.

References
----------
Flegal, Haran & Jones (2008), Markov chain Monte Carlo: can we trust the third significant figure?
"""

from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.linalg import wide_blocks
from bayes_gda.prediction.fitted import BATCHES, FittedModel
from bayes_gda.prediction.normalised import normalised

# A probability is within the tolerance if so many standard errors are: about 95 % of such rows then are.
ERRORS = 2.0
# The largest error of some hundred rows is about three standard errors: if the tolerance does not hold these, draws are
# added until it holds four, as standard errors are themselves known to some 10 % only.
LARGEST_ERRORS, WANTED_ERRORS = 3.0, 4.0


@dataclass(frozen=True, slots=True)
class MonteCarlo:
    """How large the Monte Carlo errors of the probabilities of some rows are.

    Parameters
    ----------
    rows, which
        How many rows there are, and of which kind: `training`, `held-out`, `predicted`.
    beyond
        Rows with a probability whose two standard errors exceed the tolerance.
    largest
        The largest standard error of a probability.
    tolerance
        How far a probability may be off.
    """

    rows: int
    which: str
    beyond: int
    largest: float
    tolerance: float

    @property
    def within(self) -> bool:
        """Whether two standard errors of every probability are within the tolerance."""
        return self.beyond == 0

    @property
    def is_settled(self) -> bool:
        """Whether the tolerance holds so many standard errors that the worst of many rows is within it, too."""
        return bool(LARGEST_ERRORS * self.largest <= self.tolerance)

    @property
    def sentence(self) -> str:
        """The figures in words."""
        text = (
            f"The largest Monte Carlo standard error of a probability is {small(self.largest)} on {self.rows} "
            f"{self.which} row{'s' * (self.rows != 1)} (tolerance {self.tolerance:g})"
        )
        return f"{text}." if self.within else f"{text}; for {self.beyond} of them two standard errors exceed it."

    def draws_needed(self, draws: int, errors: float = ERRORS) -> int:
        """Return how many draws would bring `errors` standard errors within the tolerance, of one that had `draws`."""
        largest = self.largest if np.isfinite(self.largest) else 0.5 / np.sqrt(draws)  # p(1 − p) ≤ ¼
        return int(np.ceil(draws * (errors * largest / self.tolerance) ** 2 / 100)) * 100


def probabilities(model: FittedModel, X: Floats, class_prior: ArrayLike | None = None) -> tuple[Floats, Floats]:
    """Return a model's class probabilities (n, K) and their Monte Carlo standard errors (n, K), 0 for closed forms.

    An error says how far more draws would move a probability; not how uncertain it is under the posterior
    (`uncertainty.interval`), nor how far an approximate posterior is off (its verdict). One draw tells none: nan.

    Parameters
    ----------
    model, X
        The fitted model, and rows (n, d).
    class_prior
        (K,) class shares where the predictions are used, as in `log_probabilities`.
    """
    P, error = np.empty((len(X), model.K)), np.zeros((len(X), model.K))
    for rows in wide_blocks(len(X), BATCHES * model.K):
        batches = model.batch_means(X[rows])
        if batches is None:
            return np.exp(model.log_probabilities(X, class_prior)), error
        log_f, weight = batches
        log_mean = logsumexp(log_f, axis=0, b=weight[:, None, None])
        log_p = normalised(log_mean)[0] if class_prior is None else model.log_probabilities(X[rows], class_prior)
        P[rows] = np.exp(log_p)
        # f_bk relative to the mean that p_k stands on: f_bk/Σ_b w_b f_bk · p_k is f_bk/mean F, with other shares too.
        with np.errstate(invalid="ignore"):  # of a class that no draw holds possible
            f = np.nan_to_num(np.exp(log_f - log_mean), nan=0.0) * P[rows]
        residual = weight[:, None, None] * (f - P[rows] * f.sum(axis=2, keepdims=True))
        B = len(weight)
        error[rows] = np.sqrt((residual**2).sum(axis=0) * B / (B - 1)) if B > 1 else np.nan
    return P, error


def judge_errors(error: Floats, tolerance: float, which: str) -> MonteCarlo:
    """Sum up the standard errors (n, K) of the probabilities of rows."""
    largest = reduce(np.maximum, error.T)  # class by class: reductions over a short last axis take long
    beyond = int((~(ERRORS * largest <= tolerance)).sum())  # nan is beyond
    return MonteCarlo(len(error), which, beyond, float(largest.max(initial=0.0)), float(tolerance))


def small(value: float) -> str:
    """Return a small positive number with two digits that count, and at least three places: 0.012, 0.0068, 0.00032."""
    places = 3 if not 0 < value < np.inf else max(3, 1 - int(np.floor(np.log10(value))))
    return f"{value:.{places}f}"
