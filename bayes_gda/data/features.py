"""Feature maps φ: fitted once, frozen, and applied to new rows in the same way.

    x (d)  ──▶  z = (x − center)/scale  ──▶  monomials of z, or any function of x  ──▶  (· − center)/scale  ──▶  1, …

Standardising before the products keeps x and x² from being collinear when the mean is large against the spread;
standardising after them gives every weight the same prior scale. All of it is linear in the monomials of the original
x, so weights can be mapped back to the original units exactly.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement
from typing import Self

import numpy as np

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.validate import CONSTANT, LARGEST, SMALLEST, check_size
from bayes_gda.errors import DataError

# A monomial is the sorted tuple of its factors' columns: () is 1, (0,) is x₀, (0, 1) is x₀x₁, (1, 1) is x₁².
Monomial = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class FeatureMap:
    """A fitted map from features (n, d) to the design matrix Phi (n, m); make one with `FeatureMap.fit`.

    Parameters
    ----------
    feature_names
        The d original features.
    names
        The m columns of Phi, in original units; the first is `intercept` if there is one.
    monomials
        The columns as monomials of the features; None if they come from a `function`.
    function
        Any row-wise map from (n, d) to (n, m'), or None.
    inner, outer
        (center, scale) before and after the products.
    intercept
        Whether column 0 is all ones.
    """

    feature_names: tuple[str, ...]
    names: tuple[str, ...]
    monomials: tuple[Monomial, ...] | None
    function: Callable[[Floats], Floats] | None
    inner: tuple[Floats, Floats]
    outer: tuple[Floats, Floats]
    intercept: bool

    @classmethod
    def fit(
        cls,
        X: Floats,
        feature_names: Sequence[str] | None = None,
        *,
        degree: int = 1,
        function: Callable[[Floats], Floats] | None = None,
        standardize: bool = True,
        intercept: bool = True,
    ) -> Self:
        """Fit the map to the rows of X.

        Parameters
        ----------
        X
            (n, d) features.
        feature_names
            d names; x1, x2, … if None.
        degree
            1 for the features themselves, 2 adds all squares and products (LDA or logistic regression then has
            quadratic boundaries), and so on. Products that do not vary, such as those of two dummies of one column,
            and powers of two-valued columns, which repeat them, are left out.
        function
            Any row-wise map to use in place of monomials. It sees the original features.
        standardize
            Whether to centre columns and scale them to unit standard deviation.
        intercept
            Whether to put a column of ones first.
        """
        X = np.asarray(X, dtype=np.float64)
        names = tuple(feature_names) if feature_names is not None else tuple(f"x{j + 1}" for j in range(X.shape[1]))
        if len(names) != X.shape[1]:
            raise DataError(f"`feature_names` must name {X.shape[1]} columns; got {len(names)}.")
        if function is not None and degree != 1:
            raise DataError("Give either `degree` or `function`; a function can make its own products.")
        if degree < 1:
            raise DataError(f"`degree` must be at least 1; got {degree}.")
        inner = _center_and_scale(X, names) if standardize and function is None else _identity(X.shape[1])
        if function is None:
            monomials = _monomials(X, degree)
            columns = tuple(_monomial_name(mono, names) for mono in monomials)
        else:
            monomials, Phi = None, _call(function, X)
            columns = tuple(f"f{j + 1}" for j in range(Phi.shape[1]))
        if not standardize or monomials == _features(X.shape[1]):  # which `inner` has standardised
            outer = _identity(len(columns))
        else:
            if monomials is not None:
                Phi = _products((X - inner[0]) / inner[1], monomials)
            outer = _center_and_scale(Phi, columns)
        if intercept:
            columns = ("intercept", *columns)
        return cls(names, columns, monomials, function, inner, outer, intercept)

    def __call__(self, X: Floats) -> Floats:
        """Map rows (n, d) to the design matrix Phi (n, m)."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.feature_names):
            raise DataError(f"`X` must have {len(self.feature_names)} columns; got shape {X.shape}.")
        center, scale = self.outer
        if self.plain:  # both steps at once
            Z, center, scale = X, self.inner[0] + self.inner[1] * center, self.inner[1] * scale
        elif self.monomials is not None:
            Z = _products((X - self.inner[0]) / self.inner[1], self.monomials)
        else:
            assert self.function is not None
            Z = _call(self.function, X)
            if Z.shape[1] != len(center):
                raise DataError(f"The feature function must return {len(center)} columns, as in fit; got {Z.shape[1]}.")
        # In one piece of memory: rows may be millions.
        Phi = np.ones((len(X), len(self.names)))
        columns = Phi[:, int(self.intercept) :]
        np.subtract(Z, center, out=columns)
        columns /= scale
        # Not of plain features: one that stays within its own limits is no more than this many spreads away.
        if not self.plain:
            check_size(Phi, self.names, LARGEST / SMALLEST)
        return Phi

    @property
    def plain(self) -> bool:
        """Whether the columns are the features themselves, each once, without products."""
        return self.monomials == _features(len(self.feature_names))

    def to_original_units(self, w: Floats) -> Floats:
        """Map weights (…, m) on Phi to weights (…, m) on the original columns `names`, with the same activations.

        Needs an intercept, which takes up what centring has moved.
        """
        if not self.intercept:
            raise DataError("Weights map back to original units only with an intercept. Fit with intercept=True.")
        return np.asarray(w) @ self._change_of_basis()

    def _change_of_basis(self) -> Floats:
        """Return T (m, m) with Phi(x) = T · (1, monomials of the original x)."""
        center, scale = self.outer
        m = len(self.names)
        T = np.zeros((m, m))
        T[0, 0] = 1.0
        if self.monomials is None:
            T[1:, 1:] = np.eye(m - 1)
        else:
            column: dict[Monomial, int] = {(): 0} | {mono: j + 1 for j, mono in enumerate(self.monomials)}
            for j, mono in enumerate(self.monomials):
                for term, coefficient in _expand(mono, *self.inner).items():
                    T[j + 1, column[term]] += coefficient
        T[1:, 0] -= center
        T[1:] /= scale[:, None]
        return T


def _identity(m: int) -> tuple[Floats, Floats]:
    """Centre and scale that change nothing."""
    return frozen(np.zeros(m)), frozen(np.ones(m))


def _features(d: int) -> tuple[Monomial, ...]:
    """The features themselves."""
    return tuple((j,) for j in range(d))


def _monomials(X: Floats, degree: int) -> tuple[Monomial, ...]:
    """All monomials up to `degree`, by degree, less those that add nothing to the ones before.

    A power of a two-valued column is linear in that column, and a product of such columns that never (or always)
    occurs, as of two dummies of one categorical column, in its factors. Every divisor of a kept monomial is kept too.
    """
    if degree == 1:
        return _features(X.shape[1])
    two_valued = [len(np.unique(column)) <= 2 for column in X.T]
    kept: list[Monomial] = []
    for p in range(1, degree + 1):
        for mono in combinations_with_replacement(range(X.shape[1]), p):
            binary = [j for j in mono if two_valued[j]]
            if len(set(binary)) < len(binary):
                continue
            flags = [X[:, j] == X[:, j].max() for j in binary]
            together = np.all(flags, axis=0)
            if len(binary) > 1 and (not together.any() or together.all()):
                continue
            kept.append(mono)
    return tuple(kept)


def _products(Z: Floats, monomials: tuple[Monomial, ...]) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):  # told by the caller, in our own words
        return np.column_stack([Z[:, list(mono)].prod(axis=1) for mono in monomials])


