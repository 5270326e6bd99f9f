"""Whatever table an estimator is given: a valid posterior and valid predictions, or one of our errors; no warning."""

import warnings
from inspect import signature

import numpy as np
import pytest
from hostile.judge import Refused, check_classifier, lawful
from hostile.profiles import examples
from hostile.strategies import FAIR_WEIGHTS, formed_tables, tables, tables_with_gaps
from hypothesis import example, given
from hypothesis import strategies as st

from bayes_gda import NIW, InferenceWarning, Moments
from bayes_gda.baselines import (
    GradientLogistic,
    HingeClassifier,
    IRLSLogistic,
    Perceptron,
    PlugInNaiveGaussian,
    PlugInQDA,
)
from bayes_gda.errors import DataError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA

GAUSSIAN = (BayesianLDA, BayesianQDA, BayesianNaiveGaussian)
FEW = {"draws": 20, "chains": 2}
# Every estimator and method that needs no sampler.
FAST = [
    *[(cls, {}) for cls in GAUSSIAN],
    (BayesianLogisticRegression, {"inference": "laplace"}),
]
MORE = [
    *[(cls, {"inference": "laplace"}) for cls in GAUSSIAN],
    (BayesianLogisticRegression, {"inference": "laplace", "features": 2}),
    (BayesianLogisticRegression, {"inference": "laplace", "standardize": False}),
    (BayesianLogisticRegression, {"inference": "laplace", "prior_scale": np.inf, "intercept_scale": np.inf}),
    (BayesianLogisticRegression, {"inference": "laplace", "prior_scale": "empirical-bayes"}),
    (BayesianLogisticRegression, {"inference": "laplace", "prior_scale": "hierarchical"}),
]
SAMPLED = [
    *[(cls, {"inference": "mcmc"}) for cls in GAUSSIAN],
    (BayesianLogisticRegression, {"inference": "mcmc"}),
    (BayesianLogisticRegression, {"inference": "auto"}),
]


def name_of(value):
    return value.__name__ if isinstance(value, type) else "-".join(str(v) for v in value.values()) or "auto"


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("hostile") / "model.nc"


def survives(table, cls, options, path):
    try:
        with lawful():
            estimator = cls(**FEW, **options).fit(table.X, table.y, sample_weight=table.weight)
            check_classifier(estimator, table.new, path if table.saved else None)
    except Refused:
        pass


@pytest.mark.parametrize(("cls", "options"), FAST, ids=name_of)
@examples(8, 300)
@given(table=st.one_of(tables(), formed_tables()))
def test_any_table(cls, options, path, table):
    survives(table, cls, options, path)


@pytest.mark.parametrize(("cls", "options"), MORE, ids=name_of)
@examples(2, 60)
@given(table=tables(max_classes=3, wide=False))
def test_any_table_by_other_methods(cls, options, path, table):
    survives(table, cls, options, path)


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "options"), SAMPLED, ids=name_of)
@examples(5, 30)
@given(table=tables(max_classes=3, wide=False))
def test_any_table_by_sampling(cls, options, path, table):
    survives(table, cls, options, path)


@pytest.mark.slow
@pytest.mark.parametrize(("cls", "options"), FAST, ids=name_of)
@examples(5, 60)
@given(table=tables_with_gaps(max_classes=3, wide=False))
def test_any_table_with_gaps(cls, options, path, table):
    """The Gaussian models sample what is missing, which takes its time; the regressions refuse."""
    survives(table, cls, options, path)


