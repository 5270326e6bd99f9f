"""Step sizes against the Cauchy condensation test: Σ η_t converges exactly if sums over [2^k, 2^(k+1)) shrink."""

import copy
import pickle

import numpy as np
import pytest

from bayes_gda.baselines import Steps
from bayes_gda.errors import DataError


def block_ratio(f):
    """Ratio of neighbouring dyadic blocks of Σ f(t), far out."""
    return f(np.arange(2**14, 2**15)).sum() / f(np.arange(2**13, 2**14)).sum()


@pytest.mark.parametrize("power", [0.0, 0.3, 0.49, 0.5, 0.51, 0.75, 1.0, 1.01, 2.0])
def test_robbins_monro_conditions_agree_with_the_sums(power):
    steps = Steps(a=3.0, b=2.0, power=power)
    eta = np.vectorize(steps)
    # A limit of 1 is divergence (1/t); the offset b leaves 2e-4.
    assert steps.sum_diverges == (block_ratio(eta) > 1 - 1e-3)
    assert steps.squares_converge == (block_ratio(lambda t: eta(t) ** 2) < 1 - 1e-3)
    assert steps.robbins_monro == (0.5 < power <= 1)


def test_sizes():
    assert [Steps(a=6, b=2)(t) for t in range(3)] == [3.0, 2.0, 1.5]
    assert [Steps.fixed(0.1)(t) for t in (0, 1000)] == [0.1, 0.1]
    assert Steps.of(0.5) == Steps.fixed(0.5)
    assert Steps.of(Steps(2.0)) == Steps(2.0)


def test_steps_can_be_copied_and_pickled():
    assert pickle.loads(pickle.dumps(Steps(2, 3, 0.6))) == copy.deepcopy(Steps(2, 3, 0.6)) == Steps(2.0, 3.0, 0.6)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Steps(a=0), "`a` must be finite and greater than 0; got 0"),
        (lambda: Steps(b=-1), "`b` must be finite and greater than 0; got -1"),
        (lambda: Steps(power=-1), "`power` must not be negative; got -1. Use 0 for a fixed step"),
        (lambda: Steps.of([1, 2]), "`step` must be one number; got shape .2,.. Use Steps"),
        (lambda: Steps.of("small"), "`step` must be numeric; got 'small'"),
    ],
)
def test_bad_steps_are_named(make, words):
    with pytest.raises(DataError, match=words):
        make()
