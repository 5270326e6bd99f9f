"""`fit` in batches writes the model that `fit` of the whole table writes."""

import io

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_json

from bayes_gda.cli.actions import tables


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A table with text and gaps, as CSV and as a folder of Parquet files."""
    path, rng, n = tmp_path_factory.mktemp("tables"), np.random.default_rng(0), 600
    df = pd.DataFrame({"id": np.arange(n), "x": rng.normal(size=n), "island": rng.choice(["a", "b", "c"], n)})
    df["kind"] = np.where(df["x"] + (df["island"] == "b") + rng.logistic(size=n) > 0, "yes", "no")
    df.loc[[3, 400], "x"] = np.nan
    df.to_csv(path / "t.csv", index=False)
    (path / "t").mkdir()
    (path / "none").mkdir()
    for i in range(3):
        df[200 * i : 200 * (i + 1)].to_parquet(path / "t" / f"{i}.parquet")
    return path


def test_batches_and_folders_give_the_same_model(data, tmp_path):
    options = ("-t", "kind", "--drop", "id", "-m", "lda", "--missing", "drop")
    whole = run_json("fit", data / "t.csv", *options, "-o", tmp_path / "whole.nc")
    for source, more in ((data / "t.csv", ("--batches",)), (data / "t", ())):
        told = run_json("fit", source, *options, *more, "-o", tmp_path / "part.nc")
        assert told["log_evidence"] == pytest.approx(whole["log_evidence"], rel=1e-10)
        assert told["features"] == whole["features"]
        assert (told["n"], told["fingerprint"]) == (600, None)
        new = [
            run("predict", tmp_path / f"{m}.nc", data / "t.csv", "--missing", "blank", "--interval", 0).stdout
            for m in ("whole", "part")
        ]
        a, b = (pd.read_csv(io.StringIO(text)) for text in new)
        np.testing.assert_allclose(a["p[yes]"], b["p[yes]"], atol=1e-10)


def test_large_files_are_read_in_batches_unasked(data, tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "LARGE", 1e-9)
    told = run_json("fit", data / "t.csv", "-t", "kind", "-m", "logistic", "--missing", "drop", "-o", tmp_path / "m.nc")
    assert told["fingerprint"] is None
    assert told["verdict"] in ("trusted", "corrected")


def test_progress_counts_rows_and_passes():
    said = []
    tick = tables._by_rows(lambda stage, share: said.append((stage, share)))
    for rows in (300, 600, 300, 600, 600):  # the last pass has one batch
        tick(rows)
    assert said == [
        ("pass 1, 300 rows", 0.0),
        ("pass 1, 600 rows", 0.0),
        ("pass 2, 300 of 600 rows", 0.5),
        ("pass 2, 600 of 600 rows", 1.0),
        ("pass 3, 600 of 600 rows", 1.0),
    ]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("example:iris", "--batches", "-t", "class"), "`--batches` and `--cluster` are for files"),
        (("{}/t.csv", "--batches"), "`--target` must name the column"),
        (("{}/t.csv", "--batches", "-t", "kind"), "pass --missing drop"),
        (("{}/t.csv", "--batches", "-t", "kind", "--missing", "keep"), "`--missing keep` is for tables read whole"),
        (("{}/t.csv", "--batches", "-t", "kind", "--drop", "no"), "`--drop` names no column: 'no'"),
        (("{}/t.csv", "--batches", "-t", "knd"), "Did you mean 'kind'"),
        (("{}/t.csv", "--batches", "-t", "kind", "--inference", "mcmc"), "must be auto or exact for lda on a table"),
        (("{}/t", "-t", "kind", "--cluster", "here"), "must be an address such as tcp://10.0.0.1:8786; got 'here'"),
        (("{}/t", "-t", "kind", "--cluster", "http://a:80"), "must be an address such as tcp"),
        (("{}/none", "-t", "kind"), "holds no Parquet files"),
    ],
)
def test_what_is_wrong_is_one_line(data, tmp_path, args, message):
    stderr = run("fit", *(a.format(data) for a in args), "-m", "lda", "-o", tmp_path / "m.nc", code=2).stderr
    assert message in stderr


def test_only_fit_reads_a_folder(data, tmp_path):
    run("fit", data / "t", "-t", "kind", "-m", "lda", "--missing", "drop", "-o", tmp_path / "m.nc")
    for args in (("compare", data / "t", "-t", "kind"), ("predict", tmp_path / "m.nc", data / "t")):
        assert "is a folder, which only `fit` reads" in run(*args, code=2).stderr
