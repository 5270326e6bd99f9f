"""Rules at the door: rows that are equal, names that are not distinct, columns that set no scale.

The core refuses a constant column or a feature that does not vary within any class. Here, where a fold of a
cross-validation may have one by chance:

    standardisation    a constant column is centred and left at scale 1: its weight is what the prior says
    default prior      a feature without variance within classes takes its variance over all rows, or 1 if constant
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.data.validate import SMALLEST, check_range
from bayes_gda.errors import DataError
from bayes_gda.priors import NIG, NIW

# The computed standard deviation of a constant column of value v is a few ulps of v.
CONSTANT = 1e-12
# Up to so many rows equal ones are pooled, which takes 10 ms here and would take longer than the fit for a million.
POOLED_ROWS = 10_000

FeatureSpec = FeatureMap | int | Callable[[Floats], Floats] | None


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Training rows as the estimators hand them on.

    Parameters
    ----------
    X, codes, classes
        (n, d) features, (n,) class codes, (K,) labels.
    weight
        (n,) weights > 0, or None.
    names
        (d,) distinct feature names.
    original
        The rows before they were pooled; None if these are they.
    """

    X: Floats
    codes: NDArray[np.intp]
    classes: NDArray[Any]
    weight: Floats | None
    names: tuple[str, ...]
    original: "Rows | None" = None

    def __post_init__(self) -> None:
        if self.original is None:  # pooled rows are those that were checked
            check_range(self.X, self.names)

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def shares(self) -> Floats:
        """(K,) shares of the classes, by weight."""
        count = np.bincount(self.codes, weights=self.weight, minlength=self.K)
        return np.asarray(count / count.sum())


def pool(rows: Rows) -> Rows:
    """Merge equal rows into one of their summed weight, and sort: order and repetition then change nothing at all.

    A weight of 2 and two equal rows would otherwise differ by rounding, which a long chain of NUTS steps blows up to
    another, equally good set of draws.
    """
    if len(rows.X) > POOLED_ROWS:
        return rows
    keys = np.column_stack([rows.codes, rows.X])
    unique, index = np.unique(keys, axis=0, return_inverse=True)
    weight = np.bincount(index.ravel(), weights=rows.weight)
    X, codes = np.ascontiguousarray(unique[:, 1:]), unique[:, 0].astype(np.intp)
    return replace(
        rows, X=X, codes=codes, weight=None if (weight == 1).all() else weight.astype(np.float64), original=rows
    )


def default_prior(moments: Moments, family: type[NIW] | type[NIG]) -> NIW | NIG:
    """Return the default prior of the family, also where a feature has no variance within the classes."""
    return family.default(_varied(moments))


def pooled_covariance(moments: Moments) -> Floats:
    """Return the covariance within classes (d, d), with the variance of `default_prior` where a feature has none."""
    return np.asarray(_varied(moments).scatter.sum(axis=0) / moments.n)


def _varied(moments: Moments) -> Moments:
    """The same moments with variances within classes that can set a scale: the rule for the rest stays in one place."""
    n = moments.n
    center = moments.count @ moments.mean / n
    within = np.diagonal(moments.scatter.sum(axis=0)) / n
    total = within + moments.count @ (moments.mean - center) ** 2 / n
    floor = (CONSTANT * np.abs(center)) ** 2
    variance = np.where(within > floor, within, np.where(total > floor, total, 1.0))
    if (variance < SMALLEST**2).any():
        j = int(np.argmin(variance))
        raise DataError(
            f"Feature {j + 1} has a standard deviation of {np.sqrt(variance[j]):.3g} within classes; what is below "
            f"{SMALLEST:g} is lost when it is squared. Give it in a smaller unit."
        )
    extra = (variance - within)[:, None] * np.eye(moments.d)
    return replace(moments, scatter=moments.scatter + moments.count[:, None, None] * extra)


def fit_features(rows: Rows, spec: FeatureSpec, *, standardize: bool) -> FeatureMap:
    """Fit a feature map to weighted rows.

    Parameters
    ----------
    rows
        A row of weight 2 counts as two.
    spec
        A fitted map, returned as it is; a degree; a row-wise function; None for the features themselves.
    standardize
        Whether to centre and scale columns; a constant one is only centred.
    """
    if isinstance(spec, FeatureMap):
        if len(spec.feature_names) != len(rows.names):
            raise DataError(
                f"`features` maps {len(spec.feature_names)} features; `X` has {len(rows.names)}. Fit it to these rows."
            )
        return spec
    degree, function = (1, spec) if callable(spec) else (1 if spec is None else spec, None)
    if isinstance(degree, bool) or not isinstance(degree, (int, np.integer)):
        raise DataError(f"`features` must be a FeatureMap, a degree, a function or None; got {spec!r}.")
    raw = FeatureMap.fit(rows.X, rows.names, degree=int(degree), function=function, standardize=False)
    if not standardize:
        return raw
    inner = raw.inner if function is not None else _center_and_scale(rows.X, rows.weight)
    scaled = replace(raw, inner=inner)
    if raw.plain:
        return scaled
    return replace(scaled, outer=_center_and_scale(scaled(rows.X)[:, 1:], rows.weight))


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with a number behind those that repeat an earlier one or `intercept`."""
    seen, out = {"intercept"}, []
    for name in names:
        candidate, i = name, 2
        while candidate in seen:
            candidate, i = f"{name} ({i})", i + 1
        seen.add(candidate)
        out.append(candidate)
    return tuple(out)


def _center_and_scale(Z: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    center = np.average(Z, axis=0, weights=weight)
    scale = np.sqrt(np.average((Z - center) ** 2, axis=0, weights=weight))
    return frozen(center), frozen(np.where(scale > CONSTANT * np.abs(center), scale, 1.0))
