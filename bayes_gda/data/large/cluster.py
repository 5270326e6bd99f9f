"""Tables on a Dask cluster: the same sums as on one machine, map and reduce.

    map       one task a partition: its rows are read on a worker, batch by batch, and become one sum
    reduce    sums are added on the workers, FAN_IN at a time, in the order of the partitions
    client    gets the last sum, and hears which partitions are done

The rows never leave the workers, but for the random part that `sample` takes. Nothing is kept on the workers between
two passes: if one of them dies, its partitions are read again by another from the files, or from the user's graph.
"""

from __future__ import annotations

import os
import queue
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from bayes_gda.data.large.batches import BATCH_ROWS, Progress, Source
from bayes_gda.data.large.layout import Layout, Survey, Work, add, make_plan, total
from bayes_gda.data.large.partitions import Arrays, Files, Frames, Parts, frames_of, is_frame, look_at
from bayes_gda.data.large.reading import row_groups
from bayes_gda.errors import BayesGDAError, ClusterError, DataError, MissingDependencyError
from bayes_gda.missing import Complete
from bayes_gda.processes.state import Shared, warning_rule

# A `distributed.Client`, most of whose methods have no types.
type Client = Any

# A graph of 10⁴ partitions has some megabytes; there is nothing the user could do about it.
_LARGE_GRAPH = Shared(lambda: warning_rule("ignore", "Sending large graph", UserWarning))
# Sums added by one task: a few levels for any number of partitions, and no worker holds more than so many at once.
FAN_IN = 16
# A read over the network may fail once or twice by chance. Lost workers are not counted here but by Dask, which gives
# up on a partition that took `distributed.scheduler.allowed-failures` (3) workers with it.
RETRIES = 2
# Seconds between two looks at a cluster that says nothing, and how long it may be without any worker: a worker that
# was killed is back within some ten seconds, a new node of a cloud takes longer than anyone should wait unknowing.
LOOK, WITHOUT_WORKERS = 1.0, 30.0
# Seconds to wait for an answer at an address; one that is right answers within one.
CONNECT = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class ClusterBatches(Source):
    """A table on a Dask cluster; `open_cluster` makes one.

    Parameters
    ----------
    parts
        The partitions.
    layout, rows
        As in `Source`.
    part_rows
        (P,) rows of each partition.
    client
        The connection to the cluster.
    batch_rows
        Rows that a worker holds at a time in each of its threads, of a partition that is read from a file.
    progress
        Called with the rows done so far in this pass, after each partition; None for no calls.
    """

    parts: Parts
    layout: Layout
    rows: int
    part_rows: tuple[int, ...]
    client: Client
    batch_rows: int = BATCH_ROWS
    progress: Progress | None = None

    def total[T](self, work: Work[T]) -> T | None:
        """Add up the work of all partitions, on the workers."""
        return _map_reduce(
            self.client,
            self.parts.parts(self.layout.columns),
            work,
            part_rows=self.part_rows,
            batch_rows=self.batch_rows,
            progress=self.progress,
        )[1]


def open_cluster(
    table: Any,
    target: Any,
    *,
    categorical: Iterable[str] = (),
    drop: Iterable[str] = (),
    missing: Complete = "error",
    client: Client = None,
    progress: Progress | None = None,
) -> ClusterBatches:
    """Learn the classes, the levels of text columns and the number of rows of a table on a cluster, in one pass.

    Parameters
    ----------
    table
        A Dask DataFrame; a Dask array (n, d); or the path of a Parquet file or a folder of such, as the workers see it.
    target
        Column that holds the classes; for an array the labels, a Dask array or Series with as many rows.
    categorical, drop, missing
        As in `open_batches`.
    client
        The connection to the cluster; None takes the one that was made last.
    progress
        As in `ClusterBatches`.
    """
    link = current_client() if client is None else client
    parts = _parts(table, target, link)
    plan = make_plan(
        parts.columns, parts.target, categorical=categorical, drop=drop, missing=missing, named=parts.named
    )
    survey = Survey(tuple(plan.surveyed))
    columns = plan.surveyed if parts.steady else plan.columns
    rows, seen = _map_reduce(link, parts.parts(columns), survey, part_rows=parts.part_rows, progress=progress)
    seen = survey.nothing if seen is None else seen
    return ClusterBatches(parts, plan.layout(seen), seen.rows, rows, link, BATCH_ROWS, progress)


