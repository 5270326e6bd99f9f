"""The Gaussian variational approximation of softmax regression: the N(mean, V) that maximises the evidence bound.

    ELBO = Σ E log p_y(a) − KL(N(mean, V) ‖ prior),   a = Wφ ~ N(μ, S)

Where it is largest, the gradient and the precision are those of the log posterior in expectation,

    Σ (y − E p) ⊗ φ − S₀⁻¹(mean − m₀) = 0,     V⁻¹ = Σ E[diag p − ppᵀ] ⊗ φφᵀ + S₀⁻¹

so that a pass has the form of one of expectation propagation: sites of slope y − E p and precision E[diag p − ppᵀ].
Where S is small, expectations are by an expansion, else over Sobol points with their mirror images. With S wide (on
digits, standard deviations of 5 to 100) p is 0 or 1 at nearly all points: plain averages over 1024 of them gave
precisions that were off by a factor of 4 in some directions, and no iteration settled. So each activation is integrated
in closed form, given the others, which leaves the points a smooth function.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import qmc

from bayes_gda.checks import Floats
from bayes_gda.families.linear.links import MIXTURE_SCALES, MIXTURE_WEIGHTS
from bayes_gda.families.linear.logistic import GaussianTerms
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.linalg import row_blocks, solve_triangular
from bayes_gda.methods.ep.propagation import SiteSums
from bayes_gda.methods.ep.variational import variational_gaussian
from bayes_gda.methods.laplace import GaussianPosterior

Labels = NDArray[np.intp]

# Sobol points, mirror images included: for activations of a standard deviation up to FEW, and beyond.
POINTS, FEW_POINTS, FEW = 128, 32, 0.7
# Up to this Σ p(1 − p)v²e^{v/2}, v_k the variance of a_k − Σp_ja_j, the expansion serves: on random activations of 3 to
# 10 classes E p is then off by less than .001 and E[diag p − ppᵀ] by less than .002.
NARROW = 0.003
# Weights and variances of the normal mixture, and with neighbours merged: from v = 4 on that errs by less than 8e-4.
FINE = tuple((p, s**-2.0) for p, s in zip(MIXTURE_WEIGHTS, MIXTURE_SCALES, strict=True))
COARSE = tuple(
    (sum(p for p, _ in part), sum(p * v for p, v in part) / sum(p for p, _ in part))
    for part in (FINE[:3], FINE[3:5], FINE[5:])
)
WIDE = 4.0
# e^{a − max} of all other classes together, at least: less is no probability.
LEAST = 1e-300
# A site may hold at most this share of the precision of its own activations.
LARGEST_SHARE = 1 - 1e-6
SOBOL_SEED = 0


def softmax_variational(target: SoftmaxTarget, start: GaussianPosterior) -> GaussianPosterior:
    """Return the Gaussian variational approximation of a softmax regression; its `log_evidence` is the ELBO.

    Parameters
    ----------
    target
        Rows, classes, weights and prior.
    start
        Its Laplace approximation.

    Raises
    ------
    ConvergenceError
        If the passes do not settle. It carries the last Gaussian.
    """
    prior = RepeatedPrior(target.gaussian, target.shape[0])
    return variational_gaussian(SoftmaxSites(target), prior, start)


def chunk_sums(target: SoftmaxTarget, mean: Floats, root: Floats) -> SiteSums:
    """Return the site sums of some rows of a table: a pass is their sum over all chunks."""
    return SoftmaxSites(target)(mean, root)


@dataclass(frozen=True, slots=True, eq=False)
class RepeatedPrior:
    """The same Gaussian prior for each of R rows of weights, one after the other."""

    terms: GaussianTerms
    R: int

    @property
    def precision(self) -> Floats:
        """(R m, R m) I ⊗ S₀⁻¹."""
        return np.asarray(np.kron(np.eye(self.R), self.terms.precision), dtype=np.float64)

    def gradient(self, w: Floats) -> Floats:
        """Return −S₀⁻¹(w_k − m₀) of all rows (R m,)."""
        return self.terms.gradient(w.reshape(self.R, -1)).ravel()

    def log_density(self, w: Floats) -> Floats:
        """Return Σ_k log N(w_k | m₀, S₀)."""
        return np.asarray(float(self.terms.log_density(w.reshape(self.R, -1)).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxSites:
    """The variational sites of a softmax regression, found anew in each pass.

    Parameters
    ----------
    target
        Rows, classes and weights; its prior has no part in the sums.
    points
        Sobol points for every row, a power of two.
    """

    target: SoftmaxTarget
    points: int = POINTS

    def __call__(self, mean: Floats, root: Floats, share: float = 1.0) -> SiteSums:
        """Return the sums over the sites, given N(mean, root rootᵀ)."""
        (R, m), n = self.target.shape, self.target.n
        W, V = mean.reshape(R, m), (root @ root.T).reshape(R, m, R, m)
        precision, gradient, log_ratio = np.zeros((R, m, R, m)), np.zeros((R, m)), 0.0
        for rows in row_blocks(n, m * R):
            Phi, y, c = self.target.Phi[rows], self.target.y[rows], self._weight(rows)
            S = np.empty((len(Phi), R, R))
            for k in range(R):
                for j in range(k + 1):
                    S[:, k, j] = S[:, j, k] = np.einsum("nm,nm->n", Phi @ V[k, :, j], Phi)
            p, tau, log_p = expectations(Phi @ W.T, S, y, self.target.K, self.points)
            tau *= c[:, None, None]
            gradient += (c[:, None] * ((y[:, None] == np.arange(R)) - p)).T @ Phi
            log_ratio += float(c @ log_p + 0.5 * np.vdot(tau, S))
            for k in range(R):
                for j in range(k + 1):
                    precision[k, :, j] += (Phi * tau[:, k, j, None]).T @ Phi
        for k in range(R):
            for j in range(k):
                precision[j, :, k] = precision[k, :, j]
        return SiteSums(precision.reshape(R * m, R * m), gradient.ravel(), log_ratio)

    def _weight(self, rows: slice) -> Floats:
        c = self.target.sample_weight
        return np.ones(rows.stop - rows.start) if c is None else c[rows]


def expectations(mu: Floats, S: Floats, y: Labels, K: int, most: int) -> tuple[Floats, Floats, Floats]:
    """Return E p (b, R), E[diag p − ppᵀ] (b, R, R) and E log p_y (b,) for activations N(μ, S) of R of K classes.

    `most` are the points where activations are wide.
    """
    out = expand(mu, S, y, K)
    few = out[4] <= FEW**2
    for group, points in ((few, FEW_POINTS), (~few, most)):
        chosen = np.flatnonzero(group & (out[3] > NARROW))
        if len(chosen):
            averages = average_over_points(mu[chosen], S[chosen], y[chosen], K, points)
            for every, values in zip(out[:3], averages, strict=True):
                every[chosen] = values
    return out[:3]


def leave_row_out(mu: Floats, S: Floats, y: Labels, K: int) -> tuple[Floats, Floats]:
    """Return the moments (b, R), (b, R, R) of the activations N(μ, S) of training rows once their sites are taken out.

    S_c = (S⁻¹ − τ)⁻¹ and μ_c = μ − S_c(y − E p): the other sites stay as they are.
    """
    R = mu.shape[1]
    p, tau, _ = expectations(mu, S, y, K, POINTS)
    scale = np.trace(S, axis1=1, axis2=2)[:, None, None]
    L = np.linalg.cholesky(S + (1e-10 * scale + 1e-300) * np.eye(R))
    # S_c = L(I − LᵀτL)⁻¹Lᵀ; the sum of all sites and the prior is S⁻¹, so that LᵀτL is below I but for rounding.
    values, vectors = np.linalg.eigh(L.swapaxes(1, 2) @ tau @ L)
    B = (L @ vectors) / np.sqrt(1 - np.minimum(values, LARGEST_SHARE))[:, None, :]
    S_c = B @ B.swapaxes(1, 2)
    slope = (y[:, None] == np.arange(R)) - p
    return mu - np.einsum("nkj,nj->nk", S_c, slope), S_c


def expand(mu: Floats, S: Floats, y: Labels, K: int) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Return the expectations to first order in S, Σp(1 − p)v²e^{v/2} and max v (b,), v_k = Var(a_k − Σp_ja_j).

    With p, C = diag p − ppᵀ at μ, u = diag S − 2Sp and ū = pᵀu the second derivatives of p contract with S to
    g = p(u − ū), as in `SoftmaxTarget.third_order_trace`, and g has the derivatives
    ∂g_i/∂a_j = C_ij(u_i − ū) − p_i(2SC + 1(Cu − 2CSp)ᵀ)_ij.
    """
    b, R = mu.shape
    a = np.zeros((b, K))
    a[:, :R] = mu
    top = a.max(axis=1, keepdims=True)
    a -= top
    log_total = np.log(np.exp(a).sum(axis=1))
    label = a[np.arange(b), y]
    P = np.exp(a - log_total[:, None])
    p = P[:, :R]
    variance, Sp = np.einsum("nkk->nk", S), np.einsum("nkj,nj->nk", S, p)
    u = variance - 2 * Sp
    spread = u - np.einsum("nk,nk->n", p, u)[:, None]
    C = -p[:, :, None] * p[:, None, :]
    C[:, range(R), range(R)] += p
    SC = S @ C
    slope = np.einsum("nkj,nj->nk", C, u) - 2 * np.einsum("nkj,nk->nj", SC, p)
    dg = C * spread[:, :, None] - p[:, :, None] * (2 * SC + slope[:, None, :])
    trace = np.einsum("nkj,nkj->n", C, S)
    # E log p_y = log p_y − ½ tr(CS); symmetric by theory, and by rounding made so
    tau = C + 0.25 * (dg + dg.transpose(0, 2, 1))
    # Var(a_k − Σp_ja_j) of all classes: what they share has no effect. A reference class has the activation 0.
    own = np.broadcast_to(np.einsum("nk,nk->n", p, Sp)[:, None], (b, K)).copy()
    own[:, :R] += u
    with np.errstate(over="ignore"):
        size = np.einsum("nk,nk->n", P * (1 - P), own * own * np.exp(own / 2))
    return p + 0.5 * p * spread, tau, label - log_total - 0.5 * trace, size, own.max(axis=1)


