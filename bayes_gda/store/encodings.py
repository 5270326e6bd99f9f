"""How a table's raw columns became the features of a stored model, so that it can read such a table again.

    {"tuple": [column, …]}                                                               column by column
    {"tuple": [formula, {"tuple": [column, …]}, state, {"tuple": feature names}]}        by a formula

with column = {"tuple": [name, kind, {"tuple": levels}, {"tuple": shares}]}, the shares only where they were counted. It
stands in the record of the file beside the estimator, under "encoding"; readers that do not look for it pass it by.
"""

from typing import Any

from bayes_gda.data.classes import check_labels
from bayes_gda.data.columns import Column, Encoding
from bayes_gda.data.frames.encode import AnyEncoding
from bayes_gda.data.frames.formula import FormulaEncoding
from bayes_gda.errors import DataError, StoreError
from bayes_gda.store.codecs import decode, encode


def to_node(encoding: AnyEncoding) -> Any:
    """Return an encoding as JSON."""
    columns = tuple((c.name, c.kind, c.levels, *([c.shares] if c.shares else [])) for c in encoding.columns)
    if isinstance(encoding, Encoding):
        return encode(columns, {}, "encoding")
    return encode((encoding.formula, columns, encoding.state, encoding.feature_names), {}, "encoding")


def from_node(node: Any, n_features: int) -> AnyEncoding:
    """Return the encoding that `to_node` wrote; it must yield as many features as the model has."""
    encoding: AnyEncoding
    match decode(node, {}, "encoding"):
        case (str(formula), tuple(columns), str(state), tuple(names)) if all(isinstance(name, str) for name in names):
            encoding = FormulaEncoding(formula, _columns(columns), state, names)
        case tuple(columns):
            encoding = Encoding(_columns(columns))
        case _:
            raise StoreError("`encoding` must list the columns of a table.")
    width = len(encoding.feature_names)
    if width != n_features or len({c.name for c in encoding.columns}) < len(encoding.columns):
        raise StoreError(f"`encoding` must make the {n_features} features of the model; it makes {width}.")
    return encoding


def _columns(values: tuple[Any, ...]) -> tuple[Column, ...]:
    if not values:
        raise StoreError("`encoding` must list the columns of a table.")
    return tuple(_column(value) for value in values)


def _column(value: Any) -> Column:
    match value:
        case (str(name), ("numeric" | "boolean" | "categorical") as kind, tuple(levels), *more) if len(more) < 2:
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
    shares = more[0] if more else ()
    if not isinstance(shares, tuple) or (shares and not _are_shares(shares, len(levels))):
        raise StoreError(f"`encoding` must give a share to each level; column {name!r:.60} differs.")
    return Column(name, kind, levels, tuple(float(share) for share in shares))


def _are_shares(values: tuple[Any, ...], levels: int) -> bool:
    numbers = all(isinstance(value, (int, float)) and 0 <= value <= 1 for value in values)
    return len(values) == levels and numbers and abs(sum(values) - 1) < 1e-9
