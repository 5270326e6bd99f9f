"""What a report concludes, in plain sentences with traffic lights; amber and red name the next call.

Each light is a small function of the figures behind it, so that every colour can be reached and tested.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.evaluation.sensitivity import FINE
from bayes_gda.families.base import Family
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.monte_carlo import MonteCarlo, small
from bayes_gda.reporting.analysis.analysis import Analysis, alike, ranking
from bayes_gda.reporting.analysis.forecasts import calibrated, doubted, how_good
from bayes_gda.reporting.analysis.settings import ReportSettings
from bayes_gda.reporting.analysis.soundness import assumptions_hold, sound_data
from bayes_gda.reporting.analysis.words import Conclusion, Light, in_sentence, listed_names

if TYPE_CHECKING:
    import pandas as pd

    from bayes_gda.evaluation.sensitivity import Sensitivity
    from bayes_gda.methods.diagnostics import Diagnosis

FAST = "Is Laplace's approximation accurate for"
# Methods that a report's predictions may rest on, as its sentences name them.
USED = {
    "laplace": "the Laplace approximation",
    "mcmc": "MCMC",
    "corrected": "the corrected posterior",
    "ep": "expectation propagation",
    "variational": "the Gaussian variational approximation",
}


def conclude(analysis: Analysis) -> tuple[Conclusion, ...]:
    """Return all conclusions, in the order in which a reader asks for them."""
    chosen, settings = analysis.chosen, analysis.settings
    family = chosen.fitted.family
    estimator = family.estimator
    conclusions = [
        sound_data(analysis.remarks, settings.own_command()),
        which_model(analysis),
        how_good(analysis),
        assumptions_hold(
            chosen.assumptions, in_sentence(family.title), analysis.train.n, settings.command("compare"), estimator
        ),
        *approximations(analysis.models, settings),
        calibrated(chosen.calibration, analysis.test.n, estimator, settings, analysis.train.n + analysis.test.n),
        sampler({name: m.verdict.diagnosis for name, m in analysis.models.items()}, analysis.models, settings),
        prior(analysis.detail.sensitivity, family),
    ]
    return (*conclusions, what_next(conclusions, chosen, settings))


# ── Which model ───────────────────────────────────────────────────────────────────────────────────────


def which_model(analysis: Analysis) -> Conclusion:
    """Name the model that predicts best by leave-one-out, and those that cannot be told from it."""
    table, chosen, settings = ranking(analysis.comparison), analysis.chosen, analysis.settings
    n, name = analysis.train.n, f"{chosen.fitted.family.title} ({chosen.name})"
    top, *others = alike(table)
    others = [x for x in (top, *others) if x != chosen.name]
    if len(table) == 1:
        sentence = f"{name} is the only model fitted."
    elif not others:
        second: Any = table.iloc[1]
        sentence = (
            f"{name} predicts best by leave-one-out on the {n} training rows: its elpd exceeds the runner-up's "
            f"({table.index[1]}) by {-second['difference']:.1f} (SE {second['difference_se']:.1f})."
        )
    else:
        lead = (
            f"{name} has the fewest parameters of the models that leave-one-out on the {n} training rows cannot "
            "distinguish (elpd within two standard errors of the best, or less than 4 below it)"
        )
        sentence = f"{lead}: {_gaps(table, chosen.name, others)}."
    if analysis.comparison.loo is None:
        sentence = sentence.replace(f"leave-one-out on the {n} training", f"the {analysis.test.n} held-out")
        step = "Leave-one-out failed: read the reasons in the comparison, and compare the models on more held-out rows."
        return Conclusion("Which model?", "amber", sentence, step)
    loos = {m: analysis.models[m].attempted_loo[0] for m in alike(table)}
    bad = {m: loo.n_bad for m, loo in loos.items() if loo is not None and loo.n_bad}
    judged = reliable(sentence, bad, bool(others), chosen.fitted.family.estimator)
    if judged.light == "green" and unresolved(chosen):
        # A quick report that could not settle the posterior of the model that it chose.
        sentence = f"{sentence} But its posterior is approximated here, and not accurately enough."
        call = settings.command("report", "--models", chosen.name)
        judged = Conclusion("Which model?", "amber", sentence, "Sample its posterior before it is used.", call)
    return doubted(judged, "The comparison", analysis.remarks, settings)


def unresolved(model: Scorecard) -> bool:
    """Whether its posterior needs sampling and was not sampled."""
    approximate = model.method in ("laplace", "ep", "variational", "corrected")
    return approximate and model.fitted.weighing.verdict == "needs-mcmc"


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
            f"{sentence} But leave-one-out is unreliable for {_listed_counts(bad)}.",
            "Compare these models by ten-fold cross-validation instead, with the same folds for each.",
            "bayes_gda.evaluation.model_comparison.kfold(data, lambda train, X: "
            f"{estimator}().fit(train.X, train.y).predict_log_proba(X), folds=10)",
        )
    return Conclusion(
        topic, "green", sentence, "Use it, or the one that you can explain best." if several else "Use it."
    )


def _listed_counts(rows: Mapping[str, int]) -> str:
    return listed_names([f"{n} {'row' if n == 1 else 'rows'} of {name}" for name, n in rows.items()])


# ── Approximation and sampler ───────────────────────────────────────────────────────────────────────────────────────


def approximations(models: Mapping[str, Scorecard], settings: ReportSettings) -> list[Conclusion]:
    """Say of each model whether its fast approximation can be trusted here; those that are exact share a line."""
    exact = {name: m for name, m in models.items() if m.method == "exact"}
    conclusions = [_exact(exact, settings)] if exact else []
    for name, model in models.items():
        if name not in exact and "exact" in model.fitted.models:
            conclusions.append(_beside_exact(name, model, settings))
        elif name not in exact:
            estimator = model.fitted.family.estimator
            conclusions.append(judged(name, estimator, model.method, model.fitted.weighing, settings))
    return conclusions


def _beside_exact(name: str, model: Scorecard, settings: ReportSettings) -> Conclusion:
    """Give the light of a method that was asked for though the posterior is known in closed form."""
    largest, noise = model.largest_error("exact")
    error = _error_sentence(USED[model.method], largest, noise, name, model, settings)
    light: Light = "green" if largest <= settings.tolerance else "amber"
    step = f"This report uses {USED[model.method]}, as asked. Without --inference it uses the exact posterior."
    sentence = f"It is not needed: the posterior is known in closed form. {error}"
    return Conclusion(_fast(name), light, sentence, step, settings.command("report", "--models", name))


def _error_sentence(
    method: str, error: float, noise: float, name: str, model: Scorecard, settings: ReportSettings
) -> str:
    largest = small(error)
    digits = len(largest.partition(".")[2])
    rows = f"{len(model.log_probabilities)} held-out rows ({name}; tolerance {settings.tolerance:g})"
    return f"The largest error of a probability by {method} is {largest} ± {noise:.{digits}f} on {rows}."


def _exact(models: Mapping[str, Scorecard], settings: ReportSettings) -> Conclusion:
    single = len(models) == 1
    sentence = f"It is not needed: the {'posterior is' if single else 'posteriors are'} known in closed form."
    if off := {name: m.largest_error("laplace") for name, m in models.items() if "laplace" in m.probabilities}:
        worst = max(off, key=lambda name: off[name][0])
        sentence += " " + _error_sentence("Laplace's approximation", *off[worst], worst, models[worst], settings)
        if off[worst][0] > settings.tolerance:
            sentence = f"No, but it{sentence.removeprefix('It')}"
    return Conclusion(_fast(listed_names(list(models))), "green", sentence, "This report uses the exact posterior.")


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
        return Conclusion(topic, "green", reason, "No other method is needed here.")
    used = f"This report uses {USED[method]}." if method != "laplace" else ""
    if method == settings.inference:  # and not what the report would have chosen
        step = f"This report uses {USED[method]}, as asked. Without --inference it uses the most accurate method."
        light: Light = "red" if method == "laplace" and trust.verdict == "needs-mcmc" else "amber"
        return Conclusion(topic, light, reason, step, settings.command("report", "--models", name))
    if trust.verdict == "corrected":
        step = f"{used} In Python, inference='auto' makes this correction."
        return Conclusion(topic, "amber", reason, step.strip(), f"{estimator}(inference='auto').fit(X, y)")
    if method == "mcmc":
        step = f"{used} Do the same for new fits."
        return Conclusion(topic, "amber", reason, step, f"{estimator}(inference='mcmc').fit(X, y)")
    step = "Do not use these probabilities; a report without --quick samples the posterior."
    return Conclusion(topic, "red", reason, step, settings.command("report", "--models", name))


def sampler(
    diagnoses: "Mapping[str, Diagnosis | None]", models: Mapping[str, Scorecard], settings: ReportSettings
) -> Conclusion:
    """Say whether the sampler converged for every model."""
    open_ = [name for name, m in models.items() if unresolved(m)]
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
                f"No MCMC was run in this quick report, but {listed_names(unresolved)} "
                f"{'needs' if len(unresolved) == 1 else 'need'} it.",
                "Make the report without --quick.",
                settings.command("report"),
            )
        sentence = (
            "No MCMC was run in this quick report: the posteriors are exact, or approximations with checked error."
        )
        step, call = "A report without --quick compares them with MCMC.", settings.command("report")
        return Conclusion(topic, "amber" if rough else "green", f"{sentence}{noise}", step, call if rough else "")
    more = ("--draws", str(2 * settings.draws), "--chains", str(max(4, settings.chains)))
    levels: tuple[tuple[str, Light], ...] = (("bad", "red"), ("caution", "amber"))
    for level, light in levels:
        hit = {name: value for name, value in verdicts.items() if value[0] == level}
        if hit:
            name, (_, reason, step) = next(iter(hit.items()))
            rest = f" The same holds for {listed_names([n for n in hit if n != name])}." if len(hit) > 1 else ""
            what = "The draws cannot be used" if light == "red" else "A diagnostic limit is exceeded"
            command = settings.command("report", "--models", ",".join(hit), *more)
            return Conclusion(topic, light, f"{name}: {what}. {reason}{rest}", step, command)
    ok = f"The chains of {listed_names(list(verdicts))} agree, with enough effective draws and no divergences.{noise}"
    if rough:
        needed = ("--draws", str(errors[worst].draws_needed(settings.draws)), "--chains", str(settings.chains))
        command = settings.command("report", "--models", worst, *needed)
        return Conclusion(topic, "amber", ok, "More draws bring two standard errors within the tolerance.", command)
    return Conclusion(topic, "green", ok, "No action is needed.")


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
    # Weights that k̂ calls unreliable cannot decide that probabilities move.
    certain = bool(sensitivity.weights.xs("prior", level="component")["reliable"].all())
    light: Light = "red" if certain and table is not None and moved > len(table) / 2 else "amber"
    step = sensitivity.next_step if light == "amber" else "Do not report one prior alone: show the results under two."
    return Conclusion(
        topic, light, sensitivity.reason, step, f"{family.estimator}({family.other_prior}).fit(data.X, data.y)"
    )


# ── Next ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def what_next(conclusions: list[Conclusion], chosen: Scorecard, settings: ReportSettings) -> Conclusion:
    """Name the one thing to do now: columns to leave out, the first red light that bears on the model, or use it."""
    topic, name = "What next?", chosen.name
    own = [c for c in conclusions if not c.topic.startswith(FAST) or c.topic == _fast(name)]
    reds = [c for c in own if c.light == "red"]
    if reds:
        # Columns to leave out come before all else: without them the model is another one.
        leak = next((c for c in own if c.light == "amber" and _leaves_out(c, settings)), None)
        if leak is not None:
            sentence = f"First settle: {leak.topic} The new report may answer what is red here: {reds[0].topic}"
            return Conclusion(topic, "red", sentence, leak.step, leak.call)
        return Conclusion(topic, "red", f"First settle: {reds[0].topic}", reds[0].step, reds[0].call)
    # What weighting corrects, a new fit corrects too.
    ambers = [c for c in own if c.light == "amber" and c.topic != _fast(name)]
    method = ("--inference", settings.inference) if chosen.method == settings.inference else ()
    call = settings.command("fit", "--model", name, *method, "--out", f"{name}.nc")
    title = in_sentence(chosen.fitted.family.title)
    if ambers:
        first = ambers[0]
        sentence = f"First settle: {first.topic} Then fit {title} to all rows, and predict new rows with it."
        # Columns to leave out come before any fit.
        return Conclusion(topic, "amber", sentence, first.step, first.call if _leaves_out(first, settings) else call)
    sentence = f"Fit {title} to all rows, and predict new rows with it."
    step = "Then: bayes-gda predict MODEL NEW -o OUT.csv, which gives probabilities, intervals and decisions."
    return Conclusion(topic, "green", sentence, step, call)


def _leaves_out(conclusion: Conclusion, settings: ReportSettings) -> bool:
    """Whether the next call leaves out columns that this report has."""
    return conclusion.call.count(" --drop ") > settings.command("report").count(" --drop ")
