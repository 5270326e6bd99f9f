"""Life among scikit-learn's tools: pipelines, searches, clones, frames, files of joblib, hostile names."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayes_gda.data.examples import load_example
from bayes_gda.errors import DataError
from bayes_gda.estimators import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
)

IRIS = load_example("iris").subset(np.arange(0, 150, 3))
FRAME = pd.DataFrame(IRIS.X, columns=IRIS.feature_names)
LABELS = np.array(IRIS.class_names)[IRIS.y]
ALL = [
    BayesianLDA(draws=50, chains=2),
    BayesianQDA(draws=50, chains=2),
    BayesianNaiveGaussian(draws=50, chains=2),
    BayesianRDA(draws=50, chains=2),
    BayesianLogisticRegression(draws=50, chains=2, inference="laplace"),
]
every_estimator = pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
HOSTILE = ["intercept", "<script>alert(1)</script>", "chain", "draw\n\t☃"]


@every_estimator
def test_pipelines_and_cross_validation(estimator):
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), estimator)
    assert cross_val_score(pipeline, FRAME, LABELS, cv=3).mean() > 0.9
    P = cross_val_predict(estimator, FRAME, LABELS, cv=3, method="predict_proba")
    np.testing.assert_allclose(P.sum(axis=1), 1)
    fitted = pipeline.fit(FRAME, LABELS)
    assert list(fitted[-1].feature_names_in_) == list(IRIS.feature_names)
    assert fitted[-1].predict_interval(fitted[0].transform(FRAME)).shape == (50, 3, 2)


@every_estimator
def test_calibration_clones_and_files(estimator, tmp_path):
    calibrated = CalibratedClassifierCV(estimator, cv=3).fit(FRAME, LABELS)
    assert calibrated.score(FRAME, LABELS) > 0.9
    model = clone(estimator).fit(FRAME, LABELS)
    P, tree = model.predict_proba(FRAME), model.posterior_
    joblib.dump(model, tmp_path / "model")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")):
        np.testing.assert_array_equal(copy.predict_proba(FRAME), P)
        assert copy.posterior_["posterior"].identical(tree["posterior"])
        assert copy.trust_.verdict == model.trust_.verdict
    assert not hasattr(clone(model), "model_")


def test_a_search_over_priors():
    search = GridSearchCV(
        BayesianLogisticRegression(inference="laplace"),
        {"prior_scale": [0.1, 2.5], "features": [None, 2]},
        cv=3,
        scoring="neg_log_loss",
    ).fit(IRIS.X[17:, :2], IRIS.y[17:])
    assert set(search.best_params_) == {"prior_scale", "features"}


@every_estimator
def test_the_same_seed_gives_the_same_numbers(estimator):
    first, again = clone(estimator).fit(FRAME, LABELS), clone(estimator).fit(FRAME, LABELS)
    other = clone(estimator).set_params(random_state=5).fit(FRAME, LABELS)
    for ask in ("predict_proba", "predict_interval"):
        np.testing.assert_array_equal(getattr(first, ask)(FRAME), getattr(again, ask)(FRAME))
    assert first.posterior_["posterior"].identical(again.posterior_["posterior"])
    assert (first.predict_interval(FRAME) != other.predict_interval(FRAME)).any()
    state = np.random.RandomState(3)
    drawn = [clone(estimator).set_params(random_state=state).fit(FRAME, LABELS).seed_ for _ in range(2)]
    assert drawn[0] != drawn[1]


@every_estimator
def test_hostile_names(estimator):
    frame = pd.DataFrame(IRIS.X, columns=HOSTILE)
    model = clone(estimator).fit(frame, np.array(["<b>", "b & c", "☃"])[IRIS.y])
    posterior = model.posterior_["posterior"]
    dim = "coefficient" if isinstance(model, BayesianLogisticRegression) else "feature"
    assert list(posterior[dim].to_numpy())[-4:] == ["intercept (2)", *HOSTILE[1:]]
    assert len(set(posterior[dim].to_numpy())) == posterior.sizes[dim]
    assert model.summary().index.is_unique
    html = model._repr_html_()
    assert "<b>, b" not in html
    assert "&lt;b&gt;, b &amp; c, ☃" in html


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@every_estimator
def test_other_columns_are_refused_and_order_matters(estimator):
    model = clone(estimator).fit(FRAME, LABELS)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(FRAME[FRAME.columns[::-1]])
    with pytest.raises(ValueError, match="expecting 4 features"):
        model.uncertainty(FRAME.iloc[:, :2].to_numpy())


@pytest.mark.parametrize("label", [int, float, bool, str])
def test_labels_keep_their_type(label):
    y = np.array([label(v) for v in (0, 1)])[(IRIS.y[17:] == 2).astype(int)]
    model = BayesianLDA().fit(IRIS.X[17:], y)
    assert model.predict(IRIS.X[17:]).dtype == y.dtype


@every_estimator
def test_decisions_name_the_classes(estimator):
    model = clone(estimator).fit(FRAME, LABELS)
    made = model.decide(FRAME, 1 - np.eye(3))
    np.testing.assert_array_equal(made.chosen, model.predict(FRAME))
    assert (made.value_of_information >= 0).all()
    reluctant = model.decide(FRAME, 1 - np.eye(3), reject_cost=0.05)
    np.testing.assert_array_equal(reluctant.rejected, 1 - model.predict_proba(FRAME).max(axis=1) > 0.05)
    actions = model.decide(FRAME, np.ones((2, 3)), action_names=["wait", "act"])
    assert set(actions.chosen) == {"wait"}
    shifted = model.decide(FRAME, 1 - np.eye(3), class_prior=[0.98, 0.01, 0.01])
    expected = model.predict_proba(FRAME, [0.98, 0.01, 0.01]).argmax(axis=1)
    np.testing.assert_array_equal(shifted.action, expected)


def test_the_textbook_spam_case():
    """Costs [[0, 10], [1, 0]] and P(spam) = .6: expected losses 4 and .6, so let it through."""
    y = np.array(["not spam"] * 40 + ["spam"] * 60)
    model = BayesianLDA().fit(np.random.default_rng(0).normal(size=(100, 1)), y)
    # No feature tells them apart; put the shares at .6 exactly by the prior, where x says nothing.
    density = model.model_.log_density(np.zeros((1, 1)))[0]
    share = np.array([0.4, 0.6]) * np.exp(-density)
    made = model.decide([[0.0]], [[0, 1], [10, 0]], class_prior=share / share.sum())
    np.testing.assert_allclose(made.expected_loss, [[0.6, 4.0]])
    assert made.chosen == ["not spam"]


@every_estimator
def test_html_shows_method_verdict_and_classes(estimator):
    model = clone(estimator).fit(FRAME, LABELS)
    html = model._repr_html_()
    for text in (model.inference_, model.trust_.verdict, "setosa, versicolor, virginica", f"{model.log_evidence_:.2f}"):
        assert text in html
    assert "<table>" not in clone(estimator)._repr_html_()
    assert model.trust_.verdict in model.trust_._repr_html_()
    with config_context(display="text"):
        assert repr(model).startswith(type(model).__name__)


@every_estimator
def test_bad_rows_are_refused(estimator):
    with pytest.raises(ValueError, match="infinity"):
        clone(estimator).fit(np.where(IRIS.X > 5, np.inf, IRIS.X), LABELS)
    with pytest.raises(DataError, match="1 class only, 'a'"):
        clone(estimator).fit(IRIS.X, ["a"] * 50)
    with pytest.raises(ValueError, match="at least one non-zero"):
        clone(estimator).fit(IRIS.X, LABELS, sample_weight=np.zeros(50))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        clone(estimator).fit(IRIS.X, LABELS, sample_weight=-np.ones(50))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names:UserWarning")
@every_estimator
def test_rows_alone_and_together_are_predicted_alike(estimator):
    model = clone(estimator).fit(FRAME, LABELS)
    for ask in (model.predict_log_proba, model.predict_interval, lambda X: model.uncertainty(X).total[:, None]):
        together = ask(IRIS.X[:20])
        alone = np.concatenate([ask(row[None]) for row in IRIS.X[:20]])
        np.testing.assert_allclose(alone, together, rtol=1e-8, atol=1e-12)
