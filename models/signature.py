"""What a model was built from, kept beside it: the family's name and the data and prior of the call.

A `pm.Model` is a graph, from which the closed forms behind it cannot be read off again. `build` signs each model, so
that its family can be made anew, with hand-written densities: the same functions as the graph but a hundred times
cheaper to prepare. A model that was changed afterwards no longer matches its signature and is taken as the graph it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pymc as pm


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """The call of `build` that wrote a model.

    Parameters
    ----------
    family
        Name of the family.
    arguments
        What the family is made of, by the names of its fields.
    parts
        Identities of all that entered the log density, and the values of `pm.Data` then.
    """

    family: str
    arguments: Mapping[str, Any]
    parts: tuple[tuple[int, ...], ...]
    values: Mapping[str, Any]


def sign(model: "pm.Model", family: str, **arguments: Any) -> "pm.Model":
    """Leave the signature with the model."""
    values = {shared.name: shared.get_value(borrow=True) for shared in model.data_vars}
    model.signature = Signature(family, arguments, _parts(model), values)
    return model


def signature_of(model: "pm.Model") -> Signature | None:
    """Return what the model was built from; None if that is not known, or the model was changed since."""
    signature: Signature | None = getattr(model, "signature", None)
    if signature is None or _parts(model) != signature.parts:
        return None
    same = all(np.array_equal(model[name].get_value(borrow=True), value) for name, value in signature.values.items())
    return signature if same else None


def _parts(model: "pm.Model") -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(map(id, group)) for group in (model.free_RVs, model.observed_RVs, model.potentials))
