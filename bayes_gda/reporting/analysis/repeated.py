"""Repeated cross-validation of every model on all rows that may be learnt from, if it costs little beside the report.

One split judges a model on the rows that happened to be held out; R repetitions of F folds judge it on all of them. A
row's score is its mean over the repetitions, and errors are those of means over rows, paired for differences of models:

    log score of a row    s_i = (1/R) Σ_r log p(y_i | x_i, rows outside the fold of i in repetition r)
    difference            mean of s_i − s'_i over rows, with its standard error sd/√n

Each fold is fitted by the closed form or, for a regression, by the better Gaussian (expectation propagation or
variational), never by MCMC. How often it is repeated depends on the size of the task alone, by an estimate of its cost,
not on a clock: the same data give the same report on every machine.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, attempt
from bayes_gda.evaluation.calibration import paired_difference
from bayes_gda.evaluation.model_comparison import kfold
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.families.base import Family
from bayes_gda.methods.ladder import Fit
from bayes_gda.methods.settings import Settings
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.reporting.analysis.words import short_name

if TYPE_CHECKING:
    import pandas as pd

FOLDS, MOST_REPEATS = 5, 10
# Rows of a class, of which the folds without one of them keep some.
FEWEST = 3
# Seconds of one core that it may take, in a quick report and in one that samples.
QUICK_SECONDS, SECONDS = 2.0, 20.0
# Seconds of a fit and its predictions on one core, fitted to tables of 150 to 1800 rows and 4 to 61 features, within a
# factor of two: a constant, and one for each multiplication.
CLOSED_FORM, PER_MOMENT = 0.002, 1e-9  # n d²
PASSES, PER_WEIGHT, PER_CLASS = 0.006, 1.5e-8, 2.7e-4  # n w² of w weights, and n K of more than two classes
# A model without either: its search of the mode is not known beforehand.
SEARCH = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """Cross-validation of all models, or why there is none.

    Parameters
    ----------
    folds, repeats
        Folds of each repetition; repetitions, 0 if it was not done.
    rows
        Rows that were dealt to the folds.
    table
        One line a model, the best log score first: `log_score`, `brier` and `accuracy` with errors `_se`, `difference`
        of the log score from the best model's with `difference_se`, `gain` over the class shares of the folds with
        `gain_se`, and the range of the log score over the repetitions, `least` and `most`; None if it was not done.
    methods
        By which method each model was fitted.
    left_out
        Models without it, and why.
    seconds
        The estimate of the cost of one repetition that decided.
    reason
        Why it was not done; empty if it was.
    baseline
        Log score of the class shares of the folds that are learnt from; nan if it was not done.
    """

    folds: int
    repeats: int
    rows: int
    table: "pd.DataFrame | None"
    methods: Mapping[str, str]
    left_out: Mapping[str, str]
    seconds: float
    reason: str = ""
    baseline: float = np.nan


def cross_validate(models: Mapping[str, Scorecard], data: Dataset, *, quick: bool) -> Repeated:
    """Cross-validate models on the rows of `data`, as often as the budget allows.

    Parameters
    ----------
    models
        The fitted models by name; their family, prior and settings are those of each fold.
    data
        All rows that may be learnt from.
    quick
        Whether the report is a quick one.
    """
    seconds = FOLDS * sum(estimated_seconds(card.fitted, data) for card in models.values())
    repeats = int(min(MOST_REPEATS, (QUICK_SECONDS if quick else SECONDS) / seconds))
    rarest = int(data.class_counts.argmin())
    fewest = int(data.class_counts[rarest])
    reason = ""
    if fewest < FEWEST:
        name = short_name(data.class_names[rarest])
        reason = f"Class “{name}” has {fewest} row{'' if fewest == 1 else 's'}; each class needs {FEWEST}."
    elif data.n < 2 * FOLDS:
        reason = f"There are only {data.n} rows."
    elif repeats == 0:
        reason = f"It would take about {seconds:.0f} seconds of one core a repetition."
    if reason:
        return Repeated(FOLDS, 0, data.n, None, {}, {}, seconds, reason)
    methods: dict[str, str] = {}
    left_out: dict[str, str] = {}
    scores: dict[str, Floats] = {}
    for name, card in models.items():
        runs, failure = attempt(partial(_runs, name, card, data, repeats, methods))
        if runs is None:
            left_out[name] = failure
        else:
            scores[name] = runs
    if not scores:
        return Repeated(FOLDS, repeats, data.n, None, methods, left_out, seconds)
    constant = _constant(data, next(iter(models.values())).settings.random_seed, repeats)
    table = _table(scores, constant, data)
    return Repeated(FOLDS, repeats, data.n, table, methods, left_out, seconds, baseline=float(constant.mean()))


def class_shares(train: Dataset) -> Floats:
    """Return forecasts (K,) that do not look at the features; a class without rows is not held impossible."""
    return np.asarray((train.class_counts + 1) / (train.n + train.K))


def _constant(data: Dataset, random_seed: int, repeats: int) -> Floats:
    """Return the log score (n,) of each row by the class shares of the other folds, its mean over the repetitions."""

    def fit_predict(train: Dataset, X: Floats) -> Floats:
        return np.tile(np.log(class_shares(train)), (len(X), 1))

    own = [
        kfold(data, fit_predict, folds=FOLDS, random_seed=random_seed + r)[np.arange(data.n), data.y]
        for r in range(repeats)
    ]
    return np.asarray(np.mean(own, axis=0))


def estimated_seconds(fitted: Fit, data: Dataset) -> float:
    """Return about how long one fit to the rows of a fold takes on one core, by its size alone."""
    if "exact" in fitted.models:
        return CLOSED_FORM + PER_MOMENT * data.n * data.d**2
    if fitted.propagated is None:
        return SEARCH
    weights = PER_WEIGHT * data.n * fitted.family.parameters**2
    return PASSES + weights + (PER_CLASS * data.n * data.K if data.K > 2 else 0.0)


def _runs(name: str, card: Scorecard, data: Dataset, repeats: int, methods: dict[str, str]) -> Floats:
    """Return log probabilities (R, n, K) of all rows."""
    family, settings = type(card.fitted.family), card.settings

    def fit_predict(train: Dataset, X: Floats) -> Floats:
        model, methods[name] = _fit(family.bind(family.prepare(train, "auto")), settings)
        return model.log_probabilities(X)

    return np.stack(
        [kfold(data, fit_predict, folds=FOLDS, random_seed=settings.random_seed + r) for r in range(repeats)]
    )


def _fit(family: Family, settings: Settings) -> tuple[FittedModel, str]:
    """Fit in closed form, or by the better Gaussian, or by Laplace's; nothing is judged and nothing sampled."""
    if (exact := family.exact()) is not None:
        return exact.model, "exact"
    if not family.has_mode:
        raise DataError(
            "With missing values it has neither a closed form nor a mode, and folds are not fitted by sampling."
        )
    gaussian = family.laplace()
    if (better := family.propagate(gaussian)) is not None:
        return family.from_propagated(better.gaussian, settings), better.method
    return family.from_gaussian(gaussian, settings), "laplace"


def _table(runs: Mapping[str, Floats], constant: Floats, data: Dataset) -> "pd.DataFrame":
    import pandas as pd

    n = data.n
    truth = np.eye(data.K)[data.y]
    own = {name: log_P[:, np.arange(n), data.y] for name, log_P in runs.items()}
    order = sorted(own, key=lambda name: -own[name].mean())
    best = own[order[0]].mean(axis=0)
    lines = []
    for name in order:
        log_P = runs[name]
        rows = {
            "log_score": own[name].mean(axis=0),
            "brier": ((np.exp(log_P) - truth) ** 2).sum(axis=2).mean(axis=0),
            "accuracy": (log_P.argmax(axis=2) == data.y).mean(axis=0),
        }
        line: dict[str, float] = {}
        for key, values in rows.items():
            line |= {key: float(values.mean()), f"{key}_se": float(values.std(ddof=1) / np.sqrt(n))}
        line["difference"], line["difference_se"] = paired_difference(rows["log_score"], best)
        line["gain"], line["gain_se"] = paired_difference(rows["log_score"], constant)
        means = own[name].mean(axis=1)
        lines.append(line | {"least": float(means.min()), "most": float(means.max())})
    return pd.DataFrame(lines, index=pd.Index(order, name="model"))
