"""Cox's recalibration of forecasts: how far they are from calibrated, with standard errors, a test and an interval.

    logit c(p) = α + β logit p,    calibrated if α = 0 and β = 1;  β < 1: forecasts too extreme, α < 0: too high

α and β are fitted to the outcomes by maximum likelihood; twice the gain in log likelihood over (0, 1) is the
likelihood-ratio statistic, χ² on 2 degrees of freedom if the forecasts are calibrated. The calibration error is the
mean of |p − c(p)| over the rows. Its interval holds the errors of all (α, β) that a likelihood-ratio test at that level
does not reject: it starts at 0 exactly if calibrated forecasts are not rejected, and its end says how large an error
the data cannot exclude. Miscalibration of another shape is seen as far as a line in log-odds can follow it.

Measured, share of p ≤ .05 and coverage of 90 % intervals under perfect calibration (1000 data sets), and coverage for
α = −.3, β = .6 (500): the interval is of all (α, β) at once, so that it covers more often where there is an error.

    n                                     50              160             500
    p ~ Beta(.7, .7)                      .058 .89 .97    .055 .89 .97    .051 .89 .96
    top label, p ~ .5 + .5 Beta(4, 1)     .068 .89 .96    .043 .90 .98    .048 .90 .97
    a rare event, p ~ Beta(.5, 8)         .085 .85 .98    (χ² is rough where a handful of events is expected)

References
----------
Cox (1958), Two further applications of a model for binary regression, Biometrika 45.
Austin & Steyerberg (2019), The Integrated Calibration Index (ICI), Statistics in Medicine 38.
"""

from dataclasses import astuple, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, logit
from scipy.stats import chi2

from bayes_gda.checks import Floats, inside_unit
from bayes_gda.evaluation.reliability import Events, tally

# Forecasts of 0 and 1 are taken as so near to it: an outcome that was impossible then costs 28 in log likelihood.
NEAREST = 1e-12
# Different forecasts in the search for the interval; of more, neighbours are pooled, which moves a forecast by some
# 1/4000. Estimates and test use every forecast: pooling moved a slope's third digit, and unequally for an event and its
# complement.
MOST_FORECASTS = 2000
# Newton steps at most; where the outcomes do not determine α and β the likelihood has reached its bound by then.
ITERATIONS = 60
# Rays from the centre of the region, points on each, bisections of its end, and how far a ray goes in standard
# deviations of the centre: there the region is open, and c is 0 or 1.
RAYS, POINTS, BISECTIONS, FARTHEST = 40, 4, 20, 100.0
# Weight of a weak N((0, 1), 10²) prior that gives a centre also where the likelihood has no maximum.
RIDGE = 0.01
# A standard error beyond this says that the outcomes do not determine the estimate.
LARGEST_ERROR = 50.0


@dataclass(frozen=True, slots=True)
class CoxFit:
    """Calibration of the forecasts of an event.

    Parameters
    ----------
    intercept, slope
        α and β; nan if the outcomes do not determine them, as where the event always happens.
    intercept_error, slope_error
        Their standard errors.
    statistic, p_value
        Likelihood-ratio statistic of α = 0, β = 1 on 2 degrees of freedom, and its p-value under perfect calibration.
    lower, upper
        Interval for the mean of |p − c(p)|.
    prob
        Its confidence level.
    """

    intercept: float
    slope: float
    intercept_error: float
    slope_error: float
    statistic: float
    p_value: float
    lower: float
    upper: float
    prob: float

    # Names in a table, in the order of the fields.
    COLUMNS: ClassVar[tuple[str, ...]] = (
        "intercept",
        "slope",
        "intercept_se",
        "slope_se",
        "lr",
        "lr_p_value",
        "error_lower",
        "error_upper",
    )

    @property
    def columns(self) -> dict[str, float]:
        """The figures under their names in a table."""
        return dict(zip(self.COLUMNS, astuple(self), strict=False))


def fit_cox(p: ArrayLike, outcome: ArrayLike, *, prob: float = 0.9) -> CoxFit:
    """Fit Cox's recalibration to forecasts `p` (n,) of an event with outcomes (n,) of 0 and 1.

    Parameters
    ----------
    p, outcome
        Probabilities of the event, and whether it happened.
    prob
        Confidence level of the interval for the calibration error.
    """
    events, prob = tally(p, outcome), inside_unit("prob", prob, hint=" Use 0.9 for 90 %.")
    best, H, statistic = _estimate(events)
    determined = np.linalg.eigvalsh(H)[0] > LARGEST_ERROR**-2
    error = np.sqrt(np.diag(np.linalg.inv(H))) if determined else np.full(2, np.nan)
    estimate = best if determined else np.full(2, np.nan)
    limits = _limits(_pooled(events), float(chi2.ppf(prob, 2)), statistic)
    (intercept, slope), (intercept_error, slope_error) = estimate.tolist(), error.tolist()
    p_value = float(chi2.sf(statistic, 2))
    return CoxFit(intercept, slope, intercept_error, slope_error, statistic, p_value, *limits, prob)


