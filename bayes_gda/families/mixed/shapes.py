"""Columns with a shape of their own: gamma and negative-binomial ones; beta columns stand in a file of their own.

Given the shape the rest is conjugate (gamma, negative binomial) or nothing is left (beta), so that the posterior is an
integral over one or two parameters, which `methods.quadrature` takes to rounding error. With u the logarithm of the
shape

    p(D) = ∫ N(u | l, s²) p(D | u) du,   p(x | D) = Σ_g w_g p(x | u_g, D),   w_g ∝ N(u_g | l, s²) p(D | u_g)
"""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline
from scipy.special import betaln, gammaln, logsumexp

from bayes_gda.checks import Floats, frozen
from bayes_gda.errors import DataError
from bayes_gda.families.mixed.column import Codes, ColumnPosterior, Statistic
from bayes_gda.families.mixed.discrete import TINY, Counted, Poisson
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.quadrature import Rule, find_rule

# Standard deviation of the logarithm of a shape about the default's centre: a factor of 4.5.
SHAPE_SPREAD = 1.5
# Values of which the predictive is computed where there are many; it is interpolated between them.
KNOTS = 400


TWO_PI = 2 * np.pi


class Shaped(ColumnPosterior):
    """What the three share: a rule over the shape, and mixtures over its points."""

    # Coordinates of the integral, and where in `numbers` the centre and spread of each stand.
    places: ClassVar[tuple[int, ...]] = (2,)

    @classmethod
    def log_marginal(cls, numbers: Floats, sums: Floats, support: Floats | None, u: Floats) -> Floats:
        """Return log p(rows | u) (C, G) of statistics (C, m) at points (C, G, q)."""
        raise NotImplementedError

    def _log_conditional(self, x: Floats, u: Floats) -> Floats:
        """Return log p(x | u, D) (n, K, G) at points (K, G, q)."""
        raise NotImplementedError

    @classmethod
    def _rule(cls, numbers: Floats, sums: Floats, support: Floats | None, box: Floats | None = None) -> Rule:
        center = numbers[list(cls.places)]
        spread = numbers[[place + 1 for place in cls.places]]
        if box is None:
            box = np.broadcast_to(
                np.stack([center - 10 * spread, center + 10 * spread], axis=1), (len(sums), len(center), 2)
            )

        def log_density(u: Floats) -> Floats:
            prior = -0.5 * ((u - center) / spread) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(spread)
            return np.asarray(prior.sum(axis=2) + cls.log_marginal(numbers, sums, support, u))

        return find_rule(log_density, box)

    @cached_property
    def rule(self) -> Rule:
        """The rule of the posterior in each class."""
        return self._rule(self.numbers, self.statistic.sums, self.statistic.support)

    @classmethod
    def evidence(cls, numbers: Floats, sums: Floats, support: Floats | None) -> Floats:
        """Return log p(rows) (C,)."""
        return cls._rule(numbers, sums, support).log_integral

    @cached_property
    def log_evidence(self) -> Floats:
        """(K,) log p(rows of a class)."""
        return self.rule.log_integral

    def _evidence_without(self, x: Floats, y: Codes) -> Floats:
        sums = self.statistic.sums[y] - self.row_sums(x, self.numbers)
        return self._rule(self.numbers, sums, self.statistic.support, self.rule.box[y]).log_integral

    def _log_predictive(self, x: Floats) -> Floats:
        u, log_w = self.rule.points, self.rule.log_weight
        values, index = np.unique(x, return_inverse=True)
        out = np.empty((len(values), len(log_w)))
        for rows in wide_blocks(len(values), log_w.size):
            out[rows] = logsumexp(self._log_conditional(values[rows], u) + log_w, axis=2)
        return out[index.ravel()]

    def log_predictive_of_many(self, x: Floats) -> Floats:
        """Return log p(x | y=k, D) (n, K) by a spline through its values at KNOTS points, to some 1e-7."""
        u = self._unbounded(x)
        if self.discrete or len(u) <= KNOTS:
            return Shaped._log_predictive(self, x)
        knots = np.linspace(u.min(), u.max(), KNOTS)
        return np.asarray(CubicSpline(knots, Shaped._log_predictive(self, self._bounded(knots)[0]))(u))

    def _draw_points(self, size: int, rng: np.random.Generator) -> Floats:
        return self.rule.draw(size, rng)

    def _log_normal_prior(self, u: Floats, place: int) -> Floats:
        center, spread = self.numbers[place : place + 2]
        return np.asarray(-0.5 * ((u - center) / spread) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(spread))


