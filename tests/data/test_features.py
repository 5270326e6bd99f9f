"""Feature maps: what they compute, that they are frozen, and that weights map back to original units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_gda.data.features import FeatureMap
from bayes_gda.errors import DataError


@pytest.fixture
def X():
    rng = np.random.default_rng(1)
    return rng.normal([5.0, -2.0, 100.0], [1.0, 3.0, 0.1], size=(60, 3))


def test_standardised_columns_have_mean_zero_and_sd_one_and_the_intercept_comes_first(X):
    phi = FeatureMap.fit(X, ["a", "b", "c"])
    Phi = phi(X)
    assert phi.names == ("intercept", "a", "b", "c")
    np.testing.assert_array_equal(Phi[:, 0], 1.0)
    np.testing.assert_allclose(Phi[:, 1:].mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Phi[:, 1:].std(axis=0), 1, rtol=1e-12)


def test_new_rows_use_the_fitted_center_and_scale(X):
    phi = FeatureMap.fit(X)
    np.testing.assert_allclose(phi(X[:5]), phi(X)[:5], rtol=0)


def test_quadratic_augmentation_has_all_squares_and_products(X):
    phi = FeatureMap.fit(X, ["a", "b", "c"], degree=2, standardize=False)
    a, b, c = X.T
    assert phi.names == ("intercept", "a", "b", "c", "a^2", "a*b", "a*c", "b^2", "b*c", "c^2")
    np.testing.assert_allclose(phi(X), np.column_stack([a**0, a, b, c, a * a, a * b, a * c, b * b, b * c, c * c]))


@given(degree=st.integers(1, 3), offset=st.floats(-50, 50), seed=st.integers(0, 99))
def test_weights_in_original_units_give_the_same_activations(degree, offset, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(offset, 2.0, size=(40, 3))
    phi = FeatureMap.fit(X, degree=degree)
    raw = FeatureMap.fit(X, degree=degree, standardize=False)
    assert phi.names == raw.names
    w = rng.normal(size=(2, len(phi.names)))
    back = phi.to_original_units(w)
    expected = phi(X) @ w.T
    # The monomials of x cancel where those of z do not: the tolerance grows with the size of the terms.
    size = np.abs(raw(X)) @ np.abs(back.T)
    assert (np.abs(raw(X) @ back.T - expected) <= 1e-12 * size + 1e-9).all()


def test_weights_for_a_callable_map_back_to_the_callables_own_units(X):
    phi = FeatureMap.fit(X, function=lambda X: np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 3]))
    w = np.array([0.5, -1.0, 2.0])
    w0, w1, w2 = phi.to_original_units(w)
    np.testing.assert_allclose(phi(X) @ w, w0 + w1 * np.sin(X[:, 0]) + w2 * X[:, 1] ** 3, rtol=1e-10)


def test_powers_of_two_valued_columns_and_products_of_exclusive_dummies_are_left_out():
    rng = np.random.default_rng(0)
    level = rng.integers(0, 3, 50)
    X = np.column_stack([level == 1, level == 2, rng.normal(size=50)]).astype(float)
    phi = FeatureMap.fit(X, ["g[1]", "g[2]", "x"], degree=2)
    assert phi.names == ("intercept", "g[1]", "g[2]", "x", "g[1]*x", "g[2]*x", "x^2")
    assert np.linalg.matrix_rank(phi(X)) == len(phi.names)
    w = rng.normal(size=len(phi.names))
    raw = FeatureMap.fit(X, ["g[1]", "g[2]", "x"], degree=2, standardize=False)
    np.testing.assert_allclose(raw(X) @ phi.to_original_units(w), phi(X) @ w, atol=1e-10)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"degree": 0}, "`degree` must be at least 1; got 0"),
        ({"degree": 2, "function": np.sin}, "either `degree` or `function`"),
        ({"feature_names": ["a"]}, "must name 3 columns; got 1"),
        ({"function": lambda X: X[:, 0]}, r"must return shape \(60, m\); got \(60,\)"),
        ({"function": lambda X: X * np.nan}, "returned NaN or inf"),
    ],
)
def test_bad_requests_are_refused(X, kwargs, message):
    with pytest.raises(DataError, match=message):
        FeatureMap.fit(X, **kwargs)


def test_constant_columns_and_wrong_widths_are_refused(X):
    constant = X.copy()
    constant[:, 1] = 0.1
    with pytest.raises(DataError, match="Column 'x2' is constant"):
        FeatureMap.fit(constant)
    with pytest.raises(DataError, match=r"must have 3 columns; got shape \(60, 2\)"):
        FeatureMap.fit(X)(X[:, :2])
    with pytest.raises(DataError, match="only with an intercept"):
        FeatureMap.fit(X, intercept=False).to_original_units(np.ones(3))
