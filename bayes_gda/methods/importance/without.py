"""A posterior without one of its rows, p₋(w) ∝ p(w | D)/L(w): the Gaussian at its mode, and weighted draws of it.

Weights 1/L over draws w_s of p(w | D) fail where a row moves the posterior to where these draws do not come. Fresh
draws of a proposal at the mode of p₋ do better; where p₋ is far from Gaussian, the draws of p(w | D) are moved by an
affine map T, and weighed for where they are then:

    w'_s = T w_s,    r_s = p₋(T w_s) |T| / p(w_s | D)

T takes the Gaussian at the mode of p(w | D) to that of p₋, and then, round by round, means and spreads of the draws to
those of the weighted draws (moment matching). Weights cannot see a part of p₋ that no draw comes to, as where the row
made the posterior one-sided. Stein's identity can: under p₋ the slope of log p₋ in any direction has mean zero, and
under p₋ cut off somewhere it has the density at the cut. It is asked of the direction in which the row moves the mode.
Last, a proposal is refitted to fresh draws round by round, as in `trust`.

References
----------
Paananen, Piironen, Bürkner & Vehtari (2021), Implicitly adaptive importance sampling, Statistics and Computing 31.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.methods.density import Smooth
from bayes_gda.methods.importance.proposal import SplitT
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.methods.importance.trust import DRAWS, ENOUGH, STEADY, correct, weigh
from bayes_gda.methods.laplace import GaussianPosterior

# Rounds of moving and weighing; of 24 rows of wine that one round left, 10 took a second one, and few a third.
ROUNDS = 3
# Standard errors within which the mean slope passes. With 2000 effective draws it is then below .06 standard deviations
# of the direction, that of a normal that lacks its outer 2 %.
SLOPE_ERRORS = 2.5
# Share of effective draws of a proposal that leaves nothing to improve.
SHARE = 0.5
# Steps of a difference in posterior standard deviations: error h² = 1e-4 from the scheme, 1e-12 from rounding.
STEP = 1e-2


@dataclass(frozen=True, slots=True, eq=False)
class Without:
    """The log posterior without a row.

    Parameters
    ----------
    target
        log p(w, D) with its derivatives.
    row
        The row's log likelihood log L(w), with its own.
    """

    target: Smooth
    row: Smooth

    @property
    def dim(self) -> int:
        """Length of w."""
        return self.target.dim

    def log_density(self, w: Floats) -> Floats:
        """Return log p₋ up to a constant, () for one w (dim,), (S,) for S of them (S, dim)."""
        return self.target.log_density(w) - self.row.log_density(w)

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log p₋, its gradient (dim,) and H = −∂² log p₋ (dim, dim)."""
        (value, g, H), (own, own_g, own_H) = (part.value_gradient_precision(w) for part in (self.target, self.row))
        return value - own, g - own_g, H - own_H


