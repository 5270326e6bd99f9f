"""The report: its numbers are those of report.json and of other libraries, names are text, it is whole or not there."""

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from reporting.report_pages import HOSTILE, HOSTILE_CLASSES, Page, data, page, report
from scipy.stats import beta
from sklearn.metrics import accuracy_score, confusion_matrix, log_loss, roc_auc_score

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, StoreError
from bayes_gda.estimators import BayesianLDA, BayesianNaiveGaussian, BayesianQDA, BayesianRDA
from bayes_gda.families.gaussian.exact import lda_posterior, qda_posterior
from bayes_gda.prediction.decisions import decide
from bayes_gda.priors import NIW
from bayes_gda.reporting import report as module
from bayes_gda.reporting.page.rendering import TABLES, lookup, number, unbroken
from bayes_gda.reporting.report import ReportSettings, write_report

NAMES = ("iris", "pima", "hostile")
SECTIONS = [
    "conclusions", "data", "performance", "effects", "explore", "assumptions", "models", "sampling", "posteriors",
    "predictions", "calibration", "decisions", "comparison", "sensitivity", "reproduce",
]  # fmt: skip
# Half a unit of the last digit shown, by kind of number.
ROUNDING = {"int": 0.5, "f1": 0.05, "f2": 0.005, "f3": 0.0005, "f4": 0.00005, "pct": 0.05, "pct0": 0.5}


# ── Numbers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_every_number_on_the_page_is_the_one_in_the_file(name):
    tree = json.loads((report(name).folder / "report.json").read_text(encoding="utf-8"))
    numbers = page(name).numbers
    assert len(numbers) > 150
    for key, kind, text in numbers:
        truth = lookup(tree, key)
        if truth is None:
            assert text == "–"
            continue
        if text in ("< 0.001", "> 0.999"):
            assert kind in ("p", "prob"), key
            assert truth < 0.001 if text == "< 0.001" else truth > 0.999, key
            continue
        shown = float(text.replace("\u2212", "-").replace("\u202f", "").removesuffix(" %"))
        if kind in ("p", "prob"):
            assert abs(shown - truth) <= 0.0005001, key
        elif kind == "unit":
            assert shown == pytest.approx(truth), key
        elif kind == "ratio" and 1e-9 < abs(truth - 1) < 0.1:
            assert shown - 1 == pytest.approx(truth - 1, rel=0.06), key
        elif kind in ("g3", "ratio"):
            assert shown == pytest.approx(truth, rel=0.005 if 1e-3 <= abs(truth) < 1e6 else 0.05), key
        else:
            assert abs(shown - (100 * truth if kind.startswith("pct") else truth)) <= ROUNDING[kind] * 1.0001, key


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_plain_json(name):
    text = (report(name).folder / "report.json").read_text(encoding="utf-8")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    assert json.loads(text, parse_constant=refuse) == report(name).numbers


def test_scores_are_those_of_scikit_learn():
    train, test = data("pima").split(0.3, 0)
    moments = Moments.from_arrays(train.X, train.y, train.K)
    joint = lda_posterior(moments, NIW.default(moments)).log_joint(test.X)
    P = np.exp(joint - np.logaddexp(*joint.T)[:, None])
    [line] = [x for x in report("pima").numbers["comparison"]["held_out"] if x["model"] == "lda"]
    assert line["log_score"] == pytest.approx(-log_loss(test.y, P), rel=1e-9)
    assert line["accuracy"] == accuracy_score(test.y, P.argmax(axis=1))
    [costs] = [x for x in report("pima").numbers["decisions"]["models"] if x["model"] == "lda"]
    C = np.array([[0, 5], [1, 0]])
    made = decide(P, C)
    assert costs["realised_loss"] == pytest.approx(np.mean([C[a, k] for a, k in zip(made.action, test.y, strict=True)]))
    assert costs["expected_loss"] == pytest.approx((P @ C.T).min(axis=1).mean())


