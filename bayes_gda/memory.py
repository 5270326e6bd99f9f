"""How much memory and time a computation needs, asked before it is begun: one line instead of a machine at rest.

A process that takes more memory than there is does not fail: the machine swaps, or its kernel ends some other process.
So what would take more than a gigabyte is first held against what is free. What is expected to run for more than a
minute says so when it begins, by the number of its operations, so that the same data always give the same message.
"""

import os
from pathlib import Path

from bayes_gda.errors import SizeError, warn_user

# Bytes below which nobody asks.
FREELY = 1_000_000_000
# Share of the free memory that one computation may take: others run, too, and estimates leave out what is small.
SHARE = 0.8
# Operations a second that matrix products reach on one core; and the seconds that nobody is told of.
OPERATIONS, UNANNOUNCED = 1e10, 60.0

# Bytes of addresses that the libraries reserve before a row is read, and for each core. Measured (`ulimit -v`, LDA on
# iris): .45 to .7 GB on one core, to .8 GB on two, and OpenBLAS ends the process or an import fails; 1 GB will do.
LIBRARIES, LIBRARIES_A_CORE = 1_000_000_000, 50_000_000


def require_addresses() -> None:
    """Raise `SizeError` if a limit on this process is too small for the libraries: OpenBLAS would end it, not raise."""
    try:
        import resource
    except ImportError:  # not Unix
        return
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    needed = LIBRARIES + LIBRARIES_A_CORE * (os.cpu_count() or 1)
    if most != resource.RLIM_INFINITY and most < needed:
        raise SizeError(
            f"There is not enough memory to begin: this process is limited to {most / 1e9:.1f} GB of addresses; its "
            f"libraries need {needed / 1e9:.1f}. Raise the limit: ulimit -v {needed // 1000}."
        )


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


def announce_work(operations: float, what: str, remedy: str) -> None:
    """Warn that a computation is expected to take more than a minute.

    Parameters
    ----------
    operations
        Additions and multiplications, as many as matrix products would have in that time.
    what
        What takes them, for the message.
    remedy
        What to do instead.
    """
    seconds = operations / OPERATIONS
    if seconds > UNANNOUNCED:
        minutes = f"{seconds / 60:.0f} minute{'s' * (round(seconds / 60) != 1)}"
        long = minutes if seconds < 7200 else f"{seconds / 3600:.0f} hours"
        warn_user(f"{what} is expected to take about {long} on one core. {remedy}")


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
