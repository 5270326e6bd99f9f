"""What the variational Gaussian leaves out: sums by definition, truth by quadrature and sampling, leave-one-out."""

import numpy as np
import pytest
from proof.split_hmc import sample_truth
from scipy.special import softmax

from bayes_gda import BayesianLogisticRegression, linalg
from bayes_gda.data.examples import load_example
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import SoftmaxPredictor
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.beyond import (
    SUMMED_ROWS,
    SoftmaxBeyond,
    draw_in_proportion,
    third_form,
    third_moments,
)
from bayes_gda.families.linear.variational.certificate import certify, judge_softmax, survey
from bayes_gda.families.linear.variational.sites import leave_row_out, normal_points, softmax_variational
from bayes_gda.priors import Normal


def simulated(n, d, K, seed=0, *, reference=False, scale=1.5):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (scale * X @ rng.standard_normal((d, K)) / np.sqrt(d) + rng.gumbel(size=(n, K))).argmax(axis=1)
    return SoftmaxTarget(np.column_stack([np.ones(n), X]), y, K, Normal.default(d + 1), reference=reference)


def third_central(p, u, v, w):
    """E[(u − ū)(v − v̄)(w − w̄)] over a class drawn from p."""
    return float(p @ ((u - p @ u) * (v - p @ v) * (w - p @ w)))


def test_third_moments_against_their_definition():
    rng = np.random.default_rng(0)
    P = softmax(rng.standard_normal((2, 3, 4)), axis=2)
    U, V, e = rng.standard_normal((2, 4, 5)), rng.standard_normal((2, 4, 5)), np.eye(4)
    T, form = third_moments(P, U, V), third_form(P, U.copy())
    for i in range(2):
        for s in range(5):
            u, v = U[i, :, s], V[i, :, s]
            assert form[i, s] == pytest.approx(np.mean([third_central(p, u, u, u) for p in P[i]]))
            for k in range(4):
                assert T[i, k, s] == pytest.approx(np.mean([third_central(p, u, v, e[k]) for p in P[i]]))


def test_rows_drawn_in_proportion_give_unbiased_sums():
    sizes = np.random.default_rng(0).gamma(0.3, size=5000)
    chosen, scale = draw_in_proportion(sizes, 500)
    assert len(chosen) <= 500
    assert (scale >= 1).all()
    assert scale @ sizes[chosen] == pytest.approx(sizes.sum(), rel=1e-2)
    assert scale @ np.sqrt(sizes[chosen]) == pytest.approx(np.sqrt(sizes).sum(), rel=0.15)
    assert len(draw_in_proportion(np.zeros(3000), 500)[0]) <= 500
    np.testing.assert_array_equal(draw_in_proportion(sizes[:300], 500)[1], 1)


def test_points_have_the_moments_of_the_normal_in_any_dimension():
    for dimension in (2, 9, 25):
        z = normal_points(dimension, 32)
        np.testing.assert_allclose(z @ z.T / z.shape[1], np.eye(dimension), atol=1e-9)
        np.testing.assert_allclose(z.sum(axis=1), 0, atol=1e-9)


def test_what_is_left_out_does_not_depend_on_the_blocks(monkeypatch):
    target = simulated(60, 2, 4)
    laplace = regression_laplace(target)

    def judged():
        seen = survey(laplace, laplace, target, target.Phi)
        return seen.link, *SoftmaxBeyond.of(laplace, target, seen.size).changes(target.Phi[:3])

    whole = judged()
    monkeypatch.setattr(linalg, "WIDE_ELEMENTS", 2000)
    for some, all_at_once in zip(judged(), whole, strict=True):
        np.testing.assert_allclose(some, all_at_once, rtol=1e-6, atol=1e-12)


def quadrature(target, rows):
    """Probabilities, covariance and log evidence of a posterior with two weights, on a grid."""
    a, step = np.linspace(-9, 9, 601, retstep=True)
    W = np.array(np.meshgrid(a, a)).reshape(2, -1).T
    log_p = target.log_density(W)
    p = np.exp(log_p - log_p.max())
    full = np.column_stack([W, np.zeros(len(W))])
    values = softmax(rows[:, :, None] * full, axis=2)
    centred = W - (p / p.sum()) @ W
    covariance = (centred * (p / p.sum())[:, None]).T @ centred
    return (p / p.sum()) @ values, covariance, np.log(p.sum() * step**2) + log_p.max()


