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

from typing import Literal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable
from scipy.special import gammaln

from bayes_gda.checks import Floats
from bayes_gda.data.labels import coordinates
from bayes_gda.data.table import Dataset
from bayes_gda.models.gaussian import inverse_wishart
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
    """
    data.require_complete("The mixture model")
    family = NIG if covariances == "diagonal" else NIW
    prior = prior or component_default(data.X, data.y, data.K, data.weight, family)
    axis = ordering_axes(data.X, data.y, data.K, prior, data.weight) if axis is None else axis
    alpha = (class_prior or Dirichlet()).vector(data.K)
    owners = np.repeat(np.arange(data.K), components)
    weight = np.ones(data.n) if data.weight is None else data.weight
    coords = coordinates(class_names=data.class_names, feature_names=data.feature_names)

    with pm.Model(coords=coords | {"component": list(range(len(owners)))}) as model:
        pi = pm.Dirichlet("pi", a=alpha, dims="class")
        parts = [pm.Dirichlet(f"weight_{k}", a=np.ones(C)) if C > 1 else pt.ones(1) for k, C in enumerate(components)]
        omega = pm.Deterministic("weight", pt.concatenate(parts), dims="component")
        dims = ("component", "feature")
        if isinstance(prior, NIG):
            sigma2 = pm.InverseGamma("component_sigma2", alpha=prior.a, beta=prior.b, dims=dims)
            mu = pm.Normal("component_mu", mu=prior.m, sigma=pt.sqrt(sigma2 / prior.kappa), dims=dims)
            clouds = [pm.Normal.dist(mu=mu[c], sigma=pt.sqrt(sigma2[c])) for c in range(len(owners))]
        else:
            shared = covariances == "shared"
            name, classes = ("Sigma", None) if shared else ("component_Sigma", len(owners))
            L = inverse_wishart(name, prior, classes, over="component")
            mu = pm.MvNormal("component_mu", mu=prior.m, chol=L / prior.kappa**0.5, dims=dims)
            clouds = [pm.MvNormal.dist(mu=mu[c], chol=L if shared else L[c]) for c in range(len(owners))]
        place = (mu * axis[owners]).sum(axis=1)
        in_order = pt.all(pt.or_(place[1:] >= place[:-1], owners[1:] != owners[:-1]))
        pm.Potential("order", pt.switch(in_order, gammaln(np.array(components) + 1.0).sum(), -np.inf))
        pm.Potential("y", pt.sum(np.bincount(data.y, weight, data.K) * pt.log(pi)))
        for k in range(data.K):
            X = data.X[data.y == k]
            terms = [pt.log(omega[c]) + _log_density(clouds[c], X) for c in np.flatnonzero(owners == k)]
            pm.Potential(f"x_{k}", pt.sum(weight[data.y == k] * pt.logsumexp(pt.stack(terms), axis=0)))
    given = {"components": tuple(components), "covariances": covariances, "axis": axis}
    return sign(model, "mixture", data=data, prior=prior, alpha=alpha, **given)


def _log_density(cloud: TensorVariable, X: Floats) -> TensorVariable:
    """Return the log density (n,) of rows; that of independent features is a sum over them."""
    each = pm.logp(cloud, X)
    return each.sum(axis=1) if each.ndim == 2 else each
