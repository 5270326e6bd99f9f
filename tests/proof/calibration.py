"""Coverage and calibration of predictions, and learning curves: the whole job.

    PYTHONPATH=tests .venv/bin/python -m proof.calibration

The work is cut into small tasks, each with seeds of its own and a file in `reports/proof/cache/calibration`. A restart
does what is missing; order and number of processes change nothing. The result is `reports/proof/calibration.json`.
"""

import json
import os
import platform
import signal
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

# Before NumPy is imported, here and in the processes to come: two of them on two cores leave no room for threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from proof import calibration_coverage as coverage
from proof import calibration_splits as splits
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bayes_gda.teaching import learning
from bayes_gda.teaching.truths import TRUTHS

OUT = Path("reports/proof")
COMMAND = "PYTHONPATH=tests .venv/bin/python -m proof.calibration"
# Tasks of some seconds each: little is lost when the run is stopped, and the bar moves.
SIMULATIONS_A_TASK = 20
REPLICATES_A_TASK = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to do.

    Parameters
    ----------
    data, sizes, splits
        Data sets, sizes of the training part, and splits of each.
    models, rows, simulations, corrected, sampled
        Of the coverage: models, numbers of rows, simulations of the fast methods, of the corrected one, and of MCMC.
    truths, gaussian_replicates, other_replicates
        Of the learning curves.
    learning_rows
        Numbers of rows of the learning curves; None takes those of each kind of truth.
    """

    data: tuple[str, ...] = splits.DATA
    sizes: tuple[str, ...] = splits.SIZES
    splits: int = 30
    models: tuple[str, ...] = coverage.MODELS
    rows: tuple[int, ...] = coverage.ROWS
    simulations: int = 200
    corrected: int = 60
    sampled: int = 20
    truths: tuple[str, ...] = tuple(TRUTHS)
    gaussian_replicates: int = 1000
    other_replicates: int = 300
    learning_rows: tuple[int, ...] | None = None


# The correction costs most where it changes least: with so many rows Laplace is trusted.
CORRECTED_MOST_ROWS = 200
# MCMC takes a second or more: one Gaussian model and one regression, at the fewest rows, stand for it.
SAMPLED_MODELS = ("lda", "logistic")


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work: its kind, and the arguments, which also name its file."""

    kind: str
    case: tuple[Any, ...]
    part: tuple[Any, ...]

    @property
    def file(self) -> str:
        """Name of the file in the cache."""
        return "-".join(str(x) for x in (self.kind, *self.case, *self.part)) + ".json"


def tasks(plan: Plan) -> Iterator[Task]:
    """Yield all tasks of a plan, the splits first: they take longest, and no process is to be left alone at the end."""
    for case in ((name, size) for name in plan.data for size in plan.sizes):
        yield from (Task("split", case, (index,)) for index in range(plan.splits))
    for model, truth, n in ((m, t, n) for m in plan.models for t in ("prior", "fixed") for n in plan.rows):
        *fast, corrected = coverage.methods_of(model)
        counts = dict.fromkeys(fast, plan.simulations)
        counts[corrected] = plan.corrected if n <= CORRECTED_MOST_ROWS else 0
        counts["mcmc"] = plan.sampled if model in SAMPLED_MODELS and truth == "prior" and n == min(plan.rows) else 0
        for method, count in counts.items():
            for first, number in _blocks(count, SIMULATIONS_A_TASK):
                yield Task("coverage", (model, truth, n), (method, first, number))
    for name in plan.truths:
        gaussian = TRUTHS[name].delta is not None
        rows = plan.learning_rows or (learning.GAUSSIAN_ROWS if gaussian else learning.OTHER_ROWS)
        count = plan.gaussian_replicates if gaussian else plan.other_replicates
        for n in rows:
            yield from (Task("learning", (name, n), block) for block in _blocks(count, REPLICATES_A_TASK))


def _blocks(count: int, size: int) -> Iterator[tuple[int, int]]:
    for first in range(0, count, size):
        yield first, min(size, count - first)


def perform(task: Task) -> dict[str, Any]:
    """Do one task; the result holds the seconds that it took."""
    start = time.perf_counter()
    result: dict[str, Any]
    if task.kind == "split":
        result = splits.run_split(*task.case, *task.part)
    elif task.kind == "coverage":
        method, first, count = task.part
        result = coverage.run_coverage(*task.case, first, count, [method])
    else:
        result = learning.run_learning(*task.case, *task.part)
    return {"result": result, "seconds": round(time.perf_counter() - start, 3)}


