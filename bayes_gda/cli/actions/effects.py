"""What the columns of a table do to the probabilities of a model: average slopes and changes, odds ratios."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.cli.actions.fits import FitOptions, fit_model, model_name
from bayes_gda.cli.actions.rows import model_encoding
from bayes_gda.cli.inputs import TableOptions, encoding_of, read_labelled, read_new_rows
from bayes_gda.cli.outputs import Advance, number, show, show_table
from bayes_gda.data.columns import Column
from bayes_gda.data.frames.encode import AnyEncoding
from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import columns_hint
from bayes_gda.effects import comparisons, predictions, slopes
from bayes_gda.errors import DataError
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.families.registry import family_names
from bayes_gda.reporting.analysis.effects import linear_log_odds, odds_ratios
from bayes_gda.store import load, load_encoding

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class EffectOptions:
    """What to tell.

    Parameters
    ----------
    kind
        `slopes`, `comparisons`, `predictions` or `odds`.
    variables
        Columns to change; none stands for all of the model's.
    by
        A column whose values part the rows into groups; None for one group.
    change
        What to compare, from and to; None for the usual.
    prob
        Posterior probability of the intervals.
    """

    kind: str
    variables: tuple[str, ...] = ()
    by: str | None = None
    change: tuple[str, str] | None = None
    prob: float = 0.9

    def __post_init__(self) -> None:
        if not 0 < self.prob < 1:
            raise DataError(f"`--interval` must lie between 0 and 1; got {self.prob:g}. Use 0.9 for 90 %.")
        if self.change is not None and (self.kind != "comparisons" or len(self.variables) != 1):
            raise DataError("`--values` is for --kind comparisons of one --variable. Name these, or leave it out.")
        if self.by is not None and self.kind == "odds":
            raise DataError("`--by` is not for odds ratios, which are the same for all rows. Leave it out.")


def open_model(
    model: str, source: str, options: TableOptions, seed: int
) -> "tuple[BayesianClassifier, AnyEncoding, pd.DataFrame]":
    """Return a model, how a table becomes its features, and the rows of the table.

    Parameters
    ----------
    model
        A file that `fit` wrote, or the name of a model to fit to the table.
    source, options
        The table, and how it is read; of a saved model the columns are known.
    seed
        Of the fit.
    """
    if model in family_names() and not Path(model).exists():
        frame, data = read_labelled(source, options)
        made, coding = fit_model(model, data, FitOptions(seed=seed)), encoding_of(data)
    else:
        if options.target is not None or options.drop or options.categorical:
            raise DataError(
                "`--target`, `--drop` and `--categorical` are for a model to be fitted, such as logistic; "
                f"got the file {model!r}, which knows its columns. Leave them out."
            )
        made = load(model)
        coding = model_encoding(made, load_encoding(model))
        frame = read_new_rows(source, coding, options.dialect, options.format)
    if options.missing == "drop":
        frame = frame.dropna(subset=[column.name for column in coding.columns])
    return made, coding, frame


def effects_table(
    estimator: BayesianClassifier,
    encoding: AnyEncoding,
    frame: "pd.DataFrame",
    options: EffectOptions,
    advance: Advance,
) -> "pd.DataFrame":
    """Return one line for each effect.

    Parameters
    ----------
    estimator, encoding
        The model, and how a table becomes its features.
    frame
        The rows that effects are averaged over.
    options
        What to tell.
    advance
        Told of the progress.
    """
    import pandas as pd

    columns = {column.name: column for column in encoding.columns}
    for name in options.variables:
        if name not in columns:
            raise DataError(f"`--variable` names no column of the model: {name!r}.{columns_hint(name, columns)}")
    if options.by is not None and options.by not in frame.columns:
        raise DataError(f"`--by` names no column: {options.by!r}.{columns_hint(options.by, frame.columns)}")
    names = options.variables or tuple(columns)
    kept = [*columns, *([] if options.by is None or options.by in columns else [options.by])]
    frame = _complete(frame[kept])
    estimator._take_encoding(encoding)  # a table has raw columns; the model was fitted to features
    if options.kind == "odds":
        return _odds(estimator, encoding, frame, names, options.prob)
    shared: dict[str, Any] = {"by": options.by, "prob": options.prob}
    if options.kind == "predictions":
        return predictions(estimator, frame, **shared)
    tables = []
    for i, name in enumerate(names):
        advance(name, i / len(names))
        column = columns[name]
        if options.kind == "slopes" and column.kind == "numeric":
            table = slopes(estimator, frame, name, **shared)
            table.insert(1, "contrast", "per unit")
        else:
            ends = None if options.change is None else [_typed(value, column) for value in options.change]
            table = comparisons(estimator, frame, name, values=None if ends is None else (ends[0], ends[1]), **shared)
        tables.append(table)
    return pd.concat(tables, ignore_index=True)


def _complete(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Return the rows if all are complete, or raise."""
    gaps = frame.isna().any(axis=1)
    if gaps.any():
        worst = frame.columns[int(frame.isna().sum().to_numpy().argmax())]
        raise DataError(
            f"{int(gaps.sum())} of {len(frame)} rows have missing values, most of them in {str(worst)!r}; effects are "
            "averages over complete rows. Leave the others out: --missing drop"
        )
    return frame.reset_index(drop=True)


