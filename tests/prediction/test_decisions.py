"""Decisions against the textbook, hand enumeration, closed forms and scikit-learn."""

import tracemalloc

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import confusion_matrix, roc_curve

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import qda_posterior
from bayes_gda.families.gaussian.predictive import log_joint_of_draws, log_joint_per_draw
from bayes_gda.prediction.decisions import (
    cost_curve,
    decide,
    decide_with_draws,
    net_benefit,
    optimal_threshold,
    threshold_curve,
)
from bayes_gda.prediction.normalised import generative_draws, log_class_probabilities
from bayes_gda.priors import NIW

SPAM = [[0, 10], [1, 0]]


def problem(n=40, A=4, K=3, S=25, seed=0):
    rng = np.random.default_rng(seed)
    draws = rng.dirichlet(np.ones(K), (S, n))
    return draws.mean(axis=0), draws, rng.normal(size=(n, A, K)), rng


# ── The choice ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_textbook_spam_case():
    made = decide([[0.6, 0.4]], SPAM, action_names=["spam", "not spam"])
    np.testing.assert_array_equal(made.expected_loss, [[4, 0.6]])
    assert made.chosen.tolist() == ["not spam"]
    assert made.loss.tolist() == [0.6]
    assert not made.rejected.any()
    assert made.probability_optimal is None
    assert made.value_of_information is None


def test_zero_one_costs_choose_the_most_probable_class():
    P, *_ = problem(n=500, K=5)
    made = decide(P, 1 - np.eye(5))
    np.testing.assert_array_equal(made.action, P.argmax(axis=1))
    np.testing.assert_allclose(made.loss, 1 - P.max(axis=1))
    assert made.names == ("0", "1", "2", "3", "4")


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("rejecting", [None, "number", "rows"])
def test_losses_by_enumeration(per_row, rejecting):
    P, _, costs, rng = problem()
    n, A, K = costs.shape
    reject = {None: None, "number": -0.3, "rows": rng.normal(size=n)}[rejecting]
    given = costs if per_row else costs[0]
    made = decide(P, given, reject_cost=reject)
    for i in range(n):
        C = costs[i] if per_row else costs[0]
        losses = [sum(C[a, k] * P[i, k] for k in range(K)) for a in range(A)]
        if rejecting:
            losses.append(np.broadcast_to(reject, n)[i])
        np.testing.assert_allclose(made.expected_loss[i], losses, rtol=1e-12, atol=1e-14)
        assert made.action[i] == np.argmin(losses)
        assert made.loss[i] == made.expected_loss[i].min()
        assert made.rejected[i] == (made.action[i] == A)
    assert len(made.names) == A + bool(rejecting)
    assert made.rejected.any() == bool(rejecting)


def test_chows_rule_rejects_below_one_minus_the_cost():
    P, *_ = problem(n=1000)
    made = decide(P, 1 - np.eye(3), reject_cost=0.4, action_names="abc")
    np.testing.assert_array_equal(made.rejected, P.max(axis=1) < 0.6)
    np.testing.assert_array_equal(made.chosen == "reject", made.rejected)


def test_a_cost_of_the_class_alone_changes_no_decision():
    """Costs c[a, k] + b[k] differ from c in a constant of each row."""
    P, _, costs, rng = problem(n=300)
    b = rng.normal(size=3)
    one, two = decide(P, costs[0]), decide(P, costs[0] + b)
    np.testing.assert_array_equal(one.action, two.action)
    np.testing.assert_allclose(two.loss - one.loss, P @ b)


@pytest.mark.parametrize("unit", [1e-12, 1.0, 1e12])
def test_the_unit_of_the_costs_changes_no_decision(unit):
    costs = unit * np.array([[0.3, 0.1], [0.1, 0.3 + 1e-9]])  # of .4 and .4 + 1e-9 at p = ½, and of a tie
    assert decide([[0.5, 0.5]], costs).action.tolist() == [0]
    assert decide([[0.5, 0.5]], costs[::-1]).action.tolist() == [1]
    assert decide([[0.5, 0.5]], unit * np.array([[0.3, 0.1], [0.1, 0.3]])[::-1]).action.tolist() == [0]


