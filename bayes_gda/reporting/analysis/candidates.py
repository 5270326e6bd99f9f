"""The models that a report holds against each other: in words and formulas, and as problems to be solved.

The fitting layer is imported here and nowhere else in `reporting`.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.labels import coordinates
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.families.classifier import Covariance
from bayes_gda.families.fused import fused_density
from bayes_gda.families.gaussian.averaged import AveragedClassifier
from bayes_gda.families.linear.mode import RegressionTarget
from bayes_gda.families.linear.predictors import BinaryPredictor, SoftmaxPredictor
from bayes_gda.fitting.defaults import Rows, default_prior, distinct, fit_features, pooled_covariance
from bayes_gda.fitting.generative import GaussianProblem
from bayes_gda.fitting.regressions import Design, WeightsProblem
from bayes_gda.methods.density import Density
from bayes_gda.methods.ladder import CORRECTED_DRAWS, Problem, Settings, Verdict
from bayes_gda.models.blueprint import GaussianBlueprint, RegressionBlueprint
from bayes_gda.priors import NIG, NIW, Dirichlet, Normal
from bayes_gda.reporting.analysis.settings import ReportSettings

__all__ = ["CORRECTED_DRAWS", "Candidate", "Regression", "Settings", "Verdict", "averaged", "candidate", "candidates"]

_SHARES = "π ~ Dirichlet(1, …, 1)"
_GAUSSIAN: dict[str, tuple[Covariance, str, tuple[str, ...]]] = {
    "lda": ("shared", "Linear discriminant analysis", ("y ~ Categorical(π)", "x | y = k ~ N(μₖ, Σ)")),
    "qda": ("own", "Quadratic discriminant analysis", ("y ~ Categorical(π)", "x | y = k ~ N(μₖ, Σₖ)")),
    "naive": ("diagonal", "Naive Gaussian classifier", ("y ~ Categorical(π)", "xⱼ | y = k ~ N(μₖⱼ, σ²ₖⱼ)")),
}
_WORDS = {
    "lda": "Every class is a Gaussian cloud of the same shape; the boundaries are straight.",
    "qda": "Every class is a Gaussian cloud of its own shape; the boundaries are curved.",
    "naive": "Every class is a Gaussian cloud whose features are independent within the class.",
    "logistic": "The log-odds of the second class are a linear function of the standardised features.",
    "softmax": "The log-odds of any two classes are linear functions of the standardised features.",
}
_ESTIMATORS = {
    "lda": "BayesianLDA",
    "qda": "BayesianQDA",
    "naive": "BayesianNaiveGaussian",
    "logistic": "BayesianLogisticRegression",
    "softmax": "BayesianLogisticRegression",
}


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """What the regressions have beside their problem: the design, and the log posterior to third order.

    Parameters
    ----------
    features, target
        The feature map φ, and the log posterior of the weights.
    binary, K
        Whether it is logistic regression; the number of classes.
    """

    features: FeatureMap
    target: RegressionTarget
    binary: bool
    K: int

    def predictor(self, X: Floats) -> BinaryPredictor | SoftmaxPredictor:
        """Return the predictor of rows (n, d): probit link, and reference."""
        Phi = self.features(X)
        return BinaryPredictor(Phi) if self.binary else SoftmaxPredictor(Phi, self.K)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A model with its data and prior.

    Parameters
    ----------
    name, title, words
        Short name, full name, and what it assumes in a sentence.
    family
        `generative` or `discriminative`.
    formula, prior
        The model and its prior, in lines of plain text.
    estimator
        The Python class that fits it.
    problem, density
        The steps of each method; the log posterior with prior and likelihood apart.
    coords
        Names of classes and features, or coefficients.
    regression
        What only regressions have.
    """

    name: str
    title: str
    words: str
    family: Literal["generative", "discriminative"]
    formula: tuple[str, ...]
    prior: tuple[str, ...]
    estimator: str
    problem: Problem
    density: Density
    coords: dict[str, list[str]]
    regression: Regression | None = None

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return self.density.dim


@dataclass(frozen=True, slots=True, eq=False)
class _SoftmaxDesign(Design):
    """Softmax regression also where there are two classes."""

    @property
    def binary(self) -> bool:
        """Never."""
        return False


