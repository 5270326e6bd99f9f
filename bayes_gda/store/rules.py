"""What a stored object must satisfy beyond the types of its fields: shapes that fit, finite numbers, positive scales.

Priors and moments check themselves as they are made. The others are made by our own code, which is right by
construction; coming from a file, they are held to their own `check_whole`, as fitted models are, or to a rule here.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from bayes_gda.checks import LARGEST_STORED, Floats, covariance, finite, positive
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.gaps import ObservedCounts
from bayes_gda.data.moments import Moments
from bayes_gda.errors import StoreError
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.verdict import Importance, Propagation


def check(made: Any) -> None:
    """Raise `StoreError` unless the object is whole; types without a rule are."""
    rule = _RULES.get(type(made), getattr(type(made), "check_whole", None))
    if rule is not None:
        rule(made)


def _shape(name: str, value: Floats, *shape: int) -> None:
    if value.shape != shape:
        raise StoreError(f"`{name}` must have shape {shape}; got {value.shape}.")


def _finite(**values: Floats | float) -> None:
    for name, value in values.items():
        finite(name, value, largest=LARGEST_STORED, error=StoreError)


def _positive(**values: Floats | float) -> None:
    for name, value in values.items():
        finite(name, positive(name, value, error=StoreError), largest=LARGEST_STORED, error=StoreError)


def _size(name: str, value: Floats, ndim: int) -> tuple[int, ...]:
    """Return the shape of an array that others are measured by: `ndim` axes, none of them empty."""
    if value.ndim != ndim or 0 in value.shape:
        raise StoreError(f"`{name}` must have {ndim} axes, none empty; got shape {value.shape}.")
    return value.shape


def _feature_map(phi: FeatureMap) -> None:
    d, m = len(phi.feature_names), len(phi.names) - phi.intercept
    if phi.monomials is None:
        raise StoreError("`monomials` is missing; a map with a function cannot be stored.")
    if not d or len(phi.monomials) != m or m < 1:
        raise StoreError(f"`names` must name {len(phi.monomials)} monomials of {d} features; got {len(phi.names)}.")
    if not all(mono and all(0 <= j < d for j in mono) for mono in phi.monomials):
        raise StoreError(f"`monomials` must be products of the columns 0…{d - 1}.")
    for name, size, (center, scale) in (("inner", d, phi.inner), ("outer", m, phi.outer)):
        _shape(name, center, size)
        _shape(name, scale, size)
        _finite(**{name: center})
        _positive(**{name: scale})


def _moments(moments: Moments) -> None:
    _size("mean", moments.mean, 2)
    _finite(count=moments.count, mean=moments.mean, scatter=moments.scatter)


def _observed_counts(counts: ObservedCounts) -> None:
    _size("values", counts.values, 2)
    _finite(count=counts.count, values=counts.values)


def _niw_posterior(posterior: NIWPosterior) -> None:
    K, d = _size("m", posterior.m, 2)
    G = len(posterior.Psi) if posterior.Psi.ndim == 3 else 0
    if G not in (1, K):
        raise StoreError(f"`Psi` must hold 1 or {K} matrices; got shape {posterior.Psi.shape}.")
    for name, shape in (("kappa", (K,)), ("Psi", (G, d, d)), ("nu", (G,)), ("alpha", (K,))):
        _shape(name, getattr(posterior, name), *shape)
    _finite(m=posterior.m, log_evidence=_known(posterior.log_evidence))
    _positive(kappa=posterior.kappa, nu=posterior.nu - (d - 1), alpha=posterior.alpha)
    _finite(Psi=posterior.Psi)
    for Psi in posterior.Psi:
        covariance("Psi", Psi, error=StoreError)


def _known(log_evidence: float) -> float:
    """Return the log evidence, or 0 for nan, which it is under an improper prior; the model holds it against that."""
    return 0.0 if np.isnan(log_evidence) else log_evidence


def _nig_posterior(posterior: NIGPosterior) -> None:
    K, d = _size("m", posterior.m, 2)
    for name in ("kappa", "a", "b"):
        _shape(name, getattr(posterior, name), K, d)
    _shape("alpha", posterior.alpha, K)
    _finite(m=posterior.m, log_evidence=_known(posterior.log_evidence))
    _positive(kappa=posterior.kappa, a=posterior.a, b=posterior.b, alpha=posterior.alpha)


def _gaussian_posterior(posterior: GaussianPosterior) -> None:
    (m,) = _size("mean", posterior.mean, 1)
    L = posterior.chol_precision
    _shape("chol_precision", L, m, m)
    _finite(mean=posterior.mean, chol_precision=L)
    _positive(chol_precision=np.diag(L))
    if np.triu(L, 1).any():
        raise StoreError("`chol_precision` must be lower triangular; it has entries above the diagonal.")


def _propagation(propagation: Propagation) -> None:
    for name in ("certificate", "laplace_error", "better_error"):
        if not getattr(propagation, name) >= 0:
            raise StoreError(f"`{name}` must be a number of at least 0; got {getattr(propagation, name):g}.")
    if propagation.passes < 0:
        raise StoreError(f"`passes` must not be negative; got {propagation.passes}.")


def _importance(importance: Importance) -> None:
    S, m = _size("draws", importance.draws, 2)
    _shape("log_weights", importance.log_weights, S)
    _shape("mean_shift", importance.mean_shift, m)
    _shape("sd_ratio", importance.sd_ratio, m)
    _finite(draws=importance.draws)
    total = float(np.exp(importance.log_weights).sum()) if not (importance.log_weights > 0).any() else np.inf
    if not abs(total - 1) < 1e-6:  # rounding of S terms; nan fails too
        raise StoreError(f"`log_weights` must be normalised; the weights sum to {total:g}.")


_RULES: dict[type, Callable[[Any], None]] = {
    FeatureMap: _feature_map,
    GaussianPosterior: _gaussian_posterior,
    Importance: _importance,
    Propagation: _propagation,
    Moments: _moments,
    NIGPosterior: _nig_posterior,
    NIWPosterior: _niw_posterior,
    ObservedCounts: _observed_counts,
}
