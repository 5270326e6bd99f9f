"""Each command does what the Python API does, and its numbers are those of brute force and of hand arithmetic."""

import io
import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_json

from bayes_gda import __version__
from bayes_gda.cli.actions import reports
from bayes_gda.data.examples import example_names, load_example
from bayes_gda.data.frames.reading import read_table
from bayes_gda.data.table import Dataset
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianRDA
from bayes_gda.store import load

FEW = ("--draws", "100", "--chains", "2")
IRIS = load_example("iris")
LABELS = np.array(IRIS.class_names)[IRIS.y]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """iris.csv, a saved LDA of it, and a table with a categorical and a boolean column."""
    path = tmp_path_factory.mktemp("cli")
    run("examples", "iris", "-o", path / "iris.csv")
    run("fit", path / "iris.csv", "-t", "class", "-m", "lda", "-o", path / "lda.nc", *FEW)
    rng = np.random.default_rng(4)
    n = 90
    mixed = pd.DataFrame(
        {
            "id": [f"r{i}" for i in range(n)],
            "island": rng.choice(["Torgersen", "Biscoe", "Dream"], n),
            'we"ird, <b>\u202e': rng.normal(size=n).round(3),
            "ok": rng.choice([True, False], n),
        }
    )
    a = mixed.iloc[:, 2] + (mixed["island"] == "Dream") + 0.5 * rng.normal(size=n)
    mixed["kind"] = np.where(a > 0.5, "naïve 😀", "[red]x")
    mixed.to_csv(path / "mixed.csv", index=False, lineterminator="\r\n")
    run("fit", path / "mixed.csv", "-t", "kind", "--drop", "id", "-m", "logistic", "-o", path / "mixed.nc", *FEW)
    return path


def table(text):
    return pd.read_csv(io.StringIO(text))


# ── examples, simulate ──────────────────────────────────────────────────────────────────────────────────────────────


def test_examples_are_listed_and_written(tmp_path):
    assert [line["name"] for line in run_json("examples")] == list(example_names())
    listing = run("examples").stdout
    assert all(name in listing for name in example_names())
    for name in ("iris", "pima", "lda-mixture"):
        run("examples", name, "-o", tmp_path / "x.csv")
        assert read_table(tmp_path / "x.csv", target="class") == load_example(name)
    assert run("examples", "iris").stdout == run("examples", "example:iris", "-o", "-").stdout
    assert run_json("examples", "iris")["n"] == 150
    assert "needs the name" in run("examples", "-o", tmp_path / "y.csv", code=2).stderr


def test_simulated_rows_have_the_parameters_that_are_printed(tmp_path):
    out = tmp_path / "s.csv"
    told = run_json("simulate", "--n", 30_000, "--d", 3, "--classes", 3, "--seed", 7, "-o", out)["truth"]
    rows = read_table(out, target="class")
    mu, Sigma = np.array(told["mu"]), np.array(told["Sigma"])
    for k in range(3):
        X = rows.X[rows.y == k]
        z = (X.mean(axis=0) - mu[k]) / np.sqrt(np.diag(Sigma[k]) / len(X))
        assert np.abs(z).max() < 4
        np.testing.assert_allclose(np.cov(X.T), Sigma[k], atol=0.06 * np.diag(Sigma[k]).max())
    assert np.ndim(run_json("simulate", "--shared", "--n", 5)["truth"]["Sigma"]) == 2


def test_the_same_seed_gives_the_same_rows():
    assert run("simulate", "--n", 9, "--seed", 3).stdout == run("simulate", "--n", 9, "--seed", 3, "-o", "-").stdout
    assert run("simulate", "--n", 9, "--seed", 3).stdout != run("simulate", "--n", 9, "--seed", 4).stdout
    book = run_json("simulate", "qda-mixture", "--n", 4)
    assert book["truth"]["mu"] == [[0, 0], [2, 2]]
    assert len(book["rows"]) == 4
    assert "is fixed" in run("simulate", "qda-mixture", "--d", 3, code=2).stderr


