"""Data sets whose parameters are known: θ drawn from a proper prior, then rows drawn given θ.

Each model has one fixed prior and one fixed size of data, small enough for Laplace's approximation to be visibly wrong:

    Gaussian models    40 rows, d = 2, K = 3; π ~ Dirichlet(2), under which some data sets have a class without rows
    the same, LKJ      π ~ Dirichlet(5): with one row in a class this prior has no mode, and no sampler is at ease
    regressions        40 rows, d = 2, the package's default prior on standardised features

The prior must not look at the data, so the Gaussian models have numbers here in place of their defaults. Regressions
are conditional on X: standardising with its own mean and scale is part of the model, not a look at y.

Rows to predict are fixed points. Rows drawn from the same θ would not do: they know something of θ that the
posterior was not told, and the ranks of their probabilities would not be uniform.
"""

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.families.base import Family
from bayes_gda.families.gaussian.family import LDA, QDA, Gaussian, Naive
from bayes_gda.families.linear.family import Logistic, Softmax
from bayes_gda.methods.density import Density
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet, Normal

N_ROWS = 40
NAMES = ("x1", "x2")
# Where probabilities are asked for: the centre, a point on the flank, and one far out, in units of the features' sd.
NEW_ROWS = frozen([[0.0, 0.0], [1.0, -0.5], [-2.0, 2.5]])
_GAUSSIANS: dict[str, type[Gaussian]] = {family.covariance: family for family in (LDA, QDA, Naive)}


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """One data set with the truth behind it.

    Parameters
    ----------
    theta
        The true parameters by name, with a leading axis of length 1, as draws have.
    data
        The rows drawn given them.
    family
        Model, prior and data as the estimators hand them to the methods.
    new_rows
        (3, ·) rows to predict: features for the Gaussian models, a design matrix for the regressions.
    """

    theta: dict[str, Floats]
    data: Dataset
    family: Family
    new_rows: Floats

    @property
    def density(self) -> Density:
        """The posterior density: variables from coordinates, log prior, log likelihood."""
        density = self.family.density
        assert density is not None
        return density


class Model(Protocol):
    """A model with a fixed prior and size of data."""

    @property
    def conjugate(self) -> bool:
        """Whether the posterior is known in closed form."""

    @property
    def regression(self) -> bool:
        """Whether only p(y | x) is modelled."""

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
    K: int = 3
    concentration: float = 2.0

    @property
    def conjugate(self) -> bool:
        """Whether the posterior is known in closed form."""
        return not isinstance(self.prior, LKJ)

    @property
    def regression(self) -> bool:
        """A generative model is none."""
        return False

    @property
    def setting(self) -> str:
        """Prior and size in one line."""
        prior = {
            NIW: "Σ ~ IW(2I, 5), μ ~ N(0, Σ/0.25)",
            NIG: "σ² ~ IG(2.5, 1.5), μ ~ N(0, σ²/0.25)",
            LKJ: "σ ~ N⁺(0, 1.5²), R ~ LKJ(2), μ ~ N(0, 2²)",
        }[type(self.prior)]
        without = prior.replace("R ~ LKJ(2), ", "") if self.covariance == "diagonal" else prior
        return f"{without}, π ~ Dir({self.concentration:g}); {N_ROWS} rows, {len(NAMES)} features, {self.K} classes"

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw π, μ and Σ from the prior, classes from π, rows from N(μ_y, Σ_y)."""
        theta = self._parameters(rng)
        y = rng.choice(self.K, size=N_ROWS, p=theta["pi"][0])
        z = rng.standard_normal((N_ROWS, len(NAMES)))
        if "sigma2" in theta:
            noise = np.sqrt(theta["sigma2"][0, y]) * z
        else:
            L = np.linalg.cholesky(theta["Sigma"][0])
            noise = np.einsum("...ij,...j->...i", L if L.ndim == 2 else L[y], z)
        data = Dataset(theta["mu"][0, y] + noise, y, NAMES, tuple(range(self.K)))
        return self._simulation(theta, data)

    def _parameters(self, rng: np.random.Generator) -> dict[str, Floats]:
        K, d, p = self.K, len(NAMES), self.prior
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

    def _simulation(self, theta: dict[str, Floats], data: Dataset) -> Simulation:
        moments, alpha = Moments.from_arrays(data.X, data.y, self.K), frozen(np.full(self.K, self.concentration))
        family = _GAUSSIANS[self.covariance].of_moments(moments, data, self.prior, alpha)
        return Simulation(theta, data, family, NEW_ROWS)


@dataclass(frozen=True, slots=True, eq=False)
class RegressionModel:
    """Logistic regression (two classes) or softmax regression, under the default prior of the package."""

    K: int

    @property
    def conjugate(self) -> bool:
        """There is no closed form."""
        return False

    @property
    def regression(self) -> bool:
        """Only p(y | x) is modelled."""
        return True

    @property
    def setting(self) -> str:
        """Prior and size in one line."""
        return f"intercept ~ N(0, 5²), slopes ~ N(0, 2.5²); {N_ROWS} rows, {len(NAMES)} features, {self.K} classes"

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw rows, weights from the prior, and classes given both."""
        X = rng.standard_normal((N_ROWS, len(NAMES)))
        features = FeatureMap.fit(X, NAMES)
        Phi, new = features(X), features(NEW_ROWS)
        m, binary = Phi.shape[1], self.K == 2
        prior = Normal.default(m)
        w = prior.draw(1 if binary else self.K, m, random_seed=rng)["w"]
        # P(y = k) ∝ e^{a_k}: the largest of a_k + Gumbel noise. With two classes, the first has a = 0.
        a = Phi @ (np.vstack([np.zeros(m), w]) if binary else w).T
        y = np.argmax(a + rng.gumbel(size=a.shape), axis=1)
        data = Dataset(X, y, NAMES, tuple(range(self.K)))
        family = (Logistic if binary else Softmax).bind(data, prior, features=features)
        return Simulation({"w": w if binary else w[None]}, data, family, new)


_NIW = NIW(m=frozen([0.0, 0.0]), kappa=0.25, Psi=frozen(2 * np.eye(2)), nu=5.0)
_NIG = NIG(m=frozen([0.0, 0.0]), kappa=frozen(0.25), a=frozen(2.5), b=frozen(1.5))
_LKJ = LKJ(scale=frozen([1.5, 1.5]), m=frozen([0.0, 0.0]), mean_scale=frozen([2.0, 2.0]))

MODELS: dict[str, Model] = {
    "lda": GaussianModel("shared", _NIW),
    "qda": GaussianModel("own", _NIW),
    "naive": GaussianModel("diagonal", _NIG),
    "lda-lkj": GaussianModel("shared", _LKJ, concentration=5.0),
    "qda-lkj": GaussianModel("own", _LKJ, concentration=5.0),
    "naive-lkj": GaussianModel("diagonal", _LKJ, concentration=5.0),
    "logistic": RegressionModel(2),
    "softmax": RegressionModel(3),
}
