"""What logistic and softmax regression share: the prior of the weights as PyMC variables, and the observed labels."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.tensor import TensorVariable

from bayes_gda.checks import Floats, check_rows
from bayes_gda.priors import HierarchicalScale, Normal
from bayes_gda.priors.centering import Centering


def weights(name: str, prior: Normal, m: int, dims: Sequence[str]) -> TensorVariable:
    """Give the weights w, m in each row, a name and their prior.

    A flat direction of a `Normal` (infinite scale) contributes nothing to the density; such a prior has a posterior
    but cannot be drawn from.
    """
    mean = prior.mean_vector(m)
    if prior.covariance is not None:
        prior.precision(m)  # checks its size
        return pm.MvNormal(name, mu=mean, chol=np.linalg.cholesky(prior.covariance), dims=dims)
    scale = prior.scale_vector(m)
    if prior.is_proper:
        return pm.Normal(name, mu=mean, sigma=scale, dims=dims)
    w = pm.Flat(name, dims=dims)
    held = np.flatnonzero(np.isfinite(scale))
    pm.Potential(f"{name}_prior", pm.logp(pm.Normal.dist(mean[held], scale[held]), w[..., held]).sum())
    return w


def scaled_weights(name: str, prior: HierarchicalScale, at: Centering, dims: Sequence[str]) -> TensorVariable:
    """Give the weights w | τ ~ N(0, s²), s = τ for slopes, a name, in the coordinates τ and z of `Centering`.

    w = rŵ + σz is N(0, s²) if z ~ N(−rŵ/σ, s²/σ²); with λ = 0 that is w = sz, z ~ N(0, 1).
    """
    estimate, information = (x[0] if len(dims) == 1 else x for x in (at.estimate, at.information))
    tau = pm.HalfNormal("tau", sigma=prior.scale)
    s = pt.concatenate([[prior.intercept_scale], pt.repeat(tau, estimate.shape[-1] - 1)])
    r = information * s**2 / (1 + information * s**2)
    sigma = s * pt.sqrt(1 - r)
    z = pm.Normal("z", mu=-r * estimate / sigma, sigma=s / sigma, dims=dims)
    return pm.Deterministic(name, r * estimate + sigma * z, dims=dims)


def observe(distribution: Any, a: TensorVariable, y: NDArray[np.intp], sample_weight: Floats | None) -> None:
    """Observe labels y given activations a; each row counts `sample_weight` times if that is given."""
    if sample_weight is None:
        distribution("y", logit_p=a, observed=y, dims="row")
    else:
        c = check_rows("sample_weight", sample_weight, len(y))
        pm.Potential("y", pt.sum(c * pm.logp(distribution.dist(logit_p=a), y)))
