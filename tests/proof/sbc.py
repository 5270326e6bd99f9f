"""Simulation-based calibration of every model by every method: `make sbc`, or `python -m proof.sbc --help`.

    θ ~ prior,  data ~ p(data | θ),  θ₁…θ₉₉ ~ the method's posterior given the data
    rank of f(θ) among f(θ₁)…f(θ₉₉): uniform on 0…99 if the method is right

Every simulation has seeds of its own, from its model, method and number: any order and any number of processes gives
the same ranks, and the same θ and data serve all methods of a model. What is done is kept in `cache/`: a run may be
stopped with Ctrl-C and taken up again by the same command. In the end it writes sbc.json and the page.
"""

import argparse
import os
import signal
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from proof import store
from proof.catalogue import MODELS
from proof.methods import DRAWN, METHODS, Method
from proof.ranks import quantities
from proof.simulate import Model
from proof.verdicts import judge
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bayes_gda import __version__
from bayes_gda.linalg import one_blas_thread
from bayes_gda.validation.calibration import DRAWS
from bayes_gda.validation.ranks import rank_truth

SEED = 20261116
FOLDER = Path(__file__).resolve().parents[2] / "reports" / "proof"
NUMBERS = "sbc.json"
SIMULATIONS = 1000
# Exact draws take 3 ms a simulation.
EXACT_SIMULATIONS = 5000
# Where a simulation takes more than half a second, fewer have to do: the whole then takes some 40 minutes on two cores.
FEWER = {
    "lda-lkj:mcmc": 200,
    "qda-lkj:mcmc": 200,
    "naive-lkj:mcmc": 200,
    "lda-10:mcmc": 200,
    "lda-wide:mcmc": 200,
    "logistic-10:mcmc": 300,
    "logistic-wide:mcmc": 300,
    "hierarchical:mcmc": 300,
    "qda:corrected": 500,
    "naive:corrected": 500,
    "qda-lkj:corrected": 300,
    "naive-lkj:corrected": 500,
    "mixed:corrected": 300,
    "hierarchical:corrected": 200,
    "student:mcmc": 60,
    "mixture:mcmc": 60,
    "mixture-diagonal:mcmc": 60,
    "student:corrected": 500,
    "student-shared:corrected": 500,
    "mixture:corrected": 200,
    "mixture-shared:corrected": 200,
    "mixture-diagonal:corrected": 200,
    "student:hmc": 500,
    "mixture:hmc": 500,
    "mixture-diagonal:hmc": 500,
}
# Simulations handed to a process at once: about a second's work each, so that little is lost by Ctrl-C.
CHUNK = {
    "exact": 50,
    "laplace": 25,
    "skew-modal": 50,
    "ep": 25,
    "variational": 20,
    "corrected": 5,
    "mcmc": 1,
    "hmc": 5,
    "empirical-bayes": 5,
}


@dataclass(frozen=True, slots=True)
class Job:
    """Simulations number 0 to `simulations` − 1 of a model by a method."""

    model: str
    method: str
    simulations: int

    def path(self, folder: Path) -> Path:
        """Return the file that keeps them."""
        return folder / "cache" / f"{self.model}-{self.method}.jsonl"

    def header(self) -> dict[str, Any]:
        """Return what makes simulations of this job comparable with each other."""
        model = MODELS[self.model]
        simulation = model.draw(np.random.default_rng(0))
        return {
            "model": self.model,
            "method": self.method,
            "setting": model.setting,
            "seed": SEED,
            "draws": DRAWS,
            "package": __version__,
            "quantities": list(quantities(simulation, simulation.theta)),
        }


def plan(simulations: int, only: Sequence[str] = ()) -> list[Job]:
    """Return the jobs: all models by all their methods, or those that `only` names as model, method or model:method.

    `simulations` each, five times as many of the exact ones, and fewer of the slow ones.
    """
    more = EXACT_SIMULATIONS // SIMULATIONS
    jobs = [
        Job(name, method, min(simulations * (more if method == "exact" else 1), FEWER.get(f"{name}:{method}", 10**9)))
        for name, model in MODELS.items()
        for method in model.methods
    ]
    known = {name for job in jobs for name in (job.model, job.method, f"{job.model}:{job.method}")}
    unknown = [name for name in only if name not in known]
    if unknown:
        raise ValueError(f"`only` must name models, methods or model:method; got {unknown[0]!r}.")
    return [job for job in jobs if not only or {job.model, job.method, f"{job.model}:{job.method}"} & set(only)]


def simulate(model: str, method: str, index: int) -> dict[str, Any]:
    """Return one simulation as it is kept: its outcome, the ranks, the processor time."""
    return simulate_with(MODELS[model], METHODS[method], (model, method), index)


