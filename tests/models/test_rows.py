"""What PyMC and ArviZ ask of single rows, of models that do not go through them: likelihoods, predictions, new rows."""

import warnings
from functools import cache

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr

from bayes_gda import BayesianNaiveGaussian, load_example
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.families.built import family_of
from bayes_gda.families.groups import likelihood_parts
from bayes_gda.families.registry import get_family
from bayes_gda.models import lda, logistic, mixture, naive, qda, softmax, student

IRIS = load_example("iris").subset(np.arange(0, 150, 3))
PIMA = load_example("pima").subset(np.arange(0, 532, 10))
GAPS = load_example("pima-missing").subset(np.arange(0, 300, 6))
QUIET = {"progressbar": False, "random_seed": 0}
BUILD = {
    "lda": lambda: lda.build(IRIS),
    "qda": lambda: qda.build(IRIS),
    "naive": lambda: naive.build(IRIS),
    "student": lambda: student.build(IRIS),
    "student-shared": lambda: student.build(IRIS, shared=True),
    "mixture": lambda: mixture.build(IRIS, (2, 1, 1)),
    "mixed": lambda: get_family("mixed").bind(PIMA).build(),
    "mixed-gaps": lambda: get_family("mixed").bind(GAPS).build(),
    "lda-gaps": lambda: lda.build(GAPS),
    "naive-gaps": lambda: naive.build(GAPS),
    "logistic": lambda: logistic.build(PIMA),
    "softmax": lambda: softmax.build(IRIS),
}
DATA = {"mixed": PIMA, "mixed-gaps": GAPS, "lda-gaps": GAPS, "naive-gaps": GAPS, "logistic": PIMA}
# Compiling takes a few seconds each: every kind of density is in the quick tests, the others in `make test-all`.
QUICK = ("lda", "naive-gaps", "mixed", "logistic")
ALL = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in BUILD]


@cache
def model_of(name):
    return BUILD[name]()


@cache
def tree_of(name):
    """Draws of the prior stand for those of a posterior; with all that PyMC adds of the rows."""
    model = model_of(name)
    with model, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The effect of Potentials")  # the order of the components of a mixture
        prior = pm.sample_prior_predictive(30, var_names=[v.name for v in model.unobserved_RVs], random_seed=1)["prior"]
        tree = xr.DataTree.from_dict({"posterior": prior.to_dataset()})
        pm.compute_log_likelihood(tree, progressbar=False)
        pm.sample_posterior_predictive(tree, extend_inferencedata=True, **QUIET)
    return tree


@pytest.mark.parametrize("name", [name for name in BUILD if name not in ("logistic", "softmax")])
def test_the_sums_are_the_density_of_the_rows(name):
    """`pm.Model.logp` goes through the observed rows, as a copy by PyMC does."""
    model = model_of(name)
    rng = np.random.default_rng(0)
    point = {key: value + 0.2 * rng.normal(size=value.shape) for key, value in model.initial_point().items()}
    by_sums, by_rows = (model.compile_fn(f) for f in (model.logp(), pm.Model.logp(model)))
    assert by_sums(point) == pytest.approx(float(by_rows(point)), rel=1e-10)


@pytest.mark.parametrize("name", ALL)
def test_log_likelihoods_and_predictions_of_pymc_are_ours(name):
    """By `likelihood_parts`, which the groups of the estimators are made of."""
    data, tree, model = DATA.get(name, IRIS), tree_of(name), model_of(name)
    variables = {key: value.to_numpy()[0] for key, value in tree["posterior"].data_vars.items()}
    likelihood = tree["log_likelihood"]
    family = family_of(model)
    if family is None:  # those without a signature: columns of any type, and rows with gaps
        family = get_family(name.split("-")[0]).bind(data)
    fitted = family.from_variables(variables)
    parts = likelihood_parts(fitted, variables, data.X, data.y)
    assert set(likelihood.data_vars) == set(parts)
    for part, values in parts.items():
        # PyMC's own Bernoulli and Categorical lose digits of small probabilities where nothing is rewritten.
        shown = values > (-15 if name in ("logistic", "softmax") else -np.inf)
        np.testing.assert_allclose(likelihood[part].to_numpy()[0][shown], values[shown], rtol=1e-7, atol=1e-8)
    drawn = tree["posterior_predictive"]["y"].to_numpy()[0]
    P = fitted.probability_draws(variables, data.X)[0].reshape(-1, data.K)
    hits = np.eye(data.K)[drawn.ravel()]
    z = (hits - P).sum(axis=0) / np.sqrt(np.maximum((P * (1 - P)).sum(axis=0), 1))
    assert np.abs(z).max() < 4


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name != "lda" else ())
        for name in ("lda", "qda", "naive", "student", "mixture", "mixed")
    ],
)
def test_drawn_features_follow_the_marginal_density(name):
    """Σ over draws of log p(x | θ) at rows drawn from θ exceeds that at rows of other draws, and is its own mean."""
    tree, model = tree_of(name), model_of(name)
    x = tree["posterior_predictive"]["x"].to_numpy()[0]
    variables = {key: value.to_numpy()[0] for key, value in tree["posterior"].data_vars.items()}
    family = family_of(model) or get_family(name).bind(DATA.get(name, IRIS))
    own, other = [], []
    for s in range(len(x)):
        at = {key: value[s : s + 1] for key, value in variables.items()}
        fitted = family.from_variables(at)
        for rows, store in ((x[s], own), (x[s - 1], other)):
            store.append(likelihood_parts(fitted, at, rows, np.zeros(len(rows), dtype=int))["x"].mean())
    assert np.mean(np.array(own) > np.array(other)) > 0.9


