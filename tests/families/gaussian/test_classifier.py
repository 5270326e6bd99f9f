"""Fitted Gaussian models, and their average, against quadrature, closed forms and loops over draws."""

import numpy as np
import pytest
from fitted import IRIS, MAKERS, MOMENTS, generative
from judge import assert_same_mean
from scipy import integrate
from scipy.special import softmax
from scipy.stats import multivariate_normal

from bayes_gda import linalg
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.gaussian.classifier import AveragedClassifier, GaussianClassifier
from bayes_gda.families.gaussian.continuum import Grid
from bayes_gda.families.gaussian.exact import NIWPosterior
from bayes_gda.families.gaussian.predictive import log_joint_per_draw
from bayes_gda.prediction.uncertainty import decisions, entropy, interval
from bayes_gda.priors import NIW, Dirichlet

POOLED = MOMENTS.scatter.sum(axis=0) / MOMENTS.n


@pytest.mark.parametrize("covariance", MAKERS)
def test_exact_probabilities_are_the_student_t_of_the_conjugate_posterior(covariance):
    model = generative(covariance)
    joint = np.exp(model.posterior.log_joint(IRIS.X))
    np.testing.assert_allclose(
        np.exp(model.log_probabilities(IRIS.X)), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9
    )
    np.testing.assert_allclose(model.log_joint(IRIS.X), model.posterior.log_joint(IRIS.X), rtol=1e-12)


@pytest.mark.parametrize("covariance", MAKERS)
def test_draws_of_the_exact_posterior_give_its_probabilities(covariance):
    exact, sampled = generative(covariance), generative(covariance, size=20_000)
    difference = np.exp(exact.log_probabilities(IRIS.X)) - np.exp(sampled.log_probabilities(IRIS.X))
    assert np.abs(difference).max() < 0.01


def test_densities_are_averaged_and_not_probabilities():
    """One row, four draws, in plain words."""
    model, x = generative("own", size=4), IRIS.X[70]
    f = np.array(
        [
            [multivariate_normal(model.draws["mu"][s, k], model.draws["Sigma"][s, k]).pdf(x) for k in range(3)]
            for s in range(4)
        ]
    ).mean(axis=0)
    joint = f * (1 + MOMENTS.count) / (3 + 150)
    np.testing.assert_allclose(np.exp(model.log_probabilities(x[None]))[0], joint / joint.sum(), rtol=1e-9)


@pytest.mark.parametrize("size", [None, 500])
@pytest.mark.parametrize("covariance", MAKERS)
def test_other_class_shares_are_those_of_a_posterior_with_that_mean(covariance, size):
    """E[π] = α/Σα: a posterior with α ∝ the new shares has them."""
    model, share = generative(covariance, size=size), np.array([0.7, 0.25, 0.05])
    log_p = model.log_density(IRIS.X) + np.log(share)
    expected = softmax(log_p, axis=1)
    np.testing.assert_allclose(np.exp(model.log_probabilities(IRIS.X, share)), expected, rtol=1e-9)
    if size is None and isinstance(model.posterior, NIWPosterior):
        p = model.posterior
        other = NIWPosterior(p.m, p.kappa, p.Psi, p.nu, 1000 * share)
        np.testing.assert_allclose(softmax(other.log_joint(IRIS.X), axis=1), expected, rtol=1e-9)


def test_impossible_classes_and_bad_shares():
    model = generative("shared")
    P = np.exp(model.log_probabilities(IRIS.X, [0.5, 0.5, 0.0]))
    assert (P[:, 2] == 0).all()
    P, weight = model.probability_draws(model.draw_variables(5, random_seed=0), IRIS.X, [0.5, 0.5, 0.0])
    assert (P[..., 2] == 0).all()
    np.testing.assert_allclose(weight.sum(axis=0), 1)
    with pytest.raises(PriorError, match="must sum to one"):
        model.log_probabilities(IRIS.X, [0.5, 0.5, 0.5])


@pytest.mark.parametrize("covariance", MAKERS)
def test_draws_with_their_weights_average_to_the_prediction(covariance):
    model = generative(covariance)
    P, weight = model.probability_draws(model.draw_variables(20_000, random_seed=1), IRIS.X[50:60])
    mean = (weight[..., None] * P).sum(axis=0)
    np.testing.assert_allclose(mean, np.exp(model.log_probabilities(IRIS.X[50:60])), atol=0.01)
    assert model.log_terms(model.draw_variables(7, random_seed=0), IRIS.X[:4]).shape == (7, 4, 3)


@pytest.mark.parametrize("covariance", MAKERS)
def test_new_rows_have_the_shares_and_means_of_the_predictive(covariance):
    model = generative(covariance)
    X, y = model.sample(40_000, random_seed=0)
    assert_same_mean(np.eye(3)[y], model.class_shares)
    for k in range(3):
        # A Student-t has its posterior's centre as mean, and variances of Ψ(κ+1)/κ/(ν−d−1) on the diagonal.
        assert_same_mean(X[y == k], model.posterior.m[k])
        p = model.posterior
        if covariance == "diagonal":
            variance = p.b[k] * (p.kappa[k] + 1) / p.kappa[k] / (p.a[k] - 1)
        else:
            g = 0 if covariance == "shared" else k
            variance = np.diag(p.Psi[g]) * (p.kappa[k] + 1) / p.kappa[k] / (p.nu[g] - 4 - 1)
        assert_same_mean((X[y == k] - p.m[k]) ** 2, variance)


