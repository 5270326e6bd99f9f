"""Changed class shares, against exact recomputation, direct optimisation, closed forms and simulation."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import ConvergenceError, DataError, PriorError
from bayes_gda.families.gaussian.exact import naive_posterior, qda_posterior
from bayes_gda.prediction.shift import add_training_error, estimate_class_prior, reweigh
from bayes_gda.priors import NIG, NIW

OLD = np.array([0.5, 0.3, 0.2])
MEANS = np.array([[0.0, 0.0], [1.5, 0.0], [0.5, 1.8]])


def log_probabilities(X, old=OLD, means=MEANS):
    return log_softmax(np.log(old) - 0.5 * ((X[:, None] - means) ** 2).sum(axis=2), axis=1)


def rows(prior, n, rng):
    y = rng.choice(len(prior), size=n, p=prior)
    return MEANS[y] + rng.standard_normal((n, 2))


# ── New shares ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("build", "kind"), [(qda_posterior, NIW), (naive_posterior, NIG)])
def test_reweighing_is_the_generative_model_with_other_shares(build, kind):
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    posterior = build(moments, kind.default(moments))
    old, new = posterior.alpha / posterior.alpha.sum(), np.array([0.7, 0.05, 0.25])
    # The same densities, with the Dirichlet of π replaced by one whose mean is the new shares.
    exact = log_softmax(replace(posterior, alpha=new * 1e6).log_joint(data.X), axis=1)
    for given in (posterior.log_joint(data.X), log_softmax(posterior.log_joint(data.X), axis=1)):
        np.testing.assert_allclose(reweigh(given, old, new), exact, rtol=1e-10, atol=1e-10)


def test_two_classes_move_by_the_log_odds_of_the_shares():
    p = np.array([1e-12, 0.2, 0.5, 0.99])
    log_p = np.log(np.column_stack([1 - p, p]))
    expected = expit(logit(p) + logit(0.01) - logit(0.4))
    np.testing.assert_allclose(np.exp(reweigh(log_p, [0.6, 0.4], [0.99, 0.01])[:, 1]), expected, rtol=1e-10)


def test_reweighing_twice_goes_back_and_leading_axes_are_free():
    X = rows(OLD, 50, np.random.default_rng(0))
    log_p, new = log_probabilities(X), [0.1, 0.1, 0.8]
    there = reweigh(log_p, OLD, new)
    np.testing.assert_allclose(reweigh(there, new, OLD), log_p, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.exp(there).sum(axis=1), 1)
    np.testing.assert_array_equal(reweigh(log_p.reshape(5, 10, 3), OLD, new), there.reshape(5, 10, 3))
    np.testing.assert_array_equal(reweigh(log_p[0], OLD, new), there[0])


def test_a_share_of_zero_makes_a_class_impossible_and_leaves_the_rest():
    log_p = log_probabilities(rows(OLD, 50, np.random.default_rng(0)))
    out = reweigh(log_p, OLD, [5 / 8, 3 / 8, 0])
    assert np.isneginf(out[:, 2]).all()
    np.testing.assert_allclose(out[:, :2], log_softmax(log_p[:, :2], axis=1), atol=1e-12)
    # A class that was never there stays away, without a warning.
    known = np.column_stack([log_p[:, :2], np.full(50, -np.inf)])
    np.testing.assert_allclose(
        reweigh(known, [5 / 8, 3 / 8, 0], [0.5, 0.5, 0])[:, 0], log_softmax(known[:, :2] - np.log([5, 3]), axis=1)[:, 0]
    )


def test_far_out_rows_stay_finite():
    log_joint = np.array([[-1e8, -1e8 - 800.0], [-5.0, -2000.0]])
    out = reweigh(log_joint, [0.5, 0.5], [1e-300, 1 - 1e-300])
    np.testing.assert_allclose(out[0, 1] - out[0, 0], -800 + 300 * np.log(10), rtol=1e-7)
    assert np.isfinite(out).all()


# ── Estimated shares ────────────────────────────────────────────────────────────────────────────────────────────────


def by_slsqp(log_p, old):
    ratio = np.exp(log_p) / old
    K = len(old)
    found = minimize(
        lambda v: -np.log(np.maximum(ratio @ v, 1e-300)).mean(),
        np.full(K, 1 / K),
        jac=lambda v: -(ratio / (ratio @ v)[:, None]).mean(axis=0),
        bounds=[(0, 1)] * K,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1, "jac": lambda v: np.ones(K)},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return found.x, -found.fun * len(log_p)


@pytest.mark.parametrize("new", [[0.1, 0.2, 0.7], [0.5, 0.3, 0.2], [0.0, 0.4, 0.6], [0.02, 0.0, 0.98]])
@pytest.mark.parametrize("n", [15, 600])
def test_the_estimate_is_that_of_direct_optimisation(new, n):
    log_p = log_probabilities(rows(new, n, np.random.default_rng(n)))
    found = estimate_class_prior(log_p, OLD)
    prior, log_likelihood = by_slsqp(log_p, OLD)
    assert found.converged
    assert found.prior.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(found.prior, prior, atol=2e-6)
    assert found.log_likelihood == pytest.approx(log_likelihood, abs=1e-7)
    assert found.log_likelihood >= log_likelihood - 1e-9
    # Saerens's fixed point: the shares are the means of the class probabilities that go with them.
    if (found.prior > 0).all():
        np.testing.assert_allclose(np.exp(reweigh(log_p, OLD, found.prior)).mean(axis=0), found.prior, atol=1e-9)
    # A log joint, whose rows are not normalised, says the same.
    again = estimate_class_prior(log_p + np.linspace(-900, 900, n)[:, None], OLD)
    np.testing.assert_allclose(again.prior, found.prior, atol=1e-9)
    assert again.log_likelihood == pytest.approx(found.log_likelihood, abs=1e-7)


def test_a_shift_is_found_within_its_standard_errors():
    new = np.array([0.15, 0.25, 0.6])
    found = estimate_class_prior(log_probabilities(rows(new, 5000, np.random.default_rng(1))), OLD)
    assert (np.abs(found.prior - new) < 4 * found.standard_error).all()
    assert found.standard_error.max() < 0.03
    assert found.p_value < 1e-10


def test_certain_classes_are_counted_with_multinomial_errors():
    y = np.repeat([0, 1, 2], [20, 30, 50])
    log_p = np.where(np.eye(3)[y] == 1, 0.0, -np.inf)
    found = estimate_class_prior(log_p, OLD)
    np.testing.assert_allclose(found.prior, [0.2, 0.3, 0.5], atol=1e-12)
    np.testing.assert_allclose(found.standard_error, np.sqrt(found.prior * (1 - found.prior) / 100), rtol=1e-10)
    # Then the test is the G-test of the counts.
    g, p_value = stats.power_divergence([20, 30, 50], 100 * OLD, lambda_="log-likelihood")
    assert 2 * found.log_likelihood == pytest.approx(g, rel=1e-12)
    assert found.p_value == pytest.approx(p_value, rel=1e-10)


def test_standard_errors_are_those_of_the_numerical_hessian():
    log_p = log_probabilities(rows([0.3, 0.3, 0.4], 800, np.random.default_rng(5)))
    found = estimate_class_prior(log_p, OLD)
    ratio = np.exp(log_p) / OLD
    # K − 1 free shares, the last what they leave; central differences of ℓ.
    h, basis = 1e-4, np.eye(2)

    def f(v):
        return np.log(ratio @ np.append(v, 1 - v.sum())).sum()

    v = found.prior[:2]
    hessian = [
        [
            (f(v + h * (a + b)) - f(v + h * (a - b)) - f(v - h * (a - b)) + f(v - h * (a + b))) / (4 * h * h)
            for a in basis
        ]
        for b in basis
    ]
    covariance = np.linalg.inv(-np.array(hessian))
    expected = np.sqrt([covariance[0, 0], covariance[1, 1], covariance.sum()])
    np.testing.assert_allclose(found.standard_error, expected, rtol=1e-4)


def test_errors_cover_and_p_values_are_uniform_over_many_samples():
    rng = np.random.default_rng(11)
    new, R = np.array([0.3, 0.3, 0.4]), 400
    z = np.empty((R, 3))
    for r in range(R):
        found = estimate_class_prior(log_probabilities(rows(new, 500, rng)), OLD)
        z[r] = (found.prior - new) / found.standard_error
    # z is nearly standard normal: its mean within 4/√R, its spread within 4/√(2R), and 95 % inside 1.96.
    assert (np.abs(z.mean(axis=0)) < 4 / np.sqrt(R)).all()
    assert (np.abs(z.std(axis=0) - 1) < 4 / np.sqrt(2 * R)).all()
    inside = (np.abs(z) < 1.96).mean(axis=0)
    assert (np.abs(inside - 0.95) < 4 * np.sqrt(0.95 * 0.05 / R)).all()
    p_values = [estimate_class_prior(log_probabilities(rows(OLD, 500, rng)), OLD).p_value for _ in range(R)]
    assert stats.kstest(p_values, "uniform").pvalue > 1e-3


def test_training_adds_nothing_where_it_leaves_nothing_unsure():
    log_p = log_probabilities(rows([0.3, 0.3, 0.4], 300, np.random.default_rng(7)))
    known, P = estimate_class_prior(log_p, OLD), np.exp(log_p)
    found = add_training_error(known, P, OLD, np.tile(P, (5, 1, 1)), np.tile(OLD, (5, 1)))
    np.testing.assert_allclose(found.covariance, known.covariance, rtol=1e-10)
    np.testing.assert_allclose(found.standard_error, known.standard_error, rtol=1e-10)
    assert found.p_value == pytest.approx(known.p_value, rel=1e-9)


def test_what_moves_shares_and_probabilities_alike_leaves_the_test_as_it_is():
    """The test asks whether the mean probability of the new rows differs from the training shares, in every draw."""
    log_p = log_probabilities(rows([0.3, 0.3, 0.4], 300, np.random.default_rng(7)))
    known, P = estimate_class_prior(log_p, OLD), np.exp(log_p)
    moved = np.random.default_rng(8).dirichlet(200 * np.asarray(OLD), size=400)
    draws = np.tile(moved[:, None], (1, 5, 1))
    found = add_training_error(known, P, OLD, draws, moved)
    assert found.p_value == pytest.approx(known.p_value, rel=1e-6)
    still = np.tile(np.asarray(OLD), (400, 1))
    assert add_training_error(known, P, OLD, draws, still).p_value > 10 * known.p_value


def test_training_shares_alone_make_it_a_test_of_two_samples():
    """Classes that are certain, 300 training rows and 600 new ones: counts against counts, by Pearson's test."""
    rng = np.random.default_rng(8)
    old, new = np.array([150, 90, 60]), np.array([340, 170, 90])
    P = np.repeat(np.eye(3), new, axis=0)
    with np.errstate(divide="ignore"):
        known = estimate_class_prior(np.log(P), old / 300)
    shares = rng.dirichlet(old, size=20_000)
    found = add_training_error(known, P, old / 300, np.broadcast_to(P, (20_000, 600, 3))[:, ::20], shares)
    # The new shares are counted: what training leaves unsure is none of their business.
    np.testing.assert_allclose(found.standard_error, np.sqrt(found.prior * (1 - found.prior) / 600), rtol=1e-6)
    assert found.p_value == pytest.approx(stats.chi2_contingency([old, new]).pvalue, abs=0.01)
    assert known.p_value < 0.2 * found.p_value


