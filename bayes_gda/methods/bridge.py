"""The log evidence from posterior draws, by bridge sampling.

With draws θ of the posterior p(θ)/r, r the evidence, and draws ϑ of a proposal g that has a density,

    r = E_g[h(ϑ) p(ϑ)] / E_post[h(θ) g(θ)]        for any bridge h

The bridge of least error is h ∝ 1/(s₁ p + s₂ r g), with s₁ and s₂ the shares of the two kinds of draws (Meng & Wong
1996). It contains r, and is usually iterated. With l = log p − log g and c = log r + log(s₂/s₁) the equation is

    mean_post σ(c − l)/s₂ = mean_g σ(l − c)/s₁

whose left side rises with c while the right side falls: the fixed point of the iteration is its only root, and a
bracketing root finder cannot miss it.

The proposal is the skewed t of `proposal`, fitted to the first half of each chain; the second half makes the bridge
(draws that a proposal was fitted to lie too close to it, Overstall & Forster 2010). The standard error is that of
Frühwirth-Schnatter (2004), in which autocorrelated draws count for what they are worth. Like every method that works
from draws, it does not see a mode that no draw came near.

References
----------
Meng & Wong (1996), Simulating ratios of normalizing constants via a simple identity, Statistica Sinica 6.
Frühwirth-Schnatter (2004), Estimating marginal likelihoods for mixture and Markov switching models, Econometrics J. 7.
Gronau et al. (2017), A tutorial on bridge sampling, J. Mathematical Psychology 81.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logsumexp

from bayes_gda.checks import Floats, finite
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.methods.importance.proposal import SplitT
from bayes_gda.priors import Seed

# The proposal's covariance has to be well determined: its error costs overlap, and below this it may be singular.
DRAWS_PER_DIM = 2
# ESS takes the variance of each chain, and the lag-one pair of its autocorrelation.
FEWEST_DRAWS = 4
# Below this the draws hardly meet, and the estimate and its error both hang on a few of them.
LEAST_OVERLAP = 1e-3


@dataclass(frozen=True, slots=True)
class BridgeEvidence:
    """A log evidence by bridge sampling.

    Parameters
    ----------
    log_evidence, log_evidence_error
        log r, and its standard error: the relative root mean squared error of r.
    overlap
        ∫ pg/(s₁p + s₂g), p normalised: 1 if the proposal is the posterior, 0 if they do not meet.
    effective_draws
        What the posterior draws that made the bridge are worth, of those there were.
    """

    log_evidence: float
    log_evidence_error: float
    overlap: float
    effective_draws: float


def bridge_log_evidence(
    log_density: Callable[[Floats], Floats],
    draws: ArrayLike,
    *,
    chains: int = 1,
    random_seed: Seed = 0,
) -> BridgeEvidence:
    """Estimate the log evidence log ∫ p(θ) dθ from draws of the posterior.

    Parameters
    ----------
    log_density
        log p (S,) of points (S, dim): likelihood times prior with all their constants, in unconstrained coordinates
        with the Jacobian. It is taken of as many points as there are draws. −inf and nan count as zero density.
    draws
        (S, dim) posterior draws in these coordinates, one chain after the other.
    chains
        Number of chains, of equal lengths; 1 for independent draws.
    random_seed
        Of the proposal's draws.
    """
    fit, theta = _halves(draws, chains)
    try:
        proposal = SplitT.from_weighted(fit, np.full(len(fit), 1 / len(fit)))
    except ConvergenceError:
        raise DataError(
            "`draws` must vary in every direction; their covariance is singular. Use unconstrained coordinates, "
            "without redundant ones."
        ) from None
    drawn, log_g = proposal.draw(len(theta), np.random.default_rng(random_seed))
    # log p − log g: at the posterior's draws, and at the proposal's
    l_post = log_density(theta) - proposal.log_density(theta)
    l_prop = log_density(drawn) - log_g
    if not np.isfinite(l_post).all():
        bad = int(np.flatnonzero(~np.isfinite(l_post))[0])
        raise DataError(
            f"`log_density` must be finite at posterior draws; got {l_post[bad]} at one of them. "
            "Check that `draws` are in its unconstrained coordinates."
        )
    l_prop = np.where(np.isnan(l_prop), -np.inf, l_prop)
    if not np.isfinite(l_prop).any():
        raise ConvergenceError("The density is zero at every draw of the proposal. Check `log_density` and `draws`.")

    n, m = effective_size(l_post.reshape(chains, -1)), len(drawn)
    s1, s2 = n / (n + m), m / (n + m)
    c = _root(l_post, l_prop, float(np.log(s1) - np.log(s2)))
    log_r = c - np.log(s2) + np.log(s1)
    # f₁ = p/(s₁p + s₂g) at the proposal's draws, f₂ = g/(s₁p + s₂g) at the posterior's; both have the mean `overlap`.
    f1, f2 = expit(l_prop - c) / s1, expit(c - l_post) / s2
    overlap = float(f2.mean())
    if overlap < LEAST_OVERLAP:
        raise ConvergenceError(
            f"Proposal and posterior hardly overlap ({overlap:.1g}), so the evidence is not known. "
            "Use more draws, or a parametrisation in which the posterior is closer to normal.",
            partial=float(log_r),
        )
    worth = effective_size(f2.reshape(chains, -1))
    relative = f1.var() / (f1.mean() ** 2 * m) + f2.var() / (overlap**2 * worth)
    return BridgeEvidence(float(log_r), float(np.sqrt(relative)), overlap, worth)


def effective_size(x: Floats) -> float:
    """Return the effective number of draws for the mean of x (chains, draws), at most their number.

        chains · draws / τ,   τ = −1 + 2 Σ_t (ρ_2t + ρ_2t+1)

    ρ is the autocorrelation within and between chains (Vehtari et al. 2021), and the sum is Geyer's (1992): as far as
    pairs stay positive, and made monotone. ArviZ has the same (to which the tests hold this) but is slow to import.
    """
    # Split chains, so that a drift within them shows.
    chains, length = 2 * len(x), x.shape[1] // 2
    x = np.vstack([x[:, :length], x[:, -length:]])
    size = chains * length
    centered = x - x.mean(axis=1, keepdims=True)
    transform = np.fft.rfft(centered, n=2 * length, axis=1)
    covariance = np.fft.irfft(np.abs(transform) ** 2, n=2 * length, axis=1)[:, :length] / length
    within = covariance[:, 0].mean() * length / (length - 1)
    total = within * (length - 1) / length + x.mean(axis=1).var(ddof=1)
    if not total > 0:
        return float(size)  # constant: the mean has no error
    rho = 1 - (within - covariance.mean(axis=0) * length / (length - 1)) / total
    rho[0] = 1.0
    pairs = rho[: length // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = np.minimum.accumulate(pairs[: negative[0] if len(negative) else len(pairs)])
    return float(min(size / max(-1 + 2 * pairs.sum(), 1.0), size))


def _halves(draws: ArrayLike, chains: int) -> tuple[Floats, Floats]:
    """Return the first and the second half of every chain, chains one after the other."""
    w = finite("draws", draws, error=DataError)
    if w.ndim != 2 or 0 in w.shape:
        raise DataError(f"`draws` must be (S, dim); got shape {w.shape}. Use draws[:, None] for one dimension.")
    if chains < 1 or len(w) % chains:
        raise DataError(f"`chains` must divide the {len(w)} draws into equal parts; got {chains}.")
    S, dim = w.shape
    half = S // chains // 2
    if half < FEWEST_DRAWS or half * chains < DRAWS_PER_DIM * dim:
        needed = 2 * max(FEWEST_DRAWS * chains, DRAWS_PER_DIM * dim)
        raise DataError(f"`draws` must be at least {needed} in {dim} dimensions; got {S}. Sample more.")
    by_chain = w.reshape(chains, -1, dim)
    return by_chain[:, :half].reshape(-1, dim), by_chain[:, -half:].reshape(-1, dim)


def _root(l_post: Floats, l_prop: Floats, log_odds: float) -> float:
    """Return c, where mean_post σ(c − l)/s₂ = mean_g σ(l − c)/s₁, with `log_odds` = log(s₁/s₂)."""

    def gap(c: float) -> float:
        # In logs: where the two kinds of draws hardly meet, σ itself underflows on both sides.
        left, right = logsumexp(log_expit(c - l_post)), logsumexp(log_expit(l_prop - c))
        return float(left - right + log_odds)

    center, step = float(np.median(l_post)), 1.0
    while gap(center - step) > 0 or gap(center + step) < 0:
        step *= 2  # the gap runs from −∞ to ∞
    return float(brentq(gap, center - step, center + step, xtol=1e-12))
