"""Simulation-based calibration: uniform ranks for posteriors that are right, and only for those."""

import numpy as np
import pymc as pm
import pytest

from bayes_gda import NIG, NIW, BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, load_example
from bayes_gda.errors import DataError
from bayes_gda.validation import calibrate_estimator, calibrate_model, rank_uniformity, simulation_based_calibration
from bayes_gda.validation.ranks import bins_of

ROWS = 5


def simulate(rng):
    mu = rng.normal()
    return {"mu": mu}, rng.normal(mu, 1, size=ROWS)


def posterior(x, draws, seed, *, shift=0.0, factor=1.0):
    """N(Σx/(n + 1), 1/(n + 1)), the posterior of a mean under N(0, 1), or a wrong one."""
    sd = (ROWS + 1) ** -0.5
    return {"mu": np.random.default_rng(seed).normal(x.sum() / (ROWS + 1) + shift * sd, factor * sd, size=draws)}


def test_the_conjugate_posterior_has_uniform_ranks():
    found = simulation_based_calibration(simulate, posterior, simulations=1000)
    (test,) = found.tests
    assert found.outside() == ()
    assert test.p_value > 0.01
    assert test.shift == pytest.approx(0, abs=0.1)
    assert test.spread == pytest.approx(1, abs=0.07)
    assert "compatible with uniform" in str(found)


@pytest.mark.parametrize(
    ("wrong", "misfit"),
    [
        ({"shift": 0.5}, "too high by 0.5"),
        ({"shift": -0.5}, "too low by 0."),
        ({"factor": 0.6}, "too narrow: its sd is 0."),
        ({"factor": 1.7}, "too wide: its sd is 1."),
    ],
)
def test_a_wrong_posterior_has_not_and_the_misfit_is_named(wrong, misfit):
    found = simulation_based_calibration(simulate, lambda *given: posterior(*given, **wrong), simulations=400)
    assert [test.name for test in found.outside()] == ["mu"]
    assert misfit.split(":")[0][:7] in found.tests[0].misfit
    assert "so the posterior is wrong" in str(found)
    assert found.summary().loc["mu", "misfit"] == found.tests[0].misfit
    expected = -wrong.get("shift", 0.0)
    assert found.tests[0].shift == pytest.approx(expected, abs=0.12)


def test_only_the_log_likelihood_sees_a_method_that_ignores_the_data():
    """Draws of the prior have uniform ranks for every parameter (Modrák et al. 2023)."""

    def log_likelihood(variables, x):
        return {"log likelihood": -0.5 * ((x - variables["mu"][:, None]) ** 2).sum(axis=1)}

    def prior(x, draws, seed):
        return {"mu": np.random.default_rng(seed).normal(size=draws)}

    found = simulation_based_calibration(simulate, prior, simulations=400, quantities=log_likelihood)
    assert [test.name for test in found.outside()] == ["log likelihood"]


def test_simulations_without_a_posterior_are_counted_and_the_seed_decides():
    def refusing(x, draws, seed):
        return None if x.mean() > 1 else posterior(x, draws, seed)

    first, again = (simulation_based_calibration(simulate, refusing, simulations=60) for _ in range(2))
    other = simulation_based_calibration(simulate, refusing, simulations=60, random_seed=1)
    assert first.refused > 0
    assert len(first.ranks) + first.refused == 60
    assert (first.ranks == again.ranks).all()
    assert first.ranks.shape != other.ranks.shape or (first.ranks != other.ranks).any()


def test_errors_name_what_is_wrong():
    with pytest.raises(DataError, match="'mu' is missing"):
        simulation_based_calibration(simulate, lambda *_: {}, simulations=3)
    with pytest.raises(DataError, match=r"of shape \(99,\); got \(5,\)"):
        simulation_based_calibration(simulate, lambda *_: {"mu": np.zeros(5)}, simulations=3)
    with pytest.raises(DataError, match="`simulations` must be a whole number of at least 2; got 1"):
        simulation_based_calibration(simulate, posterior, simulations=1)
    with pytest.raises(DataError, match="0 of 3 simulations have a posterior"):
        simulation_based_calibration(simulate, lambda *_: None, simulations=3)
    with pytest.raises(DataError, match="from 0 to `draws` = 9; got 0 to 10"):
        rank_uniformity([0, 10], 9)


@pytest.mark.parametrize(("draws", "bins"), [(99, 50), (9, 10), (100, 101), (199, 50), (127, 32)])
def test_bins_are_equal(draws, bins):
    assert bins_of(draws) == bins
    assert (draws + 1) % bins == 0


