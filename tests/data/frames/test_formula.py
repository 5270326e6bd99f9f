"""Formulas: what formulaic makes of them, on new rows too; what they may not say."""

import pickle

import formulaic
import numpy as np
import pandas as pd
import pytest

from bayes_gda import Dataset
from bayes_gda.data.frames.formula import FormulaEncoding, fit_formula, split_formula
from bayes_gda.errors import DataError

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "y": ["a", "b"] * 10,
        "x": np.arange(1.0, 21.0),
        "z": list("uvwuv" * 4),
        "zone": [1, 2] * 10,
        "my col": RNG.normal(size=20) ** 2,
        "u": RNG.random(20),
        "flag": [True, False, False, True] * 5,
    }
)
ALL = "x + C(z)*u + C(zone) + bs(x, df=4) + `my col` + scale(u) + poly(x, 2) + flag + np.log(x) + I(x**2)"


@pytest.mark.parametrize(
    "formula", [ALL, "z*u", "C(z, contr.sum) + x", "x:z", "(x + u + flag)**2", "log(`my col` + 1)"]
)
def test_features_are_those_of_formulaic(formula):
    encoding, _ = fit_formula(formula, FRAME, "y")
    expected = formulaic.model_matrix(formula, FRAME).drop(columns="Intercept")
    assert list(encoding.feature_names) == list(expected.columns)
    np.testing.assert_allclose(encoding.encode(FRAME), expected.to_numpy(dtype=float), rtol=1e-12, atol=1e-12)


def test_new_rows_are_encoded_as_the_old_ones_were():
    """Levels, knots and centres are those of the rows that were learnt from; a copy by pickle has them too."""
    encoding, _ = fit_formula(ALL, FRAME, "y")
    X = encoding.encode(FRAME)
    for rows in ([3], [7, 0]):
        np.testing.assert_allclose(encoding.encode(FRAME.iloc[rows]), X[rows], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(encoding)).encode(FRAME), X)


def test_a_gap_blanks_what_depends_on_it():
    encoding, _ = fit_formula("x + C(z)*u", FRAME)
    row = FRAME.iloc[[1]].assign(u=np.nan)
    with pytest.raises(DataError, match=r"Missing values in 'u' \(1\)"):
        encoding.encode(row)
    blank = np.isnan(encoding.encode(row, missing="keep"))[0]
    assert dict(zip(encoding.feature_names, blank, strict=True)) == {
        "x": False,
        "C(z)[T.v]": False,
        "C(z)[T.w]": False,
        "u": True,
        "C(z)[T.v]:u": True,
        "C(z)[T.w]:u": True,
    }


def test_unseen_levels_are_refused():
    encoding, _ = fit_formula("C(zone) + z", FRAME)
    with pytest.raises(DataError, match="Level 'q' of column 'z'"):
        encoding.encode(FRAME.assign(z="q"))
    with pytest.raises(DataError, match="Level 3 of column 'zone'"):
        encoding.encode(FRAME.assign(zone=3))


def test_a_data_set_from_a_formula():
    data = Dataset.from_frame(FRAME, formula="y ~ x + C(zone)")
    assert data.feature_names == ("x", "C(zone)[T.2]")
    np.testing.assert_array_equal(data.encode(FRAME), data.X)
    whole = Dataset.from_frame(FRAME.drop(columns="zone"), formula="y ~ .")
    assert whole.feature_names == ("x", "z[T.v]", "z[T.w]", "my col", "u", "flag")
    with pytest.raises(DataError, match="`target` is 'z', but the formula has 'y'"):
        Dataset.from_frame(FRAME, target="z", formula="y ~ x")
    with pytest.raises(DataError, match="names 'y', which is no feature column"):
        Dataset.from_frame(FRAME, target="y", formula="x + y")


def test_rows_with_gaps_are_dropped_or_kept():
    gaps = FRAME.assign(u=FRAME["u"].where(FRAME["x"] > 3))
    assert Dataset.from_frame(gaps, formula="y ~ x + scale(u)", missing="drop").n == 17
    kept = Dataset.from_frame(gaps, formula="y ~ x + scale(u)", missing="keep")
    assert np.isnan(kept.X).sum() == 3
    np.testing.assert_allclose(np.nanmean(kept.X[:, 1]), 0, atol=1e-12)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("x - 1", "takes the intercept away"),
        ("0 + x", "takes the intercept away"),
        ("x + (", "Cannot read the formula"),
        ("x | u", "one part on its right-hand side"),
        ("1", "has no features"),
        ("nonsense", "names 'nonsense', which is no feature column"),
        ("C(zone) + zone", "as a number and as levels"),
        ("log(x - 1)", "is -inf in row 1"),
        ("lag(x)", "may not use 'lag"),
        ("hashed(z)", "may not use"),
        ("x.mean()", "'x.mean' is not offered"),
        ("eval('1')", "may not use"),
        ("np.load('f')", "'np.load' is not offered"),
        ("{x.__class__}", "is not offered"),
        ("{(lambda: x)()}", "may not use|Cannot read"),
        ("I(open('f'))", "may not use"),
        ("{x if x else u}", "may not use|Cannot read"),
    ],
)
def test_what_a_formula_may_not_say(formula, message):
    with pytest.raises(DataError, match=message):
        fit_formula(formula, FRAME)


def test_a_formula_from_a_file_is_checked_before_it_is_evaluated():
    encoding, _ = fit_formula("x + u", FRAME)
    wicked = FormulaEncoding("1 + x + I(open('f'))", encoding.columns, encoding.state, encoding.feature_names)
    with pytest.raises(DataError, match="may not use"):
        wicked.encode(FRAME)


def test_the_target_of_a_formula():
    assert split_formula("y ~ x + z") == ("y", "x + z")
    assert split_formula("`my y` ~ x") == ("my y", "x")
    assert split_formula("x + z") == (None, "x + z")
    for bad in ("log(y) ~ x", "y ~ x ~ z", "y ~"):
        with pytest.raises(DataError, match="target"):
            split_formula(bad)
