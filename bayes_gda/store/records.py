"""A fitted estimator as a record (JSON) with arrays, and back, with all its parts held against each other.

    record = {"estimator": name, "params": {…}, "fitted": {…}, "groups": notes on the posterior's groups}

`params` are scikit-learn's `get_params`; `fitted` are the attributes that end in an underscore.
"""

import functools
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bayes_gda.errors import BayesGDAError, StoreError
from bayes_gda.estimators import estimator_class
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.estimators.family import FamilyClassifier
from bayes_gda.families.registry import HOMES, family_names, get_family
from bayes_gda.methods.density import COORDINATES
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Settings
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.store.codecs import Arrays, check_type, decode, encode, matches

if TYPE_CHECKING:
    import xarray as xr

# By name, as the families name them.
ESTIMATORS: dict[str, type[BayesianClassifier]] = {
    cls.__name__: cls for cls in [*(estimator_class(get_family(name)) for name in HOMES), FamilyClassifier]
}

# What `fit` leaves behind, and its type, beside what each estimator names in `_stored`. What stands inside the model
# already (the prior of the Gaussian models, the feature map of the regressions) is taken from there.
_FITTED: dict[str, Any] = {
    "classes_": np.ndarray,
    "n_features_in_": int,
    "seed_": int,
    "inference_": Literal["exact", "laplace", "ep", "variational", "corrected", "mcmc"],
    "trust_": Verdict,
    "log_evidence_": float,
    "log_evidence_error_": float,
}
_SOMETIMES: dict[str, Any] = {"feature_names_in_": np.ndarray, "n_iter_": int, "n_samples_seen_": float}

# Parameters that came after the first files were written, those of one version together; where all of them are absent,
# their defaults are what was meant.
_ADDED = ({"missing"}, {"link"}, {"formula", "unseen", "class_weight"})


# Draws that a model may be asked for: what is more than this was not meant.
MOST_DRAWS = 100_000_000


class UnknownFamilyError(StoreError):
    """The file is whole, but its family is not in the registry of this process."""


def to_record(estimator: BayesianClassifier) -> tuple[dict[str, Any], Arrays]:
    """Return the record of a fitted estimator, without its posterior's groups, and the arrays it refers to."""
    arrays: Arrays = {}
    names = [*_expected(estimator), *_SOMETIMES]
    fitted = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
    if estimator.encoding_ is not None:  # whose columns stand beside, under "encoding"
        features = estimator._names()
        fitted |= {"n_features_in_": len(features), "feature_names_in_": np.array(features, dtype=object)}
    record = {
        "estimator": type(estimator).__name__,
        "params": {
            name: encode(value, arrays, f"params.{name}") for name, value in estimator.get_params(deep=False).items()
        },
        "fitted": {name: encode(value, arrays, name) for name, value in fitted.items()},
    }
    return record, arrays


def from_record(record: Any, arrays: Mapping[str, NDArray[Any]]) -> BayesianClassifier:
    """Return the estimator, fitted, of a record; its posterior's tree is not set yet."""
    match record:
        case {"estimator": str(name), "params": dict(params), "fitted": dict(fitted)} if name in ESTIMATORS:
            cls = ESTIMATORS[name]
        case _:
            raise StoreError("The record must name one of our estimators, its parameters and what was fitted.")
    estimator = cls(**_params(cls, params, arrays))
    expected = _expected(estimator)
    if not set(expected) <= set(fitted) <= set(expected) | set(_SOMETIMES):
        wrong = ", ".join(sorted((set(expected) - set(fitted)) | (set(fitted) - set(expected) - set(_SOMETIMES))))
        raise StoreError(f"{name} must have the attributes that `fit` sets; wrong or missing: {wrong}.")
    for attribute, node in fitted.items():
        value = decode(node, arrays, attribute)
        check_type(value, (expected | _SOMETIMES)[attribute], attribute)
        setattr(estimator, attribute, value)
    if "prior_" not in expected:
        model: Any = estimator.model_
        estimator.prior_ = model.prior if hasattr(model, "prior") else model.grid
    estimator._tree = None
    try:
        estimator._restore()
        _check_whole(estimator)
    except BayesGDAError as error:  # of a prior or the settings, in their own words
        raise StoreError(str(error)) from error
    return estimator


def check_sampled(estimator: BayesianClassifier, tree: "xr.DataTree") -> None:
    """Raise unless a sampled posterior has the draws that the model predicts from."""
    if "posterior" not in tree.children:
        raise StoreError("Group 'posterior' is missing.")
    posterior = tree.children["posterior"].to_dataset(inherit=False)
    size = posterior.sizes.get("chain", 0) * posterior.sizes.get("draw", 0)
    variables = estimator.model_.draw_variables(size, random_seed=0) if size else {}
    variables.pop(COORDINATES, None)  # for computing: no parameter of the model
    if set(variables) != set(posterior.data_vars) or not all(
        np.array_equal(posterior[name].values.ravel(), values.ravel()) for name, values in variables.items()
    ):
        raise StoreError("Group 'posterior' must hold the draws of the model.")


