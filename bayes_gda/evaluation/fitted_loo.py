"""Leave-one-out of any fitted model: in closed form, from its draws or weighted draws, and by refits where these fail.

A row whose k̂ is not below the threshold moves the posterior too far for weighting, and its estimate says nothing, not
even whether it matters. It is fitted anew without the row, by the method behind the other rows:

    exact posterior known          its closed form
    Laplace's approximation        the Gaussian at the mode without the row, some Newton steps from the mode with it;
                                   then of all rows, if that can be afforded, so that they are scored in one way
    weighted or sampled draws      drawn afresh, or moved to the posterior without the row, and weighed there

A refit costs some passes over the rows. They are made for the rows of largest k̂ first, up to MOST_WORK.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.evaluation.loo import Codes, GenerativeLoo, both_kinds, rank_bad, take_out
from bayes_gda.families.base import Family
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.density import Smooth
from bayes_gda.methods.importance.proposal import SplitT
from bayes_gda.methods.importance.trust import DRAWS
from bayes_gda.methods.importance.without import Without, draw_afresh, move_draws
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.methods.settings import Settings
from bayes_gda.methods.verdict import Importance
from bayes_gda.prediction.fitted import FittedModel, average_draws

# Numbers (draws × rows) of leave-one-out; beyond, draws are thinned, to no fewer than so many: a row takes a
# millisecond with 4000 draws, and 20 million take 160 MB.
MOST_NUMBERS, LEAST_DRAWS = 20_000_000, 4000
# Terms (draws × rows) of all refits together: some 15 s at 15 ns each. Newton steps cost dim² products a row, of which
# ten take as long as a term, and where a row's derivatives are differences some 5000 terms for each of dim² points.
MOST_WORK, PRODUCTS, DIFFERENCES = 1_000_000_000, 10, 5000
# Rounds of fresh draws, where moving does not do: up to five to fit the proposal, and a last one of up to eight times.
AFRESH = 10
# Effective draws that are moved for a refit: the error of a probability is then 2 % of its posterior sd.
EFFECTIVE = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Refits:
    """What leave-one-out needs for a fit without a row.

    Parameters
    ----------
    family
        Returns the model with its data and prior, or None if they are not known.
    gaussian
        Whether the posterior is Laplace's Gaussian, so that a refit must be one, too; else it is the posterior itself.
    settings
        Draws and seed.
    """

    family: Callable[[], Family | None]
    gaussian: bool
    settings: Settings


def model_loo(
    model: FittedModel,
    X: Floats,
    y: Codes,
    *,
    size: int,
    random_seed: int,
    importance: Importance | None = None,
    refits: Refits | None = None,
) -> GenerativeLoo:
    """Return leave-one-out of a fitted model: in closed form where it has one, else from its draws or weighted draws.

    Resampled draws repeat each other, and the tail that k̂ is fitted to would be made of copies: where the posterior is
    made of weighted draws, w_si ∝ w_s/L_si are smoothed. Of a model of p(y | x) alone, `joint` has no meaning.

    Parameters
    ----------
    model
        The fitted model.
    X, y
        (n, d) features and (n,) class codes: the rows that it was fitted to.
    size, random_seed
        Draws of the posterior, where it is not a set of weighted ones; fewer if draws × rows would be too many.
    importance
        The weighted draws behind a corrected posterior; None if it is not one.
    refits
        How to fit without a row where weighting fails; None leaves these rows as they are.
    """
    n = len(X)
    hardest = int(np.isnan(X).any(axis=1).argmax())  # a row with gaps, if there is one
    if model.leave_one_out(X[hardest : hardest + 1], y[hardest : hardest + 1]) is not None:
        left, full = np.empty((n, model.K)), np.empty((n, model.K))
        for rows in wide_blocks(n, model.K * X.shape[1]):
            both = model.leave_one_out(X[rows], y[rows])
            assert both is not None
            left[rows], full[rows] = both
        return both_kinds(left, full, y, None, None)
    most = max(LEAST_DRAWS, MOST_NUMBERS // n)
    log_weights = None
    if importance is None:
        variables = model.draw_variables(min(size, most), random_seed=random_seed)
    else:
        step = -(-len(importance.draws) // most)  # every step-th of independent draws
        variables = _variables_at(model, refits, importance.draws[::step])
        log_weights = importance.log_weights[::step]
    left, full, k, threshold = take_out(lambda rows: model.log_terms(variables, X[rows]), y, "model", log_weights)
    again = rank_bad(k, threshold)
    family = refits.family() if refits is not None and len(again) else None
    if refits is None or family is None:
        return both_kinds(left, full, y, k, threshold)
    if refits.gaussian and n * _newton_work(family, model) <= MOST_WORK:
        # Weights 1/L take the Gaussian for the posterior, a refit does not: all rows are scored in one way.
        again = np.argsort(-k, kind="stable")
    values, reliable = _refit_rows(family, refits, model, importance, X[again], y[again])
    refitted = again[reliable]
    left[refitted] = values[reliable]
    return both_kinds(left, full, y, k, threshold, refitted)


def _variables_at(model: FittedModel, refits: Refits | None, points: Floats) -> dict[str, Floats]:
    """Return the parameters (S, …) at stored coordinates (S, dim); a model that cannot say leaves it to its family."""
    at = model.variables_of(points)
    if at is not None:
        return at
    family = None if refits is None else refits.family()
    assert family is not None
    return family.from_coordinates(family.target_coordinates(points)).draw_variables(len(points))


def _newton_work(family: Family, model: FittedModel) -> int:
    """Return the cost of finding the mode without a row, in terms."""
    squares = family.target.dim**2
    return family.cost_rows * (1 + squares // PRODUCTS) + (DIFFERENCES * squares if model.generative else 0)


def _refit_rows(
    family: Family, refits: Refits, model: FittedModel, importance: Importance | None, X: Floats, y: Codes
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return log p(x_i, k | D₋ᵢ), or log p(k | x_i, D₋ᵢ), (r, K) of rows by refits, and which are reliable (r,)."""
    values, reliable = np.zeros((len(X), model.K)), np.zeros(len(X), dtype=np.bool_)
    exact = None if refits.gaussian else family.exact()
    closed = None if exact is None else exact.model.leave_one_out(X, y)
    if closed is not None:
        return closed[0], ~reliable
    points = importance.draws if importance is not None else model.coordinates
    points = None if points is None else family.target_coordinates(points)
    if not family.has_mode or (points is None and not refits.gaussian):
        return values, reliable  # there is no log posterior, or no draws in its coordinates
    target, source = family.target, None
    try:
        full = family.laplace()
    except ConvergenceError:  # a hierarchical scale may have no mode
        full = None
    if points is not None and not refits.gaussian:
        source = _Source.of(points, importance, target)
    scale = full.sd if full is not None else np.ones(target.dim) if source is None else source.draws.std(axis=0)
    work = 0
    for i in range(len(X)):
        if work > MOST_WORK:
            break
        row = slice(i, i + 1)
        without = Without(target, family.row_term(X[row], int(y[i]), scale))
        refit = None if full is None else _climb(without, full)
        work += _newton_work(family, model)
        if source is not None:
            try:
                weighed, terms = source.weigh(without, full, refit, refits.settings.random_seed)
            except ConvergenceError:  # no draw comes to the posterior without the row
                weighed, terms = None, len(source.draws)
            work += terms * family.cost_rows
            if weighed is not None:
                drawn = family.from_coordinates(weighed[0])
                log_f = drawn.log_terms(drawn.draw_variables(len(weighed[0])), X[row])[:, 0]
                values[i], reliable[i] = logsumexp(weighed[1][:, None] + log_f, axis=0), True
        elif refit is not None:
            fitted = family.from_gaussian(refit, refits.settings)
            closed_form = not fitted.generative and not fitted.averages_draws
            draws = None if closed_form else fitted.draw_variables(refits.settings.size)
            values[i] = (fitted.log_probabilities(X[row]) if draws is None else average_draws(fitted, draws, X[row]))[0]
            reliable[i] = True
    return values, reliable


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """Draws (S, dim) of the posterior with all rows, their normalised log weights (S,), and log p(w, D) (S,)."""

    draws: Floats
    log_weights: Floats
    log_p: Floats

    @classmethod
    def of(cls, points: Floats, importance: Importance | None, target: Smooth) -> "_Source":
        """Thin the draws to EFFECTIVE effective ones, or take all if they are fewer."""
        log_weights = np.zeros(len(points)) if importance is None else importance.log_weights
        log_weights = log_weights - logsumexp(log_weights)
        step = max(1, int(1 / np.exp(2 * log_weights).sum() / EFFECTIVE))
        points, log_weights = points[::step], log_weights[::step]
        return cls(points, log_weights - logsumexp(log_weights), target.log_density(points))

    def weigh(
        self, without: Without, full: GaussianPosterior | None, refit: GaussianPosterior | None, random_seed: int
    ) -> tuple[tuple[Floats, Floats] | None, int]:
        """Return draws of the posterior without a row and their log weights, None if unreliable; and points spent."""
        rng, spent, pair = np.random.default_rng(random_seed), 0, None
        start = SplitT.from_weighted(self.draws, np.exp(self.log_weights))
        if full is not None and refit is not None:
            pair, start, spent = (full, refit), SplitT.from_laplace(refit, refit.mean), DRAWS
            *fresh, reliable = draw_afresh(without, start, rng, adapt=False)
            if reliable:
                return (fresh[0], fresh[1]), spent
        *moved, reliable, rounds = move_draws(without, self.draws, self.log_weights, self.log_p, pair)
        spent += (rounds + 2) * len(self.draws)  # two for the slopes
        if reliable:
            return (moved[0], moved[1]), spent
        *fresh, reliable = draw_afresh(without, start, rng, adapt=True)
        return ((fresh[0], fresh[1]) if reliable else None), spent + AFRESH * DRAWS


def _climb(without: Without, full: GaussianPosterior) -> GaussianPosterior | None:
    """Return the Gaussian at the mode without the row, found from the mode with it; None if there is none."""
    try:
        return laplace_approximation(without, full.mean)
    except ConvergenceError:
        return None
