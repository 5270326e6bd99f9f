"""The ladder: exact where the prior is conjugate, else Laplace, verified, else MCMC. Every door fits through `fit`.

    auto      exact ──▶ Laplace ──▶ trusted: as it is
                                    corrected: by a better Gaussian (expectation propagation for logistic, the
                                    variational one for softmax regression), or by weighted draws
                                    needs-mcmc, or no mode: MCMC, said once
    exact, laplace, ep, variational, mcmc    that one, or an error that says why not
    every     all methods that apply, side by side: what a report compares

It knows no model: what it needs of one is a `Family`.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bayes_gda.errors import ConvergenceError, InferenceWarning, PriorError, attempt, warn_user
from bayes_gda.methods.ep import judge
from bayes_gda.methods.importance.at_once import assess_at_once, first_look
from bayes_gda.methods.importance.refine import refine
from bayes_gda.methods.importance.trust import assess, decide_verdict
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Settings
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.methods.verdict import BETTER, SAMPLE, Better, Propagation, Verdict
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.monte_carlo import LARGEST_ERRORS, MonteCarlo
from bayes_gda.processes.state import Shared, warning_rule

if TYPE_CHECKING:
    import xarray as xr

    from bayes_gda.families.base import Family
    from bayes_gda.methods.diagnostics import Diagnosis

Method = Literal["exact", "laplace", "ep", "variational", "skew-modal", "corrected", "mcmc"]
# Methods that are taken as they are where they are asked for: Laplace, and the better Gaussians.
GAUSSIAN: tuple[str, ...] = ("laplace", *BETTER)
# Equally weighted draws that a corrected posterior is resampled to: they add little to the error of the weighted ones.
CORRECTED_DRAWS = 16_000
# From so many rows on, few draws are weighed first, over all rows: the posterior is then often near Gaussian.
MANY_ROWS = 5_000
# Weights up to which importance sampling is tried where the better Gaussian gives up: with more, no proposal keeps
# enough effective draws, and each round costs as much as a hundred passes.
WEIGHED_DIM = 64
# Coordinates up to which Laplace is set beside an exact posterior: its curvature takes 10·dim² numbers, 80 MB here.
COMPARED_DIM = 1000
EXACT = "The prior is conjugate: nothing is approximated."
# MCMC on a table that is larger than memory is no remedy; a part of it is.
SAMPLE_PART = "Fit a random part of the rows that fits into memory with inference='mcmc', or use a tighter prior."

_UNSAID = Shared(lambda: warning_rule("ignore", "", InferenceWarning))

# Opens a stage of the work by its name, such as a clock's.
Stage = Callable[[str], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Exact:
    """An exact posterior.

    Parameters
    ----------
    model
        The fitted model.
    log_evidence, log_evidence_error
        log p(data) and its error: 0 in closed form, nan if that is not known.
    reason
        What is exact about it.
    """

    model: FittedModel
    log_evidence: float
    log_evidence_error: float = 0.0
    reason: str = EXACT


@dataclass(frozen=True, slots=True, eq=False)
class Propagated:
    """A better Gaussian than Laplace's, by expectation propagation or variational.

    Parameters
    ----------
    gaussian
        The approximation.
    evidence
        How far Laplace's is from it, and it from the posterior.
    certificate
        What a fitted model of the family keeps of it to judge new rows; None if nothing.
    """

    gaussian: GaussianPosterior
    evidence: Propagation
    certificate: Any = None

    @property
    def method(self) -> Better:
        """Which Gaussian it is."""
        return self.evidence.method


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A model with every posterior that was computed, under one labelling, and which of them was chosen.

    Parameters
    ----------
    family
        The model, its data and its prior.
    models
        The fitted model by method: `exact`, `laplace`, `ep`, `variational`, `skew-modal`, `corrected`, `mcmc`.
    chosen
        The method behind the predictions.
    verdict
        Whether to believe it.
    evidence
        log p(data) and its standard error: `exact`, by `laplace` (whose error is not known, nan), by `ep` or
        `variational` (with the size of its last change), `corrected` by importance weights, and by the `bridge` from
        sampled draws.
    gaussian, propagated
        Laplace's Gaussian, and the better one; None if it was not made, or there is none.
    tree
        What the sampler returned, under the user's names; None if nothing was sampled.
    """

    family: "Family"
    models: dict[str, FittedModel]
    chosen: str
    verdict: Verdict
    evidence: dict[str, tuple[float, float]] = field(default_factory=dict)
    gaussian: GaussianPosterior | None = None
    propagated: Propagated | None = None
    tree: "xr.DataTree | None" = None

    @property
    def model(self) -> FittedModel:
        """The fitted model behind the predictions."""
        return self.models[self.chosen]

    @property
    def best_evidence(self) -> tuple[float, float]:
        """The log evidence with the least error, and that error; nan where none is known."""
        known = [pair for pair in self.evidence.values() if np.isfinite(pair[1])]
        return min(known, key=lambda pair: pair[1]) if known else (np.nan, np.nan)

    @property
    def log_evidence(self) -> tuple[float, float]:
        """The log evidence that goes with the chosen method, corrected if that is Laplace, and its standard error."""
        order = {"exact": ("exact",), "mcmc": ("bridge",)}.get(self.chosen, ("corrected", *BETTER))
        return next((self.evidence[name] for name in order if name in self.evidence), (np.nan, np.nan))

    @property
    def weighing(self) -> Verdict:
        """The verdict on the fast approximation: its own, or that before sampling."""
        return self.verdict.before or self.verdict


