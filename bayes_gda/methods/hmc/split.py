"""Split Hamiltonian Monte Carlo about a Gaussian: many chains at once, for densities that are not far from it.

In whitened coordinates w = mean + Rz the Gaussian has the potential |z|²/2, and the posterior U(z) = |z|²/2 + V(z). The
flow of |z|²/2 and |p|²/2 is a rotation of (z, p), taken exactly; the rest kicks. A trajectory of angle α in L kicks is

    p ← p − ½ε∇V(z);   L times:  (z, p) ← (z cos ε + p sin ε, p cos ε − z sin ε),  p ← p − ε∇V(z)  (the last one ½ε)

with ε = α/L, accepted with probability min(1, e^{−ΔH}), H = U(z) + |p|²/2. For a Gaussian ∇V = 0, every trajectory is
accepted, and a quarter of a turn makes z and the momentum change places: draws are independent. All chains take their
kicks at the same time, so that a gradient is one matrix product for all of them; their angles and acceptances are their
own. What is adapted (mean, R, L) is adapted in the warm-up only.

References
----------
Shahbaba, Lan, Johnson & Neal (2014), Split Hamiltonian Monte Carlo; Neal (2011), MCMC using Hamiltonian dynamics.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.linalg import solve_triangular
from bayes_gda.methods.laplace import GaussianPosterior

# Somewhat more than a quarter of a turn: directions that are wider than the Gaussian turn more slowly. The angle varies
# to both sides, so that no direction comes back to where it was. Of .5π to .65π this had the most balanced ESS of means
# and squares over eight posteriors.
TURN, JITTER = 0.55 * np.pi, 0.2
# Trajectories of the first fall from the starts, with as many kicks; then those of a round of the warm-up.
SETTLING, SETTLING_KICKS, ROUND = 5, 4, 20
# Rounds at most, and rounds that are enough if trajectories are then accepted; one is, where the Gaussian is so close
# that two kicks are enough.
ROUNDS, ENOUGH = 8, 4
# Acceptance that the kicks are chosen for, that is enough, and that every chain must reach with the most kicks: else
# it may be stuck where the density is far from the Gaussian.
TARGET, ACCEPTANCE, LEAST_ACCEPTANCE, MOST_KICKS = 0.88, 0.8, 0.4, 64
# Draws per parameter that the given covariance counts for, beside those of the warm-up: a covariance from fewer than
# some 3·dim draws is worse than a good approximation.
PRIOR_DRAWS = 3
# Starts are drawn so many times as wide as the Gaussian, so that R-hat can see chains that have not met.
OVERDISPERSION = 1.5
# An energy error beyond this is a divergence, as Stan and PyMC have it.
DIVERGENCE = 1000.0


class Batched(Protocol):
    """A log density with its gradient, at many points at once."""

    @property
    def dim(self) -> int:
        """Number of coordinates."""

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return log p (S,) and its gradients (S, dim) at S points (S, dim)."""


@dataclass(frozen=True, slots=True, eq=False)
class Whitened:
    """The density in coordinates z, w = mean + Rz."""

    density: Batched
    mean: Floats
    root: Floats

    def points(self, Z: Floats) -> Floats:
        """Return w (C, dim) of z (C, dim)."""
        out: Floats = self.mean + Z @ self.root.T
        return out

    def at(self, Z: Floats) -> "State":
        """Return the state of chains at z (C, dim)."""
        value, G = self.density.values_and_gradients(self.points(Z))
        return State(Z, value, -(G @ self.root) - Z)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """Where C chains are: z (C, dim), log p (C,) and ∇V (C, dim) there."""

    z: Floats
    log_p: Floats
    force: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Moved:
    """What a trajectory brought: the next state, and of each chain (C,) the figures of the step.

    Parameters
    ----------
    state
        Where the chains are now.
    acceptance
        The probability of acceptance.
    energy
        H at the point that was taken.
    error
        Energy error of the trajectory.
    """

    state: State
    acceptance: Floats
    energy: Floats
    error: Floats


