"""What a fitted model does not know, and what to do all the same: intervals, entropies, decisions, class shares.

All rest on draws of the parameters θ_s ~ p(θ | D), the same ones for every row, or on closed forms where there
are any. They go in blocks of rows, so that memory does not grow with n.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, expit, softmax

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import has_gaps
from bayes_gda.errors import DataError
from bayes_gda.linalg import PARTS, WIDE_ELEMENTS, in_threads, one_blas_thread, wide_blocks
from bayes_gda.prediction.decisions import Decisions, decide, decide_with_draws
from bayes_gda.prediction.fitted import MOST_NUMBERS, EntropySplit, FittedModel, in_chunks, numbers_of_draw
from bayes_gda.prediction.shift import ClassPriorEstimate, add_training_error, estimate_class_prior, old_weights
from bayes_gda.priors import Seed

# Draws, and rows, behind what training adds to the errors of class shares: a standard deviation from 400 draws has an
# error of 4 %, and means over 2000 rows stand for those over more; fewer where classes are many, for the memory.
SHARE_DRAWS, SHARE_ROWS = 400, 2000


def interval(model: FittedModel, X: Floats, *, prob: float, size: int, random_seed: Seed = None) -> Floats:
    """Return the central credible interval (n, K, 2) of p(y=k | x, θ), θ ~ p(θ | D), that holds `prob` of it.

    In closed form where the model has one, otherwise from `size` draws.
    """
    if not 0 < prob < 1:
        raise DataError(f"`prob` must lie between 0 and 1; got {prob:g}. Use 0.9 for 90 %.")
    if (closed := model.closed_interval(X, prob)) is not None:
        return closed
    out = np.empty((len(X), model.K, 2))
    ends = [(1 - prob) / 2, (1 + prob) / 2]
    if not _are_large(model, size) and not has_gaps(X) and (odds := model.log_odds(size, random_seed)) is not None:

        def fill(rows: slice) -> None:
            out[rows] = _odds_interval(odds(X[rows]), ends)

        with one_blas_thread():
            for block in wide_blocks(len(X), size * (model.K - 1)):
                step = -(-(block.stop - block.start) // PARTS)
                in_threads(fill, [slice(i, min(i + step, block.stop)) for i in range(block.start, block.stop, step)])
        return out
    for rows, P, _ in _draws(model, X, size, random_seed):
        out[rows] = np.moveaxis(np.quantile(P, ends, axis=0), 0, -1)
    return out


def _are_large(model: FittedModel, size: int) -> bool:
    """Whether draws of the parameters, which are not there yet, would take much memory: covariances of 500 features."""
    return not model.averages_draws and numbers_of_draw(model) * size > MOST_NUMBERS


def _odds_interval(log_odds: Floats, ends: list[float]) -> Floats:
    """Return the quantiles (n, K, 2) over draws of the probabilities with log odds (n, K−1, S) against class 0.

    Sorted whole: NumPy sorts by vector instructions, nine times as fast as it partitions at four places.
    """
    n, others, S = log_odds.shape
    at = np.array(ends) * (S - 1)
    below = np.floor(at).astype(np.intp)
    share, above = at - below, np.minimum(below + 1, S - 1)
    if others == 1:  # a probability rises with its log odds: sort these, and turn few into probabilities
        places, inverse = np.unique(np.concatenate([below, above]), return_inverse=True)
        ordered = order_statistics(log_odds[:, 0], places)[:, None, inverse]
        low, high = ordered[..., : len(ends)], ordered[..., len(ends) :]
        first = expit(-low) + share * (expit(-high) - expit(-low))
        second = expit(low) + share * (expit(high) - expit(low))
        return np.concatenate([first[..., ::-1], second], axis=1)
    P = np.concatenate([np.zeros((n, 1, S)), log_odds], axis=1)
    P -= P.max(axis=1, keepdims=True)
    np.exp(P, out=P)
    P /= P.sum(axis=1, keepdims=True)
    P.sort(axis=2)
    return np.asarray(P[..., below] + share * (P[..., above] - P[..., below]))


def order_statistics(values: Floats, places: NDArray[np.intp]) -> Floats:
    """Return the entries (n, r) that stand at r places, in order, of each row of values (n, S) once sorted.

    Rounding to 32 bits keeps the order, and NumPy sorts these in half the time. So the entry that rounds to the one at
    a place is it; rows in which several do, a few in a thousand, are sorted as they are.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(np.float32)
    ordered = np.sort(rounded, axis=1)
    out, last, unclear = np.empty((len(values), len(places))), values.shape[1] - 1, np.zeros(len(values), dtype=bool)
    for r, place in enumerate(places.tolist()):
        at = ordered[:, place]
        index = (rounded == at[:, None]).argmax(axis=1)
        out[:, r] = values[np.arange(len(values)), index]
        unclear |= np.isnan(at)
        for beside in {max(place - 1, 0), min(place + 1, last)} - {place}:
            unclear |= ordered[:, beside] == at
    tied = np.flatnonzero(unclear)
    out[tied] = np.sort(values[tied], axis=1)[:, places]
    return out


