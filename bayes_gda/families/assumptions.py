"""Checks of what a model assumes about its data: the type that they share, and the joint p-value of several.

A check compares a statistic of the training rows with its distribution under the model, part by part (a class, a
feature), and has one p-value for all its parts together. Families know their own assumptions (`Family.assumptions`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from bayes_gda.checks import Floats


@dataclass(frozen=True, slots=True)
class Part:
    """A statistic of one class or feature, beside what the model expects.

    Parameters
    ----------
    where
        Class, feature, or both.
    observed, expected, spread
        The statistic; its mean and standard deviation under the model.
    """

    where: str
    observed: float
    expected: float
    spread: float

    @property
    def z(self) -> float:
        """How far the statistic is from what is expected, in standard deviations under the model."""
        return (self.observed - self.expected) / self.spread


@dataclass(frozen=True, slots=True, eq=False)
class Check:
    """One assumption, held against the training rows.

    Parameters
    ----------
    assumption
        What is assumed, as a noun: `equal covariances`.
    statistic
        Name of the statistic.
    p_value
        Probability, under the model, of parts that are jointly as extreme; nan if it could not be computed.
    parts
        The statistic by class or feature.
    remedy
        What to do if the assumption fails.
    note
        What limits the check: rows left out, or why there is none.
    """

    assumption: str
    statistic: str
    p_value: float
    parts: tuple[Part, ...]
    remedy: str
    note: str = ""

    @property
    def worst(self) -> Part | None:
        """The part that is farthest from what is expected; None if there is none."""
        return max(self.parts, key=lambda part: abs(part.z), default=None)


@dataclass(frozen=True, slots=True, eq=False)
class Quantiles:
    """Ordered values beside those that the model expects, for a QQ plot.

    Parameters
    ----------
    observed, expected
        (n,) ordered values, and the means of ordered values under the model.
    lower, upper
        (n,) ends of pointwise 90 % intervals of ordered values under the model.
    """

    observed: Floats
    expected: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Assumptions:
    """What a model assumes, checked on its training rows.

    Parameters
    ----------
    checks
        One for each assumption.
    distances
        Ordered squared Mahalanobis distances by class, where classes are elliptical.
    """

    checks: tuple[Check, ...] = ()
    distances: dict[str, Quantiles] = field(default_factory=dict)

    def adjusted(self) -> Floats:
        """Return the p-values of the checks adjusted for their number by Holm's method; nan stays nan."""
        return holm(np.array([check.p_value for check in self.checks]))


def holm(p: Floats) -> Floats:
    """Return p-values (m,) adjusted by Holm's step-down method: the family-wise error rate is held whatever depends."""
    out = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * factors))
    return out


def joint_p_value(z: Floats, simulated: Floats) -> float:
    """Return the Monte Carlo p-value of the largest |z| (m,) among parts, by draws (R, m) of them under the model.

    (1 + #{max |z_r| ≥ max |z|}) / (R + 1) is exact: its level is at most what it says (Davison & Hinkley 1997, 4.2).
    """
    if not len(z):
        return np.nan
    extreme = np.abs(simulated).max(axis=1) >= np.abs(z).max()
    return float((1 + extreme.sum()) / (len(simulated) + 1))


def smallest_p_value(p: Sequence[float]) -> float:
    """Return the joint p-value of independent tests by the smallest: 1 − (1 − min p)^m (Šidák)."""
    known = [value for value in p if not np.isnan(value)]
    return float(-np.expm1(len(known) * np.log1p(-min(known)))) if known else np.nan