def fit(family: "Family", settings: Settings) -> Fit:
    """Fit by the method asked for, or by the fastest one that holds."""
    asked = settings.inference
    if asked in ("auto", "exact"):
        if (exact := family.exact()) is not None:
            pair = (exact.log_evidence, exact.log_evidence_error)
            return Fit(
                family, {"exact": exact.model}, "exact", Verdict("exact", exact.reason, "Use it."), {"exact": pair}
            )
        if asked == "exact":
            raise PriorError(family.no_exact())
    if asked in GAUSSIAN and not family.has_mode:
        raise PriorError(family.no_exact())
    if asked == "mcmc" or not family.has_mode:
        # Where the prior is flat Laplace raises if the posterior is not proper either, which no sampler would notice.
        gaussian = family.laplace() if family.has_mode and not family.proper else None
        return _sampled(Fit(family, {}, "mcmc", _unweighed(""), gaussian=gaussian), settings)
    fast = _fast(family, settings)
    if fast.verdict.verdict != "needs-mcmc":
        return fast
    if asked in GAUSSIAN or not family.can_sample:
        kept = "" if family.can_sample else " The Laplace approximation is kept."
        warn_user(f"{fast.verdict.reason}{kept} {fast.verdict.next_step}" if kept else str(fast.verdict))
        return fast
    warn_user(f"{fast.verdict.reason} Sampling the posterior by MCMC instead.")
    return _sampled(fast, settings)


def fit_every(
    family: "Family", settings: Settings, *, sampling: bool, stage: Stage = lambda name: nullcontext()
) -> Fit:
    """Fit by every method that applies; choose that asked for, or exact, MCMC that converged, what the verdict says.

    Parameters
    ----------
    family, settings
        As in `fit`; a method that is asked for is chosen where the model has it.
    sampling
        Whether to run MCMC too, which the other methods are then held against.
    stage
        Opened with `fit` and `sample` around these parts of the work.
    """
    asked, settings = settings.inference, replace(settings, inference="auto")
    models: dict[str, FittedModel] = {}
    evidence: dict[str, tuple[float, float]] = {}
    with stage("fit"):
        exact = family.exact()
        if exact is not None:
            models["exact"], evidence["exact"] = exact.model, (exact.log_evidence, exact.log_evidence_error)
        # Weighing takes seconds with many parameters. Beside the exact posterior only its evidence is news.
        fast = None
        if family.has_mode and (exact is None or family.parameters <= COMPARED_DIM):
            fast = _fast(family, settings, every=True, weighed=exact is None or sampling)
            models |= {name: model for name, model in fast.models.items() if exact is None or name != "corrected"}
            evidence |= fast.evidence
    weighing = _unweighed(family.no_exact()) if fast is None else fast.verdict
    gaussian = None if fast is None else fast.gaussian
    if exact is not None:
        weighing = replace(weighing, verdict="exact", reason=exact.reason, next_step="Use it.", monte_carlo=None)
    out = Fit(family, models, "exact", weighing, evidence, gaussian, None if fast is None else fast.propagated)
    if sampling and family.can_sample:
        with stage("sample"):
            out = _sampled(out, settings, quiet=True)
    chosen = asked if asked in out.models else _choose_best(out.models, weighing, out.verdict.diagnosis)
    verdict = out.verdict if chosen == "mcmc" else replace(weighing, diagnosis=out.verdict.diagnosis)
    return replace(out, chosen=chosen, verdict=verdict)