# ── Units ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("cls", "options"), FAST, ids=name_of)
@examples(4)
@given(
    table=tables(scales=(st.just(0),), offsets=st.just(0.0), columns=("noise", "signal"), weights=FAIR_WEIGHTS),
    powers=st.lists(st.integers(-30, 30), min_size=20, max_size=20),
)
def test_a_change_of_units_changes_no_probability(cls, options, table, powers):
    """Scales are powers of two, so that not even rounding differs on the way in."""
    unit = 2.0 ** np.round(np.array(powers[: table.X.shape[1]]) * np.log2(10))
    try:
        with lawful():
            plain = cls(**FEW, **options).fit(table.X, table.y, table.weight).predict_proba(table.new)
    except Refused:
        return
    with lawful():
        other = cls(**FEW, **options).fit(table.X * unit, table.y, table.weight).predict_proba(table.new * unit)
    np.testing.assert_allclose(other, plain, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("size", [1e66, 1e155, 1e300])
@pytest.mark.parametrize(("cls", "options"), FAST, ids=name_of)
def test_values_whose_squares_overflow_are_refused_by_name(cls, options, size):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), np.repeat([0, 1], 10)
    fitted = cls(**FEW, **options).fit(X, y)
    with pytest.raises(DataError, match=r"'x2' has a value of size .* overflow when they are squared"):
        fitted.predict_proba(X * [1.0, size])
    with pytest.raises(DataError, match=r"'x2' has a value of size .* Give it in a larger unit"):
        cls(**options).fit(X * [1.0, size], y)
    with pytest.raises(DataError, match=r"'x2' varies by .* only; .* Give it in a smaller unit"):
        cls(**options).fit(X / [1.0, size], y)


def test_products_that_overflow_are_refused_by_name():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), np.repeat([0, 1], 10)
    fitted = BayesianLogisticRegression(inference="laplace", features=3, **FEW).fit(X, y)
    with pytest.raises(DataError, match=r"'x1\^3' has a value of size"):
        fitted.predict_proba(X * 1e60)


@pytest.mark.parametrize("weight", [1e60, 1e-60])
def test_weights_that_are_no_number_of_rows_are_refused(weight):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), np.repeat([0, 1], 10)
    with pytest.raises(DataError, match=r"`sample_weight` must sum to between 1e-50 and 1e.50"):
        BayesianLDA().fit(X, y, np.full(20, weight))


@pytest.mark.parametrize("cls", [BayesianLDA, BayesianQDA])
def test_a_covariance_that_is_singular_up_to_rounding_is_refused(cls):
    """Two features that only differ between classes, by 1e9 of their spread within: Ψ is rank one to 16 digits."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 10)
    X = 1e9 * np.column_stack([y, y]) + rng.standard_normal((20, 2))
    with pytest.raises(DataError, match=r"covariance is singular\. Drop one"):
        cls().fit(X, y)


def test_probabilities_sum_to_one_beside_densities_of_any_size():
    """Weights of 1e9 make log densities of 1e10, whose rounding is 1e-6; their differences are still exact."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((6, 8)), np.arange(6)
    model = BayesianLDA(**FEW).fit(X, y, np.array([1e-10, 1e8, 1e7, 1e-6, 1e9, 1e-11]))
    np.testing.assert_allclose(model.predict_proba(1e3 * X).sum(axis=1), 1, rtol=1e-12)


# ── The other calls ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("cls", GAUSSIAN)
@examples(4, 150)
@given(table=tables(), steps=st.lists(st.sampled_from(["learn", "unlearn", "forget", "merge", "strange"]), max_size=5))
def test_any_sequence_of_learning_and_forgetting(cls, table, steps):
    model = cls(**FEW)
    classes = np.unique(table.y)
    try:
        with lawful():
            model.partial_fit(table.X, table.y, classes, table.weight)
            other = cls(prior=model.prior_, **FEW).partial_fit(table.X[::2], table.y[::2], classes)
    except Refused:
        return
    for step in steps:
        try:
            with lawful():
                if step == "learn":
                    model.partial_fit(table.X[:2], table.y[:2])
                elif step == "unlearn":
                    model.unlearn(table.X[:2], table.y[:2])
                elif step == "forget":
                    model.forget(1e-3)
                elif step == "merge":
                    model.merge(other)
                else:
                    model.unlearn(table.new, np.resize(table.y, len(table.new)))  # rows that were never learnt
        except Refused:
            pass  # and the model stays as it was
    try:
        with lawful():
            check_classifier(model, table.new)
    except Refused:
        pass


