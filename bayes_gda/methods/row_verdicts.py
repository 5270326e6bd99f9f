"""The verdict on single rows, whatever the model and however its posterior was found."""

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.monte_carlo import ERRORS, probabilities
from bayes_gda.prediction.row_errors import RowErrors, RowTrust, decide_rows, weighted_distance


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
    distance = weighted_distance(model, variables, verdict.importance.log_weights, X, P)
    return RowErrors(distance, distance, unknown)
