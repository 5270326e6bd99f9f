"""Learning curves: discriminant analysis against logistic regression, where the Gaussian model is true and where not.

The excess error of a rule over Bayes' is E[|2η(x) − 1|; rule ≠ Bayes], η(x) = p(y=1 | x): with the truth known no test
labels are drawn. It is exact for a linear rule under the Gaussian truth, else a mean over quasi-random rows.

References
----------
Efron (1975), The efficiency of logistic regression compared to normal discriminant analysis, JASA 70.
Ng & Jordan (2002), On discriminative vs. generative classifiers, NeurIPS 14.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import integrate
from scipy.special import expit
from scipy.stats import norm

from bayes_gda.checks import Floats
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.exact import lda_posterior
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.priors import NIW, Dirichlet, Normal
from bayes_gda.priors.defaults import default_prior
from bayes_gda.teaching.truths import TRUTHS, Truth, seed_of

LEARNERS = ("Bayesian LDA", "Bayesian logistic", "LDA", "logistic")
GAUSSIAN_ROWS = (40, 80, 160, 320, 640, 1280, 2560)
OTHER_ROWS = (20, 40, 80, 160, 320, 640, 1280)
BOOTSTRAPS = 400
# Newton steps of maximum likelihood; where classes are separable the weights grow by about one a step, and the
# direction has long settled.
STEPS = 25


# ── Efron's efficiency ──────────────────────────────────────────────────────────────────────────────────────────────


def efficiency(delta: float) -> float:
    """Return the asymptotic relative efficiency of logistic regression for two equally frequent Gaussian classes.

        ARE = (1 + Δ²/4) e^{−Δ²/8} ∫ φ(x)/cosh(Δx/2) dx     (Efron 1975, theorem 2 at π = ½; any number of features)

    Logistic regression needs 1/ARE times the rows for the same excess error.
    """

    def integrand(x: float) -> float:
        return math.exp(-x * x / 2) / math.cosh(delta * x / 2) / math.sqrt(2 * math.pi)

    area = integrate.quad(integrand, -12, 12, epsabs=1e-12, limit=200)[0]
    return float((1 + delta**2 / 4) * np.exp(-(delta**2) / 8) * area)


def linear_excess(w: Floats, delta: float) -> Floats:
    """Return the exact excess error of rules w₀ + wᵀx > 0, for w (…, d + 1), x | y ~ N(±Δ/2 e₁, I) and even classes.

    error = ½ Φ(−(w₀ + w₁Δ/2)/|w|) + ½ Φ((w₀ − w₁Δ/2)/|w|);  Bayes' is Φ(−Δ/2)
    """
    w = np.asarray(w, dtype=np.float64)
    a, b = w[..., 0], w[..., 1] * delta / 2
    length = np.linalg.norm(w[..., 1:], axis=-1)
    return np.asarray(0.5 * norm.cdf(-(a + b) / length) + 0.5 * norm.cdf((a - b) / length) - norm.cdf(-delta / 2))


# ── Learners ────────────────────────────────────────────────────────────────────────────────────────────────────────


def lda_weights(X: Floats, y: Floats) -> Floats:
    """Return the weights (d + 1,) of plug-in LDA by maximum likelihood; 0 along what does not vary within classes."""
    n1 = y.sum()
    means = np.array([X[y == 0].mean(axis=0), X[y == 1].mean(axis=0)])
    centered = X - means[y.astype(int)]
    slope = np.linalg.pinv(centered.T @ centered / len(X), hermitian=True) @ (means[1] - means[0])
    return np.append(np.log(n1 / (len(y) - n1)) - slope @ means.mean(axis=0), slope)


def logistic_weights(X: Floats, y: Floats) -> Floats:
    """Return the weights (d + 1,) of logistic regression by maximum likelihood.

    Without a maximum (separable rows) it returns where Newton's method stands after `STEPS`, and a ridge of 1e-8 a row
    keeps its matrix invertible.
    """
    scale = X.std(axis=0)
    scale[scale == 0] = 1.0  # a feature of few values may be constant in a few rows
    Phi = np.column_stack([np.ones(len(X)), X / scale])
    w, ridge = np.zeros(Phi.shape[1]), 1e-8 * len(X)
    for _ in range(STEPS):
        p = expit(Phi @ w)
        gradient = Phi.T @ (y - p) - ridge * w
        H = (Phi * (p * (1 - p))[:, None]).T @ Phi + ridge * np.eye(len(w))
        step = np.linalg.solve(H, gradient)
        w += step / max(1.0, np.abs(step).max() / 2)  # from separable rows steps grow without bound
        if np.abs(step).max() < 1e-8:
            break
    return w / np.append(1.0, scale)


def bayesian_logistic_weights(X: Floats, y: Floats) -> Floats:
    """Return the weights (d + 1,) whose sign decides in Bayesian logistic regression by Laplace, default prior.

    Under a Gaussian posterior the mean probability is above ½ where the mean activation is above 0.
    """
    varies = np.append(True, np.ptp(X, axis=0) > 0)  # a feature of few values may be constant in a few rows
    features = FeatureMap.fit(X[:, varies[1:]])
    Phi = features(X[:, varies[1:]])
    mode = regression_laplace(LogisticTarget(Phi, y, Normal.default(Phi.shape[1]))).mean
    w = np.zeros(X.shape[1] + 1)
    w[varies] = features.to_original_units(mode)
    return w


def bayesian_lda_decides(X: Floats, y: Floats, Z: Floats) -> Floats:
    """Return whether Bayesian LDA, exact, default prior, takes class 1 for rows Z."""
    moments = Moments.from_arrays(X, y.astype(np.intp), 2)
    prior = default_prior(moments, NIW)
    assert isinstance(prior, NIW)  # as was asked for; for the type checker
    log_joint = lda_posterior(moments, prior, Dirichlet()).log_joint(Z)
    return np.asarray(log_joint[:, 1] > log_joint[:, 0])


# ── Curves ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def excess_errors(truth: Truth, n: int, rng: np.random.Generator, Z: Floats, gain: Floats) -> list[float]:
    """Return the excess error of each of `LEARNERS` after n rows.

    Parameters
    ----------
    truth, n, rng
        What to draw from, how many rows, and the generator.
    Z, gain
        Test rows, and 2η − 1 there: its sign is Bayes' rule, its size what a wrong decision costs.
    """
    X, y = truth.draw(n, rng)
    while min(y.sum(), n - y.sum()) < 2:
        X, y = truth.draw(n, rng)

    def on_rows(decision: Floats) -> float:
        return float(np.abs(gain)[decision != (gain > 0)].sum() / len(gain))

    weights = [bayesian_logistic_weights(X, y), lda_weights(X, y), logistic_weights(X, y)]
    first = on_rows(bayesian_lda_decides(X, y, Z))
    others = [on_rows(w[0] + Z @ w[1:] > 0) for w in weights]
    if truth.delta is None:
        return [first, *others]
    exact = [float(linear_excess(w, truth.delta)) for w in weights]
    # The boundary of Bayesian LDA is bent a little where the classes differ in size. What the rows miss of it they
    # miss of the straight one beside it, too, whose error is known.
    return [first + exact[1] - others[1], *exact]


def run_learning(name: str, n: int, first: int, count: int) -> dict[str, Any]:
    """Return the excess errors (count, learners) of replicates first, first + 1, … of one truth and number of rows."""
    truth = TRUTHS[name]
    Z = truth.test_rows(seed_of("test", name, n, first))
    gain = 2 * truth.probability(Z) - 1
    excess = [
        excess_errors(truth, n, np.random.default_rng(seed_of("learning", name, n, index)), Z, gain)
        for index in range(first, first + count)
    ]
    return {"excess": excess}


def summarise_learning(name: str, excess: Mapping[int, Floats]) -> dict[str, Any]:
    """Return the curves of one truth, (replicates, learners) by n: means, errors, rows needed and crossings."""
    rows = sorted(excess)
    means = np.array([excess[n].mean(axis=0) for n in rows])
    errors = np.array([excess[n].std(axis=0, ddof=1) / np.sqrt(len(excess[n])) for n in rows])
    out: dict[str, Any] = {"truth": name, "rows": rows, "replicates": [len(excess[n]) for n in rows]}
    out |= {"learners": LEARNERS, "excess": means.tolist(), "error": errors.tolist()}
    delta = TRUTHS[name].delta
    out["description"], out["delta"] = TRUTHS[name].description, delta
    if delta is not None:
        out["efficiency"] = efficiency(delta)
        out["needed"] = {pair: _needed(excess, *columns) for pair, columns in PAIRS.items()}
    else:
        out["crossing"] = {pair: crossing(rows, means[:, columns]) for pair, columns in PAIRS.items()}
    return out


PAIRS: Mapping[str, list[int]] = {"Bayesian": [0, 1], "maximum likelihood": [2, 3]}


def _needed(excess: Mapping[int, Floats], lda: int, logistic: int) -> list[dict[str, float]]:
    """For each n: the rows with which logistic regression has the excess error of LDA after n, over n.

    The error is that of a bootstrap of the replicates, which both share.
    """
    rows = sorted(excess)
    rng = np.random.default_rng(0)
    means = np.array([excess[n].mean(axis=0) for n in rows])
    resampled = []
    for _ in range(BOOTSTRAPS):
        picks = [excess[n][rng.integers(len(excess[n]), size=len(excess[n]))].mean(axis=0) for n in rows]
        resampled.append(np.array(picks))
    out = []
    for i, n in enumerate(rows):
        ratio = rows_to_reach(rows, means[:, logistic], means[i, lda]) / n
        spread = [rows_to_reach(rows, each[:, logistic], each[i, lda]) / n for each in resampled]
        # Where the level is at the end of the curve, some resampled curves do not reach it, and no error is known.
        if np.isfinite(ratio) and np.isfinite(spread).mean() > 0.98:
            out.append({"n": n, "ratio": float(ratio), "error": float(np.nanstd(spread))})
    return out


def rows_to_reach(rows: Sequence[int], curve: Floats, level: float) -> float:
    """Return where a falling curve reaches a level, linear in the logarithms; nan if it does not."""
    x, z = np.log(rows), np.log(np.minimum.accumulate(curve))
    below = np.flatnonzero(z <= np.log(level))
    if len(below) == 0 or (below[0] == 0 and z[0] < np.log(level)):
        return np.nan
    i = int(below[0])
    if i == 0:
        return float(rows[0])
    share = (z[i - 1] - np.log(level)) / (z[i - 1] - z[i])
    return float(np.exp(x[i - 1] + share * (x[i] - x[i - 1])))


def crossing(rows: Sequence[int], curves: Floats) -> dict[str, Any]:
    """Return from how many rows on the second curve (logistic) stays below the first (LDA); None if it never does."""
    ahead = np.log(curves[:, 1]) - np.log(curves[:, 0])  # above 0: LDA is better
    behind = np.flatnonzero(ahead >= 0)
    if len(behind) == 0:
        return {"rows": rows[0], "always": True}
    i = int(behind[-1])
    if i == len(rows) - 1:
        return {"rows": None, "always": False}
    share = ahead[i] / (ahead[i] - ahead[i + 1])
    return {"rows": float(np.exp(np.log(rows[i]) + share * np.log(rows[i + 1] / rows[i]))), "always": False}