def candidate(name: str, data: Dataset) -> Candidate:
    """Set a model up with its default prior.

    Parameters
    ----------
    name
        One of `MODELS`.
    data
        Training rows.
    """
    labels = np.empty(data.K, dtype=object)
    labels[:] = data.class_names
    rows = Rows(data.X, data.y, labels, None, distinct(data.feature_names))
    return _gaussian(name, data, rows) if name in _GAUSSIAN else _regression(name, data, rows)


def _gaussian(name: str, data: Dataset, rows: Rows) -> Candidate:
    covariance, title, formula = _GAUSSIAN[name]
    moments = Moments.from_arrays(data.X, data.y, data.K)
    prior = default_prior(moments, NIG if covariance == "diagonal" else NIW)
    alpha = Dirichlet().vector(data.K)
    blueprint = GaussianBlueprint(moments, prior, alpha, covariance, _plain(data, rows))
    return Candidate(
        name,
        title,
        _WORDS[name],
        "generative",
        formula,
        (*_gaussian_prior(prior, covariance), _SHARES),
        _ESTIMATORS[name],
        GaussianProblem(covariance, rows, moments, prior, alpha),
        fused_density(blueprint),
        coordinates(class_names=data.class_names, feature_names=rows.names),
    )


def _gaussian_prior(prior: NIW | NIG, covariance: Covariance) -> tuple[str, ...]:
    if isinstance(prior, NIG):
        return (
            f"σ²ₖⱼ ~ Inverse-Gamma({prior.a[0]:g}, bⱼ), bⱼ half the variance of feature j within classes",
            f"μₖⱼ | σ²ₖⱼ ~ N(mean of feature j, σ²ₖⱼ / {prior.kappa[0]:g})",
        )
    Sigma = "Σ" if covariance == "shared" else "Σₖ"
    return (
        f"{Sigma} ~ Inverse-Wishart(Ψ, ν = {prior.nu:g}), Ψ the variances within classes on its diagonal",
        f"μₖ | {Sigma} ~ N(mean of all rows, {Sigma} / {prior.kappa:g})",
    )


def _regression(name: str, data: Dataset, rows: Rows) -> Candidate:
    features = fit_features(rows, None, standardize=True)
    Phi = np.ascontiguousarray(features(data.X))
    prior = Normal.default(Phi.shape[1])
    scale = prior.scale_vector(Phi.shape[1])
    design = (Design if name == "logistic" else _SoftmaxDesign)(rows, features, Phi, False)
    binary = design.binary
    blueprint = RegressionBlueprint(_plain(data, rows), Phi, prior, binary)
    slope = f"{scale[-1]:g}"
    if binary:
        title, formula = "Logistic regression", ("y ~ Bernoulli(σ(wᵀφ(x)))", "φ(x) = (1, standardised features)")
        told = (f"w₀ ~ N(0, {scale[0]:g}²)", f"wⱼ ~ N(0, {slope}²), per standard deviation of feature j")
    else:
        title, formula = "Softmax regression", ("y ~ Categorical(softmax(Wφ(x)))", "φ(x) = (1, standardised features)")
        told = (f"Wₖ₀ ~ N(0, {scale[0]:g}²)", f"Wₖⱼ ~ N(0, {slope}²), the same for every class")
    return Candidate(
        name,
        title,
        _WORDS[name],
        "discriminative",
        formula,
        told,
        _ESTIMATORS[name],
        WeightsProblem(design, prior),
        fused_density(blueprint),
        coordinates(class_names=data.class_names, coefficient_names=features.names),
        Regression(features, design.target(prior), binary, data.K),
    )


def candidates(data: Dataset, settings: ReportSettings) -> list[Candidate]:
    """Return all models that were asked for, set up for the training rows."""
    return [candidate(name, data) for name in settings.model_names(data.K)]


def averaged(data: Dataset) -> AveragedClassifier:
    """Return the average over the models between naive, LDA and QDA, fitted."""
    moments = Moments.from_arrays(data.X, data.y, data.K)
    return AveragedClassifier(moments, Dirichlet().vector(data.K), pooled_covariance(moments))


def _plain(data: Dataset, rows: Rows) -> Dataset:
    """Return the rows under distinct feature names, as the densities take them."""
    return Dataset(data.X, data.y, rows.names, data.class_names)
