"""The one evaluation of a fit, held to other ways to the same number."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy.special import log_expit

from bayes_gda.data.examples import load_example
from bayes_gda.data.labels import to_datatree
from bayes_gda.errors import DataError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaive
from bayes_gda.evaluation import scorecard
from bayes_gda.evaluation.fitted_loo import model_loo
from bayes_gda.evaluation.loo import psis_loo_discriminative
from bayes_gda.evaluation.model_comparison import Evidence, ModelScore
from bayes_gda.evaluation.scorecard import Scorecard, compare_models, spread_scalars
from bayes_gda.evaluation.sensitivity import FINE, prior_sensitivity
from bayes_gda.families.linear.family import Logistic, Softmax
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.registry import get_family
from bayes_gda.methods import ladder
from bayes_gda.methods.importance.trust import assess
from bayes_gda.methods.ladder import fit_every
from bayes_gda.methods.settings import Settings
from bayes_gda.priors import Normal


@pytest.fixture(scope="module")
def pima():
    return load_example("pima").subset(np.arange(0, 532, 4))


def test_softmax_of_two_classes_is_logistic_regression_with_a_wider_prior(pima):
    """w₁ − w₀ of N(0, s²) weights is N(0, 2s²), and w₁ + w₀ is Gaussian whatever the data: the evidences are equal."""
    softmax = Softmax.bind(pima)
    Phi = softmax.Phi
    wider = replace(Normal.default(Phi.shape[1]), scale=np.sqrt(2) * Normal.default(Phi.shape[1]).scale)
    logistic = regression_laplace(LogisticTarget(Phi, pima.y.astype(float), wider))
    posterior = softmax.laplace()
    assert posterior.log_evidence == pytest.approx(logistic.log_evidence, rel=1e-9)
    m = Phi.shape[1]
    np.testing.assert_allclose(posterior.mean[m:] - posterior.mean[:m], logistic.mean, atol=1e-6)


def sensitivity_of(family, data):
    settings = Settings(draws=2000, chains=4, random_seed=1)
    card = Scorecard.of_fit(fit_every(family, settings, sampling=False), data, None, settings)
    return card.sensitivity(data.X[:40]), card


def test_prior_sensitivity_of_softmax_is_that_of_the_contrasts(pima):
    """Of two classes w₁ − w₀ is the weight of logistic regression under √2 times the scale: so is its sensitivity."""
    m = pima.d + 1
    wider = replace(Normal.default(m), scale=np.sqrt(2) * Normal.default(m).scale)
    ours, card = sensitivity_of(Softmax.bind(pima), pima)
    theirs, _ = sensitivity_of(Logistic.bind(pima, wider), pima)
    table = ours.parameters
    assert len(table) == 2 * m
    assert all(label.startswith("w − class mean[") for label in table.index)
    for column, noise in (("prior", 0.015), ("likelihood", 0.03)):  # of other draws
        assert table[column].to_numpy()[m:] == pytest.approx(theirs.parameters[column].to_numpy(), abs=noise)
    assert ours.predictions["prior"].to_numpy() == pytest.approx(theirs.predictions["prior"].to_numpy(), abs=0.01)
    # The weights themselves have the mean over the classes in them, which is the prior's alone.
    variables = card.model.draw_variables(8000, random_seed=1)
    log_prior, log_likelihood = card.fitted.family.prior_and_likelihood(variables)
    tree = to_datatree(variables, card.fitted.family.coords)
    for name, values in (("log_prior", log_prior), ("log_likelihood", log_likelihood)):
        tree[name] = xr.DataTree(xr.Dataset({"all": (("chain", "draw"), values[None])}))
    assert (prior_sensitivity(tree).parameters["diagnosis"] != FINE).all()
    assert (table["diagnosis"] != FINE).mean() < 0.5


def weighted_loo(family, importance, data):
    model = family.from_coordinates(importance.draws)
    return model_loo(model, data.X, data.y, size=1, random_seed=0, importance=importance).conditional


def test_weighted_leave_one_out_is_the_plain_one_for_equal_weights(pima):
    logistic = Logistic.bind(pima)
    gaussian = logistic.laplace()
    w = gaussian.draw(500, random_seed=0)
    importance = assess(logistic.target, gaussian).importance
    equal = replace(importance, draws=w, log_weights=np.full(500, -np.log(500)))
    loo = weighted_loo(logistic, equal, pima)
    a = w @ logistic.Phi.T
    plain = psis_loo_discriminative(np.stack([log_expit(-a), log_expit(a)], axis=2), pima.y)
    np.testing.assert_allclose(loo.pointwise, plain.pointwise, rtol=1e-9)
    np.testing.assert_allclose(loo.fitted, plain.fitted, rtol=1e-9)
    np.testing.assert_allclose(loo.pareto_k, plain.pareto_k, atol=1e-9)


def test_weighted_leave_one_out_is_that_of_the_posterior(pima):
    """Brute force for three rows: fit without the row, and predict it."""
    logistic = Logistic.bind(pima)
    Phi = logistic.Phi
    loo = weighted_loo(logistic, assess(logistic.target, logistic.laplace()).importance, pima)
    for i in (0, 50, 100):
        rest = np.delete(np.arange(pima.n), i)
        target = LogisticTarget(Phi[rest], pima.y[rest].astype(float), Normal.default(Phi.shape[1]))
        without = assess(target, regression_laplace(target)).importance
        p = np.exp(without.log_weights) @ (1 / (1 + np.exp(-(without.draws @ Phi[i]))))
        assert loo.pointwise[i] == pytest.approx(np.log(p if pima.y[i] else 1 - p), abs=0.02)


@pytest.mark.parametrize("name", ["lda", "logistic"])
def test_every_method_stands_beside_the_others_under_one_labelling(pima, name):
    settings = Settings(draws=200)
    fitted = fit_every(get_family(name).bind(pima), settings, sampling=False)
    card = Scorecard.of_fit(fitted, pima, pima, settings)
    assert card.method == ("exact" if name == "lda" else "corrected")
    value, error = card.evidence
    assert error < 0.05
    # Laplace's own error is not known; the corrected value is within its standard errors of the best.
    assert all(abs(other - value) < 4 * own + 1e-9 for other, own in fitted.evidence.values() if np.isfinite(own))
    shapes = {
        method: {v: x.shape for v, x in tree["posterior"].data_vars.items()} for method, tree in card.trees.items()
    }
    assert len(shapes) >= 2
    assert all(shape == shapes[card.method] for shape in shapes.values())


def test_estimators_and_scorecards_are_compared_by_one_call(pima):
    train, test = pima.split(0.3, 0)
    labels, fresh = np.array(train.class_names)[train.y], np.array(test.class_names)[test.y]
    models = {"lda": BayesianLDA().fit(train.X, labels), "logistic": BayesianLogisticRegression().fit(train.X, labels)}
    table = compare_models(models, train.X, labels, X_test=test.X, y_test=fresh)
    assert set(table.loo.index) == {"lda", "logistic"}
    scores = table.held_out.loc["lda"]
    log_P = models["lda"].predict_log_proba(test.X)
    assert scores["elpd"] == pytest.approx(log_P[np.arange(test.n), test.y].sum())
    assert scores["accuracy"] == pytest.approx((models["lda"].predict(test.X) == fresh).mean())
    with pytest.raises(DataError, match="not fitted"):
        compare_models({"lda": BayesianLDA()}, train.X, labels)
    with pytest.raises(DataError, match="rows that the estimators were fitted to"):
        compare_models(models)
    with pytest.raises(DataError, match="none of the classes"):
        compare_models(models, train.X, ["other"] * train.n)


def test_evidences_of_densities_and_of_probabilities_are_not_compared():
    """A model of categories has probabilities where a Gaussian model of their dummies has densities."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=80), "colour": rng.choice(["red", "blue"], 80)})
    y = (frame["x"] + (frame["colour"] == "red") + rng.normal(size=80) > 0.5).astype(int).to_numpy()
    models = {"mixed": BayesianNaive().fit(frame, y), "numbers": BayesianNaive().fit(frame[["x"]], y)}
    kinds = {name: model.model_.evidence_of for name, model in models.items()}
    assert kinds == {"mixed": "mixed", "numbers": "joint"}
    scores = {
        "mixed": ModelScore("generative", evidence=Evidence(-10.0, "mixed")),
        "lda": ModelScore("generative", evidence=Evidence(-90.0, "joint")),
    }
    found = compare_models(scores)
    assert found.evidence["probability"].tolist() == [1.0, 1.0]  # each alone of its kind
    assert any("models of the same kind only" in sentence for sentence in found.sentences)


