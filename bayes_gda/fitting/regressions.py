"""The regressions as problems: the steps of each method for logistic and softmax regression.

Under a Gaussian or flat prior the coordinates are the weights; with an unknown scale log τ stands before them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.labels import coordinates
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, one_line
from bayes_gda.families.classifier import FittedClassifier, RegressionClassifier
from bayes_gda.families.fused import fused_density
from bayes_gda.families.linear.densities import HierarchicalDensity, log_likelihood_of_rows
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import RegressionTarget, regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor, SoftmaxPredictor
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.fitting.defaults import Rows
from bayes_gda.fitting.trees import add_rows, draws_of, named_tree
from bayes_gda.methods.bridge import bridge_log_evidence
from bayes_gda.methods.density import Smoothed
from bayes_gda.methods.importance.at_once import first_look
from bayes_gda.methods.importance.trust import LogDensity, Predictor, Trust, assess
from bayes_gda.methods.ladder import TOLERANCE, Settings
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.methods.skew import ThirdTrace, lindley_mean
from bayes_gda.models.blueprint import RegressionBlueprint
from bayes_gda.priors import HierarchicalScale, Normal

if TYPE_CHECKING:
    import xarray as xr

# Training rows whose probabilities are compared for the verdict.
VERDICT_ROWS = 2000
# From so many rows on, few draws are weighed first, over all rows: where rows are many the posterior is near Gaussian,
# and they are enough to say so. The full check takes some .2 s here, and grows with the rows.
MANY_ROWS = 5_000


@dataclass(frozen=True, slots=True, eq=False)
class Design:
    """What both kinds of prior have in common: rows, their design matrix, and the form of the model.

    Parameters
    ----------
    rows, features, Phi
        The training rows, the feature map, and the design matrix (n, m).
    reference
        Whether the last class of a softmax regression has weights zero.
    """

    rows: Rows
    features: FeatureMap
    Phi: Floats
    reference: bool

    @property
    def binary(self) -> bool:
        """Whether it is logistic regression."""
        return self.rows.K == 2

    def target(self, prior: Normal) -> RegressionTarget:
        """Return the log posterior of the weights under a Gaussian prior."""
        if self.binary:
            return LogisticTarget(self.Phi, self.rows.codes.astype(float), prior, self.rows.weight)
        return SoftmaxTarget(self.Phi, self.rows.codes, self.rows.K, prior, self.rows.weight, self.reference)

    def weight_names(self) -> list[str]:
        """Return the names of all weights, for messages: in one line each."""
        if self.binary:
            return [one_line(name) for name in self.features.names]
        free = self.rows.classes[: self.rows.K - self.reference].tolist()
        return [one_line(f"{name} ({label})") for label in free for name in self.features.names]

    def predictor(self) -> "_Reported":
        """Return a predictor of the training rows, or of VERDICT_ROWS spread over them."""
        n = len(self.Phi)
        Phi = self.Phi[np.linspace(0, n - 1, min(VERDICT_ROWS, n)).round().astype(np.intp)]
        return _Reported(
            BinaryPredictor(Phi) if self.binary else SoftmaxPredictor(Phi, self.rows.K, self.reference),
        )

    def model(
        self,
        *,
        posterior: GaussianPosterior | None = None,
        draws: Floats | None = None,
        tau: Floats | None = None,
    ) -> RegressionClassifier:
        """Return the fitted model."""
        K, shares = self.rows.K, self.rows.shares
        return RegressionClassifier(self.features, K, self.binary, self.reference, shares, posterior, draws, tau)

    def dataset(self) -> Dataset:
        """Return the rows as the models take them, under plain names: hostile ones are put on afterwards."""
        names = tuple(f"x{j + 1}" for j in range(self.rows.X.shape[1]))
        return Dataset(self.rows.X, self.rows.codes, names, tuple(range(self.rows.K)))

    def sample(
        self, prior: Normal | HierarchicalScale, settings: Settings
    ) -> tuple[RegressionClassifier, "xr.DataTree"]:
        """Sample the PyMC model."""
        from bayes_gda.methods.nuts.sampling import LIKELIHOOD_LIMIT, sample
        from bayes_gda.models import logistic, softmax

        phi = replace(self.features, feature_names=tuple(f"x{j + 1}" for j in range(self.rows.X.shape[1])))
        phi = replace(phi, names=tuple(f"c{j}" for j in range(len(phi.names))))
        data, c = self.dataset(), self.rows.weight
        if self.binary:
            model = logistic.build(data, prior, features=phi, sample_weight=c)
        else:
            model = softmax.build(data, prior, features=phi, sample_weight=c, reference=self.reference)
        tree = sample(
            model,
            draws=settings.draws,
            chains=settings.chains,
            sampler=settings.sampler,
            random_seed=settings.random_seed,
            progress=settings.progress,
        )
        unknown = isinstance(prior, HierarchicalScale)
        coords = coordinates(
            class_names=self.rows.classes.tolist(), feature_names=self.rows.names, coefficient_names=self.features.names
        )
        tree = named_tree(tree, ("tau", "w") if unknown else ("w",), coords)
        draws, rows = draws_of(tree), self.rows.original or self.rows
        w = draws["w"]
        fits = len(w) * len(rows.X) <= LIKELIHOOD_LIMIT
        given = replace(self, rows=rows, Phi=self.features(rows.X)).target(Normal(scale=frozen(np.inf)))
        add_rows(tree, rows, {"log_likelihood": log_likelihood_of_rows(given, w)} if fits else {})
        free = w if self.binary else w[:, : self.rows.K - self.reference].reshape(len(w), -1)
        return self.model(draws=free, tau=draws.get("tau")), tree


@dataclass(frozen=True, slots=True, eq=False)
class WeightsProblem:
    """A regression with a Gaussian or flat prior."""

    design: Design
    prior: Normal

    @property
    def proper(self) -> bool:
        """Whether no direction of the prior is flat."""
        return self.prior.is_proper

    def exact(self) -> None:
        """There is no closed form."""

    def no_exact(self) -> str:
        """Say why there is no closed form."""
        return _NO_EXACT

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode of the weights."""
        return regression_laplace(self.design.target(self.prior), names=self.design.weight_names())

    def assess(self, posterior: GaussianPosterior, random_seed: int) -> Trust:
        """Weigh the Gaussian, by the probabilities of training rows."""
        return weigh_gaussian(self.design.target(self.prior), posterior, self.design.predictor(), self.n, random_seed)

    def log_density(self, w: Floats) -> Floats:
        """Return the log posterior (S,) of weights (S, dim)."""
        return self.design.target(self.prior).log_density(w)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.design.Phi)

    def from_gaussian(self, posterior: GaussianPosterior, settings: Settings) -> RegressionClassifier:
        """Return the model with the Gaussian itself."""
        return self.design.model(posterior=posterior)

    def from_draws(self, w: Floats) -> RegressionClassifier:
        """Return the model with draws of the weights."""
        return self.design.model(draws=w)

    def sample(self, settings: Settings) -> tuple[RegressionClassifier, "xr.DataTree"]:
        """Sample the PyMC model."""
        return self.design.sample(self.prior, settings)

    def sampled_evidence(self, model: FittedClassifier, chains: int) -> tuple[float, float]:
        """Return the evidence by bridge sampling, or nan if the draws are too few."""
        assert isinstance(model, RegressionClassifier)
        assert model.draws is not None
        return _bridge(self.log_density, model.draws, chains)


