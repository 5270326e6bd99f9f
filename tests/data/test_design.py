"""A design that is made block by block is the one that is made at once."""

import numpy as np
import pytest

from bayes_gda import BayesianLogisticRegression
from bayes_gda.data import features
from bayes_gda.data.features import Design, FeatureMap, make_design


def rows(n=3000, d=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * [1, 10, 0.1, 1] + 3
    X[:, 3] = rng.random(n) < 0.2
    return X, (rng.random(n) < 1 / (1 + np.exp(3 - X[:, 0]))).astype(int)


def test_rows_of_a_design():
    X, _ = rows()
    phi = FeatureMap.fit(X)
    whole, design = phi(X), Design(phi, X)
    assert design.shape == whole.shape
    assert len(design) == len(whole)
    for some in (slice(10, 50), slice(None, None, 7), np.array([5, 3, 3]), whole[:, 1] > 0):
        np.testing.assert_allclose(design[some], whole[some], rtol=1e-14, atol=1e-14)
        assert design[some].flags.c_contiguous
    np.testing.assert_array_equal(np.asarray(design), design[:])
    np.testing.assert_array_equal(design.T, design[:].T)


@pytest.mark.parametrize("inference", ["auto", "mcmc"])
def test_a_fit_is_the_same(monkeypatch, inference):
    X, y = rows(400)
    few = {"inference": inference, "draws": 200, "chains": 2, "tolerance": 0.2}
    whole = BayesianLogisticRegression(**few).fit(X, y)
    monkeypatch.setattr(features, "MATERIALISED", 100)
    phi = FeatureMap.fit(X)
    assert isinstance(make_design(phi, X), Design)
    made = BayesianLogisticRegression(**few).fit(X, y)
    np.testing.assert_allclose(made.predict_proba(X), whole.predict_proba(X), atol=1e-9)
    assert made.trust_.verdict == whole.trust_.verdict


def test_two_valued_columns_are_found_wherever_the_third_value_stands():
    X, _ = rows(5000)
    late = X.copy()
    late[4000, 3] = 2.0
    assert features._two_valued(X).tolist() == [False, False, False, True]
    assert not features._two_valued(late).any()
    center, scale = features._center_and_scale(X)
    np.testing.assert_allclose(center, X.mean(axis=0))
    np.testing.assert_allclose(scale, [*X[:, :3].std(axis=0), 1.0])
    weight = np.random.default_rng(1).uniform(0.5, 2, len(X))
    center, scale = features._center_and_scale(X, weight)
    np.testing.assert_allclose(scale[0], np.sqrt(np.average((X[:, 0] - center[0]) ** 2, weights=weight)))
