"""Class probabilities of logistic regression when the activation is not quite Gaussian.

To first order in a third cumulant κ₃, E σ(a) = E_G σ + (κ₃/6) E_G σ‴. With the mixture σ(a) = Σ p_kΦ(s_ka),

    E_G σ = Σ p_kΦ(x),   E_G σ‴ = Σ p_k t_k³(x² − 1)φ(x),   t_k = s_k/√(1 + s_k²s²),  x = t_kμ
"""

import numpy as np
from scipy.special import expit, ndtr

from bayes_gda.checks import Floats
from bayes_gda.families.linear.links import MIXTURE_SCALES, MIXTURE_WEIGHTS
from bayes_gda.linalg import BLOCK_ELEMENTS

# Up to this variance four terms of the expansion in s² are within 6e-7 of the integral, for an eighth of the time.
SMALL = 0.1


def skewed_sigmoid(mu: Floats, s2: Floats, kappa3: Floats) -> Floats:
    """Return E σ(a) (n,) for activations with mean μ, variance s² and third cumulant κ₃, within [0, 1].

    Parameters
    ----------
    mu, s2, kappa3
        (n,) cumulants of the activations.
    """
    out = np.empty(len(mu))
    for i in range(0, len(mu), BLOCK_ELEMENTS):
        block = slice(i, i + BLOCK_ELEMENTS)
        out[block] = _skewed(mu[block], s2[block], kappa3[block])
    return np.clip(out, 0.0, 1.0, out=out)


def expected_sigmoid(mu: Floats, s2: Floats) -> Floats:
    """Return E σ(a) (n,) for Gaussian activations within 6e-7: by an expansion where s² ≤ .1, else the mixture."""
    p = expit(mu)
    w = p * (1 - p)
    d, h = 1 - 2 * p, 0.5 * s2
    # σ″ = wδ, σ⁗ = wδ(1 − 12w), σ⁽⁶⁾ = wδ(1 − 60w + 360w²)
    p += w * d * h * (1 + h * (0.5 * (1 - 12 * w) + h / 6 * (1 - 60 * w + 360 * w * w)))
    wide = np.flatnonzero(s2 > SMALL)
    if len(wide):
        p[wide] = skewed_sigmoid(mu[wide], s2[wide], np.zeros(len(wide)))
    return np.asarray(p)


def third_change(mu: Floats, s2: Floats) -> Floats:
    """Return E σ‴(a)/6 (n,) for Gaussian activations: what a third cumulant of 1 changes of a probability."""
    p = expit(mu)
    w = p * (1 - p)
    # σ‴ = w(1 − 6w), σ⁽⁵⁾ = w(1 − 30w + 120w²)
    out = w * (1 - 6 * w + 0.5 * s2 * (1 - 30 * w + 120 * w * w))
    wide = np.flatnonzero(s2 > SMALL)
    if len(wide):
        out[wide] = _moments(mu[wide], s2[wide])[1]
    return np.asarray(out / 6)


def _skewed(mu: Floats, s2: Floats, kappa3: Floats) -> Floats:
    p, third = _moments(mu, s2)
    return p + kappa3 / 6 * third


def _moments(mu: Floats, s2: Floats) -> tuple[Floats, Floats]:
    """Return E σ and E σ‴ by the mixture."""
    out, third = np.zeros(mu.shape), np.zeros(mu.shape)
    for p, s in zip(MIXTURE_WEIGHTS, MIXTURE_SCALES, strict=True):
        t = s / np.sqrt(1 + (s * s) * s2)
        x = t * mu
        out += p * ndtr(x)
        x *= x
        third += (p / np.sqrt(2 * np.pi)) * t**3 * (x - 1) * np.exp(-0.5 * x)
    return out, third
