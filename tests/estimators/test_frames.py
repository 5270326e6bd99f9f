"""Frames as they come: text, categories, booleans, gaps and integers, of every library, at every estimator."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bayes_gda import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
    Dataset,
    load,
)
from bayes_gda.data.large.batches import open_batches
from bayes_gda.errors import DataError
from bayes_gda.estimators import BayesianMixture, BayesianNaive, BayesianStudent

RNG = np.random.default_rng(0)
N = 120
COLUMNS = {
    "colour": RNG.choice(["black", "white", "red"], N).tolist(),
    "size": RNG.normal(size=N).tolist(),
    "wild": (RNG.random(N) > 0.5).tolist(),
    "count": RNG.integers(0, 5, N).tolist(),
}
SCORE = np.array(COLUMNS["size"]) + (np.array(COLUMNS["colour"]) == "black") + RNG.normal(size=N)
Y = np.where(SCORE > 0.3, "yes", "no")
NUMBERS = {name: COLUMNS[name] for name in ("size", "count")}


def nullable(columns):
    return pd.DataFrame(columns).convert_dtypes()


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table, "nullable": nullable}
ESTIMATORS = [
    BayesianLDA(draws=50),
    BayesianQDA(draws=50),
    BayesianNaiveGaussian(draws=50),
    BayesianRDA(draws=50),
    BayesianLogisticRegression(draws=50, inference="laplace"),
]
IDS = ["lda", "qda", "naive", "rda", "logistic"]
# Those that read levels as they are, or take longer.
OTHERS = {
    "mixed": BayesianNaive(draws=50),
    "student": BayesianStudent(draws=50, inference="laplace", scales="shared"),
    "mixture": BayesianMixture(draws=50, inference="laplace", components=1, covariances="shared"),
}


@pytest.mark.parametrize("columns", [COLUMNS, NUMBERS], ids=["mixed", "numbers"])
@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=IDS)
def test_every_frame_gives_the_same_model(estimator, library, columns):
    """The issue's failure was "could not convert string to float: 'black'"."""
    frame = FRAMES[library](columns)
    model = clone(estimator).fit(frame, Y)
    data = Dataset.from_frame(pd.DataFrame(columns).assign(y=Y), target="y")
    expected = clone(estimator).fit(data.X, Y)
    np.testing.assert_allclose(model.predict_proba(frame), expected.predict_proba(data.X), rtol=1e-9)
    assert list(model.feature_names_in_) == list(columns)
    assert model.n_features_in_ == len(columns)
    # Frames of other libraries are understood all the same, with their columns in any order.
    np.testing.assert_allclose(
        model.predict_proba(pl.DataFrame(columns)[:3]), model.predict_proba(frame)[:3], rtol=1e-12
    )
    assert model.predict_interval(frame[:2]).shape == (2, 2, 2)


@pytest.mark.parametrize("columns", [COLUMNS, NUMBERS], ids=["mixed", "numbers"])
@pytest.mark.parametrize("estimator", OTHERS.values(), ids=OTHERS)
def test_every_frame_gives_the_same_model_of_other_families(estimator, columns):
    frames = {library: make(columns) for library, make in FRAMES.items()}
    expected = clone(estimator).fit(frames["pandas"], Y).predict_proba(frames["pandas"])
    for library in ("polars", "arrow", "nullable"):
        model = clone(estimator).fit(frames[library], Y)
        np.testing.assert_allclose(model.predict_proba(frames[library]), expected, rtol=1e-9)
        assert list(model.feature_names_in_) == list(columns)
    formula = clone(estimator).set_params(formula="y ~ size + count").fit(pd.DataFrame(COLUMNS).assign(y=Y))
    assert formula.score(pd.DataFrame(COLUMNS), Y) > 0.6


def test_names_of_features_reach_the_posterior():
    model = BayesianLogisticRegression(draws=50).fit(pd.DataFrame(COLUMNS), Y)
    names = ["intercept", "colour[red]", "colour[white]", "size", "wild", "count"]
    assert model.posterior_["posterior"].coords["coefficient"].to_numpy().tolist() == names


