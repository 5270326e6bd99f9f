"""The choice of a method, made once: exact where the prior is conjugate, else Laplace, verified, else MCMC.

    auto      exact ──▶ Laplace ──▶ trusted: as it is
                                    corrected: weighted draws, resampled
                                    needs-mcmc, or no mode: MCMC, said once
    exact, laplace, mcmc    that one, or an error that says why not

What the methods need of a model is a `Problem`; there is one for the Gaussian models and two for the regressions. A
`SampledProblem`, such as that of rows with gaps, has no fast approximation: there it is exact, else MCMC.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError, DataError, InferenceWarning, PriorError
from bayes_gda.families.classifier import FittedClassifier
from bayes_gda.methods.importance.refine import refine
from bayes_gda.methods.importance.trust import LIGHTS, Trust, verdict_html
from bayes_gda.methods.laplace import GaussianPosterior

if TYPE_CHECKING:
    import xarray as xr

    from bayes_gda.methods.diagnostics import Diagnosis

Inference = Literal["auto", "exact", "laplace", "mcmc"]
INFERENCES: tuple[Inference, ...] = ("auto", "exact", "laplace", "mcmc")
# A reported probability may be off by so much for `trusted`. It is less than the .02 of `inference.trust`, because the
# estimators integrate the link and so have only the posterior's share of the error to spend.
TOLERANCE = 0.01
# Equally weighted draws that a corrected posterior is resampled to: so many that they add little to the error of the
# weighted ones, which are worth 3000 or more where that could be had.
CORRECTED_DRAWS = 16_000
_PACKAGE = str(Path(__file__).resolve().parents[1])
_GREEN, _YELLOW, _RED = LIGHTS.values()


@dataclass(frozen=True, slots=True)
class Settings:
    """How to compute.

    Parameters
    ----------
    inference, sampler
        The method asked for; which NUTS to use for MCMC.
    draws, chains
        Draws of each chain, and the number of chains; other methods draw as many altogether.
    random_seed
        Seed of all draws.
    progress
        Whether to show a bar; None shows it on a terminal.
    """

    inference: Inference
    draws: int
    chains: int
    sampler: str
    random_seed: int
    progress: bool | None

    def __post_init__(self) -> None:
        if self.inference not in INFERENCES:
            raise DataError(f"`inference` must be one of {', '.join(INFERENCES)}; got {self.inference!r}.")
        for name in ("draws", "chains"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise DataError(f"`{name}` must be a whole number of at least 1; got {value!r}.")

    @property
    def size(self) -> int:
        """Draws altogether."""
        return self.draws * self.chains


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What to think of a posterior that needs no check, or was sampled, or could not be checked.

    Parameters
    ----------
    verdict
        `exact`, `sampled`, or `needs-mcmc` if there is no fast approximation that could be weighed.
    reason, next_step
        The sentence that explains it; what to do.
    pareto_k, ess_fraction
        As in `Trust`, where they have a meaning.
    diagnosis
        The diagnosis of sampled draws.
    laplace
        The verdict on the fast approximation that was tried before.
    """

    verdict: Literal["exact", "sampled", "needs-mcmc"]
    reason: str
    next_step: str
    pareto_k: float = np.nan
    ess_fraction: float = np.nan
    diagnosis: "Diagnosis | None" = None
    laplace: "Trust | Verdict | None" = None

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason} {self.next_step}"

    def _repr_html_(self) -> str:
        return verdict_html(self.verdict, self.reason, self.next_step, light_of(self))


def light_of(trust: Trust | Verdict) -> str:
    """Return the traffic light of a verdict: its colour as HTML has it."""
    if isinstance(trust, Verdict) and trust.diagnosis is not None:
        return {"good": _GREEN, "caution": _YELLOW, "bad": _RED}[trust.diagnosis.verdict]
    return _GREEN if trust.verdict == "exact" else LIGHTS[trust.verdict]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted model and how it came about.

    Parameters
    ----------
    model
        Posterior and predictions.
    method
        `exact`, `laplace`, `corrected` or `mcmc`.
    trust
        Whether to believe it.
    log_evidence, log_evidence_error
        log p(data) and its standard error; nan where it is not known or, under a flat prior, has no meaning.
    n_iter
        Newton steps to the mode; None if there was no search.
    tree
        What the sampler returned, under the user's names; None if nothing was sampled.
    """

    model: FittedClassifier
    method: Literal["exact", "laplace", "corrected", "mcmc"]
    trust: Trust | Verdict
    log_evidence: float
    log_evidence_error: float
    n_iter: int | None = None
    tree: "xr.DataTree | None" = None


class SampledProblem(Protocol):
    """A model with its data and prior, and the steps of the methods that need no mode."""

    @property
    def proper(self) -> bool:
        """Whether the prior can be normalised."""

    def exact(self) -> tuple[FittedClassifier, float] | None:
        """Return the exact posterior and the log evidence, or None if there is no closed form."""

    def no_exact(self) -> str:
        """Say why there is no closed form, nor an approximation if there is none, and what to do."""

    def sample(self, settings: Settings) -> tuple[FittedClassifier, "xr.DataTree"]:
        """Return the model with draws by MCMC, and the tree that the sampler returned."""

    def sampled_evidence(self, model: FittedClassifier, chains: int) -> tuple[float, float]:
        """Return the log evidence that draws by MCMC give, and its error; nan if they do not."""


@runtime_checkable
class Problem(SampledProblem, Protocol):
    """One that also has a mode, and the steps of Laplace's method and its check."""

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode."""

    def assess(self, posterior: GaussianPosterior, random_seed: int) -> Trust:
        """Weigh the Gaussian against the posterior."""

    def log_density(self, w: Floats) -> Floats:
        """Return the log posterior (S,), up to its evidence, at points (S, dim) in the Gaussian's coordinates."""

    @property
    def n(self) -> int:
        """Rows that the log density sums over."""

    def from_gaussian(self, posterior: GaussianPosterior, settings: Settings) -> FittedClassifier:
        """Return the model whose posterior is the Gaussian."""

    def from_draws(self, w: Floats) -> FittedClassifier:
        """Return the model with draws (S, dim) in the coordinates of the Gaussian."""