def _typed(text: str, column: Column) -> Any:
    """Return a value of a column as the table has it."""
    if column.kind == "numeric":
        try:
            return float(text)
        except ValueError:
            raise DataError(f"`--values` of {column.name!r} must be numbers; got {text!r}.") from None
    known = (False, True) if column.kind == "boolean" else column.levels
    for level in known:
        if str(level) == text:
            return level
    raise DataError(f"`--values` of {column.name!r} must be out of {', '.join(map(str, known))}; got {text!r}.")


def _odds(
    estimator: BayesianClassifier, encoding: AnyEncoding, frame: "pd.DataFrame", names: Sequence[str], prob: float
) -> "pd.DataFrame":
    X = estimator._checked(frame)
    features = [f for column in encoding.columns if column.name in names for f in column.feature_names]
    constant = [name for name, sd in zip(estimator._names(), X.std(axis=0), strict=True) if not sd > 0]
    if constant:
        raise DataError(f"Odds ratios need rows in which every feature varies; {constant[0]!r} does not. Add rows.")
    rows = Dataset.of_checked(
        X, np.zeros(len(X), dtype=np.intp), estimator._names(), tuple(estimator.classes_.tolist()), None
    )
    beta = linear_log_odds(estimator.model_, rows)
    if beta is None:
        raise DataError(
            f"Odds ratios need log odds that are linear in the features; those of {model_name(estimator)} are not. Use "
            "--kind slopes, or a model of lda, logistic or softmax."
        )
    table = odds_ratios(beta, rows, prob).drop(columns="size")
    table.insert(2, "against", str(estimator.classes_.tolist()[0]))
    return table[table["feature"].isin(features)].reset_index(drop=True)


def show_effects(table: "pd.DataFrame", options: EffectOptions, estimator: BayesianClassifier, rows: int) -> None:
    """Print effects; of two classes the second, as the first has the same numbers with the other sign."""
    classes = [str(label) for label in estimator.classes_.tolist()]
    title = {
        "slopes": f"Average change of probability, {rows} rows",
        "comparisons": f"Average change of probability, {rows} rows",
        "predictions": f"Average predicted probability, {rows} rows",
        "odds": "Odds ratios: exp of the posterior mean of the log odds ratio",
    }[options.kind]
    shown = (
        table if len(classes) > 2 or options.kind in ("odds", "predictions") else table[table["class"] == classes[1]]
    )
    known = ("variable", "feature", "contrast", *([] if options.by is None else [options.by]), "class", "against")
    words = [name for name in known if name in table]
    figures = [str(name) for name in table.columns if name not in (*words, "sd")]
    if options.kind == "odds":
        figures = ["per_unit", "per_unit_lower", "per_unit_upper", "positive"]
    heads = {"per_unit": "per unit", "per_unit_lower": "lower", "per_unit_upper": "upper", "positive": "P(> 1)"}
    lines = [
        [*(str(line[name]) for name in words), *(_figure(line[name]) for name in figures)]
        for line in shown.to_dict(orient="records")
    ]
    show_table(title, [*words, *(heads.get(name, name) for name in figures)], lines, left=len(words))
    show(
        f"Intervals hold {100 * options.prob:g} % of the posterior of {model_name(estimator)} ({estimator.inference_})."
    )


def _figure(value: float) -> str:
    """Return a number with three decimals, or with two digits where these would be zeros."""
    return number(value) if value == 0 or 0.01 <= abs(value) < 1e4 else f"{value:.2g}"
