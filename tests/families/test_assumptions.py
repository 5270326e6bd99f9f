"""p-values of several checks together."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from bayes_gda.families.assumptions import Assumptions, Check, Part, holm, joint_p_value, smallest_p_value


def test_holm_is_the_step_down_method():
    p = np.array([0.04, 0.01, 0.03, np.nan])
    np.testing.assert_allclose(holm(p), [0.06, 0.03, 0.06, np.nan])
    # Never below the false discovery rate, and never above Bonferroni.
    q = np.random.default_rng(0).random(8) ** 3
    assert (holm(q) >= false_discovery_control(q) - 1e-15).all()
    assert (holm(q) <= np.minimum(1, 8 * q)).all()


def test_the_joint_p_value_is_that_of_the_largest():
    simulated = np.array([[0.1, -3.0], [0.5, 0.2], [2.5, 0.0], [0.0, 0.0]])
    assert joint_p_value(np.array([2.4, -0.3]), simulated) == pytest.approx(3 / 5)
    assert np.isnan(joint_p_value(np.empty(0), simulated))
    assert smallest_p_value([0.1, 0.5, np.nan]) == pytest.approx(1 - 0.9**2)
    assert np.isnan(smallest_p_value([]))


def test_the_worst_part_is_the_one_farthest_from_what_is_expected():
    parts = (Part("a", 1.0, 0.0, 1.0), Part("b", 0.0, 3.0, 1.0))
    found = Assumptions((Check("x", "t", 0.02, parts, ""), Check("y", "t", 0.5, (), "")))
    assert found.checks[0].worst is parts[1]
    assert found.checks[1].worst is None
    np.testing.assert_allclose(found.adjusted(), [0.04, 0.5])
