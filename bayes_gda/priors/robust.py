"""A default prior on the scale of the data that outliers do not set.

`NIW.default` takes its units from means and variances. A single row far out moves both at will, and with them the prior
of a model whose purpose is to resist that row. Here the rows are weighed first, by

    r_i = (ν + d)/(ν + δ_i),   δ_i = (x_i − μ_k)ᵀ Σ_k⁻¹ (x_i − μ_k),   ν = 4

the weights of a Student-t fit with four degrees of freedom: near one for most rows, near zero far out. With μ_k the
weighted mean and Σ_k the weighted scatter over the number of rows they sum to that number (Kent, Tyler & Vardi 1994),
so that the weighted moments are on the scale of Σ, and `NIW.default` of these is the prior, where rows are enough.
"""

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.priors.classes import draw_classes
from bayes_gda.priors.defaults import varied
from bayes_gda.priors.distributions import DEFAULT_FREEDOM, NIW
from bayes_gda.priors.units import degrees_of_freedom, pooled_scatter

# Few enough degrees of freedom to resist, many enough to be efficient for Gaussian rows (Lange, Little & Taylor 1989).
FREEDOM = 4.0
# The median absolute deviation of a Gaussian is σ/1.4826.
MAD = 1.4826
# Degrees of freedom of the scatter a feature, from which on the evidence may choose the scale of Ψ. With fewer it can
# be so small that a class shrinks to a single row, around which a Student-t density has no bound; then Ψ = ν D, as
# `NIW.default` has it without correlations.
ENOUGH = 2.0
# Weights need no more digits for the units of a prior.
TOLERANCE, MOST_ROUNDS = 1e-3, 100


def robust_default(X: Floats, y: NDArray[np.intp], K: int, weight: Floats | None = None) -> NIW:
    """Return `NIW.default` of the rows X (n, d) with class codes y (n,), each weighed by how far out it lies.

    Parameters
    ----------
    X, y, K
        Rows, class codes in 0…K−1, and the number of classes.
    weight
        (n,) how many rows each counts for; None for one.
    """
    count = np.ones(len(X)) if weight is None else weight
    robust = count * student_weights(X, y, count)
    moments = varied(Moments.from_arrays(X, y, K, sample_weight=robust))
    prior, f = NIW.default(moments), degrees_of_freedom(moments)
    if count.sum() - K >= ENOUGH * moments.d:
        return prior
    unit = float(pooled_scatter(moments)[0, 0]) / f
    return NIW(m=prior.m, kappa=prior.kappa, Psi=prior.Psi * (prior.nu * unit / prior.Psi[0, 0]), nu=prior.nu)


def student_weights(X: Floats, y: NDArray[np.intp], count: Floats) -> Floats:
    """Return the weights r (n,) of a Student-t fit with four degrees of freedom to each class.

    The scatter of a class is drawn to the spreads that all classes have in common, worth d + 2 rows, so that a class
    may have fewer rows than features.
    """
    spread, out = _pooled_spread(X, y, count), np.ones(len(X))
    for k in np.unique(y):
        mine = y == k
        out[mine] = _class_weights((X[mine] - weighted_median(X[mine], count[mine])) / spread, count[mine])
    return out


def _class_weights(Z: Floats, count: Floats) -> Floats:
    """Return the weights of the rows of one class, in units of the pooled spread and about the median."""
    d, own = Z.shape[1], Z.shape[1] + DEFAULT_FREEDOM
    r = (FREEDOM + d) / (FREEDOM + (Z**2).sum(axis=1))
    for _ in range(MOST_ROUNDS):
        w = count * r
        V = Z - w @ Z / w.sum()
        Sigma = ((V * w[:, None]).T @ V + own * np.eye(d)) / (count.sum() + own)
        before = r
        r = (FREEDOM + d) / (FREEDOM + ((V @ np.linalg.inv(np.linalg.cholesky(Sigma)).T) ** 2).sum(axis=1))
        if np.abs(r - before).max() < TOLERANCE:
            break
    return r


def weighted_median(X: Floats, count: Floats) -> Floats:
    """Return the least value (d,) of each feature below or at which half of the rows lie, counted by their weights."""
    order = np.argsort(X, axis=0, kind="stable")
    below = np.cumsum(count[order], axis=0)
    half = (below >= 0.5 * below[-1] * (1 - 1e-12)).argmax(axis=0)  # sums of weights round
    return np.asarray(np.take_along_axis(X, np.take_along_axis(order, half[None], axis=0), axis=0)[0])


def _pooled_spread(X: Floats, y: NDArray[np.intp], count: Floats) -> Floats:
    """Return the median absolute deviations (d,) from the class medians, as standard deviations of a Gaussian.

    Of a feature that has one value in most rows it is 0: then the standard deviation over all rows, or 1.
    """
    centred = X.copy()
    for k in np.unique(y):
        centred[y == k] -= weighted_median(X[y == k], count[y == k])
    spread = MAD * weighted_median(np.abs(centred), count)
    sd = np.sqrt(np.average((X - np.average(X, axis=0, weights=count)) ** 2, axis=0, weights=count))
    return np.where(spread > 0, spread, np.where(sd > 0, sd, 1.0))


def draw_student(
    prior: NIW, alpha: Floats, freedom: tuple[float, float], scales: str, size: int, random_seed: int
) -> dict[str, Floats]:
    """Draw what Student-t classes have from its prior: as `draw_classes`, and `nu` (size, K), or (size,) if shared."""
    drawn = draw_classes(prior, alpha, scales, size, random_seed)
    shape = (size,) if scales == "shared" else (size, len(alpha))
    excess = np.random.default_rng([random_seed, 1]).gamma(freedom[0], 1 / freedom[1], size=shape)
    return drawn | {"nu": 1 + excess}
