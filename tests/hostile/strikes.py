"""Commands that are killed at a given moment, or find no room on the disk; run as a script, in a process of its own.

The script imports the package once, and forks for each command: a fork costs milliseconds where a new process would
import for seconds. Each fork works in a folder of its own, a copy of one that holds an older output, and leaves it as
it is at the end. An audit hook of Python's sees every `open`, `rename`, `mkdir` and `remove` in that folder before it
is done: at the k-th of them the process sends itself SIGKILL.

    python strikes.py JOBS.json    a list of {"name", "command", "folder", "every", "limit"}
"""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

EVENTS = {"open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink"}
# Beyond the last operation of any of our commands: such a strike does not happen, and the command ends by itself.
NEVER = 10**9


def run(jobs, copies):
    """Run strikes.py on some jobs; return by name what became of each fork, the one that was not struck first.

    Parameters
    ----------
    jobs
        `name` and `command`; `folder`, that holds an older output; `every`, whether to strike before each operation;
        `limit`, the largest file in bytes, or None.
    copies
        A folder, where each fork leaves what it did in NAME-k, and k is the operation that it was struck at.
    """
    path = copies / "jobs.json"
    path.write_text(json.dumps(jobs), encoding="utf-8")
    done = subprocess.run([sys.executable, __file__, str(path)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {job["name"]: [line for line in lines if line["name"] == job["name"]] for job in jobs}


def _strike_at(k, folder):
    """Kill this process just before its k-th operation on a file in the folder; return the counter."""
    seen = [0]

    def hook(event, args):
        if event not in EVENTS or (event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR)):
            return
        paths = args[:2] if event in ("os.rename", "os.link", "os.symlink") else args[:1]
        names = [os.fsdecode(path) for path in paths if not isinstance(path, int)]
        if not any(os.path.abspath(name).startswith(folder) for name in names):
            return
        seen[0] += 1
        if seen[0] == k:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    return seen


def _patch_report():
    """Analyse once for all forks, and draw one figure: the analysis writes nothing, and the figures all alike."""
    from itertools import islice

    from bayes_gda import load_example
    from bayes_gda.reporting import report
    from bayes_gda.reporting.page import figures

    drawn = figures.figures
    figures.figures = lambda analysis: islice(drawn(analysis), 1)
    settings = report.ReportSettings(quick=True, draws=100, chains=2, models=("lda",))
    cached = report.analyse(load_example("iris"), settings)
    report.analyse = lambda *args, **kwargs: cached


def _child(job, k, folder, counter):
    """Run the command, with what it says in files beside its folder; the process ends here."""
    from bayes_gda.cli import main

    os.chdir(folder)
    for stream in (1, 2):
        os.dup2(os.open(f"{folder}.{stream}", os.O_WRONLY | os.O_CREAT), stream)
    if job["limit"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (job["limit"], job["limit"]))
    seen = _strike_at(k, str(folder))
    sys.argv = ["bayes-gda", *job["command"]]
    code = 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    os.pwrite(counter, str(seen[0]).encode(), 0)
    os._exit(code)


def _fork(job, k, copies):
    """Run a command that is struck at operation k; return what became of it."""
    folder = copies / f"{job['name']}-{k}"
    shutil.copytree(job["folder"], folder)
    counter = os.memfd_create("counter")
    process = os.fork()
    if process == 0:
        _child(job, k, folder, counter)
    _, status = os.waitpid(process, 0)
    operations = int(os.pread(counter, 20, 0) or 0)
    os.close(counter)
    code, error = os.waitstatus_to_exitcode(status), Path(f"{folder}.2").read_text(encoding="utf-8")
    line = {"name": job["name"], "k": k, "folder": str(folder), "code": code, "error": error}
    print(json.dumps(line), flush=True)  # noqa: T201, how the script answers
    return operations


def _main(path):
    # All that the commands import, once for all of them.
    import matplotlib.pyplot as plt
    import pandas as pd

    from bayes_gda.store import load

    assert plt and pd and load  # noqa: PT018, only that they are there
    _patch_report()
    for job in json.loads(path.read_text(encoding="utf-8")):
        operations = _fork(job, NEVER, path.parent)
        for k in range(1, operations + 2) if job["every"] else ():
            _fork(job, k, path.parent)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