@pytest.mark.parametrize("size", [None, 60])
@pytest.mark.parametrize("covariance", MAKERS)
def test_the_size_of_the_blocks_changes_nothing(covariance, size, monkeypatch):
    model = generative(covariance, size=size)
    whole = model.log_probabilities(IRIS.X)
    monkeypatch.setattr(linalg, "WIDE_ELEMENTS", 1)
    np.testing.assert_allclose(model.log_probabilities(IRIS.X), whole, rtol=1e-10, atol=1e-12)


def test_draws_at_hand_are_thinned_or_repeated():
    model, name = generative("shared", size=20), "mu"
    every = model.draw_variables(20)[name]
    assert len(np.unique(every.reshape(20, -1), axis=0)) == 20
    thinned = model.draw_variables(7)[name]
    assert len(np.unique(thinned.reshape(7, -1), axis=0)) == 7
    repeated = model.draw_variables(50, random_seed=0)[name]
    assert set(map(bytes, repeated)) <= set(map(bytes, np.ascontiguousarray(every)))
    np.testing.assert_array_equal(repeated, model.draw_variables(50, random_seed=0)[name])


def test_a_model_has_one_source():
    with pytest.raises(DataError, match="either `posterior` or `draws`"):
        GaussianClassifier("shared", MOMENTS, NIW.default(MOMENTS), np.ones(3))


# ── The average over a grid of models ───────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def averaged():
    return AveragedClassifier(MOMENTS, np.ones(3), POOLED)


def test_mean_density_of_draws_is_the_predictive_density(averaged):
    rows = np.arange(0, 150, 10)
    X, y = IRIS.X[rows], IRIS.y[rows]
    S = 6000
    p = np.exp(log_joint_per_draw(averaged.draw_variables(S, random_seed=1), X))[:, np.arange(len(X)), y]
    exact = np.exp(averaged.log_joint(X))[np.arange(len(X)), y]
    error = p.std(axis=0) / np.sqrt(S)
    assert (error < 0.05 * exact).all()
    assert (np.abs(p.mean(axis=0) - exact) < 4.5 * error).all()


def test_other_class_shares_of_the_average_count_as_bayes_says(averaged):
    shares = np.array([0.7, 0.2, 0.1])
    log_joint = averaged.log_joint(IRIS.X) - np.log(averaged.class_shares) + np.log(shares)
    expected = np.exp(log_joint) / np.exp(log_joint).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(averaged.log_probabilities(IRIS.X, shares)), expected, rtol=1e-9)


def test_what_is_missing_is_integrated_out():
    two = AveragedClassifier(Moments.from_arrays(IRIS.X[:, :2], IRIS.y, 3), np.ones(3), POOLED[:2, :2])
    x = np.linspace(-20, 26, 8001)  # widths of a class are some .4
    whole = integrate.simpson(np.exp(two.log_joint(np.column_stack([np.full_like(x, 5.5), x]))), x=x, axis=0)
    np.testing.assert_allclose(np.exp(two.log_joint(np.array([[5.5, np.nan]]))[0]), whole, rtol=1e-6)


def test_intervals_entropies_and_decisions(averaged):
    X = IRIS.X[::10]
    P = np.exp(averaged.log_probabilities(X))
    ends = interval(averaged, X, prob=0.9, size=400, random_seed=0)
    assert (ends[..., 0] <= ends[..., 1]).all()
    split = entropy(averaged, X, size=400, random_seed=0)
    np.testing.assert_allclose(split.total, -(P * np.log(P)).sum(axis=1), atol=1e-12)
    made = decisions(averaged, X, 1 - np.eye(3), size=400, random_seed=0)
    np.testing.assert_array_equal(made.action, P.argmax(axis=1))


def test_alpha_and_grid_matter():
    skewed = AveragedClassifier(MOMENTS, np.array([100.0, 1.0, 1.0]), POOLED, Grid((0.5,), (0.0, 1.0)))
    np.testing.assert_allclose(skewed.class_shares, Dirichlet([150.0, 51.0, 51.0]).alpha / 252)
    assert len(skewed.continuum.weight) == 6


def test_errors_of_the_average_name_the_cause():
    with pytest.raises(PriorError, match="`pooled` must be a covariance of 4 features"):
        AveragedClassifier(MOMENTS, np.ones(3), POOLED[:2, :2])
    with pytest.raises(PriorError, match="`alpha`"):
        AveragedClassifier(MOMENTS, np.ones(2), POOLED)
    with pytest.raises(PriorError, match="`pooling` must hold shares above 0 and below 1"):
        Grid(pooling=(1.0,))
    with pytest.raises(PriorError, match="both ends among them"):
        Grid(diagonal=(0.5,))
    with pytest.raises(DataError, match="more rows than classes"):
        AveragedClassifier(Moments.from_arrays(IRIS.X[::50], IRIS.y[::50], 3), np.ones(3), POOLED)


def test_gaussian_classes_say_that_they_take_zeros_and_ones_for_measurements():
    from bayes_gda import Dataset
    from bayes_gda.families.gaussian.family import QDA

    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    X = np.column_stack([rng.normal(y, 1), rng.random(60) < 0.4, rng.normal(0, 1, 60)]).astype(float)
    data = Dataset.from_arrays(X, y, feature_names=["age", "smokes", "dose"])
    (sentence,) = QDA.bind(data).remarks()
    assert sentence.startswith("1 of 3 features holds 0 and 1 only (smokes)")
    assert "BayesianNaive" in sentence
    X[3, 0] = np.nan
    (again,) = QDA.bind(Dataset.from_arrays(X, y, feature_names=["age", "smokes", "dose"], missing="keep")).remarks()
    assert again == sentence
    assert QDA.bind(Dataset.from_arrays(X[4:, [0, 2]], y[4:])).remarks() == ()
