"""Mixture discriminant analysis as a family: each class a mixture of Gaussians, as many as the evidence asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.labels import coordinates, draws_of, to_datatree
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError, DataError, PriorError, StoreError
from bayes_gda.families.drawn import DrawnModel
from bayes_gda.families.fused import FusedFamily, choose, joint_terms
from bayes_gda.families.mixture.clouds import KINDS
from bayes_gda.families.mixture.density import MixtureBlock, Ordered, class_moments, log_mixture
from bayes_gda.linalg import drawn_root, one_blas_thread
from bayes_gda.methods.density import Smoothed, ThirdOrder
from bayes_gda.methods.diagnostics import Diagnosis, diagnose
from bayes_gda.methods.laplace import laplace_approximation
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.priors import NIG, NIW, Dirichlet, Seed
from bayes_gda.priors.mixture import component_default, draw_components, ordering_axes

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

Covariances = Literal["own", "shared", "diagonal"]
# Components of a class, at most, that the evidence chooses from.
MOST_COMPONENTS = 4
# What the diagnosis of chains looks at.
INVARIANT = (
    "Judged by what does not depend on the numbering of components: class shares, means and variances of the classes, "
    "log likelihood. R-hat and ESS of single components are listed, not judged."
)


@dataclass(frozen=True, slots=True, eq=False)
class MixtureModel(DrawnModel):
    """Draws of a fitted mixture: `pi` (S, K), `weight` (S, C), `component_mu` (S, C, d), and covariances.

    These are `component_Sigma` (S, C, d, d), `Sigma` (S, d, d) if shared, or `component_sigma2` (S, C, d) if diagonal.

    Parameters
    ----------
    components
        (K,) number of components of each class.
    """

    components: tuple[int, ...] = ()

    @property
    def generates(self) -> bool:
        """Whether rows can be drawn: by its own `sample`."""
        return True

    def _slice(self, k: int) -> slice:
        return slice(sum(self.components[:k]), sum(self.components[: k + 1]))

    def log_terms(self, variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return log π_k Σ_c ω_c N(x | μ_c, Σ_c) (S, n, K)."""
        return joint_terms(variables, X, lambda theta, rows, k: log_mixture(theta, rows, self._slice(k)))

    def sample(self, size: int, *, random_seed: Seed = None) -> tuple[Floats, NDArray[np.intp]]:
        """Draw new rows: y ~ π, a component of y by its weight, then x from its Gaussian."""
        rng = np.random.default_rng(random_seed)
        theta = self.draw_variables(size, random_seed=rng)
        y = choose(theta["pi"], rng)
        owner = np.repeat(np.arange(self.K), self.components)
        # The weights of the other classes are 0, and the last component takes what rounding leaves of its own class.
        chosen = choose(np.where(owner == y[:, None], theta["weight"], 0.0), rng)
        each, last = np.arange(size), np.cumsum(self.components)[y] - 1
        c = np.minimum(chosen, last)
        z = rng.standard_normal((size, self.d, 1))
        if "component_sigma2" in theta:
            noise = np.sqrt(theta["component_sigma2"][each, c]) * z[..., 0]
        else:
            Sigma = theta["component_Sigma"][each, c] if "component_Sigma" in theta else theta["Sigma"]
            noise = (drawn_root(Sigma) @ z)[..., 0]
        return theta["component_mu"][each, c] + noise, y

    def check_whole(self) -> None:
        """Raise `StoreError` unless the parts of a model from a file fit each other."""
        DrawnModel.check_whole(self)
        C = sum(self.components)
        if len(self.components) != self.K or min(self.components) < 1:
            raise StoreError(f"`components` must be {self.K} numbers of at least 1; got {self.components}.")
        for name in ("weight", "component_mu"):
            if name not in self.draws or self.draws[name].shape[1] != C:
                raise StoreError(f"`{name}` must have {C} components.")


