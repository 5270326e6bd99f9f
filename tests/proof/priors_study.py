"""The default priors of the Gaussian models against what else could be the default: `python -m proof.priors_study`.

Log loss of new rows, over simulated classes of known parameters and over splits of real tables, for

    former    Ψ the variances within classes, ν = d + 2: the default before
    pooled    Ψ the pooled covariance within classes, ν = d + 2
    Jeffreys  the improper prior, where there are rows enough
    default   `NIW.default`

and the rate of false alarms of `detect_novelty` at fixed true parameters. The regret of a prior is its mean log loss
minus that of the best of the first three in the same setting.
"""

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import (
    NIGPosterior,
    NIWPosterior,
    lda_posterior,
    naive_posterior,
    qda_posterior,
)
from bayes_gda.families.gaussian.novelty import detect_novelty
from bayes_gda.priors import NIG, NIW

type Truth = tuple[Floats, Floats]  # means (K, d) and Cholesky factors of the covariances (K, d, d)
type Rows = tuple[Floats, NDArray[np.intp]]

LEVELS = (0.01, 0.05, 0.1)
MODELS = ("lda", "qda", "naive")
# Rows a class and features: the settings in which alarms of the former default were measured.
ALARM_SETTINGS = ((12, 5), (15, 10))
TABLES = ("crabs", "iris", "wine", "pima", "synth", "penguins", "breast-cancer")


def _former(moments: Moments) -> NIW:
    center = moments.count @ moments.mean / moments.n
    return NIW(center, 0.01, np.diag(np.diag(moments.scatter.sum(axis=0))) / moments.n, moments.d + 2)


def _pooled(moments: Moments) -> NIW:
    center = moments.count @ moments.mean / moments.n
    return NIW(center, 0.01, moments.scatter.sum(axis=0) / moments.n, moments.d + 2)


PRIORS: dict[str, Callable[[Moments], NIW]] = {
    "former": _former,
    "pooled": _pooled,
    "Jeffreys": lambda moments: NIW.jeffreys(moments.d),
    "default": NIW.default,
}


def equicorrelated(rng: np.random.Generator, d: int, K: int, rho: float, separation: float, own: bool) -> Truth:
    """Draw class means at about `separation` from each other, in their own units; covariances shared or of each class.

    Those of the classes are Wishart about the equicorrelated one, with 2(d + 1) degrees of freedom.
    """
    L = np.linalg.cholesky(rho * np.ones((d, d)) + (1 - rho) * np.eye(d))
    mu = separation / np.sqrt(2 * d) * rng.standard_normal((K, d)) @ L.T
    factors = np.tile(L, (K, 1, 1))
    if own:
        Z = rng.standard_normal((K, 2 * (d + 1), d)) @ L.T
        factors = np.linalg.cholesky(np.swapaxes(Z, 1, 2) @ Z / (2 * (d + 1)))
    return mu, factors


def draw(rng: np.random.Generator, truth: Truth, y: NDArray[np.intp], dof: float = np.inf) -> Floats:
    """Draw rows of classes y, Gaussian or with Student-t features of unit variance before they are mixed."""
    mu, factors = truth
    z = rng.standard_normal((len(y), mu.shape[1]))
    if np.isfinite(dof):
        z = rng.standard_t(dof, z.shape) / np.sqrt(dof / (dof - 2))
    return np.asarray(mu[y] + np.einsum("nij,nj->ni", factors[y], z))


def log_losses(train: Rows, test: Rows, K: int, *, shared: bool) -> Floats:
    """Return the log loss of each of `PRIORS` on test rows; nan where there are too few rows for it."""
    moments = Moments.from_arrays(*train, K)
    out = []
    for make in PRIORS.values():
        try:
            posterior = (lda_posterior if shared else qda_posterior)(moments, make(moments))
        except (DataError, ValueError):  # singular, or improper
            out.append(np.nan)
            continue
        log_joint = posterior.log_joint(test[0])
        log_p = log_joint - np.logaddexp.reduce(log_joint, axis=1, keepdims=True)
        out.append(-log_p[np.arange(len(test[1])), test[1]].mean())
    return np.array(out)


def simulated(n: int, d: int, rho: float, K: int, *, shared: bool, own: bool, repeats: int) -> Floats:
    """Return the mean log loss of each prior over training sets of n rows a class."""
    rng = np.random.default_rng([n, d, int(100 * rho), K, shared, own])
    y, losses = np.repeat(np.arange(K), n), []
    for _ in range(repeats):
        truth = equicorrelated(rng, d, K, rho, 4.0, own)
        new = rng.integers(K, size=1500)
        losses.append(log_losses((draw(rng, truth, y), y), (draw(rng, truth, new), new), K, shared=shared))
    return np.asarray(np.mean(losses, axis=0))


