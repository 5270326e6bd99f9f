"""Planes lead back to feature space, and keep what discriminant analysis decides."""

import numpy as np
import pytest
from reporting.plots.fits import data, probabilities

from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.reporting.plots.plane import discriminant_plane, feature_plane


def test_the_plane_leads_back_and_keeps_the_decision():
    d = data("iris")
    plane = discriminant_plane(d)
    Z = np.random.default_rng(0).normal(size=(50, 2)) * 4
    np.testing.assert_allclose(plane.to_plane(plane.to_space(Z)), Z, atol=1e-9)
    # Two directions are all there is for three classes: LDA decides alike for a row and for its shadow on the plane.
    shadow = plane.to_space(plane.to_plane(d.X))
    P = probabilities("iris")
    np.testing.assert_allclose(P(shadow), P(d.X), atol=1e-9)


def test_the_plane_of_two_classes_has_a_second_direction():
    """Classes differ in mean along x1, in spread along x3: that is what is found."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    y = np.arange(4000) % 2
    X[y == 1, 0] += 5
    X[y == 1, 2] *= 4
    plane = discriminant_plane(Dataset(X, y, ("a", "b", "c", "d"), ("0", "1")))
    direction = np.abs(plane.forward[:, 1]) * X.std(axis=0)
    assert direction.argmax() == 2
    assert direction[2] > 5 * np.delete(direction, 2).max()
    np.testing.assert_allclose(plane.to_plane(plane.to_space(np.eye(2))), np.eye(2), atol=1e-9)


@pytest.mark.parametrize("name", ["iris", "pima"])
def test_features_that_others_determine_follow_in_the_plane(name):
    """A code beside its category made every figure in the plane fail, and once the whole report."""
    d = data(name)
    total = 3.0 - 2 * d.X[:, 0] + d.X[:, 1]
    own = Dataset(np.column_stack([d.X, total]), d.y, (*d.feature_names, "total"), d.class_names)
    plane, truth = discriminant_plane(own), discriminant_plane(d)
    np.testing.assert_allclose(plane.to_plane(own.X), truth.to_plane(d.X), atol=1e-8)
    Z = np.random.default_rng(0).normal(size=(50, 2))
    back = plane.to_space(Z)
    np.testing.assert_allclose(plane.to_plane(back), Z, atol=1e-8)
    np.testing.assert_allclose(back[:, -1], 3.0 - 2 * back[:, 0] + back[:, 1], rtol=1e-8)
    np.testing.assert_allclose(back[:, :-1], truth.to_space(Z), rtol=1e-8)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: feature_plane(data("iris"), 1, 1), "two of the features 0…3"),
        (lambda: discriminant_plane(data("one")), "two features or more"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, match):
    with pytest.raises(DataError, match=match):
        call()
