"""Novelty: rows that are like nothing that the model has seen.

Class probabilities compare the classes with each other, and are as sure of a row far from all of them as of one in
their midst. A generative model can say more. Per class, the probability of a point at least as far out as x:

    LDA, QDA   x | y=k ~ t_δ(m, Λ), δ = ν − d + 1:   (x − m)ᵀΛ⁻¹(x − m)/p ~ F(p, δ)
    naive      independent t's: each feature gives the normal score z with the same tail, and Σz² ~ χ²(p)
    draws      mean over 64 of the draws of the tail of χ²(p) at the squared distance

where p counts the features that were observed. For LDA, QDA and the naive model this probability is uniform for a row
of class k, whatever the amount of training data. A row is novel if it is far out for *every* class: max_k p_k is low.
A row of class y has max_k p_k ≥ p_y, so flagging below t raises false alarms at a rate of at most t. How much below
depends on how the classes overlap, and is found by simulation: the threshold is that quantile of max_k p_k among rows
of the posterior predictive for which the false-alarm rate is the chosen one. It is found for each pattern of missing
features, so that the rate holds in each.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc, fdtrc, ndtri, stdtr

from bayes_gda.checks import Floats, inside_unit
from bayes_gda.data.gaps import Mask, find_patterns
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.families.gaussian.gaps.predictive import Source, check_source, marginal, number_of_classes, thin
from bayes_gda.families.gaussian.predictive import draw_rows
from bayes_gda.linalg import solve_triangular
from bayes_gda.priors import Seed

# Rows that the threshold is found from: the false-alarm rate is then right to 4 % of itself at 1 %, and to 2 % at 5 %.
# At 10 features and 3 classes it takes LDA and QDA .2 s for each pattern of missing features.
SIMULATED = 50_000
# Draws of the parameters made at a time: at 30 features and 5 classes, 1000 take 36 MB.
BLOCK = 1000
# Draws that the distances are averaged over. Each costs as much as an exact posterior does; that these few are not the
# whole posterior does no harm to the false-alarm rate, as the threshold is found for the very same average.
DISTANCE_DRAWS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Novelty:
    """How far out n rows lie, and which of them are like no class.

    Parameters
    ----------
    probability
        (n, K) for each class, the probability of a point at least as far out; 1 where nothing was observed.
    threshold
        (n,) a row is novel if its largest probability is below; it differs between patterns of missing features.
    novel
        (n,) whether it is.
    false_alarm
        The rate at which rows of the posterior predictive are called novel.
    """

    probability: Floats
    threshold: Floats
    novel: NDArray[np.bool_]
    false_alarm: float

    @property
    def largest(self) -> Floats:
        """(n,) probability of a point as far out under the class that is nearest in this sense."""
        return np.asarray(self.probability.max(axis=1))


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


def detect_novelty(source: Source, X: ArrayLike, *, false_alarm: float = 0.01, random_seed: Seed = 0) -> Novelty:
    """Flag rows that are far out for every class, at a chosen rate of false alarms.

    Parameters
    ----------
    source
        Exact posterior, or draws of the parameters.
    X
        (n, d) features; NaN is a missing value. A row with nothing observed is never novel.
    false_alarm
        Probability, between 0 and 1, that a row of the posterior predictive is called novel.
    random_seed
        Of the simulation that sets the threshold.
    """
    false_alarm = inside_unit("false_alarm", false_alarm)
    X = check_source(source, X)
    probability, threshold = np.ones((len(X), number_of_classes(source))), np.zeros(len(X))
    largest = _largest_simulated(source, _predictive_rows(source, SIMULATED, random_seed))
    for observed, rows in find_patterns(X):
        if observed.any():
            probability[rows] = _tails(marginal(source, observed), X[np.ix_(rows, observed)])
            threshold[rows] = np.quantile(largest(observed), false_alarm)
    return Novelty(probability, threshold, probability.max(axis=1) < threshold, float(false_alarm))


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