@pytest.mark.parametrize("library", [pl.Series, pa.array, pd.Series, lambda y: pd.Series(y, dtype="category")])
def test_labels_of_every_library(library):
    frame = pd.DataFrame(COLUMNS)
    np.testing.assert_array_equal(
        BayesianLDA().fit(frame, library(Y.tolist())).predict(frame), BayesianLDA().fit(frame, Y).predict(frame)
    )


def test_a_label_column_is_named():
    frame = pd.DataFrame(COLUMNS).assign(answer=Y)
    model = BayesianLDA().fit(frame, "answer")
    np.testing.assert_array_equal(
        model.predict_proba(frame), BayesianLDA().fit(frame[list(COLUMNS)], Y).predict_proba(frame)
    )
    with pytest.raises(DataError, match=r"no target column 'anser'\. Did you mean 'answer'"):
        BayesianLDA().fit(frame, "anser")


def test_unseen_levels_are_refused_or_pooled():
    frame = pd.DataFrame(COLUMNS)
    new = frame.head(2).assign(colour="blue")
    strict = BayesianLogisticRegression(inference="laplace").fit(frame, Y)
    with pytest.raises(DataError, match=r"Level 'blue' of column 'colour' .row 1. is unknown"):
        strict.predict(new)
    pooled = BayesianLogisticRegression(inference="laplace", unseen="pool").fit(frame, Y)
    # The linear predictor of a new level is that of the average training row in this column.
    X = Dataset.from_frame(frame.assign(y=Y), target="y").X
    average = X[:2].copy()
    average[:, :2] = X[:, :2].mean(axis=0)
    np.testing.assert_allclose(pooled.predict_proba(new), pooled.predict_proba(average), rtol=1e-12)
    with pytest.raises(DataError, match=r"`unseen` must be .*; got 'drop'"):
        pooled.set_params(unseen="drop").predict(new)


def test_a_mark_for_a_new_level_is_read_only_by_models_that_read_levels():
    """BayesianLDA(unseen="keep") took the mark, −1, for a measurement."""
    frame = pd.DataFrame(COLUMNS)
    new = frame.head(2).assign(colour="blue")
    with pytest.raises(DataError, match=r"`unseen` must be 'error' or 'pool' for this model; got 'keep'"):
        BayesianLDA(unseen="keep").fit(frame, Y)
    with pytest.raises(DataError, match=r"`unseen` must be 'error' or 'keep' for this model; got 'pool'"):
        BayesianNaive(unseen="pool").fit(frame, Y)
    data = Dataset.from_frame(frame.assign(y=Y), target="y")
    test = data.encode_labelled(new.assign(y=Y[:2]), target="y", missing="keep", unseen="keep")
    colours = [name.startswith("colour") for name in data.feature_names]
    np.testing.assert_array_equal(np.isnan(test.X), np.tile(colours, (2, 1)))
    with pytest.raises(DataError, match="Missing values in 'colour"):
        data.encode_labelled(new.assign(y=Y[:2]), target="y", unseen="keep")


def test_gaps_of_a_frame_are_integrated_out_or_refused():
    frame = pd.DataFrame(COLUMNS)
    gaps = pl.DataFrame(COLUMNS).with_columns(
        colour=pl.when(pl.int_range(N) < 3).then(None).otherwise(pl.col("colour"))
    )
    lda = BayesianLDA().fit(frame, Y)
    assert np.isfinite(lda.predict_proba(gaps)).all()
    np.testing.assert_array_equal(lda.predict_proba(gaps)[3:], lda.predict_proba(frame)[3:])
    with pytest.raises(DataError, match=r"missing values \(NaN\) in 3 of 120 rows, such as in 'colour\[red\]'"):
        BayesianLogisticRegression().fit(gaps, Y)