def test_the_simplest_of_the_models_that_cannot_be_told_apart_is_chosen():
    for name in NAMES:
        tree = report(name).numbers
        table = tree["comparison"]["loo"]
        alike = [x["model"] for x in table if -x["difference"] < 4 or -x["difference"] <= 2 * x["difference_se"]]
        size = {m["name"]: m["parameters"] for m in tree["models"]}
        assert tree["chosen"]["name"] == min(alike, key=size.get)


def test_where_the_data_sit_is_said_and_shown():
    analysis, found = report("iris").analysis, report("iris").numbers["comparison"]
    train, test = analysis.train, analysis.test
    fitted = BayesianRDA().fit(train.X, train.y)
    place = fitted.continuum_
    assert place.sentence in found["sentences"]
    own = np.arange(test.n), test.y
    assert found["continuum"]["log_score"] == pytest.approx(fitted.predict_log_proba(test.X)[own].mean(), rel=1e-9)
    assert found["continuum"]["toward_lda"] == pytest.approx(place.toward_lda, rel=1e-9)
    gain = (fitted.predict_log_proba(test.X) - analysis.chosen.log_probabilities)[own].mean()
    assert f"{abs(gain):.3f} (SE " in found["continuum"]["sentence"]
    assert "continuum" in [f["name"] for f in report("iris").numbers["figures"]]
    assert report("pima").numbers["comparison"]["continuum"] is None


def test_performance_is_that_of_scikit_learn():
    analysis, found = report("pima").analysis, report("pima").numbers["performance"]
    P, y = np.exp(analysis.chosen.log_probabilities), analysis.test.y
    assert found["confusion"] == confusion_matrix(y, P.argmax(axis=1)).tolist()
    assert [x["auc"] for x in found["classes"]] == pytest.approx([roc_auc_score(y == k, P[:, k]) for k in range(2)])
    assert found["accuracy_lower"] < found["accuracy"] < found["accuracy_upper"]
    own = np.log(P[np.arange(len(y)), y])
    assert found["log_score_se"] == pytest.approx(own.std(ddof=1) / np.sqrt(len(y)))
    brier = ((P - np.eye(2)[y]) ** 2).sum(axis=1)
    assert (found["brier"], found["brier_se"]) == pytest.approx((brier.mean(), brier.std(ddof=1) / np.sqrt(len(y))))
    hits = [(P.argmax(axis=1)[y == k] == k) for k in range(2)]
    variance = sum(beta(r.sum() + 0.5, (~r).sum() + 0.5).var() for r in hits) / 4
    assert found["balanced_accuracy_se"] == pytest.approx(np.sqrt(variance))
    assert {"confusion", "curves"} <= {f["name"] for f in report("pima").numbers["figures"]}


def test_assumptions_of_every_model_are_told():
    found = report("iris").numbers["assumptions"]
    assert {line["model"] for line in found["checks"]} == {"qda", "naive"}
    assert {line["assumption"] for line in found["checks"]} >= {"independent features", "symmetric classes"}
    assert all(0 <= line["p_value"] <= line["adjusted"] <= 1 for line in found["checks"])


@pytest.mark.usefixtures("one_figure")
def test_dropped_rows_are_told_and_rows_are_numbered_as_in_the_table(tmp_path):
    iris = load_example("iris")
    X = iris.X.copy()
    X[[0, 10, 20], [0, 1, 1]] = np.nan
    kept = Dataset.from_arrays(X, iris.y, missing="drop")
    found = write_report(kept, tmp_path / "out", settings=ReportSettings(quick=True, draws=100, models=("lda",)))
    told = found.numbers["data"]
    assert (told["table_rows"], told["dropped"], told["missing"], told["rows"]) == (150, 3, 3, 147)
    assert [(x["column"], x["missing"]) for x in told["missing_columns"]] == [("x2", 2), ("x1", 1)]
    assert any("3 rows of 150 (2.0 %) were left out" in x["sentence"] for x in told["findings"])
    numbers = found.analysis.row_numbers
    np.testing.assert_array_equal(X[numbers - 1], found.analysis.test.X)
    assert {x["row"] for x in found.numbers["predictions"]["uncertain"]} <= set(numbers.tolist())


