"""The predictive integrals of many classes: against each other, against two classes, and in their known order."""

import numpy as np
import pytest
from scipy.special import logsumexp

from bayes_gda.errors import DataError
from bayes_gda.families.linear import links, softmax_links


def logits(rows, K, sd, seed=0):
    """Means N(0, 2²) and random correlations times sd²."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, K, K))
    C = A @ A.transpose(0, 2, 1)
    root = np.sqrt(np.diagonal(C, axis1=1, axis2=2))
    return rng.normal(0, 2, (rows, K)), sd**2 * C / root[:, :, None] / root[:, None, :]


SOFTMAX = [
    (softmax_links.extended_probit, softmax_links.log_extended_probit),
    (softmax_links.mean_field, softmax_links.log_mean_field),
    (softmax_links.sobol, softmax_links.log_sobol),
]


@pytest.mark.parametrize(("method", "log_method"), SOFTMAX)
@pytest.mark.parametrize("K", [2, 3, 6])
def test_softmax_forms_are_normalised_and_logs_agree(method, log_method, K):
    mean, cov = logits(20, K, 3)
    P = method(mean, cov)
    assert P.shape == (20, K)
    np.testing.assert_allclose(P.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(np.exp(log_method(mean, cov)), P, rtol=1e-10)
    log_P = log_method(300 * mean, cov)
    assert np.isfinite(log_P).all()
    np.testing.assert_allclose(logsumexp(log_P, axis=1), 0, atol=1e-12)
    # No uncertainty: the plain softmax.
    Z = np.exp(mean - logsumexp(mean, axis=1, keepdims=True))
    np.testing.assert_allclose(method(mean, np.zeros_like(cov)), Z, rtol=1e-12)


@pytest.mark.parametrize("sd", [1, 3])
def test_two_classes_equal_the_binary_forms(sd):
    mean, cov = logits(50, 2, sd)
    mu = mean[:, 0] - mean[:, 1]
    s2 = cov[:, 0, 0] + cov[:, 1, 1] - 2 * cov[:, 0, 1]
    np.testing.assert_allclose(softmax_links.mean_field(mean, cov)[:, 0], links.probit_logistic(mu, s2), rtol=1e-12)
    np.testing.assert_allclose(softmax_links.sobol(mean, cov)[:, 0], links.mixture(mu, s2), atol=3e-4)
    split, binary = softmax_links.entropy_softmax(mean, cov), links.entropy_binary(mu, s2)
    np.testing.assert_allclose(split.total, binary.total, atol=1.5e-3)
    np.testing.assert_allclose(split.aleatoric, binary.aleatoric, atol=1.5e-3)
    # The extended probit sees variances, not covariances: equal if the other class is fixed.
    mean[:, 1] = cov[:, 1] = cov[:, :, 1] = 0
    np.testing.assert_allclose(
        softmax_links.extended_probit(mean, cov)[:, 0], links.probit_logistic(mean[:, 0], cov[:, 0, 0]), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("sd", "extended", "field", "reference"), [(1, 0.028, 0.015, 0.00013), (3, 0.076, 0.051, 0.00024)]
)
def test_ordering_of_the_softmax_forms(sd, extended, field, reference):
    mean, cov = logits(100, 3, sd)
    truth = softmax_links.sobol(mean, cov, points=2**15)
    tv = [np.abs(f(mean, cov) - truth).sum(axis=1).mean() / 2 for f, _ in SOFTMAX]
    np.testing.assert_allclose(tv, [extended, field, reference], rtol=0.35)
    assert tv[0] > tv[1] > 50 * tv[2]


def test_sobol_is_repeatable_flat_in_memory_and_blind_to_a_common_shift(monkeypatch):
    mean, cov = logits(30, 4, 2)
    P = softmax_links.sobol(mean, cov)
    np.testing.assert_array_equal(softmax_links.sobol(mean, cov), P)
    np.testing.assert_allclose(softmax_links.sobol(mean + 7.0, cov + 3.0), P, atol=1e-3)
    monkeypatch.setattr(softmax_links, "BLOCK_ELEMENTS", 1)
    np.testing.assert_allclose(softmax_links.sobol(mean, cov), P, rtol=1e-12)
    assert softmax_links.sobol(mean[:0], cov[:0]).shape == (0, 4)


def test_softmax_entropy_split():
    mean, cov = logits(30, 3, 2)
    split = softmax_links.entropy_softmax(mean, cov)
    assert (split.epistemic > 0).all()
    assert (split.total <= np.log(3)).all()
    np.testing.assert_allclose(softmax_links.entropy_softmax(mean, 0 * cov).epistemic, 0, atol=1e-12)


def test_a_covariance_that_is_none_is_an_error():
    with pytest.raises(DataError, match="positive semi-definite"):
        softmax_links.sobol(np.zeros((1, 2)), np.array([[[1.0, 2.0], [2.0, 1.0]]]))


# ── The cheapest rule that is good enough ───────────────────────────────────────────────────────────────────────────


def of_width(K, width, rows=40):
    """Activations whose largest variance of a difference to the last one is `width` in every row."""
    mean, cov = logits(rows, K, 1)
    variance = np.diagonal(cov, axis1=1, axis2=2)
    differences = variance + variance[:, -1:] - 2 * cov[:, :, -1]
    return mean, cov * (width / differences.max(axis=1))[:, None, None]


@pytest.mark.parametrize("width", [0.2, 0.5, 1.1, 2.3, 4.9])
def test_three_classes_by_products_of_hermite_rules(width):
    mean, cov = of_width(3, width)
    truth = softmax_links.sobol(mean, cov, points=2**15)
    np.testing.assert_allclose(softmax_links.expected_softmax(mean, cov), truth, atol=3e-4)
    np.testing.assert_allclose(softmax_links.expected_softmax(mean + np.array([0, 0, 40]), cov)[:, 2], 1, atol=1e-9)


@pytest.mark.parametrize(("width", "error"), [(0.03, 3e-6), (0.12, 5e-5), (0.24, 3e-4)])
@pytest.mark.parametrize("K", [4, 7])
def test_more_classes_by_an_expansion(K, width, error):
    """Of second order: its error is far less than what the first order leaves, and that less than the change itself."""
    mean, cov = of_width(K, width)
    truth = softmax_links.sobol(mean, cov, points=2**15)
    found = softmax_links.expected_softmax(mean, cov)
    np.testing.assert_allclose(found, truth, atol=error)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-4)
    first = softmax_links.expected_softmax(mean, cov, first_order=width * 1.01)
    plain = softmax_links.sobol(mean, 0 * cov)
    errors = [np.abs(p - truth).max() for p in (found, first, plain)]
    assert errors[0] < errors[1] / 5
    assert errors[1] < errors[2] / 5


@pytest.mark.parametrize(("K", "width", "error"), [(3, 8.0, 2e-3), (5, 0.8, 6e-4), (5, 3.0, 1e-3), (5, 9.0, 2e-3)])
def test_wide_activations_by_sobol_points(K, width, error):
    mean, cov = of_width(K, width)
    truth = softmax_links.sobol(mean, cov, points=2**16)
    np.testing.assert_allclose(softmax_links.expected_softmax(mean, cov), truth, atol=error)


def test_contrasts_have_a_root_and_its_inverse():
    _, cov = logits(6, 4, 1.5)
    root, inverse = softmax_links.contrast_root(cov)
    C = np.eye(4) - 0.25
    np.testing.assert_allclose(root @ root.transpose(0, 2, 1), C @ cov @ C, atol=1e-12)
    np.testing.assert_allclose(inverse @ root, np.broadcast_to(np.eye(3), (6, 3, 3)), atol=1e-9)
