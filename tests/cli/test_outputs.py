"""Files are written whole or not at all; JSON has no nan; names are text and nothing else."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bayes_gda.cli import outputs, tabular
from bayes_gda.cli.actions.fits import _with_error
from bayes_gda.cli.shell import clean, in_options
from bayes_gda.errors import DataError


def test_a_failure_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    path = tmp_path / "out.csv"
    outputs.write_text(path, "old")
    path.chmod(0o640)

    def fail(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", fail)
        with pytest.raises(OSError, match="No space"):
            outputs.write_text(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["out.csv"]
    outputs.write_text(path, "new\n")
    assert path.read_bytes() == b"new\n"
    assert path.stat().st_mode & 0o777 == 0o640


def test_links_are_followed_and_devices_are_not_replaced(tmp_path):
    target, link = tmp_path / "a", tmp_path / "b"
    target.write_text("old")
    link.symlink_to(target)
    outputs.write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    outputs.write_text("/dev/null", "nothing")
    assert not Path("/dev/null").is_file()


def test_where_a_file_may_go(tmp_path):
    there = tmp_path / "in.csv"
    there.write_text("x")
    (tmp_path / "link").symlink_to(there)
    outputs.check_file(None)
    outputs.check_file("-")
    outputs.check_file(str(there))
    for out, inputs, stdout, message in (
        (str(tmp_path), (), True, "is a folder"),
        (str(tmp_path / "no" / "x"), (), True, "there is no folder"),
        (str(there), [str(there)], True, "would replace the input"),
        (str(tmp_path / "link"), [str(there)], True, "would replace the input"),
        ("-", (), False, "cannot be written to stdout"),
        ("/dev/null", (), False, "is a device"),
        ("a\0b", (), True, "must be a path"),
        ("", (), True, "must be a path"),
    ):
        with pytest.raises(DataError, match=message):
            outputs.check_file(out, inputs=inputs, stdout=stdout)


def test_a_report_replaces_a_report_and_nothing_else(tmp_path):
    assert outputs.check_report_folder(str(tmp_path / "a" / "b")) == tmp_path / "a" / "b"
    assert outputs.check_report_folder(str(tmp_path)) == tmp_path
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(DataError, match="holds other files"):
        outputs.check_report_folder(str(tmp_path))
    with pytest.raises(DataError, match="is a file"):
        outputs.check_report_folder(str(tmp_path / "thesis.tex"))
    (tmp_path / "report.json").write_text("{}")
    assert outputs.check_report_folder(str(tmp_path)) == tmp_path


def test_json_has_tables_arrays_and_no_nan(capsys):
    table = pd.DataFrame({"a": [1.5, np.nan], "b": ["x", None]}, index=pd.Index(["p", "q"], name="model"))
    value = {"t": table, "v": np.array([1.0, np.inf]), 3: (np.int64(4), np.bool_(True)), "path": Path("x")}
    outputs.write_json(value)
    assert json.loads(capsys.readouterr().out) == {
        "t": [{"model": "p", "a": 1.5, "b": "x"}, {"model": "q", "a": None, "b": None}],
        "v": [1.0, None],
        "3": [4, True],
        "path": "x",
    }


def test_names_are_shown_as_text(capsys):
    hostile = "[bold]x[/bold]\x1b[31m\n\u202eabc😀é" + "y" * 300
    outputs.show_table("Title [red]", ("[b]name", "n"), [(hostile, "1")])
    outputs.show_verdict("red", "[bold]w", hostile)
    outputs.show_facts({hostile: "1"})
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert "[bold]x[/bold]" in out
    assert "Title [red]" in out
    assert "[red] [bold]w: " in out  # without colours the light is a word
    assert max(map(len, out.splitlines())) <= outputs.PAGE
    assert clean(hostile).startswith(r"[bold]x[/bold]\x1b[31m\n\u202eabc😀é")
    assert clean("a\udcffb") == r"a\udcffb"


def test_advice_is_in_the_words_of_the_command_line():
    assert in_options("Sample the posterior: inference='mcmc'.") == "Sample the posterior: --inference mcmc."
    assert in_options("Sample more: draws=450.") == "Sample more: --draws 450."
    assert in_options("Give `prior_scale` a number.") == "Give `--prior-scale` a number."
    assert in_options("Such as encoding='latin-1', or not.") == "Such as --encoding latin-1, or not."
    assert in_options("`sep` must be one character") == "`--sep` must be one character"
    assert in_options("or pass categorical=['a b', 'c'].") == "or pass --categorical 'a b' --categorical 'c'."


def test_a_table_goes_to_one_place(tmp_path, capsys):
    table = pd.DataFrame({"a": [1, 2], "b": [0.1, np.nan]})
    tabular.write_rows(table, None, None)
    csv = capsys.readouterr()
    assert csv.out == "a,b\n1,0.1\n2,\n"
    path = tmp_path / "t.csv"
    tabular.write_rows(table, str(path), None)
    said = capsys.readouterr()
    assert path.read_text() == csv.out
    assert said.out == ""
    assert "2 rows" in said.err
    tabular.write_rows(table, "-", {"n": 2})
    rows = [{"a": 1, "b": 0.1}, {"a": 2, "b": None}]
    assert json.loads(capsys.readouterr().out) == {"n": 2, "out": None, "rows": rows}
    tabular.write_rows(table, str(path), {"n": 2})
    assert json.loads(capsys.readouterr().out) == {"n": 2, "out": str(path)}


def test_an_evidence_has_the_digits_that_its_error_allows():
    assert [_with_error(-109.8874, error) for error in (0.0, np.nan, 0.0001, 0.0031, 0.014)] == [
        "-109.89",
        "-109.89",
        "-109.89",
        "-109.887 ± 0.003",
        "-109.89 ± 0.01",
    ]
