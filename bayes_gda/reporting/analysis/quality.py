"""What an analyst looks for in a table before any model: identifiers, copies, leaks, outliers, classes with few rows.

Nothing is changed or left out: each `Finding` names columns, rows and figures, and the report says what to do.

    identifier       whole numbers that are all different
    copies           columns that are linear functions of each other, |r| > 1 − 1e-9; repeated rows
    sum              a column that is a linear function of several others, 1 − R² < 2e-9
    separator        a feature that alone orders every pair of classes with an AUC of .995 or more: known too late?
    outliers         values more than 10 robust standard deviations (1.4826 MAD) from the median
    two values       features of two values, which are no Gaussian measurements
    codes            features of three to seven different small whole numbers, which may be codes of categories
    rare class       fewer than 10 rows, or less than 5 % of all
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from bayes_gda.checks import Floats
from bayes_gda.data.columns import Encoding
from bayes_gda.data.groups import Group, groups_of
from bayes_gda.data.table import Dataset
from bayes_gda.linalg import dependent_columns

Kind = Literal[
    "identifier", "copies", "sum", "separator", "outliers", "two values", "rare class", "repeated rows", "conflict",
    "codes",
]  # fmt: skip

# Fewer rows may well have different whole numbers by chance.
FEWEST_ROWS = 20
SAME = 1 - 1e-9
# The same for several columns: |r| > 1 − 1e-9 is 1 − R² < 2e-9. A share of a sum below SHARE is a rounding error.
DETERMINED, SHARE = 2e-9, 1e-6
# Columns among which sums are looked for: the sweep takes the cube of their number.
MOST_COLUMNS = 1000
SEPARATES = 0.995
# Of a normal sample of a million rows none is as far; of exponential features one in 2000 is.
FAR = 10.0
ROBUST_SD = 1.4826
FEW_ROWS, SMALL_SHARE = 10, 0.05
# Different whole numbers, and the largest of them, that codes of categories may have.
FEW_VALUES, LARGEST_CODE = range(3, 8), 9
# Classes whose pairs are compared; with more a feature that orders all of them is no accident of leakage.
MOST_CLASSES = 10


@dataclass(frozen=True, slots=True, eq=False)
class Finding:
    """Something in the data that deserves a look.

    Parameters
    ----------
    kind
        What it is.
    columns
        The features concerned, of a sum itself first; of a rare class its name.
    rows
        How many rows are concerned.
    value
        The figure behind it: the AUC of a separator, and of an identifier for the pair of classes that it orders best;
        the largest distance of an outlier, the share of a class; of
        repeated rows the pairs of equal rows expected if the features were independent, as a share of those there are.
    places
        Positions of at most ten of the rows in the table that was looked at.
    """

    kind: Kind
    columns: tuple[str, ...] = ()
    rows: int = 0
    value: float = np.nan
    places: tuple[int, ...] = ()


def inspect_table(data: Dataset) -> tuple[Finding, ...]:
    """Return what deserves a look before a model is fitted, the gravest first."""
    X, names = data.X, data.feature_names
    values = [_distinct(X[:, j]) for j in range(data.d)]
    numbers = [
        j
        for j in range(data.d)
        if data.n >= FEWEST_ROWS and len(values[j]) == data.n and (values[j] == np.round(values[j])).all()
    ]
    findings = [
        *_separators(data, values),
        *(Finding("identifier", (names[j],), data.n, _largest_separation(data, j)) for j in numbers),
        *_copies(data, values),
        *_repeated(data, np.delete(data.X, numbers, axis=1)),
        *_outliers(X, names, values),
        *_rare(data),
    ]
    if two := tuple(names[j] for j in range(data.d) if len(values[j]) == 2):
        findings.append(Finding("two values", two, data.n))
    if codes := tuple(names[j] for j in range(data.d) if _may_be_codes(values[j])):
        findings.append(Finding("codes", codes, data.n))
    return tuple(findings)


def _distinct(x: Floats) -> Floats:
    return np.unique(x[~np.isnan(x)])


def _may_be_codes(values: Floats) -> bool:
    return len(values) in FEW_VALUES and bool(
        (values == np.round(values)).all() and 0 <= values[0] <= values[-1] <= LARGEST_CODE
    )


def _separators(data: Dataset, values: list[Floats]) -> list[Finding]:
    """Find features that alone tell every pair of classes apart."""
    present = np.flatnonzero(data.class_counts)
    if not 2 <= len(present) <= MOST_CLASSES or data.n < FEWEST_ROWS:
        return []
    findings = []
    for j, name in enumerate(data.feature_names):
        if len(values[j]) < 2:
            continue
        by_class = [x[~np.isnan(x)] for x in (data.X[data.y == k, j] for k in present)]
        if any(len(x) == 0 for x in by_class):
            continue
        least = min(_separation(a, b) for a, b in combinations(by_class, 2))
        if least >= SEPARATES:
            findings.append(Finding("separator", (name,), data.n, least))
    return findings


def _largest_separation(data: Dataset, j: int) -> float:
    """Return the AUC of a feature without gaps for the pair of classes that it tells apart best; nan for one class."""
    present = np.flatnonzero(data.class_counts)[:MOST_CLASSES]
    by_class = [data.X[data.y == k, j] for k in present]
    return max((_separation(a, b) for a, b in combinations(by_class, 2)), default=np.nan)


def _separation(a: Floats, b: Floats) -> float:
    """Return the AUC of one sample against another, in whichever direction is larger."""
    ranks = rankdata(np.concatenate([a, b]))
    auc = (ranks[: len(a)].sum() - len(a) * (len(a) + 1) / 2) / (len(a) * len(b))
    return float(max(auc, 1 - auc))


def _copies(data: Dataset, values: list[Floats]) -> list[Finding]:
    """Find groups of columns that are linear functions of each other, and columns that are sums of others.

    The first of a group is the one to keep: columns of a category, which can only be left out together, come first.
    """
    names, coded = data.feature_names, coded_columns(data)
    whole = data.X[~np.isnan(data.X).any(axis=1)]
    vary = [j for j in range(data.d) if len(values[j]) > 1 and len(whole) and np.ptp(whole[:, j]) > 0]
    vary.sort(key=lambda j: j not in coded)
    if len(whole) < 3 or len(vary) < 2:
        return []
    Z = whole[:, vary] - whole[:, vary].mean(axis=0)
    Z /= np.abs(Z).max(axis=0)
    Z /= np.linalg.norm(Z, axis=0)
    same = np.abs(Z.T @ Z) > SAME
    findings, seen = [], set()
    for i, row in enumerate(same):
        group = [int(j) for j in np.flatnonzero(row)]
        if len(group) > 1 and i not in seen:
            seen.update(group)
            findings.append(Finding("copies", tuple(names[vary[j]] for j in group), len(whole)))
    first = [j for j in range(len(vary)) if not same[j, :j].any()]
    if len(whole) - 1 > len(first) <= MOST_COLUMNS:  # of fewer rows any column is a sum
        for j, weights in dependent_columns(Z[:, first], tolerance=DETERMINED).items():
            others = np.flatnonzero(np.abs(weights) > SHARE)
            columns = tuple(names[vary[first[int(i)]]] for i in (j, *others))
            findings.append(Finding("sum", columns, len(whole)))
    return findings


def coded_columns(data: Dataset) -> dict[int, Group]:
    """Return, for each 0/1 column of a category, the group of that category's columns."""
    groups = groups_of(data.encoding) if isinstance(data.encoding, Encoding) else ()
    return {j: g for g in groups if g.levels for j in range(g.start, g.stop)}


