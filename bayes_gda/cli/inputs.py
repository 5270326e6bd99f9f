"""What comes in: a table from a file, an example by name, a matrix of costs."""

import csv
import io
import json
import shutil
import sys
import tempfile
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.checks import Floats, frozen
from bayes_gda.cli.shell import note
from bayes_gda.data.columns import Column, Encoding
from bayes_gda.data.files import read_frame
from bayes_gda.data.frames.encode import AnyEncoding
from bayes_gda.data.frames.index import warn_of_index
from bayes_gda.data.frames.text import AS_FOUND, Dialect
from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import columns_hint, drop_columns, listed
from bayes_gda.errors import DataError, DataWarning
from bayes_gda.families.registry import family_names

if TYPE_CHECKING:
    import pandas as pd

EXAMPLE = "example:"
STDIN = "-"
# The class column of an example, which has no name of its own; not taken by a feature of any of them.
EXAMPLE_TARGET = "class"


@dataclass(frozen=True, slots=True)
class TableOptions:
    """How to read a table.

    Parameters
    ----------
    target
        Column of the classes; None for an example.
    categorical, drop
        Columns to take as categorical, and columns to leave out.
    missing
        `error`, or `drop` rows with missing values, or `keep` them for models that take them.
    formula
        Features, and the target if that is None; None takes all columns.
    constant
        `error`, or `drop` columns that do not vary.
    dialect
        How a text file is written.
    format
        Type of the file, such as `csv`; None if its name says it.
    """

    target: str | None
    categorical: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    missing: str = "error"
    formula: str | None = None
    constant: str = "error"
    dialect: Dialect = AS_FOUND
    format: str | None = None

    def words(self) -> tuple[str, ...]:
        """Return the options but the target as one would type them."""
        columns = [("--categorical", name) for name in self.categorical] + [("--drop", name) for name in self.drop]
        gaps = [("--missing", self.missing)] if self.missing != "error" else []
        said = {"--formula": self.formula, "--format": self.format, "--sep": self.dialect.sep}
        said |= {"--decimal": self.dialect.decimal, "--encoding": self.dialect.encoding}
        more = [(name, value) for name, value in said.items() if value]
        flags = ("--drop-constant",) if self.constant == "drop" else ()
        return (*(word for pair in columns + gaps + more for word in pair), *flags)


def model_names(texts: Sequence[str] | None, option: str) -> tuple[str, ...] | None:
    """Return the names of models, given with commas or one by one, or raise if one is none of a model."""
    names = [name.strip() for text in texts or () for name in text.split(",") if name.strip()]
    for name in names:
        if name not in family_names():
            raise DataError(f"`{option}` must be out of {', '.join(family_names())}; got {name!r}.")
    return tuple(dict.fromkeys(names)) or None


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def read_data(source: str, options: TableOptions) -> Dataset:
    """Read a file, or load `example:NAME`; the data set is complete unless gaps are to be kept."""
    if not source.startswith(EXAMPLE):
        return _from_file(source, options)
    from bayes_gda.data.examples import load_example

    if options.target not in (None, EXAMPLE_TARGET):
        raise DataError(f"`--target` of an example is always {EXAMPLE_TARGET!r}; got {options.target!r}. Leave it out.")
    if options.categorical or options.drop or options.formula:
        raise DataError(
            "`--categorical`, `--drop` and `--formula` are for files; got an example. Write it to a file first: "
            f"bayes-gda examples {source.removeprefix(EXAMPLE)} -o FILE.csv"
        )
    data = load_example(source.removeprefix(EXAMPLE))
    if data.has_missing and options.missing == "drop":
        return data.subset(~np.isnan(data.X).any(axis=1))
    if data.has_missing and options.missing == "error":
        gaps = int(np.isnan(data.X).any(axis=1).sum())
        raise DataError(
            f"{source} has missing values in {gaps} of {data.n} rows; leave those out with --missing drop, or keep "
            "them for lda, qda and naive with --missing keep."
        )
    return data


def encoding_of(data: Dataset) -> AnyEncoding:
    """Return how a raw table becomes the features of `data`; those that came as arrays are numeric columns."""
    return data.encoding or Encoding(tuple(Column(name, "numeric") for name in data.feature_names))


def labels_of(data: Dataset) -> Any:
    """Return the labels (n,) of the rows in an array that scikit-learn takes; text as objects, which cut nothing."""
    text = isinstance(data.class_names[0], str)
    return np.array(data.class_names, dtype=object if text else None)[data.y]


def table_of(data: Dataset) -> "pd.DataFrame":
    """Return a data set as a table whose last column, `class`, holds the labels."""
    import pandas as pd

    frame = pd.DataFrame(data.X, columns=list(data.feature_names))
    return frame.assign(**{EXAMPLE_TARGET: labels_of(data)})


