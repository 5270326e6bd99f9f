"""The densities of the Gaussian models with an LKJ prior, which has no closed form, with their gradients by hand.

Σ = LLᵀ with rows L_i of length s_i, the standard deviations, and L_ii/s_i the diagonal of the Cholesky factor of R.
On the packed lower triangle of L, the diagonal as its logarithm, PyMC's LKJCholeskyCov has

    log p(L) = Σ_i [c_i log(L_ii/s_i) − i log s_i − ½ s_i²/scale_i² + log L_ii] + constant,  c_i = 2η − 2 + d − i

counting i from 0; the last term is the Jacobian. With A = L⁻¹ and M = S + Σ_k n_k(x̄_k − μ_k)(·)ᵀ the likelihood is

    −N Σ_i log L_ii − ½ tr(AMAᵀ),   ∂/∂L = AᵀAMAᵀ − N diag(1/L_ii),   ∂/∂μ_k = AᵀA n_k(x̄_k − μ_k)
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.families.gaussian.densities import LOG_2PI, DiagonalBlock, Indices, log_normal_rows
from bayes_gda.linalg import drawn_root, regular
from bayes_gda.methods.density import Block
from bayes_gda.priors import LKJ

# A Newton step may go too far, which is seen by its low density. Where e^t rounds to 0 on the diagonal, LAPACK would
# raise instead. e⁻¹⁵⁰ = 10⁻⁶⁵ is no standard deviation of any data, and its inverse squared is still a number.
LEAST_LOG = -150.0


@dataclass(frozen=True, eq=False)
class CholeskyBlock(Block):
    """Means and covariances under the LKJ prior; `shared` for one covariance of all classes."""

    moments: Moments
    prior: LKJ
    shared: bool

    @cached_property
    def groups(self) -> int:
        """Number of covariances."""
        return 1 if self.shared else self.moments.K

    @cached_property
    def _packed(self) -> int:
        d = self.moments.d
        return d * (d + 1) // 2

    @property
    def dim(self) -> int:
        """Number of coordinates: the packed factors, then the means."""
        return self.groups * self._packed + self.moments.K * self.moments.d

    @cached_property
    def _triangle(self) -> tuple[Indices, tuple[Indices, Indices], Indices]:
        """The diagonal, the lower triangle by rows, and where in it the diagonal stands."""
        d = self.moments.d
        return np.arange(d), np.tril_indices(d), np.cumsum(np.arange(1, d + 1)) - 1

    @cached_property
    def _fixed(self) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """S (G, d, d), n (G, J, 1), x̄ (G, J, d), N (G, 1), and the powers c_i."""
        m, G, d = self.moments, self.groups, self.moments.d
        count = m.count.reshape(G, -1, 1)
        scatter = m.scatter.reshape(G, -1, d, d).sum(axis=1)
        powers = 2 * self.prior.eta - 2 + d - np.arange(float(d))
        return scatter, count, m.mean.reshape(G, -1, d), count.sum(axis=1), powers

    @cached_property
    def _constant(self) -> float:
        m, p = self.moments, self.prior
        scales = np.sum(0.5 * np.log(2 / np.pi) - np.log(p.scale))
        means = m.K * np.sum(0.5 * LOG_2PI + np.log(p.mean_scale))
        return float(self.groups * (scales + p.log_normalizer) - means - 0.5 * LOG_2PI * m.n * m.d)

    def _unpack(self, W: Floats) -> tuple[Floats, Floats]:
        """Return L (…, G, d, d) and μ (…, G, J, d)."""
        lead, G, d = W.shape[:-1], self.groups, self.moments.d
        diagonal, triangle, _ = self._triangle
        packed = W[..., : G * self._packed].reshape(*lead, G, -1)
        L = np.zeros((*lead, G, d, d))
        L[..., triangle[0], triangle[1]] = packed
        L[..., diagonal, diagonal] = np.exp(np.maximum(L[..., diagonal, diagonal], LEAST_LOG))
        return L, W[..., G * self._packed :].reshape(*lead, G, -1, d)

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, dim)."""
        p, lead = self.prior, W.shape[:-1]
        diagonal, triangle, on_diagonal = self._triangle
        scatter, count, mean, rows, powers = self._fixed
        L, mu = self._unpack(W)
        l_ii = L[..., diagonal, diagonal]
        s2 = (L * L).sum(axis=-1)
        A = np.linalg.inv(L)
        near, far = mean - mu, (mu - p.m) / p.mean_scale
        At = np.swapaxes(A, -1, -2)
        B = A @ (scatter + np.swapaxes(count * near, -1, -2) @ near) @ At
        index = np.arange(len(powers))
        value = ((powers + 1 - rows) * np.log(l_ii)).sum(axis=(-2, -1))
        value = value - 0.5 * ((powers + index) * np.log(s2) + s2 / p.scale**2).sum(axis=(-2, -1))
        value = value - 0.5 * B[..., diagonal, diagonal].sum(axis=(-2, -1)) - 0.5 * (far * far).sum(axis=(-3, -2, -1))
        g_L = At @ B - (((powers + index) / s2 + p.scale**-2.0)[..., None] * L)
        packed = g_L[..., triangle[0], triangle[1]]
        packed[..., on_diagonal] = packed[..., on_diagonal] * l_ii + (powers + 1 - rows)
        g_mu = ((count * near) @ At) @ A - far / p.mean_scale
        gradient = np.concatenate([packed.reshape(*lead, -1), g_mu.reshape(*lead, -1)], axis=-1)
        return value + self._constant, gradient

    @property
    def start(self) -> Floats:
        """Coordinates of the class means and of covariances a little drawn to the prior's scales."""
        m, G, d = self.moments, self.groups, self.moments.d
        scatter, _, _, rows, _ = self._fixed
        # The prior counts as much as d + 2 rows of its own, smaller scale: enough to make Σ definite.
        weight = d + 2.0
        Sigma = (scatter + weight * np.diag((0.5 * self.prior.scale) ** 2)) / (rows + weight)[..., None]
        with regular("The covariances to start from"):
            L = np.linalg.cholesky(Sigma)
        diagonal, triangle, _ = self._triangle
        L[:, diagonal, diagonal] = np.log(L[:, diagonal, diagonal])
        return np.concatenate([L[:, triangle[0], triangle[1]].reshape(G * self._packed), m.mean.ravel()])

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `mu` (S, K, d), `Sigma` (S, [K,] d, d) and the packed factors behind it."""
        L, mu = self._unpack(W)
        _, triangle, _ = self._triangle
        packed, Sigma = L[..., triangle[0], triangle[1]], L @ np.swapaxes(L, -1, -2)
        out = {"mu": mu.reshape(len(W), self.moments.K, self.moments.d)}
        if self.shared:
            return out | {"Sigma": Sigma[:, 0], "Sigma_chol": packed[:, 0]}
        return out | {"Sigma": Sigma} | {f"Sigma_chol_{k}": packed[:, k] for k in range(self.groups)}

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the packed factors and the means (S, dim) of draws of `Sigma` and `mu`."""
        diagonal, triangle, _ = self._triangle
        L = drawn_root(variables["Sigma"])
        L[..., diagonal, diagonal] = np.log(L[..., diagonal, diagonal])
        return np.hstack([x.reshape(len(L), -1) for x in (L[..., triangle[0], triangle[1]], variables["mu"])])

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log density of `Sigma`, in the logarithms of its scales and its correlations, and of `mu`."""
        p = self.prior
        Sigma = variables["Sigma"][:, None] if self.shared else variables["Sigma"]
        s2 = np.diagonal(Sigma, axis1=-2, axis2=-1)
        log_det_R = np.linalg.slogdet(Sigma)[1] - np.log(s2).sum(axis=-1)
        scales = (0.5 * np.log(2 / np.pi * s2) - np.log(p.scale) - 0.5 * s2 / p.scale**2).sum(axis=-1)
        prior = scales + (p.eta - 1) * log_det_R + p.log_normalizer
        return {"Sigma": prior.sum(axis=-1), "mu": _log_normal_means(variables["mu"], p)}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return log N(x_i | μ_{y_i}, Σ) (S, n)."""
        return log_normal_rows(variables["mu"], variables["Sigma"], rows)


