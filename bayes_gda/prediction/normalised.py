"""From log p(x, y=k) to log p(y=k | x): class probabilities of joint densities, stable however far out x lies."""

import numpy as np
from scipy.special import softmax

from bayes_gda.checks import Floats


def log_class_probabilities(log_joint: Floats) -> Floats:
    """Normalise log p(x, y=k) (…, K) to log p(y=k | x), stable however far out x lies."""
    return normalised(log_joint)[0]


def normalised(log_joint: Floats) -> tuple[Floats, Floats]:
    """Return log p(y=k | x) (…, K) and log p(x) (…) of log p(x, y=k) (…, K).

    Class by class: NumPy's reductions over a short last axis take five times as long.
    """
    classes = range(log_joint.shape[-1])
    top = log_joint[..., 0].copy()
    for k in classes[1:]:
        np.maximum(top, log_joint[..., k], out=top)
    # The largest goes first: beside a log density of −1e9 the sum's own logarithm would be lost to rounding.
    with np.errstate(over="ignore"):  # of densities that differ by more than a float holds, to −inf
        out = log_joint - top[..., None]
    total = np.zeros_like(top)
    for k in classes:
        total += np.exp(out[..., k])
    np.log(total, out=total)
    for k in classes:
        out[..., k] -= total
    return out, top + total


def generative_draws(log_joint: Floats) -> tuple[Floats, Floats]:
    """Turn log p(x, y=k | θ_s) (S, n, K) into p(y=k | x, θ_s) (S, n, K) and weights ∝ p(x | θ_s) (S, n).

    Their weighted mean is the generative predictive, as Σ_s p(x | θ_s) p(y | x, θ_s) = Σ_s p(x, y | θ_s). It takes what
    `predictive.log_joint_per_draw` gives.
    """
    P, log_x = normalised(log_joint)
    return np.exp(P, out=P), np.asarray(softmax(log_x, axis=0))
