"""Default priors on the scale of the data: of moments, of rows with gaps, and where a column sets no scale.

Of rows with gaps the variance of each feature is that of the rows that have it; the scale, which depends on the
correlations alone, is that of the complete rows, and of no correlations if there are too few of these; indicators of a
category are then taken as any other feature. The core
refuses a feature that does not vary within any class. `default_prior`, for the doors, where a fold of a
cross-validation may have one by chance, takes its variance over all rows, or 1 if it is constant.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import check_gapped, moments_by_feature
from bayes_gda.data.moments import TOO_LARGE, Moments
from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import CONSTANT, SMALLEST
from bayes_gda.errors import DataError, PriorError
from bayes_gda.linalg import blas_threads
from bayes_gda.priors.distributions import DEFAULT_FREEDOM, NIG, NIW
from bayes_gda.priors.units import degrees_of_freedom, evident_scale, pooled_scatter


def default_nig(X: ArrayLike, y: ArrayLike, K: int) -> NIG:
    """Return the default prior of the naive model, feature by feature from the values at hand."""
    parts = []
    for j, moments in enumerate(moments_by_feature(check_gapped(X), y, K)):
        if not moments.scatter.sum() > 0:
            raise PriorError(
                f"Feature {j} does not vary within any class, or has no values, so the default prior has no scale for "
                "it. Drop the feature or give `prior`."
            )
        parts.append(NIG.default(moments))
    return side_by_side(parts)


def default_niw(X: ArrayLike, y: ArrayLike, K: int) -> NIW:
    """Return the default prior of LDA and QDA: centre and variances feature by feature from the values at hand."""
    return as_niw(default_nig(X, y, K), check_gapped(X), y)


def side_by_side(parts: Sequence[NIG]) -> NIG:
    """Join priors of single features into one of all."""
    return NIG(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("m", "kappa", "a", "b")))


def as_niw(each: NIG, X: Floats, y: ArrayLike) -> NIW:
    """Return the default NIW prior of rows with gaps: centre and variances of `each`, the scale of complete rows."""
    nu = len(each.m) + DEFAULT_FREEDOM
    whole = ~np.isnan(X).any(axis=1)
    classes, codes = np.unique(np.asarray(y)[whole], return_inverse=True)
    s = nu
    if whole.sum() > len(classes):
        moments = varied(Moments.from_arrays(X[whole], codes, len(classes)))
        S, f = pooled_scatter(moments), degrees_of_freedom(moments)
        s = evident_scale(S, np.diag(np.diagonal(S)) / f, f, nu)
    return NIW(m=each.m, kappa=float(each.kappa[0]), Psi=np.diag(s * each.b / each.a), nu=nu)


# ── At the door, where a fold of a cross-validation may lack what sets a scale ──────────────────────────────────────


def default_prior(moments: Moments, family: type[NIW] | type[NIG]) -> NIW | NIG:
    """Return the default prior of the family, also where a feature has no variance within the classes."""
    with blas_threads(moments.d):
        return family.default(varied(moments))


def pooled_covariance(moments: Moments) -> Floats:
    """Return the covariance within classes (d, d), with the variance of `default_prior` where a feature has none."""
    variance, flat = _variances(moments)
    return np.asarray(pooled_scatter(moments) / moments.n + np.diag(np.where(flat, variance, 0.0)))


def varied(moments: Moments) -> Moments:
    """The same moments with variances within classes that can set a scale: the rule for the rest stays in one place."""
    variance, flat = _variances(moments)
    if not flat.any():
        return moments
    extra = np.diag(np.where(flat, variance * degrees_of_freedom(moments) / moments.n, 0.0))
    return replace(moments, scatter=moments.scatter + moments.count[:, None, None] * extra)


def _variances(moments: Moments) -> tuple[Floats, NDArray[np.bool_]]:
    """Return variances (d,) that can set a scale, and which features have none within classes."""
    n = moments.n
    center = moments.count @ moments.mean / n
    squares = np.diagonal(pooled_scatter(moments))
    within = squares / degrees_of_freedom(moments)
    with np.errstate(over="ignore", invalid="ignore"):
        total = (squares + moments.count @ (moments.mean - center) ** 2) / n
        floor = (CONSTANT * np.abs(center)) ** 2
    if not (np.isfinite(total).all() and np.isfinite(floor).all()):
        raise DataError(TOO_LARGE)
    flat = within <= floor
    variance = np.where(~flat, within, np.where(total > floor, total, 1.0))
    if (variance < SMALLEST**2).any():
        j = int(np.argmin(variance))
        raise DataError(
            f"Feature {j + 1} has a standard deviation of {np.sqrt(variance[j]):.3g} within classes; what is below "
            f"{SMALLEST:g} is lost when it is squared. Give it in a smaller unit."
        )
    return variance, flat


def default_incomplete_prior(rows: Dataset, family: type[NIW] | type[NIG]) -> NIW | NIG:
    """Return the default prior of the family, on the scale of the values at hand; see `default_prior`."""
    parts = moments_by_feature(rows.X, rows.y, rows.K)
    for name, part in zip(rows.feature_names, parts, strict=True):
        if not part.n:
            raise DataError(f"Feature {name!r} has no values: all are missing. Drop it, or give `prior`.")
    each = side_by_side([_of_one(part) for part in parts])
    return each if family is NIG else as_niw(each, rows.X, rows.y)


def _of_one(moments: Moments) -> NIG:
    prior = default_prior(moments, NIG)
    assert isinstance(prior, NIG)
    return prior
