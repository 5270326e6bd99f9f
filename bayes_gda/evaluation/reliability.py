"""Forecasts and outcomes of an event: recalibration by pooled adjacent violators, and reliability curves.

A forecast p is calibrated if the event happens in a share p of the rows that carry it. The curve p ↦ P(event | p) is
estimated by the isotonic regression of the outcomes on p, which needs no bins (CORP). Two bands go with it:

    consistency    around the diagonal: where the curve would lie if the forecasts were calibrated
    confidence     around the curve: where the true curve p ↦ P(event | p) may lie

A classifier of K classes makes K + 1 such events: `one_class` and `top_label` turn (P, y) into one of them, as in
`reliability_curve(*top_label(P, y))`.

Measured: the share of points in a 90 % band, for n = 200 and n = 1000 rows, mean of 300 data sets, ± .003 to .01; the
bands at 21 forecasts with both ends, the last line's at up to 200. A bootstrap of the rows (100 data sets) fails where
the fitted curve is 0 or 1; the likelihood ratio, which we use, does not:

    confidence                                likelihood ratio    worst point      bootstrap
    calibrated, p ~ Beta(.7, .7)                .96   .96          .92   .92       .67   .76
    too sure: c = p, forecast σ(2 logit p)      .96   .96          .93   .91       .73   .79
    a rare event, c ~ Beta(½, 8)                .98   .97          .94   .94       .47   .62
    11 different forecasts, c = .1 + .8p        .92   .92          .87   .89       .88   .90
    no skill: c = .3 whatever p is              .91   .90          .85   .80       .79   .76
    consistency, calibrated                     .93   .91; for .2 < p < .8, where fewer draws tie, .90   .90

References
----------
Dimitriadis, Gneiting & Jordan (2021), Stable reliability diagrams for probabilistic classifiers, PNAS 118.
Banerjee (2007), Likelihood based inference for monotone response models, Annals of Statistics 35.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression
from scipy.special import ndtri, xlogy

from bayes_gda.checks import Floats, frozen, inside_unit, numbers, rectangle, whole
from bayes_gda.errors import DataError

Codes = NDArray[np.intp]

# How far a row's sum may be from one: float32 probabilities of a few hundred classes are within it.
SUM_TOLERANCE = 1e-6
# An average of probabilities may leave [0, 1] by a few ulps; more than this is a mistake.
ROUNDING = 1e-12
# Bisections of a confidence limit: 2⁻³⁰ = 1e-9.
BISECTIONS = 30
# Rows at each end that share a confidence limit, in n^{2/3}: isotonic regression resolves about n^{2/3} rows anywhere.
# At the outermost forecasts of no skill this lifts the coverage of a 90 % band from .39 to .8.
END_ROWS = 0.5


# ── Forecasts and events ────────────────────────────────────────────────────────────────────────────────────────────


def check_forecasts(P: ArrayLike, y: ArrayLike) -> tuple[Floats, Codes]:
    """Return probabilities (n, K) and class codes (n,), checked."""
    P = check_probabilities(P)
    codes = rectangle("y", y)
    n, K = P.shape
    if codes.shape != (n,):
        raise DataError(f"`y` must hold one code for each of the {n} rows of `P`; got shape {codes.shape}.")
    if codes.dtype.kind not in "iub":
        raise DataError(f"`y` must hold integer class codes; got {codes.dtype}. Encode the classes as 0…{K - 1}.")
    if codes.min() < 0 or codes.max() >= K:
        raise DataError(
            f"`y` must lie in 0…{K - 1}, the columns of `P`; got codes from {codes.min()} to {codes.max()}."
        )
    return P, codes.astype(np.intp)


def check_probabilities(P: ArrayLike) -> Floats:
    """Return probabilities (n, K) whose rows sum to one, checked."""
    array = numbers("P", P)
    if array.ndim != 2 or array.shape[0] == 0 or array.shape[1] < 2:
        raise DataError(
            f"`P` must be (n, K) with at least one row and two classes; got shape {array.shape}. "
            "Use np.column_stack([1 - p, p]) for the probabilities p of one class."
        )
    array = _within_unit("P", array)
    distance = np.abs(array.sum(axis=1) - 1)
    if distance.max() > SUM_TOLERANCE:
        row = int(distance.argmax())
        raise DataError(f"Rows of `P` must sum to one; row {row} sums to {array[row].sum():.6g}. Normalise the rows.")
    return array


def one_class(P: ArrayLike, y: ArrayLike, k: int) -> tuple[Floats, Floats]:
    """Return the forecasts (n,) of class `k` and the outcomes [y = k] (n,)."""
    P, y = check_forecasts(P, y)
    if whole("k", k, 0) >= P.shape[1]:
        raise DataError(f"`k` must be a class code in 0…{P.shape[1] - 1}; got {k}.")
    return P[:, k], (y == k).astype(np.float64)


def top_label(P: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return the largest probability of each row (n,), and whether its class is the true one (n,).

    Of classes with the same probability the first is taken.
    """
    P, y = check_forecasts(P, y)
    top = P.argmax(axis=1)
    return P[np.arange(len(P)), top], (top == y).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Outcomes counted by forecast: all that a measure of calibration needs, whatever the order of the rows.

    Parameters
    ----------
    forecast
        (m,) the different forecasts, increasing.
    count
        (m,) rows that carry each.
    hits
        (m,) those of them where the event happened.
    """

    forecast: Floats
    count: Floats
    hits: Floats

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.count.sum())

    @property
    def rate(self) -> float:
        """Share of rows where the event happened."""
        return float(self.hits.sum() / self.count.sum())


def tally(p: ArrayLike, outcome: ArrayLike) -> Events:
    """Count outcomes (n,) of 0 and 1 by their forecasts `p` (n,)."""
    array = _check_vector(p)
    z = numbers("outcome", outcome)
    if z.shape != array.shape:
        raise DataError(f"`outcome` must have the shape of `p`, {array.shape}; got {z.shape}.")
    if not ((z == 0) | (z == 1)).all():
        raise DataError(f"`outcome` must be 0 or 1; got {z[(z != 0) & (z != 1)][0]:.6g}. Use `outcome == value`.")
    forecast, cell, count = np.unique(array, return_inverse=True, return_counts=True)
    return Events(frozen(forecast), frozen(count), frozen(np.bincount(cell, weights=z)))


# ── Recalibration ───────────────────────────────────────────────────────────────────────────────────────────────────


def recalibrate(p: ArrayLike, outcome: ArrayLike) -> Floats:
    """Return forecasts (n,) recalibrated on their own outcomes: the isotonic regression of `outcome` on `p`."""
    events = tally(p, outcome)
    return recalibrated(events)[np.searchsorted(events.forecast, _check_vector(p))]


def recalibrated(events: Events) -> Floats:
    """Return the isotonic fit (m,) to the share of hits, weighted by count."""
    starts = _block_starts(events.hits, events.count)
    value = np.add.reduceat(events.hits, starts) / np.add.reduceat(events.count, starts)
    return np.asarray(np.repeat(value, np.diff(starts, append=len(events.hits))))


def _pool(hits: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Return hits and counts of the blocks of pooled adjacent violators; hits/count increases from block to block."""
    if len(hits) == 0:
        return hits, count
    starts = _block_starts(hits, count)
    return np.add.reduceat(hits, starts), np.add.reduceat(count, starts)