def entropy(model: FittedModel, X: Floats, *, size: int, random_seed: Seed = None) -> EntropySplit:
    """Split the entropy of the predictive probabilities of each row into aleatoric and epistemic parts, in nats.

    For a generative model the mean is over p(θ | D, x), weights ∝ p(x | θ_s), so that the parts are those of the
    probabilities that the model reports.
    """
    if (closed := model.closed_entropy(X)) is not None:
        return closed
    total = entr(np.exp(model.log_probabilities(X))).sum(axis=1)
    aleatoric = np.empty(len(X))
    for rows, P, weight in _draws(model, X, size, random_seed):
        H = entr(P).sum(axis=2)
        aleatoric[rows] = H.mean(axis=0) if weight is None else (H * weight).sum(axis=0)
    return EntropySplit.of(total, aleatoric)


def decisions(
    model: FittedModel,
    X: Floats,
    costs: ArrayLike,
    *,
    size: int,
    random_seed: Seed = None,
    class_prior: ArrayLike | None = None,
    **options: Any,
) -> Decisions:
    """Choose the action of least expected loss for each row, and say how firm that choice is.

    Parameters
    ----------
    model, X
        The fitted model, and rows (n, d).
    costs
        (A, K), or (n, A, K) for costs that differ between rows; see `prediction.decisions`.
    size, random_seed
        Draws behind `probability_optimal` and `value_of_information`.
    class_prior
        (K,) class shares where the decisions are made, if they differ from those of the training rows.
    options
        `reject_cost` and `action_names` of `prediction.decisions.decide`.
    """
    probabilities = np.exp(model.log_probabilities(X, class_prior))
    made = decide(probabilities, costs, **options)  # also checks the costs, once
    C, reject = np.asarray(costs, dtype=np.float64), options.get("reject_cost")
    optimal, value = np.empty(made.expected_loss.shape), np.empty(len(X))
    for rows, P, weight in _draws(model, X, size, random_seed, class_prior):
        own = options | ({"reject_cost": np.broadcast_to(reject, len(X))[rows]} if reject is not None else {})
        part = decide_with_draws(probabilities[rows], P, C[rows] if C.ndim == 3 else C, weights=weight, **own)
        optimal[rows], value[rows] = part.probability_optimal, part.value_of_information
    return replace(made, probability_optimal=optimal, value_of_information=value)


def class_prior(
    model: FittedModel, X: Floats, *, trained: float = np.nan, random_seed: Seed = None
) -> ClassPriorEstimate:
    """Estimate the class shares of unlabelled rows (n, d), with errors that allow for what training leaves unsure.

    A draw of a generative model has its training shares π. Those of a regression are the mean of p(y=k | x, w) over the
    distribution of the training rows, which is known from as many rows itself:

        π(w_s) = π + E[p(· | x, w_s) − p(· | x)] + ε_s,   ε_s ~ N(0, cov[p(· | x)]/rows)

    so that π(w) moves with the intercept, and the density ratios p(y=k | x, w)/π_k(w) do not. E over training rows is
    the mean over the new ones with `old_weights`.

    Parameters
    ----------
    model, X
        The fitted model, and rows (n, d).
    trained
        Rows that the model was trained with, which a generative model knows. Without it, as in a file of a regression
        that an old version wrote, there are neither standard errors nor a p-value: they are nan.
    random_seed
        Of the draws.
    """
    old, log_p, rng = model.class_shares, model.log_probabilities(X), np.random.default_rng(random_seed)
    known, P = estimate_class_prior(log_p, old), np.exp(log_p)
    count = min(len(X), SHARE_ROWS, max(200, WIDE_ELEMENTS // (SHARE_DRAWS * model.K)))
    rows = np.linspace(0, len(X) - 1, count).round().astype(np.intp)
    chunks = [
        (model.probability_draws(variables, X[rows])[0], variables.get("pi"))
        for variables in in_chunks(model, SHARE_DRAWS, rng)
    ]
    draws = np.concatenate([part for part, _ in chunks])
    own = [part for _, part in chunks if part is not None]
    if not own and np.isnan(trained):
        nothing = np.full((model.K, model.K), np.nan)
        return replace(known, standard_error=nothing[0], covariance=nothing, p_value=np.nan)
    if own:
        shares = np.concatenate(own)
    else:
        weight, mean = old_weights(P[rows], old, known.prior), draws.mean(axis=0)
        centred = mean - weight @ mean
        noise = rng.standard_normal((SHARE_DRAWS, len(rows))) @ (centred * np.sqrt(weight / trained)[:, None])
        # π e^{δ/π} is π + δ to first order, and positive.
        shares = softmax(np.log(old) + (np.tensordot(draws - mean, weight, (1, 0)) + noise) / old, axis=1)
    return add_training_error(known, P, old, draws, shares)


def _draws(
    model: FittedModel, X: Floats, size: int, random_seed: Seed, class_prior: ArrayLike | None = None
) -> Iterator[tuple[slice, Floats, Floats | None]]:
    """Yield blocks of rows with draws of their probabilities; the same draws of the parameters serve all blocks."""
    blocks = wide_blocks(len(X), size * model.K)
    if _are_large(model, size) and (single := model.row_draws(size, random_seed)) is not None:
        for rows in blocks:
            yield rows, *single.probability_draws(X[rows], class_prior)
        return
    variables = model.draw_variables(size, random_seed=random_seed)
    for rows in blocks:
        yield rows, *model.probability_draws(variables, X[rows], class_prior)
