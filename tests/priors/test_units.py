"""The units of the default priors: categories are found, and no level of one is special."""

import numpy as np
import pandas as pd
import pytest

from bayes_gda import BayesianLDA, BayesianQDA, BayesianRDA, Dataset
from bayes_gda.data.moments import Moments
from bayes_gda.priors.units import degrees_of_freedom, find_categories, independent_part

RNG = np.random.default_rng(1)
LEVELS = ("a", "b", "c", "d")
N = 160
TABLE = pd.DataFrame(
    {
        "size": RNG.normal(size=N),
        "kind": RNG.choice(LEVELS, size=N, p=[0.4, 0.3, 0.2, 0.1]),
        "flag": RNG.integers(0, 2, N),
        "y": RNG.integers(0, 2, N),
    }
)


def coded(order):
    """The table with the levels in another order, whose first is the reference."""
    table = TABLE.copy()
    table["kind"] = pd.Categorical(table["kind"], list(order))
    return Dataset.from_frame(table, target="y")


def test_categories_are_found_by_their_moments():
    data = coded(LEVELS)
    moments = Moments.from_arrays(data.X, data.y, 2)
    assert data.feature_names == ("size", "kind[b]", "kind[c]", "kind[d]", "flag")
    assert find_categories(moments) == (slice(1, 4),)
    X = data.X.copy()
    X[:, 2] *= 2.0  # no longer 0 or 1
    assert find_categories(Moments.from_arrays(X, data.y, 2)) == ()
    X = data.X.copy()
    X[np.argmax(X[:, 1] == 1), 2] = 1.0  # two levels at once
    assert find_categories(Moments.from_arrays(X, data.y, 2)) == (slice(2, 4),)
    X = np.column_stack([data.X, np.zeros((N, 2))])  # columns of zeros are no indicators
    assert find_categories(Moments.from_arrays(X, data.y, 2)) == (slice(1, 4),)
    weight = np.where(np.arange(N) % 3, 1.5, 0.25)
    assert find_categories(Moments.from_arrays(data.X, data.y, 2, sample_weight=weight)) == (slice(1, 4),)


def test_the_block_is_isotropic_in_orthonormal_contrasts():
    """Against contrasts of all four indicators by QR: their covariance is v I, with v their mean variance."""
    data = coded(LEVELS)
    moments = Moments.from_arrays(data.X, data.y, 2)
    pooled = moments.scatter.sum(axis=0) / moments.n
    block = independent_part(pooled, find_categories(moments))[1:4, 1:4]
    Q = np.linalg.qr(np.column_stack([np.ones(4), RNG.normal(size=(4, 3))]))[0][:, 1:]
    full = np.vstack([-np.ones(3), np.eye(3)])  # the reference is 1 minus the others
    contrasts = Q.T @ full
    v = np.trace(contrasts @ pooled[1:4, 1:4] @ contrasts.T) / 3
    np.testing.assert_allclose(contrasts @ block @ contrasts.T, v * np.eye(3), atol=1e-12)


@pytest.mark.parametrize("cls", [BayesianLDA, BayesianQDA, BayesianRDA])
def test_no_level_is_special(cls):
    found = []
    for order in ("abcd", "bcda", "dbac"):
        data = coded(order)
        model = cls().fit(data.X, data.y)
        found.append((model.log_evidence_, model.predict_proba(data.X)))
    for evidence, probability in found[1:]:
        assert evidence == pytest.approx(found[0][0], rel=1e-12)
        np.testing.assert_allclose(probability, found[0][1], atol=1e-10)


def test_degrees_of_freedom_fall_with_the_weights():
    rows = Moments(np.array([5.0, 3.0]), np.zeros((2, 1)), np.ones((2, 1, 1)))
    assert degrees_of_freedom(rows) == 6
    assert degrees_of_freedom(Moments(rows.count / 100, rows.mean, rows.scatter)) == pytest.approx(0.08 / 3)
