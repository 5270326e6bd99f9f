"""Class probabilities of logistic and softmax regression: from a Gaussian posterior, and from weighted draws.

    a = wᵀφ,   μ_a = ŵᵀφ,   σ_a² = φᵀS_Nφ          binary: one activation a row
    a = Wφ,    K of them with covariance (K, K)     softmax

Both classes below are `Predictor`s of `methods.importance.trust`: of a Gaussian by the probit link or with the link
integrated, and over weighted draws, all for the rows of one design matrix.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.families.linear import links, softmax_links
from bayes_gda.linalg import (
    AVERAGED_WIDTH,
    draw_blocks,
    for_blocks,
    linear_and_quadratic,
    moment_width,
    product,
    solve_triangular,
)
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Link

# Columns of a product that stands for the covariances of several pairs of classes: enough for an efficient product.
PAIRED_WIDTH = 128
# Classes beside the last up to which covariances come from a root: with more, it has more sums than there are pairs.
ROOTED = 3

# From rows Phi (n, m) to the moments of their activations: (n,) and (n,), or (n, K) and (n, K, K).
type Activations = Callable[[Floats], tuple[Floats, Floats]]


def binary_activations(posterior: GaussianPosterior) -> Activations:
    """Return the function from rows of a design matrix to μ_a (n,) and σ_a² (n,)."""
    # φᵀH⁻¹φ = |L⁻¹φ|²
    root = solve_triangular(posterior.chol_precision, np.eye(posterior.dim)).T
    return lambda Phi: linear_and_quadratic(Phi, posterior.mean, root)


def softmax_activations(posterior: GaussianPosterior, K: int, *, reference_class: bool = False) -> Activations:
    """Return the function from rows of a design matrix to means (n, K) and covariances (n, K, K) of the activations.

    All are less the activation of the last class, which changes no probability and spares its covariances.
    """
    free, D = K - reference_class, K - 1
    m = posterior.dim // free
    W, V = posterior.mean.reshape(free, m), posterior.covariance.reshape(free, m, free, m)
    if not reference_class:
        W = W[:D] - W[D]
        V = V - V[D]
        V = (V - V[:, :, D : D + 1])[:D, :, :D]
    if D <= ROOTED:
        return _few_activations(W, V)
    pairs = [(a, b) for a in range(D) for b in range(a + 1)]
    # (m, pairs·m): one product for several pairs
    side_by_side = np.ascontiguousarray(np.concatenate([V[a, :, b] for a, b in pairs], axis=1))
    at_once = max(1, PAIRED_WIDTH // m)

    def moments(Phi: Floats) -> tuple[Floats, Floats]:
        mean, covariance = np.zeros((K, len(Phi))), np.zeros((K, K, len(Phi)))
        np.matmul(W, Phi.T, out=mean[:D])
        for i in range(0, len(pairs), at_once):
            block = pairs[i : i + at_once]
            A = product(Phi, side_by_side[:, i * m : (i + len(block)) * m])
            for j, (a, b) in enumerate(block):
                np.einsum("nm,nm->n", A[:, j * m : (j + 1) * m], Phi, out=covariance[a, b])
                covariance[b, a] = covariance[a, b]
        return mean.T, covariance.transpose(2, 0, 1)

    return moments


def _few_activations(W: Floats, V: Floats) -> Activations:
    """Return the same for few classes, given means (D, m) and covariance (D, m, D, m) less the last class.

    With V = LLᵀ and blocks L_ac, c ≤ a, of m × m, the covariance of a_a and a_b is Σ_c u_ac·u_bc, u_ac = L_acᵀφ. All u
    are one product, and the sums go along its rows, in two thirds of the time of φᵀV_abφ.
    """
    D, m = W.shape
    V = V.reshape(D * m, D * m)
    V = (V + V.T) / 2
    L = _root(V).reshape(D, m, D, m)
    blocks = [(a, c) for a in range(D) for c in range(a + 1)]
    # Rows are filled up to a multiple of 8, the tile of the BLAS kernels.
    R = np.zeros((-(-(len(blocks) * m + D) // 8) * 8, m))
    R[: len(blocks) * m] = np.concatenate([L[a, :, c].T for a, c in blocks])
    R[len(blocks) * m : len(blocks) * m + D] = W
    at = {block: slice(i * m, (i + 1) * m) for i, block in enumerate(blocks)}

    def moments(Phi: Floats) -> tuple[Floats, Floats]:
        mean, covariance = np.zeros((D + 1, len(Phi))), np.zeros((D + 1, D + 1, len(Phi)))
        U = R @ Phi.T
        mean[:D] = U[len(blocks) * m : len(blocks) * m + D]
        for a in range(D):
            for b in range(a + 1):
                for c in range(b + 1):
                    covariance[a, b] += np.einsum("mn,mn->n", U[at[a, c]], U[at[b, c]])
                covariance[b, a] = covariance[a, b]
        return mean.T, covariance.transpose(2, 0, 1)

    return moments


def _root(V: Floats) -> Floats:
    """Return a lower triangular L with LLᵀ = V (D, D), which may be singular but for rounding."""
    try:
        return np.linalg.cholesky(V)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(V)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        lower: Floats = np.linalg.qr(root.T, mode="r").T
        return lower


@dataclass(frozen=True, slots=True, eq=False)
class BinaryPredictor:
    """Probabilities (n, 2) of the two classes of logistic regression for the rows of Phi (n, m).

    Parameters
    ----------
    Phi
        (n, m) design matrix.
    """

    Phi: Floats

    def gaussian(self, posterior: GaussianPosterior, link: Link) -> Floats:
        """Return ∫σ(a)N(a | μ_a, σ_a²)da near exactly, or the probit approximation σ(μ_a/√(1 + πσ_a²/8))."""
        function = links.probit_logistic if link == "probit" else links.mixture
        P = np.empty((len(self.Phi), 2))
        activations = binary_activations(posterior)
        for_blocks(lambda rows: _write_both(P[rows], function(*activations(self.Phi[rows]))), *self.Phi.shape)
        return P

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return Σ_s weight_s σ(w_sᵀφ) (n, 2) and its standard error √Σ weight_s²(p_s − p̄)² (n, 2)."""
        mean, error = np.empty((len(self.Phi), 2)), np.empty((len(self.Phi), 2))
        draws = np.ascontiguousarray(draws)

        def average(rows: slice) -> None:
            sums = _WeightedMean(weight)
            for block in draw_blocks(len(draws)):
                sums.add(_sigmoid_in_place(self.Phi[rows] @ draws[block].T), block)
            p, p_error = sums.mean_and_error()
            _write_both(mean[rows], p)
            error[rows] = p_error[:, None]

        for_blocks(average, len(self.Phi), AVERAGED_WIDTH)
        return mean, error


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

    def gaussian(self, posterior: GaussianPosterior, link: Link) -> Floats:
        """Return the integral over the activations, or for `probit` the mean-field form.

        The latter treats every pair of classes by the binary probit formula.
        """
        function = softmax_links.mean_field if link == "probit" else softmax_links.expected_softmax
        P = np.empty((len(self.Phi), self.K))
        activations = softmax_activations(posterior, self.K, reference_class=self.reference_class)

        def write(rows: slice) -> None:
            P[rows] = function(*activations(self.Phi[rows]))

        for_blocks(write, len(self.Phi), moment_width(self.Phi.shape[1], self.K))
        return P

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return Σ_s weight_s softmax(W_sφ) (n, K) and its standard error (n, K)."""
        n, m = self.Phi.shape
        S, free = len(draws), self.K - self.reference_class
        W = np.zeros((self.K, S, m))  # the draws last in what follows, so that sums run along the memory
        W[:free] = draws.reshape(S, free, m).swapaxes(0, 1)
        mean, error = np.empty((n, self.K)), np.empty((n, self.K))

        def average(rows: slice) -> None:
            sums = _WeightedMean(weight)
            for block in draw_blocks(S, self.K):
                sums.add(softmax_links.softmax_of_draws(self.Phi[rows], W[:, block]), block)
            mean[rows], error[rows] = sums.mean_and_error()

        for_blocks(average, n, AVERAGED_WIDTH)
        return mean, error


def _write_both(P: Floats, p: Floats) -> None:
    """Write the probabilities of class 0 and class 1 into the columns of P."""
    P[:, 1] = p
    np.subtract(1, p, out=P[:, 0])


class _WeightedMean:
    """Weighted mean Σ_s w_s p_s, and its error √Σ_s w_s²(p_s − mean)² as an importance estimate, of draws in blocks.

    Sums are of p_s − c, with c the mean of the first block: the squares of small spreads would cancel otherwise.
    """

    def __init__(self, weight: Floats) -> None:
        self.weight = weight
        self.center: Floats | None = None

    def add(self, p: Floats, block: slice) -> None:
        """Add the draws of `block`, the last axis of p (…, S), which is overwritten."""
        if self.center is None:
            self.center = p.mean(axis=-1)
            self.first, self.linear, self.square = (np.zeros(self.center.shape) for _ in range(3))
        w = self.weight[block]
        p -= self.center[..., None]
        self.first += p @ w
        self.linear += p @ w**2
        p *= p
        self.square += p @ w**2

    def mean_and_error(self) -> tuple[Floats, Floats]:
        """Return the mean, and its standard error as an importance estimate."""
        assert self.center is not None
        shift = self.first
        variance = self.square - shift * (2 * self.linear - shift * (self.weight**2).sum())
        return self.center + shift, np.sqrt(np.maximum(variance, 0.0))


def _sigmoid_in_place(a: Floats) -> Floats:
    """Overwrite `a` with 1/(1 + e^−a), and return it; beyond −709 it is 0."""
    np.negative(a, out=a)
    with np.errstate(over="ignore"):
        np.exp(a, out=a)
    a += 1
    return np.reciprocal(a, out=a)
