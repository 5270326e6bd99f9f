"""Predictive integrals of logistic regression: the class probabilities when the activation is Gaussian.

    p = ∫ σ(a) N(a | μ, s²) da          arguments `mu`, `s2` (n,), answer (n,)

One function a method, each with a `log_` form that stays accurate in the tails. They give class 1; class 0 is the same
function at −μ, since 1 − σ(a) = σ(−a), so no probability need be found by subtraction. More than two classes are in
`softmax_links`.

Largest error over μ ∈ [−15, 15], s ∈ [0, 10], measured against a truth that meets Pirjol's identities to 1e-15:

    method                 absolute   in the tails
    plug_in                .34        ignores s
    probit_logistic        .0169      2.3 times p for p > .01, 6 times for p > .001, 45 times at the corner of the grid
    probit_phi             .0177      Gaussian where σ is exponential: 5 times for p > .01, 131 times for p > .001
    gauss_hermite          .0145      at order 32; 1.2e-13 for s ≤ 1, 1.8e-5 for s ≤ 3
    mixture                2.1e-9     wrong once p is near 1e-9
    log_expected_sigmoid              relative error of p below 4e-9 for all |μ| ≤ 1000, s ≤ 100
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, log_ndtr, logsumexp, ndtr, ndtri

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.prediction.fitted import EntropySplit

# Monahan & Stefanski (1992), k = 8: max |σ(a) − Σ pᵢ Φ(sᵢ a)| = 2.11e-9, at |a| = 11.4 (we measured it).
MIXTURE_WEIGHTS = (0.003246343272134, 0.051517477033972, 0.195077912673858, 0.315569823632818,
                   0.274149576158423, 0.131076880695470, 0.027912418727972, 0.001449567805354)  # fmt: skip
MIXTURE_SCALES = (1.365340806296348, 1.059523971016916, 0.830791313765644, 0.650732166639391,
                  0.508135425366489, 0.396313345166341, 0.308904252267995, 0.238212616409306)  # fmt: skip

# Elements of a block: 2¹⁶ doubles are 512 kB, the second-level cache of one core. Memory does not grow with n beyond
# the answer itself.
BLOCK_ELEMENTS = 2**16
# Means below this are taken in logs: their terms are no longer exact, or zero.
_TINY = 1e-290
# ∫₀^∞ below decays like e^{−a/2} or faster: 50 leaves e^{−25} = 1e-11, and 40 Legendre nodes reach 2e-11 for s ≥ 2.
_LEGENDRE_X, _LEGENDRE_W = (
    25 * np.polynomial.legendre.leggauss(40)[0] + 25,
    25 * np.polynomial.legendre.leggauss(40)[1],
)
_WIDE = 2.0
# Entropy H(σ(a)) ~ |a|e^{−|a|} has poles at ±iπ: a trapezoid of step h errs by e^{−2π²/h} = 7e-12 for h = ¾, and
# stopping at |a| = 30 by 1e-12. For s ≤ 1 the Gaussian is too narrow for these nodes; Gauss–Hermite is exact to 1e-9.
_ENTROPY_STEP = 0.75
_ENTROPY_X: Floats = _ENTROPY_STEP * np.arange(-40.0, 41.0)
_HERMITE_ORDER = 32


def plug_in(mu: ArrayLike, s2: ArrayLike = 0.0) -> Floats:
    """Return σ(μ), which ignores the uncertainty `s2`."""
    return np.asarray(expit(np.broadcast_arrays(np.asarray(mu, float), s2)[0]))


def log_plug_in(mu: ArrayLike, s2: ArrayLike = 0.0) -> Floats:
    """Return log σ(μ)."""
    return np.asarray(log_expit(np.broadcast_arrays(np.asarray(mu, float), s2)[0]))


def probit_logistic(mu: ArrayLike, s2: ArrayLike) -> Floats:
    """Return σ(μ/√(1 + πs²/8)), the probit approximation in logistic form (MacKay 1992)."""
    t = shrunk(mu, s2, np.pi / 8, 1.0)
    return np.asarray(expit(t, out=t))


def log_probit_logistic(mu: ArrayLike, s2: ArrayLike) -> Floats:
    """Return log σ(μ/√(1 + πs²/8))."""
    return np.asarray(log_expit(shrunk(mu, s2, np.pi / 8, 1.0)))


def log_probit_logistics(mu: ArrayLike, s2: ArrayLike) -> Floats:
    """Return `log_probit_logistic` of both classes, (…, 2): at −μ and at μ."""
    t = shrunk(mu, s2, np.pi / 8, 1.0)
    return np.stack([log_expit(-t), log_expit(t)], axis=-1)


def probit_phi(mu: ArrayLike, s2: ArrayLike) -> Floats:
    """Return Φ(μ/√(8/π + s²)), the probit approximation without the way back to σ."""
    t = shrunk(mu, s2, 1.0, 8 / np.pi)
    return np.asarray(ndtr(t, out=t))


def log_probit_phi(mu: ArrayLike, s2: ArrayLike) -> Floats:
    """Return log Φ(μ/√(8/π + s²))."""
    return np.asarray(log_ndtr(shrunk(mu, s2, 1.0, 8 / np.pi)))


def mixture(mu: ArrayLike, s2: ArrayLike) -> Floats:
    """Return Σᵢ pᵢ Φ(sᵢμ/√(1 + sᵢ²s²)), within 2.2e-9 of the integral for every μ and s.

    References
    ----------
    Monahan & Stefanski (1992), "Normal scale mixture approximations to F*(z) and computation of the logistic-normal
    integral", in Handbook of the Logistic Distribution.
    """
    return _in_blocks(_mixture, mu, s2)


def log_expected_sigmoid(mu: ArrayLike, s2: ArrayLike) -> Floats:
    """Return log ∫σ(a)N(a | μ, s²)da with a relative error of the probability below 4e-9, however small it is.

    With F(μ) the integral, three exact steps lead to where the mixture's absolute error is a small relative one:

        F(μ) = 1 − F(−μ)                                          for μ > 0
        F(μ) = e^{μ + s²/2} F(−μ − s²)                            for μ < −s²/2, from σ(a) = e^a σ(−a)
        F(μ) = Φ(μ/s) + N(0 | μ, s²) ∫₀^∞ σ(−a) 2sinh(−aμ/s²) e^{−a²/2s²} da     for −s²/2 ≤ μ < 0

    The last is σ split into a step and an odd remainder; both terms are positive. Its integral takes 40 fixed nodes,
    and serves for s > 2; for s ≤ 2 we have F(−s²/2) > .15 and the mixture serves.
    """
    return _in_blocks(_log_expected_sigmoid, mu, s2)


def log_expected_sigmoids(mu: ArrayLike, s2: ArrayLike) -> Floats:
    """Return `log_expected_sigmoid` of both classes, (…, 2): at −μ and at μ, with the work of one.

    The larger probability is one less the smaller, so that together they make one.
    """
    tail = _in_blocks(_log_tail, mu, s2)
    rest, right = np.log1p(-np.exp(tail)), np.asarray(mu) > 0
    return np.stack([np.where(right, tail, rest), np.where(right, rest, tail)], axis=-1)


def gauss_hermite(mu: ArrayLike, s2: ArrayLike, *, order: int = _HERMITE_ORDER) -> Floats:
    """Return Σⱼ ωⱼ σ(μ + s zⱼ), Gauss–Hermite quadrature of `order` nodes; good for s up to about 3."""
    z, omega = _hermite(order)
    return _in_blocks(lambda m, v: np.asarray(omega @ expit(_nodes(m, v, z))), mu, s2, width=order)


def log_gauss_hermite(mu: ArrayLike, s2: ArrayLike, *, order: int = _HERMITE_ORDER) -> Floats:
    """Return log Σⱼ ωⱼ σ(μ + s zⱼ)."""
    z, omega = _hermite(order)
    return _in_blocks(lambda m, v: _log_average(_nodes(m, v, z), omega), mu, s2, width=order)


def monte_carlo(a: Floats) -> Floats:
    """Return the mean of σ(a) over draws `a` (S, n) of the activations."""
    return np.asarray(np.mean(expit(a), axis=0))


def log_monte_carlo(a: Floats) -> Floats:
    """Return the log of the mean of σ(a) over draws `a` (S, n)."""
    return log_of_mean(sigmoid_means(a.T), lambda rows: log_sigmoids(a.T[rows]))[:, 1]


def sigmoid_means(a: Floats) -> Floats:
    """Return the means of σ(−a) and σ(a) over the last axis: (n, 2) of draws `a` (n, S), each exact however small."""
    e = np.abs(a)
    np.negative(e, out=e)
    np.exp(e, out=e)
    large = np.reciprocal(1 + e)  # σ(|a|)
    e *= large  # σ(−|a|)
    right = a > 0
    return np.stack([np.where(right, e, large).mean(axis=-1), np.where(right, large, e).mean(axis=-1)], axis=1)


def log_sigmoids(a: Floats) -> Floats:
    """Return log σ(−a) and log σ(a) (n, 2, S) of draws `a` (n, S)."""
    return np.stack([log_expit(-a), log_expit(a)], axis=1)


def log_of_mean(mean: Floats, log_terms: Callable[[NDArray[np.bool_]], Floats]) -> Floats:
    """Return the logs (n, K) of mean probabilities, as exact near 1 and near 0 as in between.

    The log of one near 1 is taken from the others; of one too small for a float from the logs of its terms.

    Parameters
    ----------
    mean
        (n, K) means over draws, each with a small relative error.
    log_terms
        From a mask (n,) of rows to the logs (rows, K, S) whose exponentials were averaged.
    """
    with np.errstate(divide="ignore"):
        out = np.log(mean)
    top = mean.argmax(axis=1)[:, None]
    others = mean.copy()
    np.put_along_axis(others, top, 0.0, axis=1)
    rest = others.sum(axis=1, keepdims=True)
    largest = np.where(rest < 0.5, np.log1p(-np.minimum(rest, 0.5)), np.take_along_axis(out, top, axis=1))
    np.put_along_axis(out, top, largest, axis=1)
    tiny = mean < _TINY
    rows = tiny.any(axis=1)
    if rows.any():
        terms = log_terms(rows)
        out[tiny] = (logsumexp(terms, axis=-1) - np.log(terms.shape[-1]))[tiny[rows]]
    return out


def sigmoid_interval(mu: ArrayLike, s2: ArrayLike, *, prob: float = 0.95) -> Floats:
    """Return the central credible interval (n, 2) of σ(a): σ(μ ± s z), z = Φ⁻¹((1 + prob)/2).

    Exact, since quantiles pass through the monotone σ.
    """
    if not 0 < prob < 1:
        raise DataError(f"`prob` must lie between 0 and 1; got {prob:g}. Use 0.95 for 95 %.")
    half = np.sqrt(s2) * ndtri((1 + prob) / 2)
    return np.asarray(expit(np.stack([mu - half, mu + half], axis=-1)))


# ── Entropy ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def entropy_binary(mu: ArrayLike, s2: ArrayLike) -> EntropySplit:
    """Split the predictive entropy of one class against the other; each part within 1e-8 nats."""
    log_p = log_expected_sigmoids(mu, s2)
    total = -(np.exp(log_p) * log_p).sum(axis=-1)
    return EntropySplit.of(total, _in_blocks(_aleatoric, mu, s2, width=len(_ENTROPY_X)))


# ── The numerics, on one block ──────────────────────────────────────────────────────────────────────────────────────


def _in_blocks(f: Callable[[Floats, Floats], Floats], mu: ArrayLike, s2: ArrayLike, *, width: int = 1) -> Floats:
    """Evaluate f(μ, s²) block by block, `width` numbers a row, so that its temporaries stay in cache."""
    mu, s2 = np.broadcast_arrays(np.asarray(mu, float), np.asarray(s2, float))
    shape, mu, s2 = mu.shape, mu.ravel(), s2.ravel()
    out, step = np.empty(mu.size), max(1, BLOCK_ELEMENTS // width)
    for i in range(0, mu.size, step):
        out[i : i + step] = f(mu[i : i + step], s2[i : i + step])
    return out.reshape(shape)


def shrunk(mu: ArrayLike, s2: ArrayLike, slope: float, offset: float) -> Floats:
    """Return μ/√(offset + slope·s²), in one array."""
    t = np.multiply(s2, slope, out=np.empty(np.broadcast_shapes(np.shape(mu), np.shape(s2))))
    t += offset
    np.sqrt(t, out=t)
    return np.divide(mu, t, out=t)


def _mixture(mu: Floats, s2: Floats) -> Floats:
    out = np.zeros(mu.shape)
    for p, s in zip(MIXTURE_WEIGHTS, MIXTURE_SCALES, strict=True):
        t = shrunk(s * mu, s2, s * s, 1.0)
        ndtr(t, out=t)
        t *= p
        out += t
    return out


def _log_expected_sigmoid(mu: Floats, s2: Floats) -> Floats:
    log_p = _log_tail(mu, s2)
    return np.where(mu > 0, np.log1p(-np.exp(log_p)), log_p)


def _log_tail(mu: Floats, s2: Floats) -> Floats:
    """log F(−|μ|), the smaller one of the two classes' probabilities."""
    x = -np.abs(mu)
    log_p = np.zeros(mu.shape)
    reflect = x < -s2 / 2
    log_p[reflect] = (x + s2 / 2)[reflect]
    x = np.where(reflect, -x - s2, x)  # now x ≥ −s²/2
    wide = (x < 0) & (s2 > _WIDE**2)
    log_p[~wide] += np.log(_mixture(x[~wide], s2[~wide]))
    log_p[wide] += _in_blocks(_log_step_and_rest, x[wide], s2[wide], width=len(_LEGENDRE_X))
    return np.where(s2 == 0, log_expit(-np.abs(mu)), log_p)