def _repeated(data: Dataset, X: Floats) -> list[Finding]:
    """Find rows that stand more than once, and equal rows of different classes, by features that are no identifiers."""
    if not X.shape[1]:
        return []
    _, label, count = np.unique(X, axis=0, return_inverse=True, return_counts=True, equal_nan=True)
    label = label.ravel()
    first = np.zeros(data.n, dtype=bool)
    first[np.unique(label, return_index=True)[1]] = True
    findings = []
    extra = np.flatnonzero(~first)
    if len(extra):
        pairs = float((count * (count - 1)).sum())
        equal = np.prod([((np.unique(x, return_counts=True)[1] / data.n) ** 2).sum() for x in X.T])
        share = float(equal) * data.n * (data.n - 1) / pairs
        findings.append(Finding("repeated rows", (), len(extra), share, _some(extra)))
    low = np.full(len(count), data.K)
    high = np.full(len(count), -1)
    np.minimum.at(low, label, data.y)
    np.maximum.at(high, label, data.y)
    conflict = np.flatnonzero((low < high)[label])
    if len(conflict):
        findings.append(Finding("conflict", (), len(conflict), places=_some(conflict)))
    return findings


def _outliers(X: Floats, names: tuple[str, ...], values: list[Floats]) -> list[Finding]:
    findings = []
    for j, name in enumerate(names):
        if len(values[j]) <= 2:
            continue
        center = np.nanmedian(X[:, j])
        spread = ROBUST_SD * np.nanmedian(np.abs(X[:, j] - center))
        if not spread > 0:
            continue  # more than half of the values are equal: there is no scale to judge by
        with np.errstate(over="ignore"):
            distance = np.abs(X[:, j] - center) / spread
        far = np.flatnonzero(distance > FAR)
        if len(far):
            findings.append(Finding("outliers", (name,), len(far), float(np.nanmax(distance)), _some(far)))
    return sorted(findings, key=lambda f: -f.value)


def _rare(data: Dataset) -> list[Finding]:
    counts = data.class_counts
    return [
        Finding("rare class", (str(name),), int(count), float(count / counts.sum()))
        for name, count in zip(data.class_names, counts, strict=True)
        if count > 0 and (count < FEW_ROWS or count < SMALL_SHARE * counts.sum())
    ]


def _some(rows: NDArray[np.intp]) -> tuple[int, ...]:
    return tuple(int(i) for i in rows[:10])
