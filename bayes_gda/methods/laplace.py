"""The Laplace approximation: a Gaussian at the mode of a log density, with the curvature there.

    log p(w) ≈ log p(ŵ) − ½ (w − ŵ)ᵀH(w − ŵ),   ŵ = argmax log p,   H = −∂² log p/∂w² at ŵ

    posterior     N(ŵ, H⁻¹)
    log evidence  log p(ŵ) + (m/2) log 2π − ½ log|H|

The mode is found by Newton's method with a line search, so that every step goes up; H is the exact one there, kept
as its Cholesky factor. A curvature that is not positive definite there is an error, never repaired in silence.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats, frozen
from bayes_gda.errors import ConvergenceError
from bayes_gda.linalg import solve_triangular
from bayes_gda.methods.density import Smooth
from bayes_gda.priors import Seed

# Stop when the next Newton step is shorter than this many posterior standard deviations; that step is still taken, and
# leaves an error of its square.
TOLERANCE = 1e-6
# A step this short changes the log density by 1e-14 and H by a part in 10⁷: the next look at the data is saved.
NEGLIGIBLE = 1e-7
MAX_ITERATIONS = 100
# Ridges that a step may try, from 1e-3 of the diagonal by tens. The largest outweighs every entry of H 10⁴ times, as
# the diagonal counts for at least 1e-8 of the largest entry: it fails only where H is no matrix of numbers.
RIDGES = 10.0 ** np.arange(-3, 13)
# Armijo: a step must gain this share of what the slope promises.
SUFFICIENT = 1e-4


@dataclass(frozen=True, slots=True)
class NewtonInfo:
    """How the search for the mode went, apart from its result.

    Parameters
    ----------
    converged
        Whether the tolerance was reached.
    n_iter
        Newton steps taken.
    grad_norm
        √(gᵀH⁻¹g) where it stopped: the length of the last step, in posterior standard deviations.
    """

    converged: bool
    n_iter: int
    grad_norm: float


@dataclass(frozen=True, slots=True, eq=False)
class GaussianPosterior:
    """N(mean, H⁻¹), with the precision kept as its Cholesky factor H = LLᵀ.

    Parameters
    ----------
    mean
        (m,) for Laplace the mode.
    chol_precision
        (m, m) L, lower triangular.
    log_evidence
        log ∫p(w)dw as this Gaussian has it; nan where p is not normalised in a meaningful way.
    info
        Diagnostics of the computation.
    """

    mean: Floats
    chol_precision: Floats
    log_evidence: float
    info: NewtonInfo

    def __post_init__(self) -> None:
        object.__setattr__(self, "mean", frozen(self.mean))
        object.__setattr__(self, "chol_precision", frozen(self.chol_precision))

    @property
    def mode(self) -> Floats:
        """The mode, which is the mean."""
        return self.mean

    @property
    def dim(self) -> int:
        """Length of w."""
        return len(self.mean)

    @property
    def covariance(self) -> Floats:
        """S_N = H⁻¹ (m, m)."""
        root = solve_triangular(self.chol_precision, np.eye(self.dim))
        out: Floats = root.T @ root
        return out

    @property
    def sd(self) -> Floats:
        """Posterior standard deviations (m,)."""
        root = solve_triangular(self.chol_precision, np.eye(self.dim))
        return np.sqrt(np.einsum("ij,ij->j", root, root))

    def whiten(self, w: Floats) -> Floats:
        """Return z = Lᵀ(w − mean) for w (…, m): standard normal under this Gaussian."""
        return (w - self.mean) @ self.chol_precision

    def unwhiten(self, z: Floats) -> Floats:
        """Return w = mean + L⁻ᵀz for z (S, m)."""
        out: Floats = self.mean + solve_triangular(self.chol_precision, z.T, transposed=True).T
        return out

    def draw(self, size: int, *, random_seed: Seed = None) -> Floats:
        """Draw w (size, m)."""
        return self.unwhiten(np.random.default_rng(random_seed).standard_normal((size, self.dim)))

    def log_density(self, w: Floats) -> Floats:
        """Return log N(w | mean, H⁻¹) for w (…, m)."""
        z = self.whiten(np.asarray(w))
        log_det = np.log(np.diag(self.chol_precision)).sum()
        out: Floats = log_det - 0.5 * self.dim * np.log(2 * np.pi) - 0.5 * np.einsum("...i,...i->...", z, z)
        return out


def laplace_approximation(target: Smooth, start: Floats | None = None) -> GaussianPosterior:
    """Approximate a log density by the Gaussian at its mode.

    Parameters
    ----------
    target
        The log density and its derivatives.
    start
        (m,) where to begin; None for the origin.

    Raises
    ------
    ConvergenceError
        If no maximum is found, or the curvature at it is not positive definite. It carries the point reached.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # steps too far are seen by their value
        w, value, H, info = find_mode(target, np.zeros(target.dim) if start is None else np.asarray(start, dtype=float))
    L = _cholesky(H)
    if not info.converged or L is None:
        cause = "the gradient does not vanish"
        if L is None:
            cause = f"the curvature there is not {'positive definite' if np.isfinite(H).all() else 'finite'}"
        raise ConvergenceError(
            f"No maximum of the log density was found in {info.n_iter} Newton steps: {cause}. "
            "Give a proper prior, another start, or use MCMC.",
            partial=(w, value, H, info),
        )
    log_evidence = value + 0.5 * target.dim * np.log(2 * np.pi) - np.log(np.diag(L)).sum()
    return GaussianPosterior(w, L, float(log_evidence), info)


