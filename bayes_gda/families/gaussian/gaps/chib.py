"""The evidence of LDA and QDA on rows with missing values, from the draws of data augmentation (Chib's method).

Bayes' theorem holds at every point, so the evidence can be read off at one, (μ*, Σ*):

    log p(X, y) = log p(y) + log p(X_observed | μ*, Σ*) + log p(μ* | Σ*) + log p(Σ*)
                  − log p(μ* | Σ*, X_observed) − log p(Σ* | X_observed)

All but the last term have closed forms. That one is a mean over the posterior of what is missing, of the inverse
Wishart density that the sampler itself draws Σ from: fill in by each draw, and average the densities at Σ*. Without
gaps all terms of the mean are equal, and the evidence is exact.

References
----------
Chib (1995), Marginal likelihood from the Gibbs output, JASA 90.
"""

from collections.abc import Mapping

import numpy as np
from scipy.special import gammaln, logsumexp, multigammaln

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import PatternMoments
from bayes_gda.families.gaussian.exact import NIWPosterior
from bayes_gda.families.gaussian.gaps.augmentation import complete, inverse_wishart_of
from bayes_gda.families.gaussian.gaps.em import prior_of
from bayes_gda.priors import NIW, Dirichlet, Seed

# Numbers of completed moments held at once: 4·10⁶ doubles are 32 MB.
BLOCK = 4_000_000
# Terms of the mean that count, (Σw)²/Σw²: with fewer the largest may still be to come, and its error with it.
FEWEST_TERMS = 100


def chib_evidence(
    data: PatternMoments,
    prior: NIW,
    class_prior: Dirichlet | None,
    draws: Mapping[str, Floats],
    *,
    random_seed: Seed = 0,
) -> tuple[float, float]:
    """Return log p(X_observed, y) and its standard error; nan if too few terms of the mean count.

    Parameters
    ----------
    data
        Moments by pattern.
    prior, class_prior
        Those that the draws were made with.
    draws
        `mu` (chains, draws, K, d) and `Sigma` (chains, draws, [K,] d, d) of `augmentation.draw_posterior`.
    random_seed
        Of what is filled in.
    """
    mu, Sigma = draws["mu"], draws["Sigma"]
    shared = Sigma.ndim == mu.ndim
    begin = prior_of(data, prior, class_prior, shared=shared)
    point = Sigma.mean(axis=(0, 1))
    point = point[None] if shared else point  # (G, d, d)
    terms = _terms(data, begin, mu, Sigma, point, np.random.default_rng(random_seed))
    density, error = _log_mean(terms)
    known = _log_shares(data, class_prior) + _at_means(data, begin, point)
    known += float(inverse_wishart_density(point, begin.Psi, begin.nu).sum())
    return known - density, error


def inverse_wishart_density(Sigma: Floats, Psi: Floats, nu: Floats) -> Floats:
    """Return the log density (…) of Σ ~ IW(Ψ, ν) (…, d, d).

    ν/2 log|Ψ| − νd/2 log 2 − log Γ_d(ν/2) − (ν + d + 1)/2 log|Σ| − ½ tr ΨΣ⁻¹
    """
    d = Sigma.shape[-1]
    trace = np.trace(np.linalg.solve(Sigma, Psi), axis1=-2, axis2=-1)
    log_det = np.linalg.slogdet(Psi)[1] * nu - (nu + d + 1) * np.linalg.slogdet(Sigma)[1]
    return np.asarray(0.5 * (log_det - nu * d * np.log(2) - trace) - multigammaln(nu / 2, d))


def _terms(
    data: PatternMoments, prior: NIWPosterior, mu: Floats, Sigma: Floats, point: Floats, rng: np.random.Generator
) -> Floats:
    """log p(Σ* | what each draw fills in) (chains, draws, G)."""
    chains, draws = mu.shape[:2]
    out = np.empty((chains, draws, len(point)))
    step = max(1, BLOCK // (chains * len(data.label) * data.d**2))
    for start in range(0, draws, step):
        block = slice(start, start + step)
        mean, scatter = data.merge(*complete(data, mu[:, block], Sigma[:, block], rng))
        flat = (part.reshape(-1, *part.shape[2:]) for part in (mean, scatter))
        Psi, nu = inverse_wishart_of(prior, data.used_count, *flat)
        out[:, block] = inverse_wishart_density(point, Psi, nu).reshape(chains, -1, len(point))
    return out


def _log_mean(terms: Floats) -> tuple[float, float]:
    """log of the means of exp(terms) (chains, draws, G), summed over G, and its error by batches of √draws."""
    chains, draws, G = terms.shape
    top = terms.max(axis=(0, 1))
    w = np.exp(terms - top)
    count = w.sum(axis=(0, 1)) ** 2 / (w**2).sum(axis=(0, 1))
    if count.min() < min(FEWEST_TERMS, chains * draws):
        return np.nan, np.nan
    length = max(1, int(np.sqrt(draws)))
    batches = w[:, : draws // length * length].reshape(-1, length, G).mean(axis=1)
    spread = batches.std(axis=0, ddof=1) / np.sqrt(len(batches)) if len(batches) > 1 else np.full(G, np.nan)
    relative = spread / w.mean(axis=(0, 1))
    value = (logsumexp(terms, axis=(0, 1)) - np.log(chains * draws)).sum()
    return float(value), float(np.sqrt((relative**2).sum()))


def _at_means(data: PatternMoments, prior: NIWPosterior, Sigma: Floats) -> float:
    """log p(X_observed | Σ*), by the same theorem at the conditional mean μ* of the class means."""
    Sigma = np.broadcast_to(Sigma, (data.K, data.d, data.d))
    Q, h = data.mean_information(Sigma)
    P = prior.kappa[:, None, None] * np.linalg.inv(Sigma)
    mu = np.linalg.solve(P + Q, (h + (P @ prior.m[..., None])[..., 0])[..., None])[..., 0]
    likelihood = float(data.log_likelihood(np.ones(data.K), mu, Sigma))
    delta = mu - prior.m
    before = 0.5 * (np.linalg.slogdet(P)[1] - np.einsum("ki,kij,kj->k", delta, P, delta))
    after = 0.5 * np.linalg.slogdet(P + Q)[1]  # the density at its own centre; (2π)^{d/2} cancels
    return likelihood + float((before - after).sum())


def _log_shares(data: PatternMoments, class_prior: Dirichlet | None) -> float:
    """log p(y) of the class counts."""
    alpha = (class_prior or Dirichlet()).vector(data.K)
    total = alpha + data.class_count
    return float(gammaln(total).sum() - gammaln(alpha).sum() + gammaln(alpha.sum()) - gammaln(total.sum()))
