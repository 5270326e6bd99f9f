"""One model judged: its posteriors by method, its predictions of held-out rows, leave-one-out, and its prior."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.labels import to_datatree
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.calibration import calibration_table
from bayes_gda.evaluation.compare import PosteriorComparison, compare_posteriors, compare_predictions
from bayes_gda.evaluation.loo import Loo, exact_loo, good_k, psis_loo_discriminative
from bayes_gda.evaluation.sensitivity import Sensitivity, prior_sensitivity
from bayes_gda.families.classifier import GaussianClassifier
from bayes_gda.families.gaussian.predictive import log_class_probabilities, row_blocks
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.methods.importance.trust import Trust
from bayes_gda.prediction.decisions import Decisions
from bayes_gda.prediction.uncertainty import decisions
from bayes_gda.reporting.analysis.fits import Fitted
from bayes_gda.reporting.analysis.settings import ReportSettings

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Scalars of a posterior that are compared and weighed for their prior; each takes 20 ms a method. Beyond, covariances
# are left out: there are d² of them, and they matter through the predictions, which are compared in any case.
MOST_SCALARS = 150
# Numbers (draws × rows) of leave-one-out and of the prior sensitivity; beyond, draws are thinned, to no fewer than so
# many: 20 million take 160 MB.
MOST_NUMBERS, FEWEST_DRAWS = 20_000_000, 400
# Draws behind intervals, entropies and decisions of held-out rows: the ends of a 90 % interval then rest on 50 each.
ROW_DRAWS = 1000


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
    predictions: "pd.DataFrame"
    log_probabilities: Floats = field(repr=False)
    loo: Loo
    calibration: "pd.DataFrame"
    decisions: Decisions

    @property
    def name(self) -> str:
        """Short name of the model."""
        return self.fitted.candidate.name

    @property
    def reference(self) -> str:
        """The method that the others' predictions are held to."""
        return _reference(self.probabilities, self.fitted.method)


def evaluate(fitted: Fitted, train: Dataset, test: Dataset, settings: ReportSettings, costs: Floats) -> ModelAnalysis:
    """Judge a fitted model.

    Parameters
    ----------
    fitted
        The model by every method.
    train, test
        The rows it was fitted to, and held-out ones.
    settings, costs
        How much to draw; (A, K) costs of the decisions.
    """
    compared = _compared(fitted.trees[fitted.method])
    several = len(fitted.trees) > 1
    log_P = fitted.model.log_probabilities(test.X)
    probabilities = _probabilities(fitted, test.X, log_P)
    return ModelAnalysis(
        fitted,
        compare_posteriors(fitted.trees, var_names=compared) if several else None,
        compared,
        probabilities,
        compare_predictions(probabilities, reference=_reference(probabilities, fitted.method)),
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


def _reference(probabilities: dict[str, Floats], method: str) -> str:
    """Return the method behind the predictions; Laplace's Gaussian goes by the name of its better link."""
    return method if method in probabilities else "reference"


def _loo(fitted: Fitted, train: Dataset, settings: ReportSettings) -> Loo:
    model = fitted.model
    if isinstance(model, GaussianClassifier) and model.posterior is not None:
        return exact_loo(model.posterior, train.X, train.y).conditional
    assert not isinstance(model, GaussianClassifier)
    if fitted.method == "corrected" and isinstance(fitted.trust, Trust):
        return _weighted_loo(fitted, fitted.trust, train)
    variables = model.draw_variables(_thinned(train.n, settings), random_seed=settings.random_seed)

    def blocks(rows: slice) -> Floats:
        with np.errstate(divide="ignore"):  # log 0 of another class is no harm
            return np.log(model.probability_draws(variables, train.X[rows])[0])

    return psis_loo_discriminative(blocks, train.y)


def _weighted_loo(fitted: Fitted, trust: Trust, train: Dataset) -> Loo:
    """Return leave-one-out from weighted draws, w_si ∝ w_s/L_si, Pareto-smoothed.

    Resampled draws repeat each other, and the tail that k̂ is fitted to would be made of copies.
    """
    model = fitted.candidate.problem.from_draws(trust.draws)
    assert not isinstance(model, GaussianClassifier)
    variables = model.draw_variables(len(trust.draws))
    P, full, k = np.empty((train.n, train.K)), np.empty(train.n), np.empty(train.n)
    weight = np.exp(trust.log_weights)
    for rows in row_blocks(train.n, len(trust.draws) * train.K):
        # No probability of a regression is zero, but for rounding.
        p = np.maximum(model.probability_draws(variables, train.X[rows])[0], np.finfo(float).tiny)
        for j, i in enumerate(range(train.n)[rows]):
            own = p[:, j, train.y[i]]
            log_weights, k[i], _ = smooth(trust.log_weights - np.log(own))
            P[i], full[i] = np.exp(log_weights) @ p[:, j], np.log(weight @ own)
    log_P = log_class_probabilities(np.log(P))
    pointwise = log_P[np.arange(train.n), train.y]
    return Loo("conditional", pointwise, full, k, good_k(len(trust.draws)), log_P)


def _thinned(n: int, settings: ReportSettings) -> int:
    return int(min(settings.size, max(FEWEST_DRAWS, MOST_NUMBERS // n)))


def weigh_prior(
    model: ModelAnalysis, train: Dataset, rows: Floats | None, settings: ReportSettings, names: tuple[str, ...] = ()
) -> Sensitivity:
    """Measure how much hangs on the prior; also of the probabilities of rows (n, d), if there are any."""
    import xarray as xr

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