class Gamma(Shaped):
    """x ~ Gamma(a, a/t) of mean t: log a ~ N(l, s²), t ~ IG(c, cm). The sums are the rows, Σx and Σ log x.

    The rate b = a/t has b | a ~ Gamma(c, cm/a), so that b | a, D ~ Gamma(c + na, cm/a + Σx).
    """

    word = "gamma"
    variables = ("gamma_shape", "gamma_mean")
    dim = "positive"
    parameters = 2

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are not positive."""
        return np.asarray(x <= 0)

    @classmethod
    def row_sums(cls, x: Floats, numbers: Floats) -> Floats:
        """Return 1, x and log x."""
        return np.column_stack([np.ones_like(x), x, np.log(x)])

    @classmethod
    def log_marginal(cls, numbers: Floats, sums: Floats, support: Floats | None, u: Floats) -> Floats:
        """Return log ∫ Π Gamma(x | a, b) Gamma(b | c, cm/a) db."""
        (c, m), (n, s, logs) = numbers[:2], sums.T[:, :, None]
        a = np.exp(u[..., 0])
        d = c * m / a
        count, total = np.where(n > 0, n, 1.0), np.where(s > 0, s, 1.0)
        # Terms of size a cancel: by log Γ(z) = z log z − z − ½ log z/2π + ρ(z) they are taken together,
        # (c + na) log (c + na)/(d + Σx) − na log a + a Σ log x = c log … + a [Σ log x + n log n/Σx + n log …].
        ratio = np.log1p(c / (count * a)) - np.log1p(d / total)
        curved = logs + n * (np.log(count) - np.log(total))  # ≤ 0 by Jensen; of equal values it is rounding
        curved = np.where(curved > -1e-14 * (n + np.abs(logs)), 0.0, curved)
        z = np.maximum(c + n * a, TINY)
        rows = a * (curved + n * ratio) - logs + 0.5 * n * np.log(a / TWO_PI) - n * _remainder(a)
        rows = rows + c * (np.log(count) + np.log(a) - np.log(total) + ratio - 1) - 0.5 * np.log(z / TWO_PI)
        value = rows + _remainder(z) + c * np.log(d) - gammaln(c)
        return np.where(n > 0, value, 0.0)

    def _log_conditional(self, x: Floats, u: Floats) -> Floats:
        (c, m), (n, s, _) = self.numbers[:2], self.statistic.sums.T[:, :, None]
        a = np.exp(u[..., 0])
        shape, rate = c + n * a, c * m / a + s
        x = np.maximum(x, TINY)[:, None, None]
        out = (a - 1) * np.log(x) - gammaln(a) + gammaln(shape + a) - gammaln(shape)
        return np.asarray(out + shape * np.log(rate) - (shape + a) * np.log(rate + x))

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw `gamma_shape` and `gamma_mean` (size, K, 1)."""
        (c, m), (n, s, _) = self.numbers[:2], self.statistic.sums.T
        a = np.exp(self._draw_points(size, rng)[..., 0])
        rate = rng.gamma(c + n * a) / (c * m / a + s)
        return {"gamma_shape": a[..., None], "gamma_mean": (a / np.maximum(rate, TINY))[..., None]}

    def terms(self, x: Floats) -> Floats:
        """Return log x, x/m and 1."""
        x = np.maximum(x, TINY)
        return np.column_stack([np.log(x), x / self.numbers[1], np.ones_like(x)])

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return a − 1, −ma/t and a log a/t − log Γ(a)."""
        a, t = draws["gamma_shape"][..., 0], draws["gamma_mean"][..., 0]
        return np.stack([a - 1, -self.numbers[1] * a / t, a * np.log(a / t) - gammaln(a)], axis=-1)

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the log density (S,) of shape and mean, by their logarithms."""
        (c, m), a, t = self.numbers[:2], draws["gamma_shape"][..., 0], draws["gamma_mean"][..., 0]
        log_t = c * np.log(c * m / t) - gammaln(c) - c * m / t
        return np.asarray((self._log_normal_prior(np.log(a), 2) + log_t).sum(axis=1))

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw x for each pair of parameters; never 0."""
        a, t = draws["gamma_shape"][:, 0], draws["gamma_mean"][:, 0]
        return np.maximum(rng.gamma(a) * t / a, TINY)

    def _unbounded(self, x: Floats) -> Floats:
        return np.log(x)

    def _bounded(self, u: Floats) -> tuple[Floats, Floats]:
        u = np.clip(u, -700, 700)
        return np.exp(u), u

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        c, m, center, spread = numbers
        return f"log shape ~ N({center:.3g}, {spread:.3g}²), mean ~ Inverse-Gamma({c:.3g}, {c * m:.4g})"

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return a prior about the mean of all rows, and about the shape of the variance within classes."""
        mean, within = within_classes(x, y, K, weight)
        shape = np.clip(mean**2 / max(within, TINY), 1e-3, 1e6)
        return frozen([2.0, mean, np.log(shape), SHAPE_SPREAD])


