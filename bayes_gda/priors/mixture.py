"""The default prior of the components of a class, and the axis along which they are put in order."""

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.priors.classes import draw_classes
from bayes_gda.priors.defaults import varied
from bayes_gda.priors.distributions import NIG, NIW
from bayes_gda.priors.robust import ENOUGH
from bayes_gda.priors.units import degrees_of_freedom, pooled_scatter

# The mean square about the centre of rows that differ by rounding alone is less than this share of their square.
ROUNDING = 1e-24


def component_default(
    X: Floats, y: NDArray[np.intp], K: int, weight: Floats | None = None, family: type[NIW] | type[NIG] = NIW
) -> NIW | NIG:
    """Return the default of the family for the rows X (n, d) with class codes y (n,), with half the volume.

    A component is a part of its class: Ψ is that of the class times 2^{−2/d}, so that √|Ψ| is half as large (after
    Fraley & Raftery 2007, who divide by the number of components). One prior serves any number of components, so that
    their evidences can be compared. Variances of a diagonal covariance have the same factor.
    """
    moments = varied(Moments.from_arrays(X, y, K, sample_weight=weight))
    factor = 2 ** (-2 / moments.d)
    if family is NIG:
        diagonal = NIG.default(moments)
        return NIG(m=diagonal.m, kappa=diagonal.kappa, a=diagonal.a, b=diagonal.b * factor)
    prior, f = NIW.default(moments), degrees_of_freedom(moments)
    if f < ENOUGH * moments.d:  # too few rows to choose a scale by: see `priors.robust`
        factor *= prior.nu * float(pooled_scatter(moments)[0, 0]) / f / float(prior.Psi[0, 0])
    return NIW(m=prior.m, kappa=prior.kappa, Psi=prior.Psi * factor, nu=prior.nu)


def ordering_axes(X: Floats, y: NDArray[np.intp], K: int, prior: NIW | NIG, weight: Floats | None = None) -> Floats:
    """Return the direction (K, d) in which each class has its largest spread, in units of Ψ, or of b.

    Its largest entry is positive: the components of a class are numbered by the place of their centres along it. A
    class without spread, such as one row that counts twice, has the direction of the first feature.
    """
    Psi = np.diag(2 * prior.b) if isinstance(prior, NIG) else prior.Psi
    root = np.linalg.inv(np.linalg.cholesky(Psi))
    out = np.tile(root[0], (K, 1))
    for k in range(K):
        Y = (X[y == k] - prior.m) @ root.T
        if len(Y) > 1:
            c = np.ones(len(Y)) if weight is None else weight[y == k]
            V = Y - c @ Y / c.sum()
            squares, directions = np.linalg.eigh((V * c[:, None]).T @ V)
            if squares[-1] > ROUNDING * c.sum() * (Y**2).max():
                axis = directions[:, -1] @ root
                out[k] = axis * np.sign(axis[np.abs(axis).argmax()])
    return out


def draw_components(
    prior: NIW | NIG,
    alpha: Floats,
    components: tuple[int, ...],
    axis: Floats,
    covariances: str,
    size: int,
    random_seed: int,
) -> dict[str, Floats]:
    """Draw class shares, weights, centres and covariances of all components from the prior, in its order of these."""
    rng, owners = np.random.default_rng([random_seed, 1]), np.repeat(np.arange(len(components)), components)
    drawn = draw_classes(prior, np.ones(len(owners)), covariances, size, random_seed)
    # Within a class the centres go up along its axis; weights do not depend on the centres.
    order = np.lexsort(
        (np.einsum("scd,cd->sc", drawn["mu"], axis[owners]), np.broadcast_to(owners, (size, len(owners))))
    )
    each = np.arange(size)[:, None]
    name = "sigma2" if covariances == "diagonal" else "Sigma"
    own = {f"component_{name}": drawn[name][each, order]} if covariances != "shared" else {"Sigma": drawn["Sigma"]}
    weight = np.concatenate([rng.dirichlet(np.ones(C), size=size) for C in components], axis=1)
    return {"pi": rng.dirichlet(alpha, size=size), "weight": weight, "component_mu": drawn["mu"][each, order]} | own
