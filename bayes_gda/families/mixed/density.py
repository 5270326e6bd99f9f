"""The density of columns of any type in unconstrained coordinates, with its gradient by hand.

The log posterior is a sum over columns and classes. Of each column the coordinates are those of the PyMC model in its
order: first those of the one parameter in all classes, then those of the other; logarithms of positive ones, log odds
of those in (0, 1), and v of a simplex with v_last = −Σv. Where the prior is conjugate a share is the posterior's own
log density, less its normaliser, with the log evidence in place of that:

    normal         −(a' + ½)u − [b' + κ'(μ − m')²/2]e⁻ᵘ,  u = log σ²
    beta           a' log p + b' log(1 − p)
    gamma          c'u − d'eᵘ,  u = log r
    Dirichlet      Σ α'_l log θ_l
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, expit, gammaln, logit, softmax

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.families.gaussian.densities import ClassBlock
from bayes_gda.families.mixed.classifier import MixedClassifier
from bayes_gda.families.mixed.column import ColumnPosterior
from bayes_gda.families.mixed.discrete import Bernoulli, Binomial, Categorical, Poisson
from bayes_gda.families.mixed.normal import LOG_2PI, Normal
from bayes_gda.families.mixed.proportions import Beta
from bayes_gda.families.mixed.shapes import Gamma, NegativeBinomial, log_rising
from bayes_gda.methods.density import Density

# Values and gradients: shares of log p (S,), and gradients (S, dim).
Share = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False)
class MixedDensity(Density):
    """The log posterior of a model with its statistics, normalised as its PyMC model is."""

    model: MixedClassifier

    @cached_property
    def _shares(self) -> ClassBlock:
        return ClassBlock(self.model.class_count, self.model.alpha)

    @cached_property
    def _edges(self) -> list[int]:
        edges = [0, self._shares.dim]
        for column in self.model.columns:
            edges.append(edges[-1] + self.model.K * _width(column))
        return edges

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self._edges[-1]

    @property
    def independent(self) -> Sequence[NDArray[np.intp]]:
        """Groups of coordinates that do not depend on each other: of each column in each class."""
        K, groups = self.model.K, [np.arange(self._shares.dim)]
        for column, start in zip(self.model.columns, self._edges[1:], strict=False):
            width = _width(column)
            for k in range(K):
                own = start + k * width + np.arange(width) if isinstance(column, Categorical) else None
                groups.append(start + k + K * np.arange(width) if own is None else own)
        return groups

    @property
    def start(self) -> Floats:
        """(dim,) a point near the mode: the mean of a few draws of the exact posterior."""
        draws = self.model.draw_variables(64, random_seed=0)
        return np.asarray(self.coordinates(draws).mean(axis=0))

    def values_and_gradients(self, W: Floats) -> Share:
        """Return log p (…) and its gradient (…, dim) at W (…, dim)."""
        flat = W.reshape(-1, W.shape[-1])
        parts = [self._shares.values_and_gradients(flat[:, : self._edges[1]])]
        for column, i, j in zip(self.model.columns, self._edges[1:], self._edges[2:], strict=False):
            parts.append(_share(column, flat[:, i:j], self.model.K))
        value = np.sum([part[0] for part in parts], axis=0)
        gradient = np.concatenate([part[1] for part in parts], axis=1)
        return value.reshape(W.shape[:-1]), gradient.reshape(W.shape)

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return the model's variables (S, …) at S points (S, dim)."""
        out = {"pi": [self._shares.variables(W[:, : self._edges[1]])["pi"]]}
        for column, i, j in zip(self.model.columns, self._edges[1:], self._edges[2:], strict=False):
            for name, value in _from_coordinates(column, W[:, i:j], self.model.K).items():
                out.setdefault(name, []).append(value)
        return {name: parts[0] if name == "pi" else np.concatenate(parts, axis=2) for name, parts in out.items()}

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of the model's variables."""
        parts = [self._shares.coordinates(variables)]
        for column, draws in zip(self.model.columns, self.model.draws_by_column(variables), strict=True):
            parts.append(_to_coordinates(column, draws))
        return np.hstack(parts)

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log prior (S,) of all parameters together, positive ones by their logarithm."""
        return {"all": self.model.log_prior(variables)}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return each row's joint log likelihood (S, n)."""
        return self.model.log_likelihood(variables, rows.X, rows.y)


