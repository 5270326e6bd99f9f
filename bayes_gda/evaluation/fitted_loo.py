"""Leave-one-out of any fitted model: in closed form, from its draws, or from the weighted draws behind it."""

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.evaluation.loo import Codes, GenerativeLoo, both_kinds, take_out
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.verdict import Importance
from bayes_gda.prediction.fitted import FittedModel

# Numbers (draws × rows) of leave-one-out; beyond, draws are thinned, to no fewer than so many: a row takes a
# millisecond with 4000 draws, and 20 million take 160 MB.
MOST_NUMBERS, LEAST_DRAWS = 20_000_000, 4000


def model_loo(
    model: FittedModel, X: Floats, y: Codes, *, size: int, random_seed: int, importance: Importance | None = None
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
        variables = model.variables_of(importance.draws[::step])
        log_weights = importance.log_weights[::step]
    left, full, k, threshold = take_out(lambda rows: model.log_terms(variables, X[rows]), y, "model", log_weights)
    return both_kinds(left, full, y, k, threshold)
