"""Predictive distributions of the class of a new row.

A generative model's predictive averages the joint *densities* over the posterior and then normalises:

    p(y=k | x, data) ∝ ∫ p(x, y=k | θ) p(θ | data) dθ

Averaging p(y=k | x, θ) instead would ignore that x itself says something about θ, and is another, wrong number.
For conjugate models the integral is E[π_k] times a Student-t density (`log_joint` of `NIWPosterior` and
`NIGPosterior`); for draws from any sampler it is a mean over draws, taken here.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.linalg import DRAWN, drawn_root, for_blocks, one_blas_thread, regular, solve_triangular, wide_blocks
from bayes_gda.priors import Seed

# Numbers in the matrix that turns rows into log odds of all draws: 160 MB.
ODDS_ELEMENTS = 20_000_000


def log_joint_per_draw(draws: Mapping[str, Floats], X: Floats) -> Floats:
    """Return log p(x, y=k | θ_s) (S, n, K) for each of S draws; memory beside the answer is a few blocks.

    Parameters
    ----------
    draws
        `pi` (S, K), `mu` (S, K, d) and `Sigma` (S, [K,] d, d) or `sigma2` (S, K, d).
    X
        (n, d) features.
    """
    (S, K, d), n = draws["mu"].shape, len(X)
    out = np.empty((S, n, K))
    # About a centre within the draws, so that a large offset of the features does not eat their digits.
    center = draws["mu"].mean(axis=0) if S else np.zeros((K, d))
    if "sigma2" in draws:
        squares, width = _diagonal_squares(draws, X, center), n * K
    else:
        squares, width = _full_squares(draws, X, center.mean(axis=0)), n * K * d
    with np.errstate(divide="ignore"):  # of a class that a draw takes for impossible
        log_pi = np.log(draws["pi"]) - 0.5 * d * np.log(2 * np.pi)

    def densities(block: slice) -> None:
        q, log_det = squares(block)
        q *= -0.5
        q += (log_pi[block] - log_det)[..., None]
        out[block] = q.swapaxes(1, 2)

    for_blocks(densities, S, max(1, width))
    return out


# From some draws to |L⁻¹(x − μ)|² (S, K, n) and log|L| (S, K).
type _Squares = Callable[[slice], tuple[Floats, Floats]]


def _full_squares(draws: Mapping[str, Floats], X: Floats, center: Floats) -> _Squares:
    mu, Sigma = draws["mu"] - center, draws["Sigma"] if draws["Sigma"].ndim == 4 else draws["Sigma"][:, None]
    columns = (X - center).T

    def squares(block: slice) -> tuple[Floats, Floats]:
        L = drawn_root(Sigma[block])
        # z = L⁻¹(x − μ): one inverse a draw serves all rows, and all draws of a block, as one matrix product.
        white = np.linalg.inv(L)
        S, G, d = white.shape[:3]
        z = (white.reshape(-1, d) @ columns).reshape(S, G, d, -1) - white @ mu[block, ..., None]
        z *= z
        return z.sum(axis=2), np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)

    return squares


def _diagonal_squares(draws: Mapping[str, Floats], X: Floats, center: Floats) -> _Squares:
    """Σ_j τ_j(x_j − μ_j)², multiplied out for τ = 1/σ², u = x − c and δ = μ − c: τ·u² − 2τδ·u + τ·δ²."""
    u = X - center[:, None]
    terms = np.concatenate([u * u, u], axis=2).swapaxes(1, 2)  # (K, 2d, n)
    delta, sigma2 = draws["mu"] - center, draws["sigma2"]

    def squares(block: slice) -> tuple[Floats, Floats]:
        tau = 1 / sigma2[block]
        shift = tau * delta[block]
        factors = np.concatenate([tau, -2 * shift], axis=2).swapaxes(0, 1)
        q = np.swapaxes(factors @ terms, 0, 1) + (shift * delta[block]).sum(axis=-1)[..., None]
        # Rounding leaves a few ulps of the terms either side of 0.
        return np.maximum(q, 0.0), 0.5 * np.log(sigma2[block]).sum(axis=-1)

    return squares


def log_odds_of_draws(draws: Mapping[str, Floats]) -> Callable[[Floats], Floats] | None:
    """Return the function from rows (n, d) to log p(y=k | x, θ_s)/p(y=0 | x, θ_s), k = 1…K−1, (n, K−1, S).

    A draw's log odds are a polynomial of degree two in x, of degree one where the classes share Σ. With P = Σ⁻¹

        δ_k(u) − δ_0(u) = −½ uᵀ(P_k − P_0)u + (P_kμ_k − P_0μ_0)ᵀu + c_k − c_0,   c = log π + ½ log|P| − ½ μᵀPμ

    so that all draws of a row are one product with an (m, (K−1)S) matrix, and nothing is factored for a row. None if
    that matrix would be too large, or a draw holds a class to be impossible.

    Parameters
    ----------
    draws
        As in `log_joint_per_draw`.
    """
    pi, (S, K, d) = draws["pi"], draws["mu"].shape
    diagonal, shared = "sigma2" in draws, "Sigma" in draws and draws["Sigma"].ndim == 3
    upper = np.triu_indices(d)
    width = 1 + d + (0 if shared else d if diagonal else len(upper[0]))
    if width * (K - 1) * S > ODDS_ELEMENTS or not (pi > 0).all():
        return None
    # In coordinates u = C⁻¹(x − center) in which the classes have about unit covariance: no digits are lost to scales,
    # offsets or correlations of the features.
    center = draws["mu"].mean(axis=(0, 1))
    with one_blas_thread(), regular(DRAWN):
        if diagonal:
            sd = np.sqrt(draws["sigma2"].mean(axis=(0, 1)))
            white, mu = np.diag(1 / sd), (draws["mu"] - center) / sd
            P = sd * sd / draws["sigma2"]
            h, log_det = P * mu, np.log(P).sum(axis=-1)
            squares = -0.5 * (P[:, 1:] - P[:, :1])
        else:
            Sigma = draws["Sigma"][:, None] if shared else draws["Sigma"]
            white = np.linalg.inv(np.linalg.cholesky(Sigma.mean(axis=(0, 1))))
            mu = (draws["mu"] - center) @ white.T
            whitened = white @ Sigma @ white.T
            P = np.linalg.inv(whitened)
            h = (P @ mu[..., None])[..., 0]
            log_det = -2 * np.log(np.diagonal(np.linalg.cholesky(whitened), axis1=-2, axis2=-1)).sum(axis=-1)
            change = P[:, 1:] - P[:, :1]  # none if Σ is shared
            squares = np.where(upper[0] == upper[1], -0.5, -1.0) * change[..., upper[0], upper[1]]
    constant = np.log(pi) + 0.5 * log_det - 0.5 * (mu * h).sum(axis=-1)
    B = np.empty((width, K - 1, S))
    B[0] = (constant[:, 1:] - constant[:, :1]).T
    B[1 : d + 1] = np.moveaxis(h[:, 1:] - h[:, :1], 0, -1).swapaxes(0, 1)
    if not shared:
        B[d + 1 :] = np.moveaxis(squares, 0, -1).swapaxes(0, 1)
    B = B.reshape(width, -1)

    def log_odds(X: Floats) -> Floats:
        u = (X - center) @ white.T
        terms = [np.ones((len(X), 1)), u]
        if not shared:
            terms.append(u * u if diagonal else u[:, upper[0]] * u[:, upper[1]])
        return (np.concatenate(terms, axis=1) @ B).reshape(len(X), K - 1, S)

    return log_odds


def log_joint_of_draws(draws: Mapping[str, Floats], X: Floats) -> Floats:
    """Return log (1/S) Σ_s p(x, y=k | θ_s) (n, K): the generative predictive of S posterior draws.

    Parameters are those of `log_joint_per_draw`; memory does not grow with S.
    """
    S, K, _ = draws["mu"].shape
    total = np.full((len(X), K), -np.inf)
    for block in wide_blocks(S, len(X) * K):
        part = log_joint_per_draw({name: value[block] for name, value in draws.items()}, X)
        top = part.max(axis=0)
        top = np.where(np.isfinite(top), top, 0.0)  # of a class that all draws take for impossible
        part -= top
        np.exp(part, out=part)
        with np.errstate(divide="ignore"):
            total = np.logaddexp(total, np.log(part.sum(axis=0)) + top)
    return total - np.log(S)


def log_density_of_single_rows(
    posterior: NIWPosterior | NIGPosterior, X: Floats, size: int, *, random_seed: Seed = None
) -> Floats:
    """Draw log p(x | y=k, θ_s) (S, n, K) for each row by itself, without a covariance of all features.

    A row sees of P = Σ⁻¹ ~ W(ν, Ψ⁻¹) only what lies in the space of x and the class means. With Ψ = CCᵀ let U be an
    orthonormal basis of C⁻¹(m_k − m_0) and C⁻¹(x − m_0), r vectors at most K, and P = C⁻ᵀWC⁻¹, so that W ~ W_d(ν, I):

        UᵀWU ~ W_r(ν, I),    |W| = |UᵀWU| ∏_{j=r}^{d−1} χ²(ν − j),    μ_k = m_k + Σ^{½}ε_k/√κ_k

    and of ε_k there are r coordinates beside a squared length χ²(d − r). So the draws are those of a posterior of r
    features, whatever d is. All rows have the same ones: each row's draws are independent and exact, but those of two
    rows together are not draws of one θ.

    Parameters
    ----------
    posterior
        Exact posterior; that of the naive model has no covariances, and is drawn as it is.
    X
        (n, d) complete rows.
    size
        S, the number of draws.
    """
    rng = np.random.default_rng(random_seed)
    if isinstance(posterior, NIGPosterior):
        draws = posterior.draw(size, random_seed=rng)
        return log_joint_per_draw(draws | {"pi": np.ones_like(draws["pi"])}, X)
    K = len(posterior.m)
    groups = [slice(0, K)] if posterior.shared else [slice(k, k + 1) for k in range(K)]
    parts = [_group_of_single_rows(posterior, g, classes, X, size, rng) for g, classes in enumerate(groups)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=2)


def _group_of_single_rows(
    posterior: NIWPosterior, g: int, classes: slice, X: Floats, size: int, rng: np.random.Generator
) -> Floats:
    """Return `log_density_of_single_rows` of the classes that share Ψ_g."""
    m, kappa, nu = posterior.m[classes], posterior.kappa[classes], posterior.nu[g : g + 1]
    K, d = m.shape
    C = np.linalg.cholesky(posterior.Psi[g])
    z = solve_triangular(C, (X - m[0]).T)  # (d, n)
    means = solve_triangular(C, (m - m[0]).T)  # (d, K)
    U = np.linalg.qr(means[:, 1:])[0]  # (d, min(d, K − 1)); what equal means leave arbitrary does not matter
    inside = U.T @ z
    # One more direction, in which the row leaves the space of the means; none if that is the whole space.
    outside = [np.linalg.norm(z - U @ inside, axis=0)] if U.shape[1] < d else []
    rows = np.vstack([inside, *outside]).T  # (n, r)
    r = rows.shape[1]
    centers = np.zeros((K, r))
    centers[:, : U.shape[1]] = (U.T @ means).T
    small = NIWPosterior(centers, kappa, np.eye(r)[None], nu, np.ones(K), np.nan)
    draws = small.draw(size, random_seed=rng)
    out = log_joint_per_draw(draws | {"pi": np.ones((size, K))}, rows)
    if r < d:
        log_det = np.log(rng.chisquare(nu - np.arange(r, d), size=(size, d - r))).sum(axis=1)
        lengths = rng.chisquare(d - r, size=(size, K)) / kappa
        out += (0.5 * log_det[:, None] - 0.5 * lengths - 0.5 * (d - r) * np.log(2 * np.pi))[:, None]
    out -= np.log(np.diagonal(C)).sum()  # ½ log|Ψ|
    return out


def draw_rows(draws: Mapping[str, Floats], *, random_seed: Seed = None) -> tuple[Floats, NDArray[np.intp]]:
    """Draw one new labelled row (x, y) for each posterior draw: y ~ π, then x ~ N(μ_y, Σ_y).

    Parameters
    ----------
    draws
        As in `log_joint_per_draw`, from any method, or from the prior.

    Returns
    -------
    (S, d) features and (S,) class codes.
    """
    rng = np.random.default_rng(random_seed)
    S, K, d = draws["mu"].shape
    # Inverse of the cumulative distribution of π; the last class takes what rounding leaves.
    y = (rng.random((S, 1)) > np.cumsum(draws["pi"], axis=1)[:, : K - 1]).sum(axis=1)
    rows = np.arange(S)
    z = rng.standard_normal((S, d))
    if "sigma2" in draws:
        return draws["mu"][rows, y] + np.sqrt(draws["sigma2"][rows, y]) * z, y
    Sigma = draws["Sigma"] if draws["Sigma"].ndim == 3 else draws["Sigma"][rows, y]
    return draws["mu"][rows, y] + (drawn_root(Sigma) @ z[:, :, None])[..., 0], y
