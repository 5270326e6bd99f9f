"""A family written here, a PyMC model and a predictive, gets every door without a change in the package."""

import json
from typing import ClassVar

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
from command_line import run_json
from scipy.special import gammaln
from scipy.stats import nbinom
from sklearn.base import clone

from bayes_gda import Dataset, FamilyClassifier, compare_models, load, write_report
from bayes_gda.cli.actions.fits import FitOptions
from bayes_gda.cli.actions.scores import compare
from bayes_gda.errors import DataError
from bayes_gda.estimators import estimator_class
from bayes_gda.estimators.family import make_class
from bayes_gda.families.base import Family
from bayes_gda.families.registry import family_names, register, unregister
from bayes_gda.reporting.report import ReportSettings


class Poisson(Family):
    """Counts, independent within a class: r_kj ~ Gamma(2, 1/2), x_j | y=k ~ Poisson(r_kj)."""

    name, title, kind = "poisson", "Poisson naive Bayes", "generative"
    sentence = "Within a class, every feature is a count with a rate of its own."
    formula = ("y ~ Categorical(π)", "xⱼ | y = k ~ Poisson(rₖⱼ)")
    variables = ("pi", "rate")

    def build(self):
        data = self.plain_data
        with pm.Model() as model:
            pi = pm.Dirichlet("pi", a=np.ones(data.K))
            rate = pm.Gamma("rate", alpha=2.0, beta=0.5, shape=(data.K, data.d))
            weight = np.ones(data.n) if data.weight is None else data.weight
            rows = pm.logp(pm.Poisson.dist(rate[data.y]), data.X.astype(int)).sum(axis=1) + pt.log(pi[data.y])
            pm.Potential("rows", (weight * rows).sum())
        return model

    @staticmethod
    def log_terms(variables, X):
        rate, x = variables["rate"][:, None], X[None, :, None, :]
        counts = (x * np.log(rate) - rate - gammaln(x + 1)).sum(axis=-1)
        return counts + np.log(variables["pi"])[:, None]


@pytest.fixture(autouse=True)
def poisson():
    register(Poisson)
    yield
    unregister("poisson")


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(0)
    y = np.arange(120) % 2
    X = rng.poisson(np.array([[3.0, 6.0], [5.0, 4.0]])[y]).astype(float)
    return Dataset.from_arrays(X, np.array(["cold", "warm"])[y], feature_names=["bees", "flies"])


def exact(data, X):
    """The conjugate answer: gamma posteriors of the rates, negative-binomial predictives."""
    log_p = np.empty((len(X), data.K))
    for k in range(data.K):
        mine = data.X[data.y == k]
        shape, precision = 2.0 + mine.sum(axis=0), 0.5 + len(mine)
        log_p[:, k] = nbinom.logpmf(X, shape, precision / (precision + 1)).sum(axis=1) + np.log(1 + len(mine))
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def labels(data):
    return np.array(data.class_names)[data.y]


def test_its_estimator_is_near_the_exact_answer_and_says_so(counts):
    model = FamilyClassifier("poisson").fit(counts.X, labels(counts))
    assert model.trust_.verdict in {"trusted", "corrected"}
    np.testing.assert_allclose(model.predict_proba(counts.X), exact(counts, counts.X), atol=0.01)
    # Other class shares stand in place of each draw's own, in predictions and in draws of them.
    share = np.array([0.9, 0.1])
    odds = exact(counts, counts.X) / np.bincount(counts.y) * share  # as many rows of each class
    shifted = model.predict_proba(counts.X, share)
    np.testing.assert_allclose(shifted, odds / odds.sum(axis=1, keepdims=True), atol=0.01)
    P, weight = model.model_.probability_draws(model.model_.draws, counts.X, share)
    np.testing.assert_allclose((weight[..., None] * P).sum(axis=0), shifted, rtol=1e-10)
    low, high = np.moveaxis(model.predict_interval(counts.X[:5]), -1, 0)
    assert ((low > 0) & (high < 1) & (low < high)).all()
    assert set(model.posterior_["posterior"].data_vars) == {"pi", "rate"}
    doubled = FamilyClassifier("poisson").fit(counts.X, labels(counts), sample_weight=np.full(counts.n, 2.0))
    assert (doubled.summary()["sd"] < model.summary()["sd"]).all()


def test_its_rows_are_judged_by_the_weights_of_its_draws(counts):
    """Against the conjugate answer, on rows like those of the training and far outside them."""
    model = FamilyClassifier("poisson", inference="laplace", tolerance=0.2, draws=2000, chains=2)
    model.fit(counts.X, counts.y)
    rows = np.vstack([counts.X[:40], [[0.0, 30.0], [25.0, 0.0], [40.0, 40.0]]])
    trust = model.trust_for(rows)
    assert (trust.approximation > 0).all()
    off = np.abs(model.predict_proba(rows) - exact(counts, rows)).max(axis=1)
    assert (off <= trust.approximation + 4 * trust.monte_carlo).all()
    assert trust.error.max() < 0.2


