"""What a report concludes, in plain sentences with traffic lights; amber and red name the next call.

Each light is a small function of the figures behind it, so that every colour can be reached and tested.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.evaluation.loo import BEYOND
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.evaluation.sensitivity import FINE
from bayes_gda.families.base import Family
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.monte_carlo import MonteCarlo, small
from bayes_gda.reporting.analysis.analysis import Analysis, alike, ranking
from bayes_gda.reporting.analysis.calibrated import calibrated
from bayes_gda.reporting.analysis.settings import ReportSettings
from bayes_gda.reporting.analysis.soundness import assumptions_hold, sound_data
from bayes_gda.reporting.analysis.words import Conclusion, Light, listed_names, percent, short_name, signed

if TYPE_CHECKING:
    import pandas as pd

    from bayes_gda.evaluation.sensitivity import Sensitivity
    from bayes_gda.methods.diagnostics import Diagnosis

FAST = "Is the fast answer right for"
# A class of which less than half of the rows are found, beyond the noise of their number, is missed.
MISSED = 0.5


def conclude(analysis: Analysis) -> tuple[Conclusion, ...]:
    """Return all conclusions, in the order in which a reader asks for them."""
    chosen, settings = analysis.chosen, analysis.settings
    family = chosen.fitted.family
    estimator = family.estimator
    conclusions = [
        sound_data(analysis.remarks, settings.own_command()),
        which_model(analysis),
        how_good(analysis),
        assumptions_hold(chosen.assumptions, family.title.lower(), analysis.train.n, settings.command("compare")),
        *approximations(analysis.models, settings),
        calibrated(chosen.calibration, analysis.test.n, estimator, settings),
        sampler({name: m.verdict.diagnosis for name, m in analysis.models.items()}, analysis.models, settings),
        prior(analysis.detail.sensitivity, family),
    ]
    return (*conclusions, what_next(conclusions, chosen, settings))


# ── Which model, and how good ───────────────────────────────────────────────────────────────────────────────────────


def which_model(analysis: Analysis) -> Conclusion:
    """Name the model that predicts best by leave-one-out, and those that cannot be told from it."""
    table, chosen = ranking(analysis.comparison), analysis.chosen
    n, name = analysis.train.n, f"{chosen.fitted.family.title} ({chosen.name})"
    top, *others = alike(table)
    others = [x for x in (top, *others) if x != chosen.name]
    if len(table) == 1:
        sentence = f"{name} is the only model that was fitted."
    elif not others:
        second: Any = table.iloc[1]
        sentence = (
            f"{name} predicts best by leave-one-out on the {n} training rows: its elpd exceeds the runner-up's "
            f"({table.index[1]}) by {-second['difference']:.1f} (SE {second['difference_se']:.1f})."
        )
    else:
        lead = (
            f"{name} has the fewest parameters of the models that leave-one-out on the {n} training rows cannot tell "
            "apart"
        )
        sentence = f"{lead}: {_gaps(table, chosen.name, others)}."
    if analysis.comparison.loo is None:
        sentence = sentence.replace(f"leave-one-out on the {n} training", f"the {analysis.test.n} held-out")
        step = "Leave-one-out failed: read the reasons in the comparison, and compare the models on more held-out rows."
        return Conclusion("Which model?", "amber", sentence, step)
    loos = {m: analysis.models[m].attempted_loo[0] for m in alike(table)}
    bad = {m: loo.n_bad for m, loo in loos.items() if loo is not None and loo.n_bad}
    return reliable(sentence, bad, bool(others), chosen.fitted.family.estimator)


def _gaps(table: "pd.DataFrame", chosen: str, others: list[str]) -> str:
    """Say how the elpd of models compares with that of the best one."""
    best = str(table.index[0])
    if best == chosen:
        return "; ".join(f"{x} is {_gap(table, x)} lower in elpd" for x in others)
    rest = [x for x in others if x != best]
    return "; ".join(
        [f"{chosen} is {_gap(table, chosen)} lower in elpd than {best}", *(f"{x} {_gap(table, x)}" for x in rest)]
    )


def _gap(table: "pd.DataFrame", name: str) -> str:
    line: Any = table.loc[name]
    return f"{-line['difference']:.1f} (SE {line['difference_se']:.1f})"


def reliable(sentence: str, bad: Mapping[str, int], several: bool, estimator: str) -> Conclusion:
    """Give the light: whether leave-one-out can be relied upon.

    Parameters
    ----------
    sentence
        Which model was chosen.
    bad
        Rows with a bad k̂, of those models that came into question.
    several
        Whether there is more than one of these.
    estimator
        For the next call.
    """
    topic = "Which model?"
    if bad:
        return Conclusion(
            topic,
            "amber",
            f"{sentence} But leave-one-out is unreliable for {sum(bad.values())} rows of {listed_names(list(bad))}.",
            "Use ten-fold cross-validation in its place, the same for every model that comes into question.",
            "bayes_gda.evaluation.model_comparison.kfold(data, lambda train, X: "
            f"{estimator}().fit(train.X, train.y).predict_log_proba(X), folds=10)",
        )
    return Conclusion(
        topic, "green", sentence, "Use it, or the one that you can explain best." if several else "Use it."
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
        f"shares alone {signed(constant)}: a gain of {signed(gain)} (SE {error:.3f})."
    )
    table = analysis.chosen.performance.table
    missed = [str(name) for name, line in table.iterrows() if line["recall_upper"] < MISSED]
    if missed:
        line: Any = table.loc[missed[0]]
        sentence += (
            f" But of class “{short_name(missed[0])}” it finds {percent(line['recall'])} only "
            f"({100 * analysis.chosen.performance.prob:.0f} % interval {percent(line['recall_lower'])} to "
            f"{percent(line['recall_upper'])}, {line['rows']:.0f} rows)."
        )
    conclusion = graded(sentence, gain, error, analysis.chosen.fitted.family.estimator, missed)
    leaks = [name for remark in analysis.remarks if remark.leak for name in remark.columns]
    if conclusion.light == "green" and leaks:
        leak = f"{sentence} These scores may rest on {listed_names([short_name(x) for x in leaks])} alone."
        drop = analysis.settings.command("report", *(word for name in leaks for word in ("--drop", name)))
        return replace(
            conclusion, light="amber", sentence=leak, step="First see whether the data are sound.", call=drop
        )
    return conclusion


def graded(sentence: str, gain: float, error: float, estimator: str, missed: Sequence[str] = ()) -> Conclusion:
    """Give the light: the gain over a constant forecast, in its standard errors; amber if classes are missed."""
    topic = "How good is it?"
    if np.isfinite(gain) and gain > BEYOND * error and missed:
        step = "Decide under costs: the most probable class is seldom a rare one, whatever its probability."
        return Conclusion(topic, "amber", sentence, step, f"{estimator}().fit(X, y).decide(X_new, costs=costs)")
    if np.isfinite(gain) and gain > BEYOND * error:
        return Conclusion(topic, "green", f"{sentence} The features tell a good deal more than chance.", "Use it.")
    better = "BayesianLogisticRegression(features=2).fit(X, y)"
    if np.isfinite(gain) and gain > -BEYOND * error:
        return Conclusion(
            topic,
            "amber",
            f"{sentence} That is within noise: the features may say nothing about the class.",
            "Try features that bear on the class, squares and products among them, or collect more rows.",
            better,
        )
    return Conclusion(
        topic,
        "red",
        f"{sentence} That is worse than not looking at the features at all.",
        f"Do not use it. {estimator} is misled here: check the split and the columns, or take a richer model.",
        better,
    )


# ── Approximation and sampler ───────────────────────────────────────────────────────────────────────────────────────


def approximations(models: Mapping[str, Scorecard], settings: ReportSettings) -> list[Conclusion]:
    """Say of each model whether its fast approximation can be trusted here; those that are exact share a line."""
    exact = {name: m for name, m in models.items() if m.method == "exact"}
    conclusions = [_exact(exact, settings)] if exact else []
    for name, model in models.items():
        if name not in exact:
            estimator = model.fitted.family.estimator
            conclusions.append(judged(name, estimator, model.method, model.fitted.weighing, settings))
    return conclusions


def _exact(models: Mapping[str, Scorecard], settings: ReportSettings) -> Conclusion:
    single = len(models) == 1
    sentence = f"{'The posterior is' if single else 'The posteriors are'} exact: nothing is approximated."
    if off := {name: m.largest_error("laplace") for name, m in models.items() if "laplace" in m.probabilities}:
        worst = max(off, key=lambda name: off[name][0])
        largest, error = (small(figure) for figure in off[worst])
        rows = f"{len(models[worst].log_probabilities)} held-out rows ({worst}; tolerance {settings.tolerance:g})"
        sentence += f" The largest error of a probability by Laplace's approximation is {largest} ± {error} on {rows}."
    return Conclusion(_fast(listed_names(list(models))), "green", sentence, "Use the exact answer; it is as fast.")


def _fast(name: str) -> str:
    return f"{FAST} {name}?"


def judged(name: str, estimator: str, method: str, trust: Verdict, settings: ReportSettings) -> Conclusion:
    """Give the light of a verdict, with what the report did about it.

    Parameters
    ----------
    name, estimator
        The model, and the Python class that fits it.
    method
        What the report's predictions rest on.
    trust
        The verdict on the fast approximation.
    settings
        For the next call.
    """
    topic, reason = _fast(name), trust.reason
    if trust.verdict == "trusted":
        return Conclusion(topic, "green", reason, "Use Laplace's approximation: it is enough here.")
    used = {
        "mcmc": "This report uses MCMC.",
        "corrected": "This report uses the corrected posterior.",
        "ep": "This report uses expectation propagation.",
        "variational": "This report uses the Gaussian variational approximation.",
    }.get(method, "")
    if trust.verdict == "corrected":
        step = f"{used} In Python, inference='auto' does the correction by itself."
        return Conclusion(topic, "amber", reason, step.strip(), f"{estimator}(inference='auto').fit(X, y)")
    if method == "mcmc":
        step = f"{used} Do the same for new fits; the fast answer would mislead."
        return Conclusion(topic, "amber", reason, step, f"{estimator}(inference='mcmc').fit(X, y)")
    step = "Do not use these probabilities: sample the posterior, by a report without quick."
    return Conclusion(topic, "red", reason, step, settings.command("report", "--models", name))


def sampler(
    diagnoses: "Mapping[str, Diagnosis | None]", models: Mapping[str, Scorecard], settings: ReportSettings
) -> Conclusion:
    """Say whether the sampler converged for every model."""
    approximate = [name for name, m in models.items() if m.method in ("laplace", "ep", "variational", "corrected")]
    open_ = [n for n in approximate if models[n].fitted.weighing.verdict == "needs-mcmc"]
    ran = {name: d for name, d in diagnoses.items() if d is not None}
    return converged(
        {name: (d.verdict, " ".join(d.reasons), " ".join(d.next_steps)) for name, d in ran.items()},
        open_,
        settings,
        {name: m.monte_carlo for name, m in models.items() if m.monte_carlo is not None},
    )


def converged(
    verdicts: Mapping[str, tuple[str, str, str]],
    unresolved: list[str],
    settings: ReportSettings,
    errors: Mapping[str, MonteCarlo],
) -> Conclusion:
    """Give the light of the worst diagnosis.

    Parameters
    ----------
    verdicts
        Verdict (good, caution, bad), reasons and next steps by model; empty if nothing was sampled.
    unresolved
        Models that need MCMC and did not get it.
    settings
        What a new run would change.
    errors
        Monte Carlo errors of held-out probabilities that rest on draws, by model.
    """
    topic = "Did the sampler converge?"
    worst = max(errors, key=lambda name: errors[name].largest) if errors else ""
    noise, rough = (f" {worst}: {errors[worst].sentence}", not errors[worst].within) if errors else ("", False)
    if not verdicts:
        if unresolved:
            return Conclusion(
                topic,
                "red",
                f"MCMC was left out, and {listed_names(unresolved)} cannot do without it.",
                "Make the report again with MCMC.",
                settings.command("report"),
            )
        sentence = "MCMC was left out; exact posteriors and checked approximations stand in for it."
        step, call = "Make a full report to see them confirmed by MCMC.", settings.command("report")
        return Conclusion(topic, "amber" if rough else "green", f"{sentence}{noise}", step, call if rough else "")
    more = ("--draws", str(2 * settings.draws), "--chains", str(max(4, settings.chains)))
    levels: tuple[tuple[str, Light], ...] = (("bad", "red"), ("caution", "amber"))
    for level, light in levels:
        hit = {name: value for name, value in verdicts.items() if value[0] == level}
        if hit:
            name, (_, reason, step) = next(iter(hit.items()))
            rest = f" So does {listed_names([n for n in hit if n != name])}." if len(hit) > 1 else ""
            what = "The draws cannot be used" if light == "red" else "A limit is passed"
            command = settings.command("report", "--models", ",".join(hit), *more)
            return Conclusion(topic, light, f"{name}: {what}. {reason}{rest}", step, command)
    ok = f"All chains of {listed_names(list(verdicts))} agree, with enough effective draws and no divergences.{noise}"
    if rough:
        needed = ("--draws", str(errors[worst].draws_needed(settings.draws)), "--chains", str(settings.chains))
        command = settings.command("report", "--models", worst, *needed)
        return Conclusion(topic, "amber", ok, "For probabilities within the tolerance, draw more.", command)
    return Conclusion(topic, "green", ok, "Use the draws as they are.")


# ── Calibration and prior ───────────────────────────────────────────────────────────────────────────────────────────


def prior(sensitivity: "Sensitivity | None", family: "Family | type[Family]") -> Conclusion:
    """Say whether the results are sensitive to the prior."""
    topic = "Are the results sensitive to the prior?"
    if sensitivity is None:
        step = "Fit the model under a second prior, and compare the probabilities."
        return Conclusion(topic, "amber", "The sensitivity to the prior could not be computed.", step)
    table = sensitivity.predictions
    moved = 0 if table is None else int((table["prior"] >= sensitivity.threshold).sum())
    flips = 0 if table is None else int(table["flips"].sum())
    marked = int((sensitivity.parameters["diagnosis"] != FINE).sum())
    if not (moved or flips or marked):
        return Conclusion(topic, "green", sensitivity.reason, "Report the results as they are.")
    light: Light = "red" if table is not None and moved > len(table) / 2 else "amber"
    step = sensitivity.next_step if light == "amber" else "Do not report one prior alone: show the results under two."
    return Conclusion(
        topic, light, sensitivity.reason, step, f"{family.estimator}({family.other_prior}).fit(data.X, data.y)"
    )


# ── Next ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def what_next(conclusions: list[Conclusion], chosen: Scorecard, settings: ReportSettings) -> Conclusion:
    """Name the one thing to do now: the first red light that bears on the chosen model, else use it."""
    topic, name = "What next?", chosen.name
    own = [c for c in conclusions if not c.topic.startswith(FAST) or c.topic == _fast(name)]
    reds = [c for c in own if c.light == "red"]
    if reds:
        return Conclusion(topic, "red", f"First settle: {reds[0].topic}", reds[0].step, reds[0].call)
    # What weighting corrects, a new fit corrects too.
    ambers = [c for c in own if c.light == "amber" and c.topic != _fast(name)]
    call = settings.command("fit", "--model", name, "--out", f"{name}.nc")
    sentence = f"Fit {chosen.fitted.family.title.lower()} to all rows, and predict new ones with it."
    if ambers:
        return Conclusion(topic, "amber", f"{sentence} But first: {ambers[0].topic}", ambers[0].step, call)
    step = "Then: bayes-gda predict MODEL NEW -o OUT.csv, which gives probabilities, intervals and decisions."
    return Conclusion(topic, "green", sentence, step, call)
