"""One model, fitted by every method that applies: exact, Laplace, skew-modal, corrected, MCMC."""

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.labels import to_datatree
from bayes_gda.errors import ConvergenceError, InferenceWarning
from bayes_gda.families.classifier import FittedClassifier
from bayes_gda.methods.importance.trust import Trust
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.skew import SkewModal
from bayes_gda.reporting.analysis.candidates import CORRECTED_DRAWS, Candidate, Settings, Verdict
from bayes_gda.reporting.analysis.settings import Clock, ReportSettings

if TYPE_CHECKING:
    import xarray as xr

    from bayes_gda.methods.diagnostics import Diagnosis


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A model by every method that applies.

    Parameters
    ----------
    candidate
        The model, its data and its prior.
    method
        The method behind the predictions: the best that there is.
    models
        The fitted model by method.
    gaussian
        Laplace's Gaussian; None if there is no mode.
    trust
        The verdict on it; None if it was not weighed, as the exact posterior is at hand.
    tree, diagnosis
        What the sampler returned, and whether to believe it; None if nothing was sampled.
    evidence
        log evidence and its standard error by method; the error of Laplace's is not known.
    trees
        Draws by method, under the user's names.
    """

    candidate: Candidate
    method: str
    models: dict[str, FittedClassifier]
    gaussian: GaussianPosterior | None
    trust: Trust | Verdict | None
    tree: "xr.DataTree | None"
    diagnosis: "Diagnosis | None"
    evidence: dict[str, tuple[float, float]]
    trees: "dict[str, xr.DataTree]" = field(repr=False)

    @property
    def model(self) -> FittedClassifier:
        """The fitted model behind the predictions."""
        return self.models[self.method]

    @property
    def best_evidence(self) -> tuple[float, float]:
        """The log evidence with the least error."""
        known = {name: pair for name, pair in self.evidence.items() if np.isfinite(pair[1])}
        return min(known.values(), key=lambda pair: pair[1]) if known else (np.nan, np.nan)


def fit_methods(candidate: Candidate, settings: ReportSettings, clock: Clock) -> Fitted:
    """Fit a model by every method that applies.

    Parameters
    ----------
    candidate
        What to fit.
    settings
        How much to draw; whether to sample.
    clock
        Times the fast methods and the sampling apart.
    """
    problem, seed = candidate.problem, settings.random_seed
    how = Settings("auto", settings.draws, settings.chains, settings.sampler, seed, False)
    models: dict[str, FittedClassifier] = {}
    evidence: dict[str, tuple[float, float]] = {}
    trust: Trust | Verdict | None = None
    gaussian: GaussianPosterior | None = None
    with clock.stage(f"fit {candidate.name}"):
        if (exact := problem.exact()) is not None:
            models["exact"], evidence["exact"] = exact[0], (exact[1], 0.0)
        try:
            gaussian = problem.laplace()
            models["laplace"] = problem.from_gaussian(gaussian, how)
            evidence["laplace"] = (gaussian.log_evidence, np.nan)
            # Weighing a Gaussian model takes seconds. Beside the exact posterior only its evidence is news.
            if exact is None or not settings.quick:
                trust = problem.assess(gaussian, seed)
        except ConvergenceError as error:
            trust = Verdict("needs-mcmc", str(error), "Sample the posterior: inference='mcmc'.")
        if candidate.regression is not None and gaussian is not None:
            skewed = SkewModal(gaussian, candidate.regression.target).draw(settings.size, random_seed=seed)
            models["skew-modal"] = problem.from_draws(skewed)
        if isinstance(trust, Trust):
            evidence["corrected"] = (trust.log_evidence, trust.log_evidence_error)
            if exact is None and trust.verdict != "needs-mcmc":
                corrected = trust.draw(max(settings.size, CORRECTED_DRAWS), random_seed=seed)
                models["corrected"] = problem.from_draws(corrected)
    tree, diagnosis = None, None
    if not settings.quick:
        with clock.stage(f"sample {candidate.name}"):
            tree, diagnosis = _sample(candidate, how, models, evidence)
    method = _method(models, trust, diagnosis)
    return Fitted(
        candidate, method, models, gaussian, trust, tree, diagnosis, evidence, _trees(candidate, models, tree, settings)
    )


def _sample(
    candidate: Candidate,
    how: Settings,
    models: dict[str, FittedClassifier],
    evidence: dict[str, tuple[float, float]],
) -> "tuple[xr.DataTree, Diagnosis]":
    """Sample, and add the model and its evidence to those of the other methods."""
    from bayes_gda.methods.diagnostics import diagnose

    with warnings.catch_warnings():
        # What it has to say is in the diagnosis.
        warnings.simplefilter("ignore", InferenceWarning)
        models["mcmc"], tree = candidate.problem.sample(how)
        if "exact" not in evidence and candidate.problem.proper:
            value, error = candidate.problem.sampled_evidence(models["mcmc"], tree["posterior"].sizes["chain"])
            if np.isfinite(value):
                evidence["bridge"] = (value, error)
    return tree, diagnose(tree)


def _method(models: dict[str, FittedClassifier], trust: Trust | Verdict | None, diagnosis: "Diagnosis | None") -> str:
    """Return the best method that there is: exact, then MCMC that converged, then what the verdict says."""
    if "exact" in models:
        return "exact"
    if diagnosis is not None and (diagnosis.verdict != "bad" or len(models) == 1):
        return "mcmc"
    if trust is not None and trust.verdict == "corrected":
        return "corrected"
    if "laplace" in models:
        return "laplace"
    if "mcmc" in models:
        return "mcmc"
    raise ConvergenceError("There is no fast approximation, and nothing was sampled. Leave quick=True out.")


def _trees(
    candidate: Candidate, models: dict[str, FittedClassifier], tree: "xr.DataTree | None", settings: ReportSettings
) -> "dict[str, xr.DataTree]":
    """Label as many draws of each method as the sampler has, so that all are compared on equal terms."""
    # Independent draws have no chains; they are cut into as many as divide them.
    chains, out = settings.chains if settings.size % settings.chains == 0 else 1, {}
    for i, (method, model) in enumerate(models.items()):
        if method == "mcmc" and tree is not None:
            out[method] = tree
            continue
        variables: dict[str, Floats] = model.draw_variables(settings.size, random_seed=settings.random_seed + i)
        out[method] = to_datatree(variables, candidate.coords, chains=chains, attrs={"method": method})
    return out
