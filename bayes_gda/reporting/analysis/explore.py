"""What a reader can explore in the page: held-out rows, what their features contribute, and a model to ask "what if".

The page computes with plain numbers. A model whose log terms under a draw are quadratic in x, which linear and Gaussian
classifiers have, is handed over as coefficients of some thinned draws:

    log p(x, y=k | θ_s) = Σ_t c_skt m_t(z),    z = (x − mean)/sd,    m = (1, z₁, …, z_d, z₁², z₁z₂, …, z_d²)

and of p(y | x) alone the log odds against the first class, which are linear. They are found by interpolation and
checked at other points, so that no model need know of it; one that is not quadratic has no such panel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.families.gaussian.novelty import REFITS
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.novelty import Novelty

# Rows of the table; numbers (rows × features) whose contributions are computed.
MOST_ROWS, MOST_CONTRIBUTIONS = 400, 12_000
# Numbers of a model in the page, about 300 kB, and draws: at most and at the least.
MOST_NUMBERS, MOST_DRAWS, FEWEST_DRAWS = 40_000, 200, 60
# Points at which interpolated terms must agree, and how closely, in nats.
TESTED, CLOSE = 8, 1e-6
FEATURES = 30
SEED = 0
# Rate at which rows of the classes are called novel; multiplications of the refits behind the threshold, some 20 s.
FALSE_ALARM, MOST_NOVELTY = 0.01, 2e10


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutNovelty:
    """How far out the held-out rows lie, by a model of the features.

    Parameters
    ----------
    model
        Name of the model: the chosen one if it describes the features, else the best one that does.
    novelty
        Its tail probabilities of all held-out rows, and which are novel.
    """

    model: str
    novelty: Novelty


def detect_outlying(order: Sequence[str], models: Mapping[str, Scorecard]) -> HeldOutNovelty | None:
    """Return the novelty of the held-out rows by the first model in `order` that knows it; None if none does.

    The threshold comes from refits, whose cost is known: where it is beyond MOST_NOVELTY, nothing is said.
    """
    for name in order:
        card = models[name]
        assert card.test is not None
        X, train = card.test.X, card.train
        patterns = len(np.unique(np.isnan(X), axis=0))
        if patterns * REFITS * train.n * train.d**2 > MOST_NOVELTY:
            continue
        novelty = card.model.novelty(X, false_alarm=FALSE_ALARM, random_seed=card.settings.random_seed)
        if novelty is not None:
            return HeldOutNovelty(name, novelty)
    return None


def contributions(card: Scorecard, rows: NDArray[np.intp]) -> Floats | None:
    """Return by how much each feature moves the log odds of a row's most probable class; None if there are too many.

    (r, d): the log odds of each held-out row of `rows` less those with the feature at its mean over the training rows,
    or at the value nearest to it where the model knows some values only.
    """
    assert card.test is not None
    X, d, model = card.test.X[rows], card.test.d, card.model
    if len(rows) * d > MOST_CONTRIBUTIONS:
        return None
    own = card.log_probabilities[rows]
    top, at = own.argmax(axis=1), np.arange(len(rows))
    values = np.empty((len(rows), d))
    mean = np.nanmean(card.train.X, axis=0)
    for j in model.discrete_features:
        values_j = np.unique(card.train.X[:, j])
        mean[j] = values_j[np.nanargmin(np.abs(values_j - mean[j]))]
    for j in range(d):
        moved = X.copy()
        moved[:, j] = mean[j]
        values[:, j] = _log_odds(own)[at, top] - _log_odds(model.log_probabilities(moved))[at, top]
    values[np.isnan(X)] = 0.0  # a value that is missing moves nothing
    return values


def _log_odds(log_p: Floats) -> Floats:
    return np.asarray(log_p - np.log1p(-np.exp(np.minimum(log_p, -1e-12))))


@dataclass(frozen=True, slots=True, eq=False)
class Polynomial:
    """A model as polynomials of the standardised features, one for each draw and class.

    Parameters
    ----------
    coefficients
        (S, K, T) of the monomials.
    monomials
        T tuples of the features that are multiplied; () is 1.
    mean, sd
        (d,) of the training rows.
    generative
        Whether exp of the terms are densities p(x, y), by which draws weigh.
    """

    coefficients: Floats
    monomials: tuple[tuple[int, ...], ...]
    mean: Floats
    sd: Floats
    generative: bool

    def probabilities(self, X: Floats) -> tuple[Floats, Floats]:
        """Return p(y=k | x, θ_s) (S, n, K) and the weights (S, n) of the draws, as the page computes them."""
        terms = np.einsum("skt,nt->snk", self.coefficients, _expand(self.monomials, (X - self.mean) / self.sd))
        largest = terms.max(axis=2, keepdims=True)
        P = np.exp(terms - largest)
        total = P.sum(axis=2, keepdims=True)
        if not self.generative:
            return P / total, np.full(terms.shape[:2], 1 / len(terms))
        log_density = (largest + np.log(total))[..., 0]
        weight = np.exp(log_density - log_density.max(axis=0))
        return P / total, weight / weight.sum(axis=0)


def as_polynomial(model: FittedModel, train: Dataset) -> Polynomial | None:
    """Return a model as polynomials, or None if it is none, or too large for a page."""
    d, K = train.d, train.K
    if d > FEATURES:
        return None
    degree = 2 if model.generative else 1
    monomials = tuple(m for k in range(degree + 1) for m in combinations_with_replacement(range(d), k))
    size = min(MOST_DRAWS, MOST_NUMBERS // (K * len(monomials)))
    if size < FEWEST_DRAWS:
        return None
    variables = _thinned(model, size)
    mean, sd = np.nanmean(train.X, axis=0), np.nanstd(train.X, axis=0)
    if not (sd > 0).all():
        return None
    rng = np.random.default_rng(SEED)
    # Twice as many points as monomials determine them well.
    Z = rng.uniform(-1.5, 1.5, size=(2 * len(monomials) + TESTED, d))
    terms = model.log_terms(variables, mean + sd * Z)
    if not model.generative:
        terms = terms - terms[..., :1]
    M = _expand(monomials, Z)
    S = len(terms)
    used = slice(TESTED, None)
    flat = terms[:, used].transpose(1, 0, 2).reshape(len(Z) - TESTED, -1)
    solved = np.linalg.lstsq(M[used], flat, rcond=None)[0]
    coefficients = solved.T.reshape(S, K, len(monomials))
    fitted = np.einsum("skt,nt->snk", coefficients, M[:TESTED])
    if not np.abs(fitted - terms[:, :TESTED]).max() < CLOSE * (1 + np.abs(terms[:, :TESTED]).max()):
        return None
    return Polynomial(coefficients, monomials, mean, sd, model.generative)


def _thinned(model: FittedModel, size: int) -> dict[str, Floats]:
    """Return `size` draws of the parameters, spread over those that the model has."""
    many = model.draw_variables(max(size, MOST_DRAWS), random_seed=SEED)
    total = len(next(iter(many.values())))
    kept = np.linspace(0, total - 1, min(size, total)).round().astype(np.intp)
    return {name: x[kept] for name, x in many.items()}


def _expand(monomials: tuple[tuple[int, ...], ...], Z: Floats) -> Floats:
    """Return the monomials (n, T) of rows Z (n, d)."""
    return np.column_stack([Z[:, list(m)].prod(axis=1) for m in monomials])