def real(name: str, *, shared: bool, splits: Iterable[int], rotated: bool = False) -> Floats:
    """Return the mean log loss of each prior over splits: half of crabs is learnt from, a fifth of other tables."""
    data = load_example(name)
    data = data.subset(np.isfinite(data.X).all(axis=1))
    axes = np.linalg.svd(data.X - data.X.mean(axis=0), full_matrices=False)[2].T if rotated else np.eye(data.d)
    losses = []
    for seed in splits:
        train, test = data.split(0.5 if name == "crabs" else 0.8, seed)
        losses.append(log_losses((train.X @ axes, train.y), (test.X @ axes, test.y), data.K, shared=shared))
    return np.asarray(np.mean(losses, axis=0))


def regret(losses: Floats) -> Floats:
    """Return the log losses minus the best of the priors that the default is compared with."""
    return losses - np.nanmin(losses[..., :3], axis=-1, keepdims=True)


def alarm_rates(
    model: str, n: int, d: int, *, repeats: int, separation: float = 4.0, dof: float = np.inf, former: bool = False
) -> Floats:
    """Return the rate of false alarms at each of `LEVELS`: 3 classes of n rows, at true parameters that are fixed.

    Features are equicorrelated at .5, or independent for the naive model. `former` has the prior and the threshold, of
    the posterior predictive, of before.
    """
    rng = np.random.default_rng([n, d])
    truth = equicorrelated(rng, d, 3, 0.0 if model == "naive" else 0.5, separation, own=False)
    y, rates = np.repeat(np.arange(3), n), []
    for _ in range(repeats):
        moments = Moments.from_arrays(draw(rng, truth, y, dof), y, 3)
        posterior: NIWPosterior | NIGPosterior
        if model == "naive":
            v = np.diag(moments.scatter.sum(axis=0)) / moments.n
            nig = NIG(moments.mean.mean(axis=0), 0.01, 1.5, v / 2) if former else NIG.default(moments)
            posterior = naive_posterior(moments, nig)
        else:
            niw = _former(moments) if former else NIW.default(moments)
            posterior = (lda_posterior if model == "lda" else qda_posterior)(moments, niw)
        make = None if former else (NIG if model == "naive" else NIW).default
        X = draw(rng, truth, rng.integers(3, size=2000), dof)
        found = [detect_novelty(posterior, X, false_alarm=level, prior=make) for level in LEVELS]
        rates.append([each.novel.mean() for each in found])
    return np.asarray(np.mean(rates, axis=0))


def _line(label: str, numbers: Floats) -> str:
    return f"{label:44}" + "".join(f"{number:10.3f}" for number in numbers)


def report() -> Iterator[str]:
    """Yield the tables line by line."""
    yield (_line("log loss", np.array([])) + "".join(f"{name:>10}" for name in PRIORS))
    everything = {}
    for model, own in (("lda", False), ("qda", False), ("qda", True)):
        grid = itertools.product((5, 8, 15, 30, 100), (2, 5, 10), (0.0, 0.5, 0.9), (2, 3))
        for n, d, rho, K in grid:
            losses = simulated(n, d, rho, K, shared=model == "lda", own=own, repeats=10)
            everything[model, own, n, d, rho, K] = losses
            yield (_line(f"{model}{', own covariances' * own} n={n} d={d} rho={rho} K={K}", losses))
        part = regret(np.array([loss for key, loss in everything.items() if key[:2] == (model, own)]))
        yield (_line(f"{model}{', own covariances' * own}: worst regret", np.nanmax(part, axis=0)))
        yield (_line(f"{model}{', own covariances' * own}: mean regret", np.nanmean(part, axis=0)))
    for name, shared in itertools.product(TABLES, (True, False)):
        yield (_line(f"{name}, {'lda' if shared else 'qda'}, 20 splits", real(name, shared=shared, splits=range(20))))
    yield (_line("crabs, qda, principal axes", real("crabs", shared=False, splits=range(20), rotated=True)))
    yield ("\nfalse alarms at fixed parameters, nominal" + "".join(f"{level:10.2f}" for level in LEVELS))
    for model, (n, d), separation in itertools.product(MODELS, ALARM_SETTINGS, (2.0, 8.0)):
        for former in (True, False):
            rates = alarm_rates(model, n, d, repeats=20, separation=separation, former=former)
            label = f"{model}, {n} rows, d={d}, apart {separation:g}, {'former' if former else 'now'}"
            yield (_line(label, rates))
    for model in MODELS:
        yield (_line(f"{model}, 30 rows, d=5, t4 features", alarm_rates(model, 30, 5, repeats=20, dof=4.0)))


if __name__ == "__main__":
    for line in report():
        sys.stdout.write(line + "\n")