def read_new_rows(
    path: str, encoding: AnyEncoding, dialect: Dialect = AS_FOUND, kind: str | None = None
) -> "pd.DataFrame":
    """Read a table that has every column of the encoding; those that are missing are all named at once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a column that the model does not have is ignored anyway
        frame = _read_file(path, dialect, kind)
    absent = [column.name for column in encoding.columns if column.name not in frame.columns]
    if absent:
        hint = columns_hint(absent[0], frame.columns) if len(absent) == 1 else f" It has {listed(frame.columns)}."
        raise DataError(f"{path!r} lacks the column{'s' * (len(absent) > 1)} {listed(absent)} of the model.{hint}")
    if not len(frame):
        raise DataError(f"{path!r} has no rows. Add some below the header.")
    return frame


def read_test_rows(path: str, data: Dataset, options: TableOptions) -> Dataset:
    """Read a table with classes by the encoding of `data`; a level that `data` lacks is as in `predict`, an error.

    Where missing values are kept, such a level is one of them.
    """
    encoding = encoding_of(data)
    target = options.target or (EXAMPLE_TARGET if options.formula is None else options.formula.split("~")[0].strip())
    frame = read_new_rows(path, encoding, options.dialect)
    if target not in frame.columns:
        raise DataError(
            f"{path!r} lacks the class column {target!r}.{columns_hint(target, frame.columns)} `--test` needs the "
            "classes; to predict rows without, use `fit` and `predict`."
        )
    known = data if data.encoding is not None else replace(data, encoding=encoding)
    unseen: Any = "keep" if options.missing == "keep" else "error"
    asked: dict[str, Any] = {"target": target, "missing": options.missing, "unseen": unseen}
    try:
        return known.encode_labelled(frame, **asked)
    except DataError as error:
        text = str(error).replace('missing="drop"', "--missing drop").replace('missing="keep"', "--missing keep")
        raise DataError(f"{path!r}: {text}") from error


def _read_file(name: str, dialect: Dialect, kind: str | None = None) -> "pd.DataFrame":
    """Read a file, or stdin, whole; a folder is for `fit`, which takes it in batches."""
    if name == STDIN:
        return _read_stdin(dialect, kind or "csv")
    path = Path(name)
    if path.is_dir():
        raise DataError(f"{name!r} is a folder, which only `fit` reads. Give a file.")
    try:
        return read_frame(path, dialect, None if kind is None else f".{kind}")
    except DataError as error:
        text = str(error)
        if text.startswith("Cannot tell the type"):
            raise DataError(f"{text.rstrip('.')}, or say it: --format csv.") from None
        raise


def _read_stdin(dialect: Dialect, kind: str) -> "pd.DataFrame":
    """Read a table from stdin, by way of a file, as some types are not read from their beginning to their end."""
    if sys.stdin.isatty():
        note("Reading rows from the terminal; Ctrl-D ends them.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stdin.{kind}"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        if not path.stat().st_size:
            raise DataError("Stdin is empty. Pipe a table into it, or name a file.")
        try:
            return read_frame(path, dialect)
        except DataError as error:
            raise DataError(str(error).replace(repr(str(path)), "stdin").replace(repr(path.name), "stdin")) from None


def _from_file(source: str, options: TableOptions) -> Dataset:
    if options.target is None and options.formula is None:
        raise DataError("`--target` must name the column that holds the classes. Add: --target COLUMN")
    return _data_of(_read_file(source, options.dialect, options.format), options)


def read_labelled(source: str, options: TableOptions) -> "tuple[pd.DataFrame, Dataset]":
    """Read a table, or load an example, and return its rows as they came and as a data set."""
    if source.startswith(EXAMPLE):
        data = read_data(source, options)
        return table_of(data), data
    if options.target is None:
        raise DataError("`--target` must name the column that holds the classes. Add: --target COLUMN")
    frame = _read_file(source, options.dialect, options.format)
    return frame, _data_of(frame, options)


def _data_of(frame: "pd.DataFrame", options: TableOptions) -> Dataset:
    """Return the data set of a table that was read."""
    asked: dict[str, Any] = {"missing": options.missing, "constant": options.constant, "formula": options.formula}
    try:
        frame = drop_columns(frame, options.drop, options.target)
        if options.formula is None:
            warn_of_index(frame, options.target)
        return Dataset.from_frame(frame, target=options.target, categorical=options.categorical, **asked)
    except DataError as error:
        # The remedies of the library in the words of the command line.
        text = str(error).replace('missing="drop"', "--missing drop")
        text = text.replace('missing="keep"', "--missing keep")
        text = text.replace('constant="drop"', "--drop-constant").replace("`drop` names", "`--drop` names")
        raise DataError(text.replace("Drop the column.", "Drop the column: --drop COL.")) from error


# ── Costs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """What each action costs under each class.

    Parameters
    ----------
    matrix
        (A, K) costs, in the order of the classes that were asked for.
    actions
        A names.
    """

    matrix: Floats
    actions: tuple[str, ...]


def read_costs(path: str, class_names: Sequence[Any]) -> Costs:
    """Read a matrix of costs, one row an action and one column a true class, from a CSV or JSON file.

    Parameters
    ----------
    path
        The file. CSV: numbers, with a header of class names and a first column of action names if there are letters.
        JSON: a list of lists, or {action: {class: cost}}.
    class_names
        (K,) classes, the order of the result. Without names in the file, its order is theirs, sorted; it then must be
        K × K, and its actions are the classes.
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"The cost file {path!r} is not text in UTF-8. Save it so.") from None
    except OSError as error:
        raise DataError(f"Cannot read the cost file {path!r}: {error.strerror}. Check the path.") from error
    known = [str(name) for name in class_names]
    try:
        actions, classes, cells = _parse_json(text) if text.lstrip()[:1] in ("[", "{") else _parse_csv(text, known)
        return _arrange(actions, classes, cells, class_names)
    except DataError as error:
        raise DataError(f"The cost file {path!r} {error} See: bayes-gda predict --help") from error


