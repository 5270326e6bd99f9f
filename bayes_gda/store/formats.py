"""The layout of the file, and how files of older formats become like those of today.

    format 3    group `bayes_gda`: attribute `record` (JSON), the arrays as variables; beside it the posterior's groups
    format 2    the same layout; verdicts were of two types, `Trust` on an approximation and `Verdict` on all else;
                neither had Monte Carlo errors, and there was no tolerance
    format 1    group `model`: attribute `state` (JSON: class, hyperparameters, attributes), the arrays as variables;
                text of the posterior's groups stands in netCDF only, and scikit-learn's names lack their underscore

No release has written format 1, a simpler draft; reading it keeps the way tested that later formats will need.
A new format adds a step here. The steps are taken one after the other, so that each knows its successor only.
"""

import json
import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from bayes_gda._version import __version__
from bayes_gda.errors import StoreError
from bayes_gda.methods.settings import TOLERANCE
from bayes_gda.store.files import FORMAT
from bayes_gda.store.trees import to_plain

if TYPE_CHECKING:
    import xarray as xr

HOME = "bayes_gda"
# Libraries whose versions the file states; none is asked for on the way back.
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "xarray")


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """What a file holds, apart from its layout.

    Parameters
    ----------
    record
        The estimator as JSON; see `records`.
    arrays
        The arrays that the record refers to.
    groups
        The posterior's groups.
    """

    record: Any
    arrays: Mapping[str, NDArray[Any]]
    groups: Mapping[str, "xr.Dataset"]


def pack(content: Content) -> "xr.DataTree":
    """Lay out the content as a tree in today's format."""
    import xarray as xr

    # Dimensions are named after axis and size, so that arrays share them, and no array has the same one twice.
    variables: dict[str, Any] = {
        name: ([f"axis{i}_{n}" for i, n in enumerate(array.shape)], array, {}, {"_FillValue": None})
        for name, array in content.arrays.items()
    }
    text = json.dumps(content.record, allow_nan=False)  # ASCII: netCDF's text takes neither NUL nor lone surrogates
    home = xr.Dataset(variables, attrs={"record": text})
    tree = xr.DataTree.from_dict({**content.groups, HOME: home})
    posterior = content.groups["posterior"].attrs
    known = {f"data_{name}": posterior[name] for name in ("fingerprint",) if name in posterior}
    tree.attrs = {"bayes_gda_format": FORMAT, **_versions(), **known}
    return tree


def unpack(tree: "xr.DataTree", version: int) -> Content:
    """Return the content of a tree, whatever its format."""
    if tree.attrs.get("bayes_gda_format") != version:
        raise StoreError(f"The seal says format {version}, the content {tree.attrs.get('bayes_gda_format')!r}.")
    content = _READERS[version](tree) if version in _READERS else None
    if content is None:
        raise StoreError(f"There is no format {version}.")
    for step in range(version, FORMAT):
        content = _STEPS[step](content)
    return _with_parts(content)


def _with_parts(content: Content) -> Content:
    """Return the content with the dimension `part` of a mixture, which files before 1.0.0 call `component`."""
    match content.record:
        case {"estimator": "BayesianMixture", "groups": {"posterior": {"text": dict(text)}}}:
            pass
        case _:
            return content
    if "component" not in text or "component" not in content.groups.get("posterior", {}):
        return content
    posterior = content.record["groups"]["posterior"]
    named = {"part" if name == "component" else name: labels for name, labels in text.items()}
    notes = content.record["groups"] | {"posterior": posterior | {"text": named}}
    groups = {**content.groups, "posterior": content.groups["posterior"].rename({"component": "part"})}
    return Content(content.record | {"groups": notes}, content.arrays, groups)


