"""New labelled data sets from a model: from its prior, or from a posterior (for predictive checks and calibration)."""

from typing import Any

import pymc as pm

from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError


def replicate(
    model: pm.Model,
    data: Dataset,
    posterior: Any = None,
    *,
    size: int = 1,
    random_seed: int | None = None,
) -> tuple[list[Dataset], Any]:
    """Draw data sets of the shape of `data` from the prior or posterior predictive distribution of a model.

    A generative model draws new rows and labels; logistic and softmax regression draw new labels for the same rows.

    Parameters
    ----------
    model
        From one of the `build` functions; a Gaussian one with `rowwise=True`.
    data
        The data set whose size, names and (where x is not modelled) rows are used.
    posterior
        A DataTree with a `posterior` group of this model's free variables, as sampling the model gives it (the moments
        form has the same ones); None draws from the prior.
    size
        Number of data sets.
    random_seed
        Seed of the draws.

    Returns
    -------
    The data sets, and the DataTree that PyMC returned: it holds the parameters each of them came from.
    """
    names = {variable.name for variable in model.observed_RVs}
    if "y" not in names:
        raise DataError("A model on moments has no rows to draw. Build it with rowwise=True.")
    plain = {
        "compile_kwargs": {"mode": "FAST_COMPILE"},
        "random_seed": random_seed,
    }  # compiling costs more than it saves
    if posterior is None:
        tree = pm.sample_prior_predictive(size, model=model, **plain)
        drawn = tree["prior_predictive"]
    else:
        free = {variable.name for variable in model.free_RVs}
        missing = free - set(posterior["posterior"].data_vars)
        if missing:
            # PyMC would silently draw these from the prior.
            raise DataError(
                f"The posterior has no draws of {', '.join(sorted(missing))}. Give a posterior of this model."
            )
        chosen = _thin(posterior["posterior"].to_dataset(), size)
        tree = pm.sample_posterior_predictive(
            chosen, model=model, var_names=sorted(names), freeze_vars=sorted(free), progressbar=False, **plain
        )
        drawn = tree["posterior_predictive"]
    stacked = drawn.to_dataset().stack(sample=("chain", "draw")).transpose("sample", ...)
    X = stacked["x"].values if "x" in names else [data.X] * size
    y = stacked["y"].values
    return [Dataset(X[i], y[i], data.feature_names, data.class_names) for i in range(size)], tree


def _thin(draws: Any, size: int) -> Any:
    """Return `size` draws, evenly spread over all chains, as one chain."""
    stacked = draws.stack(sample=("chain", "draw"))
    total = stacked.sizes["sample"]
    if size > total:
        raise DataError(f"`size` must not exceed the {total} draws of the posterior; got {size}.")
    chosen = stacked.isel(sample=[i * total // size for i in range(size)]).drop_vars(["sample", "chain", "draw"])
    return chosen.rename(sample="draw").expand_dims("chain")
