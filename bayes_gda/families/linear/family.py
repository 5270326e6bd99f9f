"""The regressions as families: logistic and softmax regression, in memory, batch by batch, or on a table in passes.

Under a Gaussian or flat prior the coordinates are the weights; with an unknown scale they are log τ and z, of which the
weights are made (`priors.centering`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.features import FeatureMap, FeatureSpec, fit_features, make_design
from bayes_gda.data.labels import CONTRASTS, coordinates
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, PriorError, one_line
from bayes_gda.families.assumptions import Assumptions
from bayes_gda.families.base import Family
from bayes_gda.families.linear.assumptions import linear_assumptions
from bayes_gda.families.linear.classifier import RegressionClassifier
from bayes_gda.families.linear.densities import HierarchicalDensity, WeightsDensity, draw_weights
from bayes_gda.families.linear.ep.better import CERTIFICATES, better_gaussian
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import (
    RegressionTarget,
    check_effort,
    empirical_bayes,
    regression_laplace,
    state_prior,
    with_prior_scale,
)
from bayes_gda.families.linear.online import FilteredTarget
from bayes_gda.families.linear.predictors import BinaryPredictor, SoftmaxPredictor
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.methods.density import Density, Smooth, Smoothed, ThirdOrder
from bayes_gda.methods.importance.trust import Predictor
from bayes_gda.methods.ladder import Propagated
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.methods.settings import Settings
from bayes_gda.methods.skew import SkewModal
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.priors import HierarchicalScale, Normal

if TYPE_CHECKING:
    import pymc as pm

# A prior that adds nothing.
FLAT = Normal(scale=frozen(np.inf))


@dataclass(frozen=True, eq=False)
class Linear(Family):
    """A regression with its data and prior.

    Parameters
    ----------
    data, prior
        Training rows; Normal, flat or hierarchical prior of the weights, of each class for softmax.
    features, Phi
        The feature map, and the design matrix (n, m).
    reference
        Whether the last class of a softmax regression has weights zero.
    before
        The Gaussian after the batches before, which then stands in place of the prior; None for all rows at once.
    """

    prior: Normal | HierarchicalScale
    features: FeatureMap = field(repr=False, kw_only=True)
    Phi: Floats = field(repr=False, kw_only=True)
    reference: bool = field(default=False, kw_only=True)
    before: GaussianPosterior | None = field(default=None, repr=False, kw_only=True)

    kind = "discriminative"
    estimator = "BayesianLogisticRegression"
    other_prior = "prior_scale=5.0"
    verdict_rows = 2000
    stored = (RegressionClassifier, FeatureMap, Normal, HierarchicalScale, GaussianPosterior, *CERTIFICATES)
    binary: ClassVar[bool]
    draw_prior = draw_weights

    @classmethod
    def bind(
        cls,
        data: Dataset,
        prior: Normal | HierarchicalScale | None = None,
        *,
        features: FeatureSpec = None,
        standardize: bool = True,
        prior_scale: float | str = 2.5,
        intercept_scale: float = 5.0,
    ) -> Self:
        """Join the model with rows.

        Parameters
        ----------
        data
            Complete rows.
        prior
            Of the weights; None for the one that the scales state.
        features, standardize
            What the feature map is asked for as, and whether its columns are centred and scaled.
        prior_scale, intercept_scale
            Standard deviations of slopes and intercept; inf is flat, and `prior_scale` may be "hierarchical" or
            "empirical-bayes".
        """
        cls.check(data.K)
        phi = fit_features(data.X, data.feature_names, features, standardize=standardize, weight=data.weight)
        given = state_prior(phi, prior_scale, intercept_scale) if prior is None else prior
        if not isinstance(given, (Normal, HierarchicalScale)):
            raise PriorError(f"`prior` must be Normal, HierarchicalScale or None; got {prior!r}.")
        hierarchical = isinstance(given, HierarchicalScale)
        if hierarchical and not phi.intercept:
            raise PriorError("A hierarchical scale needs a feature map with an intercept. Fit it with intercept=True.")
        proper = isinstance(given, HierarchicalScale) or given.is_proper
        reference = not cls.binary and not proper  # nothing determines a flat direction of the symmetric coding
        Phi = make_design(phi, data.X, whole=hierarchical or not cls.binary)
        out = cls(data, given, features=phi, Phi=Phi, reference=reference)
        return out._of_greatest_evidence() if prior is None and prior_scale == "empirical-bayes" else out

    @classmethod
    def from_signature(cls, **fields: Any) -> Self:
        """Return the family of a PyMC model that `build` wrote."""
        data, weight = fields.pop("data"), fields.pop("sample_weight")
        weight = None if weight is None else np.asarray(weight, dtype=np.float64)
        return cls(Dataset.of_checked(data.X, data.y, data.feature_names, data.class_names, weight), **fields)

    def describe_prior(self) -> tuple[str, ...]:
        """Return the prior in lines of plain text."""
        w, k = ("w", "") if self.binary else ("W", "ₖ")
        if isinstance(self.prior, HierarchicalScale):
            return f"τ ~ half-normal({self.prior.scale:g})", f"{w}{k}ⱼ | τ ~ N(0, τ²)"
        if self.prior.covariance is not None:
            return (f"{w} normal with a given covariance",)
        scale = self.prior.scale_vector(len(self.features.names))
        last = "" if self.binary else ", the same for every class"
        return f"{w}{k}₀ ~ N(0, {scale[0]:g}²)", f"{w}{k}ⱼ ~ N(0, {scale[-1]:g}²), {self._unit}{last}"

    @property
    def _unit(self) -> str:
        """What a slope is per, in words."""
        if all((scale == 1).all() for _, scale in (self.features.inner, self.features.outer)):
            return "per unit of column j"
        return "per standard deviation of column j, or between its values if it has two"

    @property
    def coords(self) -> dict[str, list[str]]:
        """Names of classes and coefficients, for labelled draws."""
        return coordinates(class_names=self.data.class_names, coefficient_names=self.features.names)

    @classmethod
    def model_coords(
        cls, model: FittedModel, class_names: Sequence[Any], feature_names: Sequence[str]
    ) -> dict[str, list[str]]:
        """Return the same for a fitted model whose data are gone."""
        assert isinstance(model, RegressionClassifier)
        return coordinates(class_names=class_names, coefficient_names=model.features.names)

    @property
    def variables(self) -> tuple[str, ...]:  # type: ignore[override]  # τ is one only where it is unknown
        """Parameters that a posterior shows."""
        return ("tau", "w") if self.hierarchical else ("w",)

    @property
    def hierarchical(self) -> bool:
        """Whether the scale of the slopes is unknown."""
        return isinstance(self.prior, HierarchicalScale)

    @property
    def proper(self) -> bool:
        """Whether the prior, or the Gaussian in its place, can be normalised."""
        return self.before is not None or isinstance(self.prior, HierarchicalScale) or self.prior.is_proper

    def no_exact(self) -> str:
        """Say why there is no closed form."""
        return (
            "inference='exact' has no meaning for logistic regression, whose posterior has no closed form. "
            "Use inference='auto', which says how far its answer can be trusted."
        )

    # ── The log posterior ───────────────────────────────────────────────────────────────────────────────────────────

    def target_under(self, prior: Normal) -> RegressionTarget:
        """Return the log posterior of the weights under a Gaussian prior."""
        data = self.data
        if self.binary:
            return LogisticTarget(self.Phi, data.y, prior, data.weight)
        return SoftmaxTarget(self.Phi, data.y, data.K, prior, data.weight, self.reference)

    @cached_property
    def target(self) -> ThirdOrder:
        """The log posterior with its derivatives."""
        if self.before is not None:
            return FilteredTarget(self.target_under(FLAT), self.before)
        return Smoothed(self.density) if isinstance(self.prior, HierarchicalScale) else self.target_under(self.prior)

    @cached_property
    def density(self) -> Density:
        """The log posterior in the coordinates of the PyMC model."""
        if isinstance(self.prior, HierarchicalScale):
            return HierarchicalDensity(self.target_under(FLAT), self.prior)
        return WeightsDensity(self.target_under(self.prior))

    @property
    def parameters(self) -> int:
        """Number of free parameters, counted without the matrices of the target."""
        classes = 1 if self.binary else self.data.K - self.reference
        return classes * len(self.features.names) + self.hierarchical

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode."""
        check_effort(self.cost_rows, self.parameters, 1 if self.binary else self.data.K)
        if self.before is not None:
            return laplace_approximation(self.target, self.before.mean)
        if self.hierarchical:
            return laplace_approximation(self.target, self.density.start)
        target = self.target
        assert isinstance(target, (LogisticTarget, SoftmaxTarget))
        return regression_laplace(target, names=self.weight_names)

    @property
    def weight_names(self) -> list[str]:
        """Names of all weights, for messages: in one line each."""
        if self.binary:
            return [one_line(name) for name in self.features.names]
        free = self.data.class_names[: self.data.K - self.reference]
        return [one_line(f"{name} ({label})") for label in free for name in self.features.names]

    def predictor(self, random_seed: int) -> Predictor:
        """Return the predictor of training rows, in closed form where the weights are Gaussian."""
        return super().predictor(random_seed) if self.hierarchical else self.predictor_of(self.Phi[self.spread_rows])

    def predictor_of(self, Phi: Floats) -> BinaryPredictor | SoftmaxPredictor:
        """Return the predictor of the rows of a design matrix."""
        return BinaryPredictor(Phi) if self.binary else SoftmaxPredictor(Phi, self.data.K, self.reference)

    def identified(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return all, but of a softmax regression in symmetric coding the weights less their mean over the classes.

        The same vector added to all w_k changes no probability: that direction is the prior's alone, and is part of
        every weight.
        """
        if self.binary or self.reference:
            return dict(variables)
        w = variables["w"]
        rest = {name: x for name, x in variables.items() if name != "w"}
        return rest | {CONTRASTS: w - w.mean(axis=1, keepdims=True)}

    def probabilities(self, X: Floats, gaussian: GaussianPosterior) -> dict[str, Floats]:
        """Return probabilities (n, K) of the Gaussian, by the probit link and with the link integrated."""
        if self.hierarchical:
            return {}  # the weights are not Gaussian
        predictor = self.predictor_of(self.features(X))
        return {"probit": predictor.gaussian(gaussian, "probit"), "laplace": predictor.gaussian(gaussian, "exact")}

    def propagate(self, gaussian: GaussianPosterior) -> Propagated | None:
        """Return a better Gaussian under a Gaussian prior, in memory: by expectation propagation, or variational."""
        return better_gaussian(self.target, gaussian)

    def skewed(self, gaussian: GaussianPosterior, size: int, random_seed: int) -> Floats | None:
        """Return draws (size, dim) of the skew-modal approximation."""
        return None if self.hierarchical else SkewModal(gaussian, self.target).draw(size, random_seed=random_seed)

    def row_term(self, x: Floats, k: int, scale: Floats) -> Smooth:
        """Return the log likelihood of a row in closed form; by differences where τ is a coordinate, too."""
        if self.hierarchical:
            return super().row_term(x, k, scale)
        row = Dataset.of_checked(x, np.array([k]), self.data.feature_names, self.data.class_names)
        return replace(self, data=row, Phi=np.ascontiguousarray(self.features(x))).target_under(FLAT)

    # ── From draws to a fitted model ────────────────────────────────────────────────────────────────────────────────

    def from_gaussian(self, posterior: GaussianPosterior, settings: Settings) -> FittedModel:
        """Return the model with the Gaussian itself; with draws of it if the scale is unknown."""
        if self.hierarchical:
            return super().from_gaussian(posterior, settings)
        return self._fitted(posterior=posterior, link=settings.link)

    def from_propagated(self, posterior: GaussianPosterior, settings: Settings) -> FittedModel:
        """Return the model with the better Gaussian, which knows how to leave a row out."""
        return self._fitted(posterior=posterior, link=settings.link, cavities=True)

    def certified(self, model: FittedModel, better: Propagated) -> FittedModel:
        """Return the model with the certificate of single rows."""
        assert isinstance(model, RegressionClassifier)
        return replace(model, certificate=better.certificate)

    def from_coordinates(self, w: Floats) -> FittedModel:
        """Return the model with draws of the weights, or of (log τ, z)."""
        return self.from_variables(self.density.variables(w)) if self.hierarchical else self._fitted(draws=w)

    def target_coordinates(self, w: Floats) -> Floats:
        """Return the weights, or (log τ, z) of points (log τ, w)."""
        if not self.hierarchical:
            return w
        weights = w[:, 1:] if self.binary else w[:, 1:].reshape(len(w), -1, self.Phi.shape[1])
        return self.density.coordinates({"tau": np.exp(w[:, 0]), "w": weights})

    def stored_coordinates(self, w: Floats) -> Floats:
        """Return the weights, or (log τ, w) of points (log τ, z): a file knows nothing of z."""
        if not self.hierarchical:
            return w
        variables = self.density.variables(w)
        return np.column_stack([w[:, 0], variables.get("w_free", variables["w"]).reshape(len(w), -1)])

    def from_variables(self, variables: Mapping[str, Floats]) -> FittedModel:
        """Return the model with draws of its parameters."""
        w = variables["w"]
        free = w if self.binary else w[:, : self.data.K - self.reference].reshape(len(w), -1)
        return self._fitted(draws=free, tau=variables.get("tau"))

    def _fitted(self, **source: Any) -> RegressionClassifier:
        data = self.data
        return RegressionClassifier(self.features, data.K, self.binary, self.reference, data.shares, **source)

    def build(self) -> "pm.Model":
        """Return the PyMC model, under plain names."""
        from bayes_gda.models import logistic, softmax

        data = self.plain_data
        phi = replace(self.features, feature_names=data.feature_names)
        phi = replace(phi, names=tuple(f"c{j}" for j in range(len(phi.names))))
        if self.binary:
            return logistic.build(data, self.prior, features=phi, sample_weight=data.weight)
        return softmax.build(data, self.prior, features=phi, sample_weight=data.weight, reference=self.reference)

    def sampled_evidence(self, model: FittedModel, chains: int) -> tuple[float, float]:
        """Return the evidence by bridge sampling."""
        assert isinstance(model, RegressionClassifier)
        assert model.draws is not None
        return self.bridge_evidence(self.density.coordinates(model.draw_variables(len(model.draws))), chains)

    def assumptions(self, gaussian: GaussianPosterior | None, random_seed: int) -> Assumptions:
        """Check whether the log odds are linear, on the rows as they were given; weights and unknown scales are not."""
        rows = self.rows
        if gaussian is None or self.hierarchical or rows.weight is not None or self.before is not None:
            return Assumptions()
        Phi = np.ascontiguousarray(self.features(rows.X))
        free = 1 if self.binary else self.data.K - self.reference
        mode = self._fitted(draws=gaussian.mean[None])
        return linear_assumptions(rows, Phi, np.exp(mode.log_probabilities(rows.X)), gaussian, free, random_seed)

    # ── Other data ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _of_greatest_evidence(self) -> Self:
        """Return the family with the slopes' scale that maximises the Laplace evidence."""
        assert isinstance(self.prior, Normal)
        target = self.target_under(self.prior)
        scale, _ = empirical_bayes(lambda s: with_prior_scale(target, s), names=self.weight_names)
        return replace(self, prior=with_prior_scale(target, scale).prior)

    def require_gaussian_prior(self) -> None:
        """Raise unless the prior is Gaussian and proper, as rows in batches need it."""
        if self.hierarchical or not self.proper:
            raise PriorError(
                "A table in batches needs a Gaussian prior of finite scale, since one batch may not determine the "
                "weights; got a flat or hierarchical one. Give `prior_scale` a number."
            )


class Logistic(Linear):
    """Logistic regression: two classes, one activation."""

    name, title, binary = "logistic", "Logistic regression", True
    sentence = "The log-odds of the second class are a linear function of the standardised features."
    formula = ("y ~ Bernoulli(σ(wᵀφ(x)))", "φ(x) = (1, standardised features)")

    @classmethod
    def default_for(cls, K: int) -> bool:
        """Whether there are two classes."""
        return K == 2

    @classmethod
    def check(cls, K: int) -> None:
        """Raise unless there are two classes."""
        if K != 2:
            raise DataError(f"`logistic` does not apply to {K} classes. Use softmax.")


class Softmax(Linear):
    """Softmax regression: an activation for every class."""

    name, title, binary = "softmax", "Softmax regression", False
    sentence = "The log-odds of any two classes are linear functions of the standardised features."
    formula = ("y ~ Categorical(softmax(Wφ(x)))", "φ(x) = (1, standardised features)")

    @classmethod
    def default_for(cls, K: int) -> bool:
        """Whether there are more than two classes: of two it is logistic regression over again."""
        return K > 2
