"""Classes with Student-t densities: LDA and QDA that rows far out do not spoil.

The coordinates are those of the Gaussian classes (simplex of π, Bartlett factors T of Σ⁻¹ = AᵀA, A = TC⁻¹, Ψ = CCᵀ, and
the centres μ), then log(ν − 1). With v_i = C⁻¹(x_i − μ_k), z_i = Tv_i, δ_i = |z_i|², weights c_i, N = Σc_i

    log p = N [log Γ((ν+d)/2) − log Γ(ν/2) − ½d log νπ + ½Σ_j u_j + log|C⁻¹|] − ½(ν + d) Σ_i c_i log(1 + δ_i/ν) + prior
    ∂/∂T  = −Σ_i r_i z_i v_iᵀ + N diag(1/T_jj),   ∂/∂μ = C⁻ᵀTᵀ Σ_i r_i z_i,   r_i = c_i (ν + d)/(ν + δ_i)

EM in these coordinates: given the weights r the rest is the log posterior of Gaussian classes, whose maximum is
μ̃_k = Σr_i ỹ_i/(Σr_i + κ) in units of C about m, and T = diag(√(ν₀ − d + j + N + J)) R⁻¹ with

    RRᵀ = I + Σ_i r_i (ỹ_i − μ̃_k)(·)ᵀ + κ Σ_k μ̃_k μ̃_kᵀ      over the J classes that share Σ

and ν maximises log p itself (ECME, Liu & Rubin 1995). Every step goes up; Newton's method ends it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln

from bayes_gda.checks import Floats, positive_number
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.fused import FusedFamily, choose, joint_terms
from bayes_gda.families.gaussian.densities import BartlettBlock, Indices
from bayes_gda.linalg import one_blas_thread, wide_blocks
from bayes_gda.methods.density import Block
from bayes_gda.priors import NIW, Dirichlet, Seed
from bayes_gda.priors.robust import draw_student, robust_default, weighted_median

if TYPE_CHECKING:
    import pymc as pm

Scales = Literal["own", "shared"]
# Points × rows × features at once: 8 MB, of which three are alive, so that they stay near the processor.
ELEMENTS = 2**20
# EM begins with the tails of few degrees of freedom, and ends when a step gains less than this in log p; Newton's
# method does the rest in two or three steps.
START_FREEDOM, GAIN, MOST_STEPS = 4.0, 1e-3, 500
# Where log(ν − 1) is sought: from Cauchy's tails to what no data tell from a Gaussian.
LOG_EXCESS = float(np.log(1e-3)), float(np.log(1e4))


@dataclass(frozen=True, eq=False)
class StudentBlock(Block):
    """Centres, scale matrices and degrees of freedom of the classes, with their rows.

    Parameters
    ----------
    rows
        Training rows; with weights if some count more than once.
    prior, freedom
        NIW of centres and scale matrices; shape and rate of the gamma prior of ν − 1.
    shared
        One scale matrix and one ν for all classes.
    """

    rows: Dataset
    prior: NIW
    freedom: tuple[float, float]
    shared: bool

    @cached_property
    def gaussian(self) -> BartlettBlock:
        """The prior of centres and scale matrices: that of Gaussian classes without rows."""
        return BartlettBlock(Moments.empty(self.rows.K, self.rows.d), self.prior, self.shared)

    @property
    def dim(self) -> int:
        """Number of coordinates: those of the Gaussian classes, then log(ν − 1)."""
        return self.gaussian.dim + self.gaussian.groups

    @property
    def independent(self) -> Sequence[Indices]:
        """The coordinates of each class, unless the classes share some."""
        G, d = self.gaussian.groups, self.rows.d
        if G == 1:
            return [np.arange(self.dim)]
        sizes = np.array([d, d * (d - 1) // 2, d, 1])
        first = np.concatenate([[0], np.cumsum(G * sizes)])
        return [
            np.concatenate([first[i] + g * size + np.arange(size) for i, size in enumerate(sizes)]) for g in range(G)
        ]

    @cached_property
    def _root(self) -> Floats:
        """C⁻¹ (d, d)."""
        return np.linalg.inv(np.linalg.cholesky(self.prior.Psi))

    @cached_property
    def _classes(self) -> list[tuple[Floats, Floats, int]]:
        """Of each class the rows ỹ = C⁻¹(x − m) (n_k, d), their weights (n_k,), and the scale matrix that it has."""
        rows, root = self.rows, self._root
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        return [
            ((rows.X[rows.y == k] - self.prior.m) @ root.T, weight[rows.y == k], 0 if self.shared else k)
            for k in range(rows.K)
        ]

    @cached_property
    def _counts(self) -> Floats:
        """Rows N (G,) that have each scale matrix."""
        counts = np.zeros(self.gaussian.groups)
        for _, c, g in self._classes:
            counts[g] += c.sum()
        return counts

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, dim)."""
        value, gradient = self._blocks(W, gradients=True)
        assert gradient is not None
        return value, gradient

    def values(self, W: Floats) -> Floats:
        """Return this share of log p (…)."""
        return self._blocks(W, gradients=False)[0]

    def _blocks(self, W: Floats, *, gradients: bool) -> tuple[Floats, Floats | None]:
        """Return log p and, if asked for, its gradient, a block of points at a time."""
        points = W.reshape(-1, self.dim)
        value, gradient = np.empty(len(points)), np.empty(points.shape) if gradients else None
        step = max(1, ELEMENTS // max(1, self.rows.n * self.rows.d))
        for i in range(0, len(points), step):
            part = slice(i, i + step)
            value[part], slope = self._evaluate(points[part], gradients=gradients)
            if gradient is not None:
                gradient[part] = slope
        return value.reshape(W.shape[:-1]), None if gradient is None else gradient.reshape(W.shape)

    def _evaluate(self, W: Floats, *, gradients: bool) -> tuple[Floats, Floats | None]:
        prior, (a, b), d, G = self.gaussian, self.freedom, self.rows.d, self.gaussian.groups
        base, t = W[:, :-G], W[:, -G:]
        u, flat, mu = prior.unpack(base)
        S, excess = len(W), np.exp(t)
        T = flat.reshape(S, G, d, d)
        center = (mu.reshape(S, -1, d) - self.prior.m) @ self._root.T
        likelihood, *slopes = self._likelihood(T, u.reshape(S, G, d), center, 1 + excess, gradients=gradients)
        likelihood += (a * t - b * excess).sum(axis=1) + G * (a * np.log(b) - gammaln(a))
        if not gradients:
            return prior.values(base) + likelihood, None
        value, gradient = prior.values_and_gradients(base)
        g_T, g_center, g_nu = slopes
        diagonal, triangle = prior.places
        g_T = g_T.reshape(S, -1)
        g_u = 0.5 * (flat[:, diagonal] * g_T[:, diagonal] + np.repeat(self._counts, d))
        g_mu = (g_center @ self._root).reshape(S, -1)
        gradient = gradient + np.concatenate([g_u, g_T[:, triangle], g_mu], axis=1)
        return value + likelihood, np.concatenate([gradient, excess * g_nu + a - b * excess], axis=1)

    def _likelihood(self, T: Floats, u: Floats, center: Floats, nu: Floats, *, gradients: bool) -> tuple[Floats, ...]:
        """Return the log likelihood (S,) and its derivatives by T, but for log|T|, by μ̃ (S, K, d) and by ν."""
        S, G, d = u.shape
        N = self._counts
        constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(np.pi * nu)
        value = (constant + 0.5 * u.sum(axis=2) + np.log(np.diag(self._root)).sum()) @ N
        g_T, g_center = np.zeros((S, G, d, d)), np.zeros(center.shape)
        g_nu = 0.5 * N * (digamma((nu + d) / 2) - digamma(nu / 2) - d / nu) if gradients else nu
        for k, (Y, c, g) in enumerate(self._classes):
            A, m, v = T[:, g], center[:, k], nu[:, g]
            # All points in one product: z (n, S, d).
            Z = (Y @ A.reshape(S * d, d).T).reshape(len(Y), S, d)
            Z -= np.einsum("sij,sj->si", A, m)
            delta = np.einsum("nsd,nsd->ns", Z, Z)
            logs = c @ np.log1p(delta / v)
            value -= 0.5 * (v + d) * logs
            if not gradients:
                continue
            r = c[:, None] * ((v + d) / (v + delta))
            Z *= r[:, :, None]
            total = Z.sum(axis=0)
            g_T[:, g] -= (Z.reshape(len(Y), S * d).T @ Y).reshape(S, d, d) - total[:, :, None] * m[:, None, :]
            g_center[:, k] = np.einsum("si,sij->sj", total, A)
            g_nu[:, g] += 0.5 * (np.einsum("ns,ns->s", r, delta) / v - logs)
        return value, g_T, g_center, g_nu

    # ── The mode by EM ──────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def start(self) -> Floats:
        """Where EM ends: a point near the mode."""
        with one_blas_thread():
            return list(self.climb())[-1]

    def climb(self) -> Iterator[Floats]:
        """Yield the points (dim,) of EM, each of a higher log density than the one before."""
        d, G = self.rows.d, self.gaussian.groups
        # Medians and the unit of the prior, which outliers do not move.
        center = np.array([weighted_median(Y, c) if len(Y) else np.zeros(d) for Y, c, _ in self._classes])
        T, nu = np.tile(np.sqrt(self.prior.nu) * np.eye(d), (G, 1, 1)), np.full(G, START_FREEDOM)
        last = -np.inf
        for _ in range(MOST_STEPS):
            center, T = self._maximise(center, T, nu)
            nu = self._tails(center, T)
            point = self._pack(T, center, nu)
            yield point
            value = float(self.values(point))
            if value - last < GAIN:
                return
            last = value

    def _maximise(self, center: Floats, T: Floats, nu: Floats) -> tuple[Floats, Floats]:
        """Return μ̃ (K, d) and T (G, d, d) of the highest log density given the weights of the rows."""
        d, kappa = self.rows.d, self.prior.kappa
        M, J, means = np.tile(np.eye(d), (len(T), 1, 1)), np.zeros(len(T)), np.empty_like(center)
        for k, (Y, c, g) in enumerate(self._classes):
            r = c * (nu[g] + d) / (nu[g] + (((Y - center[k]) @ T[g].T) ** 2).sum(axis=1))
            means[k] = r @ Y / (r.sum() + kappa)
            V = Y - means[k]
            M[g] += (V * r[:, None]).T @ V + kappa * np.outer(means[k], means[k])
            J[g] += 1
        powers = self.prior.nu - d + np.arange(1, d + 1) + (self._counts + J)[:, None]
        return means, np.sqrt(powers)[:, :, None] * np.linalg.inv(np.linalg.cholesky(M))

    def _tails(self, center: Floats, T: Floats) -> Floats:
        """Return ν (G,) of the highest log density given all else."""
        d, (a, b) = self.rows.d, self.freedom
        parts: list[list[tuple[Floats, Floats]]] = [[] for _ in T]
        for k, (Y, c, g) in enumerate(self._classes):
            parts[g].append((c, (((Y - center[k]) @ T[g].T) ** 2).sum(axis=1)))

        def negative(t: float, g: int) -> float:
            v = 1 + np.exp(t)
            constant = gammaln((v + d) / 2) - gammaln(v / 2) - 0.5 * d * np.log(v)
            tails = sum(float(c @ np.log1p(delta / v)) for c, delta in parts[g])
            return float(0.5 * (v + d) * tails - self._counts[g] * constant - a * t + b * (v - 1))

        excess = [minimize_scalar(negative, bounds=LOG_EXCESS, args=(g,), method="bounded").x for g in range(len(T))]
        return 1 + np.exp(excess)

    def _pack(self, T: Floats, center: Floats, nu: Floats) -> Floats:
        diagonal, triangle = self.gaussian.places
        mu = self.prior.m + center @ np.linalg.cholesky(self.prior.Psi).T
        flat = T.ravel()
        return np.concatenate([2 * np.log(flat[diagonal]), flat[triangle], mu.ravel(), np.log(nu - 1)])

    # ── Variables ───────────────────────────────────────────────────────────────────────────────────────────────────

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return `mu` (S, K, d), `Sigma` (S, [K,] d, d), `nu` (S, [K]) and the Bartlett variables."""
        G = self.gaussian.groups
        nu = 1 + np.exp(W[:, -G:])
        return self.gaussian.variables(W[:, :-G]) | {"nu": nu[:, 0] if self.shared else nu}

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of `mu`, `Sigma` and `nu`."""
        S, (diagonal, triangle) = len(variables["mu"]), self.gaussian.places
        T = np.linalg.inv(np.linalg.cholesky(variables["Sigma"])) @ np.linalg.cholesky(self.prior.Psi)
        flat = T.reshape(S, -1)
        parts = 2 * np.log(flat[:, diagonal]), flat[:, triangle], variables["mu"], np.log(variables["nu"] - 1)
        return np.hstack([part.reshape(S, -1) for part in parts])

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log prior densities of `Sigma`, `mu` and `nu`, of the latter by log(ν − 1)."""
        (a, b), excess = self.freedom, variables["nu"].reshape(len(variables["nu"]), -1) - 1
        gamma = (a * np.log(b * excess) - b * excess - gammaln(a)).sum(axis=1)
        return self.gaussian.log_prior(variables) | {"nu": gamma}

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return log t(x_i | ν, μ_{y_i}, Σ) (S, n)."""
        out = np.empty((len(variables["mu"]), rows.n))
        for k in range(rows.K):
            out[:, rows.y == k] = log_student(variables, rows.X[rows.y == k], k)
        return out


def log_student(variables: Mapping[str, Floats], X: Floats, k: int) -> Floats:
    """Return log t(x | ν, μ_k, Σ_k) (S, n) for draws of `mu`, `Sigma` and `nu`."""
    mu, Sigma, nu = variables["mu"][:, k], variables["Sigma"], variables["nu"]
    Sigma, nu = (Sigma[:, k] if Sigma.ndim == 4 else Sigma), (nu[:, k] if nu.ndim == 2 else nu)
    (S, d), out = mu.shape, np.empty((len(mu), len(X)))
    A = np.linalg.inv(np.linalg.cholesky(Sigma))
    about = mu.mean(axis=0)  # so that a large offset of the features does not eat their digits
    shift = np.einsum("sij,sj->si", A, mu - about)
    constant = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(np.pi * nu)
    constant += np.log(np.diagonal(A, axis1=1, axis2=2)).sum(axis=1)
    for rows in wide_blocks(len(X), S * d):
        Z = ((X[rows] - about) @ A.reshape(S * d, d).T).reshape(-1, S, d) - shift
        delta = np.einsum("nsd,nsd->ns", Z, Z)
        out[:, rows] = (constant - 0.5 * (nu + d) * np.log1p(delta / nu)).T
    return out


@dataclass(frozen=True, eq=False)
class Student(FusedFamily):
    """Student-t classes with their data and prior, each class with a scale matrix and degrees of freedom of its own.

    Parameters
    ----------
    data, prior, alpha
        Training rows; NIW of centres and scale matrices; (K,) Dirichlet parameters.
    freedom
        Shape and rate of the gamma prior of ν − 1.
    """

    prior: NIW
    freedom: tuple[float, float] = field(default=(2.0, 0.1), kw_only=True)

    name, title, estimator = "student", "Student-t discriminant analysis", "BayesianStudent"
    sentence = "Every class is a cloud of its own shape with heavy tails, so that rows far out hardly move it."
    formula = ("y ~ Categorical(π)", "x | y = k ~ t(νₖ, μₖ, Σₖ)")
    variables = ("pi", "mu", "Sigma", "nu")
    other_prior = "freedom=(1, 0.01)"
    scales: ClassVar[Scales] = "own"
    options: ClassVar = {
        "prior": "NIW of centres and scale matrices. None is the default of LDA and QDA on the scale of most rows: "
        "each row is weighed by how far out it lies, so that outliers do not set the prior.",
        "scales": "`own`: a scale matrix and degrees of freedom for each class, a robust QDA. `shared`: one of each "
        "for all, a robust LDA.",
        "freedom": "Shape and rate of the gamma prior of the degrees of freedom less 1: see `models.student`.",
    }

    @classmethod
    def bind(
        cls,
        data: Dataset,
        prior: NIW | None = None,
        *,
        scales: Scales = "own",
        freedom: tuple[float, float] = (2.0, 0.1),
    ) -> "Student":
        """Join the model with rows; None is the robust default prior."""
        if scales not in ("own", "shared"):
            raise DataError(f"`scales` must be 'own' or 'shared'; got {scales!r}.")
        if not (isinstance(prior, NIW) and prior.is_proper) and prior is not None:
            raise PriorError(f"`prior` of BayesianStudent must be a proper NIW or None; got {prior!r}.")
        try:
            shape, rate = (positive_number("freedom", number) for number in freedom)
        except (TypeError, ValueError):
            raise PriorError(f"`freedom` must be two positive numbers, shape and rate; got {freedom!r}.") from None
        rows = data.original or data
        rows.require_complete("Student-t discriminant analysis")
        prior = robust_default(rows.X, rows.y, rows.K, rows.weight) if prior is None else prior
        if len(prior.m) != data.d:
            raise PriorError(f"`prior` has {len(prior.m)} features, `X` has {data.d}. Give one entry a feature.")
        given: Any = {"alpha": Dirichlet().vector(data.K), "freedom": (shape, rate)}
        return (Student if scales == "own" else SharedStudent)(data, prior, **given)

    @classmethod
    def from_signature(cls, **arguments: Any) -> Self:
        """Return the family of a PyMC model that `build` wrote."""
        kind: Any = Student if arguments.pop("scales") == "own" else SharedStudent
        return kind(**arguments)

    @classmethod
    def default_for(cls, K: int) -> bool:
        """Whether it is fitted unasked: no, each fit is a search and a check, some seconds where LDA takes none."""
        return False

    def describe_prior(self) -> tuple[str, ...]:
        """Return the prior in lines of plain text."""
        (a, b), k = self.freedom, "ₖ" if self.scales == "own" else ""
        scale = f"Σ{k} ~ Inverse-Wishart(Ψ, {self.prior.nu:g}), Ψ on the scale of most rows within classes"
        tails = f"ν{k} − 1 ~ Gamma({a:g}, {b:g})"
        return scale, f"μₖ | Σ{k} ~ N(m, Σ{k} / {self.prior.kappa:g})", tails, "π ~ Dirichlet(1, …, 1)"

    def draw_prior(self, size: int, random_seed: int) -> dict[str, Floats]:
        """Draw the parameters (size, …) from the prior."""
        return draw_student(self.prior, self.alpha, self.freedom, self.scales, size, random_seed)

    def block(self) -> StudentBlock:
        """Return the density of centres, scale matrices and degrees of freedom."""
        return StudentBlock(self.data, self.prior, self.freedom, self.scales == "shared")

    def build(self) -> "pm.Model":
        """Return the PyMC model."""
        from bayes_gda.models import student

        arguments: Any = {"shared": self.scales == "shared", "freedom": self.freedom}
        return student.build(self.plain_data, self.prior, Dirichlet(self.alpha), **arguments)

    @staticmethod
    def log_terms(variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return log π_k t(x | ν_k, μ_k, Σ_k) (S, n, K)."""
        return joint_terms(variables, X, log_student)

    @staticmethod
    def draw_rows(variables: Mapping[str, Floats], random_seed: Seed = None) -> tuple[Floats, NDArray[np.intp]]:
        """Draw y ~ π, then x = μ_y + Lz/√(χ²_ν/ν)."""
        rng = np.random.default_rng(random_seed)
        y = choose(variables["pi"], rng)
        each, Sigma, nu = np.arange(len(y)), variables["Sigma"], variables["nu"]
        L, nu = np.linalg.cholesky(Sigma[each, y] if Sigma.ndim == 4 else Sigma), nu[each, y] if nu.ndim == 2 else nu
        z = rng.standard_normal((len(y), L.shape[-1])) / np.sqrt(rng.chisquare(nu) / nu)[:, None]
        return variables["mu"][each, y] + (L @ z[:, :, None])[..., 0], y


class SharedStudent(Student):
    """The same with one scale matrix and one ν for all classes."""

    title = "Student-t discriminant analysis, shared scales"
    sentence = "Every class is a cloud of the same shape with heavy tails, so that rows far out hardly move it."
    formula = ("y ~ Categorical(π)", "x | y = k ~ t(ν, μₖ, Σ)")
    scales = "shared"
