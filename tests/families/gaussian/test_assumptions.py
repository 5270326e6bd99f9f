"""Are the classes Gaussian? Statistics in closed form, levels by simulation, and violations that are found."""

import numpy as np
import pytest
from scipy.stats import bartlett, wishart

from bayes_gda.data.table import Dataset
from bayes_gda.families.gaussian.assumptions import (
    box_statistic,
    gaussian_assumptions,
    mardia_statistics,
    wishart_draws,
)

MIXING = np.array([[1.0, 0.0, 0.0], [0.8, 0.6, 0.0], [0.3, 0.2, 2.0]])


def rows(n, seed, change=lambda X, y: X):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], [n, n])
    X = change(rng.standard_normal((2 * n, 3)) @ MIXING.T, y) + 2.0 * y[:, None]
    return Dataset.from_arrays(X, y, feature_names=["a", "b", "c"], class_names=["no", "yes"])


def check(data, *, shared=True, diagonal=False):
    found = gaussian_assumptions(data, shared=shared, diagonal=diagonal, random_seed=1)
    return {c.assumption: c for c in found.checks}, found


def test_mardias_statistics_do_not_depend_on_the_axes_and_match_their_definition():
    X = np.random.default_rng(0).exponential(size=(30, 3))
    Z = X - X.mean(axis=0)
    G = Z @ np.linalg.inv(Z.T @ Z / len(Z)) @ Z.T
    b1, b2, squared = mardia_statistics(X)
    assert b1 == pytest.approx((G**3).mean())
    assert b2 == pytest.approx((np.diag(G) ** 2).mean())
    np.testing.assert_allclose(squared, np.sort(np.diag(G)))
    turned = mardia_statistics(X @ MIXING.T * 1e5 + 7)
    assert turned[:2] == pytest.approx((b1, b2))


def test_what_is_expected_of_kurtosis_is_its_closed_form():
    found, whole = check(rows(60, 0), shared=False)
    part = found["Gaussian tails"].parts[0]
    n, d = 60, 3
    assert part.expected == pytest.approx(d * (d + 2) * (n - 1) / (n + 1), abs=4 * part.spread / 20)
    quantiles = whole.distances["no"]
    assert quantiles.expected.sum() == pytest.approx(n * d)  # the squared distances sum to nd exactly
    assert (quantiles.lower <= quantiles.upper).all()


def test_boxs_statistic_is_bartletts_in_one_dimension():
    rng = np.random.default_rng(1)
    groups = [rng.normal(scale=s, size=n) for s, n in ((1, 12), (2, 20), (1.5, 9))]
    counts = np.array([len(x) for x in groups])
    scatters = np.array([((x - x.mean()) ** 2).sum() for x in groups])[:, None, None]
    dof = counts - 1
    correction = 1 + ((1 / dof).sum() - 1 / dof.sum()) / (3 * (len(groups) - 1))
    assert box_statistic(scatters, counts) / correction == pytest.approx(bartlett(*groups).statistic)


def test_draws_of_the_wishart_distribution_have_its_moments():
    draws = wishart_draws(7, 3, 20_000, np.random.default_rng(2))
    truth = wishart(7, np.eye(3))
    np.testing.assert_allclose(draws.mean(axis=0), truth.mean(), atol=4 * np.sqrt(14 / 20_000))
    np.testing.assert_allclose(draws.var(axis=0), truth.var(), rtol=0.08)


@pytest.mark.parametrize(("shared", "diagonal"), [(True, False), (False, False), (False, True)])
def test_p_values_of_gaussian_classes_are_uniform(shared, diagonal):
    """Of 60 data sets each, 5 % and 50 % fall below .05 and .5, within three standard errors."""
    found = {}
    for seed in range(60):
        data = rows(25, seed, (lambda X, y, seed=seed: X @ np.linalg.inv(MIXING).T) if diagonal else lambda X, y: X)
        for name, c in check(data, shared=shared, diagonal=diagonal)[0].items():
            found.setdefault(name, []).append(c.p_value)
    for name, p in found.items():
        for level in (0.05, 0.5):
            # The margins of correlated features are tested as if they were independent: at most the level.
            error = 3 * np.sqrt(level * (1 - level) / 60)
            low = -1 if name == "normal features" and not diagonal else level - error
            assert low <= np.mean(np.array(p) <= level) <= level + error, (name, level)


def test_violations_are_found_and_named():
    skewed = check(rows(80, 3, lambda X, y: np.column_stack([X[:, 0], np.exp(X[:, 1]), X[:, 2]])))[0]
    assert skewed["normal features"].p_value < 1e-6
    assert skewed["normal features"].worst.where.startswith(("skewness of b in", "excess kurtosis of b in"))
    assert skewed["normal features"].remedy.startswith("Transform skewed features")
    data = rows(80, 3)
    coded = Dataset.from_arrays(np.column_stack([data.X[:, 0], data.X[:, 1] > 1]), data.y)
    binary = check(coded)[0]["normal features"]
    assert binary.remedy == "Features of two values cannot be Gaussian: use a regression, or the mixed model."
    heavy = check(rows(80, 4, lambda X, y: X / np.sqrt(np.random.default_rng(5).chisquare(3, len(X)) / 3)[:, None]))[0]
    assert heavy["Gaussian tails"].p_value < 0.01
    shapes = check(rows(80, 6, lambda X, y: X * np.where(y[:, None] == 1, 2.0, 1.0)))[0]
    assert shapes["equal covariances"].p_value < 0.01
    assert shapes["Gaussian tails"].p_value > 0.01
    dependent = check(rows(80, 7), shared=False, diagonal=True)[0]
    assert dependent["independent features"].p_value < 0.01


def test_what_cannot_be_checked_says_so():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((60, 3))
    y = np.repeat([0, 1], [50, 10])
    X[y == 0, 2] = 1.0  # constant in its class
    found, _ = check(Dataset.from_arrays(X, y, class_names=["many", "few"]))
    assert "Not checked: many, few" in found["equal covariances"].note
    assert np.isnan(found["equal covariances"].p_value)
    assert len(found["normal features"].parts) == 2
