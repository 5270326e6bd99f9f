"""Independent chains side by side: one process a core, a progress bar, and an interruption that keeps what is there.

Each chain has its own seed and is run whole by one process, so that its draws do not depend on how many run at once.
(PyMC's own processes hand over every single draw; for the fast densities of this package that took longer than the
sampling itself: 5.5 s on two cores where one core alone took 3.9 s.)
"""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

from bayes_gda.errors import BayesGDAError

# Seconds between two looks at the counters: smooth to the eye, and nothing to the processor.
POLL = 0.1


class Report(Protocol):
    """What a chain says after every iteration."""

    def __call__(self, iteration: int, divergences: int) -> None:
        """Note the progress; raises KeyboardInterrupt if the run is to stop."""


Work = Callable[[int, Report], Any]


class ChainError(BayesGDAError):
    """A chain ended without a result."""


def run_chains(work: Work, chains: int, *, iterations: int, cores: int | None = None, shown: bool = False) -> list[Any]:
    """Run every chain and return their results in order; after Ctrl-C, what the chains begun had until then.

    Parameters
    ----------
    work
        (chain, report) → result. It calls `report` after every iteration, and returns what it has if that raises
        KeyboardInterrupt.
    chains, iterations
        Number of chains, and of iterations of each.
    cores
        Processes; None for as many as the machine has. One runs all chains in this process, as does a system
        that cannot fork.
    shown
        Whether to show a progress bar.
    """
    count = min(chains, cores or os.cpu_count() or 1)
    if count == 1 or "fork" not in multiprocessing.get_all_start_methods():
        return _in_this_process(work, chains, iterations, shown)
    return _in_processes(work, chains, iterations, count, shown)


def _in_this_process(work: Work, chains: int, iterations: int, shown: bool) -> list[Any]:
    results: list[Any] = []
    reached, looked = 0, 0.0
    with _bars(chains, iterations, shown) as update:
        for chain in range(chains):

            def report(iteration: int, divergences: int, chain: int = chain) -> None:
                nonlocal reached, looked
                reached = iteration
                if time.monotonic() - looked > POLL or iteration == iterations:
                    looked = time.monotonic()
                    update(chain, iteration, divergences)

            reached = 0
            results.append(work(chain, report))
            if reached < iterations:
                break  # interrupted: the work has caught Ctrl-C and returned what it had
    return results


def _in_processes(work: Work, chains: int, iterations: int, cores: int, shown: bool) -> list[Any]:
    context = multiprocessing.get_context("fork")
    counters = context.Array("l", 2 * chains, lock=False)  # iterations and divergences of each chain
    stop = context.Event()
    pipes, processes = [], []
    for worker in range(cores):
        here, there = context.Pipe(duplex=False)
        mine = range(worker, chains, cores)
        process = context.Process(target=_worker, args=(work, mine, there, counters, stop), daemon=True)
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    results: dict[int, Any] = {}
    try:
        with _bars(chains, iterations, shown) as update:
            while True:
                try:
                    done = _collect(pipes, results)
                    for chain in range(chains):
                        update(chain, counters[2 * chain], counters[2 * chain + 1])
                    if done:
                        break
                except KeyboardInterrupt:
                    if stop.is_set():
                        raise  # twice: not even the partial results are wanted
                    stop.set()
    finally:
        for process in processes:
            process.join(timeout=POLL)
            if process.is_alive():
                process.terminate()
    missing = [chain for chain in range(chains) if chain not in results]
    if missing:
        raise ChainError(
            f"The process of chain {missing[0]} died before it had a result, perhaps for want of memory. "
            "Use fewer draws, or cores=1."
        )
    for result in results.values():
        if isinstance(result, BaseException):
            raise result
    return [results[chain] for chain in range(chains)]


def _collect(pipes: list[Connection], results: dict[int, Any]) -> bool:
    """Take in what has arrived within one look; return whether all processes are done."""
    for pipe in wait(pipes, timeout=POLL):
        assert isinstance(pipe, Connection)
        try:
            chain, result = pipe.recv()
            results[chain] = result
        except EOFError:
            pipes.remove(pipe)
    return not pipes


def _worker(work: Work, mine: range, pipe: Connection, counters: Any, stop: Any) -> None:
    """Run chains one after the other in a process of their own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, and says so by `stop`
    for chain in mine:

        def report(iteration: int, divergences: int, chain: int = chain) -> None:
            counters[2 * chain], counters[2 * chain + 1] = iteration, divergences
            if stop.is_set():
                raise KeyboardInterrupt

        try:
            result = work(chain, report)
        except BaseException as error:
            result = error
        pipe.send((chain, result))
    pipe.close()


@contextmanager
def _bars(chains: int, iterations: int, shown: bool) -> Iterator[Callable[[int, int, int], None]]:
    """Show a bar for each chain, with its draws, divergences and the time left."""
    if not shown:
        yield lambda chain, iteration, divergences: None
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[divergences]} divergences"),
        TimeElapsedColumn(),
        TextColumn("left:"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, refresh_per_second=1 / POLL) as progress:
        tasks = [progress.add_task(f"Chain {i + 1}", total=iterations, divergences=0) for i in range(chains)]
        yield lambda chain, iteration, divergences: progress.update(
            tasks[chain], completed=iteration, divergences=divergences
        )
