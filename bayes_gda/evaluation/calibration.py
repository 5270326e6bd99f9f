"""Scores, sharpness and calibration of predicted class probabilities.

Scores and sharpness take probabilities `P` (n, K) and class codes `y` (n,). Calibration is defined for one event at a
time, with forecasts `p` (n,) and outcomes (n,) of 0 and 1: that a row is of class k, by `one_class(P, y, k)`, or that
the most probable class is the true one, by `top_label(P, y)`, both in `reliability`. `calibration_table` returns all of
these measures.

References
----------
Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic classifiers, PNAS 118.
Murphy (1973), A new vector partition of the probability score, J. Applied Meteorology 12.
Kumar, Liang & Ma (2019), Verified uncertainty calibration, NeurIPS 32.
"""

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, xlogy

from bayes_gda.checks import Floats, numbers, whole
from bayes_gda.errors import DataError
from bayes_gda.evaluation.cox import CoxFit, fit_cox
from bayes_gda.evaluation.reliability import (
    Codes,
    Events,
    check_forecasts,
    check_probabilities,
    one_class,
    recalibrated,
    tally,
    top_label,
)

if TYPE_CHECKING:
    import pandas as pd

# A calibration error is a mean of differences of shares: two that differ by less are equal but for rounding.
ROUNDING = 1e-12
# Guo et al. (2017), who made ECE popular, take 15 bins.
BINS = 15
# Numbers drawn at a time when labels are simulated: 8 MB.
BLOCK_ELEMENTS = 2**20
# Probability that all intervals of the calibration error in a table hold.
JOINT_PROB = 0.9
# Differences beyond this have squares, and sums of squares, that no double holds.
LARGEST = 1e150


# ── Scores ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def log_score_rows(P: ArrayLike, y: ArrayLike) -> Floats:
    """Return log P[i, y_i] (n,); −inf where the truth was held impossible."""
    P, y = check_forecasts(P, y)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(P[np.arange(len(P)), y]))


def log_score(P: ArrayLike, y: ArrayLike) -> float:
    """Return the mean log probability of the truth; the larger the better, minus scikit-learn's `log_loss`.

    One row whose truth had probability zero makes it −inf; scikit-learn clips such a row to about −36, we do not.
    `log_score_rows` shows the rows, and `calibration_table` counts them as `impossible`.
    """
    return float(log_score_rows(P, y).mean())


def brier_rows(P: ArrayLike, y: ArrayLike) -> Floats:
    """Return Σ_k (P[i, k] − [y_i = k])² (n,)."""
    P, y = check_forecasts(P, y)
    return np.asarray(((P - np.eye(P.shape[1])[y]) ** 2).sum(axis=1))


def brier_score(P: ArrayLike, y: ArrayLike) -> float:
    """Return the mean over rows of Σ_k (p_k − [y = k])², from 0, perfect, to 2.

    It is the sum over the classes of their scores (p_k − [y = k])². For two classes these are equal, and
    scikit-learn's `brier_score_loss` is one of them: half of this. For more classes the two agree.
    """
    return float(brier_rows(P, y).mean())


def paired_difference(a_rows: ArrayLike, b_rows: ArrayLike) -> tuple[float, float]:
    """Return the mean of a − b over rows (n,) that two methods share, and its standard error.

    Infinite scores on one side make mean and error infinite; on both sides, or of both signs, nan.
    """
    a, b = numbers("a_rows", a_rows), numbers("b_rows", b_rows)
    if a.ndim != 1 or a.shape != b.shape or len(a) < 2:
        raise DataError(f"`a_rows` and `b_rows` must be (n,), of the same n ≥ 2; got shapes {a.shape} and {b.shape}.")
    with np.errstate(over="ignore", invalid="ignore"):  # scores of −1e308 differ by as much as −inf does
        if not (np.isfinite(a).all() and np.isfinite(b).all()):
            mean = float(a.sum()) - float(b.sum())
            return mean, float("nan") if np.isnan(mean) else float("inf")
        d = a - b
        mean, largest = float(d.mean()), float(np.abs(d).max())
    if largest > LARGEST:
        return mean, float("inf")
    return mean, float(d.std(ddof=1) / np.sqrt(len(d)))


@dataclass(frozen=True, slots=True)
class Sharpness:
    """Scores that the forecasts expect of themselves; calibrated forecasts attain them on average.

    Parameters
    ----------
    entropy
        Mean −Σ_k p_k log p_k in nats: minus the expected log score.
    impurity
        Mean 1 − Σ_k p_k²: the expected Brier score.
    confidence
        Mean max_k p_k: the expected accuracy.
    """

    entropy: float
    impurity: float
    confidence: float


