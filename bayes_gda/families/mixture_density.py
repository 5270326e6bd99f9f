"""Classes that are mixtures of Gaussians: groups within a class that need not be known.

The coordinates are those of π, of the weights ω_k of each class with two components or more (both on the simplex), then
the Bartlett factors T of all components' Σ⁻¹ = AᵀA, A = TC⁻¹, Ψ = CCᵀ, and their centres μ. With ỹ = C⁻¹(x − m)

    log f_ic = log ω_c − ½d log 2π + ½Σ_j u_cj + log|C⁻¹| − ½|T_c(ỹ_i − μ̃_c)|²,   r_ic = c_i f_ic/Σ_c f_ic
    log p    = Σ_i c_i log Σ_c f_ic + prior,   ∂ log p = Σ_ic r_ic ∂ log f_ic

EM in these coordinates: given r the rest is a log posterior of Gaussian classes, whose maximum is known in closed form
(`families.student`), and ω ∝ α + Σ_i r_ic. Several starts by k-means; Newton's method ends the best of them.

The density does not change if components of a class change places. Draws are put in order, along a fixed axis of each
class, which is the same as a prior that allows this order alone: the log density has log C_k! for it, and is −∞ in any
other order where it is weighed or integrated. A sampler may cross from one order to another; its draws are ordered
afterwards, so that nothing of what is diagnosed or predicted depends on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp, softmax

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.families.gaussian.densities import LOG_2PI, BartlettBlock, ClassBlock, Indices
from bayes_gda.linalg import one_blas_thread, wide_blocks
from bayes_gda.methods.density import Block, Smoothed
from bayes_gda.priors import NIW

# Points × rows × features at once; see `families.student`.
ELEMENTS = 2**20
# Starts of EM, and where it ends: a step that gains less, after which Newton's method takes over.
STARTS, GAIN, MOST_STEPS = 10, 1e-3, 500
KMEANS_STEPS = 10


@dataclass(frozen=True, eq=False)
class MixtureBlock(Block):
    """Weights, centres and covariances of the components of all classes, with the rows.

    Parameters
    ----------
    rows
        Training rows; with weights if some count more than once.
    prior
        NIW of the centre and covariance of a component.
    components
        (K,) number of components of each class.
    shared
        One covariance for all components.
    axis
        (K, d) direction along which the components of a class are put in order.
    """

    rows: Dataset
    prior: NIW
    components: tuple[int, ...]
    shared: bool
    axis: Floats

    @cached_property
    def gaussian(self) -> BartlettBlock:
        """The prior of centres and covariances: that of Gaussian classes without rows, one for each component."""
        return BartlettBlock(Moments.empty(sum(self.components), self.rows.d), self.prior, self.shared)

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
        return self._first + self.gaussian.dim

    @property
    def independent(self) -> Sequence[Indices]:
        """The coordinates of each class, unless all share a covariance."""
        if self.shared:
            return [np.arange(self.dim)]
        C, d, weights = sum(self.components), self.rows.d, {k: at for k, at, _ in self._weights}
        sizes = [d, d * (d - 1) // 2, d]
        first = self._first + np.concatenate([[0], np.cumsum(C * np.array(sizes))])
        groups = []
        for k, mine in enumerate(self._slices):
            parts = [np.arange(weights[k].start, weights[k].stop)] if k in weights else []
            parts += [np.arange(first[i] + mine.start * s, first[i] + mine.stop * s) for i, s in enumerate(sizes)]
            groups.append(np.concatenate(parts))
        return groups

    @cached_property
    def _root(self) -> Floats:
        return np.linalg.inv(np.linalg.cholesky(self.prior.Psi))

    @cached_property
    def _classes(self) -> list[tuple[Floats, Floats]]:
        """Of each class the rows C⁻¹(x − m) (n_k, d) and their weights (n_k,)."""
        rows = self.rows
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        Y = (rows.X - self.prior.m) @ self._root.T
        return [(Y[rows.y == k], weight[rows.y == k]) for k in range(len(self.components))]

    @cached_property
    def _orders(self) -> float:
        """Log of the number of orders of the components, Σ_k log C_k!."""
        return float(gammaln(np.array(self.components) + 1.0).sum())

    # ── The density ─────────────────────────────────────────────────────────────────────────────────────────────────

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, dim), in any order of the components."""
        points = W.reshape(-1, self.dim)
        value, gradient = np.empty(len(points)), np.empty(points.shape)
        step = max(1, ELEMENTS // max(1, self.rows.n * self.rows.d * max(self.components)))
        for i in range(0, len(points), step):
            value[i : i + step], gradient[i : i + step] = self._evaluate(points[i : i + step])
        return value.reshape(W.shape[:-1]), gradient.reshape(W.shape)

    def _evaluate(self, W: Floats) -> tuple[Floats, Floats]:
        prior, d, base = self.gaussian, self.rows.d, W[:, self._first :]
        u, flat, mu = prior.unpack(base)
        S, G = len(W), prior.groups
        T = flat.reshape(S, G, d, d)
        center = (mu.reshape(S, -1, d) - self.prior.m) @ self._root.T
        log_omega = self._log_weights(W)
        half = 0.5 * u.reshape(S, G, d).sum(axis=2) + np.log(np.diag(self._root)).sum() - 0.5 * d * LOG_2PI
        value, g_base = prior.values_and_gradients(base)
        value = value + self._orders
        g_T, g_center, counts = np.zeros((S, G, d, d)), np.zeros(center.shape), np.zeros(center.shape[:2])
        gradient = np.empty(W.shape)
        for k, mine in enumerate(self._slices):
            Y, c = self._classes[k]
            white = [self._whiten(Y, T[:, self._of(j)], center[:, j]) for j in range(mine.start, mine.stop)]
            log_f = np.stack(
                [
                    log_omega[:, j] + half[:, self._of(j)] - 0.5 * np.einsum("nsd,nsd->ns", Z, Z)
                    for j, Z in zip(range(mine.start, mine.stop), white, strict=True)
                ]
            )
            top = log_f.max(axis=0)
            f = np.exp(log_f - top)
            total = f.sum(axis=0)
            value += c @ (np.log(total) + top)
            f *= c[:, None] / total
            for j, Z, r in zip(range(mine.start, mine.stop), white, f, strict=True):
                g, A, m = self._of(j), T[:, self._of(j)], center[:, j]
                Z *= r[:, :, None]
                sums = Z.sum(axis=0)
                cross = (Z.reshape(len(Y), S * d).T @ Y).reshape(S, d, d)
                g_T[:, g] -= cross - sums[:, :, None] * m[:, None, :]
                g_center[:, j] = np.einsum("si,sij->sj", sums, A)
                counts[:, j] = r.sum(axis=0)
        for k, at, block in self._weights:
            mine = self._slices[k]
            prior_value, slope = block.values_and_gradients(W[:, at])
            R = counts[:, mine]
            change = R - np.exp(log_omega[:, mine]) * R.sum(axis=1, keepdims=True)
            value, gradient[:, at] = value + prior_value, slope + change[:, :-1] - change[:, -1:]
        diagonal, triangle = prior.places
        g_flat = g_T.reshape(S, -1)
        rows = counts.sum(axis=1, keepdims=True) if self.shared else counts
        g_u = 0.5 * (flat[:, diagonal] * g_flat[:, diagonal] + np.repeat(rows, d, axis=1))
        g_mu = (g_center @ self._root).reshape(S, -1)
        gradient[:, self._first :] = g_base + np.concatenate([g_u, g_flat[:, triangle], g_mu], axis=1)
        return value, gradient

    def _of(self, component: int) -> int:
        """Return which covariance a component has."""
        return 0 if self.shared else component

    @staticmethod
    def _whiten(Y: Floats, A: Floats, m: Floats) -> Floats:
        """Return T(ỹ − μ̃) (n, S, d) of all rows and points in one product."""
        S, d = m.shape
        Z = (Y @ A.reshape(S * d, d).T).reshape(len(Y), S, d)
        Z -= np.einsum("sij,sj->si", A, m)
        return Z

    def _log_weights(self, W: Floats) -> Floats:
        """Return log ω (S, C); 0 of a class with one component."""
        out = np.zeros((len(W), sum(self.components)))
        for k, at, block in self._weights:
            with np.errstate(divide="ignore"):
                out[:, self._slices[k]] = np.log(block.variables(W[:, at])["pi"])
        return out

    def ordered(self, W: Floats) -> NDArray[np.bool_]:
        """Return whether the components of every class are in order (S,), at points (S, dim)."""
        mu = W[:, -sum(self.components) * self.rows.d :].reshape(len(W), -1, self.rows.d)
        place = np.einsum("scd,cd->sc", mu, self.axis[self.owners])
        rising = np.diff(place, axis=1) >= 0
        return np.asarray((rising | (np.diff(self.owners) != 0)).all(axis=1))

    # ── The mode by EM ──────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def start(self) -> Floats:
        """Where the best of several runs of EM ends, its components in order."""
        with one_blas_thread():
            runs = [self.climb(np.random.default_rng(seed)) for seed in range(STARTS if self._weights else 1)]
            best = max(runs, key=lambda run: run[1][-1])[0]
        return self.coordinates(self.variables(best[None]))[0]

    def climb(self, rng: np.random.Generator) -> tuple[Floats, list[float]]:
        """Return the point where EM ends from a random start, and the log density on its way there."""
        shares = [_kmeans(Y, c, C, rng) for (Y, c), C in zip(self._classes, self.components, strict=True)]
        values: list[float] = []
        while True:
            T, center, omega = self._maximise(shares)
            point = self._pack(T, center, omega)
            values.append(float(self.values(point)))
            if len(values) == MOST_STEPS or (len(values) > 1 and values[-1] - values[-2] < GAIN):
                return point, values
            shares = self._expect(T, center, omega)

    def _expect(self, T: Floats, center: Floats, omega: Floats) -> list[Floats]:
        """Return the shares (n_k, C_k) of the components in each row."""
        out = []
        for (Y, _), mine in zip(self._classes, self._slices, strict=True):
            terms = [
                np.log(omega[j])
                + np.log(np.diagonal(T[self._of(j)])).sum()
                - 0.5 * (((Y - center[j]) @ T[self._of(j)].T) ** 2).sum(axis=1)
                for j in range(mine.start, mine.stop)
            ]
            out.append(softmax(np.stack(terms, axis=1), axis=1))
        return out

    def _maximise(self, shares: list[Floats]) -> tuple[Floats, Floats, Floats]:
        """Return T (G, d, d), μ̃ (C, d) and ω (C,) of the highest log density given the shares."""
        d, kappa, G = self.rows.d, self.prior.kappa, self.gaussian.groups
        M, center = np.tile(np.eye(d), (G, 1, 1)), np.empty((sum(self.components), d))
        rows, omega = np.zeros(G), np.empty(sum(self.components))
        for (Y, c), mine, share in zip(self._classes, self._slices, shares, strict=True):
            R = c[:, None] * share
            omega[mine] = (1 + R.sum(axis=0)) / (len(R.T) + c.sum())
            for j, r in zip(range(mine.start, mine.stop), R.T, strict=True):
                center[j] = r @ Y / (r.sum() + kappa)
                V = Y - center[j]
                M[self._of(j)] += (V * r[:, None]).T @ V + kappa * np.outer(center[j], center[j])
                rows[self._of(j)] += r.sum() + 1
        powers = self.prior.nu - d + np.arange(1, d + 1) + rows[:, None]
        return np.sqrt(powers)[:, :, None] * np.linalg.inv(np.linalg.cholesky(M)), center, omega

    def _pack(self, T: Floats, center: Floats, omega: Floats) -> Floats:
        diagonal, triangle = self.gaussian.places
        mu = self.prior.m + center @ np.linalg.cholesky(self.prior.Psi).T
        weights = [block.coordinates({"pi": omega[None, self._slices[k]]})[0] for k, _, block in self._weights]
        flat = T.ravel()
        return np.concatenate([*weights, 2 * np.log(flat[diagonal]), flat[triangle], mu.ravel()])

    # ── Variables ───────────────────────────────────────────────────────────────────────────────────────────────────

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `weight` (S, C), `component_mu` (S, C, d) and `component_Sigma` or `Sigma`, components in order."""
        parameters = self.gaussian.variables(W[:, self._first :])
        mu, weight = parameters["mu"], np.exp(self._log_weights(W))
        place = np.einsum("scd,cd->sc", mu, self.axis[self.owners])
        order = np.concatenate([np.argsort(place[:, s], axis=1) + s.start for s in self._slices], axis=1)
        each = np.arange(len(W))[:, None]
        out = {"weight": weight[each, order], "component_mu": mu[each, order]}
        return out | (
            {"Sigma": parameters["Sigma"]} if self.shared else {"component_Sigma": parameters["Sigma"][each, order]}
        )

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of the variables."""
        weight, mu = variables["weight"], variables["component_mu"]
        Sigma = variables["Sigma" if self.shared else "component_Sigma"]
        S, (diagonal, triangle) = len(mu), self.gaussian.places
        T = (np.linalg.inv(np.linalg.cholesky(Sigma)) @ np.linalg.cholesky(self.prior.Psi)).reshape(S, -1)
        weights = [block.coordinates({"pi": weight[:, self._slices[k]]}) for k, _, block in self._weights]
        return np.hstack([*weights, 2 * np.log(T[:, diagonal]), T[:, triangle], mu.reshape(S, -1)])

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log prior densities of the weights, centres and covariances, of the order that is allowed."""
        Sigma = variables["Sigma" if self.shared else "component_Sigma"]
        terms = self.gaussian.log_prior({"Sigma": Sigma, "mu": variables["component_mu"]})
        weight = np.full(len(Sigma), self._orders)
        for k, _, block in self._weights:
            weight = weight + block.log_prior({"pi": variables["weight"][:, self._slices[k]]})["pi"]
        name = "Sigma" if self.shared else "component_Sigma"
        return {name: terms["Sigma"], "component_mu": terms["mu"], "weight": weight}

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


def log_mixture(variables: Mapping[str, Floats], X: Floats, mine: slice) -> Floats:
    """Return log Σ_c ω_c N(x | μ_c, Σ_c) (S, n) over some of the components."""
    weight, mu = variables["weight"][:, mine], variables["component_mu"][:, mine]
    Sigma = variables["component_Sigma"][:, mine] if "component_Sigma" in variables else variables["Sigma"][:, None]
    S, C, d = mu.shape
    A = np.linalg.inv(np.linalg.cholesky(Sigma))
    about = mu.mean(axis=(0, 1))  # so that a large offset of the features does not eat their digits
    with np.errstate(divide="ignore"):  # of a component that a draw takes for empty
        constant = np.log(weight) + np.log(np.diagonal(A, axis1=-2, axis2=-1)).sum(axis=-1) - 0.5 * d * LOG_2PI
    out = np.empty((S, len(X)))
    for rows in wide_blocks(len(X), S * C * d):
        terms = np.empty((C, len(X[rows]), S))
        for j in range(C):
            B = np.ascontiguousarray(A[:, j if A.shape[1] > 1 else 0])
            Z = ((X[rows] - about) @ B.reshape(S * d, d).T).reshape(-1, S, d)
            Z -= np.einsum("sij,sj->si", B, mu[:, j] - about)
            terms[j] = constant[:, j] - 0.5 * np.einsum("nsd,nsd->ns", Z, Z)
        out[:, rows] = logsumexp(terms, axis=0).T
    return out


def _kmeans(Y: Floats, count: Floats, C: int, rng: np.random.Generator) -> Floats:
    """Return shares (n, C), 0 or 1, of clusters from a random start in which rows far apart are likely centres."""
    if C == 1 or not len(Y):
        return np.full((len(Y), C), 1 / C)
    # By their values, so that a row of weight 2 starts as two equal ones do, wherever these stand.
    order = np.lexsort(Y.T)
    center = Y[_pick(count[order], order, rng)][None]
    while len(center) < C:
        near = count * _squares(Y, center).min(axis=1)
        center = np.vstack([center, Y[_pick(near[order], order, rng)]])
    for _ in range(KMEANS_STEPS):
        share = np.eye(C)[_squares(Y, center).argmin(axis=1)] * count[:, None]
        size = share.sum(axis=0)[:, None]
        center = np.where(size > 0, share.T @ Y / np.where(size > 0, size, 1.0), center)
    return np.eye(C)[_squares(Y, center).argmin(axis=1)]


def _pick(weight: Floats, order: Indices, rng: np.random.Generator) -> int:
    """Return one of the rows, by weights (n,) in this order."""
    total = np.cumsum(weight)
    return int(order[min(np.searchsorted(total, rng.random() * total[-1]), len(order) - 1)])


def _squares(Y: Floats, center: Floats) -> Floats:
    return ((Y[:, None] - center) ** 2).sum(axis=2)
