"""One fault, one process: a copy of this process that has the fault in its module, and runs the tests of its line.

The parent has imported the large libraries, but nothing of the package, so that a child has its tests within a second
and its own mutated module. A child that works too long is ended, and counts as found out.
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import math
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What every child needs, and none may change: imported once.
LIBRARIES = ("numpy", "scipy.stats", "scipy.optimize", "scipy.integrate", "sklearn.linear_model", "pandas", "pytest")
LARGE_LIBRARIES = ("pymc", "arviz", "xarray")  # not pytest's plugins, which pytest imports its own way


class _OneModule(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, and makes it from a tree."""

    def __init__(self, path: str, tree: ast.Module) -> None:
        self.name = path.removesuffix(".py").replace("/", ".")
        self.file, self.tree = str(ROOT / path), tree

    def find_spec(self, fullname, path, target=None):
        if fullname != self.name:
            return None
        return importlib.util.spec_from_file_location(fullname, self.file, loader=self)

    def exec_module(self, module) -> None:
        exec(compile(self.tree, self.file, "exec"), module.__dict__)


# Options of pytest in every child.
QUIET = ("-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:benchmark")
# A child is ended after its seconds of processor time, and after that many times as long by the clock, as it waits on a
# busy machine.
WAITING = 6.0


def in_child(work: Callable[[], int], log: Path, seconds: float) -> tuple[str, float]:
    """Run `work` in a child; return how it ended, by its exit code, a signal or "timeout", and the seconds it took."""
    begun = time.monotonic()
    pid = os.fork()
    if not pid:
        code = 99
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds), resource.RLIM_INFINITY))
            with open(log, "wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            code = int(work())
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else str(os.WEXITSTATUS(status))
            how = "timeout" if how == f"signal {signal.SIGXCPU}" else how
            break
        if time.monotonic() - begun > WAITING * seconds:
            os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            how = "timeout"
            break
        time.sleep(0.005)
    return how, time.monotonic() - begun


def ending(how: str) -> str:
    """Return what an end of tests says of their fault: "survived", "died", or by which signal or timeout."""
    return "survived" if how == "0" else "died" if how in ("1", "2", "4") else how


def run_tests(
    tests: list[str], *options: str, fault: tuple[str, ast.Module] | None = None, plugins: Sequence[object] = ()
) -> int:
    """Run tests in this process, with a fault or without; to be called in a child."""
    import pytest

    if fault is not None:
        sys.meta_path.insert(0, _OneModule(*fault))
    os.chdir(ROOT)
    return int(pytest.main([*QUIET, *options, *tests], plugins=[*plugins]))


def import_libraries(*, large: bool = True) -> None:
    """Import what the children share, in the settings of the tests."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.environ["PYTENSOR_FLAGS"] = "blas__ldflags=,mode=FAST_COMPILE"
    sys.path.insert(0, str(ROOT / "tests"))
    for name in LIBRARIES + (LARGE_LIBRARIES if large else ()):
        importlib.import_module(name)
    assert not any(name.split(".")[0] == "bayes_gda" for name in sys.modules), (
        "the package must be imported by children"
    )