def _choose_best(models: dict[str, FittedModel], weighing: Verdict, diagnosis: "Diagnosis | None") -> str:
    """Return the best method that there is: exact, then MCMC that converged, then what the verdict says."""
    if "exact" in models:
        return "exact"
    if diagnosis is not None and (diagnosis.verdict != "bad" or len(models) == 1):
        return "mcmc"
    better = next((name for name in ("corrected", *BETTER) if name in models), None)
    if weighing.verdict != "trusted" and better is not None:
        return better
    if models:
        return "laplace" if "laplace" in models else "mcmc"
    raise ConvergenceError("There is no fast approximation, and nothing was sampled. Leave quick=True out.")


def verify(family: "Family", gaussian: GaussianPosterior, settings: Settings) -> Verdict:
    """Weigh a Gaussian against the posterior, by the probabilities of training rows; a verdict in any case."""
    options: dict[str, Any] = {
        "predictor": family.predictor(settings.random_seed),
        "link": settings.link,  # which the predictions use
        "tolerance": settings.tolerance,
        "random_seed": settings.random_seed,
    }
    try:
        start = {"mean": lindley_mean(gaussian, family.third_order)} | options
        if family.single_look:
            verdict = assess_at_once(family.target, gaussian, **start)
        else:
            verdict = _unweighed("")
            if family.cost_rows >= MANY_ROWS:
                verdict = first_look(family.target, gaussian, **start)
            if verdict.verdict != "trusted":
                verdict = assess(family.target, gaussian, **start)
    except ConvergenceError as error:
        return _unweighed(_sentence(error))
    if verdict.verdict == "corrected":
        cost = family.cost_rows
        verdict = refine(family.target, gaussian, verdict, rows=cost, at_once=family.single_look, **options)
    importance = verdict.importance
    if importance is None or importance.shift is None:
        return verdict
    importance = replace(importance, shift=replace(importance.shift, which=family.looked_at))
    return Verdict(*decide_verdict(importance, settings.tolerance), importance=importance)


def _fast(family: "Family", settings: Settings, *, every: bool = False, weighed: bool = True) -> Fit:
    """Fit by Laplace, verify, and correct if need be; a verdict `needs-mcmc` if that will not do."""
    forced = settings.inference in GAUSSIAN
    try:
        gaussian = family.laplace()
    except ConvergenceError as error:
        if not (family.proper and family.can_sample):
            raise  # the message says why there is no posterior, or nothing else is left to try
        if forced:
            remedy = "Use inference='mcmc', or 'auto', which does so by itself."
            raise ConvergenceError(f"{_sentence(error)} {remedy}", error.partial) from error
        return Fit(family, {}, "laplace", _unweighed(_sentence(error)))
    asked = next((name for name in BETTER if name == settings.inference), None)
    better = family.propagate(gaussian) if weighed or asked else None
    if asked and (better is None or better.method != asked):
        name = BETTER[asked][0].upper() + BETTER[asked][1:]
        raise ConvergenceError(
            f"{name} does not apply to {family.title} with this prior, or did not converge. Use inference='auto'."
        )
    verdict = _judge(family, gaussian, better, settings) if weighed else _unweighed("")
    if verdict.verdict == "needs-mcmc" and not family.can_sample:
        verdict = replace(verdict, next_step=SAMPLE_PART)
    importance, models = verdict.importance, dict[str, FittedModel]()
    evidence = {"laplace": (gaussian.log_evidence, np.nan)}
    if better is not None:
        evidence[better.method] = (better.evidence.log_evidence, better.evidence.log_evidence_error)
    if importance is not None:
        evidence["corrected"] = (importance.log_evidence, importance.log_evidence_error)
    if not family.proper:
        evidence = {}  # of a flat prior it has no meaning
    corrected = verdict.verdict == "corrected" and not forced
    chosen: str = asked or "laplace"
    if corrected:
        chosen = better.method if importance is None and better is not None else "corrected"
    if better is not None and (every or chosen == better.method):
        models[better.method] = family.from_propagated(better.gaussian, settings)
    if every or chosen == "laplace":
        models["laplace"] = family.from_gaussian(gaussian, settings)
    if better is not None:
        models = {name: family.certified(model, better) for name, model in models.items()}
    if every and (w := family.skewed(gaussian, settings.size, settings.random_seed)) is not None:
        models["skew-modal"] = family.from_coordinates(w)
    if importance is not None and (corrected or (every and verdict.verdict == "trusted")):
        effective = int(importance.corrected_ess_fraction * len(importance.draws))
        size = max(settings.size, CORRECTED_DRAWS, effective)
        models["corrected"] = family.from_coordinates(importance.draw(size, random_seed=settings.random_seed))
    if importance is not None:
        verdict = replace(verdict, importance=replace(importance, draws=family.stored_coordinates(importance.draws)))
    if verdict.verdict != "needs-mcmc":
        verdict = _with_error(verdict, family.monte_carlo(models[chosen], settings.tolerance), settings.draws)
    if corrected and verdict.monte_carlo is not None and family.can_sample:
        verdict = _rough(verdict, verdict.monte_carlo, family)
    return Fit(family, models, chosen, verdict, evidence, gaussian, better)


