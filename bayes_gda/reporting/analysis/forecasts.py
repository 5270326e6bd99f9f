"""How good the forecasts of held-out rows are, and whether they are calibrated: the conclusions."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.evaluation.calibration import JOINT_PROB
from bayes_gda.evaluation.loo import BEYOND
from bayes_gda.evaluation.performance import Performance, auc_interval
from bayes_gda.reporting.analysis.analysis import Analysis
from bayes_gda.reporting.analysis.settings import ReportSettings
from bayes_gda.reporting.analysis.soundness import Remark
from bayes_gda.reporting.analysis.words import Conclusion, listed_names, p_text, percent, short_name, signed

if TYPE_CHECKING:
    import pandas as pd

# A class of which less than half of the rows are found, beyond the noise of their number, is missed.
MISSED = 0.5
# Held-out rows of a class below which its recall is as good as unknown: with 4 hits of 4 it may be .64 (90 %).
FEW_HELD_OUT = 5
# Such classes that are named.
MOST_MISSED = 3
# AUC of forecasts that know nothing.
CHANCE = 0.5
# Level of the test of the ECE over all events, and the calibration error that misleads a user: five percentage points.
LEVEL, LARGE_ERROR = 0.05, 0.05


def doubted(conclusion: Conclusion, what: str, remarks: Sequence[Remark], settings: ReportSettings) -> Conclusion:
    """Return a green conclusion as amber if features may have given the classes away; others as they are."""
    leaks = list(dict.fromkeys(name for remark in remarks if remark.leak for name in remark.columns))
    if conclusion.light != "green" or not leaks:
        return conclusion
    sentence = f"{conclusion.sentence} {what} may rest on {listed_names([short_name(x) for x in leaks])} alone."
    drop = settings.command("report", *(word for name in leaks for word in ("--drop", name)))
    return replace(
        conclusion, light="amber", sentence=sentence, step="First settle whether the data are sound.", call=drop
    )


def how_good(analysis: Analysis) -> Conclusion:
    """Say how well the chosen model does on held-out rows, against forecasts by class shares alone."""
    table = analysis.comparison.held_out
    assert table is not None
    row: Any = table.loc[analysis.best]
    counts = np.bincount(analysis.test.y, minlength=analysis.test.K)
    k = int(analysis.train.class_counts.argmax())
    constant, gain, error = analysis.baseline
    sentence = (
        f"On {analysis.test.n} held-out rows its accuracy is {percent(row['accuracy'])} (SE "
        f"{100 * row['accuracy_se']:.1f}); always predicting “{short_name(analysis.test.class_names[k])}” would reach "
        f"{percent(counts[k] / counts.sum())}. Its mean log score is {signed(row['log_score'])}, that of the class "
        f"shares alone {signed(constant)}, a gain of {signed(gain)} (SE {error:.3f})."
    )
    sentence += cross_validated(analysis)
    table = analysis.chosen.performance.table
    missed = [str(name) for name, line in table.iterrows() if line["recall_upper"] < MISSED]
    if missed:
        named = [_recall(name, table.loc[name]) for name in missed[:MOST_MISSED]]
        more = [f"{len(missed) - MOST_MISSED} more"] if len(missed) > MOST_MISSED else []
        level = 100 * analysis.chosen.performance.prob
        sentence += f" But its recall is low for {listed_names([*named, *more])}; {level:.0f} % intervals."
    scarce = [str(name) for name, n in zip(analysis.test.class_names, counts, strict=True) if n < FEW_HELD_OUT]
    if scarce:
        named = [f"“{short_name(name)}”" for name in scarce[:MOST_MISSED]]
        more = [f"{len(scarce) - MOST_MISSED} more"] if len(scarce) > MOST_MISSED else []
        classes = "class" if len(scarce) == 1 else "the classes"
        sentence += (
            f" Fewer than {FEW_HELD_OUT} held-out rows are of {classes} {listed_names([*named, *more])}: too few to "
            "judge the recall."
        )
    estimator = analysis.chosen.fitted.family.estimator
    ranking, crossed = better_than_chance(analysis.chosen.performance), bool(cross_validated(analysis))
    conclusion = graded(sentence, gain, error, estimator, missed, ranking, crossed=crossed)
    return doubted(conclusion, "These scores", analysis.remarks, analysis.settings)


def cross_validated(analysis: Analysis) -> str:
    """Say what the chosen model gains by cross-validation, on more rows than are held out; empty if that is unknown."""
    repeated = analysis.repeated
    if repeated.table is None or analysis.best not in repeated.table.index:
        return ""
    line: Any = repeated.table.loc[analysis.best]
    if not np.isfinite(line["gain"]):
        return ""
    which = "training" if analysis.data.n == analysis.train.n else ""
    rows = f"all {repeated.rows} {which} rows".replace("  ", " ")
    return f" By cross-validation on {rows} the gain is {signed(line['gain'])} (SE {line['gain_se']:.3f})."


def _recall(name: str, line: Any) -> str:
    interval = f"{percent(line['recall_lower'])} to {percent(line['recall_upper'])}"
    return f"class “{short_name(name)}” ({percent(line['recall'])} of {line['rows']:.0f} rows, {interval})"


def better_than_chance(scores: Performance) -> str:
    """Say of which class the ranking of rows is better than chance for certain; empty if of none.

    The interval of the class with the largest AUC is widened for the number of classes (Bonferroni).
    """
    if not scores.curves:
        return ""
    name, best = max(scores.curves.items(), key=lambda item: item[1].auc)
    events = 1 if len(scores.curves) == 2 else len(scores.curves)  # of two classes one is the other's mirror image
    low, high = auc_interval(best.auc, best.events, best.others, prob=1 - (1 - scores.prob) / events)
    return f"AUC of class “{short_name(name)}” {best.auc:.3f} ({low:.3f} to {high:.3f})" if low > CHANCE else ""


def graded(
    sentence: str,
    gain: float,
    error: float,
    estimator: str,
    missed: Sequence[str] = (),
    ranking: str = "",
    *,
    crossed: bool = True,
) -> Conclusion:
    """Give the light: the gain over a constant forecast, in its standard errors; amber if classes are missed.

    `ranking` says that rows are ranked better than chance, if they are: features then bear on the class whatever the
    gain, and what fails is the probabilities. `crossed` says whether the model was cross-validated.
    """
    topic = "How good is it?"
    if np.isfinite(gain) and gain > BEYOND * error and missed:
        step = "Read the confusion matrix, and decide under costs if a miss of such a class is dear."
        return Conclusion(topic, "amber", sentence, step, f"{estimator}().fit(X, y).decide(X_new, costs=costs)")
    if np.isfinite(gain) and gain > BEYOND * error:
        return Conclusion(topic, "green", sentence, "The gain exceeds two standard errors: no action is needed.")
    better = "BayesianLogisticRegression(features=2).fit(X, y)"
    if np.isfinite(gain) and gain > -BEYOND * error and ranking:
        return Conclusion(
            topic,
            "amber",
            f"{sentence} The gain is less than two standard errors, although rows are ranked better than chance: "
            f"{ranking}.",
            "The features bear on the class, but these rows do not show that the probabilities gain by them. "
            f"{'Judge by the cross-validated scores' if crossed else 'Cross-validate it'}; if the gain is small there "
            "too, use fewer features or recalibrate.",
            f"sklearn.calibration.CalibratedClassifierCV({estimator}(), method='sigmoid').fit(X, y)",
        )
    if np.isfinite(gain) and gain > -BEYOND * error:
        return Conclusion(
            topic,
            "amber",
            f"{sentence} The gain is less than two standard errors: the features may say nothing about the class.",
            "Try other features, squares and products among them, or collect more rows.",
            better,
        )
    return Conclusion(
        topic,
        "red",
        f"{sentence} The score is worse than that of the class shares alone.",
        "Do not use it: check the columns and the split, or use a richer model.",
        better,
    )


def calibrated(
    table: "pd.DataFrame", n: int, estimator: str, settings: ReportSettings, total: int | None = None
) -> Conclusion:
    """Say whether the probabilities are calibrated, as far as the held-out rows can show.

    The light goes by the intervals of the calibration error, of all classes and the top label together: green if all
    end below LARGE_ERROR, red if one begins above it. In between it is amber, whether calibration is rejected or the
    rows are too few to tell: not rejected does not mean calibrated.

    Parameters
    ----------
    table
        From `calibration_table`.
    n
        Held-out rows.
    estimator, settings
        For the next call.
    total
        All rows of the table, of which some could be held out; None if there is no limit.
    """
    topic = "Are the probabilities calibrated?"
    events = table.drop(index="all classes", level="event")
    if len(events) == 3:  # of two classes one is the other's mirror image
        events = events.iloc[1:]
    lower, upper = events["error_lower"].to_numpy(), events["error_upper"].to_numpy()
    ece_rejected = (len(events) * events["ece_p_value"] < LEVEL).to_numpy()
    rejected = (lower > 0) | ece_rejected
    # The event that decides: among those that are rejected, if there are any, the one whose error may be largest.
    place = int(np.where(rejected, 1 + upper, upper).argmax())
    row: Any = events.iloc[place]
    kind, name = events.index[place]
    event = f"class “{short_name(name)}”" if kind == "class" else "the most probable class"
    slope = "slope and intercept cannot be estimated (the event always happens, or the forecasts separate the outcomes)"
    if np.isfinite(row["slope"]):
        slope = f"slope {row['slope']:.2f} (SE {row['slope_se']:.2f}), intercept {signed(row['intercept'], 2)} "
        slope += f"(SE {row['intercept_se']:.2f})"
    figures = (
        f"For {event}, the mean calibration error is between {row['error_lower']:.3f} and {row['error_upper']:.3f} "
        f"({100 * JOINT_PROB:.0f} % intervals, simultaneous for {len(events)} events; {n} held-out rows). Cox's "
        f"recalibration: {slope}; likelihood-ratio test of perfect calibration {row['lr']:.2f} on 2 df, "
        f"{p_text(row['lr_p_value'])}. ECE {row['ece']:.3f}, {p_text(row['ece_p_value'])} under perfect calibration."
    )
    recalibrate = f"sklearn.calibration.CalibratedClassifierCV({estimator}(), method='sigmoid').fit(X, y)"
    if (lower > LARGE_ERROR).any():
        return Conclusion(topic, "red", f"No. {figures}", "Recalibrate before using the probabilities.", recalibrate)
    if rejected.any():
        test = "Cox's recalibration" if row["error_lower"] > 0 else "the ECE"
        sentence = f"Perfect calibration is rejected by {test}. {figures}"
        if row["error_lower"] <= 0:  # what a straight line in the log odds does not mend
            recalibrate = recalibrate.replace("sigmoid", "isotonic")
        return Conclusion(
            topic, "amber", sentence, "Recalibrate, or report the probabilities with this error.", recalibrate
        )
    if (upper <= LARGE_ERROR).all():
        sentence = f"To within a mean error of {upper.max():.3f}. {figures}"
        return Conclusion(topic, "green", sentence, "No recalibration is needed.")
    # The width of the interval falls with the root of the rows.
    wanted = int(np.ceil(n * (upper.max() / LARGE_ERROR) ** 2 / 10) * 10)
    sentence = (
        "The held-out rows are too few to tell: calibration is not rejected, but a mean error above "
        f"{LARGE_ERROR:g} is not excluded either. {figures}"
    )
    needed = f"About {wanted} held-out rows would be needed to exclude it"
    if total is not None and wanted > total / 2:
        step = (
            f"{needed}; the table has {total} rows. Judge calibration on cross-validated probabilities of all of them."
        )
        call = f"sklearn.model_selection.cross_val_predict({estimator}(), X, y, cv=10, method='predict_proba')"
        return Conclusion(topic, "amber", sentence, step, call)
    held = ["--test-size", str(wanted)] if settings.test_name is None else ["--test", settings.test_name]
    call = settings.command("report", *held)
    return Conclusion(topic, "amber", sentence, f"{needed}: hold out more.", call)
