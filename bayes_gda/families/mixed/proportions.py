"""Proportions: beta columns, whose two parameters have no conjugate prior and are both integrated over numerically."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, expit, logit, logsumexp

from bayes_gda.checks import Floats, frozen
from bayes_gda.families.mixed.column import Codes
from bayes_gda.families.mixed.discrete import TINY
from bayes_gda.families.mixed.shapes import KNOTS, Shaped, within_classes
from bayes_gda.linalg import wide_blocks


class Beta(Shaped):
    """x ~ Beta(tf, (1 − t)f) of mean t: logit t ~ N(m, v²), log f ~ N(l, s²). The sums: rows, Σ log x, Σ log(1 − x)."""

    word = "beta"
    variables = ("beta_mean", "beta_precision")
    dim = "proportion"
    parameters = 2
    places = (0, 2)

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are not strictly between 0 and 1."""
        return np.asarray((x <= 0) | (x >= 1))

    @classmethod
    def row_sums(cls, x: Floats, numbers: Floats) -> Floats:
        """Return 1, log x and log(1 − x)."""
        x = np.clip(x, 1e-300, 1 - 1e-16)
        return np.column_stack([np.ones_like(x), np.log(x), np.log1p(-x)])

    @classmethod
    def log_marginal(cls, numbers: Floats, sums: Floats, support: Floats | None, u: Floats) -> Floats:
        """Return the log likelihood: nothing is left to integrate."""
        n, low, high = sums.T[:, :, None]
        a, b = both_shapes(u)
        return np.asarray((a - 1) * low + (b - 1) * high - n * betaln(a, b))

    def _evidence_without(self, x: Floats, y: Codes) -> Floats:
        # p(D₋ᵢ) = ∫ p(D, u)/p(xᵢ | u) du at the points of all rows: new ones for each row would take a hundred times as
        # long, and one row does not move the box of the others.
        rule = self.rule
        step = np.log(rule.axes[:, :, 1] - rule.axes[:, :, 0]).sum(axis=1)
        out = np.empty(len(x))
        for k in np.unique(y):
            mine = np.flatnonzero(y == k)
            for rows in wide_blocks(len(mine), rule.log_density.shape[1]):
                log_p = self._log_conditional(x[mine[rows]], rule.points[[k]])[:, 0]
                out[mine[rows]] = logsumexp(rule.log_density[k] - log_p, axis=1) + step[k]
        return out

    def _log_conditional(self, x: Floats, u: Floats) -> Floats:
        a, b = both_shapes(u)
        x = np.clip(x, 1e-300, 1 - 1e-16)[:, None, None]
        return np.asarray((a - 1) * np.log(x) + (b - 1) * np.log1p(-x) - betaln(a, b))

    def _log_predictive(self, x: Floats) -> Floats:
        # Each value is a sum over 26 000 points.
        return self.log_predictive_of_many(x) if len(np.unique(x)) > KNOTS else super()._log_predictive(x)

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw `beta_mean` and `beta_precision` (size, K, 1)."""
        u = self._draw_points(size, rng)
        return {"beta_mean": expit(u[..., :1]), "beta_precision": np.exp(u[..., 1:])}

    def terms(self, x: Floats) -> Floats:
        """Return log x, log(1 − x) and 1."""
        return self.row_sums(x, self.numbers)[:, [1, 2, 0]]

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return tf − 1, (1 − t)f − 1 and −log B."""
        t, f = draws["beta_mean"][..., 0], draws["beta_precision"][..., 0]
        return np.stack([t * f - 1, (1 - t) * f - 1, -betaln(t * f, (1 - t) * f)], axis=-1)

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the log density (S,) of the log odds of the mean and the log of the precision."""
        t, f = draws["beta_mean"][..., 0], draws["beta_precision"][..., 0]
        both = self._log_normal_prior(logit(t), 0) + self._log_normal_prior(np.log(f), 2)
        return np.asarray(both.sum(axis=1))

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw x for each pair of parameters; never 0 nor 1."""
        t, f = draws["beta_mean"][:, 0], draws["beta_precision"][:, 0]
        return np.clip(rng.beta(t * f, (1 - t) * f), 1e-300, 1 - 1e-16)

    def _unbounded(self, x: Floats) -> Floats:
        return np.asarray(logit(np.clip(x, 1e-300, 1 - 1e-16)))

    def _bounded(self, u: Floats) -> tuple[Floats, Floats]:
        x = np.clip(expit(u), 1e-300, 1 - 1e-16)
        return x, np.log(x) + np.log1p(-x)

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        m, v, center, spread = numbers
        return f"logit mean ~ N({m:.3g}, {v:.3g}²), log precision ~ N({center:.3g}, {spread:.3g}²)"

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return a prior about the mean of all rows, and about the precision of the variance within classes."""
        mean, within = within_classes(x, y, K, weight)
        precision = np.clip(mean * (1 - mean) / max(within, TINY) - 1, 0.1, 1e6)
        # Wider priors would have ridges, of few rows and a high precision, that the rule is too coarse for.
        return frozen([logit(np.clip(mean, 1e-6, 1 - 1e-6)), 1.5, np.log(precision), 1.0])


def both_shapes(u: Floats) -> tuple[Floats, Floats]:
    """Return both shapes of a beta distribution, kept off 0, where a product underflows."""
    t, f = expit(u[..., 0]), np.exp(u[..., 1])
    return np.maximum(t * f, TINY), np.maximum((1 - t) * f, TINY)
