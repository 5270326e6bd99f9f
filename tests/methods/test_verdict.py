"""Verdicts: the corrected posterior by weighted draws, and what is said of single rows."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, log_expit

from bayes_gda.methods import verdict
from bayes_gda.methods.verdict import Importance, PredictionShift, Propagation, Verdict, judge_rows
from bayes_gda.prediction.monte_carlo import MonteCarlo
from bayes_gda.prediction.row_errors import RowErrors, RowTrust, decide_rows, weighted_distance


def weighted(S=200, m=2, seed=0):
    rng = np.random.default_rng(seed)
    log_weights = rng.normal(size=S)
    log_weights -= np.log(np.exp(log_weights).sum())
    return Importance(
        0.3, 0.8, 0.7, 0.2, 0.9, -5.0, 0.1, np.zeros(m), np.ones(m), None, rng.normal(size=(S, m)), log_weights
    )


def test_mean_and_covariance_are_those_of_the_weighted_draws():
    posterior = weighted()
    weight = np.exp(posterior.log_weights)
    np.testing.assert_allclose(posterior.mean, np.average(posterior.draws, axis=0, weights=weight))
    np.testing.assert_allclose(posterior.covariance, np.cov(posterior.draws.T, aweights=weight, ddof=0))


@pytest.mark.parametrize("size", [50, 200, 3000])
def test_systematic_resampling_copies_each_draw_as_often_as_its_weight_says_within_one(size):
    posterior = weighted()
    counts = np.zeros(200)
    for seed in range(20):
        draws = posterior.draw(size, random_seed=seed)
        index = np.array([np.flatnonzero((posterior.draws == w).all(axis=1))[0] for w in draws])
        assert (np.diff(index) >= 0).all()  # copies stand together
        count = np.bincount(index, minlength=200)
        assert np.abs(count - size * np.exp(posterior.log_weights)).max() < 1
        counts += count
    # Without bias: each start is as likely as any other.
    np.testing.assert_allclose(counts.sum() / 20, size)
    assert len({tuple(posterior.draw(50, random_seed=seed)[0]) for seed in range(20)}) > 1


SHIFT, OTHER = PredictionShift(*[0.01] * 8), PredictionShift(*[0.02] * 8)
MONTE_CARLO = {within: MonteCarlo(10, "training", 0 if within else 3, 0.001, 0.02) for within in (True, False)}


def test_the_evidence_of_a_verdict_is_that_of_importance_sampling_before_that_of_the_better_gaussian():
    importance, propagation = weighted(), Propagation(OTHER, 0.0, 0.0, 0.0, -7.0, 0.3, 4)
    both = Verdict("corrected", "", "", importance=importance, propagation=propagation)
    assert (both.log_evidence, both.log_evidence_error, both.pareto_k, both.ess_fraction) == (-5.0, 0.1, 0.3, 0.8)
    better = Verdict("corrected", "", "", propagation=propagation)
    assert (better.log_evidence, better.log_evidence_error, better.shift) == (-7.0, 0.3, OTHER)
    none, exact = Verdict("sampled", "", ""), Verdict("exact", "", "")
    assert np.isnan([none.log_evidence, none.log_evidence_error, none.pareto_k, none.ess_fraction]).all()
    assert none.shift is None
    assert exact.ess_fraction == 1


@pytest.mark.parametrize(
    ("word", "diagnosis", "within", "light"),
    [
        ("exact", None, True, "green"),
        ("trusted", None, True, "green"),
        ("trusted", None, False, "amber"),
        ("corrected", None, True, "amber"),
        ("needs-mcmc", None, True, "red"),
        ("needs-mcmc", None, False, "red"),
        ("sampled", None, True, "amber"),
        ("sampled", "good", True, "green"),
        ("sampled", "good", False, "amber"),
        ("sampled", "caution", True, "amber"),
        ("sampled", "bad", False, "red"),
        ("trusted", "bad", True, "green"),  # of draws that were not used
    ],
)
def test_a_light_is_green_only_where_nothing_is_left_to_do(word, diagnosis, within, light):
    diagnosed = None if diagnosis is None else SimpleNamespace(verdict=diagnosis)
    assert Verdict(word, "", "", diagnosis=diagnosed, monte_carlo=MONTE_CARLO[within]).light == light


# ── Single rows ─────────────────────────────────────────────────────────────────────────────────────────────────────


class Slopes:
    """A logistic regression without intercept as a fitted model: draws (S, 1), rows (n, 1)."""

    K, averages_draws = 2, False

    def __init__(self, P, errors=None, link=0.0):
        self.P, self.errors, self.link = P, errors, link

    def batch_means(self, X):
        return None

    def log_probabilities(self, X, class_prior=None):
        return np.log(self.P)

    def link_errors(self, X):
        return np.full(len(X), self.link)

    def approximation_errors(self, X):
        return self.errors

    def variables_of(self, draws):
        return {"w": draws}

    def log_terms(self, variables, X):
        a = variables["w"] @ X.T
        return np.stack([log_expit(-a), log_expit(a)], axis=-1)


X = np.linspace(-3, 3, 7)[:, None]


def test_the_distance_to_weighted_draws_has_two_of_their_standard_errors():
    """p = Σ w_s p_s has the standard error √(Σ w_s²(p_s − p)²)."""
    posterior = weighted(m=1)
    weight = np.exp(posterior.log_weights)
    p = expit(posterior.draws @ X.T)
    mean = weight @ p
    error = np.sqrt(weight**2 @ (p - mean) ** 2)
    P = np.stack([0.9 - mean * 0.9, 0.1 + mean * 0.9], axis=1)
    distance = weighted_distance(Slopes(P), {"w": posterior.draws}, posterior.log_weights, X, P)
    np.testing.assert_allclose(distance, np.abs(P[:, 1] - mean) + 2 * error)
    rows = judge_rows(Slopes(P), Verdict("trusted", "", "", importance=posterior), X, 0.1)
    np.testing.assert_allclose(rows.approximation, distance)
    np.testing.assert_array_equal(rows.verdict, np.where(distance <= 0.1, "trusted", "needs-mcmc"))
    assert {*rows.verdict} == {"trusted", "needs-mcmc"}


def test_what_is_not_known_of_a_row_is_not_said():
    P, posterior = np.full((7, 2), 0.5), weighted(m=1)
    exact = judge_rows(Slopes(P, link=0.01), Verdict("exact", "", ""), X, 0.02)
    assert {*exact.verdict} == {"exact"}
    np.testing.assert_array_equal(exact.approximation, 0)
    np.testing.assert_allclose(exact.error, 0.01)
    for word in (Verdict("trusted", "", ""), Verdict("needs-mcmc", "", "", importance=posterior)):
        unknown = judge_rows(Slopes(P), word, X, 0.02)
        assert np.isnan(unknown.approximation).all()
        assert {*unknown.verdict} == {"needs-mcmc"}
        assert not unknown.within.any()
    no_draws = Slopes(P)
    no_draws.variables_of = lambda draws: None
    assert np.isnan(judge_rows(no_draws, Verdict("trusted", "", "", importance=posterior), X, 0.02).error).all()
    by_draws = Slopes(P)
    by_draws.averages_draws = True  # the probabilities are those of the weighted draws
    own = judge_rows(by_draws, Verdict("corrected", "", "", importance=posterior), X, 0.02)
    np.testing.assert_array_equal(own.approximation, 0)
    assert {*own.verdict} == {"corrected"}


def test_the_class_with_the_largest_monte_carlo_error_counts(monkeypatch):
    error = np.array([[0.001, 0.004, 0.002], [0.003, 0.001, 0.002]])
    monkeypatch.setattr(verdict, "probabilities", lambda model, X: (np.full((2, 3), 1 / 3), error))
    rows = judge_rows(Slopes(None), Verdict("sampled", "", ""), X[:2], 0.02)
    np.testing.assert_array_equal(rows.monte_carlo, [0.004, 0.003])


def test_what_monte_carlo_and_link_add_counts_for_a_row():
    errors = RowErrors(*np.array([[0.004, 0.004, 0.004], [0.006, 0.013, np.nan], [0.004, 0.004, 0.004]]))
    words = decide_rows(errors, np.array([0.003, 0.003, 0.007]), 0.01)
    np.testing.assert_array_equal(words, ["trusted", "corrected", "needs-mcmc"])
    rows = RowTrust(words, errors.own, np.full(3, 0.001), np.array([0.001, 0.001, 0.005]), 0.01)
    np.testing.assert_allclose(rows.error, 0.004 + 2 * 0.001 + np.array([0.001, 0.001, 0.005]))
    np.testing.assert_array_equal(rows.within, [True, True, False])
    assert str(rows) == (
        "1 of 3 rows may be off by more than the tolerance of 0.01; the largest error is estimated at 0.011."
    )
    words = judge_rows(Slopes(np.full((3, 2), 0.5), errors, link=0.004), Verdict("trusted", "", ""), X[:3], 0.01)
    np.testing.assert_array_equal(words.verdict, ["trusted", "corrected", "corrected"])
