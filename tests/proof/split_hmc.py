"""The truth of a regression's posterior: many independent chains of split Hamiltonian Monte Carlo about a Gaussian.

In whitened coordinates w = mean + Rz the potential is U(z) = |z|²/2 + rest. The Gaussian part is a rotation of (z, p),
taken exactly; the rest kicks: p ← p − ε∇(U − |z|²/2). Near a Gaussian posterior steps are long and nearly all accepted.
Each chain carries a twin of the exact Gaussian, moved by the same momenta, whose mean is known: a control variate.
Standard errors are those of independent chains.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit

from bayes_gda.checks import Floats
from bayes_gda.families.linear import links, softmax_links
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.sites import RepeatedPrior
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.laplace import GaussianPosterior

CHAINS = 128
# Quarter of a turn makes z and the momentum change places: draws are independent for a Gaussian. Its length varies, so
# that no direction comes back to where it was.
TURN, JITTER = np.pi / 2, 0.2
# Rounds of warm-up, after each of which mean and covariance are those of the draws so far; trajectories of each.
ROUNDS, TRAJECTORIES = 3, 30
# More kicks per trajectory below this acceptance, up to the limit.
ACCEPTANCE, MOST_KICKS = 0.8, 32
# Sobol points for the means of the twins' softmax probabilities: within 2e-4 for ten classes where activations have an
# sd of 1, and .002 where it is 15.
TWIN_POINTS = 16384


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Probabilities (k,) of class 1, or (k, K), their standard errors, and mean and sd of the weights (m,).

    `acceptance` is the share of trajectories that were taken, `draws` their number in all chains.
    """

    p: Floats
    error: Floats
    mean: Floats
    sd: Floats
    acceptance: float
    draws: int