# ── fit, predict ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_predictions_are_those_of_the_python_api(folder):
    fitted = BayesianLDA(draws=100, chains=2).fit(IRIS.X, LABELS)
    found = table(run("predict", folder / "lda.nc", folder / "iris.csv", "--interval", 0.8).stdout)
    np.testing.assert_array_equal(found["row"], np.arange(1, 151))
    np.testing.assert_array_equal(found["prediction"], fitted.predict(IRIS.X))
    names = [str(name) for name in IRIS.class_names]
    np.testing.assert_allclose(found[[f"p[{k}]" for k in names]], fitted.predict_proba(IRIS.X), rtol=1e-12)
    ends = fitted.predict_interval(IRIS.X, prob=0.8)
    np.testing.assert_allclose(found[[f"low[{k}]" for k in names]], ends[..., 0], rtol=1e-12)
    np.testing.assert_allclose(found[[f"high[{k}]" for k in names]], ends[..., 1], rtol=1e-12)
    assert "low[setosa]" not in table(run("predict", folder / "lda.nc", folder / "iris.csv", "--interval", 0).stdout)


def test_column_order_and_extra_columns_change_nothing(folder, tmp_path):
    frame = pd.read_csv(folder / "iris.csv").drop(columns="class")
    frame[frame.columns[::-1]].assign(note="x").to_csv(tmp_path / "turned.csv", index=False)
    frame.to_parquet(tmp_path / "same.parquet")
    whole = run("predict", folder / "lda.nc", folder / "iris.csv").stdout
    assert run("predict", folder / "lda.nc", tmp_path / "turned.csv").stdout == whole
    assert run("predict", folder / "lda.nc", tmp_path / "same.parquet").stdout == whole


def test_a_raw_table_with_categories_is_encoded_as_it_was(folder):
    frame = pd.read_csv(folder / "mixed.csv")
    X = np.column_stack(  # treatment coding, the first level in alphabetical order being the reference
        [frame["island"] == "Dream", frame["island"] == "Torgersen", frame.iloc[:, 2], frame["ok"]]
    ).astype(float)
    fitted = BayesianLogisticRegression(draws=100, chains=2).fit(X, frame["kind"].to_numpy(dtype=object))
    found = table(run("predict", folder / "mixed.nc", folder / "mixed.csv", "--keep", "id").stdout)
    np.testing.assert_allclose(found[["p[[red]x]", "p[naïve 😀]"]], fitted.predict_proba(X), rtol=1e-9)
    assert found["id"].tolist() == frame["id"].tolist()


def test_decisions_are_the_cheapest_by_hand(folder, tmp_path):
    (tmp_path / "c.csv").write_text("action,naïve 😀,[red]x\nact,0,1\nwait,5,0\nask,.4,.4\n", encoding="utf-8")
    out = tmp_path / "p.csv"
    run("predict", folder / "mixed.nc", folder / "mixed.csv", "--cost", tmp_path / "c.csv", "-o", out)
    rows = pd.read_csv(out)
    p = rows["p[naïve 😀]"]
    losses = np.column_stack([1 - p, 5 * p, np.full(len(p), 0.4)])
    np.testing.assert_array_equal(rows["decision"], np.array(["act", "wait", "ask"])[losses.argmin(axis=1)])
    np.testing.assert_allclose(rows["expected_loss"], losses.min(axis=1), rtol=1e-9)
    assert rows["decision"].nunique() == 3
    assert rows["probability_optimal"].between(0, 1).all()
    assert (rows["value_of_information"] >= 0).all()


