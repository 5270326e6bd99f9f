"""Python values as JSON and arrays, and back: a closed list of types, each checked field by field, nothing executed.

    None, True, 3, "a"      themselves            2.5, inf            themselves, {"float": "inf"}
    (1, 2)                  {"tuple": [1, 2]}     {"a": 1}            {"map": {"a": 1}}
    array of numbers        {"array": name}       array of labels     {"labels": ["a", "b"], "dtype": "<U1"}
    table of numbers        {"table": array, "index": […], "columns": […], "name": of the index}
    RandomState             {"random_state": {"map": its state}}
    NIW(m, kappa, …)        {"type": "NIW", "fields": {"m": …, "kappa": …}}

A frozen dataclass is its own schema: on the way back every field is held against its annotation, the class checks
itself as it is made, and `rules` says what it does not. Names in the JSON select from `stored_types`, a closed list;
none is ever imported.
"""

import math
import re
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.errors import BayesGDAError, StoreError
from bayes_gda.families.drawn import DrawnModel
from bayes_gda.families.registry import family_names, get_family
from bayes_gda.methods.diagnostics import Diagnosis, Thresholds
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo
from bayes_gda.methods.verdict import Importance, PredictionShift, Propagation, Verdict
from bayes_gda.prediction.monte_carlo import MonteCarlo
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet, HierarchicalScale, Normal
from bayes_gda.store.rules import check

# What a file may hold whatever the family, beside what each family names in `stored`.
_COMMON: tuple[type, ...] = (
    Diagnosis,
    Dirichlet,
    DrawnModel,
    GaussianPosterior,
    HierarchicalScale,
    Importance,
    LKJ,
    MonteCarlo,
    NewtonInfo,
    NIG,
    NIW,
    Normal,
    PredictionShift,
    Propagation,
    Thresholds,
    Verdict,
)

# Fields that came after the first files of this format were written; where one is absent, its default is meant.
_LATER = {
    "DrawnModel": frozenset({"log_weights"}),
    "RegressionClassifier": frozenset({"certificate", "link"}),
}

Arrays = dict[str, NDArray[Any]]

# Labels may be text, truth values, whole numbers or floats; each kind of array holds Python values of these types.
_LABELS: dict[str, Any] = {
    "U": str,
    "T": str,
    "b": bool,
    "i": int,
    "u": int,
    "f": float,
    "O": str | bool | int | float | None,
}
# Bytes of an array of labels, which may have room for longer ones than it holds.
MOST_TEXT = 100_000_000
_DTYPES = re.compile(r"[<>=|](U\d{1,9}|b1|[iu][1248]|f[248]|O)")


def stored_types() -> dict[str, type]:
    """Return all that a file may hold, by the name it has there; families registered later are read as they stand."""
    # Of two types of one name the first is meant, so that no family takes the place of what is ours.
    families = (get_family(name) for name in family_names())
    own = [*_COMMON, *(cls for family in families for cls in family.stored)]
    return {cls.__name__: cls for cls in reversed(own)}


def encode(value: Any, arrays: Arrays, where: str) -> Any:
    """Return `value` as JSON; arrays of numbers go into `arrays`, under the path of the place where they stand.

    Parameters
    ----------
    value
        Anything built from the types above.
    arrays
        Filled by this function.
    where
        Path of the value, such as `classifier.posterior`; errors and array names state it.
    """
    if value is None or isinstance(value, bool | str):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, np.bool_ | np.integer | np.floating):
        value = value.item()
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [encode(item, arrays, f"{where}.{i}") for i, item in enumerate(value)]}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return {"map": {key: encode(item, arrays, f"{where}.{key}") for key, item in value.items()}}
    if isinstance(value, np.ndarray):
        return _encode_array(value, arrays, where)
    if isinstance(value, pd.DataFrame):
        return {
            "table": _encode_array(value.to_numpy(dtype=np.float64), arrays, where),
            "index": [str(label) for label in value.index],
            "columns": [str(label) for label in value.columns],
            "name": None if value.index.name is None else str(value.index.name),
        }
    if isinstance(value, np.random.RandomState):
        return {"random_state": encode(value.get_state(legacy=False), arrays, where)}
    if is_dataclass(value) and stored_types().get(type(value).__name__) is type(value):
        # What a class works out for itself as it is made is not stored.
        parts = {item.name: getattr(value, item.name) for item in fields(value) if item.init}
        return {
            "type": type(value).__name__,
            "fields": {key: encode(part, arrays, f"{where}.{key}") for key, part in parts.items()},
        }
    raise StoreError(_cannot_store(value, where))


def decode(node: Any, arrays: Mapping[str, NDArray[Any]], where: str) -> Any:
    """Return the value that `encode` wrote as `node`; anything else is a `StoreError`."""
    if node is None or isinstance(node, bool | int | float | str):
        return node
    match node:
        case {"float": "inf" | "-inf" | "nan" as text, **rest} if not rest:
            return float(text)
        case {"tuple": list(items), **rest} if not rest:
            return tuple(decode(item, arrays, f"{where}.{i}") for i, item in enumerate(items))
        case {"list": list(items), **rest} if not rest:
            return [decode(item, arrays, f"{where}.{i}") for i, item in enumerate(items)]
        case {"map": dict(items), **rest} if not rest:
            return {key: decode(item, arrays, f"{where}.{key}") for key, item in items.items()}
        case {"array": str(name), **rest} if not rest and name in arrays:
            return arrays[name]
        case {"labels": list(items), "dtype": str(dtype), **rest} if not rest:
            return _decode_labels(items, dtype, where)
        case {"table": dict(values), "index": list(index), "columns": list(columns), "name": str() | None as name}:
            return _decode_table(decode(values, arrays, where), index, columns, where).rename_axis(name)
        case {"random_state": dict(state), **rest} if not rest:
            return _decode_random_state(decode(state, arrays, where), where)
        case {"type": str(name), "fields": dict(parts), **rest} if not rest and name in (known := stored_types()):
            return _decode_dataclass(known[name], parts, arrays, where)
    raise StoreError(f"`{where}` is not a value that bayes_gda stores: {_short(node)}.")


