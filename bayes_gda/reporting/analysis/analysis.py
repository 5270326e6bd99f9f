"""Everything that a report says of one data set, computed once.

    split ──▶ each model by every method ──▶ each model on held-out rows ──▶ models against each other
                                                                              ──▶ the chosen model in detail

The model is chosen by leave-one-out on the training rows, the simplest one of those that predict alike; the held-out
rows, which had no part in the choice, can then judge it.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError, DataError, attempt, explain
from bayes_gda.evaluation.calibration import log_score_rows, paired_difference
from bayes_gda.evaluation.loo import told_apart
from bayes_gda.evaluation.model_comparison import ModelComparison
from bayes_gda.evaluation.scorecard import Scorecard, compare_models
from bayes_gda.evaluation.sensitivity import Sensitivity
from bayes_gda.methods.ladder import fit_every
from bayes_gda.prediction.decisions import Decisions
from bayes_gda.prediction.effects import PartialEffect
from bayes_gda.reporting.analysis.detail import PROB, Detail, look_closer, numbered
from bayes_gda.reporting.analysis.effects import Effects, effects, partial_effects
from bayes_gda.reporting.analysis.explore import HeldOutNovelty, detect_outlying
from bayes_gda.reporting.analysis.placement import Placement, place
from bayes_gda.reporting.analysis.quality import inspect_table
from bayes_gda.reporting.analysis.repeated import Repeated, class_shares, cross_validate
from bayes_gda.reporting.analysis.settings import Clock, ReportSettings, split
from bayes_gda.reporting.analysis.soundness import Remark, remarks

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """All that a report says.

    Parameters
    ----------
    data, train, test, rows
        The rows as given, the training rows, the held-out rows, and the numbers of the latter in their table.
    settings
        How it was computed.
    models, decisions, best
        The models in the order they were asked for; what each decides for held-out rows; name of the chosen one.
    failed, incomplete
        Models that could not be fitted, and why; those of which something is not known, and why.
    comparison, placement, baseline
        Models against each other; where between naive, LDA and QDA the data sit, or None; log score of the held-out
        rows by class shares alone, and by how much the chosen model is better, with the standard error.
    costs
        (A, K) costs of the decisions.
    sensitivities
        Prior sensitivity of each model's parameters.
    detail
        The chosen model in detail.
    effects, curves
        What the features do in the chosen model; partial effects of the strongest ones.
    repeated
        Repeated cross-validation of all models on the rows that may be learnt from.
    novelty
        How far out the held-out rows lie, by the best model that knows; None if none does.
    remarks
        What deserves a look in the data, in words.
    clock
        Where the time went.
    """

    data: Dataset
    train: Dataset
    test: Dataset
    rows: NDArray[np.intp]
    settings: ReportSettings
    models: dict[str, Scorecard]
    decisions: dict[str, Decisions]
    best: str
    failed: dict[str, str]
    incomplete: dict[str, str]
    comparison: ModelComparison
    placement: Placement | None
    baseline: tuple[float, float, float]
    costs: Floats
    sensitivities: dict[str, Sensitivity]
    detail: Detail
    effects: Effects
    curves: tuple[PartialEffect, ...]
    repeated: Repeated
    novelty: HeldOutNovelty | None
    remarks: tuple[Remark, ...]
    clock: Clock

    @property
    def row_numbers(self) -> NDArray[np.intp]:
        """(n_test,) numbers of the held-out rows in the table that was read, from 1."""
        given = self.data.n == self.train.n
        return (self.test if given else self.data).row_numbers[self.rows]

    @property
    def chosen(self) -> Scorecard:
        """The chosen model."""
        return self.models[self.best]


def analyse(data: Dataset, settings: ReportSettings, *, test: Dataset | None = None) -> Analysis:
    """Fit all models to the training rows by all methods, and hold them against each other.

    Parameters
    ----------
    data
        Rows; some are held out unless `test` is given.
    settings
        Which models, and how much to compute.
    test
        Held-out rows of your own.
    """
    train, held, numbers = split(data, test, settings)
    fitted_rows = np.arange(data.n) if test is not None else np.setdiff1d(np.arange(data.n), numbers)
    train_numbers = data.row_numbers[fitted_rows]
    order = sorted(range(data.K), key=lambda k: data.class_names[k])
    # Every door has the classes in this order: the same draws then stand for the same weights.
    data, train, held = (part.in_natural_order() for part in (data, train, held))
    if len(held.y) < 2:
        raise DataError(f"`test` must have at least two rows; got {held.n}. Raise test_size.")
    costs = settings.cost_matrix(data.K)[:, order]
    if len(costs) == data.K and settings.action_names is None:
        costs = costs[order]  # an action for each class
    gaps = data.has_missing or held.has_missing
    families, ladder = settings.families(data, gaps=gaps), settings.ladder()
    each = dict.fromkeys(("fit", "evaluate", "weigh", *(() if settings.quick else ("sample",))), len(families))
    clock = Clock(settings.progress, each | dict.fromkeys(("compare", "detail", "cross-validate", "draw", "write"), 1))
    models: dict[str, Scorecard] = {}
    decided: dict[str, Decisions] = {}
    errors: dict[str, Exception] = {}
    incomplete: dict[str, str] = {}
    sensitivities: dict[str, Sensitivity] = {}
    for kind in families:
        name = kind.name
        try:
            family = kind.bind(kind.prepare(train, "auto"))
            # Rows with gaps are sampled by data augmentation where there is no closed form: quick, and all there is.
            sampling = not settings.quick or (gaps and not family.has_mode and family.exact() is None)
            fitted = fit_every(family, ladder, sampling=sampling, stage=clock.of(name))
            with clock.stage(f"evaluate {name}"):
                card = replace(Scorecard.of_fit(fitted, train, held, ladder), row_numbers=train_numbers)
                made = card.decisions(costs, _actions(held, costs, settings))
                _ = card.attempted_loo, card.posteriors, card.predictions, card.calibration, card.performance
                _ = card.assumptions
        except Exception as error:  # the others are worth a report
            errors[name] = error
            continue
        models[name], decided[name] = card, made
        with clock.stage(f"weigh the prior of {name}"):
            sensitivity, failure = attempt(card.sensitivity)
            if sensitivity is None:
                incomplete[name] = f"Its sensitivity to the prior is not known: {failure}"
            else:
                sensitivities[name] = sensitivity
    failed = {name: explain(error) for name, error in errors.items()}
    if not models:
        if len(errors) == 1:
            raise next(iter(errors.values()))
        raise ConvergenceError("No model could be fitted: " + " ".join(f"{k}: {v}" for k, v in failed.items()))
    with clock.stage("compare models"):
        average = settings.average(data.K, gaps=gaps)
        placement = None
        if average is not None:
            placement, failure = attempt(lambda: place(average, train, held))
            if failure:
                incomplete[average.name] = f"Where between naive, LDA and QDA the data sit is not known: {failure}"
        comparison = compare_models(models, continuum=None if placement is None else placement.continuum)
        best = _chosen(comparison, models)
    with clock.stage(f"{best} in detail"):
        detail = look_closer(models[best], held, costs)
        shown = (data if test is None else held).row_numbers[numbers]
        if detail.sensitivity is not None and best in sensitivities:
            detail = replace(detail, sensitivity=numbered(detail, sensitivities[best], shown))
        baseline = _baseline(models[best], train, held)
        strongest, failure = attempt(lambda: effects(models[best], PROB))
        if strongest is None:
            strongest = Effects.unknown(train, PROB)
        average_effects = strongest.average
        curves, curve_failure = attempt(lambda: partial_effects(models, best, average_effects, PROB))
        preferred = [best, *(name for name in map(str, ranking(comparison).index) if name != best)]
        novelty = attempt(lambda: detect_outlying(preferred, models))[0]
        if reason := failure or curve_failure:
            incomplete[best] = " ".join(
                [*incomplete.get(best, "").splitlines(), f"Its effects are not known: {reason}"]
            )
    with clock.stage("cross-validate"):
        repeated = cross_validate(models, data, quick=settings.quick)
    return Analysis(
        data,
        train,
        held,
        numbers,
        settings,
        models,
        decided,
        best,
        failed,
        incomplete,
        comparison,
        placement,
        baseline,
        costs,
        sensitivities,
        detail,
        strongest,
        tuple(curves or ()),
        repeated,
        novelty,
        tuple(remarks(inspect_table(data), data)),
        clock,
    )


def _actions(data: Dataset, costs: Floats, settings: ReportSettings) -> list[str]:
    """Return names for the actions: those given, or the classes if there are as many, and if they differ as text."""
    if settings.action_names is not None:
        return list(settings.action_names)
    names = [str(name) for name in data.class_names]
    if len(costs) == data.K and len(set(names)) == data.K:
        return names
    return [f"action {a + 1}" for a in range(len(costs))]


def ranking(comparison: ModelComparison) -> "pd.DataFrame":
    """Return the table that the model is chosen by: leave-one-out; held-out rows where no model has that."""
    table = comparison.held_out if comparison.loo is None else comparison.loo
    assert table is not None
    return table


def _chosen(comparison: ModelComparison, models: dict[str, Scorecard]) -> str:
    """Return the model of fewest parameters among those that leave-one-out cannot tell from the best."""
    return min(alike(ranking(comparison)), key=lambda name: models[name].fitted.family.parameters)


def alike(table: "pd.DataFrame") -> list[str]:
    """Return the best model of a table of scores and those that cannot be told from it, the best first."""
    rows = zip(table.index, -table["difference"], table["difference_se"], strict=True)
    return [str(name) for i, (name, gap, se) in enumerate(rows) if i == 0 or not told_apart(gap, se)]


def _baseline(model: Scorecard, train: Dataset, test: Dataset) -> tuple[float, float, float]:
    """Return the log score of the training rows' class shares, and the model's gain over it with its error."""
    constant = log_score_rows(np.tile(class_shares(train), (test.n, 1)), test.y)
    own = model.log_probabilities[np.arange(test.n), test.y]
    return float(constant.mean()), *paired_difference(own, constant)