@dataclass(frozen=True, slots=True, eq=False)
class WarmedUp:
    """The density in the coordinates that the warm-up found, where its chains are, and its settings.

    Parameters
    ----------
    whitened, state
        Coordinates and states.
    kicks
        L, the kicks of a trajectory.
    trajectories
        How many the warm-up took.
    """

    whitened: Whitened
    state: State
    kicks: int
    trajectories: int


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Draws of all chains, with the statistics of each.

    Parameters
    ----------
    w
        (C, draws, dim) points.
    log_p, acceptance, energy
        (C, draws) log density, probability of acceptance and energy.
    diverging
        (C, draws) whether the energy error was beyond `DIVERGENCE`, or no number.
    """

    w: Floats
    log_p: Floats
    acceptance: Floats
    energy: Floats
    diverging: NDArray[np.bool_]


# Called with the number of draws so far of each chain, and the divergences of all.
Report = Callable[[int, int], None]
# Number, mean (dim,) and scatter (dim, dim) of points.
_Moments = tuple[float, Floats, Floats]


def warm_up(density: Batched, gaussian: GaussianPosterior, chains: int, rng: np.random.Generator) -> WarmedUp:
    """Start chains about the Gaussian, and find the coordinates and the number of kicks that suit the density.

    Raises
    ------
    ConvergenceError
        If no number of kicks lets most trajectories be accepted.
    """
    mean, root = gaussian.mean, solve_triangular(gaussian.chol_precision, np.eye(gaussian.dim)).T
    given = root @ root.T
    whitened = Whitened(density, mean, root)
    state, kicks = _settle(whitened, _start(whitened, chains, rng), rng)
    moments: _Moments | None = None
    kicks = max(1, kicks // 4)
    for taken in range(1, ROUNDS + 1):
        accepted, kept = np.zeros(chains), []
        for _ in range(ROUND):
            moved = trajectory(whitened, state, kicks, rng)
            state = moved.state
            accepted += moved.acceptance / ROUND
            kept.append(whitened.points(state.z))
        share = float(accepted.mean())
        fine = share >= ACCEPTANCE and accepted.min() >= LEAST_ACCEPTANCE
        if fine and (kicks <= 2 if taken == 1 else taken >= ENOUGH):
            return WarmedUp(whitened, state, kicks, taken * ROUND + SETTLING)
        kicks = _adapt(kicks, share)
        # The first round may still have the starts in it: later ones count without it.
        moments = _pooled(None if taken <= 2 else moments, np.concatenate(kept))
        whitened, state = _rewhiten(whitened, state, moments, given)
    if not accepted.min() >= LEAST_ACCEPTANCE:
        raise _too_far(kicks, float(accepted.min()))
    return WarmedUp(whitened, state, kicks, ROUNDS * ROUND + SETTLING)


def _silent(done: int, divergences: int) -> None:
    """Report nothing."""


def draw(warm: WarmedUp, draws: int, rng: np.random.Generator, report: Report = _silent) -> Draws:
    """Take as many draws of every chain; Ctrl-C returns those so far, unless there are none yet."""
    state, C = warm.state, len(warm.state.z)
    w = np.empty((C, draws, state.z.shape[1]))
    stats = np.empty((4, C, draws))
    done, divergences = 0, 0
    try:
        for i in range(draws):
            moved = trajectory(warm.whitened, state, warm.kicks, rng)
            state = moved.state
            w[:, i] = state.z
            stats[:, :, i] = state.log_p, moved.acceptance, moved.energy, moved.error
            done, divergences = i + 1, divergences + int((~(moved.error <= DIVERGENCE)).sum())
            report(done, divergences)
    except KeyboardInterrupt:
        if not done:
            raise
    w, stats = w[:, :done], stats[:, :, :done]
    points = warm.whitened.points(w.reshape(-1, w.shape[2])).reshape(w.shape)
    log_p, acceptance, energy, error = stats
    return Draws(points, log_p, acceptance, energy, ~(error <= DIVERGENCE))


def trajectory(whitened: Whitened, state: State, kicks: int, rng: np.random.Generator) -> Moved:
    """Move every chain by one trajectory; those that are not accepted stay."""
    C = len(state.z)
    epsilon = TURN * (1 + JITTER * (2 * rng.random((C, 1)) - 1)) / kicks
    cos, sin = np.cos(epsilon), np.sin(epsilon)
    p = rng.standard_normal(state.z.shape)
    before = 0.5 * np.einsum("cm,cm->c", p, p) - state.log_p
    x, p = state, p - 0.5 * epsilon * state.force
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):  # those that fly off are refused
        for k in range(kicks):
            z, p = cos * x.z + sin * p, cos * p - sin * x.z
            x = whitened.at(z)
            p -= (0.5 if k == kicks - 1 else 1.0) * epsilon * x.force
        after = 0.5 * np.einsum("cm,cm->c", p, p) - x.log_p
        error = after - before
        acceptance = np.exp(np.minimum(np.nan_to_num(-error, nan=-np.inf), 0.0))
    take = rng.random(C) < acceptance
    new = State(
        np.where(take[:, None], x.z, state.z),
        np.where(take, x.log_p, state.log_p),
        np.where(take[:, None], x.force, state.force),
    )
    return Moved(new, acceptance, np.where(take, after, before), np.abs(error))


def _start(whitened: Whitened, chains: int, rng: np.random.Generator) -> State:
    """Draw over-dispersed starts, each drawn in until the density is finite there."""
    Z = OVERDISPERSION * rng.standard_normal((chains, len(whitened.mean)))
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for _ in range(60):  # 2⁻⁶⁰ is the centre
            state = whitened.at(Z)
            bad = ~(np.isfinite(state.log_p) & np.isfinite(state.force).all(axis=1))
            if not bad.any():
                return state
            Z[bad] *= 0.5
    raise ConvergenceError("The log density is not finite about the centre of the Gaussian. Use sampler='pymc'.")


def _settle(whitened: Whitened, state: State, rng: np.random.Generator) -> tuple[State, int]:
    """Let the chains fall from their starts to where the posterior is; return the kicks that all of them could follow.

    Out there forces are stiff. A chain that refuses its first trajectories may stand still for ever.
    """
    kicks = SETTLING_KICKS
    while True:
        moved, worst = state, np.zeros(len(state.z))
        for _ in range(SETTLING):
            step = trajectory(whitened, moved, kicks, rng)
            moved, worst = step.state, worst + step.acceptance / SETTLING
        if worst.min() >= LEAST_ACCEPTANCE:
            return moved, kicks
        if kicks >= MOST_KICKS:
            raise _too_far(kicks, float(worst.min()))
        state, kicks = moved, min(4 * kicks, MOST_KICKS)


def _adapt(kicks: int, share: float) -> int:
    """Return the kicks that bring the acceptance to its target.

    Where energy errors are normal with sd s and mean s²/2 the acceptance is 2Φ(−s/2), and s falls with the square of ε.
    """
    s, wanted = (-2 * ndtri(0.5 * min(max(a, 0.01), 0.99)) for a in (share, TARGET))
    return int(np.clip(np.ceil(kicks * np.clip(np.sqrt(s / wanted), 0.5, 3.0) - 0.1), 1, MOST_KICKS))


def _too_far(kicks: int, share: float) -> ConvergenceError:
    return ConvergenceError(
        f"A chain accepts trajectories of {kicks} kicks with probability {share:.2f} only: the posterior is too far "
        "from a Gaussian for sampler='hmc'. Use sampler='pymc'."
    )


def _pooled(before: "_Moments | None", W: Floats) -> "_Moments":
    """Return number, mean and scatter of all points, from those of the points before and W (S, dim)."""
    mean = W.mean(axis=0)
    centred = W - mean
    if before is None:
        return len(W), mean, centred.T @ centred
    weight, center, scatter = before
    step, total = mean - center, weight + len(W)
    scatter = scatter + centred.T @ centred + np.outer(step, step) * (weight * len(W) / total)
    return total, center + step * (len(W) / total), scatter


def _rewhiten(whitened: Whitened, state: State, moments: _Moments, given: Floats) -> tuple[Whitened, State]:
    """Return new coordinates after the moments of the draws so far, and the same points in them."""
    weight, mean, scatter = moments
    prior = PRIOR_DRAWS * len(mean)
    covariance = (prior * given + scatter) / (prior + weight)
    root = np.linalg.cholesky(covariance)
    new = Whitened(whitened.density, mean, root)
    return new, new.at(solve_triangular(root, (whitened.points(state.z) - mean).T).T)
