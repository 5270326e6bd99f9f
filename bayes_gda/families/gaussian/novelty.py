"""Novelty: rows that are like nothing that the model has seen.

Class probabilities compare the classes with each other, and are as sure of a row far from all of them as of one in
their midst. A generative model can say more. Per class, the probability of a point at least as far out as x:

    LDA, QDA   x | y=k ~ t_δ(m, Λ), δ = ν − d + 1:   (x − m)ᵀΛ⁻¹(x − m)/p ~ F(p, δ)
    naive      independent t's: each feature gives the normal score z with the same tail, and Σz² ~ χ²(p)
    draws      mean over 64 of the draws of the tail of χ²(p) at the squared distance

where p counts the features that were observed. A row is novel if it is far out for *every* class: max_k p_k is low.
A row of class y has max_k p_k ≥ p_y; how much more depends on how the classes overlap. The threshold is the quantile of
max_k p_k at which rows of the classes are flagged at the chosen rate, found by simulation for each pattern of missing
features.

What the rate means. With an exact posterior and its prior, training rows are drawn anew from the estimated classes, the
model is fitted to each such set as it was to the rows, its default prior included, and new rows are judged by the
refits (a parametric bootstrap). The rate then is that of new rows at *fixed* true parameters, over training sets of
this size. What remains is that the estimated classes stand for the true ones, and the noise of the simulation: over 3
classes of 12 rows in 5 and of 15 rows in 10 features, equicorrelated at .5, near and far apart, alarms came at .5 to
1.2 times the nominal 1 %, and at .75 to 1.15 times the nominal 5 and 10 % (`tests/proof/priors_study.py`). For draws,
or if the prior is not given, the rate is that of rows of the posterior predictive: it holds on average over the
posterior.

What is not guaranteed. The classes must be Gaussian: features with t₄ tails raise alarms at a rate of .04 at a nominal
.01 (all three models, 30 rows a class, 5 features). The rate is an average over training sets, not that of the one set
at hand, and over the classes in their shares, not that of each class. With other shares than in training it differs.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import chdtrc, fdtrc, ndtri, stdtr

from bayes_gda.checks import Floats, inside_unit
from bayes_gda.data.gaps import Mask, find_patterns
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.exact import (
    NIGPosterior,
    NIWPosterior,
    lda_posterior,
    naive_posterior,
    qda_posterior,
)
from bayes_gda.families.gaussian.gaps.predictive import Source, check_source, marginal, number_of_classes, thin
from bayes_gda.families.gaussian.predictive import draw_rows
from bayes_gda.linalg import solve_triangular
from bayes_gda.prediction.novelty import Novelty
from bayes_gda.priors import NIG, NIW, Seed
from bayes_gda.priors.distributions import DEFAULT_KAPPA

# Rows that the threshold is found from: the false-alarm rate is then right to 4 % of itself at 1 %, and to 2 % at 5 %.
# At 10 features and 3 classes it takes LDA and QDA .2 s for each pattern of missing features.
SIMULATED = 50_000
# What a posterior started from, or how that was made from the moments of the rows.
type Prior = NIW | NIG | Callable[[Moments], NIW | NIG]
# Training sets that are drawn anew, and rows that each judges: the rate is then right to some 8 % of itself at 1 %.
# With 10 features and 3 classes they take .3 s, which grows with the patterns of missing features.
REFITS = 100
REFIT_ROWS = 200
# Draws of the parameters made at a time: at 30 features and 5 classes, 1000 take 36 MB.
BLOCK = 1000
# Draws that the distances are averaged over. Each costs as much as an exact posterior does; that these few are not the
# whole posterior does no harm to the false-alarm rate, as the threshold is found for the very same average.
DISTANCE_DRAWS = 64


def tail_probabilities(source: Source, X: ArrayLike) -> Floats:
    """Return the probability of a point at least as far out as each row under each class's predictive (n, K).

    Parameters
    ----------
    source
        Exact posterior, or draws of the parameters.
    X
        (n, d) features; NaN is a missing value, and is left out of the distance.
    """
    X = check_source(source, X)
    out = np.ones((len(X), number_of_classes(source)))
    for observed, rows in find_patterns(X):
        if observed.any():
            out[rows] = _tails(marginal(source, observed), X[np.ix_(rows, observed)])
    return out


def detect_novelty(
    source: Source,
    X: ArrayLike,
    *,
    false_alarm: float = 0.01,
    prior: Prior | None = None,
    random_seed: Seed = 0,
) -> Novelty:
    """Flag rows that are far out for every class, at a chosen rate of false alarms.

    Parameters
    ----------
    source
        Exact posterior, or draws of the parameters.
    X
        (n, d) features; NaN is a missing value. A row with nothing observed is never novel.
    false_alarm
        Probability, between 0 and 1, that a new row of the classes is called novel.
    prior
        What an exact posterior started from: a prior, or the function that made it from the moments of the rows, such
        as `NIW.default`. With it the threshold is for rows of fixed classes; without it, or for draws, it is for rows
        of the posterior predictive.
    random_seed
        Of the simulation that sets the threshold.
    """
    false_alarm = inside_unit("false_alarm", false_alarm)
    X = check_source(source, X)
    probability, threshold = np.ones((len(X), number_of_classes(source))), np.zeros(len(X))
    rng = np.random.default_rng(random_seed)
    if prior is None or isinstance(source, Mapping):
        largest = _largest_simulated(source, _predictive_rows(source, SIMULATED, rng))
    else:
        largest = _largest_refitted(source, prior, rng)
    for observed, rows in find_patterns(X):
        if observed.any():
            probability[rows] = _tails(marginal(source, observed), X[np.ix_(rows, observed)])
            threshold[rows] = np.quantile(largest(observed), false_alarm)
    return Novelty(probability, threshold, probability.max(axis=1) < threshold, float(false_alarm))


def _largest_refitted(
    source: NIWPosterior | NIGPosterior, prior: Prior, rng: np.random.Generator
) -> Callable[[Mask], Floats]:
    """Return a function from the observed features to the largest tail probability of rows of known classes (size,).

    The classes have the posterior means E[π], E[μ] and E[Σ⁻¹]⁻¹ = Ψ/ν. Training rows of the same number are drawn from
    them and learnt as the rows were, REFITS times; each of these posteriors judges REFIT_ROWS new rows.
    """
    K, d = source.m.shape
    if isinstance(source, NIWPosterior):
        Sigma, kappa = source.Psi / source.nu[:, None, None], source.kappa
    else:
        Sigma, kappa = (source.b / source.a)[:, :, None] * np.eye(d), source.kappa.max(axis=1)
    count = np.maximum(kappa - (DEFAULT_KAPPA if callable(prior) else float(np.max(prior.kappa))), 0.0)
    count = np.where(count < 1e-9, 0.0, count)  # of no rows, up to rounding
    L = np.broadcast_to(np.linalg.cholesky(Sigma), (K, d, d))
    error = L / np.sqrt(np.maximum(count, 1.0))[:, None, None]
    judged = []
    for _ in range(REFITS):
        mean = source.m + np.einsum("kij,kj->ki", error, rng.standard_normal((K, d)))
        scatter = np.stack([_draw_wishart(L[k], count[k] - 1, rng) for k in range(K)])
        moments = Moments(count, mean, scatter)
        y = rng.choice(K, size=REFIT_ROWS, p=source.alpha / source.alpha.sum())
        rows = source.m[y] + np.einsum("nij,nj->ni", L[y], rng.standard_normal((len(y), d)))
        judged.append((_learn(source, prior(moments) if callable(prior) else prior, moments), rows))
    return lambda observed: np.concatenate(
        [_tails(marginal(posterior, observed), rows[:, observed]).max(axis=1) for posterior, rows in judged]
    )


def _learn(like: NIWPosterior | NIGPosterior, prior: NIW | NIG, moments: Moments) -> NIWPosterior | NIGPosterior:
    """Return the posterior of moments in the same model."""
    if isinstance(prior, NIG):
        return naive_posterior(moments, prior)
    assert isinstance(like, NIWPosterior)
    return (lda_posterior if like.shared else qda_posterior)(moments, prior)


def _draw_wishart(L: Floats, freedom: float, rng: np.random.Generator) -> Floats:
    """Draw W ~ Wishart(LLᵀ, freedom), singular if that is below d: W = LA(LA)ᵀ, A lower triangular (Bartlett)."""
    d = len(L)
    left = np.maximum(freedom - np.arange(d), 0.0)  # none for a column beyond the degrees of freedom
    A = np.tril(rng.standard_normal((d, d)), -1) * (left > 0)
    A[np.arange(d), np.arange(d)] = np.sqrt(2 * rng.gamma(left / 2))
    root = L @ A
    return np.asarray(root @ root.T)


def _tails(source: Source, X: Floats) -> Floats:
    """Tail probabilities (n, K) of complete rows X (n, p)."""
    p = X.shape[1]
    if isinstance(source, NIWPosterior):
        dof = np.broadcast_to(source.nu - p + 1, source.kappa.shape)
        q = _squares(X, source.m, source.Psi)
        # Λ = Ψ (κ + 1)/(κ δ), so that the F statistic is q δ κ/((κ + 1) p).
        return np.asarray(fdtrc(p, dof, q * dof * source.kappa / (source.kappa + 1) / p))
    if isinstance(source, NIGPosterior):
        return np.asarray(chdtrc(p, _squared_scores(source, X).sum(axis=2)))
    source = thin(source, DISTANCE_DRAWS)
    S, K = source["pi"].shape
    total = np.zeros((len(X), K))
    for s in range(S):
        if "sigma2" in source:
            q = ((X[:, None] - source["mu"][s]) ** 2 / source["sigma2"][s]).sum(axis=2)
        else:
            Sigma = source["Sigma"][s]
            q = _squares(X, source["mu"][s], Sigma if Sigma.ndim == 3 else Sigma[None])
        total += chdtrc(p, q)
    return total / S


def _largest_simulated(source: Source, X: Floats) -> Callable[[Mask], Floats]:
    """Return a function from the observed features to the largest tail probability of each simulated row (size,)."""
    if isinstance(source, NIGPosterior):
        scores = _squared_scores(source, X)  # the costly part, which all patterns share
        # The nearest class has the largest tail, as all have p degrees of freedom.
        return lambda observed: np.asarray(chdtrc(observed.sum(), scores[:, :, observed].sum(axis=2).min(axis=1)))
    return lambda observed: np.asarray(_tails(marginal(source, observed), X[:, observed]).max(axis=1))


def _squared_scores(source: NIGPosterior, X: Floats) -> Floats:
    """Squares z² (n, K, p) of the normal scores that have the same tail as each feature's Student-t."""
    scale = np.sqrt(source.b * (source.kappa + 1) / (source.a * source.kappa))
    # In the lower tail, where probabilities keep their digits.
    z = ndtri(stdtr(2 * source.a, -np.abs(X[:, None] - source.m) / scale))
    return np.asarray(z**2)


def _squares(X: Floats, m: Floats, V: Floats) -> Floats:
    """(x − m_k)ᵀV_k⁻¹(x − m_k) (n, K), with V (K, p, p), or (1, p, p) for all."""
    L = np.broadcast_to(np.linalg.cholesky(V), (len(m), *V.shape[1:]))
    z = [solve_triangular(L[k], (X - m[k]).T) for k in range(len(m))]
    return np.stack([np.einsum("dn,dn->n", part, part) for part in z], axis=1)


def _predictive_rows(source: Source, size: int, random_seed: Seed) -> Floats:
    """Draw rows (size, d) from the posterior predictive, each from parameters of its own."""
    rng = np.random.default_rng(random_seed)
    rows = []
    for start in range(0, size, BLOCK):
        n = min(BLOCK, size - start)
        if isinstance(source, Mapping):
            chosen = rng.integers(len(source["pi"]), size=n)
            draws = {name: np.asarray(value)[chosen] for name, value in source.items()}
        else:
            draws = source.draw(n, random_seed=rng)
        rows.append(draw_rows(draws, random_seed=rng)[0])
    return np.concatenate(rows)
