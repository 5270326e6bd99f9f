"""The units of the default priors: centre, variances within classes, and the scale that the data choose."""

import numpy as np
from scipy.linalg import eigh
from scipy.optimize import brentq

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.moments import Moments
from bayes_gda.errors import PriorError

# Smallest scale of the default, in variances within classes. The evidence of exactly collinear features rises without
# bound as s → 0; some scale keeps their posterior regular in float64, and the next smallest, of crabs, is .03.
SMALLEST_SCALE = 1e-4


def degrees_of_freedom(moments: Moments) -> float:
    """Return the degrees of freedom n − K of the pooled scatter; below one, in proportion to the sum of the weights."""
    return max(moments.n - moments.K, moments.n / (moments.K + 1))


def pooled_scatter(moments: Moments) -> Floats:
    """Return the scatter within classes (d, d), a sum over these."""
    return np.asarray(moments.scatter.sum(axis=0))


def center_and_variance(moments: Moments) -> tuple[Floats, Floats]:
    """Return the mean of all rows (d,) and the pooled within-class variances (d,)."""
    center = moments.count @ moments.mean / moments.count.sum()
    variance = np.diagonal(pooled_scatter(moments)) / degrees_of_freedom(moments)
    if not (variance > 0).all():
        j = int(np.argmin(variance > 0))
        raise PriorError(
            f"Feature {j} does not vary within any class, so the default prior has no scale for it. "
            "Drop the feature or give `prior`."
        )
    return frozen(center), frozen(variance)


def find_categories(moments: Moments) -> tuple[slice, ...]:
    """Return the runs of two or more columns that are indicators of the levels of one category, but for its reference.

    They are known by their moments: Σx² = Σx, so that all values are 0 or 1, and Σx_i x_j = 0, so that at most one of
    them is 1 in a row.
    """
    mean, n = moments.mean, moments.count[:, None, None]
    products = moments.scatter + n * mean[:, :, None] * mean[:, None, :]  # Σ x_i x_j of each class
    rounding = 1e-9 * moments.n
    squares = np.diagonal(products, axis1=1, axis2=2)
    binary = np.abs(squares - moments.count[:, None] * mean).max(axis=0) < rounding
    binary &= squares.sum(axis=0) > rounding  # a column of zeros is no indicator
    apart = np.abs(products).max(axis=0) < rounding
    runs, start = [], 0
    for j in range(1, moments.d + 1):
        if j < moments.d and binary[start : j + 1].all() and apart[start:j, j].all():
            continue
        runs.append(slice(start, j))
        start = j
    return tuple(run for run in runs if run.stop - run.start > 1)


def independent_part(covariance: Floats, categories: tuple[slice, ...]) -> Floats:
    """Return the covariance (d, d) without the correlations of features, so that no level of a category is special.

    Indicators of one category with L levels cannot be independent. Their covariance becomes v (I − 11ᵀ/L), which is v I
    for every orthonormal set of contrasts of the L levels, whichever of them is the reference; v is the mean variance
    of such contrasts, (tr C + 1ᵀC1)/(L − 1), where 1ᵀC1 is the variance of the reference.
    """
    out = np.diag(np.diagonal(covariance))
    for run in categories:
        C = covariance[run, run]
        levels = len(C) + 1
        out[run, run] = (np.trace(C) + C.sum()) / len(C) * (np.eye(len(C)) - 1 / levels)
    return out


def evident_scale(scatter: Floats, unit: Floats, freedom: float, nu: float) -> float:
    """Return s of the highest evidence for Ψ = s D, `unit` being D; see `NIW.default`.

    The left side of the equation rises with s, and s = ν makes it at least d ν, as 1/(s + f r) is convex in r and the
    r_j have mean 1. Where it exceeds d ν for all s, as with collinear features, the smallest scale is returned.
    """
    d = len(scatter)
    r = np.maximum(eigh(scatter, unit, eigvals_only=True), 0.0) / freedom

    def excess(log_s: float) -> float:
        s = np.exp(log_s)
        return float((nu + freedom) * np.sum(s / (s + freedom * r)) - d * nu)

    low, high = np.log(SMALLEST_SCALE), np.log(nu)
    if excess(low) >= 0 or excess(high) <= 0:  # the latter by rounding alone
        return float(np.exp(low if excess(low) >= 0 else high))
    return float(np.exp(brentq(excess, low, high, xtol=1e-12)))
