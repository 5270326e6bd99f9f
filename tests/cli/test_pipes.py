"""`-` for stdin and stdout, `--format` and `--to`, `--quiet` and `--verbose`."""

import io
import json

import pandas as pd
import pytest
from command_line import run, run_json
from pandas.testing import assert_frame_equal

from bayes_gda.cli import outputs, shell, tabular


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """iris.csv, and a saved LDA of it."""
    path = tmp_path_factory.mktemp("pipes")
    run("examples", "iris", "-o", path / "iris.csv")
    run("fit", path / "iris.csv", "-t", "class", "-m", "lda", "-o", path / "lda.nc")
    return path


def test_a_table_from_stdin_is_the_table_of_the_file(folder, tmp_path):
    rows = (folder / "iris.csv").read_bytes()
    by_name = run("predict", folder / "lda.nc", folder / "iris.csv").stdout
    assert run("predict", folder / "lda.nc", "-", stdin=rows).stdout == by_name
    made = run_json("fit", folder / "iris.csv", "-t", "class", "-m", "lda", "-o", tmp_path / "a.nc")
    piped = json.loads(
        run("fit", "-", "-t", "class", "-m", "lda", "-o", tmp_path / "b.nc", "--json", stdin=rows).stdout
    )
    assert made["fingerprint"] == piped["fingerprint"]
    assert made["log_evidence"] == piped["log_evidence"]


@pytest.mark.parametrize("kind", ["tsv", "jsonl", "parquet", "feather", "xlsx"])
def test_rows_go_out_and_come_in_as_every_type(folder, tmp_path, kind):
    """What `examples` writes is read again, by the name of the file and from stdin."""
    file = tmp_path / f"iris.{kind}"
    run("examples", "iris", "-o", file)
    few = ("--interval", "0")
    expected = run("predict", folder / "lda.nc", folder / "iris.csv", *few).stdout
    assert run("predict", folder / "lda.nc", file, *few).stdout == expected
    assert run("predict", folder / "lda.nc", "-", "--format", kind, *few, stdin=file.read_bytes()).stdout == expected
    odd = file.rename(tmp_path / "iris.dat")
    assert "or say it: --format csv" in run("predict", folder / "lda.nc", odd, code=2).stderr
    assert run("predict", folder / "lda.nc", odd, "--format", kind, *few).stdout == expected


def test_types_of_the_rows_that_are_written(folder):
    expected = pd.read_csv(io.StringIO(run("predict", folder / "lda.nc", folder / "iris.csv").stdout))
    lines = run("predict", folder / "lda.nc", folder / "iris.csv", "--to", "jsonl").stdout.splitlines()
    assert_frame_equal(pd.DataFrame([json.loads(line) for line in lines]), expected)
    binary = run("predict", folder / "lda.nc", folder / "iris.csv", "--to", "parquet").stdout_bytes
    assert_frame_equal(pd.read_parquet(io.BytesIO(binary)), expected, check_dtype=False)


@pytest.mark.parametrize("name", ["rows.json", "rows.xls", "rows.csv.gz", "ROWS.JSON"])
def test_no_csv_is_written_under_the_name_of_another_type(folder, tmp_path, name):
    out = tmp_path / name
    message = run("predict", folder / "lda.nc", folder / "iris.csv", "-o", out, code=2).stderr
    assert f"Rows are not written as .{name.lower().rpartition('.')[2]}; got" in message
    assert "Name a file of type csv, tsv, jsonl, parquet, feather, xlsx, or say --to TYPE to keep the name." in message
    assert not out.exists()
    assert (tabular.check_kind(name, "csv"), tabular.check_kind("rows.ndjson", None)) == ("csv", "jsonl")


def test_what_is_wrong_with_stdin_is_said_of_stdin(folder):
    empty = run("predict", folder / "lda.nc", "-", stdin="", code=2).stderr
    assert empty == "Error: Stdin is empty. Pipe a table into it, or name a file.\n"
    assert (
        "Cannot read stdin as parquet"
        in run("predict", folder / "lda.nc", "-", "--format", "parquet", stdin="a", code=2).stderr
    )
    latin = "a,b\nn\u00e4m,1\n".encode("latin-1")
    assert run("predict", folder / "lda.nc", "-", stdin=latin, code=2).stderr.startswith(
        "Error: stdin is not text in UTF-8"
    )


def test_quiet_commands_say_nothing(folder, tmp_path):
    done = run("fit", folder / "iris.csv", "-t", "class", "-m", "lda", "-o", tmp_path / "m.nc", "-q")
    assert (done.stdout, done.stderr) == ("", "")
    done = run("check", folder / "lda.nc", "--quiet")
    assert (done.stdout, done.stderr) == ("", "")
    done = run("predict", folder / "lda.nc", folder / "iris.csv", "-o", tmp_path / "p.csv", "-q")
    assert (done.stdout, done.stderr) == ("", "")
    assert run("predict", folder / "lda.nc", folder / "iris.csv", "-q").stdout == (tmp_path / "p.csv").read_text()
    assert run("check", folder / "none.nc", "-q", code=2).stderr.startswith("Error: ")
    assert "exclude each other" in run("check", folder / "lda.nc", "-q", "-v", code=2).stderr


def test_verbose_commands_tell_their_stages(folder):
    done = run("predict", folder / "lda.nc", folder / "iris.csv", "-v")
    assert done.stderr.startswith("Predicting: row 1 of 150 (0%, ")
    shell.set_loudness(shell.USUAL)


def test_the_time_left_goes_by_the_share_that_is_done():
    assert outputs.time_left(10.0, 0.01) == ""
    assert outputs.time_left(10.0, 0.25) == "30 s left"
    assert outputs.time_left(100.0, 0.1) == "15 min left"


def test_no_number_of_a_table_is_cut(capsys):
    outputs.show_table("", ["name", *"abcdefgh"], [["x" * 30, *["-123456.789"] * 8]])
    assert capsys.readouterr().out.count("-123456.789") == 8
