"""Yes or no, categories and counts: Bernoulli, binomial, categorical and Poisson columns, under conjugate priors."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, gammaln

from bayes_gda.checks import Floats, frozen
from bayes_gda.errors import DataError
from bayes_gda.families.mixed.column import Codes, ColumnPosterior

# Imagined rows of each level, and of all new levels together: the uniform prior.
LEVEL_ROWS = 1.0
TINY = float(np.finfo(float).tiny)


def _weighted(x: Floats, weight: Floats | None) -> tuple[Floats, Floats]:
    """Return the values that are present, and their weights."""
    present = ~np.isnan(x)
    return x[present], np.ones(int(present.sum())) if weight is None else weight[present]


class Counted(ColumnPosterior):
    """What columns of whole numbers share: a predictive that is summed over its values."""

    discrete = True

    def nodes(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return all values up to where the predictive of every class has fallen to 1e-9 of its peak, and it."""
        top = int(max(self._predictive_values(2000, rng).max(), 10)) * 2
        values = np.arange(min(top, 5000) + 1.0)
        if top > 5000:
            values = np.unique(np.linspace(0, top, 5000).round())
        P = np.exp(self._log_predictive(values)) * np.gradient(values)[:, None]
        return values, P / P.sum(axis=0)


class Bernoulli(ColumnPosterior):
    """x ~ Bernoulli(p), p ~ Beta(a, b). The sums are the rows, and those that have a 1."""

    word = "bernoulli"
    discrete = True
    variables = ("p",)
    dim = "yes_no"

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are neither 0 nor 1."""
        return ~(np.isnan(x) | (x == 0) | (x == 1))

    @classmethod
    def row_sums(cls, x: Floats, numbers: Floats) -> Floats:
        """Return 1 and x."""
        return np.column_stack([np.ones_like(x), x])

    @classmethod
    def evidence(cls, numbers: Floats, sums: Floats, support: Floats | None) -> Floats:
        """Return log B(a + Σx, b + n − Σx)/B(a, b)."""
        a, b = numbers
        return np.asarray(betaln(a + sums[:, 1], b + sums[:, 0] - sums[:, 1]) - betaln(a, b))

    def _log_predictive(self, x: Floats) -> Floats:
        (a, b), (n, s) = self.numbers, self.statistic.sums.T
        yes, no, x = np.log(a + s), np.log(b + n - s), np.clip(x, 0, 1)[:, None]
        return np.asarray(x * yes + (1 - x) * no - np.log(a + b + n))

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw `p` (size, K, 1)."""
        (a, b), (n, s) = self.numbers, self.statistic.sums.T
        return {"p": rng.beta(a + s, b + n - s, size=(size, len(n)))[..., None]}

    def terms(self, x: Floats) -> Floats:
        """Return x and 1 − x."""
        x = np.clip(x, 0, 1)
        return np.column_stack([x, 1 - x])

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return log p and log(1 − p)."""
        p = draws["p"][..., 0]
        return np.log(np.maximum(np.stack([p, 1 - p], axis=-1), TINY))

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the beta log density (S,), by the log odds."""
        (a, b), p = self.numbers[-2:], np.clip(draws["p"][..., 0], TINY, 1 - 1e-16)
        return np.asarray((a * np.log(p) + b * np.log1p(-p) - betaln(a, b)).sum(axis=1))

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw 0 or 1 for each parameter."""
        return (rng.random(len(draws["p"])) < draws["p"][:, 0]).astype(np.float64)

    def nodes(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return 0 and 1, and their probabilities."""
        values = np.array([0.0, 1.0])
        return values, np.exp(self._log_predictive(values))

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        return f"p ~ Beta({numbers[-2]:.4g}, {numbers[-1]:.4g})"

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return the uniform prior: one imagined row of either value."""
        return frozen([LEVEL_ROWS, LEVEL_ROWS])


class Binomial(Bernoulli):
    """x ~ Binomial(N, p), p ~ Beta(a, b). The sums are the rows, Σx and Σ log of the binomial coefficients."""

    word = "binomial"
    dim = "bounded"
    variables = ("success",)

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are no whole numbers in 0…N."""
        return ~(np.isnan(x) | ((x >= 0) & (x <= numbers[0]) & (x == np.round(x))))

    @classmethod
    def row_sums(cls, x: Floats, numbers: Floats) -> Floats:
        """Return 1, x and the log of the binomial coefficient."""
        return np.column_stack([np.ones_like(x), x, _log_choose(numbers[0], x)])

    @classmethod
    def evidence(cls, numbers: Floats, sums: Floats, support: Floats | None) -> Floats:
        """Return log B(a + Σx, b + nN − Σx)/B(a, b) and the coefficients."""
        N, a, b = numbers
        return np.asarray(betaln(a + sums[:, 1], b + N * sums[:, 0] - sums[:, 1]) - betaln(a, b) + sums[:, 2])

    def _log_predictive(self, x: Floats) -> Floats:
        (N, a, b), (n, s, _) = self.numbers, self.statistic.sums.T
        x, a, b = np.clip(x, 0, N)[:, None], a + s, b + N * n - s
        return np.asarray(betaln(a + x, b + N - x) - betaln(a, b) + _log_choose(N, x))

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw `success` (size, K, 1)."""
        (N, a, b), (n, s, _) = self.numbers, self.statistic.sums.T
        return {"success": rng.beta(a + s, b + N * n - s, size=(size, len(n)))[..., None]}

    def terms(self, x: Floats) -> Floats:
        """Return x, N − x and the log of the binomial coefficient."""
        N = self.numbers[0]
        x = np.clip(x, 0, N)
        return np.column_stack([x, N - x, _log_choose(N, x)])

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return log p, log(1 − p) and 1."""
        both = super().coefficients({"p": draws["success"]})
        return np.concatenate([both, np.ones_like(both[..., :1])], axis=-1)

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the beta log density (S,), by the log odds."""
        return super().log_prior({"p": draws["success"]})

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw a count for each parameter."""
        return rng.binomial(int(self.numbers[0]), draws["success"][:, 0]).astype(np.float64)

    def nodes(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return 0 … N, and their probabilities."""
        values = np.arange(self.numbers[0] + 1)
        return values, np.exp(self._log_predictive(values))

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        return f"N = {numbers[0]:g}, {super().describe_prior(numbers)}"

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return N, the largest count unless `trials` says it, and the uniform prior."""
        x, _ = _weighted(x, weight)
        N = float(options.get("trials") or max(x.max(initial=1.0), 1.0))
        return frozen([N, LEVEL_ROWS, LEVEL_ROWS])


class Categorical(ColumnPosterior):
    """x ~ Categorical(θ) over L levels and all others together, θ ~ Dirichlet(α). The sums are the rows of each."""

    word = "categorical"
    discrete = True
    variables = ("theta",)
    dim = "level"

    @property
    def width(self) -> int:
        """L levels, and all others."""
        return len(self.numbers)

    @property
    def count(self) -> Floats:
        """(K,) rows of each class that have a value."""
        return np.asarray(self.statistic.sums.sum(axis=1))

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are outside: none, as a new level has its place."""
        return np.zeros(len(x), dtype=bool)

    @classmethod
    def row_sums(cls, x: Floats, numbers: Floats) -> Floats:
        """Return the indicators of the levels (n, L + 1)."""
        return (x[:, None] == np.arange(len(numbers))).astype(np.float64)

    def check(self, name: str) -> None:
        """Raise if a level would have fewer than no rows."""
        super().check(name)
        if (self.statistic.sums < -1e-9 * (1 + self.count.max())).any():
            raise DataError(f"Some of those rows were never learnt: a level of {name!r} would have fewer than no rows.")

    @classmethod
    def evidence(cls, numbers: Floats, sums: Floats, support: Floats | None) -> Floats:
        """Return log Γ(A)/Γ(A + n) + Σ log Γ(α + n_l)/Γ(α)."""
        A, n = numbers.sum(), sums.sum(axis=1)
        return np.asarray(gammaln(A) - gammaln(A + n) + (gammaln(numbers + sums) - gammaln(numbers)).sum(axis=1))

    def _log_predictive(self, x: Floats) -> Floats:
        log_p = np.log(self.numbers + self.statistic.sums)
        log_p -= np.log((self.numbers + self.statistic.sums).sum(axis=1, keepdims=True))
        return np.asarray(log_p.T[np.clip(x, 0, self.width - 1).astype(np.intp)])

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw `theta` (size, K, L + 1)."""
        draws = [rng.dirichlet(self.numbers + counts, size=size) for counts in self.statistic.sums]
        return {"theta": np.stack(draws, axis=1)}

    def terms(self, x: Floats) -> Floats:
        """Return the indicators of the levels."""
        return self.row_sums(np.clip(x, 0, self.width - 1).round(), self.numbers)

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return log θ."""
        return np.log(np.maximum(draws["theta"], TINY))

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the Dirichlet log density (S,), by the logarithms."""
        constant = gammaln(self.numbers.sum()) - gammaln(self.numbers).sum()
        return np.asarray((np.log(np.maximum(draws["theta"], TINY)) @ self.numbers + constant).sum(axis=1))

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw a level that is known for each parameter: a new one has no name."""
        edges = np.cumsum(draws["theta"][:, :-1], axis=1)
        u = rng.random(len(edges)) * edges[:, -1]
        return (u[:, None] >= edges[:, :-1]).sum(axis=1).astype(np.float64)

    def nodes(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return the codes of all levels, and their probabilities."""
        values = np.arange(float(self.width))
        return values, np.exp(self._log_predictive(values))

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        levels = ", ".join(f"{a:.3g}" for a in numbers[:4]) + (", …" if len(numbers) > 5 else "")
        return f"θ ~ Dirichlet({levels}; {numbers[-1]:.2g} for levels not seen)"

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return the uniform prior over the levels, and all new ones together as one more."""
        return frozen(np.full(int(options["levels"]) + 1, LEVEL_ROWS))


class Poisson(Counted):
    """x ~ Poisson(r), r ~ Gamma(c, c/m). The sums are the rows, Σx and Σ log x!."""

    word = "poisson"
    variables = ("rate",)
    dim = "count"

    @classmethod
    def outside(cls, x: Floats, numbers: Floats) -> NDArray[np.bool_]:
        """Return which values are no whole numbers of 0 or more."""
        return ~(np.isnan(x) | ((x >= 0) & (x == np.round(x))))

    @classmethod
    def row_sums(cls, x: Floats, numbers: Floats) -> Floats:
        """Return 1, x and log x!."""
        return np.column_stack([np.ones_like(x), x, gammaln(x + 1)])

    def _update(self) -> tuple[Floats, Floats]:
        (c, m), (n, s, _) = self.numbers, self.statistic.sums.T
        return c + s, c / m + n

    @classmethod
    def evidence(cls, numbers: Floats, sums: Floats, support: Floats | None) -> Floats:
        """Return log (c/m)^c Γ(c + Σx)/Γ(c) (c/m + n)^−(c + Σx) Π 1/x!."""
        (c, m), (n, s, factorials) = numbers, sums.T
        d = c / m
        return np.asarray(c * np.log(d) - gammaln(c) + gammaln(c + s) - (c + s) * np.log(d + n) - factorials)

    def _log_predictive(self, x: Floats) -> Floats:
        shape, rate = self._update()
        x = np.maximum(x, 0.0)[:, None]
        log_ratio = gammaln(x + shape) - gammaln(shape) - gammaln(x + 1)
        return np.asarray(log_ratio + shape * np.log(rate / (rate + 1)) - x * np.log(rate + 1))

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Floats]:
        """Draw `rate` (size, K, 1)."""
        shape, rate = self._update()
        return {"rate": (rng.gamma(shape, size=(size, len(shape))) / rate)[..., None]}

    def terms(self, x: Floats) -> Floats:
        """Return x, 1 and −log x!."""
        x = np.maximum(x, 0.0)
        return np.column_stack([x, np.ones_like(x), -gammaln(x + 1)])

    def coefficients(self, draws: Mapping[str, Floats]) -> Floats:
        """Return log r, −r and 1."""
        r = draws["rate"][..., 0]
        return np.stack([np.log(np.maximum(r, TINY)), -r, np.ones_like(r)], axis=-1)

    def log_prior(self, draws: Mapping[str, Floats]) -> Floats:
        """Return the gamma log density (S,), by the logarithm."""
        (c, m), r = self.numbers, np.maximum(draws["rate"][..., 0], TINY)
        return np.asarray((c * np.log(c / m * r) - gammaln(c) - c / m * r).sum(axis=1))

    def draw_values(self, draws: Mapping[str, Floats], rng: np.random.Generator) -> Floats:
        """Draw a count for each parameter."""
        return rng.poisson(np.minimum(draws["rate"][:, 0], 1e15)).astype(np.float64)

    @classmethod
    def describe_prior(cls, numbers: Floats) -> str:
        """Return the prior in a line of plain text."""
        c, m = numbers
        return f"r ~ Gamma({c:.4g}, {c / m:.4g}), of mean {m:.4g}"

    @classmethod
    def default(cls, x: Floats, y: Codes, K: int, weight: Floats | None, **options: Any) -> Floats:
        """Return a gamma prior about the mean of all rows, with a coefficient of variation of 1."""
        x, w = _weighted(x, weight)
        # Half a row with a 1 keeps the mean off 0.
        return frozen([1.0, float(w @ x + 0.5) / float(w.sum() + 0.5)])


def _log_choose(N: float, x: Floats) -> Floats:
    return np.asarray(gammaln(N + 1) - gammaln(x + 1) - gammaln(N - x + 1))