def current_client() -> Client:
    """Return the client that was made last, or raise if there is none."""
    distributed = require_dask()
    try:
        return distributed.get_client()
    except ValueError:
        raise ClusterError(
            "No Dask cluster is connected. Connect first: client = dask.distributed.Client(ADDRESS)."
        ) from None


def connect(address: str, *, timeout: float = CONNECT) -> Client:
    """Connect to the scheduler at an address, such as tcp://10.0.0.1:8786; close the client after use.

    Parameters
    ----------
    address
        Where the scheduler listens.
    timeout
        Seconds to wait for its answer.
    """
    distributed = require_dask()
    try:
        return distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"Cannot reach a Dask cluster at {address!r} ({_first_line(error)}). "
            "Check the address and that the scheduler runs."
        ) from error


def require_dask() -> Any:
    """Return the package `distributed`, or raise with the command that installs it."""
    try:
        import dask
        import distributed
    except ImportError:
        raise MissingDependencyError(
            "Dask is not installed, which a table on a cluster needs. Run: pip install 'bayes-gda[dask]'"
        ) from None
    assert dask
    return distributed


def is_dask(value: Any) -> bool:
    """Whether a value is a Dask collection, without importing Dask."""
    return type(value).__module__.split(".")[0] == "dask" and hasattr(value, "__dask_graph__")


def _parts(table: Any, target: Any, client: Client) -> Parts:
    if isinstance(table, str | os.PathLike):
        path, name = Path(table), _name(target)
        with _explained(client):
            columns, files = client.submit(look_at, path, name, pure=False, retries=RETRIES).result()
            groups = client.gather(client.map(row_groups, files, pure=False, retries=RETRIES))
        return Files.of(name, columns, files, groups)
    if not is_dask(table):
        raise DataError(
            f"`table` must be a Dask DataFrame, a Dask array or the path of Parquet files; got {type(table).__name__}."
        )
    if is_frame(table):
        return Frames(table, _name(target))
    return Arrays.of(table, target)


def _name(target: Any) -> str:
    if not isinstance(target, str):
        raise DataError(f"`target` must be the name of the class column; got {type(target).__name__}.")
    return target


# ── Map and reduce ──────────────────────────────────────────────────────────────────────────────────────────────────


def _map_reduce[T](
    client: Client,
    parts: list[Any],
    work: Work[T],
    *,
    part_rows: tuple[int, ...] | None,
    batch_rows: int = BATCH_ROWS,
    progress: Progress | None = None,
) -> tuple[tuple[int, ...], T | None]:
    """Return the rows of each partition, and the sum of the work of all.

    Parameters
    ----------
    client
        The connection to the cluster.
    parts
        Partitions: Dask's delayed values, or what `frames_of` takes.
    work
        What to compute of each frame.
    part_rows
        (P,) rows of each partition as an earlier pass found them; None if this is the first.
    batch_rows, progress
        As in `ClusterBatches`.
    """
    if not parts:
        return (), None
    first = np.concatenate([[0], np.cumsum(part_rows or [0] * len(parts))])[: len(parts)].tolist()
    with _explained(client):
        *leaves, root = _submit(client, parts, work, first, batch_rows)
        try:
            _follow(client, leaves, root, part_rows, progress)
            rows, out = root.result()
        finally:
            for future in (*leaves, root):
                future.release()
    if part_rows is not None and tuple(rows) != part_rows:
        raise DataError("The table changed between two passes. Fit it again when it is at rest.")
    return tuple(rows), out