def test_it_is_saved_and_loaded(counts, tmp_path):
    model = FamilyClassifier("poisson", draws=200).fit(counts.X, labels(counts))
    model.save(tmp_path / "poisson.nc")
    again = load(tmp_path / "poisson.nc")
    np.testing.assert_array_equal(again.predict_proba(counts.X), model.predict_proba(counts.X))
    assert str(again.trust_) == str(model.trust_)


def test_it_is_sampled_by_nuts(counts):
    model = FamilyClassifier("poisson", inference="mcmc", draws=300, chains=2).fit(counts.X, labels(counts))
    assert model.trust_.verdict == "sampled"
    np.testing.assert_allclose(model.predict_proba(counts.X), exact(counts, counts.X), atol=0.02)


def test_it_has_a_line_in_comparisons(counts, tmp_path):
    result = compare(counts, ("naive", "poisson"), 0.3, FitOptions(), lambda stage, share: None)
    assert set(result.scores.loo.index) == {"naive", "poisson"}
    model = FamilyClassifier("poisson").fit(result.train.X, labels(result.train))
    table = compare_models({"poisson": model}, result.train.X, labels(result.train))
    assert table.loo.loc["poisson", "elpd"] == pytest.approx(result.scores.loo.loc["poisson", "elpd"], rel=1e-6)
    frame = pd.DataFrame(counts.X, columns=counts.feature_names).assign(season=labels(counts))
    frame.to_csv(tmp_path / "counts.csv", index=False)
    said = run_json("compare", tmp_path / "counts.csv", "-t", "season", "--models", "poisson,lda")
    assert set(said["models"]) == {"poisson", "lda"}


def test_it_has_a_section_in_the_report(counts, tmp_path):
    report = write_report(
        counts, tmp_path / "out", settings=ReportSettings(quick=True, models=("poisson", "lda"), draws=500)
    )
    numbers = json.loads((tmp_path / "out" / "report.json").read_text())
    model = next(line for line in numbers["models"] if line["name"] == "poisson")
    assert model["title"] == "Poisson naive Bayes"
    assert model["parameters"] == 5
    assert "Poisson naive Bayes" in report.page.read_text()
    assert {line["model"] for line in numbers["sensitivity"]["models"]} == {"poisson", "lda"}


class Rated(Poisson):
    """The same with a prior mean of the rates that the user may set, and rows that can be drawn."""

    name, estimator = "rated", "BayesianRated"
    options: ClassVar = {"prior": "None: the toy has no other.", "mean": "Prior mean of the rates."}

    @classmethod
    def bind(cls, data: Dataset, prior: None = None, *, mean: float = 4.0) -> "Rated":
        assert mean > 0
        return cls(data, mean)

    @staticmethod
    def draw_rows(variables, random_seed=None):
        rng = np.random.default_rng(random_seed)
        y = (rng.random((len(variables["pi"]), 1)) > np.cumsum(variables["pi"], axis=1)[:, :-1]).sum(axis=1)
        return rng.poisson(variables["rate"][np.arange(len(y)), y]).astype(float), y


def test_an_estimator_is_made_from_a_family_that_names_one(counts, tmp_path):
    made = make_class(Rated)
    assert make_class(Rated) is made is estimator_class(Rated)
    assert made.__name__ == "BayesianRated"
    assert list(made().get_params()) == sorted(["prior", "mean", *set(FamilyClassifier().get_params()) - {"family"}])
    assert "mean\n    Prior mean of the rates.\ninference\n" in made.__doc__
    with pytest.raises(TypeError, match="unexpected keyword argument 'median'"):
        made(median=3)
    register(Rated)
    try:
        model = clone(made(mean=5.0, draws=100)).fit(counts.X, labels(counts))
        assert model.prior_ == 5.0  # what `bind` made of it
        rows, drawn = model.sample(400)
        assert rows[drawn == "cold"].mean(axis=0) == pytest.approx([3.0, 6.0], abs=0.6)
        np.testing.assert_array_equal(model.sample(400)[0], rows)
    finally:
        unregister("rated")
    with pytest.raises(DataError, match="cannot be generated"):
        FamilyClassifier("poisson", draws=100).fit(counts.X, labels(counts)).sample(3)
    frame = pd.DataFrame(counts.X, columns=counts.feature_names).assign(season=labels(counts))
    frame.to_csv(tmp_path / "counts.csv", index=False)
    with pytest.raises(DataError, match="needs its rows in memory"):
        FamilyClassifier("poisson").fit(tmp_path / "counts.csv", "season")


def test_names_are_taken_once_and_unknown_ones_are_listed(counts):
    assert "poisson" in family_names()
    with pytest.raises(DataError, match="There is a model 'lda' already"):
        register(type("Other", (Poisson,), {"name": "lda"}))
    with pytest.raises(DataError, match="no model 'oak'; the models are lda, qda"):
        FamilyClassifier("oak").fit(counts.X, labels(counts))
