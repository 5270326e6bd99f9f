"""Formulas, such as `species ~ bill + C(island)*sex`, by formulaic: from the columns of a frame to features.

What a fitted formula must remember are the kinds and levels of the raw columns, and the state of transforms that learn
from rows (the centre of `scale`, the knots of `bs`). Both are plain values, so that a stored model executes nothing but
its own formula, which is checked before it is evaluated: column names, numbers, operators and the functions listed
here, and nothing else.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.arrays import read_only
from bayes_gda.data.classes import Labels
from bayes_gda.data.columns import (
    Column,
    RawColumn,
    Unseen,
    code_levels,
    constant_columns,
    fit_column,
    parse_columns,
    parse_known,
    same_kind,
)
from bayes_gda.data.validate import columns_hint, constant_message, listed
from bayes_gda.errors import DataError
from bayes_gda.extras import require

if TYPE_CHECKING:
    import pandas as pd

# Functions of formulaic whose value in a row depends on that row and on what was learnt before; `lag` looks at others.
_TRANSFORMS = (
    *("C", "I", "bs", "cc", "center", "cr", "cs", "exp", "exp10", "exp2", "log", "log10", "log2", "poly", "scale"),
    "standardize",
)
_NUMPY = ("abs", "cos", "exp", "expm1", "log", "log10", "log1p", "log2", "maximum", "minimum", "sin", "sqrt", "tanh")
_CONTRASTS = ("SAS", "diff", "helmert", "poly", "sum", "treatment")
_NODES = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.keyword),
    *(ast.List, ast.Tuple, ast.operator, ast.unaryop, ast.cmpop, ast.Attribute),
)
_INTERCEPT = "Intercept"


@dataclass(frozen=True, slots=True)
class FormulaEncoding:
    """How a formula makes features of a frame; the intercept is left to the models, which have one of their own.

    Parameters
    ----------
    formula
        The right-hand side.
    columns
        The raw columns that it needs.
    state
        What its transforms learnt from the rows, as JSON.
    feature_names
        (d,) names of the features, such as `C(island)[T.Dream]:sex`.
    """

    formula: str
    columns: tuple[Column, ...]
    state: str
    feature_names: tuple[str, ...]

    @property
    def plain(self) -> bool:
        """Whether all features are columns of numbers as they are: of a formula that is not said."""
        return False

    def encode(
        self, df: pd.DataFrame, *, missing: Literal["error", "keep"] = "error", unseen: Unseen = "error"
    ) -> Floats:
        """Return the features (n, d) of new rows; parameters as in `Encoding.encode`.

        A missing value becomes NaN in every feature that depends on it. The levels of a formula cannot be pooled.
        """
        if unseen == "pool":  # "keep", a default, has no place for a new level either: it is an error below
            raise DataError(f"`unseen` must be 'error' with a formula; got {unseen!r}.")
        raw = parse_known(df, self.columns, missing)
        X, names, _ = _materialize(self.formula, self.columns, raw, _from_json(self.state))
        if names != self.feature_names:
            raise DataError(
                f"The formula {self.formula!r} must make {listed(self.feature_names)}; got {listed(names)}."
            )
        return read_only(X)


def split_formula(formula: str) -> tuple[str | None, str]:
    """Return the target, None if there is none, and the right-hand side of a formula, `y ~ x + z` or `x + z`."""
    if not isinstance(formula, str):
        raise DataError(f"`formula` must be text, such as 'y ~ x + C(z)'; got {type(formula).__name__}.")
    left, tilde, right = formula.rpartition("~")
    target = left.strip()
    if "~" in target or (tilde and not right.strip()):
        raise DataError(f"`formula` must have one target and features, 'y ~ x + C(z)'; got {formula!r}.")
    if not target:
        return None, right.strip()
    if target.startswith("`") and target.endswith("`"):
        return target.strip("`"), right.strip()
    if not re.fullmatch(r"[^\W\d][\w.]*", target):
        raise DataError(f"The target of a formula must be the name of a column; got {target!r}. Use `…` around a name.")
    return target, right.strip()


def fit_formula(
    formula: str, df: pd.DataFrame, target: str | None = None, categorical: Iterable[str] = ()
) -> tuple[FormulaEncoding, list[RawColumn]]:
    """Learn a formula from rows: kinds and levels of its columns, and the state of its transforms.

    Parameters
    ----------
    formula
        Right-hand side; `.` stands for all columns but the target.
    df
        Rows; those that miss a value are left out here.
    target
        Column of the classes, which no feature may use.
    categorical
        Columns to take as categorical even if they look numeric; those in C(…) are anyway.

    Returns
    -------
    The encoding, and the parsed columns.
    """
    right, names, levels = _read(formula, [name for name in df.columns if name != target])
    raw = parse_columns(df, names, levels | (set(categorical) & set(names)))
    constant = constant_columns(raw)
    if constant:
        raise DataError(constant_message(constant, len(df)))
    columns = tuple(fit_column(r) for r in raw)
    complete = ~np.logical_or.reduce([r.missing for r in raw])
    if not complete.any():
        raise DataError(f"No row has all of {listed(names)}, which the formula uses. Fill in values.")
    _, features, state = _materialize(right, columns, [r.take(complete) for r in raw], {})
    return FormulaEncoding(right, columns, _to_json(state), features), raw


# ── Reading a formula ───────────────────────────────────────────────────────────────────────────────────────────────


def _read(formula: str, available: Sequence[str]) -> tuple[str, list[str], set[str]]:
    """Return the formula without `.`, the columns that it uses, and those of them that it takes as levels."""
    parsed = _parse(formula, available)
    used: dict[str, None] = {}
    plain: set[str] = set()
    levels: set[str] = set()
    for factor in (factor for term in parsed for factor in term.factors):
        method = factor.eval_method.value
        if method == "literal":
            continue
        names, coded = ({str(factor.expr)}, set[str]()) if method == "lookup" else _check_code(factor.expr)
        used |= dict.fromkeys(sorted(names))
        levels |= coded
        plain |= names - coded
    if not used:
        raise DataError(f"The formula {formula!r} has no features. Name some columns, such as 'y ~ x + z'.")
    for name in used:
        if name not in available:
            raise DataError(f"The formula names {name!r}, which is no feature column.{columns_hint(name, available)}")
    if both := sorted(plain & levels):
        raise DataError(f"The formula takes {both[0]!r} as a number and as levels; put a copy of the column in C(…).")
    if "1" not in [str(term) for term in parsed]:
        raise DataError(f"The formula {formula!r} takes the intercept away, which the models need. Leave out -1 or 0.")
    return " + ".join(_quoted(term) for term in parsed), list(used), levels


def _quoted(term: Any) -> str:
    """Return a term as text that parses again: names that are no identifiers in backticks."""
    lookup = [f.eval_method.value == "lookup" and not f.expr.isidentifier() for f in term.factors]
    return ":".join(f"`{f.expr}`" if quote else f.expr for f, quote in zip(term.factors, lookup, strict=True))


def _parse(formula: str, available: Sequence[str] = ()) -> Any:
    require("formulaic", "A formula")
    from formulaic import Formula, SimpleFormula
    from formulaic.errors import FormulaicError

    try:
        parsed = Formula(formula, _context={"__formulaic_variables_available__": list(available)})
    except (FormulaicError, SyntaxError, ValueError) as error:
        cause = str(error).split("\n")[0].rstrip(".")
        raise DataError(f"Cannot read the formula {formula!r}: {cause}. Write it as 'y ~ x + C(z)*u'.") from error
    if not isinstance(parsed, SimpleFormula):
        raise DataError(f"The formula {formula!r} must have one part on its right-hand side; leave out '|'.")
    return parsed


def _check_code(text: str) -> tuple[set[str], set[str]]:
    """Return the columns of an expression, and those within C(…); raise if it is more than arithmetic.

    A formula is evaluated by Python, also one that comes with a stored model: so nothing else may be named in it.
    """
    quoted: dict[str, str] = {}

    def plain_name(match: re.Match[str]) -> str:
        name = f"_quoted_{len(quoted)}"
        quoted[name] = match.group(1)
        return name

    try:
        tree = ast.parse(re.sub(r"`([^`]*)`", plain_name, text), mode="eval")
    except SyntaxError:
        _refuse(text, "it is no expression")
    functions: set[int] = set()
    levels: set[str] = set()
    for node in ast.walk(tree):
        if not isinstance(node, _NODES):
            _refuse(text, f"{type(node).__name__} is none of arithmetic, comparisons and calls")
        if isinstance(node, ast.Call):
            functions |= {id(inner) for inner in ast.walk(node.func)}
            levels |= _check_call(text, node)
        if isinstance(node, ast.Attribute):
            functions |= {id(inner) for inner in ast.walk(node)}
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr not in {"np": _NUMPY, "contr": _CONTRASTS}.get(owner, ()):
                _refuse(text, f"{ast.unparse(node)!r} is not offered")
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions}
    return {quoted.get(name, name) for name in names}, {quoted.get(name, name) for name in levels}


def _check_call(text: str, node: ast.Call) -> set[str]:
    """Check the function of a call, and return the columns that it takes as levels."""
    if isinstance(node.func, ast.Attribute):
        return set()  # checked where it stands
    if not isinstance(node.func, ast.Name) or node.func.id not in _TRANSFORMS:
        _refuse(text, f"the functions are {', '.join(_TRANSFORMS)}, np.log and the like")
    if node.func.id != "C":
        return set()
    if not node.args or not isinstance(node.args[0], ast.Name):
        _refuse(text, "C(…) takes the name of a column")
    assert isinstance(node.args[0], ast.Name)
    return {node.args[0].id}


def _refuse(text: str, why: str) -> NoReturn:
    raise DataError(f"The formula may not use {text!r}: {why}. Compute it as a column of the table instead.")


# ── From raw columns to features ────────────────────────────────────────────────────────────────────────────────────


def _materialize(
    formula: str, columns: Sequence[Column], raw: Sequence[RawColumn], state: dict[str, Any]
) -> tuple[Floats, tuple[str, ...], dict[str, Any]]:
    """Return features (n, d), NaN where a value they need is missing, their names, and the state of the transforms."""
    import pandas as pd

    _read(formula, [column.name for column in columns])  # what a file holds is checked again
    from formulaic import ModelSpec
    from formulaic.errors import FormulaicError

    frame = pd.DataFrame({c.name: _cells(c, r) for c, r in zip(columns, raw, strict=True)})
    spec = ModelSpec(formula=_parse(formula), transform_state=state, output="numpy", na_action="ignore")
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            matrix = spec.get_model_matrix(frame, context={})
    except (FormulaicError, ValueError, TypeError, ArithmeticError) as error:
        cause = str(error).split("\n")[0].rstrip(".")
        raise DataError(f"Cannot compute the formula {formula!r}: {cause}. Correct it or the columns.") from error
    made = matrix.model_spec
    X = np.array(matrix, dtype=np.float64)
    _check_computed(X, made.column_names, formula)
    for column, parsed in zip(columns, raw, strict=True):
        X[np.ix_(parsed.missing, made.variable_indices[column.name])] = np.nan
    kept = [j for j, name in enumerate(made.column_names) if name != _INTERCEPT]
    return np.ascontiguousarray(X[:, kept]), tuple(made.column_names[j] for j in kept), made.transform_state


def _check_computed(X: Floats, names: Sequence[str], formula: str) -> None:
    """Raise if a feature is not a number where all its values are there: log(0), or a spline beyond its ends."""
    bad = ~np.isfinite(X)
    if bad.any():
        row, j = (int(index) for index in np.argwhere(bad)[0])
        raise DataError(
            f"{names[j]!r} of the formula {formula!r} is {X[row, j]:g} in row {row + 1}. Change the formula, or leave "
            "out such rows."
        )


def _cells(column: Column, raw: RawColumn) -> Any:
    """Return a column for formulaic, with gaps filled by some value that it has, as they are blanked afterwards."""
    import pandas as pd

    if isinstance(raw.cells, Labels) and column.kind == "categorical":
        codes = np.maximum(code_levels(column, raw.cells, "error"), 0)
        return pd.Categorical.from_codes(codes, categories=pd.Index(list(column.levels)))
    cells = same_kind(column, raw)
    present = cells[~raw.missing]
    return np.where(raw.missing, present[0] if len(present) else 1.0, cells)


# ── The state as JSON ───────────────────────────────────────────────────────────────────────────────────────────────


def _to_json(state: Any) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {"dict": [[plain(key), plain(entry)] for key, entry in value.items()]}
        if isinstance(value, np.ndarray):
            return {"array": value.tolist()}
        if isinstance(value, (list, tuple)):
            return [plain(entry) for entry in value]
        return value.item() if isinstance(value, np.generic) else value

    try:
        return json.dumps(plain(state))
    except TypeError as error:
        raise DataError(f"A transform of the formula keeps what cannot be stored: {error}. Leave it out.") from error


def _from_json(text: str) -> dict[str, Any]:
    def restored(value: Any) -> Any:
        match value:
            case {"dict": list(items)}:
                return {restored(key): restored(entry) for key, entry in items}
            case {"array": list(items)}:
                return np.array(items)
            case list(items):
                return [restored(entry) for entry in items]
        return value

    state = restored(json.loads(text))
    if not isinstance(state, dict):
        raise DataError("The state of a formula must be a table of its transforms.")
    return state
