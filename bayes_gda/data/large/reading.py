"""Files read batch by batch with Arrow: text, Parquet, Feather, and folders of Parquet files.

Arrow reads a whole row group of a Parquet file at once; write such files with row groups of at most 10⁶ rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bayes_gda.data.files import DAMAGED_NOTES
from bayes_gda.data.large.layout import RawType
from bayes_gda.data.validate import near_misses
from bayes_gda.errors import DataError
from bayes_gda.extras import require

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# Bytes of text that are parsed at a time, Arrow's default. It reads some 32 of them ahead, which are 32 MB.
TEXT_BLOCK = 2**20
# What an empty cell of a text file looks like, as pandas has it.
_EMPTY = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"),
    *("N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
)
_TEXT = {".csv": ",", ".csv.gz": ",", ".tsv": "\t", ".tsv.gz": "\t"}


def column_types(path: Path, target: str) -> list[tuple[str, RawType]]:
    """Return the names of the columns, and what Arrow says that they hold; pandas' row names are no column."""
    require("pyarrow", "A table that is read in batches")
    import pyarrow.types as types

    def understood(kind: pa.DataType) -> RawType:
        if types.is_boolean(kind):
            return RawType("boolean", str(kind))
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            return RawType("numeric", str(kind))
        return RawType("none" if types.is_temporal(kind) or types.is_nested(kind) else "text", str(kind))

    schema = _schema(path, target)
    try:
        row_names = (schema.pandas_metadata or {}).get("index_columns", [])
    except (ValueError, AttributeError) as error:  # not JSON, or no mapping
        raise _unreadable(path, error) from error
    return [(field.name, understood(field.type)) for field in schema if field.name not in row_names]


def read_frames(path: Path, target: str, columns: list[str], batch_rows: int) -> Iterator[pd.DataFrame]:
    """Read the columns of a table, a data frame at a time; whatever is wrong with the file is a `DataError`."""
    require("pyarrow", "A table that is read in batches")
    import pyarrow as pa

    read = {"parquet": _parquet_batches, "feather": _feather_batches}.get(_kind(path), _text_batches)
    try:
        for batch in read(path, target, columns, batch_rows):
            batch.validate(full=True)  # lengths of a damaged file that point beyond its end would crash Arrow
            for start in range(0, len(batch), batch_rows):
                yield _to_pandas(batch.slice(start, batch_rows), columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def row_groups(file: Path) -> list[int]:
    """Return how many rows each row group of a Parquet file has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        about = pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error
    return [about.row_group(i).num_rows for i in range(about.num_row_groups)]


def parquet_files(path: Path) -> list[Path]:
    """Return the files behind a Parquet file or folder, in the order in which they are read."""
    require("pyarrow", "A Parquet file")
    import pyarrow.dataset as ds

    _schema(path, "")
    return [Path(file) for file in ds.dataset(path, format="parquet").files]


def read_groups(file: Path, groups: range, columns: list[str], batch_rows: int) -> Iterator[pd.DataFrame]:
    """Read the columns of some row groups of a Parquet file, a data frame at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file, pre_buffer=False) as opened:
            for group in groups:
                for batch in opened.iter_batches(batch_rows, row_groups=[group], columns=columns):
                    batch.validate(full=True)
                    yield _to_pandas(batch, columns)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _unreadable(file, error) from error


def _to_pandas(batch: pa.RecordBatch, columns: list[str]) -> pd.DataFrame:
    """Return a data frame; `ValueError` if what pandas noted of the columns is damaged."""
    try:
        frame: pd.DataFrame = batch.to_pandas()
    except (LookupError, TypeError, AttributeError):
        raise ValueError(DAMAGED_NOTES) from None
    if frame.columns.tolist() != columns:
        raise ValueError(DAMAGED_NOTES)
    return frame


def _parquet_batches(path: Path, _target: str, columns: list[str], batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Scan row group by row group: a scan of the whole reads ahead as fast as it can, and held 90 of 140 MB."""
    import pyarrow.dataset as ds

    dataset = ds.dataset(path, format="parquet")
    for file in dataset.get_fragments():
        for group in file.split_by_row_group():
            yield from group.to_batches(
                schema=dataset.schema, columns=columns, batch_size=batch_rows, batch_readahead=1
            )


def _feather_batches(path: Path, _target: str, columns: list[str], _batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Map the file into memory, and take one batch after the other as it was written."""
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        reader = pa.ipc.open_file(source)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i).select(columns)


def _text_batches(path: Path, target: str, columns: list[str], _batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Read text block by block."""
    with _open_text(path, target) as reader:
        for batch in reader:
            yield batch.select(columns)


def _open_text(path: Path, target: str) -> Any:
    """Open a text file; Arrow guesses types from its first megabyte, so whole numbers are taken as decimals too."""
    import pyarrow as pa
    import pyarrow.csv as csv

    def opened(types: dict[str, Any]) -> Any:
        return csv.open_csv(
            path,
            read_options=csv.ReadOptions(use_threads=False, block_size=TEXT_BLOCK),
            parse_options=csv.ParseOptions(delimiter=_TEXT[_kind(path)]),
            convert_options=csv.ConvertOptions(null_values=list(_EMPTY), strings_can_be_null=True, column_types=types),
        )

    with opened({}) as first:
        guessed = first.schema
    for field in guessed:
        if not field.name:  # as `files` has it, for the same table read at once
            raise DataError(
                f"A column of {str(path)!r} has no name; if it holds row names, write the file without them."
            )
        if pa.types.is_binary(field.type):
            raise DataError(f"Column {field.name!r} of {str(path)!r} is not UTF-8 text. Save the file as UTF-8.")
    whole = [f.name for f in guessed if pa.types.is_integer(f.type) or pa.types.is_null(f.type)]
    return opened({name: pa.float64() for name in whole if name != target})


def _schema(path: Path, target: str) -> pa.Schema:
    """Return the names and types of the columns."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    if not path.exists():
        siblings = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise DataError(f"No such file: {str(path)!r}.{near_misses(path.name, siblings) or ' Check the path.'}")
    kind = _kind(path)
    try:
        if kind in ("parquet", "feather"):
            schema = ds.dataset(path, format=kind).schema
            _ = schema.names  # decodes them
            return schema
        with _open_text(path, target) as reader:
            return reader.schema
    except UnicodeDecodeError:
        raise DataError(f"A column name of {str(path)!r} is not UTF-8 text. Save the file as UTF-8.") from None
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def _kind(path: Path) -> str:
    """Return what the name says: "parquet", "feather", or the ending of a text file."""
    if path.is_dir():
        return "parquet"
    name = path.name.lower()
    for end in (".parquet", ".feather", *_TEXT):
        if name.endswith(end):
            return end if end in _TEXT else end[1:]
    kinds = ", ".join([*_TEXT, ".parquet", ".feather"])
    raise DataError(f"Cannot tell the type of {str(path)!r}; name it as one of {kinds}, or give a folder of .parquet.")


def _unreadable(path: Path, error: Exception) -> DataError:
    cause = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return DataError(f"Cannot read {str(path)!r}: {cause}. Check that the file is whole, and its columns of one type.")
