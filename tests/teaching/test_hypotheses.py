"""Hypothesis spaces: the notes' tables by brute force, with their two slips, and what threshold units can represent."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest

from bayes_gda.baselines import Perceptron
from bayes_gda.errors import DataError
from bayes_gda.teaching.hypotheses import (
    Rule,
    boolean_examples,
    boolean_inputs,
    clauses,
    conjunctions,
    corrected_entries,
    count_threshold_functions,
    counterexamples,
    m_of_n_rules,
    m_of_n_table,
    predictive,
    remaining_functions,
    rule_table,
    threshold_weights,
    version_space,
)

DATA = boolean_examples()
ONE_RULE = Rule((0, 2, 3), 2)


def brute_force(features, m):
    """Counterexamples of a rule, one example and feature at a time."""
    rows = [[0, 0, 1, 0], [0, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1]]
    labels = [0, 0, 1, 1, 0, 0, 0]
    return [i + 1 for i, (x, y) in enumerate(zip(rows, labels, strict=True)) if (sum(x[j] for j in features) >= m) != y]


def test_every_rule_has_the_counterexamples_of_brute_force():
    assert len(conjunctions(4)) == len(clauses(4)) == 16
    assert len(m_of_n_rules(4)) == 32
    assert len(m_of_n_rules(5)) == 5 * 2**4
    for rule in (*conjunctions(4), *clauses(4), *m_of_n_rules(4)):
        assert counterexamples(rule, DATA) == brute_force(rule.features, rule.m)


def test_no_conjunction_and_no_clause_explains_the_examples():
    for space in (conjunctions(4), clauses(4)):
        assert len({str(rule) for rule in space}) == 16
        assert version_space(space, DATA) == []
        assert rule_table(space, DATA)["counterexample"].notna().all()
    with pytest.raises(DataError, match="All 16 rules are contradicted"):
        predictive(conjunctions(4), DATA, DATA.X)


def test_one_m_of_n_rule_explains_them():
    assert version_space(m_of_n_rules(4), DATA) == [ONE_RULE]
    assert str(ONE_RULE) == "at least 2 of {x1, x3, x4}"
    table = m_of_n_table(DATA)
    assert table.shape == (15, 4)
    assert table.notna().sum().sum() == 32
    assert (table == 0).sum().sum() == 1
    assert table.loc["{x1, x3, x4}", "2-of"] == 0


def test_the_notes_have_two_wrong_entries():
    """Example 4 is (1, 0, 0, 1) with y = 1: "at least one of x1, x3" and "of x3, x4" say so too."""
    wrong = corrected_entries()
    expected = pd.DataFrame({"rule": ["x1 ∨ x3", "x3 ∨ x4"], "printed": [4, 4], "right": [1, 1]})
    pd.testing.assert_frame_equal(wrong, expected)


def test_what_is_left_is_what_enumeration_leaves():
    """All 65 536 functions against the seven examples: 2⁹ remain, half of which say yes to each unseen input."""
    inputs = boolean_inputs(4)
    codes = (DATA.X @ [8, 4, 2, 1]).astype(int)
    functions = np.array(list(product([0, 1], repeat=16)), dtype=np.int8)
    left = functions[(functions[:, codes] == DATA.y).all(axis=1)]
    assert remaining_functions(DATA) == len(left) == 2**9
    unseen = np.setdiff1d(np.arange(16), codes)
    assert len(unseen) == 9
    np.testing.assert_array_equal(left[:, unseen].mean(axis=0), 0.5)
    # Within the m-of-n rules nothing is left open.
    np.testing.assert_array_equal(predictive(m_of_n_rules(4), DATA, inputs), ONE_RULE(inputs))
    two = DATA.subset([0, 2])
    shares = [np.mean([rule(inputs[i : i + 1])[0] for rule in version_space(m_of_n_rules(4), two)]) for i in range(16)]
    np.testing.assert_allclose(predictive(m_of_n_rules(4), two, inputs), shares)
    with pytest.raises(DataError, match="have different classes"):
        remaining_functions(type(DATA)(DATA.X[[0, 0]], np.array([0, 1]), DATA.feature_names, (0, 1)))


def test_rules_are_threshold_units():
    inputs = boolean_inputs(4)
    for rule in (*conjunctions(4), *clauses(4), *m_of_n_rules(4)):
        w, c = rule.threshold_unit(4)
        np.testing.assert_array_equal(inputs @ w + c > 0, rule(inputs))
    # The rule is learnt from all inputs by the package's perceptron, too.
    model = Perceptron(random_state=0).fit(inputs, ONE_RULE(inputs))
    assert model.converged_


def test_not_every_function_is_a_threshold_unit():
    x1, x2, x3, x4 = boolean_inputs(4).T.astype(bool)
    two_pairs = (x1 & x2) | (x3 & x4)
    assert threshold_weights(two_pairs.astype(int)) is None
    # The notes' attempt, x1 + x2 + x3 + x4 ≥ 2, is wrong at (0, 1, 1, 0), and where else one of each pair is true.
    attempt = boolean_inputs(4).sum(axis=1) >= 2
    np.testing.assert_array_equal(
        boolean_inputs(4)[attempt != two_pairs], [[0, 1, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 1, 0]]
    )
    assert threshold_weights([0, 1, 1, 0]) is None
    w = threshold_weights([0, 0, 0, 1])
    np.testing.assert_array_equal(boolean_inputs(2) @ w[1:] + w[0] > 0, [False, False, False, True])
    with pytest.raises(DataError, match="must be 2\\^d values"):
        threshold_weights([0, 1, 1])


@pytest.mark.parametrize(("d", "count"), [(1, 4), (2, 14), (3, 104), (4, 1882)])
def test_counts_of_threshold_functions(d, count):
    """The published sequence (OEIS A000609); for d ≤ 3 every function is also tried by a linear programme."""
    assert count_threshold_functions(d) == count
    if d <= 3:
        assert sum(threshold_weights(y) is not None for y in product([0, 1], repeat=2**d)) == count
    if d >= 2:
        assert count <= 2 ** (d * d)
    with pytest.raises(DataError, match="1 to 4"):
        count_threshold_functions(5)


def test_names_and_values():
    assert [str(rule) for rule in (Rule((), 0), Rule((), 1), Rule((1,), 1), Rule((0, 1), 2))] == [
        "true",
        "false",
        "x2",
        "x1 ∧ x2",
    ]
    assert len({rule.features for rule in conjunctions(3)}) == sum(
        len(list(combinations(range(3), k))) for k in range(4)
    )
    with pytest.raises(DataError, match="values 0 and 1"):
        Rule((0,), 1)([[2, 0]])
