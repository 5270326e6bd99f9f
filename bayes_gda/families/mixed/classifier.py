"""Fitted models of columns of any type: a posterior a column, exact or as draws, and what it says of new rows.

    p(y=k | x, D) ∝ E[π_k] Π_j p(x_j | y=k, D)        over the columns that a row has

Columns are independent within a class and so are their posteriors, so that what is missing is left out of the product.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats, frozen, positive
from bayes_gda.errors import DataError, StoreError
from bayes_gda.families.mixed.choice import Choice
from bayes_gda.families.mixed.column import ColumnPosterior, Statistic
from bayes_gda.families.mixed.distributions import DISTRIBUTIONS
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.density import COORDINATES
from bayes_gda.prediction.fitted import FittedModel, average_draws, choose_draws, in_batches
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.prediction.novelty import Novelty
from bayes_gda.prediction.shift import reweigh
from bayes_gda.priors import Seed
from bayes_gda.priors.mixed import MixedPrior

Codes = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class MixedClassifier(FittedModel):
    """Fitted naive Bayes with a distribution of its own for every column.

    Parameters
    ----------
    prior, alpha
        Distributions of the columns and their priors; (K,) Dirichlet parameters of the class shares.
    class_count
        (K,) rows of each class, or the sums of their weights.
    statistics
        What is known of the rows, a column each.
    choices
        How each distribution was chosen.
    draws
        `{name: (S, K, …)}` of equal weight if the posterior is known by draws; None if it is exact.
    """

    prior: MixedPrior
    alpha: Floats
    class_count: Floats
    statistics: tuple[Statistic, ...]
    choices: tuple[Choice, ...] = ()
    draws: Mapping[str, Floats] | None = None

    generative = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", frozen(self.alpha))
        object.__setattr__(self, "class_count", frozen(self.class_count))
        if self.draws is not None:
            kept = (*variable_names(self.prior), COORDINATES)
            draws = {name: np.asarray(x, dtype=np.float64) for name, x in self.draws.items() if name in kept}
            object.__setattr__(self, "draws", draws)

    @property
    def evidence_of(self) -> Literal["joint", "mixed"]:
        """What its evidence is of: p(X, y), with probabilities in place of densities if a column is discrete."""
        return "mixed" if any(DISTRIBUTIONS[c.distribution].discrete for c in self.prior.columns) else "joint"

    @property
    def discrete_features(self) -> frozenset[int]:
        """Features with counts, truth values or levels; another value of them counts as missing."""
        kinds = [c for c in self.prior.columns if DISTRIBUTIONS[c.distribution].discrete]
        return frozenset(j for c in kinds for j in range(c.start, c.stop))

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.alpha)

    @property
    def d(self) -> int:
        """Number of columns of X."""
        return self.prior.d

    @property
    def shares(self) -> Floats:
        """(K,) shares of the classes in the training rows."""
        return np.asarray(self.class_count / self.class_count.sum())

    @property
    def class_shares(self) -> Floats:
        """E[π | D] (K,)."""
        alpha = self.alpha + self.class_count
        return np.asarray(alpha / alpha.sum())

    @property
    def averages_draws(self) -> bool:
        """Whether predictions are means over stored draws."""
        return self.draws is not None

    @property
    def coordinates(self) -> Floats | None:
        """The stored draws as unconstrained coordinates (S, dim)."""
        return None if self.draws is None else self.draws.get(COORDINATES)

    @property
    def columns(self) -> tuple[ColumnPosterior, ...]:
        """The exact posterior of every column."""
        return _columns(self)

    def read(self, X: Floats) -> list[Floats]:
        """Return what each row has in each column (n,); a value that the distribution cannot have counts as missing.

        It is impossible in every class, and so says nothing of which one it is.
        """
        out = []
        for spec, column in zip(self.prior.columns, self.columns, strict=True):
            x = spec.read(X)
            outside = column.outside(x, spec.numbers)
            out.append(np.where(outside, np.nan, x) if outside.any() else x)
        return out

    # ── Predictions ─────────────────────────────────────────────────────────────────────────────────────────────────

    def column_densities(self, X: Floats) -> Floats:
        """Return log p(x_j | y=k, D) (n, K, C) of each column; 0 where a value is missing."""
        out = np.empty((len(X), self.K, len(self.columns)))
        for j, (x, column) in enumerate(zip(self.read(X), self.columns, strict=True)):
            out[..., j] = column.log_predictive(x)
        return out

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | D) (n, K) of rows (n, d)."""
        if self.draws is not None:
            return average_draws(self, self.draws, X)
        out = np.tile(np.log(self.class_shares), (len(X), 1))
        for x, column in zip(self.read(X), self.columns, strict=True):
            out += column.log_predictive(x)
        return out

    def log_probabilities(self, X: Floats, class_prior: ArrayLike | None = None) -> Floats:
        """Return log p(y=k | x, D) (n, K), with the class shares (K,) in place of E[π] if they are given."""
        log_joint = self.log_joint(X)
        if class_prior is not None:
            return reweigh(log_joint, self.class_shares, class_prior)
        return log_class_probabilities(log_joint)

    def leave_one_out(self, X: Floats, y: Codes) -> tuple[Floats, Floats] | None:
        """Return log p(x_i, y=k | D₋ᵢ) and log p(x_i, y=k | D) (n, K); None for draws."""
        if self.draws is not None:
            return None
        full, n = self.log_joint(X), np.arange(len(X))
        alpha = self.alpha + self.class_count
        own = np.log(alpha[y] - 1) if (alpha > 1).all() else np.log(np.maximum(alpha[y] - 1, np.finfo(float).tiny))
        without = full - np.log(alpha / (alpha.sum())) + np.log(alpha / (alpha.sum() - 1))
        for x, column in zip(self.read(X), self.columns, strict=True):
            own = own + column.without(x, y)
        without[n, y] = own - np.log(alpha.sum() - 1)
        return without, full

    def novelty(
        self, X: Floats, *, false_alarm: float = 0.01, default_prior: bool = True, random_seed: int = 0
    ) -> Novelty | None:
        """Return how far out rows X (n, d) lie for each class; see `bayes_gda.families.mixed.novelty`."""
        from bayes_gda.families.mixed.novelty import detect_novelty

        return detect_novelty(self, X, false_alarm=false_alarm, random_seed=random_seed)

    # ── Draws ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw the parameters, `{name: (size, K, …)}`; of draws that are at hand, as many as asked for."""
        if self.draws is not None:
            chosen = choose_draws(len(self.draws["pi"]), size, random_seed)
            return {name: value[chosen] for name, value in self.draws.items()}
        rng = np.random.default_rng(random_seed)
        out = {"pi": [rng.dirichlet(self.alpha + self.class_count, size=size)]}
        for column in self.columns:
            for name, value in column.draw(size, rng).items():
                out.setdefault(name, []).append(value)
        return {name: parts[0] if name == "pi" else np.concatenate(parts, axis=2) for name, parts in out.items()}

    def draws_by_column(self, variables: Mapping[str, Floats]) -> list[dict[str, Floats]]:
        """Return the draws (S, K, width) of each column."""
        place: dict[str, int] = {}
        out = []
        for column in self.columns:
            start = place.get(column.dim, 0)
            place[column.dim] = stop = start + column.width
            out.append({name: variables[name][..., start:stop] for name in column.variables})
        return out

    def log_terms(self, variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return log p(x, y=k | θ_s) (S, n, K) of what each row has."""
        terms, coefficients, extras = [], [], []
        for x, column, draws in zip(self.read(X), self.columns, self.draws_by_column(variables), strict=True):
            gone = np.isnan(x)
            part = column.terms(np.where(gone, 1.0, x) if gone.any() else x)
            part[gone] = 0.0
            terms.append(part)
            coefficients.append(column.coefficients(draws))
            if (extra := column.extra(x, draws)) is not None:
                extras.append(extra)
        A = np.concatenate(coefficients, axis=2)
        S, K, Q = A.shape
        out = (A.reshape(S * K, Q) @ np.hstack(terms).T).reshape(S, K, len(X)).transpose(0, 2, 1)
        with np.errstate(divide="ignore"):  # a share of a rare class may round to 0
            return np.asarray(sum(extras, out + np.log(variables["pi"])[:, None]))

    def batch_means(self, X: Floats) -> tuple[Floats, Floats] | None:
        """Return the log means (B, n, K) of the terms over batches of the draws, and the batches' shares (B,)."""
        if self.draws is None:
            return None
        draws = self.draws
        return in_batches(len(draws["pi"]), lambda b: average_draws(self, {name: x[b] for name, x in draws.items()}, X))

    def log_prior(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the log prior (S,) of draws, positive parameters by their logarithm."""
        from scipy.special import gammaln

        shares = np.log(variables["pi"]) @ self.alpha + gammaln(self.alpha.sum()) - gammaln(self.alpha).sum()
        parts = zip(self.columns, self.draws_by_column(variables), strict=True)
        return np.asarray(sum((column.log_prior(draws) for column, draws in parts), shares))

    def sample(self, size: int, *, random_seed: Seed = None) -> tuple[Floats, Codes]:
        """Draw new rows (size, d) and their class codes (size,) from the posterior predictive."""
        rng = np.random.default_rng(random_seed)
        X, y = np.empty((size, self.d)), np.empty(size, dtype=np.intp)
        for rows in wide_blocks(size, 64 * self.K * len(self.columns)):
            variables = self.draw_variables(rows.stop - rows.start, random_seed=rng)
            n = np.arange(len(variables["pi"]))
            edges = np.cumsum(variables["pi"], axis=1)
            codes = (rng.random(len(n))[:, None] * edges[:, -1:] >= edges[:, :-1]).sum(axis=1)
            y[rows] = codes
            parts = zip(self.prior.columns, self.columns, self.draws_by_column(variables), strict=True)
            for spec, column, draws in parts:
                own = {name: value[n, codes] for name, value in draws.items()}
                X[rows, spec.start : spec.stop] = spec.write(column.draw_values(own, rng))
        return X, y

    def check_whole(self) -> None:
        """Raise `StoreError` unless the parts of a model from a file fit each other."""
        K, columns = self.K, self.prior.columns
        positive("alpha", self.alpha, error=StoreError)
        if self.class_count.shape != (K,) or not (self.class_count >= 0).all():
            raise StoreError(f"`class_count` must hold {K} numbers, none negative; got {self.class_count}.")
        if len(self.statistics) != len(columns):
            raise StoreError(f"`statistics` must be {len(columns)}, one per column; got {len(self.statistics)}.")
        for spec, statistic in zip(columns, self.statistics, strict=True):
            cls = DISTRIBUTIONS[spec.distribution]
            counted = spec.distribution == "negative-binomial"
            if counted != (statistic.support is not None):
                raise StoreError(f"`statistics` of {spec.name!r} must count values for negative-binomial columns only.")
            width = _sums(cls, spec.numbers) if statistic.support is None else len(statistic.support)
            if statistic.sums.shape != (K, width) or not np.isfinite(statistic.sums).all():
                raise StoreError(f"`statistics` of {spec.name!r} must be {(K, width)} finite numbers.")
            try:
                cls(spec.numbers, statistic).check(spec.name)
            except DataError as error:
                raise StoreError(f"`statistics` cannot be those of rows: {error}") from error
        if self.draws is not None:
            sizes = {len(value) for value in self.draws.values()}
            if set(variable_names(self.prior)) - set(self.draws) or len(sizes) != 1 or 0 in sizes:
                raise StoreError("`draws` must hold as many draws of each parameter, at least one.")
            if not all(np.isfinite(value).all() for value in self.draws.values()):
                raise StoreError("`draws` must be finite.")


def _sums(cls: type[ColumnPosterior], numbers: Floats) -> int:
    """Return how many numbers the statistic of a class has."""
    nothing, none = np.empty(0), np.empty(0, dtype=np.intp)
    return int(cls.summarise(nothing, none, 1, None, numbers).sums.shape[1])


def variable_names(prior: MixedPrior) -> tuple[str, ...]:
    """Return the names of the parameters of a model, in their order."""
    names = dict.fromkeys(name for c in prior.columns for name in DISTRIBUTIONS[c.distribution].variables)
    return ("pi", *names)


@lru_cache(maxsize=32)
def _columns(model: MixedClassifier) -> tuple[ColumnPosterior, ...]:
    """Return the posteriors of a model's columns: worked out once, and not part of the model."""
    pairs = zip(model.prior.columns, model.statistics, strict=True)
    return tuple(DISTRIBUTIONS[spec.distribution](spec.numbers, statistic) for spec, statistic in pairs)
