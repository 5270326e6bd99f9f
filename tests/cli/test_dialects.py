"""Files and formulas at the command line."""

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_json

RNG = np.random.default_rng(0)
BIRDS = pd.DataFrame({"bill": RNG.normal(size=60), "island": RNG.choice(list("abc"), 60), "site": "here", "year": 2007})
BIRDS["species"] = np.where(BIRDS["bill"] + (BIRDS["island"] == "a") + RNG.normal(size=60) > 0, "Adelie", "Gentoo")


@pytest.fixture
def semicolons(tmp_path):
    BIRDS.to_csv(tmp_path / "birds.csv", sep=";", decimal=",", index=False)
    return tmp_path / "birds.csv"


def test_a_semicolon_file_is_fitted_and_predicted(semicolons, tmp_path):
    out = tmp_path / "m.nc"
    said = run_json("fit", semicolons, "-t", "species", "-m", "lda", "--drop-constant", "-o", out)
    assert said["features"] == ["bill", "island[b]", "island[c]"]
    run("predict", out, semicolons, "-o", tmp_path / "p.csv")
    assert len(pd.read_csv(tmp_path / "p.csv")) == 60


def test_all_constant_columns_are_named_with_the_option(semicolons, tmp_path):
    done = run("fit", semicolons, "-t", "species", "-m", "lda", "-o", tmp_path / "m.nc", code=2)
    assert "2 columns are constant: 'site' ('here'), 'year' (2007). Drop them all: --drop-constant." in done.stderr


def test_a_formula_is_fitted_stored_and_predicted(semicolons, tmp_path):
    out = tmp_path / "m.nc"
    said = run_json("fit", semicolons, "--formula", "species ~ bill*C(island)", "-m", "logistic", "-o", out)
    assert said["features"] == [
        "bill",
        "C(island)[T.b]",
        "C(island)[T.c]",
        "bill:C(island)[T.b]",
        "bill:C(island)[T.c]",
    ]
    run("predict", out, semicolons, "--sep", ";", "--decimal", ",", "-o", tmp_path / "p.csv")
    compared = run_json("compare", semicolons, "--formula", "species ~ bill + island", "--models", "lda,logistic")
    assert set(compared["models"]) == {"lda", "logistic"}


def test_options_of_text_files_are_not_for_batches(semicolons, tmp_path):
    done = run(
        "fit", semicolons, "-t", "species", "-m", "lda", "--sep", ";", "--batches", "-o", tmp_path / "m.nc", code=2
    )
    assert "are for tables read whole" in done.stderr
