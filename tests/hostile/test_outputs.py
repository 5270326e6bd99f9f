"""What a hostile name or a crowded machine does to the outputs: no formula, no escape sequence, no half result."""

import csv
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import run
from hostile.profiles import examples
from hypothesis import given
from hypothesis import strategies as st

from bayes_gda.cli.tabular import without_formulas
from bayes_gda.estimators import BayesianLDA
from bayes_gda.reporting.page.replacing import replaced

COMMAND = [sys.executable, "-m", "bayes_gda.cli"]
RISKY = ("=", "+", "-", "@", "\t", "\r")
NAMES = ["=HYPERLINK(1)", "@SUM(1)"]
ESCAPES = ["\x1b]0;owned\x07", "\x9b31mred"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outputs")
    rng = np.random.default_rng(0)
    X = np.vstack([rng.standard_normal((20, 2)), rng.standard_normal((20, 2)) + 3])
    for name, labels in (("formulas", NAMES), ("escapes", ESCAPES), ("numbers", ["-1", "+1"])):
        y = np.repeat(np.array(labels, dtype=object), 20)
        BayesianLDA(draws=20, chains=1).fit(X, y).save(folder / f"{name}.nc")
    frame = pd.DataFrame(X, columns=["x0", "x1"]).assign(**{"=note": ["@cmd|calc"] * 40, "n": [-1.5] * 40})
    frame.rename(columns={"x0": "x1", "x1": "x2"}).to_csv(folder / "new.csv", index=False)
    return folder


def predicted(folder, *options, model="formulas"):
    out = folder / "predicted.csv"
    args = [
        "predict",
        str(folder / f"{model}.nc"),
        str(folder / "new.csv"),
        "--interval",
        "0",
        "-o",
        str(out),
        *options,
    ]
    run(*args)
    with open(out, newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def test_no_cell_is_a_formula(folder):
    head, *rows = predicted(folder, "--keep", "=note", "--keep", "n")
    assert head[1:4] == ["'=note", "n", "prediction"]
    assert {row[3] for row in rows} == {f"'{name}" for name in NAMES}
    assert {row[1] for row in rows} == {"'@cmd|calc"}
    assert {row[2] for row in rows} == {"-1.5"}  # a number is none


def test_formulas_stay_where_they_are_asked_for(folder):
    head, *rows = predicted(folder, "--keep", "=note", "--formulas")
    assert head[1] == "=note"
    assert {row[2] for row in rows} == set(NAMES)


def test_classes_that_are_numbers_stay(folder):
    _, *rows = predicted(folder, model="numbers")
    assert {row[1] for row in rows} == {"-1", "+1"}


@given(st.lists(st.text(max_size=8), min_size=1, max_size=5))
@examples(50, 1000)
def test_any_text_is_harmless(texts):
    for cell in without_formulas(pd.DataFrame({"a": texts}))["a"]:
        if cell.startswith(RISKY):
            float(cell)


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_terminal_gets_no_escape_sequence(folder, more):
    here, there = pty.openpty()
    args = ["predict", str(folder / "escapes.nc"), str(folder / "new.csv"), "--interval", "0", *more]
    with subprocess.Popen([*COMMAND, *args], stdout=there, stderr=subprocess.DEVNULL) as process:
        os.close(there)
        shown = b""
        while True:
            try:
                piece = os.read(here, 65536)
            except OSError:  # the terminal is closed
                break
            if not piece:
                break
            shown += piece
        assert process.wait(timeout=60) == 0
    os.close(here)
    text = shown.decode()
    assert "owned" in text
    assert not set(text) & {"\x1b", "\x07", "\x9b"}


def test_a_number_of_five_thousand_digits_is_wrong_input(folder):
    for name, text in (("c.json", f"[[0, {'9' * 5000}], [1, 0]]"), ("c.csv", f"0,{'9' * 5000}\n1,0\n")):
        (folder / name).write_text(text)
        done = run("predict", str(folder / "numbers.nc"), str(folder / "new.csv"), "--cost", str(folder / name), code=2)
        assert "must hold finite numbers" in done.stderr
        assert len(done.stderr) < 300


def test_no_output_replaces_an_input(folder, tmp_path):
    costs = tmp_path / "costs.csv"
    costs.write_text("0,1\n1,0\n")
    new, model = str(folder / "new.csv"), str(folder / "numbers.nc")
    for out in (new, model, str(costs)):
        before = Path(out).read_bytes()
        done = run("predict", model, new, "--cost", str(costs), "-o", out, code=2)
        assert "would replace the input" in done.stderr
        assert Path(out).read_bytes() == before
    report = tmp_path / "report"
    report.mkdir()
    (report / "report.json").write_text("{}")
    (report / "data.csv").write_text("a,b\n1,x\n")
    done = run("report", str(report / "data.csv"), "--target", "b", "--out", str(report), code=2)
    assert "would replace the input" in done.stderr
    assert (report / "data.csv").exists()


def test_two_runs_into_one_folder_end_with_one_whole_result(tmp_path):
    barrier = threading.Barrier(4)
    errors = []

    def write(name):
        try:
            for _ in range(10):
                barrier.wait()
                with replaced(tmp_path / "out") as new:
                    for part in ("a", "b"):
                        (new / part).write_text(name)
                    barrier.wait()
        except Exception as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=write, args=(str(i),)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert (tmp_path / "out" / "a").read_text() == (tmp_path / "out" / "b").read_text()
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
@pytest.mark.parametrize("megabytes", [300, *(pytest.param(size, marks=pytest.mark.slow) for size in (500, 700, 1200))])
def test_too_little_memory_is_no_mistake_of_ours(tmp_path, megabytes):
    script = (
        "import resource, sys; limit = int(sys.argv.pop(1)); resource.setrlimit(resource.RLIMIT_AS, (limit, limit)); "
        "from bayes_gda.cli import main; main()"
    )
    args = ["fit", "example:iris", "-m", "lda", "-o", str(tmp_path / "m.nc")]
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(megabytes * 2**20), *args],
        capture_output=True,
        text=True,
        env=env,
        timeout=120,
    )
    assert done.returncode in (0, 2), done.stderr
    if done.returncode:
        assert done.stderr.count("\n") == 1
        assert "not enough memory" in done.stderr