def find_mode(target: Smooth, start: Floats) -> tuple[Floats, float, Floats, NewtonInfo]:
    """Climb to a maximum by Newton's method; return the point, its log density, H there, and how it went.

    Where H is not positive definite on the way, a ridge is added for that step only, which turns it towards the
    gradient; the H that is returned is the unchanged one.
    """
    w = start.copy()
    value, g, H = target.value_gradient_precision(w)
    if not np.isfinite(value):
        raise ConvergenceError("The log density is not finite at the start. Give another start.", partial=w)
    length = np.inf
    for n_iter in range(MAX_ITERATIONS):
        newton = _newton_step(H, g)
        if newton is None:
            return w, value, H, NewtonInfo(False, n_iter, float(length))
        step, slope, definite = newton
        length = np.sqrt(slope)
        if definite and length < NEGLIGIBLE:
            return w + step, value, H, NewtonInfo(True, n_iter + 1, float(length))
        new = target.value_gradient_precision(w + step)
        if definite and length < TOLERANCE:
            return w + step, new[0], new[2], NewtonInfo(True, n_iter + 1, float(length))
        t, rounding = 1.0, 1e-13 * (1 + abs(value))  # a gain below the rounding of `value` cannot be seen
        enough = value + SUFFICIENT * slope * t - rounding
        if not new[0] >= enough:
            while not float(target.log_density(w + t * step)) >= enough:
                t /= 2
                if t < 1e-12:
                    return w, value, H, NewtonInfo(False, n_iter, float(length))
                enough = value + SUFFICIENT * slope * t - rounding
            new = target.value_gradient_precision(w + t * step)
        w, (value, g, H) = w + t * step, new
    return w, value, H, NewtonInfo(False, MAX_ITERATIONS, float(length))


def _newton_step(H: Floats, g: Floats) -> tuple[Floats, float, bool] | None:
    """Return the step H⁻¹g, its slope gᵀH⁻¹g, and whether H itself was positive definite; None if it is not finite.

    A density that is unbounded where a scale vanishes leads there, and its derivatives overflow.
    """
    if not (np.isfinite(H).all() and np.isfinite(g).all()):
        return None
    L = _cholesky(H)
    definite = L is not None
    if L is None:
        scale = np.maximum(np.abs(np.diag(H)), 1e-8 * max(1.0, np.abs(H).max()))
        L = next((L for ridge in RIDGES if (L := _cholesky(H + ridge * np.diag(scale))) is not None), None)
    if L is None:
        return None
    half = solve_triangular(L, g)
    return solve_triangular(L, half, transposed=True), float(half @ half), definite


