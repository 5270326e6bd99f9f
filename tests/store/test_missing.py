"""Models of rows with gaps come back from a file as they were; streams go on from a file as without it."""

import numpy as np
import pytest
from gaps import remove, simulate
from stored_answers import answers

from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.store import load

GAUSSIAN = pytest.mark.parametrize("cls", [BayesianLDA, BayesianQDA, BayesianNaiveGaussian])
FEW = {"draws": 50, "chains": 2}
X, Y = simulate(n=60, d=3, K=2, seed=0)
GAPS = remove(X, 0.25, seed=1)
GAPS[4] = np.nan


@GAUSSIAN
def test_a_model_of_gaps_predicts_the_same_bits(cls, tmp_path):
    model = cls(draws=200, chains=2).fit(GAPS, Y)
    model.save(tmp_path / "m.nc")
    back = load(tmp_path / "m.nc")
    before, after = answers(model, GAPS), answers(back, GAPS)
    assert before.keys() == after.keys()
    for name in before:
        assert before[name].tobytes() == after[name].tobytes(), name
    np.testing.assert_array_equal(back.model_.moments.values, model.model_.moments.values)
    np.testing.assert_array_equal(back.worth_measuring(GAPS), model.worth_measuring(GAPS))
    assert vars(back).keys() == vars(model).keys()
    with pytest.raises(DataError, match="fitted to rows with missing values"):
        back.partial_fit(X, Y)
    if cls is not BayesianNaiveGaussian:
        stored = back.posterior_["posterior"].attrs["fingerprint"]
        assert stored == Dataset.from_arrays(GAPS, Y, missing="keep").fingerprint


@pytest.mark.parametrize(
    "model",
    [
        BayesianLDA(**FEW),
        BayesianQDA(**FEW),
        BayesianNaiveGaussian(**FEW),
        BayesianLogisticRegression(inference="laplace", **FEW),
    ],
    ids=lambda model: type(model).__name__,
)
def test_a_stream_goes_on_from_a_file_as_without_it(model, tmp_path):
    """The second batch, before and after the way through a file: the same bits."""
    model.partial_fit(X[:40], Y[:40], classes=[0, 1])
    model.save(tmp_path / "m.nc")
    back = load(tmp_path / "m.nc")
    for one in (model, back):
        one.partial_fit(X[40:], Y[40:])
    rows = X if isinstance(model, BayesianLogisticRegression) else GAPS
    before, after = answers(model, rows), answers(back, rows)
    for name in before:
        assert before[name].tobytes() == after[name].tobytes(), name


def test_the_parameter_missing_is_stored(tmp_path):
    BayesianLogisticRegression(missing="drop", inference="laplace").fit(GAPS, Y).save(tmp_path / "m.nc")
    assert load(tmp_path / "m.nc").missing == "drop"
