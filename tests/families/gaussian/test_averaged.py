"""The fitted average: its draws, its densities and its gaps agree with integrals taken another way."""

import numpy as np
import pytest
from fitted import IRIS, MOMENTS
from scipy import integrate

from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.gaussian.averaged import AveragedClassifier
from bayes_gda.families.gaussian.continuum import Grid
from bayes_gda.families.gaussian.predictive import log_joint_per_draw
from bayes_gda.prediction.uncertainty import decisions, entropy, interval
from bayes_gda.priors import Dirichlet

POOLED = MOMENTS.scatter.sum(axis=0) / MOMENTS.n


@pytest.fixture(scope="module")
def model():
    return AveragedClassifier(MOMENTS, np.ones(3), POOLED)


def test_mean_density_of_draws_is_the_predictive_density(model):
    rows = np.arange(0, 150, 10)
    X, y = IRIS.X[rows], IRIS.y[rows]
    S = 6000
    p = np.exp(log_joint_per_draw(model.draw_variables(S, random_seed=1), X))[:, np.arange(len(X)), y]
    exact = np.exp(model.log_joint(X))[np.arange(len(X)), y]
    error = p.std(axis=0) / np.sqrt(S)
    assert (error < 0.05 * exact).all()
    assert (np.abs(p.mean(axis=0) - exact) < 4.5 * error).all()


def test_other_class_shares_count_as_bayes_says(model):
    shares = np.array([0.7, 0.2, 0.1])
    log_joint = model.log_joint(IRIS.X) - np.log(model.class_shares) + np.log(shares)
    expected = np.exp(log_joint) / np.exp(log_joint).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.exp(model.log_probabilities(IRIS.X, shares)), expected, rtol=1e-9)


def test_what_is_missing_is_integrated_out():
    two = AveragedClassifier(Moments.from_arrays(IRIS.X[:, :2], IRIS.y, 3), np.ones(3), POOLED[:2, :2])
    x = np.linspace(-20, 26, 8001)  # widths of a class are some .4
    whole = integrate.simpson(np.exp(two.log_joint(np.column_stack([np.full_like(x, 5.5), x]))), x=x, axis=0)
    np.testing.assert_allclose(np.exp(two.log_joint(np.array([[5.5, np.nan]]))[0]), whole, rtol=1e-6)


def test_intervals_entropies_and_decisions(model):
    X = IRIS.X[::10]
    P = np.exp(model.log_probabilities(X))
    ends = interval(model, X, prob=0.9, size=400, random_seed=0)
    assert (ends[..., 0] <= ends[..., 1]).all()
    split = entropy(model, X, size=400, random_seed=0)
    np.testing.assert_allclose(split.total, -(P * np.log(P)).sum(axis=1), atol=1e-12)
    made = decisions(model, X, 1 - np.eye(3), size=400, random_seed=0)
    np.testing.assert_array_equal(made.action, P.argmax(axis=1))


def test_alpha_and_grid_matter():
    skewed = AveragedClassifier(MOMENTS, np.array([100.0, 1.0, 1.0]), POOLED, Grid((0.5,), (0.0, 1.0)))
    np.testing.assert_allclose(skewed.class_shares, Dirichlet([150.0, 51.0, 51.0]).alpha / 252)
    assert len(skewed.continuum.weight) == 6


def test_errors_name_the_cause():
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
