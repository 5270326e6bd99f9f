"""Two reports against each other: what changed, and what is noise."""

import copy
import json
from pathlib import Path
from statistics import NormalDist

import pytest
from command_line import run, run_json

from bayes_gda.errors import DataError
from bayes_gda.reporting.difference import DRAWN, compare_reports, read_report

REPORTS = Path(__file__).resolve().parents[2] / "reports"


@pytest.fixture
def pima():
    return read_report(REPORTS / "pima")


def other_rows(report):
    out = copy.deepcopy(report)
    out["reproduce"]["fingerprint"] = "another"
    return out


def test_a_report_equals_itself(pima):
    found = compare_reports(pima, pima)
    assert found.same
    assert len(found.numbers) > 40
    assert found.made == ()
    assert found.predictions[0].endswith("held-out rows that both list, the probabilities are the same.")


def test_noise_is_the_standard_error_of_other_rows_and_a_tenth_of_it_of_the_same(pima):
    """Held-out accuracy of the first model, moved by z combined standard errors, around the limit of Bonferroni."""
    name = "accuracy (held-out, logistic)"
    line = pima["comparison"]["held_out"][0]
    for base, scale in ((pima, DRAWN), (other_rows(pima), 1.0)):
        m = len(compare_reports(base if scale == 1 else pima, pima).numbers)
        limit = NormalDist().inv_cdf(1 - 0.05 / (2 * m))
        for z, beyond in ((0.98 * limit, False), (1.02 * limit, True)):
            moved = copy.deepcopy(base)
            moved["comparison"]["held_out"][0]["accuracy"] += z * scale * 2**0.5 * line["accuracy_se"]
            change = next(c for c in compare_reports(pima, moved).numbers if c.name == name)
            assert change.beyond is beyond
            assert change.noise == pytest.approx(scale * 2**0.5 * line["accuracy_se"])


def test_log_odds_ratios_have_the_noise_of_their_intervals(pima):
    line = pima["effects"]["odds"][0]
    name = f"log odds ratio of {line['feature']}, {line['class']} ({pima['chosen']['name']})"
    change = next(c for c in compare_reports(pima, other_rows(pima)).numbers if c.name == name)
    moved = read_report(REPORTS / "pima")
    moved["effects"]["odds"][0]["per_unit_upper"] = None
    assert name not in [c.name for c in compare_reports(pima, moved).numbers]
    from math import log, sqrt

    width = log(line["per_unit_upper"] / line["per_unit_lower"])
    assert change.noise == pytest.approx(sqrt(2) * width / (2 * NormalDist().inv_cdf(0.95)))


def test_an_exact_number_has_no_noise(pima):
    moved = copy.deepcopy(pima)
    line = next(line for line in moved["comparison"]["evidence"] if line["error"] == 0)
    line["log_evidence"] += 1e-3
    assert [c.name for c in compare_reports(pima, moved).changed] == [f"log evidence ({line['model']})"]
    # Of other rows the evidence is another quantity.
    assert not [c for c in compare_reports(pima, other_rows(pima)).numbers if "evidence" in c.name]


def test_conclusions_models_data_and_settings_are_told(pima):
    moved = copy.deepcopy(pima)
    moved["conclusions"][0]["light"] = "red"
    del moved["conclusions"][-1]
    moved["chosen"]["name"] = "lda"
    moved["models"][0]["method"] = "mcmc"
    moved["reproduce"]["seed"] = 7
    found = compare_reports(pima, moved)
    assert not found.same
    first, last = found.conclusions
    assert (first["topic"], first["before"]["light"], first["after"]["light"]) == (
        "Are the data sound?",
        "green",
        "red",
    )
    assert last["after"] is None
    assert "The chosen model: logistic → lda." in found.models
    assert "method of lda: exact → mcmc." in found.models
    assert found.made == ("seed: 0 → 7",)
    quick = copy.deepcopy(pima)
    quick["reproduce"]["sampler"] = None
    assert compare_reports(pima, quick).made == ("sampler: pymc → none",)
    iris = compare_reports(pima, read_report(REPORTS / "iris"))
    assert "rows: 532 → 150" in iris.data
    assert "classes new: setosa, versicolor, virginica" in iris.data
    seed_only = copy.deepcopy(pima)
    seed_only["reproduce"]["seed"] = 7
    assert compare_reports(pima, seed_only).same  # made differently, with the same answer


def test_predictions_of_common_rows_are_compared(pima):
    moved = copy.deepcopy(pima)
    row = moved["explore"]["rows"][3]
    row["p"] = row["p"][::-1]
    (said,) = compare_reports(pima, moved).predictions
    assert f"(row {row['row']}); the predicted class changes in 1." in said


def test_the_command_leaves_as_diff_does(tmp_path, pima):
    same = run("diff", REPORTS / "pima", REPORTS / "pima" / "report.json")
    assert "The reports agree" in same.stdout
    different = run_json("diff", REPORTS / "pima", REPORTS / "iris", code=1)
    assert different["same"] is False
    assert {line["name"] for line in different["numbers"] if line["beyond"]}
    text = run("diff", REPORTS / "pima", REPORTS / "iris", code=1).stdout
    assert "numbers changed by more than their noise" in text
    assert "Within their noise" in run("diff", REPORTS / "pima", REPORTS / "pima", "-v").stdout
    assert run("diff", REPORTS / "pima", REPORTS / "iris", "-q", code=1).stdout == ""
    assert "Give the folder of a report" in run("diff", REPORTS / "pima", tmp_path, code=2).stderr
    (tmp_path / "report.json").write_text(json.dumps({"a": 1}))
    assert "is not that of a report" in run("diff", REPORTS / "pima", tmp_path, code=2).stderr


def test_a_report_of_another_shape_is_an_error(pima):
    with pytest.raises(DataError, match="cannot be compared: KeyError"):
        compare_reports(pima, {**pima, "performance": {}})