def average_over_points(mu: Floats, S: Floats, y: Labels, K: int, Q: int) -> tuple[Floats, Floats, Floats]:
    """Return the expectations over Q points, of which each activation in turn is integrated exactly, given the others.

    The integrand is then smooth where S is wide, though p itself is 0 or 1 at nearly all points.
    """
    b, R = mu.shape
    diagonal = np.einsum("nkk->nk", S)
    diagonal += 1e-10 * diagonal.max(axis=1, keepdims=True)  # rounding must not make S indefinite
    L = np.linalg.cholesky(S)
    root = np.linalg.inv(L)  # S⁻¹ = rootᵀ root
    variance = 1 / np.einsum("njk,njk->nk", root, root)  # of a_k given the others: 1/(S⁻¹)_kk
    z = normal_points(R, Q)
    Q = z.shape[1]
    p, pairs, log_p = np.empty((b, R)), np.empty((b, R, K)), np.empty(b)
    for block in row_blocks(b, K * Q):
        a = np.zeros((block.stop - block.start, K, Q))
        np.matmul(L[block], z, out=a[:, :R])
        a[:, :R] += mu[block, :, None]
        # Given the others, a_k has the mean a_k − (S⁻¹(a − μ))_k/(S⁻¹)_kk, and S⁻¹(a − μ) = rootᵀz.
        mean = a[:, :R] - variance[block, :, None] * np.matmul(root[block].transpose(0, 2, 1), z)
        e, rest, top = _others(a)
        log_p[block] = (a[np.arange(len(a)), y[block]] - top - np.log(e.sum(axis=1))).mean(axis=1)
        sigma, slope = _sigmoid_moments(mean - (top[:, None] + np.log(rest[:, :R])), variance[block, :, None])
        p[block] = sigma.mean(axis=2)
        # p_kp_j = σ′(a_k − log Σ_{i≠k} e^{a_i}) e^{a_j}/Σ_{i≠k} e^{a_i}, of which the first depends on a_k alone.
        slope /= rest[:, :R]
        np.matmul(slope, e.transpose(0, 2, 1), out=pairs[block])
    pairs /= Q
    return p, _laplacian(pairs), log_p


