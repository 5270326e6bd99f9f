"""The predictive with skewness against sums, and the certificate of logistic regression."""

import numpy as np
import pytest
from scipy.special import expit, roots_hermitenorm
from scipy.stats import gamma

from bayes_gda.families.linear import links
from bayes_gda.families.linear.ep import certificate
from bayes_gda.families.linear.ep.certificate import Certificate, LogisticBeyond, certify
from bayes_gda.families.linear.ep.logistic import logistic_ep
from bayes_gda.families.linear.ep.predictive import expected_sigmoid, skewed_sigmoid, third_change
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


def integral(function, mu, s2):
    """E f(a) for a ~ N(μ, s²), by Gauss and Hermite."""
    z, weight = roots_hermitenorm(80)
    return function(mu[:, None] + np.sqrt(s2) * z) @ weight / np.sqrt(2 * np.pi)


def sigma3(a):
    p = expit(a)
    return p * (1 - p) * (1 - 6 * p * (1 - p))


def test_the_change_by_a_third_cumulant_is_a_sixth_of_the_mean_third_derivative():
    """The expansion leaves s⁴/8 of the seventh derivative, 17/16 at most: 2.2e-4; the mixture is good to 1e-6."""
    mu = np.linspace(-6, 6, 101)
    for s2, digits in ((0.0, 1e-12), (0.01, 3e-6), (0.1, 2.5e-4), (0.11, 1e-6), (2.0, 1e-6)):
        found = third_change(mu, np.full(101, s2))
        np.testing.assert_allclose(found, integral(sigma3, mu, s2) / 6, atol=digits)


def test_the_error_of_the_expansion_falls_with_the_fourth_power_of_the_variance():
    mu = np.linspace(-6, 6, 401)
    wide, narrow = (
        np.abs(expected_sigmoid(mu, np.full(401, s2)) - integral(expit, mu, s2)).max() for s2 in (0.1, 0.05)
    )
    assert wide < 6e-7
    assert 14 < wide / narrow < 18


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
    for kappa3 in (-50.0, 50.0):
        p = skewed_sigmoid(np.linspace(-9, 9, 91), np.ones(91), np.full(91, kappa3))
        assert ((p >= 0) & (p <= 1)).all()
        assert {0.0, 1.0} <= {*p}


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


def test_the_bound_has_the_largest_derivatives():
    """κ₃ ≤ r s³ and the change of the variance ≤ ½r²s², times the largest |σ‴|/6 and |σ″|/2."""
    target = logistic(60, 3, seed=1)
    beyond = LogisticBeyond(*logistic_ep(target, regression_laplace(target)))
    a = np.linspace(-9, 9, 180_001)
    p, r = expit(a), beyond.largest
    third, second = np.abs(sigma3(a)).max(), np.abs(p * (1 - p) * (1 - 2 * p)).max()
    for s in (0.1, 1.0, 3.0):
        truth = r * s**3 * third / 6 + 0.5 * r**2 * s**2 * second / 2
        assert beyond.bound(s * s) == pytest.approx(truth, rel=1e-3)


def test_figures_of_the_certificate():
    target = logistic(60, 3, seed=1)
    laplace = regression_laplace(target)
    beyond = LogisticBeyond(*logistic_ep(target, laplace))
    found = certify(laplace, beyond)
    p = [links.mixture(target.Phi @ g.mean, np.einsum("ij,jk,ik->i", target.Phi, g.covariance, target.Phi))
         for g in (laplace, beyond.posterior)]  # fmt: skip
    change = np.abs(p[0] - p[1])
    assert found.shift.largest == pytest.approx(change.max(), abs=1e-6)
    assert found.shift.typical == pytest.approx(np.quantile(change, 0.95), abs=1e-6)
    assert found.shift.flips == np.mean((p[0] > 0.5) != (p[1] > 0.5))
    assert (found.shift.error, found.shift.rows) == (0.0, 60)
    beyond.start = None  # not known where no pass has settled the mean
    again = certify(laplace, beyond)
    assert (again.cert, again.estimate) == (found.cert, found.estimate)
    assert Certificate(found.shift, 0.9).estimate == (1.0, 1.0)


def test_a_sketch_of_some_rows_is_near_that_of_all(monkeypatch):
    """The rows that count most, here 100 of 3000, and a random part that stands for the rest; the same directions."""
    base = logistic(3000, 4, seed=2)
    Phi = np.array(base.Phi)
    Phi[::30, 1:] *= 6
    target = LogisticTarget(Phi, base.y, base.prior)
    answer = logistic_ep(target, regression_laplace(target))
    whole = LogisticBeyond(*answer).changes
    monkeypatch.setattr(certificate, "NEGLIGIBLE", 0.0)
    monkeypatch.setattr(certificate, "SKETCH_WORK", 500 * 5 * (4 * certificate.JUDGED + 5))
    part = LogisticBeyond(*answer).changes
    P = answer[0].chol_precision
    for a, b in ((part.third, whole.third), (part.covariance, whole.covariance)):
        assert np.linalg.norm(P.T @ (a - b) @ P) < 0.1 * np.linalg.norm(P.T @ b @ P)