class NegativeBinomial(Shaped, Counted):
    """x ~ NB(r, p) of mean r(1 − p)/p: log r ~ N(l, s²), p | r ~ Beta(1 + cr/m, c). The sums count the values."""

    word = "negative-binomial"
    variables = ("size", "success_share")
    dim = "overdispersed"
    parameters = 2

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are no whole numbers of 0 or more."""
        return Poisson.outside(x, numbers)

    @property
    def count(self) -> Floats:
        """(K,) rows of each class that have a value."""
        return np.asarray(self.statistic.sums.sum(axis=1))

    @classmethod
    def summarise(cls, x: Floats, y: Codes, K: int, weight: Floats | None, numbers: Floats) -> Statistic:
        """Return how often each class has each value."""
        present = ~np.isnan(x)
        support, index = np.unique(x[present], return_inverse=True)
        support = support if len(support) else np.zeros(1)  # no rows: none have a 0
        sums = np.zeros((K, len(support)))
        np.add.at(sums, (y[present], index.ravel()), 1.0 if weight is None else weight[present])
        return Statistic(sums, support)

    @classmethod
    def add(cls, a: Statistic, b: Statistic, sign: float = 1.0) -> Statistic:
        """Join or separate the counts, on the values of both."""
        assert a.support is not None
        assert b.support is not None
        support = np.union1d(a.support, b.support)
        sums = np.zeros((len(a.sums), len(support)))
        sums[:, np.searchsorted(support, a.support)] += a.sums
        sums[:, np.searchsorted(support, b.support)] += sign * b.sums
        used = np.abs(sums).max(axis=0) > 1e-9
        used[0] |= not used.any()
        return Statistic(sums[:, used], support[used])

    def check(self, name: str) -> None:
        """Raise if a value would have fewer than no rows."""
        super().check(name)
        if (self.statistic.sums < -1e-9).any():
            raise DataError(f"Some of those rows were never learnt: a value of {name!r} would have fewer than no rows.")

    def _evidence_without(self, x: Floats, y: Codes) -> Floats:
        sums = self.statistic.sums[y]
        sums[np.arange(len(x)), np.searchsorted(self._support, x)] -= 1.0
        return self._rule(self.numbers, sums, self.statistic.support, self.rule.box[y]).log_integral

    @property
    def _support(self) -> Floats:
        assert self.statistic.support is not None
        return self.statistic.support

    @classmethod
    def log_marginal(cls, numbers: Floats, sums: Floats, support: Floats | None, u: Floats) -> Floats:
        """Return log ∫ Π NB(x | r, p) Beta(p | 1 + cr/m, c) dp."""
        assert support is not None
        c, m = numbers[:2]
        r = np.exp(u[..., 0])
        n, s = sums.sum(axis=1)[:, None], (sums @ support)[:, None]
        a = 1 + c * r / m
        out = betaln(a + n * r, c + s) - betaln(a, c) - (sums @ gammaln(support + 1))[:, None]
        for v, counts in zip(support, sums.T, strict=True):
            if v:  # Γ(0 + r)/Γ(r) is 1
                out = out + counts[:, None] * log_rising(r, v)
        return np.asarray(out)

    def _log_conditional(self, x: Floats, u: Floats) -> Floats:
        c, m = self.numbers[:2]
        n, s = self.count[:, None], (self.statistic.sums @ self._support)[:, None]
        r, x = np.exp(u[..., 0]), np.maximum(x, 0.0)[:, None, None]
        a, b = 1 + c * r / m + n * r, c + s
        return np.asarray(betaln(a + r, b + x) - betaln(a, b) + log_rising(r, x) - gammaln(x + 1))

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw `size` r and `success_share` p (size, K, 1)."""
        c, m = self.numbers[:2]
        r = np.exp(self._draw_points(size, rng)[..., 0])
        s = self.statistic.sums @ self._support
        p = rng.beta(1 + c * r / m + self.count * r, c + s)
        return {"size": r[..., None], "success_share": np.clip(p, 1e-15, 1 - 1e-15)[..., None]}

    def terms(self, x: Floats) -> Floats:
        """Return x, 1 and −log x!."""
        x = np.maximum(x, 0.0)
        return np.column_stack([x, np.ones_like(x), -gammaln(x + 1)])

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return log(1 − p), r log p and 1."""
        r, p = draws["size"][..., 0], draws["success_share"][..., 0]
        return np.stack([np.log1p(-p), r * np.log(p), np.ones_like(r)], axis=-1)

    def extra(self, x: Floats, draws: Mapping[str, Floats]) -> Floats:
        """Return log Γ(x + r)/Γ(r) (S, n, K), of each value once."""
        present = ~np.isnan(x)
        values, index = np.unique(np.maximum(x[present], 0.0), return_inverse=True)
        r = draws["size"][..., 0]
        out = np.zeros((len(r), len(x), r.shape[1]))
        each = log_rising(r[:, None], values[:, None])
        out[:, present] = each[:, index.ravel()]
        return out

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the log density (S,) of r, by its logarithm, and p, by its log odds."""
        (c, m), r, p = self.numbers[:2], draws["size"][..., 0], draws["success_share"][..., 0]
        a = 1 + c * r / m
        log_p = a * np.log(p) + c * np.log1p(-p) - betaln(a, c)
        return np.asarray((self._log_normal_prior(np.log(r), 2) + log_p).sum(axis=1))

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw a count for each pair of parameters: a Poisson one of a gamma rate."""
        r, p = draws["size"][:, 0], draws["success_share"][:, 0]
        return rng.poisson(np.minimum(rng.gamma(r) * (1 - p) / p, 1e15)).astype(np.float64)

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        c, m, center, spread = numbers
        beta = f"p | r ~ Beta(1 + {c / m:.3g} r, {c:.3g})"
        return f"log r ~ N({center:.3g}, {spread:.3g}²), {beta}, so that the mean is {m:.4g}"

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return the prior of a Poisson column, and r about what the variance within classes says."""
        c, m = Poisson.default(x, y, K, weight)
        mean, within = within_classes(x, y, K, weight)
        r = mean**2 / (within - mean) if within > mean * (1 + 1e-9) else np.inf
        return frozen([c, m, np.log(np.clip(r, 0.05, 100.0)), SHAPE_SPREAD])


