"""Logistic regression by IRLS and by gradient ascent, against scikit-learn, closed forms and the notes' algorithms."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from bayes_gda.baselines import GradientLogistic, IRLSLogistic, Steps
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.priors import Normal


def overlapping(K, n=300, d=3, seed=0):
    """Classes that overlap, so that maximum likelihood exists."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    A = X @ rng.normal(size=(d, K)) + rng.normal(size=K)
    return X, np.argmax(A + rng.gumbel(size=A.shape), axis=1)


def rows(model):
    return np.column_stack([model.intercept_, model.coef_])


# ── IRLS ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("K", [2, 3, 4])
def test_maximum_likelihood_equals_scikit_learn(K):
    X, y = overlapping(K)
    ours = IRLSLogistic(l2=0).fit(X, y)
    theirs = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, y)
    W = rows(theirs)
    np.testing.assert_allclose(rows(ours), W if K == 2 else W - W[-1], atol=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    np.testing.assert_allclose(ours.predict_log_proba(X), theirs.predict_log_proba(X), atol=1e-6)
    assert (ours.predict(X) == theirs.predict(X)).all()


@pytest.mark.parametrize("l2", [0.01, 1.0, 100.0])
def test_the_penalty_is_scikit_learns(l2):
    data = load_breast_cancer()
    X = StandardScaler().fit_transform(data.data)
    ours = IRLSLogistic(l2=l2).fit(X, data.target)
    theirs = LogisticRegression(C=1 / l2, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(X, data.target)
    np.testing.assert_allclose(rows(ours), rows(theirs), atol=1e-6)


@pytest.mark.parametrize("l2", [0.0, 2.0])
@pytest.mark.parametrize("K", [2, 3])
def test_the_estimate_is_the_laplace_mode(K, l2):
    X, y = overlapping(K)
    Phi, prior = np.column_stack([np.ones(len(X)), X]), Normal(scale=[np.inf, *[l2**-0.5 if l2 else np.inf] * 3])
    target = LogisticTarget(Phi, y, prior) if K == 2 else SoftmaxTarget(Phi, y, K, prior, reference=True)
    W = rows(IRLSLogistic(l2=l2).fit(X, y))
    mode = regression_laplace(target).mode.reshape(-1, 4)
    np.testing.assert_allclose(W if K == 2 else W[:-1], mode, atol=1e-8)
    assert K == 2 or (W[-1] == 0).all()


def test_a_two_by_two_table_has_a_closed_form():
    """P(y=1 | x=0) = 3/10, P(y=1 | x=1) = 8/12: intercept and slope are a logit and a log odds ratio."""
    x = np.repeat([0, 1], [10, 12])[:, None]
    y = np.r_[np.repeat([1, 0], [3, 7]), np.repeat([1, 0], [8, 4])]
    model = IRLSLogistic(l2=0).fit(x, y)
    np.testing.assert_allclose([*model.intercept_, *model.coef_[0]], [logit(0.3), np.log(8 / 4 * 7 / 3)], atol=1e-12)


def test_every_step_is_a_weighted_least_squares_fit():
    X, y = overlapping(2)
    Phi, w, losses = np.column_stack([np.ones(len(X)), X]), np.zeros(4), []
    model = IRLSLogistic(l2=0).fit(X, y)
    for _ in range(model.n_iter_ + 1):
        p = expit(Phi @ w)
        losses.append(-np.mean(y * np.log(p) + (1 - y) * np.log(1 - p)))
        r = p * (1 - p)
        w = np.linalg.lstsq(np.sqrt(r)[:, None] * Phi, np.sqrt(r) * (Phi @ w + (y - p) / r))[0]
    np.testing.assert_allclose(model.learning_curve_["loss"], losses, rtol=1e-12)
    np.testing.assert_allclose(rows(model)[0], w, atol=1e-12)


@pytest.mark.parametrize("K", [2, 3])
def test_convergence_is_quadratic_and_never_downhill(K):
    X, y = overlapping(K)
    curve = IRLSLogistic(l2=0).fit(X, y).learning_curve_
    assert (np.diff(curve["loss"]) <= 1e-15).all()
    g = curve["gradient"].to_numpy()
    near = g[(g < 1e-2) & (g > 1e-13)]
    assert len(near) >= 2
    # The digits double: log g falls by a factor of 2 a step, less a constant.
    assert (near[1:] < 100 * near[:-1] ** 2).all()


def test_separated_classes_raise_and_name_the_direction():
    data = load_iris(as_frame=True)
    pair = data.target < 2
    with pytest.raises(ConvergenceError, match=r"perfectly separated along .*petal.*Give l2 > 0") as caught:
        IRLSLogistic(l2=0).fit(data.data[pair], data.target[pair])
    assert caught.value.partial.shape == (5,)
    with pytest.raises(ConvergenceError, match=r"perfectly separated along .*\[\w+\]"):
        IRLSLogistic(l2=0).fit(data.data, data.target_names[data.target])
    assert IRLSLogistic(l2=1e-3).fit(data.data, data.target).converged_


def test_quasi_separation_raises_too():
    """x = 1 has only one class, x = 0 has both: the slope has no finite estimate."""
    x, y = np.repeat([0, 1], [10, 10])[:, None], np.r_[np.repeat([0, 1], 5), np.ones(10, int)]
    with pytest.raises(ConvergenceError, match="perfectly separated along"):
        IRLSLogistic(l2=0).fit(x, y)


def test_collinear_columns_raise():
    X, y = overlapping(2)
    with pytest.raises(ConvergenceError, match=r"collinear.*Drop one, or give l2 > 0"):
        IRLSLogistic(l2=0).fit(np.column_stack([X, X[:, 0] - X[:, 1]]), y)


def test_too_few_iterations_raise():
    X, y = overlapping(2)
    with pytest.raises(ConvergenceError, match=r"still changed by .* in the last of 2 steps. Raise max_iter"):
        IRLSLogistic(l2=0, max_iter=2).fit(X, y)


def test_probabilities_are_exact_in_the_tails():
    model = IRLSLogistic(l2=0.01).fit(*overlapping(2))
    far = 1e3 * np.sign(model.coef_)
    log_p = model.predict_log_proba(far)[0]
    assert log_p[1] == 0  # 1 − e^{−1000s}
    assert log_p[0] == pytest.approx(-model.decision_function(far)[0])


# ── Gradient ascent ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("scale", [1.0, 30.0])
def test_batch_ascent_never_falls_with_the_default_step(K, scale):
    X, y = overlapping(K)
    with pytest.warns(ConvergenceWarning, match="Raise max_epochs"):
        curve = GradientLogistic(max_epochs=200, tol=0).fit(scale * X + scale, y).learning_curve_
    assert len(curve) == 200
    assert (np.diff(curve["loss"]) <= 1e-14).all()


@pytest.mark.parametrize("l2", [0.0, 1.0])
@pytest.mark.parametrize("K", [2, 3])
def test_batch_ascent_reaches_the_maximum(K, l2):
    X, y = overlapping(K)
    model = GradientLogistic(l2=l2, tol=1e-9, max_epochs=20_000).fit(X, y)
    truth = IRLSLogistic(l2=l2).fit(X, y)
    assert model.converged_
    np.testing.assert_allclose(rows(model), rows(truth), atol=1e-6)
    assert model.learning_curve_["loss"].iloc[-1] == pytest.approx(truth.learning_curve_["loss"].iloc[-1], abs=1e-12)


@pytest.mark.parametrize("factor", [1.0, 2.5])
def test_one_batch_step_is_the_notes_update(factor):
    """From w = 0: w = η (1/n) Σ (y − ½) φ, with η = 1/λ_max(ΦᵀΦ/4n) by default."""
    X, y = overlapping(2)
    Phi = np.column_stack([np.ones(len(X)), X])
    eta = factor / np.linalg.eigvalsh(Phi.T @ Phi / (4 * len(X)))[-1]
    with pytest.warns(ConvergenceWarning, match="Raise max_epochs" if factor == 1 else "overshoots. Use step=None"):
        model = GradientLogistic(l2=0, max_epochs=1, step=None if factor == 1 else eta).fit(X, y)
    np.testing.assert_allclose(rows(model)[0], eta * (y - 0.5) @ Phi / len(X), rtol=1e-12)


def test_steps_beyond_two_over_L_may_fall_and_overflow():
    X, y = overlapping(2)
    with pytest.warns(ConvergenceWarning, match="overshoots"):
        curve = GradientLogistic(step=50.0, max_epochs=50).fit(X, y).learning_curve_
    assert (np.diff(curve["loss"]) > 0).any()
    with pytest.raises(ConvergenceError, match=r"the weights overflow in epoch .*overshoots. Use step=None"):
        GradientLogistic(step=50.0, l2=1e4).fit(X, y)


@pytest.mark.parametrize("K", [2, 3])
def test_an_online_epoch_is_the_notes_loop(K):
    X, y = overlapping(K, n=40)
    Phi, W = np.column_stack([np.ones(40), X]), np.zeros((K, 4))
    steps = Steps(a=2, b=10)
    for t, i in enumerate(np.random.RandomState(7).permutation(40)):
        p = np.exp(Phi[i] @ W.T)
        p /= p.sum()
        free = slice(1, 2) if K == 2 else slice(0, K - 1)  # the reference class keeps zero weights
        W[free] += steps(t) * np.outer((np.arange(K) == y[i]) - p, Phi[i])[free]
    with pytest.warns(ConvergenceWarning):
        model = GradientLogistic(online=True, step=steps, l2=0, max_epochs=1, random_state=7).fit(X, y)
    np.testing.assert_allclose(rows(model), W[1:] if K == 2 else W, rtol=1e-10)


@pytest.mark.parametrize("K", [2, 3])
def test_online_ascent_comes_close_to_the_maximum(K):
    X, y = overlapping(K)
    model = GradientLogistic(online=True, tol=2e-3, random_state=0).fit(X, y)
    truth = IRLSLogistic().fit(X, y)
    assert model.converged_
    assert 0 < model.learning_curve_["loss"].iloc[-1] - truth.learning_curve_["loss"].iloc[-1] < 5e-4
    np.testing.assert_allclose(model.predict_proba(X), truth.predict_proba(X), atol=0.02)


def test_online_steps_that_do_not_fall_are_named():
    X, y = overlapping(2, n=50)
    with pytest.warns(ConvergenceWarning, match="t.−0 do not meet the Robbins–Monro conditions.*½ < power ≤ 1"):
        GradientLogistic(online=True, step=0.1, max_epochs=3).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="finite sum"):
        GradientLogistic(step=Steps(a=0.1, power=2), max_epochs=3).fit(X, y)


def test_separation_is_no_convergence():
    """The gradient vanishes as the weights grow; that is not a maximum."""
    X = pd.DataFrame({"dose": [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]})
    y = [0, 0, 0, 1, 1, 1]
    with pytest.warns(ConvergenceWarning, match=r"perfectly separated along .*·dose.*Give l2 > 0"):
        model = GradientLogistic(l2=0, tol=1e-2).fit(X, y)
    assert model.learning_curve_["gradient"].iloc[-1] <= 1e-2
    assert not model.converged_
    assert GradientLogistic(l2=1).fit(X, y).converged_


def test_bad_arguments_are_named():
    X, y = overlapping(2)
    for model in (IRLSLogistic(l2=-1), GradientLogistic(l2=-1)):
        with pytest.raises(DataError, match="`l2` must be one number of at least 0; got -1"):
            model.fit(X, y)
    with pytest.raises(DataError, match="`max_iter` must be a whole number"):
        IRLSLogistic(max_iter=0).fit(X, y)
