"""The densities of the conjugate Gaussian models in unconstrained coordinates, with their gradients by hand.

Class probabilities on the simplex coordinates v of PyMC (v_K = −Σ v_k, π = softmax v, log|∂π/∂v| = log K + Σ log π_k):

    log p = Σ_k c_k log π_k + constant,   c = α + n,   ∂/∂v_k = c_k − π_k Σc, less the same of class K

Covariances by Bartlett factors: with Ψ = CCᵀ, Σ⁻¹ = AᵀA, A = TC⁻¹, T_jj = e^{u_j/2} and T_ij = z_ij below the diagonal.
Likelihood and prior of the means are quadratic in μ, so with their common centre m'_k = (n_k x̄_k + κm)/(n_k + κ)

    M     = I + C⁻¹ [S + Σ_k κn_k/(κ+n_k) (x̄_k − m)(·)ᵀ + Σ_k (n_k + κ)(μ_k − m'_k)(·)ᵀ] C⁻ᵀ
    log p = ½ Σ_j (ν − d + j + N + J) u_j − ½ tr(TMTᵀ) + constant
    ∂/∂T  = −TM,   ∂/∂μ_k = −(n_k + κ) C⁻ᵀTᵀT C⁻¹(μ_k − m'_k)

where the sums run over the J classes, with N rows, that share Σ: all of them in LDA, one in QDA. The I in M is the
prior of T itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, multigammaln, softmax

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.linalg import drawn_root, regular
from bayes_gda.methods.density import Block
from bayes_gda.priors import NIG, NIW

Indices = NDArray[np.intp]
LOG_2PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class ClassBlock(Block):
    """π ~ Dirichlet(α) with n_k rows of class k, on K − 1 simplex coordinates."""

    count: Floats
    alpha: Floats

    @property
    def dim(self) -> int:
        """Number of coordinates, K − 1."""
        return len(self.alpha) - 1

    @property
    def start(self) -> Floats:
        """Coordinates of the mode: π proportional to α + n."""
        log_pi = np.log(self.alpha + self.count)
        return (log_pi - log_pi.mean())[:-1]

    @cached_property
    def _normalizer(self) -> float:
        return float(gammaln(self.alpha.sum()) - gammaln(self.alpha).sum())

    @cached_property
    def _fixed(self) -> tuple[Floats, Floats, float, float]:
        """The map (K − 1, K) from v to all K coordinates, c, Σc and the constant."""
        K, c = len(self.alpha), self.alpha + self.count
        return np.hstack([np.eye(K - 1), -np.ones((K - 1, 1))]), c, float(c.sum()), self._normalizer + float(np.log(K))

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, K − 1)."""
        spread, c, total, constant = self._fixed
        v = W @ spread
        v -= v.max(axis=-1, keepdims=True)
        e = np.exp(v)
        sums = e.sum(axis=-1, keepdims=True)
        e *= total / sums
        return v @ c + (constant - total * np.log(sums[..., 0])), (c - e) @ spread.T

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `pi` (S, K)."""
        return {"pi": softmax(W @ self._fixed[0], axis=-1)}

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return log π less its mean over the classes, but for the last class, (S, K − 1)."""
        log_pi = np.log(variables["pi"])
        return (log_pi - log_pi.mean(axis=1, keepdims=True))[:, :-1]

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the Dirichlet log density of `pi`, by the logarithms."""
        return {"pi": np.log(variables["pi"]) @ self.alpha + self._normalizer}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return log π_{y_i} (S, n)."""
        return np.log(variables["pi"])[:, rows.y]


