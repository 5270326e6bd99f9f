"""Files as older versions of the package wrote them, made from models of today."""

import json

import xarray as xr

from bayes_gda.store import files, formats

# What a shift says since format 3.
ADDED = {"largest_error", "tolerance", "rows", "which"}


def old_verdicts(node):
    """Verdicts as formats 1 and 2 had them: `Trust` on an approximation, `Verdict` with figures of its own on all else.

    These figures, derived today, were stored; what they were does not matter to a reader.
    """
    if isinstance(node, list):
        return [old_verdicts(item) for item in node]
    if not isinstance(node, dict):
        return node
    if node.get("type") == "PredictionShift":
        kept = {key: item for key, item in node["fields"].items() if key not in ADDED}
        return {"type": "PredictionShift", "fields": kept}
    if node.get("type") == "RegressionClassifier":
        node = {"type": node["type"], "fields": {k: v for k, v in node["fields"].items() if k != "cavities"}}
    if node.get("type") != "Verdict":
        return {key: old_verdicts(item) for key, item in node.items()}
    fields = {key: old_verdicts(item) for key, item in node["fields"].items()}
    importance, before = fields.pop("importance"), fields.pop("before")
    del fields["monte_carlo"], fields["propagation"]
    if importance is not None:
        assert fields.pop("diagnosis") is None
        assert before is None
        return {"type": "Trust", "fields": fields | importance["fields"]}
    figures = {"pareto_k": {"float": "nan"}, "ess_fraction": 1.0}
    return {"type": "Verdict", "fields": fields | figures | {"laplace": before}}


def write_format_1(content: formats.Content, path) -> None:
    """Format 1: group `model`, attribute `state`, other names, no `missing`, no notes on groups, and as format 2."""
    record = content.record
    state = {
        "class": record["estimator"],
        "hyperparameters": {
            name: node for name, node in record["params"].items() if name not in ("missing", "tolerance")
        },
        "attributes": {name.removesuffix("_"): old_verdicts(node) for name, node in record["fitted"].items()},
    }
    variables = {
        name: ([f"{name}_dim_{i}" for i in range(array.ndim)], array) for name, array in content.arrays.items()
    }
    model = xr.Dataset(variables, attrs={"state": json.dumps(state)})
    tree = xr.DataTree.from_dict({**content.groups, "model": model})
    tree.attrs = {"bayes_gda_format": 1}
    files.write(path, tree, version=1)
