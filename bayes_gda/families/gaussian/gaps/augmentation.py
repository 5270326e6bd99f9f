"""Posterior of LDA and QDA on rows with missing values, by data augmentation.

A Gibbs sampler in two steps. Given Σ, draw the means and what is missing together: first the means, whose posterior
given Σ and what was observed is Gaussian in closed form, then what is missing. Then draw Σ from the inverse Wishart of
the completed data, its means integrated out. Were the means drawn from the completed data instead, a mean of which
nothing was observed would follow its own imputations, and hardly move.

The second step needs nothing of the data but their moments, so the first draws *moments*, not rows. In a group of n
rows with mean x̄ and scatter RRᵀ of what was observed, R of r columns, and with A and C = LLᵀ of `patterns`, the
moments of the completed rows x_i = μ + A(x_i − μ) + Lε_i, ε_i ~ N(0, I), are distributed as

    mean     μ + A(x̄ − μ) + L z/√n                    z ~ N(0, I)
    scatter  FFᵀ + LTTᵀLᵀ,   F = AR + LZᵀ             Z of r rows ~ N(0, I),  TTᵀ ~ Wishart(n − 1 − r, I)

since the noise about its mean, split along the r directions that the data take up and across them, is independent.
So a sweep costs as much for a million rows as for a hundred with the same patterns.

A feature that was never observed (QDA: in a class) would follow its own imputations too. But what was observed says
nothing of how it depends on the others: that part of each draw is drawn afresh from the prior, and is exact.

References
----------
Tanner & Wong (1987), The calculation of posterior distributions by data augmentation, JASA 82.
Schafer (1997), Analysis of Incomplete Multivariate Data, chapter 5.
"""

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import PatternMoments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import NIWPosterior, inverse_wishart_cholesky
from bayes_gda.families.gaussian.gaps.em import maximum_posterior, prior_of
from bayes_gda.linalg import one_blas_thread
from bayes_gda.priors import NIW, Dirichlet, Seed


def draw_posterior(
    data: PatternMoments,
    prior: NIW,
    class_prior: Dirichlet | None = None,
    *,
    shared: bool,
    draws: int = 1000,
    warmup: int = 200,
    chains: int = 4,
    random_seed: Seed = None,
) -> dict[str, Floats]:
    """Draw from the posterior of LDA (`shared` covariance) or QDA given what was observed.

    Parameters
    ----------
    data
        Moments by pattern.
    prior, class_prior
        Of means and covariances; of the class shares, by default uniform.
    shared
        Whether all classes have one covariance.
    draws, warmup, chains
        Draws kept of each chain, sweeps before them, and chains. A chain starts near the mode with its scale off by
        a factor of up to e, and forgets it about as fast as EM converges.
    random_seed
        The same one gives the same draws.

    Returns
    -------
    `pi` (chains, draws, K), `mu` (chains, draws, K, d) and `Sigma` (chains, draws, [K,] d, d).
    """
    for name, value, least in (("draws", draws, 1), ("warmup", warmup, 0), ("chains", chains, 1)):
        if value < least:
            raise DataError(f"`{name}` must be at least {least}; got {value}.")
    begin = prior_of(data, prior, class_prior, shared=shared)
    rng = np.random.default_rng(random_seed)
    # Only a place to begin: a rough mode will do.
    start = maximum_posterior(data, prior, class_prior, shared=shared, tolerance=1e-2).Sigma
    start = start[None] if shared else start
    Sigma = np.exp(rng.uniform(-1, 1, size=(chains, 1, 1, 1))) * start
    mu_kept, Sigma_kept = np.empty((draws, chains, data.K, data.d)), np.empty((draws, *Sigma.shape))
    with one_blas_thread():  # thousands of small products
        for sweep in range(-warmup, draws):
            each = np.broadcast_to(Sigma, (chains, data.K, data.d, data.d))
            mu = draw_means(data, begin, each, rng)
            if sweep >= 0:
                mu_kept[sweep], Sigma_kept[sweep] = mu, Sigma
            Sigma = draw_covariances(begin, data.used_count, *data.merge(*complete(data, mu, each, rng)), rng)
    pi = rng.dirichlet(begin.alpha + data.used_count, size=(chains, draws))
    mu, Sigma = np.swapaxes(mu_kept, 0, 1), np.swapaxes(Sigma_kept, 0, 1)
    _redraw_unseen(data, begin, mu, Sigma, rng)
    return {"pi": pi, "mu": mu, "Sigma": Sigma[:, :, 0] if shared else Sigma}


def draw_means(data: PatternMoments, prior: NIWPosterior, Sigma: Floats, rng: np.random.Generator) -> Floats:
    """Draw μ (…, K, d) given Σ (…, K, d, d) and what was observed: the precision is κΣ⁻¹ + Q, with Q of `patterns`."""
    Q, h = data.mean_information(Sigma)
    P = prior.kappa[:, None, None] * np.linalg.inv(Sigma)
    L = np.linalg.cholesky(P + Q)
    # Λ = LLᵀ, mean Λ⁻¹(h + Pm); μ = L⁻ᵀ(L⁻¹(h + Pm) + z)
    u = np.linalg.solve(L, (h + (P @ prior.m[..., None])[..., 0])[..., None]) + rng.standard_normal((*h.shape, 1))
    return np.asarray(np.linalg.solve(np.swapaxes(L, -1, -2), u)[..., 0])


def draw_covariances(prior: NIWPosterior, n: Floats, mean: Floats, scatter: Floats, rng: np.random.Generator) -> Floats:
    """Draw Σ (chains, G, d, d) from the inverse Wishart of `exact`, of the completed moments of all chains."""
    Psi, nu = inverse_wishart_of(prior, n, mean, scatter)
    L = inverse_wishart_cholesky(Psi.reshape(-1, *Psi.shape[2:]), nu.ravel(), 1, rng)[0].reshape(Psi.shape)
    return np.asarray(L @ np.swapaxes(L, -1, -2))


