"""The tolerance of the command line, and the Monte Carlo error that `predict` tells of."""

import re

import pytest
from command_line import run, run_json

from bayes_gda.store import load


@pytest.mark.parametrize("verb", ["fit", "compare", "report"])
@pytest.mark.parametrize("tolerance", ["0", "1", "-0.01", "nan"])
def test_a_tolerance_that_is_none_is_one_line(tmp_path, verb, tolerance):
    options = {"fit": ("--model", "rda", "--out", tmp_path / "m.nc"), "report": ("--out", tmp_path / "r")}
    result = run(verb, "example:iris", *options.get(verb, ()), "--tolerance", tolerance, code=2)
    assert re.fullmatch(r"Error: `(--)?tolerance` must lie between 0 and 1; got \S+\. Use 0\.01 .*\n", result.stderr)
    assert not list(tmp_path.iterdir())


def test_it_decides_the_verdict_and_is_kept(tmp_path):
    path = tmp_path / "m.nc"
    said = {}
    for tolerance in ("0.02", "0.003"):
        found = run_json("fit", "example:pima", "-m", "logistic", "--tolerance", tolerance, "-o", path)
        assert load(path).tolerance == load(path).trust_.shift.tolerance == float(tolerance)
        assert f"on 532 training rows (tolerance {tolerance})" in found["reason"]
        said[tolerance] = found["verdict"]
    assert said == {"0.02": "trusted", "0.003": "corrected"}


def test_compare_has_it_too():
    found = run_json("compare", "example:iris", "--models", "softmax", "--tolerance", "0.05")["models"]["softmax"]
    assert found["shift"]["tolerance"] == found["monte_carlo"]["tolerance"] == 0.05
    assert (found["verdict"], found["corrected_k"] < 0.7) == ("corrected", True)


def test_predict_tells_of_rough_probabilities_once(tmp_path):
    model, rows, out = tmp_path / "m.nc", tmp_path / "new.csv", tmp_path / "out.csv"
    run("examples", "pima", "--out", rows)
    run("fit", "example:pima", "-m", "logistic", "--inference", "mcmc", "--draws", 50, "--chains", 2, "-o", model)
    told = [line for line in run("predict", model, rows, "-o", out).stderr.splitlines() if "Monte Carlo" in line]
    assert len(told) == 1
    assert re.search(r"on 532 predicted rows \(tolerance 0\.01\); for \d+ of them .* Fit with --draws \d+", told[0])
