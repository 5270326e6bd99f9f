"""Everything that a report says of one data set, computed once.

    split ──▶ each model by every method ──▶ each model on held-out rows ──▶ models against each other
                                                                              ──▶ the chosen model in detail

The model is chosen by leave-one-out on the training rows, the simplest one of those that predict alike; the held-out
rows, which had no part in the choice, can then judge it.
"""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import BayesGDAError, ConvergenceError, DataError
from bayes_gda.evaluation.calibration import calibration_table, corp_decomposition, log_score_rows, paired_difference
from bayes_gda.evaluation.compare import PosteriorComparison, compare_posteriors, compare_predictions
from bayes_gda.evaluation.loo import Loo, exact_loo, psis_loo_discriminative
from bayes_gda.evaluation.model_comparison import SMALL, Evidence, ModelComparison, ModelScore, compare_models
from bayes_gda.evaluation.reliability import ReliabilityCurve, one_class, reliability_curve, top_label
from bayes_gda.evaluation.sensitivity import Sensitivity, prior_sensitivity
from bayes_gda.prediction.classifier import GaussianClassifier
from bayes_gda.prediction.decisions import Decisions, ThresholdCurve, threshold_curve
from bayes_gda.prediction.links import EntropySplit
from bayes_gda.prediction.uncertainty import decisions, entropy, interval
from bayes_gda.reporting.candidates import candidates
from bayes_gda.reporting.fits import Fitted, fit_methods
from bayes_gda.reporting.settings import Clock, ReportSettings, split

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Posterior probability of the intervals.
LEVEL = 0.9
# Scalars of a posterior that are compared and weighed for their prior; each takes 20 ms a method. Beyond, covariances
# are left out: there are d² of them, and they matter through the predictions, which are compared in any case.
MOST_SCALARS = 150
# Numbers (draws × rows) of leave-one-out and of the prior sensitivity; beyond, draws are thinned, to no fewer than so
# many: 20 million take 160 MB.
MOST_NUMBERS, FEWEST_DRAWS = 20_000_000, 400
# Draws behind intervals, entropies and decisions of held-out rows: the ends of a 90 % interval then rest on 50 each.
ROW_DRAWS = 1000
# Held-out rows whose predictions are held against the prior: the most uncertain ones are the ones that can flip.
PRIOR_ROWS = 40
# Sets of outcomes behind the test of calibration: its p-value is then known to 0.02 at 0.05.
RESAMPLES = 499


@dataclass(frozen=True, slots=True, eq=False)
class ModelAnalysis:
    """A model, and what is known of it.

    Parameters
    ----------
    fitted
        The model by every method.
    posteriors, compared
        Its posteriors held to the best of them, None if there is one only; the variables that were compared.
    probabilities, predictions
        (n_test, K) probabilities of the held-out rows by method, and the table that holds them to the best.
    log_probabilities
        (n_test, K) of the method behind the predictions.
    loo
        Leave-one-out of the training rows, log p(y | x).
    calibration
        Scores and calibration on the held-out rows.
    decisions
        What to do with the held-out rows.
    """

    fitted: Fitted
    posteriors: PosteriorComparison | None
    compared: tuple[str, ...]
    probabilities: dict[str, Floats] = field(repr=False)
    predictions: "pd.DataFrame | None"
    log_probabilities: Floats = field(repr=False)
    loo: Loo
    calibration: "pd.DataFrame"
    decisions: Decisions

    @property
    def name(self) -> str:
        """Short name of the model."""
        return self.fitted.candidate.name


@dataclass(frozen=True, slots=True, eq=False)
class Detail:
    """The chosen model in detail, on the held-out rows.

    Parameters
    ----------
    interval
        (n_test, K, 2) credible intervals of the probabilities.
    entropy
        Entropy of each row's probabilities, split.
    curves
        Reliability curves of each class, and of the top label.
    calibration_p_value
        Chance that calibrated forecasts of the top label would look as miscalibrated as these.
    thresholds
        Cost of every threshold; None unless there are two classes and two actions that stand for them.
    sensitivity, prior_rows
        What hangs on the prior; the held-out rows whose predictions were looked at.
    """

    interval: Floats
    entropy: EntropySplit
    curves: dict[str, ReliabilityCurve]
    calibration_p_value: float
    thresholds: ThresholdCurve | None
    sensitivity: Sensitivity
    prior_rows: tuple[int, ...]


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
    comparison, baseline
        Models against each other; log score of the held-out rows by class shares alone, and by how much the chosen
        model is better, with the standard error.
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
            models[one.name] = _evaluate(fitted, train, held, settings, costs)
        with clock.stage(f"weigh the prior of {one.name}"):
            sensitivities[one.name] = _sensitivity(models[one.name], train, None, settings)
    if not models:
        raise ConvergenceError("No model could be fitted: " + " ".join(f"{k}: {v}" for k, v in failed.items()))
    with clock.stage("compare models"):
        comparison = compare_models({name: _score(m) for name, m in models.items()}, y=train.y, y_test=held.y)
        best = _chosen(comparison, models)
    with clock.stage(f"{best} in detail"):
        detail = _detail(models[best], train, held, settings, costs)
        detail = replace(detail, sensitivity=_numbered(detail, sensitivities[best], numbers))
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
        baseline,
        costs,
        sensitivities,
        detail,
        clock,
    )