def _expand(mono: Monomial, center: Floats, scale: Floats) -> dict[Monomial, float]:
    """Multiply out Π_j (x_j − center_j)/scale_j into monomials of x."""
    terms: dict[Monomial, float] = {(): 1.0}
    for j in mono:
        product: dict[Monomial, float] = {}
        for term, value in terms.items():
            for key, factor in ((tuple(sorted((*term, j))), 1.0), (term, -float(center[j]))):
                product[key] = product.get(key, 0.0) + value * factor / float(scale[j])
        terms = product
    return terms


def _monomial_name(mono: Monomial, names: Sequence[str]) -> str:
    parts = [names[j] + (f"^{mono.count(j)}" if mono.count(j) > 1 else "") for j in dict.fromkeys(mono)]
    return "*".join(parts)


def _center_and_scale(Z: Floats, names: Sequence[str]) -> tuple[Floats, Floats]:
    center, scale = Z.mean(axis=0), Z.std(axis=0)
    # A constant column of value v has a computed sd of a few ulps of v.
    flat = ~(scale > 1e-12 * np.abs(center))
    if flat.any():
        raise DataError(f"Column {names[int(np.argmax(flat))]!r} is constant and cannot be standardised. Drop it.")
    return frozen(center), frozen(scale)


def _call(function: Callable[[Floats], Floats], X: Floats) -> Floats:
    out = np.asarray(function(X), dtype=np.float64)
    if out.ndim != 2 or len(out) != len(X):
        raise DataError(f"The feature function must return shape ({len(X)}, m); got {out.shape}.")
    if not np.isfinite(out).all():
        raise DataError("The feature function returned NaN or inf.")
    return out


# How a feature map is asked for: one that is fitted, a degree, a row-wise function, or the features themselves.
FeatureSpec = FeatureMap | int | Callable[[Floats], Floats] | None


def fit_features(
    X: Floats, names: tuple[str, ...], spec: FeatureSpec, *, standardize: bool, weight: Floats | None = None
) -> FeatureMap:
    """Fit a feature map to weighted rows.

    Parameters
    ----------
    X, names
        (n, d) features and their distinct names.
    spec
        A fitted map, returned as it is; a degree; a row-wise function; None for the features themselves.
    standardize
        Whether to centre and scale columns. A constant one, as a fold of a cross-validation may have by chance, is
        centred and left at scale 1: its weight is what the prior says.
    weight
        (n,) weights: a row of weight 2 counts as two. None is 1 for all.
    """
    if isinstance(spec, FeatureMap):
        if len(spec.feature_names) != len(names):
            raise DataError(
                f"`features` maps {len(spec.feature_names)} features; `X` has {len(names)}. Fit it to these rows."
            )
        return spec
    degree, function = (1, spec) if callable(spec) else (1 if spec is None else spec, None)
    if isinstance(degree, bool) or not isinstance(degree, (int, np.integer)):
        raise DataError(f"`features` must be a FeatureMap, a degree, a function or None; got {spec!r}.")
    raw = FeatureMap.fit(X, names, degree=int(degree), function=function, standardize=False)
    if not standardize:
        return raw
    inner = raw.inner if function is not None else _weighted_center_and_scale(X, weight)
    scaled = replace(raw, inner=inner)
    if raw.plain:
        return scaled
    return replace(scaled, outer=_weighted_center_and_scale(scaled(X)[:, 1:], weight))


def _weighted_center_and_scale(Z: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    center = np.average(Z, axis=0, weights=weight)
    scale = np.sqrt(np.average((Z - center) ** 2, axis=0, weights=weight))
    return frozen(center), frozen(np.where(scale > CONSTANT * np.abs(center), scale, 1.0))
