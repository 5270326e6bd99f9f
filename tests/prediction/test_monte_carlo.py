"""The Monte Carlo error of probabilities: that of closed forms, of many repetitions, of copies and of chains."""

import re

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from bayes_gda.data.examples import load_example
from bayes_gda.data.features import FeatureMap
from bayes_gda.families.base import Family
from bayes_gda.families.drawn import DrawnModel
from bayes_gda.families.gaussian.predictive import log_joint_per_draw
from bayes_gda.families.linear.classifier import RegressionClassifier
from bayes_gda.families.registry import get_family, register, unregister
from bayes_gda.methods.settings import Settings
from bayes_gda.methods.verdict import Importance
from bayes_gda.prediction.monte_carlo import ERRORS, WANTED_ERRORS, judge_errors, probabilities, small

IRIS = load_example("iris")
PHI = FeatureMap.fit(np.array([[-1.0], [1.0]]), ("x",))
ROWS = np.array([[-2.0], [0.1], [1.0], [6.0]])
SHARES = np.array([0.5, 0.5])


def logistic(w):
    return RegressionClassifier(PHI, 2, True, False, SHARES, draws=w)


def repeated(draw, truth, X, class_prior=None, times=200):
    """z (times, n, K) of the probabilities of `times` models against the truth, in their stated standard errors."""
    found = [probabilities(draw(np.random.default_rng(seed)), X, class_prior) for seed in range(times)]
    return np.array([(P - truth) / error for P, error in found])


def assert_standard(z):
    """Each row's z is standard: a stated error of 50 batches has a t distribution of 49 degrees of freedom."""
    times = len(z)
    assert (np.abs(z.mean(axis=0)) < 4.5 / np.sqrt(times)).all()
    spread = np.sqrt((z**2).mean(axis=0))
    assert (np.abs(spread / np.sqrt(49 / 47) - 1) < 4.5 / np.sqrt(2 * times)).all(), spread


def quadrature(x, mean=0.4, sd=2.0):
    a, weight = np.polynomial.hermite_e.hermegauss(180)
    p = weight @ expit((mean + sd * a)[:, None] * x) / weight.sum()
    return np.column_stack([1 - p, p])


def weights(w):
    """Draws of a slope alone: the intercept is zero."""
    return np.column_stack([np.zeros(len(w)), w])


def test_independent_draws_are_off_by_their_stated_error():
    z = repeated(lambda rng: logistic(weights(rng.normal(0.4, 2, 4000))), quadrature(PHI(ROWS)[:, 1]), ROWS)
    assert_standard(z)


def chain(rng, phi, size=1000, chains=4):
    """Chains of N(.4, 2²) with autocorrelation φ, one after the other."""
    x = np.empty((chains, size))
    x[:, 0] = rng.normal(size=chains)
    noise = np.sqrt(1 - phi**2) * rng.normal(size=(chains, size))
    for t in range(1, size):
        x[:, t] = phi * x[:, t - 1] + noise[:, t]
    return weights(0.4 + 2 * x.ravel())


@pytest.mark.parametrize("phi", [-0.5, 0.5, 0.8])
def test_chains_are_off_by_their_stated_error(phi):
    truth = quadrature(PHI(ROWS)[:, 1])
    z = repeated(lambda rng: logistic(chain(rng, phi)), truth, ROWS)
    assert_standard(z)
    # What so many independent draws would have is another number.
    naive = np.mean([probabilities(logistic(chain(np.random.default_rng(s), 0.0)), ROWS)[1] for s in range(20)], axis=0)
    own = np.mean([probabilities(logistic(chain(np.random.default_rng(s), phi)), ROWS)[1] for s in range(20)], axis=0)
    ratio = own[2] / naive[2]
    assert (ratio < 0.8).all() if phi < 0 else (ratio > 1.4).all()


def test_slow_chains_have_the_error_understated_by_less_than_a_quarter():
    # φ = .9: 4000 draws are worth 210.
    z = repeated(lambda rng: logistic(chain(rng, 0.9)), quadrature(PHI(ROWS)[:, 1]), ROWS)
    assert (np.sqrt((z**2).mean(axis=0)) < 1.3).all()


@pytest.mark.parametrize("size", [2000, 16_000])
def test_resampled_draws_are_off_by_the_error_of_their_weights(size):
    # Draws of N(0, 2.5²) weighed to N(.4, 2²): copies count once, and what resampling leaves out counts too.
    def resampled(rng):
        w = rng.normal(0, 2.5, 4000)
        log_ratio = stats.norm.logpdf(w, 0.4, 2) - stats.norm.logpdf(w, 0, 2.5)
        log_weights = log_ratio - np.log(np.exp(log_ratio).sum())
        nan = np.nan
        found = Importance(nan, nan, nan, nan, nan, nan, nan, w, w, None, weights(w), log_weights)
        return logistic(found.draw(size, random_seed=rng))

    assert_standard(repeated(resampled, quadrature(PHI(ROWS)[:, 1]), ROWS))


