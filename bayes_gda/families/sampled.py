"""A family's posterior by a sampler: split HMC on its own density, or NUTS on its PyMC model."""

from typing import TYPE_CHECKING, Any

from bayes_gda.errors import ConvergenceError
from bayes_gda.methods.laplace import GaussianPosterior

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr

    from bayes_gda.families.base import Family


def sample_hmc(family: "Family", gaussian: GaussianPosterior | None, **options: Any) -> "xr.DataTree":
    """Return the tree of split HMC about a Gaussian, None for the family's own.

    Parameters
    ----------
    family
        One with a density written by hand, and a mode; else a `ConvergenceError`.
    gaussian
        An approximation in the coordinates of that density.
    options
        `draws`, `chains`, `random_seed` and `progress`.
    """
    from bayes_gda.methods.hmc.sampling import sample_density

    density = family.density
    gaussian = family.geometry() if gaussian is None and density is not None else gaussian
    if density is None or gaussian is None:
        why = "has no density written by hand" if density is None else "has no mode here"
        raise ConvergenceError(f"sampler='hmc' does not apply: {family.title} {why}. Use sampler='pymc'.")
    return sample_density(density, gaussian, **options)


def sample_nuts(
    family: "Family | None", model: "pm.Model", gaussian: GaussianPosterior | None, **options: Any
) -> "xr.DataTree":
    """Return the tree of NUTS on a PyMC model, with the density and the geometry of its family if it has one.

    `options` are further arguments of `sample_model`.
    """
    from bayes_gda.methods.nuts.sampling import sample_model

    if family is None:
        return sample_model(model, **options)
    gaussian = family.geometry() if gaussian is None else gaussian
    return sample_model(model, density=family.density, gaussian=gaussian, **options)
