"""Classes that are mixtures of Gaussians: groups within a class that were not recorded.

    π ~ Dirichlet(α)                              class probabilities
    ω_k ~ Dirichlet(1, …, 1)                      weights of the C_k components of class k
    Σ_c ~ InverseWishart(Ψ, ν)                    covariance of component c
    μ_c | Σ_c ~ N(m, Σ_c/κ)                       centre of component c
    y_i | π ~ Categorical(π)
    x_i | y_i = k ~ Σ_{c of class k} ω_c N(μ_c, Σ_c)

The component of a row is summed out. The density would not change if components of a class changed places, so that the
prior allows one order only, of the centres along a fixed axis of the class, and is C_k! times as large there. With
covariances="shared", one Σ for all components of all classes; with "diagonal"

    σ²_cj ~ InverseGamma(a_j, b_j)                variance of feature j in component c
    μ_cj | σ²_cj ~ N(m_j, σ²_cj/κ_j)              its centre
"""

from typing import Any, Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable
from scipy.special import gammaln

from bayes_gda.checks import Floats
from bayes_gda.data.labels import coordinates
from bayes_gda.data.table import Dataset
from bayes_gda.models.gaussian import inverse_wishart, log_gaussian
from bayes_gda.models.naive import log_normals
from bayes_gda.models.rows import Rows, SummedModel
from bayes_gda.models.signature import sign
from bayes_gda.priors import NIG, NIW, Dirichlet
from bayes_gda.priors.mixture import component_default, ordering_axes


def build(
    data: Dataset,
    components: tuple[int, ...],
    prior: NIW | NIG | None = None,
    class_prior: Dirichlet | None = None,
    *,
    covariances: Literal["own", "shared", "diagonal"] = "own",
    axis: Floats | None = None,
) -> pm.Model:
    """Write discriminant analysis with mixtures of Gaussians as a PyMC model.

    Parameters
    ----------
    data
        Complete rows; with weights if some count more than once.
    components
        (K,) number of components of each class.
    prior
        Of centre and covariance of a component, an NIG if these are diagonal; None for the default of the data.
    class_prior
        Dirichlet of π; None for the uniform one.
    covariances
        One for each component, one for all components of all classes, or a diagonal one for each component.
    axis
        (K, d) direction along which the components of a class are put in order; None for that of its largest spread.

    Notes
    -----
    `pm.compute_log_likelihood` has log p(y | x, θ) and log p(x | θ) of each row as `y` and `x`, and
    `pm.sample_posterior_predictive` draws `y` for the rows in the container `X`; see `bayes_gda.models.rows`. Rows
    with weights leave neither to PyMC.
    """
    data.require_complete("The mixture model")
    family = NIG if covariances == "diagonal" else NIW
    prior = prior or component_default(data.X, data.y, data.K, data.weight, family)
    axis = ordering_axes(data.X, data.y, data.K, prior, data.weight) if axis is None else axis
    alpha = (class_prior or Dirichlet()).vector(data.K)
    owners = np.repeat(np.arange(data.K), components)
    weight = np.ones(data.n) if data.weight is None else data.weight
    coords = coordinates(class_names=data.class_names, feature_names=data.feature_names)

    with SummedModel(coords=coords | {"part": list(range(len(owners)))}) as model:
        pi = pm.Dirichlet("pi", a=alpha, dims="class")
        parts = [pm.Dirichlet(f"weight_{k}", a=np.ones(C)) if C > 1 else pt.ones(1) for k, C in enumerate(components)]
        omega = pm.Deterministic("weight", pt.concatenate(parts), dims="part")
        dims, shared = ("part", "feature"), covariances == "shared"
        if isinstance(prior, NIG):
            spread = pm.InverseGamma("component_sigma2", alpha=prior.a, beta=prior.b, dims=dims)
            mu = pm.Normal("component_mu", mu=prior.m, sigma=pt.sqrt(spread / prior.kappa), dims=dims)
        else:
            name, classes = ("Sigma", None) if shared else ("component_Sigma", len(owners))
            spread = inverse_wishart(name, prior, classes, over="part")
            mu = pm.MvNormal("component_mu", mu=prior.m, chol=spread / prior.kappa**0.5, dims=dims)
        place = (mu * axis[owners]).sum(axis=1)
        in_order = pt.all(pt.or_(place[1:] >= place[:-1], owners[1:] != owners[:-1]))
        pm.Potential("order", pt.switch(in_order, gammaln(np.array(components) + 1.0).sum(), -np.inf))

        def log_density(k: int, X: Any, omega: Any, mu: Any, spread: Any) -> TensorVariable:
            log_cloud = log_normals if isinstance(prior, NIG) else log_gaussian
            of_class = np.flatnonzero(owners == k)
            terms = [pt.log(omega[c]) + log_cloud(X, mu[c], spread if shared else spread[c]) for c in of_class]
            return pt.logsumexp(pt.stack(terms), axis=0)

        def draw(y: TensorVariable, omega: Any, mu: Any, spread: Any) -> TensorVariable:
            c = pm.Categorical.dist(p=pt.eq(owners, y[..., None]) * omega)
            if isinstance(prior, NIG):
                return pm.Normal.dist(mu[c], pt.sqrt(spread[c]))
            return pm.MvNormal.dist(mu=mu[c], chol=spread if shared else spread[c])

        sums = {"y": pt.sum(np.bincount(data.y, weight, data.K) * pt.log(pi))}
        for k in range(data.K):
            mine = data.y == k
            sums[f"x_{k}"] = pt.sum(weight[mine] * log_density(k, data.X[mine], omega, mu, spread))
        rows = Rows(data.X, data.y) if data.weight is None else None
        model.observe(sums, rows, [pi, omega, mu, spread], log_density=log_density, draw=draw)
    given = {"components": tuple(components), "covariances": covariances, "axis": axis}
    return sign(model, "mixture", data=data, prior=prior, alpha=alpha, **given)