def _log_odds(events: Events) -> Floats:
    return np.asarray(logit(np.clip(events.forecast, NEAREST, 1 - NEAREST)))


def _estimate(events: Events) -> tuple[Floats, Floats, float]:
    """Return (α, β), the curvature H there, and the likelihood-ratio statistic of (0, 1)."""
    x = _log_odds(events)
    best, H = _maximise(x, events, 0.0)
    gain = float(_log_likelihood(best, x, events)) - float(_log_likelihood(np.array([0.0, 1.0]), x, events))
    return best, H, max(0.0, 2 * gain)


def _pooled(events: Events) -> Events:
    """Return the events with at most MOST_FORECASTS different forecasts, neighbours being pooled to their mean."""
    m = len(events.forecast)
    if m <= MOST_FORECASTS:
        return events
    starts = np.arange(MOST_FORECASTS) * m // MOST_FORECASTS
    count, hits = np.add.reduceat(events.count, starts), np.add.reduceat(events.hits, starts)
    return Events(np.add.reduceat(events.count * events.forecast, starts) / count, count, hits)


def _limits(events: Events, critical: float, statistic: float) -> tuple[float, float]:
    """Return the least and the largest error over all (α, β) whose likelihood ratio is at most `critical`."""
    x = _log_odds(events)
    highest = float(_log_likelihood(np.array([0.0, 1.0]), x, events)) + _estimate(events)[2] / 2
    center, H = _maximise(x, events, RIDGE)
    root = np.linalg.inv(np.linalg.cholesky(H)).T
    angle = np.linspace(0, 2 * np.pi, RAYS, endpoint=False)
    direction = np.column_stack([np.cos(angle), np.sin(angle)]) @ root.T

    def admitted(theta: Floats) -> NDArray[np.bool_]:
        return np.asarray(2 * (highest - _log_likelihood(theta, x, events)) <= critical)

    # The log likelihood is concave, so that each ray leaves the region once.
    inside, outside = np.zeros(RAYS), np.full(RAYS, FARTHEST)
    for _ in range(BISECTIONS):
        middle = (inside + outside) / 2
        accepted = admitted(center + middle[:, None] * direction)
        inside, outside = np.where(accepted, middle, inside), np.where(accepted, outside, middle)
    radius = np.concatenate([np.zeros(1), *(inside * share for share in np.linspace(0, 1, POINTS + 1)[1:])])
    theta = center + radius[:, None] * np.vstack([direction[:1], *[direction] * POINTS])
    errors = np.concatenate([_error(part, x, events) for part in np.array_split(theta, POINTS)])
    return (0.0 if statistic <= critical else float(errors.min())), float(errors.max())


def _error(theta: Floats, x: Floats, events: Events) -> Floats:
    """Return the mean of |p − c(p)| (t,) for each of t pairs (α, β)."""
    return np.abs(expit(theta[:, :1] + theta[:, 1:] * x) - events.forecast) @ events.count / events.n


def _log_likelihood(theta: Floats, x: Floats, events: Events) -> Floats:
    """Return the log likelihood of (α, β), () for one pair (2,), (t,) for t of them (t, 2)."""
    a = theta[..., :1] + theta[..., 1:] * x
    return np.asarray(log_expit(a) @ events.hits + log_expit(-a) @ (events.count - events.hits))


def _maximise(x: Floats, events: Events, ridge: float) -> tuple[Floats, Floats]:
    """Return (α, β) of the largest likelihood, less ridge/2 times its squared distance from (0, 1), and H there."""
    Phi, center = np.column_stack([np.ones_like(x), x]), np.array([0.0, 1.0])

    def value(theta: Floats) -> float:
        return float(_log_likelihood(theta, x, events)) - 0.5 * ridge * float((theta - center) @ (theta - center))

    # From the constant forecast, where the curvature is that of all rows; forecasts near 0 and 1 have next to none.
    rate = (events.hits.sum() + 0.5) / (events.n + 1)
    theta, H = np.array([float(logit(rate)), 0.0]), np.eye(2)
    for _ in range(ITERATIONS):
        c = expit(Phi @ theta)
        gradient = Phi.T @ (events.hits - events.count * c) - ridge * (theta - center)
        H = (Phi.T * (events.count * c * (1 - c))) @ Phi + ridge * np.eye(2)
        step = np.linalg.lstsq(H, gradient, rcond=1e-12)[0]
        if abs(gradient @ step) < 1e-12:
            break
        before, t = value(theta), 1.0
        while t > 1e-9 and not value(theta + t * step) >= before:
            t /= 2
        if t <= 1e-9:  # the gain is below rounding
            break
        theta = theta + t * step
    return theta, H