def _block_starts(hits: Floats, count: Floats) -> Codes:
    """Return the indices where blocks of the isotonic regression begin.

    Blocks are summed in whole numbers by the caller, which avoids the rounding of the regression itself.
    """
    return np.asarray(isotonic_regression(hits / count, weights=count).blocks[:-1])


# ── Curves ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Band:
    """A pointwise band: at each forecast it covers with probability `prob`; the whole curve leaves it more often.

    Parameters
    ----------
    forecast
        (g,) where the limits stand, increasing.
    lower, upper
        (g,) the limits, both increasing.
    prob
        Probability of coverage at a point.
    """

    forecast: Floats
    lower: Floats
    upper: Floats
    prob: float


@dataclass(frozen=True, slots=True, eq=False)
class ReliabilityCurve:
    """The share of events as a function of their forecast.

    Parameters
    ----------
    forecast
        (m,) the different forecasts, increasing.
    recalibrated
        (m,) P(event | forecast) by isotonic regression; on the diagonal if calibrated.
    count
        (m,) rows that carry each forecast.
    consistency
        Where `recalibrated` would lie if the forecasts were calibrated.
    confidence
        Where the true P(event | forecast) may lie.
    """

    forecast: Floats
    recalibrated: Floats
    count: Floats
    consistency: Band
    confidence: Band