def _read(tree: "xr.DataTree", home: str, attribute: str) -> Content:
    if home not in tree.children:
        raise StoreError(f"Group {home!r} is missing.")
    dataset = tree.children[home].to_dataset(inherit=False)
    try:
        record = json.loads(dataset.attrs[attribute], parse_constant=_refuse)
    except (KeyError, TypeError, ValueError, RecursionError):
        raise StoreError(f"Attribute {attribute!r} of group {home!r} must be JSON.") from None
    arrays = {str(name): x.values for name, x in dataset.variables.items()}
    groups = {name: node.to_dataset(inherit=False) for name, node in tree.children.items() if name != home}
    return Content(record, arrays, groups)


def _one_to_two(content: Content) -> Content:
    """Format 1 had other names, and no notes on the groups."""
    import xarray as xr

    match content.record:
        case {"class": str(name), "hyperparameters": dict(params), "attributes": dict(attributes)}:
            pass
        case _:
            raise StoreError("Attribute 'state' must name class, hyperparameters and attributes.")
    record = {
        "estimator": name,
        "params": params,
        "fitted": {f"{key}_": node for key, node in attributes.items()},
        "groups": to_plain(xr.DataTree.from_dict(dict(content.groups)))[1],
    }
    return Content(record, content.arrays, content.groups)


def _two_to_three(content: Content) -> Content:
    """Format 2 had two types of verdict, both in what was fitted, and a fixed tolerance."""
    match content.record:
        case {"fitted": dict(fitted), **rest}:
            params: Any = rest.get("params")
            if isinstance(params, dict) and "inference" in params:  # what is always exact has neither
                rest["params"] = {"tolerance": TOLERANCE, **params}
            return Content(rest | {"fitted": _one_verdict(fitted)}, content.arrays, content.groups)
    raise StoreError("Attribute 'record' must say what was fitted.")


# What verdicts and shifts of format 2 did not say.
_NOTHING = {"importance": None, "diagnosis": None, "before": None, "monte_carlo": None, "propagation": None}
_UNKNOWN = {"largest_error": {"float": "nan"}, "tolerance": {"float": "nan"}, "rows": 0, "which": "given"}


def _one_verdict(node: Any) -> Any:
    """Return a node with every verdict in it as it is today; one that lacks fields is left to fail on the way back."""
    if isinstance(node, list):
        return [_one_verdict(item) for item in node]
    if not isinstance(node, dict):
        return node
    node = {key: _one_verdict(item) for key, item in node.items()}
    match node:
        case {"type": "Trust", "fields": dict(fields), **rest} if not rest:
            words = {key: fields.pop(key) for key in ("verdict", "reason", "next_step") if key in fields}
            evidence = {"type": "Importance", "fields": fields}
            return {"type": "Verdict", "fields": {**_NOTHING, **words, "importance": evidence}}
        case {"type": "Verdict", "fields": {"laplace": before, **others}, **rest} if not rest:
            kept = {key: item for key, item in others.items() if key not in ("pareto_k", "ess_fraction")}
            return {"type": "Verdict", "fields": {**_NOTHING, **kept, "before": before}}
        case {"type": "RegressionClassifier", "fields": dict(fields), **rest} if not rest:
            return {"type": "RegressionClassifier", "fields": {"cavities": False} | fields}
        case {"type": "PredictionShift", "fields": dict(fields), **rest} if not rest:
            return {"type": "PredictionShift", "fields": _UNKNOWN | fields}
    return node


_READERS: dict[int, Callable[["xr.DataTree"], Content]] = {
    1: lambda tree: _read(tree, "model", "state"),
    2: lambda tree: _read(tree, HOME, "record"),
    3: lambda tree: _read(tree, HOME, "record"),
}
_STEPS: dict[int, Callable[[Content], Content]] = {1: _one_to_two, 2: _two_to_three}


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    versions = {f"{library.replace('-', '_')}_version": version(library) for library in _LIBRARIES}
    return {"bayes_gda_version": __version__, "python_version": platform.python_version(), **versions}


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and Infinity are no JSON
