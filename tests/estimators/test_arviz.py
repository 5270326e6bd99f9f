"""ArviZ on every model and method: the groups of its posterior, what is in them, and every function of ArviZ."""

import warnings
from functools import cache

import arviz as az
import numpy as np
import pytest
from arviz_calls import FUNCTIONS, loo
from scipy.special import logsumexp

from bayes_gda import (
    LKJ,
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
    Moments,
    load_example,
)
from bayes_gda.errors import InferenceWarning
from bayes_gda.estimators import BayesianMixture, BayesianNaive, BayesianStudent

IRIS = load_example("iris").subset(np.arange(0, 150, 2))
PIMA = load_example("pima").subset(np.arange(0, 532, 5))
FEW = {"draws": 125, "chains": 4}
MODELS = {
    "lda-exact": (BayesianLDA(**FEW), IRIS),
    "qda-exact": (BayesianQDA(**FEW), IRIS),
    "naive-exact": (BayesianNaiveGaussian(**FEW), IRIS),
    "rda-exact": (BayesianRDA(**FEW), IRIS),
    "lda-laplace": (BayesianLDA(inference="laplace", **FEW), IRIS),
    "lda-mcmc": (BayesianLDA(inference="mcmc", **FEW), IRIS),
    "naive-lkj": (
        BayesianNaiveGaussian(prior=LKJ.default(Moments.from_arrays(IRIS.X, IRIS.y, 3)), inference="laplace", **FEW),
        IRIS,
    ),
    "logistic-laplace": (BayesianLogisticRegression(inference="laplace", **FEW), PIMA),
    "logistic-ep": (BayesianLogisticRegression(inference="ep", **FEW), PIMA),
    "logistic-mcmc": (BayesianLogisticRegression(inference="mcmc", **FEW), PIMA),
    "softmax-laplace": (BayesianLogisticRegression(inference="laplace", **FEW), IRIS),
    "hierarchical-mcmc": (BayesianLogisticRegression(prior_scale="hierarchical", inference="mcmc", **FEW), PIMA),
    "gaps-mcmc": (BayesianQDA(**FEW), load_example("pima-missing").subset(np.arange(0, 300, 3))),
    "mixed-exact": (BayesianNaive(**FEW), IRIS),
    "student-laplace": (BayesianStudent(inference="laplace", scales="shared", **FEW), IRIS),
    "mixture-laplace": (BayesianMixture(inference="laplace", components=2, covariances="shared", **FEW), IRIS),
    "softmax-variational": (BayesianLogisticRegression(inference="variational", **FEW), IRIS),
}
GENERATIVE = [name for name in MODELS if name.split("-")[0] not in ("logistic", "softmax", "hierarchical")]
# The prior of RDA is a grid of models, each centred on the rows: it has no density, and no draws without them.
NO_PRIOR = {"rda-exact", "gaps-mcmc"}


@cache
def tree(name):
    model, data = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)  # few draws
        return model.fit(data).posterior_


@pytest.mark.parametrize("name", MODELS)
def test_every_posterior_has_the_groups_of_arviz(name):
    data = MODELS[name][1]
    posterior = tree(name)
    assert {"posterior", "log_likelihood", "observed_data", "posterior_predictive"} <= set(posterior.children)
    assert ("constant_data" in posterior.children) == (name not in GENERATIVE)
    attrs = posterior.attrs
    assert "created_at" in attrs
    assert attrs["inference_library"] == "bayes_gda"
    np.testing.assert_array_equal(posterior["observed_data"]["y"], data.y)
    drawn = posterior["posterior_predictive"]["y"]
    assert drawn.sizes["row"] == data.n
    assert set(np.unique(drawn)) <= set(range(data.K))
    # Class frequencies of the replicated labels are those of the predicted probabilities.
    P = np.stack([(drawn == k).mean(("chain", "draw")) for k in range(data.K)], axis=1)
    np.testing.assert_allclose(P.mean(axis=0), np.bincount(data.y) / data.n, atol=0.06)