def test_rows_with_missing_values_are_kept_and_the_page_says_what_each_model_did(tmp_path):
    iris = load_example("iris")
    X = iris.X.copy()
    X[::10, 1] = np.nan
    kept = Dataset.from_arrays(X, iris.y, missing="keep")
    settings = ReportSettings(quick=True, draws=250, models=("lda", "naive"))
    found = write_report(kept, tmp_path / "out", settings=settings)
    told, analysis = found.numbers["data"], found.analysis
    assert (told["missing"], told["dropped"], told["rows"]) == (15, 0, 150)
    assert told["gaps"]["train"] + told["gaps"]["test"] == 15
    assert [line["model"] for line in told["gaps"]["models"]] == ["lda", "naive"]
    assert "15 rows of 150 (10.0 %) have missing values, in x2; they were kept." in told["findings"][0]["sentence"]
    assert found.numbers["incomplete"] == found.numbers["figures_left_out"] == found.numbers["failed"] == []
    own = BayesianNaiveGaussian().fit(analysis.train.X, analysis.train.y)
    [line] = [x for x in found.numbers["comparison"]["held_out"] if x["model"] == "naive"]
    truth = own.predict_log_proba(analysis.test.X)[np.arange(analysis.test.n), analysis.test.y].mean()
    assert line["log_score"] == pytest.approx(truth, rel=1e-9)
    with pytest.raises(DataError, match="take the missing values of these rows, as lda, qda, naive"):
        write_report(kept, tmp_path / "b", settings=replace(settings, models=("lda", "softmax")))


@pytest.mark.usefixtures("one_figure")
def test_given_test_rows_are_those_that_are_scored(tmp_path):
    iris = load_example("iris")
    train, test = iris.split(0.4, 3)
    both = Dataset(
        np.vstack([test.X, train.X[:2]]), np.append(test.y, train.y[:2]), iris.feature_names, iris.class_names
    )
    settings = ReportSettings(quick=True, draws=100, models=("lda",), data_name="a.csv", target="y", test_name="b.csv")
    found = write_report(train, tmp_path / "out", settings=settings, test=both)
    told = found.numbers["data"]
    assert (told["train_rows"], told["test_rows"], told["test_given"], told["test_source"]) == (90, 62, True, "b.csv")
    assert told["test_repeated"] == 2 + sum((x == train.X).all(axis=1).any() for x in test.X)
    assert found.numbers["performance"]["repeated"]["rows"] == 90
    assert found.numbers["reproduce"]["command"].startswith("bayes-gda report a.csv --target y --test b.csv --seed 0")
    assert "write_report(data, out, test=test, settings=" in found.numbers["reproduce"]["python"]
    assert "<code>b.csv</code>: all" in found.page.read_text(encoding="utf-8")
    own = BayesianLDA().fit(train.X, train.y)
    truth = own.predict_log_proba(both.X)[np.arange(both.n), both.y].mean()
    assert found.numbers["comparison"]["held_out"][0]["log_score"] == pytest.approx(truth, rel=1e-9)


@pytest.mark.usefixtures("one_figure")
def test_a_leak_is_named_and_its_scores_are_not_praised(tmp_path):
    pima = data("pima")
    leaky = Dataset(
        np.column_stack([pima.X, np.arange(pima.n), pima.y + 0.001 * np.arange(pima.n)]),
        pima.y,
        (*pima.feature_names, "rownames", "outcome"),
        pima.class_names,
    )
    settings = ReportSettings(quick=True, draws=100, models=("lda",), data_name="t.csv", target="type")
    found = write_report(leaky, tmp_path / "out", settings=settings)
    lights = {c.topic: c for c in found.conclusions}
    assert lights["Are the data sound?"].light == "amber"
    assert "outcome alone tells the classes apart" in lights["Are the data sound?"].sentence
    assert "rownames holds a different whole number in every row" in lights["Are the data sound?"].sentence
    assert lights["Are the data sound?"].call.endswith("--drop outcome --drop rownames")
    assert lights["How good is it?"].light == "amber"
    assert found.numbers["figures_left_out"] == []
    assert "may rest on outcome alone" in lights["How good is it?"].sentence


