"""Bayesian logistic regression for two classes.

    w ~ N(m₀, S₀)                                 weights, the intercept first
    a_i = wᵀφ(x_i)                                activation
    y_i ~ Bernoulli(σ(a_i)),   σ(a) = 1/(1 + e⁻ᵃ)

or, with a hierarchical scale, τ ~ HalfNormal(s) and slopes w_j | τ ~ N(0, τ²), which are sampled in the coordinates
of `priors.centering`. The log-odds of class 1 are linear in φ(x). Only p(y | x) is modelled: nothing is assumed of how
x is distributed.
"""

import pymc as pm
import pytensor.tensor as pt

from bayes_gda.checks import Floats
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.labels import coordinates
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.models.signature import sign
from bayes_gda.models.weights import observe, scaled_weights, weights
from bayes_gda.priors import HierarchicalScale, Normal
from bayes_gda.priors.centering import Centering


def build(
    data: Dataset,
    prior: Normal | HierarchicalScale | None = None,
    *,
    features: FeatureMap | None = None,
    sample_weight: Floats | None = None,
) -> pm.Model:
    """Write logistic regression as a PyMC model; class 1 is the second of `data.class_names`.

    Parameters
    ----------
    data
        Rows of two classes.
    prior
        Prior of the weights on `features`; None for sd 2.5 on slopes and 5 on the intercept.
    features
        A fitted feature map φ; None standardises, columns of two values by their difference, and adds an intercept.
    sample_weight
        (n,) weights of the rows; a row of weight 2 counts as two. None is 1 for all.

    Notes
    -----
    For new rows, `pm.set_data({"Phi": phi(X)})` with the feature map `phi`, then `pm.sample_posterior_predictive(…,
    predictions=True)`.
    """
    if data.K != 2:
        raise DataError(f"Logistic regression has two classes; the data have {data.K}. Use softmax.")
    data.require_complete("Logistic regression")
    phi = features or FeatureMap.fit(data.X, data.feature_names)
    Phi = phi(data.X)
    m = Phi.shape[1]
    prior = prior or Normal.default(m)

    with pm.Model(coords=coordinates(class_names=data.class_names, coefficient_names=phi.names)) as model:
        if isinstance(prior, HierarchicalScale):
            at = Centering.of(prior, Phi, data.y, [1], sample_weight)
            w = scaled_weights("w", prior, at, dims=("coefficient",))
        else:
            w = weights("w", prior, m, dims=("coefficient",))
        a = pt.dot(pm.Data("Phi", Phi, dims=("row", "coefficient")), w)
        observe(pm.Bernoulli, a, data.y, sample_weight)
    return sign(
        model, "logistic", data=data, prior=prior, features=phi, Phi=Phi, reference=False, sample_weight=sample_weight
    )
