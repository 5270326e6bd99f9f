"""A folder that takes the place of another at one stroke: whoever looks, and whenever a run ends, there is one, whole.

Files can be renamed over each other; folders that hold files cannot. Linux and macOS can exchange two names in one step
instead. Where a system or a disk has no such step there are two renames, and between them, for some microseconds, the
old folder stands under a hidden name beside its own.
"""

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bayes_gda.errors import StoreError
from bayes_gda.processes.signals import cleared_on_termination

# <fcntl.h>: names are relative to the folder we are in. <linux/fs.h> and <sys/stdio.h>: exchange them.
_AT_FDCWD, _EXCHANGE = -100, 2


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Give a new folder to write to, which takes the place of `folder` at the end, if nothing was raised."""
    target = folder.absolute()
    with cleared_on_termination():
        yield from _drafted(folder, target)


def _drafted(folder: Path, target: Path) -> Iterator[Path]:
    room: Path | None = None
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # A sibling, so that it can be renamed into place: another disk would have to be copied to.
        room = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        new = room / "new"
        new.mkdir()
        yield new
        put_in_place(new, target)
    except StoreError:
        raise
    except OSError as error:
        cause = (error.strerror or str(error)).strip().rstrip(".")
        raise StoreError(
            f"Cannot write {str(folder)!r}: {cause}. Nothing was changed; free some space or choose another path."
        ) from error
    finally:
        if room is not None:
            shutil.rmtree(room, ignore_errors=True)


def put_in_place(new: Path, target: Path) -> None:
    """Rename a folder to `target`; if there is one already, that takes its name, or another beside it."""
    try:
        new.rename(target)  # onto nothing, or an empty folder
        return
    except OSError as error:  # another run may have put its own there a moment ago
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.EACCES, errno.EPERM):
            raise
    if _exchange(new, target):
        return
    old = new.with_name("old")
    target.rename(old)
    try:
        new.rename(target)
    except OSError:
        old.rename(target)
        raise


def _exchange(a: Path, b: Path) -> bool:
    """Exchange two names in one step; return whether this system and disk can."""
    first, second = os.fsencode(a), os.fsencode(b)
    try:
        libc = ctypes.CDLL(None)
        if hasattr(libc, "renamex_np"):  # macOS
            return bool(libc.renamex_np(first, second, _EXCHANGE) == 0)
        return bool(libc.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, _EXCHANGE) == 0)
    except (AttributeError, OSError, TypeError):  # a C library from before 2018, or a system without one
        return False