def test_an_absent_class_gets_exactly_zero_and_no_standard_error():
    # Only class 0 and class 1 occur, and the means lie far apart.
    rng = np.random.default_rng(2)
    means = 20 * MEANS
    y = rng.choice(2, size=300, p=[0.25, 0.75])
    found = estimate_class_prior(log_probabilities(means[y] + rng.standard_normal((300, 2)), means=means), OLD)
    np.testing.assert_allclose(found.prior, [np.mean(y == 0), np.mean(y == 1), 0], atol=1e-12)
    assert found.prior[2] == 0
    assert np.isnan(found.standard_error[2])
    binomial = np.sqrt(np.mean(y) * (1 - np.mean(y)) / 300)
    np.testing.assert_allclose(found.standard_error[:2], binomial, rtol=1e-8)
    # One row says one class, and nothing of how sure that is.
    single = estimate_class_prior(log_probabilities(MEANS[:1]), OLD)
    assert single.prior.tolist() == [1, 0, 0]
    assert np.isnan(single.standard_error).all()
    assert single.p_value > 0.1


def test_a_quarter_million_rows_converge_in_a_few_newton_steps():
    new = np.array([0.1, 0.3, 0.6])
    log_p = log_probabilities(rows(new, 250_000, np.random.default_rng(4)))
    found = estimate_class_prior(log_p, OLD)
    assert found.n_iter < 25
    assert (np.abs(found.prior - new) < 4 * found.standard_error).all()
    with pytest.raises(ConvergenceError, match="not within 1e-08 nats of the best after 5 steps") as caught:
        estimate_class_prior(log_p, OLD, max_iter=5)
    assert not caught.value.partial.converged
    assert caught.value.partial.prior.sum() == pytest.approx(1)


