"""What every fitted model answers: a posterior, however it was found, and what it says of new rows.

    discriminative    p(y=k | x, D) = ∫ p(y=k | x, θ) p(θ | D) dθ
    generative        p(y=k | x, D) ∝ ∫ p(x, y=k | θ) p(θ | D) dθ

A generative model averages the joint *densities* and then normalises. Averaging p(y=k | x, θ) instead would ignore that
x itself says something about θ, and is another, wrong number.

A model says what its `log_terms` are under draws θ_s, log p(x, y=k | θ_s) or log p(y=k | x, θ_s), and how it draws; all
else follows from these, and a model that has closed forms overrides what they make faster. All work goes in blocks of
rows: memory beside the answer does not grow with n.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.linalg import wide_blocks
from bayes_gda.prediction.normalised import generative_draws
from bayes_gda.prediction.novelty import Novelty
from bayes_gda.prediction.shift import log_share_ratio
from bayes_gda.priors import Seed

if TYPE_CHECKING:
    from bayes_gda.prediction.row_errors import RowErrors

# Batches of draws whose means tell the error of the mean of all. 50 of them know a standard error to 10 %; of 4000
# draws each has 80, so that chains whose draws are correlated over 10 of them have their error understated by 6 %.
BATCHES = 50
# Numbers of all draws of the parameters together, beyond which they are not made at once: 400 MB, and as many again for
# each of their factors; and of those that are made at a time.
MOST_NUMBERS, CHUNK_NUMBERS = 50_000_000, 10_000_000


@dataclass(frozen=True, slots=True, eq=False)
class EntropySplit:
    """Predictive entropy in nats, H[p̄] = E H[p] + (H[p̄] − E H[p]).

    Parameters
    ----------
    total
        (n,) H[p̄], the entropy of the predictive probabilities.
    aleatoric
        (n,) E H[p]: what would remain if the parameters were known.
    epistemic
        (n,) the difference: the information that knowing the parameters would add, never negative (Jensen).
    """

    total: Floats
    aleatoric: Floats
    epistemic: Floats

    @classmethod
    def of(cls, total: Floats, aleatoric: Floats) -> Self:
        """Split `total` into `aleatoric` and the rest."""
        # Jensen makes the difference ≥ 0; where s² is tiny rounding and quadrature leave about −1e-9, which means 0.
        aleatoric = np.minimum(aleatoric, total)
        return cls(total, aleatoric, total - aleatoric)


@dataclass(frozen=True, slots=True, eq=False)
class RowDraws:
    """Draws of what single rows need of the parameters, where draws of all of these would be large.

    Those of one row are what draws of θ would make of it; those of several rows are not of the same θ.

    Parameters
    ----------
    log_pi
        (S, K) log class shares.
    log_density
        From rows (n, d) to log p(x | y=k, θ_s) (S, n, K).
    """

    log_pi: Floats
    log_density: Callable[[Floats], Floats]

    def probability_draws(self, X: Floats, class_prior: ArrayLike | None = None) -> tuple[Floats, Floats | None]:
        """Return p(y=k | x, θ_s) (S, n, K) and weights ∝ p(x | θ_s) (S, n), as `FittedModel.probability_draws` does."""
        terms, K = self.log_density(X), self.log_pi.shape[1]
        if class_prior is None:
            return generative_draws(terms + self.log_pi[:, None])
        return generative_draws(terms + log_share_ratio(np.full(K, 1 / K), class_prior, K))


class FittedModel:
    """A posterior and its predictions; subclasses say what their parameters are."""

    __slots__ = ()

    # Whether p(x, y) is modelled, or p(y | x) alone.
    generative: ClassVar[bool] = False

    if TYPE_CHECKING:  # a property here would be taken for the default of a subclass's field

        @property
        def K(self) -> int:
            """Number of classes."""

    @property
    def d(self) -> int:
        """Number of features."""
        raise NotImplementedError

    @property
    def class_shares(self) -> Floats:
        """The shares (K,) of the classes that the probabilities stand on."""
        raise NotImplementedError

    @property
    def evidence_of(self) -> Literal["joint", "mixed", "conditional"]:
        """What its evidence is of: p(X, y) as a density, or with probabilities of discrete columns; or p(y | X)."""
        return "joint" if self.generative else "conditional"

    @property
    def discrete_features(self) -> frozenset[int]:
        """Features that the model knows at some values only, as counts and levels; between these it sees nothing."""
        return frozenset()

    @property
    def averages_draws(self) -> bool:
        """Whether predictions are means over stored draws, not closed forms."""
        raise NotImplementedError

    @property
    def coordinates(self) -> Floats | None:
        """The stored draws as points (S, dim) of the model's unconstrained coordinates; None if these are not known."""
        return None

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw the parameters, `{name: (size, …)}`."""
        raise NotImplementedError

    def variables_of(self, W: Floats) -> dict[str, Floats] | None:
        """Return the parameters (S, …) at points W (S, dim) of the model's unconstrained coordinates; None if unknown.

        A model made of draws alone has left the way from coordinates to parameters to its family.
        """
        return None

    def log_terms(self, variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return log p(x, y=k | θ_s), or log p(y=k | x, θ_s) if x is not modelled, (S, n, K)."""
        raise NotImplementedError

    def log_probabilities(self, X: Floats, class_prior: ArrayLike | None = None) -> Floats:
        """Return log p(y=k | x, D) (n, K); other class shares (K,) move the log-odds by log π'_k/π_k."""
        raise NotImplementedError

    def novelty(
        self, X: Floats, *, false_alarm: float = 0.01, default_prior: bool = True, random_seed: int = 0
    ) -> Novelty | None:
        """Return how far out rows X (n, d) lie for each class; None if the model knows no density that would say it.

        Parameters
        ----------
        X
            Rows; NaN is a missing value, which is left out.
        false_alarm
            Probability, between 0 and 1, that a new row of the classes is called novel.
        default_prior
            Whether the prior is the default one, which other training rows would have chosen anew.
        random_seed
            Of the simulation behind the threshold.
        """
        return None

    def probability_draws(
        self, variables: Mapping[str, Floats], X: Floats, class_prior: ArrayLike | None = None
    ) -> tuple[Floats, Floats | None]:
        """Return p(y=k | x, θ_s) (S, n, K) and weights ∝ p(x | θ_s) (S, n), None if all weigh alike.

        Their weighted mean is `log_probabilities`, under other class shares (K,) too. Then x says something of θ in a
        regression as well, and the draws have weights; see `prediction.shift`.
        """
        if class_prior is None and not self.generative:
            return np.exp(self.log_terms(variables, X)), None
        return generative_draws(self.terms_under(class_prior, variables, X))

    def terms_under(self, class_prior: ArrayLike | None, variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return `log_terms` where the class shares are `class_prior` (K,), up to what a row's entries have in common.

        They take the place of the draw's own shares if it has any, else of those that the probabilities stand on.
        """
        if class_prior is None:
            return self.log_terms(variables, X)
        old = self.class_shares
        if self.generative and "pi" in variables:
            variables, old = dict(variables) | {"pi": np.ones_like(variables["pi"])}, np.full(self.K, 1 / self.K)
        return self.log_terms(variables, X) + log_share_ratio(old, class_prior, self.K)

    def log_likelihood(self, variables: Mapping[str, Floats], X: Floats, y: NDArray[np.intp]) -> Floats:
        """Return the term (S, n) of each row's own class: joint for a generative model, else conditional."""
        out = np.empty((len(next(iter(variables.values()))), len(X)))
        for rows in wide_blocks(len(X), len(out) * self.K):
            terms = self.log_terms(variables, X[rows])
            out[:, rows] = np.take_along_axis(terms, y[None, rows, None], axis=2)[..., 0]
        return out

    def batch_means(self, X: Floats) -> tuple[Floats, Floats] | None:
        """Return the log means (B, n, K) of the terms over batches of the stored draws, and the shares (B,) of these.

        Their mean by these shares is what `log_probabilities` normalises. None if predictions are closed forms.
        """
        return None

    # ── How far a probability may be off ────────────────────────────────────────────────────────────────────────────

    def approximation_errors(self, X: Floats) -> "RowErrors | None":
        """Return the estimated errors of rows (n, d) that are due to an approximate posterior; None if unknown here."""
        return None

    def link_errors(self, X: Floats) -> Floats:
        """Return the errors (n,) of an approximate link: none by default."""
        return np.zeros(len(X))

    # ── Closed forms, where a model has them ────────────────────────────────────────────────────────────────────────

    def leave_one_out(self, X: Floats, y: NDArray[np.intp]) -> tuple[Floats, Floats] | None:
        """Return log p(x_i, y=k | all rows but i) and log p(x_i, y=k | all rows), (n, K) each; None without a form."""
        return None

    def log_odds(self, size: int, random_seed: Seed = None) -> Callable[[Floats], Floats] | None:
        """Return a fast function from complete rows (n, d) to log p(y=k | x, θ_s)/p(y=0 | x, θ_s) (n, K−1, size)."""
        return None

    def row_draws(self, size: int, random_seed: Seed = None) -> RowDraws | None:
        """Return draws that are right for each row by itself, without drawing all parameters; None without a form."""
        return None

    def closed_interval(self, X: Floats, prob: float) -> Floats | None:
        """Return the central credible intervals (n, K, 2) of p(y=k | x, θ), or None."""
        return None

    def closed_entropy(self, X: Floats) -> EntropySplit | None:
        """Return the split of the predictive entropy, or None."""
        return None


def average_draws(
    model: FittedModel, variables: Mapping[str, Floats], X: Floats, class_prior: ArrayLike | None = None
) -> Floats:
    """Return the log of the mean of the model's terms over draws (n, K): log p(x, y=k | D), or log p(y=k | x, D)."""
    S = len(next(iter(variables.values())))
    out = np.empty((len(X), model.K))
    for rows in wide_blocks(len(X), S * model.K):
        out[rows] = logsumexp(model.terms_under(class_prior, variables, X[rows]), axis=0) - np.log(S)
    return out


def in_batches(S: int, log_mean: Callable[[slice], Floats]) -> tuple[Floats, Floats]:
    """Return `log_mean` (n, K) of batches of S draws, in their order, (B, n, K), and the batches' shares (B,)."""
    B = max(1, min(BATCHES, S // 2))  # a batch has two draws at least
    edges = np.linspace(0, S, B + 1).round().astype(int)
    return np.stack([log_mean(slice(a, b)) for a, b in pairwise(edges.tolist())]), np.diff(edges) / S


def numbers_of_draw(model: FittedModel) -> int:
    """Return how many numbers one draw of the parameters has: 250 000 for a covariance of 500 features."""
    return sum(x.size for x in model.draw_variables(1, random_seed=0).values())


def in_chunks(model: FittedModel, size: int, rng: np.random.Generator) -> Iterator[dict[str, Floats]]:
    """Yield `size` draws of the parameters: all at once, or some at a time where they are large and not there yet."""
    step = max(size, 1)
    if not model.averages_draws and (numbers := numbers_of_draw(model)) * size > MOST_NUMBERS:
        step = max(1, CHUNK_NUMBERS // numbers)
    for at in range(0, max(size, 1), step):
        yield model.draw_variables(min(step, size - at), random_seed=rng)


def choose_draws(available: int, size: int, random_seed: Seed) -> NDArray[np.intp] | slice:
    """Return indices of `size` draws: all, or evenly spread, which thins chains; with replacement if too few."""
    if size == available:
        return slice(None)
    if size < available:
        return np.linspace(0, available - 1, size).round().astype(np.intp)
    return np.random.default_rng(random_seed).integers(available, size=size)


def check_source(posterior: object, draws: Mapping[str, Floats] | Floats | None) -> None:
    """Raise unless a fitted model has either a posterior in closed form or draws."""
    if (posterior is None) == (draws is None):
        raise DataError("A fitted model needs either `posterior` or `draws`, not both or none.")
