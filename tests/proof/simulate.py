"""Data sets whose parameters are known: θ drawn from a proper prior, then rows drawn given θ.

Each model has one fixed prior and one fixed size of data, small enough for Laplace's approximation to be visibly wrong:

    Gaussian models    40 rows, d = 2, K = 3; π ~ Dirichlet(2), under which some data sets have a class without rows
    the same, LKJ      π ~ Dirichlet(5): with one row in a class this prior has no mode, and no sampler is at ease
    lda-10, lda-wide   d = 10, with 40 rows and with 8: fewer rows than features
    lda-gaps …         a quarter of all values missing completely at random
    mixed              40 rows of six columns, each of another type, a tenth of the values missing; K = 2
    student, mixture   40 rows, d = 2, K = 2; π ~ Dirichlet(5). Components of a mixture have no names: what is ranked is
                       the same in any order of them (means and variances of the classes, probabilities, likelihood)
    regressions        40 rows, d = 2, the package's default prior on standardised features; d = 10, with 40 rows and 8
    hierarchical       τ ~ N⁺(0, 2.5²), slopes ~ N(0, τ²); d = 4
    logistic-eb, rda   the prior's scale is estimated from the same data (empirical Bayes), while θ was drawn with a
                       fixed one: no posterior of the model that θ came from, so that ranks need not be uniform

The prior must not look at the data, so the Gaussian models have numbers here in place of their defaults. Regressions
are conditional on X: standardising with its own mean and scale is part of the model, not a look at y.

Rows to predict are fixed points. Rows drawn from the same θ would not do: they know something of θ that the
posterior was not told, and the ranks of their probabilities would not be uniform.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy as np

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.families.base import Family
from bayes_gda.families.gaussian.continuum import DIAGONAL, POOLING
from bayes_gda.families.gaussian.family import LDA, QDA, RDA, Gaussian, Naive
from bayes_gda.families.gaussian.gaps.predictive import log_joint_observed_per_draw
from bayes_gda.families.linear.family import Logistic, Softmax
from bayes_gda.families.mixed.family import Mixed
from bayes_gda.methods.density import Density
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet, HierarchicalScale, Normal
from bayes_gda.priors.distributions import DEFAULT_KAPPA
from bayes_gda.priors.mixed import ColumnPrior, MixedPrior

N_ROWS = 40
# Fewer rows than the ten features.
FEW_ROWS = 8
# Share of the values that are missing where rows have gaps.
MISSING = 0.25
# Where probabilities are asked for: the centre, a point on the flank, and one far out, in units of the features' sd;
# further features are 0.
NEW_ROWS = frozen([[0.0, 0.0], [1.0, -0.5], [-2.0, 2.5]])
_GAUSSIANS: dict[str, type[Gaussian]] = {family.covariance: family for family in (LDA, QDA, Naive)}


def names_of(d: int) -> tuple[str, ...]:
    """Return names for d features."""
    return tuple(f"x{j + 1}" for j in range(d))


def new_rows_of(d: int) -> Floats:
    """Return the rows to predict (3, d)."""
    return np.hstack([NEW_ROWS, np.zeros((len(NEW_ROWS), d - 2))])


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """One data set with the truth behind it.

    Parameters
    ----------
    theta
        The true parameters by name, with a leading axis of length 1, as draws have.
    data
        The rows drawn given them; with gaps where values are missing.
    family
        Model, prior and data as the estimators hand them to the methods.
    new_rows
        (3, ·) rows to predict: features for the Gaussian models, a design matrix for the regressions.
    density
        The posterior density of the complete rows, which has the log prior; None where there is none.
    invariants
        What to rank in place of parameters whose names have no meaning; None ranks the parameters.
    """

    theta: dict[str, Floats]
    data: Dataset
    family: Family
    new_rows: Floats
    density: Density | None
    invariants: Callable[[Mapping[str, Floats]], dict[str, Floats]] | None = None

    def parameters(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return what is ranked of the parameters, {name: (S, …)}."""
        if self.invariants is not None:
            return self.invariants(variables)
        return {name: variables[name] for name in self.theta}

    def log_likelihood(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the log likelihood (S,) of all rows, of what was observed of them, at values of the parameters."""
        if self.density is not None and (isinstance(self.family, Mixed) or not np.isnan(self.data.X).any()):
            return self.density.log_likelihood(variables, self.data).sum(axis=1)
        log_joint = log_joint_observed_per_draw(variables, self.data.X)
        return np.asarray(log_joint[:, np.arange(self.data.n), self.data.y].sum(axis=1))


class Model(Protocol):
    """A model with a fixed prior and size of data."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that it is simulated by."""

    @property
    def setting(self) -> str:
        """Prior and size in one line."""

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw parameters from the prior, and rows given them."""


@dataclass(frozen=True, slots=True, eq=False)
class GaussianModel:
    """LDA (`shared` covariance), QDA (`own`) or naive (`diagonal`), under a conjugate or an LKJ prior."""

    covariance: Literal["shared", "own", "diagonal"]
    prior: NIW | NIG | LKJ
    methods: tuple[str, ...] = ("exact", "laplace", "corrected", "mcmc")
    concentration: float = 2.0
    rows: int = N_ROWS
    missing: float = 0.0
    K: int = 3

    @property
    def d(self) -> int:
        """Number of features."""
        return len(self.prior.m)

    @property
    def setting(self) -> str:
        """Prior and size in one line."""
        match self.prior:
            case NIW():
                prior = f"Σ ~ IW(2I, {self.prior.nu:g}), μ ~ N(0, Σ/0.25)"
            case NIG():
                prior = "σ² ~ IG(2.5, 1.5), μ ~ N(0, σ²/0.25)"
            case _:
                correlations = "" if self.covariance == "diagonal" else "R ~ LKJ(2), "
                prior = f"σ ~ N⁺(0, 1.5²), {correlations}μ ~ N(0, 2²)"
        gaps = f", {100 * self.missing:.0f} % of the values missing" if self.missing else ""
        size = f"{self.rows} rows, {self.d} features, {self.K} classes{gaps}"
        return f"{prior}, π ~ Dir({self.concentration:g}); {size}"

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw π, μ and Σ from the prior, classes from π, rows from N(μ_y, Σ_y), and what is missing of them."""
        theta = self._parameters(rng)
        data = draw_rows(theta, self.rows, rng)
        complete = self._family(data)
        family = complete
        if self.missing:
            gaps = rng.random(data.X.shape) < self.missing
            data = Dataset(np.where(gaps, np.nan, data.X), data.y, data.feature_names, data.class_names)
            family = replace(complete, data=data, moments=None)
        return Simulation(theta, data, family, new_rows_of(self.d), complete.density)

    def _parameters(self, rng: np.random.Generator) -> dict[str, Floats]:
        K, d, p = self.K, self.d, self.prior
        theta = Dirichlet(frozen(self.concentration)).draw(1, K, random_seed=rng)
        if isinstance(p, NIG):
            return theta | {name: x[None] for name, x in p.draw(K, random_seed=rng).items()}
        if isinstance(p, LKJ):
            drawn = p.draw(K, random_seed=rng)
            Sigma, mu = drawn["Sigma"], drawn["mu"]  # the means do not hang on Σ
            if self.covariance == "diagonal":
                return theta | {"mu": mu[None], "sigma2": np.diagonal(Sigma, axis1=1, axis2=2)[None].copy()}
            return theta | {"mu": mu[None], "Sigma": Sigma[:1] if self.covariance == "shared" else Sigma[None]}
        if self.covariance == "own":
            return theta | {name: x[None] for name, x in p.draw(K, random_seed=rng).items()}
        # One Σ for all means, by the definition: Σ⁻¹ is the scatter of ν rows of N(0, Ψ⁻¹).
        Z = rng.standard_normal((int(p.nu), d)) @ np.linalg.cholesky(np.linalg.inv(p.Psi)).T
        Sigma = np.linalg.inv(Z.T @ Z)
        noise = rng.standard_normal((K, d)) @ np.linalg.cholesky(Sigma).T
        return theta | {"mu": (p.m + noise / np.sqrt(p.kappa))[None], "Sigma": Sigma[None]}

    def _family(self, data: Dataset) -> Gaussian:
        moments, alpha = Moments.from_arrays(data.X, data.y, self.K), frozen(np.full(self.K, self.concentration))
        return _GAUSSIANS[self.covariance].of_moments(moments, data, self.prior, alpha)


@dataclass(frozen=True, slots=True, eq=False)
class RegularizedModel:
    """Regularised discriminant analysis: a cell (w, δ) of its grid, and covariances about a target that is fixed here.

    The package estimates the target, and the prior's centre, from the data.
    """

    K: int = 3
    methods: tuple[str, ...] = ("empirical-bayes",)

    @property
    def setting(self) -> str:
        """Prior and size in one line."""
        return (
            f"(w, δ) uniform on the grid, Σₖ ~ IW(wT, w + 3), T between S = (1, .6; .6, 1.5) and its diagonal, "
            f"π ~ Dir(1); {N_ROWS} rows, 2 features, {self.K} classes"
        )

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw a cell, π, μ and Σ, classes from π, and rows from N(μ_y, Σ_y)."""
        S, d = np.array([[1.0, 0.6], [0.6, 1.5]]), 2
        s, size = rng.choice(POOLING), N_ROWS / self.K
        w = max(1.0, size * s / (1 - s))
        # A column of the grid is naive; the others are between the target and its diagonal.
        column = rng.integers(len(DIAGONAL) + 1)
        theta = Dirichlet().draw(1, self.K, random_seed=rng)
        if column == len(DIAGONAL):
            naive = NIG(np.zeros(d), frozen(DEFAULT_KAPPA), frozen((w + 2) / 2), w * np.diag(S) / 2)
            drawn = naive.draw(self.K, random_seed=rng)
            drawn["Sigma"] = drawn.pop("sigma2")[..., None] * np.eye(d)
        else:
            T = (1 - DIAGONAL[column]) * S + DIAGONAL[column] * np.diag(np.diag(S))
            drawn = NIW(np.zeros(d), DEFAULT_KAPPA, w * T, w + d + 1).draw(self.K, random_seed=rng)
        theta |= {name: drawn[name][None] for name in ("mu", "Sigma")}
        data = draw_rows(theta, N_ROWS, rng)
        return Simulation(theta, data, RDA.bind(data), new_rows_of(d), None)


def draw_rows(theta: Mapping[str, Floats], n: int, rng: np.random.Generator) -> Dataset:
    """Draw n classes from π, and rows from N(μ_y, Σ_y)."""
    K, d = theta["mu"].shape[1:]
    y = rng.choice(K, size=n, p=theta["pi"][0])
    z = rng.standard_normal((n, d))
    if "sigma2" in theta:
        noise = np.sqrt(theta["sigma2"][0, y]) * z
    else:
        L = np.linalg.cholesky(theta["Sigma"][0])
        noise = np.einsum("...ij,...j->...i", L if L.ndim == 2 else L[y], z)
    return Dataset(theta["mu"][0, y] + noise, y, names_of(d), tuple(range(K)))


@dataclass(frozen=True, slots=True, eq=False)
class RegressionModel:
    """Logistic regression (two classes) or softmax regression, under a prior of slopes with sd `scale`, or unknown."""

    K: int
    d: int = 2
    rows: int = N_ROWS
    scale: float | None = 2.5
    methods: tuple[str, ...] = ("laplace", "skew-modal", "corrected", "mcmc")

    @property
    def setting(self) -> str:
        """Prior and size in one line."""
        slopes = "τ ~ N⁺(0, 2.5²), slopes ~ N(0, τ²)" if self.scale is None else f"slopes ~ N(0, {self.scale:g}²)"
        return f"intercept ~ N(0, 5²), {slopes}; {self.rows} rows, {self.d} features, {self.K} classes"

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw rows, weights from the prior, and classes given both."""
        X = rng.standard_normal((self.rows, self.d))
        features = FeatureMap.fit(X, names_of(self.d))
        Phi, new = features(X), features(new_rows_of(self.d))
        m, binary = Phi.shape[1], self.K == 2
        theta: dict[str, Floats] = {}
        prior: Normal | HierarchicalScale
        if self.scale is None:
            prior = HierarchicalScale()
            theta = prior.draw(1, m, random_seed=rng)
            w = theta["w"]
        else:
            prior = Normal.default(m, prior_scale=self.scale)
            w = prior.draw(1 if binary else self.K, m, random_seed=rng)["w"]
        # P(y = k) ∝ e^{a_k}: the largest of a_k + Gumbel noise. With two classes, the first has a = 0.
        a = Phi @ (np.vstack([np.zeros(m), w]) if binary else w).T
        y = np.argmax(a + rng.gumbel(size=a.shape), axis=1)
        data = Dataset(X, y, names_of(self.d), tuple(range(self.K)))
        family = (Logistic if binary else Softmax).bind(data, prior, features=features)
        return Simulation(theta | {"w": w if binary else w[None]}, data, family, new, family.density)


@dataclass(frozen=True, slots=True, eq=False)
class MixedModel:
    """Columns of six types, independent within a class, a tenth of their values missing."""

    K: int = 2
    rows: int = N_ROWS
    methods: tuple[str, ...] = ("exact", "laplace", "corrected", "mcmc")

    @property
    def setting(self) -> str:
        """Prior and size in one line."""
        words = ", ".join(column.distribution for column in _MIXED.columns)
        return f"{words}; π ~ Dir(2); {self.rows} rows, {self.K} classes, 10 % of the values missing"

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw the parameters from the prior, classes from π, and each column given its own."""
        K, n = self.K, self.rows
        n0, c0, g0, b0 = (_MIXED.columns[j].numbers for j in (0, 2, 3, 4))
        sigma2 = n0[3] / rng.gamma(n0[2], size=K)
        r = np.exp(g0[2] + g0[3] * rng.standard_normal(K))
        shape = np.exp(b0[2] + b0[3] * rng.standard_normal(K))
        theta = {
            "pi": rng.dirichlet(np.full(K, 2.0)),
            "mu": n0[0] + np.sqrt(sigma2 / n0[1]) * rng.standard_normal(K),
            "sigma2": sigma2,
            "theta": rng.dirichlet(_MIXED.columns[1].numbers, size=K),
            "rate": rng.gamma(c0[0], size=K) * c0[1] / c0[0],
            "size": r,
            "success_share": rng.beta(1 + g0[0] * r / g0[1], g0[0]),
            "gamma_shape": shape,
            "gamma_mean": b0[0] * b0[1] / rng.gamma(b0[0], size=K),
            "p": rng.beta(*_MIXED.columns[5].numbers, size=K),
        }
        y = rng.choice(K, size=n, p=theta["pi"])
        X = np.column_stack(
            [
                theta["mu"][y] + np.sqrt(theta["sigma2"][y]) * rng.standard_normal(n),
                [rng.choice(4, p=theta["theta"][k]) for k in y],
                rng.poisson(theta["rate"][y]),
                rng.negative_binomial(theta["size"][y], theta["success_share"][y]),
                np.maximum(rng.gamma(theta["gamma_shape"][y]) * (theta["gamma_mean"] / shape)[y], 1e-300),
                rng.random(n) < theta["p"][y],
            ]
        ).astype(float)
        X[rng.random(X.shape) < 0.1] = np.nan
        data = Dataset(X, y, names_of(6), tuple(range(K)))
        family = replace(Mixed.bind(data, _MIXED), alpha=frozen(np.full(K, 2.0)))
        draws = {name: x[None] if name in ("pi", "theta") else x[None, :, None] for name, x in theta.items()}
        return Simulation(draws, data, family, _MIXED_ROWS, family.density)


_MIXED = MixedPrior(
    (
        ColumnPrior("x1", "normal", 0, 1, frozen([0.0, 0.25, 2.5, 1.5])),
        ColumnPrior("x2", "categorical", 1, 2, frozen([1.0, 1.0, 1.0, 1.0]), (0, 1, 2)),
        ColumnPrior("x3", "poisson", 2, 3, frozen([2.0, 3.0])),
        ColumnPrior("x4", "negative-binomial", 3, 4, frozen([2.0, 4.0, 0.5, 0.7])),
        ColumnPrior("x5", "gamma", 4, 5, frozen([3.0, 2.0, 1.0, 0.7])),
        ColumnPrior("x6", "bernoulli", 5, 6, frozen([1.0, 1.0])),
    )
)
_MIXED_ROWS = frozen([[0.0, 0, 3, 4, 2.0, 0], [1.0, 2, 0, 12, 0.3, 1], [-3.0, np.nan, 9, 0, 7.0, 1]])
