"""The posterior of one column in every class: what all distributions share.

A column is a statistic of its rows in each class, `sums` (K, m), which adds and subtracts, and the numbers of its
prior. From these follow evidence, predictive, draws, and the density under draws, which is linear in functions of x:

    log p(x | y=k, θ_s) = Σ_q terms_q(x) coefficients_skq [+ extra(x, θ_s)]

so that all columns of all rows under all draws are one matrix product. What a row lacks (NaN) has terms of 0.

The predictive of a row that is left out is p(x_i | D₋ᵢ) = p(D)/p(D₋ᵢ): evidence is all that leave-one-out needs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from bayes_gda.checks import Floats, frozen
from bayes_gda.errors import DataError

Codes = NDArray[np.intp]

# Points of the integral over a value that was not measured yet.
NODES = 801
# Rows whose leave-one-out is computed at once.
BLOCK = 500


@dataclass(frozen=True, slots=True, eq=False)
class Statistic:
    """What a column knows of its rows.

    Parameters
    ----------
    sums
        (K, m) for each class; what the entries are, the distribution says.
    support
        (V,) distinct values that the sums count, where they are counts of values; else None.
    """

    sums: Floats
    support: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", frozen(self.sums))
        if self.support is not None:
            object.__setattr__(self, "support", frozen(self.support))


class ColumnPosterior:
    """The exact posterior of a column in each class; subclasses are the distributions.

    Parameters
    ----------
    numbers
        (p,) numbers of the prior; see `bayes_gda.priors.mixed`.
    statistic
        What is known of the rows.
    """

    # Its word; whether its values are whole numbers; names of its parameters, and of the dim that they share.
    word: ClassVar[str]
    discrete: ClassVar[bool] = False
    variables: ClassVar[tuple[str, ...]]
    dim: ClassVar[str]
    # Free parameters in a class.
    parameters: ClassVar[int] = 1

    def __init__(self, numbers: Floats, statistic: Statistic) -> None:
        self.numbers, self.statistic = numbers, statistic

    # ── Statistics ──────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values (n,) are outside the support; a missing one is not."""
        raise NotImplementedError

    @classmethod
    def row_sums(cls, x: Floats, numbers: Floats) -> Floats:
        """Return the statistic (n, m) of each of the rows x (n,), none of which is missing."""
        raise NotImplementedError

    @classmethod
    def summarise(cls, x: Floats, y: Codes, K: int, weight: Floats | None, numbers: Floats) -> Statistic:
        """Return the statistic of rows x (n,) of classes y (n,) and weights (n,); what is missing is left out."""
        present = ~np.isnan(x)
        each = cls.row_sums(x[present], numbers)
        each = each if weight is None else each * weight[present, None]
        sums = np.zeros((K, each.shape[1]))
        np.add.at(sums, y[present], each)
        return Statistic(sums)

    @classmethod
    def add(cls, a: Statistic, b: Statistic, sign: float = 1.0) -> Statistic:
        """Return the statistic of the rows of both, or of those of `a` without those of `b` for sign −1."""
        return Statistic(a.sums + sign * b.sums, a.support)

    @classmethod
    def scale(cls, a: Statistic, factor: float) -> Statistic:
        """Return the statistic of the same rows, each with `factor` times its weight."""
        return Statistic(factor * a.sums, a.support)

    @property
    def count(self) -> Floats:
        """(K,) rows of each class that have a value, or the sum of their weights."""
        return self.statistic.sums[:, 0]

    def check(self, name: str) -> None:
        """Raise if the statistic cannot be that of rows, as after rows were removed that were never learnt."""
        if (self.count < -1e-9 * (1 + np.abs(self.count).max())).any() or not np.isfinite(self.statistic.sums).all():
            raise DataError(f"Some of those rows were never learnt: {name!r} would have fewer than no values. ")

    # ── Posterior ───────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def evidence(cls, numbers: Floats, sums: Floats, support: Floats | None) -> Floats:
        """Return log p(rows) (C,) for each of C statistics (C, m)."""
        raise NotImplementedError

    @cached_property
    def log_evidence(self) -> Floats:
        """(K,) log p(rows of a class)."""
        return self.evidence(self.numbers, self.statistic.sums, self.statistic.support)

    def log_predictive(self, x: Floats) -> Floats:
        """Return log p(x | y=k, D) (n, K) of values (n,); 0 where they are missing."""
        out = np.zeros((len(x), len(self.statistic.sums)))
        present = ~np.isnan(x)
        out[present] = self._log_predictive(x[present])
        return out

    def _log_predictive(self, x: Floats) -> Floats:
        raise NotImplementedError

    def log_predictive_of_many(self, x: Floats) -> Floats:
        """Return the same of many simulated values, none missing; interpolated where that is far faster."""
        return self._log_predictive(x)

    def without(self, x: Floats, y: Codes) -> Floats:
        """Return log p(x_i | y_i, D₋ᵢ) (n,) of rows that are among the data; 0 where x is missing."""
        out = np.zeros(len(x))
        present = np.flatnonzero(~np.isnan(x))
        pairs, index = np.unique(np.column_stack([y[present], x[present]]), axis=0, return_inverse=True)
        value = np.empty(len(pairs))
        for start in range(0, len(pairs), BLOCK):
            part = slice(start, start + BLOCK)
            codes, values = pairs[part, 0].astype(np.intp), pairs[part, 1]
            value[part] = self.log_evidence[codes] - self._evidence_without(values, codes)
        out[present] = value[index.ravel()]
        return out

    def _evidence_without(self, x: Floats, y: Codes) -> Floats:
        """Return log p(rows of class y_i but one with the value x_i) (n,)."""
        sums = self.statistic.sums[y] - self.row_sums(x, self.numbers)
        return self.evidence(self.numbers, sums, self.statistic.support)

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw the parameters, `{name: (size, K, width)}`."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """Entries of each of its parameters in a class."""
        return 1

    # ── Under draws ─────────────────────────────────────────────────────────────────────────────────────────────────

    def terms(self, x: Floats) -> Floats:
        """Return the functions (n, q) of x (n,) in which the log density is linear; the last is for its base."""
        raise NotImplementedError

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return their coefficients (S, K, q) under draws `{name: (S, K, width)}`."""
        raise NotImplementedError

    def extra(self, x: Floats, draws: Mapping[str, Floats]) -> Floats | None:
        """Return what is not linear (S, n, K), or None."""
        return None

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the log prior (S,) of draws, positive parameters by their logarithm."""
        raise NotImplementedError

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw a value for each of n parameters `{name: (n, width)}`."""
        raise NotImplementedError

    # ── Before a value is known ─────────────────────────────────────────────────────────────────────────────────────

    def nodes(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return values (M,) and weights (M, K), such that Σ_m weight_mk f(value_m) is the predictive mean of f.

        A value u of the unbounded scale is t₂-distributed about the centre of the predictive in the rule: its
        quantiles are the points, and the ratio of the densities the weights.
        """
        pooled = self._unbounded(self._predictive_values(2000, rng))
        low, center, high = np.quantile(pooled, [0.1, 0.5, 0.9])
        scale = max((high - low) / 3.77, 1e-300)  # t₂ has its 10 and 90 % quantiles at ±1.886
        q = (np.arange(NODES) + 0.5) / NODES
        t = stdtrit(2, q)
        values, log_slope = self._bounded(center + scale * t)
        log_rule = -1.5 * np.log(2 + t * t) - np.log(scale)  # density of t₂ is (2 + t²)^(−3/2)
        weight = np.exp(self._log_predictive(values) + (log_slope - log_rule)[:, None]) / NODES
        return values, weight / weight.sum(axis=0)

    def _predictive_values(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw values (size·K,) of the predictive, as many of each class."""
        draws = self.draw(size, rng)
        return self.draw_values({name: x.reshape(-1, x.shape[-1]) for name, x in draws.items()}, rng)

    def _unbounded(self, x: Floats) -> Floats:
        """Return values on a scale without ends."""
        return x

    def _bounded(self, u: Floats) -> tuple[Floats, Floats]:
        """Return the values x of u, and log dx/du."""
        return u, np.zeros_like(u)

    # ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        raise NotImplementedError

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return the numbers of the default prior on the scale of the values x (n,), some of which may be missing."""
        raise NotImplementedError

    @classmethod
    def of_rows(cls, numbers: Floats, x: Floats, y: Codes, K: int, weight: Floats | None) -> Self:
        """Return the posterior of rows."""
        return cls(numbers, cls.summarise(x, y, K, weight, numbers))