@dataclass(frozen=True, eq=False)
class Mixture(FusedFamily):
    """Mixtures of Gaussians with their data and prior, each component with a covariance of its own.

    Parameters
    ----------
    data, prior, alpha
        Training rows; NIW of a component, NIG of one with independent features; (K,) Dirichlet parameters.
    components
        (K,) number of components of each class.
    axis
        (K, d) direction along which the components of a class are put in order.
    """

    prior: NIW | NIG
    components: tuple[int, ...] = field(kw_only=True)
    axis: Floats = field(repr=False, kw_only=True)

    name, title, estimator = "mixture", "Mixture discriminant analysis", "BayesianMixture"
    sentence = "Each class is a mixture of Gaussians; it may have several centres, and boundaries of any shape."
    formula = ("y ~ Categorical(π)", "x | y = k ~ Σ ω_c N(μ_c, Σ_c) over the components c of class k")
    variables = ("pi", "weight", "component_mu", "component_Sigma")
    stored = (MixtureModel,)
    covariances: ClassVar[Covariances] = "own"
    options: ClassVar = {
        "prior": "NIW of the centre and covariance of a component, NIG if these are diagonal. None is the default of "
        "QDA, or of the naive model, with half the volume.",
        "components": "Number of components of every class, or one number for each class in the order of `classes_`. "
        f"`evidence` takes that of the highest evidence by Laplace, 1 to {MOST_COMPONENTS}, for each class.",
        "covariances": "`own`: one for each component. `shared`: one for all components of all classes; `evidence` "
        "then chooses one number of components for all classes. `diagonal`: features are independent within a "
        "component, which takes the fewest parameters.",
    }

    @classmethod
    def bind(
        cls,
        data: Dataset,
        prior: NIW | NIG | None = None,
        *,
        components: int | tuple[int, ...] | str = "evidence",
        covariances: Covariances = "own",
    ) -> "Mixture":
        """Join the model with rows; None is the default prior."""
        if covariances not in KINDS:
            raise DataError(f"`covariances` must be 'own', 'shared' or 'diagonal'; got {covariances!r}.")
        family = NIG if covariances == "diagonal" else NIW
        if prior is not None and not (isinstance(prior, family) and prior.is_proper):
            raise PriorError(
                f"`prior` of BayesianMixture with covariances={covariances!r} must be a proper {family.__name__} or "
                f"None; got {prior!r}."
            )
        data.require_complete("Mixture discriminant analysis")
        prior = component_default(data.X, data.y, data.K, data.weight, family) if prior is None else prior
        if len(prior.m) != data.d:
            raise PriorError(f"`prior` has {len(prior.m)} features, `X` has {data.d}. Give one entry a feature.")
        axis = ordering_axes(data.X, data.y, data.K, prior, data.weight)
        numbers = choose_components(data, prior, axis, covariances) if components == "evidence" else None
        return _TYPES[covariances](
            data,
            prior,
            alpha=Dirichlet().vector(data.K),
            components=_check_components(components, data.K) if numbers is None else numbers,
            axis=axis,
        )

    @classmethod
    def from_signature(cls, **arguments: Any) -> Self:
        """Return the family of a PyMC model that `build` wrote."""
        kind: Any = _TYPES[arguments.pop("covariances")]
        return kind(**arguments)

    @classmethod
    def prepare(cls, data: Dataset, inference: str, prior: Any = None) -> Dataset:
        """Pool equal rows whatever the method: rounding must not decide in which of several modes a search ends."""
        return data.pooled()

    @classmethod
    def default_for(cls, K: int) -> bool:
        """Whether it is fitted unasked: no, choosing the components and checking the fit take some seconds."""
        return False

    def describe_prior(self) -> tuple[str, ...]:
        """Return the prior in lines of plain text."""
        c, (names, numbers) = "" if self.covariances == "shared" else "_c", (self.data.class_names, self.components)
        if isinstance(self.prior, NIG):
            lines = (
                f"σ²_cj ~ Inverse-Gamma({self.prior.a[0]:g}, b_j), Π √b_j half of that of a whole class",
                f"μ_cj | σ²_cj ~ N(m_j, σ²_cj / {self.prior.kappa[0]:g})",
            )
        else:
            lines = (
                f"Σ{c} ~ Inverse-Wishart(Ψ, {self.prior.nu:g}), √|Ψ| half of that of a whole class",
                f"μ_c | Σ{c} ~ N(m, Σ{c} / {self.prior.kappa:g})",
            )
        return (
            "components: " + ", ".join(f"{name} {C}" for name, C in zip(names, numbers, strict=True)),
            *lines,
            "ωₖ ~ Dirichlet(1, …, 1), π ~ Dirichlet(1, …, 1)",
        )

    @property
    def coords(self) -> dict[str, list[str]]:
        """Names of classes, features and components, such as `setosa 2`."""
        names = coordinates(class_names=self.data.class_names, feature_names=self.data.feature_names)
        return names | {"part": _component_names(names["class"], self.components)}

    @classmethod
    def model_coords(
        cls, model: FittedModel, class_names: Sequence[Any], feature_names: Sequence[str]
    ) -> dict[str, list[str]]:
        """Return the same for a fitted model whose data are gone."""
        assert isinstance(model, MixtureModel)
        names = coordinates(class_names=class_names, feature_names=feature_names)
        return names | {"part": _component_names(names["class"], model.components)}

    def draw_prior(self, size: int, random_seed: int) -> dict[str, Floats]:
        """Draw the parameters (size, …) from the prior."""
        structure = self.components, self.axis, self.covariances
        return draw_components(self.prior, self.alpha, *structure, size, random_seed)

    def block(self) -> MixtureBlock:
        """Return the density of weights, centres and covariances."""
        return mixture_block(self.data, self.prior, self.components, self.axis, self.covariances)

    @cached_property
    def target(self) -> ThirdOrder:
        """The log posterior of one order of the components."""
        return Ordered(self.density)

    def from_variables(self, variables: Mapping[str, Floats]) -> FittedModel:
        """Return the model with draws of its parameters."""
        drawn = FusedFamily.from_variables(self, variables)
        assert isinstance(drawn, DrawnModel)
        parts = {item.name: getattr(drawn, item.name) for item in fields(drawn)}
        return MixtureModel(**parts, components=self.components)

    def diagnose(self, tree: "xr.DataTree") -> Diagnosis:
        """Return whether the chains can be relied upon, by what does not depend on which component is which.

        These are means and variances of the classes, their shares, and the log likelihood: chains may agree on the
        density of a class, and so on every prediction, while components of it trade places.
        """
        import pandas as pd

        draws = draws_of(tree)
        mean, covariance = class_moments(draws, self.components)
        chains, attrs = tree["posterior"].sizes["chain"], tree["posterior"].attrs
        invariant = {
            "pi": draws["pi"],
            "class_mean": mean,
            "class_variance": np.diagonal(covariance, axis1=2, axis2=3),
            "log_likelihood": self.density.total_log_likelihood(draws, self.data),
        }
        judged = to_datatree(
            invariant, self.coords, chains=chains, attrs={str(name): value for name, value in attrs.items()}
        )
        if "sample_stats" in tree.children:
            judged["sample_stats"] = type(tree)(tree["sample_stats"].to_dataset())
        diagnosis, components = diagnose(judged), diagnose(tree).table
        table = pd.concat([diagnosis.table, components.drop(diagnosis.table.index, errors="ignore")])
        return replace(diagnosis, table=table, notes=(INVARIANT, *diagnosis.notes))

    def build(self) -> "pm.Model":
        """Return the PyMC model."""
        from bayes_gda.models import mixture

        arguments: Any = {"class_prior": Dirichlet(self.alpha), "covariances": self.covariances, "axis": self.axis}
        return mixture.build(self.plain_data, self.components, self.prior, **arguments)