# ── Coordinates ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _width(column: ColumnPosterior) -> int:
    """Coordinates of a column in a class."""
    return column.width - 1 if isinstance(column, Categorical) else column.parameters


def _links(column: ColumnPosterior) -> tuple[tuple[str, str], ...]:
    """Name and link of each parameter, in the order of the PyMC model."""
    if isinstance(column, Normal):
        return ("sigma2", "log"), ("mu", "none")
    if isinstance(column, Bernoulli):
        return ((column.variables[0], "logit"),)
    if isinstance(column, NegativeBinomial):
        return ("size", "log"), ("success_share", "logit")
    if isinstance(column, Beta):
        return ("beta_mean", "logit"), ("beta_precision", "log")
    return tuple((name, "log") for name in column.variables)


def _from_coordinates(column: ColumnPosterior, W: Floats, K: int) -> dict[str, Floats]:
    if isinstance(column, Categorical):
        v = W.reshape(len(W), K, -1)
        return {"theta": softmax(np.concatenate([v, -v.sum(axis=2, keepdims=True)], axis=2), axis=2)}
    inverse = {"log": np.exp, "logit": expit, "none": np.asarray}
    pairs = enumerate(_links(column))
    return {name: inverse[link](W[:, i * K : (i + 1) * K, None]) for i, (name, link) in pairs}


def _to_coordinates(column: ColumnPosterior, draws: Mapping[str, Floats]) -> Floats:
    if isinstance(column, Categorical):
        log_theta = np.log(np.maximum(draws["theta"], np.finfo(float).tiny))
        v = log_theta - log_theta.mean(axis=2, keepdims=True)
        return np.asarray(v[..., :-1].reshape(len(v), -1))
    forward = {"log": np.log, "logit": logit, "none": np.asarray}
    return np.hstack([forward[link](draws[name][..., 0]) for name, link in _links(column)])


# ── Shares of the log posterior ─────────────────────────────────────────────────────────────────────────────────────


def _share(column: ColumnPosterior, W: Floats, K: int) -> Share:
    """Return a column's share of log p (S,) and its gradient (S, dim)."""
    if isinstance(column, Categorical):
        return _categorical(column, W.reshape(len(W), K, -1))
    parts = [W[:, i * K : (i + 1) * K] for i in range(column.parameters)]
    if isinstance(column, Normal):
        value, gradients = _normal(column, *parts)
    elif isinstance(column, Binomial | Bernoulli):
        value, gradients = _beta_binomial(column, *parts)
    elif isinstance(column, Poisson):
        value, gradients = _poisson(column, *parts)
    elif isinstance(column, NegativeBinomial):
        value, gradients = _negative_binomial(column, *parts)
    elif isinstance(column, Gamma):
        value, gradients = _gamma(column, *parts)
    else:
        assert isinstance(column, Beta)
        value, gradients = _beta(column, *parts)
    return value.sum(axis=1), np.hstack(gradients)


def _normal(column: Normal, u: Floats, mu: Floats) -> tuple[Floats, list[Floats]]:
    m, k, a, b = column._update(column.numbers, column.statistic.sums)
    precision, delta = np.exp(-u), mu - m
    square = b + 0.5 * k * delta**2
    constant = column.log_evidence + a * np.log(b) - gammaln(a) + 0.5 * (np.log(k) - LOG_2PI)
    value = constant - (a + 0.5) * u - square * precision
    return value, [square * precision - a - 0.5, -k * delta * precision]


def _beta_binomial(column: Bernoulli, w: Floats) -> tuple[Floats, list[Floats]]:
    a, b = column.numbers[-2:]
    n, s = column.statistic.sums.T[:2]
    trials = column.numbers[0] if isinstance(column, Binomial) else 1.0
    a, b = a + s, b + trials * n - s
    # log p = −log(1 + e⁻ʷ)
    value = column.log_evidence - betaln(a, b) - a * np.logaddexp(0, -w) - b * np.logaddexp(0, w)
    return value, [a - (a + b) * expit(w)]