def reliability_curve(
    p: ArrayLike,
    outcome: ArrayLike,
    *,
    prob: float = 0.9,
    points: int = 200,
    resamples: int = 999,
    random_seed: int = 0,
) -> ReliabilityCurve:
    """Estimate the reliability curve of forecasts `p` (n,) of an event with outcomes (n,) of 0 and 1.

    Parameters
    ----------
    p, outcome
        (n,) probabilities of the event, and whether it happened.
    prob
        Pointwise coverage of both bands.
    points
        The bands stand at no more than so many forecasts, spread evenly over the different ones.
    resamples, random_seed
        Sets of labels drawn for the consistency band, and their seed.
    """
    events = tally(p, outcome)
    return ReliabilityCurve(
        forecast=events.forecast,
        recalibrated=frozen(recalibrated(events)),
        count=events.count,
        consistency=consistency_band(p, prob=prob, points=points, resamples=resamples, random_seed=random_seed),
        confidence=confidence_band(p, outcome, prob=prob, points=points),
    )


def consistency_band(
    p: ArrayLike, *, prob: float = 0.9, points: int = 200, resamples: int = 999, random_seed: int = 0
) -> Band:
    """Return the band in which the recalibrated curve of calibrated forecasts lies.

    Labels are drawn from `p` (n,) and recalibrated, R = `resamples` times. If the outcomes are draws from `p` too,
    their curve is one more draw like the R others: it is as likely to have any rank. Between the k-th smallest and the
    k-th largest it thus lies with probability 1 − 2k/(R + 1) exactly, and with more only where draws tie, as they do at
    0 and 1.
    """
    p = np.sort(_check_vector(p))
    k = int(
        (1 - _check_prob(prob)) / 2 * (whole("resamples", resamples, 1) + 1) + 1e-9
    )  # 50, not 49, for (1 − .9)/2 · 1000
    if k < 1:
        least_resamples = int(np.ceil(2 / (1 - prob))) - 1
        raise DataError(f"`resamples` must be at least {least_resamples} for a `prob` of {prob:g}; got {resamples}.")
    forecast, starts, count = np.unique(p, return_index=True, return_counts=True)
    at = _spread_indices(len(forecast), points)
    rng = np.random.default_rng(random_seed)
    curves = np.empty((resamples, len(at)))
    for curve in curves:
        hits = np.add.reduceat(rng.random(len(p)) < p, starts, dtype=np.float64)
        curve[:] = recalibrated(Events(forecast, count.astype(np.float64), hits))[at]
    curves.partition((k - 1, resamples - k), axis=0)
    return Band(frozen(forecast[at]), frozen(curves[k - 1]), frozen(curves[resamples - k]), prob)


