"""What the Gaussian models share: covariances by their Cholesky factors, and the likelihood on sufficient statistics.

A covariance is carried as its lower Cholesky factor L, Σ = LLᵀ, from the prior to the likelihood; it is never inverted.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from bayes_gda.data.gaps import PatternMoments
from bayes_gda.data.labels import coordinates
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.models.rows import Rows
from bayes_gda.priors import LKJ, NIW

# What the likelihood needs of the rows: of complete ones, or of those of each pattern of gaps.
Statistics = Moments | PatternMoments


def unpack(data: Dataset | Moments, *, rowwise: bool) -> tuple[Statistics, Rows | None, dict[str, list[str]]]:
    """Return the sufficient statistics, the rows that a PyMC model can hold, and the coords of the model.

    None are held of moments, and of rows with weights.
    """
    if isinstance(data, Dataset):
        coords = coordinates(class_names=data.class_names, feature_names=data.feature_names)
        if rowwise:
            data.require_complete("The row-wise form")
            if data.weight is not None:
                raise DataError("The row-wise form has no weights. Leave `rowwise` out, or repeat the rows.")
        rows = Rows(data.X, data.y) if data.weight is None else None
        if data.has_missing:
            return PatternMoments.from_arrays(data.X, data.y, data.K), rows, coords
        return Moments.from_arrays(data.X, data.y, data.K, sample_weight=data.weight), rows, coords
    if rowwise:
        raise DataError("The row-wise form needs the rows. Give a Dataset in place of Moments.")
    return data, None, coordinates(class_names=range(data.K), feature_names=[f"x{j + 1}" for j in range(data.d)])


def inverse_wishart(name: str, prior: NIW, classes: int | None = None, *, over: str = "class") -> TensorVariable:
    """Give Σ ~ IW(Ψ, ν) a name and return its Cholesky factor L, one per class (or `over`) if `classes` are given.

    With Ψ = CCᵀ and T lower triangular with T_jj² ~ χ²(ν − d + j), j = 1…d, and T_ij ~ N(0, 1) below the diagonal,
    TᵀT is Wishart(ν, I) (Bartlett), so Σ = LLᵀ with L = C T⁻¹: independent standard variables, no matrix constraints.
    """
    d = len(prior.m)
    batch = () if classes is None else (classes,)
    below = np.tril_indices(d, -1)
    squares = pm.ChiSquared(f"{name}_chi2", nu=prior.nu - d + np.arange(1, d + 1), shape=(*batch, d))
    T = pt.zeros((*batch, d, d))
    T = T[..., np.arange(d), np.arange(d)].set(pt.sqrt(squares))
    if d > 1:
        T = T[..., *below].set(pm.Normal(f"{name}_z", shape=(*batch, len(below[0]))))
    # L = C T⁻¹, solved as TᵀLᵀ = Cᵀ.
    Ct = np.broadcast_to(np.linalg.cholesky(prior.Psi).T, (*batch, d, d))
    L = pt.matrix_transpose(pt.linalg.solve_triangular(pt.matrix_transpose(T), Ct, lower=False, b_ndim=2))
    _name_covariance(name, L, None if classes is None else over)
    return L


def lkj_covariance(name: str, prior: LKJ, classes: int | None = None) -> TensorVariable:
    """Give Σ = diag(s) R diag(s) a name and return its Cholesky factor L, one per class if `classes` are given."""
    d = len(prior.m)
    factors = [
        pm.LKJCholeskyCov(
            f"{name}_chol{tag}",
            n=d,
            eta=prior.eta,
            sd_dist=pm.HalfNormal.dist(prior.scale, shape=d),
            store_in_trace=False,
        )[0]
        for tag in ([""] if classes is None else [f"_{k}" for k in range(classes)])
    ]
    L = factors[0] if classes is None else pt.stack(factors)
    # PyMC 6.3 adds the log of LKJ's integral where it should subtract it (for one 2 × 2 matrix with η = 2, log 4/3).
    # Sampling does not mind, but the evidence would.
    pm.Potential(f"{name}_lkj_constant", pt.constant(2 * len(factors) * prior.log_normalizer))
    _name_covariance(name, L, None if classes is None else "class")
    return L


def log_gaussian(x: TensorVariable, mu: TensorVariable, L: TensorVariable) -> TensorVariable:
    """Return log N(x | μ, LLᵀ) (n,) of rows x (n, d): all of them in one triangular solve."""
    white = pt.linalg.solve_triangular(L, (x - mu).T, lower=True, b_ndim=2)
    return -0.5 * mu.shape[0] * np.log(2 * np.pi) - pt.log(pt.diagonal(L)).sum() - 0.5 * (white**2).sum(axis=0)


def log_likelihood_of_moments(mu: TensorVariable, L: TensorVariable, moments: Moments) -> TensorVariable:
    """Return Σ_i log N(x_i | μ_{y_i}, Σ) from the moments alone, in O(K d³) whatever the number of rows.

    Σ_k −n_k (d/2 log 2π + log|L_k|) − ½ |L_k⁻¹R_k|² − ½ n_k |L_k⁻¹(x̄_k − μ_k)|²,  with R_kR_kᵀ = S_k, the scatter.
    """
    n = moments.count
    roots = np.array([_root(S) for S in moments.scatter])
    # Columns of one right-hand side a class: the root of the scatter, and √n_k times the distance of the means.
    shift = pt.sqrt(n)[:, None] * (moments.mean - mu)
    rhs = pt.concatenate([roots, shift[:, :, None]], axis=2)
    if L.ndim == 2:  # one Σ: all classes side by side
        rhs = pt.moveaxis(rhs, 0, 1).reshape((moments.d, -1))
    white = pt.linalg.solve_triangular(L, rhs, lower=True, b_ndim=2)
    log_det = pt.log(pt.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    return -0.5 * moments.n * moments.d * np.log(2 * np.pi) - pt.sum(n * log_det) - 0.5 * pt.sum(white**2)


def _name_covariance(name: str, L: TensorVariable, over: str | None) -> None:
    dims = ("feature", "feature_bis") if over is None else (over, "feature", "feature_bis")
    pm.Deterministic(name, L @ pt.matrix_transpose(L), dims=dims)


def _root(S: np.ndarray) -> np.ndarray:
    """Return R with RRᵀ = S for a scatter matrix, also a singular one (fewer rows than features)."""
    values, vectors = np.linalg.eigh(S)
    return vectors * np.sqrt(np.maximum(values, 0))  # a scatter has no negative eigenvalue but by rounding
