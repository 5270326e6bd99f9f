"""Everything that a report says of one data set, computed once.

    split ──▶ each model by every method ──▶ each model on held-out rows ──▶ models against each other
                                                                              ──▶ the chosen model in detail

The model is chosen by leave-one-out on the training rows, the simplest one of those that predict alike; the held-out
rows, which had no part in the choice, can then judge it.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.evaluation.calibration import log_score_rows, paired_difference
from bayes_gda.evaluation.loo import Kind
from bayes_gda.evaluation.model_comparison import SMALL, Evidence, ModelComparison, ModelScore, compare_models
from bayes_gda.evaluation.sensitivity import Sensitivity
from bayes_gda.reporting.analysis.candidates import candidates
from bayes_gda.reporting.analysis.detail import Detail, look_closer, numbered
from bayes_gda.reporting.analysis.evaluated import ModelAnalysis, evaluate, weigh_prior
from bayes_gda.reporting.analysis.fits import fit_methods
from bayes_gda.reporting.analysis.placement import Placement, place
from bayes_gda.reporting.analysis.settings import Clock, ReportSettings, split


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """All that a report says.

    Parameters
    ----------
    data, train, test, rows
        The rows as given, the training rows, the held-out rows, and the numbers of the latter in their table.
    settings
        How it was computed.
    models, best
        The models in the order they were asked for; the name of the chosen one.
    failed
        Models that could not be fitted, and why.
    comparison, placement, baseline
        Models against each other; where between naive, LDA and QDA the data sit, or None; log score of the held-out
        rows by class shares alone, and by how much the chosen model is better, with the standard error.
    costs
        (A, K) costs of the decisions.
    sensitivities
        Prior sensitivity of each model's parameters.
    detail
        The chosen model in detail.
    clock
        Where the time went.
    """

    data: Dataset
    train: Dataset
    test: Dataset
    rows: NDArray[np.intp]
    settings: ReportSettings
    models: dict[str, ModelAnalysis]
    best: str
    failed: dict[str, str]
    comparison: ModelComparison
    placement: Placement | None
    baseline: tuple[float, float, float]
    costs: Floats
    sensitivities: dict[str, Sensitivity]
    detail: Detail
    clock: Clock

    @property
    def chosen(self) -> ModelAnalysis:
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
    if len(held.y) < 2:
        raise DataError(f"`test` must have at least two rows; got {held.n}. Raise test_size.")
    costs = settings.cost_matrix(data.K)
    names = settings.model_names(data.K)
    # Each model is fitted, perhaps sampled, evaluated and weighed; then comparison, detail, figures and writing.
    clock = Clock(settings.progress, len(names) * (4 - settings.quick) + 4)
    models: dict[str, ModelAnalysis] = {}
    failed: dict[str, str] = {}
    sensitivities: dict[str, Sensitivity] = {}
    for one in candidates(train, settings):
        try:
            fitted = fit_methods(one, settings, clock)
        except ConvergenceError as error:
            failed[one.name] = str(error)
            continue
        with clock.stage(f"evaluate {one.name}"):
            models[one.name] = evaluate(fitted, train, held, settings, costs)
        with clock.stage(f"weigh the prior of {one.name}"):
            sensitivities[one.name] = weigh_prior(models[one.name], train, None, settings)
    if not models:
        raise ConvergenceError("No model could be fitted: " + " ".join(f"{k}: {v}" for k, v in failed.items()))
    with clock.stage("compare models"):
        placement = place(train, held) if settings.averaged else None
        comparison = compare_models(
            {name: _score(m) for name, m in models.items()},
            y=train.y,
            y_test=held.y,
            continuum=None if placement is None else placement.continuum,
        )
        best = _chosen(comparison, models)
    with clock.stage(f"{best} in detail"):
        detail = look_closer(models[best], train, held, settings, costs)
        detail = replace(detail, sensitivity=numbered(detail, sensitivities[best], numbers))
        baseline = _baseline(models[best], train, held)
    return Analysis(
        data,
        train,
        held,
        numbers,
        settings,
        models,
        best,
        failed,
        comparison,
        placement,
        baseline,
        costs,
        sensitivities,
        detail,
        clock,
    )


def _score(model: ModelAnalysis) -> ModelScore:
    candidate, (value, error) = model.fitted.candidate, model.fitted.best_evidence
    of: Kind = "joint" if candidate.family == "generative" else "conditional"
    evidence = Evidence(value, of, error) if np.isfinite(value) else None
    return ModelScore(candidate.family, loo=model.loo, held_out=model.log_probabilities, evidence=evidence)


def _chosen(comparison: ModelComparison, models: dict[str, ModelAnalysis]) -> str:
    """Return the model of fewest parameters among those that predict like the best by leave-one-out."""
    assert comparison.loo is not None
    alike = [str(name) for name, gap in comparison.loo["difference"].items() if not abs(gap) >= SMALL]
    return min(alike, key=lambda name: models[name].fitted.candidate.parameters)


def _baseline(model: ModelAnalysis, train: Dataset, test: Dataset) -> tuple[float, float, float]:
    """Return the log score of the training rows' class shares, and the model's gain over it with its error."""
    shares = (train.class_counts + 1) / (train.n + train.K)  # a class without rows is not held impossible
    constant = log_score_rows(np.tile(shares, (test.n, 1)), test.y)
    own = model.log_probabilities[np.arange(test.n), test.y]
    return float(constant.mean()), *paired_difference(own, constant)
