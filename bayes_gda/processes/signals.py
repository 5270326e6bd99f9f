"""Signals that end a process: what is begun is cleared away before it does."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn


def exit_code(number: int) -> int:
    """Return the exit code of a process that a signal ended, as shells count."""
    return 128 + number


@contextmanager
def cleared_on_termination() -> Iterator[None]:
    """Let SIGTERM raise SystemExit inside the block, so that its `finally` clauses run.

    Only where nobody else has an answer to the signal, and in the main thread, which alone may set one.
    """
    alone = threading.current_thread() is threading.main_thread()
    if not alone or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(exit_code(number))
