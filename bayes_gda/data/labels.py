"""Names for numbers: every posterior as an ArviZ `DataTree` with the same variables, dims and coords.

The core works on plain arrays of draws, `{name: (size, …)}`. Labels are added once, here, at the border, so that
comparison, diagnostics and plots never ask which method made a posterior.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda._version import __version__
from bayes_gda.checks import Floats

if TYPE_CHECKING:
    import xarray as xr


# Groups that hold rows: the sampler saw pooled ones, in another order.
ROW_GROUPS = ("log_likelihood", "observed_data", "constant_data", "posterior_predictive")
# Name of the weights of softmax regression less their mean over the classes, where a table lists them.
CONTRASTS = "w − class mean"
# The notation table of DESIGN.md: trailing dims of each variable, by its number of axes.
DIMS: dict[tuple[str, int], tuple[str, ...]] = {
    ("pi", 1): ("class",),
    ("mu", 2): ("class", "feature"),
    ("Sigma", 2): ("feature", "feature_bis"),
    ("Sigma", 3): ("class", "feature", "feature_bis"),
    ("sigma2", 2): ("class", "feature"),
    ("w", 1): ("coefficient",),
    ("w", 2): ("class", "coefficient"),
    (CONTRASTS, 2): ("class", "coefficient"),
    ("tau", 0): (),
    ("weight", 1): ("part",),
    ("component_mu", 2): ("part", "feature"),
    ("component_Sigma", 3): ("part", "feature", "feature_bis"),
    ("component_sigma2", 2): ("part", "feature"),
    ("class_mean", 2): ("class", "feature"),
    ("class_variance", 2): ("class", "feature"),
    ("nu", 0): (),
    ("nu", 1): ("class",),
    ("p", 2): ("class", "yes_no"),
    ("success", 2): ("class", "bounded"),
    ("theta", 2): ("class", "level"),
    ("rate", 2): ("class", "count"),
    ("size", 2): ("class", "overdispersed"),
    ("success_share", 2): ("class", "overdispersed"),
    ("gamma_shape", 2): ("class", "positive"),
    ("gamma_mean", 2): ("class", "positive"),
    ("beta_mean", 2): ("class", "proportion"),
    ("beta_precision", 2): ("class", "proportion"),
}


def coordinates(
    *,
    class_names: Sequence[Any],
    feature_names: Sequence[str] | None = None,
    coefficient_names: Sequence[str] | None = None,
) -> dict[str, list[str]]:
    """Return the coords of a model: class, and feature (twice) or coefficient. Class labels are written as text."""
    coords = {"class": [str(name) for name in class_names]}
    if feature_names is not None:
        coords |= {"feature": list(feature_names), "feature_bis": list(feature_names)}
    if coefficient_names is not None:
        coords["coefficient"] = list(coefficient_names)
    return coords


def to_datatree(
    draws: Mapping[str, Floats],
    coords: Mapping[str, Sequence[str]],
    *,
    chains: int = 1,
    dims: Mapping[str, Sequence[str | None]] | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> "xr.DataTree":
    """Label draws `{name: (chains·draws, …)}` as the `posterior` group of a DataTree.

    Parameters
    ----------
    draws
        Variables of the notation table, or any others, whose dims are then numbered.
    coords
        As from `coordinates`.
    chains
        How many equal parts to cut the draws into. Independent draws have no chains of their own, but ArviZ's
        diagnostics want some to compare.
    dims
        Trailing dims of each variable, for models other than ours; None, or a variable not in it, goes by the
        notation table.
    attrs
        Attributes of the posterior group: method, seed, versions.
    """
    import xarray as xr

    variables = {}
    for name, values in draws.items():
        array = np.asarray(values)
        array = array.reshape(chains, -1, *array.shape[1:])
        numbered = tuple(f"{name}_dim_{i}" for i in range(array.ndim - 2))
        given = (dims or {}).get(name, DIMS.get((name, array.ndim - 2), numbered))
        inner = tuple(dim or number for dim, number in zip(given, numbered, strict=True))
        variables[name] = (("chain", "draw", *inner), array)
    used = {dim for names, _ in variables.values() for dim in names}
    n_draws = next(iter(variables.values()))[1].shape[1]
    indices = {"chain": np.arange(chains), "draw": np.arange(n_draws)}
    labels = indices | {dim: list(names) for dim, names in coords.items() if dim in used}
    stamped = {"inference_library": "bayes_gda", "inference_library_version": __version__, **(attrs or {})}
    posterior = xr.Dataset(variables, coords=labels, attrs=stamped)
    return xr.DataTree.from_dict({"posterior": posterior})


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, with a number behind those that repeat an earlier one or `intercept`."""
    seen, out = {"intercept"}, []
    for name in names:
        candidate, i = name, 2
        while candidate in seen:
            candidate, i = f"{name} ({i})", i + 1
        seen.add(candidate)
        out.append(candidate)
    return tuple(out)


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


def add_log_prior(tree: "xr.DataTree", log_prior: Mapping[str, Floats]) -> None:
    """Add the log prior densities (S,) of the posterior's draws, by parameter."""
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    values = {name: (("chain", "draw"), x.reshape(shape)) for name, x in log_prior.items()}
    tree["log_prior"] = xr.DataTree(xr.Dataset(values, coords={dim: posterior[dim] for dim in ("chain", "draw")}))