class _Potential(Protocol):
    """U(z) − |z|²/2 and its gradient for chains as columns, z (m, S)."""

    mean: Floats
    root: Floats

    def __call__(self, z: Floats) -> tuple[Floats, Floats]:
        """Return the value (S,) and the gradient (m, S)."""

    def chances(self, rows: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
        """Return the function from z to the probabilities (…, S) of rows, and its means (…) over z ~ N(0, I)."""


class _Logistic:
    """The potential of a logistic regression."""

    def __init__(self, target: LogisticTarget, mean: Floats, root: Floats) -> None:
        self.mean, self.root = mean, root
        self.Psi, self.center = target.Phi @ root, (target.Phi @ mean)[:, None]
        self.trials = (target.successes + target.failures)[:, None]
        precision = target.gaussian.precision
        # −log p = Σ t log(1 + eᵃ) − Σ s a + ½(w − m₀)ᵀS₀⁻¹(w − m₀); less |z|²/2
        self.quadratic = root.T @ precision @ root - np.eye(len(mean))
        self.linear = (-root.T @ target.gaussian.gradient(mean) - self.Psi.T @ target.successes)[:, None]

    def __call__(self, z: Floats) -> tuple[Floats, Floats]:
        a = self.Psi @ z + self.center
        Qz = self.quadratic @ z
        value = (self.trials * np.logaddexp(0, a)).sum(axis=0) + np.einsum("ms,ms->s", z, self.linear + 0.5 * Qz)
        return value, self.Psi.T @ (self.trials * expit(a)) + self.linear + Qz

    def chances(self, rows: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
        R, center = rows @ self.root, (rows @ self.mean)[:, None]
        return lambda z: expit(R @ z + center), links.mixture(center[:, 0], np.einsum("ij,ij->i", R, R))


class _Softmax:
    """The potential of a softmax regression."""

    def __init__(self, target: SoftmaxTarget, mean: Floats, root: Floats) -> None:
        self.mean, self.root, self.target = mean, root, target
        self.prior = RepeatedPrior(target.gaussian, target.shape[0])
        self.weight = np.ones(target.n) if target.sample_weight is None else target.sample_weight
        hit = (target.y == np.arange(target.shape[0])[:, None]) * self.weight
        self.labels = (hit @ target.Phi).ravel()  # Σ c 1[y = k] φ

    def __call__(self, z: Floats) -> tuple[Floats, Floats]:
        W = self.mean[:, None] + self.root @ z
        (R, m), Phi = self.target.shape, self.target.Phi
        value, gradient = -self.labels @ W, np.zeros((R, m, z.shape[1]))
        for rows in wide_blocks(self.target.n, self.target.K * z.shape[1]):
            A, top = self._activations(W, Phi[rows])
            np.exp(A, out=A)
            total = A.sum(axis=0)
            value += self.weight[rows] @ (np.log(total) + top)
            A *= (self.weight[rows, None] / total)[None]
            gradient += np.matmul(Phi[rows].T, A[:R])
        slope = np.stack([self.prior.gradient(w) for w in W.T], axis=1)
        value -= np.array([float(self.prior.log_density(w)) for w in W.T]) + 0.5 * (z * z).sum(axis=0)
        return value, self.root.T @ (gradient.reshape(R * m, -1) - self.labels[:, None] - slope) - z

    def chances(self, rows: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
        def of(z: Floats) -> Floats:
            A, _ = self._activations(self.mean[:, None] + self.root @ z, rows)
            np.exp(A, out=A)
            return (A / A.sum(axis=0)).swapaxes(0, 1)

        (R, m), K = self.target.shape, self.target.K
        mean, cov = np.zeros((len(rows), K)), np.zeros((len(rows), K, K))
        mean[:, :R] = rows @ self.mean.reshape(R, m).T
        A = np.matmul(rows, self.root.reshape(R, m, -1))
        cov[:, :R, :R] = np.einsum("and,bnd->nab", A, A)
        return of, softmax_links.sobol(mean, cov, points=TWIN_POINTS)

    def _activations(self, W: Floats, Phi: Floats) -> tuple[Floats, Floats]:
        """Activations (K, n, S) less their largest, and the largest (n, S)."""
        R, m = self.target.shape
        A = np.zeros((self.target.K, len(Phi), W.shape[1]))
        np.matmul(Phi, W.reshape(R, m, -1), out=A[:R])
        top = A.max(axis=0)
        A -= top
        return A, top


def _potential(target: LogisticTarget | SoftmaxTarget, mean: Floats, root: Floats) -> _Potential:
    return _Softmax(target, mean, root) if isinstance(target, SoftmaxTarget) else _Logistic(target, mean, root)


def sample_truth(
    target: LogisticTarget | SoftmaxTarget,
    start: GaussianPosterior,
    rows: Floats,
    *,
    seconds: float = 4.0,
    rounds: int = ROUNDS,
    trajectories: int = TRAJECTORIES,
    chains: int = CHAINS,
    random_seed: int = 0,
) -> Truth:
    """Return the posterior probabilities of rows (k, m) by long sampling.

    Parameters
    ----------
    target
        The posterior.
    start
        A Gaussian near it.
    rows
        (k, m) rows of the design matrix.
    seconds
        CPU time after the warm-up.
    rounds, trajectories
        Rounds of the warm-up, and trajectories of each.
    chains
        Number of chains.
    random_seed
        Seed.
    """
    rng = np.random.default_rng(random_seed)
    W, steps = start.draw(chains, random_seed=rng).T, 2
    mean, root = start.mean, np.linalg.cholesky(start.covariance)
    for _ in range(rounds):
        potential = _potential(target, mean, root)
        z, kept = np.linalg.solve(root, W - mean[:, None]), []
        for i in range(trajectories):
            z, _, accepted = _trajectory(potential, z, steps, rng)
            if i % 5 == 4 and accepted < ACCEPTANCE:
                steps = min(-(-steps * 7 // 5), MOST_KICKS)
            if i >= trajectories // 3:
                kept.append(mean[:, None] + root @ z)
        W = mean[:, None] + root @ z
        draws = np.concatenate(kept, axis=1)
        mean, C = draws.mean(axis=1), np.atleast_2d(np.cov(draws))
        root = np.linalg.cholesky(C + 1e-10 * np.diag(np.diag(C)))
    return _average(_potential(target, mean, root), np.linalg.solve(root, W - mean[:, None]), steps, rows, seconds, rng)


def _average(
    potential: _Potential, z: Floats, steps: int, rows: Floats, seconds: float, rng: np.random.Generator
) -> Truth:
    mean, root = potential.mean, potential.root
    chances, expected = potential.chances(rows)
    chains = z.shape[1]
    p, twin = np.zeros((*expected.shape, chains)), np.zeros((*expected.shape, chains))
    first, second, accepted, count = np.zeros(z.shape), np.zeros(z.shape), 0.0, 0
    g = rng.standard_normal(z.shape)
    stop = time.process_time() + seconds
    while count < 40 or time.process_time() < stop:
        z, (angle, momentum), share = _trajectory(potential, z, steps, rng)
        g = np.cos(angle) * g + np.sin(angle) * momentum
        p += chances(z)
        twin += chances(g)
        first += z
        second += z * z
        accepted += share
        count += 1
    p, twin = p / count, twin / count - expected[..., None]
    centred = p - p.mean(axis=-1, keepdims=True)
    slope = (centred * twin).sum(axis=-1) / np.maximum((twin * twin).sum(axis=-1), 1e-300)
    p -= np.clip(slope, 0, 1.2)[..., None] * twin
    z_mean = first.mean(axis=1) / count
    variance = np.maximum(second.mean(axis=1) / count - z_mean**2, 0)
    return Truth(
        p.mean(axis=-1),
        p.std(axis=-1, ddof=1) / np.sqrt(chains),
        mean + root @ z_mean,
        np.sqrt(root**2 @ variance),
        accepted / count,
        count * chains,
    )


def _trajectory(
    potential: _Potential, z: Floats, steps: int, rng: np.random.Generator
) -> tuple[Floats, tuple[float, Floats], float]:
    """Return the next states (m, S), the angle and momenta of the trajectory, and the mean acceptance."""
    angle = TURN * (1 + JITTER * (2 * rng.random() - 1))
    momentum = rng.standard_normal(z.shape)
    epsilon = angle / steps
    cos, sin = np.cos(epsilon), np.sin(epsilon)
    value, gradient = potential(z)
    energy = value + 0.5 * ((momentum**2).sum(axis=0) + (z**2).sum(axis=0))
    x, p = z, momentum - 0.5 * epsilon * gradient
    for k in range(steps):
        x, p = cos * x + sin * p, cos * p - sin * x
        value, gradient = potential(x)
        p = p - (0.5 if k == steps - 1 else 1.0) * epsilon * gradient
    change = energy - value - 0.5 * ((p**2).sum(axis=0) + (x**2).sum(axis=0))
    take = np.log(rng.random(z.shape[1])) < change
    share = float(np.exp(np.minimum(np.nan_to_num(change, nan=-np.inf), 0)).mean())
    return np.where(take, x, z), (angle, momentum), share
