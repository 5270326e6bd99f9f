"""Processes that a test starts: each is ended with the test, whatever becomes of it."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import contextmanager
from pathlib import Path

# Put before a script: jobs of a shell without a terminal are started deaf to Ctrl-C, under nohup to a hang-up too.
HEARS_CTRL_C = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    "signal.signal(getattr(signal, 'SIGHUP', signal.SIGTERM), signal.SIG_DFL)\n"  # which nohup has ignored
)


@contextmanager
def started(script, *args):
    """Run a script as a process of its own, which is killed at the end of the block if it is still there."""
    process = subprocess.Popen(
        [sys.executable, "-c", HEARS_CTRL_C + textwrap.dedent(script), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def children(pid):
    """Return the processes that a process has started and that are still there (Linux)."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition, seconds=30.0):
    """Return whether a condition came true in time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def end(pids):
    """Kill processes that should not be there any more."""
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, signal.SIGKILL)
