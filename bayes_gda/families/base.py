"""A family is everything that only one model knows; here are its defaults.

A `Family` is a model with its data and its prior: words, PyMC model, log density, exact posterior if there is one, fast
approximations if it has better ones than plain Laplace, and how draws or a Gaussian become class probabilities. The
methods know no model: they ask a family. The doors read the registry.

A new family brings at least its words, `build` and `log_terms`; all else has defaults here, which go by the PyMC model.
It is registered by `register`, or by a line in HOMES:

    class Poisson(Family):
        name, title, kind = "poisson", "Poisson naive Bayes", "generative"
        sentence, formula = "Within a class, every feature is a count of its own rate.", ("y ~ Categorical(π)", …)
        variables = ("pi", "rate")
        def build(self): …  # the pm.Model
        log_terms = staticmethod(lambda variables, X: …)  # log p(x, y=k | θ_s) (S, n, K), or log p(y=k | x, θ_s)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.labels import coordinates, draws_of, named_tree
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError
from bayes_gda.families import sampled
from bayes_gda.families.assumptions import Assumptions
from bayes_gda.families.groups import add_rows
from bayes_gda.methods.bridge import bridge_log_evidence
from bayes_gda.methods.density import COORDINATES, Density, Smooth, ThirdOrder
from bayes_gda.methods.diagnostics import Diagnosis, diagnose
from bayes_gda.methods.importance.trust import Predictor
from bayes_gda.methods.ladder import Exact, Propagated
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Settings
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.monte_carlo import MonteCarlo, judge_errors, probabilities
from bayes_gda.priors import Seed

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayes_gda.families.gaussian.discriminant import Gaussians
    from bayes_gda.methods.adapter import ModelDensity

Kind = Literal["generative", "discriminative"]


@dataclass(frozen=True, eq=False)
class Family:
    """A model with its data and its prior.

    Parameters
    ----------
    data
        Training rows; with weights if some count more than once.
    prior
        The prior in use.
    """

    data: Dataset = field(repr=False)
    prior: Any = None

    # ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────

    # Short name, full name, what it assumes in a sentence, and the model in lines of plain text.
    name: ClassVar[str]
    title: ClassVar[str]
    sentence: ClassVar[str]
    formula: ClassVar[tuple[str, ...]]
    # Whether p(x, y) is modelled, or p(y | x) alone.
    kind: ClassVar[Kind]
    # The estimator that fits it, a public name of `bayes_gda`. One that no module has is made from the family, with the
    # parameters of `bind` after the data, each with a sentence in `options`.
    estimator: ClassVar[str] = "FamilyClassifier"
    options: ClassVar[Mapping[str, str]] = {}
    # Parameters that a posterior shows, in their order.
    variables: ClassVar[tuple[str, ...]] = ()
    # How to ask its estimator for another prior, to see what changes; none by default.
    other_prior: ClassVar[str] = ""
    # Whether rows may have gaps, in training and in prediction; whether novelty and worth of measuring are known.
    takes_gaps: ClassVar[bool] = False
    reads_levels: ClassVar[bool] = False  # of categories, not 0/1 columns as if they were measured
    # Whether it averages over other models: such a one is scored, not dissected.
    averages: ClassVar[bool] = False
    verdict_rows: ClassVar[int] = 500  # training rows, spread over the data, whose probabilities the verdict compares
    # Types that a file may hold for this family, beside those of all families.
    stored: ClassVar[tuple[type, ...]] = ()

    @classmethod
    def default_for(cls, K: int) -> bool:
        """Whether the family is fitted to K classes unless one says which."""
        return True

    @classmethod
    def suits(cls, encoding: object) -> bool:
        """Whether a table with such columns asks for the family, if it is not fitted to every table."""
        return False

    @classmethod
    def check(cls, K: int) -> None:
        """Raise if the family does not apply to K classes."""

    def describe_prior(self) -> tuple[str, ...]:
        """Return the prior in lines of plain text."""
        return () if self.prior is None else (str(self.prior),)

    def remarks(self) -> tuple[str, ...]:
        """Return sentences on what the family chose by the rows, before the fit; none."""
        return ()

    @property
    def coords(self) -> dict[str, list[str]]:
        """Names of classes and features, or coefficients, for labelled draws."""
        return coordinates(class_names=self.data.class_names, feature_names=self.data.feature_names)

    @classmethod
    def model_coords(
        cls, model: FittedModel, class_names: Sequence[Any], feature_names: Sequence[str]
    ) -> dict[str, list[str]]:
        """Return the same for a fitted model whose data are gone."""
        return coordinates(class_names=class_names, feature_names=feature_names)

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        return self.target.dim

    # ── Data and prior ──────────────────────────────────────────────────────────────────────────────────────────────

    @classmethod
    def bind(cls, data: Dataset, prior: Any = None) -> Self:
        """Join the model with data; None is the default prior. Subclasses may take further options."""
        return cls(data, prior)

    @classmethod
    def prepare(cls, data: Dataset, inference: str, prior: Any = None) -> Dataset:
        """Pool equal rows if the fit may run a chain, which blows up differences by rounding."""
        return data.pooled() if inference in ("auto", "mcmc") else data

    @property
    def rows(self) -> Dataset:
        """The rows as they were given, before equal ones were pooled."""
        return self.data.original or self.data

    @property
    def plain_data(self) -> Dataset:
        """The rows as PyMC models take them, under plain names: hostile ones are put on afterwards."""
        names = tuple(f"x{j + 1}" for j in range(self.data.d))
        return Dataset.of_checked(self.data.X, self.data.y, names, tuple(range(self.data.K)), self.data.weight)

    @property
    def proper(self) -> bool:
        """Whether the prior can be normalised."""
        return True

    @classmethod
    def from_signature(cls, **arguments: Any) -> Self:
        """Return the family of a PyMC model that its `build` signed."""
        return cls(**arguments)

    # ── Exact ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def exact(self) -> Exact | None:
        """Return the exact posterior, or None if there is no closed form."""
        return None

    def no_exact(self) -> str:
        """Say why there is no closed form, nor an approximation if there is none, and what to do."""
        return f"inference='exact' has no meaning for {self.title}, whose posterior has no closed form. Use 'auto'."

    # ── The log posterior, and the Gaussian at its mode ─────────────────────────────────────────────────────────────

    @property
    def has_mode(self) -> bool:
        """Whether there is a log posterior to climb; else it is exact or sampled."""
        return True

    @property
    def can_sample(self) -> bool:
        """Whether MCMC is within reach: not where each gradient is a pass over a table on disk."""
        return True

    @property
    def cost_rows(self) -> int:
        """Rows that an evaluation of the log posterior sums over, which set its cost."""
        return self.data.n

    @property
    def single_look(self) -> bool:
        """Whether the check may look at the log posterior once or twice only, since a look is a pass over a table."""
        return False

    @cached_property
    def target(self) -> ThirdOrder:
        """The log posterior in unconstrained coordinates, with its derivatives."""
        return self._graph

    @property
    def third_order(self) -> ThirdOrder:
        """What the third derivatives are taken of, for the start of a correction."""
        return self.target

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode; `ConvergenceError` if there is none."""
        from bayes_gda.methods.adapter import laplace

        return laplace(self._graph).gaussian

    def predictor(self, random_seed: int) -> Predictor:
        """Return the predictor of the training rows, or of `verdict_rows` spread over them."""
        from bayes_gda.families.drawn import DrawPredictor

        return DrawPredictor(self, self.data.X[self.spread_rows], self.data.K, random_seed)

    @property
    def spread_rows(self) -> NDArray[np.intp]:
        """Numbers of at most `verdict_rows` training rows, spread over all."""
        n = self.data.n
        return np.linspace(0, n - 1, min(self.verdict_rows, n)).round().astype(np.intp)

    @property
    def looked_at(self) -> str:
        """Which rows `spread_rows` are, in words that go before `rows`."""
        n = max(self.rows.n, self.cost_rows)
        return "training" if len(self.spread_rows) == n else f"of {n} training"

    def monte_carlo(self, model: FittedModel, tolerance: float) -> MonteCarlo | None:
        """Return the Monte Carlo errors of the rows that the verdict looks at; None if predictions are closed forms."""
        if not model.averages_draws:
            return None
        return judge_errors(probabilities(model, self.data.X[self.spread_rows])[1], tolerance, self.looked_at)

    def propagate(self, gaussian: GaussianPosterior) -> Propagated | None:
        """Return a better Gaussian than Laplace's, with what is known of both; None if the family knows none."""
        return None

    def skewed(self, gaussian: GaussianPosterior, size: int, random_seed: int) -> Floats | None:
        """Return draws (size, dim) of the skew-modal approximation, or None if that is not offered."""
        return None

    def row_term(self, x: Floats, k: int, scale: Floats) -> Smooth:
        """Return the log likelihood of a row x (1, d) of class k at coordinates; `scale` (dim,) are posterior sds."""
        from bayes_gda.methods.importance.without import RowTerm

        def log_likelihood(W: Floats) -> Floats:
            model = self.from_coordinates(W)
            return model.log_terms(model.draw_variables(len(W)), x)[:, 0, k]

        return RowTerm(log_likelihood, scale)

    # ── From draws to a fitted model ────────────────────────────────────────────────────────────────────────────────

    @staticmethod
    def log_terms(variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return log p(x, y=k | θ_s) of a generative family, log p(y=k | x, θ_s) of another, (S, n, K)."""
        raise NotImplementedError

    @staticmethod
    def draw_rows(variables: Mapping[str, Floats], random_seed: Seed = None) -> tuple[Floats, NDArray[np.intp]]:
        """Draw a row (S, d) and its class code (S,) for each draw of a generative family, if it knows how."""
        raise NotImplementedError

    def from_variables(self, variables: Mapping[str, Floats]) -> FittedModel:
        """Return the model with draws of its parameters, `{name: (S, …)}`."""
        from bayes_gda.families.drawn import DrawnModel

        kept = (*self.variables, COORDINATES)
        draws = {name: np.asarray(value) for name, value in variables.items() if not self.variables or name in kept}
        return DrawnModel(self.name, self.data.K, self.data.d, self.data.shares, draws)

    def from_coordinates(self, w: Floats) -> FittedModel:
        """Return the model with draws (S, dim) of unconstrained coordinates."""
        return self.from_variables(self._graph.draws(w) | {COORDINATES: w})

    def from_gaussian(self, posterior: GaussianPosterior, settings: Settings) -> FittedModel:
        """Return the model whose posterior is the Gaussian."""
        from bayes_gda.families.drawn import weighed

        model = self.from_coordinates(posterior.draw(settings.size, random_seed=settings.random_seed))
        return weighed(model, self.target, posterior)

    def from_propagated(self, posterior: GaussianPosterior, settings: Settings) -> FittedModel:
        """Return the model whose posterior is the better Gaussian of `propagate`."""
        return self.from_gaussian(posterior, settings)

    def certified(self, model: FittedModel, better: Propagated) -> FittedModel:
        """Return a model of Laplace's or the better Gaussian with what it takes to judge new rows; as it is if none."""
        return model

    # ── MCMC ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def build(self) -> "pm.Model":
        """Return the PyMC model of `plain_data`."""
        raise NotImplementedError

    @property
    def density(self) -> Density | None:
        """The hand-written density in the coordinates of the PyMC model; None goes by its graph."""
        return None

    @cached_property
    def _graph(self) -> "ModelDensity":
        from bayes_gda.methods.adapter import ModelDensity

        return ModelDensity.of(self.build())

    def sample(self, settings: Settings, gaussian: GaussianPosterior | None) -> "tuple[FittedModel, xr.DataTree]":
        """Return the model with draws, and the tree that the sampler returned, under the user's names.

        `settings.sampler` is `hmc` or one of NUTS; `auto` is PyMC's.
        """
        options: dict[str, Any] = {
            "draws": settings.draws,
            "chains": settings.chains,
            "random_seed": settings.random_seed,
            "progress": settings.progress,
        }
        if settings.sampler == "hmc":
            return self.fitted_tree(sampled.sample_hmc(self, gaussian, **options))
        options |= {"keep_coordinates": True, "sampler": "pymc" if settings.sampler == "auto" else settings.sampler}
        return self.fitted_tree(sampled.sample_nuts(self, self.build(), gaussian, **options))

    def geometry(self) -> GaussianPosterior | None:
        """Return the Gaussian that gives a sampler its starts and its mass matrix; None if there is no mode."""
        try:
            return self.laplace()
        except ConvergenceError:
            return None

    def fitted_tree(self, tree: "xr.DataTree") -> "tuple[FittedModel, xr.DataTree]":
        """Return the model with a sampler's draws, and their tree under the user's names with the user's rows."""
        draws = draws_of(tree)
        model = self.from_variables(draws)
        tree = named_tree(tree, self.variables or tuple(name for name in draws if name != COORDINATES), self.coords)
        add_rows(tree, self.rows, model, model.draw_variables(len(next(iter(draws.values())))))
        return model, tree

    def diagnose(self, tree: "xr.DataTree") -> Diagnosis:
        """Return whether the chains of a tree can be relied upon."""
        return diagnose(tree)

    def sampled_evidence(self, model: FittedModel, chains: int) -> tuple[float, float]:
        """Return the log evidence from draws by MCMC, and its error; nan if there is none, an error if they fail."""
        return np.nan, np.nan

    def bridge_evidence(self, points: Floats, chains: int) -> tuple[float, float]:
        """Return the log evidence by bridge sampling, and its error, from draws (S, dim); raises if they do not do."""
        bridge = bridge_log_evidence(self.target.log_density, points, chains=chains)
        return bridge.log_evidence, bridge.log_evidence_error

    def target_coordinates(self, w: Floats) -> Floats:
        """Return points (S, dim) that `stored_coordinates` returned as points of `target`."""
        return w

    def stored_coordinates(self, w: Floats) -> Floats:
        """Return points (S, dim) of `target` as `variables_of` of the fitted model reads them; the same by default."""
        return w

    # ── What a report asks beyond ───────────────────────────────────────────────────────────────────────────────────

    def prior_and_likelihood(self, variables: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return log prior and log likelihood (S,) of draws; the prior by the logarithm of positive parameters."""
        density = self.density
        if density is not None:
            log_prior = sum(density.log_prior(variables).values(), np.zeros(()))
            return np.asarray(log_prior), density.total_log_likelihood(variables, self.data)
        model = self.from_variables(variables)
        likelihood = self._weighted(model.log_likelihood(variables, self.data.X, self.data.y))
        return self.target.log_density(variables[COORDINATES]) - likelihood, likelihood

    def _weighted(self, log_likelihood: Floats) -> Floats:
        """Return the sum (S,) of the rows' log likelihoods (S, n), each as often as the row counts."""
        return np.asarray(log_likelihood @ (np.ones(self.data.n) if self.data.weight is None else self.data.weight))

    def draw_prior(self, size: int, random_seed: int) -> dict[str, Floats] | None:
        """Draw the parameters (size, …) from the prior; None if it is improper, or this is not known."""
        return None

    def identified(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return what the likelihood can determine of parameters (S, …), for the sensitivity to the prior: all."""
        return dict(variables)

    def probabilities(self, X: Floats, gaussian: GaussianPosterior) -> dict[str, Floats]:
        """Return probabilities (n, K) of the Gaussian by link, where the family has a link; none by default."""
        return {}

    def mean_gaussians(self, variables: Mapping[str, Floats]) -> "Gaussians | None":
        """Return the Gaussian classes at the posterior means of draws, for ellipses; None if there are none."""
        return None

    def assumptions(self, gaussian: GaussianPosterior | None, random_seed: int) -> Assumptions:
        """Check what the model assumes on its training rows; `gaussian` is that at the mode, if there is one."""
        return Assumptions()
