"""BayesianNaive: frames as they come, streaming, novelty, store, and every other door."""

import json

import numpy as np
import pandas as pd
import pytest
from command_line import run_json

from bayes_gda import BayesianNaive, BayesianNaiveGaussian, compare_models, load, write_report
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, InferenceWarning, PriorError
from bayes_gda.reporting.report import ReportSettings


def make_table(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = pd.DataFrame(
        {
            "fare": np.exp(rng.normal(1 + 0.5 * y, 0.8)),
            "siblings": rng.poisson(1 + y),
            "port": pd.Categorical(np.array(["C", "Q", "S"])[rng.integers(0, 3, n)]),
            "sex": np.where(rng.random(n) < 0.3 + 0.4 * y, "female", "male"),
            "alone": rng.random(n) < 0.5,
            "age": rng.normal(30, 10, n).round(1),
        }
    )
    X.loc[::7, "age"] = np.nan
    X.loc[::11, "sex"] = None
    return X, np.where(y, "yes", "no")


@pytest.fixture(scope="module")
def table():
    return make_table()


@pytest.fixture(scope="module")
def model(table):
    return BayesianNaive().fit(*table)


def test_frames_are_taken_as_they_come(table, model):
    X, y = table
    assert model.inference_ == "exact"
    assert model.n_features_in_ == 6
    assert model.distributions_ == {
        "fare": "log-normal",
        "siblings": "poisson",
        "port": "categorical",
        "sex": "categorical",
        "alone": "bernoulli",
        "age": model.distributions_["age"],
    }
    assert "fare log-normal" in model.choice_
    P = model.predict_proba(X)
    assert (model.predict(X) == y).mean() > 0.7
    np.testing.assert_array_equal(model.predict_proba(X[X.columns[::-1]]), P)  # the order of the columns is free
    np.testing.assert_allclose(BayesianNaive().fit(X.assign(y=y), "y").predict_proba(X), P)
    assert model.predict_interval(X[:5]).shape == (5, 2, 2)
    assert "theta[yes, sex[female]]" in model.summary().index
    assert model.trust_for(X[:3]).verdict.tolist() == ["exact"] * 3


def test_a_choice_leads_by_what_the_evidence_of_the_whole_model_differs(table, model):
    choices = {choice.name: choice for choice in model.choices_}
    assert {name: choice.distribution for name, choice in choices.items()} == model.distributions_
    assert (choices["sex"].by, choices["sex"].lead) == ("type", None)
    second, lead = choices["fare"].lead
    other = BayesianNaive(distributions={**model.distributions_, "fare": second}).fit(*table)
    assert lead == pytest.approx(model.log_evidence_ - other.log_evidence_, rel=1e-6)


def test_it_is_not_the_gaussian_model_on_dummies(table):
    X, y = table
    X = X.assign(age=X["age"].fillna(30), sex=X["sex"].fillna("male"))
    mixed, gaussian = BayesianNaive().fit(X, y), BayesianNaiveGaussian().fit(X, y)
    assert np.abs(mixed.predict_proba(X) - gaussian.predict_proba(X)).max() > 0.05


def test_a_level_never_seen_has_a_place(table, model):
    new = table[0][:2].assign(port=["X", "Y"])
    P = model.predict_proba(new)
    assert np.isfinite(P).all()
    count = model.model_.class_count
    known = model.predict_proba(new.assign(port=None))
    odds = (P[:, 1] / P[:, 0]) / (known[:, 1] / known[:, 0])
    rows = [np.sum([s.sums.sum(axis=1) for s in model.model_.statistics[2:3]], axis=0)][0]
    np.testing.assert_allclose(odds, (rows[0] + 4) / (rows[1] + 4), rtol=1e-9)
    assert (rows == count).all()
    with pytest.raises(DataError, match="Level 'X' of column 'port'"):
        BayesianNaive(unseen="error").fit(*table).predict(new)


def test_a_value_that_cannot_be_counts_as_missing(table, model):
    X = table[0][:3].copy()
    X["fare"] = [-1.0, 2.0, 3.0]
    with pytest.warns(InferenceWarning, match=r"1 of 3 rows have a value that 'fare', log-normal, cannot have"):
        P = model.predict_proba(X)
    np.testing.assert_allclose(P[0], model.predict_proba(X[:1].assign(fare=np.nan))[0])
    assert model.novelty(X).novel[0]


def test_learning_in_parts_is_learning_at_once(table, model):
    X, y = table
    prior = model.prior_
    stream = BayesianNaive(prior=prior).partial_fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    assert stream.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-12)
    np.testing.assert_allclose(stream.predict_proba(X), model.predict_proba(X), atol=1e-12)
    stream.unlearn(X[40:], y[40:])
    head, tail = BayesianNaive(prior=prior).fit(X[:40], y[:40]), BayesianNaive(prior=prior).fit(X[40:], y[40:])
    assert stream.log_evidence_ == pytest.approx(head.log_evidence_, rel=1e-9)
    head.merge(tail)
    assert head.log_evidence_ == pytest.approx(model.log_evidence_, rel=1e-12)
    weighed = BayesianNaive(prior=prior).fit(X, y, sample_weight=np.full(len(y), 0.5))
    half = BayesianNaive(prior=prior).fit(X, y).forget(0.5)
    np.testing.assert_allclose(half.predict_proba(X), weighed.predict_proba(X), atol=1e-12)
    with pytest.raises(DataError, match="cannot unlearn"):
        head.unlearn(pd.concat([X] * 3), np.tile(y, 3))
    with pytest.raises(PriorError, match="same prior"):
        head.merge(BayesianNaive().fit(X[:40], y[:40]))
    with pytest.raises(PriorError, match="Streaming needs the exact posterior"):
        BayesianNaive(inference="laplace").partial_fit(X, y)


