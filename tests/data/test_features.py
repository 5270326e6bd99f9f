"""Feature maps: what they compute, that they are frozen, and that weights map back to original units."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bayes_gda.data.features import FeatureMap, fit_features
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


def test_columns_of_two_values_are_centred_and_scaled_by_their_difference(X):
    flag = np.arange(60) < 2
    mixed = np.column_stack([X[:, 0], flag, np.where(flag, 20.0, 10.0), np.arange(60) % 3])
    Phi = FeatureMap.fit(mixed)(mixed)
    np.testing.assert_allclose(Phi[:, 2], flag - 2 / 60, atol=1e-12)
    np.testing.assert_allclose(Phi[:, 3], Phi[:, 2], atol=1e-12)
    np.testing.assert_allclose(Phi[:, [1, 4]].std(axis=0), 1)
    # Those that a function makes, too.
    made = FeatureMap.fit(X, function=lambda X: 7.0 * (X > [6, 0, 100]))
    np.testing.assert_allclose(np.ptp(made(X)[:, 1:], axis=0), 1)


def test_a_product_has_the_scale_of_its_numeric_factors():
    rng = np.random.default_rng(0)
    a, b, x = rng.random(500) < 0.05, rng.random(500) < 0.3, rng.normal(3, 2, 500)
    X = np.column_stack([a, 5 * b, x])
    phi = FeatureMap.fit(X, ["a", "b", "x"], degree=3)
    z = (x - x.mean()) / x.std()
    scale = dict(zip(phi.names[1:], phi.outer[1], strict=True))
    assert (scale["a"], scale["b"], scale["a*b"]) == (1, 1, 1)
    np.testing.assert_allclose([scale["a*x"], scale["b*x"], scale["a*b*x"]], 1)
    np.testing.assert_allclose([scale["x^2"], scale["a*x^2"]], (z**2).std())
    # The weight of a*b is by how much the log odds of b's values differ more where a is 1, whatever the shares are.
    w = phi.to_original_units(np.eye(len(phi.names)))
    assert w[phi.names.index("a*b"), phi.names.index("a*b")] == pytest.approx(1 / 5)
    np.testing.assert_allclose(phi(X)[:, 1:].mean(axis=0), 0, atol=1e-12)


def test_two_values_are_those_of_rows_that_count_and_weights_are_repeated_rows():
    X = np.column_stack([[0.0, 1, 1, 0, 7], [1.0, 2, 3, 4, 5]])
    weight = np.array([1.0, 2, 3, 1, 0])
    names = ("a", "b")
    found = fit_features(X, names, 2, standardize=True, weight=weight)
    repeated = fit_features(np.repeat(X, weight.astype(int), axis=0), names, 2, standardize=True)
    for a, b in zip((*found.inner, *found.outer), (*repeated.inner, *repeated.outer), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    assert found.inner[1][0] == 1


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
