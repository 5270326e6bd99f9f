"""How much memory a computation needs, asked before it is taken: a refusal in one line instead of a machine at rest.

A process that takes more than there is does not fail: the machine swaps, or its kernel ends some other process. So what
would take more than a gigabyte is first held against what is free.
"""

import os
from pathlib import Path

from bayes_gda.errors import SizeError

# Bytes below which nobody asks.
FREELY = 1_000_000_000
# Share of the free memory that one computation may take: others run, too, and estimates leave out what is small.
SHARE = 0.8


def require_memory(size: float, what: str, remedy: str) -> None:
    """Raise `SizeError` if a computation needs more memory than is free.

    Parameters
    ----------
    size
        Bytes that it takes at its peak.
    what
        What takes them, for the message.
    remedy
        What to do instead.
    """
    if size <= FREELY:
        return
    free = free_memory()
    if free is not None and size > max(FREELY, SHARE * free):
        raise SizeError(f"{what} would take {size / 1e9:.1f} GB of memory; {free / 1e9:.1f} GB are free. {remedy}")


def free_memory() -> float | None:
    """Return the bytes that this process may still take, by the machine, its group and its limits; None if unknown."""
    known = [x for x in (_of_machine(), _of_group(), _of_limit()) if x is not None]
    return max(min(known), 0.0) if known else None


def _of_machine() -> float | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration, ValueError):  # not Linux: half of what is built in, if that is known
        try:
            return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        except (AttributeError, OSError, ValueError):
            return None


def _of_group() -> float | None:
    """Memory that a container has left."""
    try:
        most = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        return None if most == "max" else float(most) - float(Path("/sys/fs/cgroup/memory.current").read_text())
    except (OSError, ValueError):
        return None


def _of_limit() -> float | None:
    """Memory that a limit on this process (`ulimit -v`) leaves."""
    try:
        import resource

        most = resource.getrlimit(resource.RLIMIT_AS)[0]
        if most == resource.RLIM_INFINITY:
            return None
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        return float(most - pages * resource.getpagesize())
    except (ImportError, OSError, ValueError):
        return None