@dataclass(frozen=True, eq=False)
class BartlettBlock(Block):
    """Means and covariances under a normal-inverse-Wishart prior; `shared` for one covariance of all classes."""

    moments: Moments
    prior: NIW
    shared: bool

    @cached_property
    def groups(self) -> int:
        """Number of covariances."""
        return 1 if self.shared else self.moments.K

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        """Numbers of χ² and z coordinates."""
        d = self.moments.d
        return self.groups * d, self.groups * d * (d - 1) // 2

    @property
    def dim(self) -> int:
        """Number of coordinates: those of T, then the means."""
        return sum(self._sizes) + self.moments.K * self.moments.d

    @cached_property
    def _fixed(self) -> tuple[Floats, ...]:
        """C⁻ᵀ, the fixed part of M (G, d, d), √(n + κ) (G, J, 1), centres (G, J, d), factors of u (G, d)."""
        m, prior, G, d = self.moments, self.prior, self.groups, self.moments.d
        root = np.linalg.inv(np.linalg.cholesky(prior.Psi))
        total = m.count + prior.kappa
        delta = (m.mean - prior.m) * np.sqrt(prior.kappa * m.count / total)[:, None]
        scatter = root @ (m.scatter + delta[:, :, None] * delta[:, None, :]) @ root.T
        fixed = np.eye(d) + scatter.reshape(G, -1, d, d).sum(axis=1)
        center = m.mean + (prior.kappa / total)[:, None] * (prior.m - m.mean)
        df = prior.nu - d + np.arange(1, d + 1)
        rows = m.count.reshape(G, -1)
        linear = 0.5 * (df + (rows.sum(axis=1) + rows.shape[1])[:, None])
        return root.T.copy(), fixed, np.sqrt(total).reshape(G, -1, 1), center.reshape(G, -1, d), linear

    @cached_property
    def _constant(self) -> float:
        m, prior = self.moments, self.prior
        df = prior.nu - m.d + np.arange(1, m.d + 1)
        chi2 = self.groups * np.sum(df / 2 * np.log(2) + gammaln(df / 2))
        log_root = np.log(np.diag(self._fixed[0])).sum()  # log|C⁻¹|, once for every row and mean
        means = 0.5 * m.K * m.d * np.log(prior.kappa)
        gaussians = 0.5 * LOG_2PI * (m.d * (m.n + m.K) + self._sizes[1])
        return float((m.n + m.K) * log_root + means - gaussians - chi2)

    @cached_property
    def places(self) -> tuple[Indices, Indices]:
        """Where the diagonals and what is below them stand in all T, written out as one vector (G·d·d,)."""
        d = self.moments.d
        first = np.arange(self.groups)[:, None] * d * d
        below = np.tril_indices(d, -1)
        return (first + np.arange(d) * (d + 1)).ravel(), (first + below[0] * d + below[1]).ravel()

    def unpack(self, W: Floats) -> tuple[Floats, Floats, Floats]:
        """Return u (…, G·d), T written out (…, G·d·d) and μ (…, G, J, d)."""
        lead, G, d = W.shape[:-1], self.groups, self.moments.d
        chi2, below = self._sizes
        diagonal, triangle = self.places
        u = W[..., :chi2]
        T = np.zeros((*lead, G * d * d))
        T[..., diagonal] = np.exp(0.5 * u)
        T[..., triangle] = W[..., chi2 : chi2 + below]
        return u, T, W[..., chi2 + below :].reshape(*lead, G, -1, d)

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, dim)."""
        lead, G, d = W.shape[:-1], self.groups, self.moments.d
        root, fixed, weight, center, linear = self._fixed
        diagonal, triangle = self.places
        u, flat, mu = self.unpack(W)
        T = flat.reshape(*lead, G, d, d)
        E = weight * ((mu - center) @ root)  # rows √(n + κ) C⁻¹(μ − m')
        TM = (T @ (fixed + np.swapaxes(E, -1, -2) @ E)).reshape(*lead, -1)
        value = np.vecdot(u, linear.ravel()) - 0.5 * np.vecdot(flat, TM) + self._constant
        g_u = linear.ravel() - 0.5 * flat[..., diagonal] * TM[..., diagonal]
        g_mu = ((weight * E) @ np.swapaxes(T, -1, -2)) @ (T @ root.T)
        return value, np.concatenate([g_u, -TM[..., triangle], -g_mu.reshape(*lead, -1)], axis=-1)

    @property
    def start(self) -> Floats:
        """Coordinates of the posterior means of μ and of Σ⁻¹."""
        _, fixed, _, center, linear = self._fixed
        diagonal, triangle = self.places
        # In coordinates whitened by C the posterior of Σ⁻¹ has the mean ν' M⁻¹; the last factor of u is near ½ν'.
        with regular("The posterior means of the covariances"):
            T = np.linalg.inv(np.linalg.cholesky(fixed / (2 * linear[:, -1])[:, None, None])).ravel()
        return np.concatenate([2 * np.log(T[diagonal]), T[triangle], center.ravel()])

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `mu` (S, K, d), `Sigma` (S, [K,] d, d) and the Bartlett variables behind it."""
        S, K, G, d = len(W), self.moments.K, self.groups, self.moments.d
        u, flat, mu = self.unpack(W)
        L = np.linalg.cholesky(self.prior.Psi) @ np.linalg.inv(flat.reshape(S, G, d, d))
        out = {"Sigma_chi2": np.exp(u).reshape(S, G, d), "Sigma": L @ np.swapaxes(L, -1, -2)}
        if d > 1:
            out["Sigma_z"] = flat[:, self.places[1]].reshape(S, G, -1)
        if self.shared:
            out = {name: values[:, 0] for name, values in out.items()}
        return out | {"mu": mu.reshape(S, K, d)}

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the inverse-Wishart log density of `Sigma`, by |Σ|^{−(d+1)/2} dΣ, and the normal one of `mu`."""
        prior, d = self.prior, self.moments.d
        Sigma = variables["Sigma"][:, None] if self.shared else variables["Sigma"]  # (S, G, d, d)
        A = np.linalg.inv(drawn_root(Sigma))
        log_det = np.log(np.diagonal(A, axis1=-2, axis2=-1)).sum(axis=-1)  # −½ log|Σ|
        scale = A @ np.linalg.cholesky(prior.Psi)
        normalizer = 0.5 * prior.nu * np.linalg.slogdet(prior.Psi)[1] - 0.5 * prior.nu * d * np.log(2)
        normalizer -= multigammaln(prior.nu / 2, d)
        wishart = normalizer + prior.nu * log_det - 0.5 * (scale**2).sum(axis=(-2, -1))
        distance = _white(A, variables["mu"], prior.m)
        normal = 0.5 * d * (np.log(prior.kappa) - LOG_2PI) + log_det - 0.5 * prior.kappa * distance
        return {"Sigma": wishart.sum(axis=-1), "mu": normal.sum(axis=-1)}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return log N(x_i | μ_{y_i}, Σ) (S, n)."""
        return log_normal_rows(variables["mu"], variables["Sigma"], rows)