def _others(a: Floats) -> tuple[Floats, Floats, Floats]:
    """Return e^{a_k − max} (b, K, Q), the sum of the others' (b, K, Q) without cancellation, and the max (b, Q)."""
    top = a.max(axis=1)
    e = np.exp(a - top[:, None])
    rest = e.sum(axis=1, keepdims=True) - e
    # Where the largest itself was taken away, the others are summed by themselves.
    small = np.where(e == 1, 0.0, e).sum(axis=1, keepdims=True)
    return e, np.maximum(np.where(rest < 0.5, small, rest), LEAST), top


def _laplacian(pairs: Floats) -> Floats:
    """Return E[diag p − ppᵀ] (b, R, R) from two estimates of each E[p_kp_j], k ≠ j, in pairs (b, R, K).

    Its diagonal is E p_k(1 − p_k) = Σ_{j≠k} E p_kp_j: a weighted graph Laplacian, so never indefinite.
    """
    R = pairs.shape[1]
    own = (slice(None), range(R), range(R))
    tau = -(pairs[:, :, :R] + pairs[:, :, :R].transpose(0, 2, 1)) / 2
    tau[own] = 0.0
    tau[own] = pairs[:, :, R:].sum(axis=2) - tau.sum(axis=2)
    return tau


def _sigmoid_moments(x: Floats, v: Floats) -> tuple[Floats, Floats]:
    """Return E σ(a) and E σ′(a) for a ~ N(x, v), by the mixture of normals; by a coarser one where all v are wide."""
    value, slope = np.zeros(x.shape), np.zeros(x.shape)
    for p, component in COARSE if v.min(initial=WIDE) >= WIDE else FINE:
        t = 1 / np.sqrt(component + v)
        z = t * x
        value += p * ndtr(z)
        z *= z
        z *= -0.5
        slope += (p / np.sqrt(2 * np.pi) * t) * np.exp(z)
    return value, slope


@lru_cache(maxsize=8)
def normal_points(dimension: int, points: int) -> Floats:
    """Fixed points (dimension, points), half mirror images of the others, with N(0, I)'s moments to order 3.

    At least four times as many as dimensions: fewer do not have such moments.
    """
    points = max(points, 1 << (4 * dimension - 1).bit_length())
    half = ndtri(qmc.Sobol(dimension, scramble=True, rng=SOBOL_SEED).random(points // 2).T)
    # LLᵀ their second moments, L⁻¹z has none but 1: quadratic functions are integrated exactly.
    half = solve_triangular(np.linalg.cholesky(2 * half @ half.T / points), half)
    return np.hstack([half, -half])
