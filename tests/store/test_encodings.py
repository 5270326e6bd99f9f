"""How a table became features travels with the model; a model without it is read as before."""

import json

import numpy as np
import pytest

from bayes_gda.data.columns import Column, Encoding
from bayes_gda.errors import StoreError
from bayes_gda.estimators import BayesianLDA
from bayes_gda.store import encodings, files, load, load_encoding, save

COLUMNS = (
    Column("plain", "numeric"),
    Column("flag\0\udcff", "boolean"),
    Column("island ‮", "categorical", ("Biscoe", "Dream", "a\0")),
    Column("number", "categorical", (1, 2.5, float("inf"))),
)
ENCODING = Encoding(COLUMNS)
rng = np.random.default_rng(0)
FITTED = BayesianLDA(draws=10, chains=2).fit(rng.normal(size=(30, 6)), np.arange(30) % 2)


def test_it_comes_back_and_the_model_with_it(tmp_path):
    path = tmp_path / "m.nc"
    save(FITTED, path, encoding=ENCODING)
    found = load_encoding(path)
    assert found == ENCODING
    assert [type(level) for level in found.columns[3].levels] == [int, float, float]
    X = rng.normal(size=(5, 6))
    np.testing.assert_array_equal(load(path).predict_proba(X), FITTED.predict_proba(X))
    save(FITTED, path)
    assert load_encoding(path) is None


def test_one_that_does_not_fit_is_not_saved(tmp_path):
    path = tmp_path / "m.nc"
    with pytest.raises(StoreError, match="the 6 features of the model; it makes 1"):
        save(FITTED, path, encoding=Encoding(COLUMNS[:1]))
    assert not path.exists()


@pytest.mark.parametrize(
    "node",
    [
        3,
        {"tuple": []},
        {"tuple": [{"tuple": ["x", "wild", {"tuple": []}]}]},
        {"tuple": [{"tuple": ["x", "numeric"]}]},
        {"tuple": [{"tuple": ["x", "numeric", {"tuple": ["a", "b"]}]}]},
        {"tuple": [{"tuple": ["x", "categorical", {"tuple": ["a"]}]}]},
        {"tuple": [{"tuple": ["x", "categorical", {"tuple": ["a", "a"]}]}]},
        {"tuple": [{"tuple": ["x", "categorical", {"tuple": ["a", 1]}]}]},
        {"tuple": [{"tuple": ["x", "categorical", {"tuple": [None, "a"]}]}]},
    ],
)
def test_an_edited_file_is_refused(tmp_path, node):
    with pytest.raises(StoreError):
        encodings.from_node(node, 1)
    path = tmp_path / "m.nc"
    save(FITTED, path, encoding=ENCODING)
    tree, _ = files.read(path)
    record = json.loads(tree["bayes_gda"].attrs["record"]) | {"encoding": node}
    tree["bayes_gda"].attrs["record"] = json.dumps(record)
    files.write(path, tree)
    with pytest.raises(StoreError, match="does not hold a valid model"):
        load_encoding(path)
