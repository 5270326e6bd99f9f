"""Pareto-smoothed importance sampling, in NumPy alone.

The largest importance ratios follow a generalised Pareto distribution with shape k. Its estimate k̂ says whether means
over the weighted draws can be trusted, and the fitted quantiles replace the noisy largest ratios.

ArviZ has the same (`arviz_stats`, to which the tests hold this), but importing it takes three times as long as fitting
and judging a model here.

References
----------
Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling, JMLR 25.
Zhang & Stephens (2009), A new and efficient estimation method for the generalized Pareto distribution.
"""

import numpy as np
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError

# Fewer exceedances than this do not fix a shape.
FEWEST = 5
# Ratios that vary by less than this are constant but for rounding: the proposal is the target, and there is no tail.
CONSTANT = 1e-8


def smooth(log_ratios: Floats) -> tuple[Floats, float, float]:
    """Pareto-smooth importance ratios; return normalised log weights (S,), k̂ and ESS/S = 1/(S Σw²).

    A ratio of −inf or nan (a draw where the target is zero or undefined) has weight zero. k̂ is inf if the tail cannot
    be fitted.
    """
    r = np.where(np.isnan(log_ratios), -np.inf, log_ratios)
    S = len(r)
    top = r.max()
    if not np.isfinite(top):
        raise ConvergenceError("The target is zero at every draw of the approximation. Use MCMC.")
    r = r - top
    # The tail: the largest min(S/5, 3√S) ratios, above a cutoff that is the largest of the rest.
    order = np.argsort(r, kind="stable")
    M = int(min(0.2 * S, 3 * np.sqrt(S)))
    tail, cutoff = order[S - M :], max(r[order[S - M - 1]], np.log(np.finfo(float).tiny))
    excess = np.exp(r[tail]) - np.exp(cutoff)
    k = np.inf
    if -cutoff < CONSTANT:
        k = 0.0
    elif M >= FEWEST and excess[0] >= 0 and excess[-1] > excess[0]:
        k, sigma = fit_pareto(excess)
        if np.isfinite(k):
            # Expected order statistics in place of the observed ones, none above the largest raw ratio.
            p = (np.arange(M) + 0.5) / M
            with np.errstate(over="ignore"):  # a tail of k in the hundreds: held by the largest ratio
                quantiles = -sigma * np.log1p(-p) if k == 0 else sigma * np.expm1(-k * np.log1p(-p)) / k
            r[tail] = np.minimum(np.log(quantiles + np.exp(cutoff)), 0.0)
    log_weights = r - logsumexp(r)
    return log_weights, float(k), float(1 / np.exp(2 * log_weights).sum() / S)


def fit_pareto(x: Floats) -> tuple[float, float]:
    """Estimate shape k and scale σ of a generalised Pareto distribution from sorted exceedances x (M,).

    With θ = −k/σ the likelihood of k is known given θ, so one averages over θ alone, on a grid that covers its quasi
    prior: k(θ) = mean log(1 − θx), log L(θ) = M [log(−θ/k) − k − 1]. The shape is drawn to ½ with the weight of ten
    observations, which steadies short tails.
    """
    M = len(x)
    quartile = x[int(M / 4 + 0.5) - 1]
    if not quartile > x[0]:
        return np.inf, np.nan
    grid = 30 + int(np.sqrt(M))
    theta = 1 / x[-1] + (1 - np.sqrt(grid / (np.arange(grid) + 0.5))) / (3 * quartile)
    shape = np.log1p(-theta[:, None] * x).mean(axis=1)
    log_like = M * (np.log(-theta / shape) - shape - 1)
    weight = np.exp(log_like - logsumexp(log_like))
    mean = float(theta @ weight)
    k = float(np.log1p(-mean * x).mean())
    return (M * k + 10 * 0.5) / (M + 10), -k / mean
