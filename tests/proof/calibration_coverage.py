"""How often credible intervals of p(y=k | x, θ) hold the true one, in simulated data.

    prior   θ ~ p(θ), data ~ p(· | θ), and the posterior under that prior: on average over θ the coverage of an exact
            posterior is the nominal one, whatever n is.
    fixed   one θ for all simulations, and the default prior of the estimators: the frequentist coverage that a user
            gets, which Bayes promises only for large n.

The intervals are those of `predict_interval`; what stands behind them is fitted by each method in turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import log_softmax, softmax
from scipy.stats import t

from bayes_gda.checks import Floats
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.table import Dataset
from bayes_gda.families.base import Family
from bayes_gda.families.gaussian.family import LDA, QDA, Gaussian, Naive
from bayes_gda.families.linear.classifier import RegressionClassifier
from bayes_gda.families.linear.family import Logistic, Softmax
from bayes_gda.methods.ladder import verify
from bayes_gda.methods.settings import Settings
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.uncertainty import interval
from bayes_gda.priors import NIG, NIW, Normal
from bayes_gda.teaching.truths import seed_of

Truth = Literal["prior", "fixed"]
MODELS = ("lda", "qda", "naive", "logistic", "softmax")
PROBS = (0.5, 0.8, 0.9, 0.95)
ROWS = (20, 50, 200, 1000)
# New rows of each simulation. They share its data, so more of them add little.
NEW_ROWS = 10
# Draws behind an interval: its ends are then off by a fiftieth of their own spread.
DRAWS = 1000
D = 2

# Priors to draw parameters from: class means some two standard deviations apart, and scales known to a factor of two,
# so that classes overlap; the default of the regressions as it is.
NIW_PRIOR = NIW(m=np.zeros(D), kappa=0.5, Psi=3.0 * np.eye(D), nu=D + 4.0)
NIG_PRIOR = NIG(m=np.zeros(D), kappa=np.array(0.5), a=np.array(3.0), b=np.array(2.0))
WEIGHTS_PRIOR = Normal.default(D + 1)

_GAUSSIANS: Mapping[str, type[Gaussian]] = {family.name: family for family in (LDA, QDA, Naive)}
# The one truth: classes two standard deviations apart; for QDA and naive with spreads of 1 : 2.
_MEANS = np.array([[-1.0, 0.0], [1.0, 0.0]])
_FIXED: Mapping[str, dict[str, Floats]] = {
    "lda": {"pi": np.array([0.5, 0.5]), "mu": _MEANS, "Sigma": np.array([np.eye(2)] * 2)},
    "qda": {"pi": np.array([0.5, 0.5]), "mu": _MEANS, "Sigma": np.array([np.eye(2), [[2.0, 0.6], [0.6, 1.0]]])},
    "naive": {"pi": np.array([0.5, 0.5]), "mu": _MEANS, "Sigma": np.array([np.eye(2), np.diag([2.0, 1.0])])},
    "logistic": {"w": np.array([[0.0, 0.0, 0.0], [0.5, 1.0, -1.0]])},
    "softmax": {"w": np.array([[0.0, 0.0, 0.0], [0.5, 1.0, -1.0], [0.0, 1.0, 1.0]])},
}


# ── Data ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """Training rows with their model, new rows (r, d), and their true probabilities (r, K)."""

    family: Family
    new: Floats
    probability: Floats


def draw_parameters(model: str, rng: np.random.Generator) -> dict[str, Floats]:
    """Draw parameters from the prior: `pi`, `mu` and `Sigma` (K, d, d), or `w` (K, d + 1) with zeros for class 0."""
    if model == "logistic":
        w = WEIGHTS_PRIOR.draw(1, D + 1, random_seed=rng)["w"]
        return {"w": np.vstack([np.zeros(D + 1), w])}
    if model == "softmax":
        return {"w": WEIGHTS_PRIOR.draw(3, D + 1, random_seed=rng)["w"]}
    pi = rng.dirichlet(np.ones(2))
    if model == "naive":
        drawn = NIG_PRIOR.draw(2, random_seed=rng)
        return {"pi": pi, "mu": drawn["mu"], "Sigma": drawn["sigma2"][:, :, None] * np.eye(D)}
    if model == "qda":
        return {"pi": pi} | NIW_PRIOR.draw(2, random_seed=rng)
    first = NIW_PRIOR.draw(1, random_seed=rng)["Sigma"][0]
    noise = rng.standard_normal((2, D)) @ np.linalg.cholesky(first).T
    return {"pi": pi, "mu": NIW_PRIOR.m + noise / np.sqrt(NIW_PRIOR.kappa), "Sigma": np.array([first] * 2)}


def probabilities(theta: Mapping[str, Floats], X: Floats) -> Floats:
    """Return p(y=k | x, θ) (n, K)."""
    if "w" in theta:
        return np.asarray(softmax(np.column_stack([np.ones(len(X)), X]) @ theta["w"].T, axis=1))
    centered = X[:, None, :] - theta["mu"]
    precision = np.linalg.inv(theta["Sigma"])
    distance = np.einsum("nki,kij,nkj->nk", centered, precision, centered)
    log_joint = np.log(theta["pi"]) + 0.5 * np.linalg.slogdet(precision)[1] - 0.5 * distance
    return np.asarray(np.exp(log_softmax(log_joint, axis=1)))


def draw_rows(theta: Mapping[str, Floats], n: int, rng: np.random.Generator) -> tuple[Floats, Any]:
    """Draw rows (n, d) and class codes (n,)."""
    if "w" in theta:
        X = rng.standard_normal((n, D))
        P = probabilities(theta, X)
        return X, (rng.random((n, 1)) > P.cumsum(axis=1)[:, :-1]).sum(axis=1)
    y = rng.choice(len(theta["pi"]), size=n, p=theta["pi"])
    z = rng.standard_normal((n, D, 1))
    return theta["mu"][y] + (np.linalg.cholesky(theta["Sigma"])[y] @ z)[..., 0], y


def simulate(model: str, truth: Truth, n: int, index: int) -> Simulation:
    """Draw a data set of n rows from the model, under a seed of its own."""
    rng = np.random.default_rng(seed_of("coverage", model, truth, n, index))
    fixed = truth == "fixed"
    theta = _FIXED[model] if fixed else draw_parameters(model, rng)
    K = len(next(iter(theta.values())))
    X, y = draw_rows(theta, n, rng)
    # The estimators refuse a class that they have not seen. Under the prior a class may well be absent.
    while fixed and np.bincount(y, minlength=K).min() < 2:
        X, y = draw_rows(theta, n, rng)
    data = Dataset.of_checked(X, y.astype(np.intp), ("x1", "x2"), tuple(range(K)))
    new, _ = draw_rows(theta, NEW_ROWS, rng)
    return Simulation(_family(model, data, default=fixed), new, probabilities(theta, new))


def _family(model: str, data: Dataset, *, default: bool) -> Family:
    """The model with the default prior of the estimators, or with the one that parameters were drawn from."""
    if model in _GAUSSIANS:
        own = NIG_PRIOR if model == "naive" else NIW_PRIOR
        return _GAUSSIANS[model].bind(data, None if default else own)
    features = FeatureMap.fit(data.X, data.feature_names, standardize=default)
    return (Logistic if model == "logistic" else Softmax).bind(data, WEIGHTS_PRIOR, features=features)


# ── Methods ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def fit(family: Family, method: str, seed: int) -> tuple[FittedModel, str]:
    """Fit by one method, as the estimators do, and return with it the verdict on the approximation.

    `corrected` takes the weighted draws whatever the verdict on them is: how often that is `needs-mcmc` is counted.
    """
    settings = Settings(draws=DRAWS // 2, chains=2, random_seed=seed)
    if method == "exact":
        found = family.exact()
        assert found is not None
        return found.model, "exact"
    if method == "mcmc":
        return family.sample(settings, None)[0], "sampled"
    posterior = family.laplace()
    if method == "laplace":
        return family.from_gaussian(posterior, settings), "laplace"
    trust = verify(family, posterior, settings)
    assert trust.importance is not None
    return family.from_coordinates(trust.importance.draw(4 * DRAWS, random_seed=seed)), trust.verdict


def methods_of(model: str) -> tuple[str, ...]:
    """Return the methods that the model has, without MCMC."""
    return ("exact", "laplace", "corrected") if model in _GAUSSIANS else ("laplace", "corrected")


def covered(simulation: Simulation, method: str, seed: int, probs: Sequence[float] = PROBS) -> tuple[list[float], str]:
    """Return the share of intervals that hold the truth, for each nominal probability, and the verdict.

    Counted are the intervals of the classes 1 … K−1: with two classes the other says the same.
    """
    model, verdict = fit(simulation.family, method, seed)
    truth = simulation.probability[:, 1:]
    held = [(low <= truth) & (truth <= high) for low, high in intervals(model, simulation.new, probs, seed)]
    return [float(each.mean()) for each in held], verdict


def intervals(model: FittedModel, X: Floats, probs: Sequence[float], seed: int) -> list[tuple[Floats, Floats]]:
    """Return both ends (n, K − 1) for each of `probs`: those of `predict_interval`, from one set of draws."""
    if isinstance(model, RegressionClassifier) and model.binary and model.posterior is not None:
        ends = [interval(model, X, prob=prob, size=DRAWS, random_seed=seed) for prob in probs]  # a closed form
        return [(each[:, 1:, 0], each[:, 1:, 1]) for each in ends]
    P, _ = model.probability_draws(model.draw_variables(DRAWS, random_seed=seed), X)
    tails = [(1 - prob) / 2 for prob in probs]
    low, high = (np.quantile(P[:, :, 1:], q, axis=0) for q in (tails, [1 - tail for tail in tails]))
    return list(zip(low, high, strict=True))


def run_coverage(model: str, truth: Truth, n: int, first: int, count: int, methods: Sequence[str]) -> dict[str, Any]:
    """Return the shares covered (count, probs) and the verdicts, by method, for simulations first, first + 1, …"""
    out: dict[str, Any] = {method: {"shares": [], "verdicts": []} for method in methods}
    for index in range(first, first + count):
        simulation = simulate(model, truth, n, index)
        for method in methods:
            shares, verdict = covered(simulation, method, seed_of("draws", model, truth, n, index))
            out[method]["shares"].append(shares)
            out[method]["verdicts"].append(verdict)
    return out


def summarise_coverage(model: str, truth: str, n: int, parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return coverage with its standard error for each method, over all parts of a case."""
    out = []
    for method in dict.fromkeys(method for part in parts for method in part):
        shares = np.array([row for part in parts if method in part for row in part[method]["shares"]])
        verdicts = [v for part in parts if method in part for v in part[method]["verdicts"]]
        # Rows of one simulation share its data, so the error is that of a mean over simulations.
        mean, error = shares.mean(axis=0), shares.std(axis=0, ddof=1) / np.sqrt(len(shares))
        out.append(
            {
                "model": model,
                "truth": truth,
                "n": n,
                "method": method,
                "simulations": len(shares),
                "coverage": mean.tolist(),
                "error": error.tolist(),
                "needs_mcmc": verdicts.count("needs-mcmc") / len(verdicts),
            }
        )
    return out


def miss(line: Mapping[str, Any], probs: Sequence[float]) -> Floats:
    """Return by how much each coverage is beyond chance (probs,): below 0 too narrow, above too wide, 0 within.

    Beyond chance is what Student's t would exceed once in 740 times, as a Gaussian three standard errors; some hundreds
    are looked at. The error is at least that of independent rows, for simulations that happen to agree.
    """
    p, S = np.asarray(probs), line["simulations"]
    error = np.maximum(line["error"], np.sqrt(p * (1 - p) / (S * NEW_ROWS)))
    gap = np.asarray(line["coverage"]) - p
    return np.asarray(np.where(np.abs(gap) > t.isf(0.00135, S - 1) * error, gap, 0.0))