@dataclass(frozen=True, slots=True, eq=False)
class HierarchicalProblem:
    """A regression whose slopes share an unknown scale; coordinates are (log τ, w)."""

    design: Design
    prior: HierarchicalScale

    @property
    def proper(self) -> bool:
        """The prior can be normalised."""
        return True

    def exact(self) -> None:
        """There is no closed form."""

    def no_exact(self) -> str:
        """Say why there is no closed form."""
        return _NO_EXACT

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the joint mode of log τ and w; where τ runs to 0 there is none."""
        density = self._density()
        return laplace_approximation(Smoothed(density), density.start)

    def assess(self, posterior: GaussianPosterior, random_seed: int) -> Trust:
        """Weigh the Gaussian, by the probabilities of training rows."""
        rows = _BehindScale(self.design.predictor())
        return weigh_gaussian(Smoothed(self._density()), posterior, rows, self.n, random_seed)

    def log_density(self, w: Floats) -> Floats:
        """Return the log posterior (S,) of (log τ, w) (S, dim)."""
        return Smoothed(self._density()).log_density(w)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.design.Phi)

    def from_gaussian(self, posterior: GaussianPosterior, settings: Settings) -> RegressionClassifier:
        """Return the model with draws of the Gaussian."""
        return self.from_draws(posterior.draw(settings.size, random_seed=settings.random_seed))

    def from_draws(self, w: Floats) -> RegressionClassifier:
        """Return the model with draws of (log τ, w)."""
        return self.design.model(draws=w[:, 1:], tau=np.exp(w[:, 0]))

    def sample(self, settings: Settings) -> tuple[RegressionClassifier, "xr.DataTree"]:
        """Sample the PyMC model."""
        return self.design.sample(self.prior, settings)

    def sampled_evidence(self, model: FittedClassifier, chains: int) -> tuple[float, float]:
        """Return the evidence by bridge sampling, or nan if the draws are too few."""
        assert isinstance(model, RegressionClassifier)
        assert model.draws is not None
        assert model.tau is not None
        points = np.column_stack([np.log(model.tau), model.draws])
        return _bridge(self.log_density, points, chains)

    def _density(self) -> HierarchicalDensity:
        d = self.design
        blueprint = RegressionBlueprint(d.dataset(), d.Phi, self.prior, d.binary, d.reference, d.rows.weight)
        density = fused_density(blueprint)
        assert isinstance(density, HierarchicalDensity)
        return density


_NO_EXACT = (
    "inference='exact' has no meaning for logistic regression, whose posterior has no closed form. "
    "Use inference='auto', which says how far its answer can be trusted."
)


@dataclass(frozen=True, slots=True, eq=False)
class _Reported:
    """A predictor whose fast answer is the one that the estimators report: the link integrated."""

    inner: BinaryPredictor | SoftmaxPredictor

    def fast(self, posterior: GaussianPosterior) -> Floats:
        return self.inner.reference(posterior)

    def reference(self, posterior: GaussianPosterior) -> Floats:
        return self.inner.reference(posterior)

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        return self.inner.averaged(draws, weight)


@dataclass(frozen=True, slots=True, eq=False)
class _BehindScale:
    """The same for coordinates (log τ, w): the Gaussian of w alone, and draws without their first entry."""

    inner: Predictor

    def fast(self, posterior: GaussianPosterior) -> Floats:
        return self.inner.fast(_without_first(posterior))

    def reference(self, posterior: GaussianPosterior) -> Floats:
        return self.inner.reference(_without_first(posterior))

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        return self.inner.averaged(np.ascontiguousarray(draws[:, 1:]), weight)


def _without_first(posterior: GaussianPosterior) -> GaussianPosterior:
    """Return the marginal of all coordinates but the first: its precision is H₂₂ − H₂₁H₁₂/H₁₁."""
    L = posterior.chol_precision
    H = L @ L.T
    marginal = H[1:, 1:] - np.outer(H[1:, 0], H[0, 1:]) / H[0, 0]
    return replace(posterior, mean=posterior.mean[1:], chol_precision=np.linalg.cholesky(marginal))


class Weighable(LogDensity, ThirdTrace, Protocol):
    """A target with the derivatives that Lindley's mean takes."""


def weigh_gaussian(
    target: Weighable,
    posterior: GaussianPosterior,
    rows: Predictor,
    n: int,
    random_seed: int,
) -> Trust:
    """Weigh a Gaussian by the probabilities of rows; of many rows at one look, if that is enough to trust it."""
    mean = lindley_mean(posterior, target)
    if n >= MANY_ROWS:
        trust = first_look(target, posterior, mean=mean, predictor=rows, tolerance=TOLERANCE, random_seed=random_seed)
        if trust.verdict == "trusted":
            return trust
    return assess(target, posterior, mean=mean, predictor=rows, tolerance=TOLERANCE, random_seed=random_seed)


def _bridge(log_density: Callable[[Floats], Floats], draws: Floats, chains: int) -> tuple[float, float]:
    try:
        found = bridge_log_evidence(log_density, draws, chains=chains)
    except DataError:  # too few draws
        return np.nan, np.nan
    return found.log_evidence, found.log_evidence_error
