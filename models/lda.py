"""Linear discriminant analysis: Gaussian classes that share one covariance.

    π ~ Dirichlet(α)                              class probabilities
    Σ ~ InverseWishart(Ψ, ν)                      the covariance of every class
    μ_k | Σ ~ N(m, Σ/κ)                           class means
    y_i | π ~ Categorical(π)
    x_i | y_i = k ~ N(μ_k, Σ)

or, with an LKJ prior, Σ = diag(s) R diag(s), s_j ~ HalfNormal(scale_j), R ~ LKJ(η), μ_kj ~ N(m_j, mean_scale_j²).
Because Σ is shared, log p(y=k | x) − log p(y=l | x) is linear in x: LDA learns a linear threshold unit.
"""

import pymc as pm
import pytensor.tensor as pt

from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.models.gaussian import inverse_wishart, lkj_covariance, unpack
from bayes_gda.models.incomplete import class_counts, default_niw_of, log_likelihood
from bayes_gda.models.signature import sign
from bayes_gda.priors import LKJ, NIW, Dirichlet


def build(
    data: Dataset | Moments,
    prior: NIW | LKJ | None = None,
    class_prior: Dirichlet | None = None,
    *,
    rowwise: bool = False,
) -> pm.Model:
    """Write LDA as a PyMC model.

    Parameters
    ----------
    data
        Rows, or their moments. Missing values (NaN) in the rows are integrated out.
    prior
        NIW (conjugate) or LKJ; None for the NIW default of the data.
    class_prior
        Dirichlet of π; None for the uniform one.
    rowwise
        Write the likelihood row by row, as above, in place of on the moments. Equal densities, at a cost that grows
        with n; the form to draw new data sets from.
    """
    moments, rows, coords = unpack(data, rowwise=rowwise)
    prior = prior or default_niw_of(data, moments)
    alpha = (class_prior or Dirichlet()).vector(moments.K)

    with pm.Model(coords=coords) as model:
        pi = pm.Dirichlet("pi", a=alpha, dims="class")
        if isinstance(prior, NIW):
            L = inverse_wishart("Sigma", prior)
            mu = pm.MvNormal("mu", mu=prior.m, chol=L / prior.kappa**0.5, dims=("class", "feature"))
        else:
            L = lkj_covariance("Sigma", prior)
            mu = pm.Normal("mu", mu=prior.m, sigma=prior.mean_scale, dims=("class", "feature"))
        if rows is not None:
            y = pm.Categorical("y", p=pi, observed=rows.y)
            pm.MvNormal("x", mu=mu[y], chol=L, observed=rows.X)
        else:
            pm.Potential("y", pt.sum(class_counts(moments) * pt.log(pi)))
            pm.Potential("x", log_likelihood(mu, L, moments))
    if not isinstance(moments, Moments):
        return model  # gaps have no hand-written density: it is sampled as the graph it is
    return sign(model, "lda", data=data, prior=prior, alpha=alpha, moments=moments)