def _log_step_and_rest(x: Floats, s2: Floats) -> Floats:
    a = _LEGENDRE_X[:, None]
    # 2sinh(τa) e^{−a²/2s²} with τ = −x/s² ≤ ½ stays below e^{25}: no overflow.
    integral = (_LEGENDRE_W * expit(-_LEGENDRE_X)) @ (2 * np.sinh(a * (-x / s2)) * np.exp(-(a**2) / (2 * s2)))
    log_density = -0.5 * (x**2 / s2 + np.log(2 * np.pi * s2))
    with np.errstate(divide="ignore"):  # a mean of 0 to rounding, beside its variance: half the step, and no rest
        rest = log_density + np.log(integral)
    return np.logaddexp(log_ndtr(x / np.sqrt(s2)), rest)


def _aleatoric(mu: Floats, s2: Floats) -> Floats:
    """E H(σ(a)): fixed nodes in a where the Gaussian is wide, Gauss–Hermite where it is narrow."""
    out, wide = np.empty(mu.shape), s2 > 1
    z, omega = _hermite(_HERMITE_ORDER)
    out[~wide] = omega @ _entropy(_nodes(mu[~wide], s2[~wide], z))
    m, v, a = mu[wide], s2[wide], _ENTROPY_X[:, None]

    out[wide] = _ENTROPY_STEP * _entropy(_ENTROPY_X) @ np.exp((a - m) ** 2 / (-2 * v)) / np.sqrt(2 * np.pi * v)
    return out


