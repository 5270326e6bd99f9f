"""How the sampler behaves on posteriors of known shape: starts, mass matrix, warm-up, effective draws a gradient."""

import arviz_stats as azs
import numpy as np
import pymc as pm
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiag

from bayes_gda import sample
from bayes_gda.methods.nuts import sampling
from bayes_gda.methods.nuts.sampling import KNOWN_TUNE, _potential, _starts

SD = np.array([0.01, 1.0, 100.0])
ROOT = np.array([[1.0, 0, 0], [0.9, np.sqrt(1 - 0.81), 0], [0.5, 0.5, np.sqrt(0.5)]]) * SD[:, None]
COVARIANCE = ROOT @ ROOT.T


def test_starts_are_wider_than_the_posterior():
    """R-hat sees chains that have not met only if they start apart: 1.5 times as far as the Gaussian's own draws."""
    center = np.array([5.0, -1.0, 200.0])
    starts = _starts(lambda w: (np.zeros(()), w), center, COVARIANCE, 20_000, np.random.default_rng(1))
    np.testing.assert_allclose(
        np.cov(starts.T) / (SD[:, None] * SD), 1.5**2 * COVARIANCE / (SD[:, None] * SD), atol=0.1
    )
    np.testing.assert_allclose(starts.mean(axis=0), center, atol=0.05 * SD.max())


def test_a_start_without_density_is_drawn_in():
    def inside(w):
        return np.asarray(0.0 if np.abs(w).max() < 0.1 else -np.inf), w

    starts = _starts(inside, np.zeros(3), np.eye(3), 50, np.random.default_rng(1))
    assert np.abs(starts).max() < 0.1
    assert (np.abs(starts).max(axis=1) > 0).all()


def test_the_kinetic_energy_has_the_shape_of_the_posterior():
    """velocity = M⁻¹p, and M⁻¹ is the covariance."""
    momentum = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(_potential(np.zeros(3), COVARIANCE).velocity(momentum), COVARIANCE @ momentum)


def test_the_kinetic_energy_of_very_many_coordinates_is_diagonal(monkeypatch):
    """A step then costs as many products as there are coordinates, not their square."""
    monkeypatch.setattr(sampling, "DENSE_LIMIT", 2)
    potential, momentum = _potential(np.zeros(3), COVARIANCE), np.array([1.0, -2.0, 0.5])
    assert isinstance(potential, QuadPotentialDiag)
    np.testing.assert_allclose(potential.velocity(momentum), SD**2 * momentum)
    draws = np.array([potential.random() for _ in range(4000)])
    np.testing.assert_allclose(draws.std(axis=0) * SD, 1, rtol=0.05)
    with pm.Model() as model:
        pm.MvNormal("x", np.zeros(3), cov=COVARIANCE)
    tree = sample(model, draws=300, chains=2, cores=1, random_seed=1, progress=False)
    np.testing.assert_allclose(tree["posterior"]["x"].std(("chain", "draw")), SD, rtol=0.25)


def test_effective_draws_a_gradient_of_a_correlated_posterior():
    """Scales of .01 and 100: with the mass matrix each draw takes few gradients, with the identity about a thousand."""
    with pm.Model() as model:
        pm.MvNormal("x", np.zeros(3), cov=COVARIANCE)
    tree = sample(model, draws=500, chains=2, cores=1, random_seed=1, progress=False)
    assert tree["posterior"].attrs["tuning_steps"] == KNOWN_TUNE == 200
    gradients = float(tree["sample_stats"]["n_steps"].sum())
    effective = float(azs.ess(tree["posterior"].to_dataset()[["x"]])["x"].min())
    assert gradients < 8 * 1000
    assert effective / gradients > 0.1
    np.testing.assert_allclose(tree["posterior"]["x"].std(("chain", "draw")), SD, rtol=0.15)
