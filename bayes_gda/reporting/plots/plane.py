"""Planes in feature space that plots are drawn in: two features, or the directions that separate the classes best."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.discriminant import Gaussians, plug_in_lda
from bayes_gda.linalg import dependent_columns, solve_triangular

# 1 − R² of a feature on others, within classes, below which it is their sum: its variance has no digit left.
SUM = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """A plane in feature space: coordinates z = (x − center) · forward, and back x = center + z · back.

    Parameters
    ----------
    center
        (d,) the point with z = 0.
    forward, back
        (d, 2) and (2, d), with back · forward = I.
    names
        Names of the two axes, as the user wrote them; not escaped.
    projected
        Whether the plane is a projection of more than two features.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import feature_plane
    >>> feature_plane(load_example("iris")).names
    ('sepal length (cm)', 'sepal width (cm)')
    """

    center: Floats
    forward: Floats
    back: Floats
    names: tuple[str, str]
    projected: bool

    def to_plane(self, X: Floats) -> Floats:
        """Project rows (n, d) to (n, 2)."""
        return (X - self.center) @ self.forward

    def to_space(self, Z: Floats) -> Floats:
        """Return the points (n, d) of the plane with coordinates (n, 2)."""
        return self.center + Z @ self.back


def feature_plane(data: Dataset, first: int = 0, second: int = 1) -> Plane:
    """Return the plane of two features; the others are held at their means.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import feature_plane
    >>> feature_plane(load_example("iris")).names
    ('sepal length (cm)', 'sepal width (cm)')
    """
    if first == second or not {first, second} <= set(range(data.d)):
        raise DataError(f"`first` and `second` must be two of the features 0…{data.d - 1}; got {first} and {second}.")
    center = data.X.mean(axis=0)
    center[[first, second]] = 0
    forward = np.eye(data.d)[:, [first, second]]
    names = data.feature_names[first], data.feature_names[second]
    return Plane(center, forward, forward.T, names, data.d > 2)


def discriminant_plane(data: Dataset, *, gaussians: Gaussians | None = None) -> Plane:
    """Return the plane of the two directions that separate the classes best.

    If their means lie on a line, as those of two classes do, the second direction is the one at right angles to it
    (in units of the spread within classes) along which the classes' own spreads differ most.

    Parameters
    ----------
    data
        Rows with two features or more.
    gaussians
        LDA parameters that define the directions; None for plug-in estimates.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import discriminant_plane
    >>> discriminant_plane(load_example("iris")).names[0]
    'discriminant direction 1 (99 % of the spread of means)'
    """
    if data.d < 2:
        raise DataError(f"`data` must have two features or more for a plane; got {data.d}.")
    if gaussians is None:
        features = independent_features(data)
        if len(features) < data.d:
            return _embedded(discriminant_plane(with_features(data, features)), data, features)
    moments = Moments.from_arrays(data.X, data.y, data.K)
    lda = plug_in_lda(moments) if gaussians is None else gaussians
    projection = lda.projection()
    forward = projection.directions[:, :2]
    share = 100 * projection.spread[:2] / projection.spread.sum()
    names = [f"discriminant direction {i + 1} ({s:.0f} % of the spread of means)" for i, s in enumerate(share)]
    L = np.linalg.cholesky(lda.Sigma)
    if forward.shape[1] == 1:
        forward = np.column_stack([forward, _second_direction(moments, L, forward[:, 0])])
        names.append("direction of most unequal spreads")
    # forwardᵀ Σ forward = I, so Σ forward leads back
    return Plane(projection.center, forward, (lda.Sigma @ forward).T, (names[0], names[1]), True)


def default_plane(data: Dataset) -> Plane:
    """Return the plane of the features if there are two, else the discriminant plane."""
    return feature_plane(data) if data.d == 2 else discriminant_plane(data)


def independent_features(data: Dataset) -> NDArray[np.intp]:
    """Return the features that are no sums of others within classes; all if there are too few rows to tell.

    The others leave no direction of their own, and make the covariance singular.
    """
    every = np.arange(data.d)
    if data.n - data.K <= data.d:
        return every
    means = Moments.from_arrays(data.X, data.y, data.K).mean
    sums = dependent_columns(data.X - means[data.y], tolerance=SUM)
    kept = np.setdiff1d(every, list(sums))
    return kept if len(kept) > 1 else every


def with_features(data: Dataset, features: NDArray[np.intp]) -> Dataset:
    """Return the rows with these features alone."""
    names = tuple(data.feature_names[j] for j in features)
    return Dataset(data.X[:, features], data.y, names, data.class_names)


def _embedded(plane: Plane, data: Dataset, features: NDArray[np.intp]) -> Plane:
    """Return a plane of some features among all of them: the others follow from these on the way back."""
    forward = np.zeros((data.d, 2))
    forward[features] = plane.forward
    # Singular, but forwardᵀ Σ forward = I all the same.
    Sigma = Moments.from_arrays(data.X, data.y, data.K).scatter.sum(axis=0) / data.n
    return Plane(data.X.mean(axis=0), forward, (Sigma @ forward).T, plane.names, True)


def _second_direction(moments: Moments, L: Floats, first: Floats) -> Floats:
    """Return the direction (d,) of unit spread within classes, unrelated to `first`, where spreads differ most."""
    z = L.T @ first  # in sphered coordinates, where Σ = I
    inequality = np.zeros_like(L)
    for count, S in zip(moments.count, moments.scatter, strict=True):
        C = solve_triangular(L, solve_triangular(L, S).T) / max(count, 1) - np.eye(len(L))
        inequality += count * C @ C
    # Largest eigenvector among those at right angles to z; adding the trace keeps z itself from being one.
    complement = np.eye(len(z)) - np.outer(z, z) / (z @ z)
    values, vectors = np.linalg.eigh(complement @ (inequality + np.trace(inequality) * np.eye(len(z))) @ complement)
    v = vectors[:, values.argmax()]
    return np.asarray(solve_triangular(L, v * np.sign(v[np.abs(v).argmax()]), transposed=True))
