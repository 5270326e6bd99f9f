"""How well the classes of unseen rows are told apart: confusion, recall, precision, ROC and precision-recall curves.

    recall_k = P(decided k | true k)      precision_k = P(true k | decided k)
    AUC_k = P(p_k of a row of class k exceeds p_k of another row), ties counting one half

Recall and precision are shares of rows, with Jeffreys intervals. The AUC has the score interval of Newcombe (2006),

    V(θ) = θ(1 − θ) [1 + (N − 1) ((1 − θ)/(2 − θ) + θ/(1 + θ))] / (n₊n₋),    N = (n₊ + n₋)/2

which holds the θ with |θ̂ − θ| ≤ z √V(θ): it stays wide where all rows are ordered rightly. Average precision has the
Jeffreys interval of a share of n₊ rows (Boyd, Eng & Page 2013 recommend such an interval).

Measured, coverage of 90 % intervals, binormal scores, 2000 data sets each:

    n₊, n₋                              10, 90    20, 20    50, 50    5, 200
    AUC, of .76                           .91       .90       .90       .92
    AUC, of .98                           .96       .96       .97       .96
    average precision, the same AUC .76   .92       .94       .94       .89
    average precision, the same AUC .98   .98       .99      1.00       .98

References
----------
Brown, Cai & DasGupta (2001), Interval estimation for a binomial proportion, Statistical Science 16.
Newcombe (2006), Confidence intervals for an effect size measure based on the Mann-Whitney statistic, Part 2, Statistics
in Medicine 25.
Boyd, Eng & Page (2013), Area under the precision-recall curve: point estimates and confidence intervals, ECML PKDD.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from bayes_gda.checks import Floats, inside_unit
from bayes_gda.errors import DataError
from bayes_gda.evaluation.reliability import check_forecasts, one_class

if TYPE_CHECKING:
    import pandas as pd

# Bisections of an interval's end: 2⁻⁴⁰ = 1e-12.
BISECTIONS = 40


def confusion_matrix(y: ArrayLike, decided: ArrayLike, K: int) -> NDArray[np.intp]:
    """Return how many rows of each true class (rows of the matrix) were taken for each class (columns), (K, K)."""
    true, taken = np.asarray(y, dtype=np.intp), np.asarray(decided, dtype=np.intp)
    if true.shape != taken.shape or true.ndim != 1:
        raise DataError(f"`y` and `decided` must be (n,), of the same n; got shapes {true.shape} and {taken.shape}.")
    if len(true) and (min(true.min(), taken.min()) < 0 or max(true.max(), taken.max()) >= K):
        raise DataError(f"`y` and `decided` must hold class codes in 0…{K - 1}.")
    return np.bincount(true * K + taken, minlength=K * K).reshape(K, K)


def share_interval(hits: ArrayLike, trials: ArrayLike, *, prob: float = 0.9) -> Floats:
    """Return the Jeffreys interval (…, 2) of a share: quantiles of Beta(hits + ½, misses + ½).

    It starts at 0 where there is no hit, and ends at 1 where there is no miss; of no trials it is (0, 1). `hits` need
    not be whole.
    """
    prob = inside_unit("prob", prob)
    hits, trials = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(trials, dtype=np.float64))
    if (hits < 0).any() or (hits > trials).any():
        raise DataError("`hits` must lie between 0 and `trials`.")
    a, b = hits + 0.5, trials - hits + 0.5
    low = np.where(hits > 0, betaincinv(a, b, (1 - prob) / 2), 0.0)
    high = np.where(hits < trials, betaincinv(a, b, (1 + prob) / 2), 1.0)
    return np.stack([low, high], axis=-1)


# ── Curves of an event ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """ROC and precision-recall curve of an event, one point for each threshold: decide for it where p ≥ threshold.

    Parameters
    ----------
    threshold
        (t,) decreasing; the first is inf, where nothing is decided for the event.
    recall
        (t,) share of the events that are found: the true positive rate.
    fall_out
        (t,) share of the other rows that are taken for events: the false positive rate.
    precision
        (t,) share of events among the rows taken for it; at the first threshold, where there are none, that of the
        second.
    auc, auc_interval
        Area under the ROC curve, and its interval.
    average_precision, average_precision_interval
        Σ (recall_t − recall_{t−1}) precision_t, and its interval.
    events, others
        Rows where the event happened, and where not.
    prob
        Confidence level of the intervals.
    """

    threshold: Floats
    recall: Floats
    fall_out: Floats
    precision: Floats
    auc: float
    auc_interval: tuple[float, float]
    average_precision: float
    average_precision_interval: tuple[float, float]
    events: int
    others: int
    prob: float


def curves(p: ArrayLike, z: ArrayLike, *, prob: float = 0.9) -> Curves | None:
    """Return the curves of forecasts p (n,) of an event with outcomes z (n,) of 0 and 1; None if all z are equal.

    `curves(*one_class(P, y, k))` are those of class k.
    """
    forecasts, outcomes = np.asarray(p, dtype=np.float64), np.asarray(z, dtype=np.float64)
    if forecasts.ndim != 1 or forecasts.shape != outcomes.shape:
        raise DataError(f"`p` and `z` must be (n,), of the same n; got {forecasts.shape} and {outcomes.shape}.")
    inside_unit("prob", prob)
    events = int(outcomes.sum())
    others = len(outcomes) - events
    if not (events and others):
        return None
    order = np.argsort(-forecasts, kind="stable")
    ordered = forecasts[order]
    last = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of the rows that share a forecast
    hits = np.append(0.0, np.cumsum(outcomes[order])[last])
    wrong = np.append(0.0, last + 1.0) - hits
    recall, fall_out = hits / events, wrong / others
    precision = hits[1:] / (hits[1:] + wrong[1:])
    auc = float(np.trapezoid(recall, fall_out))
    average = float(np.diff(recall) @ precision)
    low, high = share_interval(average * events, events, prob=prob)
    return Curves(
        np.append(np.inf, ordered[last]),
        recall,
        fall_out,
        np.append(precision[0], precision),
        auc,
        auc_interval(auc, events, others, prob=prob),
        average,
        (float(low), float(high)),
        events,
        others,
        prob,
    )


def auc_interval(auc: float, events: int, others: int, *, prob: float = 0.9) -> tuple[float, float]:
    """Return the score interval of an area under the ROC curve: all θ with |auc − θ| ≤ z √V(θ)."""
    z = ndtri((1 + inside_unit("prob", prob)) / 2)
    N = (events + others) / 2

    def outside(theta: float) -> bool:
        spread = 1 + (N - 1) * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        return (auc - theta) ** 2 > z**2 * theta * (1 - theta) * spread / (events * others)

    return _end(auc, 0.0, outside), _end(auc, 1.0, outside)


def _end(inner: float, outer: float, outside: Callable[[float], bool]) -> float:
    """Return where the interval that holds `inner` ends on the way to `outer`, by bisection."""
    if not outside(outer):
        return outer
    for _ in range(BISECTIONS):
        middle = (inner + outer) / 2
        inner, outer = (inner, middle) if outside(middle) else (middle, outer)
    return (inner + outer) / 2


# ── All classes ─────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Performance:
    """How well the classes are told apart.

    Parameters
    ----------
    confusion
        (K, K) rows by true class and most probable class.
    table
        One line per class: `rows`, `decided`, `recall`, `precision`, `f1`, `auc`, `average_precision`, each share with
        `_lower` and `_upper`; nan where there are no rows to speak of.
    curves
        ROC and precision-recall curves of each class that has rows and is not alone.
    accuracy, balanced_accuracy
        Share of rows whose most probable class is the true one; mean of the recalls of the classes that have rows.
    accuracy_interval
        Jeffreys interval of the accuracy.
    prob
        Confidence level of all intervals, each on its own.
    """

    confusion: NDArray[np.intp]
    table: "pd.DataFrame"
    curves: dict[str, Curves]
    accuracy: float
    accuracy_interval: tuple[float, float]
    balanced_accuracy: float
    prob: float


def performance(
    P: ArrayLike, y: ArrayLike, *, class_names: Sequence[str] | None = None, prob: float = 0.9
) -> Performance:
    """Judge probabilities P (n, K) of rows with class codes y (n,).

    Parameters
    ----------
    P, y
        (n, K) predicted probabilities, and (n,) class codes.
    class_names
        (K,) names; the codes by default.
    prob
        Confidence level of the intervals.
    """
    import pandas as pd

    P, y = check_forecasts(P, y)
    K = P.shape[1]
    names = [str(k) for k in range(K)] if class_names is None else [str(name) for name in class_names]
    matrix = confusion_matrix(y, P.argmax(axis=1), K)
    rows, decided, hits = matrix.sum(axis=1), matrix.sum(axis=0), np.diag(matrix)
    with np.errstate(invalid="ignore"):
        recall, precision = hits / rows, hits / decided
        f1 = 2 * hits / (rows + decided)
    columns: dict[str, NDArray[Any]] = {"rows": rows, "decided": decided}
    for name, value, trials in (("recall", recall, rows), ("precision", precision, decided)):
        limits = np.where((trials > 0)[:, None], share_interval(hits, trials, prob=prob), np.nan)
        columns |= {name: value, f"{name}_lower": limits[:, 0], f"{name}_upper": limits[:, 1]}
    by_class = [curves(*one_class(P, y, k), prob=prob) for k in range(K)]
    columns["f1"] = f1
    for name in ("auc", "average_precision"):
        values = [(np.nan,) * 3 if c is None else (getattr(c, name), *getattr(c, f"{name}_interval")) for c in by_class]
        columns |= dict(zip((name, f"{name}_lower", f"{name}_upper"), np.array(values).T, strict=True))
    low, high = share_interval(hits.sum(), len(y), prob=prob)
    return Performance(
        matrix,
        pd.DataFrame(columns, index=pd.Index(names, name="class")),
        {name: c for name, c in zip(names, by_class, strict=True) if c is not None},
        float(hits.sum() / len(y)),
        (float(low), float(high)),
        float(recall[rows > 0].mean()),
        prob,
    )
