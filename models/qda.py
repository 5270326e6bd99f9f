"""Quadratic discriminant analysis: Gaussian classes, each with a covariance of its own.

    π ~ Dirichlet(α)                              class probabilities
    Σ_k ~ InverseWishart(Ψ, ν)                    covariance of class k
    μ_k | Σ_k ~ N(m, Σ_k/κ)                       mean of class k
    y_i | π ~ Categorical(π)
    x_i | y_i = k ~ N(μ_k, Σ_k)

or, with an LKJ prior, Σ_k = diag(s_k) R_k diag(s_k), s_kj ~ HalfNormal(scale_j), R_k ~ LKJ(η),
μ_kj ~ N(m_j, mean_scale_j²).
Because the Σ_k differ, log p(y=k | x) − log p(y=l | x) is quadratic in x.
"""

import pymc as pm
import pytensor.tensor as pt

from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.models.gaussian import inverse_wishart, lkj_covariance, unpack
from bayes_gda.models.incomplete import class_counts, default_niw_of, log_density_of_rows, log_likelihood
from bayes_gda.models.rows import SummedModel
from bayes_gda.models.signature import sign
from bayes_gda.priors import LKJ, NIW, Dirichlet


def build(
    data: Dataset | Moments,
    prior: NIW | LKJ | None = None,
    class_prior: Dirichlet | None = None,
    *,
    rowwise: bool = False,
) -> pm.Model:
    """Write QDA as a PyMC model.

    Parameters
    ----------
    data
        Rows, or their moments. Missing values (NaN) in the rows are integrated out.
    prior
        NIW (conjugate) or LKJ, the same for every class; None for the NIW default of the data.
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
    observed = None if rows is None else rows.observed
    prior = prior or default_niw_of(data, moments)
    alpha = (class_prior or Dirichlet()).vector(moments.K)

    with SummedModel(coords=coords) as model:
        pi = pm.Dirichlet("pi", a=alpha, dims="class")
        if isinstance(prior, NIW):
            L = inverse_wishart("Sigma", prior, classes=moments.K)
            mu = pm.MvNormal("mu", mu=prior.m, chol=L / prior.kappa**0.5, dims=("class", "feature"))
        else:
            L = lkj_covariance("Sigma", prior, classes=moments.K)
            mu = pm.Normal("mu", mu=prior.m, sigma=prior.mean_scale, dims=("class", "feature"))
        if rowwise and rows is not None:
            X = pm.Data("X", rows.X, dims=("row", "feature"))
            y = pm.Categorical("y", p=pi, observed=rows.y, dims="row")
            pm.MvNormal("x", mu=mu[y], chol=L[y], observed=X, dims=("row", "feature"))
        else:
            of_labels = pt.sum(class_counts(moments) * pt.log(pi))
            model.observe(
                {"y": of_labels, "x": log_likelihood(mu, L, moments)},
                rows,
                [pi, mu, L],
                log_density=lambda k, x, mu, L: log_density_of_rows(x, mu[k], L[k], observed),
                draw=lambda y, mu, L: pm.MvNormal.dist(mu=mu[y], chol=L[y]),
            )
    if not isinstance(moments, Moments):
        return model  # gaps have no hand-written density: it is sampled as the graph it is
    return sign(model, "qda", data=data, prior=prior, alpha=alpha, moments=moments)
