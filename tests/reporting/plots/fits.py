"""Data, fits and results that the plots are drawn from, made once for all test files."""

from functools import cache

import numpy as np
import xarray as xr
from scipy.special import expit, softmax

from bayes_gda.data.examples import load_example, simulate_gaussian
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.loo import Loo
from bayes_gda.evaluation.model_comparison import ModelScore, compare_scores
from bayes_gda.evaluation.performance import performance
from bayes_gda.evaluation.reliability import one_class, reliability_curve, top_label
from bayes_gda.evaluation.sensitivity import prior_sensitivity
from bayes_gda.families.gaussian.assumptions import gaussian_assumptions
from bayes_gda.families.gaussian.continuum import fit_continuum
from bayes_gda.families.gaussian.discriminant import plug_in_lda, plug_in_qda
from bayes_gda.families.gaussian.exact import lda_posterior
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.prediction.decisions import decide_with_draws, threshold_curve
from bayes_gda.priors import NIW, Normal

HOSTILE = (
    "<script>alert('$x^2$')</script>",
    "price in $ and $",
    "שלום עולם \u202emoc.elgoog",
    "😀😀 emoji 温度",
    "W" * 300,
    "W" * 299 + "V",
    "line\nbreak\ttab\x00nul",
)
COSTS = [[0, 5], [1, 0]]


@cache
def data(name):
    if name == "twelve":
        rng = np.random.default_rng(3)
        drawn = simulate_gaussian(rng.normal(size=(12, 5)) * 3, np.eye(5), counts=[30] * 12, random_seed=4)
        names = [f"a rather long class name {chr(65 + k)}" for k in range(12)]
        return Dataset(drawn.X, drawn.y, drawn.feature_names, tuple(names))
    if name == "hostile":
        rng = np.random.default_rng(5)
        d = len(HOSTILE)
        drawn = simulate_gaussian(rng.normal(size=(3, d)) * 1.5, np.eye(d), counts=[60, 50, 40], random_seed=6)
        return Dataset(drawn.X * 1e6, drawn.y, HOSTILE, ("$\\frac{", "W" * 300, "😀"))
    if name == "one":
        drawn = load_example("iris")
        return Dataset(drawn.X[:, 2:3], drawn.y, drawn.feature_names[2:3], drawn.class_names)
    return load_example(name)


@cache
def gaussians(name, shared=True):
    moments = Moments.from_arrays(data(name).X, data(name).y, data(name).K)
    return plug_in_lda(moments) if shared else plug_in_qda(moments)


def probabilities(name, shared=True):
    model = gaussians(name, shared)
    return lambda X: softmax(model.log_joint(X), axis=1)


@cache
def judged(name):
    """How well LDA tells the classes apart."""
    d = data(name)
    return performance(probabilities(name)(d.X), d.y, class_names=[str(c) for c in d.class_names])


@cache
def distances(name):
    return gaussian_assumptions(data(name), shared=False, diagonal=False, random_seed=0).distances


@cache
def logistic(name):
    """The Laplace posterior, its predictor, and draws by method."""
    d = data(name)
    phi = FeatureMap.fit(d.X, d.feature_names)(d.X)
    target = LogisticTarget(phi, d.y, Normal(scale=2.5))
    posterior = regression_laplace(target)
    rng = np.random.default_rng(0)
    laplace = posterior.draw(2000, random_seed=1)
    moved = lindley_mean(posterior, target) + laplace - posterior.mean
    # Independence Metropolis: a real chain of the posterior, with the moved Laplace draws as proposals.
    proposal = moved[rng.permutation(2000)].reshape(4, 500, -1)
    log_ratio = target.log_density(proposal.reshape(2000, -1)) - posterior.log_density(
        proposal.reshape(2000, -1) - lindley_mean(posterior, target) + posterior.mean
    )
    log_ratio = log_ratio.reshape(4, 500)
    chain = proposal.copy()
    for c in range(4):
        for t in range(1, 500):
            if np.log(rng.random()) > log_ratio[c, t] - log_ratio[c, t - 1]:
                chain[c, t], log_ratio[c, t] = chain[c, t - 1], log_ratio[c, t - 1]
    coords = coordinates(class_names=d.class_names, coefficient_names=["intercept", *d.feature_names])
    draws = {"mcmc": chain.reshape(2000, -1), "laplace": laplace, "corrected": moved}
    trees = {method: to_datatree({"w": w}, coords, chains=4) for method, w in draws.items()}
    energy = rng.normal(size=(4, 500)).cumsum(axis=1) * 0.3 + rng.normal(size=(4, 500))
    trees["mcmc"]["sample_stats"] = xr.Dataset({"energy": (("chain", "draw"), energy)})
    return phi, posterior, trees, draws["mcmc"]