@pytest.mark.parametrize("class_prior", [None, (0.0, 0.3, 0.7)])
def test_a_generative_model_is_off_by_its_stated_error(class_prior):
    # The truth is the Student-t predictive, of rows between two classes. Where all classes are far, few draws explain
    # the row, and the delta method for the ratio of two means understates its error.
    family = get_family("lda").bind(IRIS.subset(np.arange(0, 150, 2)))
    exact = family.exact().model
    X = IRIS.X[[70, 77, 83, 133]]
    truth = np.exp(exact.log_probabilities(X, class_prior))

    def draw(rng):
        return family.from_variables(exact.draw_variables(2000, random_seed=rng))

    between = (truth > 0.02) & (truth < 0.98)
    assert between.sum() == 8
    with np.errstate(divide="ignore", invalid="ignore"):  # of what is certain
        assert_standard(repeated(draw, truth, X, class_prior, times=100)[:, between])


def test_a_family_that_brings_its_terms_alone_has_the_error_of_our_own():
    class Mine(Family):
        name, kind = "mine", "generative"
        log_terms = staticmethod(log_joint_per_draw)

    data = IRIS.subset(np.arange(0, 150, 3))
    family = get_family("qda").bind(data)
    draws = family.exact().model.draw_variables(1000, random_seed=1)
    register(Mine)
    try:
        P, error = probabilities(DrawnModel("mine", 3, 4, data.shares, draws), data.X)
    finally:
        unregister("mine")
    own, own_error = probabilities(family.from_variables(draws), data.X)
    # They differ in π, whose mean one takes from the draws and the other in closed form.
    assert np.abs(P - own).max() < 0.01
    large = own_error > 0.002
    assert large.sum() >= 4
    np.testing.assert_allclose(error[large], own_error[large], rtol=0.3)


@pytest.mark.parametrize("name", ["lda", "qda", "naive", "rda"])
def test_closed_forms_have_no_monte_carlo_error(name):
    model = get_family(name).bind(IRIS).exact().model
    P, error = probabilities(model, IRIS.X)
    np.testing.assert_array_equal(P, np.exp(model.log_probabilities(IRIS.X)))
    assert not error.any()


def test_a_gaussian_posterior_has_none_either():
    family = get_family("softmax").bind(IRIS)
    assert not probabilities(family.from_gaussian(family.laplace(), Settings()), IRIS.X)[1].any()


@pytest.mark.parametrize("S", [1, 3, 4, 99, 101, 4001])
def test_any_number_of_draws_gives_the_mean_of_all(S):
    model = logistic(weights(np.random.default_rng(S).normal(size=S)))
    P, error = probabilities(model, ROWS)
    np.testing.assert_allclose(P, np.exp(model.log_probabilities(ROWS)), rtol=1e-12)
    assert np.isnan(error).all() == (S < 4)
    assert judge_errors(error, 0.99, "predicted").within == (S >= 4)


def test_rows_far_out_keep_their_digits():
    model = logistic(weights(np.random.default_rng(0).normal(2, 0.1, 1000)))
    P, error = probabilities(model, np.array([[-400.0]]))
    np.testing.assert_allclose(P, np.exp(model.log_probabilities(np.array([[-400.0]]))), rtol=1e-9)
    assert np.isfinite(error).all()


def test_the_sentence_says_what_the_figures_say():
    found = judge_errors(np.array([[0.001, 0.001], [0.0061, 0.0061], [0.0051, 0.002]]), 0.01, "held-out")
    assert (found.rows, found.beyond, found.largest, found.within) == (3, 2, 0.0061, False)
    figures = re.fullmatch(
        r"The largest Monte Carlo standard error of a probability is ([\d.]+) on (\d+) held-out rows "
        r"\(tolerance ([\d.]+)\); for (\d+) of them two standard errors exceed it\.",
        found.sentence,
    )
    assert [float(x) for x in figures.groups()] == [0.0061, 3, 0.01, 2]
    needed = found.draws_needed(1000)
    assert needed == 1500
    assert ERRORS * found.largest / np.sqrt(needed / 1000) <= found.tolerance
    assert found.draws_needed(1000, WANTED_ERRORS) == 6000  # four errors of the worst row, about the square of 2.44
    assert judge_errors(np.full((1, 2), 0.005), 0.01, "predicted").sentence == (
        "The largest Monte Carlo standard error of a probability is 0.0050 on 1 predicted row (tolerance 0.01)."
    )
    assert judge_errors(np.full((1, 2), np.nan), 0.01, "predicted").draws_needed(1) == 10_000  # as if p(1 − p) = ¼


def test_errors_are_settled_where_the_tolerance_holds_three_of_the_largest():
    for largest, settled in ((0.0033, True), (0.0034, False), (0.0, True), (0.5, False)):
        assert judge_errors(np.full((2, 2), largest), 0.01, "predicted").is_settled is settled


@pytest.mark.parametrize(
    ("value", "text"), [(0.1234, "0.123"), (0.0123, "0.012"), (0.00684, "0.0068"), (0.000321, "0.00032"), (0, "0.000")]
)
def test_small_numbers_keep_two_digits(value, text):
    assert small(value) == text
