"""What a report concludes, in plain sentences with traffic lights; amber and red name the next call.

Each light is a small function of the figures behind it, so that every colour can be reached and tested.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.evaluation.model_comparison import SMALL
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.evaluation.sensitivity import FINE
from bayes_gda.families.base import Family
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.monte_carlo import MonteCarlo, small
from bayes_gda.reporting.analysis.analysis import Analysis
from bayes_gda.reporting.analysis.calibrated import calibrated
from bayes_gda.reporting.analysis.settings import ReportSettings
from bayes_gda.reporting.analysis.words import Conclusion, Light, listed_names, percent, signed

if TYPE_CHECKING:
    from bayes_gda.evaluation.sensitivity import Sensitivity
    from bayes_gda.methods.diagnostics import Diagnosis

# A gain beyond so many standard errors is more than noise, at about 95 %.
BEYOND = 2.0
FAST = "Is the fast answer right for"


def conclude(analysis: Analysis) -> tuple[Conclusion, ...]:
    """Return all conclusions, in the order in which a reader asks for them."""
    chosen, settings = analysis.chosen, analysis.settings
    family = chosen.fitted.family
    estimator = family.estimator
    found = [
        which_model(analysis),
        how_good(analysis),
        *approximations(analysis.models, settings),
        calibrated(chosen.calibration, analysis.test.n, estimator, settings),
        sampler({name: m.verdict.diagnosis for name, m in analysis.models.items()}, analysis.models, settings),
        prior(analysis.detail.sensitivity, family),
    ]
    return (*found, what_next(found, chosen, settings))


# ── Which model, and how good ───────────────────────────────────────────────────────────────────────────────────────


def which_model(analysis: Analysis) -> Conclusion:
    """Name the model that predicts best by leave-one-out, and those that cannot be told from it."""
    table, chosen = analysis.comparison.loo, analysis.chosen
    assert table is not None
    top, n = str(table.index[0]), analysis.train.n
    alike = [str(name) for name, gap in table["difference"].items() if abs(gap) < SMALL and name != top]
    name = f"{chosen.fitted.family.title} ({chosen.name})"
    if len(table) == 1:
        sentence = f"{name} is the only model that was fitted."
    elif not alike:
        second = table.iloc[1]
        gap = f"{-second['difference']:.1f} ± {second['difference_se']:.1f}"
        sentence = f"{name} predicts best by leave-one-out on the {n} training rows, {gap} in elpd before the next."
    elif top == chosen.name:
        sentence = f"{name} predicts best by leave-one-out on the {n} training rows; {_alike(alike)}."
    else:
        others = [x for x in [top, *alike] if x != chosen.name]
        sentence = (
            f"{name} is the simplest of those that predict best by leave-one-out on the {n} training rows; "
            f"{_alike(others)}."
        )
    bad = {m: a.loo.n_bad for m, a in analysis.models.items() if a.loo.n_bad and m in [top, *alike]}
    return reliable(sentence, bad, bool(alike), chosen.fitted.family.estimator)


def _alike(names: list[str]) -> str:
    return f"{listed_names(names)} {'predicts' if len(names) == 1 else 'predict'} alike"


def reliable(sentence: str, bad: Mapping[str, int], alike: bool, estimator: str) -> Conclusion:
    """Give the light: whether leave-one-out can be relied upon.

    Parameters
    ----------
    sentence
        Which model was chosen.
    bad
        Rows with a bad k̂, of those models that came into question.
    alike
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
    return Conclusion(topic, "green", sentence, "Use it, or the one that you can explain best." if alike else "Use it.")


def how_good(analysis: Analysis) -> Conclusion:
    """Say how well the chosen model does on held-out rows, against forecasts by class shares alone."""
    from bayes_gda.reporting.plots.style import plain  # brings matplotlib with it

    table = analysis.comparison.held_out
    assert table is not None
    row: Any = table.loc[analysis.best]
    counts = np.bincount(analysis.test.y, minlength=analysis.test.K)
    k = int(analysis.train.class_counts.argmax())
    constant, gain, error = analysis.baseline
    sentence = (
        f"On {analysis.test.n} held-out rows its accuracy is {percent(row['accuracy'])} (SE "
        f"{100 * row['accuracy_se']:.1f}); always predicting “{plain(analysis.test.class_names[k], 40)}” would reach "
        f"{percent(counts[k] / counts.sum())}. Its mean log score is {signed(row['log_score'])}, that of the class "
        f"shares alone {signed(constant)}: a gain of {signed(gain)} (SE {error:.3f})."
    )
    return graded(sentence, gain, error, analysis.chosen.fitted.family.estimator)


def graded(sentence: str, gain: float, error: float, estimator: str) -> Conclusion:
    """Give the light: the gain over a constant forecast, in its standard errors."""
    topic = "How good is it?"
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
    found = [_exact(exact, settings)] if exact else []
    for name, model in models.items():
        if name not in exact:
            estimator = model.fitted.family.estimator
            found.append(judged(name, estimator, model.method, model.fitted.weighing, settings))
    return found


def _exact(models: Mapping[str, Scorecard], settings: ReportSettings) -> Conclusion:
    one = len(models) == 1
    sentence = f"{'The posterior is' if one else 'The posteriors are'} exact: nothing is approximated."
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
    }.get(method, "")
    if trust.verdict == "corrected":
        step = f"{used} In Python, inference='auto' does the correction by itself."
        return Conclusion(topic, "amber", reason, step.strip(), f"{estimator}(inference='auto').fit(X, y)")
    if method == "mcmc":
        step = f"{used} Do the same for new fits; the fast answer would mislead."
        return Conclusion(topic, "red", reason, step, f"{estimator}(inference='mcmc').fit(X, y)")
    step = "Do not use these probabilities: sample the posterior, by a report without quick."
    return Conclusion(topic, "red", reason, step, settings.command("report", "--models", name))


def sampler(
    diagnoses: "Mapping[str, Diagnosis | None]", models: Mapping[str, Scorecard], settings: ReportSettings
) -> Conclusion:
    """Say whether the sampler converged for every model."""
    approximate = [name for name, m in models.items() if m.method in ("laplace", "ep", "corrected")]
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


def prior(sensitivity: "Sensitivity", family: "Family | type[Family]") -> Conclusion:
    """Say whether the results are sensitive to the prior."""
    table = sensitivity.predictions
    moved = 0 if table is None else int((table["prior"] >= sensitivity.threshold).sum())
    flips = 0 if table is None else int(table["flips"].sum())
    marked = int((sensitivity.parameters["diagnosis"] != FINE).sum())
    topic = "Are the results sensitive to the prior?"
    if not (moved or flips or marked):
        return Conclusion(topic, "green", sensitivity.reason, "Report the results as they are.")
    light: Light = "red" if table is not None and moved > len(table) / 2 else "amber"
    step = sensitivity.next_step if light == "amber" else "Do not report one prior alone: show the results under two."
    return Conclusion(
        topic, light, sensitivity.reason, step, f"{family.estimator}({family.other_prior}).fit(data.X, data.y)"
    )


# ── Next ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def what_next(found: list[Conclusion], chosen: Scorecard, settings: ReportSettings) -> Conclusion:
    """Name the one thing to do now: the first red light that bears on the chosen model, else use it."""
    topic, name = "What next?", chosen.name
    own = [c for c in found if not c.topic.startswith(FAST) or c.topic == _fast(name)]
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
