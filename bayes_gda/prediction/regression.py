"""Class probabilities of logistic and softmax regression: from a Gaussian posterior, and from weighted draws.

    a = wᵀφ,   μ_a = ŵᵀφ,   σ_a² = φᵀS_Nφ          binary: one activation a row
    a = Wφ,    K of them with covariance (K, K)     softmax

Both classes below are `Predictor`s of `inference.trust`: the fast formula, the same Gaussian with the link integrated,
and the truth over draws, all for the rows of one design matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import expit, softmax

from bayes_gda.checks import Floats
from bayes_gda.inference.laplace import GaussianPosterior
from bayes_gda.linalg import for_blocks, linear_and_quadratic, product
from bayes_gda.prediction import links, softmax_links


@dataclass(frozen=True, slots=True, eq=False)
class BinaryPredictor:
    """Probabilities (n, 2) of the two classes of logistic regression for the rows of Phi (n, m)."""

    Phi: Floats

    def activations(self, posterior: GaussianPosterior) -> tuple[Floats, Floats]:
        """Return μ_a (n,) and σ_a² (n,)."""
        a_mean, a_var = np.empty(len(self.Phi)), np.empty(len(self.Phi))

        def write(rows: slice, mu: Floats, s2: Floats) -> None:
            a_mean[rows], a_var[rows] = mu, s2

        self._each_block(posterior, write)
        return a_mean, a_var

    def fast(self, posterior: GaussianPosterior) -> Floats:
        """Return the probit-approximated predictive σ(μ_a/√(1 + πσ_a²/8))."""
        return self._linked(posterior, links.probit_logistic)

    def reference(self, posterior: GaussianPosterior) -> Floats:
        """Return ∫σ(a)N(a | μ_a, σ_a²)da, near exact."""
        return self._linked(posterior, links.mixture)

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return Σ_s weight_s σ(w_sᵀφ) (n, 2) and its standard error √Σ weight_s²(p_s − p̄)² (n, 2)."""
        mean, error = np.empty((len(self.Phi), 2)), np.empty((len(self.Phi), 2))

        def average(rows: slice) -> None:
            a = product(draws, self.Phi[rows].T)
            p, p_error = _mean_and_error(expit(a, out=a), weight)
            _write_both(mean[rows], p)
            error[rows] = p_error[:, None]

        for_blocks(average, len(self.Phi), len(draws))
        return mean, error

    def _linked(self, posterior: GaussianPosterior, link: Callable[[Floats, Floats], Floats]) -> Floats:
        """Probabilities (n, 2) by link(μ_a, σ_a²), applied to a block while it is in cache."""
        P = np.empty((len(self.Phi), 2))
        self._each_block(posterior, lambda rows, mu, s2: _write_both(P[rows], link(mu, s2)))
        return P

    def _each_block(self, posterior: GaussianPosterior, write: Callable[[slice, Floats, Floats], None]) -> None:
        """Hand the rows, μ_a and σ_a² of every block to `write`."""
        # φᵀH⁻¹φ = |L⁻¹φ|²
        root = solve_triangular(posterior.chol_precision, np.eye(posterior.dim), lower=True).T
        for_blocks(
            lambda rows: write(rows, *linear_and_quadratic(self.Phi[rows], posterior.mean, root)), *self.Phi.shape
        )


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
        W, V = posterior.mean.reshape(free, m), posterior.covariance.reshape(free, m, free, m)

        def moments(rows: slice) -> None:
            Phi = self.Phi[rows]
            mean[rows, :free] = product(Phi, W.T)
            for a in range(free):
                for b in range(a + 1):
                    entry = np.einsum("nm,nm->n", product(Phi, V[a, :, b]), Phi)
                    covariance[rows, a, b] = covariance[rows, b, a] = entry

        for_blocks(moments, n, m)
        return mean, covariance

    def fast(self, posterior: GaussianPosterior) -> Floats:
        """Return the mean-field form, which treats every pair of classes by the binary probit formula."""
        return softmax_links.mean_field(*self.activations(posterior))

    def reference(self, posterior: GaussianPosterior) -> Floats:
        """Return the average over 512 Sobol points in logit space."""
        return softmax_links.sobol(*self.activations(posterior))

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return Σ_s weight_s softmax(W_sφ) (n, K) and its standard error (n, K)."""
        n, m = self.Phi.shape
        S, free = len(draws), self.K - self.reference_class
        W = np.zeros((S, self.K, m))
        W[:, :free] = draws.reshape(S, free, m)
        mean, error = np.empty((n, self.K)), np.empty((n, self.K))

        def average(rows: slice) -> None:
            a = product(W.reshape(-1, m), self.Phi[rows].T).reshape(S, self.K, -1)
            p, p_error = _mean_and_error(softmax(a, axis=1), weight)
            mean[rows], error[rows] = p.T, p_error.T

        for_blocks(average, n, S * self.K)
        return mean, error


def _write_both(P: Floats, p: Floats) -> None:
    """Write the probabilities of class 0 and class 1 into the columns of P."""
    P[:, 1] = p
    np.subtract(1, p, out=P[:, 0])


def _mean_and_error(p: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Weighted mean over the first axis, and the standard error of a self-normalised importance estimate.

    The draws `p` are overwritten.
    """
    mean = np.tensordot(weight, p, axes=1)
    p -= mean
    p *= p
    return mean, np.sqrt(np.tensordot(weight**2, p, axes=1))
