"""The choice of a method: MCMC where it must be, and PyMC nowhere else."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bayes_gda.data.examples import load_example
from bayes_gda.errors import ConvergenceError, InferenceWarning
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.methods.ladder import Verdict
from bayes_gda.priors import LKJ

IRIS, PIMA = load_example("iris"), load_example("pima")
FRAME = pd.DataFrame(IRIS.X, columns=["intercept", "a b", "chain", "Σ"])
LABELS = np.array(IRIS.class_names)[IRIS.y]
HARD = np.random.default_rng(0).normal(size=(12, 40))
WITHOUT_PYMC = """
import sys
import numpy as np
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression
from bayes_gda.priors import LKJ
rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 2)), np.arange(60) % 2
for model in (BayesianLDA(), BayesianLDA(prior=LKJ(np.ones(2), np.zeros(2), np.full(2, 5.0))),
              BayesianLogisticRegression(), BayesianLogisticRegression(prior_scale=1.0, inference="laplace")):
    model.fit(X, y).predict_interval(X)
    model.uncertainty(X), model.decide(X, 1 - np.eye(2)), model.posterior_, model.summary()
print(sorted({name.split(".")[0] for name in sys.modules} & {"pymc", "pytensor", "arviz", "matplotlib"}))
"""


def test_pymc_is_not_imported_where_nothing_is_sampled():
    run = subprocess.run([sys.executable, "-c", WITHOUT_PYMC], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


slow = pytest.mark.slow


@pytest.mark.parametrize(
    "cls", [BayesianLDA, pytest.param(BayesianQDA, marks=slow), pytest.param(BayesianNaiveGaussian, marks=slow)]
)
def test_mcmc_of_a_conjugate_model_is_the_exact_answer(cls):
    exact = cls().fit(FRAME, LABELS)
    model = cls(inference="mcmc", draws=500, chains=2).fit(FRAME, LABELS)
    assert (model.inference_, model.trust_.verdict) == ("mcmc", "sampled")
    assert model.trust_.diagnosis.verdict in {"good", "caution"}
    assert np.abs(model.predict_proba(FRAME) - exact.predict_proba(FRAME)).max() < 0.03
    assert model.log_evidence_ == pytest.approx(exact.log_evidence_)
    tree = model.posterior_
    spread = "sigma2" if cls is BayesianNaiveGaussian else "Sigma"
    assert set(tree["posterior"].data_vars) == {"pi", "mu", spread}
    assert list(tree["posterior"]["feature"].to_numpy()) == ["intercept (2)", "a b", "chain", "Σ"]
    assert tree["log_likelihood"]["y"].shape == (2, 500, 150)
    # Rows are pooled and sorted for the sampler, but come back as they were given.
    np.testing.assert_array_equal(tree["observed_data"]["y"].to_numpy(), IRIS.y)
    joint = exact.model_.log_joint(IRIS.X)[np.arange(150), IRIS.y]
    averaged = np.log(np.exp(tree["log_likelihood"]["y"].to_numpy()).mean(axis=(0, 1)))
    assert np.abs(averaged - joint).max() < 0.1
    assert {"ess_bulk", "r_hat"} <= set(model.summary().columns)


@slow
def test_mcmc_of_a_regression_is_the_corrected_answer():
    quick = BayesianLogisticRegression().fit(PIMA.X, PIMA.y)
    model = BayesianLogisticRegression(inference="mcmc", draws=1000, chains=2).fit(PIMA.X, PIMA.y)
    assert np.abs(model.predict_proba(PIMA.X) - quick.predict_proba(PIMA.X)).max() < 0.015
    error = np.hypot(model.log_evidence_error_, quick.log_evidence_error_)
    assert abs(model.log_evidence_ - quick.log_evidence_) < 4 * error
    np.testing.assert_array_equal(model.posterior_["constant_data"]["X"].to_numpy(), PIMA.X)
    copy = BayesianLogisticRegression(inference="mcmc", draws=1000, chains=2)
    doubled = copy.fit(PIMA.X, PIMA.y, sample_weight=np.full(len(PIMA.y), 2.0))
    ratio = doubled.summary()["sd"] / model.summary()["sd"]
    assert ratio.between(0.6, 0.82).all()  # 1/√2 but for the prior


def test_auto_samples_where_it_must_and_says_so_once():
    with pytest.warns(InferenceWarning) as caught:  # the second one is about so few draws
        model = BayesianLogisticRegression(prior_scale=20.0, draws=30, chains=2).fit(HARD, np.arange(12) % 2)
    told = [w for w in caught if "Sampling the posterior by MCMC instead" in str(w.message)]
    assert len(told) == 1
    assert told[0].filename == __file__
    assert model.inference_ == "mcmc"
    assert model.trust_.laplace.verdict == "needs-mcmc"
    assert model.predict_proba(HARD).shape == (12, 2)


def test_a_funnel_without_a_mode_is_sampled_by_auto_and_refused_by_laplace():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 6)), np.arange(30) % 2
    with pytest.raises(ConvergenceError, match="Use inference='mcmc', or 'auto'"):
        BayesianLogisticRegression(prior_scale="hierarchical", inference="laplace").fit(X, y)
    with pytest.warns(InferenceWarning) as caught:
        model = BayesianLogisticRegression(prior_scale="hierarchical", draws=100, chains=2).fit(X, y)
    assert "Sampling the posterior by MCMC instead" in str(caught[0].message)
    assert model.inference_ == "mcmc"
    assert isinstance(model.trust_.laplace, Verdict)
    assert set(model.posterior_["posterior"].data_vars) == {"tau", "w"}


@slow
def test_softmax_is_sampled_too():
    model = BayesianLogisticRegression(inference="mcmc", draws=300, chains=2).fit(FRAME, LABELS)
    quick = BayesianLogisticRegression().fit(FRAME, LABELS)
    assert np.abs(model.predict_proba(FRAME) - quick.predict_proba(FRAME)).max() < 0.05
    w = model.posterior_["posterior"]["w"]
    assert w.dims == ("chain", "draw", "class", "coefficient")
    assert list(w["coefficient"].to_numpy()) == ["intercept", "intercept (2)", "a b", "chain", "Σ"]


@slow
@pytest.mark.parametrize("cls", [BayesianLDA, BayesianQDA, BayesianNaiveGaussian])
def test_auto_under_an_lkj_prior_agrees_with_mcmc(cls):
    prior = LKJ(2 * IRIS.X.std(axis=0), IRIS.X.mean(axis=0), 5 * IRIS.X.std(axis=0))
    quick = cls(prior=prior).fit(IRIS.X, IRIS.y)
    assert quick.inference_ in {"laplace", "corrected"}
    sampled = cls(prior=prior, inference="mcmc", draws=4000).fit(IRIS.X, IRIS.y)
    assert np.abs(quick.predict_proba(IRIS.X) - sampled.predict_proba(IRIS.X)).max() < 0.02
    assert np.isnan(sampled.log_evidence_)


def test_a_fit_that_fails_leaves_the_one_before():
    model = BayesianLogisticRegression(inference="laplace").fit(PIMA.X[:, :2], PIMA.y)
    before = model.predict_proba(PIMA.X[:5, :2])
    model.set_params(prior_scale=np.inf, intercept_scale=np.inf)
    with pytest.raises(ConvergenceError, match="perfectly separated"):
        model.fit([[0.0, 0.1], [1.0, 0.3], [2.0, 0.2], [3.0, 0.0]], ["a", "a", "b", "b"])
    np.testing.assert_array_equal(model.predict_proba(PIMA.X[:5, :2]), before)
    np.testing.assert_array_equal(model.classes_, [0, 1])
