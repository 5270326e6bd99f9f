"""Files that the package wrote before its verdicts became one type still load, and answer what they answered then."""

import copy
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from old_formats import old_verdicts

from bayes_gda.errors import StoreError
from bayes_gda.store import files, formats, load

FOLDER = Path(__file__).parent / "format_2"
ANSWERS = json.loads((FOLDER / "answers.json").read_text(encoding="utf-8"))
NEW = np.array([[0.3, -0.2], [-1.5, 0.7], [4.0, 4.0]])


def rows_for(name):
    """The rows that the old code predicted."""
    if name == "lda-exact":
        return pd.DataFrame(NEW, columns=["u", "v"])
    return NEW[:, :1] if name in ("qda-lkj-laplace", "logistic-corrected") else NEW


def number(value):
    return np.nan if value is None else value  # JSON has no nan


def check_answers(model, name):
    expected, X = ANSWERS[name], rows_for(name)
    assert (model.trust_.verdict, model.trust_.reason) == (expected["verdict"], expected["reason"])
    assert model.inference_ == expected["inference"]
    np.testing.assert_equal(model.trust_.pareto_k, number(expected["pareto_k"]))
    np.testing.assert_equal(model.log_evidence_, number(expected["log_evidence"]))
    np.testing.assert_allclose(model.predict_proba(X), expected["proba"], rtol=1e-12)
    np.testing.assert_allclose(model.predict_interval(X), expected["interval"], rtol=1e-9)


def test_every_file_has_answers():
    assert {path.stem for path in FOLDER.glob("*.nc")} == set(ANSWERS)


@pytest.mark.parametrize("name", ANSWERS)
def test_an_old_file_answers_as_it_did_and_so_does_a_new_one_of_it(name, tmp_path):
    path = FOLDER / f"{name}.nc"
    assert files.read(path)[1] == 2
    model = load(path)
    check_answers(model, name)
    model.save(tmp_path / "new.nc")
    assert files.read(tmp_path / "new.nc")[1] == 3
    again = load(tmp_path / "new.nc")
    check_answers(again, name)
    assert vars(again).keys() == vars(model).keys()
    assert again.posterior_.identical(model._draws())
    assert again.summary().equals(model.summary())
    assert str(again.trust_) == str(model.trust_)


EVIDENCE = {"type": "Importance", "fields": {"pareto_k": 0.9, "draws": {"array": "trust_.laplace.draws"}}}
WORDS = {"verdict": "needs-mcmc", "reason": "r", "next_step": "s"}
NOTHING = {"importance": None, "diagnosis": None, "before": None, "monte_carlo": None, "propagation": None}
APPROXIMATE = {"type": "Verdict", "fields": WORDS | NOTHING | {"importance": EVIDENCE}}
DIAGNOSIS = {"type": "Diagnosis", "fields": {"verdict": "good"}}
SAMPLED = {
    "type": "Verdict",
    "fields": WORDS | NOTHING | {"verdict": "sampled", "diagnosis": DIAGNOSIS, "before": APPROXIMATE},
}


@pytest.mark.parametrize("new", [APPROXIMATE, SAMPLED], ids=["trust", "sampled after it"])
def test_old_verdicts_become_new_ones_wherever_they_stand(new):
    old = old_verdicts(new)
    assert old != new
    given = formats.Content({"estimator": "E", "fitted": {"trust_": old, "other_": {"tuple": [old, 1]}}}, {}, {})
    before = copy.deepcopy(given.record)
    record = formats._two_to_three(given).record
    assert record == {"estimator": "E", "fitted": {"trust_": new, "other_": {"tuple": [new, 1]}}}
    assert given.record == before


@pytest.mark.parametrize(
    "spoil",
    [
        lambda record: record.pop("fitted"),
        lambda record: record.update(fitted=3),
        lambda record: record["fitted"]["trust_"]["fields"].pop("reason"),
        lambda record: record["fitted"]["trust_"]["fields"].pop("draws"),
        lambda record: record["fitted"]["trust_"]["fields"].update(before=None),
        lambda record: record["fitted"]["trust_"]["fields"].update(extra=1),
        lambda record: record["fitted"]["trust_"].update(fields=[]),
        lambda record: record["fitted"]["trust_"].update(extra=1),
        lambda record: record["fitted"]["trust_"].update(type="Verdict"),
    ],
)
def test_an_old_record_that_was_edited_is_refused_in_one_line(spoil, tmp_path):
    tree, version = files.read(FOLDER / "logistic-laplace.nc")
    record = json.loads(tree["bayes_gda"].attrs["record"])
    assert record["fitted"]["trust_"]["type"] == "Trust"
    spoil(record)
    tree["bayes_gda"].attrs["record"] = json.dumps(record)
    files.write(tmp_path / "edited.nc", tree, version=version)
    with pytest.raises(StoreError, match=r"^[^\n]*does not hold a valid model[^\n]*$"):
        load(tmp_path / "edited.nc")
