"""Expectation propagation for a Gaussian prior and factors of linear predictors, p(w) ∝ N(w | m₀, S₀) Π tᵢ(wᵀφᵢ).

Every factor is replaced by a site, a Gaussian in aᵢ = wᵀφᵢ that has the same mean and variance where the others stand.
A pass asks for all sites at once, given the Gaussian so far (parallel EP):

    H′ = Σ τᵢφᵢφᵢᵀ + S₀⁻¹,    mean′ = mean + H′⁻¹[Σ(νᵢ − τᵢaᵢ)φᵢ − S₀⁻¹(mean − m₀)]

which is one Newton step with other weights: sums over rows, so that rows may come in blocks, batches or partitions.
The evidence is stationary in the sites at the fixed point: what is left of the mismatch enters it squared.

H costs as much as a Newton step, a gradient nearly nothing. So where rows are in memory the mean is settled before each
pass, while the variances stay as they are; what a pass then leaves is small in the mean and of second order in H.

References
----------
Minka (2001), "Expectation propagation for approximate Bayesian inference".
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.linalg import blas_threads, solve_triangular
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo

# Stop when the next step is shorter than this in posterior standard deviations, of any linear function of w, and no
# variance changes by more than five times that share; the step is still taken. Each pass leaves a tenth to a half of
# the error, so that probabilities are then off by less than .001 for want of passes.
TOLERANCE = 0.004
VARIANCE_TOLERANCE = 5.0
# The same where the mean is settled: the next pass would change it by as large a share of its way from Laplace's mean.
SETTLED_VARIANCE_TOLERANCE = 2.0
MAX_PASSES = 100
# Shares of the new sites that a pass may take; more than all of them could make a precision negative.
LEAST_SHARE, ALL = 0.1, 1.0


class SiteSums(NamedTuple):
    """What a pass returns: sums over all sites.

    Parameters
    ----------
    precision
        (m, m) Στφφᵀ.
    gradient
        (m,) Σ(ν − τa)φ, a at the mean.
    log_ratio
        Σ log of ∫factor/∫site over each cavity, sites written about the mean; nan if some site could not be matched.
    """

    precision: Floats
    gradient: Floats
    log_ratio: float


class Prior(Protocol):
    """A Gaussian prior N(m₀, S₀) of w, flat where its precision is 0."""

    @property
    def precision(self) -> Floats:
        """(m, m) S₀⁻¹."""

    def gradient(self, w: Floats) -> Floats:
        """Return −S₀⁻¹(w − m₀)."""

    def log_density(self, w: Floats) -> Floats:
        """Return log N(w | m₀, S₀)."""


# From the mean (m,), a root R (m, m) of the covariance RRᵀ, and the share of the new sites that will be taken, to the
# sums over the new sites.
type Pass = Callable[[Floats, Floats, float], SiteSums]
# From the mean, a root of the covariance and the prior to a mean nearer to where the gradient vanishes.
type Settle = Callable[[Floats, Floats, Prior], Floats]


def expectation_propagation(
    site_pass: Pass,
    prior: Prior,
    start: GaussianPosterior,
    *,
    settle: Settle | None = None,
    tolerance: float = TOLERANCE,
    max_passes: int = MAX_PASSES,
) -> GaussianPosterior:
    """Return the Gaussian of expectation propagation, with its log evidence.

    Parameters
    ----------
    site_pass
        One pass over all factors. It may keep its sites between the calls, and then moves them by the share.
    prior
        The Gaussian prior.
    start
        Where to begin: the Laplace approximation.
    settle
        Moves the mean before a pass, at the cost of a few gradients; None where these cost as much as a pass.
    tolerance
        Length of the last step, in posterior standard deviations.
    max_passes
        Passes after which to give up; few where each is a look at a table beyond memory.

    Raises
    ------
    ConvergenceError
        If the steps do not shrink below the tolerance. It carries the last Gaussian.
    """
    with blas_threads(start.dim):
        return _propagate(site_pass, prior, start, settle, tolerance, max_passes)


def _propagate(
    site_pass: Pass,
    prior: Prior,
    start: GaussianPosterior,
    settle: Settle | None,
    tolerance: float,
    max_passes: int,
) -> GaussianPosterior:
    mean, L = start.mean, start.chol_precision
    H, share, last = L @ L.T, ALL, None
    variance_tolerance = tolerance * (VARIANCE_TOLERANCE if settle is None else SETTLED_VARIANCE_TOLERANCE)
    length = change = np.inf
    for passes in range(1, max_passes + 1):
        root = solve_triangular(L, np.eye(len(L))).T  # H = LLᵀ has the inverse L⁻ᵀL⁻¹
        if settle is not None and share == ALL:
            mean = settle(mean, root, prior)
        sums = site_pass(mean, root, share)
        g, dH = sums.gradient + prior.gradient(mean), sums.precision + prior.precision - H
        residual = _Residual(root.T @ g, root.T @ dH @ root, share)
        L_next = _cholesky(H + dH)
        half = solve_triangular(L_next, g)
        length, change = float(np.sqrt(half @ half)), residual.change
        matched = np.isfinite(sums.log_ratio)
        if matched and length < tolerance and residual.changes_less_than(variance_tolerance):
            log_evidence = sums.log_ratio + float(prior.log_density(mean)) + 0.5 * float(half @ half)
            log_evidence += 0.5 * len(mean) * np.log(2 * np.pi) - float(np.log(np.diag(L_next)).sum())
            mean = mean + solve_triangular(L_next, half, transposed=True)
            return GaussianPosterior(mean, L_next, log_evidence, NewtonInfo(True, passes, length))
        # A share ρ of the new sites: H ← H + ρ(H′ − H), and the mean that belongs to it.
        H = H + share * dH
        L = L_next if share == ALL else _cholesky(H)
        mean = mean + solve_triangular(L, solve_triangular(L, share * g), transposed=True)
        last, share = residual, ALL if last is None else residual.next_share(last)
    raise ConvergenceError(
        f"Expectation propagation did not converge in {max_passes} passes: the last step had {length:.2g} posterior "
        f"standard deviations and changed a variance by {change:.0%}. Use MCMC.",
        partial=GaussianPosterior(mean, L, np.nan, NewtonInfo(False, max_passes, length)),
    )


class _Residual(NamedTuple):
    """What a pass would change, in posterior standard deviations: Rᵀg (m,), Rᵀ(H′ − H)R (m, m), and the share of it."""

    mean: Floats
    precision: Floats
    share: float

    @property
    def change(self) -> float:
        """Bound of the relative change of any variance: the Frobenius norm."""
        return float(np.linalg.norm(self.precision))

    def changes_less_than(self, share: float) -> bool:
        """Return whether no variance changes by this share; eigenvalues only where the cheap bound does not tell."""
        return self.change < share or float(np.abs(np.linalg.eigvalsh(self.precision)[[0, -1]]).max()) < share

    def next_share(self, last: Self) -> float:
        """Return the share that would have removed as much as possible of the last residual (a secant step).

        Where residuals turn about, it falls below the last one; where they creep in one direction, all is taken.
        """
        turn_mean, turn_precision = last.mean - self.mean, last.precision - self.precision
        # The inner product of natural parameters under a Gaussian: a·b + ½ tr(AB).
        along = float(last.mean @ turn_mean + 0.5 * np.vdot(last.precision, turn_precision))
        square = float(turn_mean @ turn_mean + 0.5 * np.vdot(turn_precision, turn_precision))
        return float(np.clip(last.share * along / square, LEAST_SHARE, ALL)) if along > 0 else ALL


def _cholesky(H: Floats) -> Floats:
    try:
        L: Floats = np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        raise ConvergenceError(
            "Expectation propagation left a direction of the weights undetermined. Give a proper prior, or use MCMC."
        ) from None
    return L