@pytest.mark.usefixtures("one_figure")
def test_actions_keep_their_names_and_the_calls_their_costs(tmp_path):
    settings = ReportSettings(
        quick=True, draws=100, models=("lda",), costs=[[1, 1], [0, 9]], action_names=["call", "leave alone"],
        data_name="tables/pima.csv", target="type", cost_file="my costs.csv",
    )  # fmt: skip
    found = write_report(data("pima"), tmp_path / "out", settings=settings)
    told = found.numbers["decisions"]["costs"]
    assert [line["action"] for line in told] == ["call", "leave alone"]
    assert [line["losses"] for line in told] == [[1, 1], [0, 9]]
    assert "--cost 'my costs.csv'" in found.numbers["reproduce"]["command"]
    assert "costs=[[1, 1], [0, 9]], action_names=['call', 'leave alone']" in found.numbers["reproduce"]["python"]
    assert found.numbers["title"] == "pima.csv: type"
    with pytest.raises(DataError, match="`action_names` must be 2 different names"):
        write_report(data("pima"), tmp_path / "b", settings=replace(settings, action_names=["call", "call"]))


def test_of_more_than_two_classes_no_interval_is_said_to_cross_one_half():
    by_name = {f["name"]: f for f in report("iris").numbers["figures"]}
    assert "one half" not in by_name["intervals"]["caption"] + by_name["intervals"]["alt"]
    by_name = {f["name"]: f for f in report("pima").numbers["figures"]}
    assert "one half" in by_name["intervals"]["caption"]


@pytest.mark.parametrize("name", ["pima", "iris"])
def test_novelty_is_that_of_the_estimator(name):
    """By the chosen model if it describes the features, else by the best one that does."""
    analysis, tree = report(name).analysis, report(name).numbers
    told, train, test = tree["predictions"]["novelty"], analysis.train, analysis.test
    assert told["model"] == {"pima": "lda", "iris": analysis.best}[name]
    estimator = {"lda": BayesianLDA, "qda": BayesianQDA, "naive": BayesianNaiveGaussian}[told["model"]]
    own = estimator().fit(train.X, train.y).novelty(test.X)
    assert told["novel"] == int(own.novel.sum())
    assert [line["tail"] for line in told["rows"]] == pytest.approx(np.sort(own.largest[own.novel])[:10])
    rows = {line["row"]: line for line in tree["explore"]["rows"]}
    assert len(rows) == test.n
    for i, number_ in enumerate(analysis.row_numbers.tolist()):
        assert rows[number_]["tail"] == pytest.approx(own.largest[i], rel=1e-5)
        assert rows[number_]["novel"] == own.novel[i]


def test_row_numbers_lead_back_to_the_table():
    given, analysis = data("iris"), report("iris").analysis
    np.testing.assert_array_equal(analysis.row_numbers, analysis.rows + 1)
    np.testing.assert_array_equal(given.X[analysis.rows], analysis.test.X)
    np.testing.assert_array_equal(given.y[analysis.rows], analysis.test.y)


