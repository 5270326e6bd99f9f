"""The predictive with skewness against sums, and the certificate of logistic regression."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import gamma

from bayes_gda.families.linear import links
from bayes_gda.families.linear.ep.certificate import LogisticBeyond, certify
from bayes_gda.families.linear.ep.logistic import logistic_ep
from bayes_gda.families.linear.ep.predictive import expected_sigmoid, skewed_sigmoid
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.priors import Normal


def test_without_skewness_it_is_the_mixture():
    mu, s2 = np.linspace(-8, 8, 101), np.linspace(0, 9, 101)
    np.testing.assert_allclose(skewed_sigmoid(mu, s2, np.zeros(101)), links.mixture(mu, s2), atol=1e-12)
    np.testing.assert_allclose(expected_sigmoid(mu, s2), links.mixture(mu, s2), atol=1e-6)
    grid = np.meshgrid(np.linspace(-6, 6, 200), np.linspace(0, 0.1, 50))
    mu, s2 = grid[0].ravel(), grid[1].ravel()
    np.testing.assert_allclose(expected_sigmoid(mu, s2), links.mixture(mu, s2), atol=6e-7)


@pytest.mark.parametrize("sign", [1, -1])
def test_skewness_of_a_gamma_activation(sign):
    """A shifted gamma variable has κ₃ = 2s³/√shape: most of the Gaussian's error is gone."""
    shape, s = 40.0, 1.2
    u = gamma(shape).ppf((np.arange(200_000) + 0.5) / 200_000)
    z = sign * (u - shape) / np.sqrt(shape)
    mu = np.linspace(-3, 3, 13)
    truth = np.array([expit(m + s * z).mean() for m in mu])
    kappa3 = np.full(13, sign * 2 * s**3 / np.sqrt(shape))
    raw, skewed = links.mixture(mu, s * s) - truth, skewed_sigmoid(mu, np.full(13, s * s), kappa3) - truth
    assert np.abs(raw).max() > 0.002
    assert np.abs(skewed).max() < 0.15 * np.abs(raw).max()


def test_probabilities_stay_probabilities():
    p = skewed_sigmoid(np.array([-2.0, 2.0]), np.array([1.0, 1.0]), np.array([-50.0, 50.0]))
    assert ((p >= 0) & (p <= 1)).all()


def logistic(n, d, seed):
    rng = np.random.default_rng(seed)
    Phi = np.column_stack([np.ones(n), rng.normal(size=(n, d))])
    y = (rng.random(n) < expit(Phi @ rng.normal(size=d + 1) * 2 / np.sqrt(d))).astype(float)
    return LogisticTarget(Phi, y, Normal(scale=2.5))


def test_the_certificate_shrinks_with_the_rows_and_its_bound_holds():
    certificates = []
    for n in (100, 1000, 20_000):
        target = logistic(n, 5, seed=n)
        laplace = regression_laplace(target)
        posterior, sites = logistic_ep(target, laplace)
        beyond = LogisticBeyond(posterior, sites)
        certificates.append(certify(laplace, beyond))
        rows = target.Phi[:200]
        p, skewed, changed = beyond.probabilities(rows)
        s2 = np.einsum("ij,jk,ik->i", rows, beyond.V, rows)
        assert (np.abs(skewed - p) <= beyond.bound(s2)).all()
        assert (np.abs(changed - skewed) <= beyond.bound(s2) * 2).all()
    assert certificates[0].gap > 5 * certificates[1].gap > 5 * certificates[2].gap
    assert certificates[0].cert > certificates[1].cert > certificates[2].cert
    assert certificates[2].estimate.laplace < 0.01


def test_rows_far_away_are_judged_by_themselves():
    target = logistic(60, 3, seed=1)
    laplace = regression_laplace(target)
    beyond = LogisticBeyond(*logistic_ep(target, laplace))
    near, far = (certify(laplace, beyond, scale * target.Phi) for scale in (0.1, 1.0))
    assert near.gap < 0.5 * far.gap
    assert near.cert < 0.3 * far.cert