def test_ties_go_to_the_first_action_whatever_the_rounding():
    """Under p = (1/K, …, 1/K) the same costs in any order have the same loss, but for the last digits of a sum."""
    rng = np.random.default_rng(0)
    naive = 0
    for _ in range(100):
        K = rng.integers(3, 9)
        P, c = np.full((1, K), 1 / K), rng.normal(size=K)
        costs = np.array([rng.permutation(c) for _ in range(4)])
        naive += (P @ costs.T).argmin() == 0
        assert decide(P, costs, reject_cost=c.mean()).action[0] == 0
        made = decide_with_draws(P, np.repeat(P[None], 2, axis=0), costs)
        assert made.probability_optimal[0].tolist() == [1, 0, 0, 0]
    assert naive < 90
    # A difference beyond rounding counts, also beside a huge cost of what cannot happen.
    assert decide([[0.5, 0.5, 0.0]], [[1 + 1e-13, 1, 1e20], [1, 1, 0]]).action[0] == 1


# ── Draws ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("weighing", [None, "draws", "rows"])
@pytest.mark.parametrize("reject", [None, -0.2])
def test_shares_of_draws_and_value_by_enumeration(weighing, reject):
    P, draws, costs, rng = problem()
    S, n, _ = draws.shape
    weights = {None: None, "draws": rng.gamma(1.0, size=S), "rows": rng.gamma(1.0, size=(S, n))}[weighing]
    w = np.ones((S, n)) if weights is None else np.broadcast_to(weights.reshape(S, -1), (S, n))
    w = w / w.sum(axis=0)
    P = np.einsum("sn,snk->nk", w, draws)
    made = decide_with_draws(P, draws, costs, weights=weights, reject_cost=reject)
    np.testing.assert_array_equal(made.action, decide(P, costs, reject_cost=reject).action)
    for i in range(n):
        losses = draws[:, i] @ costs[i].T
        if reject is not None:
            losses = np.column_stack([losses, np.full(S, reject)])
        optimal = np.bincount(losses.argmin(axis=1), weights=w[:, i], minlength=losses.shape[1])
        np.testing.assert_allclose(made.probability_optimal[i], optimal, atol=1e-14)
        # The textbook form: expected loss of the choice minus the expected loss of a clairvoyant.
        value = made.loss[i] - w[:, i] @ losses.min(axis=1)
        np.testing.assert_allclose(made.value_of_information[i], value, atol=1e-14)
    assert (made.value_of_information >= 0).all()
    assert made.value_of_information.max() > 0.01


def test_value_of_information_in_closed_form():
    """p ~ Beta(a, b), 0/1 costs, a > b: the choice errs with b/(a+b), a clairvoyant with E min(p, 1−p)."""
    a, b, S = 3.0, 2.0, 20_000
    # Quantiles at midpoints: quadrature, not noise.
    p = stats.beta.ppf((np.arange(S) + 0.5) / S, a, b)
    draws = np.stack([1 - p, p], axis=1)[:, None]
    made = decide_with_draws([[b / (a + b), a / (a + b)]], draws, [[0, 1], [1, 0]])
    # E[p; p < ½] = a/(a+b) I_½(a+1, b), and likewise for 1 − p
    clairvoyant = a / (a + b) * stats.beta.cdf(0.5, a + 1, b) + b / (a + b) * stats.beta.sf(0.5, a, b + 1)
    assert made.value_of_information[0] == pytest.approx(b / (a + b) - clairvoyant, abs=1e-6)
    assert made.probability_optimal[0] == pytest.approx([stats.beta.cdf(0.5, a, b), stats.beta.sf(0.5, a, b)], abs=1e-4)


def test_sure_draws_leave_nothing_to_learn():
    P, _, costs, _ = problem()
    made = decide_with_draws(P, np.repeat(P[None], 3, axis=0), costs[0])
    np.testing.assert_array_equal(made.value_of_information, 0)
    np.testing.assert_array_equal(made.probability_optimal, np.eye(4)[made.action])


def test_weighted_generative_draws_average_to_the_generative_predictive():
    data = load_example("iris")
    moments = Moments.from_arrays(data.X, data.y, data.K)
    draws = qda_posterior(moments, NIW.default(moments)).draw(200, random_seed=0)
    X = np.add(data.X[::7], [1.0, 0, -1.0, 0])
    p, w = generative_draws(log_joint_per_draw(draws, X))
    P = np.exp(log_class_probabilities(log_joint_of_draws(draws, X)))
    np.testing.assert_allclose(np.einsum("sn,snk->nk", w, p), P, atol=1e-12)
    assert np.abs(p.mean(axis=0) - P).max() > 0.01  # equal weights are another, wrong number
    costs = 1 - np.eye(3)
    made = decide_with_draws(P, p, costs, weights=w)
    clairvoyant = np.einsum("sn,sn->n", w, (p @ costs.T).min(axis=2))
    np.testing.assert_allclose(made.value_of_information, made.loss - clairvoyant, atol=1e-12)


