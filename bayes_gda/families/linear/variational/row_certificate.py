"""How far the probabilities of single rows are off for softmax regression, at the cost of the closed form.

As for logistic regression (`row_certificate`) no sum over training rows is needed. The change of the covariance that
the variational Gaussian leaves out widens a row's activations by a share λ = tr(ΔS S⁻¹) at most. A probability then
changes by at most ½ λ s² max|σ″| = .048 λ s², and by at most ½ λ max|xφ(x)| = .12 λ where s, the largest sd of a
difference of
two activations, is large. Skewness was of the same size in all cases that were looked at, and counts as much again.
"""

from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats, finite
from bayes_gda.errors import StoreError
from bayes_gda.families.linear.predictors import softmax_activations
from bayes_gda.families.linear.softmax_links import contrast_root, expected_softmax
from bayes_gda.methods.ep.certificate import VARIATIONAL, estimate_errors
from bayes_gda.methods.laplace import GaussianPosterior

CURVED, STEEP = 0.048, 0.12
# The change of the covariance, and skewness.
BOTH = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxRowCertificate:
    """What is kept of a fit to judge rows by.

    Parameters
    ----------
    laplace, better
        The Gaussians of Laplace and of the variational approximation.
    covariance_root
        (dim, pairs) C, with CCᵀ what the latter leaves out of the covariance.
    gap
        Largest distance of Laplace's probabilities to the better ones on the training rows.
    K, reference
        Number of classes; whether the last one has weights zero.
    """

    laplace: GaussianPosterior
    better: GaussianPosterior
    covariance_root: Floats
    gap: float
    K: int
    reference: bool

    def errors(self, Phi: Floats) -> tuple[Floats, Floats]:
        """Return the estimated errors (n,) of Laplace's and the better probabilities for rows Phi (n, m)."""
        K, R = self.K, self.K - self.reference
        fast, (mean, cov) = (
            softmax_activations(gaussian, K, reference_class=self.reference)(Phi)
            for gaussian in (self.laplace, self.better)
        )
        gap = np.abs(expected_softmax(*fast) - expected_softmax(mean, cov)).max(axis=1, initial=0.0)
        inverse = contrast_root(cov)[1]
        E = np.zeros((len(Phi), K, self.covariance_root.shape[1]))
        E[:, :R] = np.matmul(Phi, self.covariance_root.reshape(R, Phi.shape[1], -1)).swapaxes(0, 1)
        F = inverse @ (E - E.mean(axis=1, keepdims=True))
        widened = np.einsum("nds,nds->n", F, F)
        variance = np.einsum("nkk->nk", cov)
        s2 = (variance[:, :, None] + variance[:, None, :] - 2 * cov).max(axis=(1, 2), initial=0.0)
        cert = BOTH * widened * np.minimum(CURVED * s2, STEEP)
        better = estimate_errors(gap, cert, np.maximum(gap, self.gap), rule=VARIATIONAL).better
        return np.minimum(gap + better, 1.0), np.minimum(better, 1.0)

    def check_whole(self) -> None:
        """Raise `StoreError` unless the parts of a certificate from a file fit each other."""
        m = self.better.dim
        if self.K < 2 or m % (self.K - self.reference):
            raise StoreError(f"`certificate` must have weights for each of its classes; got {m} for {self.K}.")
        if self.laplace.dim != m or self.covariance_root.ndim != 2 or len(self.covariance_root) != m:
            raise StoreError(f"`certificate` must hold two Gaussians of {m} weights and a matrix of {m} rows.")
        finite("covariance_root", self.covariance_root, error=StoreError)
        if not 0 <= self.gap <= 1:
            raise StoreError(f"`gap` must lie between 0 and 1; got {self.gap:g}.")
