"""Measurements: normal, log-normal and logit-normal columns, under a normal-inverse-gamma prior.

With z = x, log x or logit x, n rows of mean z̄ and scatter S = Σ(z − z̄)², the posterior is

    κ' = κ + n,   m' = (κm + nz̄)/κ',   a' = a + n/2,   b' = b + S/2 + κn(z̄ − m)²/2κ'
    log p(D) = log Γ(a')/Γ(a) + a log b − a' log b' + ½ log κ/κ' − n/2 log 2π + Σ log |dz/dx|
    z | D ~ t_{2a'}(m', b'(κ' + 1)/(a'κ'))
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, gammaln, logit

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.mixed.column import Codes, ColumnPosterior, Statistic
from bayes_gda.priors import NIG
from bayes_gda.priors.defaults import default_prior

LOG_2PI = float(np.log(2 * np.pi))
# A removed row may leave a scatter below zero by so much of what there was: by rounding.
ROUNDING = 1e-8


class Normal(ColumnPosterior):
    """x ~ N(μ, σ²). The sums are n, z̄, S and Σ log |dz/dx|."""

    word = "normal"
    variables = ("mu", "sigma2")
    dim = "feature"
    parameters = 2

    # ── The scale: overridden by the two others ─────────────────────────────────────────────────────────────────────

    @classmethod
    def scaled(cls, x: Floats) -> tuple[Floats, Floats]:
        """Return z and log |dz/dx| (n,) of values x (n,), moved into the support."""
        return x, np.zeros_like(x)

    @classmethod
    def unscaled(cls, z: Floats) -> Floats:
        """Return the values x of z."""
        return z

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values (n,) are outside the support."""
        return np.zeros(len(x), dtype=bool)

    # ── Statistics ──────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def summarise(cls, x: Floats, y: Codes, K: int, weight: Floats | None, numbers: Floats) -> Statistic:
        """Return n, mean, scatter and log slope of each class (K, 4)."""
        present = ~np.isnan(x)
        z, slope = cls.scaled(x[present])
        y, w = y[present], np.ones(len(z)) if weight is None else weight[present]
        n = np.bincount(y, weights=w, minlength=K)
        mean = np.bincount(y, weights=w * z, minlength=K) / np.where(n > 0, n, 1.0)
        scatter = np.bincount(y, weights=w * (z - mean[y]) ** 2, minlength=K)
        slopes = np.bincount(y, weights=w * slope, minlength=K)
        return Statistic(np.column_stack([n, mean, scatter, slopes]))

    @classmethod
    def add(cls, a: Statistic, b: Statistic, sign: float = 1.0) -> Statistic:
        """Join or separate means and scatters (Chan, Golub & LeVeque 1983)."""
        return Statistic(_join(a.sums, b.sums, sign), a.support)

    @classmethod
    def scale(cls, a: Statistic, factor: float) -> Statistic:
        """Return the statistic of the same rows, each with `factor` times its weight."""
        return Statistic(a.sums * np.array([factor, 1.0, factor, factor]), a.support)

    def check(self, name: str) -> None:
        """Raise if the statistic cannot be that of rows."""
        super().check(name)
        if not (self.statistic.sums[:, 2] >= 0).all():
            raise DataError(f"Some of those rows were never learnt: {name!r} would have a negative variance.")

    def _evidence_without(self, x: Floats, y: Codes) -> Floats:
        z, slope = self.scaled(x)
        row = np.column_stack([np.ones_like(z), z, np.zeros_like(z), slope])
        return self.evidence(self.numbers, _join(self.statistic.sums[y], row, -1.0), self.statistic.support)

    # ── Posterior ───────────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def _update(cls, numbers: Floats, sums: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        (m, kappa, a, b), (n, mean, scatter) = numbers, sums.T[:3]
        k = kappa + n
        return (kappa * m + n * mean) / k, k, a + n / 2, b + scatter / 2 + kappa * n * (mean - m) ** 2 / (2 * k)

    @classmethod
    def evidence(cls, numbers: Floats, sums: Floats, support: Floats | None) -> Floats:
        """Return log p(rows) (C,) of statistics (C, 4)."""
        _, k, a, b = cls._update(numbers, sums)
        _, k0, a0, b0 = numbers
        normaliser = gammaln(a) - gammaln(a0) + a0 * np.log(b0) - a * np.log(b) + 0.5 * np.log(k0 / k)
        return np.asarray(normaliser - 0.5 * sums[:, 0] * LOG_2PI + sums[:, 3])

    def _log_predictive(self, x: Floats) -> Floats:
        z, slope = self.scaled(x)
        m, k, a, b = self._update(self.numbers, self.statistic.sums)
        scale2 = b * (k + 1) / (a * k)
        q = (z[:, None] - m) ** 2 / (2 * a * scale2)
        t = gammaln(a + 0.5) - gammaln(a) - 0.5 * np.log(2 * np.pi * a * scale2) - (a + 0.5) * np.log1p(q)
        return np.asarray(t + slope[:, None])

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw `mu` and `sigma2` (size, K, 1)."""
        m, k, a, b = self._update(self.numbers, self.statistic.sums)
        sigma2 = b / rng.gamma(a, size=(size, len(a)))
        mu = m + np.sqrt(sigma2 / k) * rng.standard_normal(sigma2.shape)
        return {"mu": mu[..., None], "sigma2": sigma2[..., None]}

    # ── Under draws ─────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _unit(self) -> tuple[float, float]:
        """Centre and scale in which squares lose no digits: those of the prior."""
        return float(self.numbers[0]), float(np.sqrt(self.numbers[3] / self.numbers[2]))

    def terms(self, x: Floats) -> Floats:
        """Return u², u and 1 with u = (z − m)/s, and log |dz/dx|."""
        (m, s), (z, slope) = self._unit, self.scaled(x)
        u = (z - m) / s
        return np.column_stack([u * u, u, np.ones_like(u), slope])

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return those of −½(z − μ)²/σ² − ½ log 2πσ²."""
        m, s = self._unit
        delta, sigma2 = (draws["mu"][..., 0] - m) / s, draws["sigma2"][..., 0] / s**2
        constant = -0.5 * delta**2 / sigma2 - 0.5 * (LOG_2PI + np.log(draws["sigma2"][..., 0]))
        return np.stack([-0.5 / sigma2, delta / sigma2, constant, np.ones_like(delta)], axis=-1)

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the normal-inverse-gamma log density (S,), of the variance by its logarithm."""
        (m, k, a, b), mu, sigma2 = self.numbers, draws["mu"][..., 0], draws["sigma2"][..., 0]
        log_ig = a * np.log(b) - gammaln(a) - a * np.log(sigma2) - b / sigma2
        log_n = -0.5 * np.log(2 * np.pi * sigma2 / k) - 0.5 * k * (mu - m) ** 2 / sigma2
        return np.asarray((log_ig + log_n).sum(axis=1))

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw x for each pair of parameters."""
        mu, sigma2 = draws["mu"][:, 0], draws["sigma2"][:, 0]
        return self.unscaled(mu + np.sqrt(sigma2) * rng.standard_normal(len(mu)))

    def _unbounded(self, x: Floats) -> Floats:
        return self.scaled(x)[0]

    def _bounded(self, u: Floats) -> tuple[Floats, Floats]:
        x = self.unscaled(u)
        return x, -self.scaled(x)[1]

    # ── Words and default ───────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        m, kappa, a, b = numbers
        return f"σ² ~ Inverse-Gamma({a:.4g}, {b:.4g}), μ | σ² ~ N({m:.4g}, σ²/{kappa:.4g})"

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return the default of the naive Gaussian model, on this scale."""
        present = ~np.isnan(x)
        z = cls.scaled(x[present])[0][:, None]
        moments = Moments.from_arrays(z, y[present], K, sample_weight=None if weight is None else weight[present])
        prior = default_prior(moments, NIG)
        assert isinstance(prior, NIG)
        return frozen([prior.m[0], prior.kappa[0], prior.a[0], prior.b[0]])


class LogNormal(Normal):
    """log x ~ N(μ, σ²), x > 0."""

    word = "log-normal"

    @classmethod
    def scaled(cls, x: Floats) -> tuple[Floats, Floats]:
        """Return log x and −log x."""
        z = np.log(np.maximum(x, np.finfo(float).tiny))
        return z, -z

    @classmethod
    def unscaled(cls, z: Floats) -> Floats:
        """Return e^z, within the range of floats."""
        return np.exp(np.clip(z, -700, 700))

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are not positive."""
        return np.asarray(x <= 0)


