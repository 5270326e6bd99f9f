"""The likelihood of rows with gaps, what is missing integrated out, and of complete rows as the case of one pattern.

Rows of one class that lack the same features form a group, of which the moments of what was observed say all. So a
gradient costs as much for a million rows as for a hundred with the same patterns; see `inference.patterns`.
"""

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.tensor import TensorVariable

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import PatternMoments
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.models.gaussian import Statistics, log_gaussian, log_likelihood_of_moments
from bayes_gda.priors import NIG, NIW
from bayes_gda.priors.defaults import default_nig, default_niw


def log_likelihood(mu: TensorVariable, L: TensorVariable, statistics: Statistics) -> TensorVariable:
    """Return Σ_i log N(x_i | μ_{y_i}, Σ), Σ = LLᵀ, of all that was observed."""
    if isinstance(statistics, Moments):
        return log_likelihood_of_moments(mu, L, statistics)
    return log_likelihood_of_patterns(mu, L, statistics)


def log_likelihood_of_patterns(mu: TensorVariable, L: TensorVariable, data: PatternMoments) -> TensorVariable:
    """Return the log likelihood of rows with gaps, at a cost that grows with the patterns and not the rows.

    Σ_g −½ n_g p_g log 2π − n_g log|C_g| − ½ |C_g⁻¹R_g|² − ½ n_g |C_g⁻¹(x̄_g − μ)_o|²,   C_gC_gᵀ = P Σ P + I − P

    where P = diag(1 where observed) and RRᵀ is the scatter of group g.
    """
    both = data.observed[:, :, None] & data.observed[:, None, :]
    Sigma = L @ pt.matrix_transpose(L)
    Sigma = Sigma[data.label] if L.ndim == 3 else Sigma[None]
    C = pt.linalg.cholesky(pt.where(both, Sigma, np.eye(data.d)))
    shift = np.sqrt(data.count)[:, None] * pt.where(data.observed, data.mean - mu[data.label], 0.0)
    rhs = pt.concatenate([pt.as_tensor_variable(data.root), shift[:, :, None]], axis=2)
    white = pt.linalg.solve_triangular(C, rhs, lower=True, b_ndim=2)
    log_det = pt.log(pt.diagonal(C, axis1=-2, axis2=-1)).sum(axis=-1)
    constant = -0.5 * float(data.count @ data.observed.sum(axis=1)) * np.log(2 * np.pi)
    return constant - pt.sum(data.count * log_det) - 0.5 * pt.sum(white**2)


def log_density_of_rows(
    x: TensorVariable, mu: TensorVariable, L: TensorVariable, observed: NDArray[np.bool_] | None
) -> TensorVariable:
    """Return log N(x_o | μ_o, Σ_oo) (n,) of what was observed of each row; `observed` (n, d) is None if that is all."""
    if observed is None:
        return log_gaussian(x, mu, L)
    patterns, index = np.unique(observed, axis=0, return_inverse=True)
    out = pt.zeros(len(observed))
    for g, pattern in enumerate(patterns):
        rows, o = np.flatnonzero(index.ravel() == g), np.flatnonzero(pattern)
        if len(o):
            out = out[rows].set(log_gaussian(x[rows][:, o], mu[o], pt.linalg.cholesky((L @ L.T)[o][:, o])))
    return out


def class_counts(statistics: Statistics) -> Floats:
    """Return the rows (K,) of each class, also those of which nothing was observed."""
    return statistics.count if isinstance(statistics, Moments) else statistics.class_count


def feature_moments(statistics: Statistics) -> tuple[Floats, Floats, Floats]:
    """Return number, mean and sum of squares about it of each class and feature, (K, d) or broadcast to it."""
    if isinstance(statistics, Moments):
        squares = np.diagonal(statistics.scatter, axis1=1, axis2=2)
        return statistics.count[:, None], statistics.mean, squares
    return statistics.by_feature()


def default_niw_of(data: Dataset | Moments, statistics: Statistics) -> NIW:
    """Return the default prior on the scale of what was observed."""
    if isinstance(statistics, Moments):
        return NIW.default(statistics)
    assert isinstance(data, Dataset)
    return default_niw(data.X, data.y, data.K)


def default_nig_of(data: Dataset | Moments, statistics: Statistics) -> NIG:
    """Return the naive model's default prior on the scale of what was observed."""
    if isinstance(statistics, Moments):
        return NIG.default(statistics)
    assert isinstance(data, Dataset)
    return default_nig(data.X, data.y, data.K)
