"""Columns that number the rows are noticed, and only those."""

import numpy as np
import pandas as pd
import pytest
from command_line import run

from bayes_gda.data.frames.index import warn_of_index
from bayes_gda.data.frames.reading import read_table
from bayes_gda.errors import DataWarning

RNG = np.random.default_rng(1)
TABLE = pd.DataFrame({"a": RNG.normal(size=30).round(2), "y": np.arange(30) % 2})


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(np.arange(30), name="x"),
        pd.Series(np.arange(30) + 1.0, name="i"),
        pd.Series(RNG.permutation(30), name="rownames"),
    ],
)
def test_an_index_is_named_with_the_remedy(tmp_path, column):
    TABLE.assign(**{column.name: column}).to_csv(tmp_path / "t.csv", index=False)
    with pytest.warns(DataWarning, match=f"Column '{column.name}' numbers the rows.*drop=.'{column.name}'."):
        read_table(tmp_path / "t.csv", target="y")
    assert read_table(tmp_path / "t.csv", target="y", drop=[column.name]).feature_names == ("a",)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(np.arange(30)[::-1], name="falling"),
        pd.Series(np.arange(30) + 2, name="from two"),
        pd.Series(np.arange(30) // 2, name="rownames"),
        pd.Series(np.arange(30) % 2 == 0, name="flag"),
    ],
)
def test_other_columns_are_not(recwarn, column):
    warn_of_index(TABLE.assign(**{column.name: column}), "y")
    warn_of_index(pd.DataFrame({"dose": np.arange(10), "y": 0}), "y")  # too few rows to tell
    warn_of_index(pd.DataFrame({"index": np.arange(30)}), "index")  # the target
    assert not recwarn.list


def test_a_nameless_first_column_is_left_out(tmp_path):
    """As `df.to_csv(path)` and R's write.csv have it."""
    TABLE.to_csv(tmp_path / "with.csv")
    TABLE.to_csv(tmp_path / "without.csv", index=False)
    with pytest.warns(DataWarning, match="has no name and a different value in every row: left out"):
        found = read_table(tmp_path / "with.csv", target="y")
    assert found == read_table(tmp_path / "without.csv", target="y")


def test_the_command_line_says_so_in_its_own_words(tmp_path):
    TABLE.rename_axis("row names").reset_index().rename(columns={"row names": "index"}).to_csv(
        tmp_path / "t.csv", index=False
    )
    words = ("fit", tmp_path / "t.csv", "-t", "y", "-m", "lda", "-o", tmp_path / "m.nc")
    said = run(*words).stderr
    assert "Warning: Column 'index' numbers the rows" in said
    assert "--drop 'index'" in said
    assert "Warning" not in run(*words, "--drop", "index").stderr
    TABLE.to_csv(tmp_path / "new.csv")
    assert run("predict", tmp_path / "m.nc", tmp_path / "new.csv", "--interval", "0").stderr == ""