def test_the_band_is_left_where_the_test_rejects():
    rng = np.random.default_rng(0)
    for ranks in (rng.integers(100, size=200), rng.binomial(99, rng.beta(1.5, 1.5, size=200))):
        test = rank_uniformity(ranks, 99)
        lower, upper = test.band(0.95)
        ecdf = np.cumsum(test.counts)[:-1] / test.simulations
        assert ((ecdf < lower) | (ecdf > upper)).any() == (test.p_value <= 0.05)


def test_arviz_draws_the_ranks():
    found = simulation_based_calibration(simulate, posterior, simulations=50)
    pit = found.to_datatree()["prior_sbc"]["mu"].to_numpy()[0]
    assert (np.floor(pit * 100).astype(int) == found.ranks[:, 0]).all()
    assert found.plot().viz["figure"].item() is not None


# ── PyMC models ─────────────────────────────────────────────────────────────────────────────────────────────────────


def normal_mean():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Normal("x", mu, 1, observed=np.zeros(ROWS))
    return model


def few_events():
    """A rate after one count: its posterior, Gamma(.3 + x, 1.3), is skewed, also in log λ."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 0.3, 0.3)
        pm.Poisson("x", rate, observed=np.zeros(1))
    return model


def test_laplace_is_calibrated_where_it_is_exact():
    found = calibrate_model(normal_mean(), simulations=60)
    assert found.names == ("mu", "log likelihood")
    assert found.outside() == ()


def test_laplace_is_not_calibrated_for_a_skewed_posterior():
    found = calibrate_model(few_events(), simulations=120)
    assert "rate" in {test.name for test in found.outside()}


@pytest.mark.slow
@pytest.mark.parametrize(("method", "simulations"), [("corrected", 100), ("mcmc", 15)])
def test_what_samples_the_posterior_itself_is_calibrated(method, simulations):
    found = calibrate_model(few_events(), method=method, simulations=simulations)
    assert len(found.ranks) >= simulations // 4  # the others are refused: the verdict says that MCMC is needed
    assert found.outside() == ()


def test_a_model_that_cannot_be_simulated_says_why():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Potential("likelihood", -(mu**2))
    with pytest.raises(DataError, match="potential 'likelihood' has no data"):
        calibrate_model(model)
    with pytest.raises(DataError, match="`method` must be one of laplace, corrected, mcmc; got 'vi'"):
        calibrate_model(normal_mean(), method="vi")


# ── Estimators ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_exact_estimators_are_calibrated():
    data = load_example("lda-mixture").subset(range(30))
    niw = NIW(m=np.zeros(2), kappa=1.0, Psi=3 * np.eye(2), nu=5.0)
    nig = NIG(m=np.zeros(2), kappa=np.ones(2), a=np.full(2, 3.0), b=np.full(2, 3.0))
    for estimator in (BayesianLDA(prior=niw), BayesianNaiveGaussian(prior=nig)):
        found = calibrate_estimator(estimator, data, simulations=80)
        assert found.outside() == ()
        assert "log likelihood" in found.names


def test_another_prior_than_the_one_that_was_drawn_from_is_seen():
    """Rows of one prior fitted under another: the estimator is right, the calibration of the pair is not."""
    data = load_example("lda-mixture").subset(range(30))
    wide, narrow = (NIG(np.zeros(2), np.ones(2), np.full(2, 3.0), np.full(2, b)) for b in (3.0, 0.3))
    right = BayesianNaiveGaussian(prior=wide)

    def draw(rng):
        theta = right._bind(data).draw_prior(1, int(rng.integers(2**31)))
        X, y = (
            right._bind(data)
            .from_variables({k: np.repeat(x, 30, axis=0) for k, x in theta.items()})
            .sample(30, random_seed=int(rng.integers(2**31)))
        )
        return {name: x[0] for name, x in theta.items()}, (X, y)

    def fit(prior):
        def method(rows, draws, seed):
            if np.bincount(rows[1], minlength=2).min() < 2:
                return None
            model = BayesianNaiveGaussian(prior=prior).fit(*rows).model_
            return model.draw_variables(draws, random_seed=seed)

        return simulation_based_calibration(draw, method, simulations=100)

    assert fit(wide).outside() == ()
    assert {test.name[:6] for test in fit(narrow).outside()} >= {"sigma2"}


def test_a_regression_is_calibrated_and_a_prior_of_the_data_is_refused():
    data = load_example("lda-mixture").subset(range(0, 200, 4))
    found = calibrate_estimator(BayesianLogisticRegression(inference="ep", draws=99, chains=1), data, simulations=30)
    assert found.outside() == ()
    with pytest.raises(DataError, match="prior of BayesianLDA is made from the data"):
        calibrate_estimator(BayesianLDA(), data)
