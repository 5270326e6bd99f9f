"""Fitted Gaussian models: a posterior, exact or as draws, and what it says of new rows.

    GaussianClassifier      p(y=k | x, D) ∝ E[π_k] ∫ N(x | μ_k, Σ_k) p(μ, Σ | D)
    AveragedClassifier      Σ_c w_c of the former over a grid of priors, w_c ∝ evidence of cell c, after its charge

All that they are asked of rows X (n, d) they answer of incomplete ones, too: what is NaN is integrated out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import LARGEST_STORED, Floats, finite, frozen, positive
from bayes_gda.data.gaps import ObservedCounts, has_gaps
from bayes_gda.data.moments import Moments
from bayes_gda.errors import StoreError
from bayes_gda.families.gaussian.continuum import Continuum, Grid, fit_continuum
from bayes_gda.families.gaussian.densities import BartlettBlock, ClassBlock, NaiveBlock
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.families.gaussian.gaps.predictive import (
    Source,
    log_density_observed_of_single_rows,
    log_joint_observed,
    log_joint_observed_per_draw,
)
from bayes_gda.families.gaussian.lkj import CholeskyBlock, ScalesBlock
from bayes_gda.families.gaussian.novelty import Prior, detect_novelty
from bayes_gda.families.gaussian.predictive import draw_rows, log_joint_of_draws, log_joint_per_draw, log_odds_of_draws
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.density import Block, Parts
from bayes_gda.prediction.fitted import FittedModel, RowDraws, check_source, choose_draws, in_batches, in_chunks
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.prediction.novelty import Novelty
from bayes_gda.prediction.shift import reweigh
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet, Seed
from bayes_gda.priors.defaults import default_prior as make_default_prior

Covariance = Literal["shared", "own", "diagonal"]


# The log odds of a model's draws, made at the first interval that is asked for; not part of the model.
_odds: "WeakKeyDictionary[GenerativeClassifier, tuple[tuple[int, Seed], Callable[[Floats], Floats] | None]]" = (
    WeakKeyDictionary()
)


class GenerativeClassifier(FittedModel):
    """A fitted model of p(x, y) whose data are known by their moments."""

    __slots__ = ("__weakref__",)

    generative = True
    moments: Moments | ObservedCounts
    alpha: Floats

    @property
    def K(self) -> int:
        """Number of classes."""
        return self.moments.K

    @property
    def d(self) -> int:
        """Number of features."""
        return self.moments.d

    @property
    def class_shares(self) -> Floats:
        """E[π | D] (K,): π is independent of means and covariances given the data, whatever their prior."""
        alpha = self.alpha + self.moments.count
        return np.asarray(alpha / alpha.sum())

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | D) (n, K) of rows (n, d)."""
        raise NotImplementedError

    def log_terms(self, variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return log p(x, y=k | θ_s) (S, n, K) of what each row has."""
        return (log_joint_observed_per_draw if has_gaps(X) else log_joint_per_draw)(variables, X)

    def log_probabilities(self, X: Floats, class_prior: ArrayLike | None = None) -> Floats:
        """Return log p(y=k | x, D) (n, K), with the class shares (K,) in place of E[π] if they are given."""
        log_joint = self.log_joint(X)
        if class_prior is not None:
            return reweigh(log_joint, self.class_shares, class_prior)
        return log_class_probabilities(log_joint)

    def log_odds(self, size: int, random_seed: Seed = None) -> Callable[[Floats], Floats] | None:
        """Return the function from complete rows to log odds (n, K−1, S) of draws; the last is kept."""
        known, odds = _odds.get(self, (None, None))
        if known != (size, random_seed) or not isinstance(random_seed, int):
            odds = log_odds_of_draws(self.draw_variables(size, random_seed=random_seed))
            _odds[self] = (size, random_seed), odds
        return odds

    def row_draws(self, size: int, random_seed: Seed = None) -> RowDraws | None:
        """Return draws that are right for each row by itself: of exact posteriors; None for stored draws."""
        if self.averages_draws:
            return None
        rng = np.random.default_rng(random_seed)
        log_pi = np.log(rng.dirichlet(self.alpha + self.moments.count, size=size))
        cells, seed = self._cells(size, rng), int(rng.integers(2**63))

        def log_density(X: Floats) -> Floats:
            parts = [
                log_density_observed_of_single_rows(exact, X, count, seed + i) for i, (exact, count) in enumerate(cells)
            ]
            return parts[0] if len(parts) == 1 else np.concatenate(parts)

        return RowDraws(log_pi, log_density)

    def _cells(self, size: int, rng: np.random.Generator) -> list[tuple[NIWPosterior | NIGPosterior, int]]:
        """Return the exact posteriors of which draws are taken, and how many of each."""
        raise NotImplementedError

    def sample(self, size: int, *, random_seed: Seed = None) -> tuple[Floats, NDArray[np.intp]]:
        """Draw new rows (size, d) and their class codes (size,) from the posterior predictive."""
        rng = np.random.default_rng(random_seed)
        parts = [draw_rows(chunk, random_seed=rng) for chunk in in_chunks(self, size, rng)]
        X, y = zip(*parts, strict=True)
        return np.concatenate(X), np.concatenate(y)


@dataclass(frozen=True, slots=True, eq=False)
class GaussianClassifier(GenerativeClassifier):
    """Fitted LDA (`shared` covariance), QDA (`own`) or naive Gaussian classifier (`diagonal`).

    Parameters
    ----------
    covariance
        Which covariances the classes have.
    moments
        Sufficient statistics of the training rows; if these had gaps, what was counted.
    prior, alpha
        Prior of means and covariances; (K,) Dirichlet parameters of the class shares, before the data.
    posterior
        The exact posterior, or None.
    draws
        `pi` (S, K), `mu` (S, K, d) and `Sigma` (S, [K,] d, d) or `sigma2` (S, K, d), all of equal weight, or None.
    """

    covariance: Covariance
    moments: Moments | ObservedCounts
    prior: NIW | NIG | LKJ
    alpha: Floats
    posterior: NIWPosterior | NIGPosterior | None = None
    draws: Mapping[str, Floats] | None = None

    def __post_init__(self) -> None:
        check_source(self.posterior, self.draws)
        object.__setattr__(self, "alpha", frozen(self.alpha))
        if self.draws is not None:
            spread = "sigma2" if self.covariance == "diagonal" else "Sigma"
            kept = {name: np.asarray(self.draws[name], dtype=np.float64) for name in ("pi", "mu", spread)}
            object.__setattr__(self, "draws", kept)

    @property
    def source(self) -> Source:
        """The exact posterior, or the draws."""
        if self.posterior is not None:
            return self.posterior
        assert self.draws is not None
        return self.draws

    @property
    def averages_draws(self) -> bool:
        """Whether predictions are means over stored draws."""
        return self.posterior is None

    def log_density(self, X: Floats) -> Floats:
        """Return log p(x | y=k, D) (n, K): Student-t if exact, else the log of the mean density over the draws."""
        gaps = has_gaps(X)
        if self.posterior is not None:
            alpha = self.posterior.alpha
            log_joint = log_joint_observed(self.posterior, X) if gaps else self.posterior.log_joint(X)
            return log_joint - np.log(alpha / alpha.sum())
        assert self.draws is not None
        # log π = 0: the share is put in afterwards, exactly
        conditional = dict(self.draws) | {"pi": np.ones_like(self.draws["pi"])}
        out = np.empty((len(X), self.K))
        for rows in wide_blocks(len(X), self.K * 64):  # 64 draws at once at least
            out[rows] = (log_joint_observed if gaps else log_joint_of_draws)(conditional, X[rows])
        return out

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | D) (n, K) of rows (n, d)."""
        return self.log_density(X) + np.log(self.class_shares)

    def batch_means(self, X: Floats) -> tuple[Floats, Floats] | None:
        """Return `log_joint` (B, n, K) of batches of the draws, and the batches' shares (B,); None if it is exact."""
        if self.draws is None:
            return None
        draws = self.draws
        return in_batches(
            len(draws["pi"]), lambda b: replace(self, draws={name: x[b] for name, x in draws.items()}).log_joint(X)
        )

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `pi`, `mu` and `Sigma` or `sigma2` (size, …); of draws that are at hand, as many as asked for."""
        if self.posterior is not None:
            return self.posterior.draw(size, random_seed=random_seed)
        assert self.draws is not None
        chosen = choose_draws(len(self.draws["pi"]), size, random_seed)
        return {name: value[chosen] for name, value in self.draws.items()}

    def _cells(self, size: int, rng: np.random.Generator) -> list[tuple[NIWPosterior | NIGPosterior, int]]:
        assert self.posterior is not None
        return [(self.posterior, size)]

    def variables_of(self, W: Floats) -> dict[str, Floats]:
        """Return `pi`, `mu` and `Sigma` or `sigma2` (S, …) at unconstrained coordinates (S, dim)."""
        assert isinstance(self.moments, Moments)
        return gaussian_density(self.moments, self.prior, self.alpha, self.covariance).variables(W)

    def leave_one_out(self, X: Floats, y: NDArray[np.intp]) -> tuple[Floats, Floats] | None:
        """Return log p(x_i, y=k | D₋ᵢ) and log p(x_i, y=k | D) (n, K); None for draws, or rows with gaps."""
        if self.posterior is None or has_gaps(X):
            return None
        return self.posterior.leave_one_out(X, y), self.posterior.log_joint(X)

    def novelty(
        self, X: Floats, *, false_alarm: float = 0.01, default_prior: bool = True, random_seed: int = 0
    ) -> Novelty:
        """Return how far out rows X (n, d) lie for each class; see `bayes_gda.families.gaussian.novelty`."""
        own = None if isinstance(self.prior, LKJ) else self.prior
        prior: Prior | None = own
        if default_prior and own is not None:
            prior = partial(make_default_prior, family=type(own))
        return detect_novelty(self.source, X, false_alarm=false_alarm, prior=prior, random_seed=random_seed)

    def check_whole(self) -> None:
        """Raise `StoreError` unless the parts of a model from a file fit each other."""
        K, d, shared = self.K, self.d, self.covariance == "shared"
        conjugate: type[NIW | NIG] = NIG if self.covariance == "diagonal" else NIW
        if not isinstance(self.prior, (conjugate, LKJ)):
            raise StoreError(f"`prior` must be {conjugate.__name__} or LKJ where the covariance is {self.covariance}.")
        if self.prior.m.shape != (d,) or self.alpha.shape != (K,):
            raise StoreError(
                f"`prior.m` must have shape ({d},) and `alpha` ({K},); got {self.prior.m.shape}, {self.alpha.shape}."
            )
        positive("alpha", self.alpha, error=StoreError)
        exact, groups = self.posterior, 1 if shared else K
        if exact is not None:
            kind = NIGPosterior if self.covariance == "diagonal" else NIWPosterior
            if not isinstance(exact, kind) or isinstance(self.prior, LKJ):
                raise StoreError(f"`posterior` must be {kind.__name__} where the covariance is {self.covariance}.")
            if np.isfinite(exact.log_evidence) != self.prior.is_proper:
                raise StoreError(
                    "`posterior.log_evidence` must be a number where the prior is proper, and nan elsewhere."
                )
            if exact.m.shape != (K, d):
                raise StoreError(f"`posterior.m` must have shape {(K, d)}; got {exact.m.shape}.")
            if isinstance(exact, NIWPosterior) and isinstance(self.moments, ObservedCounts):
                raise StoreError("`posterior` of rows with gaps is exact for the naive model only.")
            if isinstance(exact, NIWPosterior) and len(exact.Psi) != groups:
                raise StoreError(f"`posterior.Psi` must hold {groups} matrices; got {len(exact.Psi)}.")
            if isinstance(self.moments, Moments):
                self._check_update(exact)
        if self.draws is not None:
            _check_draws(self.draws, K, d, () if shared else (K,))

    def _check_update(self, exact: NIWPosterior | NIGPosterior) -> None:
        """Raise `StoreError` unless the posterior is what prior and moments make of it."""
        assert isinstance(self.moments, Moments)
        start: NIWPosterior | NIGPosterior
        try:
            if isinstance(self.prior, NIW):
                shared = self.covariance == "shared"
                start = NIWPosterior.from_prior(self.prior, Dirichlet(self.alpha), self.K, shared=shared)
            else:
                assert isinstance(self.prior, NIG)
                start = NIGPosterior.from_prior(self.prior, Dirichlet(self.alpha), self.K)
            wanted = start.update(self.moments)
        except (ValueError, np.linalg.LinAlgError) as error:
            raise StoreError(f"`moments` do not fit the prior: {error}") from None
        for name in ("m", "kappa", "Psi", "nu", "a", "b", "alpha"):
            if hasattr(wanted, name):
                ours, theirs = getattr(wanted, name), getattr(exact, name)
                # Sums in another order round otherwise; where rows came and went, by more.
                if not np.abs(ours - theirs).max() <= 1e-6 * np.abs(ours).max():
                    raise StoreError(f"`posterior.{name}` must be what the prior and the moments make it.")


def _check_draws(draws: Mapping[str, Floats], K: int, d: int, groups: tuple[int, ...]) -> None:
    if draws["pi"].ndim != 2 or 0 in draws["pi"].shape:
        raise StoreError(f"`pi` must have 2 axes, none empty; got shape {draws['pi'].shape}.")
    S = len(draws["pi"])
    shapes = {"pi": (S, K), "mu": (S, K, d), "sigma2": (S, K, d), "Sigma": (S, *groups, d, d)}
    for name, value in draws.items():
        if value.shape != shapes[name]:
            raise StoreError(f"`{name}` must have shape {shapes[name]}; got {value.shape}.")
        finite(name, value, largest=LARGEST_STORED, error=StoreError)
    if (draws["pi"] < 0).any():  # a rare class may have a share that rounds to 0
        raise StoreError(f"`pi` must not be negative; got {draws['pi'].min():g}.")
    if "sigma2" in draws:
        positive("sigma2", draws["sigma2"], error=StoreError)
        return
    try:
        np.linalg.cholesky(draws["Sigma"])
    except np.linalg.LinAlgError:
        raise StoreError("`Sigma` must be positive definite in every draw.") from None


def gaussian_density(moments: Moments, prior: NIW | NIG | LKJ, alpha: Floats, covariance: Covariance) -> Parts:
    """Return the log posterior in the coordinates and the order of the PyMC model; tests hold the two equal."""
    block: Block
    if isinstance(prior, NIG):
        block = NaiveBlock(moments, prior)
    elif isinstance(prior, NIW):
        block = BartlettBlock(moments, prior, covariance == "shared")
    elif covariance == "diagonal":
        block = ScalesBlock(moments, prior)
    else:
        block = CholeskyBlock(moments, prior, covariance == "shared")
    return Parts([ClassBlock(moments.count, alpha), block])


@dataclass(frozen=True, slots=True, eq=False)
class AveragedClassifier(GenerativeClassifier):
    """Fitted regularised discriminant analysis: models between naive, LDA and QDA, averaged by their evidence.

    The moments of the rows say all: the grid of models is fitted to them when the classifier is made, in some
    hundredths of a second, so that the moments are all that travels or is stored.

    Parameters
    ----------
    moments
        Sufficient statistics of the training rows.
    alpha
        (K,) Dirichlet parameters of the class shares, before the data.
    pooled
        (d, d) covariance within classes that the targets are made of.
    grid
        Which models are averaged.

    Attributes
    ----------
    continuum
        The models with their weights; it follows from the others.
    """

    moments: Moments
    alpha: Floats
    pooled: Floats
    grid: Grid = field(default_factory=Grid)
    continuum: Continuum = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", frozen(self.alpha))
        object.__setattr__(self, "pooled", frozen(self.pooled))
        continuum = fit_continuum(self.moments, Dirichlet(self.alpha), pooled=self.pooled, grid=self.grid)
        object.__setattr__(self, "continuum", continuum)

    @property
    def averages_draws(self) -> bool:
        """Whether predictions are means over stored draws: they are sums of closed forms."""
        return False

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | D) (n, K) of rows (n, d), a sum of Student-t densities; NaN is integrated out."""
        if has_gaps(X):
            return self.continuum.average(lambda posterior: log_joint_observed(posterior, X))
        return self.continuum.log_joint(X)

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `pi` (size, K), `mu` (size, K, d) and `Sigma` (size, K, d, d), each from a model drawn by its weight."""
        return self.continuum.draw(size, random_seed=random_seed)

    def _cells(self, size: int, rng: np.random.Generator) -> list[tuple[NIWPosterior | NIGPosterior, int]]:
        counts = rng.multinomial(size, self.continuum.weight)
        return [(exact, int(count)) for exact, count in zip(self.continuum.posteriors, counts, strict=True) if count]

    def leave_one_out(self, X: Floats, y: NDArray[np.intp]) -> tuple[Floats, Floats] | None:
        """Return log p(x_i, y=k | D₋ᵢ) and log p(x_i, y=k | D) (n, K)."""
        return self.continuum.leave_one_out(X, y), self.continuum.log_joint(X)