def simulate_with(model: Model, method: Method, names: tuple[str, str], index: int) -> dict[str, Any]:
    """Run one simulation of a model by a method of any kind; the names and the index make its seeds."""
    started = time.process_time()
    code, both = (zlib.crc32(name.encode()) for name in (names[0], ":".join(names)))
    simulation = model.draw(np.random.default_rng([SEED, code, index]))
    rng = np.random.default_rng([SEED, both, index])
    posterior = method(simulation, DRAWS, int(rng.integers(2**31)))
    record: dict[str, Any] = {"index": index, "outcome": posterior.outcome, "ranks": None, "effective": None}
    if posterior.outcome in DRAWN:
        assert posterior.variables is not None
        truth = quantities(simulation, simulation.theta)
        record["ranks"] = list(rank_truth(truth, quantities(simulation, posterior.variables), rng).values())
    if posterior.effective is not None:
        record["effective"] = round(posterior.effective, 1)
    return record | {"seconds": round(time.process_time() - started, 4)}


def run(jobs: Sequence[Job], folder: Path, *, workers: int = 1, fresh: bool = False, shown: bool = False) -> None:
    """Run what is not yet done.

    Parameters
    ----------
    jobs
        What to simulate.
    folder
        Where `cache/` is.
    workers
        Processes; 1 runs all in this one.
    fresh
        Whether to forget what was done.
    shown
        Whether to show a bar.
    """
    done = {job: store.open_file(job.path(folder), job.header(), fresh=fresh) for job in jobs}
    total = sum(job.simulations for job in jobs)
    left = {job: [i for i in range(job.simulations) if i not in done[job]] for job in jobs}
    # All jobs at the same pace: the time left is then what the bar says, and an early stop has some of everything.
    pieces = sorted(
        (piece[0] / job.simulations, order, job, piece)
        for order, job in enumerate(jobs)
        for piece in _pieces(left[job], CHUNK[job.method])
    )
    with _bar(total, total - sum(map(len, left.values())), shown) as advance:
        for job, records in _results([(job, piece) for _, _, job, piece in pieces], workers):
            store.append(job.path(folder), records)
            advance(len(records))


def conclude(jobs: Sequence[Job], folder: Path) -> dict[str, Any]:
    """Judge what was simulated, write sbc.json, and return what it holds; only `seconds` differs between runs."""
    loaded = [store.load(job.path(folder), most=job.simulations) for job in jobs]
    tree = {
        "schema": 1,
        "command": "make sbc",
        "seed": SEED,
        "versions": {name: version(name) for name in ("bayes-gda", "arviz", "numpy", "pymc", "scipy")},
        **judge([records for records, _ in loaded]),
        "seconds": {f"{job.model}:{job.method}": round(s, 2) for job, (_, s) in zip(jobs, loaded, strict=True)},
    }
    store.write_json(folder / NUMBERS, tree)
    return tree


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0 if all that must hold does, 1 if not, 130 after Ctrl-C."""
    from proof.page import write_page

    parser = argparse.ArgumentParser(prog="python -m proof.sbc", description="Simulation-based calibration.")
    parser.add_argument(
        "--simulations",
        type=int,
        default=SIMULATIONS,
        help="of each model by a method; exact has more, slow ones fewer",
    )
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="models, methods or model:method")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the page, the numbers and cache/ go")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs have done")
    given = parser.parse_args(arguments)
    console = Console(highlight=False)
    try:
        jobs = plan(given.simulations, given.only)
    except ValueError as error:
        parser.error(str(error))
    try:
        run(jobs, given.folder, workers=given.workers, fresh=given.fresh, shown=True)
    except KeyboardInterrupt:
        console.print("Stopped. What is done is kept; the same command goes on from there.")
        return 130
    tree = conclude(jobs, given.folder)
    family = tree["family"]
    console.print(
        f"{family['outside']} of {family['quantities']} quantities that must be inside the bands are not. "
        f"See {write_page(given.folder)}."
    )
    return 0 if tree["holds"] else 1


def _pieces(indices: Sequence[int], size: int) -> Iterator[list[int]]:
    return (list(indices[i : i + size]) for i in range(0, len(indices), size))


def _work(model: str, method: str, indices: Sequence[int]) -> list[dict[str, Any]]:
    with one_blas_thread():  # the processes share the cores among them
        return [simulate(model, method, index) for index in indices]


def _results(pieces: list[tuple[Job, list[int]]], workers: int) -> Iterator[tuple[Job, list[dict[str, Any]]]]:
    """Yield each piece's simulations as they come in; all of them are at hand until Ctrl-C."""
    if workers == 1:
        yield from ((job, _work(job.model, job.method, piece)) for job, piece in pieces)
        return
    # A fresh interpreter each: forking beside the thread of the progress bar is not safe.
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_leave_interrupts_to_the_parent)
    waiting: dict[Future[list[dict[str, Any]]], Job] = {}
    try:
        queue = iter(pieces)
        while True:
            for job, piece in queue:
                waiting[pool.submit(_work, job.model, job.method, piece)] = job
                if len(waiting) >= 2 * workers:  # one at work and one at hand for each
                    break
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _bar(total: int, done: int, shown: bool) -> Iterator[Callable[[int], None]]:
    if not shown:
        yield lambda count: None
        return
    columns = (
        TextColumn("Simulations"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left:"),
        # Speed over the last two minutes or so: pieces come in bursts.
        TimeRemainingColumn(),
    )
    with Progress(*columns, speed_estimate_period=120) as progress:
        task = progress.add_task("", total=total, completed=done)
        yield lambda count: progress.update(task, advance=count)


if __name__ == "__main__":
    raise SystemExit(main())
