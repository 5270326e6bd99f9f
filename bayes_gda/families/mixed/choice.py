"""Which distribution a column has: given by name, by its type, or the one of largest evidence that its values allow.

    type or values                       candidates
    text, categories                     categorical
    true or false, 0 and 1               bernoulli
    two other values                     categorical
    whole numbers                        normal; of 0 and more also poisson and negative-binomial; above 0 also
                                         log-normal and gamma; with at most MOST_LEVELS of them also categorical
    other numbers                        normal; above 0 also log-normal and gamma; within (0, 1) logit-normal and beta

The evidence is that of the column given the classes, summed over these, under each candidate's default prior. Of whole
numbers, densities are compared with probabilities: a density is taken for the probability of an interval of length 1,
where the values spread over several of these in every class.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.classes import plain
from bayes_gda.data.columns import Encoding
from bayes_gda.data.groups import Group, groups_of, numeric_groups
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.families.mixed.column import Codes
from bayes_gda.families.mixed.distributions import DISTRIBUTIONS
from bayes_gda.priors.mixed import ColumnPrior, MixedPrior

# Whole numbers are tried as categories if there are so few of them, and three rows for each at least.
MOST_LEVELS = 12
LEVEL_ROWS = 3
# Standard deviation within every class from which on whole numbers are tried as measurements.
LEAST_SPREAD = 1.0
# Words that let the data or the types decide for all columns.
BY_EVIDENCE, BY_TYPE = "evidence", "type"


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """How the distribution of a column was chosen.

    Parameters
    ----------
    name, distribution
        The column, and the word of its distribution.
    by
        `given`, `type` or `evidence`.
    evidence
        Log evidence of each candidate, where they were compared.
    """

    name: str
    distribution: str
    by: str
    evidence: Mapping[str, float]

    @property
    def lead(self) -> tuple[str, float] | None:
        """The runner-up, and by how much the log evidence exceeds its; None if nothing was compared."""
        others = {word: value for word, value in self.evidence.items() if word != self.distribution}
        if not others:
            return None
        second = max(others, key=lambda word: others[word])
        return second, self.evidence[self.distribution] - others[second]


def choose(
    data: Dataset, distributions: str | Mapping[str, str] = BY_EVIDENCE
) -> tuple[MixedPrior, tuple[Choice, ...]]:
    """Choose the distribution of every column, and its default prior.

    Parameters
    ----------
    data
        Training rows; which columns of X are one of the table is known by its encoding.
    distributions
        `evidence`, `type` (the first that the values allow: counts are Poisson, measurements normal), or a word by
        column, where all others go by evidence. `binomial` takes the largest count for the number of trials, and
        `binomial(10)` says it.
    """
    # The design of a formula has no columns of a table behind it, only numbers.
    known = data.encoding if isinstance(data.encoding, Encoding) else None
    groups = numeric_groups(data.feature_names) if known is None else groups_of(known)
    given = {} if isinstance(distributions, str) else dict(distributions)
    rule = distributions if isinstance(distributions, str) else BY_EVIDENCE
    if rule not in (BY_EVIDENCE, BY_TYPE):
        raise DataError(
            f"`distributions` must be 'evidence', 'type' or a word by column; got {rule!r}. The words are "
            f"{', '.join(DISTRIBUTIONS)}."
        )
    names = [group.name for group in groups]
    for name in given:
        if name not in names:
            raise DataError(f"`distributions` names {name!r}, which is no column; the columns are {', '.join(names)}.")
    priors, choices = [], []
    for group in groups:
        prior, choice = _choose_column(group, data, given.get(group.name), rule)
        priors.append(prior)
        choices.append(choice)
    return MixedPrior(tuple(priors)), tuple(choices)


def candidates(group: Group, X: Floats, y: Codes) -> tuple[str, ...]:
    """Return the distributions that a column may have, by its type and values, the one of its type first."""
    if group.kind == "categorical":
        return ("categorical",)
    x = group.read(X)
    values = np.unique(x[~np.isnan(x)])
    if group.kind == "boolean" or (len(values) and np.isin(values, (0, 1)).all()):
        return ("bernoulli",)
    if not len(values):
        return ("normal",)
    if len(values) == 2:
        return ("categorical",)
    low, high, rows = values[0], values[-1], int((~np.isnan(x)).sum())
    if not (values == np.round(values)).all() or high > 1e9:
        positive = ("log-normal", "gamma") if low > 0 else ()
        return ("normal", *positive, *(("logit-normal", "beta") if low > 0 and high < 1 else ()))
    # The density of whole numbers is the probability of an interval of length 1 only if it hardly varies in it.
    spreads = [np.nanstd(x[y == k]) for k in np.unique(y) if (~np.isnan(x[y == k])).sum() > 1]
    smooth = ["normal", *(["log-normal", "gamma"] if low > 0 else [])]
    words = ["poisson", "negative-binomial"] if low >= 0 else []
    words += smooth if not words or min(spreads, default=0.0) >= LEAST_SPREAD else []
    few = len(values) <= MOST_LEVELS and rows >= LEVEL_ROWS * len(values)
    return tuple([*words, "categorical"] if few else words)


def column_prior(group: Group, data: Dataset, word: str) -> ColumnPrior:
    """Return the default prior of a column under a distribution, or raise if its values do not allow it."""
    base, _, trials = word.removesuffix(")").partition("(")
    if base not in DISTRIBUTIONS or (trials and (base != "binomial" or not trials.isdigit() or int(trials) < 1)):
        raise DataError(
            f"`distributions` of {group.name!r} must be one of {', '.join(DISTRIBUTIONS)}; got {word!r}. "
            "Only binomial takes a number, such as binomial(10)."
        )
    cls, x = DISTRIBUTIONS[base], group.read(data.X)
    levels, coded = group.levels, bool(group.levels)
    if base == "categorical" and not coded:
        levels = tuple(plain(value) for value in np.unique(x[~np.isnan(x)]).tolist())
        if not levels:
            raise DataError(f"Column {group.name!r} has no values: all are missing. Drop it, or give `prior`.")
        x = np.where(np.isnan(x), np.nan, np.searchsorted(np.array(levels, dtype=float), x).astype(float))
    elif coded and base != "categorical":
        raise DataError(f"Column {group.name!r} holds categories, which {base!r} cannot model. Use 'categorical'.")
    numbers = np.array([float(trials)]) if trials else np.array([np.inf])
    if (bad := cls.outside(x, numbers)).any():
        raise DataError(
            f"Column {group.name!r} cannot be {base}: {SUPPORT[base]}; got {x[bad][0]:g} in row "
            f"{int(bad.argmax()) + 1}."
        )
    if np.isnan(x).all():
        raise DataError(f"Column {group.name!r} has no values: all are missing. Drop it, or give `prior`.")
    made = cls.default(x, data.y, data.K, data.weight, levels=len(levels), trials=int(trials) if trials else None)
    kept = levels if base == "categorical" else ()
    return ColumnPrior(group.name, base, group.start, group.stop, made, kept, coded)


# What values a distribution has, in words that go after a colon.
SUPPORT = {
    "normal": "it takes any number",
    "log-normal": "it takes numbers above 0",
    "gamma": "it takes numbers above 0",
    "logit-normal": "it takes numbers between 0 and 1, without these",
    "beta": "it takes numbers between 0 and 1, without these",
    "bernoulli": "it takes 0 and 1",
    "binomial": "it takes whole numbers from 0 to the number of trials",
    "categorical": "it takes levels",
    "poisson": "it takes whole numbers from 0 on",
    "negative-binomial": "it takes whole numbers from 0 on",
}


def _choose_column(group: Group, data: Dataset, word: str | None, rule: str) -> tuple[ColumnPrior, Choice]:
    if word is not None:
        prior = column_prior(group, data, word)
        return prior, Choice(group.name, prior.distribution, "given", {})
    words = candidates(group, data.X, data.y)
    if len(words) == 1 or rule == BY_TYPE:
        return column_prior(group, data, words[0]), Choice(group.name, words[0], "type", {})
    priors, evidence = {}, {}
    for name in words:
        prior = column_prior(group, data, name)
        try:
            posterior = DISTRIBUTIONS[name].of_rows(prior.numbers, prior.read(data.X), data.y, data.K, data.weight)
            evidence[name] = float(posterior.log_evidence.sum())
        except ConvergenceError:  # a rule found no box: the others stand
            continue
        priors[name] = prior
    best = max(evidence, key=lambda name: evidence[name])
    return priors[best], Choice(group.name, best, "evidence", evidence)


def describe(choices: tuple[Choice, ...]) -> str:
    """Return in a sentence or two which distribution each column has, and by how much evidence."""
    parts = {"evidence": [], "type": [], "given": []}  # type: dict[str, list[str]]
    for choice in choices:
        lead = choice.lead
        more = "" if lead is None else f" ({lead[1]:.1f} above {lead[0]})"
        parts[choice.by].append(f"{choice.name} {choice.distribution}{more}")
    heads = {
        "evidence": "Distributions chosen by log evidence, with the lead over the runner-up: ",
        "type": "By the type of the column: ",
        "given": "As given: ",
    }
    return " ".join(f"{heads[by]}{', '.join(texts)}." for by, texts in parts.items() if texts)
