"""`effects` says what the functions of Python say of the same model and rows."""

import io

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_json

from bayes_gda import BayesianLogisticRegression, comparisons, slopes


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    n = 150
    df = pd.DataFrame(
        {"age": rng.normal(40, 10, n).round(1), "sex": rng.choice(["f", "m"], n), "old": rng.random(n) > 0.5}
    )
    a = 0.06 * (df["age"] - 40) + (df["sex"] == "m") - 0.5 * df["old"]
    return df.assign(y=np.where(rng.random(n) < 1 / (1 + np.exp(-a)), "yes", "no"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, frame):
    path = tmp_path_factory.mktemp("effects")
    frame.to_csv(path / "t.csv", index=False)
    run("fit", path / "t.csv", "-t", "y", "-m", "logistic", "-o", path / "m.nc")
    return path


@pytest.fixture(scope="module")
def model(frame):
    return BayesianLogisticRegression(random_state=0).fit(frame.drop(columns="y"), frame["y"])


def test_slopes_and_levels_are_those_of_python(folder, frame, model):
    found = pd.read_csv(io.StringIO(run("effects", folder / "m.nc", folder / "t.csv", "--to", "csv").stdout))
    assert found["variable"].unique().tolist() == ["age", "sex", "old"]
    X = frame.drop(columns="y")
    for name, table in (("age", slopes(model, X, "age")), ("sex", comparisons(model, X, "sex"))):
        mine = found[found["variable"] == name]
        np.testing.assert_allclose(mine["estimate"], table["estimate"], atol=2e-3)
        np.testing.assert_allclose(mine["95%"], table["95%"], atol=4e-3)


def test_groups_values_and_json(folder, frame, model):
    words = ("effects", folder / "m.nc", folder / "t.csv", "--kind", "comparisons", "-x", "age", "--values", "30", "50")
    found = run_json(*words, "--by", "y")
    assert (found["kind"], found["n"], found["model"]) == ("comparisons", 150, "logistic")
    yes = next(line for line in found["rows"] if line["y"] == "yes" and line["class"] == "yes")
    expected = comparisons(model, frame[frame["y"] == "yes"].drop(columns="y"), "age", values=(30.0, 50.0))
    assert yes["estimate"] == pytest.approx(expected["estimate"].iloc[1], abs=5e-3)


def test_odds_ratios_are_exponentials_of_the_weights(folder, model):
    found = pd.read_csv(
        io.StringIO(run("effects", folder / "m.nc", folder / "t.csv", "--kind", "odds", "-o", "-").stdout)
    )
    # 1000 draws of the log odds, beside the posterior means.
    np.testing.assert_allclose(np.log(found["per_unit"]), model.coef_[0], atol=0.08)
    assert found["feature"].tolist() == list(model.encoding_.feature_names)
    assert (found["against"] == "no").all()


def test_a_model_is_fitted_by_its_name(folder):
    saved = run("effects", folder / "m.nc", folder / "t.csv").stdout
    assert run("effects", "logistic", folder / "t.csv", "-t", "y").stdout == saved
    assert "Average change of probability, 150 rows" in saved
    assert " no " not in saved.partition("───")[2]  # of two classes the second


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-x", "agee"], "`--variable` names no column of the model: 'agee'. Did you mean 'age'?"),
        (["--by", "nil"], "`--by` names no column: 'nil'"),
        (["--interval", "1"], "`--interval` must lie between 0 and 1"),
        (["--values", "1", "2"], "`--values` is for --kind comparisons of one --variable"),
        (["--kind", "comparisons", "-x", "sex", "--values", "f", "x"], "must be out of f, m; got 'x'"),
        (["--kind", "comparisons", "-x", "age", "--values", "a", "2"], "must be numbers; got 'a'"),
        (["--kind", "odds", "--by", "sex"], "`--by` is not for odds ratios"),
        (["--drop", "sex"], "are for a model to be fitted"),
    ],
)
def test_what_is_wrong_is_explained(folder, words, message):
    assert message in run("effects", folder / "m.nc", folder / "t.csv", *words, code=2).stderr


def test_rows_with_gaps_are_refused_or_dropped(folder, frame, tmp_path):
    frame.assign(age=frame["age"].where(frame.index > 4)).to_csv(tmp_path / "gaps.csv", index=False)
    refused = run("effects", folder / "m.nc", tmp_path / "gaps.csv", code=2).stderr
    assert "5 of 150 rows have missing values, most of them in 'age'" in refused
    assert run_json("effects", folder / "m.nc", tmp_path / "gaps.csv", "--missing", "drop")["n"] == 145


def test_log_odds_that_are_not_linear_have_no_ratio(folder):
    done = run(
        "effects", "qda", folder / "t.csv", "-t", "y", "--drop", "sex", "--drop", "old", "--kind", "odds", code=2
    )
    assert "those of qda are not" in done.stderr
