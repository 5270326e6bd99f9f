"""Random regressions for the verdict study, as a user would hand them in, and their truth by long sampling.

Size, number of classes, design, signal, base rate, prior scale and weights are random; large sizes are rare, as the
truth of a case costs a few hundred times its fit. Small logistic regressions have `split_hmc` for their truth, with
control variates; all others the package's own split HMC, by the spread of independent chains. No verdict uses either.
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from proof.split_hmc import sample_truth
from proof.verdict_study import KINDS, design
from scipy.special import expit, softmax

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.families.linear.family import Linear, Logistic, Softmax
from bayes_gda.methods.hmc.split import trajectory, warm_up
from bayes_gda.methods.laplace import GaussianPosterior

SEED = 20261118
ROWS, FEATURES, CLASSES = (15, 100_000), (1, 500), (3, 10)
# Rows × weights of a case at most: a gradient of all chains then takes a tenth of a second.
MOST_WORK = 1_500_000
# Up to here `split_hmc` with its 128 chains is quick enough.
SMALL_WORK = 60_000
# Rows judged of each group; how many times as far from the centre far rows are.
JUDGED, FAR = 120, 3.0
GROUPS = ("training", "new", "far")
CHAINS, LEAST_DRAWS = 32, 40
# A truth that is rougher than wanted is given so many times as long.
LONGER = 8.0
# The Gaussian is close, so that `split_hmc` needs a short warm-up only.
SHORT = {"rounds": 2, "trajectories": 15}


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A regression with its data.

    Parameters
    ----------
    family
        Model, data and prior.
    rows
        (n, d) rows to judge by group.
    about
        What it is.
    """

    family: Linear
    rows: dict[str, Floats]
    about: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Probabilities (n, K) and their standard errors, the acceptance, and the draws behind them."""

    p: Floats
    error: Floats
    acceptance: float
    draws: int


def sizes(index: int, multiclass: bool) -> tuple[int, int, int, np.random.Generator]:
    """Return rows, features, classes and the generator of a case: all that its cost depends on."""
    rng = np.random.default_rng([SEED, int(multiclass), index])
    K = int(rng.integers(CLASSES[0], CLASSES[1] + 1)) if multiclass else 2
    while True:
        n = int(np.exp(rng.uniform(*np.log(ROWS))))
        d = int(np.exp(rng.uniform(*np.log(FEATURES))))
        if n * (d + 1) * (K if multiclass else 1) <= MOST_WORK and n >= 2 * K and (d + 1) * (K - 1) <= 700:
            return n, d, K, rng


def random_case(index: int, multiclass: bool) -> Case:
    """Return case number `index`."""
    n, d, K, rng = sizes(index, multiclass)
    kind, signal = str(rng.choice(KINDS)), float(np.exp(rng.uniform(np.log(0.3), np.log(12))))
    X = design(kind, n + JUDGED, d, rng)
    center, scale = X[:n].mean(axis=0), np.where(X[:n].std(axis=0) > 0, X[:n].std(axis=0), 1.0)
    Z = (X - center) / scale
    intercept = rng.choice([0.0, 0.0, -2.0, -4.0]) if K == 2 else rng.normal(size=K)
    weights = rng.normal(size=(d, 1 if K == 2 else K)) * signal / np.sqrt(d)
    a = Z[:n] @ weights + intercept
    y = (rng.random(n) < expit(a[:, 0])).astype(int) if K == 2 else (a + rng.gumbel(size=a.shape)).argmax(axis=1)
    y[: 2 * K] = np.tile(np.arange(K), 2)  # each class has two rows
    weight = rng.uniform(0.1, 3, n) if rng.random() < 0.15 else None
    prior_scale = float(rng.choice([2.5, 2.5, 2.5, 1.0, 5.0, 10.0]))
    varies = X[:n].std(axis=0) > 0
    X = X[:, varies] if varies.any() else np.column_stack([X, rng.normal(size=len(X))])
    data = Dataset(X[:n], y, tuple(f"x{j}" for j in range(X.shape[1])), tuple(range(K)), weight=weight)
    family = (Logistic if K == 2 else Softmax).bind(data, prior_scale=prior_scale)
    middle = X[:n].mean(axis=0)
    rows = {
        "training": X[np.linspace(0, n - 1, min(n, JUDGED)).astype(int)],
        "new": X[n:],
        "far": middle + FAR * (X[n:] - middle),
    }
    about = {"n": n, "d": X.shape[1], "K": K, "kind": kind, "signal": round(signal, 2), "prior_scale": prior_scale}
    return Case(family, rows, about | {"weights": weight is not None})


def true_probabilities(case: Case, start: GaussianPosterior, seconds: float, wanted: float, seed: int) -> Truth:
    """Return the posterior probabilities of all rows of a case.

    Parameters
    ----------
    case, start
        The case, and a Gaussian near its posterior.
    seconds
        CPU time, LONGER times as much where errors stay above `wanted`.
    wanted
        Largest standard error.
    seed
        Seed of the sampling.
    """
    family, X = case.family, np.vstack([case.rows[group] for group in GROUPS])
    Phi = family.features(X)
    if family.binary and family.Phi.size <= SMALL_WORK:
        target: Any = family.target
        found = sample_truth(target, start, Phi, seconds=seconds, random_seed=seed, **SHORT)
        if found.error.max() > wanted:
            found = sample_truth(target, start, Phi, seconds=LONGER * seconds, random_seed=seed, **SHORT)
        p = np.column_stack([1 - found.p, found.p])
        return Truth(p, np.column_stack([found.error, found.error]), found.acceptance, found.draws)
    return _by_chains(family, Phi, start, (seconds, wanted), seed)


def _by_chains(family: Linear, Phi: Floats, start: GaussianPosterior, limits: tuple[float, float], seed: int) -> Truth:
    rng, K = np.random.default_rng(seed), family.data.K
    warm = warm_up(family.density, start, CHAINS, rng)
    state, total, accepted, draws = warm.state, np.zeros((CHAINS, len(Phi), K)), 0.0, 0
    (seconds, wanted), begun = limits, time.process_time()
    while True:
        moved = trajectory(warm.whitened, state, warm.kicks, rng)
        state = moved.state
        accepted += float(moved.acceptance.mean())
        total += _of_weights(family, warm.whitened.points(state.z), Phi)
        draws += 1
        spent = time.process_time() - begun
        if draws % LEAST_DRAWS == 0 and spent > seconds:
            error = total.std(axis=0, ddof=1) / (draws * np.sqrt(CHAINS))
            if error.max() <= wanted or spent > LONGER * seconds:
                return Truth(total.mean(axis=0) / draws, error, accepted / draws, draws * CHAINS)


def _of_weights(family: Linear, W: Floats, Phi: Floats) -> NDArray[np.float64]:
    """Return probabilities (S, n, K) of weights (S, dim)."""
    if family.binary:
        p = expit(W @ Phi.T)
        return np.stack([1 - p, p], axis=2)
    a = W.reshape(len(W), -1, Phi.shape[1]) @ Phi.T
    if family.reference:
        a = np.concatenate([a, np.zeros((len(W), 1, len(Phi)))], axis=1)
    return np.asarray(softmax(a, axis=1).transpose(0, 2, 1))
