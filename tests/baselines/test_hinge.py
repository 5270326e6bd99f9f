"""Hinge loss by subgradient descent, against support vector machines and a linear programme."""

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from bayes_gda.baselines import HingeClassifier, Steps

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
PAIR = StandardScaler().fit_transform(X_IRIS[Y_IRIS > 0]), Y_IRIS[Y_IRIS > 0]
CANCER = load_breast_cancer(return_X_y=True)
CANCER = StandardScaler().fit_transform(CANCER[0]), CANCER[1]


def objective(w, b, X, signs, l2):
    return np.maximum(0, 1 - signs * (X @ w + b)).mean() + l2 / (2 * len(X)) * w @ w


def signs_of(y):
    return np.where(y == y.max(), 1.0, -1.0)


@pytest.mark.parametrize("online", [False, True])
@pytest.mark.parametrize(
    ("data", "l2"),
    [
        pytest.param(PAIR, 1.0, id="iris-1"),
        pytest.param(PAIR, 10.0, id="iris-10"),
        pytest.param(CANCER, 10.0, id="cancer-10"),
        pytest.param(CANCER, 1.0, id="cancer-1", marks=pytest.mark.slow),
    ],
)
def test_the_loss_is_near_that_of_the_support_vector_machine(data, l2, online):
    X, y = data
    svm = SVC(kernel="linear", C=1 / l2, tol=1e-8).fit(X, y)
    least = objective(svm.coef_[0], svm.intercept_, X, signs_of(y), l2)
    model = HingeClassifier(online=online, l2=l2, max_epochs=6000, random_state=0).fit(X, y)
    reached = objective(model.coef_[0], model.intercept_, X, signs_of(y), l2)
    assert model.converged_
    assert reached == pytest.approx(model.learning_curve_["best"].iloc[-1])
    # The rule of stopping says that about tol = .001 remains; nothing is below the minimum.
    assert least - 1e-9 <= reached <= least + 3e-3
    assert (np.diff(model.learning_curve_["best"]) <= 0).all()


@pytest.mark.parametrize("online", [False, True])
def test_without_penalty_the_minimum_is_that_of_a_linear_programme(online):
    X, y = make_blobs(80, centers=[[0, 0], [2, 1]], random_state=3)
    signs = signs_of(y)
    # min Σ ξ/n subject to y (wᵀx + b) ≥ 1 − ξ, ξ ≥ 0
    n, S = len(X), signs[:, None] * np.column_stack([np.ones(len(X)), X])
    programme = linprog(
        np.r_[np.zeros(3), np.full(n, 1 / n)],
        A_ub=-np.column_stack([S, np.eye(n)]),
        b_ub=-np.ones(n),
        bounds=[(None, None)] * 3 + [(0, None)] * n,
    )
    model = HingeClassifier(l2=0, online=online, tol=5e-4, max_epochs=5000, random_state=0).fit(X, y)
    reached = objective(model.coef_[0], model.intercept_, X, signs, 0)
    assert programme.fun - 1e-9 <= reached <= programme.fun + 3e-3


def test_the_first_step_by_hand():
    """At w = 0 all rows violate their margin: w = η (1/n) Σ y φ. The notes' gradient, of max(0, −y wᵀφ), is another."""
    X, y = PAIR
    signs = signs_of(y)
    with pytest.warns(ConvergenceWarning, match="t.−0, which does not meet the Robbins–Monro conditions"):
        model = HingeClassifier(step=0.01, max_epochs=1).fit(X, y)
    np.testing.assert_allclose(model.coef_[0], 0.01 * signs @ X / len(X), rtol=1e-12)
    np.testing.assert_allclose(model.intercept_, 0.01 * signs.mean(), atol=1e-15)
    # And a second: rows beyond their margin fall silent, the penalty pulls the slopes.
    with pytest.warns(ConvergenceWarning):
        model = HingeClassifier(step=Steps(a=20, power=0), max_epochs=1, l2=5).fit(X, y)
    w = np.r_[20 * signs.mean(), 20 * signs @ X / len(X)]
    assert model.learning_curve_["loss"][0] == pytest.approx(objective(w[1:], w[0], X, signs, 5))


def test_more_classes_are_one_against_the_rest():
    X, y = make_blobs(150, centers=[[0, 3], [3, -2], [-3, -2]], random_state=0)
    model = HingeClassifier(max_epochs=2000).fit(X, y)
    for k in range(3):
        alone = HingeClassifier(max_epochs=model.n_iter_, tol=0)
        with pytest.warns(ConvergenceWarning):
            alone.fit(X, y == k)
        np.testing.assert_allclose(alone.coef_[0], model.coef_[k], rtol=1e-12)
    assert model.score(X, y) == 1 - model.learning_curve_["errors"].iloc[-1] / 150


def test_too_few_epochs_say_so():
    with pytest.warns(ConvergenceWarning, match=r"not settled after 30 epochs: the loss fell by .*Raise max_epochs"):
        model = HingeClassifier(max_epochs=30).fit(*CANCER)
    assert not model.converged_


def test_the_average_counts_late_weights_more():
    """Two steps that jump across the valley: (W₁ + 2W₂)/3 is lower than either, and is what is kept."""
    X, y = PAIR
    signs, l2, eta = signs_of(y), 50.0, 2.0
    Phi, W = np.column_stack([np.ones(len(X)), X]), [np.zeros(5)]
    for _ in range(2):
        active = signs * (Phi @ W[-1]) < 1
        W.append(W[-1] + eta * ((signs * active) @ Phi - l2 * np.r_[0, W[-1][1:]]) / len(X))
    average = (W[1] + 2 * W[2]) / 3
    losses = [objective(w[1:], w[0], X, signs, l2) for w in (*W, average)]
    assert np.argmin(losses) == 3
    with pytest.warns(ConvergenceWarning):
        model = HingeClassifier(step=eta, l2=l2, max_epochs=2).fit(X, y)
    np.testing.assert_allclose([*model.intercept_, *model.coef_[0]], average, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(model.learning_curve_["loss"], losses[1:3])
