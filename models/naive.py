"""The naive Gaussian classifier: within a class, features are independent.

    π ~ Dirichlet(α)                              class probabilities
    σ²_kj ~ InverseGamma(a_j, b_j)                variance of feature j in class k
    μ_kj | σ²_kj ~ N(m_j, σ²_kj/κ_j)              its mean
    y_i | π ~ Categorical(π)
    x_ij | y_i = k ~ N(μ_kj, σ²_kj)

or, with an LKJ prior, whose correlations have no place here, σ_kj ~ HalfNormal(scale_j), μ_kj ~ N(m_j, mean_scale_j²).
It is QDA with diagonal covariances: boundaries are quadratic, of a restricted form.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.models.gaussian import unpack
from bayes_gda.models.incomplete import class_counts, default_nig_of, feature_moments
from bayes_gda.models.rows import SummedModel
from bayes_gda.models.signature import sign
from bayes_gda.priors import LKJ, NIG, Dirichlet


def build(
    data: Dataset | Moments,
    prior: NIG | LKJ | None = None,
    class_prior: Dirichlet | None = None,
    *,
    rowwise: bool = False,
) -> pm.Model:
    """Write the naive Gaussian classifier as a PyMC model.

    Parameters
    ----------
    data
        Rows, or their moments. Missing values (NaN) in the rows are integrated out.
    prior
        NIG (conjugate) or LKJ (its scales and means); None for the NIG default of the data.
    class_prior
        Dirichlet of π; None for the uniform one.
    rowwise
        Write the likelihood row by row, as above, in place of on the moments. Equal densities, at a cost that grows
        with n; the form to draw new data sets from. `pm.set_data` then also replaces the rows that are learnt.

    Notes
    -----
    On moments, `pm.compute_log_likelihood` has log p(y | x, θ) and log p(x | θ) of each row as `y` and `x`, and
    `pm.sample_posterior_predictive` draws `y` for the rows in the container `X`; see `bayes_gda.models.rows`. Row by
    row, `y` is the node above, of log π_y. Moments alone, and rows with weights, leave neither to PyMC.
    """
    moments, rows, coords = unpack(data, rowwise=rowwise)
    prior = prior or default_nig_of(data, moments)
    alpha = (class_prior or Dirichlet()).vector(moments.K)
    dims = ("class", "feature")

    with SummedModel(coords=coords) as model:
        pi = pm.Dirichlet("pi", a=alpha, dims="class")
        if isinstance(prior, NIG):
            sigma2 = pm.InverseGamma("sigma2", alpha=prior.a, beta=prior.b, dims=dims)
            mu = pm.Normal("mu", mu=prior.m, sigma=pt.sqrt(sigma2 / prior.kappa), dims=dims)
        else:
            sigma = pm.HalfNormal("sigma", sigma=prior.scale, dims=dims)
            sigma2 = pm.Deterministic("sigma2", sigma**2, dims=dims)
            mu = pm.Normal("mu", mu=prior.m, sigma=prior.mean_scale, dims=dims)
        if rowwise and rows is not None:
            X = pm.Data("X", rows.X, dims=("row", "feature"))
            y = pm.Categorical("y", p=pi, observed=rows.y, dims="row")
            pm.Normal("x", mu=mu[y], sigma=pt.sqrt(sigma2)[y], observed=X, dims=("row", "feature"))
        else:
            n, mean, squares = feature_moments(moments)
            # Σ_i log N(x_ij | μ_kj, σ²_kj) = −½ n_kj log 2πσ² − ½ [S_kjj + n_kj (x̄_kj − μ_kj)²]/σ²
            deviance = n * pt.log(2 * np.pi * sigma2) + (squares + n * (mean - mu) ** 2) / sigma2
            model.observe(
                {"y": pt.sum(class_counts(moments) * pt.log(pi)), "x": -0.5 * pt.sum(deviance)},
                rows,
                [pi, mu, sigma2],
                log_density=lambda k, x, mu, s2: log_normals(x, mu[k], s2[k]),
                draw=lambda y, mu, s2: pm.Normal.dist(mu[y], pt.sqrt(s2)[y]),
            )
    if not isinstance(moments, Moments):
        return model  # gaps have no hand-written density: it is sampled as the graph it is
    return sign(model, "naive", data=data, prior=prior, alpha=alpha, moments=moments)


def log_normals(x: TensorVariable, mu: TensorVariable, sigma2: TensorVariable) -> TensorVariable:
    """Return Σ_j log N(x_j | μ_j, σ²_j) (n,) over what was observed of rows x (n, d)."""
    missing = pt.isnan(x)
    log_density = pm.logp(pm.Normal.dist(mu, pt.sqrt(sigma2)), pt.switch(missing, mu, x))
    return pt.switch(missing, 0.0, log_density).sum(axis=1)
