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


def weights(name: str, prior: Normal | HierarchicalScale, m: int, dims: Sequence[str]) -> TensorVariable:
    """Give the weights w, m in each row, a name and their prior.

    A flat direction of a `Normal` (infinite scale) contributes nothing to the density; such a prior has a posterior
    but cannot be drawn from.
    """
    if isinstance(prior, HierarchicalScale):
        tau = pm.HalfNormal("tau", sigma=prior.scale)
        scale = pt.concatenate([[prior.intercept_scale], pt.repeat(tau, m - 1)])
        return pm.Normal(name, mu=0.0, sigma=scale, dims=dims)
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


def observe(distribution: Any, a: TensorVariable, y: NDArray[np.intp], sample_weight: Floats | None) -> None:
    """Observe labels y given activations a; each row counts `sample_weight` times if that is given."""
    if sample_weight is None:
        distribution("y", logit_p=a, observed=y)
    else:
        c = check_rows("sample_weight", sample_weight, len(y))
        pm.Potential("y", pt.sum(c * pm.logp(distribution.dist(logit_p=a), y)))
