"""Fitting to a table that is read in batches, here or on a Dask cluster, with progress by rows."""

import os
import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bayes_gda.cli.actions.fits import FitOptions, fit_model, make_estimator
from bayes_gda.cli.inputs import EXAMPLE, STDIN, TableOptions, encoding_of, read_data
from bayes_gda.cli.outputs import Advance, progress
from bayes_gda.data.frames.encode import AnyEncoding
from bayes_gda.data.frames.text import AS_FOUND
from bayes_gda.data.large.batches import Source, open_batches
from bayes_gda.errors import DataError
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.families.registry import get_family

# A file of more than this share of the memory is read in batches: text takes up to four times its size as a data frame,
# and a fit holds its rows once more.
LARGE = 1 / 8
# Host and port. What is no address is told here: a Dask client that fails on it takes 20 s to close, with a traceback.
ADDRESS = re.compile(r"((tcp|tls|ucx|wss?)://)?[^/\s]+:\d{1,5}/?")


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A fitted model, and what is told of its table.

    Parameters
    ----------
    estimator, encoding
        The model, and how a table becomes its features.
    n
        Rows of the table, without those that gaps dropped if it was read whole.
    fingerprint
        Of the rows; None if they were read in batches.
    """

    estimator: BayesianClassifier
    encoding: AnyEncoding
    n: int
    fingerprint: str | None = None


def in_batches(source: str) -> bool:
    """Whether a table is better not read whole: a folder, or a file that is large beside the memory."""
    path = Path(source)
    if source == STDIN:
        return False
    return path.is_dir() or (path.is_file() and path.stat().st_size > LARGE * _memory())


def fit_whole(name: str, source: str, options: TableOptions, fit_options: FitOptions) -> Made:
    """Fit a model to a table that is read at once, or to an example; parameters as in `fit_table`."""
    data = read_data(source, options)
    return Made(fit_model(name, data, fit_options), encoding_of(data), data.n, data.fingerprint)


def fit_table(name: str, source: str, options: TableOptions, fit_options: FitOptions, cluster: str | None) -> Made:
    """Fit a model to a table, batch by batch.

    Parameters
    ----------
    name
        Name of a family.
    source
        A file or a folder of Parquet files; with a cluster as its workers see it.
    options, fit_options
        How to read the table, and how to fit.
    cluster
        Address of the scheduler of a Dask cluster; None reads here.
    """
    if source.startswith(EXAMPLE) or source == STDIN:
        got = "stdin" if source == STDIN else source
        raise DataError(f"`--batches` and `--cluster` are for files; got {got}. Leave them out.")
    if options.target is None:
        raise DataError("`--target` must name the column that holds the classes. Add: --target COLUMN")
    if options.formula is not None or options.constant != "error" or options.dialect != AS_FOUND or options.format:
        raise DataError(
            "`--formula`, `--drop-constant`, `--format`, `--sep`, `--decimal` and `--encoding` are for tables read "
            "whole; got one read in batches. Leave them out."
        )
    if options.missing == "keep":
        raise DataError("`--missing keep` is for tables read whole; got one read in batches. Use --missing drop.")
    if cluster is not None and not ADDRESS.fullmatch(cluster):
        raise DataError(f"`--cluster` must be an address such as tcp://10.0.0.1:8786; got {cluster!r}.")
    if cluster is None and Path(source).is_dir() and not any(path.is_file() for path in Path(source).rglob("[!._]*")):
        raise DataError(f"The folder {source!r} holds no Parquet files. Check the path.")
    methods = ("auto", "exact") if get_family(name).kind == "generative" else ("auto", "laplace")
    if fit_options.inference not in methods:
        raise DataError(
            f"`--inference` must be {' or '.join(methods)} for {name} on a table read in batches; got "
            f"{fit_options.inference}. Leave it out."
        )
    asked: dict[str, Any] = {
        "categorical": options.categorical,
        "drop": options.drop,
        "missing": options.missing,
    }
    with progress("Fitting") as advance:
        tick = _by_rows(advance)
        try:
            if cluster is None:
                table: Source = open_batches(source, target=options.target, progress=tick, **asked)
                return _fitted(name, table, fit_options)
            from bayes_gda.data.large.cluster import connect, open_cluster

            # A path that is seen from here most likely means the same file on a disk that all share.
            path = Path(source).absolute() if Path(source).exists() else Path(source)
            with closing(connect(cluster)) as client:
                table = open_cluster(path, options.target, client=client, progress=tick, **asked)
                return _fitted(name, table, fit_options)
        except DataError as error:
            # The remedies of the library in the words of the command line.
            text = str(error).replace('missing="drop"', "--missing drop").replace("`drop` names", "`--drop` names")
            raise DataError(text.replace("rop the column.", "rop the column: --drop COL.")) from error


def _fitted(name: str, table: Source, fit_options: FitOptions) -> Made:
    estimator = make_estimator(name, table.K, fit_options).fit_batches(table)
    return Made(estimator, table.encoding, table.rows)


def _by_rows(advance: Advance) -> Callable[[int], None]:
    """Return what is told of the rows done: a pass begins when they fall, and its length is that of the first."""
    passes, last, longest = 1, 0, 0

    def tick(rows: int) -> None:
        nonlocal passes, last, longest
        passes += rows <= last
        last, longest = rows, max(longest, rows)
        if passes == 1:  # whose length nobody knows yet
            advance(f"pass 1, {rows:,} rows", 0.0)
        else:
            advance(f"pass {passes}, {rows:,} of {longest:,} rows", rows / longest)

    return tick


def _memory() -> float:
    """Bytes of memory that the machine has; without end where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows
        return float("inf")
