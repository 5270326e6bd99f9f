"""A fitted estimator as a record (JSON) with arrays, and back, with all its parts held against each other.

    record = {"estimator": name, "params": {…}, "fitted": {…}, "groups": notes on the posterior's groups}

`params` are scikit-learn's `get_params`; `fitted` are the attributes that end in an underscore.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import numpy as np
from numpy.typing import NDArray

from bayes_gda.errors import BayesGDAError, StoreError
from bayes_gda.estimators import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
)
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.families.classifier import GaussianClassifier, RegressionClassifier
from bayes_gda.families.gaussian.averaged import AveragedClassifier
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.methods.importance.trust import Trust
from bayes_gda.methods.ladder import Settings, Verdict
from bayes_gda.priors import HierarchicalScale, Normal
from bayes_gda.store.codecs import Arrays, check_type, decode, encode, matches

if TYPE_CHECKING:
    import xarray as xr

ESTIMATORS: dict[str, type[BayesianClassifier]] = {
    cls.__name__: cls
    for cls in (BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA, BayesianRDA)
}

# What `fit` leaves behind, and its type. What stands inside the model already (`prior_` of the Gaussian models,
# `features_` of the regressions) is taken from there.
_FITTED: dict[str, Any] = {
    "classes_": np.ndarray,
    "n_features_in_": int,
    "seed_": int,
    "inference_": Literal["exact", "laplace", "corrected", "mcmc"],
    "trust_": Trust | Verdict,
    "log_evidence_": float,
    "log_evidence_error_": float,
}
_SOMETIMES: dict[str, Any] = {"feature_names_in_": np.ndarray, "n_iter_": int, "n_samples_seen_": float}
_GAUSSIAN: dict[str, Any] = {"model_": GaussianClassifier}
_AVERAGED: dict[str, Any] = {"model_": AveragedClassifier}
_REGRESSION: dict[str, Any] = {"model_": RegressionClassifier, "prior_": Normal | HierarchicalScale}

# Parameters that came after the first files were written; where one is absent, its default is what was meant.
_ADDED = {"missing"}


def to_record(estimator: BayesianClassifier) -> tuple[dict[str, Any], Arrays]:
    """Return the record of a fitted estimator, without its posterior's groups, and the arrays it refers to."""
    arrays: Arrays = {}
    names = [*_expected(type(estimator)), *_SOMETIMES]
    fitted = {name: getattr(estimator, name) for name in names if hasattr(estimator, name)}
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
    expected = _expected(cls)
    if not set(expected) <= set(fitted) <= set(expected) | set(_SOMETIMES):
        wrong = ", ".join(sorted((set(expected) - set(fitted)) | (set(fitted) - set(expected) - set(_SOMETIMES))))
        raise StoreError(f"{name} must have the attributes that `fit` sets; wrong or missing: {wrong}.")
    for attribute, node in fitted.items():
        value = decode(node, arrays, attribute)
        check_type(value, (expected | _SOMETIMES)[attribute], attribute)
        setattr(estimator, attribute, value)
    if isinstance(estimator.model_, GaussianClassifier):
        estimator.prior_ = estimator.model_.prior
    elif isinstance(estimator.model_, AveragedClassifier):
        estimator.prior_ = estimator.model_.grid
    elif isinstance(estimator, BayesianLogisticRegression):
        estimator.features_ = estimator.model_.features
    estimator._tree = None
    try:
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
    if set(variables) != set(posterior.data_vars) or not all(
        np.array_equal(posterior[name].values.ravel(), values.ravel()) for name, values in variables.items()
    ):
        raise StoreError("Group 'posterior' must hold the draws of the model.")


def _expected(cls: type[BayesianClassifier]) -> dict[str, Any]:
    """What every fitted estimator of a class has."""
    if issubclass(cls, BayesianLogisticRegression):
        return _FITTED | _REGRESSION
    return _FITTED | (_AVERAGED if issubclass(cls, BayesianRDA) else _GAUSSIAN)


def _params(cls: type, nodes: dict[str, Any], arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    hints = get_type_hints(cls.__init__)  # type: ignore[misc]  # mypy: a subclass may have another; we want this one's
    hints.pop("return", None)
    if not set(hints) - _ADDED <= set(nodes) <= set(hints):
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
    model, classes = estimator.model_, estimator.classes_
    _check_labels(classes, model.K)
    d = len(model.features.feature_names) if isinstance(model, RegressionClassifier) else model.moments.d
    if estimator.n_features_in_ != d:
        raise StoreError(f"`n_features_in_` must be {d}, as in the model; got {estimator.n_features_in_}.")
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and not (names.shape == (d,) and all(isinstance(name, str) for name in names.tolist())):
        raise StoreError(f"`feature_names_in_` must hold {d} names.")
    if isinstance(model, GaussianClassifier):
        covariance = getattr(estimator, "_covariance", None)
        if model.covariance != covariance:
            raise StoreError(f"{type(estimator).__name__} has {covariance} covariances; got {model.covariance}.")
    elif isinstance(model, RegressionClassifier):
        if model.binary != (model.K == 2):
            raise StoreError(f"`model_.binary` must be {model.K == 2} for {model.K} classes.")
        if isinstance(estimator.prior_, Normal):
            for take in (estimator.prior_.mean_vector, estimator.prior_.scale_vector):
                take(len(model.features.names))  # raises if it does not fit
    exact = isinstance(model, AveragedClassifier) or isinstance(model.posterior, NIWPosterior | NIGPosterior)
    if (estimator.inference_ == "exact") != exact:
        raise StoreError(f"`inference_` is {estimator.inference_!r}, which the model's posterior is not.")
    seen = getattr(estimator, "n_samples_seen_", 1.0)
    if not (np.isfinite(seen) and seen > 0):
        raise StoreError(f"`n_samples_seen_` must be positive and finite; got {seen:g}.")
    if not 0 <= estimator.seed_ < 2**32:
        raise StoreError(f"`seed_` must lie in 0…2³²−1; got {estimator.seed_}.")
    Settings(
        estimator.inference,
        estimator.draws,
        estimator.chains,
        estimator.sampler,
        estimator.seed_,
        estimator.progress,
    )


def _check_labels(classes: NDArray[Any], K: int) -> None:
    try:
        distinct = np.array_equal(np.unique(classes), classes)
    except TypeError:
        distinct = False
    if classes.shape != (K,) or not distinct:
        raise StoreError(f"`classes_` must hold {K} distinct labels in order; got {classes.tolist()!r:.60}.")