@dataclass(frozen=True, eq=False)
class DiagonalBlock(Block):
    """What the naive blocks share: the logarithm t of a scale (K, d), then μ (K, d), and the likelihood of rows."""

    moments: Moments

    @property
    def dim(self) -> int:
        """Number of coordinates, 2Kd."""
        return 2 * self.moments.K * self.moments.d

    def _unpack(self, W: Floats) -> tuple[Floats, Floats]:
        both = W.reshape(*W.shape[:-1], 2, self.moments.K, self.moments.d)
        return both[..., 0, :, :], both[..., 1, :, :]

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return Σ_j log N(x_ij | μ_kj, σ²_kj) (S, n)."""
        return log_normal_diagonal(variables["mu"], variables["sigma2"], rows)


@dataclass(frozen=True, eq=False)
class NaiveBlock(DiagonalBlock):
    """Means and variances under a normal-inverse-gamma prior, on t = log σ² (K, d), then μ (K, d)."""

    prior: NIG

    @cached_property
    def _fixed(self) -> tuple[Floats, Floats, float]:
        """n (K, 1), the squares S_kjj (K, d), and the constant."""
        m, p = self.moments, self.prior
        constant = m.K * np.sum(p.a * np.log(p.b) - gammaln(p.a) + 0.5 * np.log(p.kappa))
        constant -= 0.5 * LOG_2PI * m.d * (m.n + m.K)
        return m.count[:, None], np.diagonal(m.scatter, axis1=1, axis2=2), float(constant)

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, dim).

        log p = Σ −(a + ½n + ½) t − ½ [2b + S + n(x̄ − μ)² + κ(μ − m)²] e^{−t} + constant
        """
        p, (n, squares, constant) = self.prior, self._fixed
        t, mu = self._unpack(W)
        near, far = self.moments.mean - mu, mu - p.m
        inverse = np.exp(-t)
        total = (2 * p.b + squares + n * near**2 + p.kappa * far**2) * inverse
        power = p.a + 0.5 * (n + 1)
        value = -(power * t + 0.5 * total).sum(axis=(-2, -1)) + constant
        g = np.stack([0.5 * total - power, (n * near - p.kappa * far) * inverse], axis=-3)
        return value, g.reshape(W.shape)

    @property
    def start(self) -> Floats:
        """Coordinates near the posterior means."""
        p, (n, squares, _) = self.prior, self._fixed
        mean = self.moments.mean
        mu = mean + p.kappa / (p.kappa + n) * (p.m - mean)
        b = p.b + 0.5 * (squares + p.kappa * n / (p.kappa + n) * (mean - p.m) ** 2)
        return np.concatenate([np.log(b / (p.a + n / 2)).ravel(), mu.ravel()])

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `sigma2` and `mu`, both (S, K, d)."""
        t, mu = self._unpack(W)
        return {"sigma2": np.exp(t), "mu": mu}

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the inverse-gamma log density of `sigma2`, by its logarithm, and the normal one of `mu` given it."""
        p, s2, mu = self.prior, variables["sigma2"], variables["mu"]
        gamma = p.a * np.log(p.b) - gammaln(p.a) - p.a * np.log(s2) - p.b / s2
        normal = 0.5 * (np.log(p.kappa / s2) - LOG_2PI - p.kappa * (mu - p.m) ** 2 / s2)
        return {"sigma2": gamma.sum(axis=(-2, -1)), "mu": normal.sum(axis=(-2, -1))}


