"""How a text file is written: separator, decimal mark and encoding, as its first lines show, or as one says.

A header without a comma but with semicolons, tabs or bars is cut at these. Where columns are separated by semicolons
and cells look like 1,5, the comma is the decimal mark. UTF-8, with or without a byte-order mark, and UTF-16 with one
are recognised; any other encoding must be named, as a wrong guess would show as wrong letters only.
"""

import codecs
import gzip
import re
import zlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from bayes_gda.errors import DataError

# Bytes that are looked at, and the separators that are looked for.
HEAD = 2**16
SEPARATORS = (";", "\t", "|")
_DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a text file is written; what is None is found out.

    Parameters
    ----------
    sep
        Separator of the columns, one character.
    decimal
        Decimal mark, `.` or `,`.
    encoding
        A name that Python knows, such as `latin-1`.
    """

    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None and len(self.sep) != 1:
            raise DataError(f"`sep` must be one character, such as ';'; got {self.sep!r}.")
        if self.decimal not in (None, ".", ","):
            raise DataError(f"`decimal` must be '.' or ','; got {self.decimal!r}.")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise DataError(
                    f"`encoding` must be one that Python knows, such as 'latin-1'; got {self.encoding!r}."
                ) from None
        if self.sep is not None and self.sep == self.decimal:
            raise DataError(f"`sep` and `decimal` must differ; both are {self.sep!r}.")

    def resolve(self, path: Path, usual: str) -> Self:
        """Return the dialect of a file, all of it known.

        Parameters
        ----------
        path
            The file, which may be gzipped.
        usual
            The separator that the name of the file stands for.
        """
        head = _head(path)
        encoding = self.encoding or _encoding(head, path)
        lines = head.decode(encoding, errors="ignore").lstrip("\ufeff").splitlines()[:100]
        sep = self.sep or _separator(lines[0] if lines else "", usual)
        decimal = self.decimal or _decimal(lines[1:], sep)
        return replace(self, sep=sep, decimal=decimal, encoding=encoding)


AS_FOUND = Dialect()


def _head(path: Path) -> bytes:
    if path.name.lower().endswith(".gz"):
        try:
            with gzip.open(path) as file:
                return file.read(HEAD)
        except (OSError, EOFError, zlib.error):
            return b""  # the reader will say what is wrong with it
    with path.open("rb") as file:
        return file.read(HEAD)


def _encoding(head: bytes, path: Path) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last letter may be cut
    except UnicodeDecodeError as error:
        raise DataError(
            f"{str(path)!r} is not text in UTF-8: byte {error.start + 1} is {head[error.start]:#x}. Name its encoding, "
            "such as encoding='latin-1', or save it as UTF-8."
        ) from None
    return "utf-8-sig"


def _separator(header: str, usual: str) -> str:
    plain = re.sub(r'"[^"]*"', "", header)  # what stands in quotes separates nothing
    if usual in plain:
        return usual
    counts = {sep: plain.count(sep) for sep in (*SEPARATORS, ",") if sep != usual}
    best = max(counts, key=lambda sep: counts[sep])
    return best if counts[best] else usual


def _decimal(lines: list[str], sep: str) -> str:
    if sep == ",":
        return "."
    cells = [cell.strip().strip('"') for line in lines for cell in line.split(sep)]
    commas = sum(bool(_DECIMAL_COMMA.fullmatch(cell)) for cell in cells)
    points = sum(bool(re.fullmatch(r"[-+]?\d+\.\d+", cell)) for cell in cells)
    return "," if commas > points else "."