# ── One model ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _evaluate(fitted: Fitted, train: Dataset, test: Dataset, settings: ReportSettings, costs: Floats) -> ModelAnalysis:
    compared = _compared(fitted.trees[fitted.method])
    several = len(fitted.trees) > 1
    log_P = fitted.model.log_probabilities(test.X)
    probabilities = _probabilities(fitted, test.X, log_P)
    return ModelAnalysis(
        fitted,
        compare_posteriors(fitted.trees, var_names=compared) if several else None,
        compared,
        probabilities,
        compare_predictions(probabilities) if len(probabilities) > 1 else None,
        log_P,
        _loo(fitted, train, settings),
        calibration_table(np.exp(log_P), test.y, class_names=[str(c) for c in test.class_names]),
        decisions(
            fitted.model,
            test.X,
            costs,
            size=min(settings.size, ROW_DRAWS),
            random_seed=settings.random_seed,
            action_names=_actions(test, costs),
        ),
    )


def _actions(data: Dataset, costs: Floats) -> list[str]:
    """Return names for the actions: the classes if there are as many, and if they differ as text."""
    names = [str(name) for name in data.class_names]
    if len(costs) == data.K and len(set(names)) == data.K:
        return names
    return [f"action {a + 1}" for a in range(len(costs))]


def _compared(tree: "xr.DataTree") -> tuple[str, ...]:
    """Return the variables to compare: all, or all but the covariances if they are too many."""
    sizes = {str(name): int(np.prod(x.shape[2:])) for name, x in tree["posterior"].data_vars.items()}
    small = tuple(sizes) if sum(sizes.values()) <= MOST_SCALARS else tuple(n for n in sizes if n != "Sigma")
    return small or tuple(sizes)


def _probabilities(fitted: Fitted, X: Floats, log_P: Floats) -> dict[str, Floats]:
    """Return probabilities (n, K) by method; a regression's Gaussian with the probit link and with the reference."""
    out = {}
    regression = fitted.candidate.regression
    if regression is not None and fitted.gaussian is not None:
        predictor = regression.predictor(X)
        out = {"probit": predictor.fast(fitted.gaussian), "reference": predictor.reference(fitted.gaussian)}
    for method, model in fitted.models.items():
        if method == fitted.method:
            out[method] = np.exp(log_P)
        elif regression is None or method not in ("laplace", "skew-modal"):
            out[method] = np.exp(model.log_probabilities(X))
    if regression is not None and fitted.method == "laplace":
        out.pop("laplace")  # the reference is the same
    return out


def _loo(fitted: Fitted, train: Dataset, settings: ReportSettings) -> Loo:
    model = fitted.model
    if isinstance(model, GaussianClassifier) and model.posterior is not None:
        return exact_loo(model.posterior, train.X, train.y).conditional
    assert not isinstance(model, GaussianClassifier)
    variables = model.draw_variables(_thinned(train.n, settings), random_seed=settings.random_seed)

    def blocks(rows: slice) -> Floats:
        with np.errstate(divide="ignore"):  # log 0 of another class is no harm
            return np.log(model.probability_draws(variables, train.X[rows])[0])

    return psis_loo_discriminative(blocks, train.y)


