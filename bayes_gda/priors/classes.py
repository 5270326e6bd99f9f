"""Draws of all that a Gaussian model has, class shares, means and covariances, from its prior."""

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.priors.distributions import NIG, NIW
from bayes_gda.priors.lkj import LKJ


def draw_classes(
    prior: NIW | NIG | LKJ, alpha: Floats, covariance: str, size: int, random_seed: int
) -> dict[str, Floats]:
    """Draw `pi` (size, K), `mu` (size, K, d), and `Sigma` ([K,] d, d) or `sigma2` (K, d) of each.

    Parameters
    ----------
    prior, alpha
        Of means and covariances, proper; (K,) Dirichlet parameters of the class shares.
    covariance
        `shared` by the classes, `own` of each, or `diagonal`.
    size, random_seed
        Number of draws, and their seed.
    """
    rng, K = np.random.default_rng(random_seed), len(alpha)
    drawn = [prior.draw(size, random_seed=rng) for _ in range(K)]
    out = {name: np.stack([each[name] for each in drawn], axis=1) for name in drawn[0]}
    if covariance == "shared":
        out["Sigma"] = drawn[0]["Sigma"]
        if isinstance(prior, NIW):  # the means of all classes go by the same Σ
            z = rng.standard_normal((size, K, len(prior.m)))
            out["mu"] = prior.m + z @ np.swapaxes(np.linalg.cholesky(out["Sigma"]), 1, 2) / np.sqrt(prior.kappa)
    if covariance == "diagonal" and "Sigma" in out:
        out["sigma2"] = np.diagonal(out.pop("Sigma"), axis1=2, axis2=3)
    return {"pi": rng.dirichlet(alpha, size=size)} | out
