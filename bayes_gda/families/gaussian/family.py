"""Gaussian classes as families: LDA, QDA, naive Gaussian, and the average over what lies between them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import ObservedCounts
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.assumptions import Assumptions
from bayes_gda.families.base import Family
from bayes_gda.families.gaussian.assumptions import gaussian_assumptions
from bayes_gda.families.gaussian.classifier import (
    AveragedClassifier,
    Covariance,
    GaussianClassifier,
    gaussian_density,
)
from bayes_gda.families.gaussian.continuum import Grid
from bayes_gda.families.gaussian.discriminant import Gaussians
from bayes_gda.families.gaussian.effort import check_effort
from bayes_gda.families.gaussian.exact import (
    NIGPosterior,
    NIWPosterior,
    lda_posterior,
    naive_posterior,
    qda_posterior,
)
from bayes_gda.families.gaussian.gaps import fitting
from bayes_gda.families.gaussian.remarks import remark_on_binaries
from bayes_gda.methods.density import Parts, Smoothed, ThirdOrder
from bayes_gda.methods.ladder import EXACT, Exact
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.methods.settings import Settings
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet
from bayes_gda.priors.classes import draw_classes
from bayes_gda.priors.defaults import default_incomplete_prior, default_prior, pooled_covariance

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

_SHARES = "π ~ Dirichlet(1, …, 1)"
IMPROPER = "Nothing is approximated. The prior is improper, so that there is no evidence."
_LKJ = "prior=bayes_gda.LKJ.default(bayes_gda.Moments.from_arrays(data.X, data.y, data.K))"


@dataclass(frozen=True, eq=False)
class Gaussian(Family):
    """A Gaussian model with its data and prior; the subclasses say which covariances the classes have.

    Parameters
    ----------
    data, prior
        Training rows, which may be without any where their moments are known; prior of means and covariances.
    alpha
        (K,) Dirichlet parameters.
    moments
        Sufficient statistics; None if rows have gaps.
    """

    prior: NIW | NIG | LKJ
    alpha: Floats = field(repr=False, kw_only=True)
    moments: Moments | None = field(default=None, repr=False, kw_only=True)

    kind = "generative"
    takes_gaps = True
    other_prior = _LKJ
    stored = (GaussianClassifier, NIWPosterior, NIGPosterior, Moments, ObservedCounts)
    covariance: ClassVar[Covariance]
    conjugate: ClassVar[type[NIW] | type[NIG]] = NIW

    def __post_init__(self) -> None:
        d = self.data.d if self.moments is None else self.moments.d
        if len(self.prior.m) != d:
            raise PriorError(f"`prior` has {len(self.prior.m)} features, `X` has {d}. Give one entry a feature.")
        if self.moments is None:
            fitting.check(self)

    @classmethod
    def bind(cls, data: Dataset, prior: Any = None) -> Self:
        """Join the model with rows, which may have gaps; None is the default prior."""
        alpha = Dirichlet().vector(data.K)
        if cls.covariance != "diagonal":
            check_effort(data.n, data.d, data.K)
        moments = Moments.of_whole_rows(data.X, data.y, data.K, sample_weight=data.weight)
        if moments is None:  # rows with gaps
            data = data.original or data  # only whole rows are pooled
            if data.weight is not None and not (data.weight == 1).all():
                odd = data.weight[data.weight != 1][0]
                raise DataError(
                    f"`sample_weight` must be 0 or 1 where `X` has missing values; got {odd:g}. Repeat the rows "
                    "instead, or leave out the incomplete ones."
                )
            given = default_incomplete_prior(data, cls.conjugate) if prior is None else cls.check_prior(prior)
            return cls(data, given, alpha=alpha)
        return cls.of_moments(moments, data, prior)

    @classmethod
    def prepare(cls, data: Dataset, inference: str, prior: Any = None) -> Dataset:
        """Pool equal rows if the fit may run a chain: by MCMC, or with a prior that is not conjugate."""
        sampled = inference == "mcmc" or (inference == "auto" and isinstance(prior, LKJ))
        return data.pooled() if sampled else data

    @classmethod
    def of_moments(cls, moments: Moments, data: Dataset, prior: Any = None, alpha: Floats | None = None) -> Self:
        """Join the model with moments; `data` may be without rows, and then has the names alone."""
        given = default_prior(moments, cls.conjugate) if prior is None else cls.check_prior(prior)
        return cls(data, given, alpha=Dirichlet().vector(moments.K) if alpha is None else alpha, moments=moments)

    @classmethod
    def check_prior(cls, prior: Any) -> NIW | NIG | LKJ:
        """Return the prior, or raise if it is none for this model."""
        if not isinstance(prior, (cls.conjugate, LKJ)):
            kinds = f"{cls.conjugate.__name__} or LKJ"
            raise PriorError(f"`prior` of {cls.estimator} must be {kinds} or None; got {prior!r}.")
        return prior

    @classmethod
    def from_signature(cls, **fields: Any) -> Self:
        """Return the family of a PyMC model that `build` wrote."""
        data, moments = fields["data"], fields["moments"]
        if isinstance(data, Moments):
            names = tuple(f"x{j + 1}" for j in range(moments.d))
            no_rows = np.empty((0, moments.d)), np.empty(0, dtype=np.intp)
            fields |= {"data": Dataset.of_checked(*no_rows, names, tuple(range(moments.K)))}
        return cls(**fields)

    def draw_prior(self, size: int, random_seed: int) -> dict[str, Floats] | None:
        """Draw π, means and covariances (size, …) from the prior; None if it is improper."""
        return draw_classes(self.prior, self.alpha, self.covariance, size, random_seed) if self.proper else None

    def describe_prior(self) -> tuple[str, ...]:
        """Return the prior in lines of plain text."""
        prior, Sigma = self.prior, "Σ" if self.covariance == "shared" else "Σₖ"
        if isinstance(prior, NIG):
            if not prior.is_proper:
                return "p(μₖⱼ, σ²ₖⱼ) ∝ 1/σ²ₖⱼ (Jeffreys, improper)", _SHARES
            rate = (
                f"bⱼ = {prior.a[0]:g} × the variance of feature j within classes" if self._by_default else "b as given"
            )
            center = "mean of feature j" if self._by_default else "mⱼ"
            scales = f"σ²ₖⱼ ~ Inverse-Gamma({prior.a[0]:g}, bⱼ), {rate}"
            return scales, f"μₖⱼ | σ²ₖⱼ ~ N({center}, σ²ₖⱼ / {prior.kappa[0]:g})", _SHARES
        if isinstance(prior, NIW):
            if not prior.is_proper:
                return f"p(μₖ, {Sigma}) ∝ |{Sigma}|^(−(d+1)/2) (Jeffreys, improper)", _SHARES
            scale = "Ψ = s × the variances within classes, s by the evidence" if self._by_default else "Ψ as given"
            center = "mean of all rows" if self._by_default else "m"
            scales = f"{Sigma} ~ Inverse-Wishart(Ψ, ν = {prior.nu:g}), {scale}"
            return scales, f"μₖ | {Sigma} ~ N({center}, {Sigma} / {prior.kappa:g})", _SHARES
        return f"{Sigma} = diag(s) R diag(s), sⱼ half-normal, R ~ LKJ({prior.eta:g})", "μₖⱼ normal", _SHARES

    def remarks(self) -> tuple[str, ...]:
        """Say that columns of 0 and 1 are taken for measurements, and which model would not."""
        return remark_on_binaries(self.data, self.moments)

    @property
    def _by_default(self) -> bool:
        """Whether the conjugate prior is the default one, so that words can say what its numbers are."""
        if self.moments is None:
            default = default_incomplete_prior(self.data, self.conjugate)
        else:
            default = default_prior(self.moments, self.conjugate)
        return all(np.array_equal(getattr(default, name), getattr(self.prior, name)) for name in default.__slots__)

    @property
    def proper(self) -> bool:
        """Whether the prior can be normalised."""
        return isinstance(self.prior, LKJ) or self.prior.is_proper

    @property
    def can_sample(self) -> bool:
        """Whether there is a PyMC model: there is none of an improper prior."""
        return self.proper

    def exact(self) -> Exact | None:
        """Return the conjugate posterior, or None under an LKJ prior, or for gaps in LDA and QDA."""
        class_prior = Dirichlet(self.alpha)
        posterior: NIWPosterior | NIGPosterior | None
        if self.moments is None:
            posterior = fitting.exact(self)
        elif isinstance(self.prior, LKJ):
            posterior = None
        elif isinstance(self.prior, NIG):
            posterior = naive_posterior(self.moments, self.prior, class_prior)
        else:
            update = lda_posterior if self.covariance == "shared" else qda_posterior
            posterior = update(self.moments, self.prior, class_prior)
        if posterior is None:
            return None
        error, reason = (0.0, EXACT) if self.proper else (np.nan, IMPROPER)
        return Exact(self._fitted(posterior=posterior), posterior.log_evidence, error, reason)

    def no_exact(self) -> str:
        """Say why there is no closed form."""
        if self.moments is None:
            return fitting.no_exact(self)
        kind = self.conjugate.__name__
        if not self.proper:
            return f"{kind}.jeffreys is improper and has its exact posterior alone. Use inference='auto' or 'exact'."
        return f"inference='exact' needs a conjugate prior; got LKJ. Give a {kind} prior, or use inference='auto'."

    @property
    def has_mode(self) -> bool:
        """Whether there is a log posterior to climb: not for rows with gaps, nor of an improper prior."""
        return self.moments is not None and self.proper

    @property
    def cost_rows(self) -> int:
        """The moments of a class count as a row, whatever the rows behind them."""
        return self.data.K

    @cached_property
    def density(self) -> Parts | None:
        """The hand-written density, on moments; None for rows with gaps and of an improper prior."""
        if self.moments is None or not self.proper:
            return None
        return gaussian_density(self.moments, self.prior, self.alpha, self.covariance)

    @cached_property
    def target(self) -> ThirdOrder:
        """The log posterior with its derivatives."""
        assert self.density is not None
        return Smoothed(self.density)

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        K, d = self.data.K, self.data.d
        covariances = {"shared": d * (d + 1) // 2, "own": K * d * (d + 1) // 2, "diagonal": K * d}
        return K - 1 + K * d + covariances[self.covariance]

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode, in unconstrained coordinates."""
        assert self.density is not None
        return laplace_approximation(self.target, self.density.start)

    def from_coordinates(self, w: Floats) -> FittedModel:
        """Return the model with draws (S, dim) of unconstrained coordinates."""
        assert self.density is not None
        return self.from_variables(self.density.variables(w))

    def from_variables(self, variables: Mapping[str, Floats]) -> FittedModel:
        """Return the model with draws of its parameters."""
        return self._fitted(draws=variables)

    def sample(self, settings: Settings, gaussian: GaussianPosterior | None) -> "tuple[FittedModel, xr.DataTree]":
        """Draw by NUTS; rows with gaps of LDA and QDA by data augmentation."""
        if not self.proper:
            raise PriorError(self.no_exact())
        if self.moments is None and isinstance(self.prior, NIW):
            return self.fitted_tree(fitting.augmented(self, settings))
        return super().sample(settings, gaussian)

    def geometry(self) -> GaussianPosterior | None:
        """Return the Gaussian at the mode; None for rows with gaps."""
        return None if self.moments is None else super().geometry()

    def sampled_evidence(self, model: FittedModel, chains: int) -> tuple[float, float]:
        """Return the closed form where there is one; the bridge from draws of an LKJ posterior."""
        exact = self.exact()
        if exact is not None:
            return exact.log_evidence, 0.0
        assert isinstance(model, GaussianClassifier)
        if self.density is None:
            return fitting.evidence(self, model, chains)
        assert model.draws is not None
        return self.bridge_evidence(self.density.coordinates(model.draws), chains)

    def prior_and_likelihood(self, variables: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return log prior and log likelihood (S,) of draws; of rows with gaps that of what is observed."""
        if self.moments is not None:
            return super().prior_and_likelihood(variables)
        none = Moments.from_arrays(np.zeros((self.data.K, self.data.d)), np.arange(self.data.K), self.data.K)
        parts = gaussian_density(none, self.prior, self.alpha, self.covariance).log_prior(variables)
        rows = self.from_variables(variables).log_likelihood(variables, self.data.X, self.data.y)
        return np.asarray(sum(parts.values())), self._weighted(rows)

    def assumptions(self, gaussian: GaussianPosterior | None, random_seed: int) -> Assumptions:
        """Check whether the classes are Gaussian and shaped as the model says, on complete rows without weights."""
        rows = self.rows
        whole = ~np.isnan(rows.X).any(axis=1)
        if not whole.any() or rows.weight is not None:
            return Assumptions()
        rows = rows if whole.all() else rows.subset(whole)
        shared, diagonal = self.covariance == "shared", self.covariance == "diagonal"
        return gaussian_assumptions(rows, shared=shared, diagonal=diagonal, random_seed=random_seed)

    def mean_gaussians(self, variables: Mapping[str, Floats]) -> Gaussians | None:
        """Return the Gaussian classes at the posterior means of draws; None for independent features."""
        if "Sigma" not in variables:
            return None
        return Gaussians(**{name: variables[name].mean(axis=0) for name in ("pi", "mu", "Sigma")})

    def build(self) -> "pm.Model":
        """Return the PyMC model, on moments; of rows with gaps on the patterns of these."""
        from bayes_gda.models import lda, naive, qda

        write: Any = {"shared": lda.build, "own": qda.build, "diagonal": naive.build}[self.covariance]
        data = self.plain_data if self.moments is None else self.moments
        return write(data, self.prior, Dirichlet(self.alpha))

    def _fitted(self, **source: Any) -> GaussianClassifier:
        counts = fitting.counts(self.data) if self.moments is None else self.moments
        return GaussianClassifier(self.covariance, counts, self.prior, self.alpha, **source)


class LDA(Gaussian):
    """Linear discriminant analysis: one covariance for all classes."""

    name, title, estimator = "lda", "Linear discriminant analysis", "BayesianLDA"
    sentence = "Each class is Gaussian, and all share one covariance matrix; the boundaries are linear."
    formula = ("y ~ Categorical(π)", "x | y = k ~ N(μₖ, Σ)")
    variables = ("pi", "mu", "Sigma")
    covariance = "shared"


class QDA(Gaussian):
    """Quadratic discriminant analysis: each class with a covariance of its own."""

    name, title, estimator = "qda", "Quadratic discriminant analysis", "BayesianQDA"
    sentence = "Each class is Gaussian with a covariance matrix of its own; the boundaries are quadratic."
    formula = ("y ~ Categorical(π)", "x | y = k ~ N(μₖ, Σₖ)")
    variables = ("pi", "mu", "Sigma")
    covariance = "own"


class Naive(Gaussian):
    """The naive Gaussian classifier: features independent within a class."""

    name, title, estimator = "naive", "Naive Gaussian classifier", "BayesianNaiveGaussian"
    sentence = "Each class is Gaussian, and its features are independent within the class."
    formula = ("y ~ Categorical(π)", "xⱼ | y = k ~ N(μₖⱼ, σ²ₖⱼ)")
    variables = ("pi", "mu", "sigma2")
    covariance = "diagonal"
    conjugate = NIG


@dataclass(frozen=True, eq=False)
class RDA(Family):
    """Regularised discriminant analysis: the average over the models between naive, LDA and QDA.

    Parameters
    ----------
    data, prior
        Training rows, or the names alone where their moments are known; the grid of models.
    moments
        Sufficient statistics.
    """

    prior: Grid = field(default_factory=Grid)
    moments: Moments = field(repr=False, kw_only=True)

    name, title, estimator = "rda", "Regularised discriminant analysis", "BayesianRDA"
    sentence = "An average over the models between naive, LDA and QDA, weighted by their evidence."
    formula = ("y ~ Categorical(π)", "x | y = k ~ N(μₖ, Σₖ), Σₖ drawn towards what the classes share")
    kind = "generative"
    variables = ("pi", "mu", "Sigma")
    averages = True
    stored = (AveragedClassifier, Grid)

    @classmethod
    def bind(cls, data: Dataset, prior: Any = None) -> Self:
        """Join the grid of models with complete rows."""
        moments = Moments.from_arrays(data.X, data.y, data.K, sample_weight=data.weight)
        return cls(data, Grid() if prior is None else prior, moments=moments)

    def exact(self) -> Exact:
        """Return the average over the grid, whose charge for the estimated target is by Laplace's method."""
        m, grid = self.moments, self.prior
        check_effort(int(m.n), m.d, m.K, len(grid.pooling) * len(grid.diagonal))
        alpha = Dirichlet().vector(m.K)
        model = AveragedClassifier(self.moments, alpha, pooled_covariance(self.moments), self.prior)
        reason = (
            "The average over the grid of models is exact; what their covariances are drawn towards is estimated from "
            "the same rows (empirical Bayes), and charged to their evidence."
        )
        return Exact(model, model.continuum.log_mean_evidence, np.nan, reason)

    @property
    def has_mode(self) -> bool:
        """Whether there is a log posterior to climb: it is a sum of closed forms."""
        return False

    @property
    def can_sample(self) -> bool:
        """Whether there is a PyMC model: there is none of the average."""
        return False
