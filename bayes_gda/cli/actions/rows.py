"""Rows in and rows out: predictions for a new table."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.cli.actions.fits import gap_takers, model_name
from bayes_gda.cli.inputs import Costs
from bayes_gda.cli.outputs import Advance
from bayes_gda.data.columns import Column, Encoding
from bayes_gda.data.frames.encode import AnyEncoding
from bayes_gda.data.validate import columns_hint
from bayes_gda.errors import DataError
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.estimators.summaries import warn_of_errors
from bayes_gda.prediction.monte_carlo import judge_errors

if TYPE_CHECKING:
    import pandas as pd

# Rows between two looks at the clock and at Ctrl-C; with 4000 draws a second or so.
BLOCK = 2000


@dataclass(frozen=True, slots=True, eq=False)
class PredictOptions:
    """What to predict.

    Parameters
    ----------
    prob
        Posterior probability of the intervals; 0 leaves them out.
    costs
        For decisions; None decides nothing.
    keep
        Columns of the new table to copy.
    missing
        `error`, `blank` for rows that have missing values, or `use` of what they have.
    novel
        Rate of false alarms among rows called novel; None calls none.
    worth
        Whether to say which missing feature to measure next.
    trust
        Whether to say how far the probabilities of each row may be off.
    """

    prob: float
    costs: Costs | None
    keep: tuple[str, ...]
    missing: str
    novel: float | None = None
    worth: bool = False
    trust: bool = False


def model_encoding(estimator: BayesianClassifier, stored: AnyEncoding | None) -> AnyEncoding:
    """Return how a table becomes features; a model that was not fitted to a table takes numeric columns."""
    return stored or Encoding(tuple(Column(name, "numeric") for name in estimator._names()))


def predict_rows(
    estimator: BayesianClassifier,
    encoding: AnyEncoding,
    frame: "pd.DataFrame",
    options: PredictOptions,
    advance: Advance,
) -> "pd.DataFrame":
    """Return one line for each row of a table.

    Columns: `row`, those to keep, `prediction`, `p[class]`, `low[class]` and `high[class]` of each class; with costs
    also `decision`, `expected_loss`, `probability_optimal` (that the decision is the best under the posterior) and
    `value_of_information`; if asked for, `verdict`, `error`, `approximation_error`, `monte_carlo_error` and
    `link_error`, `novel` and `tail_probability`, and `measure_next` and `gain`.

    Parameters
    ----------
    estimator, encoding
        The model, and how a table becomes its features.
    frame
        The new rows.
    options
        What to predict.
    advance
        Told of the progress.
    """
    import pandas as pd

    for name in options.keep:
        if name not in frame.columns:
            raise DataError(f"`--keep` names no column: {name!r}.{columns_hint(name, frame.columns)}")
    _check_able(estimator, options)
    X = encoding.encode(frame, missing="keep", unseen=estimator.unseen)
    gaps = np.isnan(X).any(axis=1) & (options.missing != "use")
    if gaps.any() and options.missing == "error":
        i = int(gaps.argmax())
        feature = encoding.feature_names[int(np.isnan(X[i]).argmax())]
        more = f", and {gaps.sum() - 1} more rows have gaps" if gaps.sum() > 1 else ""
        use = ", or --missing use to predict from what they have" if estimator._takes_gaps else ""
        raise DataError(
            f"Row {i + 1} has no value for {feature!r}{more}. Fill them in, or use --missing blank to leave the "
            f"predictions of such rows empty{use}."
        )
    # scikit-learn wants names if and only if it was fitted with names.
    named = hasattr(estimator, "feature_names_in_") and estimator.encoding_ is None
    complete: Any = pd.DataFrame(X, columns=list(estimator.feature_names_in_)) if named else X
    out: dict[str, Any] = {"row": np.arange(1, len(X) + 1)}
    for name in options.keep:
        out[name] = frame[name].to_numpy()
    answers = _answers(estimator, complete[~gaps], options, advance)
    if options.novel is not None:
        # All rows at once, as the threshold is found by simulation for each pattern of gaps.
        able: Any = estimator
        novelty = able.novelty(complete[~gaps], options.novel)
        answers |= {"novel": _objects(novelty.novel.tolist()), "tail_probability": novelty.largest}
    if options.worth:
        answers |= _measure_next(estimator, complete[~gaps], encoding, options)
    clash = [name for name in options.keep if name in answers or name == "row"]
    if clash:
        raise DataError(f"`--keep` names {clash[0]!r}, which the predictions use. Rename that column.")
    for name, values in answers.items():
        column = np.full(len(X), None, dtype=object) if values.dtype == object else np.full(len(X), np.nan)
        column[~gaps] = values
        out[name] = column
    return pd.DataFrame(out)


def _check_able(estimator: BayesianClassifier, options: PredictOptions) -> None:
    """Raise if the model cannot do what is asked."""
    asked = {"--missing use": options.missing == "use", "--novel": options.novel is not None, "--worth": options.worth}
    names = [name for name, given in asked.items() if given]
    if names and not estimator._takes_gaps:
        raise DataError(
            f"`{names[0]}` is for {gap_takers()}; got a model of {model_name(estimator)}. Fit one of these."
        )


def _measure_next(
    estimator: BayesianClassifier, X: Any, encoding: AnyEncoding, options: PredictOptions
) -> dict[str, Any]:
    """Return for each row the missing raw column that is worth most, if any is, and by how much."""
    able: Any = estimator
    worth = able.worth_measuring(X, None if options.costs is None else options.costs.matrix)
    gain = np.nan_to_num(worth, nan=0.0)  # what is known is worth nothing
    best = gain.argmax(axis=1)
    most = gain[np.arange(len(gain)), best]
    names = encoding.feature_names
    if isinstance(encoding, Encoding):  # a level is measured with its column
        names = tuple(column.name for column in encoding.columns for _ in column.feature_names)
    chosen = [names[j] if value > 0 else None for j, value in zip(best, most, strict=True)]
    return {"measure_next": _objects(chosen), "gain": np.where(most > 0, most, np.nan)}


def _answers(estimator: BayesianClassifier, X: Any, options: PredictOptions, advance: Advance) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    errors: list[Any] = []
    for start in range(0, len(X), BLOCK):
        advance(f"row {start + 1} of {len(X)}", start / len(X))
        rows = X[start : start + BLOCK]
        P, error = estimator.predict_proba(rows, return_std_error=True)
        errors.append(error)
        parts.append(_answer(estimator, rows, P, options))
    if not parts:
        raise DataError("No row is complete; there is nothing to predict. Fill in the missing values.")
    warn_of_errors(estimator, judge_errors(np.concatenate(errors), estimator.tolerance, "predicted"))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _answer(estimator: BayesianClassifier, X: Any, P: Floats, options: PredictOptions) -> dict[str, Any]:
    classes = estimator.classes_.tolist()
    out: dict[str, Any] = {"prediction": _objects([classes[k] for k in P.argmax(axis=1)])}
    parts = {"p": P}
    if options.prob:
        ends = estimator.predict_interval(X, prob=options.prob)
        parts |= {"low": ends[..., 0], "high": ends[..., 1]}
    for name, values in parts.items():
        out |= {f"{name}[{label}]": values[:, k] for k, label in enumerate(classes)}
    if options.costs is not None:
        made = estimator.decide(X, options.costs.matrix, action_names=options.costs.actions)
        chosen = np.arange(len(P)), made.action
        assert made.probability_optimal is not None
        assert made.value_of_information is not None
        out["decision"] = _objects([made.names[a] for a in made.action])
        out["expected_loss"] = made.loss
        out["probability_optimal"] = made.probability_optimal[chosen]
        out["value_of_information"] = made.value_of_information
    if options.trust:
        out |= estimator.trust_for(X).columns
    return out


def _objects(values: list[Any]) -> Any:
    """Return labels as they are: NumPy would turn some into others."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out
