"""The predictive integrals of two classes against a truth by quadrature that is itself held to Pirjol's identities."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit, logsumexp
from scipy.stats import norm

from bayes_gda.errors import DataError
from bayes_gda.families.linear import links

MU = np.linspace(-15, 15, 151)
S = np.linspace(0, 10, 41)
FAR_MU = np.concatenate([-np.geomspace(1000, 0.01, 30), [0.0], np.geomspace(0.01, 1000, 30)])
FAR_S = np.concatenate([[0.0], np.geomspace(1e-3, 100, 26), [1.999, 2.0, 2.001]])


def log_truth(mu, s):
    """log E σ(a) by the trapezoid rule around the mode of σ(a)N(a | μ, s²), in log space.

    The integrand is analytic within π of the real axis and no wider than the Gaussian; a step of min(s, 1)/6 is then
    exact to rounding.
    """
    if s == 0:
        return float(log_expit(mu))
    if mu > 0:  # log p near 0 needs the other tail
        return float(np.log1p(-np.exp(log_truth(-mu, s))))
    low, high = mu, mu + s * s
    for _ in range(100):  # σ(−a) = (a − μ)/s² at the mode
        a = (low + high) / 2
        low, high = (a, high) if expit(-a) > (a - mu) / s**2 else (low, a)
    h = min(s, 1) / 6
    k = int(12 * s / h) + 1
    a = low + h * np.arange(-k, k + 1)
    return float(logsumexp(log_expit(a) - (a - mu) ** 2 / (2 * s * s)) + np.log(h / (s * np.sqrt(2 * np.pi))))


@pytest.fixture(scope="module")
def truth():
    return np.exp([[log_truth(mu, s) for s in S] for mu in MU])


def worst(method, truth):
    return np.abs(method(MU[:, None], S**2) - truth).max()


def test_both_classes_at_once_are_each_by_itself_and_make_one():
    mu, s2 = FAR_MU[:, None], FAR_S**2
    both = links.log_expected_sigmoids(mu, s2)
    assert both.shape == (len(FAR_MU), len(FAR_S), 2)
    np.testing.assert_allclose(both[..., 0], links.log_expected_sigmoid(-mu, s2), rtol=1e-14)
    np.testing.assert_allclose(both[..., 1], links.log_expected_sigmoid(mu, s2), rtol=1e-14)
    np.testing.assert_allclose(np.exp(both).sum(axis=-1), 1, rtol=1e-15)


@pytest.mark.parametrize("t", [1e-4, 0.01, 0.5, 1, 4, 25, 100, 400, 2500])
def test_truth_and_log_form_meet_pirjols_identities(t):
    first = -t / 2 - np.log(2)
    second = -1.5 * t + np.log1p(-0.5 * np.exp(-t / 2))
    s = np.sqrt(t)
    assert log_truth(-t, s) == pytest.approx(first, abs=1e-12)
    assert log_truth(-2 * t, s) == pytest.approx(second, abs=1e-12)
    # An error of log p is a relative error of p.
    assert links.log_expected_sigmoid(-t, t) == pytest.approx(first, abs=5e-9)
    assert links.log_expected_sigmoid(-2 * t, t) == pytest.approx(second, abs=5e-9)


@pytest.mark.parametrize(("mu", "s"), [(0.3, 0.1), (-2, 1), (4, 3), (-7, 5)])
def test_truth_agrees_with_quad(mu, s):
    ends = [mu - 12 * s, 0.0, mu + 12 * s] if abs(mu) < 12 * s else [mu - 12 * s, mu + 12 * s]
    parts = [
        quad(lambda a: expit(a) * norm.pdf(a, mu, s), *pair, epsabs=1e-14, epsrel=1e-12)[0] for pair in pairwise(ends)
    ]
    assert np.exp(log_truth(mu, s)) == pytest.approx(sum(parts), rel=1e-11)


def test_mixture_constants_are_the_published_ones():
    assert sum(links.MIXTURE_WEIGHTS) == pytest.approx(1, abs=1e-14)
    a = np.linspace(-60, 60, 100_001)
    assert np.abs(links.mixture(a, 0.0) - expit(a)).max() == pytest.approx(2.1e-9, abs=2e-11)


def test_mixture_is_near_exact(truth):
    assert worst(links.mixture, truth) < 3e-9


def test_probit_forms_are_within_their_bound_and_it_is_reached(truth, record_property):
    errors = {f.__name__: worst(f, truth) for f in (links.probit_logistic, links.probit_phi)}
    for name, error in errors.items():
        record_property(name, float(error))
    assert errors["probit_logistic"] == pytest.approx(0.0169, abs=1e-4)
    assert errors["probit_phi"] == pytest.approx(0.0177, abs=1e-4)
    assert max(errors.values()) <= 0.0177


def test_gauss_hermite_is_exact_for_narrow_and_rough_for_wide_gaussians(truth):
    p = links.gauss_hermite(MU[:, None], S**2)
    assert np.abs(p - truth)[:, S <= 1].max() < 1e-12
    assert np.abs(p - truth).max() == pytest.approx(0.0145, abs=1e-3)
    assert np.abs(links.gauss_hermite(MU[:, None], S**2, order=64) - truth).max() < 0.005


def test_monte_carlo_is_within_its_standard_error():
    mu, s = np.array([-3.0, 0.5]), np.array([2.0, 4.0])
    a = mu + s * np.random.default_rng(0).standard_normal((40_000, 2))
    assert np.abs(links.monte_carlo(a) - links.mixture(mu, s**2)).max() < 4 * 0.5 / np.sqrt(40_000)
    np.testing.assert_allclose(links.log_monte_carlo(a), np.log(links.monte_carlo(a)), rtol=1e-12)
    np.testing.assert_allclose(links.log_monte_carlo(a - 1000), logsumexp(a, axis=0) - 1000 - np.log(40_000))
    np.testing.assert_allclose(links.log_monte_carlo(a + 60), -np.exp(-a - 60).mean(axis=0))


def test_log_form_has_a_small_relative_error_everywhere():
    truth = np.array([[log_truth(mu, s) for s in FAR_S] for mu in FAR_MU])
    log_p = links.log_expected_sigmoid(FAR_MU[:, None], FAR_S**2)
    assert np.abs(np.expm1(log_p - truth)).max() < 5e-9  # relative error of p
    # and of the log where p is near 1, down to the smallest numbers there are
    near_one = (FAR_MU[:, None] > 0) & (truth < -1e-300)
    np.testing.assert_allclose(log_p[near_one], truth[near_one], rtol=2e-8)


BINARY = [
    (links.plug_in, links.log_plug_in),
    (links.probit_logistic, links.log_probit_logistic),
    (links.probit_phi, links.log_probit_phi),
    (links.gauss_hermite, links.log_gauss_hermite),
    (links.mixture, links.log_expected_sigmoid),
]


def test_both_logs_at_once_are_those_of_either_class():
    both = links.log_probit_logistics(MU[:, None], S**2)
    np.testing.assert_array_equal(both[..., 0], links.log_probit_logistic(-MU[:, None], S**2))
    np.testing.assert_array_equal(both[..., 1], links.log_probit_logistic(MU[:, None], S**2))


@pytest.mark.parametrize(("method", "log_method"), BINARY)
def test_both_classes_sum_to_one_and_logs_agree(method, log_method):
    p, q = method(MU[:, None], S**2), method(-MU[:, None], S**2)
    np.testing.assert_allclose(p + q, 1, atol=1e-13)
    np.testing.assert_allclose(np.exp(log_method(MU[:, None], S**2)), p, atol=5e-9)
    for mu in (-1000.0, -40.0, 40.0, 1000.0):
        log_p, log_q = log_method(mu, S**2), log_method(-mu, S**2)
        assert np.isfinite(log_p).all()
        assert (log_p <= 0).all()
        np.testing.assert_allclose(np.exp(log_p) + np.exp(log_q), 1, atol=1e-12)


@pytest.mark.parametrize(("method", "log_method"), BINARY)
def test_no_uncertainty_gives_the_plug_in(method, log_method):
    tolerance = {links.probit_phi: 0.0177, links.mixture: 2.2e-9}.get(method, 1e-14)
    np.testing.assert_allclose(method(MU, 0.0), expit(MU), atol=tolerance)
    if method is not links.probit_phi:
        np.testing.assert_allclose(log_method(FAR_MU, 0.0), log_expit(FAR_MU), rtol=1e-12)


def test_shapes_broadcast_and_blocks_do_not_matter(monkeypatch):
    functions = [f for pair in BINARY for f in pair] + [lambda mu, s2: links.entropy_binary(mu, s2).epistemic]
    truths = [f(MU[:, None], S**2) for f in functions]
    monkeypatch.setattr(links, "BLOCK_ELEMENTS", 100)
    for f, truth in zip(functions, truths, strict=True):
        assert f(0.3, 1.0).shape == ()
        assert truth.shape == (151, 41)
        np.testing.assert_allclose(f(MU[:, None], S**2), truth, rtol=1e-12, atol=1e-15)


def test_a_mean_that_is_zero_to_rounding_beside_its_variance_is_a_half():
    """Warnings are errors here; μ/s² is 0 where the logarithm of what it multiplies was taken."""
    log_p = links.log_expected_sigmoids(np.array([1e-322, -1e-322]), np.array([1e4, 1e4]))
    np.testing.assert_allclose(np.exp(log_p), 0.5, rtol=1e-12)


def test_interval_holds_its_share_of_draws():
    mu, s2 = np.array([0.0, 2.0, -30.0]), np.array([1.0, 4.0, 9.0])
    interval = links.sigmoid_interval(mu, s2, prob=0.9)
    assert interval.shape == (3, 2)
    p = expit(mu + np.sqrt(s2) * np.random.default_rng(0).standard_normal((100_000, 3)))
    share = ((p >= interval[:, 0]) & (p <= interval[:, 1])).mean(axis=0)
    np.testing.assert_allclose(share, 0.9, atol=0.005)
    np.testing.assert_allclose(links.sigmoid_interval(1.0, 0.0), expit([1.0, 1.0]))
    with pytest.raises(DataError, match="between 0 and 1; got 95"):
        links.sigmoid_interval(mu, s2, prob=95)


def test_binary_entropy_split():
    s = np.array([0.0, 1e-6, 0.5, 1.0, 1.001, 2.0, 5.0, 10.0, 50.0])
    split = links.entropy_binary(MU[:, None], s**2)
    z = np.linspace(-10, 10, 20_001)
    H = links._entropy(MU[:, None, None] + s[:, None] * z)
    truth = (H * norm.pdf(z)).sum(axis=-1) * (z[1] - z[0])
    np.testing.assert_allclose(split.aleatoric, truth, atol=1e-8)
    p = links.mixture(MU[:, None], s**2)
    np.testing.assert_allclose(split.total, -p * np.log(p) - (1 - p) * np.log1p(-p), atol=1e-6)
    np.testing.assert_allclose(split.total, split.aleatoric + split.epistemic, atol=1e-15)
    assert split.epistemic.min() >= 0
    np.testing.assert_allclose(split.epistemic[:, 0], 0, atol=1e-14)
    assert (np.diff(split.epistemic[75]) >= 0).all()  # at μ = 0 more uncertainty is more epistemic entropy
    far = links.entropy_binary(np.array([-1000.0, 1000.0]), 4.0)
    assert (far.total >= 0).all()
