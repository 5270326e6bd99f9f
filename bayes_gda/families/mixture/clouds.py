"""The Gaussians of the components, without their weights: full covariances, own or shared, or diagonal ones.

Rows are taken in the units of the prior about its centre, ỹ = C⁻¹(x − m). Full covariances have Bartlett coordinates,
Σ⁻¹ = AᵀA, A = TC⁻¹, Ψ = CCᵀ; diagonal ones t = log σ² with C = diag(√2b). With z = T(ỹ − μ̃), or z_j = (x_j − μ_j)/σ_j,

    log N(x | μ, Σ) = ½Σ_j u_j + log|C⁻¹| − ½d log 2π − ½|z|²,     u_j = log T_jj²
    log N(x | μ, σ²) = −½Σ_j t_j − ½d log 2π − ½|z|²

Given the shares r of a component in the rows, centre and covariance of the highest log density are known in closed form
(`families.student` has the full one): of a diagonal one μ̃ = Σrỹ/(Σr + κ), and with Q = 1 + Σr(ỹ − μ̃)² + κμ̃²
σ² = 2bQ/(2a + Σr + 1).
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.densities import LOG_2PI, BartlettBlock, Indices, NaiveBlock
from bayes_gda.linalg import drawn_root
from bayes_gda.priors import NIG, NIW

# The rows of a component (n, d) with their shares in it (n,).
Member = tuple[Floats, Floats]


class Geometry(Protocol):
    """The components at S points: residuals of rows, and the slopes that these add up to."""

    constant: Floats  # (S, C) the log density of a component at its centre

    def residuals(self, Y: Floats, j: int) -> Floats:
        """Return z (n, S, d) of rows from component j."""

    def add(self, Y: Floats, j: int, Z: Floats, r: Floats) -> None:
        """Add the slopes of Σ_i r_i log N(x_i) of component j; r (n, S). Z is used up."""

    def gradient(self) -> Floats:
        """Return the gradient (S, dim) of what was added."""


@dataclass(frozen=True, eq=False)
class Clouds:
    """The components of all classes.

    Parameters
    ----------
    C, d
        Number of components and of features.
    prior
        Of the centre and covariance of a component.
    """

    C: int
    d: int
    prior: NIW | NIG

    # The name of the covariances among the model's variables.
    name = "component_Sigma"
    shared = False

    @property
    @abstractmethod
    def block(self) -> BartlettBlock | NaiveBlock:
        """The prior of all components: that of Gaussian classes without rows."""

    @property
    @abstractmethod
    def root(self) -> Floats:
        """C⁻¹ (d, d)."""

    @property
    @abstractmethod
    def sizes(self) -> tuple[int, ...]:
        """Numbers of coordinates that each component has, in the order in which they stand."""

    @abstractmethod
    def at(self, base: Floats) -> Geometry:
        """Return the components at points (S, dim)."""

    @abstractmethod
    def maximise(self, members: Sequence[Member]) -> Floats:
        """Return the point (dim,) of the highest log density given the rows of each component and their shares."""

    @abstractmethod
    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of centres and covariances."""

    @cached_property
    def rescale(self) -> Floats:
        """C (d, d), which takes ỹ back to x − m."""
        return np.linalg.inv(self.root)

    def own(self, mine: slice) -> Indices:
        """Return the coordinates of some of the components, if each has its own."""
        first = np.concatenate([[0], np.cumsum(self.C * np.array(self.sizes))])
        parts = [np.arange(first[i] + mine.start * s, first[i] + mine.stop * s) for i, s in enumerate(self.sizes)]
        return np.concatenate(parts)

    def centers(self, base: Floats) -> Floats:
        """Return μ (S, C, d)."""
        return base[:, -self.C * self.d :].reshape(len(base), self.C, self.d)

    def variables(self, base: Floats) -> dict[str, Floats]:
        """Return `component_mu` (S, C, d) and the covariances."""
        parameters = self.block.variables(base)
        return {"component_mu": parameters["mu"], self.name: parameters[self._plain]}

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log prior densities (S,) of centres and covariances."""
        terms = self.block.log_prior({self._plain: variables[self.name], "mu": variables["component_mu"]})
        return {self.name: terms[self._plain], "component_mu": terms["mu"]}

    @property
    def _plain(self) -> str:
        """The name of the covariances in `block`."""
        return self.name.removeprefix("component_")


@dataclass(frozen=True, eq=False)
class FullClouds(Clouds):
    """Covariances of each component, under a normal-inverse-Wishart prior."""

    prior: NIW

    @cached_property
    def block(self) -> BartlettBlock:
        """The prior of all components."""
        return BartlettBlock(Moments.empty(self.C, self.d), self.prior, self.shared)

    @cached_property
    def root(self) -> Floats:
        """C⁻¹ (d, d)."""
        return np.linalg.inv(np.linalg.cholesky(self.prior.Psi))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of coordinates of a component: u, z and μ."""
        return self.d, self.d * (self.d - 1) // 2, self.d

    def which(self, j: int) -> int:
        """Return which covariance component j has."""
        return 0 if self.shared else j

    def at(self, base: Floats) -> "FullGeometry":
        """Return the components at points (S, dim)."""
        return FullGeometry(self, base)

    def maximise(self, members: Sequence[Member]) -> Floats:
        """Return the point (dim,) of the highest log density given the rows of each component and their shares."""
        d, kappa, G = self.d, self.prior.kappa, self.block.groups
        M, rows, center = np.tile(np.eye(d), (G, 1, 1)), np.zeros(G), np.empty((self.C, d))
        for j, (Y, r) in enumerate(members):
            center[j] = r @ Y / (r.sum() + kappa)
            V = Y - center[j]
            M[self.which(j)] += (V * r[:, None]).T @ V + kappa * np.outer(center[j], center[j])
            rows[self.which(j)] += r.sum() + 1
        powers = self.prior.nu - d + np.arange(1, d + 1) + rows[:, None]
        flat = (np.sqrt(powers)[:, :, None] * np.linalg.inv(np.linalg.cholesky(M))).ravel()
        diagonal, triangle = self.block.places
        mu = self.prior.m + center @ self.rescale.T
        return np.concatenate([2 * np.log(flat[diagonal]), flat[triangle], mu.ravel()])

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of centres and covariances."""
        mu, Sigma = variables["component_mu"], variables[self.name]
        S, (diagonal, triangle) = len(mu), self.block.places
        T = (np.linalg.inv(drawn_root(Sigma)) @ self.rescale).reshape(S, -1)
        return np.hstack([2 * np.log(T[:, diagonal]), T[:, triangle], mu.reshape(S, -1)])


class SharedClouds(FullClouds):
    """One covariance for all components of all classes."""

    name = "Sigma"
    shared = True


class FullGeometry:
    """Components with full covariances at S points."""

    def __init__(self, clouds: FullClouds, base: Floats) -> None:
        block, d, S, G = clouds.block, clouds.d, len(base), clouds.block.groups
        u, self._flat, mu = block.unpack(base)
        self._clouds, self._T = clouds, self._flat.reshape(S, G, d, d)
        self._center = (mu.reshape(S, -1, d) - clouds.prior.m) @ clouds.root.T
        half = 0.5 * u.reshape(S, G, d).sum(axis=2) + np.log(np.diag(clouds.root)).sum() - 0.5 * d * LOG_2PI
        self.constant = np.broadcast_to(half, (S, clouds.C))
        self._g_T, self._g_center = np.zeros(self._T.shape), np.zeros(self._center.shape)
        self._rows = np.zeros((S, G))

    def residuals(self, Y: Floats, j: int) -> Floats:
        """Return T(ỹ − μ̃) (n, S, d) of all rows and points in one product."""
        A, m = self._T[:, self._clouds.which(j)], self._center[:, j]
        S, d = m.shape
        Z: Floats = (Y @ A.reshape(S * d, d).T).reshape(len(Y), S, d)
        Z -= np.einsum("sij,sj->si", A, m)
        return Z

    def add(self, Y: Floats, j: int, Z: Floats, r: Floats) -> None:
        """Add the slopes of Σ_i r_i log N(x_i) of component j; r (n, S). Z is used up."""
        g, m = self._clouds.which(j), self._center[:, j]
        S, d = m.shape
        Z *= r[:, :, None]
        sums = Z.sum(axis=0)
        cross = (Z.reshape(len(Y), S * d).T @ Y).reshape(S, d, d)
        self._g_T[:, g] -= cross - sums[:, :, None] * m[:, None, :]
        self._g_center[:, j] = np.einsum("si,sij->sj", sums, self._T[:, g])
        self._rows[:, g] += r.sum(axis=0)

    def gradient(self) -> Floats:
        """Return the gradient (S, dim) of what was added."""
        clouds, S = self._clouds, len(self._rows)
        diagonal, triangle = clouds.block.places
        g_flat = self._g_T.reshape(S, -1)
        g_u = 0.5 * (self._flat[:, diagonal] * g_flat[:, diagonal] + np.repeat(self._rows, clouds.d, axis=1))
        g_mu = (self._g_center @ clouds.root).reshape(S, -1)
        return np.concatenate([g_u, g_flat[:, triangle], g_mu], axis=1)


@dataclass(frozen=True, eq=False)
class DiagonalClouds(Clouds):
    """Variances of each component and feature, under a normal-inverse-gamma prior."""

    prior: NIG
    name = "component_sigma2"

    @cached_property
    def block(self) -> NaiveBlock:
        """The prior of all components."""
        return NaiveBlock(Moments.empty(self.C, self.d), self.prior)

    @cached_property
    def root(self) -> Floats:
        """C⁻¹ (d, d)."""
        return np.diag(1 / np.sqrt(2 * self.prior.b))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Numbers of coordinates of a component: t and μ."""
        return self.d, self.d

    def at(self, base: Floats) -> "DiagonalGeometry":
        """Return the components at points (S, dim)."""
        return DiagonalGeometry(self, base)

    def maximise(self, members: Sequence[Member]) -> Floats:
        """Return the point (dim,) of the highest log density given the rows of each component and their shares."""
        p = self.prior
        t, mu = np.empty((self.C, self.d)), np.empty((self.C, self.d))
        for j, (Y, r) in enumerate(members):
            center = r @ Y / (r.sum() + p.kappa)
            squares = 1 + r @ (Y - center) ** 2 + p.kappa * center**2
            t[j] = np.log(2 * p.b * squares / (2 * p.a + r.sum() + 1))
            mu[j] = p.m + np.sqrt(2 * p.b) * center
        return np.concatenate([t.ravel(), mu.ravel()])

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of centres and variances."""
        S = len(variables["component_mu"])
        return np.hstack([np.log(variables[self.name]).reshape(S, -1), variables["component_mu"].reshape(S, -1)])


class DiagonalGeometry:
    """Components with diagonal covariances at S points."""

    def __init__(self, clouds: DiagonalClouds, base: Floats) -> None:
        p, S, shape = clouds.prior, len(base), (len(base), clouds.C, clouds.d)
        t, mu = base[:, : clouds.C * clouds.d].reshape(shape), clouds.centers(base)
        unit = np.sqrt(2 * p.b)
        self._center, self._factor = (mu - p.m) / unit, unit * np.exp(-0.5 * t)  # z = factor (ỹ − μ̃)
        self._inverse_sd = np.exp(-0.5 * t)
        self.constant = -0.5 * (t.sum(axis=2) + clouds.d * LOG_2PI)
        self._slopes = np.zeros((S, 2, clouds.C, clouds.d))

    def residuals(self, Y: Floats, j: int) -> Floats:
        """Return (x − μ)/σ (n, S, d)."""
        out: Floats = (Y[:, None] - self._center[:, j]) * self._factor[:, j]
        return out

    def add(self, Y: Floats, j: int, Z: Floats, r: Floats) -> None:
        """Add the slopes of Σ_i r_i log N(x_i) of component j; r (n, S)."""
        self._slopes[:, 0, j] = 0.5 * (np.einsum("ns,nsd->sd", r, Z * Z) - r.sum(axis=0)[:, None])
        self._slopes[:, 1, j] = np.einsum("ns,nsd->sd", r, Z) * self._inverse_sd[:, j]

    def gradient(self) -> Floats:
        """Return the gradient (S, dim) of what was added."""
        return self._slopes.reshape(len(self._slopes), -1)


# What `covariances` may be, and the components that have them.
KINDS: dict[str, type[FullClouds] | type[DiagonalClouds]] = {
    "own": FullClouds,
    "shared": SharedClouds,
    "diagonal": DiagonalClouds,
}
