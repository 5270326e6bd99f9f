"""Rows like no class, and what a missing column would be worth, for columns of any type.

A row is as far out for a class as its predictive density is low. With f_k(x) = Π_j p(x_j | y=k, D) over the columns
that the row has, p_k = P(f_k(x') ≤ f_k(x)) for a row x' of class k's predictive, found by simulation; counts and
categories have their place in it as well as measurements. A row is novel if the largest p_k is low: below the quantile
at which rows of the predictive are flagged at the chosen rate. The rate is that of rows of the posterior predictive.

A value that a column's distribution cannot have makes a row novel.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from bayes_gda.checks import Floats, finite, inside_unit
from bayes_gda.data.gaps import find_patterns
from bayes_gda.errors import DataError
from bayes_gda.families.mixed.classifier import MixedClassifier
from bayes_gda.linalg import wide_blocks
from bayes_gda.prediction.normalised import log_class_probabilities
from bayes_gda.prediction.novelty import Novelty

# Rows simulated of each class: a tail probability of 1 % is then known to 7 % of itself.
SIMULATED = 20_000


def detect_novelty(model: MixedClassifier, X: Floats, *, false_alarm: float = 0.01, random_seed: int = 0) -> Novelty:
    """Flag rows (n, d) that are far out for every class, at a chosen rate of false alarms.

    Parameters
    ----------
    model
        With its exact posterior.
    X
        Rows; NaN is a missing value, and is left out. A row with nothing observed is never novel.
    false_alarm
        Probability, between 0 and 1, that a new row of the classes is called novel.
    random_seed
        Of the simulation.
    """
    false_alarm = inside_unit("false_alarm", false_alarm)
    raw = np.column_stack([spec.read(X) for spec in model.prior.columns])
    impossible = (~np.isnan(raw) & np.isnan(np.column_stack(model.read(X)))).any(axis=1)
    rng = np.random.default_rng(random_seed)
    simulated = [_class_densities(model, k, rng) for k in range(model.K)]
    share = model.class_shares
    probability, threshold = np.ones((len(X), model.K)), np.zeros(len(X))
    values = model.column_densities(X)
    for observed, rows in find_patterns(np.where(np.isnan(raw), np.nan, 0.0)):
        if not observed.any():
            continue
        # f_k of simulated rows of class k, in order, and of the rows at hand
        own = [np.sort(simulated[k][:, k, observed].sum(axis=1)) for k in range(model.K)]
        tails = _tail_function(own)
        probability[rows] = tails(values[np.ix_(rows, range(model.K), np.flatnonzero(observed))].sum(axis=2))
        largest = [tails(part[:, :, observed].sum(axis=2)).max(axis=1) for part in simulated]
        threshold[rows] = _weighted_quantile(largest, share, false_alarm)
    probability[impossible] = 0.0
    novel = (probability.max(axis=1) < threshold) | impossible
    return Novelty(probability, threshold, novel, float(false_alarm))


def _class_densities(model: MixedClassifier, k: int, rng: np.random.Generator) -> Floats:
    """Return log p(x_j | y=k', D) (SIMULATED, K, C) of rows that are drawn from class k."""
    out = np.empty((SIMULATED, model.K, len(model.columns)))
    for j, column in enumerate(model.columns):
        draws = {name: value[:, k] for name, value in column.draw(SIMULATED, rng).items()}
        out[:, :, j] = column.log_predictive_of_many(column.draw_values(draws, rng))
    return out


def _tail_function(own: list[Floats]) -> Callable[[Floats], Floats]:
    def tails(log_f: Floats) -> Floats:
        # Equal densities, as of counts, are as far out: by rounding they may differ in the last digit.
        ranks = [np.searchsorted(values, log_f[:, k] + 1e-9, side="right") for k, values in enumerate(own)]
        return (np.column_stack(ranks) + 1) / (SIMULATED + 1)

    return tails


def _weighted_quantile(parts: list[Floats], share: Floats, q: float) -> float:
    values = np.concatenate(parts)
    weight = np.repeat(share / SIMULATED, SIMULATED)
    order = np.argsort(values)
    return float(values[order][np.searchsorted(np.cumsum(weight[order]), q)])


def worth_measuring(model: MixedClassifier, X: Floats, costs: ArrayLike | None = None) -> Floats:
    """Return by how much each missing column, if measured, would lower the expected loss (n, C); nan where known.

    worth_j = min_a E[L(a) | x_o] − E[ min_a E[L(a) | x_o, x_j] | x_o ] ≥ 0. As columns are independent within a class,
    p(y | x_o, x_j) ∝ p(y | x_o) p(x_j | y): a sum over the values of a category or count, an integral over those of
    a measurement.

    Parameters
    ----------
    model
        With its exact posterior.
    X
        Rows; NaN is a missing value.
    costs
        (A, K) loss of each action under each class; None counts errors.
    """
    K = model.K
    L = 1 - np.eye(K) if costs is None else finite("costs", costs, error=DataError)
    if L.ndim != 2 or L.shape[1] != K:
        raise DataError(f"`costs` must have shape (A, {K}), one column a class; got {L.shape}.")
    P = np.exp(log_class_probabilities(model.log_joint(X)))
    now = (P @ L.T).min(axis=1)
    out = np.full((len(X), len(model.columns)), np.nan)
    rng = np.random.default_rng(0)
    for j, (x, column) in enumerate(zip(model.read(X), model.columns, strict=True)):
        missing = np.flatnonzero(np.isnan(x))
        if not len(missing):
            continue
        _, weight = column.nodes(rng)  # (M, K)
        for rows in wide_blocks(len(missing), weight.size * len(L)):
            joint = P[missing[rows], None, :] * weight  # p(k | x_o) p(x_m | k): (n, M, K)
            later = (joint @ L.T).min(axis=2).sum(axis=1)
            out[missing[rows], j] = np.maximum(now[missing[rows]] - later, 0.0)
    return out


def by_feature(model: MixedClassifier, by_column: Floats) -> Floats:
    """Return numbers of the columns (n, C) for the columns of X that each became (n, d)."""
    widths = [spec.stop - spec.start for spec in model.prior.columns]
    return np.repeat(by_column, widths, axis=1)