@examples(4, 100)
@given(table=tables(max_classes=3, wide=False))
def test_any_regression_batch_by_batch(table):
    model = BayesianLogisticRegression(inference="laplace", **FEW)
    try:
        with lawful():
            model.partial_fit(table.X, table.y, np.unique(table.y), table.weight).partial_fit(table.X[:3], table.y[:3])
            check_classifier(model, table.new)
    except Refused:
        pass


@pytest.mark.parametrize(
    "cls", [PlugInQDA, PlugInNaiveGaussian, GradientLogistic, HingeClassifier, IRLSLogistic, Perceptron]
)
@examples(5, 150)
@given(table=st.one_of(tables(weights=("none",)), formed_tables(weights=("none",))))
def test_any_baseline(cls, table):
    try:
        with lawful():
            model = (cls(max_epochs=20) if "max_epochs" in signature(cls).parameters else cls()).fit(table.X, table.y)
            assert np.isin(model.predict(table.new), model.classes_).all()
            if hasattr(model, "predict_proba"):
                p = model.predict_proba(table.new)
                assert np.isfinite(p).all()
                np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-9)
    except Refused:
        pass


NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e308, 1e-308, 1e200]), st.floats(-10, 10)
)


@examples(10)
@given(
    costs=st.lists(st.lists(NUMBERS, min_size=1, max_size=3), min_size=0, max_size=3),
    reject=st.one_of(st.none(), NUMBERS),
    prior=st.one_of(st.none(), st.lists(NUMBERS, min_size=1, max_size=3)),
)
def test_odd_costs_and_shares(costs, reject, prior):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), np.repeat([0, 1], 10)
    model = BayesianLDA(**FEW).fit(X, y)
    try:
        with lawful():
            found = model.decide(X, costs, reject_cost=reject, class_prior=prior)
            assert np.isfinite(found.expected_loss).all()
    except Refused:
        pass


@examples(15, 500)
@example(m=0.0, kappa=1e308, psi=[1e308, 0.0, 0.0, 1e308], nu=1e308)  # κ n is beyond floats, κ n/(κ + n) is not
@given(m=NUMBERS, kappa=NUMBERS, psi=st.lists(NUMBERS, min_size=4, max_size=4), nu=NUMBERS)
def test_odd_priors(m, kappa, psi, nu):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 2)), np.repeat([0, 1], 10)
    try:
        with lawful():
            prior = NIW(m=np.full(2, m), kappa=kappa, Psi=np.reshape(psi, (2, 2)), nu=nu)
            p = BayesianLDA(prior=prior, **FEW).fit(X, y).predict_proba(X)
            assert np.isfinite(p).all()
    except Refused:
        pass


@examples(10)
@given(table=formed_tables(), K=st.integers(0, 5))
def test_moments_of_anything(table, K):
    try:
        with lawful():
            found = Moments.from_arrays(table.X, np.asarray(table.y), K, sample_weight=table.weight)
            assert np.isfinite(found.scatter).all()
            found = found + found - found
    except Refused:
        pass


@pytest.mark.parametrize("cls", GAUSSIAN)
def test_two_hundred_classes(cls):
    """Of one row each, and of two."""
    X, y = np.random.default_rng(0).standard_normal((400, 2)), np.tile([f"class {k:03d} ü" for k in range(200)], 2)
    for n in (200, 400):
        survives_plain(cls(draws=2, chains=1), X[:n], y[:n])


@pytest.mark.slow
def test_two_hundred_classes_by_regression():
    """600 weights, whose curvature takes a minute."""
    X, y = np.random.default_rng(0).standard_normal((200, 2)), np.arange(200)
    survives_plain(BayesianLogisticRegression(inference="laplace", draws=2, chains=1), X, y)


def survives_plain(estimator, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", InferenceWarning)
        p = estimator.fit(X, y).predict_proba(X[:5])
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
