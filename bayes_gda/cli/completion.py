"""What the shell offers for an option on Tab: names of models, and the columns of the table that was named before."""

import csv
import gzip
import os
from collections.abc import Iterator
from contextlib import suppress

# Bytes of a file that are looked at for its header.
HEAD = 2**16


def complete_models(incomplete: str) -> list[str]:
    """Return names of models, the last one of a list with commas."""
    from bayes_gda.families.registry import HOMES

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in HOMES if name.startswith(last)]


def complete_columns(incomplete: str) -> list[str]:
    """Return the columns of a text file that stands on the command line already; of other types none."""
    # Typer does not parse arguments before an option without a value; the shell hands on the whole line.
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS", "")
    words = line.replace("\n", " ").split(" ")
    source = next((word for word in words if word.lower().removesuffix(".gz").endswith((".csv", ".tsv"))), "")
    return [name for name in _header(source) if name.startswith(incomplete)]


def _header(path: str) -> Iterator[str]:
    name = path.lower().removesuffix(".gz")
    with suppress(OSError, EOFError, UnicodeDecodeError, csv.Error):
        with gzip.open(path) if path.lower().endswith(".gz") else open(path, "rb") as file:
            line = file.readline(HEAD).decode("utf-8-sig")
        usual = "\t" if name.endswith(".tsv") else ","
        separator = next((sep for sep in (usual, ";", "\t", "|") if sep in line), usual)
        yield from next(csv.reader([line], delimiter=separator), [])
