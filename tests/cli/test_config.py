"""A run is written to a file of options, and repeated from it."""

import tomllib

import pytest
from command_line import run

from bayes_gda.cli.commands.config import _toml


@pytest.fixture
def table(tmp_path):
    run("simulate", "--n", "60", "-o", tmp_path / "t.csv")
    return tmp_path / "t.csv"


def test_a_saved_run_is_repeated(table, tmp_path):
    words = ["fit", table, "-t", "class", "-m", "qda", "-o", tmp_path / "a.nc", "--seed", "0", "--draws", "150"]
    first = run(*words, "--json", "--save-config", tmp_path / "run.toml")
    saved = tomllib.loads((tmp_path / "run.toml").read_text())
    assert saved["fit"]["seed"] == 0  # a default is kept: another version may have another
    assert saved["fit"]["draws"] == 150
    assert saved["fit"]["target"] == "class"
    assert run("fit", "--config", tmp_path / "run.toml").stdout == first.stdout
    other = run("fit", "--config", tmp_path / "run.toml", "-m", "lda").stdout
    assert '"model": "lda"' in other  # the command line goes before the file


def test_every_kind_of_value_survives(table, tmp_path):
    name = 'we"ird \\ \x7f name 😀'
    text = table.read_text().replace("x1", name.replace('"', '""'), 1)
    table.write_text(f'"{text.partition(",")[0]}",{text.partition(",")[2]}')
    words = ["compare", table, "-t", "class", "--models", "lda,naive", "--test-size", "0.4", "--json", "--categorical"]
    first = run(*words, "class", "--save-config", tmp_path / "no.toml", code=2)
    assert "names the target" in first.stderr
    assert not (tmp_path / "no.toml").exists()  # nothing is written of a run that failed
    words = ["compare", table, "-t", "class", "--models", "lda,naive", "--test-size", "0.4", "--json", "--drop", name]
    first = run(*words, "--save-config", tmp_path / "run.toml")
    assert run("compare", "--config", tmp_path / "run.toml").stdout == first.stdout


@pytest.mark.parametrize(
    "value", ["", "a'b", 'q"\\', "line\nbreak\ttab", "\x7f\x00", "naïve 😀", 0.1, 3, True, ["a", "b"]]
)
def test_values_are_written_as_toml(value):
    assert tomllib.loads(f"x = {_toml(value)}")["x"] == value


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[fit]\nmodle = 'lda'\n", "has 'modle' in [fit], which that command does not know. Did you mean 'model'?"),
        ("[predict]\n", "has no section [fit]; it has predict."),
        ("x = ", "is not valid TOML"),
        ("[fit]\nmodel = ['lda']\n", "'model' must be one value; got ['lda']"),
        ("[fit]\ndrop = 1\n", "'drop' must be a list; got 1"),
        ("[fit]\nmodel = {a = 1}\n", "must be text, a number or true"),
        ("[fit]\ndata = 'x.csv'\nmodel = 'lda'\nout = 'm.nc'\ndraws = 'many'\n", "'--draws'"),
    ],
)
def test_a_file_that_is_wrong_is_explained(tmp_path, text, words):
    (tmp_path / "c.toml").write_text(text)
    assert words in run("fit", "--config", tmp_path / "c.toml", code=2).stderr


def test_a_file_that_is_not_there(tmp_path):
    assert "No such file" in run("fit", "--config", tmp_path / "none.toml", code=2).stderr


def test_the_file_replaces_no_input(table):
    done = run("fit", table, "-t", "class", "-m", "lda", "-o", f"{table}.nc", "--save-config", table, code=2)
    assert "`--save-config` would replace the input" in done.stderr