def test_posteriors_can_be_read_and_have_the_exact_mean():
    tree = xr.open_datatree(report("iris").folder / "posterior" / "qda-exact.nc", engine="h5netcdf")
    train = data("iris").split(0.3, 0)[0]
    moments = Moments.from_arrays(train.X, train.y, train.K)
    exact = qda_posterior(moments, NIW.default(moments))
    mu = tree["posterior"]["mu"]
    error = mu.std(("chain", "draw")).to_numpy() / np.sqrt(1000)
    assert (np.abs(mu.mean(("chain", "draw")).to_numpy() - exact.m) < 5 * error).all()
    assert list(mu["feature"].to_numpy()) == list(train.feature_names)
    tree.close()


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "f3", "–"),
        (0.12345, "f3", "0.123"),
        (-0.5, "f1", "\u22120.5"),
        (-0.0001, "f2", "0.00"),
        (0.5, "pct", "50.0 %"),
        (1234.0, "int", "1234"),
        (12345.6, "int", "12\u202f346"),
        (12345.6, "g3", "12\u202f346"),
        (0.00001234, "g3", "1.2e\u221205"),
        (0.0, "g3", "0"),
        (0.72, "g3", "0.72"),
        (1000.0, "unit", "1000"),
        (10000.0, "unit", "10\u202f000"),
        (0.72, "ratio", "0.720"),
        (412.3, "ratio", "412"),
        (0.991, "ratio", "0.9910"),
        (0.0002, "prob", "< 0.001"),
        (0.5, "prob", "0.500"),
        (0.9998, "prob", "> 0.999"),
    ],
)
def test_numbers_are_written_as_people_do(value, kind, text):
    assert number(value, kind) == text


def test_options_in_sentences_are_not_broken():
    text = unbroken("Add --categorical race (--cost FILE): 3 % of <b>.")
    assert text.count('<code class="option">--') == 2
    assert "--cost</code> FILE" in text
    assert "3\u00a0% of &lt;b&gt;." in text


def test_unknown_kinds_of_numbers_are_refused():
    with pytest.raises(DataError, match="`kind`"):
        number(1.0, "f9")


# ── The page ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_links_lead_somewhere_and_sections_are_in_order(name):
    ids = page(name).attributes("id")
    assert len(set(ids)) == len(ids)
    links = page(name).attributes("href")
    assert [link.removeprefix("#") for link in links] == SECTIONS
    assert all(link.startswith("#") and link[1:] in ids for link in links)
    assert [i for i in ids if i in SECTIONS] == SECTIONS


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_asked_of_the_network(name):
    text = report(name).page.read_text(encoding="utf-8")
    assert all(source.startswith("data:image/svg+xml,") for source in page(name).attributes("src"))
    assert not re.search(r"""(src|href|url)\s*[=(]\s*["']?\s*(https?:)?//""", text)
    tags = {tag for tag, _ in page(name).tags}
    assert not tags & {"link", "iframe", "object", "embed", "form"}
    assert "default-src 'none'" in text


@pytest.mark.parametrize("name", NAMES)
def test_the_only_script_is_the_one_that_the_policy_admits(name):
    text = report(name).page.read_text(encoding="utf-8")
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", text, re.DOTALL)
    [(kind, block), (plain, script)] = scripts
    assert kind == ' type="application/json" id="explore-data"'
    assert plain == ""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in text
    assert json.loads(block) == report(name).numbers["explore"]


@pytest.mark.parametrize("name", NAMES)
def test_figures_have_words_and_files(name):
    images = [attrs for tag, attrs in page(name).tags if tag == "img"]
    assert len(images) >= 10
    assert all(len(attrs["alt"]) > 30 for attrs in images)
    assert report(name).numbers["figures_left_out"] == []
    told = report(name).numbers["figures"]
    assert len(told) == len(images)
    assert {f"{f['name']}.svg" for f in told} == {p.name for p in (report(name).folder / "figures").iterdir()}


