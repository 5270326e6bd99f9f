"""Simulations of classes with Student-t densities, and of classes that are mixtures of Gaussians; see `simulate`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from proof.simulate import N_ROWS, Simulation, names_of, new_rows_of

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.table import Dataset
from bayes_gda.families.mixture.density import class_moments
from bayes_gda.families.mixture.family import Mixture
from bayes_gda.families.student import SharedStudent, Student
from bayes_gda.priors import NIW

K = 2
# Few data sets have a class without rows, where the mode may be at the edge.
ALPHA = frozen([5.0, 5.0])
_METHODS = ("laplace", "corrected", "hmc", "mcmc")


@dataclass(frozen=True, slots=True, eq=False)
class StudentModel:
    """Student-t classes with scale matrices and degrees of freedom of their own, or shared ones."""

    prior: NIW
    methods: tuple[str, ...] = _METHODS
    shared: bool = False
    rows: int = N_ROWS

    @property
    def setting(self) -> str:
        """Prior and size in one line."""
        k = "" if self.shared else "ₖ"
        prior = f"Σ{k} ~ IW(2I, {self.prior.nu:g}), μₖ ~ N(0, Σ{k}/0.25), ν{k} − 1 ~ Gamma(2, 0.1), π ~ Dir(5)"
        return f"{prior}; {self.rows} rows, {len(self.prior.m)} features, {K} classes"

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw π, μ, Σ and ν from the prior, classes from π, and rows from t(ν, μ_y, Σ_y)."""
        theta = {"pi": rng.dirichlet(ALPHA)[None]}
        if self.shared:
            Sigma = self.prior.draw(1, random_seed=rng)["Sigma"]
            noise = rng.standard_normal((1, K, len(self.prior.m))) @ np.linalg.cholesky(Sigma[0]).T
            theta |= {"mu": self.prior.m + noise / np.sqrt(self.prior.kappa), "Sigma": Sigma}
        else:
            theta |= {name: value[None] for name, value in self.prior.draw(K, random_seed=rng).items()}
        theta["nu"] = 1 + rng.gamma(2.0, 10.0, size=(1,) if self.shared else (1, K))
        repeated = {name: np.repeat(value, self.rows, axis=0) for name, value in theta.items()}
        data = _rows(*Student.draw_rows(repeated, rng))
        family = (SharedStudent if self.shared else Student)(data, self.prior, alpha=ALPHA)
        return Simulation(theta, data, family, new_rows_of(data.d), family.density)


@dataclass(frozen=True, slots=True, eq=False)
class MixtureModel:
    """A class of two components beside one of a single Gaussian."""

    covariances: Literal["own", "shared", "diagonal"]
    prior: Any  # NIW, or NIG of diagonal covariances
    methods: tuple[str, ...] = _METHODS
    rows: int = N_ROWS

    @property
    def setting(self) -> str:
        """Prior and size in one line."""
        words = {
            "own": "Σ_c ~ IW(2I, 5), μ_c ~ N(0, Σ_c/0.25)",
            "shared": "Σ ~ IW(2I, 5), μ_c ~ N(0, Σ/0.25)",
            "diagonal": "σ²_cj ~ IG(2.5, 1.5), μ_cj ~ N(0, σ²_cj/0.25)",
        }
        size = f"{self.rows} rows, {len(self.prior.m)} features, {K} classes of 2 and 1 components"
        return f"{words[self.covariances]}, ω ~ Dir(1), π ~ Dir(5); {size}"

    def draw(self, rng: np.random.Generator) -> Simulation:
        """Draw the parameters from the prior, classes from π, components from ω, and rows from their Gaussians."""
        components, d = (2, 1), len(self.prior.m)
        axis = np.eye(1, d).repeat(K, axis=0)  # of the first feature, whatever the data are
        if self.covariances == "shared":
            Sigma = self.prior.draw(1, random_seed=rng)["Sigma"]
            noise = rng.standard_normal((3, d)) @ np.linalg.cholesky(Sigma[0]).T
            drawn = {"mu": self.prior.m + noise / np.sqrt(self.prior.kappa)}
        else:
            Sigma, drawn = None, self.prior.draw(3, random_seed=rng)
        order = [*np.argsort(drawn["mu"][:2, 0]), 2]
        theta = {"pi": rng.dirichlet(ALPHA)[None], "weight": np.array([[*rng.dirichlet(np.ones(2)), 1.0]])}
        theta |= {f"component_{name}": value[order][None] for name, value in drawn.items()}
        theta |= {} if Sigma is None else {"Sigma": Sigma}

        def bound(data: Dataset) -> Mixture:
            given = {"prior": self.prior, "alpha": ALPHA, "components": components, "axis": axis}
            return Mixture.from_signature(data=data, covariances=self.covariances, **given)

        fitted: Any = bound(_rows(np.zeros((K, d)), np.arange(K))).from_variables(theta)
        data = _rows(*fitted.sample(self.rows, random_seed=rng))
        family = bound(data)

        def invariants(variables: Mapping[str, Floats]) -> dict[str, Floats]:
            mean, covariance = class_moments(variables, components)
            variance = np.diagonal(covariance, axis1=2, axis2=3)
            return {"pi": variables["pi"], "class_mean": mean, "class_variance": variance}

        return Simulation(theta, data, family, new_rows_of(d), family.density, invariants)


def _rows(X: Floats, y: Any) -> Dataset:
    return Dataset.of_checked(X, y, names_of(X.shape[1]), tuple(range(K)))
