"""The family as a whole: PyMC model and hand-written density, choices, evidence, MCMC, naive Gaussian classes."""

import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

from bayes_gda import Dataset
from bayes_gda.errors import DataError, InferenceWarning, PriorError
from bayes_gda.families.gaussian.family import Naive
from bayes_gda.families.mixed.choice import candidates, choose
from bayes_gda.families.mixed.family import Mixed
from bayes_gda.families.mixed.novelty import detect_novelty, worth_measuring
from bayes_gda.methods.differences import precision
from bayes_gda.methods.ladder import fit
from bayes_gda.methods.settings import Settings
from bayes_gda.prediction.monte_carlo import probabilities
from bayes_gda.priors.mixed import ColumnPrior, MixedPrior

WORDS = {
    "a": "normal",
    "b": "log-normal",
    "c": "poisson",
    "d": "negative-binomial",
    "e": "bernoulli",
    "f": "categorical",
    "g": "beta",
    "h": "gamma",
    "i": "binomial(7)",
    "j": "logit-normal",
}


@contextmanager
def quiet():
    """Let a verdict on few draws pass: the tests hold the numbers to the exact posterior themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        yield


def make_frame(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    frame = pd.DataFrame(
        {
            "a": rng.normal(y, 2),
            "b": np.exp(rng.normal(0.5 * y, 0.5)),
            "c": rng.poisson(3 + 2 * y),
            "d": rng.negative_binomial(2, 0.3, n),
            "e": rng.binomial(1, 0.3 + 0.2 * y).astype(bool),
            "f": np.array(list("uvw"))[rng.integers(0, 3, n)],
            "g": rng.beta(2, 3 + y),
            "h": rng.gamma(3, 2 + y),
            "i": rng.binomial(7, 0.3, n),
            "j": rng.beta(2, 3, n),
            "class": np.array(["no", "yes"])[y],
        }
    )
    frame.loc[3, "a"] = np.nan
    frame.loc[7, "f"] = None
    return frame


@pytest.fixture(scope="module")
def data():
    return Dataset.from_frame(make_frame(), target="class", missing="keep")


@pytest.fixture(scope="module")
def family(data):
    return Mixed.bind(data, distributions=WORDS)


def test_the_density_is_that_of_the_pymc_model(family):
    from bayes_gda.methods.adapter import ModelDensity

    graph = ModelDensity.of(family.build())
    assert graph.dim == family.density.dim
    rng = np.random.default_rng(1)
    W = family.density.start + 0.3 * rng.standard_normal((5, graph.dim))
    value, gradient = family.density.values_and_gradients(W)
    there, slope = graph.values_and_gradients(W)
    np.testing.assert_allclose(value, there, rtol=1e-9)
    np.testing.assert_allclose(gradient, slope, rtol=1e-6, atol=1e-6)
    drawn, ours = graph.draws(W), family.density.variables(W)
    for name in family.variables:
        np.testing.assert_allclose(ours[name], drawn[name], rtol=1e-9)
    np.testing.assert_allclose(family.density.coordinates(ours), W, atol=1e-9)


def test_coordinates_fall_into_independent_groups(family):
    w = family.density.start
    gradients = lambda W: family.density.values_and_gradients(W)[1]  # noqa: E731
    together = precision(gradients, w, family.density.independent)
    np.testing.assert_allclose(together, precision(gradients, w), atol=1e-4)


def test_rows_or_their_tally_are_the_same_model(data):
    import pymc as pm

    from bayes_gda.models import mixed

    prior, _ = choose(data, WORDS)
    tallied, rowwise = (mixed.build(data, prior, rowwise=flag) for flag in (False, True))
    point = tallied.initial_point()
    values = [model.compile_logp(mode="FAST_COMPILE")(point) for model in (tallied, rowwise)]
    assert values[0] == pytest.approx(values[1], rel=1e-10)
    drawn = pm.sample_prior_predictive(2, model=rowwise, random_seed=0, compile_kwargs={"mode": "FAST_COMPILE"})
    assert {"y", "x_a", "x_f"} <= set(drawn["prior_predictive"].data_vars)


def test_the_evidence_is_that_of_importance_sampling(family):
    exact = fit(family, Settings())
    assert exact.chosen == "exact"
    with quiet():
        weighed = fit(family, Settings(inference="laplace"))
    value, error = weighed.evidence["corrected"]
    assert error < 0.05
    assert exact.log_evidence[0] == pytest.approx(value, abs=4 * error)


def test_mcmc_agrees_with_the_exact_posterior(family, data):
    with quiet():
        sampled = fit(family, Settings(inference="mcmc", draws=500, chains=2, random_seed=3))
    P, error = probabilities(sampled.model, data.X)
    truth = np.exp(family.exact().model.log_probabilities(data.X))
    assert (np.abs(P - truth) < 5 * error + 1e-4).all()
    assert error.max() < 0.02
    assert sampled.tree is not None
    assert list(sampled.tree["posterior"].coords["level"].values) == ["f[u]", "f[v]", "f[w]", "f[not seen]"]
    draws, exact = sampled.model.draws, family.exact().model.draw_variables(20_000, random_seed=0)
    for name in family.variables:
        off = (draws[name].mean(axis=0) - exact[name].mean(axis=0)) / exact[name].std(axis=0)
        assert np.abs(off).max() < 0.25, name  # 1000 draws, effectively a few hundred


def test_normal_columns_are_the_naive_gaussian_model():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(y[:, None], 1.5, (60, 4))
    X[4, 2] = np.nan
    data = Dataset.from_arrays(X, y, missing="keep")
    mixed = Mixed.bind(data, distributions=dict.fromkeys(data.feature_names, "normal")).exact()
    naive = Naive.bind(data).exact()
    assert naive is not None
    assert mixed.log_evidence == pytest.approx(naive.log_evidence, rel=1e-12)
    np.testing.assert_allclose(mixed.model.log_probabilities(X), naive.model.log_probabilities(X), atol=1e-10)


def test_leave_one_out_is_a_fit_without_the_row(family, data):
    without, full = family.exact().model.leave_one_out(data.X, data.y)
    np.testing.assert_allclose(full, family.exact().model.log_joint(data.X))
    for i in (0, 3, 7, 50):
        rest = data.subset(np.arange(data.n) != i)
        other = Mixed.bind(rest, family.prior).exact().model.log_joint(data.X[[i]])[0]
        np.testing.assert_allclose(without[i], other, atol=1e-6)


def test_log_terms_average_to_the_predictive(family, data):
    model = family.exact().model
    variables = model.draw_variables(4000, random_seed=1)
    terms = model.log_terms(variables, data.X[:20])
    mean = np.exp(terms).mean(axis=0)
    error = np.exp(terms).std(axis=0) / np.sqrt(4000)
    assert (np.abs(mean - np.exp(model.log_joint(data.X[:20]))) < 5 * error).all()
    prior, likelihood = family.prior_and_likelihood(variables)
    total = family.target.log_density(family.density.coordinates(variables))
    spread = total - prior - likelihood  # up to a constant of the simplexes' coordinates
    assert spread.std() < 1e-6


def test_generated_rows_have_the_moments_of_the_posterior(family):
    X, y = family.exact().model.sample(4000, random_seed=0)
    data = Dataset.from_frame(make_frame(), target="class", missing="keep")
    for k in range(2):
        mine, theirs = data.X[data.y == k], X[y == k]
        scale = np.nanstd(mine, axis=0)
        assert (np.abs(np.nanmean(mine, axis=0) - theirs.mean(axis=0)) < 0.5 * scale).all()
    again = Mixed.bind(Dataset.of_checked(X, y, data.feature_names, data.class_names), family.prior)
    assert np.isfinite(again.exact().log_evidence)


def test_candidates_go_by_type_and_values(data):
    from bayes_gda.data.groups import groups_of

    found = {group.name: candidates(group, data.X, data.y) for group in groups_of(data.encoding)}
    assert found["a"] == ("normal",)
    assert found["b"] == ("normal", "log-normal", "gamma")
    assert found["c"][:3] == ("poisson", "negative-binomial", "normal")
    assert found["e"] == ("bernoulli",)
    assert found["f"] == ("categorical",)
    rare = Dataset.from_arrays(np.array([0.0] * 50 + [1, 2, 3, 0])[:, None], np.arange(54) % 2)
    assert choose(rare)[0].columns[0].distribution in ("poisson", "negative-binomial", "categorical")
    assert found["g"] == ("normal", "log-normal", "gamma", "logit-normal", "beta")


@pytest.mark.parametrize(
    ("word", "draw"),
    [
        ("log-normal", lambda rng: np.exp(rng.normal(0, 1, 300))),
        ("gamma", lambda rng: rng.gamma(1.0, 2.0, 300)),
        ("poisson", lambda rng: rng.poisson(4, 300)),
        ("negative-binomial", lambda rng: rng.negative_binomial(1, 0.1, 300)),
        ("normal", lambda rng: rng.normal(20, 5, 300)),
        ("categorical", lambda rng: rng.choice([1, 2, 8], 300)),
        ("beta", lambda rng: rng.beta(0.6, 0.6, 300)),
    ],
)
def test_the_evidence_finds_the_distribution_of_large_samples(word, draw):
    right = 0
    for seed in range(5):
        x = draw(np.random.default_rng(seed)).astype(float)
        data = Dataset.from_arrays(x[:, None], np.arange(300) % 2)
        right += choose(data)[0].columns[0].distribution == word
    assert right >= 4


def test_choices_are_said_in_a_sentence(data):
    family = Mixed.bind(data, distributions={"a": "normal"})
    (sentence,) = family.remarks()
    assert "chosen by log evidence" in sentence
    assert "f categorical" in sentence
    assert "As given: a normal." in sentence
    assert Mixed.bind(data, distributions="type").prior.distributions["c"] == "poisson"
    assert len(family.describe_prior()) == 11


@pytest.mark.parametrize(
    ("distributions", "match"),
    [
        ("oak", "must be 'evidence', 'type' or a word by column"),
        ({"z": "normal"}, "names 'z', which is no column"),
        ({"a": "oak"}, "must be one of normal"),
        ({"a": "log-normal"}, "cannot be log-normal: it takes numbers above 0; got"),
        ({"f": "normal"}, "holds categories, which 'normal' cannot model"),
        ({"i": "binomial(2)"}, "whole numbers from 0 to the number of trials"),
        ({"i": "poisson(2)"}, "Only binomial takes a number"),
    ],
)
def test_choices_that_cannot_be_say_why(data, distributions, match):
    with pytest.raises(DataError, match=match.replace("(", r"\(").replace(")", r"\)")):
        Mixed.bind(data, distributions=distributions)


def test_priors_check_themselves(data, family):
    with pytest.raises(PriorError, match="needs 4 numbers"):
        ColumnPrior("a", "normal", 0, 1, np.array([0.0, 1.0]))
    with pytest.raises(PriorError, match="must be one of"):
        ColumnPrior("a", "oak", 0, 1, np.ones(4))
    with pytest.raises(PriorError, match="without gaps"):
        MixedPrior((ColumnPrior("a", "normal", 1, 2, np.ones(4)),))
    with pytest.raises(PriorError, match="must be a MixedPrior"):
        Mixed.bind(data, prior=3)
    with pytest.raises(PriorError, match="columns of X"):
        Mixed.bind(data, MixedPrior(family.prior.columns[:2]))
    assert family.prior.same_as(MixedPrior(family.prior.columns))
    assert not family.prior.same_as(Mixed.bind(data).prior)


def test_alarms_come_at_the_chosen_rate():
    # Without the beta column, whose predictive is slow.
    data = Dataset.from_frame(make_frame().drop(columns="g"), target="class", missing="keep")
    model = Mixed.bind(data).exact().model
    X, _ = model.sample(4000, random_seed=5)
    assert detect_novelty(model, X, false_alarm=0.05).novel.mean() == pytest.approx(0.05, abs=0.015)
    X[:, 0] = 40.0
    assert detect_novelty(model, X[:20]).novel.all()
    X[:, 0] = np.nan
    assert detect_novelty(model, X[:200], false_alarm=0.05).novel.mean() < 0.15
    X[:20, 2] = -1.0  # no count
    assert detect_novelty(model, X[:20]).novel.all()
    assert not detect_novelty(model, np.full((1, model.d), np.nan)).novel.any()


def test_worth_is_that_of_brute_force(family, data):
    model = family.exact().model
    x = data.X[[0]].copy()
    x[0, [0, 2, 5, 6]] = np.nan  # a, c and both dummies of f
    worth = worth_measuring(model, x)[0]
    assert np.isnan(worth[[1, 3, 4]]).all()
    rng = np.random.default_rng(0)
    p = np.exp(model.log_probabilities(x))[0]
    y = rng.choice(2, 60_000, p=p)
    for j, start, stop in ((0, 0, 1), (2, 2, 3), (5, 5, 7)):
        column, spec = model.columns[j], model.prior.columns[j]
        draws = {name: value[np.arange(len(y)), y] for name, value in column.draw(len(y), rng).items()}
        filled = np.tile(x, (len(y), 1))
        filled[:, start:stop] = spec.write(column.draw_values(draws, rng))
        loss = 1 - np.exp(model.log_probabilities(filled)).max(axis=1)
        error = loss.std() / np.sqrt(len(y))
        assert worth[j] == pytest.approx((1 - p.max()) - loss.mean(), abs=4 * error + 2e-3)
