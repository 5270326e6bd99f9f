"""Weights of models whose predictions are to be averaged, from their cross-validated log densities of shared rows.

References
----------
Yao, Vehtari, Simpson & Gelman (2018), Using stacking to average Bayesian predictive distributions.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import softmax

from bayes_gda.checks import Floats, numbers
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.evaluation.calibration import LARGEST

# How far the mean log score may be from its maximum over the weights: sixth digit of what a report shows as third.
STACKING_GAP = 1e-6
# Least weight of a model: far below what a report shows.
TRACE = 1e-9
# Bootstrap samples of pseudo-BMA+, as many as in ArviZ and in R's loo.
BOOTSTRAPS = 1000


def stacking_weights(pointwise: ArrayLike) -> Floats:
    """Return the weights (M,) of the mixture of M models that predicts best: max_w Σ_i log Σ_m w_m p_im on the simplex.

    The problem is concave. With g_m = mean_i p_im / Σ_m w_m p_im no weights have a mean log score that is larger by
    more than log max_m g_m. Iterations stop once this bound is below 1e-6.

    Parameters
    ----------
    pointwise
        (n, M) log predictive densities, as of leave-one-out.
    """
    logs = _check_pointwise(pointwise)
    # Rows scaled by their largest density: a constant of the problem. One that no model admits does not bear on it.
    logs = logs[np.isfinite(logs).any(axis=1)]
    n, M = logs.shape
    if M == 1 or n == 0:
        return np.full(M, 1 / M)
    p = np.exp(logs - logs.max(axis=1, keepdims=True))

    def mixture(w: Floats) -> Floats:
        # A step of the optimiser may leave a row without any density.
        return np.asarray(np.maximum(p @ w, np.finfo(float).tiny))

    def gradient(w: Floats) -> Floats:
        return np.asarray((p / mixture(w)[:, None]).mean(axis=0))

    result = minimize(
        lambda w: -np.log(mixture(w)).mean(),
        np.full(M, 1 / M),
        jac=lambda w: -gradient(w),
        method="SLSQP",
        bounds=[(0, 1)] * M,
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": lambda w: np.ones(M)},
        options={"ftol": 1e-14, "maxiter": 500},
    )
    # A trace of every model, as the steps below cannot revive one that is at zero.
    w = np.clip(result.x, TRACE, None)
    w /= w.sum()
    # w ← w ∘ g keeps the simplex and never lowers the score (it is the EM step of a mixture): it clears what is left.
    for _ in range(5000):
        g = gradient(w)
        if np.log(g.max()) <= STACKING_GAP:
            return w
        w = w * g / (w @ g)
    raise ConvergenceError(f"Stacking stopped {np.log(g.max()):.1g} from the best mean log score.", partial=w)


def pseudo_bma_weights(pointwise: ArrayLike, *, random_seed: int = 0) -> Floats:
    """Return pseudo-BMA+ weights (M,): softmax of elpd, averaged over the Bayesian bootstrap of the rows.

    A model that held a row impossible gets 0; if each of them did so, all weights are nan.

    Parameters
    ----------
    pointwise
        (n, M) log predictive densities.
    random_seed
        Of the bootstrap.
    """
    logs = _check_pointwise(pointwise)
    if np.isneginf(logs).any(axis=0).all():
        return np.full(logs.shape[1], np.nan)
    rng = np.random.default_rng(random_seed)
    # Bootstrap weights of the rows are Dirichlet(1, …, 1): exponentials over their sum. One sample at a time, so that
    # memory stays at n.
    samples = (rng.standard_exponential(len(logs)) for _ in range(BOOTSTRAPS))
    weights = [softmax(len(logs) * (e / e.sum()) @ logs) for e in samples]
    return np.asarray(np.mean(weights, axis=0))


def _check_pointwise(pointwise: ArrayLike) -> Floats:
    """Return log densities (n, M), checked; those below −1e150 become −inf."""
    logs = numbers("pointwise", pointwise)
    if logs.ndim != 2 or 0 in logs.shape or not (logs <= LARGEST).all():
        raise DataError(f"`pointwise` must be (n, M) log densities, none of them nan; got shape {logs.shape}.")
    return np.where(logs < -LARGEST, -np.inf, logs)  # a density of e^(−1e150) is 0
