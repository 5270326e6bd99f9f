"""Class shares of unlabelled rows from a fitted model: level and coverage at fixed parameters, and brute force."""

import numpy as np
import pytest
from scipy.stats import binom

from bayes_gda import BayesianLDA, BayesianLogisticRegression
from bayes_gda.prediction.shift import add_training_error, estimate_class_prior

OLD, MEANS = np.array([0.6, 0.4]), np.array([[0.0, 0.0], [1.5, 0.0]])
MODELS = {"lda": BayesianLDA(), "logistic": BayesianLogisticRegression(inference="laplace")}


def sample(n, shares, rng):
    y = rng.choice(len(shares), size=n, p=shares)
    return MEANS[y] + rng.standard_normal((n, 2)), y


def level_and_coverage(name, trained, runs, new=OLD, seed=0):
    """Rejections at 5 %, and intervals ± 1.96 se that hold the truth, with `trained` rows and 1000 new ones.

    Of the estimate that allows for training, and of the one that does not.
    """
    rejected, covered = np.zeros((runs, 2), dtype=bool), np.zeros((runs, 2), dtype=bool)
    for r in range(runs):
        rng = np.random.default_rng([seed, trained, r])
        model = MODELS[name].fit(*sample(trained, OLD, rng))
        X, _ = sample(1000, new, rng)
        known = estimate_class_prior(model.predict_log_proba(X), model.model_.class_shares)
        for j, found in enumerate((model.estimate_class_prior(X), known)):
            rejected[r, j] = found.p_value < 0.05
            covered[r, j] = abs(found.prior[0] - new[0]) < 1.96 * found.standard_error[0]
    return rejected.sum(axis=0), covered.sum(axis=0)


@pytest.mark.parametrize("name", MODELS)
def test_unchanged_shares_are_not_rejected_after_50_rows(name):
    runs = 40
    rejected, covered = level_and_coverage(name, 50, runs)
    # Beyond these a binomial of 5 % and of 95 % goes once in a thousand.
    assert rejected[0] <= binom.ppf(0.999, runs, 0.05)
    assert covered[0] >= binom.ppf(0.001, runs, 0.95)
    # With densities and old shares taken for known, .67 of the tests reject, and .37 of the intervals hold.
    assert rejected[1] > runs / 2
    assert covered[1] < runs / 2


@pytest.mark.slow
@pytest.mark.parametrize("trained", [50, 200, 1000])
@pytest.mark.parametrize("name", MODELS)
def test_level_and_coverage_are_those_stated(name, trained):
    """400 runs of each, within the 99.9 % band of the binomial, with unchanged shares and with others."""
    runs = 400
    low, high = binom.ppf([0.0005, 0.9995], runs, 0.05)
    rejected, covered = level_and_coverage(name, trained, runs)
    assert low <= rejected[0] <= high
    assert low <= runs - covered[0] <= high
    rejected, covered = level_and_coverage(name, trained, runs // 2, np.array([0.35, 0.65]), seed=1)
    assert runs / 2 - covered[0] <= binom.ppf(0.9995, runs // 2, 0.05)
    assert rejected[0] > runs / 20


def test_shares_of_a_regression_move_with_its_weights():
    """Against the training rows themselves, weighted by a Bayesian bootstrap, which the model does not keep."""
    rng = np.random.default_rng(2)
    X, y = sample(150, OLD, rng)
    model = MODELS["logistic"].fit(X, y)
    new, _ = sample(2000, np.array([0.8, 0.2]), rng)
    found = model.estimate_class_prior(new)
    log_p = model.predict_log_proba(new)
    known = estimate_class_prior(log_p, model.model_.class_shares)
    variables = model.model_.draw_variables(4000, random_seed=3)
    draws = model.model_.probability_draws(variables, new[::4])[0]
    shares = np.einsum("si,sik->sk", rng.dirichlet(np.ones(150), 4000), model.model_.probability_draws(variables, X)[0])
    expected = add_training_error(known, np.exp(log_p), model.model_.class_shares, draws, shares)
    np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=0.15)
    # Shares drawn apart from the weights would say that the densities are less well known than they are.
    apart = add_training_error(known, np.exp(log_p), model.model_.class_shares, draws, rng.permutation(shares))
    assert apart.standard_error[0] > 1.15 * expected.standard_error[0]


def test_a_regression_that_does_not_know_its_rows_states_no_error():
    rng = np.random.default_rng(4)
    model = BayesianLogisticRegression(inference="laplace").fit(*sample(100, OLD, rng))
    X, _ = sample(200, OLD, rng)
    whole = model.estimate_class_prior(X)
    del model.n_samples_seen_  # as in a file of an old version
    found = model.estimate_class_prior(X)
    np.testing.assert_array_equal(found.prior, whole.prior)
    assert np.isnan(found.standard_error).all()
    assert np.isnan(found.p_value)


@pytest.mark.parametrize("name", MODELS)
def test_few_and_hopeless_rows_have_an_answer(name):
    model = MODELS[name].fit(*sample(60, OLD, np.random.default_rng(5)))
    single = model.estimate_class_prior(MEANS[:1])
    assert single.prior.tolist() == [1, 0]
    assert np.isnan(single.standard_error).all()
    assert 0 < single.p_value <= 1
    far = model.estimate_class_prior(np.tile([[60.0, 0.0], [50.0, 1.0]], (20, 1)))
    assert far.prior.tolist() == [0, 1]
    assert 0 <= far.p_value <= 1