class SharedMixture(Mixture):
    """The same with one covariance for all components."""

    title = "Mixture discriminant analysis, shared covariance"
    sentence = "Each class is a mixture of Gaussians with one covariance matrix; it may have several centres."
    formula = ("y ~ Categorical(π)", "x | y = k ~ Σ ω_c N(μ_c, Σ) over the components c of class k")
    variables = ("pi", "weight", "component_mu", "Sigma")
    covariances = "shared"


class DiagonalMixture(Mixture):
    """The same with features that are independent within a component."""

    title = "Mixture discriminant analysis, diagonal covariances"
    sentence = (
        "Every class is a mixture of Gaussian clouds whose axes are those of the features; features depend on each "
        "other through the components alone."
    )
    formula = ("y ~ Categorical(π)", "x | y = k ~ Σ ω_c Πⱼ N(μ_cj, σ²_cj) over the components c of class k")
    variables = ("pi", "weight", "component_mu", "component_sigma2")
    covariances = "diagonal"


_TYPES: dict[str, type[Mixture]] = {kind.covariances: kind for kind in (Mixture, SharedMixture, DiagonalMixture)}


def choose_components(data: Dataset, prior: NIW | NIG, axis: Floats, covariances: Covariances) -> tuple[int, ...]:
    """Return the number of components (K,) of the highest evidence by Laplace; one for all if these share Σ.

    With covariances of their own the classes do not depend on each other, and each is chosen by itself.
    """
    if covariances == "shared":
        candidates = range(1, MOST_COMPONENTS + 1)
        evidences = [log_evidence(data, prior, (C,) * data.K, axis, covariances) for C in candidates]
        return (int(np.argmax(evidences)) + 1,) * data.K
    numbers = []
    for k in range(data.K):
        mine = np.flatnonzero(data.y == k)
        rows = Dataset.of_checked(
            data.X[mine],
            np.zeros(len(mine), dtype=np.intp),
            data.feature_names,
            (0,),
            None if data.weight is None else data.weight[mine],
        )
        # A component that would have fewer rows than a covariance takes is not one that rows can show.
        fewest = 3 if covariances == "diagonal" else data.d + 1
        most = int(np.clip(len(mine) // fewest, 1, MOST_COMPONENTS))
        evidences = [log_evidence(rows, prior, (C,), axis[k : k + 1], covariances) for C in range(1, most + 1)]
        numbers.append(int(np.argmax(evidences)) + 1)
    return tuple(numbers)


def mixture_block(
    data: Dataset, prior: NIW | NIG, components: tuple[int, ...], axis: Floats, covariances: Covariances
) -> MixtureBlock:
    """Return the density of weights, centres and covariances."""
    clouds: Any = KINDS[covariances]
    return MixtureBlock(data, components, clouds(sum(components), data.d, prior), axis)


def log_evidence(
    data: Dataset, prior: NIW | NIG, components: tuple[int, ...], axis: Floats, covariances: Covariances
) -> float:
    """Return log p(rows | classes) by Laplace, −∞ where there is no mode."""
    block = mixture_block(data, prior, components, axis, covariances)
    try:
        with one_blas_thread():
            return laplace_approximation(Smoothed(block), block.start).log_evidence  # type: ignore[arg-type]
    except ConvergenceError:
        return -np.inf


def _check_components(components: Any, K: int) -> tuple[int, ...]:
    numbers = (components,) * K if isinstance(components, (int, np.integer)) else components
    whole = isinstance(numbers, tuple | list) and len(numbers) == K
    if not whole or not all(isinstance(C, (int, np.integer)) and not isinstance(C, bool) and C > 0 for C in numbers):
        raise DataError(f"`components` must be 'evidence', or 1 or more for each of {K} classes; got {components!r}.")
    return tuple(int(C) for C in numbers)


def _component_names(class_names: Sequence[str], components: Sequence[int]) -> list[str]:
    return [f"{name} {i + 1}" for name, C in zip(class_names, components, strict=True) for i in range(C)]
