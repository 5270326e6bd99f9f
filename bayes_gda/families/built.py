"""PyMC models that `build` wrote, known again by their family; `sample` samples these and any other model."""

from typing import TYPE_CHECKING, Any

from bayes_gda.data.labels import draws_of
from bayes_gda.errors import DataError
from bayes_gda.families.base import Family
from bayes_gda.families.groups import add_rows
from bayes_gda.families.registry import get_family
from bayes_gda.families.sampled import sample_hmc, sample_nuts
from bayes_gda.linalg import one_blas_thread
from bayes_gda.models.signature import signature_of

if TYPE_CHECKING:
    import pymc as pm
    import xarray as xr


def family_of(model: "pm.Model") -> Family | None:
    """Return the family that a model was written from; None if it is not ours, or was changed since."""
    signature = signature_of(model)
    if signature is None:
        return None
    family: Family = get_family(signature.family).from_signature(**signature.arguments)
    return family


def sample(
    model: "pm.Model",
    *,
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    cores: int | None = None,
    sampler: str = "pymc",
    random_seed: int | None = None,
    progress: bool | None = None,
) -> "xr.DataTree":
    """Sample the posterior of a model.

    Parameters
    ----------
    model
        One of `bayes_gda.models`, or any PyMC model of continuous variables.
    draws, tune, chains
        Draws kept and warm-up iterations of each chain, and the number of chains. None tunes for as long as it takes,
        as `hmc` always does.
    cores
        Chains of NUTS sampled at once; None for all that the machine has. The draws do not depend on it.
    sampler
        `pymc`; `hmc`, split Hamiltonian Monte Carlo in many chains about a Gaussian, for our own models, which takes
        `draws` × `chains` draws by 16 chains or more; `nutpie` or `numpyro` if installed, which compile the model and
        adapt in their own way.
    random_seed
        The same seed gives the same draws.
    progress
        Whether to show a bar; None shows it on a terminal.

    Returns
    -------
    A DataTree with the groups posterior, sample_stats, log_likelihood (of each row: `y`, log p(y | x, θ), and for
    the Gaussian models `x`, log p(x | θ)), log_prior, observed_data, and constant_data for the regressions. The
    attributes of the posterior say versions, seed, the fingerprint of the data, where the time went, and whether the
    run is `incomplete`: Ctrl-C returns what was sampled until then.

    Examples
    --------
    >>> from bayes_gda import load_example, sample
    >>> from bayes_gda.models import lda
    >>> model = lda.build(load_example("lda-mixture"))
    >>> tree = sample(model, draws=50, chains=2, random_seed=1, progress=False)
    >>> dict(tree["posterior"].sizes)["draw"]
    50
    """
    family = family_of(model)
    options: dict[str, Any] = {"draws": draws, "chains": chains, "random_seed": random_seed, "progress": progress}
    if sampler == "hmc":
        if family is None:
            raise DataError("sampler='hmc' is for the models of bayes_gda.models; got another. Use sampler='pymc'.")
        tree = sample_hmc(family, None, **options)
    else:
        tree = sample_nuts(family, model, None, tune=tune, cores=cores, sampler=sampler, **options)
    if family is not None and family.density is not None and family.data.n:
        variables = draws_of(tree)
        with one_blas_thread():
            add_rows(tree, family.data, family.from_variables(variables), variables)
    return tree