def confidence_band(p: ArrayLike, outcome: ArrayLike, *, prob: float = 0.9, points: int = 200) -> Band:
    """Return the band for the true curve c(p) = P(event | p): the values that a likelihood-ratio test does not reject.

        {θ : 2 [max_c log L(c) − max_{c(p) = θ} log L(c)] ≤ χ²₁(prob)},   c increasing

    The constrained maximum is min(c_left, θ) on the forecasts below p and max(c_right, θ) above, each the isotonic
    regression of its side. The ratio tends to χ²₁ where many rows share a forecast, and to a smaller law where all
    differ (Banerjee 2007), so χ²₁ covers in both cases; in the second about .96 in place of .90.

    At its ends an isotonic regression follows the last few rows. Since c increases, the upper limit some rows further
    in is one for all before them too, and we use it there; likewise the lower limit at the high end.
    """
    events = tally(p, outcome)
    critical = ndtri((1 + _check_prob(prob)) / 2) ** 2
    at = _spread_indices(len(events.forecast), points)
    inner = int(END_ROWS * events.n ** (2 / 3))
    ends = np.searchsorted(events.count.cumsum(), [inner, events.n - 1 - inner], side="right")
    lower, upper = _likelihood_limits(events, np.append(at, ends), critical)
    # Limits increase with the forecast, so those of the two ends change the outer rows alone.
    lower, upper = np.minimum(lower[:-2], lower[-1]), np.maximum(upper[:-2], upper[-2])
    return Band(frozen(events.forecast[at]), frozen(lower), frozen(upper), prob)


def _likelihood_limits(events: Events, at: Codes, critical: float) -> Floats:
    """Return the smallest and largest value (2, g) of the curve at forecasts `at` (g,) that the likelihood admits."""
    hits, count = events.hits, events.count
    highest = _log_likelihood(*_pool(hits, count))
    # One row per forecast: the blocks below it, itself, and those above; empty blocks below fill the row.
    rows = [(_pool(hits[:j], count[:j]), _pool(hits[j + 1 :], count[j + 1 :])) for j in at]
    h, c = np.zeros((2, len(at), max(len(left[0]) + 1 + len(right[0]) for left, right in rows)))
    side = np.full(h.shape, -1)
    for i, (j, (left, right)) in enumerate(zip(at, rows, strict=True)):
        size = len(left[0]) + 1 + len(right[0])
        h[i, :size] = np.concatenate([left[0], hits[j : j + 1], right[0]])
        c[i, :size] = np.concatenate([left[1], count[j : j + 1], right[1]])
        side[i, :size] = np.sign(np.arange(size) - len(left[0]))
    unconstrained = h / np.maximum(c, 1)

    def admitted(theta: Floats) -> NDArray[np.bool_]:
        theta = theta[..., None]
        value = np.clip(unconstrained, np.where(side < 0, 0.0, theta), np.where(side > 0, 1.0, theta))
        return np.asarray(2 * (highest - _log_likelihood(h, c, value)) <= critical)

    outside = np.repeat([[0.0], [1.0]], len(at), axis=1)
    inside = np.where(admitted(outside), outside, recalibrated(events)[at])
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        accepted = admitted(middle)
        inside, outside = np.where(accepted, middle, inside), np.where(accepted, outside, middle)
    return inside


def _log_likelihood(h: Floats, c: Floats, value: Floats | None = None) -> Floats:
    """Return the binomial log likelihood of hits h of c rows, at `value` or at its maximum h/c; last axis summed."""
    value = h / c if value is None else value
    return np.asarray((xlogy(h, value) + xlogy(c - h, 1 - value)).sum(axis=-1))


def _spread_indices(m: int, points: int) -> Codes:
    """Return the indices of at most `points` of m forecasts, evenly spread, both ends included."""
    return np.unique(np.linspace(0, m - 1, min(m, whole("points", points, 2))).round().astype(np.intp))


def _check_vector(p: ArrayLike) -> Floats:
    array = numbers("p", p)
    if array.ndim != 1 or len(array) == 0:
        raise DataError(f"`p` must be (n,) with at least one row; got shape {array.shape}. Use `one_class(P, y, k)`.")
    return _within_unit("p", array)


def _within_unit(name: str, array: Floats) -> Floats:
    valid = (array >= -ROUNDING) & (array <= 1 + ROUNDING)
    if not valid.all():
        raise DataError(f"`{name}` must hold probabilities between 0 and 1; got {array[~valid].flat[0]:.6g}.")
    return np.clip(array, 0.0, 1.0)


def _check_prob(prob: float) -> float:
    return inside_unit("prob", prob, hint=" Use 0.9 for 90 %.")
