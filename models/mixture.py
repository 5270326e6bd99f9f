"""Classes that are mixtures of Gaussians: groups within a class that were not recorded.

    π ~ Dirichlet(α)                              class probabilities
    ω_k ~ Dirichlet(1, …, 1)                      weights of the C_k components of class k
    Σ_c ~ InverseWishart(Ψ, ν)                    covariance of component c
    μ_c | Σ_c ~ N(m, Σ_c/κ)                       centre of component c
    y_i | π ~ Categorical(π)
    x_i | y_i = k ~ Σ_{c of class k} ω_c N(μ_c, Σ_c)

The component of a row is summed out. The density would not change if components of a class changed places, so that the
prior allows one order only, of the centres along a fixed axis of the class, and is C_k! times as large there. With
`shared`, one Σ for all components of all classes.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.special import gammaln

from bayes_gda.checks import Floats
from bayes_gda.data.labels import coordinates
from bayes_gda.data.table import Dataset
from bayes_gda.models.gaussian import inverse_wishart
from bayes_gda.models.signature import sign
from bayes_gda.priors import NIW, Dirichlet
from bayes_gda.priors.mixture import component_default, ordering_axes


def build(
    data: Dataset,
    components: tuple[int, ...],
    prior: NIW | None = None,
    class_prior: Dirichlet | None = None,
    *,
    shared: bool = False,
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
        Of centre and covariance of a component; None for the default of the data.
    class_prior
        Dirichlet of π; None for the uniform one.
    shared
        One covariance for all components of all classes.
    axis
        (K, d) direction along which the components of a class are put in order; None for that of its largest spread.
    """
    data.require_complete("The mixture model")
    prior = prior or component_default(data.X, data.y, data.K, data.weight)
    axis = ordering_axes(data.X, data.y, data.K, prior, data.weight) if axis is None else axis
    alpha = (class_prior or Dirichlet()).vector(data.K)
    owners = np.repeat(np.arange(data.K), components)
    weight = np.ones(data.n) if data.weight is None else data.weight
    coords = coordinates(class_names=data.class_names, feature_names=data.feature_names)

    with pm.Model(coords=coords | {"component": list(range(len(owners)))}) as model:
        pi = pm.Dirichlet("pi", a=alpha, dims="class")
        parts = [pm.Dirichlet(f"weight_{k}", a=np.ones(C)) if C > 1 else pt.ones(1) for k, C in enumerate(components)]
        omega = pm.Deterministic("weight", pt.concatenate(parts), dims="component")
        if shared:
            L = inverse_wishart("Sigma", prior)
        else:
            L = inverse_wishart("component_Sigma", prior, classes=len(owners), over="component")
        mu = pm.MvNormal("component_mu", mu=prior.m, chol=L / prior.kappa**0.5, dims=("component", "feature"))
        place = (mu * axis[owners]).sum(axis=1)
        in_order = pt.all(pt.or_(place[1:] >= place[:-1], owners[1:] != owners[:-1]))
        pm.Potential("order", pt.switch(in_order, gammaln(np.array(components) + 1.0).sum(), -np.inf))
        pm.Potential("y", pt.sum(np.bincount(data.y, weight, data.K) * pt.log(pi)))
        for k in range(data.K):
            X = data.X[data.y == k]
            terms = [
                pt.log(omega[c]) + pm.logp(pm.MvNormal.dist(mu=mu[c], chol=L if shared else L[c]), X)
                for c in np.flatnonzero(owners == k)
            ]
            pm.Potential(f"x_{k}", pt.sum(weight[data.y == k] * pt.logsumexp(pt.stack(terms), axis=0)))
    covariances = "shared" if shared else "own"
    given = {"components": tuple(components), "covariances": covariances, "axis": axis}
    return sign(model, "mixture", data=data, prior=prior, alpha=alpha, **given)
