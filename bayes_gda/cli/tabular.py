"""Rows that go out: as CSV, or as another type of table, to a file or to stdout."""

import io
import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayes_gda.cli.outputs import STDOUT, plain, print_text, write_bytes, write_json
from bayes_gda.cli.shell import note
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

# Types of tables that a name may end in; any other name is of a CSV file.
TEXT, BINARY = ("csv", "tsv", "jsonl"), ("parquet", "feather", "xlsx")
# Names of other types, under which nobody expects a CSV file.
UNWRITTEN = ("json", "xls", "ods", "html", "xml", "dta", "sav", "sas7bdat", "rds", "rdata", "gz", "zip", "nc")


def check_kind(out: str | None, kind: str | None) -> str:
    """Return the type of the rows that are written, or raise if it cannot be, before the work and not after it.

    Parameters
    ----------
    out
        Path of a file; `-` and None are stdout.
    kind
        The type that was asked for; None for that which the name of the file stands for.
    """
    ending = "" if out is None else out.lower().rpartition(".")[2].replace("ndjson", "jsonl")
    if kind is None and ending in UNWRITTEN:
        raise DataError(
            f"Rows are not written as .{ending}; got {out!r}. Name a file of type {', '.join(TEXT + BINARY)}, or say "
            "--to TYPE to keep the name."
        )
    kind = kind or (ending if ending in TEXT + BINARY else "csv")
    if kind in BINARY:
        from bayes_gda.extras import require

        if out in (None, STDOUT) and sys.stdout.isatty():
            raise DataError(f"Rows of type {kind} are not shown on a terminal. Name a file: -o rows.{kind}")
        require(
            "openpyxl" if kind == "xlsx" else "pyarrow", f"An .{kind} file" if kind == "xlsx" else f"A .{kind} file"
        )
    return kind


def write_rows(
    table: "pd.DataFrame",
    out: str | None,
    summary: Mapping[str, Any] | None,
    kind: str = "csv",
    *,
    formulas: bool = False,
) -> None:
    """Write rows to a file or to stdout; with a summary, print that as JSON, and the rows in it if no file.

    Parameters
    ----------
    table
        The rows; its index is left out.
    out
        Path of a file; `-` and None are stdout.
    summary
        What `--json` prints; None without that option.
    kind
        Type of the table, as `check_kind` returns it.
    formulas
        Whether text that a spreadsheet would take for a formula stays as it is.
    """
    to_file = out is not None and out != STDOUT
    if to_file:
        write_bytes(str(out), _as_bytes(table, kind, formulas))
        note(f"Wrote {out}: {len(table)} row{'s' * (len(table) != 1)}.")
    if summary is not None:
        rows = {} if to_file else {"rows": table.to_dict(orient="records")}
        write_json({**summary, "out": out if to_file else None, **rows})
    elif not to_file and kind in TEXT:
        print_text(_as_bytes(table, kind, formulas).decode())
    elif not to_file:
        sys.stdout.buffer.write(_as_bytes(table, kind, formulas))


def _as_bytes(table: "pd.DataFrame", kind: str, formulas: bool) -> bytes:
    if kind in ("csv", "tsv", "xlsx") and not formulas:
        table = without_formulas(table)
    if kind in ("csv", "tsv"):
        text = table.to_csv(index=False, lineterminator="\n", sep="\t" if kind == "tsv" else ",")
        return text.encode("utf-8", errors="backslashreplace")
    if kind == "jsonl":
        lines = [json.dumps(plain(row), ensure_ascii=False) + "\n" for row in table.to_dict(orient="records")]
        return "".join(lines).encode("utf-8", errors="backslashreplace")
    memory = io.BytesIO()
    if kind == "parquet":
        table.to_parquet(memory, index=False)
    elif kind == "feather":
        table.to_feather(memory)
    else:
        table.to_excel(memory, index=False, engine="openpyxl")
    return memory.getvalue()


def without_formulas(table: "pd.DataFrame") -> "pd.DataFrame":
    """Return a table in which no text is a formula to a spreadsheet: an apostrophe stands before such a one.

    Names of classes and columns come with the data, perhaps from a stranger; `=HYPERLINK(…)` would be run on opening.
    """
    out = table.copy()
    for j in range(table.shape[1]):
        column = table.iloc[:, j]
        if column.dtype.kind not in "biufc":
            out.isetitem(j, [_harmless(cell) for cell in column.tolist()])
    out.columns = [_harmless(name) for name in table.columns]
    return out


def _harmless(cell: Any) -> Any:
    if not isinstance(cell, str) or not cell.startswith(("=", "+", "-", "@", "\t", "\r")):
        return cell
    try:
        float(cell)  # the class "-1" is a number to a spreadsheet, and does nothing
    except ValueError:
        return f"'{cell}"
    return cell
