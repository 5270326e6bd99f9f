"""What the features do: average effects on the probabilities, and log odds per feature where they are linear.

    average effect of a feature     mean over rows of p(y=k | x', θ) − p(y=k | x, θ), over the posterior of θ
    partial effect of a feature     mean over rows of p(y=k | x with x_j = v, θ), as a function of v
    odds ratio of a feature         exp(β_kj), where log p(y=k | x, θ) − log p(y=1 | x, θ) = β_k0 + Σ_j β_kj x_j

Rows are training rows without missing values. x' and x differ in one feature: by one standard deviation about its
value, or in its two values, or a level of a category against the first one; of counts in a model of counts by about
one standard deviation in whole numbers. Log odds that are linear in the features,
which regressions and LDA have, are found by interpolation from draws and checked at other points: a model need not know
of it.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.prediction.effects import PartialEffect, average_comparison, average_prediction
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.reporting.analysis.quality import coded_columns
from bayes_gda.reporting.analysis.words import significant

if TYPE_CHECKING:
    import pandas as pd

# Rows, spread over the training rows, that effects are averaged over; features whose average effects are computed.
ROWS, FEATURES = 200, 40
# Draws of log odds and average effects: the ends of a 90 % interval then rest on 50 each. The same draws for both, so
# that their P(> 0) agree; fewer where the log odds are not linear and each draw costs a matrix per class.
LINEAR_DRAWS, DRAWS = 1000, 300
# Points at which log odds must be linear, how far from the mean in standard deviations, and how closely.
TESTED, FAR, CLOSE = 6, 2.0, 1e-6
# Standard deviations beyond which an odds ratio per 1 has too many nines or zeros to be read (income, in dollars).
SMALL_SD, LARGE_SD = 0.05, 1000.0
SEED = 0
# Partial effects: features that are shown, points of a curve, rows that are averaged over, draws of the band.
CURVES, POINTS, CURVE_ROWS, CURVE_DRAWS = 6, 15, 60, 200
# Of many classes those with the most rows.
CURVE_CLASSES = 5
# Curves run between these quantiles: beyond them there are few rows to say anything.
ENDS = (0.02, 0.98)


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """What the features do in a model.

    Parameters
    ----------
    average
        One line per feature and class (of two classes the second): `change` in words, `estimate` of the average change
        of the probability, `lower` and `upper` ends of the interval, `positive`, the posterior probability of > 0.
    odds
        One line per feature and class against the first: odds ratios `per_unit`, of `unit`, and `per_sd`, with `_lower`
        and `_upper`, `positive`, and the `size` of the log odds per standard deviation; None if they are not linear.
    reference
        The first class.
    prob
        Posterior probability of the intervals.
    left_out
        Lines that `average` would have more if the effects of every feature were computed.
    """

    average: "pd.DataFrame"
    odds: "pd.DataFrame | None"
    reference: str
    prob: float
    left_out: int = 0

    @classmethod
    def unknown(cls, train: Dataset, prob: float) -> Self:
        """Return what there is where effects could not be computed: no line."""
        import pandas as pd

        names = ("feature", "change", "class", "estimate", "lower", "upper", "positive")
        return cls(pd.DataFrame(columns=list(names)), None, str(train.class_names[0]), prob)


def partial_effects(
    models: Mapping[str, Scorecard], best: str, average: "pd.DataFrame", prob: float
) -> list[PartialEffect]:
    """Return the partial effects of the features that move the probabilities most.

    Parameters
    ----------
    models, best
        The models, and the chosen one, whose curves have a band. Of two classes every model has its curve; of more the
        chosen one has a curve for each class.
    average
        Its average effects, by which the features are chosen.
    prob
        Posterior probability of a band.
    """
    train = models[best].train.complete()
    strength = average.assign(size=average["estimate"].abs()).groupby("feature", sort=False)["size"].max()
    dummies = coded_columns(train)
    order = [
        train.feature_names.index(str(name)) for name in strength.sort_values(ascending=False, kind="stable").index
    ]
    curved = [j for j in order if j not in dummies and len(np.unique(train.X[:, j])) > 2][:CURVES]
    rows = np.linspace(0, train.n - 1, min(train.n, CURVE_ROWS)).round().astype(np.intp)
    classes = [1] if train.K == 2 else sorted(np.argsort(-train.class_counts, kind="stable")[:CURVE_CLASSES].tolist())
    out = []
    for j in curved:
        x = _points(train.X[:, j], discrete=any(j in card.model.discrete_features for card in models.values()))
        X, groups = np.tile(train.X[rows], (len(x), 1)), np.repeat(np.arange(len(x)), len(rows))
        X[:, j] = x[groups]
        for name, card in models.items():
            if name != best and train.K > 2:
                continue
            banded = name == best or card.model.averages_draws
            if banded:
                variables = card.model.draw_variables(CURVE_DRAWS, random_seed=SEED)
                averages = average_prediction(card.model, variables, X, groups)
                mean, ends = averages.estimate, averages.interval(prob)
            else:
                mean = np.exp(card.model.log_probabilities(X)).reshape(len(x), len(rows), -1).mean(axis=1)
            for k in classes:
                band = (ends[:, k, 0], ends[:, k, 1]) if name == best else (None, None)
                out.append(PartialEffect(name, train.feature_names[j], str(train.class_names[k]), x, mean[:, k], *band))
    return out


def _points(x: Floats, *, discrete: bool) -> Floats:
    """Return the values of a curve, evenly spaced between the quantiles, or values that there are."""
    low, high = np.quantile(x, ENDS)
    if not discrete:
        return np.linspace(float(low), float(high), POINTS)
    values = np.unique(x[(low <= x) & (x <= high)])
    return np.asarray(values[np.unique(np.linspace(0, len(values) - 1, POINTS).round().astype(np.intp))])


def effects(card: Scorecard, prob: float) -> Effects:
    """Return the effects of a model's features, on its training rows."""
    import pandas as pd

    train, model = card.train.complete(), card.model
    variables = model.draw_variables(LINEAR_DRAWS, random_seed=SEED)
    beta = linear_log_odds(model, train, variables)
    if beta is None:
        variables = model.draw_variables(DRAWS, random_seed=SEED)
    shown = [1] if train.K == 2 else list(range(train.K))
    lines = []
    for name, change, low, high in _contrasts(train, _strongest(train, beta), model.discrete_features):
        comparison = average_comparison(model, variables, low, high)
        interval, estimate, positive = comparison.interval(prob), comparison.estimate, comparison.positive
        for k in shown:
            figures = {"estimate": estimate[0, k], "lower": interval[0, k, 0], "upper": interval[0, k, 1]}
            what = {"feature": name, "change": change, "class": str(train.class_names[k])}
            lines.append(what | figures | {"positive": positive[0, k]})
    left_out = len(shown) * train.d - len(lines)
    odds = None if beta is None else odds_ratios(beta, train, prob)
    return Effects(pd.DataFrame(lines), odds, str(train.class_names[0]), prob, left_out)


