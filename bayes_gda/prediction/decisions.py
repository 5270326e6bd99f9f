"""Decisions that cost the least on average, under costs that are given when they are made.

Costs are written as the textbooks write L(ŷ, y): one row for each action, one column for each true class.

    costs[a, k] = loss of action a if the class is k
    E L(a | x) = Σ_k costs[a, k] p(y=k | x),   decide argmin_a E L(a | x)

Classes (spam, not spam) with costs [[0, 10], [1, 0]] and P(spam) = .6: calling it spam costs 10 · .4 = 4 on average,
calling it not spam 1 · .6 = .6, so we let it through, though it is more likely spam. Actions need not be classes, and a
benefit is a negative cost.

With draws of the probabilities we can also say how firm a decision is, and what it would be worth to know better. For
two classes, curves show what every threshold costs on rows whose classes are known; class 1 is the one to be found.

References
----------
Raiffa & Schlaifer (1961), Applied Statistical Decision Theory: the expected value of perfect information.
Chow (1970), On optimum recognition error and reject tradeoff, IEEE Trans. Information Theory 16.
Elkan (2001), The foundations of cost-sensitive learning, IJCAI 17.
Drummond & Holte (2006), Cost curves, Machine Learning 65.
Vickers & Elkin (2006), Decision curve analysis, Medical Decision Making 26.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats, finite, numbers, rectangle, whole
from bayes_gda.errors import DataError
from bayes_gda.linalg import for_blocks

Codes = NDArray[np.intp]

# How far a row's sum may be from one: float32 probabilities of a few hundred classes are within it.
SUM_TOLERANCE = 1e-6
# An average of probabilities may leave [0, 1] by a few ulps; more than this is a mistake.
ROUNDING = 1e-12
# Ulps that a probability may be off, beside those of the sum over classes: enough for a softmax.
ULPS = 8
# Sums over the rows of a table stay far from overflow.
LARGEST_COST = 1e150
REJECT = "reject"


# ── Any number of actions ───────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Decisions:
    """The best action for each of n rows, out of A; to reject, if that was offered, is the last of them.

    Parameters
    ----------
    action
        (n,) index of the action of least expected loss; of equal ones the first.
    names
        The A names of the actions.
    expected_loss
        (n, A) what each action would cost on average.
    loss
        (n,) the same for the chosen action.
    rejected
        (n,) whether the row is handed on, undecided.
    probability_optimal
        (n, A) posterior probability that an action is the best one; None without draws.
    value_of_information
        (n,) by how much the expected loss would fall if the parameters were known exactly, which is the most that
        further training data can be worth for the row; None without draws.
    """

    action: Codes
    names: tuple[str, ...]
    expected_loss: Floats
    loss: Floats
    rejected: NDArray[np.bool_]
    probability_optimal: Floats | None = None
    value_of_information: Floats | None = None

    @property
    def chosen(self) -> NDArray[np.str_]:
        """Names (n,) of the chosen actions."""
        return np.asarray(self.names)[self.action]


def decide(
    probabilities: ArrayLike,
    costs: ArrayLike,
    *,
    reject_cost: ArrayLike | None = None,
    action_names: Sequence[Any] | None = None,
) -> Decisions:
    """Choose the action of least expected loss for every row: argmin_a Σ_k costs[a, k] p_k.

    Parameters
    ----------
    probabilities
        (n, K) class probabilities.
    costs
        (A, K) loss of each action under each class, A ≥ 2, or (n, A, K) for costs that differ between rows.
    reject_cost
        A number or (n,): what it costs not to decide, whatever the class. A row is rejected if every action costs more
        on average. None offers no such way out.
    action_names
        A different names, as the class names where actions are classes; None counts 0…A−1.
    """
    P = _check_probabilities("probabilities", probabilities, 2)
    return _decide(P, _check_problem(costs, P.shape, reject_cost, action_names))


def decide_with_draws(
    probabilities: ArrayLike,
    draws: ArrayLike,
    costs: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    reject_cost: ArrayLike | None = None,
    action_names: Sequence[Any] | None = None,
) -> Decisions:
    """Choose as `decide` does, and say from draws of the probabilities how firm the choice is.

        probability_optimal[a] = Σ_s w_s [a is best under p_s]
        value_of_information   = Σ_s w_s (L(chosen | p_s) − min_a L(a | p_s)) ≥ 0

    The decision follows from `probabilities` alone, which should be Σ_s w_s p_s. If they come from a better source
    than the draws, the second line is still the regret of the chosen action, and not negative.

    Parameters
    ----------
    probabilities, costs, reject_cost, action_names
        As in `decide`.
    draws
        (S, n, K) class probabilities p(y=k | x, θ_s) under each of S draws of the parameters.
    weights
        (S,) weights of the draws, or (S, n) weights that differ between rows; scaled here to sum to one. For a
        generative model they must: x itself says something about θ, so that p(y | x, data) = Σ_s w_s p(y | x, θ_s) with
        w_s ∝ p(x | θ_s). `generative_draws` makes draws and weights. None weighs all alike, as a
        regression needs under the class shares that it was trained with.
    """
    P = _check_probabilities("probabilities", probabilities, 2)
    problem = _check_problem(costs, P.shape, reject_cost, action_names)
    made = _decide(P, problem)
    draws, (n, K), A = rectangle("draws", draws), P.shape, len(made.names)
    if draws.ndim != 3 or draws.shape[1:] != (n, K) or len(draws) == 0:
        raise DataError(f"`draws` must be (S, {n}, {K}), the draws first; got shape {draws.shape}.")
    S = len(draws)
    w = np.ones(S) if weights is None else numbers("weights", weights)
    if w.shape not in ((S,), (S, n)):
        raise DataError(f"`weights` must be ({S},) or ({S}, {n}), as the draws; got shape {w.shape}.")
    optimal, value = np.empty((n, A)), np.empty(n)

    def weigh(rows: slice) -> None:
        p = _check_probabilities("draws", draws[:, rows], 3).swapaxes(0, 1)
        loss = problem.losses(rows, p)
        best = problem.best(rows, p, loss)
        share = _shares(w[:, rows] if w.ndim == 2 else w[:, None])
        for a in range(A):
            optimal[rows, a] = np.minimum((share * (best == a)).sum(axis=1), 1.0)  # a sum of shares may round above 1
        taken = np.take_along_axis(loss, made.action[rows, None, None], axis=2)[..., 0]
        value[rows] = (share * (taken - loss.min(axis=2))).sum(axis=1)

    for_blocks(weigh, n, S * max(K, A))
    return Decisions(made.action, made.names, made.expected_loss, made.loss, made.rejected, optimal, value)


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Costs ([n,] A, K), the cost of rejecting (n,) if that is offered, and the names of all actions."""

    costs: Floats
    reject: Floats | None
    names: tuple[str, ...]

    def losses(self, rows: slice, p: Floats, *, absolute: bool = False) -> Floats:
        """Expected losses (rows, S, A) under p (rows, S, K); `absolute` takes the costs without their sign."""
        C = self.costs[rows] if self.costs.ndim == 3 else self.costs
        loss = p @ np.swapaxes(np.abs(C) if absolute else C, -1, -2)
        if self.reject is None:
            return np.asarray(loss)
        constant = np.abs(self.reject[rows]) if absolute else self.reject[rows]
        return np.concatenate([loss, np.broadcast_to(constant[:, None, None], (*p.shape[:2], 1))], axis=2)

    def best(self, rows: slice, p: Floats, loss: Floats) -> Codes:
        """First action (rows, S) whose loss is least up to rounding."""
        # Rounding is in proportion to Σ|c|p. Without it, ties would go to whichever action the order of a sum favours.
        slack = (p.shape[2] + ULPS) * np.finfo(float).eps * self.losses(rows, p, absolute=True)
        least = (loss + slack).min(axis=2, keepdims=True)
        return np.asarray((loss - slack <= least).argmax(axis=2))