def _submit(client: Client, parts: list[Any], work: Work[Any], first: list[int], batch_rows: int) -> list[Any]:
    """Start a pass; return the future of each partition, and last that of the sum."""
    from dask.delayed import delayed
    from distributed.protocol import pickle

    # Drawn weights may take megabytes. As the result of a task they travel once to each worker, not with each
    # partition, and are made anew if a worker that held them dies.
    packed = pickle.dumps(work)  # type: ignore[no-untyped-call]  # Dask has no types here
    held = delayed(_same, pure=False)(packed)
    total_of_part, add_parts = delayed(_part_total, pure=False), delayed(_add_all, pure=False)
    leaves = [total_of_part(part, held, start, batch_rows) for part, start in zip(parts, first, strict=True)]
    level = [add_parts(leaves[i : i + FAN_IN]) for i in range(0, len(leaves), FAN_IN)]
    while len(level) > 1:
        level = [add_parts(level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
    with _LARGE_GRAPH:
        return list(client.compute([*leaves, level[0]], retries=RETRIES))


def _follow(
    client: Client, leaves: list[Any], root: Any, part_rows: tuple[int, ...] | None, progress: Progress | None
) -> None:
    """Wait until the sum is there or has failed; say which partitions are done, and let go of them."""
    events: queue.SimpleQueue[int] = queue.SimpleQueue()
    for i, future in enumerate([*leaves, root]):
        future.add_done_callback(lambda _, i=i: events.put(i))
    done, idle = 0, 0.0
    while True:
        try:
            i = events.get(timeout=LOOK)
        except queue.Empty:
            idle = 0.0 if _has_workers(client) else idle + LOOK
            if idle >= WITHOUT_WORKERS:
                raise ClusterError(
                    f"The Dask cluster has had no workers for {WITHOUT_WORKERS:g} s. Start some, and fit again."
                ) from None
            continue
        if i == len(leaves) or leaves[i].status != "finished":
            return  # root.result() has the sum, or the error
        leaves[i].release()  # whoever adds it up still holds it
        if part_rows is not None and progress is not None:
            done += part_rows[i]
            progress(done)


def _has_workers(client: Client) -> bool:
    if client.status != "running":
        raise ClusterError(_GONE)
    return bool(client.nthreads())


def _same(value: Any) -> Any:
    return value


def _part_total(part: Any, work: bytes, first: int, batch_rows: int) -> tuple[list[int], Any]:
    """On a worker: the rows of a partition, and the sum of the work of its batches."""
    from distributed.protocol import pickle

    rows = [first]
    unpacked: Work[Any] = pickle.loads(work)  # type: ignore[no-untyped-call]  # Dask has no types here
    out = total(frames_of(part, batch_rows), unpacked, first=first, tick=rows.append)
    return [rows[-1] - first], out


def _add_all(sums: list[Any]) -> Any:
    """On a worker: add up, from the first to the last."""
    return reduce(add, sums)


_GONE = "The Dask cluster went away. Start it again, connect, and fit again."


@contextmanager
def _explained(client: Client) -> Iterator[None]:
    """Say in one line what is wrong with the cluster; errors of the table pass as they are."""
    from concurrent.futures import CancelledError as Cancelled

    from distributed import CancelledError, KilledWorker

    if client.status != "running":
        raise ClusterError(_GONE)
    try:
        yield
    except BayesGDAError:
        raise
    except KilledWorker as error:
        raise ClusterError(
            f"A partition took several workers with it ({_first_line(error)}), perhaps for want of memory. "
            "Use smaller partitions, or workers with more memory."
        ) from error
    except ModuleNotFoundError as error:
        raise ClusterError(
            f"A worker lacks a package ({_first_line(error)}). Install bayes-gda and its dependencies on all workers."
        ) from error
    except (CancelledError, Cancelled, OSError) as error:
        raise ClusterError(_GONE) from error


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
