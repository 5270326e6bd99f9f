"""Chains in copies of this process, whose life is tied to that of their parent.

A chain that outlives its parent would sample for nobody, for ever. So the kernel is asked to kill it when the parent
dies, however that happens; a copy that the kernel will not promise this to looks for its parent itself.
"""

import ctypes
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing.connection import Connection, wait
from typing import Any

from bayes_gda.processes.state import Shared, warning_rule
from bayes_gda.processes.work import POLL, ChainError, Work, outcome

# <linux/prctl.h>: the signal that a process gets when its parent dies.
_PR_SET_PDEATHSIG = 1


# Our worker threads have ended, and BLAS is held to one.
_FORK_IS_SAFE = Shared(lambda: warning_rule("ignore", ".*multi-threaded, use of fork", DeprecationWarning))


class Forked:
    """Forks of this process, to which the chains are dealt."""

    def __init__(self, work: Work, chains: int, count: int) -> None:
        context = multiprocessing.get_context("fork")
        # Iterations and divergences of each chain, and whether to stop. Without a lock, which a process that is killed
        # might never give back: every number has one writer.
        self.shared = context.Array("l", 2 * chains + 1, lock=False)
        self.pipes: list[Connection] = []
        self.processes: list[Any] = []
        # A copy must have its own answers to these before it hears them.
        held = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)
        try:
            for worker in range(count):
                here, there = context.Pipe(duplex=False)
                self.pipes.append(here)
                mine, parent = range(worker, chains, count), os.getpid()
                args = (work, mine, there, list(self.pipes), self.shared, parent, mask)
                process = context.Process(target=_run, args=args, daemon=True)
                with _FORK_IS_SAFE:
                    process.start()
                there.close()
                self.processes.append(process)
        except BaseException:
            self.end()
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def collect(self, results: dict[int, Any]) -> bool:
        """Take in what arrives within POLL seconds; return whether all processes are done."""
        for pipe in wait(self.pipes, timeout=POLL):
            assert isinstance(pipe, Connection)
            try:
                chain, result = pipe.recv()
                results[chain] = result
            except EOFError:
                self.pipes.remove(pipe)
        return not self.pipes

    def progress(self, chain: int) -> tuple[int, int]:
        """Return the iterations and divergences of a chain so far."""
        return self.shared[2 * chain], self.shared[2 * chain + 1]

    def stop(self) -> None:
        """Ask every chain to return what it has."""
        self.shared[-1] = 1

    def end(self) -> None:
        """End the processes, whatever they do."""
        for process in self.processes:
            process.join(timeout=POLL)
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self.pipes:
            pipe.close()


def _run(
    work: Work, mine: range, pipe: Connection, inherited: list[Connection], shared: Any, parent: int, mask: Any
) -> None:
    """Run chains one after the other in a process of their own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides, and says so by the last shared number
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    _die_with(parent)
    for end in inherited:  # a reader of our own would keep us waiting for room in a pipe that nobody empties
        end.close()
    for chain in mine:

        def report(iteration: int, divergences: int, chain: int = chain) -> None:
            shared[2 * chain], shared[2 * chain + 1] = iteration, divergences
            if shared[len(shared) - 1]:
                raise KeyboardInterrupt

        result = outcome(work, chain, report)
        try:
            pipe.send((chain, result))
        except BrokenPipeError:
            return
        except Exception:  # what cannot be pickled, as the errors of some libraries
            pipe.send((chain, ChainError(f"Chain {chain}: {type(result).__name__}: {result}")))
    pipe.close()


def _die_with(parent: int) -> None:
    """Tie the life of this process to that of its parent."""
    try:
        promised = ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) == 0
    except (AttributeError, OSError, TypeError):  # not Linux
        promised = False
    if not promised:
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it died before the promise
        os._exit(1)


def _watch(parent: int) -> None:
    """End this process when its parent has died: it then has another."""
    while os.getppid() == parent:
        time.sleep(POLL)
    os._exit(1)