def test_few_scalars_of_a_wide_posterior_are_compared():
    rng = np.random.default_rng(0)
    coords = {"class": ["a", "b"], "feature": [f"x{j}" for j in range(200)]}
    tree = to_datatree({"mu": rng.normal(size=(40, 2, 200)), "pi": rng.random((40, 2))}, coords)
    spread = spread_scalars(tree, most=50)
    assert spread["posterior"]["mu"].shape[-2:] == (2, 24)
    assert spread["posterior"]["pi"].shape == tree["posterior"]["pi"].shape
    kept = spread["posterior"]["feature"].to_numpy()
    assert (kept[0], kept[-1]) == ("x0", "x199")
    np.testing.assert_array_equal(spread["posterior"]["mu"], tree["posterior"]["mu"].sel(feature=kept))
    assert spread_scalars(tree, most=402) is tree


def test_draws_of_many_parameters_are_bounded_and_laplace_is_left_out(monkeypatch):
    """QDA of 4 features has 4² numbers of a covariance for each class: few draws are kept."""
    data = load_example("iris")
    settings = Settings(draws=1000, chains=4)
    monkeypatch.setattr(scorecard, "MOST_NUMBERS", 10_000)
    monkeypatch.setattr(ladder, "COMPARED_DIM", 5)
    fitted = fit_every(get_family("qda").bind(data), settings, sampling=False)
    assert list(fitted.models) == ["exact"]
    card = Scorecard.of_fit(fitted, data, None, settings)
    assert card.trees["exact"]["posterior"]["mu"].shape[:2] == (4, scorecard.FEWEST_DRAWS // 4)
    assert card.posteriors is None
    assert np.isfinite(card.sensitivity().parameters["prior"]).all()
