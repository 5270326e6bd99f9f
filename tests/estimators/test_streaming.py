"""Batch = stream = merge = unlearn∘learn for the generative models; the drift of online Laplace, measured."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from bayes_gda.data.examples import load_example
from bayes_gda.data.large.batches import open_batches
from bayes_gda.errors import DataError, PriorError
from bayes_gda.estimators import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
)
from bayes_gda.priors import LKJ, NIG, NIW

IRIS = load_example("iris")
LABELS = np.array(IRIS.class_names)[IRIS.y]
NIW4 = NIW(np.full(4, 3.0), 0.1, np.eye(4), 6.0)
PRIORS = {BayesianLDA: NIW4, BayesianQDA: NIW4, BayesianNaiveGaussian: NIG(np.full(4, 3.0), 0.1, 1.5, 0.5)}
every_class = pytest.mark.parametrize("cls", PRIORS)
PARTS = {BayesianNaiveGaussian: ("m", "kappa", "a", "b", "alpha")}


def assert_same(found, truth, rtol=1e-10):
    """The posteriors, number by number, the evidence and the predictions."""
    for name in PARTS.get(type(truth), ("m", "kappa", "Psi", "nu", "alpha")):
        a, b = getattr(found.model_.posterior, name), getattr(truth.model_.posterior, name)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * np.abs(b).max())
    assert found.log_evidence_ == pytest.approx(truth.log_evidence_, rel=rtol)
    np.testing.assert_allclose(found.predict_log_proba(IRIS.X), truth.predict_log_proba(IRIS.X), atol=1e-7)
    np.testing.assert_array_equal(found.classes_, truth.classes_)


@every_class
@settings(max_examples=10, deadline=None)
@given(st.lists(st.integers(1, 149), unique=True, max_size=8), st.integers(0, 2**32 - 1))
def test_batch_stream_merge_and_unlearning_agree(cls, cuts, seed):
    rng = np.random.default_rng(seed)
    order = rng.permutation(150)
    weight = rng.integers(1, 4, 150) / 2
    batches = np.split(order, sorted(cuts))
    truth = cls(prior=PRIORS[cls]).fit(IRIS.X, LABELS, sample_weight=weight)
    stream, merged = cls(prior=PRIORS[cls]), None
    for rows in batches:
        part = cls(prior=PRIORS[cls])
        for model in (stream, part):
            model.partial_fit(IRIS.X[rows], LABELS[rows], classes=IRIS.class_names, sample_weight=weight[rows])
        merged = part if merged is None else merged.merge(part)
    assert_same(stream, truth)
    assert_same(merged, truth)
    # Learn rows of another kind and take them out again, in other batches.
    X, y = 2 * IRIS.X[:40] + rng.normal(size=(40, 4)), rng.choice(IRIS.class_names, 40)
    stream.partial_fit(X, y)
    with pytest.raises(AssertionError):
        assert_same(stream, truth)
    stream.unlearn(X[:7], y[:7]).unlearn(X[7:], y[7:])
    assert_same(stream, truth)


@every_class
def test_a_default_prior_is_that_of_the_first_batch(cls):
    X, y = IRIS.X[::-1], LABELS[::-1]
    stream = cls().partial_fit(X[:60], y[:60], classes=IRIS.class_names).partial_fit(X[60:], y[60:])
    first = cls().fit(X[:60], y[:60])  # has two of the classes only
    np.testing.assert_allclose(stream.prior_.m, first.prior_.m, rtol=1e-12)
    assert_same(stream, cls(prior=stream.prior_).fit(X, y))
    assert stream.inference_ == stream.trust_.verdict == "exact"


@every_class
def test_partial_fit_goes_on_from_fit_and_fit_starts_anew(cls):
    model = cls(prior=PRIORS[cls]).fit(IRIS.X[::2], LABELS[::2])
    assert_same(model.partial_fit(IRIS.X[1::2], LABELS[1::2]), cls(prior=PRIORS[cls]).fit(IRIS.X, LABELS))
    again = model.fit(IRIS.X[::2], LABELS[::2])
    assert again.model_.moments.n == 75


@every_class
def test_forgetting_is_weighing(cls):
    half = cls(prior=PRIORS[cls]).fit(IRIS.X[::2], LABELS[::2]).forget(0.25).partial_fit(IRIS.X[1::2], LABELS[1::2])
    weight = np.where(np.arange(150) % 2, 1.0, 0.25)
    assert_same(half, cls(prior=PRIORS[cls]).fit(IRIS.X, LABELS, sample_weight=weight))
    # What was forgotten in part is unlearnt with the weight it has left.
    rows = slice(0, 20, 2)
    half.unlearn(IRIS.X[rows], LABELS[rows], sample_weight=np.full(10, 0.25))
    weight[rows] = 0
    assert_same(half, cls(prior=PRIORS[cls]).fit(IRIS.X, LABELS, sample_weight=weight))
    for bad in (0, -1, 1.5, np.nan, [0.5]):
        with pytest.raises(DataError, match="`factor` must be"):
            half.forget(bad)


@every_class
def test_all_rows_unlearnt_leave_the_prior(cls):
    model = cls(prior=PRIORS[cls]).fit(IRIS.X, LABELS).unlearn(IRIS.X, LABELS)
    np.testing.assert_allclose(model.model_.posterior.m, 3.0)
    assert model.log_evidence_ == pytest.approx(0, abs=1e-10)
    np.testing.assert_allclose(model.predict_proba(IRIS.X), 1 / 3)


@every_class
def test_row_by_row_is_the_same_model(cls):
    model = cls(prior=PRIORS[cls]).partial_fit(IRIS.X[:100], LABELS[:100], classes=IRIS.class_names)
    stream = model.stream()
    for x, k in zip(IRIS.X[100:], IRIS.y[100:], strict=True):
        stream.update(x, k)
    stream.remove(IRIS.X[0], 0)
    truth = cls(prior=PRIORS[cls]).fit(IRIS.X[1:], LABELS[1:])
    joint = stream.log_joint(IRIS.X[7])
    np.testing.assert_allclose(joint, truth.model_.log_joint(IRIS.X[7:8])[0], rtol=1e-10)
    assert stream.log_evidence == pytest.approx(truth.log_evidence_, rel=1e-10)
    assert model.model_.moments.n == 100  # which has not changed


@every_class
def test_rows_that_were_never_learnt_are_refused(cls):
    model = cls(prior=PRIORS[cls]).fit(IRIS.X, LABELS)
    P = model.predict_proba(IRIS.X)
    with pytest.raises(DataError, match=r"Class 'setosa' has 50 rows; cannot unlearn 51\."):
        model.unlearn(np.vstack([IRIS.X[:50], IRIS.X[:1]]), [*LABELS[:50], "setosa"])
    with pytest.raises(DataError, match="never"):
        model.unlearn(IRIS.X[:10] + 50, LABELS[:10])
    np.testing.assert_array_equal(model.predict_proba(IRIS.X), P)


def test_a_direction_that_no_variance_shows_is_refused_too():
    """Two features that are always equal; the row to remove is far out along their difference only."""
    t = np.random.default_rng(0).normal(size=100)
    X, y = np.column_stack([t, t]), np.arange(100) % 2
    model = BayesianQDA(prior=NIW(np.zeros(2), 1.0, np.eye(2), 4.0)).fit(X, y)
    with pytest.raises(DataError, match="Some of those rows of class 0 were never learnt: a negative variance"):
        model.unlearn([[1.0, -1.0]], [0])
    assert model.unlearn(X[:2], y[:2]).model_.moments.n == 98


@every_class
def test_what_rounding_hides_is_refused(cls):
    """A row 10⁵ sd out leaves eight digits of the rest, one 10⁹ sd out none: (10⁹)² beside 1 in 16 digits."""
    for distance, good in ((1e5, True), (1e9, False)):
        row, names = IRIS.X[:1] + np.array([0, distance, 0, 0]), IRIS.class_names
        model = cls(prior=PRIORS[cls]).partial_fit(np.vstack([IRIS.X, row]), [*LABELS, LABELS[0]], names)
        if good:
            assert_same(model.unlearn(row, LABELS[:1]), cls(prior=PRIORS[cls]).fit(IRIS.X, LABELS), rtol=1e-5)
        else:
            before = model.model_
            with pytest.raises(DataError, match=r"so far out in 'x2' that rounding hides .* all other rows\.$"):
                model.unlearn(row, LABELS[:1])
            assert model.model_ is before


def test_averaged_models_are_refused_too_where_rounding_hides_the_rest():
    row = IRIS.X[:1] + np.array([0, 1e9, 0, 0])
    model = BayesianRDA().partial_fit(np.vstack([IRIS.X, row]), [*LABELS, LABELS[0]], IRIS.class_names)
    with pytest.raises(DataError, match="rounding hides what remains"):
        model.unlearn(row, LABELS[:1])


def test_labels_and_classes_are_checked():
    model = BayesianLDA(prior=NIW4)
    with pytest.raises(DataError, match="at least 2 classes; got"):
        model.partial_fit(IRIS.X[:50], LABELS[:50])
    model.partial_fit(IRIS.X[:100], LABELS[:100])
    with pytest.raises(DataError, match="`y` holds 'virginica', which is none of the classes"):
        model.partial_fit(IRIS.X[100:], LABELS[100:])
    with pytest.raises(DataError, match="`classes` must be those of the first call"):
        model.partial_fit(IRIS.X[:9], LABELS[:9], classes=IRIS.class_names)
    with pytest.raises(DataError, match="`y` holds '0', which is none of the classes"):
        BayesianLDA(prior=NIW4).partial_fit(IRIS.X[:2], ["0", "1"], classes=[0, 1])
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.partial_fit(IRIS.X[:9, :2], LABELS[:9])


def test_only_like_models_merge():
    def fitted(rows=slice(None), cls=BayesianLDA, X=IRIS.X, **params):
        return cls(**{"prior": NIW4, **params}).fit(X[rows], LABELS[rows])

    with pytest.raises(DataError, match="`other` must be a fitted BayesianLDA"):
        fitted().merge(fitted(cls=BayesianQDA))
    with pytest.raises(DataError, match="`other` must be a fitted BayesianLDA"):
        fitted().merge(BayesianLDA())
    with pytest.raises(DataError, match="`other` must have the classes"):
        fitted().merge(fitted(slice(100)))
    with pytest.raises(PriorError, match="`other` must have the same prior"):
        fitted().merge(fitted(slice(0, 150, 2), prior=None))
    named = BayesianLDA(prior=NIW4).fit(pd.DataFrame(IRIS.X, columns=list("abcd")), LABELS)
    with pytest.raises(DataError, match="`other` must have the features"):
        fitted().merge(named)


def test_streams_are_exact_or_refused():
    lkj = LKJ(np.ones(4), np.zeros(4), np.full(4, 10.0))
    for params in ({"prior": lkj}, {"inference": "laplace"}, {"inference": "mcmc"}):
        with pytest.raises(PriorError, match="Streaming needs the exact posterior: NIW as `prior`"):
            BayesianQDA(**params).partial_fit(IRIS.X, LABELS)
    with pytest.raises(PriorError, match="Streaming needs the exact posterior"):
        BayesianLDA(inference="laplace").fit(IRIS.X, LABELS).stream()


# ── Tables on disk ──────────────────────────────────────────────────────────────────────────────────────────────────


@every_class
def test_a_table_on_disk_is_fitted_as_one_in_memory(cls, tmp_path):
    frame = pd.DataFrame(IRIS.X, columns=IRIS.feature_names)
    frame.assign(species=LABELS).to_parquet(tmp_path / "iris.parquet")
    batches = open_batches(tmp_path / "iris.parquet", target="species", batch_rows=20)
    model = cls().fit(IRIS.X[:90], LABELS[:90]).fit_batches(batches)  # which starts anew
    truth = cls().fit(frame, LABELS)
    for name in PARTS.get(cls, ("m", "kappa", "Psi", "nu", "alpha")):
        a, b = getattr(model.model_.posterior, name), getattr(truth.model_.posterior, name)
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(model.predict(frame), truth.predict(frame))
    np.testing.assert_array_equal(model.feature_names_in_, truth.feature_names_in_)
    with pytest.raises(PriorError, match="Streaming needs the exact posterior"):
        cls(inference="mcmc").fit_batches(batches)


@pytest.mark.parametrize("K", [2, 3])
def test_a_regression_on_disk_is_that_in_memory(K, tmp_path, monkeypatch):
    monkeypatch.setattr("bayes_gda.estimators.online.SUBSAMPLE_ROWS", 1500)
    rng = np.random.default_rng(K)
    X = rng.normal(size=(5000, 3)) * [1, 5, 0.2] + 2
    y = ((X - 2) / [1, 5, 0.2] @ rng.normal(size=(3, K)) + rng.gumbel(size=(5000, K))).argmax(axis=1)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    model = BayesianLogisticRegression().fit_batches(open_batches(tmp_path / "t.parquet", target="y"))
    truth = BayesianLogisticRegression(inference="laplace", features=model.features_).fit(frame, y)
    np.testing.assert_allclose(model.model_.posterior.mean, truth.model_.posterior.mean, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model.predict_proba(frame), truth.predict_proba(frame), atol=1e-7)
    np.testing.assert_allclose(model.model_.shares, truth.model_.shares, rtol=1e-12)
    assert model.n_samples_seen_ == 5000
    assert abs(model.log_evidence_ - truth.log_evidence_) < 0.1
    assert model.trust_.verdict == "trusted"

    # Standardised by a part of the rows, to its sampling error.
    np.testing.assert_allclose(model.features_.inner[1], X.std(axis=0), rtol=0.1)


# ── Online Laplace ──────────────────────────────────────────────────────────────────────────────────────────────────


def simulated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 5))
    a = X @ [1, -1, 0.5, 0, 0] - 0.5
    return X, (rng.random(4000) < 1 / (1 + np.exp(-a))).astype(int)


def test_a_table_in_batches_standardises_as_rows_in_memory_do(tmp_path):
    rng = np.random.default_rng(5)
    rare, y = np.arange(3000) % 500 == 0, np.arange(3000) % 2
    frame = pd.DataFrame({"x": rng.normal(size=3000) + y, "rare": rare * 1.0, "ten": np.where(y == rare, 10.0, 20.0)})
    frame.assign(y=y).to_parquet(tmp_path / "t.parquet")
    table = open_batches(tmp_path / "t.parquet", target="y", batch_rows=700)
    model = BayesianLogisticRegression(inference="laplace").fit_batches(table)
    truth = BayesianLogisticRegression(inference="laplace").fit(frame, y)
    np.testing.assert_allclose(model.features_.inner, truth.features_.inner, rtol=1e-12)
    np.testing.assert_allclose(model.features_.inner[1][1:], [1, 10])
    np.testing.assert_allclose(model.model_.posterior.mean, truth.model_.posterior.mean, atol=1e-6)
    np.testing.assert_allclose(model.model_.posterior.sd, truth.model_.posterior.sd, rtol=1e-6)
    # A batch without the level, too, leaves its weight the prior of one.
    first = BayesianLogisticRegression(inference="laplace").partial_fit(frame[1:400], y[1:400])
    assert first.features_.inner[1][1] == 1


def online(X, y, size):
    model = BayesianLogisticRegression(inference="laplace")
    for i in range(0, len(X), size):
        model.partial_fit(X[i : i + size], y[i : i + size], classes=np.unique(y))
    return model


def drift(model, X, y):
    """Worst shift of a mean in posterior sd, spread of the ratios of sd, worst shift of a probability."""
    batch = clone(model).set_params(features=model.features_).fit(X, y)
    a, b = model.model_.posterior, batch.model_.posterior
    shift = np.abs(a.mean - b.mean) / b.sd
    return shift.max(), a.sd / b.sd, np.abs(model.predict_proba(X) - batch.predict_proba(X)).max()


def test_one_batch_is_a_fit():
    X, y = (rows[:500] for rows in simulated())
    model, truth = online(X, y, 500), BayesianLogisticRegression(inference="laplace").fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), truth.predict_proba(X), rtol=1e-10)
    assert model.n_samples_seen_ == truth.n_samples_seen_ == 500
    model.partial_fit(X, y, sample_weight=np.full(500, 0.5))
    assert model.n_samples_seen_ == 750
    assert model.trust_.reason.startswith("Of the last batch alone")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bayes_gda.errors.InferenceWarning")
def test_the_drift_is_what_the_docstring_says():
    X, y = simulated()
    model = online(X, y, 100)
    shift, ratio, probability = drift(model, X, y)
    assert 0.1 < shift < 0.2
    assert 0.95 < ratio.min() < ratio.max() < 1
    assert probability < 0.0025
    # What it drifts by is little beside what the rows tell: a tenth of them alone is off by many times as much.
    tenth = BayesianLogisticRegression(inference="laplace").fit(X[:400], y[:400])
    whole = BayesianLogisticRegression(inference="laplace").fit(X, y)
    assert np.abs(tenth.predict_proba(X) - whole.predict_proba(X)).max() > 20 * probability
    # Larger batches drift less.
    assert drift(online(X, y, 1000), X, y)[0] < shift
    np.testing.assert_allclose(model.model_.shares, np.bincount(y) / 4000, rtol=1e-12)
    assert abs(model.log_evidence_ - whole.log_evidence_) < 0.5


@pytest.mark.filterwarnings("ignore::bayes_gda.errors.InferenceWarning")
@pytest.mark.parametrize(("name", "most"), [("iris", (0.3, 0.05)), ("pima", (0.3, 0.03))])
def test_the_drift_on_real_data(name, most):
    data = load_example(name)
    order = np.random.default_rng(1).permutation(data.n)
    X, y = data.X[order], data.y[order]
    model = online(X, y, 50)
    shift, ratio, probability = drift(model, X, y)
    assert shift < most[0]
    assert 0.9 < ratio.min() < ratio.max() < 1.05
    assert probability < most[1]
    assert model.n_samples_seen_ == data.n
    np.testing.assert_allclose(model.model_.shares, np.bincount(y) / data.n, rtol=1e-12)
    # The steps' evidences sum to that of all rows, but for the drift.
    batch = clone(model).set_params(features=model.features_).fit(X, y)
    assert abs(model.log_evidence_ - batch.log_evidence_) < 4


def test_what_cannot_go_on_says_so():
    X, y = simulated()
    with pytest.raises(DataError, match="needs inference 'auto' or 'laplace'; got 'mcmc'"):
        BayesianLogisticRegression(inference="mcmc").partial_fit(X, y)
    for params in ({"prior_scale": np.inf}, {"prior_scale": "hierarchical"}):
        with pytest.raises(PriorError, match="needs a Gaussian prior of finite scale"):
            BayesianLogisticRegression(**params).partial_fit(X, y)
    few = BayesianLogisticRegression(inference="laplace", prior_scale="hierarchical", draws=10).fit(X[:300], y[:300])
    with pytest.raises(DataError, match="`partial_fit` needs 60 draws to go on from, ten a weight; got 40"):
        few.partial_fit(X[300:], y[300:])


@pytest.mark.filterwarnings("ignore::bayes_gda.errors.InferenceWarning")
def test_it_goes_on_from_draws_by_their_moments():
    """The corrected posterior of the first half, as a Gaussian, is the prior of the second: near the whole."""
    rows = np.random.default_rng(2).permutation(150)
    first, second = rows[:75], rows[75:]
    model = BayesianLogisticRegression().fit(IRIS.X[first], LABELS[first])
    assert model.inference_ == "corrected"
    draws = model.model_.draws
    model.partial_fit(IRIS.X[second], LABELS[second])
    assert model.inference_ == "laplace"
    whole = BayesianLogisticRegression(features=model.features_).fit(IRIS.X, LABELS)
    before = BayesianLogisticRegression(features=model.features_).fit(IRIS.X[first], LABELS[first])
    error = np.abs(model.predict_proba(IRIS.X) - whole.predict_proba(IRIS.X)).mean()
    assert error < 0.5 * np.abs(before.predict_proba(IRIS.X) - whole.predict_proba(IRIS.X)).mean()
    assert (model.model_.posterior.sd < 1.05 * draws.std(axis=0)).all()
