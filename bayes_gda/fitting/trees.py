"""What a sampler returned, as the user should see it: under their names, with their rows in their order."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bayes_gda.checks import Floats
from bayes_gda.data.labels import to_datatree
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.fitting.defaults import Rows

if TYPE_CHECKING:
    import xarray as xr

# Groups that hold rows: the sampler saw pooled ones, in another order.
ROW_GROUPS = ("log_likelihood", "observed_data", "constant_data")


def named_tree(tree: "xr.DataTree", variables: tuple[str, ...], coords: dict[str, list[str]]) -> "xr.DataTree":
    """Return the tree with the user's names, of the posterior only `variables`, and no groups that hold rows."""
    posterior = tree["posterior"].to_dataset()
    draws = {name: posterior[name].values.reshape(-1, *posterior[name].shape[2:]) for name in variables}
    named = to_datatree(draws, coords, chains=posterior.sizes["chain"], attrs=posterior.attrs)
    for group, node in tree.children.items():
        if group != "posterior" and group not in ROW_GROUPS:
            named[group] = type(tree)(node.to_dataset())
    return named


def draws_of(tree: "xr.DataTree") -> dict[str, Floats]:
    """Return the variables of the posterior (chains·draws, …), chain after chain."""
    posterior = tree["posterior"].to_dataset()
    return {str(name): x.values.reshape(-1, *x.shape[2:]) for name, x in posterior.data_vars.items()}


def add_rows(tree: "xr.DataTree", rows: Rows, groups: Mapping[str, Floats]) -> None:
    """Add the rows as they were given, their fingerprint, and `log_likelihood` (S, n) if it is in `groups`."""
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    if "log_likelihood" in groups:
        shape = (posterior.sizes["chain"], posterior.sizes["draw"], -1)
        values = {"y": (("chain", "draw", "row"), groups["log_likelihood"].reshape(shape))}
        tree["log_likelihood"] = xr.DataTree(xr.Dataset(values, coords={d: posterior[d] for d in ("chain", "draw")}))
    tree["observed_data"] = xr.DataTree(xr.Dataset({"y": ("row", rows.codes)}))
    features = xr.Dataset({"X": (("row", "feature"), rows.X)}, coords={"feature": list(rows.names)})
    tree["constant_data"] = xr.DataTree(features)
    try:
        data = Dataset(rows.X, rows.codes, rows.names, tuple(rows.classes.tolist()))
        tree["posterior"].attrs["fingerprint"] = data.fingerprint
    except DataError:  # labels that a Dataset does not know
        tree["posterior"].attrs["fingerprint"] = "unknown"
