"""How far the probabilities of single rows are off for logistic regression, at the cost of the closed form.

The verdict on a fit takes the largest distance over rows. A single row may have none where the errors of mean, variance
and skewness happen to cancel: the change of a probability by another variance is zero at p = ½, that by skewness twice.
So a row answers for activations half a standard deviation to either side as well. Its third cumulant is bounded by
Cauchy and Schwarz's inequality (`methods.ep.certificate`), so that no sum over training rows is needed,
and none of them is kept.
"""

from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats, finite
from bayes_gda.errors import StoreError
from bayes_gda.families.linear.ep.predictive import expected_sigmoid, third_change
from bayes_gda.families.linear.predictors import binary_activations
from bayes_gda.methods.ep.certificate import estimate_errors
from bayes_gda.methods.laplace import GaussianPosterior

# A variance that the changes would all but remove stays at this share: beyond, second order says nothing.
LEAST_VARIANCE = 0.05
# Shifts of an activation, in standard deviations. Over cases 0 to 59 of `tests/proof/verdict_study.py` EP's error of a
# row was at most .54 of the estimate, over cases 1000 to 1059 .95, on training, new and far rows; without the shifts
# 1.1 of it. Over cases 5000 to 5059, not looked at before, it was .61 at most, and Laplace's .97, on 45 078 rows
# (`tests/proof/row_study.py`).
SHIFTS = (-0.5, 0.0, 0.5)


@dataclass(frozen=True, slots=True, eq=False)
class RowCertificate:
    """What is kept of a fit to judge rows by: some m² numbers, however many rows it had.

    Parameters
    ----------
    laplace, better
        The Gaussians of Laplace and of expectation propagation.
    covariance_change
        (m, m) ΔV, what EP leaves out of the covariance.
    third
        (m, m) Q with |κ₃(a)| ≤ s²√(φᵀQφ).
    gap
        Largest distance of Laplace's probabilities to EP's on the training rows.
    """

    laplace: GaussianPosterior
    better: GaussianPosterior
    covariance_change: Floats
    third: Floats
    gap: float

    def errors(self, Phi: Floats) -> tuple[Floats, Floats]:
        """Return the estimated errors (n,) of Laplace's and EP's probabilities for rows of a design matrix (n, m)."""
        mu_laplace, s2_laplace = binary_activations(self.laplace)(Phi)
        mu, s2 = binary_activations(self.better)(Phi)
        change, Q = (np.einsum("ij,ij->i", Phi @ A, Phi) for A in (self.covariance_change, self.third))
        changed = np.maximum(s2 + change, LEAST_VARIANCE * s2)
        kappa3 = s2 * np.sqrt(np.maximum(Q, 0.0))
        gap, cert = np.zeros(len(Phi)), np.zeros(len(Phi))
        for shift in SHIFTS:
            step = shift * np.sqrt(s2)
            p = expected_sigmoid(mu + step, s2)
            distance = np.abs(expected_sigmoid(mu_laplace + step, s2_laplace) - p)
            if shift == 0:
                here = distance
            gap = np.maximum(gap, distance)
            skew = kappa3 * np.abs(third_change(mu + step, s2))
            cert = np.maximum(cert, skew + np.abs(expected_sigmoid(mu + step, changed) - p))
        ep = estimate_errors(gap, cert, np.maximum(gap, self.gap)).better
        return np.minimum(here + ep, 1.0), np.minimum(ep, 1.0)

    def check_whole(self) -> None:
        """Raise `StoreError` unless the parts of a certificate from a file fit each other."""
        m = self.better.dim
        if self.laplace.dim != m or self.covariance_change.shape != (m, m) or self.third.shape != (m, m):
            raise StoreError(f"`certificate` must hold two Gaussians of {m} weights and two matrices ({m}, {m}).")
        finite("covariance_change", self.covariance_change, error=StoreError)
        finite("third", self.third, error=StoreError)
        if not 0 <= self.gap <= 1:
            raise StoreError(f"`gap` must lie between 0 and 1; got {self.gap:g}.")
