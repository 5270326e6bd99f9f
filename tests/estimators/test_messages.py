"""Inputs that no classifier can use: one line that names the cause and the remedy, whatever the library below says."""

import subprocess
import sys

import numpy as np
import pytest

from bayes_gda.errors import DataError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((40, 2)), np.repeat([0, 1], 20)
DATES = np.datetime64("2020-01-01") + np.arange(80).reshape(40, 2)


def objects(*pair):
    return np.array([pair[0]] * 20 + [pair[1]] * 20, dtype=object)


CASES = {
    "labels of two types": (X, objects(1, "a"), "`y` must hold labels of one type; got numbers and str"),
    "labels and None": (X, objects(None, "a"), "`y` is missing in 20 of 40 rows"),
    "labels and tuples": (X, objects("a", ()), "`y` must hold labels of one type; got str and tuple"),
    "dates": (DATES, Y, "`X` holds dates or times"),
    "durations": (DATES - DATES[0], Y, "`X` holds dates or times"),
    "complex numbers": (X + 1j, Y, "Complex data not supported: `X` holds complex numbers"),
    "complex labels": (X, Y + 1j, "Complex data not supported: `y` holds complex numbers"),
    "complex numbers in lists": ((X + 1j).tolist(), Y, "Complex data not supported: `X` holds complex numbers"),
}


@pytest.mark.parametrize("cls", [BayesianLDA, BayesianLogisticRegression])
@pytest.mark.parametrize("case", CASES)
def test_bad_rows_are_named_in_one_line(cls, case):
    rows, labels, message = CASES[case]
    with pytest.raises(DataError, match=message) as caught:
        cls().fit(rows, labels)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("rows", [X + 1j, DATES])
def test_bad_rows_to_predict_are_named_in_one_line(rows):
    model = BayesianLDA().fit(X, Y)
    with pytest.raises(DataError, match=r"holds (complex numbers|dates or times)") as caught:
        model.predict(rows)
    assert "\n" not in str(caught.value)


def test_days_may_be_classes():
    days = np.datetime64("2020-01-01") + Y
    assert BayesianLDA().fit(X, days).classes_.dtype.kind == "M"


def test_sampling_gives_no_warning_of_a_library():
    script = """
import warnings
import numpy as np
from bayes_gda.errors import InferenceWarning
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression
warnings.simplefilter("error")
warnings.simplefilter("ignore", InferenceWarning)
X, y = np.random.default_rng(0).standard_normal((40, 2)), np.repeat([0, 1], 20)
for cls in (BayesianLDA, BayesianLogisticRegression):
    cls(inference="mcmc", draws=5, chains=1).fit(X, y)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
