"""Read a data frame from a file: text, Arrow's binary types, Excel, JSON lines."""

from __future__ import annotations

import gzip
import json
import zipfile
import zlib
from contextlib import AbstractContextManager
from typing import IO, TYPE_CHECKING, Any

from bayes_gda.data.frames.index import without_nameless_index
from bayes_gda.data.frames.text import AS_FOUND, Dialect
from bayes_gda.data.validate import check_distinct, near_misses
from bayes_gda.errors import DataError
from bayes_gda.extras import require
from bayes_gda.memory import FREELY, free_memory, require_memory
from bayes_gda.processes.state import Shared, warning_rule

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

# The file types, with the separator of those that are text.
_KINDS = {
    ".csv": ",",
    ".csv.gz": ",",
    ".tsv": "\t",
    ".tsv.gz": "\t",
    ".parquet": None,
    ".feather": None,
    ".xlsx": None,
    ".jsonl": None,
    ".ndjson": None,
}

# Bytes of a row beyond which a text is no table: a million numbers have 20 MB.
LONGEST_LINE = 50_000_000

DAMAGED_NOTES = "what it says of its columns is damaged"

# What the readers of pandas raise on a file that is not what its name says, and on damaged notes of its columns.
_OF_CONTENT = (ValueError, OSError, EOFError, NotImplementedError, RecursionError, zipfile.BadZipFile, zlib.error)
_OF_NOTES = (LookupError, TypeError, AttributeError)


def read_frame(path: Path, dialect: Dialect = AS_FOUND, kind: str | None = None) -> pd.DataFrame:
    """Read a file; whatever is wrong with it is a `DataError`.

    Parameters
    ----------
    path
        The file.
    dialect
        How a text file is written; what is None is found out.
    kind
        Its type, such as `.csv`; None if its name says it.
    """
    import pandas as pd

    kind = kind or next((known for known in _KINDS if path.name.lower().endswith(known)), None)
    if kind is None:
        raise DataError(f"Cannot tell the type of {str(path)!r}; name it as one of {', '.join(_KINDS)}.")
    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"No such file: {str(path)!r}.{near_misses(path.name, siblings) or ' Check the path.'}")
    if kind in (".parquet", ".feather"):
        require("pyarrow", f"A {kind} file")
    if kind == ".xlsx":
        require("openpyxl", "An .xlsx file")
    try:
        _check_size(path, kind)
        if kind == ".xlsx":
            return pd.read_excel(path)
        if kind in (".jsonl", ".ndjson"):
            return _read_json_lines(path)
        if kind == ".parquet":
            return pd.read_parquet(path)
        if kind == ".feather":
            _check_arrow(path)
            return pd.read_feather(path)
        return _read_text(path, dialect.resolve(path, str(_KINDS[kind])))
    except DataError:
        raise
    except (*_OF_CONTENT, *_OF_NOTES) as error:
        cause = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        if isinstance(error, _OF_NOTES):  # whose text is a mere name
            cause = DAMAGED_NOTES
        raise DataError(
            f"Cannot read {str(path)!r} as {kind[1:]}: {cause}. Check that the file is whole and of that type."
        ) from error


def _check_arrow(path: Path) -> None:
    """Raise `ValueError` if the arrays of a damaged file point beyond its end: Arrow would read there, and crash."""
    import pyarrow as pa
    from pyarrow.feather import read_table

    try:
        read_table(path).validate(full=True)
    except pa.ArrowMemoryError as error:  # a length of its own that is damaged: that of the file was looked at
        raise ValueError(str(error)) from None


def _check_size(path: Path, kind: str) -> None:
    """Raise if a file would take more memory than is free: a small one may say of itself that it is large."""
    if kind == ".parquet":
        from pyarrow.parquet import ParquetFile

        with ParquetFile(path) as file:
            about = file.metadata
            sizes = [about.row_group(i).total_byte_size for i in range(about.num_row_groups)]
            # Equal values are stored once, whatever their number; in memory each takes at least a pointer.
            size = max(8.0 * about.num_rows * about.num_columns, float(sum(sizes)))
    elif kind == ".xlsx" and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as parts:
            size = float(sum(part.file_size for part in parts.infolist()))
    elif kind.endswith(".gz"):
        with gzip.open(path) as file:
            size = float(_text_size(file, path.name))
    else:
        size = float(path.stat().st_size)
        if size > LONGEST_LINE and kind not in (".xlsx", ".feather"):
            with open(path, "rb") as text:
                _text_size(text, path.name)
    # As Arrow and as pandas, or as text and as columns.
    require_memory(3 * size, f"The table in {path.name!r}", "Fit it by its path, in batches, or use fewer columns.")


def _text_size(file: IO[bytes] | gzip.GzipFile, name: str) -> int:
    """Return the length of a text, as far as it matters: until it is too long. Raises if a line is."""
    free = free_memory()
    most, total, line = (FREELY if free is None else int(free)), 0, 0
    while total <= most and (piece := file.read(1 << 20)):
        total += len(piece)
        end = piece.rfind(b"\n")
        line = len(piece) - end - 1 if end >= 0 else line + len(piece)
        if line > LONGEST_LINE:
            raise DataError(
                f"A line of {name!r} has more than {LONGEST_LINE // 10**6} MB, which no row of a table has. Check that "
                "quotation marks are closed and that lines end."
            )
    return total


def _read_json_lines(path: Path) -> pd.DataFrame:
    """Read objects, one a line; text stays text, where pandas would look for dates, and no digit is rounded."""
    import pandas as pd

    rows = []
    with path.open(encoding="utf-8-sig") as file:
        for i, line in enumerate(file):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise ValueError(f"line {i + 1} is not valid JSON: {error.msg}") from None
            if not isinstance(row, dict):
                raise ValueError(f"line {i + 1} must be an object with the columns as names")
            rows.append(row)
    return pd.DataFrame(rows)


def _read_text(path: Path, dialect: Dialect) -> pd.DataFrame:
    import pandas as pd

    options: dict[str, Any] = {"sep": dialect.sep, "encoding": dialect.encoding}
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, keep_default_na=False, **options).iloc[0].tolist()
    # Pandas would rename the second of two equal names to `a.1`, and call a nameless column `Unnamed: 0`.
    check_distinct(header, "Column name")
    nameless = header[0] == "" and "" not in header[1:] and len(header) > 1  # as R and pandas write row names
    if "" in header and not nameless:
        where = header.index("") + 1
        raise DataError(
            f"Column {where} of {str(path)!r} has no name; if it holds row names, write the file without them."
        )
    # Without index_col, rows longer than the header would become an index; with it they lose their end.
    with _LONG_ROWS:
        try:
            df: pd.DataFrame = pd.read_csv(
                path, index_col=False, low_memory=False, decimal=dialect.decimal or ".", **options
            )
        except pd.errors.ParserWarning:
            raise ValueError("some rows have more fields than the header") from None
    if not nameless:
        return df
    rest = without_nameless_index(df, str(df.columns[0]), repr(str(path)))
    if rest is None:
        raise DataError(
            f"Column 1 of {str(path)!r} has no name; if it holds row names, write the file without them, else name it."
        )
    return rest


def _no_long_rows() -> AbstractContextManager[None]:
    import pandas as pd

    return warning_rule("error", "", pd.errors.ParserWarning)


_LONG_ROWS = Shared(_no_long_rows)