# ── The run ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def run(plan: Plan, out: Path = OUT, *, processes: int = 2, shown: bool = True) -> dict[str, Any]:
    """Do what is missing, and write and return the summary.

    Parameters
    ----------
    plan
        How much to do.
    out
        Folder of `calibration.json` and of the cache.
    processes
        Tasks at a time; 1 works in this process.
    shown
        Whether to show progress.
    """
    every = list(tasks(plan))
    cache = out / "cache" / "calibration"
    cache.mkdir(parents=True, exist_ok=True)
    missing = [task for task in every if not (cache / task.file).exists()]
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), disable=not shown) as progress:
        bar = progress.add_task("calibration", total=len(every), completed=len(every) - len(missing))
        for task, result in _performed(missing, processes):
            _write(cache / task.file, result)
            progress.update(bar, advance=1, description=" ".join(map(str, (task.kind, *task.case))))
    summary = summarise(plan, {task: json.loads((cache / task.file).read_text()) for task in every})
    _write(out / "calibration.json", summary)
    return summary


def _performed(missing: list[Task], processes: int) -> Iterator[tuple[Task, dict[str, Any]]]:
    if processes == 1:
        yield from ((task, perform(task)) for task in missing)
        return
    # Spawned rather than forked: the progress bar has a thread, which a fork would cut off.
    with ProcessPoolExecutor(processes, get_context("spawn"), initializer=_leave_interruptions) as pool:
        waiting = {pool.submit(perform, task): task for task in missing}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        except BaseException:
            # After Ctrl-C the tasks at hand are finished, which takes seconds, and no other is begun.
            pool.shutdown(cancel_futures=True)
            raise


def _leave_interruptions() -> None:
    """Let the first process alone see Ctrl-C: a worker that dies with the queue in its hands blocks all others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _write(path: Path, tree: Mapping[str, Any]) -> None:
    """Write JSON whole or not at all."""
    draft = path.with_suffix(".tmp")
    draft.write_text(json.dumps(_rounded(tree), ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    draft.replace(path)


def _rounded(value: Any) -> Any:
    """Six digits are more than the errors leave, and hide the last bits in which machines differ."""
    if isinstance(value, Mapping):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value


# ── The summary ─────────────────────────────────────────────────────────────────────────────────────────────────────


def summarise(plan: Plan, done: Mapping[Task, Mapping[str, Any]]) -> dict[str, Any]:
    """Return all that the page shows, out of the results of all tasks."""
    seconds: dict[str, float] = defaultdict(float)
    parts: dict[tuple[Any, ...], list[tuple[Task, Any]]] = defaultdict(list)
    for task, each in done.items():
        seconds[task.kind] += each["seconds"]
        parts[task.kind, *task.case].append((task, each["result"]))
    return {
        "command": COMMAND,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("bayes-gda", "numpy", "scipy", "scikit-learn", "pymc")},
        "plan": asdict(plan),
        "seeds": "CRC-32 of the name of each task and its index",
        "floor": splits.FLOOR,
        "bins": splits.BINS,
        "probs": list(coverage.PROBS),
        "seconds": {kind: round(total) for kind, total in seconds.items()},
        "splits": [splits.summarise(*case, _results(found)) for case, found in _of_kind(parts, "split")],
        "coverage": [
            line
            for case, found in _of_kind(parts, "coverage")
            for line in coverage.summarise_coverage(*case, _results(found))
        ],
        "learning": _learning(parts),
    }


def _of_kind(parts: Mapping[tuple[Any, ...], Any], kind: str) -> Iterable[tuple[tuple[Any, ...], Any]]:
    return ((key[1:], found) for key, found in parts.items() if key[0] == kind)


def _results(found: Iterable[tuple[Task, Any]]) -> list[Any]:
    return [result for _, result in found]


def _learning(parts: Mapping[tuple[Any, ...], Any]) -> list[dict[str, Any]]:
    excess: dict[str, dict[int, Any]] = defaultdict(dict)
    for (name, n), found in _of_kind(parts, "learning"):
        excess[name][n] = np.concatenate([np.array(result["excess"]) for result in _results(found)])
    return [learning.summarise_learning(name, curves) for name, curves in excess.items()]


if __name__ == "__main__":
    try:
        run(Plan())
    except KeyboardInterrupt:
        raise SystemExit("Stopped; the same command goes on from here.") from None