def _decide(P: Floats, problem: _Problem) -> Decisions:
    n, A = len(P), len(problem.names)
    expected, action = np.empty((n, A)), np.empty(n, dtype=np.intp)

    def choose(rows: slice) -> None:
        p = P[rows, None]
        loss = problem.losses(rows, p)
        expected[rows], action[rows] = loss[:, 0], problem.best(rows, p, loss)[:, 0]

    for_blocks(choose, n, A * P.shape[1])
    rejected = action == (A - 1 if problem.reject is not None else A)
    return Decisions(action, problem.names, expected, expected[np.arange(n), action], rejected)


def _check_problem(
    costs: ArrayLike, shape: tuple[int, ...], reject_cost: ArrayLike | None, action_names: Sequence[Any] | None
) -> _Problem:
    n, K = shape
    C = finite("costs", costs, largest=LARGEST_COST, error=DataError)
    if C.ndim not in (2, 3) or C.shape[-1] != K or C.shape[-2] < 2 or (C.ndim == 3 and len(C) != n):
        raise DataError(f"`costs` must be (A, {K}) or ({n}, A, {K}), actions (A ≥ 2) by classes; got shape {C.shape}.")
    A = C.shape[-2]
    names = [str(name) for name in (range(A) if action_names is None else action_names)]
    if len(names) != A:
        raise DataError(f"`action_names` must name the {A} rows of `costs`; got {len(names)} names.")
    reject = None
    if reject_cost is not None:
        reject = finite("reject_cost", reject_cost, largest=LARGEST_COST, error=DataError)
        if reject.shape not in ((), (n,)):
            raise DataError(f"`reject_cost` must be a number, or one for each of {n} rows; got shape {reject.shape}.")
        reject = np.broadcast_to(reject, (n,))
        names.append(REJECT)
    if len(set(names)) < len(names):
        raise DataError(f"`action_names` must differ, also from '{REJECT}' if that is offered; got {names}.")
    return _Problem(C, reject, tuple(names))