def fit(problem: SampledProblem, settings: Settings) -> Fit:
    """Fit by the method asked for, or by the fastest one that holds."""
    asked = settings.inference
    if asked in ("auto", "exact"):
        exact = problem.exact()
        if exact is not None:
            verdict = Verdict("exact", "The prior is conjugate: nothing is approximated.", "Use it.", ess_fraction=1.0)
            return Fit(exact[0], "exact", verdict, exact[1], 0.0)
        if asked == "exact":
            raise PriorError(problem.no_exact())
    if asked == "laplace" and not isinstance(problem, Problem):
        raise PriorError(problem.no_exact())
    if asked == "mcmc" or not isinstance(problem, Problem):
        if isinstance(problem, Problem) and not problem.proper:
            problem.laplace()  # raises if the posterior is not proper either, which no sampler would notice
        return _by_mcmc(problem, settings, None)
    fast = _by_laplace(problem, settings)
    if isinstance(fast, Fit):
        return fast
    _warn(f"{fast.reason} Sampling the posterior by MCMC instead.")
    return _by_mcmc(problem, settings, fast)


def _by_laplace(problem: Problem, settings: Settings) -> Fit | Trust | Verdict:
    """Return the fit, corrected if need be; or, unless Laplace was asked for, the verdict that it will not do."""
    forced = settings.inference == "laplace"
    trust: Trust | Verdict
    try:
        posterior = problem.laplace()
    except ConvergenceError as error:
        if not problem.proper:
            raise  # the message says why there is no posterior, so that MCMC has nothing to sample
        if forced:
            remedy = "Use inference='mcmc', or 'auto', which does so by itself."
            raise ConvergenceError(f"{_sentence(error)} {remedy}", error.partial) from error
        return Verdict("needs-mcmc", _sentence(error), "Sample the posterior: inference='mcmc'.")
    try:
        trust = problem.assess(posterior, settings.random_seed)
    except ConvergenceError as error:
        trust = Verdict("needs-mcmc", _sentence(error), "Sample the posterior: inference='mcmc'.")
    if trust.verdict == "needs-mcmc" and not forced:
        return trust
    if trust.verdict == "needs-mcmc":
        _warn(str(trust))
    elif isinstance(trust, Trust) and trust.verdict == "corrected" and not forced:
        trust = refine(problem.log_density, trust, problem.n, settings.random_seed)
    evidence = (trust.log_evidence, trust.log_evidence_error) if isinstance(trust, Trust) else (np.nan, np.nan)
    if not problem.proper:
        evidence = (np.nan, np.nan)
    n_iter = posterior.info.n_iter
    if isinstance(trust, Trust) and trust.verdict == "corrected" and not forced:
        size = max(settings.size, CORRECTED_DRAWS)
        model = problem.from_draws(trust.draw(size, random_seed=settings.random_seed))
        return Fit(model, "corrected", trust, *evidence, n_iter)
    return Fit(problem.from_gaussian(posterior, settings), "laplace", trust, *evidence, n_iter)


def _by_mcmc(problem: SampledProblem, settings: Settings, before: Trust | Verdict | None) -> Fit:
    from bayes_gda.methods.diagnostics import diagnose

    model, tree = problem.sample(settings)
    diagnosis = diagnose(tree)
    reason, step = " ".join(diagnosis.reasons), " ".join(diagnosis.next_steps)
    if diagnosis.verdict == "bad":
        _warn(f"The draws cannot be relied upon. {reason} {step}")
    verdict = Verdict("sampled", reason, step, diagnosis=diagnosis, laplace=before)
    evidence = problem.sampled_evidence(model, tree["posterior"].sizes["chain"]) if problem.proper else (np.nan, np.nan)
    return Fit(model, "mcmc", verdict, *evidence, tree=tree)


def _sentence(error: Exception) -> str:
    text = str(error)
    return text if text.endswith(".") else f"{text}."


def _warn(message: str) -> None:
    """Warn, and point to the line of the user."""
    warnings.warn(message, InferenceWarning, skip_file_prefixes=(_PACKAGE,), stacklevel=2)