def test_dates_are_refused_with_the_remedy():
    frame = pd.DataFrame(COLUMNS).assign(day=pd.date_range("2020-01-01", periods=N))
    with pytest.raises(DataError, match=r"Column 'day' holds dates or times .*days since a start"):
        BayesianLDA().fit(frame, Y)


def test_codes_with_letters_are_taken_as_the_message_says():
    """Estimators have no `categorical`, which the message once named."""
    frame = pd.DataFrame(NUMBERS).assign(ward=RNG.choice(["1", "2", "3a"], N))
    with pytest.raises(DataError, match=r"or make it categories: df\['ward'\].astype\(str\).astype\('category'\)\.$"):
        BayesianLDA().fit(frame, Y)
    frame["ward"] = frame["ward"].astype(str).astype("category")
    assert BayesianLDA().fit(frame, Y).encoding_.feature_names[-2:] == ("ward[2]", "ward[3a]")


def test_what_new_rows_may_be():
    frame = pd.DataFrame(COLUMNS)
    model = BayesianLDA().fit(frame, Y)
    P = model.predict_proba(frame)
    data = Dataset.from_frame(frame.assign(y=Y), target="y")
    for same in (frame[["size", "wild", "count", "colour"]], frame.assign(more=1), data, data.X):
        np.testing.assert_array_equal(model.predict_proba(same), P)
    np.testing.assert_array_equal(model.predict_proba(pd.DataFrame(data.X, columns=data.feature_names)), P)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        np.testing.assert_array_equal(model.predict_proba(frame.to_numpy()), P)
    with pytest.raises(DataError, match="new rows have no column 'colour'"):
        model.predict(frame[["size", "wild", "count"]])
    with (
        pytest.warns(UserWarning, match="does not have valid feature names"),
        pytest.raises(ValueError, match="X has 3 features, but BayesianLDA is expecting 4"),
    ):
        model.predict(frame.to_numpy()[:, :3])
    numbers = BayesianLDA().fit(pd.DataFrame(NUMBERS), Y)
    with pytest.raises(DataError, match=r"Column 'size' is numeric; got 'large' in row 1"):
        numbers.predict(pd.DataFrame({"size": ["large"], "count": [1]}))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=IDS)
def test_a_data_set_is_fitted_as_it_is(estimator):
    frame = pd.DataFrame(COLUMNS)
    data = Dataset.from_frame(frame.assign(y=Y), target="y")
    model = clone(estimator).fit(data)
    np.testing.assert_array_equal(model.predict_proba(frame), clone(estimator).fit(frame, Y).predict_proba(frame))
    np.testing.assert_array_equal(model.predict(data), model.predict(frame))
    np.testing.assert_array_equal(model.predict(data.X), model.predict(frame))  # without a warning of names
    with pytest.raises(DataError, match="`y` must be None where `X` is a Dataset"):
        clone(estimator).fit(data, Y)
    other = Dataset.from_frame(pd.DataFrame(NUMBERS).assign(y=Y), target="y")
    with pytest.raises(DataError, match="must have the features"):
        model.predict(other)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=IDS)
def test_a_formula_at_every_estimator(estimator, tmp_path):
    frame = pd.DataFrame(COLUMNS).assign(y=Y)
    model = clone(estimator).set_params(formula="y ~ size*wild + C(colour)").fit(frame)
    data = Dataset.from_frame(frame, formula="y ~ size*wild + C(colour)")
    expected = clone(estimator).fit(data.X, Y).predict_proba(data.X)
    np.testing.assert_allclose(model.predict_proba(frame.drop(columns="y")), expected, rtol=1e-9)
    model.save(tmp_path / "model.nc")
    np.testing.assert_array_equal(load(tmp_path / "model.nc").predict_proba(frame), model.predict_proba(frame))
    with pytest.raises(DataError, match="`formula` needs a data frame"):
        clone(model).fit(data.X, Y)