class LogitNormal(Normal):
    """logit x ~ N(μ, σ²), 0 < x < 1."""

    word = "logit-normal"

    @classmethod
    def scaled(cls, x: Floats) -> tuple[Floats, Floats]:
        """Return logit x and −log x(1 − x)."""
        p = np.clip(x, 1e-300, 1 - 1e-16)
        return logit(p), -np.log(p) - np.log1p(-p)

    @classmethod
    def unscaled(cls, z: Floats) -> Floats:
        """Return σ(z), strictly between 0 and 1."""
        return np.clip(expit(z), 1e-300, 1 - 1e-16)

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are not strictly between 0 and 1."""
        return np.asarray((x <= 0) | (x >= 1))


def _join(a: Floats, b: Floats, sign: float) -> Floats:
    """Return n, mean, scatter and slopes (C, 4) of the rows of `a` with those of `b`, or without them for sign −1."""
    n = a[:, 0] + sign * b[:, 0]
    n = np.where(np.abs(n) < 1e-9 * np.maximum(a[:, 0], 1e-300), 0.0, n)  # none left, up to rounding
    has_rows = n > 0
    delta, share = b[:, 1] - a[:, 1], sign * b[:, 0] / np.where(has_rows, n, 1.0)
    mean = np.where(has_rows, a[:, 1] + share * delta, 0.0)
    scatter = a[:, 2] + sign * b[:, 2] + a[:, 0] * share * delta**2
    lost = (scatter < 0) & (scatter > -ROUNDING * np.maximum(a[:, 2], 1e-300))
    scatter = np.where(~has_rows & (n >= 0) | lost, 0.0, scatter)
    return np.column_stack([n, mean, scatter, np.where(has_rows, a[:, 3] + sign * b[:, 3], 0.0)])
