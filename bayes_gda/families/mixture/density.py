"""Classes that are mixtures of Gaussians: groups within a class that need not be known.

The coordinates are those of π, of the weights ω_k of each class with two components or more (both on the simplex), then
those of all components' covariances and centres (`clouds`). With f_ic = ω_c N(x_i | μ_c, Σ_c), rows of weight c_i

    log p = Σ_i c_i log Σ_c f_ic + prior,   ∂ log p = Σ_ic r_ic ∂ log f_ic + ∂ prior,   r_ic = c_i f_ic/Σ_c f_ic

EM in these coordinates: given r the rest is a log posterior of Gaussian classes, whose maximum is known in closed form,
and ω ∝ α + Σ_i r_ic. Several starts by k-means; Newton's method ends the best of them.

The density does not change if components of a class change places. Draws are put in order, along a fixed axis of each
class, which is the same as a prior that allows this order alone: the log density has log C_k! for it, and is −∞ in any
other order where it is weighed or integrated. A sampler may cross from one order to another; its draws are ordered
afterwards, so that nothing of what is predicted depends on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, softmax

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.families.gaussian.densities import LOG_2PI, ClassBlock, Indices
from bayes_gda.families.mixture.clouds import Clouds, Geometry
from bayes_gda.families.mixture.starts import cluster
from bayes_gda.linalg import drawn_root, one_blas_thread, wide_blocks
from bayes_gda.methods.density import Block, Smoothed

# Points × rows × features at once; see `families.student`.
ELEMENTS = 2**20
# Starts of EM, and where it ends: a step that gains less, after which Newton's method takes over. Ends that differ by
# no more are taken for equal, so that rounding does not choose among them.
STARTS, GAIN, MOST_STEPS = 10, 1e-3, 500


@dataclass(frozen=True, eq=False)
class MixtureBlock(Block):
    """Weights, centres and covariances of the components of all classes, with the rows.

    Parameters
    ----------
    rows
        Training rows; with weights if some count more than once.
    components
        (K,) number of components of each class.
    clouds
        The components' Gaussians with their prior.
    axis
        (K, d) direction along which the components of a class are put in order.
    """

    rows: Dataset
    components: tuple[int, ...]
    clouds: Clouds
    axis: Floats

    @cached_property
    def owners(self) -> Indices:
        """The class (C,) of each component."""
        return np.repeat(np.arange(len(self.components)), self.components)

    @cached_property
    def _slices(self) -> list[slice]:
        edges = np.concatenate([[0], np.cumsum(self.components)])
        return [slice(a, b) for a, b in pairwise(edges.tolist())]

    @cached_property
    def _weights(self) -> list[tuple[int, slice, ClassBlock]]:
        """Of each class with two components or more: its number, its coordinates, and the prior of its weights."""
        out, first = [], 0
        for k, C in enumerate(self.components):
            if C > 1:
                out.append((k, slice(first, first + C - 1), ClassBlock(np.zeros(C), np.ones(C))))
                first += C - 1
        return out

    @cached_property
    def _first(self) -> int:
        """Where the coordinates of the Gaussian components begin."""
        return sum(self.components) - len(self.components)

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self._first + self.clouds.block.dim

    @property
    def independent(self) -> Sequence[Indices]:
        """The coordinates of each class, unless all share a covariance."""
        if self.clouds.shared:
            return [np.arange(self.dim)]
        weights = {k: np.arange(at.start, at.stop) for k, at, _ in self._weights}
        empty = np.empty(0, dtype=np.intp)
        return [
            np.concatenate([weights.get(k, empty), self._first + self.clouds.own(mine)])
            for k, mine in enumerate(self._slices)
        ]

    @cached_property
    def _classes(self) -> list[tuple[Floats, Floats]]:
        """Of each class the rows C⁻¹(x − m) (n_k, d) and their weights (n_k,)."""
        rows = self.rows
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        Y = (rows.X - self.clouds.prior.m) @ self.clouds.root.T
        return [(Y[rows.y == k], weight[rows.y == k]) for k in range(len(self.components))]

    @cached_property
    def _sorted(self) -> list[Indices]:
        """Of each class its rows in the order of their values."""
        return [np.lexsort(self.rows.X[self.rows.y == k].T) for k in range(len(self.components))]

    @cached_property
    def _orders(self) -> float:
        """Log of the number of orders of the components, Σ_k log C_k!."""
        return float(gammaln(np.array(self.components) + 1.0).sum())

    # ── The density ─────────────────────────────────────────────────────────────────────────────────────────────────

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, dim), in any order of the components."""
        points = W.reshape(-1, self.dim)
        value, gradient = np.empty(len(points)), np.empty(points.shape)
        for part in self._parts(len(points)):
            value[part], gradient[part] = self._evaluate(points[part])
        return value.reshape(W.shape[:-1]), gradient.reshape(W.shape)

    def values(self, W: Floats) -> Floats:
        """Return this share of log p (…)."""
        points = W.reshape(-1, self.dim)
        parts = [self._expect(points[part])[0] for part in self._parts(len(points))]
        return np.concatenate([*parts, np.empty(0)]).reshape(W.shape[:-1])

    def _parts(self, points: int) -> list[slice]:
        step = max(1, ELEMENTS // max(1, self.rows.n * self.rows.d * max(self.components)))
        return [slice(i, i + step) for i in range(0, points, step)]

    def _log_terms(self, at: Geometry, log_omega: Floats, k: int) -> tuple[list[Floats], Floats]:
        """Return the residuals of the rows of a class from its components, and log f (C_k, n_k, S)."""
        mine, (Y, _) = self._slices[k], self._classes[k]
        Z = [at.residuals(Y, j) for j in range(mine.start, mine.stop)]
        constant = log_omega + at.constant
        return Z, np.stack(
            [constant[:, mine.start + i] - 0.5 * np.einsum("nsd,nsd->ns", z, z) for i, z in enumerate(Z)]
        )

    def _evaluate(self, W: Floats) -> tuple[Floats, Floats]:
        base, log_omega = W[:, self._first :], self._log_weights(W)
        at = self.clouds.at(base)
        value, g_base = self.clouds.block.values_and_gradients(base)
        value, counts, gradient = value + self._orders, np.zeros(log_omega.shape), np.empty(W.shape)
        for k, mine in enumerate(self._slices):
            Y, c = self._classes[k]
            residuals, log_f = self._log_terms(at, log_omega, k)
            top = log_f.max(axis=0)
            f = np.exp(log_f - top)
            total = f.sum(axis=0)
            value += c @ (np.log(total) + top)
            f *= c[:, None] / total
            for j, Z, r in zip(range(mine.start, mine.stop), residuals, f, strict=True):
                at.add(Y, j, Z, r)
                counts[:, j] = r.sum(axis=0)
        for k, places, block in self._weights:
            mine = self._slices[k]
            prior_value, slope = block.values_and_gradients(W[:, places])
            R = counts[:, mine]
            change = R - np.exp(log_omega[:, mine]) * R.sum(axis=1, keepdims=True)
            value, gradient[:, places] = value + prior_value, slope + change[:, :-1] - change[:, -1:]
        gradient[:, self._first :] = g_base + at.gradient()
        return value, gradient

    def _expect(self, W: Floats) -> tuple[Floats, list[Floats]]:
        """Return this share of log p (S,), and log f (C_k, n_k, S) of the components of each class."""
        base, log_omega = W[:, self._first :], self._log_weights(W)
        at = self.clouds.at(base)
        terms = [self._log_terms(at, log_omega, k)[1] for k in range(len(self.components))]
        value = self.clouds.block.values(base) + self._orders
        value = value + sum(block.values(W[:, places]) for _, places, block in self._weights)
        for (_, c), log_f in zip(self._classes, terms, strict=True):
            value = value + c @ logsumexp(log_f, axis=0)
        return value, terms

    def _log_weights(self, W: Floats) -> Floats:
        """Return log ω (S, C); 0 of a class with one component."""
        out = np.zeros((len(W), sum(self.components)))
        for k, at, block in self._weights:
            with np.errstate(divide="ignore"):
                out[:, self._slices[k]] = np.log(block.variables(W[:, at])["pi"])
        return out

    def ordered(self, W: Floats) -> NDArray[np.bool_]:
        """Return whether the components of every class are in order (S,), at points (S, dim)."""
        place = np.einsum("scd,cd->sc", self.clouds.centers(W), self.axis[self.owners])
        rising = np.diff(place, axis=1) >= 0
        return np.asarray((rising | (np.diff(self.owners) != 0)).all(axis=1))

    # ── The mode by EM ──────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def start(self) -> Floats:
        """Where the best of several runs of EM ends, its components in order."""
        with one_blas_thread():
            runs = [self.climb(np.random.default_rng(seed)) for seed in range(STARTS if self._weights else 1)]
        most = max(values[-1] for _, values in runs)
        best = next(point for point, values in runs if values[-1] > most - GAIN)
        return self.coordinates(self.variables(best[None]))[0]

    def climb(self, rng: np.random.Generator) -> tuple[Floats, list[float]]:
        """Return the point where EM ends from a random start, and the log density on its way there."""
        classes = zip(self._classes, self._sorted, self.components, strict=True)
        shares = [cluster(Y, c, order, C, rng) for (Y, c), order, C in classes]
        values: list[float] = []
        while True:
            point = self._maximise(shares)
            value, terms = self._expect(point[None])
            values.append(float(value[0]))
            if len(values) == MOST_STEPS or (len(values) > 1 and values[-1] - values[-2] < GAIN):
                return point, values
            shares = [softmax(log_f[..., 0].T, axis=1) for log_f in terms]

    def _maximise(self, shares: list[Floats]) -> Floats:
        """Return the point (dim,) of the highest log density given the shares (n_k, C_k) of the components."""
        R = [c[:, None] * share for (_, c), share in zip(self._classes, shares, strict=True)]
        members = [(Y, r) for (Y, _), part in zip(self._classes, R, strict=True) for r in part.T]
        weights = [block.coordinates({"pi": 1 + R[k].sum(axis=0)[None]})[0] for k, _, block in self._weights]
        return np.concatenate([*weights, self.clouds.maximise(members)])

    # ── Variables ───────────────────────────────────────────────────────────────────────────────────────────────────

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `weight` (S, C), `component_mu` (S, C, d) and the covariances, components in order."""
        parameters = self.clouds.variables(W[:, self._first :]) | {"weight": np.exp(self._log_weights(W))}
        place = np.einsum("scd,cd->sc", parameters["component_mu"], self.axis[self.owners])
        order = np.concatenate([np.argsort(place[:, s], axis=1) + s.start for s in self._slices], axis=1)
        each = np.arange(len(W))[:, None]
        return {name: value if name == "Sigma" else value[each, order] for name, value in parameters.items()}

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of the variables."""
        weight = variables["weight"]
        weights = [block.coordinates({"pi": weight[:, self._slices[k]]}) for k, _, block in self._weights]
        return np.hstack([*weights, self.clouds.coordinates(variables)])

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log prior densities of the weights, centres and covariances, of the order that is allowed."""
        weight = np.full(len(variables["weight"]), self._orders)
        for k, _, block in self._weights:
            weight = weight + block.log_prior({"pi": variables["weight"][:, self._slices[k]]})["pi"]
        return self.clouds.log_prior(variables) | {"weight": weight}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return log Σ_c ω_c N(x_i | μ_c, Σ_c) (S, n) over the components of each row's class."""
        out = np.empty((len(variables["weight"]), rows.n))
        for k in range(len(self.components)):
            out[:, rows.y == k] = log_mixture(variables, rows.X[rows.y == k], self._slices[k])
        return out


class Ordered(Smoothed):
    """The log density of one order of the components: −∞ in any other."""

    __slots__ = ()

    def log_density(self, w: Floats) -> Floats:
        """Return log p, () for one w (dim,), (S,) for S of them (S, dim)."""
        points = np.atleast_2d(w)
        shares, block = self.density.blocks  # type: ignore[attr-defined]  # Parts of π and a MixtureBlock
        value = np.where(block.ordered(points[:, shares.dim :]), self.density.values(points), -np.inf)
        return value.reshape(np.shape(w)[:-1])


def class_moments(variables: Mapping[str, Floats], components: Sequence[int]) -> tuple[Floats, Floats]:
    """Return mean (S, K, d) and covariance (S, K, d, d) of each class, the same in any order of its components.

    E[x | k] = Σ_c ω_c μ_c,   Cov[x | k] = Σ_c ω_c [Σ_c + (μ_c − E)(μ_c − E)ᵀ]
    """
    mu, edges = variables["component_mu"], np.cumsum([0, *components])
    S, _, d = mu.shape
    mean, covariance = np.empty((S, len(components), d)), np.empty((S, len(components), d, d))
    if "component_sigma2" in variables:
        Sigma = variables["component_sigma2"][..., None] * np.eye(d)
    else:
        Sigma = (
            variables["component_Sigma"]
            if "component_Sigma" in variables
            else variables["Sigma"][:, None].repeat(len(mu[0]), 1)
        )
    for k, (a, b) in enumerate(pairwise(edges.tolist())):
        weight = variables["weight"][:, a:b]
        mean[:, k] = np.einsum("sc,scd->sd", weight, mu[:, a:b])
        apart = mu[:, a:b] - mean[:, k, None]
        covariance[:, k] = np.einsum("sc,scij->sij", weight, Sigma[:, a:b] + apart[..., None] * apart[..., None, :])
    return mean, covariance


def log_mixture(variables: Mapping[str, Floats], X: Floats, mine: slice) -> Floats:
    """Return log Σ_c ω_c N(x | μ_c, Σ_c) (S, n) over some of the components."""
    weight, mu = variables["weight"][:, mine], variables["component_mu"][:, mine]
    S, C, d = mu.shape
    about = mu.mean(axis=(0, 1))  # so that a large offset of the features does not eat their digits
    if "component_sigma2" in variables:
        A = 1 / np.sqrt(variables["component_sigma2"][:, mine])
        log_det = np.log(A).sum(axis=-1)
    else:
        Sigma = variables["component_Sigma"][:, mine] if "component_Sigma" in variables else variables["Sigma"][:, None]
        A = np.linalg.inv(drawn_root(Sigma))
        log_det = np.log(np.diagonal(A, axis1=-2, axis2=-1)).sum(axis=-1)
    with np.errstate(divide="ignore"):  # of a component that a draw takes for empty
        constant = np.log(weight) + log_det - 0.5 * d * LOG_2PI
    out = np.empty((S, len(X)))
    for rows in wide_blocks(len(X), S * C * d):
        terms = np.empty((C, len(X[rows]), S))
        for j in range(C):
            B = np.ascontiguousarray(A[:, j if A.shape[1] > 1 else 0])
            if B.ndim == 2:
                Z = (X[rows, None] - mu[:, j]) * B
            else:
                Z = ((X[rows] - about) @ B.reshape(S * d, d).T).reshape(-1, S, d)
                Z -= np.einsum("sij,sj->si", B, mu[:, j] - about)
            terms[j] = constant[:, j] - 0.5 * np.einsum("nsd,nsd->ns", Z, Z)
        out[:, rows] = logsumexp(terms, axis=0).T
    return out