def _strongest(train: Dataset, beta: Floats | None) -> NDArray[np.intp]:
    """Return the features whose effects are computed: all, or those of the largest slopes or differences of means."""
    if beta is not None:
        size = np.abs(beta.mean(axis=0)).max(axis=0)
    else:
        means = np.array([train.X[train.y == k].mean(axis=0) for k in np.unique(train.y)])
        size = np.ptp(means, axis=0) / np.maximum(train.X.std(axis=0), 1e-300)
    return np.sort(np.argsort(-size, kind="stable")[:FEATURES])


def _contrasts(
    train: Dataset, features: NDArray[np.intp], discrete: frozenset[int] = frozenset()
) -> Iterator[tuple[str, str, Floats, Floats]]:
    """Yield feature, change, and rows before and after it."""
    rows = np.linspace(0, train.n - 1, min(train.n, ROWS)).round().astype(np.intp)
    X = np.array(train.X[rows])
    groups = coded_columns(train)
    for j in features.tolist():
        values = np.unique(train.X[:, j])
        low, high = X.copy(), X.copy()
        if j in groups:
            g = groups[j]
            low[:, g.start : g.stop] = high[:, g.start : g.stop] = 0.0
            high[:, j], change = 1.0, f"{g.levels[j - g.start + 1]} instead of {g.levels[0]}"
        elif len(values) == 2:
            low[:, j], high[:, j] = values
            change = f"from {significant(values[0])} to {significant(values[1])}"
        elif j in discrete:
            # A model of counts knows nothing of what lies between them: whole steps, within the range of the rows.
            sd = float(train.X[:, j].std())
            step = max(1.0, min(float(round(sd)), float(np.ptp(values)) - 1))
            low[:, j] = np.clip(X[:, j] - step // 2, values[0], values[-1] - step)
            high[:, j] = low[:, j] + step
            change = f"by {significant(step)} (1 sd is {significant(sd)})"
        else:
            sd = float(train.X[:, j].std())
            low[:, j] -= sd / 2
            high[:, j] += sd / 2
            change = f"by 1 sd ({significant(sd)})"
        yield train.feature_names[j], change, low, high


def odds_ratios(beta: Floats, train: Dataset, prob: float) -> "pd.DataFrame":
    """Return odds ratios against the first class, from slopes (S, K−1, d) of the log odds per standard deviation."""
    import pandas as pd

    sd = train.X.std(axis=0)
    values = [np.unique(train.X[:, j]) for j in range(train.d)]
    tails = [(1 - prob) / 2, (1 + prob) / 2]
    lines = []
    with np.errstate(over="ignore"):  # an odds ratio of a feature with a tiny unit
        for k in range(1, train.K):
            for j, name in enumerate(train.feature_names):
                b = beta[:, k - 1, j]
                line = {"feature": name, "class": str(train.class_names[k]), "positive": float((b > 0).mean())}
                two = len(values[j]) == 2
                # Of two values one against the other; a standard deviation of them is nothing that happens.
                unit = float(np.ptp(values[j])) if two else _unit(float(sd[j]))
                unit_in_sd = unit / sd[j]
                for key, scale in (("per_unit", unit_in_sd), *([] if two else [("per_sd", 1.0)])):
                    low, high = np.exp(scale * np.quantile(b, tails))
                    line |= {key: np.exp(scale * b.mean()), f"{key}_lower": low, f"{key}_upper": high}
                lines.append(line | {"unit": unit, "size": abs(float(b.mean()))})
    return pd.DataFrame(lines)


def _unit(sd: float) -> float:
    """Return the unit of an odds ratio: 1, or a power of ten where 1 is far from what the feature varies by."""
    return 1.0 if SMALL_SD <= sd < LARGE_SD else 10.0 ** np.floor(np.log10(sd))


def linear_log_odds(model: FittedModel, train: Dataset, variables: Mapping[str, Floats] | None = None) -> Floats | None:
    """Return slopes (S, K−1, d) of the log odds against the first class, per standard deviation; None if not linear."""
    mean, sd = train.X.mean(axis=0), train.X.std(axis=0)
    if not (sd > 0).all():
        return None
    if variables is None:
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
