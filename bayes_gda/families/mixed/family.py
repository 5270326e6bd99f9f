"""Columns of any type as a family: naive Bayes with a distribution of its own for every column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.columns import Encoding
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.assumptions import Assumptions
from bayes_gda.families.base import Family
from bayes_gda.families.mixed.choice import BY_EVIDENCE, Choice, choose, describe
from bayes_gda.families.mixed.classifier import MixedClassifier, variable_names
from bayes_gda.families.mixed.column import Statistic
from bayes_gda.families.mixed.distributions import DISTRIBUTIONS
from bayes_gda.families.mixed.shapes import Shaped
from bayes_gda.methods.density import COORDINATES, Density, Smoothed, ThirdOrder
from bayes_gda.methods.ladder import EXACT, Exact
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.priors import Dirichlet
from bayes_gda.priors.mixed import ColumnPrior, MixedPrior

if TYPE_CHECKING:
    import pymc as pm

Distributions = str | Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Mixed(Family):
    """Naive Bayes with a distribution of its own for every column.

    Parameters
    ----------
    data, prior
        Training rows, or the names alone where their statistics are known; distributions and priors of the columns.
    alpha
        (K,) Dirichlet parameters.
    choices
        How each distribution was chosen.
    class_count, statistics
        Rows of each class, and what each column knows of them.
    """

    prior: MixedPrior
    alpha: Floats = field(repr=False, kw_only=True)
    choices: tuple[Choice, ...] = field(default=(), repr=False, kw_only=True)
    class_count: Floats = field(repr=False, kw_only=True)
    statistics: tuple[Statistic, ...] = field(repr=False, kw_only=True)

    name, title, estimator = "mixed", "Naive Bayes for mixed columns", "BayesianNaive"
    kind = "generative"
    sentence = "Within a class the columns are independent, each with a distribution that suits its type."
    formula = ("y ~ Categorical(π)", "xⱼ | y = k ~ fⱼ(θₖⱼ): normal, log-normal, gamma, Poisson, categorical …")
    takes_gaps = True
    reads_levels = True
    other_prior = 'distributions="type"'
    stored = (MixedClassifier, MixedPrior, ColumnPrior, Statistic, Choice)

    @classmethod
    def default_for(cls, K: int) -> bool:
        """Whether it is fitted unless one says which: only where a table has columns that are no numbers."""
        return False

    @classmethod
    def suits(cls, encoding: object) -> bool:
        """Whether a table has categories or truth values, which other models take for numbers."""
        return isinstance(encoding, Encoding) and any(column.kind != "numeric" for column in encoding.columns)

    @classmethod
    def bind(cls, data: Dataset, prior: MixedPrior | None = None, distributions: Distributions = BY_EVIDENCE) -> Self:
        """Join the model with rows; None chooses the distributions and their default priors."""
        if prior is None:
            made, choices = choose(data, distributions)
        elif not isinstance(prior, MixedPrior):
            raise PriorError(f"`prior` of BayesianNaive must be a MixedPrior or None; got {prior!r}.")
        elif prior.d != data.d:
            raise PriorError(f"`prior` has {prior.d} columns of X, the rows have {data.d}. Give one entry a column.")
        else:
            made, choices = prior, tuple(Choice(c.name, c.distribution, "given", {}) for c in prior.columns)
        return cls.of_statistics(data, made, *summarise(data, made), choices=choices)

    @classmethod
    def of_statistics(
        cls,
        data: Dataset,
        prior: MixedPrior,
        class_count: Floats,
        statistics: tuple[Statistic, ...],
        *,
        choices: tuple[Choice, ...] = (),
        alpha: Floats | None = None,
    ) -> Self:
        """Join the model with what is known of the rows; `data` may be without rows, and then has the names alone."""
        alpha = Dirichlet().vector(data.K) if alpha is None else alpha
        return cls(data, prior, alpha=alpha, choices=choices, class_count=class_count, statistics=statistics)

    @classmethod
    def prepare(cls, data: Dataset, inference: str, prior: Any = None) -> Dataset:
        """Leave the rows as they are: each column pools its own equal values."""
        return data

    # ── Words ───────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def variables(self) -> tuple[str, ...]:  # type: ignore[override]  # those of its columns, known only here
        """Parameters that a posterior shows."""
        return variable_names(self.prior)

    def describe_prior(self) -> tuple[str, ...]:
        """Return the prior in lines of plain text."""
        lines = [
            f"{column.name}, {column.distribution}: {DISTRIBUTIONS[column.distribution].describe_prior(column.numbers)}"
            for column in self.prior.columns
        ]
        return *lines, "π ~ Dirichlet(1, …, 1)"

    def remarks(self) -> tuple[str, ...]:
        """Say which distribution each column has, and why."""
        return (describe(self.choices),) if self.choices else ()

    @property
    def coords(self) -> dict[str, list[str]]:
        """Names of the classes, and of the entries of each parameter."""
        return mixed_coords(self.prior, self.data.class_names)

    @classmethod
    def model_coords(
        cls, model: FittedModel, class_names: Sequence[Any], feature_names: Sequence[str]
    ) -> dict[str, list[str]]:
        """Return the same for a fitted model whose data are gone."""
        assert isinstance(model, MixedClassifier)
        return mixed_coords(model.prior, class_names)

    @property
    def parameters(self) -> int:
        """Number of free parameters."""
        own = [
            len(c.levels) - 1 if c.distribution == "categorical" else DISTRIBUTIONS[c.distribution].parameters
            for c in self.prior.columns
        ]
        return self.data.K - 1 + self.data.K * sum(own)

    # ── Posterior ───────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _exact(self) -> MixedClassifier:
        return MixedClassifier(self.prior, self.alpha, self.class_count, self.statistics, self.choices)

    def exact(self) -> Exact:
        """Return the exact posterior: conjugate, or conjugate given a shape that is integrated out numerically."""
        model = self._exact
        value = _dirichlet_evidence(self.alpha, self.class_count)
        value += float(sum(column.log_evidence.sum() for column in model.columns))
        pairs = zip(self.prior.columns, model.columns, strict=True)
        shaped = [(spec.name, column) for spec, column in pairs if isinstance(column, Shaped)]
        if not shaped:
            return Exact(model, value, 0.0, EXACT)
        # Halving the step squares the error, so that the square of the difference is what remains.
        error = float(sum((c.rule.error**2).sum() for _, c in shaped))
        names = ", ".join(name for name, _ in shaped)
        reason = (
            f"The prior is conjugate, for {names} given a shape that is integrated out numerically; the error of the "
            f"log evidence by this is about {max(error, 1e-15):.0e}."
        )
        return Exact(model, value, error, reason)

    def sampled_evidence(self, model: FittedModel, chains: int) -> tuple[float, float]:
        """Return the exact evidence, which is known however the posterior was drawn."""
        exact = self.exact()
        return exact.log_evidence, exact.log_evidence_error

    @property
    def has_mode(self) -> bool:
        """Whether there is a log posterior to climb: where there are rows, not their statistics alone."""
        return self.data.n > 0

    @property
    def can_sample(self) -> bool:
        """Whether MCMC is within reach: where there are rows."""
        return self.data.n > 0

    def assumptions(self, gaussian: GaussianPosterior | None, random_seed: int) -> Assumptions:
        """Check the distributions of the columns and their independence, on rows without weights."""
        from bayes_gda.families.mixed.assumptions import mixed_assumptions

        if self.rows.weight is not None:
            return Assumptions()
        return mixed_assumptions(self._exact, self.rows, random_seed)

    @cached_property
    def density(self) -> Density:
        """The hand-written density, on the statistics."""
        from bayes_gda.families.mixed.density import MixedDensity

        return MixedDensity(self._exact)

    @cached_property
    def target(self) -> ThirdOrder:
        """The log posterior with its derivatives."""
        return Smoothed(self.density)

    @property
    def cost_rows(self) -> int:
        """The statistics of a class count as a row, whatever the rows behind them."""
        return self.data.K

    def draw_prior(self, size: int, random_seed: int) -> dict[str, Floats]:
        """Draw the parameters (size, …) from the prior: the posterior of no rows."""
        K, none = self.data.K, np.empty(0, dtype=np.intp)
        statistics = tuple(
            DISTRIBUTIONS[spec.distribution].summarise(np.empty(0), none, K, None, spec.numbers)
            for spec in self.prior.columns
        )
        prior = replace(self._exact, class_count=np.zeros(K), statistics=statistics)
        return prior.draw_variables(size, random_seed=random_seed)

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode, in unconstrained coordinates."""
        return laplace_approximation(self.target, self.density.start)

    def from_coordinates(self, w: Floats) -> FittedModel:
        """Return the model with draws (S, dim) of unconstrained coordinates."""
        return self.from_variables(self.density.variables(w) | {COORDINATES: w})

    def build(self) -> "pm.Model":
        """Return the PyMC model of the rows, under plain names."""
        from bayes_gda.models import mixed

        columns = [replace(column, name=f"x{j + 1}") for j, column in enumerate(self.prior.columns)]
        return mixed.build(self.plain_data, MixedPrior(tuple(columns)), Dirichlet(self.alpha))

    def from_variables(self, variables: Mapping[str, Floats]) -> FittedModel:
        """Return the model with draws of its parameters."""
        return replace(self._exact, draws=dict(variables))

    def prior_and_likelihood(self, variables: Mapping[str, Floats]) -> tuple[Floats, Floats]:
        """Return log prior and log likelihood (S,) of draws; the prior by the logarithm of positive parameters."""
        shown = {name: value for name, value in variables.items() if name != COORDINATES}
        rows = self._exact.log_likelihood(shown, self.data.X, self.data.y)
        weight = np.ones(self.data.n) if self.data.weight is None else self.data.weight
        return self._exact.log_prior(shown), rows @ weight