def test_hostile_names_are_text():
    text = report("hostile").page.read_text(encoding="utf-8")
    assert text.count("<script") == 2  # the page's own
    assert "<img src=x" not in text
    assert "<b>Hostile" not in text
    shown = "".join(page("hostile").text)
    for name in (*HOSTILE, *HOSTILE_CLASSES):
        assert name in shown  # in full: the page cuts by style, not by letters
    names = [(attrs.get("title"), tag) for tag, attrs in page("hostile").tags if attrs.get("class") == "name"]
    assert names
    assert {tag for _, tag in names} == {"bdi"}
    assert "49" not in [n for n, _ in names]  # no template was evaluated
    assert all(attr is None or not attr.startswith("on") for _, attrs in page("hostile").tags for attr in attrs)


def test_tables_have_a_column_for_each_number():
    """A key that is not in the rows would have failed under StrictUndefined; here: no table is without numbers."""
    for columns in TABLES.values():
        assert len({c.key for c in columns}) == len(columns)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_green_names_its_call(name):
    for line in report(name).numbers["conclusions"]:
        assert line["call"] or line["light"] == "green", line
    assert report(name).light in ("green", "amber", "red")


# ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def small(out, **settings):
    options = {"quick": True, "draws": 100, "models": ("lda",)} | settings
    return write_report(data("iris"), out, settings=ReportSettings(**options))


@pytest.mark.usefixtures("one_figure")
def test_the_same_seed_gives_the_same_report_and_progress_is_told(tmp_path):
    told = []
    first = small(tmp_path / "a")
    second = small(tmp_path / "b", progress=lambda stage, fraction: told.append((stage, fraction)))
    for found in (first, second):
        found.numbers["reproduce"].pop("timings")
    assert json.dumps(first.numbers) == json.dumps(second.numbers)
    fractions = [fraction for _, fraction in told]
    assert fractions == sorted(fractions)
    assert told[0][1] == 0.0
    assert told[-1] == ("done", 1.0)
    # By effort: the figures, one stage of many, are a good part of a quick report.
    shares = dict(told)
    assert shares["write"] - shares["draw figures"] > 0.25
    assert repr(first) == f"Report({str(tmp_path / 'a')!r}, light={first.light!r}, chosen={first.analysis.best!r})"
    figure = "figures/projection.svg"
    assert (first.folder / figure).read_bytes() == (second.folder / figure).read_bytes()


@pytest.mark.usefixtures("one_figure")
def test_a_failure_leaves_the_old_report(tmp_path, monkeypatch):
    out = tmp_path / "out"
    old = small(out).page.read_bytes()

    def fail(*args):
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(module, "render", fail)
        with pytest.raises(RuntimeError, match="broken"):
            small(out)
    assert (out / "index.html").read_bytes() == old
    assert [p.name for p in tmp_path.iterdir()] == ["out"]
    small(out)  # and a good one takes its place
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_other_files_are_not_overwritten(tmp_path):
    (tmp_path / "thesis.tex").write_text("ten years")
    with pytest.raises(StoreError, match="holds other files"):
        small(tmp_path)
    with pytest.raises(StoreError, match="is a file"):
        small(tmp_path / "thesis.tex")


def test_a_quick_report_does_not_import_pymc(tmp_path):
    code = (
        "import sys; from bayes_gda import load_example\n"
        "from bayes_gda.reporting.report import ReportSettings, write_report\n"
        "assert 'matplotlib' not in sys.modules and 'arviz_stats' not in sys.modules\n"
        f"write_report(load_example('iris'), {str(tmp_path / 'out')!r}, settings=ReportSettings(quick=True, draws=100,"
        " models=('naive',)))\n"
        "assert 'pymc' not in sys.modules and 'pytensor' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("one_figure")
def test_a_test_set_of_ones_own_is_used(tmp_path):
    train, test = data("iris").split(0.4, 3)
    settings = ReportSettings(quick=True, draws=100, models=("lda",))
    found = write_report(train, tmp_path / "out", settings=settings, test=test)
    assert found.numbers["data"]["test_given"]
    assert found.numbers["data"]["train_rows"] == 90
    with pytest.raises(DataError, match="`test` must have the features"):
        write_report(train, tmp_path / "other", settings=settings, test=data("pima"))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"models": ("lda", "svm")}, "`models` must be"),
        ({"models": ()}, "`models` must be"),
        ({"models": ("rda",)}, "got rda alone"),
        ({"draws": 10}, "`draws` must be"),
        ({"chains": 0}, "`chains` must be"),
        ({"formats": ("html", "docx")}, "`formats` must be one or both of html, md"),
        ({"formats": ()}, "`formats` must be"),
    ],
)
def test_settings_are_checked(options, match):
    with pytest.raises(DataError, match=match):
        ReportSettings(**options)


