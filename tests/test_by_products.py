"""What was fitted is never lost with a by-product that fails: an evidence, a score, a figure, a sensitivity."""

import json

import numpy as np
import pytest

from bayes_gda import load_example
from bayes_gda.errors import ConvergenceError, attempt
from bayes_gda.estimators import BayesianLogisticRegression
from bayes_gda.evaluation import scorecard
from bayes_gda.families import base
from bayes_gda.reporting.page import figures
from bayes_gda.reporting.report import ReportSettings, write_report

PIMA = load_example("pima")
QUICK = ReportSettings(quick=True, draws=100, chains=2, models=("lda", "logistic"))


def break_down(*args, **kwargs):
    raise ConvergenceError("It did not converge. Use more draws.")


def test_a_reason_is_one_sentence():
    assert attempt(lambda: 3) == (3, "")
    assert attempt(break_down) == (None, "It did not converge. Use more draws.")
    assert attempt(lambda: 1 / 0) == (None, "ZeroDivisionError: division by zero.")
    with pytest.raises(KeyboardInterrupt):
        attempt(lambda: (_ for _ in ()).throw(KeyboardInterrupt()))


@pytest.mark.parametrize("broken", [break_down, lambda *args, **kwargs: 1 / 0])
def test_draws_stay_whatever_fails_after_them(broken, monkeypatch):
    monkeypatch.setattr(base, "bridge_log_evidence", broken)
    model = BayesianLogisticRegression(inference="mcmc", draws=800, chains=2, random_state=1).fit(PIMA.X, PIMA.y)
    assert np.isnan(model.log_evidence_)
    assert "The log evidence is not known: " in model.trust_.reason
    assert np.isfinite(model.predict_proba(PIMA.X)).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The draws cannot be relied upon:bayes_gda.errors.InferenceWarning")
def test_draws_stay_where_their_evidence_fails():
    """500 features of 100 rows: no proposal is close enough to the posterior for a bridge."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 500))
    y = (X[:, 0] + rng.logistic(size=100) > 0).astype(int)
    model = BayesianLogisticRegression(inference="mcmc", draws=1000, chains=2, random_state=1).fit(X, y)
    assert model.inference_ == "mcmc"
    assert np.isnan(model.log_evidence_)
    assert "The log evidence is not known: " in model.trust_.reason
    assert np.isfinite(model.predict_proba(X)).all()


def report_of(folder):
    report = write_report(PIMA, folder, settings=QUICK)
    return report, json.loads((folder / "report.json").read_text()), report.page.read_text(encoding="utf-8")


def test_a_report_without_leave_one_out_compares_held_out_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(scorecard, "model_loo", break_down)
    report, numbers, page = report_of(tmp_path / "r")
    assert numbers["comparison"]["loo"] == []
    (which,) = (c for c in report.conclusions if c.topic == "Which model?")
    assert which.light == "amber"
    assert "held-out rows" in which.sentence
    assert "has no leave-one-out: It did not converge." in page
    assert len(list((tmp_path / "r" / "posterior").iterdir())) == 2


def test_one_model_without_leave_one_out_is_left_out_of_the_ranking(tmp_path, monkeypatch):
    real = scorecard.model_loo
    monkeypatch.setattr(
        scorecard,
        "model_loo",
        lambda model, *args, **kw: (real if model.generative else break_down)(model, *args, **kw),
    )
    report, numbers, _ = report_of(tmp_path / "r")
    assert [line["model"] for line in numbers["comparison"]["loo"]] == ["lda"]
    assert report.analysis.best == "lda"


def test_a_report_without_sensitivity_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(scorecard, "prior_sensitivity", break_down)
    report, numbers, page = report_of(tmp_path / "r")
    assert numbers["sensitivity"] is None
    assert "Its sensitivity to the prior is not known: It did not converge." in page
    assert [c.light for c in report.conclusions if c.topic == "Are the results sensitive to the prior?"] == ["amber"]


def test_a_figure_that_fails_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(figures.plots, "plot_reliability", break_down)
    _, numbers, page = report_of(tmp_path / "r")
    assert [line["name"] for line in numbers["figures_left_out"]] == ["reliability"]
    assert "Figure “Reliability curves” was not drawn. It did not converge." in page
    assert len(numbers["figures"]) > 5