def test_missing_values_stop_or_stay_blank(folder, tmp_path):
    frame = pd.read_csv(folder / "mixed.csv")
    frame.loc[3, "island"] = np.nan
    frame["ok"] = frame["ok"].astype(object)
    frame.loc[7, "ok"] = None
    frame.to_csv(tmp_path / "gaps.csv", index=False)
    said = run("predict", folder / "mixed.nc", tmp_path / "gaps.csv", code=2).stderr
    assert "Row 4 has no value for 'island[Dream]', and 1 more rows have gaps" in said
    rows = table(run("predict", folder / "mixed.nc", tmp_path / "gaps.csv", "--missing", "blank").stdout)
    whole = table(run("predict", folder / "mixed.nc", folder / "mixed.csv").stdout)
    assert rows.index[rows["prediction"].isna()].tolist() == [3, 7]
    pd.testing.assert_frame_equal(rows.drop(index=[3, 7]), whole.drop(index=[3, 7]))


def test_predict_as_json(folder, tmp_path):
    out = tmp_path / "p.csv"
    found = run_json("predict", folder / "lda.nc", folder / "iris.csv")
    counts = {name: sum(row["prediction"] == name for row in found["rows"]) for name in found["predicted"]}
    assert found["predicted"] == counts
    assert found["model"] == "lda"
    summary = run_json("predict", folder / "lda.nc", folder / "iris.csv", "-o", out)
    assert "rows" not in summary
    assert len(out.read_text().splitlines()) == 151


def test_fit_says_what_it_did(folder, tmp_path):
    out = tmp_path / "m.nc"
    told = run_json("fit", "example:iris", "-m", "qda", "-o", out, *FEW)
    assert (told["model"], told["method"], told["light"], told["n"]) == ("qda", "exact", "green", 150)
    assert told["log_evidence"] == load(out).log_evidence_
    assert told["fingerprint"] == IRIS.fingerprint
    text = run("fit", "example:iris", "-m", "softmax", "-o", out, "--inference", "laplace", "--degree", 1, *FEW).stdout
    assert "fitted by: laplace" in text
    assert "Pareto k̂" in text


def test_a_stream_that_cannot_hold_a_name(folder, monkeypatch):
    monkeypatch.setattr("command_line.CHARSET", "latin-1")
    found = run_json("predict", folder / "mixed.nc", folder / "mixed.csv", "--interval", 0)
    assert "p[naïve 😀]" in found["rows"][0]
    text = run("predict", folder / "mixed.nc", folder / "mixed.csv", "--interval", 0).stdout
    assert text.startswith("row,prediction,p[[red]x],p[naïve \\U0001f600]\n")


# ── check ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_check_passes_what_is_exact_and_fails_what_has_not_mixed(folder, tmp_path):
    assert run_json("check", folder / "lda.nc")["light"] == "green"
    assert "exact" in run("check", folder / "lda.nc", "--strict").stdout
    short = tmp_path / "short.nc"
    mcmc = ("--inference", "mcmc", "--draws", "20", "--chains", "2")
    said = run("fit", "example:iris", "-m", "naive", "-o", short, *mcmc).stderr
    assert "Warning: The draws cannot be relied upon." in said
    text = run("check", short, code=1).stdout
    assert "sampled, bad" in text
    assert "largest R-hat" in text
    found = run_json("check", short, code=1)
    assert found["light"] == "red"
    assert found["diagnostics"]["chains"] == 2
    stored = load(short).trust_.diagnosis.table
    assert found["diagnostics"]["largest_r_hat"] == pytest.approx(stored["r_hat"].max())
    assert {row["parameter"] for row in found["diagnostics"]["parameters"]} == set(stored.index)


def test_amber_fails_only_if_asked(folder):
    # The logistic model of the small table is corrected: usable, with a remark.
    light = run_json("check", folder / "mixed.nc")["light"]
    assert light == "amber"
    run("check", folder / "mixed.nc", "--strict", code=1)