def _check_probabilities(name: str, value: ArrayLike, ndim: int) -> Floats:
    """Return probabilities (…, K) with `ndim` axes whose last one sums to one."""
    P = numbers(name, value)
    if P.ndim != ndim or P.size == 0 or P.shape[-1] < 2:
        raise DataError(f"`{name}` must be (n, K), n ≥ 1, K ≥ 2; got shape {P.shape}. Stack [1 − p, p] for one class.")
    # Written so that a nan fails.
    if not (P.min() >= -ROUNDING and P.max() <= 1 + ROUNDING):
        bad = P[~((P >= -ROUNDING) & (P <= 1 + ROUNDING))].flat[0]
        raise DataError(f"`{name}` must hold probabilities between 0 and 1; got {bad:.6g}.")
    total = P.sum(axis=-1)
    worst = total.flat[np.abs(total - 1).argmax()]
    if abs(worst - 1) > SUM_TOLERANCE:
        raise DataError(f"`{name}` must sum to one over the classes; a row sums to {worst:.6g}. Normalise the rows.")
    return np.clip(P, 0.0, 1.0)


def _shares(weights: Floats) -> Floats:
    """Return weights (S, rows) as shares of each row (rows, S)."""
    with np.errstate(over="ignore"):
        w, total = weights.T, weights.sum(axis=0)
    if not ((w >= 0).all() and (total > 0).all() and np.isfinite(total).all()):
        raise DataError("`weights` must be finite, ≥ 0 and not all zero for a row. Use softmax(log_weights, axis=0).")
    return np.asarray(w / total[:, None])


# ── Two classes: thresholds ─────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class ThresholdCurve:
    """What it costs to decide for class 1 wherever p₁ > t, for every t that makes a difference.

    Parameters
    ----------
    thresholds
        (m,) increasing; the first is −inf, which decides for class 1 everywhere. Between two of them nothing changes.
    cost
        (m,) mean cost of a row, with the true classes.
    expected_cost
        (m,) what the probabilities themselves expect; far from `cost`, they are not calibrated.
    fpr, tpr
        (m,) share of class 0, and of class 1, that is decided for class 1: the ROC curve.
    prevalence
        Share of class 1 in the rows.
    optimal_threshold
        Where calibrated probabilities are best cut, from the costs alone.
    best_threshold
        Where these rows are best cut; of equally cheap ones the nearest to the optimal. Since it is chosen on the
        rows that judge it, its cost is optimistic.
    """

    thresholds: Floats
    cost: Floats
    expected_cost: Floats
    fpr: Floats
    tpr: Floats
    prevalence: float
    optimal_threshold: float
    best_threshold: float

    def at(self, threshold: ArrayLike) -> Codes:
        """Return the index into the curve of any thresholds: `curve.cost[curve.at(0.3)]`."""
        return np.asarray(np.searchsorted(self.thresholds, numbers("threshold", threshold), side="right") - 1)


def optimal_threshold(costs: ArrayLike) -> float:
    """Return c_FP/(c_FP + c_FN): above this probability of class 1, deciding for it costs less.

    With costs[a, k], a false positive costs c_FP = costs[1, 0] − costs[0, 0] more than the right decision, and a
    false negative c_FN = costs[0, 1] − costs[1, 1].
    """
    C = finite("costs", costs, largest=LARGEST_COST, error=DataError)
    if C.shape != (2, 2):
        raise DataError(f"`costs` must be (2, 2), actions by classes; got shape {C.shape}. Use `decide` for more.")
    false_positive, false_negative = C[1, 0] - C[0, 0], C[0, 1] - C[1, 1]
    if not (false_positive > 0 and false_negative > 0):
        raise DataError(
            f"`costs` must make both errors cost more than the right decision; they cost {false_positive:g} and "
            f"{false_negative:g} more. Check that rows are actions and columns true classes."
        )
    return float(false_positive / (false_positive + false_negative))