def sharpness(P: ArrayLike) -> Sharpness:
    """Return how concentrated the forecasts `P` (n, K) are."""
    P = check_probabilities(P)
    return Sharpness(
        entropy=float(entr(P).sum(axis=1).mean()),
        impurity=float((1 - (P**2).sum(axis=1)).mean()),
        confidence=float(P.max(axis=1).mean()),
    )


# ── The Brier score of an event, taken apart ────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Decomposition:
    """Score = miscalibration − discrimination + uncertainty, of the Brier score mean (p − z)² of an event.

    Parameters
    ----------
    score
        The Brier score that is taken apart.
    miscalibration
        What recalibration would gain; Murphy's reliability.
    discrimination
        What the recalibrated forecasts gain over the constant z̄; Murphy's resolution.
    uncertainty
        z̄(1 − z̄), the score of that constant.
    """

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float


def corp_decomposition(p: ArrayLike, outcome: ArrayLike) -> Decomposition:
    """Take the Brier score apart by isotonic recalibration p ↦ c, without bins.

        MCB = S(p) − S(c),   DSC = S(z̄) − S(c) = mean (c − z̄)²,   UNC = S(z̄);   MCB, DSC ≥ 0

    MCB is 0 only if the curve is the diagonal, so noise makes it positive for calibrated forecasts too, by about
    n^{−2/3}; compare it between forecasters on the same rows.
    """
    events = tally(p, outcome)
    return _decompose(events, recalibrated(events))


def binned_decomposition(p: ArrayLike, outcome: ArrayLike, *, bins: int = BINS) -> Decomposition:
    """Take the Brier score apart by equal-mass bins b (Murphy), with p̄_b and z̄_b the means of a bin.

        Σ_b (n_b/n) (p̄_b − z̄_b)² − Σ_b (n_b/n) (z̄_b − z̄)² + z̄(1 − z̄)

    This is exact for the binned forecast p̄_b, whose score is given; that of p differs by its spread within the bins.
    """
    binned = _pool_bins(tally(p, outcome), bins)
    return _decompose(binned, binned.hits / binned.count)


def _decompose(events: Events, recalibrated: Floats) -> Decomposition:
    """Return the parts of the Brier score of `events`, given recalibrated forecasts (m,)."""
    weight, rate = events.count / events.n, events.rate
    gap = events.hits / events.count - recalibrated
    # S(p) − S(c) = Σ w [(p − c)² − 2(p − c)(h − c)], h the share of hits; below zero by rounding only.
    shift = events.forecast - recalibrated
    return Decomposition(
        score=_brier(events),
        miscalibration=max(0.0, float(weight @ (shift**2 - 2 * shift * gap))),
        discrimination=float(weight @ (recalibrated - rate) ** 2),
        uncertainty=rate * (1 - rate),
    )


def _brier(events: Events) -> float:
    """Return the mean of (p − z)² over the rows of `events`."""
    p, h, c = events.forecast, events.hits, events.count
    return float((h * (1 - p) ** 2 + (c - h) * p**2).sum() / events.n)


# ── Calibration error ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class CalibrationError:
    """Distance of forecasts from the share of events in equal-mass bins, plain and with its bias removed.

    Parameters
    ----------
    ece
        Σ_b (n_b/n) |p̄_b − z̄_b|, the expected calibration error.
    ece_debiased
        Less what calibrated forecasts would show; zero on average for these, and often below zero.
    ece_p_value
        p-value of the ECE under perfect calibration, by labels drawn from the forecasts.
    squared
        Σ_b (n_b/n) (p̄_b − z̄_b)².
    squared_debiased
        Less its noise: unbiased for the squared error of the bins, and often below zero where that is small.
    """

    ece: float
    ece_debiased: float
    ece_p_value: float
    squared: float
    squared_debiased: float


