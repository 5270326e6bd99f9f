"""Are the log odds linear? The score test held to the likelihood ratio, its level, and curvature that is found."""

import numpy as np
import pytest
from scipy.stats import chi2

from bayes_gda.data.table import Dataset
from bayes_gda.families.registry import get_family


def draw(n, K, seed, curved=0.0, slope=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 2] > 0
    A = X @ rng.normal(scale=slope, size=(K, 3)).T
    A[:, -1] += curved * (X[:, 0] ** 2 - 1)
    P = np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)
    y = (rng.random((n, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)
    return Dataset.from_arrays(X, y, feature_names=["a", "b", "two"])


def check(data, **options):
    family = get_family("logistic" if data.K == 2 else "softmax").bind(data, **options)
    return family.assumptions(family.laplace(), 0).checks[0]


@pytest.mark.parametrize("K", [2, 3])
def test_levels(K):
    p = np.array([check(draw(150, K, seed)).p_value for seed in range(150)])
    for level in (0.05, 0.2):
        assert abs((p <= level).mean() - level) <= 3 * np.sqrt(level * (1 - level) / 150)


@pytest.mark.parametrize("prior_scale", [np.inf, 1.0])
def test_the_score_is_close_to_the_likelihood_ratio(prior_scale):
    """z² of a feature against twice the gain in log likelihood by its square, under a flat prior."""
    data = draw(1500, 2, 3, curved=0.1)
    flat = get_family("logistic").bind(data, prior_scale=np.inf, intercept_scale=np.inf)
    base = flat.target.log_likelihood(flat.laplace().mean[None])[0]
    parts = {part.where: part.z for part in check(data, prior_scale=prior_scale).parts}
    assert set(parts) == {"a", "b"}  # a feature of two values has no square
    for j, name in enumerate("ab"):
        wide = Dataset.from_arrays(np.column_stack([data.X, data.X[:, j] ** 2]), data.y)
        more = get_family("logistic").bind(wide, prior_scale=np.inf, intercept_scale=np.inf)
        gain = 2 * (more.target.log_likelihood(more.laplace().mean[None])[0] - base)
        assert parts[name] ** 2 == pytest.approx(gain, rel=0.25, abs=0.15)
        assert abs(chi2.sf(parts[name] ** 2, 1) - chi2.sf(gain, 1)) < 0.06


@pytest.mark.parametrize("K", [2, 3])
def test_curvature_is_found_and_named(K):
    found = check(draw(400, K, 1, curved=1.0, slope=0.5))
    assert found.p_value < 0.01
    assert found.worst.where.startswith("a")
    assert "features=2" in found.remedy


def test_a_square_in_the_design_cannot_be_tested():
    found = check(draw(200, 2, 2), features=2)
    assert found.parts == ()
    assert np.isnan(found.p_value)


def test_features_of_two_values_have_nothing_to_test():
    rng = np.random.default_rng(0)
    X = rng.integers(2, size=(50, 2)).astype(float)
    found = check(Dataset.from_arrays(X, rng.integers(2, size=50)))
    assert "no feature has more than two values" in found.note


def test_of_many_features_the_strongest_are_tested():
    """The feature that bears on the class stands after 64 others, and is curved."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(600, 70))
    y = rng.random(600) < 1 / (1 + np.exp(-(1.5 * X[:, 69] + 1.5 * X[:, 69] ** 2 - 1.5)))
    names = [f"noise {j}" for j in range(69)] + ["curved"]
    result = check(Dataset.from_arrays(X, y.astype(int), feature_names=names))
    assert len(result.parts) == 64
    assert result.worst.where == "curved"
    assert result.p_value < 0.01
    assert "Tested were the 64 of 70 other features whose means differ most" in result.note