def threshold_curve(probabilities: ArrayLike, y: ArrayLike, costs: ArrayLike) -> ThresholdCurve:
    """Return the cost of every threshold on rows whose classes are known.

    Parameters
    ----------
    probabilities, y
        (n, 2) class probabilities and (n,) true classes, 0 or 1; both must occur.
    costs
        (2, 2) loss of each decision under each class.
    """
    optimal, C = optimal_threshold(costs), np.asarray(costs, dtype=np.float64)
    P, codes = _check_probabilities("probabilities", probabilities, 2), rectangle("y", y)
    n, K = P.shape
    if K != 2:
        raise DataError(f"`probabilities` must have two columns for a threshold; got {K}. Use `decide` for more.")
    if codes.shape != (n,) or set(np.unique(codes).tolist()) != {0, 1}:
        raise DataError(f"`y` must hold a 0 or 1 for each of the {n} rows, and both; got shape {codes.shape}.")
    thresholds, cell = np.unique(P[:, 1], return_inverse=True)

    def above(value: Any) -> Floats:
        """Σ value over the rows with p₁ > t, for each t."""
        sums = np.bincount(cell, weights=value, minlength=len(thresholds))
        return np.append(sums[::-1].cumsum()[::-1], 0.0)

    positive = codes.astype(np.float64)
    n1, fp, tp = positive.sum(), above(1 - positive), above(positive)
    # Each row decided for class 1 changes the cost of calling all rows 0 by what that decision costs more.
    change = C[1] - C[0]
    cost = (C[0, 0] * (n - n1) + C[0, 1] * n1 + change[0] * fp + change[1] * tp) / n
    expected = ((P @ C[0]).sum() + above(P @ change)) / n
    thresholds = np.append(-np.inf, thresholds)
    cheapest = thresholds[np.isclose(cost, cost.min(), rtol=0, atol=ROUNDING * np.abs(C).max())]
    best = float(cheapest[np.abs(cheapest - optimal).argmin()])
    return ThresholdCurve(thresholds, cost, expected, fp / (n - n1), tp / n1, float(n1 / n), optimal, best)


@dataclass(frozen=True, slots=True, eq=False)
class CostCurve:
    """Normalised cost as costs or class shares change (Drummond & Holte); min(q, 1 − q) is that of a constant decision.

    Parameters
    ----------
    probability_cost
        (g,) q = π₁c_FN/(π₁c_FN + π₀c_FP), from 0 to 1: the part that class 1 has in what errors can cost.
    cost
        (g,) q(1 − tpr) + (1 − q)fpr at the best threshold for each q.
    own_cost
        (g,) the same where the probabilities choose the threshold themselves, by c_FP/(c_FP + c_FN), with π as in these
        rows; its distance from `cost` is what miscalibration costs.
    """

    probability_cost: Floats
    cost: Floats
    own_cost: Floats


def cost_curve(curve: ThresholdCurve, *, points: int = 101) -> CostCurve:
    """Return the cost curve at `points` places, evenly spread."""
    q = np.linspace(0.0, 1.0, whole("points", points, 2))
    best = np.array([(x * (1 - curve.tpr) + (1 - x) * curve.fpr).min() for x in q])
    # π₁c_FN : π₀c_FP = q : 1−q, so c_FP/(c_FP + c_FN) = π₁(1−q)/(π₁(1−q) + π₀q)
    pi = curve.prevalence
    own = curve.at(pi * (1 - q) / (pi * (1 - q) + (1 - pi) * q))
    return CostCurve(q, best, q * (1 - curve.tpr[own]) + (1 - q) * curve.fpr[own])


def net_benefit(curve: ThresholdCurve, thresholds: ArrayLike) -> tuple[Floats, Floats]:
    """Return the net benefit π₁ tpr − π₀ fpr t/(1−t) of acting where p₁ > t, and of acting on all rows, at each t.

    It is in units of one true positive, with c_FP : c_FN = t : 1−t. Acting on none has 0 (Vickers & Elkin).
    """
    t = finite("thresholds", thresholds, error=DataError)
    if not ((t >= 0) & (t < 1)).all():
        raise DataError(f"`thresholds` must lie in [0, 1); got values from {t.min():g} to {t.max():g}.")
    pi, odds, at = curve.prevalence, t / (1 - t), curve.at(t)
    return pi * curve.tpr[at] - (1 - pi) * curve.fpr[at] * odds, pi - (1 - pi) * odds
