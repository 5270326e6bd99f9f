"""Predictive integrals of softmax regression: the class probabilities when the activations are Gaussian.

    p = ∫ softmax(a) N(a | μ, S) da     arguments `mean` (n, K), `cov` (n, K, K), answer (n, K)

One function a method, each with a `log_` form that stays accurate in the tails.

Mean total variation to the integral: μ_k ~ N(0, 2²), S = sd² × a random correlation matrix, 500 rows, truth by 2¹⁶
Sobol points:

    K   sd   extended_probit   mean_field   sobol (512 points)
    3   1    .028              .015         .0001
    3   3    .076              .051         .0002
    5   1    .029              .028         .0003
    5   3    .079              .081         .0018

So mean_field is the better closed form for few classes, and no better for five; both are rough at sd 3.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.special import entr, log_softmax, logsumexp, ndtri, softmax
from scipy.stats import qmc

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.families.linear.links import log_of_mean, shrunk
from bayes_gda.prediction.fitted import EntropySplit

# Elements of a block of activations: 2¹⁶ doubles are 512 kB, the second-level cache of one core.
BLOCK_ELEMENTS = 2**16
# Reference points in logit space, a power of two as Sobol sequences need, and the seed that makes answers repeatable.
SOBOL_POINTS = 512
SOBOL_SEED = 0


def extended_probit(mean: Floats, cov: Floats) -> Floats:
    """Return softmax(μ_k/√(1 + πS_kk/8)): the fastest, and blind to the covariances between classes."""
    return np.asarray(softmax(shrunk(mean, np.diagonal(cov, axis1=-2, axis2=-1), np.pi / 8, 1.0), axis=-1))


def log_extended_probit(mean: Floats, cov: Floats) -> Floats:
    """Return log softmax(μ_k/√(1 + πS_kk/8))."""
    return np.asarray(log_softmax(shrunk(mean, np.diagonal(cov, axis1=-2, axis2=-1), np.pi / 8, 1.0), axis=-1))


def mean_field(mean: Floats, cov: Floats) -> Floats:
    """Return p_k ∝ 1/Σᵢ exp(−(μ_k − μᵢ)/√(1 + πV_kᵢ/8)), V_kᵢ = S_kk + Sᵢᵢ − 2S_kᵢ.

    Every pair of classes by the binary probit form, which it equals for K = 2 (Lu, Ie & Sha 2020, "Mean-field
    approximation to Gaussian-softmax integral").
    """
    return np.exp(log_mean_field(mean, cov))


def log_mean_field(mean: Floats, cov: Floats) -> Floats:
    """Return the log of `mean_field`."""
    variance = np.diagonal(cov, axis1=-2, axis2=-1)
    # V ≥ 0; rounding may leave −1e-16 where two classes share one activation.
    V = np.maximum(variance[..., :, None] + variance[..., None, :] - 2 * cov, 0.0)
    t = shrunk(mean[..., None, :] - mean[..., :, None], V, np.pi / 8, 1.0)
    return np.asarray(log_softmax(-logsumexp(t, axis=-1), axis=-1))


def sobol(mean: Floats, cov: Floats, *, points: int = SOBOL_POINTS) -> Floats:
    """Return the mean of softmax over `points` (a power of two) fixed Sobol points in logit space, the reference."""
    return _over_points(lambda a: softmax_in_place(a).mean(axis=-1), mean, cov, points)


def log_sobol(mean: Floats, cov: Floats, *, points: int = SOBOL_POINTS) -> Floats:
    """Return the log of `sobol`."""
    return _over_points(log_mean_softmax, mean, cov, points)


def log_mean_softmax(a: Floats) -> Floats:
    """Return the log of the mean of softmax(a) over the last axis: (n, K) of activations `a` (n, K, S)."""
    mean = softmax_in_place(a.copy()).mean(axis=-1)
    return log_of_mean(mean, lambda rows: log_softmax(a[rows], axis=1))


def softmax_of_draws(Phi: Floats, W: Floats) -> Floats:
    """Return softmax(Wφ) (n, K, S) of rows Phi (n, m) and weights W (K, S, m); sums over draws run along the memory."""
    K, S, m = W.shape
    return softmax_in_place((Phi @ W.reshape(-1, m).T).reshape(-1, K, S))


def softmax_in_place(a: Floats) -> Floats:
    """Overwrite activations (n, K, S) with their softmax over the classes, and return them."""
    a -= a.max(axis=1, keepdims=True)
    np.exp(a, out=a)
    a /= a.sum(axis=1, keepdims=True)
    return a


def entropy_softmax(mean: Floats, cov: Floats, *, points: int = SOBOL_POINTS) -> EntropySplit:
    """Split the predictive entropy of K classes, both parts on the same Sobol points."""

    def parts(a: Floats) -> Floats:
        P = softmax(a, axis=1)
        return np.stack([entr(P.mean(axis=-1)).sum(axis=1), entr(P).sum(axis=1).mean(axis=-1)], axis=1)

    total, aleatoric = _over_points(parts, mean, cov, points).T
    return EntropySplit.of(total, aleatoric)


@lru_cache(maxsize=8)
def _sobol_normal(dimension: int, points: int) -> Floats:
    """Fixed standard normal points (dimension, points)."""
    uniform = qmc.Sobol(dimension, scramble=True, rng=SOBOL_SEED).random(points)
    return np.asarray(ndtri(uniform).T)


def _over_points(f: Callable[[Floats], Floats], mean: Floats, cov: Floats, points: int) -> Floats:
    """Evaluate f on activations (b, K, points) block by block over the rows, and stack the answers."""
    n, K = mean.shape
    z = _sobol_normal(K - 1, points)
    step = max(1, BLOCK_ELEMENTS // (K * points))
    return np.concatenate(
        [f(mean[i : i + step, :, None] + _root(cov[i : i + step]) @ z) for i in range(0, max(n, 1), step)]
    )


def _root(cov: Floats) -> Floats:
    """B (b, K, K−1), BBᵀ = CSC with C = I − 11ᵀ/K: a shift common to all classes leaves softmax unchanged."""
    centred = cov - cov.mean(axis=-1, keepdims=True)
    centred -= centred.mean(axis=-2, keepdims=True)
    values, vectors = np.linalg.eigh(centred)
    scale = np.abs(values).max(axis=-1, initial=0.0)
    # The eigenvalue of 1 is 0 and a singular S has more; rounding leaves a few ulps of the largest either side of 0.
    if (values.min(axis=-1, initial=0.0) < -1e-9 * scale).any():
        raise DataError(
            f"`cov` must be positive semi-definite; an eigenvalue is {values.min():.3g}. Check its symmetry."
        )
    # Largest first: the first Sobol dimensions are the most even ones.
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])[..., :0:-1])