@pytest.mark.parametrize("name", MODELS)
def test_likelihoods_have_one_meaning_by_name(name):
    """`y` is log p(y | x, θ) in every model; `x`, where features are modelled, log p(x | θ)."""
    model, data = MODELS[name]
    likelihood = tree(name)["log_likelihood"].to_dataset()
    assert set(likelihood.data_vars) == ({"y", "x"} if name in GENERATIVE else {"y"})
    assert (likelihood["y"] <= 0).all()
    size = likelihood.sizes["chain"] * likelihood.sizes["draw"]
    variables = model.model_.draw_variables(size, random_seed=model.seed_)
    joint = model.model_.log_likelihood(variables, data.X, data.y)
    total = sum(likelihood[part].to_numpy() for part in likelihood.data_vars).reshape(joint.shape)
    np.testing.assert_allclose(total, joint, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ["lda-exact", "qda-exact", "naive-exact"])
def test_loo_by_arviz_is_the_closed_form_of_the_class(name):
    """Without its own p(y | x, θ) a row still tells of θ by its x: the mean of p(y | x, θ) is p(y | x, other rows)."""
    model, data = MODELS[name]
    many = type(model)(draws=2000, chains=4).fit(data)
    left, _ = many.model_.leave_one_out(data.X, data.y)
    exact = left[np.arange(data.n), data.y] - logsumexp(left, axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # k̂ of a row
        found = loo(many.posterior_)
    reliable = found.pareto_k.to_numpy() < 0.5
    assert reliable.sum() >= 15  # rows whose class is beyond doubt have long tails about nothing
    np.testing.assert_allclose(found.elpd_i.to_numpy()[reliable], exact[reliable], atol=0.02)


def test_comparing_a_joint_with_a_conditional_density_is_refused():
    """The issue's failure: az.compare of an LDA and a logistic fit ranked −420 against −13 and warned of nothing."""
    data = load_example("pima").subset(np.arange(0, 532, 5))
    fits = {
        "lda": BayesianLDA(**FEW).fit(data).posterior_,
        "logistic": BayesianLogisticRegression(inference="laplace", **FEW).fit(data).posterior_,
    }
    with pytest.raises(TypeError, match="ELPD from model lda") as refusal:
        az.compare(fits)
    assert "Found several log likelihood arrays" in str(refusal.value.__cause__)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        table = az.compare(fits, var_name="y", round_to="none")
    assert abs(table["elpd_diff"]).max() < 10


def test_a_resampled_posterior_says_why_it_has_no_likelihood():
    model = BayesianLogisticRegression(**FEW).fit(IRIS)
    assert model.inference_ == "corrected"
    assert "log_likelihood" not in model.posterior_.children
    assert "resampled" in model.posterior_.attrs["log_likelihood_left_out"]


def test_large_likelihoods_are_left_out_with_a_reason(monkeypatch):
    monkeypatch.setattr("bayes_gda.families.groups.LIKELIHOOD_LIMIT", 1000)
    posterior = BayesianLDA(**FEW).fit(IRIS).posterior_
    assert "log_likelihood" not in posterior.children
    assert "draws × rows" in posterior.attrs["log_likelihood_left_out"]


def test_prior_draws_have_the_moments_of_the_prior():
    many = {"draws": 500, "chains": 1}
    prior = BayesianLogisticRegression(inference="laplace", **many).fit(PIMA).posterior_["prior"]["w"]
    np.testing.assert_allclose(prior.std(("chain", "draw"))[1:], 2.5, rtol=0.15)
    shared = BayesianLDA(**many).fit(IRIS)
    drawn = shared.posterior_["prior"]
    assert drawn["mu"].dims == ("chain", "draw", "class", "feature")
    assert drawn["Sigma"].shape == (1, 500, 4, 4)
    np.testing.assert_allclose(drawn["pi"].mean(("chain", "draw")), 1 / 3, atol=0.04)
    # Given Σ the means of the classes are independent, with covariance Σ/κ about m.
    mu, m = drawn["mu"].to_numpy()[0], shared.prior_.m
    L = np.linalg.cholesky(drawn["Sigma"].to_numpy()[0])
    z = np.linalg.solve(L, np.swapaxes(mu - m, 1, 2)) * np.sqrt(shared.prior_.kappa)
    np.testing.assert_allclose(np.cov(z.reshape(500, -1), rowvar=False), np.eye(12), atol=0.25)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("name", MODELS)
def test_every_function_runs(name, function):
    """Those of `arviz_calls`; `test_crossed.py` has the plots, methods and frames."""
    if function == "loo of the features" and name not in GENERATIVE:
        pytest.skip("features are not modelled")
    if function == "psense_summary" and name in NO_PRIOR:
        pytest.skip("the prior has no density")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", (UserWarning, RuntimeWarning))  # k̂ of few draws
        assert FUNCTIONS[function](tree(name)) is not None
