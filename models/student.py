"""Robust discriminant analysis: classes with multivariate Student-t densities, whose tails the data choose.

    π ~ Dirichlet(α)                              class probabilities
    Σ_k ~ InverseWishart(Ψ, ν₀)                   scale matrix of class k
    μ_k | Σ_k ~ N(m, Σ_k/κ)                       centre of class k
    ν_k = 1 + e_k,  e_k ~ Gamma(a, b)             degrees of freedom of class k
    y_i | π ~ Categorical(π)
    x_i | y_i = k ~ t(ν_k, μ_k, Σ_k)

With `shared`, one Σ and one ν for all classes: a robust LDA in place of a robust QDA. As ν → ∞ they are LDA and QDA. A
row at a squared distance δ from its class weighs (ν + d)/(ν + δ) in the estimates of μ and Σ, so that few rows far out
hardly move them. Gamma(2, 0.1) has its mode at 10 and its mean at 20 and leaves the tails to the data, from Cauchy's to
nearly Gaussian ones (Juárez & Steel 2010, who have it for ν itself). Tails heavier than Cauchy's are left out: as ν → 0
the density has no bound at its centre, so that with repeated rows and many features the posterior would be improper.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from bayes_gda.data.labels import coordinates
from bayes_gda.data.table import Dataset
from bayes_gda.models.gaussian import inverse_wishart
from bayes_gda.models.rows import Rows, SummedModel
from bayes_gda.models.signature import sign
from bayes_gda.priors import NIW, Dirichlet
from bayes_gda.priors.robust import robust_default


def build(
    data: Dataset,
    prior: NIW | None = None,
    class_prior: Dirichlet | None = None,
    *,
    shared: bool = False,
    freedom: tuple[float, float] = (2.0, 0.1),
    rowwise: bool = False,
) -> pm.Model:
    """Write discriminant analysis with Student-t classes as a PyMC model.

    Parameters
    ----------
    data
        Complete rows; with weights if some count more than once.
    prior
        Of centres and scale matrices, the same for every class; None for the robust default of the data.
    class_prior
        Dirichlet of π; None for the uniform one.
    shared
        One scale matrix and one ν for all classes.
    freedom
        Shape a and rate b of the gamma prior of ν − 1.
    rowwise
        Write the likelihood as observed variables, from which data sets can be drawn, in place of sums over the rows
        of a class. Equal densities; not for rows with weights.

    Notes
    -----
    Not row by row, `pm.compute_log_likelihood` has log p(y | x, θ) and log p(x | θ) of each row as `y` and `x`, and
    `pm.sample_posterior_predictive` draws `y` for the rows in the container `X`; see `bayes_gda.models.rows`. Rows
    with weights leave neither to PyMC.
    """
    data.require_complete("The Student-t model")
    prior = prior or robust_default(data.X, data.y, data.K, data.weight)
    alpha = (class_prior or Dirichlet()).vector(data.K)
    classes = None if shared else data.K

    with SummedModel(coords=coordinates(class_names=data.class_names, feature_names=data.feature_names)) as model:
        pi = pm.Dirichlet("pi", a=alpha, dims="class")
        L = inverse_wishart("Sigma", prior, classes=classes)
        mu = pm.MvNormal("mu", mu=prior.m, chol=L / prior.kappa**0.5, dims=("class", "feature"))
        dims = None if shared else "class"
        excess = pm.Gamma("nu_excess", alpha=freedom[0], beta=freedom[1], dims=dims)
        nu = pm.Deterministic("nu", 1 + excess, dims=dims)

        def own(value: TensorVariable, at: object) -> TensorVariable:
            return value if shared else value[at]

        if rowwise:
            X = pm.Data("X", data.X, dims=("row", "feature"))
            y = pm.Categorical("y", p=pi, observed=data.y, dims="row")
            pm.MvStudentT("x", nu=own(nu, y), mu=mu[y], chol=own(L, y), observed=X, dims=("row", "feature"))
        else:
            weight = np.ones(data.n) if data.weight is None else data.weight
            sums = {"y": pt.sum(np.bincount(data.y, weight, data.K) * pt.log(pi))}
            for k in range(data.K):
                mine = data.y == k
                log_t = log_student(data.X[mine], mu[k], own(L, k), own(nu, k))
                sums[f"x_{k}"] = pt.sum(weight[mine] * log_t)
            model.observe(
                sums,
                Rows(data.X, data.y) if data.weight is None else None,
                [pi, mu, L, nu],
                log_density=lambda k, x, mu, L, nu: log_student(x, mu[k], own(L, k), own(nu, k)),
                draw=lambda y, mu, L, nu: pm.MvStudentT.dist(nu=own(nu, y), mu=mu[y], chol=own(L, y)),
            )
    return sign(
        model, "student", data=data, prior=prior, alpha=alpha, freedom=freedom, scales="shared" if shared else "own"
    )


def log_student(
    X: np.ndarray | TensorVariable, mu: TensorVariable, L: TensorVariable, nu: TensorVariable
) -> TensorVariable:
    """Return log t(x | ν, μ, LLᵀ) of rows X (n, d).

    log Γ((ν+d)/2) − log Γ(ν/2) − ½ d log νπ − log|L| − ½(ν + d) log(1 + |L⁻¹(x − μ)|²/ν)
    """
    d = mu.shape[0]
    white = pt.linalg.solve_triangular(L, (X - mu).T, lower=True, b_ndim=2)
    constant = pt.gammaln((nu + d) / 2) - pt.gammaln(nu / 2) - 0.5 * d * pt.log(np.pi * nu)
    log_det = pt.log(pt.diagonal(L)).sum()
    return constant - log_det - 0.5 * (nu + d) * pt.log1p((white**2).sum(axis=0) / nu)
