"""Whenever a command is killed, and wherever the disk is full: the old output stands, or the new, and never half.

`strikes` kills the command before each of its operations on files. Between two of them nothing changes but the content
of a draft, which nobody reads.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hostile import strikes

from bayes_gda import load, load_example
from bayes_gda.errors import StoreError
from bayes_gda.estimators import BayesianLDA, BayesianQDA
from bayes_gda.reporting.page import replacing
from bayes_gda.reporting.page.replacing import put_in_place, replaced

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks, audit hooks and limits as Linux has them")

IRIS = load_example("iris")
FIT = ("fit", "example:iris", "-m", "lda", "-o", "model.nc", "--draws", "20", "--chains", "2")
REPORT = ("report", "example:iris", "--quick", "--models", "lda", "--draws", "100", "--chains", "2", "--out", "report")
FULL = (
    FIT,
    REPORT,
    ("predict", "model.nc", "new.csv", "--out", "rows.csv", "--interval", "0"),
    ("examples", "iris", "--out", "rows.csv"),
    ("simulate", "--n", "500", "--out", "rows.csv"),
)
# An operation of the report that is neither the first nor the last: its draft is begun.
IN_THE_DRAFT = 5
# Files of at most so many bytes: less than any of our outputs, and enough for a line on stderr.
LIMIT = 2000


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """What became of every command, by its name: struck at each operation on a file, or with no room on the disk.

    Each found an older output of every command in its folder, which differs from what it writes.
    """
    home, copies = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("copies")
    (home / "report" / "figures").mkdir(parents=True)
    for name, text in (("report.json", '"old"'), ("index.html", "old"), ("figures/old.svg", "old")):
        (home / "report" / name).write_text(text, encoding="utf-8")
    (home / "rows.csv").write_text("old", encoding="utf-8")
    BayesianQDA(draws=20, chains=2).fit(IRIS.X, IRIS.y).save(home / "model.nc")
    np.savetxt(home / "new.csv", IRIS.X, delimiter=",", header="x1,x2,x3,x4", comments="")

    def job(name, command, *, folder=home, every=False, limit=None):
        return {"name": name, "command": command, "folder": str(folder), "every": every, "limit": limit}

    jobs = [
        job("fit", FIT, every=True),
        job("report", REPORT, every=True),
        job("report again", REPORT, folder=copies / f"report-{IN_THE_DRAFT}"),
        *[job(f"full {command[0]}", command, limit=LIMIT) for command in FULL],
    ]
    return strikes.run(jobs, copies)


def state(folder):
    """Which report a folder holds: the old or the new; an AssertionError if neither."""
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    if "figures/old.svg" in files:
        assert files == ["figures/old.svg", "index.html", "report.json"]
        assert (folder / "index.html").read_text(encoding="utf-8") == "old"
        return "old"
    numbers = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    figures = [f"figures/{figure['name']}.svg" for figure in numbers["figures"]]
    assert files == sorted([*figures, "index.html", "posterior/lda-exact.nc", "report.json", "report.md"])
    assert (folder / "index.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    return "new"


def test_a_killed_fit_leaves_the_old_model_or_the_new(outcomes):
    whole, *struck = outcomes["fit"]
    assert whole["code"] == 0, whole
    assert len(struck) > 3
    seen = []
    for line in struck:
        seen.append(type(load(Path(line["folder"]) / "model.nc")))
        assert len([p for p in Path(line["folder"]).iterdir() if p.suffix == ".tmp"]) <= 1
        assert line["code"] in (0, -9)
    first_new = seen.index(BayesianLDA)
    assert first_new > 0
    assert set(seen[:first_new]) == {BayesianQDA}
    assert set(seen[first_new:]) == {BayesianLDA}


def test_a_killed_report_leaves_the_old_report_or_the_new(outcomes):
    whole, *struck = outcomes["report"]
    assert whole["code"] == 0, whole
    seen = [(state(Path(line["folder"]) / "report"), line["code"]) for line in struck]
    assert seen[0] == ("old", -9)
    assert seen[-1] == ("new", 0)
    assert ("new", -9) in seen  # killed while it removed the old one
    # Where a process that draws a figure is the one that is struck, the command itself ends with an error.
    assert {code for _, code in seen} <= {-9, 0, 2}


def test_a_killed_report_does_not_hinder_the_next(outcomes):
    struck = next(line for line in outcomes["report"] if line["k"] == IN_THE_DRAFT)
    assert struck["code"] == -9
    before = {p.name for p in Path(struck["folder"]).iterdir()}
    assert len(before) == 5  # the draft as well, hidden, under a name that nobody takes twice
    (again,) = outcomes["report again"]
    assert again["code"] == 0, again
    assert state(Path(again["folder"]) / "report") == "new"
    assert {p.name for p in Path(again["folder"]).iterdir()} == before


def test_an_exchange_that_the_disk_cannot_do_is_done_in_two_steps(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name, encoding="utf-8")
    monkeypatch.setattr(replacing, "_exchange", lambda a, b: False)
    put_in_place(tmp_path / "a", tmp_path / "b")
    assert (tmp_path / "b" / "file").read_text(encoding="utf-8") == "a"
    assert (tmp_path / "old" / "file").read_text(encoding="utf-8") == "b"


# ── A full disk ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("command", [command[0] for command in FULL])
def test_a_full_disk_is_told_in_one_line_and_changes_nothing(outcomes, command):
    (line,) = outcomes[f"full {command}"]
    assert line["code"] == 2, line
    (error,) = line["error"].splitlines()
    assert error.startswith("Error: Cannot write ")
    assert "File too large. Nothing was changed; free some space" in error
    folder = Path(line["folder"])
    assert sorted(p.name for p in folder.iterdir()) == ["model.nc", "new.csv", "report", "rows.csv"]
    assert type(load(folder / "model.nc")) is BayesianQDA
    assert state(folder / "report") == "old"
    assert (folder / "rows.csv").read_text(encoding="utf-8") == "old"


def test_a_full_device_is_told(tmp_path):
    """Results on stdout that nobody can take: what /dev/full says to every write."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bayes_gda.cli", "simulate", "--n", "5"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "No space left" in done.stderr


@pytest.fixture
def tiny_disk(tmp_path):
    """A disk of 64 kB; only root can have one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("cannot mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_up_while_saving_keeps_the_old_file(tiny_disk):
    path = tiny_disk / "model.nc"
    small = BayesianQDA(draws=2, chains=1).fit(IRIS.X[:, :1], IRIS.y)
    small.save(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"No space left on device\. Nothing was changed"):
        BayesianLDA(draws=2000, chains=4).fit(IRIS.X, IRIS.y).save(path)
    assert path.read_bytes() == before
    assert os.listdir(tiny_disk) == ["model.nc"]
    out = tiny_disk / "report"
    with pytest.raises(StoreError, match=r"No space left on device\. Nothing was changed"), replaced(out) as new:
        (new / "report.json").write_bytes(bytes(100_000))
    assert os.listdir(tiny_disk) == ["model.nc"]