def matches(value: Any, annotation: Any) -> bool:
    """Return whether a value is what an annotation of our dataclasses says."""
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return True
    if annotation == Floats:
        return isinstance(value, np.ndarray) and value.dtype == np.float64
    if annotation is None or annotation is type(None):
        return value is None
    if origin in (Union, types.UnionType):
        return any(matches(value, option) for option in args)
    if origin is Literal:
        return any(type(value) is type(option) and value == option for option in args)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        wanted = args[:1] * len(value) if args[1:] == (...,) else args
        return len(wanted) == len(value) and all(map(matches, value, wanted))
    if origin is Mapping:
        return isinstance(value, dict) and all(matches(item, args[1]) for item in value.values())
    return origin is None and type(value) is annotation  # bool is no int, int is no float; a Callable matches nothing


def check_type(value: Any, annotation: Any, where: str) -> None:
    """Raise unless `value` is what the annotation says."""
    if not matches(value, annotation):
        wanted = annotation.__name__ if isinstance(annotation, type) else str(annotation)
        raise StoreError(f"`{where}` must be {wanted}; got {_short(value)}.")


def _encode_array(value: NDArray[Any], arrays: Arrays, where: str) -> Any:
    if value.dtype == np.float64:
        # An array that two parts share is stored once.
        name = next((name for name, known in arrays.items() if known is value), where)
        arrays[name] = value
        return {"array": name}
    # Labels and names are few, of any type, and may hold what netCDF's strings cannot: they stand in the JSON.
    dtype = "T" if value.dtype.kind == "T" else value.dtype.str
    if value.ndim == 1 and (dtype == "T" or _DTYPES.fullmatch(dtype)):
        return {"labels": [encode(item, arrays, where) for item in value.tolist()], "dtype": dtype}
    raise StoreError(_cannot_store(value, where))


def _decode_labels(items: list[Any], dtype: str, where: str) -> NDArray[Any]:
    values = [decode(item, {}, where) for item in items]
    kind = "T" if dtype == "T" else np.dtype(dtype).kind if _DTYPES.fullmatch(dtype) else ""
    if not kind or not all(isinstance(value, _LABELS[kind]) for value in values):
        raise StoreError(f"`{where}` must hold labels of dtype {dtype}; got {_short(items)}.")
    if kind == "U" and len(values) * np.dtype(dtype).itemsize > MOST_TEXT:
        raise StoreError(f"`{where}` must have room for its labels only; got {len(values)} of dtype {dtype}.")
    out = np.empty(len(values), dtype=np.dtypes.StringDType() if kind == "T" else np.dtype(dtype))
    try:
        out[:] = values
    except OverflowError:
        raise StoreError(f"`{where}` does not fit its dtype {dtype}.") from None
    if kind != "f" and out.tolist() != values:  # NumPy cuts text that is too long
        raise StoreError(f"`{where}` does not fit its dtype {dtype}.")
    return out


def _decode_table(values: Any, index: list[Any], columns: list[Any], where: str) -> pd.DataFrame:
    check_type(values, Floats, where)
    if values.shape != (len(index), len(columns)) or not all(isinstance(label, str) for label in [*index, *columns]):
        raise StoreError(f"`{where}` must be a table of {len(index)} named rows × {len(columns)} named columns.")
    return pd.DataFrame(values, index=index, columns=columns)


def _decode_random_state(state: Any, where: str) -> np.random.RandomState:
    out = np.random.RandomState()  # scikit-learn's users may have given one
    try:
        out.set_state(state)
    except (KeyError, TypeError, ValueError):
        raise StoreError(f"`{where}` must be the state of a Mersenne Twister.") from None
    return out


def _decode_dataclass(cls: type, parts: dict[str, Any], arrays: Mapping[str, NDArray[Any]], where: str) -> Any:
    # Names that the classes' own modules import for type checkers only.
    hints = get_type_hints(cls, localns={"Diagnosis": Diagnosis, "pd": pd})
    later = _LATER.get(cls.__name__, frozenset())
    names = [item.name for item in fields(cls) if item.init and not (item.name in later and item.name not in parts)]
    if set(parts) != set(names):
        wrong = ", ".join(sorted(set(parts) ^ set(names)))
        raise StoreError(f"`{where}` does not have the fields of {cls.__name__}: {wrong}.")
    values = {name: decode(parts[name], arrays, f"{where}.{name}") for name in names}
    for name, value in values.items():
        check_type(value, hints[name], f"{where}.{name}")
    try:
        made = cls(**values)
        check(made)
    except BayesGDAError as error:  # the class's own words, and where it stands in the file
        raise StoreError(f"`{where}` is not a valid {cls.__name__}: {error}") from error
    return made


def _cannot_store(value: Any, where: str) -> str:
    if callable(value):
        return (
            f"`{where}` is a function of your own, which a file cannot hold. Use a FeatureMap of monomials (`degree`), "
            "or apply the function to X before `fit`."
        )
    return f"`{where}` cannot be stored: {_short(value)}. Use numbers, text or the priors of bayes_gda."


def _short(value: Any) -> str:
    """The type and the start of a value, on one line."""
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype} and shape {value.shape}"
    text = " ".join(repr(value).split())
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