def _expected(estimator: BayesianClassifier) -> dict[str, Any]:
    """What an estimator has once it is fitted, by its parameters."""
    name = getattr(estimator, "family", None)
    if isinstance(estimator, FamilyClassifier) and name not in family_names():
        raise UnknownFamilyError(f"There is no family {name!r} here. Import the module that registers it first.")
    expected = _FITTED | estimator._stored
    if isinstance(estimator, FamilyClassifier):
        # The model is one of draws or the family's own, and the prior whatever the family takes for one.
        own = [cls for cls in estimator._family(2).stored if issubclass(cls, FittedModel)]
        expected |= {"model_": functools.reduce(operator.or_, own, expected["model_"]), "prior_": Any}
    return expected


def _params(cls: type, nodes: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    hints = get_type_hints(cls.__init__)  # type: ignore[misc]  # mypy: a subclass may have another; we want this one's
    hints.pop("return", None)
    later = set[str]().union(*(group for group in _ADDED if not group & set(nodes)))
    if not set(hints) - later <= set(nodes) <= set(hints):
        wrong = ", ".join(sorted(set(nodes) ^ set(hints)))
        raise StoreError(f"`params` must be those of {cls.__name__}; wrong or missing: {wrong}.")
    params = {name: decode(node, arrays, f"params.{name}") for name, node in nodes.items()}
    for name, value in params.items():
        # prior_scale=1 is as good as 1.0
        if not (type(value) is int and matches(float(value), hints[name])):
            check_type(value, hints[name], f"params.{name}")
    return params


def _check_whole(estimator: BayesianClassifier) -> None:
    """Hold the parts of an estimator against each other."""
    model: Any = estimator.model_
    _check_labels(estimator.classes_, model.K)
    if estimator.n_features_in_ != model.d:
        raise StoreError(f"`n_features_in_` must be {model.d}, as in the model; got {estimator.n_features_in_}.")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and not (names.shape == (model.d,) and all(isinstance(name, str) for name in names.tolist())):
        raise StoreError(f"`feature_names_in_` must hold {model.d} names.")
    # What family and model both say of themselves: which covariances, whether there are two classes only, which name.
    family = estimator._family(model.K)
    for said, of_model in (("covariance", "covariance"), ("binary", "binary"), ("name", "family")):
        wanted, actual = getattr(family, said, None), getattr(model, of_model, None)
        if actual is not None and actual != wanted:
            raise StoreError(f"`model_.{of_model}` must be {wanted!r} for {family.title}; got {actual!r}.")
    # A posterior in closed form is exact, unless it is a Gaussian at a mode; of a user's families we do not know.
    closed = not model.averages_draws and not isinstance(getattr(model, "posterior", None), GaussianPosterior)
    if (estimator.inference_ == "exact") != closed and not isinstance(estimator, FamilyClassifier):
        raise StoreError(f"`inference_` is {estimator.inference_!r}, which the model's posterior is not.")
    seen = getattr(estimator, "n_samples_seen_", 1.0)
    if not (np.isfinite(seen) and seen > 0):
        raise StoreError(f"`n_samples_seen_` must be positive and finite; got {seen:g}.")
    if estimator.draws * estimator.chains > MOST_DRAWS:
        raise StoreError(f"`draws` × `chains` must be at most {MOST_DRAWS}; got {estimator.draws * estimator.chains}.")
    if not isinstance(estimator, FamilyClassifier):  # a user's family may have its own idea of a row of zeros
        _check_answers(model)
    if not 0 <= estimator.seed_ < 2**32:
        raise StoreError(f"`seed_` must lie in 0…2³²−1; got {estimator.seed_}.")
    Settings(
        estimator.inference,
        estimator.draws,
        estimator.chains,
        estimator.sampler,
        estimator.seed_,
        estimator.progress,
        estimator.tolerance,
    )


def _check_answers(model: Any) -> None:
    """Raise unless the model has probabilities for a row: numbers that are each in order may still not fit together."""
    with np.errstate(all="ignore"):
        answer = model.log_probabilities(np.zeros((1, model.d)))
    if np.isnan(answer).any() or not abs(np.exp(answer).sum() - 1) < 1e-6:
        raise StoreError("`model_` has no probabilities for a row of zeros.")


def _check_labels(classes: NDArray[Any], K: int) -> None:
    try:
        distinct = np.array_equal(np.unique(classes), classes)
    except TypeError:
        distinct = False
    if classes.shape != (K,) or not distinct:
        raise StoreError(f"`classes_` must hold {K} distinct labels in order; got {classes.tolist()!r:.60}.")
