"""`python -m benchmarks`: measure the groups, one process each, and write the page.

--only GROUP …   measure these only; the others stay as they were measured last
--quick          small sizes, to try whether things work: no figure of it means anything
--page           measure nothing, write the page anew, with the groups' present titles and explanations
--out FOLDER     where to; by default reports/benchmarks, or build/benchmarks for --quick
"""

import argparse
import os
import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    """Run what the command line asks for."""
    from benchmarks.page import GROUPS, write_page

    parser = argparse.ArgumentParser(prog="benchmarks", description="Measure, and write the page.")
    parser.add_argument("--only", nargs="+", choices=GROUPS, metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--quick", action="store_true", help="small sizes, to try whether things work")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page anew")
    parser.add_argument("--out", type=Path, help="folder to write to")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # the process that measures a group
    asked = parser.parse_args()
    folder = (asked.out or ROOT / ("build" if asked.quick else "reports") / "benchmarks").resolve()
    if asked.here:
        measure(asked.only[0], folder, quick=asked.quick)
        return 0
    if asked.page:
        reword(folder)
    failed = []
    for group in () if asked.page else asked.only or GROUPS:
        # A process of its own: the threads of one group's libraries must not run during another's measurements.
        words = [sys.executable, "-m", "benchmarks", "--here", "--only", group, "--out", str(folder)]
        if subprocess.run(words + ["--quick"] * asked.quick, check=False).returncode:
            failed.append(group)
    sys.stderr.write(f"{write_page(folder)}\n")
    if failed:
        sys.stderr.write(f"failed, and left as measured before: {', '.join(failed)}\n")
    return int(bool(failed))


def reword(folder: Path) -> None:
    """Give the groups that were measured the titles and explanations that their modules have now."""
    from benchmarks.page import GROUPS
    from benchmarks.record import merge, read

    for name, group in read(folder)["groups"].items():
        if name in GROUPS:
            module = import_module(f"benchmarks.group_{name}")
            merge(folder, name, group | {"title": module.TITLE, "reading": module.READING})


def measure(name: str, folder: Path, *, quick: bool) -> None:
    """Measure one group and merge it into the file."""
    from benchmarks.machine import place
    from benchmarks.record import Session, merge

    warnings.filterwarnings("ignore", message="Importing '.*' from 'pytensor", category=DeprecationWarning)
    command = f"python -m benchmarks --only {name}{' --quick' if quick else ''}"
    where = place() | {"command": command}  # before the load is our own
    group = import_module(f"benchmarks.group_{name}")
    session = Session(name, quick)
    group.run(session)
    merge(folder, name, session.as_dict(group.TITLE, group.READING, where))


if __name__ == "__main__":
    # What makes tests quick is taken back before PyTensor is imported: a user has none of it.
    for variable in ("PYTENSOR_FLAGS", "OPENBLAS_NUM_THREADS"):
        os.environ.pop(variable, None)
    sys.exit(main())