def test_hard_problems_meet_the_conditions_of_a_maximum():
    """Few rows, many classes, probabilities from flat to 10⁻²⁰⁰ and zero: ∂ℓ/∂π ≤ n, with equality where π > 0."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        K, n, spread = rng.integers(2, 12), int(10 ** rng.uniform(0, 3)), 10 ** rng.uniform(-2, 2.5)
        log_p = spread * (rng.normal(size=(n, K)) + rng.integers(0, 2) * rng.normal(size=K))
        log_p[:, 1:][rng.random((n, K - 1)) < rng.choice([0.0, 0.3])] = -np.inf
        old = rng.dirichlet(np.full(K, 2.0))
        found = estimate_class_prior(log_p, old)
        log_r = log_p - np.log(old)
        r = np.exp(log_r - log_r.max(axis=1, keepdims=True))
        slope = (r / (r @ found.prior)[:, None]).mean(axis=0)
        assert found.prior.min() >= 0
        assert slope.max() <= 1 + 2e-8 / n
        np.testing.assert_allclose(found.prior * (slope - 1), 0, atol=1e-7 / n)


@pytest.mark.parametrize("n", [100, 2000])
@pytest.mark.parametrize("r", [0.9, 0.99])
def test_one_certain_row_keeps_the_class_that_others_hardly_speak_of(n, r):
    """max log π + n log(1 − π(1 − r)) is at π = 1/((n + 1)(1 − r)); full Newton steps would end at 0, or beyond."""
    R = np.vstack([[1.0, 0.0], np.tile([r, 1.0], (n, 1))])
    with np.errstate(divide="ignore"):
        log_p = np.log(R / R.sum(axis=1, keepdims=True))
    found = estimate_class_prior(log_p, [0.5, 0.5])
    assert found.prior[0] == pytest.approx(min(1 / ((n + 1) * (1 - r)), 1), rel=1e-5)


def test_classes_that_look_alike_are_an_error():
    log_p = log_probabilities(rows(OLD, 100, np.random.default_rng(0)), means=MEANS[[0, 1, 1]])
    with pytest.raises(DataError, match=r"shares of classes 1 and 2 can be traded.*Merge"):
        estimate_class_prior(log_p, OLD)


LOG = np.log([[0.5, 0.5], [0.2, 0.8]])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: reweigh(LOG, [0.5, 0.5], [0.5, 0.6]), PriorError, "`new_prior` must sum to one; it sums to 1.1"),
        (lambda: reweigh(LOG, [0.5, 0.5], [1.5, -0.5]), PriorError, "`new_prior` must not be negative; got -0.5"),
        (
            lambda: reweigh(LOG, [0.5, 0.25, 0.25], [1, 0]),
            PriorError,
            "`old_prior` must hold a share for each of the 2",
        ),
        (lambda: reweigh(LOG, [0.5, np.nan], [1, 0]), PriorError, "`old_prior` must be finite"),
        (lambda: reweigh(LOG, [1, 0], [0.5, 0.5]), PriorError, "positive where `new_prior` is; got 0 for class 1"),
        (lambda: reweigh([[0, np.nan]], [0.5, 0.5], [1, 0]), DataError, "finite or −inf; got nan"),
        (lambda: reweigh([[0, np.inf]], [0.5, 0.5], [1, 0]), DataError, "finite or −inf; got inf"),
        (lambda: reweigh([[0.0]], [1], [1]), DataError, "at least two classes"),
        (
            lambda: reweigh([[0, 0], [-np.inf, 0]], [0.5, 0.5], [1, 0]),
            DataError,
            "Row 1 must have a possible class under",
        ),
        (lambda: estimate_class_prior(LOG[0], [0.5, 0.5]), DataError, r"`log_probabilities` must be \(n, K\)"),
        (lambda: estimate_class_prior(LOG, [1, 0]), PriorError, "`old_prior` must be positive; got 0 for class 1"),
    ],
)
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
