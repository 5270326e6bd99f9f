"""The densities of the regressions in a PyMC model's unconstrained coordinates: weights, with or without their scale.

With an unknown scale, t = log τ, slopes w_j | τ ~ N(0, τ²), of which there are N, and intercepts ~ N(0, c²):

    log p = ℓ(w) − N t − ½ Q e^{−2t} − ½ Σ w₀²/c² − ½ e^{2t}/s² + t + constant,   Q = Σ w_j²
    ∂/∂t  = 1 − N + Q e^{−2t} − e^{2t}/s²,   ∂/∂w_j = ∂ℓ/∂w_j − w_j e^{−2t}
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import log_expit, log_softmax

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.gaussian.densities import LOG_2PI
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.methods.density import Density
from bayes_gda.methods.laplace import laplace_approximation
from bayes_gda.priors import HierarchicalScale, Normal


@dataclass(frozen=True, eq=False)
class WeightsDensity(Density):
    """The density of the weights under a Gaussian prior, or a flat one; coordinates are the weights themselves."""

    target: LogisticTarget | SoftmaxTarget

    @property
    def dim(self) -> int:
        """Number of weights."""
        return self.target.dim

    @cached_property
    def start(self) -> Floats:
        """(dim,) the origin, from where Newton's method converges."""
        return np.zeros(self.dim)

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return log p (…) and its gradient (…, dim)."""
        return _at_each(self.target.value_and_gradient, W)

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `w` (S, m), or (S, K, m) for softmax, and `w_free` (S, K − 1, m) in the reference coding."""
        return named_weights(self.target, W)

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the Gaussian log density of the weights; a flat direction adds 0."""
        w = variables.get("w_free", variables["w"])
        log_p = self.target.gaussian.log_density(w)
        return {"w": log_p if log_p.ndim == 1 else log_p.sum(axis=-1)}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return log p(y_i | x_i, w) (S, n) of the rows of the target, which `rows` are."""
        return log_likelihood_of_rows(self.target, variables["w"])


@dataclass(frozen=True, eq=False)
class HierarchicalDensity(Density):
    """The density of (log τ, w).

    Parameters
    ----------
    target
        The likelihood, as a target with a flat prior.
    prior
        The prior of τ, slopes and intercepts.
    """

    target: LogisticTarget | SoftmaxTarget
    prior: HierarchicalScale

    @property
    def dim(self) -> int:
        """Number of coordinates, one more than the weights."""
        return self.target.dim + 1

    @cached_property
    def _slope(self) -> Floats:
        """1 for a slope, 0 for an intercept (dim − 1,)."""
        m = self.target.Phi.shape[1]
        return np.asarray(np.arange(self.target.dim) % m != 0, dtype=float)

    @cached_property
    def _constant(self) -> float:
        intercepts = float((1 - self._slope).sum())
        hyperprior = 0.5 * np.log(2 / np.pi) - np.log(self.prior.scale)
        return float(hyperprior - intercepts * np.log(self.prior.intercept_scale) - 0.5 * LOG_2PI * len(self._slope))

    @cached_property
    def start(self) -> Floats:
        """(dim,) the weights' mode at τ = scale, and the τ that it suggests; the joint mode may not exist."""
        m = self.target.Phi.shape[1]
        normal = Normal.default(m, prior_scale=self.prior.scale, intercept_scale=self.prior.intercept_scale)
        try:
            w = laplace_approximation(replace(self.target, prior=normal)).mean
        except ConvergenceError:
            w = np.zeros(self.target.dim)
        slopes = w[self._slope == 1]
        tau = np.sqrt(np.mean(slopes**2)) if slopes.size else self.prior.scale
        return np.concatenate([[np.log(np.clip(tau, 1e-3 * self.prior.scale, self.prior.scale))], w])

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return log p (…) and its gradient (…, dim)."""
        return _at_each(self._one, W)

    def _one(self, point: Floats) -> tuple[float, Floats]:
        t, w = point[0], point[1:]
        value, g = self.target.value_and_gradient(w)
        slope = self._slope
        precision = slope * np.exp(-2 * t) + (1 - slope) * self.prior.intercept_scale**-2.0
        Q, N = float(np.exp(-2 * t) * (slope * w) @ w), slope.sum()
        hyper = np.exp(2 * t) * self.prior.scale**-2.0
        value += self._constant + (1 - N) * t - 0.5 * float((precision * w) @ w) - 0.5 * hyper
        return value, np.concatenate([[1 - N + Q - hyper], g - precision * w])

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `tau` (S,) and the weights."""
        return {"tau": np.exp(W[:, 0])} | named_weights(self.target, W[:, 1:])

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log densities of `tau`, by its logarithm, and of `w` given it."""
        tau = variables["tau"]
        w = variables.get("w_free", variables["w"]).reshape(len(tau), -1)
        scale = np.where(self._slope == 1, tau[:, None], self.prior.intercept_scale)
        half = 0.5 * np.log(2 / np.pi) + np.log(tau / self.prior.scale) - 0.5 * (tau / self.prior.scale) ** 2
        normal = -(0.5 * (LOG_2PI + (w / scale) ** 2) + np.log(scale)).sum(axis=1)
        return {"tau": half, "w": normal}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return log p(y_i | x_i, w) (S, n) of the rows of the target, which `rows` are."""
        return log_likelihood_of_rows(self.target, variables["w"])


def _at_each(one: Callable[[Floats], tuple[float, Floats]], W: Floats) -> tuple[Floats, Floats]:
    """Return a value and gradient at one point (dim,), or at each of many (S, dim)."""
    if W.ndim == 1:
        value, gradient = one(W)
        return np.asarray(value), gradient
    results = [one(w) for w in W]
    return np.array([value for value, _ in results]), np.array([gradient for _, gradient in results])


def named_weights(target: LogisticTarget | SoftmaxTarget, W: Floats) -> dict[str, Floats]:
    """Return the weights (S, dim) under the names and in the shapes of the PyMC model."""
    if isinstance(target, LogisticTarget):
        return {"w": W}
    free = W.reshape(len(W), *target.shape)
    if not target.reference:
        return {"w": free}
    return {"w": np.concatenate([free, np.zeros((len(W), 1, free.shape[2]))], axis=1), "w_free": free}


def log_likelihood_of_rows(target: LogisticTarget | SoftmaxTarget, w: Floats) -> Floats:
    """Return log p(y_i | x_i, w) (S, n), times the row's weight, for weights (S, m) or (S, K, m)."""
    a = w @ target.Phi.T
    if isinstance(target, LogisticTarget):
        log_p = target.successes * log_expit(a) + target.failures * log_expit(-a)
        return np.asarray(log_p)
    log_p = log_softmax(a, axis=1)[:, target.y, np.arange(target.n)]
    return np.asarray(log_p if target.sample_weight is None else log_p * target.sample_weight)