def test_changes_against_quadrature():
    """Three classes, a reference and one feature: what is left out is found, and the evidence comes closer."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((60, 1))
    y = (x @ np.array([[1.0, -0.5, 0.0]]) + rng.gumbel(size=(60, 3))).argmax(axis=1)
    target = SoftmaxTarget(x, y, 3, Normal(scale=2.0), reference=True)
    rows = np.array([[-2.0], [-0.7], [0.6], [1.5], [3.0]])
    truth, covariance, log_evidence = quadrature(target, rows)
    posterior = softmax_variational(target, regression_laplace(target))
    beyond = SoftmaxBeyond.of(posterior, target, np.ones(target.n))
    p = SoftmaxPredictor(rows, 3, True).gaussian(posterior, "exact")
    skewed, widened = beyond.changes(rows)
    assert np.abs(p + skewed - truth).max() < 0.7 * np.abs(p - truth).max()
    assert np.abs(p - truth).max() < np.maximum(np.abs(skewed), np.abs(skewed + widened)).max()
    # The variational Gaussian is too narrow, and what is added goes the right way.
    C = beyond.covariance_root
    before, after = (np.abs(V - covariance).max() for V in (posterior.covariance, posterior.covariance + C @ C.T))
    assert after < 0.8 * before
    assert posterior.log_evidence < log_evidence
    change = beyond.evidence_change
    assert abs(posterior.log_evidence + change - log_evidence) < 0.7 * (log_evidence - posterior.log_evidence)


def test_the_survey_is_the_distance_of_two_predictions():
    target = simulated(300, 3, 5)
    laplace = regression_laplace(target)
    posterior = softmax_variational(target, laplace)
    seen = survey(laplace, posterior, target, target.Phi)
    predictor = SoftmaxPredictor(target.Phi, 5)
    p, fast = predictor.gaussian(posterior, "exact"), predictor.gaussian(laplace, "exact")
    np.testing.assert_allclose(seen.change, np.abs(p - fast).max(axis=1), atol=1e-4)
    assert seen.shift().flips == pytest.approx(np.mean(p.argmax(1) != fast.argmax(1)), abs=0.01)


@pytest.mark.parametrize("reference", [False, True])
def test_the_estimate_covers_the_error(reference):
    """Against long sampling; Laplace's error is far larger."""
    target = simulated(150, 4, 4, seed=5, reference=reference)
    laplace = regression_laplace(target)
    posterior, found, rows_judged = judge_softmax(target, laplace)
    rows = target.Phi[:100]
    truth = sample_truth(target, posterior, rows, seconds=1.5, chains=64, rounds=1)
    predictor = SoftmaxPredictor(rows, 4, reference)
    noise = 4 * truth.error.max()
    better, fast = (np.abs(predictor.gaussian(g, "exact") - truth.p).max() for g in (posterior, laplace))
    assert better < found.better_error + noise
    assert fast < found.laplace_error + noise
    assert better < 0.3 * fast
    errors = rows_judged.errors(rows)
    assert (np.abs(predictor.gaussian(posterior, "exact") - truth.p).max(axis=1) < errors[1] + noise).all()
    assert (np.abs(predictor.gaussian(laplace, "exact") - truth.p).max(axis=1) < errors[0] + noise).all()
    assert found.method == "variational"


def test_many_rows_are_summed_in_part():
    """The sums over part of the rows are close to those over all."""
    target = simulated(SUMMED_ROWS + 500, 2, 3, scale=3.0)
    laplace = regression_laplace(target)
    posterior = softmax_variational(target, laplace)
    seen = survey(laplace, posterior, target, target.Phi)
    rows = np.ascontiguousarray(3 * target.Phi[:5])
    part = SoftmaxBeyond.of(posterior, target, seen.size)
    whole = SoftmaxBeyond.of(posterior, target, seen.size, target.n)
    assert sum(len(group.Phi) for group in part._groups) <= SUMMED_ROWS
    for a, b in zip(part.changes(rows), whole.changes(rows), strict=True):
        np.testing.assert_allclose(a, b, atol=0.3 * np.abs(b).max())
    assert certify(laplace, part, target.Phi, seen).estimate.better < 0.01


def test_leaving_rows_out_against_refits():
    """The cavities against variational fits without the row; iris, the rows that fit worst."""
    data = load_example("iris")
    model = BayesianLogisticRegression(inference="variational", tolerance=0.5).fit(data.X, data.y)
    left, full = model.model_.leave_one_out(data.X, data.y)
    own = left[np.arange(data.n), data.y]
    np.testing.assert_allclose(full, model.model_.log_probabilities(data.X), rtol=1e-9)
    for i in np.argsort(own)[:3]:
        keep = np.arange(data.n) != i
        refit = BayesianLogisticRegression(inference="variational", tolerance=0.5, features=model.features_)
        p = refit.fit(data.X[keep], data.y[keep]).predict_proba(data.X[i : i + 1])[0, data.y[i]]
        before = full[i, data.y[i]]
        assert abs(own[i] - np.log(p)) < 0.3 * (before - np.log(p))


def test_a_row_without_information_is_left_out_without_a_trace():
    mu, S = np.array([[0.3, -1.0]]), 1e-8 * np.eye(2)[None]
    mean, cov = leave_row_out(mu, S, np.array([1]), 3)
    np.testing.assert_allclose(mean, mu, atol=1e-6)
    np.testing.assert_allclose(cov, S, atol=1e-14)


@pytest.mark.filterwarnings("ignore::bayes_gda.errors.InferenceWarning")
def test_a_column_of_which_rounding_leaves_nothing_is_no_raw_warning():
    """A value of 1e12 in three rows: a precision of the variational Gaussian is 0 but for rounding."""
    X = np.array([[1e12], [-0.13], [0.64]])
    model = BayesianLogisticRegression(inference="laplace", standardize=False, draws=20, chains=2).fit(X, [0, 1, 2])
    assert np.isfinite(model.predict_proba(X)).all()
    with pytest.raises(ConvergenceError, match="Gaussian variational approximation"):
        BayesianLogisticRegression(inference="variational", standardize=False).fit(X, [0, 1, 2])
