"""How a table's raw columns became the features of a stored model, so that it can read such a table again.

    {"tuple": [{"tuple": [name, kind, {"tuple": levels}]}, …]}

It stands in the record of the file beside the estimator, under "encoding"; readers that do not look for it pass it by.
"""

from typing import Any

from bayes_gda.data.classes import check_labels
from bayes_gda.data.columns import Column, Encoding
from bayes_gda.errors import DataError, StoreError
from bayes_gda.store.codecs import decode, encode


def to_node(encoding: Encoding) -> Any:
    """Return an encoding as JSON."""
    return encode(tuple((c.name, c.kind, c.levels) for c in encoding.columns), {}, "encoding")


def from_node(node: Any, n_features: int) -> Encoding:
    """Return the encoding that `to_node` wrote; it must yield as many features as the model has."""
    columns = decode(node, {}, "encoding")
    if not isinstance(columns, tuple) or not columns:
        raise StoreError("`encoding` must list the columns of a table.")
    encoding = Encoding(tuple(_column(column) for column in columns))
    names = encoding.feature_names
    if len(names) != n_features or len({c.name for c in encoding.columns}) < len(columns):
        raise StoreError(f"`encoding` must make the {n_features} features of the model; it makes {len(names)}.")
    return encoding


def _column(value: Any) -> Column:
    match value:
        case (str(name), ("numeric" | "boolean" | "categorical") as kind, tuple(levels)):
            pass
        case _:
            raise StoreError("`encoding` must say name, kind and levels of every column.")
    try:
        check_labels(levels, "`encoding`")
    except DataError as error:
        raise StoreError(str(error)) from error
    if (kind == "categorical") != (len(levels) > 1) or len(set(levels)) < len(levels):
        raise StoreError(
            f"`encoding` must give levels to categorical columns, two or more; column {name!r:.60} differs."
        )
    return Column(name, kind, levels)
