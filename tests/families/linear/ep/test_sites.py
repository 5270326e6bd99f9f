"""Logistic sites: tilted moments against dense sums, and the expansion against the cavity."""

import numpy as np
import pytest
from scipy.special import log_expit

from bayes_gda.families.linear.ep.sites import SMALL, expand, match, tilted, update


def dense(mu, v, c, sign=1.0):
    """Log Z, mean, variance and third cumulant of N(a | μ, v)σ(sa)ᶜ by a sum over 400 001 points."""
    a = np.linspace(mu - c * v - 12 * np.sqrt(v) - 5, mu + c * v + 12 * np.sqrt(v) + 5, 400_001)
    log_f = c * log_expit(sign * a) - 0.5 * (a - mu) ** 2 / v
    f = np.exp(log_f - log_f.max())
    log_z = log_f.max() + np.log(f.sum() * (a[1] - a[0]) / np.sqrt(2 * np.pi * v))
    f /= f.sum()
    mean = f @ a
    return log_z, mean, f @ (a - mean) ** 2, f @ (a - mean) ** 3


@pytest.mark.parametrize("c", [1.0, 0.3])
@pytest.mark.parametrize("v", [0.05, 1.0, 4.5, 30.0, 100.0])
def test_tilted_moments(c, v):
    for mu in (-40.0, -3.0, 0.0, 0.5, 8.0):
        log_z, l1, l2, l3 = (float(x[0]) for x in tilted(*np.array([[mu], [v], [c]])))
        truth, mean, variance, third = dense(mu, v, c)
        assert log_z == pytest.approx(truth, abs=1e-6)
        assert mu + v * l1 == pytest.approx(mean, abs=1e-6 * np.sqrt(v))
        assert v + v * v * l2 == pytest.approx(variance, abs=1e-6 * v)
        assert v**3 * l3 == pytest.approx(third, abs=1e-6 * v**1.5)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("c", [1.0, 0.3])
def test_a_matched_site_has_the_moments_of_its_factor(c, sign):
    for mu, v in ((0.3, 0.5), (-2.0, 3.0), (1.0, 6.0)):
        site = match(*np.array([[mu], [v], [sign], [c]]))
        tau, slope = float(site.tau[0]), float(site.slope[0])
        cavity_v = v / (1 - v * tau)
        cavity_mu = cavity_v * (mu / v - slope - tau * mu)
        log_z, mean, variance, third = dense(cavity_mu, cavity_v, c, sign)
        assert mean == pytest.approx(mu, abs=1e-4)
        assert variance == pytest.approx(v, rel=1e-4)
        assert float(site.third[0]) == pytest.approx(-third / v**3, rel=1e-3)
        # ∫ of the site over the cavity, by the same sum
        a = np.linspace(cavity_mu - 12 * np.sqrt(cavity_v), cavity_mu + 12 * np.sqrt(cavity_v), 200_001)
        exponent = slope * (a - mu) - tau * (a - mu) ** 2 / 2 - (a - cavity_mu) ** 2 / (2 * cavity_v)
        log_site = np.log(np.exp(exponent).sum() * (a[1] - a[0]) / np.sqrt(2 * np.pi * cavity_v))
        assert float(site.log_ratio[0]) == pytest.approx(log_z - log_site, abs=1e-6)


@pytest.mark.parametrize("c", [1.0, 0.3])
def test_the_expansion_is_of_third_order(c):
    mu = np.linspace(-5, 5, 41)
    sign, power = np.where(mu > 1, 1.0, -1.0), np.full(41, c)
    errors = []
    for v in (0.2, 0.4):  # where `match` goes by the cavity
        variance = np.full(41, v)
        pairs = zip(expand(mu, variance, sign, power), match(mu, variance, sign, power), strict=True)
        errors.append([np.abs(a - b).max() for a, b in pairs])
    ratio = np.divide(*errors)
    # The error of τ, slope and log ratio is O(v³), of u₃ O(v²).
    assert (ratio[:3] < 0.16).all()
    assert ratio[3] < 0.3
    assert max(errors[0][:3]) * (SMALL / 0.2) ** 3 < 3e-5


@pytest.mark.parametrize("c", [1.0, 0.3])
def test_the_log_ratio_of_the_expansion_is_of_third_order(c):
    """log E_q e^g for the site of the expansion itself, by Gauss and Hermite."""
    z, weight = np.polynomial.hermite_e.hermegauss(80)
    mu, sign = np.linspace(-4, 4, 33), np.where(np.arange(33) % 2, 1.0, -1.0)
    errors = []
    for v in (0.05, 0.1):
        site = expand(mu, np.full(33, v), sign, np.full(33, c))
        step = np.sqrt(v) * z
        g = c * log_expit(sign[:, None] * (mu[:, None] + step))
        g += 0.5 * site.tau[:, None] * step**2 - site.slope[:, None] * step
        errors.append(np.abs(np.log(np.exp(g) @ weight / np.sqrt(2 * np.pi)) - site.log_ratio).max())
    assert errors[1] < 5e-7
    assert 12 < errors[1] / errors[0] < 20


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_log_ratio_holds_for_a_cavity_that_is_not_the_last(sign):
    """Sites that have not settled: the cavity comes from the present site, the ratio is that of the new one."""
    for mu, v, tau, nu in ((0.3, 0.5, 0.1, 0.4), (-2.0, 3.0, 0.05, -0.3), (1.0, 6.0, 0.02, 0.2)):
        site = update(*np.array([[mu], [v], [tau], [nu], [sign], [1.0]]))
        cavity_v = v / (1 - v * tau)
        cavity_mu = cavity_v * (mu / v - nu)
        log_z = dense(cavity_mu, cavity_v, 1.0, sign)[0]
        a = np.linspace(cavity_mu - 14 * np.sqrt(cavity_v), cavity_mu + 14 * np.sqrt(cavity_v), 200_001)
        exponent = site.slope[0] * (a - mu) - site.tau[0] * (a - mu) ** 2 / 2 - (a - cavity_mu) ** 2 / (2 * cavity_v)
        log_site = np.log(np.exp(exponent).sum() * (a[1] - a[0]) / np.sqrt(2 * np.pi * cavity_v))
        assert site.log_ratio[0] == pytest.approx(log_z - log_site, abs=1e-6)


def test_a_variance_beyond_reach_is_marked():
    """σ(a)e^{−a/2} has variance π²: no cavity leads to mean 0 and more than that."""
    reachable, beyond = (match(*np.array([[0.0], [v], [1.0], [1.0]])) for v in (7.0, 12.0))
    assert np.isfinite(reachable.log_ratio).all()
    assert np.isnan(beyond.log_ratio).all()