def calibration_error(
    p: ArrayLike, outcome: ArrayLike, *, bins: int = BINS, resamples: int = 400, random_seed: int = 0
) -> CalibrationError:
    """Return the calibration error of forecasts `p` (n,) of an event, in equal-mass bins; ties share a bin.

    z̄_b is a mean of n_b outcomes, so a gap p̄_b − z̄_b is never zero even for calibrated forecasts, and a plain error is
    biased upwards, the more the more bins there are. What is corrected:

    - squared: (p̄_b − z̄_b)² exceeds its target by Var(p̄_b − z̄_b), estimated without bias by the variance of p − z
      within the bin over n_b. For equal forecasts in a bin that is z̄_b(1 − z̄_b)/(n_b − 1), the estimator of Kumar,
      Liang & Ma. A bin of a single row has no such variance and takes the p(1 − p) of a calibrated forecast.
    - absolute: the mean ECE over `resamples` sets of labels drawn from `p` is subtracted. That is the whole bias for
      calibrated forecasts and more than the bias for others (none where a gap is far beyond its noise), so the result
      errs to the low side: it is a test against zero first, an estimate second.

    Averaging within bins hides errors that cancel there; no correction brings these back.
    """
    events = tally(p, outcome)
    cell = _assign_bins(events, bins)
    n_b = np.bincount(cell, weights=events.count)
    weight = n_b / events.n
    gap = np.bincount(cell, weights=events.count * events.forecast - events.hits) / n_b
    ece, squared = float(weight @ np.abs(gap)), float(weight @ gap**2)
    # Σ(p − z)² over the rows of a bin, from which Σ(p − z − gap)² = Σ(p − z)² − n_b gap².
    p_, h, c = events.forecast, events.hits, events.count
    squares = np.bincount(cell, weights=h * (1 - p_) ** 2 + (c - h) * p_**2)
    calibrated = np.bincount(cell, weights=c * p_ * (1 - p_)) / n_b**2
    noise = np.where(n_b > 1, (squares - n_b * gap**2) / (n_b * np.maximum(n_b - 1, 1)), calibrated)
    drawn = _calibrated_ece(events, cell, resamples, random_seed)
    p_value = (1 + int((drawn >= ece - ROUNDING).sum())) / (1 + resamples)
    return CalibrationError(ece, ece - float(drawn.mean()), p_value, squared, squared - float(weight @ noise))


def classwise_error(
    P: ArrayLike, y: ArrayLike, *, bins: int = BINS, resamples: int = 400, random_seed: int = 0
) -> CalibrationError:
    """Return the calibration error of each class against the rest, averaged over the classes; a p-value it has none."""
    P, y = check_forecasts(P, y)
    errors = [
        calibration_error(*one_class(P, y, k), bins=bins, resamples=resamples, random_seed=random_seed)
        for k in range(P.shape[1])
    ]
    return replace(
        CalibrationError(*np.mean([astuple(error) for error in errors], axis=0).tolist()), ece_p_value=np.nan
    )


def _assign_bins(events: Events, bins: int) -> Codes:
    """Return the bin (m,) of each forecast: at most `bins`, 0, 1, … without gaps, as equally filled as ties admit.

    Edge b is the largest forecast not above the b/bins quantile, and belongs to the bin below: the bins of
    scikit-learn's `calibration_curve(strategy="quantile")`, but in whole numbers, where it may round a row away.
    """
    bins = min(whole("bins", bins, 1), int(events.n))  # with more, too, each row has its own
    rank = (events.n - 1) * np.arange(1, bins) // bins  # of the row at the edge, from 0
    edge = np.searchsorted(events.count.cumsum(), rank, side="right")
    cell = np.searchsorted(edge, np.arange(len(events.forecast)), side="left")
    return np.asarray(np.unique(cell, return_inverse=True)[1])


def _pool_bins(events: Events, bins: int) -> Events:
    """Return one event per bin, with the mean forecast, the rows and the hits of the bin."""
    cell = _assign_bins(events, bins)
    count = np.bincount(cell, weights=events.count)
    forecast = np.bincount(cell, weights=events.count * events.forecast) / count
    return Events(forecast, count, np.bincount(cell, weights=events.hits))


