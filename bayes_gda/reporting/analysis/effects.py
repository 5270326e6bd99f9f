"""What the features do: average effects on the probabilities, and log odds per feature where they are linear.

    average effect of a feature     mean over rows of p(y=k | x', θ) − p(y=k | x, θ), over the posterior of θ
    odds ratio of a feature         exp(β_kj), where log p(y=k | x, θ) − log p(y=1 | x, θ) = β_k0 + Σ_j β_kj x_j

x' and x differ in one feature: by one standard deviation about its value, or in its two values, or a level of a
category against the first one. Log odds that are linear in the features, which regressions and LDA have, are found by
interpolation from draws and checked at other points: a model need not know of it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.columns import Encoding
from bayes_gda.data.groups import groups_of
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.prediction.effects import average_comparison
from bayes_gda.prediction.fitted import FittedModel

if TYPE_CHECKING:
    import pandas as pd

# Rows, spread over the training rows, and draws that effects are averaged over; features that are looked at.
ROWS, DRAWS, FEATURES = 200, 300, 40
# Draws of the log odds: the ends of a 90 % interval then rest on 50 each.
LINEAR_DRAWS = 1000
# Points at which log odds must be linear, how far from the mean in standard deviations, and how closely.
TESTED, FAR, CLOSE = 6, 2.0, 1e-6
SEED = 0


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """What the features do in a model.

    Parameters
    ----------
    average
        One line per feature and class (of two classes the second): `change` in words, `estimate` of the average change
        of the probability, `lower` and `upper` ends of the interval, `positive`, the posterior probability of > 0.
    odds
        One line per feature and class against the first: odds ratios `per_unit` and `per_sd`, each with `_lower` and
        `_upper`, and `positive`; None if the log odds are not linear.
    reference
        The first class.
    prob
        Posterior probability of the intervals.
    """

    average: "pd.DataFrame"
    odds: "pd.DataFrame | None"
    reference: str
    prob: float


def effects(card: Scorecard, prob: float) -> Effects:
    """Return the effects of a model's features, on its training rows."""
    import pandas as pd

    train, model = card.train, card.model
    variables = model.draw_variables(DRAWS, random_seed=SEED)
    shown = [1] if train.K == 2 else list(range(train.K))
    lines = []
    for name, change, low, high in _contrasts(train):
        comparison = average_comparison(model, variables, low, high)
        interval, estimate, positive = comparison.interval(prob), comparison.estimate, comparison.positive
        for k in shown:
            figures = {"estimate": estimate[0, k], "lower": interval[0, k, 0], "upper": interval[0, k, 1]}
            what = {"feature": name, "change": change, "class": str(train.class_names[k])}
            lines.append(what | figures | {"positive": positive[0, k]})
    return Effects(pd.DataFrame(lines), _odds(model, train, prob), str(train.class_names[0]), prob)


def _contrasts(train: Dataset) -> Iterator[tuple[str, str, Floats, Floats]]:
    """Yield feature, change, and rows before and after it."""
    rows = np.linspace(0, train.n - 1, min(train.n, ROWS)).round().astype(np.intp)
    X = np.array(train.X[rows])
    groups = _dummies(train)
    for j, name in enumerate(train.feature_names[:FEATURES]):
        values = np.unique(train.X[:, j])
        low, high = X.copy(), X.copy()
        if j in groups:
            low[:, groups[j]] = high[:, groups[j]] = 0.0
            high[:, j], change = 1.0, "instead of the first level"
        elif len(values) == 2:
            low[:, j], high[:, j] = values
            change = f"from {values[0]:g} to {values[1]:g}"
        else:
            sd = float(train.X[:, j].std())
            low[:, j] -= sd / 2
            high[:, j] += sd / 2
            change = f"by 1 sd ({sd:.3g})"
        yield name, change, low, high


def _dummies(train: Dataset) -> dict[int, slice]:
    """Return, for each 0/1 column of a category, all columns of that category."""
    groups = groups_of(train.encoding) if isinstance(train.encoding, Encoding) else ()
    return {j: slice(g.start, g.stop) for g in groups if g.levels for j in range(g.start, g.stop)}


def _odds(model: FittedModel, train: Dataset, prob: float) -> "pd.DataFrame | None":
    """Return odds ratios against the first class, or None if the log odds are not linear in the features."""
    import pandas as pd

    beta = linear_log_odds(model, train)
    if beta is None:
        return None
    sd = train.X.std(axis=0)
    two = np.array([len(np.unique(train.X[:, j])) == 2 for j in range(train.d)])
    tails = [(1 - prob) / 2, (1 + prob) / 2]
    lines = []
    with np.errstate(over="ignore"):  # an odds ratio of a feature with a tiny unit
        for k in range(1, train.K):
            for j, name in enumerate(train.feature_names[:FEATURES]):
                b = beta[:, k - 1, j]
                line = {"feature": name, "class": str(train.class_names[k]), "positive": float((b > 0).mean())}
                for unit, scale in (("per_unit", 1 / sd[j]), ("per_sd", 1.0)):
                    if unit == "per_sd" and two[j]:
                        continue  # a standard deviation of two values is nothing that happens
                    low, high = np.exp(scale * np.quantile(b, tails))
                    line |= {unit: np.exp(scale * b.mean()), f"{unit}_lower": low, f"{unit}_upper": high}
                lines.append(line)
    return pd.DataFrame(lines)


def linear_log_odds(model: FittedModel, train: Dataset) -> Floats | None:
    """Return slopes (S, K−1, d) of the log odds against the first class, per standard deviation; None if not linear."""
    mean, sd = train.X.mean(axis=0), train.X.std(axis=0)
    if not (sd > 0).all():
        return None
    variables = model.draw_variables(LINEAR_DRAWS, random_seed=SEED)
    Z = np.vstack([np.zeros(train.d), np.eye(train.d)])
    probe = np.random.default_rng(SEED).uniform(-FAR, FAR, size=(TESTED, train.d))
    terms = model.log_terms(variables, mean + sd * np.vstack([Z, probe]))
    odds = terms[:, :, 1:] - terms[:, :, :1]
    base, slopes = odds[:, :1], odds[:, 1 : train.d + 1] - odds[:, :1]
    fitted = base + np.einsum("sdk,nd->snk", slopes, probe)
    seen = odds[:, train.d + 1 :]
    if not np.isfinite(odds).all() or not np.abs(fitted - seen).max() < CLOSE * (1 + np.abs(seen).max()):
        return None
    return np.asarray(slopes.transpose(0, 2, 1))
