"""Trees of draws as netCDF can hold them, and back.

netCDF has no text with NUL or lone surrogates, and no attributes that are None, true or nested. The file gets the
nearest thing, for readers such as ArviZ; what was there in fact stands in notes, by which `restore` brings it back.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_gda.errors import StoreError
from bayes_gda.store.codecs import decode, encode

if TYPE_CHECKING:
    import xarray as xr


def to_plain(tree: "xr.DataTree") -> tuple[dict[str, "xr.Dataset"], dict[str, Any]]:
    """Return the groups of a tree as netCDF can hold them, and notes (JSON) on what it cannot.

    Parameters
    ----------
    tree
        One level of groups, as ArviZ has it.
    """
    groups, notes = {}, {}
    for name, node in tree.children.items():
        dataset = node.to_dataset(inherit=False)
        text = {str(key): np.asarray(x.values) for key, x in dataset.variables.items() if x.dtype.kind in "OUT"}
        attrs = {str(key): value for key, value in dataset.attrs.items()}
        variables = {
            str(key): (x.dims, _plain_labels(text[str(key)]) if str(key) in text else x.values)
            for key, x in dataset.variables.items()
        }
        plain = {key: _plain_attribute(value) for key, value in attrs.items()}
        groups[name] = _dataset(variables, dataset.coords, plain)
        notes[name] = {
            "attrs": {key: encode(_unwrapped(value), {}, f"{name}.{key}") for key, value in attrs.items()},
            "text": {key: encode(values, {}, f"{name}.{key}") for key, values in text.items()},
        }
    return groups, notes


def restore(groups: Mapping[str, "xr.Dataset"], notes: Any) -> "xr.DataTree":
    """Return the tree that `to_plain` took apart."""
    import xarray as xr

    out = {}
    for name, note in _mapping(notes, "groups").items():
        if name not in groups:
            raise StoreError(f"Group {name!r} of the posterior is missing.")
        match note:
            case {"attrs": dict(attrs), "text": dict(text)}:
                pass
            case _:
                raise StoreError(f"Group {name!r} of the posterior has no valid notes.")
        dataset = groups[name]
        variables: dict[str, Any] = {}
        for key, x in dataset.variables.items():
            values = decode(text[str(key)], {}, f"{name}.{key}") if str(key) in text else x.values
            if not isinstance(values, np.ndarray) or values.shape != x.shape:
                raise StoreError(f"`{name}.{key}` must hold {x.size} labels.")
            variables[str(key)] = (x.dims, values)
        out[name] = _dataset(
            variables, dataset.coords, {key: decode(value, {}, f"{name}.{key}") for key, value in attrs.items()}
        )
    return xr.DataTree.from_dict(out)


def _dataset(variables: dict[str, Any], coords: Any, attrs: dict[str, Any]) -> "xr.Dataset":
    """A dataset of its own: without what an earlier file said about encodings."""
    import xarray as xr

    data = {key: value for key, value in variables.items() if key not in coords}
    return xr.Dataset(data, {key: variables[key] for key in map(str, coords)}, attrs)


def _plain_labels(labels: NDArray[Any]) -> NDArray[Any]:
    return np.array([_plain_text(str(label)) for label in labels.ravel()], dtype=object).reshape(labels.shape)


def _plain_text(text: str) -> str:
    """Text as netCDF can hold it: a NUL or a lone surrogate makes it an escaped string."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return ascii(text)
    return ascii(text) if "\0" in text else text


def _plain_attribute(value: Any) -> Any:
    value = _unwrapped(value)
    if isinstance(value, str):
        return _plain_text(value)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**63:
        return value
    return json.dumps(value, default=repr)


def _unwrapped(value: Any) -> Any:
    """Arrays and NumPy's scalars as plain lists and numbers."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _mapping(value: Any, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise StoreError(f"`{what}` must be a mapping; got {type(value).__name__}.")
    return value