def _thinned(n: int, settings: ReportSettings) -> int:
    return int(min(settings.size, max(FEWEST_DRAWS, MOST_NUMBERS // n)))


def _score(model: ModelAnalysis) -> ModelScore:
    candidate, (value, error) = model.fitted.candidate, model.fitted.best_evidence
    of = "joint" if candidate.family == "generative" else "conditional"
    evidence = Evidence(value, of, error) if np.isfinite(value) else None  # type: ignore[arg-type]
    return ModelScore(candidate.family, loo=model.loo, held_out=model.log_probabilities, evidence=evidence)


def _chosen(comparison: ModelComparison, models: dict[str, ModelAnalysis]) -> str:
    """Return the model of fewest parameters among those that predict like the best by leave-one-out."""
    assert comparison.loo is not None
    alike = [str(name) for name, gap in comparison.loo["difference"].items() if not abs(gap) >= SMALL]
    return min(alike, key=lambda name: models[name].fitted.candidate.parameters)


def _sensitivity(
    model: ModelAnalysis, train: Dataset, rows: Floats | None, settings: ReportSettings, names: tuple[str, ...] = ()
) -> Sensitivity:
    """Measure how much hangs on the prior; also of the probabilities of rows (n, d), if there are any."""
    import xarray as xr

    from bayes_gda.data.labels import to_datatree

    fitted, size = model.fitted, _thinned(train.n, settings)
    variables = fitted.model.draw_variables(size, random_seed=settings.random_seed)
    tree = to_datatree(variables, fitted.candidate.coords)
    density = fitted.candidate.density
    parts = {
        "log_prior": sum(density.log_prior(variables).values()),
        "log_likelihood": density.log_likelihood(variables).sum(axis=1),
    }
    for name, values in parts.items():
        tree[name] = xr.DataTree(xr.Dataset({"all": (("chain", "draw"), np.asarray(values)[None])}))
    log_joint = None
    if rows is not None:
        log_joint = (
            fitted.model.draw_log_joint(rows, size, random_seed=settings.random_seed)
            if isinstance(fitted.model, GaussianClassifier)
            else np.log(np.maximum(fitted.model.probability_draws(variables, rows)[0], np.finfo(float).tiny))
        )
    return prior_sensitivity(tree, log_joint=log_joint, class_names=names or None, var_names=model.compared)


# ── The chosen model ────────────────────────────────────────────────────────────────────────────────────────────────


def _detail(model: ModelAnalysis, train: Dataset, test: Dataset, settings: ReportSettings, costs: Floats) -> Detail:
    fitted, P = model.fitted.model, np.exp(model.log_probabilities)
    seed, size = settings.random_seed, min(settings.size, ROW_DRAWS)
    split_entropy = entropy(fitted, test.X, size=size, random_seed=seed)
    events = {str(c): one_class(P, test.y, k) for k, c in enumerate(test.class_names)} if test.K > 2 else {}
    if test.K == 2:
        # Of two classes one curve is the other's, turned about the middle.
        events = {str(test.class_names[1]): one_class(P, test.y, 1)}
    curves = {name: reliability_curve(*pair, random_seed=seed) for name, pair in events.items()}
    curves["top label"] = reliability_curve(*top_label(P, test.y), random_seed=seed)
    rows = np.argsort(-split_entropy.total, kind="stable")[:PRIOR_ROWS]
    names = tuple(str(c) for c in test.class_names)
    return Detail(
        interval(fitted, test.X, prob=LEVEL, size=size, random_seed=seed),
        split_entropy,
        curves,
        calibration_p_value(*top_label(P, test.y), random_seed=seed),
        _thresholds(P, test, costs),
        _sensitivity(model, train, test.X[rows], settings, names),
        tuple(int(i) for i in rows),
    )


def calibration_p_value(p: Floats, outcome: Floats, *, random_seed: int) -> float:
    """Return the chance that calibrated forecasts p (n,) have a CORP miscalibration as large as with `outcome` (n,).

    Outcomes are drawn from the forecasts themselves, RESAMPLES times.
    """
    rng = np.random.default_rng(random_seed)
    seen = corp_decomposition(p, outcome).miscalibration
    drawn = [corp_decomposition(p, rng.random(len(p)) < p).miscalibration for _ in range(RESAMPLES)]
    return (1 + sum(value >= seen for value in drawn)) / (1 + RESAMPLES)


def _numbered(detail: Detail, parameters: Sensitivity, numbers: NDArray[np.intp]) -> Sensitivity:
    """Return the sensitivity with the user's row numbers, in its table and in its sentence."""
    found = detail.sensitivity
    assert found.predictions is not None
    table = found.predictions.set_axis(numbers[list(detail.prior_rows)], axis=0)
    count, flips = int((table["prior"] >= found.threshold).sum()), int(table["flips"].sum())
    sentence = (
        f"Of the {len(table)} most uncertain held-out rows, {count or 'none'} would change a probability by "
        f"{found.threshold:g} or more if the prior counted double (at most {table['prior'].max():.3f}, row "
        f"{table['prior'].idxmax()}), and {flips or 'no'} decision{'s' if flips > 1 else ''} would flip."
    )
    return replace(found, predictions=table, reason=f"{parameters.reason} {sentence}")


def _thresholds(P: Floats, test: Dataset, costs: Floats) -> ThresholdCurve | None:
    if costs.shape != (2, 2) or len(np.unique(test.y)) < 2:
        return None
    try:
        return threshold_curve(P, test.y, costs)
    except BayesGDAError:
        return None  # costs under which one action is always the better one


def _baseline(model: ModelAnalysis, train: Dataset, test: Dataset) -> tuple[float, float, float]:
    """Return the log score of the training rows' class shares, and the model's gain over it with its error."""
    shares = (train.class_counts + 1) / (train.n + train.K)  # a class without rows is not held impossible
    constant = log_score_rows(np.tile(shares, (test.n, 1)), test.y)
    own = model.log_probabilities[np.arange(test.n), test.y]
    return float(constant.mean()), *paired_difference(own, constant)