def summarise(data: Dataset, prior: MixedPrior) -> tuple[Floats, tuple[Statistic, ...]]:
    """Return the rows of each class (K,), and the statistic of each column."""
    out = []
    for spec in prior.columns:
        cls, x = DISTRIBUTIONS[spec.distribution], spec.read(data.X)
        if (bad := cls.outside(x, spec.numbers)).any():
            raise DataError(outside_message(spec, x, bad))
        out.append(cls.summarise(x, data.y, data.K, data.weight, spec.numbers))
    return np.bincount(data.y, weights=data.weight, minlength=data.K).astype(np.float64), tuple(out)


def outside_message(spec: ColumnPrior, x: Floats, bad: np.ndarray) -> str:
    """Return what to say of values that a column's distribution cannot have."""
    from bayes_gda.families.mixed.choice import SUPPORT

    return (
        f"Column {spec.name!r} is {spec.distribution}: {SUPPORT[spec.distribution]}; got {x[bad][0]:g} in row "
        f"{int(bad.argmax()) + 1}. Correct it, or fit with distributions={{{spec.name!r}: 'normal'}}."
    )


def mixed_coords(prior: MixedPrior, class_names: Sequence[Any]) -> dict[str, list[str]]:
    """Return the names of the classes, and of the entries of every parameter."""
    out: dict[str, list[str]] = {"class": [str(name) for name in class_names]}
    for column in prior.columns:
        out.setdefault(DISTRIBUTIONS[column.distribution].dim, []).extend(column.entries)
    return out


def _dirichlet_evidence(alpha: Floats, count: Floats) -> float:
    from scipy.special import gammaln

    total = gammaln(alpha.sum()) - gammaln((alpha + count).sum())
    return float(total + (gammaln(alpha + count) - gammaln(alpha)).sum())
