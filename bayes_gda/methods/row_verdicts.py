"""The verdict on single rows, whatever the model and however its posterior was found."""

from collections.abc import Mapping

import numpy as np
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.monte_carlo import ERRORS, probabilities
from bayes_gda.prediction.row_errors import RowErrors, RowTrust, decide_rows


def judge_rows(model: FittedModel, verdict: Verdict, X: Floats, tolerance: float) -> RowTrust:
    """Return how far the probabilities of rows X (n, d) may be off.

    Parameters
    ----------
    model, verdict
        The fitted model, and the verdict on it, whose evidence is used.
    X
        Rows.
    tolerance
        How far a probability may be off.
    """
    P, error = probabilities(model, X)
    monte_carlo, link = error.max(axis=1, initial=0.0), model.link_errors(X)
    none = np.zeros(len(X))
    if verdict.verdict in ("exact", "sampled"):
        return RowTrust(np.full(len(X), verdict.verdict), none, monte_carlo, link, tolerance)
    errors = model.approximation_errors(X)
    if errors is None:
        errors = _by_weights(model, verdict, X, P)
    words = decide_rows(errors, ERRORS * monte_carlo + link, tolerance)
    return RowTrust(words, errors.own, monte_carlo, link, tolerance)


def _by_weights(model: FittedModel, verdict: Verdict, X: Floats, P: Floats) -> RowErrors:
    """Return the distance of the probabilities P (n, K) to those of weighted draws, with two of their errors."""
    unknown = np.full(len(X), np.nan)
    if verdict.importance is None or verdict.verdict == "needs-mcmc":
        return RowErrors(unknown, unknown, unknown)
    if verdict.verdict == "corrected" and model.averages_draws:  # they are those draws, whose error is Monte Carlo's
        return RowErrors(np.zeros(len(X)), unknown, np.zeros(len(X)))
    variables = model.variables_of(verdict.importance.draws)
    if variables is None:
        return RowErrors(unknown, unknown, unknown)
    weighted, error = _weighted(model, variables, verdict.importance.log_weights, X)
    distance = (np.abs(P - weighted) + ERRORS * error).max(axis=1, initial=0.0)
    return RowErrors(distance, distance, unknown)


def _weighted(
    model: FittedModel, variables: Mapping[str, Floats], log_weights: Floats, X: Floats
) -> tuple[Floats, Floats]:
    """Return class probabilities (n, K) over weighted draws, and their standard errors (n, K)."""
    P, error = np.empty((len(X), model.K)), np.empty((len(X), model.K))
    for rows in wide_blocks(len(X), len(log_weights) * model.K):
        log_f = log_weights[:, None, None] + model.log_terms(variables, X[rows])
        log_f -= logsumexp(log_f, axis=(0, 2), keepdims=True)
        f = np.exp(log_f)
        P[rows] = f.sum(axis=0)
        error[rows] = np.sqrt(((f - P[rows] * f.sum(axis=2, keepdims=True)) ** 2).sum(axis=0))
    return P, error
