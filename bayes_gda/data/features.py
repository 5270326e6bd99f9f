"""Feature maps φ: fitted once, frozen, and applied to new rows in the same way.

    x (d)  ──▶  z = (x − center)/scale  ──▶  monomials of z, or any function of x  ──▶  (· − center)/scale  ──▶  1, …

Standardising before the products keeps x and x² from being collinear when the mean is large against the spread;
standardising after them gives every weight the same prior scale. All of it is linear in the monomials of the original
x, so weights can be mapped back to the original units exactly.

    column                               scale                                           its weight is the log odds
    numeric                              standard deviation                              per standard deviation
    two values in the training rows      their difference, however rare one is           of one value against the other
    product with two-valued factors      that of the product of the numeric factors      by which the others differ

A dummy is not scaled by its standard deviation √(p(1−p)): the same prior would then be the wider the rarer the level
is, although what few rows say needs the prior most. With 4 ones in 2000 rows a slope of sd 2.5 would mean one of 56 on
the log odds. Gelman et al. (2008) let binary inputs differ by 1, too, and rstanarm divides prior scales by the
difference of a column with two values, and by the standard deviation of others.

References
----------
Gelman, Jakulin, Pittau & Su (2008), A weakly informative default prior distribution for logistic and other regression
models, Annals of Applied Statistics 2.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations_with_replacement
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.validate import CONSTANT, LARGEST, SMALLEST, check_size
from bayes_gda.errors import DataError
from bayes_gda.linalg import row_blocks

# A monomial is the sorted tuple of its factors' columns: () is 1, (0,) is x₀, (0, 1) is x₀x₁, (1, 1) is x₁².
Monomial = tuple[int, ...]
# Rows that are looked at first for whether a column has more than two values.
FIRST_ROWS = 1000
# Numbers of a design matrix, 64 MB, beyond which it is made block by block in every pass.
MATERIALISED = 2**23


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
            Whether to centre columns and scale them: numeric ones to unit standard deviation, two-valued ones to a
            difference of 1.
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
        if function is None:
            monomials = _monomials(X, degree)
            columns = tuple(_monomial_name(mono, names) for mono in monomials)
        else:
            monomials = None
            columns = tuple(f"f{j + 1}" for j in range(_call(function, X).shape[1]))
        raw = cls(
            names,
            ("intercept", *columns) if intercept else columns,
            monomials,
            function,
            inner=_identity(X.shape[1]),
            outer=_identity(len(columns)),
            intercept=intercept,
        )
        return raw.standardized(X, spare_constant=False) if standardize else raw

    def standardized(self, X: Floats, weight: Floats | None = None, *, spare_constant: bool = True) -> Self:
        """Return this map, which has neither centre nor scale yet, with those of rows X (n, d) of weights (n,) > 0.

        A constant column is centred and left at scale 1, or raises.
        """
        refuse = None if spare_constant else self.names[int(self.intercept) :]
        if self.monomials is None:
            assert self.function is not None
            return replace(self, outer=_center_and_scale(_call(self.function, X), weight, refuse))
        names = None if spare_constant else self.feature_names
        scaled = replace(self, inner=_center_and_scale(X, weight, names))
        if self.plain:
            return scaled
        center, scale = _center_and_scale(scaled(X)[:, int(self.intercept) :], weight, refuse)
        two_valued, column = _two_valued(X), {mono: j for j, mono in enumerate(self.monomials)}
        # Every divisor of a monomial is one, and the empty product is 1.
        numeric = [tuple(j for j in mono if not two_valued[j]) for mono in self.monomials]
        return replace(scaled, outer=(center, frozen([scale[column[part]] if part else 1.0 for part in numeric])))

    def __call__(self, X: Floats) -> Floats:
        """Map rows (n, d) to the design matrix Phi (n, m)."""
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != len(self.feature_names):
            raise DataError(f"`X` must have {len(self.feature_names)} columns; got shape {X.shape}.")
        (center, scale), plain = self.outer, self.plain
        if plain:  # both steps at once
            Z, center, scale = X, self.inner[0] + self.inner[1] * center, self.inner[1] * scale
        elif self.monomials is not None:
            Z = _products((X - self.inner[0]) / self.inner[1], self.monomials)
        else:
            assert self.function is not None
            Z = _call(self.function, X)
            if Z.shape[1] != len(center):
                raise DataError(f"The feature function must return {len(center)} columns, as in fit; got {Z.shape[1]}.")
        # In one piece of memory: rows may be millions.
        Phi, first = np.empty((len(X), len(self.names))), int(self.intercept)
        Phi[:, :first] = 1.0
        columns = Phi[:, first:]
        np.subtract(Z, center, out=columns)
        columns /= scale
        # Not of plain features: one that stays within its own limits is no more than this many spreads away.
        if not plain:
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


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """A design matrix Φ = φ(X) that is made block by block, where one of all rows would double the memory of X.

    It has what passes over rows ask of an array: shape, length, rows.

    Parameters
    ----------
    features
        The feature map φ: of the features themselves, without products.
    X
        (n, d) rows.
    """

    features: FeatureMap
    X: Floats
    center: Floats = field(init=False)
    factor: Floats = field(init=False)

    def __post_init__(self) -> None:
        (inner, scale), (outer, more) = self.features.inner, self.features.outer
        object.__setattr__(self, "center", inner + scale * outer)
        object.__setattr__(self, "factor", 1 / (scale * more))  # to multiply takes half the time of a division

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return len(self.X), len(self.features.names)

    def __len__(self) -> int:
        return len(self.X)

    def __getitem__(self, rows: Any) -> Floats:
        """Return the rows of Φ that a slice, a mask or indices select."""
        X, first = self.X[rows], int(self.features.intercept)
        Phi = np.empty((len(X), self.shape[1]))
        Phi[:, :first] = 1.0
        columns = Phi[:, first:]
        np.subtract(X, self.center, out=columns)
        columns *= self.factor
        return Phi

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[:], dtype=dtype)

    @property
    def T(self) -> Floats:
        """Φᵀ, all of it."""
        return self[:].T


def make_design(features: FeatureMap, X: Floats, *, whole: bool = False) -> Floats:
    """Return φ(X), as an array or, if that would be large and need not be `whole`, one that is made block by block."""
    large = not whole and features.plain and len(X) * len(features.names) > MATERIALISED
    return cast(Floats, Design(features, X)) if large else np.ascontiguousarray(features(X))


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
    two_valued = _two_valued(X)
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


def _two_valued(Z: Floats) -> NDArray[np.bool_]:
    """Return which columns (m,) of Z (n, m) hold at most two values."""
    head = Z[:FIRST_ROWS]
    out = np.asarray(((head == head.min(axis=0)) | (head == head.max(axis=0))).all(axis=0))
    if not out.any() or len(Z) == len(head):  # where all columns are numeric, a few rows settle it
        return out
    left = np.flatnonzero(out)
    low, high = Z[:, left].min(axis=0), Z[:, left].max(axis=0)
    for rows in row_blocks(*Z.shape):
        part = Z[rows][:, left]
        out[left] &= ((part == low) | (part == high)).all(axis=0)
    return out


def _center_and_scale(
    Z: Floats, weight: Floats | None = None, refuse: Sequence[str] | None = None
) -> tuple[Floats, Floats]:
    """Return means and scales of columns Z (n, m); one that is constant has scale 1, or is refused by its name."""
    center, square = np.average(Z, axis=0, weights=weight), np.zeros(Z.shape[1])
    for rows in row_blocks(*Z.shape):  # a copy of all rows would double their memory
        part = Z[rows] - center
        part *= part
        square += part.sum(axis=0) if weight is None else weight[rows] @ part
    scale = np.sqrt(square / (len(Z) if weight is None else weight.sum()))
    two = np.flatnonzero(_two_valued(Z))
    scale[two] = np.ptp(Z[:, two], axis=0)
    constant = ~(scale > CONSTANT * np.abs(center))
    if refuse is not None and constant.any():
        name = refuse[int(np.argmax(constant))]
        raise DataError(f"Column {name!r} is constant and cannot be standardised. Drop it.")
    return frozen(center), frozen(np.where(constant, 1.0, scale))


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
        centred and left at scale 1: its weight is what the prior says, as that of a level that no row has should be.
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
    if weight is not None and not weight.all():  # which values a column has is a matter of the rows that count
        X, weight = X[weight > 0], weight[weight > 0]
    raw = FeatureMap.fit(X, names, degree=int(degree), function=function, standardize=False)
    return raw.standardized(X, weight) if standardize else raw
