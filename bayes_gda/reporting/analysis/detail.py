"""The chosen model in detail, on held-out rows: intervals, entropy, calibration, thresholds, what the prior does."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import BayesGDAError, attempt
from bayes_gda.evaluation.reliability import ReliabilityCurve, one_class, reliability_curve, top_label
from bayes_gda.evaluation.scorecard import ROW_DRAWS, Scorecard
from bayes_gda.evaluation.sensitivity import Sensitivity
from bayes_gda.prediction.decisions import ThresholdCurve, threshold_curve
from bayes_gda.prediction.fitted import EntropySplit
from bayes_gda.prediction.uncertainty import entropy, interval

# Posterior probability of the intervals.
PROB = 0.9
# Held-out rows whose predictions are held against the prior: the most uncertain ones are the ones that can flip.
PRIOR_ROWS = 40


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
        Reliability curves of each class (of two classes the second), and last of the top label.
    thresholds
        Cost of every threshold; None unless there are two classes, and two actions of which neither is always best.
    sensitivity, prior_rows
        Sensitivity to the prior; the held-out rows whose predictions were looked at.
    """

    interval: Floats
    entropy: EntropySplit
    curves: dict[str, ReliabilityCurve]
    thresholds: ThresholdCurve | None
    sensitivity: Sensitivity | None
    prior_rows: tuple[int, ...]


def look_closer(model: Scorecard, test: Dataset, costs: Floats) -> Detail:
    """Look at the predictions of held-out rows from all sides.

    Parameters
    ----------
    model
        The chosen model.
    test
        Held-out rows.
    costs
        (A, K) costs of the decisions.
    """
    fitted, P = model.model, np.exp(model.log_probabilities)
    seed, size = model.settings.random_seed, min(model.settings.size, ROW_DRAWS)
    split_entropy = entropy(fitted, test.X, size=size, random_seed=seed)
    events = {str(c): one_class(P, test.y, k) for k, c in enumerate(test.class_names)} if test.K > 2 else {}
    if test.K == 2:
        # Of two classes one curve is the other's, turned about the middle.
        events = {str(test.class_names[1]): one_class(P, test.y, 1)}
    curves = {name: reliability_curve(*pair, random_seed=seed) for name, pair in events.items()}
    # The last one, under a name that no class has.
    label = "top label"
    while label in curves:
        label += " *"
    curves[label] = reliability_curve(*top_label(P, test.y), random_seed=seed)
    rows = np.argsort(-split_entropy.total, kind="stable")[:PRIOR_ROWS]
    names = tuple(str(c) for c in test.class_names)
    return Detail(
        interval(fitted, test.X, prob=PROB, size=size, random_seed=seed),
        split_entropy,
        curves,
        _thresholds(P, test, costs),
        attempt(lambda: model.sensitivity(test.X[rows], names))[0],
        tuple(int(i) for i in rows),
    )


def numbered(detail: Detail, parameters: Sensitivity, numbers: NDArray[np.intp]) -> Sensitivity:
    """Return the sensitivity with the user's row numbers, in its table and in its sentence."""
    sensitivity = detail.sensitivity
    assert sensitivity is not None
    assert sensitivity.predictions is not None
    table = sensitivity.predictions.set_axis(numbers[list(detail.prior_rows)], axis=0)
    count, flips = int((table["prior"] >= sensitivity.threshold).sum()), int(table["flips"].sum())
    sentence = (
        f"Of the {len(table)} most uncertain held-out rows, {count or 'none'} would change a probability by "
        f"{sensitivity.threshold:g} or more if the prior counted double (at most {table['prior'].max():.3f}, row "
        f"{table['prior'].idxmax()}), and {flips or 'no'} decision{'s' if flips > 1 else ''} would flip."
    )
    return replace(sensitivity, predictions=table, reason=f"{parameters.reason} {sentence}")


def _thresholds(P: Floats, test: Dataset, costs: Floats) -> ThresholdCurve | None:
    if costs.shape != (2, 2) or len(np.unique(test.y)) < 2:
        return None
    try:
        # The action that costs more in the first class is the one for the second.
        return threshold_curve(P, test.y, costs[np.argsort(costs[:, 0], kind="stable")])
    except BayesGDAError:
        return None  # costs under which one action is always the better one