def _judge(family: "Family", gaussian: GaussianPosterior, better: Propagated | None, settings: Settings) -> Verdict:
    """Judge Laplace by the better Gaussian, and by importance weights where there is none or it gives up."""
    if better is None:
        return verify(family, gaussian, settings)
    # Nothing of it is random.
    which = better.evidence.shift.which if family.rows.n == family.data.n else "different training"
    shift = replace(better.evidence.shift, tolerance=settings.tolerance, largest_error=0.0, which=which)
    link = shift.link_largest if settings.link == "probit" else 0.0
    errors = {name: getattr(better.evidence, name) + link for name in ("laplace_error", "better_error")}
    evidence = replace(better.evidence, shift=shift, **errors)
    itself = settings.inference == better.method
    decide = judge.judge_itself if itself else judge.decide_verdict
    verdict = Verdict(*decide(evidence, settings.tolerance), propagation=evidence)
    if verdict.verdict == "needs-mcmc" and gaussian.dim <= WEIGHED_DIM and not itself:
        weighed = verify(family, gaussian, settings)
        if weighed.verdict != "needs-mcmc":
            return replace(weighed, propagation=evidence)
    return verdict


def _sampled(before: Fit, settings: Settings, *, quiet: bool = False) -> Fit:
    """Sample, diagnose, and add the draws to the posteriors that there are; `quiet` for those to be compared with."""
    from bayes_gda.methods.escalation import sample_posterior

    family = before.family
    with _UNSAID if quiet else nullcontext():  # what it has to say is in the diagnosis
        start = before.gaussian if before.propagated is None else before.propagated.gaussian
        sampled = sample_posterior(family, settings, start, chosen=not quiet)
        model, chains = sampled.model, sampled.tree["posterior"].sizes["chain"]
        pair, unknown = None, ""
        if family.proper:
            pair, unknown = attempt(lambda: family.sampled_evidence(model, chains))
    reason, step = " ".join(sampled.diagnosis.reasons), " ".join(sampled.diagnosis.next_steps)
    if unknown:
        reason += f" The log evidence is not known: {unknown}"
    if sampled.diagnosis.verdict == "bad" and not quiet:
        warn_user(f"The draws cannot be relied upon. {reason} {step}")
    weighed = before.verdict if before.verdict.reason else None
    reason = f"{reason} {sampled.extension}".rstrip()
    verdict = Verdict("sampled", reason, step, diagnosis=sampled.diagnosis, before=weighed)
    verdict = _with_error(verdict, sampled.error, sampled.draws)
    evidence = before.evidence
    if "exact" not in evidence and pair is not None and np.isfinite(pair[0]):
        evidence = evidence | {"bridge": pair}
    models = before.models | {"mcmc": model}
    return replace(before, models=models, chosen="mcmc", verdict=verdict, evidence=evidence, tree=sampled.tree)


def _with_error(verdict: Verdict, error: MonteCarlo | None, draws: int) -> Verdict:
    """Return the verdict with the Monte Carlo error of the training rows' probabilities, if these rest on draws."""
    if error is None:
        return verdict
    step = verdict.next_step
    if not error.within and verdict.verdict != "corrected":  # whose weights, not whose number of draws, are the limit
        step += f" For probabilities within the tolerance, draw more: draws={error.draws_needed(draws)}."
    return replace(verdict, reason=f"{verdict.reason} {error.sentence}", next_step=step, monte_carlo=error)


def _rough(verdict: Verdict, error: MonteCarlo, family: "Family") -> Verdict:
    """Return `needs-mcmc` for a corrected posterior of too few effective draws, where sampling would have more."""
    if error.within and (error.is_settled or family.density is None):  # without gradients of its own that takes long
        return verdict
    worst = f"The error of the worst row may be {LARGEST_ERRORS:g} times as large." if error.within else ""
    return replace(verdict, verdict="needs-mcmc", reason=f"{verdict.reason} {worst}".rstrip(), next_step=SAMPLE)


def _unweighed(reason: str) -> Verdict:
    return Verdict("needs-mcmc", reason, SAMPLE)


def _sentence(error: Exception) -> str:
    text = str(error)
    return text if text.endswith(".") else f"{text}."