def test_memory_beside_the_draws_stays_flat():
    P, draws, costs, _ = problem(n=4000, S=400)
    draws = draws.astype(np.float32)
    tracemalloc.start()
    decide_with_draws(P, draws, costs[0], weights=np.ones((400, 4000), np.float32))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4000 * 400 * 3 * 8  # less than one copy of the draws in double precision


# ── Thresholds ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def binary():
    rng = np.random.default_rng(3)
    p = rng.beta(0.8, 1.2, size=400).round(2)  # ties, and values at 0 and 1
    return np.column_stack([1 - p, p]), (rng.random(400) < p).astype(int)


COSTS = np.array([[-1.0, 7.0], [2.0, 0.5]])


def test_every_threshold_by_brute_force(binary):
    P, y = binary
    curve = threshold_curve(P, y, COSTS)
    assert curve.thresholds[0] == -np.inf
    for j, t in enumerate(curve.thresholds):
        action = (P[:, 1] > t).astype(int)
        assert curve.cost[j] == pytest.approx(COSTS[action, y].mean(), rel=1e-12)
        assert curve.expected_cost[j] == pytest.approx((COSTS[action] * P).sum() / len(P), rel=1e-12)
        (tn, fp), (fn, tp) = confusion_matrix(y, action)
        assert curve.fpr[j] == pytest.approx(fp / (fp + tn))
        assert curve.tpr[j] == pytest.approx(tp / (fn + tp))
    grid = np.linspace(-0.005, 1.005, 1011)
    brute = [COSTS[(P[:, 1] > t).astype(int), y].mean() for t in grid]
    np.testing.assert_allclose(curve.cost[curve.at(grid)], brute, rtol=1e-12)
    assert curve.cost[curve.at(curve.best_threshold)] == pytest.approx(min(brute))
    # Their own expectation is least at the optimal threshold.
    assert curve.expected_cost[curve.at(curve.optimal_threshold)] == pytest.approx(curve.expected_cost.min())


def test_the_roc_curve_is_scikit_learns(binary):
    P, y = binary
    curve = threshold_curve(P, y, COSTS)
    fpr, tpr, _ = roc_curve(y, P[:, 1], drop_intermediate=False)
    np.testing.assert_allclose(curve.fpr[::-1], fpr)
    np.testing.assert_allclose(curve.tpr[::-1], tpr)


def test_the_optimal_threshold_is_where_decisions_turn(binary):
    t = optimal_threshold(COSTS)
    assert t == 3 / (3 + 6.5)
    for p, action in [(t - 1e-9, 0), (t + 1e-9, 1)]:
        assert decide([[1 - p, p]], COSTS).action[0] == action
    P, _ = binary
    np.testing.assert_array_equal(decide(P, COSTS).action, P[:, 1] > t)
    assert optimal_threshold([[0, 1], [1, 0]]) == 0.5
    assert decide([[0.5, 0.5]], [[0, 1], [1, 0]]).action[0] == 0


def test_of_equally_cheap_thresholds_the_nearest_to_the_optimal():
    p = np.array([0.05, 0.1, 0.2, 0.3, 0.6, 0.9])
    y = [0, 0, 1, 0, 1, 1]
    costs = [[0, 1], [1, 0]]
    curve = threshold_curve(np.column_stack([1 - p, p]), y, costs)
    # Cutting at .1 or at .3 makes one error each.
    assert np.isclose(curve.cost, 1 / 6).sum() == 2
    assert curve.best_threshold == 0.3


def test_cost_curve_by_brute_force(binary):
    P, y = binary
    curve = threshold_curve(P, y, COSTS)
    result = cost_curve(curve, points=21)
    for q, cost, own in zip(result.probability_cost, result.cost, result.own_cost, strict=True):
        lines = [q * np.mean(P[y == 1, 1] <= t) + (1 - q) * np.mean(P[y == 0, 1] > t) for t in np.append(-1, P[:, 1])]
        assert cost == pytest.approx(min(lines), abs=1e-12)
        assert cost <= own + 1e-12
        assert cost <= min(q, 1 - q) + 1e-12
    # Where costs and shares are those of the data, normalised cost is the cost above that of no errors, rescaled.
    pi, fp, fn = y.mean(), 3.0, 6.5
    scale = pi * fn + (1 - pi) * fp
    q = pi * fn / scale
    fine = cost_curve(curve, points=100_001)
    at = np.abs(fine.probability_cost - q).argmin()
    floor = (1 - pi) * COSTS[0, 0] + pi * COSTS[1, 1]
    assert fine.cost[at] * scale + floor == pytest.approx(curve.cost.min(), abs=1e-3)
    own = curve.cost[curve.at(curve.optimal_threshold)]
    assert fine.own_cost[at] * scale + floor == pytest.approx(own, abs=1e-3)


