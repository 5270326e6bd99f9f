"""Effects of a fitted estimator: `predictions`, `comparisons`, `slopes`, as marginaleffects and Bambi name them.

    comparisons(model, df, "smoker")              average change of each probability, "yes" against "no"
    slopes(model, df, "age", by="sex")            average slope in age, for women and for men

They are averages over the rows of `X`, which stand for a population; every line has the posterior mean, sd, a central
interval and P(> 0). For the Gaussian models p(y | x, θ) is averaged over the posterior of θ alone.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.data.classes import as_labels
from bayes_gda.data.frames.convert import as_frame
from bayes_gda.data.validate import columns_hint
from bayes_gda.errors import DataError
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.prediction.effects import Effect, average_comparison, average_prediction

if TYPE_CHECKING:
    import pandas as pd

# Half a step of a slope, in standard deviations of the column: the error of the difference goes with its square.
STEP = 1e-3


def predictions(model: BayesianClassifier, X: Any, *, by: str | None = None, prob: float = 0.9) -> "pd.DataFrame":
    """Return the average predicted probability of each class.

    Parameters
    ----------
    model
        A fitted estimator.
    X
        Rows, as for `predict_proba`.
    by
        A column of X, for an average over the rows of each of its values.
    prob
        Posterior probability of the intervals.

    Examples
    --------
    >>> from bayes_gda import BayesianLogisticRegression, predictions, load_example
    >>> data = load_example("pima")
    >>> model = BayesianLogisticRegression().fit(data)
    >>> predictions(model, data).columns.tolist()
    ['class', 'estimate', 'sd', '5%', '95%']
    """
    frame = _frame(model, X)
    groups, names = _groups(frame, by)
    effect = average_prediction(model.model_, _draws(model), _rows(model, frame), groups)
    return _table(model, effect, names, by, prob, {})


def comparisons(
    model: BayesianClassifier,
    X: Any,
    variable: str,
    *,
    values: tuple[Any, Any] | None = None,
    by: str | None = None,
    prob: float = 0.9,
) -> "pd.DataFrame":
    """Return the average change of each probability when a column changes and all others stay as they are.

    Parameters
    ----------
    model, X, by, prob
        As in `predictions`.
    variable
        Column to change.
    values
        (from, to). None compares each other level with the first, False with True, and a number with itself plus one.

    Examples
    --------
    >>> from bayes_gda import BayesianLogisticRegression, comparisons, load_example
    >>> data = load_example("pima")
    >>> model = BayesianLogisticRegression().fit(data)
    >>> comparisons(model, data, "glu").columns.tolist()
    ['variable', 'contrast', 'class', 'estimate', 'sd', '5%', '95%', 'P(> 0)']
    """
    frame = _frame(model, X)
    _require(frame, variable)
    groups, names = _groups(frame, by)
    draws, tables = _draws(model), []
    for low, high, said in _contrasts(model, frame, variable, values):
        before, after = (_rows(model, frame.assign(**{variable: value})) for value in (low, high))
        effect = average_comparison(model.model_, draws, before, after, groups)
        tables.append(_table(model, effect, names, by, prob, {"variable": variable, "contrast": said}))
    import pandas as pd

    return pd.concat(tables, ignore_index=True)


def slopes(
    model: BayesianClassifier, X: Any, variable: str, *, by: str | None = None, prob: float = 0.9
) -> "pd.DataFrame":
    """Return the average slope of each probability in a column of numbers, per unit.

    Parameters
    ----------
    model, X, by, prob
        As in `predictions`.
    variable
        Column of numbers.

    Examples
    --------
    >>> from bayes_gda import BayesianLogisticRegression, slopes, load_example
    >>> data = load_example("pima")
    >>> model = BayesianLogisticRegression().fit(data)
    >>> slopes(model, data, "glu").columns.tolist()
    ['variable', 'class', 'estimate', 'sd', '5%', '95%', 'P(> 0)']
    """
    frame = _frame(model, X)
    _require(frame, variable)
    if _levels(model, frame, variable) is not None:
        raise DataError(f"`slopes` is for numbers; {variable!r} holds levels. Use comparisons(…, {variable!r}).")
    features = model._names() if model.encoding_ is None else model.encoding_.feature_names
    if any(str(features[j]) == variable for j in model.model_.discrete_features):
        raise DataError(
            f"`slopes` is for numbers that can change a little; to this model {variable!r} holds counts or levels. Use "
            f"comparisons(…, {variable!r})."
        )
    x = frame[variable].to_numpy(dtype=np.float64)
    spread = float(np.nanstd(x))
    h = STEP * (spread if spread > 0 else 1.0)
    groups, names = _groups(frame, by)
    before, after = (_rows(model, frame.assign(**{variable: x + sign * h})) for sign in (-1, 1))
    effect = average_comparison(model.model_, _draws(model), before, after, groups, step=2 * h)
    return _table(model, effect, names, by, prob, {"variable": variable})


# ── From columns to rows ────────────────────────────────────────────────────────────────────────────────────────────


def _frame(model: BayesianClassifier, X: Any) -> "pd.DataFrame":
    """Return rows as a frame with the columns that `fit` saw."""
    import pandas as pd

    frame = as_frame(X)
    if frame is None:
        rows = model._checked(X)
        names = model._names() if model.encoding_ is None else model.encoding_.feature_names
        return pd.DataFrame(rows, columns=list(names))
    return frame.reset_index(drop=True)


def _rows(model: BayesianClassifier, frame: "pd.DataFrame") -> Any:
    """Return the features (n, d) of a frame; one made from an array goes without names where `fit` had none."""
    return model._checked(frame if hasattr(model, "feature_names_in_") else frame.to_numpy())


def _draws(model: BayesianClassifier) -> dict[str, Any]:
    return model.model_.draw_variables(model._size, random_seed=model.seed_)


def _require(frame: "pd.DataFrame", variable: str) -> None:
    if variable not in frame.columns:
        raise DataError(f"`X` has no column {variable!r}.{columns_hint(variable, map(str, frame.columns))}")


def _groups(frame: "pd.DataFrame", by: str | None) -> tuple[Any, list[Any]]:
    """Return the group (n,) of each row, and the values that name them."""
    if by is None:
        return None, [None]
    _require(frame, by)
    labels = as_labels(frame[by], f"Column {by!r}")
    if labels.missing.any():
        raise DataError(f"Column {by!r} is missing in {int(labels.missing.sum())} rows; drop them to group by it.")
    names = labels.levels(f"Column {by!r}")
    return labels.code(names), list(names)


def _levels(model: BayesianClassifier, frame: "pd.DataFrame", variable: str) -> tuple[Any, ...] | None:
    """Return the levels of a column, the reference first; None if it holds numbers."""
    columns = () if model.encoding_ is None else model.encoding_.columns
    column = next((c for c in columns if c.name == variable), None)
    if column is not None and column.kind == "categorical":
        return column.levels
    boolean = column is not None and column.kind == "boolean"
    return (False, True) if boolean or frame[variable].dtype == bool else None


def _contrasts(
    model: BayesianClassifier, frame: "pd.DataFrame", variable: str, values: tuple[Any, Any] | None
) -> list[tuple[Any, Any, str]]:
    """Return what to compare, from and to, and how it is called."""
    if values is not None:
        if not isinstance(values, (tuple, list)) or len(values) != 2:
            raise DataError(f"`values` must be two values, (from, to); got {values!r}.")
        return [(values[0], values[1], f"{values[1]} − {values[0]}")]
    levels = _levels(model, frame, variable)
    if levels is not None:
        return [(levels[0], level, f"{level} − {levels[0]}") for level in levels[1:]]
    x = frame[variable].to_numpy(dtype=np.float64)
    return [(x, x + 1.0, "+1")]


def _table(
    model: BayesianClassifier, effect: Effect, names: list[Any], by: str | None, prob: float, said: dict[str, str]
) -> "pd.DataFrame":
    import pandas as pd

    ends, low = effect.interval(prob), (1 - prob) / 2
    lines = [
        {
            **said,
            **({} if by is None else {by: group}),
            "class": label,
            "estimate": effect.estimate[g, k],
            "sd": effect.sd[g, k],
            f"{100 * low:g}%": ends[g, k, 0],
            f"{100 * (1 - low):g}%": ends[g, k, 1],
            "P(> 0)": effect.positive[g, k],
        }
        for g, group in enumerate(names)
        for k, label in enumerate(model.classes_.tolist())
    ]
    table = pd.DataFrame(lines)
    return table if said else table.drop(columns="P(> 0)")  # a probability is always above 0
