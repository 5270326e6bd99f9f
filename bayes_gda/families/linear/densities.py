"""The densities of the regressions in a PyMC model's unconstrained coordinates: weights, with or without their scale.

With an unknown scale the coordinates are t = log τ and z, w = rŵ + σz as in `priors.centering`. With s = τ for slopes
and c for intercepts, and all sums over the weights but that over slopes where it says so,

    log p = ℓ(w) − ½ Σ (w/s)² + ½ Σ log(1 − r) − ½ e^{2t}/scale² + t + constant
    ∂/∂z  = σ g,   g = ∂ℓ/∂w − w/s²
    ∂/∂t  = 1 − e^{2t}/scale² + Σ_slopes [g ∂w/∂t + (w/s)² − r],   ∂w/∂t = (1 − r)(2rŵ + σz)
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.gaussian.densities import LOG_2PI
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.methods.density import Density
from bayes_gda.methods.laplace import laplace_approximation
from bayes_gda.priors import HierarchicalScale, Normal
from bayes_gda.priors.centering import Centering


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
        if W.ndim == 2:
            return self.target.values_and_gradients(W)
        value, gradient = self.target.value_and_gradient(W)
        return np.asarray(value), gradient

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `w` (S, m), or (S, K, m) for softmax, and `w_free` (S, K − 1, m) in the reference coding."""
        return named_weights(self.target, W)

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the weights (S, dim) of draws of `w`."""
        w = variables.get("w_free", variables["w"])
        if isinstance(self.target, SoftmaxTarget):
            w = w[:, : self.target.shape[0]]
        return w.reshape(len(w), -1)

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
    """The density of (log τ, z).

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
    def _fixed(self) -> tuple[Floats, Floats, Floats, float]:
        """1 for a slope, 0 for an intercept; ŵ and log λ, (dim − 1,) each; and the constant."""
        target, prior = self.target, self.prior
        classes = [1] if isinstance(target, LogisticTarget) else range(target.shape[0])
        at = Centering.of(prior, target.Phi, target.y.astype(np.intp), classes, target.sample_weight)
        slope = np.asarray(np.arange(target.dim) % target.Phi.shape[1] != 0, dtype=float)
        with np.errstate(divide="ignore"):  # λ = 0: r = 0
            log_information = np.log(at.information.ravel())
        constant = 0.5 * np.log(2 / np.pi) - np.log(prior.scale) - 0.5 * LOG_2PI * target.dim
        return slope, at.estimate.ravel(), log_information, float(constant)

    def _scales(self, t: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return s, r, σ and log(1 − r) (…, dim − 1) at log τ (…, 1), the last also where r is near 1."""
        slope, _, log_information, _ = self._fixed
        log_s = slope * t + (1 - slope) * np.log(self.prior.intercept_scale)
        odds = log_information + 2 * log_s  # of r
        rest = log_expit(-odds)
        return np.exp(log_s), expit(odds), np.exp(log_s + 0.5 * rest), rest

    @cached_property
    def start(self) -> Floats:
        """(dim,) the weights' mode at τ = scale, and the τ that it suggests."""
        slope, estimate, _, _ = self._fixed
        m = self.target.Phi.shape[1]
        normal = Normal.default(m, prior_scale=self.prior.scale, intercept_scale=self.prior.intercept_scale)
        try:
            w = laplace_approximation(replace(self.target, prior=normal)).mean
        except ConvergenceError:
            w = np.zeros(self.target.dim)
        slopes = w[slope == 1]
        tau = np.sqrt(np.mean(slopes**2)) if slopes.size else self.prior.scale
        t = np.log(np.clip(tau, 1e-3 * self.prior.scale, self.prior.scale))
        _, r, sigma, _ = self._scales(t)
        return np.concatenate([[t], (w - r * estimate) / sigma])

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return log p (…) and its gradient (…, dim); −inf where scales leave the range of floats."""
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, gradient = self._values_and_gradients(W)
        return np.where(np.isnan(value), -np.inf, value), gradient

    def _values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        t, z = W[..., :1], W[..., 1:]
        slope, estimate, _, constant = self._fixed
        s, r, sigma, rest = self._scales(t)
        w = r * estimate + sigma * z
        likelihood, g = self._likelihood(w)
        g = g - w / s**2
        squares, hyper = (w / s) ** 2, np.exp(2 * t[..., 0]) * self.prior.scale**-2.0
        value = likelihood + constant + t[..., 0] - 0.5 * (hyper + squares.sum(axis=-1) - rest.sum(axis=-1))
        rise = g * np.exp(rest) * (2 * r * estimate + sigma * z) + squares - r
        return value, np.concatenate([(1 - hyper + rise @ slope)[..., None], sigma * g], axis=-1)

    def _likelihood(self, w: Floats) -> tuple[Floats | float, Floats]:
        """Return ℓ (…) and its gradient at weights (…, dim − 1)."""
        return self.target.value_and_gradient(w) if w.ndim == 1 else self.target.values_and_gradients(w)

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `tau` (S,), `z` in the shape of the weights, and the weights; raise if floats cannot hold them."""
        with np.errstate(over="ignore", invalid="ignore"):
            _, r, sigma, _ = self._scales(W[:, :1])
            tau, weights = np.exp(W[:, 0]), r * self._fixed[1] + sigma * W[:, 1:]
        if not (np.isfinite(tau).all() and np.isfinite(weights).all()):
            raise ConvergenceError(
                "Some draws of `tau` leave the range of floats, since the approximation is far too wide in log τ. "
                "Centre and scale the features, sample the posterior, or give `prior_scale` a number."
            )
        z, w = named_weights(self.target, W[:, 1:]), named_weights(self.target, weights)
        return {"tau": tau, "z": z.get("w_free", z["w"])} | w

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return (log τ, z) (S, dim) of draws of `tau` and `w`."""
        t = np.log(variables["tau"])[:, None]
        w = variables["w"][:, : self.target.shape[0]] if isinstance(self.target, SoftmaxTarget) else variables["w"]
        _, r, sigma, _ = self._scales(t)
        return np.hstack([t, (w.reshape(len(t), -1) - r * self._fixed[1]) / sigma])

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log densities of `tau`, by its logarithm, and of `w` given it."""
        tau = variables["tau"]
        w = variables.get("w_free", variables["w"]).reshape(len(tau), -1)
        scale = np.where(self._fixed[0] == 1, tau[:, None], self.prior.intercept_scale)
        with np.errstate(over="ignore"):  # −inf is right
            half = 0.5 * np.log(2 / np.pi) + np.log(tau / self.prior.scale) - 0.5 * (tau / self.prior.scale) ** 2
            normal = -(0.5 * (LOG_2PI + (w / scale) ** 2) + np.log(scale)).sum(axis=1)
        return {"tau": half, "w": normal}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return log p(y_i | x_i, w) (S, n) of the rows of the target, which `rows` are."""
        return log_likelihood_of_rows(self.target, variables["w"])


def named_weights(target: LogisticTarget | SoftmaxTarget, W: Floats) -> dict[str, Floats]:
    """Return the weights (S, dim) under the names and in the shapes of the PyMC model."""
    if isinstance(target, LogisticTarget):
        return {"w": W}
    free = W.reshape(len(W), *target.shape)
    if not target.reference:
        return {"w": free}
    return {"w": np.concatenate([free, np.zeros((len(W), 1, free.shape[2]))], axis=1), "w_free": free}


def log_likelihood_of_rows(target: LogisticTarget | SoftmaxTarget, w: Floats) -> Floats:
    """Return log p(y_i | x_i, w) (S, n) for weights (S, m) or (S, K, m); how often a row counts is not in it."""
    a = w @ target.Phi.T
    if isinstance(target, LogisticTarget):
        trials = 1.0 if target.trials is None else np.asarray(target.trials)
        return np.asarray(target.y * log_expit(a) + (trials - target.y) * log_expit(-a))
    return np.asarray(log_softmax(a, axis=1)[:, target.y, np.arange(target.n)])


def draw_weights(family: Any, size: int, random_seed: int) -> dict[str, Floats] | None:
    """Draw `w` (size, m), or (size, K, m), and `tau` (size,) if it is learnt, from the prior; None if it is flat.

    The classes share τ. A reference class, with weights zero, is the last one.

    Parameters
    ----------
    family
        The regression: its prior, design matrix and classes.
    size, random_seed
        Number of draws, and their seed.
    """
    if not family.proper or family.before is not None:
        return None
    prior, m, rng = family.prior, family.Phi.shape[1], np.random.default_rng(random_seed)
    if family.binary:
        drawn: dict[str, Floats] = prior.draw(size, m, random_seed=rng)
        return drawn
    K, free = family.data.K, family.data.K - family.reference
    out: dict[str, Floats] = {}
    if isinstance(prior, Normal):
        w = prior.draw(size * free, m, random_seed=rng)["w"].reshape(size, free, m)
    else:
        out["tau"] = prior.draw(size, m, random_seed=rng)["tau"]
        w = rng.standard_normal((size, free, m)) * out["tau"][:, None, None]
        w[..., 0] = prior.intercept_scale * rng.standard_normal((size, free))
    return out | {"w": np.pad(w, [(0, 0), (0, K - free), (0, 0)])}
