"""Bayesian softmax regression for any number of classes.

    w_k ~ N(m₀, S₀)                               weights of class k, the intercept first
    a_ik = w_kᵀφ(x_i)                             activations
    y_i ~ Categorical(softmax(a_i)),   softmax(a)_k = eᵃᵏ / Σ_l eᵃˡ

Symmetric coding, the default, gives every class its weights, and the prior holds what the likelihood leaves open: the
same vector added to all w_k changes nothing. Reference coding sets the weights of the last class to zero, so that w_k
are log-odds against it. With two classes the difference w₁ − w₀ is the weight vector of logistic regression: N(0, s²)
on each w_k matches N(0, 2s²) there.
"""

import pymc as pm
import pytensor.tensor as pt

from bayes_gda.checks import Floats
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.labels import coordinates
from bayes_gda.data.table import Dataset
from bayes_gda.models.signature import sign
from bayes_gda.models.weights import observe, scaled_weights, weights
from bayes_gda.priors import HierarchicalScale, Normal
from bayes_gda.priors.centering import Centering


def build(
    data: Dataset,
    prior: Normal | HierarchicalScale | None = None,
    *,
    features: FeatureMap | None = None,
    reference: bool = False,
    sample_weight: Floats | None = None,
) -> pm.Model:
    """Write softmax regression as a PyMC model.

    Parameters
    ----------
    data
        Rows of two classes or more.
    prior
        Prior of each class's weights on `features`; None for sd 2.5 on slopes and 5 on intercepts.
    features
        A fitted feature map φ; None standardises, columns of two values by their difference, and adds an intercept.
    reference
        Whether the last class is the reference, with weights zero.
    sample_weight
        (n,) weights of the rows; a row of weight 2 counts as two. None is 1 for all.

    Notes
    -----
    For new rows, `pm.set_data({"Phi": phi(X)})` with the feature map `phi`, then `pm.sample_posterior_predictive(…,
    predictions=True)`.
    """
    data.require_complete("Softmax regression")
    phi = features or FeatureMap.fit(data.X, data.feature_names)
    Phi = phi(data.X)
    m = Phi.shape[1]
    prior = prior or Normal.default(m)
    coords = coordinates(class_names=data.class_names, coefficient_names=phi.names)

    with pm.Model(coords=coords | {"free_class": coords["class"][:-1]}) as model:
        name, dims = ("w_free", ("free_class", "coefficient")) if reference else ("w", ("class", "coefficient"))
        if isinstance(prior, HierarchicalScale):
            at = Centering.of(prior, Phi, data.y, range(data.K - reference), sample_weight)
            w = scaled_weights(name, prior, at, dims)
        else:
            w = weights(name, prior, m, dims)
        if reference:
            w = pm.Deterministic("w", pt.concatenate([w, pt.zeros((1, m))]), dims=("class", "coefficient"))
        a = pt.dot(pm.Data("Phi", Phi, dims=("row", "coefficient")), w.T)
        observe(pm.Categorical, a, data.y, sample_weight)
    return sign(
        model,
        "softmax",
        data=data,
        prior=prior,
        features=phi,
        Phi=Phi,
        reference=reference,
        sample_weight=sample_weight,
    )
