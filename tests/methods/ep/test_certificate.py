"""Sums beyond the Gaussian against brute force, their bounds, and the rule."""

import itertools
from functools import partial

import numpy as np
import pytest

from bayes_gda.methods.ep import certificate
from bayes_gda.methods.ep.certificate import (
    VARIATIONAL,
    decide_outcome,
    estimate_errors,
    exact_changes,
    sketch_changes,
)


def problem(n=40, m=3, seed=0):
    rng = np.random.default_rng(seed)
    Phi, third = rng.normal(size=(n, m)), rng.normal(size=n)
    A = rng.normal(size=(m, m))
    return Phi, A @ A.T, A, third, third**2


def blocks_of(Phi, third, squared, step=7):
    return lambda: ((Phi[i : i + step], third[i : i + step], squared[i : i + step]) for i in range(0, len(Phi), step))


def test_sums_over_pairs_and_rows_are_what_they_say():
    Phi, V, _, third, squared = problem(n=12)
    G, B = Phi @ V @ Phi.T, Phi @ V
    covariance, evidence = np.zeros((3, 3)), 0.0
    for i, j in itertools.permutations(range(12), 2):
        covariance += 0.5 * third[i] * third[j] * G[i, j] ** 2 * np.outer(B[i], B[j])
        evidence += third[i] * third[j] * G[i, j] ** 3 / 12
    exact = exact_changes(V, Phi, third, squared)
    np.testing.assert_allclose(exact.covariance, covariance, rtol=1e-10, atol=1e-10 * np.abs(covariance).max())
    assert exact.evidence == pytest.approx(evidence, rel=1e-10)
    kappa = certificate.third_cumulants(Phi[:5], V, blocks_of(Phi, third, squared))
    np.testing.assert_allclose(kappa, [-sum(third * G[a] ** 3) for a in range(5)], rtol=1e-10)


def test_a_row_of_two_sites_is_two_rows():
    Phi, V, _, third, squared = problem(n=6)
    rows = exact_changes(V, np.repeat(Phi, 2, axis=0), np.repeat(third, 2), np.repeat(squared, 2))
    sites = exact_changes(V, Phi, 2 * third, 2 * squared)
    np.testing.assert_allclose(rows.covariance, sites.covariance, rtol=1e-10)
    assert rows.evidence == pytest.approx(sites.evidence)


def test_sketches_converge_to_the_sums_over_pairs():
    Phi, V, root, third, squared = problem()
    exact = exact_changes(V, Phi, third, squared)
    blocks = blocks_of(Phi, third, squared)
    sketch = sketch_changes(V, root, blocks, pairs=40_000)
    np.testing.assert_allclose(sketch.covariance, exact.covariance, atol=0.1 * np.abs(exact.covariance).max())
    np.testing.assert_allclose(sketch.third, exact.third, atol=0.1 * np.abs(exact.third).max())
    assert sketch.evidence == pytest.approx(exact.evidence, rel=0.2)


def test_a_sketch_of_one_weight_is_the_sum_times_its_own_normal_draws():
    """ψ is a number: (ψᵢx)(ψᵢy)(ψⱼx)(ψⱼy) = x²y² (ψᵢψⱼ)², and the evidence has x²y²z²."""
    Phi, V, root, third, squared = problem(m=1)
    exact = exact_changes(V, Phi, third, squared)
    sketch = sketch_changes(V, root, blocks_of(Phi, third, squared), pairs=8)
    x, y, z = (certificate.sketch_directions(root, 8) / root[0, 0]).reshape(3, 8)
    np.testing.assert_allclose(sketch.covariance, exact.covariance * np.mean((x * y) ** 2), rtol=1e-9)
    np.testing.assert_allclose(sketch.third, exact.third * np.mean((x * y) ** 2), rtol=1e-9)
    assert sketch.evidence == pytest.approx(exact.evidence * np.mean((x * y * z) ** 2), rel=1e-9)


