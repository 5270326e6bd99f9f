"""The study of tables with columns of any type: its tables, paired scores, and what its section says."""

import numpy as np
import pytest
from proof.mixed_section import conclusions, section
from proof.mixed_study import MODELS, paired, score_table
from proof.mixed_tables import TABLES, load


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_are_there(name):
    X, y = load(name)
    assert len(X) == len(y)
    assert y.nunique() >= 2
    assert not y.isna().any()
    assert TABLES[name].target not in X.columns


def test_every_model_is_scored_on_the_same_rows():
    result = score_table("nodal", splits=2)
    assert set(result["loss"]) == set(MODELS)
    assert all(len(values) == 2 and np.isfinite(values).all() for values in result["loss"].values())
    html = section({"splits": 2, "tables": {"nodal": result}})
    assert "nodal (35 rows, 5 columns, 0 with gaps)" in html


def test_differences_are_paired_and_allow_for_overlap():
    result = {"loss": {"mixed": [0.5, 0.6, 0.7], "other": [0.6, 0.7, 0.8]}, "train": 20, "test": 10}
    gap, error = paired(result, "other")
    assert gap == pytest.approx(0.1)
    assert error == pytest.approx(0.0, abs=1e-12)
    result["loss"]["other"] = [0.6, 0.7, 1.1]
    gap, error = paired(result, "other")
    assert error == pytest.approx(np.sqrt(0.03 * (1 / 3 + 1 / 2)))
    (line,) = conclusions({"one": result})
    assert line.startswith("other: mixed has the lower log loss on 0 of 1 tables")
