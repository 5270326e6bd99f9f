"""The command line as a process of its own: exit codes, pipes, Ctrl-C, and how soon the help is there."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from running import children, end, is_alive, started, wait_until

COMMAND = [sys.executable, "-m", "bayes_gda.cli"]
HEAVY = {"numpy", "pandas", "scipy", "sklearn", "pymc", "matplotlib", "xarray", "arviz"}


def start(*args):
    return subprocess.run([*COMMAND, *args], capture_output=True, encoding="utf-8", timeout=120)


def test_help_is_there_at_once():
    begun = sum(os.times()[2:4])  # CPU time of children: other processes may keep this one waiting
    done = start("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert sum(os.times()[2:4]) - begun < 1  # 0.3 s; 0.4 s where bytecode is not kept


def test_the_commands_are_known_without_heavy_imports():
    code = "import sys; import bayes_gda.cli.commands; print(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


HELP = """
import contextlib, io, sys
from bayes_gda.cli.commands import app
from typer.main import get_command
for name in ["", *get_command(app).commands]:
    with contextlib.redirect_stdout(io.StringIO()) as text, contextlib.suppress(SystemExit):
        app([*name.split(), "--help"], prog_name="bayes-gda")
    assert "Usage: bayes-gda" in text.getvalue(), name
print(" ".join(sys.modules))
"""


def test_the_help_of_every_command_needs_no_heavy_import():
    """Better than a time, which a busy machine decides: 0.3 to 0.45 s of CPU where nothing else runs."""
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True)
    assert not HEAVY & set(done.stdout.split())


def test_completion_knows_commands_options_values_and_columns(tmp_path):
    """As the scripts ask that `--install-completion` installs."""

    def complete(line):
        words = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        settings = {**os.environ, "_BAYES_GDA_COMPLETE": "complete_bash", **words}
        code = "import sys; sys.argv = ['bayes-gda']; from bayes_gda.cli import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=settings, check=False
        ).stdout.split()

    assert complete("bayes-gda rep") == ["report"]
    assert {"--models", "--missing"} <= set(complete("bayes-gda compare --m"))
    assert complete("bayes-gda fit x.csv --inference la") == ["laplace"]
    assert complete("bayes-gda compare x.csv --models lda,so") == ["lda,softmax"]
    (tmp_path / "t.csv").write_text("age;income;class\n1;2;a\n")
    assert complete(f"bayes-gda fit {tmp_path / 't.csv'} --target i") == ["income"]


def test_exit_codes_and_streams():
    good = start("examples", "--json")
    assert good.returncode == 0
    assert good.stderr == ""
    assert json.loads(good.stdout)[0]["name"] == "lda-mixture"
    bad = start("check", "no\nsuch\x1b[31m.nc")
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.count("\n") == 1
    assert bad.stderr.startswith("Error: ")
    assert "\x1b" not in bad.stderr
    assert start().returncode == 2  # no command: the help


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGPIPE")
def test_a_reader_that_goes_away_is_no_error():
    with started("from bayes_gda.cli import main; main()", "simulate", "--n", "200000") as process:
        assert process.stdout.readline() == "x1,x2,class\n"
        process.stdout.close()
        process.stdout = None
        assert process.stderr.read() == ""
        assert process.wait(timeout=60) == 141


SLOW = """
import signal, sys, time
import bayes_gda.estimators.gaussian as g
def fit(self, X, y):
    print("ready", flush=True)
    try:
        while True:  # a signal between Python's last look and a long sleep would wait for its end
            time.sleep(0.01)
    except KeyboardInterrupt:
        {answer}
g.BayesianLDA.fit = fit
from bayes_gda.cli import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(
    ("number", "answer", "words"),
    [
        (signal.SIGINT, "return self", "Interrupted"),  # samplers return
        pytest.param(signal.SIGINT, "raise", "Interrupted", marks=pytest.mark.slow),
        (signal.SIGTERM, "return self", "Terminated"),
        (signal.SIGHUP, "raise", "The terminal went away"),
    ],
)
def test_a_signal_that_asks_for_an_end_writes_nothing(tmp_path, number, answer, words):
    args = ["fit", "example:iris", "-m", "lda", "-o", str(tmp_path / "m.nc")]
    with started(SLOW.format(answer=answer), *args) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + number, "", f"{words}; nothing was written.\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("command", ["fit", "report"])
def test_a_command_that_is_ended_while_it_samples_leaves_no_chain(tmp_path, command, number):
    more = ["-m", "logistic", "--inference", "mcmc", "--draws", "2000000", "--chains", "2"]
    if command == "report":
        more = ["--models", "logistic", "--draws", "2000000", "--chains", "2"]
    with started(
        "from bayes_gda.cli import main; main()", command, "example:pima", *more, "-o", str(tmp_path / "o")
    ) as p:
        assert wait_until(lambda: len(children(p.pid)) == 2, 60)
        chains = children(p.pid)
        try:
            time.sleep(1)
            p.send_signal(number)
            assert p.wait(timeout=60) == (143 if number == signal.SIGTERM else -9)
            assert wait_until(lambda: not any(map(is_alive, chains)))
        finally:
            end(chains)
    assert not list(tmp_path.iterdir())