@pytest.mark.parametrize("name", [pytest.param("lda"), pytest.param("qda", marks=pytest.mark.slow), "logistic"])
def test_new_rows_by_set_data(name):
    data, tree, model = DATA.get(name, IRIS), tree_of(name), BUILD[name]()
    new = data.X[:3]
    given = {"Phi": FeatureMap.fit(data.X, data.feature_names)(new)} if name == "logistic" else {"X": new}
    with model:
        pm.set_data(given)
        drawn = pm.sample_posterior_predictive(tree, var_names=["y"], predictions=True, **QUIET)["predictions"]["y"]
    assert drawn.sizes["row"] == 3
    variables = {key: value.to_numpy()[0] for key, value in tree["posterior"].data_vars.items()}
    P = family_of(BUILD[name]()).from_variables(variables).probability_draws(variables, new)[0]
    hits = np.eye(data.K)[drawn.to_numpy()[0]]
    assert (np.abs((hits - P).sum(axis=0)) < 5 * np.sqrt((P * (1 - P)).sum(axis=0)) + 1e-6).all()
    if name == "logistic":
        return
    with pytest.raises(DataError, match=r"put 3 others into `X`\. Build a model of these, or one with rowwise=True"):
        model.logp()
    with model:
        pm.set_data({"X": data.X})
    assert np.isfinite(model.compile_logp()(model.initial_point()))


def test_the_row_wise_form_takes_new_rows_to_learn():
    model = lda.build(IRIS, rowwise=True)
    other = Dataset.from_arrays(IRIS.X[::-1], IRIS.y, class_names=IRIS.class_names)
    with model:
        pm.set_data({"X": other.X})
    expected = lda.build(other, model.signature.arguments["prior"], rowwise=True)
    point = model.initial_point()
    assert model.compile_logp()(point) == pytest.approx(float(expected.compile_logp()(point)), rel=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")  # few draws
def test_loo_of_a_model_on_moments_that_pymc_sampled():
    """The issue's failure: `az.loo` ended in an IndexError, and the posterior predictive was empty."""
    with model_of("naive"):
        tree = pm.sample(draws=30, tune=30, chains=2, cores=1, nuts_sampler="pymc", **QUIET)
        pm.compute_log_likelihood(tree, progressbar=False)
        pm.sample_posterior_predictive(tree, extend_inferencedata=True, **QUIET)
    found = az.loo(tree, var_name="y")
    assert found.n_data_points == IRIS.n
    assert -15 < found.elpd < 0
    assert (tree["posterior_predictive"]["y"] == IRIS.y).mean() > 0.8


def test_rows_beyond_doubt_keep_their_digits():
    """log p(y | x) of a setosa is some −1e-25, differs between draws, and must not be 0 in all: `az.loo` fails then."""
    data = load_example("iris")
    model, fitted = naive.build(data), BayesianNaiveGaussian(draws=25, chains=4).fit(data)
    with model:
        likelihood = pm.compute_log_likelihood(
            xr.DataTree.from_dict({"posterior": fitted.posterior_["posterior"].to_dataset()}),
            progressbar=False,
            extend_inferencedata=False,
        )
    ours = fitted.posterior_["log_likelihood"]["y"].to_numpy()
    assert (ours < 0).all()
    np.testing.assert_allclose(likelihood["y"].to_numpy(), ours, rtol=1e-7)


def test_weights_count_in_the_density_and_leave_no_rows():
    twice = Dataset(IRIS.X, IRIS.y, IRIS.feature_names, IRIS.class_names, weight=np.full(IRIS.n, 2.0))
    moments = Moments.from_arrays(np.tile(IRIS.X, (2, 1)), np.tile(IRIS.y, 2), 3)
    prior = model_of("lda").signature.arguments["prior"]
    weighted, repeated = lda.build(twice, prior), lda.build(moments, prior)
    point = weighted.initial_point()
    assert weighted.compile_logp()(point) == pytest.approx(float(repeated.compile_logp()(point)), rel=1e-12)
    assert not weighted.observed_RVs
    with pytest.raises(DataError, match="row-wise form has no weights"):
        lda.build(twice, prior, rowwise=True)