def _calibrated_ece(events: Events, cell: Codes, resamples: int, random_seed: int) -> Floats:
    """Return the ECE (resamples,) of sets of labels drawn from the forecasts: what calibrated forecasts show."""
    resamples = whole("resamples", resamples, 1)
    rows = events.count.astype(np.intp)
    p = np.repeat(events.forecast, rows)
    starts = np.searchsorted(np.repeat(cell, rows), np.arange(cell[-1] + 1))
    target = np.add.reduceat(p, starts)
    rng = np.random.default_rng(random_seed)
    out, step = np.empty(resamples), max(1, BLOCK_ELEMENTS // len(p))
    for i in range(0, resamples, step):
        labels = rng.random((min(step, resamples - i), len(p))) < p
        # Σ_b (n_b/n) |p̄_b − z̄_b| = Σ_b |Σ p − Σ z| / n
        gaps = np.add.reduceat(labels, starts, axis=1, dtype=np.float64) - target
        out[i : i + step] = np.abs(gaps).sum(axis=1) / len(p)
    return out


# ── Intervals and the table ─────────────────────────────────────────────────────────────────────────────────────────


def interval_coverage(lower: ArrayLike, upper: ArrayLike, truth: ArrayLike) -> tuple[float, float]:
    """Return the share of intervals that hold the truth, and its standard error.

    The first axis counts independent simulations (S, …). Intervals of one simulation share its data, so the error is
    that of a mean of S shares. It is 0 if all cover; up to 3/S of the simulations may then still miss, at 95 %.
    """
    low, high, true = (numbers(name, a) for name, a in (("lower", lower), ("upper", upper), ("truth", truth)))
    if not low.shape == high.shape == true.shape or low.ndim == 0 or len(low) < 2 or low.size == 0:
        raise DataError(
            "`lower`, `upper` and `truth` must have one shape, with at least 2 simulations along the first axis; "
            f"got {low.shape}, {high.shape} and {true.shape}. Use np.broadcast_to for a truth that all share."
        )
    if not (low <= high).all() or np.isnan(true).any():
        raise DataError("`lower` must not exceed `upper`, and none may be nan.")
    share = ((low <= true) & (true <= high)).reshape(len(low), -1).mean(axis=1)
    return float(share.mean()), float(share.std(ddof=1) / np.sqrt(len(share)))


def calibration_table(
    P: ArrayLike, y: ArrayLike, *, class_names: Sequence[str] | None = None, bins: int = BINS, random_seed: int = 0
) -> "pd.DataFrame":
    """Return scores and calibration of each class against the rest, of the top label, and of all classes together.

    Parameters
    ----------
    P, y
        (n, K) probabilities and (n,) class codes.
    class_names
        K names; by default the codes.
    bins, random_seed
        As in `calibration_error`.

    Returns
    -------
    A table with one line per event, indexed by (event, class): ("class", name), ("top label", "") and
    ("all classes", ""). In the last one, Brier score and its parts are the sums over the classes, ECE the mean, and
    the log score that of K classes. `impossible` counts the rows whose outcome had probability zero. `ece_p_value` is
    that of the ECE under perfect calibration. `intercept` and `slope` with standard errors, `lr` and `lr_p_value`, and
    `error_lower` to `error_upper`, an interval for the mean |p − c(p)|, are those of `fit_cox`; its level is such that
    the intervals of all K classes and the top label hold together with probability 0.9 (Bonferroni).
    """
    import pandas as pd

    P, y = check_forecasts(P, y)
    K = P.shape[1]
    names = [str(k) for k in range(K)] if class_names is None else [str(name) for name in class_names]
    if len(names) != K:
        raise DataError(f"`class_names` must hold {K} names, one for each column of `P`; got {len(names)}.")
    # Of two classes one is the other's mirror image.
    prob = 1 - (1 - JOINT_PROB) / (K + 1 if K > 2 else 2)
    lines = [_event_scores(*one_class(P, y, k), bins, random_seed, prob) for k in range(K)]
    all_classes = {name: float(np.sum([line[name] for line in lines])) for name in lines[0]}
    all_classes |= dict.fromkeys(("ece_p_value", *CoxFit.COLUMNS), np.nan)  # of one event only
    rows = log_score_rows(P, y)
    all_classes |= {"log_score": float(rows.mean()), "impossible": int(np.isneginf(rows).sum())}
    all_classes |= {"ece": all_classes["ece"] / K, "ece_debiased": all_classes["ece_debiased"] / K}
    lines += [_event_scores(*top_label(P, y), bins, random_seed, prob), all_classes]
    index = pd.MultiIndex.from_tuples(
        [*(("class", name) for name in names), ("top label", ""), ("all classes", "")], names=["event", "class"]
    )
    return pd.DataFrame(lines, index=index)


def _event_scores(p: Floats, outcome: Floats, bins: int, random_seed: int, prob: float) -> dict[str, float]:
    """Return one line of `calibration_table`: scores and calibration of forecasts p (n,) of one event."""
    events = tally(p, outcome)
    h, misses = events.hits, events.count - events.hits
    parts = corp_decomposition(p, outcome)
    error = calibration_error(p, outcome, bins=bins, random_seed=random_seed)
    return {
        "log_score": float((xlogy(h, events.forecast) + xlogy(misses, 1 - events.forecast)).sum() / events.n),
        "brier": parts.score,
        "miscalibration": parts.miscalibration,
        "discrimination": parts.discrimination,
        "uncertainty": parts.uncertainty,
        "ece": error.ece,
        "ece_debiased": error.ece_debiased,
        "impossible": int(h[events.forecast == 0].sum() + misses[events.forecast == 1].sum()),
        "ece_p_value": error.ece_p_value,
    } | fit_cox(p, outcome, prob=prob).columns