def _remainder(z: Floats) -> Floats:
    """Return log Γ(z) less Stirling's z log z − z − ½ log z/2π: about 1/12z where that is large."""
    direct = gammaln(z) - z * np.log(z) + z + 0.5 * np.log(z / TWO_PI)
    return np.where(z > 1e3, 1 / (12 * z), direct)


def log_rising(r: Floats, x: Floats | float) -> Floats:
    """Return log Γ(x + r)/Γ(r), also where r is so large that the difference of both would be lost."""
    direct = gammaln(x + r) - gammaln(r)
    # r^x e^{x(x−1)/2r − …}: beyond 1e8 times x² one term of the expansion is enough.
    return np.where(r > 1e8 * (1 + np.square(x)), x * np.log(r) + x * (x - 1) / (2 * r), direct)


def within_classes(x: Floats, y: Codes, K: int, weight: Floats | None) -> tuple[float, float]:
    """Return the mean of all values, and the variance within classes, or of all where that is 0."""
    present = ~np.isnan(x)
    x, y, w = x[present], y[present], np.ones(int(present.sum())) if weight is None else weight[present]
    n = np.bincount(y, weights=w, minlength=K)
    means = np.bincount(y, weights=w * x, minlength=K) / np.where(n > 0, n, 1.0)
    mean = float(w @ x / w.sum())
    within = float(w @ (x - means[y]) ** 2 / max(n.sum() - K, n.sum() / (K + 1)))
    return mean, within or float(w @ (x - mean) ** 2 / n.sum())
