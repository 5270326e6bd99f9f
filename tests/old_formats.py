"""Files as older versions of the package wrote them, made from models of today."""

import json

import xarray as xr

from bayes_gda.store import files, formats


def write_format_1(content: formats.Content, path) -> None:
    """Format 1: group `model`, attribute `state`, other names, no `missing`, no notes on the posterior's groups."""
    record = content.record
    state = {
        "class": record["estimator"],
        "hyperparameters": {name: node for name, node in record["params"].items() if name != "missing"},
        "attributes": {name.removesuffix("_"): node for name, node in record["fitted"].items()},
    }
    variables = {
        name: ([f"{name}_dim_{i}" for i in range(array.ndim)], array) for name, array in content.arrays.items()
    }
    model = xr.Dataset(variables, attrs={"state": json.dumps(state)})
    tree = xr.DataTree.from_dict({**content.groups, "model": model})
    tree.attrs = {"bayes_gda_format": 1}
    files.write(path, tree, version=1)
