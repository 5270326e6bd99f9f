"""The Gaussian N(mean, V) that maximises the evidence bound, for a Gaussian prior and factors of linear predictors.

Where the bound is largest, gradient and precision are those of the log posterior in expectation, so that the sums of a
pass are as in expectation propagation, with sites of slope E f′ and precision −E f″ for a log factor f:

    H′ = −Σ E f″ φφᵀ + S₀⁻¹,    mean′ = mean + H′⁻¹[Σ E f′ φ − S₀⁻¹(mean − m₀)]

H′ depends on V: where classes are separated it first grows with V and then falls, and V ← H′⁻¹ swings between both
sides. So a step goes a share ρ of the way along the geodesic, V ← R(RᵀH′R)^{−ρ}Rᵀ with V = RRᵀ, and is halved until the
bound rises: it is concave in the mean and a root of V.
"""

from typing import NamedTuple, Self

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.linalg import blas_threads, solve_triangular
from bayes_gda.methods.ep.propagation import Pass, Prior
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo

# Stop when the next step is shorter than this, in posterior standard deviations, root mean square over the weights, and
# variances change by less than five times that share: what numerical expectations leave is about as much.
TOLERANCE = 0.01
VARIANCE_TOLERANCE = 5.0
MAX_PASSES = 100
FIRST_SHARE, LEAST_SHARE, ALL = 0.5, 0.05, 1.0
# All of the first step is taken if it changes the mean by less than this, in standard deviations, and variances by less
# than this share.
SHORT = 0.2
# A step of the mean is at most so long, root mean square: beyond, its quadratic model is a guess.
LONGEST = 1.0
# Numerical expectations may lower the bound by this share of its size though the step is right.
NOISE = 1e-4


class _State(NamedTuple):
    """A Gaussian with the sums at it, in its own whitened coordinates.

    R (m, m) symmetric up to the start's root; eigenvalues and eigenvectors of RᵀH′R; the step of the mean whitened.
    """

    mean: Floats
    root: Floats
    values: Floats
    vectors: Floats
    step: Floats
    bound: float

    @classmethod
    def at(cls, site_pass: Pass, prior: Prior, mean: Floats, root: Floats) -> Self:
        """Take one pass at N(mean, root rootᵀ)."""
        sums = site_pass(mean, root, ALL)
        E = root.T @ (sums.precision + prior.precision) @ root
        values, vectors = np.linalg.eigh((E + E.T) / 2)
        values = np.maximum(values, np.finfo(float).tiny)
        g = root.T @ (sums.gradient + prior.gradient(mean))
        bound = sums.log_ratio - 0.5 * float(values.sum()) + float(prior.log_density(mean))
        bound += 0.5 * len(mean) * (1 + np.log(2 * np.pi)) + float(np.linalg.slogdet(root)[1])
        with np.errstate(over="ignore", invalid="ignore"):
            step = vectors @ ((vectors.T @ g) / values)
        if not np.isfinite(step).all():  # a precision that rounding has left nothing of
            raise ConvergenceError("The Gaussian variational approximation left the range of floats. Use MCMC.")
        return cls(mean, root, values, vectors, step, bound)

    @property
    def length(self) -> float:
        """Root mean square of the step of the mean, in posterior standard deviations."""
        with np.errstate(over="ignore"):  # inf: a step that is not taken
            return float(np.sqrt(self.step @ self.step / len(self.step)))

    @property
    def change(self) -> float:
        """Root mean square of the changes of log variances along the eigenvectors."""
        return float(np.sqrt(np.mean(np.log(self.values) ** 2)))

    def moved(self, share: float) -> tuple[Floats, Floats]:
        """Return the mean and root a share of the way on."""
        t = min(share, LONGEST / max(self.length, 1e-300))
        turn = (self.vectors * self.values ** (-share / 2)) @ self.vectors.T
        return self.mean + self.root @ (t * self.step), self.root @ turn

    def next_share(self, last: Self, share: float) -> float:
        """Return the share that would have removed as much as possible of the last residual (a secant step)."""
        now, before = ((s.vectors * np.log(s.values)) @ s.vectors.T for s in (self, last))
        turn_mean, turn = last.step - self.step, before - now
        with np.errstate(over="ignore", invalid="ignore"):  # of steps that are far beyond what can be taken
            along = float(last.step @ turn_mean + 0.5 * np.vdot(before, turn))
            square = float(turn_mean @ turn_mean + 0.5 * np.vdot(turn, turn))
        if not (np.isfinite(along) and np.isfinite(square)):
            return LEAST_SHARE
        return float(np.clip(share * along / square, LEAST_SHARE, ALL)) if along > 0 else ALL


def variational_gaussian(
    site_pass: Pass,
    prior: Prior,
    start: GaussianPosterior,
    *,
    tolerance: float = TOLERANCE,
    max_passes: int = MAX_PASSES,
) -> GaussianPosterior:
    """Return the Gaussian variational approximation; its `log_evidence` is the evidence bound.

    Parameters
    ----------
    site_pass
        One pass over all factors; `log_ratio` is Σ E f + ½ tr(Στφφᵀ V).
    prior
        The Gaussian prior.
    start
        Where to begin: the Laplace approximation.
    tolerance
        Length of the last step, in posterior standard deviations.
    max_passes
        Passes after which to give up.

    Raises
    ------
    ConvergenceError
        If the steps do not shrink below the tolerance. It carries the last Gaussian.
    """
    with blas_threads(start.dim):
        return _climb(site_pass, prior, start, tolerance, max_passes)


def _climb(
    site_pass: Pass, prior: Prior, start: GaussianPosterior, tolerance: float, max_passes: int
) -> GaussianPosterior:
    state = _State.at(site_pass, prior, start.mean, solve_triangular(start.chol_precision, np.eye(start.dim)).T)
    share = ALL if max(state.length, state.change) < SHORT else FIRST_SHARE
    for passes in range(2, max_passes + 1):
        if state.length < tolerance and state.change < VARIANCE_TOLERANCE * tolerance:
            return _posterior(state, NewtonInfo(True, passes - 1, state.length))
        candidate = _State.at(site_pass, prior, *state.moved(share))
        if candidate.bound < state.bound - NOISE * abs(state.bound) and share > LEAST_SHARE:
            share = max(share / 2, LEAST_SHARE)
            continue
        share = candidate.next_share(state, share)
        state = candidate
    raise ConvergenceError(
        f"The Gaussian variational approximation did not converge in {max_passes} passes: the last step had "
        f"{state.length:.2g} posterior standard deviations and changed log variances by {state.change:.2g}. Use MCMC.",
        partial=_posterior(state, NewtonInfo(False, max_passes, state.length)),
    )


def _posterior(state: _State, info: NewtonInfo) -> GaussianPosterior:
    """Take the last step, and return the Gaussian."""
    mean, root = state.moved(ALL)
    inverse = np.linalg.inv(root)
    return GaussianPosterior(mean, np.linalg.cholesky(inverse.T @ inverse), state.bound, info)
