"""New labelled data sets from a model: from its prior, or from a posterior (for predictive checks and calibration)."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor
from pymc.model.transform.conditioning import remove_value_transforms
from pytensor.compile.sharedvalue import SharedVariable

from bayes_gda.checks import Floats
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
    if "y" not in names or getattr(model, "summed", None):
        raise DataError("A model on moments draws no rows with their labels. Build it with rowwise=True.")
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


class Simulator:
    """Any PyMC model with its observed values set free: parameters and data are drawn from it, and observed in turn.

    Parameters
    ----------
    model
        With observed variables, and no potentials, which nothing can be drawn from.

    Attributes
    ----------
    model
        The same model, whose observed values are those of the last `observe`: nothing is compiled anew.
    """

    def __init__(self, model: pm.Model) -> None:
        if model.potentials:
            raise DataError(
                f"A model with the potential {model.potentials[0].name!r} has no data that can be drawn. Write its "
                "likelihood as observed variables; our Gaussian models do with rowwise=True."
            )
        if not model.observed_RVs:
            raise DataError("The model has no observed variable, so that there are no data to simulate.")
        self._prior = model
        self._names = [rv.name for rv in model.observed_RVs]
        values = {rv.name: model.rvs_to_values[rv].eval() for rv in model.observed_RVs}
        self._data: dict[str, SharedVariable] = {
            name: pytensor.shared(value, name=f"{name}_simulated") for name, value in values.items()
        }
        self.model = pm.observe(model, {model[name]: data for name, data in self._data.items()})
        self._log_likelihood: Any = None

    def draw(self, size: int, random_seed: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Draw the free variables from the prior, and the observed ones given them, (size, …) each."""
        names = [rv.name for rv in self._prior.free_RVs]
        tree = pm.sample_prior_predictive(
            size,
            model=self._prior,
            var_names=[*names, *self._names],
            random_seed=random_seed,
            compile_kwargs={"mode": "FAST_COMPILE"},
        )
        theta = {name: tree["prior"][name].to_numpy()[0] for name in names}
        return theta, {name: tree["prior_predictive"][name].to_numpy()[0] for name in self._names}

    def observe(self, data: Mapping[str, Floats]) -> None:
        """Observe other data."""
        for name, shared in self._data.items():
            shared.set_value(np.asarray(data[name], dtype=shared.get_value(borrow=True).dtype))

    def log_likelihood(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the log likelihood (S,) of the data at values (S, …) of the free variables."""
        names = [rv.name for rv in self._prior.free_RVs]
        if self._log_likelihood is None:
            plain = remove_value_transforms(self.model)  # so that values are those of the variables themselves
            total = plain.logp(vars=plain.observed_RVs)
            self._log_likelihood = plain.compile_fn(total, inputs=plain.value_vars, mode="FAST_COMPILE")
        columns = [np.asarray(variables[name]) for name in names]
        points = (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        return np.array([float(self._log_likelihood(point)) for point in points])


def _thin(draws: Any, size: int) -> Any:
    """Return `size` draws, evenly spread over all chains, as one chain."""
    stacked = draws.stack(sample=("chain", "draw"))
    total = stacked.sizes["sample"]
    if size > total:
        raise DataError(f"`size` must not exceed the {total} draws of the posterior; got {size}.")
    chosen = stacked.isel(sample=[i * total // size for i in range(size)]).drop_vars(["sample", "chain", "draw"])
    return chosen.rename(sample="draw").expand_dims("chain")