@cache
def gaussian_trees(name):
    d = data(name)
    moments = Moments.from_arrays(d.X, d.y, d.K)
    posterior = lda_posterior(moments, NIW.default(moments))
    coords = coordinates(class_names=d.class_names, feature_names=d.feature_names)
    trees = {"exact": to_datatree(posterior.draw(1000, random_seed=0), coords, chains=4)}
    shifted = posterior.draw(1000, random_seed=1)
    shifted["mu"] = shifted["mu"] + 0.3 * shifted["mu"].std(axis=0)
    return trees | {"my own method": to_datatree(shifted, coords, chains=4)}


@cache
def draws_of_probability(name):
    """(S, n) draws of the probability of class 1."""
    phi, _, _, w = logistic(name)
    return expit(w[::4] @ phi.T)


@cache
def curves(name):
    P, y = probabilities(name)(data(name).X), data(name).y
    out = {c: reliability_curve(*one_class(P, y, k), resamples=99) for k, c in enumerate(data(name).class_names)}
    return out | {"top label": reliability_curve(*top_label(P, y), resamples=99)}


@cache
def thresholds():
    p = draws_of_probability("pima").mean(axis=0)
    y = data("pima").y
    lda = probabilities("pima")(data("pima").X)
    return {
        "logistic": threshold_curve(np.column_stack([1 - p, p]), y, COSTS),
        "lda": threshold_curve(lda, y, COSTS),
    }


@cache
def loo(n=532, bad=9):
    rng = np.random.default_rng(2)
    k = rng.uniform(-0.2, 0.6, n)
    k[rng.choice(n, bad, replace=False)] = rng.uniform(0.71, 1.4, bad)
    values = -rng.exponential(0.5, n)
    return Loo("conditional", values, values + 0.01, k, 0.7)


@cache
def comparison(models=4):
    rng = np.random.default_rng(8)
    base = rng.normal(size=300)
    families = ("generative", "discriminative")
    return compare_scores(
        {
            f"model {m} of the zoo": ModelScore(
                families[m % 2],
                loo=Loo("conditional", -np.exp(base + 0.1 * m * rng.normal(size=300)) - 0.02 * m, base),
            )
            for m in range(models)
        }
    )


@cache
def continuum(name, d):
    rows = data(name)
    return fit_continuum(Moments.from_arrays(rows.X[:, :d], rows.y, rows.K))


@cache
def power_scaling():
    """Draws of the regression on pima, with their log prior and log likelihood."""
    phi, _, trees, w = logistic("pima")
    tree = trees["mcmc"].copy()
    y = data("pima").y
    a = w @ phi.T
    shape = (4, 500)
    prior = (-0.5 * (w / 0.8) ** 2).sum(axis=1).reshape(shape)
    likelihood = (y * a - np.logaddexp(0, a)).sum(axis=1).reshape(shape)
    tree["log_prior"] = xr.Dataset({"w": (("chain", "draw"), prior)})
    tree["log_likelihood"] = xr.Dataset({"y": (("chain", "draw"), likelihood)})
    return tree


@cache
def sensitivity(with_rows=True):
    phi, _, _, w = logistic("pima")
    a = w @ phi.T
    rows = np.stack([-np.logaddexp(0, a[:, :40]), -np.logaddexp(0, -a[:, :40])], axis=2)
    return prior_sensitivity(
        power_scaling(), log_joint=rows if with_rows else None, class_names=data("pima").class_names
    )


def methods(name):
    phi, posterior, _, w = logistic(name)
    predictor = BinaryPredictor(phi)
    p = expit(w @ phi.T).mean(axis=0)
    return {
        "probit": predictor.gaussian(posterior, "probit"),
        "laplace": predictor.gaussian(posterior, "exact"),
        "mcmc": np.column_stack([1 - p, p]),
    }


def all_decisions(name):
    q = draws_of_probability(name)
    p = q.mean(axis=0)
    return decide_with_draws(
        np.column_stack([1 - p, p]),
        np.stack([1 - q, q], axis=2),
        COSTS,
        reject_cost=0.4,
        action_names=data(name).class_names,
    )