def test_rows_are_generated_in_the_columns_given(table, model):
    X, y = model.sample(200, random_state=1)
    assert list(X.columns) == list(table[0].columns)
    assert set(X["sex"]) == {"female", "male"}
    assert set(y) == {"no", "yes"}
    assert np.isfinite(model.predict_proba(X)).all()


def test_worth_is_of_the_raw_column(table, model):
    X = table[0][:3].assign(port=None, fare=np.nan)
    worth = model.worth_measuring(X)
    names = list(model._names())
    ports = [names.index("port[Q]"), names.index("port[S]")]
    assert (worth[:, ports[0]] == worth[:, ports[1]]).all()
    assert (worth[:, names.index("fare")] > worth[:, ports[0]]).all()  # the fare differs between the classes


@pytest.mark.parametrize("inference", ["exact", "laplace", "mcmc"])
@pytest.mark.filterwarnings("ignore::bayes_gda.errors.InferenceWarning")
def test_what_is_saved_predicts_the_same(table, tmp_path, inference):
    X, y = table
    words = {"fare": "gamma", "siblings": "negative-binomial", "age": "normal"}
    model = BayesianNaive(inference=inference, distributions=words, draws=100, chains=2).fit(X, y)
    model.save(tmp_path / "model.nc")
    again = load(tmp_path / "model.nc")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.choice_ == model.choice_
    assert again.distributions_ == model.distributions_
    new = X[:2].assign(port="X")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))
    if inference == "exact":
        again.partial_fit(X, y)


def test_comparisons_take_the_frame(table, model):
    X, y = table
    full = X.notna().all(axis=1)
    X, y = X[full], y[full]
    models = {"mixed": BayesianNaive().fit(X, y), "gaussian": BayesianNaiveGaussian().fit(X, y)}
    table = compare_models(models, X, y)
    assert table.loo.loc["mixed", "bad_k"] == 0
    assert table.evidence["of"].nunique() == 2  # probabilities of levels are no densities of dummies
    data = Dataset.from_frame(X.assign(y=y), target="y")
    np.testing.assert_allclose(BayesianNaive().fit(data).predict_proba(X), models["mixed"].predict_proba(X))


def test_the_command_line_keeps_categories(table, tmp_path):
    X, y = table
    path, out = tmp_path / "table.csv", tmp_path / "model.nc"
    X.assign(survived=y).to_csv(path, index=False)
    said = run_json("fit", path, "-t", "survived", "--model", "mixed", "--missing", "keep", "--out", out)
    assert said["distributions"]["port"] == "categorical"
    X.assign(port="Z").to_csv(tmp_path / "new.csv", index=False)
    run_json("predict", out, tmp_path / "new.csv", "--missing", "use", "--worth", "--out", tmp_path / "p.csv")
    rows = pd.read_csv(tmp_path / "p.csv")
    assert len(rows) == len(X)
    assert set(rows["measure_next"].dropna()) <= {"age", "sex"}
    compared = run_json("compare", path, "-t", "survived", "--missing", "keep", "--models", "mixed,naive")
    assert "port categorical" in compared["models"]["mixed"]["remarks"][0]
    usual = run_json("compare", path, "-t", "survived", "--missing", "keep", "--draws", 100, "--tolerance", 0.1)
    assert "mixed" in usual["models"]


def test_the_report_has_it_where_a_table_has_categories(table, tmp_path):
    X, y = table
    data = Dataset.from_frame(X.assign(survived=y), target="survived", missing="drop")
    settings = ReportSettings(quick=True, draws=200)
    assert "mixed" in {family.name for family in settings.families(data)}
    report = write_report(
        data, tmp_path / "out", settings=ReportSettings(quick=True, models=("mixed", "lda"), draws=200)
    )
    numbers = json.loads((tmp_path / "out" / "report.json").read_text())
    line = next(line for line in numbers["models"] if line["name"] == "mixed")
    assert "port categorical" in line["remarks"][0]
    assert "Naive Bayes for mixed columns" in report.page.read_text()