def test_arrays_go_without_names_after_a_data_set_and_not_after_a_frame():
    data = Dataset.from_frame(pd.DataFrame(NUMBERS).assign(y=Y), target="y")
    model = BayesianLDA().fit(data)
    np.testing.assert_array_equal(model.predict(data.X), model.predict(data))
    with pytest.raises(ValueError, match="X has 1 features, but BayesianLDA is expecting 2"):
        model.predict(data.X[:, :1])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.fit(pd.DataFrame(NUMBERS), Y).predict(data.X)


def test_a_formula_in_cross_validation_takes_y_beside():
    frame = pd.DataFrame(COLUMNS).assign(y=Y)
    model = BayesianLDA(formula="y ~ size + colour")
    scores = cross_val_score(model, frame, Y, cv=3)
    np.testing.assert_array_equal(scores, cross_val_score(model, frame.drop(columns="y"), Y, cv=3))


def test_a_model_of_a_frame_is_saved_with_its_levels(tmp_path):
    frame = pd.DataFrame(COLUMNS)
    model = BayesianLogisticRegression(inference="laplace", unseen="pool").fit(frame, Y)
    model.save(tmp_path / "model.nc")
    again = load(tmp_path / "model.nc")
    assert again.encoding_ == model.encoding_
    new = frame.head(3).assign(colour="blue")
    np.testing.assert_array_equal(again.predict_proba(new), model.predict_proba(new))


def test_batches_and_streams_of_frames(tmp_path):
    frame = pd.DataFrame(COLUMNS)
    whole = BayesianLDA().fit(frame, Y)
    frame.assign(y=Y).to_csv(tmp_path / "rows.csv", index=False)
    batches = BayesianLDA().fit_batches(open_batches(tmp_path / "rows.csv", target="y"))
    np.testing.assert_allclose(batches.predict_proba(frame), whole.predict_proba(frame), rtol=1e-9)
    stream = BayesianLDA(prior=whole.prior_).partial_fit(frame[:60], Y[:60]).partial_fit(frame[60:], Y[60:])
    np.testing.assert_allclose(stream.predict_proba(frame), whole.predict_proba(frame), rtol=1e-9)


def test_pipelines_with_a_column_transformer():
    frame = pd.DataFrame(COLUMNS)
    columns = ColumnTransformer(
        [
            ("levels", OneHotEncoder(drop="first", sparse_output=False), ["colour"]),
            ("numbers", StandardScaler(), ["size", "count"]),
        ],
        remainder="passthrough",
        sparse_threshold=0,
    )
    pipe = make_pipeline(columns, BayesianLDA()).fit(frame, Y)
    assert pipe.score(frame, Y) > 0.6
    as_frames = make_pipeline(clone(columns), BayesianLDA()).set_output(transform="pandas").fit(frame, Y)
    np.testing.assert_allclose(as_frames.predict_proba(frame), pipe.predict_proba(frame), rtol=1e-9)
    assert "levels__colour_red" in as_frames[-1].feature_names_in_


def test_a_constant_text_column_is_refused_and_a_constant_number_is_not():
    frame = pd.DataFrame(COLUMNS)
    with pytest.raises(DataError, match="Column 'site' is constant"):
        BayesianLDA().fit(frame.assign(site="here"), Y)
    assert BayesianLDA().fit(frame.assign(one=1.0), Y).score(frame.assign(one=1.0), Y) > 0.6


def test_class_weights_are_sample_weights():
    frame = pd.DataFrame(NUMBERS)
    weight = np.where(Y == "yes", 3.0, 1.0)
    for estimator in ESTIMATORS:
        model = clone(estimator).set_params(class_weight={"yes": 3.0, "no": 1.0}).fit(frame, Y)
        expected = clone(estimator).fit(frame, Y, sample_weight=weight)
        np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame))
    balanced = BayesianLDA(class_weight="balanced").fit(frame, Y)
    np.testing.assert_allclose(balanced.posterior_["posterior"]["pi"].mean(("chain", "draw")), 0.5, atol=0.01)