# ── compare ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_leave_one_out_and_held_out_are_those_of_refitting(folder):
    args = ("--models", "lda", "--test-size", 90, "--seed", 5)
    found = run_json("compare", folder / "iris.csv", "-t", "class", *args, *FEW)
    train, test = read_table(folder / "iris.csv", target="class").split(90, 5)
    names = np.array(train.class_names)
    prior = BayesianLDA().fit(train.X, names[train.y]).prior_  # it is set once, on all training rows
    elpd = 0.0
    for i in range(train.n):
        rest = np.arange(train.n) != i
        fitted = BayesianLDA(prior=prior).fit(train.X[rest], names[train.y[rest]])
        elpd += fitted.predict_log_proba(train.X[[i]])[0, train.y[i]]
    assert found["loo"][0]["elpd"] == pytest.approx(elpd, rel=1e-9)
    P = BayesianLDA().fit(train.X, names[train.y]).predict_log_proba(test.X)
    assert found["held_out"][0]["elpd"] == pytest.approx(P[np.arange(test.n), test.y].sum(), rel=1e-9)
    assert found["held_out"][0]["accuracy"] == pytest.approx((P.argmax(axis=1) == test.y).mean())
    assert (found["n_train"], found["n_test"]) == (60, 90)


def test_weighted_leave_one_out_of_a_regression_is_near_that_of_refitting(folder):
    args = ("--drop", "id", "--models", "logistic", "--test-size", 50, "--draws", 1000)
    found = run_json("compare", folder / "mixed.csv", "-t", "kind", *args)
    frame = pd.read_csv(folder / "mixed.csv").drop(columns="id")
    train, _ = Dataset.from_frame(frame, target="kind").split(50, 0)
    whole = BayesianLogisticRegression().fit(train.X, train.y)
    elpd = 0.0
    for i in range(train.n):
        rest = np.arange(train.n) != i
        # The same feature map: standardisation is set once, on all training rows.
        fitted = BayesianLogisticRegression(features=whole.features_).fit(train.X[rest], train.y[rest])
        elpd += fitted.predict_log_proba(train.X[[i]])[0, train.y[i]]
    line = found["loo"][0]
    assert line["elpd"] == pytest.approx(elpd, abs=0.15 * line["se"])


def test_the_model_between_is_fitted_checked_used_and_compared(folder, tmp_path):
    path = tmp_path / "rda.nc"
    found = run_json("fit", folder / "iris.csv", "-t", "class", "-m", "rda", "-o", path, *FEW)
    model = BayesianRDA().fit(IRIS.X, LABELS)
    assert found["model"] == run_json("check", path)["model"] == "rda"
    assert found["continuum"]["toward_lda"] == pytest.approx(model.continuum_.toward_lda, rel=1e-9)
    assert "By the evidence the covariances lie" in " ".join(run("check", path).stdout.split())
    told = table(run("predict", path, folder / "iris.csv", "--interval", 0).stdout)
    np.testing.assert_allclose(told["p[virginica]"], model.predict_proba(IRIS.X)[:, 2], rtol=1e-9, atol=1e-12)
    both = ("compare", folder / "iris.csv", "-t", "class", "--models", "qda,rda", *FEW)
    scores = run_json(*both)
    assert {line["model"] for line in scores["loo"]} == {line["model"] for line in scores["held_out"]} == {"qda", "rda"}
    assert [line["model"] for line in scores["evidence"]] == ["qda"]  # the error of the average's is not known
    assert scores["continuum"]["sentence"] in scores["sentences"]


