"""What is not installed is named with the command that installs it."""

import subprocess
import sys

import pandas as pd
import pytest

from bayes_gda import read_table
from bayes_gda.data.large.batches import open_batches
from bayes_gda.errors import MissingDependencyError
from bayes_gda.extras import require


@pytest.fixture
def no_arrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)


@pytest.mark.parametrize("name", ["rows.parquet", "rows.feather"])
def test_arrow_files_say_what_they_need(tmp_path, no_arrow, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(MissingDependencyError, match=r"needs pyarrow.*pip install 'bayes-gda\[arrow\]'"):
        read_table(tmp_path / name, target="y")


def test_batches_say_what_they_need(tmp_path, no_arrow):
    pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]}).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.raises(MissingDependencyError, match="read in batches needs pyarrow"):
        open_batches(tmp_path / "rows.csv", target="y")


def test_an_import_that_fails_inside_a_package_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "openpyxl.py").write_text("import nonsense_within")
    monkeypatch.delitem(sys.modules, "openpyxl", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nonsense_within"):
        require("openpyxl", "An .xlsx file")


def test_estimators_fit_and_predict_without_pyarrow():
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "import numpy as np, pandas as pd, bayes_gda as bg\n"
        "x = np.random.default_rng(0).normal(size=(40, 2)); y = np.arange(40) % 2\n"
        "frame = pd.DataFrame(x, columns=['a', 'b'])\n"
        "print(bg.BayesianLDA().fit(frame, y).predict(frame[:2]).shape)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
