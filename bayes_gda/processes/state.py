"""Settings of the whole process, such as the number of BLAS threads, that several threads need at the same time.

A thread that saves such a setting, changes it and puts it back at the end is right only if it is alone: where a second
one begins before the first ends, it saves the changed setting, and puts that back for good. Here the first who needs a
change makes it, and the last who needed it takes it back. Nobody waits meanwhile.
"""

import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Literal


class Shared:
    """A context that is entered once, however many threads and blocks are inside.

    Parameters
    ----------
    make
        Returns the context manager that makes the change, and takes it back.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[Any]]) -> None:
        self._make = make
        self._inside = 0
        self._current: AbstractContextManager[Any] | None = None
        self._lock = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._renew_lock)

    def _renew_lock(self) -> None:
        """Free the lock in a copy of this process: the thread that held it was not copied."""
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                context = self._make()
                context.__enter__()
                self._current = context
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._current is not None:
                context, self._current = self._current, None
                context.__exit__(None, None, None)


@contextmanager
def warning_rule(action: Literal["ignore", "error"], message: str, category: type[Warning]) -> Iterator[None]:
    """Treat warnings of a category whose message begins like this in one way; only this rule is added and removed.

    `warnings.catch_warnings` puts back the whole list of filters, and with it what another thread had meanwhile.
    """
    # The comment makes the rule ours: an equal one of the user's would be moved to the front, and lost at the end.
    warnings.filterwarnings(action, message=f"(?#bayes_gda){message}", category=category)
    filters: Any = warnings.filters
    rule = filters[0]
    try:
        yield
    finally:
        current: Any = warnings.filters  # another list if someone is inside `catch_warnings`
        for place in (filters, current):
            if rule in place:
                place.remove(rule)


@contextmanager
def quiet_logger(name: str) -> Iterator[None]:
    """Show only the errors of a logger; a level that someone else sets meanwhile stays."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        if logger.level == logging.ERROR:
            logger.setLevel(before)
