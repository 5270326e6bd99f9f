"""Hypothesis spaces of boolean rules: what training examples rule out, and what they leave.

    rule            y = 1[Σ_{j ∈ V} x_j ≥ m], at least m of the features V
    conjunction     m = |V|, 2ⁿ of them; the empty one is always true
    clause          m = 1, 2ⁿ of them; the empty one is never true
    m-of-n rule     1 ≤ m ≤ |V|, n·2ⁿ⁻¹ of them
    version space   the rules of a space that no training example contradicts

With a uniform prior over a space and labels without noise, the posterior is uniform over the version space. Without a
restriction, N distinct examples leave 2^(2ⁿ − N) boolean functions, of which half say yes to each input not yet seen:
nothing is learnt. Every rule here is a linear threshold unit; not every boolean function is one.

References
----------
Mitchell (1982), Generalization as search, Artificial Intelligence 18.
Muroga (1971), Threshold logic and its applications, Wiley.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from bayes_gda.baselines.separable import separating_weights
from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError

# The training examples of the lecture notes, (x₁, x₂, x₃, x₄, y).
_SEVEN = (
    (0, 0, 1, 0, 0),
    (0, 1, 0, 0, 0),
    (0, 0, 1, 1, 1),
    (1, 0, 0, 1, 1),
    (0, 1, 1, 0, 0),
    (1, 1, 0, 0, 0),
    (0, 1, 0, 1, 0),
)
# Counterexamples of the m-of-n rules as the notes print them, m = 1, 2, …; None where no example contradicts the rule.
_PRINTED: dict[tuple[int, ...], tuple[int | None, ...]] = {
    (0,): (3,), (1,): (2,), (2,): (1,), (3,): (7,),
    (0, 1): (3, 3), (0, 2): (4, 3), (0, 3): (6, 3), (1, 2): (2, 3), (1, 3): (2, 3), (2, 3): (4, 4),
    (0, 1, 2): (1, 3, 3), (0, 1, 3): (2, 3, 3), (0, 2, 3): (1, None, 3), (1, 2, 3): (1, 5, 3),
    (0, 1, 2, 3): (1, 5, 3, 3),
}  # fmt: skip
# And those of the conjunctions, from `true` on.
_PRINTED_CONJUNCTIONS = (1, 3, 2, 1, 7, 3, 3, 3, 3, 3, 4, 3, 3, 3, 3, 3)
# Boolean functions of so many features can be enumerated: 65 536 for four.
MOST_FEATURES = 4
# Integer weights up to these realise every threshold function of 1, 2, 3 and 4 features (Muroga 1971).
_LARGEST_WEIGHT = {1: 1, 2: 1, 3: 2, 4: 3}


@dataclass(frozen=True, slots=True)
class Rule:
    """y = 1 if at least `m` of the features are true.

    Parameters
    ----------
    features
        Columns V, from 0, in ascending order; may be empty.
    m
        How many of them must be true: 0 is always true, more than there are features never.
    """

    features: tuple[int, ...]
    m: int

    def __call__(self, X: ArrayLike) -> NDArray[np.bool_]:
        """Return what the rule says of rows X (n, d) of 0 and 1."""
        rows = _boolean_rows(X)
        out: NDArray[np.bool_] = rows[:, list(self.features)].sum(axis=1) >= self.m
        return out

    def threshold_unit(self, d: int) -> tuple[Floats, float]:
        """Return (w, c) with w·x + c > 0 exactly where the rule says yes: w_j = 1[j ∈ V], c = ½ − m."""
        w = np.zeros(d)
        w[list(self.features)] = 1.0
        return w, 0.5 - self.m

    def __str__(self) -> str:
        names = [f"x{j + 1}" for j in self.features]
        if self.m == 0:
            return "true"
        if self.m > len(names):
            return "false"
        if self.m == len(names):
            return " ∧ ".join(names)
        if self.m == 1:
            return " ∨ ".join(names)
        return f"at least {self.m} of {{{', '.join(names)}}}"


def boolean_examples() -> Dataset:
    """Return the seven training examples of the notes: four features of 0 and 1, two classes."""
    rows = np.array(_SEVEN)
    return Dataset(rows[:, :4].astype(float), rows[:, 4], ("x1", "x2", "x3", "x4"), (0, 1))


# ── Spaces ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def conjunctions(d: int) -> list[Rule]:
    """Return the 2^d conjunctions of d features without negation, the short ones first."""
    return [Rule(features, len(features)) for features in _subsets(d)]


def clauses(d: int) -> list[Rule]:
    """Return the 2^d clauses (disjunctions) of d features without negation, the short ones first."""
    return [Rule(features, 1) for features in _subsets(d)]


def m_of_n_rules(d: int) -> list[Rule]:
    """Return the d·2^(d−1) rules "at least m of these features", the small sets first."""
    return [Rule(features, m) for features in _subsets(d) for m in range(1, len(features) + 1)]


def _subsets(d: int) -> list[tuple[int, ...]]:
    return [features for size in range(d + 1) for features in combinations(range(d), size)]


# ── What the examples say ───────────────────────────────────────────────────────────────────────────────────────────


def counterexamples(rule: Rule, data: Dataset) -> list[int]:
    """Return the numbers, from 1, of the examples that contradict a rule; empty if it is consistent."""
    return [int(i) + 1 for i in np.flatnonzero(rule(data.X) != (data.y == 1))]


def rule_table(rules: Sequence[Rule], data: Dataset) -> pd.DataFrame:
    """Return a table of rules: `rule`, the first `counterexample` (missing if there is none), how many there are."""
    counters = [counterexamples(rule, data) for rule in rules]
    return pd.DataFrame(
        {
            "rule": [str(rule) for rule in rules],
            "counterexample": pd.array([each[0] if each else pd.NA for each in counters], dtype="Int64"),
            "counterexamples": [len(each) for each in counters],
        }
    )


def m_of_n_table(data: Dataset) -> pd.DataFrame:
    """Return the first counterexample of each m-of-n rule: a row for each set of features, a column for each m.

    A consistent rule has 0; a rule that does not exist is missing.
    """
    rows = {}
    for features in _subsets(data.d)[1:]:
        counters = [counterexamples(Rule(features, m), data) for m in range(1, len(features) + 1)]
        name = "{" + ", ".join(data.feature_names[j] for j in features) + "}"
        rows[name] = [each[0] if each else 0 for each in counters] + [pd.NA] * (data.d - len(counters))
    columns = [f"{m}-of" for m in range(1, data.d + 1)]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).astype("Int64").rename_axis("features")


def version_space(rules: Sequence[Rule], data: Dataset) -> list[Rule]:
    """Return the rules that no example contradicts, in their order."""
    return [rule for rule in rules if not counterexamples(rule, data)]


def predictive(rules: Sequence[Rule], data: Dataset, X: ArrayLike) -> Floats:
    """Return p(y = 1 | x, examples) (n,) under a uniform prior over the rules and labels without noise.

    It is the share of the version space that says yes. Rules that are written differently count as different, even if
    they say the same of every input.

    Raises
    ------
    DataError
        If the version space is empty: no rule of the space explains the examples.
    """
    consistent = version_space(rules, data)
    if not consistent:
        raise DataError(f"All {len(rules)} rules are contradicted by an example; enlarge the hypothesis space.")
    return np.asarray(np.mean([rule(X) for rule in consistent], axis=0))


def remaining_functions(data: Dataset) -> int:
    """Return how many boolean functions of all d features the examples leave: 2^(2^d − N), N distinct inputs.

    Raises
    ------
    DataError
        If two examples with equal features have different classes: no function explains them.
    """
    inputs, labelled = len(np.unique(data.X, axis=0)), len(np.unique(np.column_stack([data.X, data.y]), axis=0))
    if labelled > inputs:
        raise DataError("Examples with equal features have different classes; no function of the features is left.")
    return int(2 ** (2**data.d - inputs))


def corrected_entries() -> pd.DataFrame:
    """Return the entries of the notes' tables that are wrong, with a right one.

    An entry is wrong if the example that it names does not contradict the rule, or if it says that the rule is
    consistent where it is not.
    """
    data = boolean_examples()
    printed = [(Rule(V, m), entry) for V, entries in _PRINTED.items() for m, entry in enumerate(entries, 1)]
    printed += list(zip(conjunctions(4), _PRINTED_CONJUNCTIONS, strict=True))
    wrong = []
    for rule, entry in printed:
        counters = counterexamples(rule, data)
        if (entry is None and counters) or (entry is not None and entry not in counters):
            wrong.append({"rule": str(rule), "printed": entry, "right": counters[0] if counters else None})
    return pd.DataFrame(wrong)


# ── Linear threshold units ──────────────────────────────────────────────────────────────────────────────────────────


def boolean_inputs(d: int) -> Floats:
    """Return all inputs (2^d, d) of d boolean features, in binary order."""
    return np.array(list(product([0.0, 1.0], repeat=d)))


def threshold_weights(outputs: ArrayLike) -> Floats | None:
    """Return weights (d + 1,) of a linear threshold unit that computes a boolean function; None if there is none.

    Parameters
    ----------
    outputs
        (2^d,) values 0 or 1 for the inputs in binary order, as `boolean_inputs` has them.
    """
    y = np.asarray(outputs)
    d = len(y).bit_length() - 1
    if y.ndim != 1 or len(y) != 2**d or not np.isin(y, [0, 1]).all():
        raise DataError(f"`outputs` must be 2^d values of 0 and 1; got shape {y.shape}.")
    Phi = np.column_stack([np.ones(len(y)), boolean_inputs(d)])
    return separating_weights(np.where(y == 1, 1.0, -1.0)[:, None] * Phi)


def count_threshold_functions(d: int) -> int:
    """Return how many boolean functions of d ≤ 4 features are linear threshold units: 4, 14, 104, 1882.

    There are 2^(2^d) boolean functions, and at most 2^(d²) of them are threshold units for d ≥ 2. They are counted by
    the small integer weights that are known to realise all of them.
    """
    if d not in _LARGEST_WEIGHT:
        raise DataError(f"`d` must be 1 to {MOST_FEATURES}, as all functions are enumerated; got {d}.")
    largest = _LARGEST_WEIGHT[d]
    weights = np.array(list(product(range(-largest, largest + 1), repeat=d)))
    activation = boolean_inputs(d) @ weights.T
    thresholds = np.arange(-d * largest, d * largest + 2) - 0.5
    functions = (activation[:, :, None] > thresholds).reshape(2**d, -1)
    return len(np.unique(functions, axis=1).T)


def _boolean_rows(X: ArrayLike) -> NDArray[np.intp]:
    rows = np.asarray(X)
    if rows.ndim != 2 or not np.isin(rows, [0, 1]).all():
        raise DataError(f"`X` must be (n, d) with values 0 and 1; got shape {rows.shape}.")
    return rows.astype(np.intp)
