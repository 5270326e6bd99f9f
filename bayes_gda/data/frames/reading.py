"""From a file to a `Dataset`."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bayes_gda.data.files import read_frame
from bayes_gda.data.frames.index import warn_of_index
from bayes_gda.data.frames.text import AS_FOUND, Dialect
from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import drop_columns


def read_table(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    drop: Iterable[str] = (),
    dialect: Dialect = AS_FOUND,
    **options: Any,
) -> Dataset:
    r"""Read a table from a file: .csv, .tsv, .csv.gz, .tsv.gz, .parquet, .feather, .xlsx or .jsonl.

    In text files an empty cell, NA, NaN, null, None and the like are missing values, as pandas has it. A first column
    without a name that numbers or names the rows is left out, with a `DataWarning`; one that has a name is warned of.

    Parameters
    ----------
    path
        File to read; its name says its type.
    drop
        Columns to leave out.
    dialect
        Separator, decimal mark and encoding of a text file, where what it shows is not enough.
    target, **options
        As in `Dataset.from_frame`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from bayes_gda import read_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("size;colour;sold\n1,5;red;no\n2,5;blue;yes\n3,0;red;no\n0,5;blue;yes\n")
    ...     data = read_table(path, target="sold")
    >>> data.feature_names, data.X[:, 0]
    (('size', 'colour[red]'), array([1.5, 2.5, 3. , 0.5]))
    """
    frame = drop_columns(read_frame(Path(path), dialect), drop, target)
    if options.get("formula") is None:
        warn_of_index(frame, target)
    return Dataset.from_frame(frame, target=target, **options)