def test_net_benefit_counts_true_and_false_positives(binary):
    P, y = binary
    curve = threshold_curve(P, y, COSTS)
    t = np.array([0.0, 0.1, 0.25, 0.5, 0.9])
    model, treat_all = net_benefit(curve, t)
    for j, x in enumerate(t):
        act = P[:, 1] > x
        odds = x / (1 - x)
        assert model[j] == pytest.approx((act & (y == 1)).mean() - (act & (y == 0)).mean() * odds)
        assert treat_all[j] == pytest.approx(y.mean() - (1 - y.mean()) * odds)


# ── Borders ─────────────────────────────────────────────────────────────────────────────────────────────────────────

P2 = [[0.3, 0.7], [0.6, 0.4]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: decide(P2, [[0, 1, 2], [1, 0, 2]]), r"`costs` must be \(A, 2\) or \(2, A, 2\).*got shape \(2, 3\)"),
        (lambda: decide(P2, [[0, 1]]), r"A ≥ 2"),
        (lambda: decide(P2, np.zeros((3, 2, 2))), r"got shape \(3, 2, 2\)"),
        (lambda: decide(P2, [0, 1]), r"got shape \(2,\)"),
        (lambda: decide(P2, [[0, np.inf], [1, 0]]), "`costs` must be finite; got inf"),
        (lambda: decide(P2, SPAM, reject_cost=[1, 2, 3]), r"`reject_cost` must be a number, or one for each of 2 rows"),
        (lambda: decide(P2, SPAM, reject_cost=np.nan), "`reject_cost` must be finite"),
        (lambda: decide(P2, SPAM, action_names=["a"]), "`action_names` must name the 2 rows of `costs`; got 1"),
        (lambda: decide(P2, SPAM, action_names=["a", "a"]), "must differ"),
        (lambda: decide(P2, SPAM, action_names=["a", "reject"], reject_cost=1), "must differ, also from 'reject'"),
        (lambda: decide([[1.5, 0.0]], SPAM), r"between 0 and 1; got 1\.5"),
        (lambda: decide([0.3, 0.7], SPAM), r"`probabilities` must be \(n, K\).*got shape \(2,\)"),
        (lambda: decide([[0.3, 0.6]], SPAM), "sums to 0.9. Normalise"),
        (lambda: decide([[1.3, -0.3]], SPAM), "between 0 and 1; got 1.3"),
        (lambda: decide([[np.nan, 1]], SPAM), "between 0 and 1; got nan"),
        (lambda: decide_with_draws(P2, [P2[:1]], SPAM), r"`draws` must be \(S, 2, 2\).*got shape \(1, 1, 2\)"),
        (lambda: decide_with_draws(P2, [[[0.3, 0.7], [0.6, 0.6]]], SPAM), "`draws` must sum to one.*1.2"),
        (lambda: decide_with_draws(P2, [P2], SPAM, weights=[1, 2]), r"`weights` must be \(1,\) or \(1, 2\)"),
        (lambda: decide_with_draws(P2, [P2], SPAM, weights=[-1]), "`weights` must be finite, ≥ 0"),
        (lambda: decide_with_draws(P2, [P2], SPAM, weights=[[0, 1]]), "not all zero for a row"),
        (lambda: optimal_threshold(np.eye(3)), r"`costs` must be \(2, 2\)"),
        (lambda: optimal_threshold([[1, 0], [0, 1]]), "both errors cost more.*-1 and -1 more"),
        (lambda: threshold_curve([[0.2, 0.3, 0.5]], [0], SPAM[::-1]), "both errors cost more"),
        (lambda: threshold_curve([[0.2, 0.3, 0.5]], [0], SPAM), "must have two columns for a threshold; got 3"),
        (lambda: threshold_curve(P2, [1, 1], SPAM), "`y` must hold a 0 or 1 for each of the 2 rows, and both"),
        (lambda: threshold_curve(P2, [0, 1, 1], SPAM), r"got shape \(3,\)"),
        (lambda: cost_curve(threshold_curve(P2, [0, 1], SPAM), points=1), "`points` must be at least 2; got 1"),
        (lambda: net_benefit(threshold_curve(P2, [0, 1], SPAM), [0.5, 1.0]), r"lie in \[0, 1\)"),
    ],
)
def test_wrong_arguments_are_named(call, message):
    with pytest.raises(DataError, match=message):
        call()
