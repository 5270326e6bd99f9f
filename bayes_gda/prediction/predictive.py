"""Predictive distributions of the class of a new row.

A generative model's predictive averages the joint *densities* over the posterior and then normalises:

    p(y=k | x, data) ∝ ∫ p(x, y=k | θ) p(θ | data) dθ

Averaging p(y=k | x, θ) instead would ignore that x itself says something about θ, and is another, wrong number.
For conjugate models the integral is E[π_k] times a Student-t density (`log_joint` of `NIWPosterior` and
`NIGPosterior`); for draws from any sampler it is a mean over draws, taken here.
"""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.inference.priors import Seed

# Numbers in a block of draws × rows × classes × features, whatever the data's size: 4·10⁶ doubles are 32 MB, of which
# a handful are alive at a time. Smaller blocks would factor the covariances of all draws once more for each.
BLOCK = 4_000_000


def row_blocks(n: int, width: int) -> Iterator[slice]:
    """Slices of rows of `width` numbers each that make up a block."""
    step = max(1, BLOCK // max(1, width))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def log_class_probabilities(log_joint: Floats) -> Floats:
    """Normalise log p(x, y=k) (…, K) to log p(y=k | x), stable however far out x lies."""
    # The largest goes first: beside a log density of −1e9 the sum's own logarithm would be lost to rounding.
    relative = log_joint - log_joint.max(axis=-1, keepdims=True)
    out: Floats = relative - logsumexp(relative, axis=-1, keepdims=True)
    return out


def log_joint_per_draw(draws: Mapping[str, Floats], X: Floats) -> Floats:
    """Return log p(x, y=k | θ_s) (S, n, K) for each of S draws.

    Parameters
    ----------
    draws
        `pi` (S, K), `mu` (S, K, d) and `Sigma` (S, [K,] d, d) or `sigma2` (S, K, d).
    X
        (n, d) features.
    """
    mu = draws["mu"]
    d = X.shape[1]
    if "sigma2" in draws:
        sd = np.sqrt(draws["sigma2"])
        # |(x − μ)/σ|², summed over features
        z = (X[None, :, None, :] - mu[:, None]) / sd[:, None]
        squares, log_det = np.einsum("snkd,snkd->snk", z, z), np.log(sd).sum(axis=-1)
    else:
        Sigma = draws["Sigma"] if draws["Sigma"].ndim == 4 else draws["Sigma"][:, None]
        L = np.linalg.cholesky(Sigma)
        # z = L⁻¹(x − μ): one inverse a draw serves all rows as a matrix product.
        white = np.linalg.inv(L)
        z = white @ X.T - white @ mu[..., None]
        squares = np.moveaxis(np.einsum("skdn,skdn->skn", z, z), 1, 2)
        log_det = np.log(np.diagonal(L, axis1=-2, axis2=-1)).sum(axis=-1)
    out: Floats = (np.log(draws["pi"]) - log_det)[:, None] - 0.5 * squares - 0.5 * d * np.log(2 * np.pi)
    return out


def log_joint_of_draws(draws: Mapping[str, Floats], X: Floats) -> Floats:
    """Return log (1/S) Σ_s p(x, y=k | θ_s) (n, K): the generative predictive of S posterior draws.

    Parameters are those of `log_joint_per_draw`; memory does not grow with S.
    """
    S, K, d = draws["mu"].shape
    step = max(1, BLOCK // max(1, X.shape[0] * K * d))
    total = np.full((len(X), K), -np.inf)
    for start in range(0, S, step):
        part = {name: value[start : start + step] for name, value in draws.items()}
        total = np.logaddexp(total, logsumexp(log_joint_per_draw(part, X), axis=0))
    return total - np.log(S)


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
    return draws["mu"][rows, y] + (np.linalg.cholesky(Sigma) @ z[:, :, None])[..., 0], y
