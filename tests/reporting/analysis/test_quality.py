"""What deserves a look in a table: planted defects are found, and clean tables are left in peace."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from bayes_gda.data.examples import load_example
from bayes_gda.data.table import Dataset
from bayes_gda.reporting.analysis.quality import inspect_table
from bayes_gda.reporting.analysis.soundness import CLEAN, remarks, sound_data


def table(n=60, K=2, seed=0, **columns):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    frame = {"a": rng.normal(size=n) + 0.5 * y, "b": rng.normal(size=n)} | columns
    return Dataset.from_arrays(np.column_stack(list(frame.values())), y, feature_names=list(frame))


def kinds(data):
    return {f.kind: f for f in inspect_table(data)}


def test_a_clean_table_has_nothing_to_report():
    assert inspect_table(table()) == ()


def test_identifiers_are_whole_numbers_that_are_all_different():
    found = kinds(table(number=np.random.default_rng(1).permutation(60) + 85.0))
    assert found["identifier"].columns == ("number",)
    assert "identifier" not in kinds(table(number=np.r_[0, 0, np.arange(58)].astype(float)))
    assert "identifier" not in kinds(table(number=np.arange(60) + 0.5))
    assert "identifier" not in kinds(table(n=12, number=np.arange(12.0)))


def test_copies_are_found_in_groups_whatever_their_units():
    b = table().X[:, 1]
    found = kinds(table(grams=1000 * b, below=-b))
    assert found["copies"].columns == ("b", "grams", "below")


@pytest.mark.parametrize("K", [2, 3])
def test_a_feature_that_alone_tells_the_classes_apart(K):
    y = np.arange(60) % K
    found = kinds(table(K=K, target=-3.0 * y + np.random.default_rng(2).normal(scale=0.3, size=60)))
    assert found["separator"].columns == ("target",)
    assert found["separator"].value == pytest.approx(1.0)


def test_one_separated_class_of_three_is_no_leak():
    found = inspect_table(load_example("iris"))  # setosa alone is apart
    assert "separator" not in {f.kind for f in found}


def test_the_separation_is_the_area_under_the_roc_curve():
    y = np.arange(400) % 2
    x = 3.8 * y + np.random.default_rng(3).normal(size=400)
    found = kinds(table(n=400, leak=x))
    assert found["separator"].value == pytest.approx(roc_auc_score(y, x))


def test_outliers_are_counted_and_placed():
    b = table().X[:, 1].copy()
    b[[7, 30]] = 999.0
    found = kinds(table(c=b))
    assert found["outliers"].columns == ("c",)
    assert found["outliers"].rows == 2
    assert found["outliers"].places == (7, 30)
    assert "outliers" not in kinds(table(mostly=np.r_[np.zeros(50), np.arange(10)]))  # no scale to judge by


def test_repeated_rows_and_contradictions():
    data = table()
    X, y = np.vstack([data.X, data.X[:3]]), np.r_[data.y, data.y[:2], 1 - data.y[2]]
    found = kinds(Dataset.from_arrays(X, y))
    assert found["repeated rows"].rows == 3
    assert found["repeated rows"].places == (60, 61, 62)
    assert found["conflict"].places == (2, 62)


def test_features_of_two_values_and_rare_classes():
    y = np.r_[np.zeros(96), np.ones(4)].astype(int)
    rng = np.random.default_rng(4)
    data = Dataset.from_arrays(
        np.column_stack([rng.normal(size=100), rng.integers(2, size=100)]), y, class_names=["no", "yes"]
    )
    found = kinds(data)
    assert found["two values"].columns == ("x2",)
    assert (found["rare class"].columns, found["rare class"].rows, found["rare class"].value) == (("yes",), 4, 0.04)


def test_gaps_are_looked_past():
    data = table(number=np.arange(60.0))
    X = data.X.copy()
    X[::7, :] = np.where(np.arange(3) == 0, np.nan, X[::7])
    found = kinds(Dataset.from_arrays(X, data.y, missing="keep"))
    assert found["identifier"].columns == ("x3",)


def test_a_column_that_is_the_sum_of_others():
    data = table(c=np.random.default_rng(5).normal(size=60))
    total = 100 + 2 * data.X[:, 0] - data.X[:, 2]
    found = kinds(table(c=data.X[:, 2], total=total))
    assert found["sum"].columns == ("total", "a", "c")  # b has no part in it
    assert "copies" not in found
    near = total + 1e-3 * np.random.default_rng(6).normal(size=60)
    assert "sum" not in kinds(table(c=data.X[:, 2], total=near))
    few = Dataset.from_arrays(np.random.default_rng(7).normal(size=(24, 40)), np.arange(24) % 2)
    assert "sum" not in kinds(few)  # any feature is one where there are more than rows


def test_codes_of_a_category_are_left_out_and_the_category_is_kept():
    rng = np.random.default_rng(8)
    level = rng.integers(3, size=90)
    frame = pd.DataFrame({"code": level + 1, "x": rng.normal(size=90), "sexcode": rng.integers(2, size=90)})
    frame["ward"] = np.array(["north", "south", "west"])[level]
    frame["sex"] = np.where(frame["sexcode"] == 1, "female", "male")
    frame["y"] = np.arange(90) % 2
    data = Dataset.from_frame(frame, target="y")
    found = kinds(data)
    assert found["sum"].columns == ("code", "ward[south]", "ward[west]")
    assert found["copies"].columns == ("sex[male]", "sexcode")
    said = sound_data(remarks(inspect_table(data), data), "report t.csv")
    assert said.light == "amber"
    assert "code is an exact linear function of ward[south] and ward[west]" in said.sentence
    assert said.call == "report t.csv --drop sexcode --drop code"
    # What the call does: nothing is collinear any more.
    again = Dataset.from_frame(frame.drop(columns=["sexcode", "code"]), target="y")
    assert not {"sum", "copies"} & set(kinds(again))


def test_equal_rows_of_coarse_features_are_no_copies():
    """Titanic has sex, class and age in years: two thirds of its rows repeat another, and nothing is wrong."""
    rng = np.random.default_rng(9)
    coarse = np.column_stack([rng.integers(2, size=400), rng.integers(3, size=400), rng.integers(20, size=400)])
    data = Dataset.from_arrays(coarse.astype(float), np.arange(400) % 2)
    [finding] = [f for f in inspect_table(data) if f.kind == "repeated rows"]
    assert finding.value == pytest.approx(1, abs=0.2)  # the features are independent
    [said] = [r for r in remarks([finding], data) if "repeat" in r.sentence]
    assert said.light == "green"
    fine = table(n=200)
    copied = Dataset.from_arrays(np.vstack([fine.X, fine.X[:40]]), np.r_[fine.y, fine.y[:40]])
    [finding] = [f for f in inspect_table(copied) if f.kind == "repeated rows"]
    [said] = [r for r in remarks([finding], copied) if "repeat" in r.sentence]
    assert said.light == "amber"
    assert "held-out rows are not new" in said.step


def test_what_is_said_of_a_sound_table_counts_its_notes():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=60), rng.integers(0, 2, 60)])
    classes = np.append(np.arange(60) % 2, 1)
    noted = Dataset.from_arrays(np.vstack([X, X[:1]]), classes)  # a row again, in another class
    said = remarks(inspect_table(noted), noted)
    assert {r.light for r in said} == {"green"}
    assert any("same features as a row of another class" in r.sentence for r in said)
    found = sound_data(said, "report t.csv")
    assert found.light == "green"
    assert found.sentence == f"{CLEAN} {len(said)} notes on rows or columns are in the section “The data”."
    assert "contradict" not in CLEAN
    assert "repeat" not in CLEAN
    assert sound_data([], "report t.csv").sentence == CLEAN


def test_rows_left_out_call_for_a_report_that_keeps_them():
    """Titanic: the next call was the report itself, which would have left out the same rows."""
    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:9, 0] = np.nan
    dropped = Dataset.from_arrays(X, np.arange(60) % 2, missing="drop")
    found = sound_data(remarks(inspect_table(dropped), dropped), "report t.csv --drop id --missing drop --seed 0")
    assert found.light == "amber"
    assert found.call == "report t.csv --drop id --missing keep --seed 0"


def test_an_identifier_of_rows_in_the_order_of_their_classes_is_a_leak():
    """Diabetes: the rows stand by their class, and the scores with their numbers were green."""
    X = np.column_stack([np.arange(60.0), np.random.default_rng(0).normal(size=60)])
    said = {}
    for name, y in (("sorted", np.repeat([0, 1, 2], 20)), ("mixed", np.arange(60) % 3)):
        rows = Dataset.from_arrays(X, y, feature_names=["rownames", "u"])
        said[name] = next(
            r for r in remarks(inspect_table(rows), rows) if r.columns == ("rownames",) and "holds" in r.sentence
        )
    assert said["sorted"].leak
    assert "tells classes apart all the same (AUC up to 1.000)" in said["sorted"].sentence
    assert not said["mixed"].leak
    assert "AUC" not in said["mixed"].sentence


def test_equal_rows_are_seen_beside_their_numbers():
    """Caravan with its row numbers: no row seemed to repeat another."""
    X = np.column_stack([np.arange(60.0), np.tile(np.random.default_rng(0).normal(size=30), 2)])
    found = {f.kind: f for f in inspect_table(Dataset.from_arrays(X, np.repeat([0, 1], 30)))}
    assert found["repeated rows"].rows == 30
    assert found["conflict"].rows == 60
    assert "repeated rows" not in {f.kind for f in inspect_table(Dataset.from_arrays(X[:, :1], np.arange(60) % 2))}