def test_models_and_costs_are_held_to_the_classes(tmp_path):
    with pytest.raises(DataError, match="`logistic` does not apply to 3 classes"):
        small(tmp_path / "a", models=("logistic",))
    with pytest.raises(DataError, match=r"`costs` must be \(A, 3\)"):
        small(tmp_path / "a", costs=[[0, 1], [1, 0]])
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_a_full_report_has_the_sampler_and_all_methods(tmp_path):
    settings = ReportSettings(draws=300, chains=2, models=("naive", "logistic", "softmax"))
    found = write_report(data("pima"), tmp_path / "full", settings=settings)
    tree = found.numbers
    assert [line["model"] for line in tree["sampling"]] == ["naive", "logistic", "softmax"]
    by = {m["name"]: m for m in tree["models"]}
    assert {x["method"] for x in by["logistic"]["predictions"]} == {"probit", "laplace", "ep", "mcmc"}
    assert {x["method"] for x in by["naive"]["predictions"]} == {"exact", "laplace", "mcmc"}
    exact, *others = by["naive"]["evidence"]
    assert exact["method"] == "exact"
    assert all(abs(x["difference"]) < 0.3 for x in others)
    bridge = by["logistic"]["evidence"][0]
    assert bridge["method"] == "bridge"
    assert {f["name"] for f in tree["figures"]} >= {"traces", "energy", "ess"}
    Page(found.page.read_text(encoding="utf-8"))
    assert (found.folder / "posterior" / "naive-mcmc.nc").exists()


@pytest.mark.slow
@pytest.mark.parametrize("case", ["one feature", "more actions than classes", "a class without held-out rows", "tiny"])
def test_odd_data_have_a_report_too(case, tmp_path):
    given, test, costs = data("iris"), None, None
    if case == "one feature":
        given = Dataset(given.X[:, 2:3], given.y, ("intercept",), ("top label", "reference", "mcmc"))
    elif case == "more actions than classes":
        costs = [[0, 1, 1], [1, 0, 1], [1, 1, 0], [0.3, 0.3, 0.3]]
    elif case == "a class without held-out rows":
        given, test = given.split(0.3, 0)
        test = test.subset(test.y < 2)
    else:
        X = np.random.default_rng(0).normal(size=(12, 2)) + 20 * np.repeat([0, 1], 6)[:, None]
        given = Dataset(X, np.repeat([0, 1], 6), ("a", "b"), (False, True))
    settings = ReportSettings(quick=True, draws=100, costs=costs)
    found = write_report(given, tmp_path / "out", settings=settings, test=test)
    assert len(found.numbers["figures"]) > 10
    assert all(c.call or c.light == "green" for c in found.conclusions)


def test_a_column_of_names_is_refused_by_its_name(tmp_path):
    """Titanic as it comes has the passengers' names, two of them twice: "There is not enough memory for this"."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"Name": [f"Mr. {i % 118}" for i in range(120)], "x": rng.normal(size=120)})
    frame["y"] = np.where(frame["x"] + rng.normal(size=120) > 0, "yes", "no")
    with pytest.raises(DataError, match=r"Column 'Name' has 118 levels in 120 rows.* --drop Name"):
        write_report(Dataset.from_frame(frame, target="y"), tmp_path / "out", settings=ReportSettings(quick=True))
