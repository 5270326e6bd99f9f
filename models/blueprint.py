"""What a model was built from, kept beside it: data, prior and form, as plain values.

A `pm.Model` is a graph, from which the closed forms behind it cannot be read off again. `build` signs each model with
its blueprint, from which `inference` makes hand-written densities, the same functions as the graph but a hundred times
cheaper to prepare. A model that was changed afterwards no longer matches its blueprint and is taken as the graph it is.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.priors import LKJ, NIG, NIW, HierarchicalScale, Normal

if TYPE_CHECKING:
    import pymc as pm


@dataclass(frozen=True, slots=True, eq=False)
class GaussianBlueprint:
    """A Gaussian model: LDA (`shared` covariance), QDA (`own`) or naive (`diagonal`).

    Parameters
    ----------
    moments
        Sufficient statistics.
    prior, alpha
        Prior of means and covariances; (K,) Dirichlet parameters.
    covariance
        Which covariances the classes have.
    rows
        The rows, if the model was given them and not their moments.
    """

    moments: Moments
    prior: NIW | NIG | LKJ
    alpha: Floats
    covariance: Literal["shared", "own", "diagonal"]
    rows: Dataset | None = None


@dataclass(frozen=True, slots=True, eq=False)
class RegressionBlueprint:
    """Logistic (binary) or softmax regression.

    Parameters
    ----------
    rows, Phi
        The data, and their design matrix (n, m).
    prior
        Prior of the weights, of each class's weights for softmax.
    binary, reference
        Whether the model is logistic regression; whether a softmax model has its last class as the reference.
    sample_weight
        (n,) weights of the rows; None is 1 for all.
    """

    rows: Dataset
    Phi: Floats
    prior: Normal | HierarchicalScale
    binary: bool
    reference: bool = False
    sample_weight: Floats | None = None


Blueprint = GaussianBlueprint | RegressionBlueprint


def sign(model: "pm.Model", blueprint: Blueprint) -> "pm.Model":
    """Leave the blueprint with the model, and the parts that the model has now."""
    model.blueprint = blueprint
    model.blueprint_parts = _parts(model)
    return model


def blueprint_of(model: "pm.Model") -> Blueprint | None:
    """Return what the model was built from; None if that is not known, or the model was changed since."""
    blueprint = getattr(model, "blueprint", None)
    if blueprint is None or _parts(model) != model.blueprint_parts:
        return None
    if isinstance(blueprint, RegressionBlueprint) and not np.array_equal(model["Phi"].get_value(), blueprint.Phi):
        return None  # other data were set
    return blueprint


def _parts(model: "pm.Model") -> tuple[tuple[int, ...], ...]:
    """Identities of all that enters the log density."""
    return tuple(tuple(map(id, group)) for group in (model.free_RVs, model.observed_RVs, model.potentials))