def inverse_wishart_of(prior: NIWPosterior, n: Floats, mean: Floats, scatter: Floats) -> tuple[Floats, Floats]:
    """Return Ψ (chains, G, d, d) and ν (chains, G) of Σ given completed moments, the means integrated out."""
    delta = mean - prior.m
    weight = prior.kappa / (prior.kappa + n) * n
    gain = scatter + weight[:, None, None] * delta[..., :, None] * delta[..., None, :]
    gain, rows = (gain.sum(axis=1, keepdims=True), n.sum(keepdims=True)) if prior.shared else (gain, n)
    Psi = prior.Psi + gain
    return Psi, np.broadcast_to(prior.nu + rows, Psi.shape[:2])


def complete(data: PatternMoments, mu: Floats, Sigma: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw the mean (…, G, d) and the scatter (…, G, d, d) of each group's rows, with what is missing drawn in.

    Parameters
    ----------
    data
        Moments by pattern.
    mu, Sigma
        (…, K, d) means and (…, [K,] d, d) covariances.
    rng
        Where the randomness comes from.
    """
    d = data.d
    mu, Sigma = data.in_groups(mu, Sigma)
    A, C = data.regress(Sigma)
    gap = ~data.observed
    # Ones fill up C where nothing is unknown; their rows of the factor are struck out again.
    L = np.linalg.cholesky(C + np.eye(d) * data.observed[:, None, :]) * gap[:, :, None]
    z = rng.standard_normal(mu.shape) / np.sqrt(data.count)[:, None]
    mean = mu + (A @ (data.mean - mu)[..., None] + L @ z[..., None])[..., 0]
    Z = rng.standard_normal(L.shape) * (np.arange(d) < data.rank[:, None])[:, None, :]
    F = A @ data.root + L @ Z
    H = L @ _bartlett(data.count - 1 - data.rank, L.shape, rng)
    return mean, F @ np.swapaxes(F, -1, -2) + H @ np.swapaxes(H, -1, -2)


def _redraw_unseen(
    data: PatternMoments, prior: NIWPosterior, mu: Floats, Sigma: Floats, rng: np.random.Generator
) -> None:
    """Draw what concerns features u never observed from the prior, given that of the others o, in place.

    With Σ ~ IW(Ψ, ν), Σ_oo is independent of B = Σ_oo⁻¹Σ_ou and of C = Σ_uu − BᵀΣ_ou ~ IW(Ψ_uu − Ψ_uoΨ_oo⁻¹Ψ_ou, ν).
    B is normal about Ψ_oo⁻¹Ψ_ou, rows with covariance Ψ_oo⁻¹, columns with C. μ_u ~ N(m_u + Bᵀ(μ_o − m_o), C/κ).

    Parameters
    ----------
    data, prior
        Moments by pattern, and the state before them.
    mu, Sigma
        (chains, draws, K, d) and (chains, draws, G, d, d), changed.
    rng
        Where the randomness comes from.
    """
    size = mu.shape[:2]
    for g in range(Sigma.shape[2]):
        classes = np.arange(data.K) if prior.shared else np.array([g])
        seen = data.values[classes].sum(axis=0) > 0
        o, u = np.flatnonzero(seen), np.flatnonzero(~seen)
        if not len(u) or not len(o):  # with nothing at all the sweeps draw from the prior already
            continue
        inverse = np.linalg.inv(prior.Psi[g][np.ix_(o, o)])
        center = inverse @ prior.Psi[g][np.ix_(o, u)]
        rest = prior.Psi[g][np.ix_(u, u)] - prior.Psi[g][np.ix_(u, o)] @ center
        L = inverse_wishart_cholesky(rest[None], prior.nu[g : g + 1], size[0] * size[1], rng)[:, 0]
        L = L.reshape(*size, len(u), len(u))
        Lt = np.swapaxes(L, -1, -2)
        B = center + np.linalg.cholesky(inverse) @ rng.standard_normal((*size, len(o), len(u))) @ Lt
        Bt = np.swapaxes(B, -1, -2)
        cross = Sigma[:, :, g][..., o[:, None], o] @ B
        Sigma[:, :, g, o[:, None], u] = cross
        Sigma[:, :, g, u[:, None], o] = np.swapaxes(cross, -1, -2)
        Sigma[:, :, g, u[:, None], u] = L @ Lt + Bt @ cross
        for k in classes:
            z = L @ rng.standard_normal((*size, len(u), 1)) / np.sqrt(prior.kappa[k])
            shift = Bt @ (mu[:, :, k][..., o] - prior.m[k, o])[..., None]
            mu[:, :, k, u] = prior.m[k, u] + (shift + z)[..., 0]


def _bartlett(df: Floats, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Draw T lower triangular (…, G, d, d), TTᵀ ~ Wishart(df, I), singular where df < d (Bartlett).

    T_jj² ~ χ²(df − j + 1) and T_ij ~ N(0, 1) below it, for the first df columns; the others are zero.
    """
    d = shape[-1]
    left = np.maximum(df[:, None] - np.arange(d), 0.0)  # (G, d), zero in the columns that there are none of
    T = np.tril(rng.standard_normal(shape), -1)
    # χ²(f) is twice a gamma(f/2), which NumPy takes to be zero at f = 0.
    T[..., np.arange(d), np.arange(d)] = np.sqrt(2 * rng.standard_gamma(left / 2, size=shape[:-1]))
    return np.asarray(T * (left > 0)[:, None, :])