_Parsed = tuple[list[str] | None, list[str] | None, list[list[Any]]]


def _parse_json(text: str) -> _Parsed:
    try:
        value = json.loads(text, object_pairs_hook=_distinct)
    except RecursionError:
        raise DataError("is not valid JSON: too deeply nested.") from None
    except json.JSONDecodeError as error:
        raise DataError(f"is not valid JSON: {error}.") from None
    except DataError:
        raise
    except ValueError:  # Python reads no whole number of more than 4300 digits
        raise DataError("must hold finite numbers; one has thousands of digits.") from None
    if isinstance(value, list) and value and all(isinstance(row, list) for row in value):
        return None, None, value
    if isinstance(value, dict) and value and all(isinstance(row, dict) for row in value.values()):
        classes = list(next(iter(value.values())))
        for action, row in value.items():
            if set(row) != set(classes):
                raise DataError(f"must name the same classes for every action; {action!r} has {listed(row)}.")
        return list(value), classes, [[row[name] for name in classes] for row in value.values()]
    raise DataError("must be a list of lists, or {action: {class: cost}}.")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        raise DataError("names something twice.")
    return out


def _parse_csv(text: str, known: Sequence[str]) -> _Parsed:
    separator = "\t" if "\t" in text.split("\n", 1)[0] else ","
    try:
        lines = [[cell.strip() for cell in line] for line in csv.reader(io.StringIO(text), delimiter=separator)]
    except csv.Error as error:
        raise DataError(f"is not valid CSV: {error}.") from None
    lines = [line for line in lines if any(line)]
    if not lines:
        raise DataError("is empty.")
    width = len(lines[0])
    if any(len(line) != width for line in lines):
        raise DataError(f"must have {width} cells in every line, as in its first.")
    named = width == len(known) + 1
    # Classes may be called 0 and 1. A line of these is a header if its first cell says so, or else above K others, as
    # K + 1 actions would need names.
    first = lines[0]
    numeric = first[0].lower() in ("", "action") if named else len(lines) == len(known) + 1
    numeric = numeric and sorted(first[named:]) == sorted(known)
    header = lines.pop(0) if numeric or any(_number(cell) is None for cell in first[named:]) else None
    if named and header is None:
        raise DataError("names its actions but not its classes; add a header: action,CLASS,CLASS,…")
    actions = [line[0] for line in lines] if named else None
    return actions, header and header[named:], [line[named:] for line in lines]


def _arrange(
    actions: list[str] | None, classes: list[str] | None, cells: list[list[Any]], class_names: Sequence[Any]
) -> Costs:
    """Put the columns in the order of the classes."""
    K, known = len(class_names), [str(name) for name in class_names]
    natural = [str(name) for name in sorted(class_names)]
    if len(cells) < 2 or any(len(row) != K for row in cells):
        got = f"{len(cells)} × {len(cells[0]) if cells else 0}"
        raise DataError(
            f"must have a column for each of the {K} classes ({listed(known)}) and 2 rows or more; got {got}."
        )
    if actions is None:
        if len(cells) != K:
            raise DataError(f"must name its {len(cells)} actions, as they are not the {K} classes.")
        actions = classes or natural
    classes = classes or natural
    if sorted(classes) != sorted(known):
        raise DataError(f"must have the classes {listed(known)} as columns; got {listed(classes)}.")
    if len(set(actions)) < len(actions) or "" in actions:
        raise DataError(f"must give each action a name of its own; got {listed(actions)}.")
    order = [classes.index(name) for name in known]
    return Costs(frozen([[_cost(row[j], actions[i]) for j in order] for i, row in enumerate(cells)]), tuple(actions))


def _cost(cell: Any, action: str) -> float:
    value = _number(cell)
    if value is None or not np.isfinite(value):
        raise DataError(f"must hold finite numbers; got {cell!r:.60} for action {action!r}.")
    return value


def _number(cell: Any) -> float | None:
    """Return a cell as a number, or None if it is none; "1_000" is not one, and true is not 1."""
    if isinstance(cell, bool) or not isinstance(cell, int | float | str) or "_" in str(cell):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None