def _cholesky(H: Floats) -> Floats | None:
    """Return L with H = LLᵀ, or None if H is not positive definite to rounding, in units of its own diagonal."""
    d = np.diag(H)
    if not np.isfinite(H).all() or not (d > 0).all():
        return None
    scale = np.sqrt(d)
    try:
        L: Floats = np.linalg.cholesky(H / scale[:, None] / scale)
    except np.linalg.LinAlgError:
        return None
    # Cholesky of a singular matrix may pass by rounding; its last pivots are then of the order of √eps.
    return scale[:, None] * L if np.diag(L).min() > 1e-7 else None


@dataclass(frozen=True, slots=True, eq=False)
class FunctionTarget:
    """Any log density given as functions; derivatives that are not given are taken by central differences.

    Parameters
    ----------
    dim
        Length of w.
    function
        w (dim,) → log p(w), normalised or not.
    derivative
        w → gradient (dim,); None differentiates `function`, to some 9 digits.
    curvature
        w → H = −∂² log p (dim, dim); None differentiates the gradient.
    """

    dim: int
    function: Callable[[Floats], float]
    derivative: Callable[[Floats], Floats] | None = None
    curvature: Callable[[Floats], Floats] | None = None

    def log_density(self, w: Floats) -> Floats:
        """Return log p(w), () for one w (dim,), (S,) for S of them (S, dim)."""
        w = np.asarray(w, dtype=float)
        if w.ndim == 1:
            return np.asarray(self.function(w), dtype=float)
        return np.array([float(self.function(row)) for row in w])

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient (dim,)."""
        if self.derivative is not None:
            return np.atleast_1d(np.asarray(self.derivative(w), dtype=float))
        return differentiate(lambda x: np.asarray(self.function(x), dtype=float), w)

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log p(w), its gradient (dim,) and H (dim, dim); zeros where the density is zero."""
        value = float(self.log_density(w))
        if not np.isfinite(value):
            return value, np.zeros(self.dim), np.zeros((self.dim, self.dim))
        if self.curvature is not None:
            H = np.asarray(self.curvature(w), dtype=float).reshape(self.dim, self.dim)
        else:
            H = -differentiate(self.gradient, w)
        return value, self.gradient(w), (H + H.T) / 2


def differentiate(function: Callable[[Floats], Floats], w: Floats, scale: Floats | None = None) -> Floats:
    """Return ∂f/∂w_j as the last axis, by central differences of fourth order.

    f′ ≈ [8(f(w+h) − f(w−h)) − (f(w+2h) − f(w−2h))]/12h has an error of h⁴f⁽⁵⁾/30 and of some eps·|f|/h from rounding;
    h = 1e-3 of the scale of w balances the two at about 1e-12 of |f|.
    """
    steps = 1e-3 * (np.maximum(np.abs(w), 1.0) if scale is None else scale)
    columns = []
    for j, h in enumerate(steps):
        e = np.zeros_like(w)
        e[j] = h
        near, far = function(w + e) - function(w - e), function(w + 2 * e) - function(w - 2 * e)
        columns.append((8 * near - far) / (12 * h))
    return np.stack(columns, axis=-1)


def laplace_1d(
    function: Callable[[float], float],
    start: float = 0.0,
    *,
    derivative: Callable[[float], float] | None = None,
    curvature: Callable[[float], float] | None = None,
) -> GaussianPosterior:
    """Approximate a density on the line: N(z₀, 1/A) with A = −d²/dz² log f(z₀), and log Z ≈ log f(z₀) + ½ log(2π/A).

    Parameters
    ----------
    function
        z → log f(z), f normalised or not.
    start
        Where to begin.
    derivative, curvature
        z → d log f/dz and z → −d² log f/dz²; None takes differences.
    """
    target = FunctionTarget(
        1,
        lambda w: float(function(float(w[0]))),
        None if derivative is None else lambda w: np.array([derivative(float(w[0]))]),
        None if curvature is None else lambda w: np.array([[curvature(float(w[0]))]]),
    )
    return laplace_approximation(target, np.array([float(start)]))