def _entropy(a: Floats) -> Floats:
    """H(σ(a)) = −log σ(|a|) + |a| σ(−|a|), every term positive."""
    b = np.abs(a)
    return np.asarray(b * expit(-b) - log_expit(b))


def _log_average(a: Floats, omega: Floats) -> Floats:
    """log Σⱼ ωⱼ σ(aⱼ) over the first axis; where it is near 0 by the other class, log(1 − Σⱼ ωⱼ σ(−aⱼ))."""
    # Not a product of BLAS, whose threads would round it by their number.
    q = np.einsum("j,j...->...", omega, expit(-a))
    log_p = logsumexp(log_expit(a), b=omega.reshape(-1, *[1] * (a.ndim - 1)), axis=0)
    return np.where(q < 0.5, np.log1p(-np.minimum(q, 0.5)), log_p)


@lru_cache(maxsize=8)
def _hermite(order: int) -> tuple[Floats, Floats]:
    """Nodes z and weights ω (summing to one) of E f(z), z ~ N(0, 1)."""
    z, omega = np.polynomial.hermite_e.hermegauss(order)
    return z, omega / omega.sum()


def _nodes(mu: Floats, s2: Floats, z: Floats) -> Floats:
    return np.asarray(mu + z[:, None] * np.sqrt(s2))
