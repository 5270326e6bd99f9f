"""Missing values on the command line: kept in `fit`, used in `predict`, with novel rows and what to measure next."""

import io

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_json

from bayes_gda.cli.actions import scores
from bayes_gda.data.examples import load_example
from bayes_gda.estimators import BayesianNaiveGaussian
from bayes_gda.store import load

FEW = ("--draws", "100", "--chains", "2")
PIMA = load_example("pima-missing")
LABELS = np.array(PIMA.class_names)[PIMA.y]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """pima.csv with its gaps, a naive model and a QDA of them, and a logistic regression of the complete rows."""
    path = tmp_path_factory.mktemp("gaps")
    run("examples", "pima-missing", "-o", path / "pima.csv")
    for name, missing in (("naive", "keep"), ("logistic", "drop")):
        args = ("-t", "class", "-m", name, "--missing", missing, "-o", path / f"{name}.nc", *FEW)
        run("fit", path / "pima.csv", *args)
    return path


def table(text):
    return pd.read_csv(io.StringIO(text))


def test_kept_gaps_are_used_as_in_the_python_api(folder):
    model = BayesianNaiveGaussian(draws=100, chains=2).fit(PIMA.X, LABELS)
    found = table(run("predict", folder / "naive.nc", folder / "pima.csv", "--missing", "use").stdout)
    np.testing.assert_allclose(found[["p[No]", "p[Yes]"]], model.predict_proba(PIMA.X), rtol=1e-9)
    np.testing.assert_allclose(found[["low[No]", "low[Yes]"]], model.predict_interval(PIMA.X)[..., 0], rtol=1e-9)
    assert load(folder / "naive.nc").log_evidence_ == pytest.approx(model.log_evidence_)


def test_novel_rows_and_what_to_measure(folder, tmp_path):
    frame = pd.read_csv(folder / "pima.csv")
    frame.loc[0, "glu"] = 5000.0
    frame.to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "costs.csv").write_text("action,No,Yes\ntreat,1,0\nwait,0,5\n")
    args = ("--missing", "use", "--interval", "0")
    asked = ("--novel", "0.02", "--worth", "--cost", tmp_path / "costs.csv")
    found = table(run("predict", folder / "naive.nc", tmp_path / "new.csv", *args, *asked).stdout)
    model = load(folder / "naive.nc")
    X = pd.DataFrame(np.where(np.arange(300)[:, None] == 0, [frame.iloc[0, :7]], PIMA.X).astype(float))
    X.columns = model.feature_names_in_
    novelty = model.novelty(X, 0.02)
    assert found["novel"].tolist() == novelty.novel.tolist()
    assert found["novel"][0]
    np.testing.assert_allclose(found["tail_probability"], novelty.largest, rtol=1e-6)
    worth = model.worth_measuring(X, [[1.0, 0.0], [0.0, 5.0]])
    gaps = np.isnan(PIMA.X).any(axis=1)
    assert found["measure_next"][~gaps].isna().all()
    most = np.nanmax(worth[gaps], axis=1)
    np.testing.assert_allclose(found["gain"][gaps].fillna(0.0), most, atol=1e-12)
    best = model.feature_names_in_[np.nanargmax(worth[gaps], axis=1)]
    there = most > 0
    assert there.any()
    np.testing.assert_array_equal(found["measure_next"][gaps][there], best[there])
    plain = table(run("predict", folder / "naive.nc", tmp_path / "new.csv", *args).stdout)
    assert not {"novel", "tail_probability", "measure_next", "gain"} & set(plain)
    rows = run_json("predict", folder / "naive.nc", tmp_path / "new.csv", *args, *asked)["rows"]
    assert rows[0]["novel"] is True
    assert rows[0]["measure_next"] is None


def test_lda_and_qda_sample_and_say_so(folder, tmp_path):
    told = run_json("fit", "example:penguins", "-m", "qda", "--missing", "keep", "-o", tmp_path / "q.nc", *FEW)
    assert (told["method"], told["verdict"], told["n"]) == ("mcmc", "sampled", 344)
    run("examples", "penguins", "-o", tmp_path / "p.csv")
    found = table(run("predict", tmp_path / "q.nc", tmp_path / "p.csv", "--missing", "use", "--interval", 0).stdout)
    assert found["prediction"].notna().all()
    blank = table(run("predict", tmp_path / "q.nc", tmp_path / "p.csv", "--missing", "blank", "--interval", 0).stdout)
    assert blank["prediction"].isna().sum() == 2


def test_models_that_take_gaps_are_compared(folder):
    rows = {"loo": "train", "held_out": "test"}
    found = run_json("compare", folder / "pima.csv", "-t", "class", "--missing", "keep", *FEW)
    assert set(found["models"]) == {"lda", "qda", "naive"}
    for part in ("loo", "held_out"):
        assert len(found[part]) == 3
        assert all(-1 < line["elpd"] / found[n] < 0 for line in found[part] for n in [f"n_{rows[part]}"])


def test_a_model_that_takes_no_gaps_is_refused_before_any_is_fitted(folder, monkeypatch):
    monkeypatch.setattr(scores, "fit", None)
    args = ("-t", "class", "--missing", "keep", "--models", "lda,logistic")
    said = run("compare", folder / "pima.csv", *args, code=2).stderr
    assert "is for lda, qda, naive and mixed; got logistic" in said


BAD = {
    "regression": (["fit", "pima.csv", "-t", "class", "-m", "logistic", "--missing", "keep", "-o", "x.nc"], "drop"),
    "no option": (["fit", "pima.csv", "-t", "class", "-m", "lda", "-o", "x.nc"], "keep the gaps with --missing keep"),
    "no closed form": (
        ["fit", "pima.csv", "-t", "class", "-m", "lda", "--missing", "keep", "--inference", "exact", "-o", "x.nc"],
        "Use --inference auto",
    ),
    "gaps": (["predict", "naive.nc", "pima.csv"], "or --missing use to predict from what they have"),
    "use of a regression": (
        ["predict", "logistic.nc", "pima.csv", "--missing", "use"],
        "is for lda, qda, naive and mixed; got a model of logistic. Fit one of these.",
    ),
    "novel of a regression": (["predict", "logistic.nc", "pima.csv", "--novel", "0.1"], "`--novel` is for lda, qda"),
    "rate": (["predict", "naive.nc", "pima.csv", "--novel", "2"], "between 0 and 1; got 2"),
    "worth without use": (["predict", "naive.nc", "pima.csv", "--worth"], "Add: --missing use"),
    "report": (["report", "pima.csv", "-t", "class", "--missing", "use"], "is not one of"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    args, message = BAD[case]
    assert message in run(*args, code=2).stderr
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