def test_compare_in_words(folder):
    text = run("compare", folder / "iris.csv", "-t", "class", "--models", "lda,qda", "--models", "naive", *FEW).stdout
    for part in ("Leave-one-out, 105 training rows", "Held-out, 45 rows", "Evidence", "stacking"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 80
    found = run_json("compare", "example:iris", "--models", "lda,qda,naive", *FEW)
    assert sum(line["stacking"] for line in found["loo"]) == pytest.approx(1)
    assert sum(line["probability"] for line in found["evidence"]) == pytest.approx(1)
    assert found["sentences"]


# ── report ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_report_hands_everything_on_and_strict_fails_on_red(folder, tmp_path, monkeypatch):
    seen = {}

    def pretend(data, out, *, settings, test):
        seen.update(data=data, out=out, settings=settings, test=test)
        settings.progress("fit lda", 0.5)
        lines = (
            SimpleNamespace(topic="Which model?", light="green", sentence="It is lda.", step="Use it.", call=""),
            SimpleNamespace(topic="Sampler?", light=light, sentence="No.", step="Do.", call="bayes-gda report X"),
        )
        return SimpleNamespace(conclusions=lines, light=light, folder=out, page=out / "index.html")

    monkeypatch.setattr(reports, "write_report", pretend)
    (tmp_path / "c.json").write_text(
        '{"a": {"setosa": 1, "versicolor": 2, "virginica": 3}, "b": {"virginica": 0, "setosa": 0, "versicolor": 9}}'
    )
    args = ("report", folder / "iris.csv", "-t", "class", "-o", tmp_path / "r", "--models", "lda,qda", "--quick")
    more = ("--test-size", "40", "--cost", tmp_path / "c.json", "--seed", 3, "--draws", 200, "--chains", 3)
    light = "amber"
    text = run(*args, *more, "--strict").stdout
    assert "[amber] Sampler? No. Do." in text
    assert "bayes-gda report X" in text
    settings = seen["settings"]
    assert (settings.models, settings.test_size, settings.quick) == (("lda", "qda"), 40, True)
    assert (settings.random_seed, settings.draws, settings.chains) == (3, 200, 3)
    assert (settings.data_name, settings.target) == (str(folder / "iris.csv"), "class")
    np.testing.assert_array_equal(settings.costs, [[1, 2, 3], [0, 9, 0]])
    assert seen["out"] == tmp_path / "r"
    light = "red"
    run(*args, "--strict", code=1)
    assert run_json(*args)["conclusions"][1]["call"] == "bayes-gda report X"
    monkeypatch.chdir(tmp_path)
    run("report", "example:iris")
    assert str(seen["out"]) == "reports/iris"
    # What a report recommends can be typed as it stands.
    run("report", folder / "mixed.csv", "-t", "kind", "--drop", "id", "--categorical", "ok", "--missing", "drop")
    words = "--target kind --categorical ok --drop id --missing drop --model lda"
    assert seen["settings"].command("fit", "--model", "lda").endswith(words)


@pytest.mark.slow
def test_test_rows_are_read_as_the_training_rows_were(tmp_path, monkeypatch):
    seen = {}

    def pretend(data, out, *, settings, test):
        seen.update(data=data, settings=settings, test=test)
        return SimpleNamespace(conclusions=(), light="green", folder=out, page=out / "index.html")

    monkeypatch.setattr(reports, "write_report", pretend)
    train, test = tmp_path / "train.csv", tmp_path / "test.csv"
    train.write_text("x,island,id,y\n1,a,1,no\n2,b,2,no\n3,a,3,yes\n4,b,4,yes\n5,a,5,yes\n")
    # Columns in another order, one class only, a gap in the second row.
    test.write_text("y,island,x\nyes,b,7\nyes,a,\nyes,a,9\n")
    told = ["report", train, "-t", "y", "--drop", "id", "--test", test, "-o", tmp_path / "r"]
    assert "has no value" in run(*told, code=2).stderr or "missing" in run(*told, code=2).stderr
    run(*told, "--missing", "drop")
    np.testing.assert_array_equal(seen["test"].X, seen["data"].encode(pd.read_csv(test).iloc[[0, 2]]))
    np.testing.assert_array_equal(seen["test"].y, [1, 1])
    np.testing.assert_array_equal(seen["test"].row_numbers, [1, 3])
    assert seen["settings"].test_name == str(test)
    run(*told, "--missing", "keep")
    assert np.isnan(seen["test"].X).sum() == 1
    # A level that was never seen is refused as by predict, or is a missing value where these are kept.
    test.write_text("y,island,x\nyes,c,7\nno,a,8\n")
    assert "'c'" in run(*told, code=2).stderr
    run(*told, "--missing", "keep")
    assert np.isnan(seen["test"].X[0]).any()
    test.write_text("island,x\nb,7\n")
    assert "lacks the class column 'y'" in run(*told, code=2).stderr
    test.write_text("y,island,x\nmaybe,a,7\n")
    assert "maybe" in run(*told, code=2).stderr


def test_report_to_markdown_alone(tmp_path):
    out = tmp_path / "r"
    told = run_json("report", "example:iris", "--quick", "--models", "lda", "--draws", 100, "--to", "md", "-o", out)
    assert told["page"] == str(out / "report.md")
    assert (out / "report.md").read_text(encoding="utf-8").startswith("# iris\n")
    assert not (out / "index.html").exists()
    again = json.loads((out / "report.json").read_text(encoding="utf-8"))["reproduce"]["command"]
    assert again.endswith("--to md")
    result = run("report", "example:iris", "--to", "docx", "-o", tmp_path / "s", code=2)
    assert "`formats` must be one or both of html, md; got ['docx']" in result.stderr


def test_a_real_report(tmp_path):
    found = run_json("report", "example:iris", "--quick", "--models", "lda", "-o", tmp_path / "r")
    assert (tmp_path / "r" / "index.html").is_file()
    assert found["page"] == str(tmp_path / "r" / "index.html")


# ── What goes wrong ─────────────────────────────────────────────────────────────────────────────────────────────────

BAD = {
    "no such command": (["nonsense"], "No such command"),
    "no such option": (["check", "m.nc", "--nonsense"], "No such option"),
    "no argument": (["check"], "Missing argument"),
    "no model": (["fit", "iris.csv", "-o", "x.nc"], "Missing option '--model'"),
    "no target": (["fit", "iris.csv", "-m", "lda", "-o", "x.nc"], "--target COLUMN"),
    "wrong target": (["fit", "iris.csv", "-t", "clas", "-m", "lda", "-o", "x.nc"], "Did you mean 'class'"),
    "no file": (["fit", "iriss.csv", "-t", "class", "-m", "lda", "-o", "x.nc"], "Did you mean 'iris.csv'"),
    "a folder": (["fit", ".", "-t", "class", "-m", "lda", "-o", "x.nc"], "Cannot read '.'"),
    "wrong model": (["fit", "iris.csv", "-t", "class", "-m", "logistic", "-o", "x.nc"], "3 classes. Use softmax"),
    "unknown model": (["fit", "iris.csv", "-t", "class", "-m", "tree", "-o", "x.nc"], "got 'tree'"),
    "unknown models": (["compare", "iris.csv", "-t", "class", "--models", "lda,tree"], "got 'tree'"),
    "no closed form": (
        ["fit", "iris.csv", "-t", "class", "-m", "softmax", "-o", "x.nc", "--inference", "exact"],
        "Use --inference auto",
    ),
    "scale of a Gaussian": (
        ["fit", "iris.csv", "-t", "class", "-m", "lda", "-o", "x.nc", "--prior-scale", "1"],
        "are for logistic and softmax",
    ),
    "method of rda": (
        ["fit", "iris.csv", "-t", "class", "-m", "rda", "-o", "x.nc", "--inference", "mcmc"],
        "must be auto or exact for rda",
    ),
    "bad scale": (["fit", "iris.csv", "-t", "class", "-m", "softmax", "-o", "x.nc", "--prior-scale", "a"], "got 'a'"),
    "no draws": (["fit", "iris.csv", "-t", "class", "-m", "lda", "-o", "x.nc", "--draws", "0"], "draws"),
    "model to stdout": (["fit", "iris.csv", "-t", "class", "-m", "lda", "-o", "-"], "cannot be written to stdout"),
    "no folder": (["fit", "iris.csv", "-t", "class", "-m", "lda", "-o", "no/x.nc"], "there is no folder"),
    "size": (["compare", "iris.csv", "-t", "class", "--test-size", "2.5"], "`test_size` must be a share"),
    "size in words": (["compare", "iris.csv", "-t", "class", "--test-size", "half"], "got 'half'"),
    "not a model": (["check", "iris.csv"], "is not a model that bayes_gda saved"),
    "no model file": (["predict", "no.nc", "iris.csv"], "Cannot open 'no.nc'"),
    "no new file": (["predict", "lda.nc", "new.csv"], "No such file: 'new.csv'"),
    "absent columns": (["predict", "lda.nc", "mixed.csv"], "lacks the columns 'sepal length (cm)'"),
    "not UTF-8": (["predict", "lda.nc", "latin.csv"], "latin.csv"),
    "binary": (["predict", "lda.nc", "binary.parquet"], "Cannot read 'binary.parquet'"),
    "empty": (["predict", "lda.nc", "empty.csv"], "empty.csv"),
    "onto the input": (["predict", "lda.nc", "iris.csv", "-o", "iris.csv"], "would replace the input"),
    "onto the model": (["predict", "lda.nc", "iris.csv", "-o", "lda.nc"], "would replace the input"),
    "interval": (["predict", "lda.nc", "iris.csv", "--interval", "1.5"], "below 1; got 1.5"),
    "keep": (["predict", "lda.nc", "iris.csv", "--keep", "clas"], "Did you mean 'class'"),
    "costs": (["predict", "lda.nc", "iris.csv", "--cost", "empty.csv"], "The cost file 'empty.csv' is empty"),
    "example": (["examples", "irish"], "Did you mean 'iris'"),
    "out is a file": (["report", "example:iris", "-o", "iris.csv"], "is a file"),
    "out is in use": (["report", "example:iris", "-o", "."], "holds other files"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line_and_writes_nothing(folder, monkeypatch, case):
    monkeypatch.chdir(folder)
    (folder / "latin.csv").write_bytes("a,é\n1,2\n".encode("latin-1"))
    (folder / "binary.parquet").write_bytes(b"\0\1\2")
    (folder / "empty.csv").write_text("")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    args, message = BAD[case]
    assert message in run(*args, code=2).stderr
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_an_unknown_level_leaves_no_output(folder, tmp_path):
    frame = pd.read_csv(folder / "mixed.csv")
    frame.loc[80, "island"] = "Atlantis"
    frame.to_csv(tmp_path / "new.csv", index=False)
    said = run("predict", folder / "mixed.nc", tmp_path / "new.csv", "-o", tmp_path / "out.csv", code=2).stderr
    assert "'Atlantis'" in said
    assert "row 81" in said
    assert [p.name for p in tmp_path.iterdir()] == ["new.csv"]


def test_version_and_help():
    assert run("--version").stdout == f"bayes-gda {__version__}\n"
    assert "predict" in run("--help").stdout
    assert "send home,0,50" in run("predict", "--help").stdout


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ZeroDivisionError("of ours"), 70, "ZeroDivisionError: of ours. This is a mistake of bayes_gda"),
        (PermissionError(13, "Permission denied", "x.nc"), 2, "Cannot use 'x.nc': Permission denied. Check the path."),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no"), 2, "Save the file as UTF-8."),
        (MemoryError(), 2, "not enough memory"),
    ],
)
def test_whatever_happens_is_one_line(monkeypatch, error, code, line):
    def fail():
        raise error

    monkeypatch.setattr("bayes_gda.data.examples.example_names", fail)
    assert line in run("examples", code=code).stderr


def test_an_interrupted_command_says_so(monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr("bayes_gda.data.examples.example_names", interrupt)
    assert run("examples", code=130).stderr == "Interrupted; nothing was written.\n"
