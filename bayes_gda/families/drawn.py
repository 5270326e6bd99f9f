"""What any family gets that brings only `log_terms`: a fitted model made of draws, and the predictor of its verdict."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from bayes_gda.checks import Floats, frozen
from bayes_gda.errors import ConvergenceError, StoreError
from bayes_gda.families.base import Family
from bayes_gda.families.registry import family_names, get_family
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.density import COORDINATES, LogDensity
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Link
from bayes_gda.prediction.fitted import FittedModel, average_draws, choose_draws, in_batches
from bayes_gda.prediction.row_errors import RowErrors, weighted_distance
from bayes_gda.prediction.shift import normalise_possible
from bayes_gda.priors import Seed

# Draws of a Gaussian that stand for it where it has no closed predictive: as many as a round of the check has.
GAUSSIAN_DRAWS = 4000
# Means over weighted draws are reliable for k̂ below this (Vehtari et al. 2024), of a thousand draws or more.
RELIABLE = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class DrawnModel(FittedModel):
    """A fitted model of any family: draws of its parameters, and the family's own `log_terms`.

    Parameters
    ----------
    family
        Name of the family, which is looked up in the registry.
    K, features
        Number of classes, and of features.
    shares
        (K,) shares of the classes in the training rows.
    draws
        `{name: (S, …)}`, of equal weight.
    log_weights
        (S,) logarithms of the weights, normalised, that make draws of an approximation ones of the posterior: what new
        rows are judged by; None if the draws are not of one, or the weights are not reliable.
    """

    family: str
    K: int
    features: int
    shares: Floats
    draws: Mapping[str, Floats]
    log_weights: Floats | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", frozen(self.shares))
        object.__setattr__(self, "draws", {name: np.asarray(x, dtype=np.float64) for name, x in self.draws.items()})

    @property
    def generative(self) -> bool:  # type: ignore[override]  # the family's, known only here
        """Whether p(x, y) is modelled."""
        return get_family(self.family).kind == "generative"

    @property
    def d(self) -> int:
        """Number of features."""
        return self.features

    @property
    def class_shares(self) -> Floats:
        """The shares (K,) of the classes: E[π | D] of a generative model that has π, else those of the rows."""
        return np.asarray(self.draws["pi"].mean(axis=0)) if self.generative and "pi" in self.draws else self.shares

    @property
    def averages_draws(self) -> bool:
        """Whether predictions are means over stored draws: always."""
        return True

    @property
    def coordinates(self) -> Floats | None:
        """The stored draws as unconstrained coordinates (S, dim)."""
        return self.draws.get(COORDINATES)

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Return as many of the draws as asked for."""
        chosen = choose_draws(len(next(iter(self.draws.values()))), size, random_seed)
        return {name: value[chosen] for name, value in self.draws.items()}

    def log_terms(self, variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return the family's log p(x, y=k | θ_s) or log p(y=k | x, θ_s) (S, n, K)."""
        return np.asarray(get_family(self.family).log_terms(variables, X))

    @property
    def generates(self) -> bool:
        """Whether the family knows how to draw rows."""
        return get_family(self.family).draw_rows is not Family.draw_rows

    def sample(self, size: int, *, random_seed: Seed = None) -> tuple[Floats, NDArray[np.intp]]:
        """Draw new rows (size, d) and their class codes (size,) from the posterior predictive, as the family does."""
        rng = np.random.default_rng(random_seed)
        return get_family(self.family).draw_rows(self.draw_variables(size, random_seed=rng), rng)

    def log_probabilities(self, X: Floats, class_prior: ArrayLike | None = None) -> Floats:
        """Return log p(y=k | x, D) (n, K), with the class shares (K,) in place of the model's if they are given."""
        return normalise_possible(average_draws(self, self.draws, X, class_prior), "under these class shares")

    def batch_means(self, X: Floats) -> tuple[Floats, Floats] | None:
        """Return the log means (B, n, K) of the terms over batches of the draws, and the batches' shares (B,)."""
        S = len(next(iter(self.draws.values())))
        return in_batches(S, lambda b: average_draws(self, {name: x[b] for name, x in self.draws.items()}, X))

    def approximation_errors(self, X: Floats) -> RowErrors | None:
        """Return the distances (n,) of the probabilities to those of the weighted draws; None without weights."""
        if self.log_weights is None:
            return None
        distance = weighted_distance(self, self.draws, self.log_weights, X, np.exp(self.log_probabilities(X)))
        return RowErrors(distance, distance, np.full(len(X), np.nan))

    def check_whole(self) -> None:
        """Raise `StoreError` unless the parts of a model from a file fit each other."""
        if self.log_weights is not None and not abs(logsumexp(self.log_weights)) < 1e-6:
            raise StoreError("`log_weights` must be normalised.")
        sizes = {len(value) if value.ndim else 0 for value in self.draws.values()}
        if len(sizes) != 1 or 0 in sizes:
            raise StoreError("`draws` must hold as many draws of each parameter, at least one.")
        if not all(np.isfinite(value).all() for value in self.draws.values()):
            raise StoreError("`draws` must be finite.")
        if self.shares.shape != (self.K,) or self.family not in family_names():
            raise StoreError(f"`family` must be one of {', '.join(family_names())}, with {self.K} `shares`.")


def weighed(model: FittedModel, target: LogDensity, posterior: GaussianPosterior) -> FittedModel:
    """Return a model of draws of a Gaussian with their importance weights, if reliable; any other as it is."""
    w = model.coordinates
    if not isinstance(model, DrawnModel) or w is None:
        return model
    try:
        log_weights, k, _ = smooth(target.log_density(w) - posterior.log_density(w))
    except ConvergenceError:
        return model
    return replace(model, log_weights=log_weights) if k < RELIABLE else model


@dataclass(frozen=True, slots=True, eq=False)
class DrawPredictor:
    """Probabilities of rows X from draws of coordinates: a `Predictor` for any family.

    A generative family has p_k = Σ_s w_s f_sk/F, f_sk = p(x, k | θ_s), F = Σ_sk w_s f_sk, with the standard error
    √Σ_s w_s²(f_sk − p_k f_s)²/F, f_s = Σ_k f_sk. For one of p(y | x) alone f_sk = p(k | x, θ_s), and f_s = 1.
    """

    family: Family
    X: Floats
    K: int
    random_seed: int

    def gaussian(self, posterior: GaussianPosterior, link: Link) -> Floats:
        """Return the probabilities (n, K) of draws of the Gaussian, which the user gets; there is no link."""
        w = posterior.draw(GAUSSIAN_DRAWS, random_seed=self.random_seed)
        return self.averaged(w, np.full(len(w), 1 / len(w)))[0]

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return the weighted mean (n, K) over draws (S, dim), and its standard error (n, K)."""
        n, K = len(self.X), self.K
        # Sums over s of w f_sk, of w² f_sk², w² f_sk f_s and w² f_s², with f relative to the first draws' largest.
        sums, squares, cross, whole = np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, 1))
        top = None
        for part in wide_blocks(len(draws), n * K):
            model = self.family.from_coordinates(draws[part])
            log_f = model.log_terms(model.draw_variables(part.stop - part.start), self.X)
            top = log_f.max(axis=(0, 2), keepdims=True) if top is None else top
            # e^500 is still a number; a row for which the first block is so far off has no usable weights at all.
            f = weight[part, None, None] * np.exp(np.minimum(log_f - top, 500.0))
            f_all = f.sum(axis=2, keepdims=True)
            sums += f.sum(axis=0)
            squares += (f * f).sum(axis=0)
            cross += (f * f_all).sum(axis=0)
            whole += (f_all * f_all).sum(axis=0)
        total = sums.sum(axis=1, keepdims=True)
        lost = ~(total > 0)  # no draw with a weight allows the row: nothing is known, and the error says so
        total = np.where(lost, 1.0, total)
        p = np.where(lost, 1 / K, sums / total)
        variance = squares - 2 * p * cross + p**2 * whole
        return p, np.where(lost, np.inf, np.sqrt(np.maximum(variance, 0.0)) / total)
