"""Chains in new interpreters that the work is sent to, for where a fork is unsafe or unknown.

The parent writes to a process's standard input: the chains that are its own and the work, then, if ever, one byte that
asks for a stop. The process answers on its standard output with its progress and its results. When the parent dies,
however that happens, the input ends, and the process with it. Work and results travel by cloudpickle, which also takes
what was written in `__main__`: the user's script is not run again, and needs no `if __name__ == "__main__"`.
"""

import io
import os
import pickle
import queue
import struct
import subprocess
import sys
import threading
import time
from contextlib import suppress
from multiprocessing.spawn import get_executable
from typing import IO, Any

from bayes_gda.processes.work import POLL, ChainError, Work, outcome

_LENGTH = struct.Struct("<Q")
_PROGRAM = "from bayes_gda.processes.fresh import serve; serve()"
# Kinds of answers; −1 stands for the end of a process.
_PROGRESS, _RESULT = 0, 1


def packed(work: Work) -> bytes | None:
    """Return the work as bytes; None if it cannot be sent."""
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(work))
    except Exception:  # by libraries' own rules: a lock, an open file, a generator
        return None


class Fresh:
    """New interpreters, to which the chains are dealt."""

    def __init__(self, message: bytes, chains: int, count: int) -> None:
        self.counters = [(0, 0)] * chains
        self.answers: queue.SimpleQueue[tuple[int, Any]] = queue.SimpleQueue()
        self.running = count
        self.processes: list[subprocess.Popen[bytes]] = []
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        try:
            for _ in range(count):
                process = subprocess.Popen(
                    [os.fsdecode(get_executable() or sys.executable), "-c", _PROGRAM],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=environment,
                    start_new_session=True,  # Ctrl-C is for the parent, which decides
                )
                self.processes.append(process)
                threading.Thread(target=self._listen, args=(process,), daemon=True).start()
            for worker, process in enumerate(self.processes):  # all import meanwhile
                mine = pickle.dumps(range(worker, chains, count))
                assert process.stdin is not None
                try:
                    for part in (mine, message):
                        process.stdin.write(_LENGTH.pack(len(part)) + part)
                    process.stdin.flush()
                except OSError:  # it died already: its output has ended, and the caller is told
                    pass
        except BaseException:
            self.end()
            raise

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        try:
            while True:
                self.answers.put(pickle.loads(_receive(process.stdout)))
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            self.answers.put((-1, None))

    def collect(self, results: dict[int, Any]) -> bool:
        """Take in what arrives within POLL seconds; return whether all processes are done."""
        deadline = time.monotonic() + POLL
        while self.running and (left := deadline - time.monotonic()) > 0:
            try:
                kind, content = self.answers.get(timeout=left)
            except queue.Empty:
                break
            if kind == _PROGRESS:
                chain, *counted = content
                self.counters[chain] = (counted[0], counted[1])
            elif kind == _RESULT:
                chain, result = content
                results[chain] = pickle.loads(result)
            else:
                self.running -= 1
        return self.running == 0

    def progress(self, chain: int) -> tuple[int, int]:
        """Return the iterations and divergences of a chain so far."""
        return self.counters[chain]

    def stop(self) -> None:
        """Ask every chain to return what it has."""
        for process in self.processes:
            assert process.stdin is not None
            try:
                process.stdin.write(b"s")
                process.stdin.flush()
            except OSError:  # it is done, and gone
                pass

    def end(self) -> None:
        """End the processes, whatever they do."""
        for process in self.processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    with suppress(OSError):
                        stream.close()


# ── In the new process ──────────────────────────────────────────────────────────────────────────────────────────────


def serve() -> None:
    """Run the chains that standard input names, and answer on standard output; does not return."""
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what the work prints must not stand among the answers
    source = io.FileIO(0, closefd=False)
    mine, message = pickle.loads(_receive(source)), _receive(source)
    stop = threading.Event()
    threading.Thread(target=_hear, args=(stop,), daemon=True).start()
    try:
        work = pickle.loads(message)
    except BaseException as error:
        work = _failing(f"The work could not be read in a new process: {type(error).__name__}: {error}")
    for chain in mine:
        looked = 0.0

        def report(iteration: int, divergences: int, chain: int = chain) -> None:
            nonlocal looked
            if time.monotonic() - looked > POLL:
                looked = time.monotonic()
                _send(out, (_PROGRESS, (chain, iteration, divergences)))
            if stop.is_set():
                raise KeyboardInterrupt

        _send(out, (_RESULT, (chain, _bytes_of(outcome(work, chain, report), chain))))
    os._exit(0)  # the thread that listens to standard input is still there


def _hear(stop: threading.Event) -> None:
    """Wait for the byte that asks for a stop; end the process where the parent has died."""
    while os.read(0, 1):
        stop.set()
    os._exit(1)


def _failing(reason: str) -> Work:
    def fail(chain: int, report: Any) -> Any:
        raise ChainError(reason)

    return fail


def _bytes_of(result: Any, chain: int) -> bytes:
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(result))
    except Exception:
        return pickle.dumps(ChainError(f"Chain {chain}: {type(result).__name__}: {result}"))


def _send(out: IO[bytes], answer: tuple[int, Any]) -> None:
    content = pickle.dumps(answer)
    view = memoryview(_LENGTH.pack(len(content)) + content)
    while view:
        view = view[out.write(view) :]


def _receive(source: Any) -> bytes:
    """Read one message: its length, then as many bytes."""
    (length,) = _LENGTH.unpack(_exactly(source, _LENGTH.size))
    return _exactly(source, length)


def _exactly(source: Any, length: int) -> bytes:
    pieces = []
    while length:
        piece = source.read(length)
        if not piece:
            raise EOFError
        pieces.append(piece)
        length -= len(piece)
    return b"".join(pieces)