def _poisson(column: Poisson, u: Floats) -> tuple[Floats, list[Floats]]:
    shape, rate = column._update()
    r = np.exp(u)
    value = column.log_evidence + shape * np.log(rate) - gammaln(shape) + shape * u - rate * r
    return value, [shape - rate * r]


def _categorical(column: Categorical, v: Floats) -> Share:
    alpha = column.numbers + column.statistic.sums
    total = alpha.sum(axis=1)
    full = np.concatenate([v, -v.sum(axis=2, keepdims=True)], axis=2)
    top = full.max(axis=2, keepdims=True)
    log_theta = full - top - np.log(np.exp(full - top).sum(axis=2, keepdims=True))
    constant = column.log_evidence + gammaln(total) - gammaln(alpha).sum(axis=1) + np.log(column.width)
    value = (constant + (alpha * log_theta).sum(axis=2)).sum(axis=1)
    slope = alpha - total[:, None] * np.exp(log_theta)
    return value, (slope[..., :-1] - slope[..., -1:]).reshape(len(v), -1)


def _negative_binomial(column: NegativeBinomial, u: Floats, w: Floats) -> tuple[Floats, list[Floats]]:
    c, m, center, spread = column.numbers
    sums, support, n = column.statistic.sums, column._support, column.count
    s, r, p = sums @ support, np.exp(u), expit(w)
    log_p, log_q = -np.logaddexp(0, -w), -np.logaddexp(0, w)
    a = 1 + c * r / m
    # (S, K, V), of all but zeros, for which Γ(0 + r)/Γ(r) is 1
    values, counts = support[support > 0], sums[:, support > 0]
    rising = (counts * log_rising(r[..., None], values)).sum(axis=2) - sums @ gammaln(support + 1)
    slope = (counts * (digamma(values + r[..., None]) - digamma(r)[..., None])).sum(axis=2)
    prior = -0.5 * ((u - center) / spread) ** 2 - 0.5 * LOG_2PI - np.log(spread) - betaln(a, c)
    value = prior + rising + (a + n * r) * log_p + (c + s) * log_q
    by_r = (c / m) * (log_p - digamma(a) + digamma(a + c)) + n * log_p + slope
    return value, [r * by_r - (u - center) / spread**2, (a + n * r) * (1 - p) - (c + s) * p]


def _gamma(column: Gamma, u: Floats, v: Floats) -> tuple[Floats, list[Floats]]:
    c, m, center, spread = column.numbers
    n, s, logs = column.statistic.sums.T
    a, t = np.exp(u), np.exp(v)
    prior = -0.5 * ((u - center) / spread) ** 2 - 0.5 * LOG_2PI - np.log(spread)
    prior = prior + c * (np.log(c * m) - v) - gammaln(c) - c * m / t
    value = prior + n * (a * (u - v) - gammaln(a)) + (a - 1) * logs - a / t * s
    by_a = n * (u - v + 1 - digamma(a)) + logs - s / t
    return value, [a * by_a - (u - center) / spread**2, -c + c * m / t - n * a + a / t * s]


def _beta(column: Beta, w: Floats, v: Floats) -> tuple[Floats, list[Floats]]:
    m, scale, center, spread = column.numbers
    n, low, high = column.statistic.sums.T
    t, f = expit(w), np.exp(v)
    a, b = np.maximum(t * f, 1e-300), np.maximum(expit(-w) * f, 1e-300)
    prior = -0.5 * ((w - m) / scale) ** 2 - 0.5 * ((v - center) / spread) ** 2 - LOG_2PI - np.log(scale * spread)
    value = prior + (a - 1) * low + (b - 1) * high - n * betaln(a, b)
    by_a, by_b = low - n * (digamma(a) - digamma(a + b)), high - n * (digamma(b) - digamma(a + b))
    return value, [(by_a - by_b) * a * b / f - (w - m) / scale**2, by_a * a + by_b * b - (v - center) / spread**2]