def test_nothing_is_left_out_where_sites_are_gaussian():
    Phi, V, root, _, _ = problem()
    zero = np.zeros(len(Phi))
    changes = sketch_changes(V, root, blocks_of(Phi, zero, zero))
    assert not changes.covariance.any()
    assert not changes.third.any()
    assert changes.evidence == 0


@pytest.mark.parametrize("seed", range(5))
def test_the_bounds_hold(seed):
    """κ₃ ≤ r s³ and the change of a variance ≤ ½ r² s², for any τ with ΣτΦΦᵀ below the precision."""
    rng = np.random.default_rng(seed)
    n, m = 30, 4
    Phi, tau = rng.normal(size=(n, m)), rng.uniform(0.01, 0.3, n)
    V = np.linalg.inv(Phi.T @ (tau[:, None] * Phi) + 0.1 * np.eye(m))
    third = tau * rng.uniform(-1, 1, n)
    v = np.einsum("ij,jk,ik->i", Phi, V, Phi)
    r = float((np.abs(third) / tau * np.sqrt(v)).max())
    rows = rng.normal(size=(200, m))
    s2 = np.einsum("ij,jk,ik->i", rows, V, rows)
    kappa = certificate.third_cumulants(rows, V, blocks_of(Phi, third, third**2))
    changes = exact_changes(V, Phi, third, third**2)
    change = np.einsum("ij,jk,ik->i", rows, changes.covariance, rows)
    assert (np.abs(kappa) <= r * s2**1.5).all()
    assert (np.abs(change) <= 0.5 * r * r * s2).all()
    # Cauchy and Schwarz's bound is the tighter one, and no bound is loose by an order of magnitude.
    closer = s2 * np.sqrt(np.einsum("ij,jk,ik->i", rows, changes.third, rows))
    assert (np.abs(kappa) <= closer * (1 + 1e-9)).all()
    assert (closer <= r * s2**1.5).all()
    assert np.median(np.abs(kappa) / closer) > 0.1


def test_the_rule():
    assert decide_outcome(estimate_errors(0.005, 0.001), 0.01) == "trusted"  # .005 + .0015 + .00006
    assert decide_outcome(estimate_errors(0.005, 0.004), 0.01) == "corrected"  # EP: .006
    assert decide_outcome(estimate_errors(0.05, 0.001), 0.01) == "corrected"  # EP: .0015 + .00625
    assert decide_outcome(estimate_errors(0.35, 0.0), 0.05) == "needs-mcmc"  # EP: .0875
    assert decide_outcome(estimate_errors(0.18, 0.0), 0.05) == "corrected"  # EP: a quarter of the gap, .045
    assert decide_outcome(estimate_errors(0.0, 0.007), 0.01) == "needs-mcmc"
    softmax = partial(estimate_errors, rule=VARIATIONAL)
    assert decide_outcome(softmax(0.002, 0.006), 0.01) == "corrected"  # twice what the first study chose: .009
    assert decide_outcome(softmax(0.0, 0.007), 0.01) == "needs-mcmc"
    assert decide_outcome(softmax(0.05, 0.0), 0.008) == "corrected"  # 3 · .05² = .0075
    assert decide_outcome(softmax(0.18, 0.0), 0.05) == "corrected"  # .045
    assert decide_outcome(estimate_errors(np.nan, 0.0), 0.01) == "needs-mcmc"
    assert decide_outcome(estimate_errors(0.0, np.nan), 0.01) == "needs-mcmc"


def test_estimates_grow_with_what_is_seen():
    gaps, certs = np.linspace(0, 0.5, 51), np.linspace(0, 0.1, 11)
    estimates = np.array([[estimate_errors(gap, cert).better for cert in certs] for gap in gaps])
    assert (np.diff(estimates, axis=0) > 0).all()
    assert (np.diff(estimates, axis=1) > 0).all()
