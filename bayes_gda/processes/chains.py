"""Independent chains side by side: one process a core, a progress bar, and an interruption that keeps what is there.

Each chain has its own seed and is run whole by one process, so that its draws do not depend on how many run at once.
(PyMC's own processes hand over every single draw; for the fast densities of this package that took longer than the
sampling itself: 5.5 s on two cores where one core alone took 3.9 s.)

Processes are started in one of three ways, and the draws are the same by all of them:

    fork    a copy of this process, there in milliseconds; on Linux, from the main thread
    fresh   a new interpreter that the work is sent to: where a fork is unsafe (macOS, or a process whose other threads
            may hold a lock) or unknown (Windows). It imports for some seconds
    here    no process at all: one core, or a process that may have no children (a worker of `multiprocessing.Pool`)
"""

import multiprocessing
import os
import sys
import threading
import time
from typing import Any, Literal, Protocol

from bayes_gda.processes.forked import Forked
from bayes_gda.processes.fresh import Fresh, packed
from bayes_gda.processes.work import POLL, ChainError, Work, progress_bars

Start = Literal["fork", "fresh", "here"]


class Workers(Protocol):
    """Processes that run chains."""

    def collect(self, results: dict[int, Any]) -> bool:
        """Take in what arrives within POLL seconds; return whether all processes are done."""

    def progress(self, chain: int) -> tuple[int, int]:
        """Return the iterations and divergences of a chain so far."""

    def stop(self) -> None:
        """Ask every chain to return what it has."""

    def end(self) -> None:
        """End the processes, whatever they do."""


def preferred_start() -> Start:
    """Return how this process should start others."""
    if multiprocessing.current_process().daemon:
        return "here"
    if sys.platform == "linux" and threading.current_thread() is threading.main_thread():
        return "fork"
    return "fresh"


def run_chains(
    work: Work,
    chains: int,
    *,
    iterations: int,
    cores: int | None = None,
    shown: bool = False,
    start: Start | None = None,
) -> list[Any]:
    """Run every chain and return their results in order; after Ctrl-C, what the chains begun had until then.

    Parameters
    ----------
    work
        (chain, report) → result. It calls `report` after every iteration, and returns what it has if that raises
        KeyboardInterrupt. Work that cannot be pickled runs in this process where others would have to be fresh.
    chains, iterations
        Number of chains, and of iterations of each.
    cores
        Processes; None for as many as the machine has. One runs all chains in this process.
    shown
        Whether to show a progress bar.
    start
        How processes are started; None for what is safe here.
    """
    count = min(chains, cores or os.cpu_count() or 1)
    method = preferred_start() if start is None else start
    message = packed(work) if method == "fresh" and count > 1 else None
    if count == 1 or method == "here" or (method == "fresh" and message is None):
        return _in_this_process(work, chains, iterations, shown)
    workers: Workers = Fresh(message, chains, count) if message is not None else Forked(work, chains, count)
    return _followed(workers, chains, iterations, shown)


def _in_this_process(work: Work, chains: int, iterations: int, shown: bool) -> list[Any]:
    results: list[Any] = []
    reached, looked = 0, 0.0
    with progress_bars(chains, iterations, shown) as update:
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


def _followed(workers: Workers, chains: int, iterations: int, shown: bool) -> list[Any]:
    """Show the progress of the processes until they are done; return the results in order."""
    results: dict[int, Any] = {}
    stopped = False
    try:
        with progress_bars(chains, iterations, shown) as update:
            while True:
                try:
                    done = workers.collect(results)
                    for chain in range(chains):
                        update(chain, *workers.progress(chain))
                    if done:
                        break
                except KeyboardInterrupt:
                    if stopped:
                        raise  # twice: not even the partial results are wanted
                    stopped = True
                    workers.stop()
    finally:
        workers.end()
    missing = [chain for chain in range(chains) if chain not in results]
    if missing:
        raise ChainError(
            f"The process of chain {missing[0]} died before it had a result, perhaps for want of memory. "
            "Use fewer draws, or cores=1."
        )
    ordered = [results[chain] for chain in range(chains)]
    for result in ordered:
        if isinstance(result, BaseException):
            raise result
    return ordered