@dataclass(frozen=True, slots=True, eq=False)
class RowTerm:
    """A row's log likelihood as a function of unconstrained coordinates; derivatives by differences, in one batch.

    Parameters
    ----------
    function
        Points (S, dim) → log L (S,).
    scale
        (dim,) posterior standard deviations, which the steps are measured in.
    """

    function: Callable[[Floats], Floats]
    scale: Floats

    @property
    def dim(self) -> int:
        """Length of w."""
        return len(self.scale)

    def log_density(self, w: Floats) -> Floats:
        """Return log L, () for one w (dim,), (S,) for S of them (S, dim)."""
        return np.asarray(self.function(np.atleast_2d(w))).reshape(np.shape(w)[:-1])

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log L, its gradient (dim,) and minus its second derivatives (dim, dim)."""
        h, dim = STEP * self.scale, self.dim
        j, k = np.triu_indices(dim, 1)
        axes = np.diag(h)
        pairs = [axes[j] * a + axes[k] * b for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))]
        f = self.log_density(w + np.vstack([np.zeros((1, dim)), axes, -axes, *pairs]))
        up, down = f[1 : dim + 1], f[dim + 1 : 2 * dim + 1]
        H = np.diag((2 * f[0] - up - down) / h**2)
        # ∂²f/∂w_j∂w_k = [f(+,+) − f(+,−) − f(−,+) + f(−,−)]/4h_jh_k
        corners = f[2 * dim + 1 :].reshape(4, -1)
        H[j, k] = H[k, j] = -(np.array([1.0, -1.0, -1.0, 1.0]) @ corners) / (4 * h[j] * h[k])
        return float(f[0]), (up - down) / (2 * h), H


def move_draws(
    without: Without,
    draws: Floats,
    log_weights: Floats,
    log_p: Floats,
    gaussians: tuple[GaussianPosterior, GaussianPosterior] | None,
) -> tuple[Floats, Floats, bool, int]:
    """Move draws of p(w | D) to the posterior without a row, and weigh them there.

    Parameters
    ----------
    without
        The posterior without the row.
    draws, log_weights, log_p
        (S, dim) draws of p(w | D), their (S,) normalised log weights, and log p(w, D) (S,).
    gaussians
        The Gaussians at the modes with and without the row; None if there are none.

    Returns
    -------
    The moved draws (S, dim), their normalised log weights (S,), whether these are reliable, and the rounds it took.
    """
    moved, log_volume, base = draws, 0.0, np.exp(log_weights)
    if gaussians is not None:
        full, refitted = gaussians
        moved = refitted.unwhiten(full.whiten(draws))
        log_volume = float(np.log(np.diag(full.chol_precision) / np.diag(refitted.chol_precision)).sum())
    for done in range(1, ROUNDS + 1):
        smoothed, k, ess = smooth(log_weights + without.log_density(moved) + log_volume - log_p)
        if is_reliable(len(draws), k, ess):
            return moved, smoothed, _is_whole(without, moved, smoothed, gaussians, draws.mean(axis=0)), done
        weight = np.exp(smoothed)
        center, mean = base @ moved, weight @ moved
        spread = np.sqrt((weight @ (moved - mean) ** 2) / (base @ (moved - center) ** 2))
        if not (spread > 0).all():  # one draw has all the weight
            break
        moved = mean + spread * (moved - center)
        log_volume += float(np.log(spread).sum())
    return moved, smoothed, False, done


def _is_whole(
    without: Without,
    moved: Floats,
    log_weights: Floats,
    gaussians: tuple[GaussianPosterior, GaussianPosterior] | None,
    before: Floats,
) -> bool:
    """Return whether weighted draws reach all of the posterior without a row, in the direction that the row moved."""
    weight = np.exp(log_weights)
    if gaussians is None:
        mean = weight @ moved
        direction = mean - before
        length = np.linalg.norm(direction / np.sqrt(weight @ (moved - mean) ** 2))
    else:
        full, refitted = gaussians
        direction = refitted.mean - full.mean
        length = np.linalg.norm(direction @ refitted.chol_precision)
    if not length > 0:  # the row does not matter at all
        return True
    step = STEP * direction / length
    slope = (without.log_density(moved + step) - without.log_density(moved - step)) / (2 * STEP)
    mean_slope = float(weight @ slope)
    error = float(np.sqrt(weight**2 @ (slope - mean_slope) ** 2))
    return abs(mean_slope) <= SLOPE_ERRORS * error


def draw_afresh(
    without: Without, start: SplitT, rng: np.random.Generator, *, adapt: bool
) -> tuple[Floats, Floats, bool]:
    """Weigh DRAWS fresh draws of a proposal, refitted round by round if `adapt`; return as `move_draws`, less rounds.

    Without refits half of the draws must be effective to be reliable.
    """
    draws, _, log_weights, k, ess = (correct if adapt else weigh)(without, start, DRAWS, rng)
    return draws, log_weights, is_reliable(len(draws), k, ess) and (adapt or ess >= SHARE)


def is_reliable(size: int, k: float, ess: float) -> bool:
    """Return whether `size` weighted draws of the posterior without a row can be relied upon.

    k̂ has no scale. These draws are already where that posterior is: if their weights hardly vary, a heavy tail of
    the weights is no cause for alarm.
    """
    return (k < min(1 - 1 / np.log10(size), 0.7) or ess >= STEADY) and ess * size >= ENOUGH