@dataclass(frozen=True, eq=False)
class ScalesBlock(DiagonalBlock):
    """The naive model with the scales and means of the LKJ prior, on log σ (K, d), then μ (K, d)."""

    prior: LKJ

    @cached_property
    def _fixed(self) -> tuple[Floats, Floats, float]:
        m, p = self.moments, self.prior
        constant = m.K * np.sum(0.5 * np.log(2 / np.pi) - np.log(p.scale) - 0.5 * LOG_2PI - np.log(p.mean_scale))
        squares = np.diagonal(m.scatter, axis1=1, axis2=2)
        return m.count[:, None], squares, float(constant - 0.5 * LOG_2PI * m.n * m.d)

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, dim)."""
        p, (n, squares, constant) = self.prior, self._fixed
        t, mu = self._unpack(W)  # t = log σ
        near, far = self.moments.mean - mu, (mu - p.m) / p.mean_scale
        inverse = np.exp(-2 * t)
        total = (squares + n * near**2) * inverse
        prior = np.exp(2 * t) / p.scale**2
        value = ((1 - n) * t - 0.5 * (total + prior + far**2)).sum(axis=(-2, -1)) + constant
        g = np.stack([1 - n + total - prior, n * near * inverse - far / p.mean_scale], axis=-3)
        return value, g.reshape(W.shape)

    @property
    def start(self) -> Floats:
        """Coordinates near the posterior means."""
        n, squares, _ = self._fixed
        variance = (squares + 3 * (0.5 * self.prior.scale) ** 2) / (n + 3)  # drawn a little to the prior's scales
        return np.concatenate([0.5 * np.log(variance).ravel(), self.moments.mean.ravel()])

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `sigma`, `sigma2` and `mu`, all (S, K, d)."""
        t, mu = self._unpack(W)
        return {"sigma": np.exp(t), "sigma2": np.exp(2 * t), "mu": mu}

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return log σ and the means (S, dim) of draws of `sigma2` and `mu`."""
        both = 0.5 * np.log(variables["sigma2"]), variables["mu"]
        return np.hstack([x.reshape(len(x), -1) for x in both])

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the half-normal log density of `sigma`, by its logarithm, and the normal one of `mu`."""
        p, s = self.prior, np.sqrt(variables["sigma2"])
        half = 0.5 * np.log(2 / np.pi) + np.log(s / p.scale) - 0.5 * (s / p.scale) ** 2
        return {"sigma": half.sum(axis=(-2, -1)), "mu": _log_normal_means(variables["mu"], p)}


def _log_normal_means(mu: Floats, prior: LKJ) -> Floats:
    z = (mu - prior.m) / prior.mean_scale
    return np.asarray(-(0.5 * (LOG_2PI + z**2) + np.log(prior.mean_scale)).sum(axis=(-2, -1)))