def log_normal_rows(mu: Floats, Sigma: Floats, rows: Dataset) -> Floats:
    """Return log N(x_i | μ_{y_i}, Σ) (S, n) for draws of μ (S, K, d) and Σ (S, [K,] d, d)."""
    S, K, d = mu.shape
    A = np.linalg.inv(drawn_root(Sigma if Sigma.ndim == 4 else Sigma[:, None]))
    log_det = np.log(np.diagonal(A, axis1=-2, axis2=-1)).sum(axis=-1)
    out = np.empty((S, rows.n))
    for k in range(K):
        mine, g = rows.y == k, k if A.shape[1] > 1 else 0
        white = (A[:, g] @ rows.X[mine].T) - A[:, g] @ mu[:, k, :, None]
        out[:, mine] = log_det[:, g, None] - 0.5 * d * LOG_2PI - 0.5 * (white**2).sum(axis=1)
    return out


def log_normal_diagonal(mu: Floats, sigma2: Floats, rows: Dataset) -> Floats:
    """Return Σ_j log N(x_ij | μ_kj, σ²_kj) (S, n) for draws of μ and σ² (S, K, d)."""
    out = np.zeros((len(mu), rows.n))
    for j in range(rows.d):
        m, s2 = mu[:, rows.y, j], sigma2[:, rows.y, j]
        out -= 0.5 * (LOG_2PI + np.log(s2) + (rows.X[:, j] - m) ** 2 / s2)
    return out


def _white(A: Floats, mu: Floats, m: Floats) -> Floats:
    """Return |A(μ_k − m)|² (S, K) for whitening factors A (S, 1 or K, d, d)."""
    return (((A @ (mu - m)[..., None])[..., 0]) ** 2).sum(axis=-1)
