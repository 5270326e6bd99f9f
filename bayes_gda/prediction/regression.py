"""Class probabilities of logistic and softmax regression: from a Gaussian posterior, and from weighted draws.

    a = wᵀφ,   μ_a = ŵᵀφ,   σ_a² = φᵀS_Nφ          binary: one activation a row
    a = Wφ,    K of them with covariance (K, K)     softmax

Both classes below are `Predictor`s of `inference.trust`: the fast formula, the same Gaussian with the link integrated,
and the truth over draws, all for the rows of one design matrix.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, softmax

from bayes_gda.checks import Floats
from bayes_gda.inference.laplace import GaussianPosterior
from bayes_gda.prediction import links

# Numbers in a block of draws × rows (× classes): 10⁶ doubles are 8 MB.
BLOCK = 1_000_000


@dataclass(frozen=True, slots=True, eq=False)
class BinaryPredictor:
    """Probabilities (n, 2) of the two classes of logistic regression for the rows of Phi (n, m)."""

    Phi: Floats

    def activations(self, posterior: GaussianPosterior) -> tuple[Floats, Floats]:
        """Return μ_a (n,) and σ_a² (n,)."""
        # φᵀH⁻¹φ = |L⁻¹φ|²
        root = solve_triangular(posterior.chol_precision, self.Phi.T, lower=True)
        return self.Phi @ posterior.mean, np.einsum("mn,mn->n", root, root)

    def fast(self, posterior: GaussianPosterior) -> Floats:
        """Return the probit-approximated predictive σ(μ_a/√(1 + πσ_a²/8))."""
        return _both(links.probit_logistic(*self.activations(posterior)))

    def reference(self, posterior: GaussianPosterior) -> Floats:
        """Return ∫σ(a)N(a | μ_a, σ_a²)da, near exact."""
        return _both(links.mixture(*self.activations(posterior)))

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return Σ_s weight_s σ(w_sᵀφ) (n, 2) and its standard error √Σ weight_s²(p_s − p̄)² (n, 2)."""
        mean, error = np.empty(len(self.Phi)), np.empty(len(self.Phi))
        for rows in _blocks(len(self.Phi), len(draws)):
            p = expit(draws @ self.Phi[rows].T)
            mean[rows], error[rows] = _mean_and_error(p, weight)
        return _both(mean), np.stack([error, error], axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxPredictor:
    """Probabilities (n, K) of softmax regression for the rows of Phi (n, m).

    Parameters
    ----------
    Phi
        (n, m) design matrix.
    K
        Number of classes.
    reference_class
        Whether the last class has weights zero (reference coding).
    """

    Phi: Floats
    K: int
    reference_class: bool = False

    def activations(self, posterior: GaussianPosterior) -> tuple[Floats, Floats]:
        """Return the means (n, K) and covariances (n, K, K) of the activations."""
        n, m = self.Phi.shape
        free = self.K - self.reference_class
        mean, covariance = np.zeros((n, self.K)), np.zeros((n, self.K, self.K))
        mean[:, :free] = self.Phi @ posterior.mean.reshape(free, m).T
        V = posterior.covariance.reshape(free, m, free, m)
        for a in range(free):
            for b in range(a + 1):
                entry = np.einsum("nm,nm->n", self.Phi @ V[a, :, b], self.Phi)
                covariance[:, a, b] = covariance[:, b, a] = entry
        return mean, covariance

    def fast(self, posterior: GaussianPosterior) -> Floats:
        """Return the mean-field form, which treats every pair of classes by the binary probit formula."""
        return links.mean_field(*self.activations(posterior))

    def reference(self, posterior: GaussianPosterior) -> Floats:
        """Return the average over 512 Sobol points in logit space."""
        return links.sobol(*self.activations(posterior))

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return Σ_s weight_s softmax(W_sφ) (n, K) and its standard error (n, K)."""
        n, m = self.Phi.shape
        S, free = len(draws), self.K - self.reference_class
        W = np.zeros((S, self.K, m))
        W[:, :free] = draws.reshape(S, free, m)
        mean, error = np.empty((n, self.K)), np.empty((n, self.K))
        for rows in _blocks(n, S * self.K):
            p = softmax(W @ self.Phi[rows].T, axis=1)
            mean[rows], error[rows] = (part.T for part in _mean_and_error(p, weight))
        return mean, error


def _both(p: Floats) -> Floats:
    return np.stack([1 - p, p], axis=1)


def _mean_and_error(p: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted mean over the first axis, and the standard error of a self-normalised importance estimate."""
    mean = np.tensordot(weight, p, axes=1)
    return mean, np.sqrt(np.tensordot(weight**2, (p - mean) ** 2, axes=1))


def _blocks(n: int, width: int) -> list[slice]:
    step = max(1, BLOCK // width)
    return [slice(i, i + step) for i in range(0, n, step)]
