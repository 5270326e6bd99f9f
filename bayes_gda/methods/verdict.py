"""What to think of a posterior: one verdict, with the evidence that it rests on.

exact         nothing is approximated
trusted       the fast approximation is close enough on the rows that were looked at
corrected     it is not, but a better Gaussian is, or its importance-weighted draws are reliable
needs-mcmc    neither is
sampled       MCMC was run; its diagnosis says whether it worked
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.display import Light, verdict_html
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.monte_carlo import ERRORS, MonteCarlo, probabilities
from bayes_gda.prediction.row_errors import RowErrors, RowTrust, decide_rows, weighted_distance
from bayes_gda.priors import Seed

if TYPE_CHECKING:
    from bayes_gda.methods.diagnostics import Diagnosis

Better = Literal["ep", "variational"]
Word = Literal["exact", "trusted", "corrected", "needs-mcmc", "sampled"]

# What a better Gaussian is called in sentences.
BETTER: dict[Better, str] = {"ep": "expectation propagation", "variational": "the Gaussian variational approximation"}

# What to do next, whichever evidence the verdict rests on.
SAMPLE = "Sample the posterior: inference='mcmc'."
USE_CORRECTED = "Use the corrected posterior, which is at hand; MCMC is not needed."

_LIGHTS: dict[Word, Light] = {
    "exact": "green",
    "trusted": "green",
    "corrected": "amber",
    "needs-mcmc": "red",
    "sampled": "amber",
}
_DIAGNOSED: dict[str, Light] = {"good": "green", "caution": "amber", "bad": "red"}


@dataclass(frozen=True, slots=True, eq=False)
class PredictionShift:
    """How far the approximate probabilities are from the corrected ones, over the given rows.

    Parameters
    ----------
    largest, typical
        Largest change of a probability, and the 95 % quantile over rows, by the link that the predictions use.
    posterior_largest, posterior_typical
        The part that is due to the Gaussian posterior: integrated link against corrected draws.
    link_largest, link_typical
        What the probit link adds: probit against integrated link, same Gaussian; 0 where a model has no link.
    flips
        Share of rows whose most probable class changes.
    error
        Largest Monte Carlo standard error of a corrected probability.
    largest_error
        That of the probability with the largest change. The largest of many noisy changes errs upwards.
    tolerance
        How far a probability may be off.
    rows, which
        How many rows were compared, and of which kind, such as `training`.
    """

    largest: float
    typical: float
    posterior_largest: float
    posterior_typical: float
    link_largest: float
    link_typical: float
    flips: float
    error: float
    largest_error: float = np.nan
    tolerance: float = np.nan
    rows: int = 0
    which: str = "given"


@dataclass(frozen=True, slots=True, eq=False)
class Importance:
    """The evidence of importance sampling: figures of the approximation, and the corrected posterior.

    Parameters
    ----------
    pareto_k, ess_fraction
        k̂ and ESS/S of the raw approximation's importance ratios.
    threshold
        k̂ below this is good: min(1 − 1/log₁₀ S, 0.7).
    corrected_k, corrected_ess_fraction
        The same of the proposal behind the corrected posterior.
    log_evidence, log_evidence_error
        Corrected log evidence, with its standard error.
    mean_shift, sd_ratio
        (m,) corrected minus approximate mean in corrected standard deviations; approximate sd over corrected sd.
    shift
        What it means for predictions; None if no rows were given.
    draws, log_weights
        (S, m) draws and (S,) normalised log weights: the corrected posterior.
    """

    pareto_k: float
    ess_fraction: float
    threshold: float
    corrected_k: float
    corrected_ess_fraction: float
    log_evidence: float
    log_evidence_error: float
    mean_shift: Floats
    sd_ratio: Floats
    shift: PredictionShift | None
    draws: Floats = field(repr=False)
    log_weights: Floats = field(repr=False)

    @property
    def mean(self) -> Floats:
        """Corrected posterior mean (m,)."""
        return np.exp(self.log_weights) @ self.draws

    @property
    def covariance(self) -> Floats:
        """Corrected posterior covariance (m, m)."""
        centered = self.draws - self.mean
        return centered.T @ (centered * np.exp(self.log_weights)[:, None])

    def draw(self, size: int, *, random_seed: Seed = None) -> Floats:
        """Resample equally weighted draws (size, m) of the corrected posterior, by systematic resampling.

        The copies of a draw stand next to each other, so that effective sample sizes and batch means count them once.
        """
        steps = (np.random.default_rng(random_seed).random() + np.arange(size)) / size
        edges = np.cumsum(np.exp(self.log_weights))
        chosen = np.minimum(np.searchsorted(edges, steps * edges[-1]), len(edges) - 1)
        return self.draws[chosen]


@dataclass(frozen=True, slots=True, eq=False)
class Propagation:
    """The evidence of a better Gaussian: how far Laplace is from it, and it from the posterior.

    Parameters
    ----------
    shift
        The probabilities of Laplace against the better ones; nothing in them is drawn, so that their errors are 0.
    certificate
        Largest change of a probability by what the better Gaussian leaves out, to leading order.
    laplace_error, better_error
        Largest errors of a probability, estimated from both, and with the error of the link where that is not exact.
    log_evidence, log_evidence_error
        Log evidence of the better Gaussian with its change of second order, and the size of that change.
    passes
        Passes over the rows that it took.
    method
        Which Gaussian it is: `ep`, of expectation propagation, or `variational`, which maximises the evidence bound.
    """

    shift: PredictionShift
    certificate: float
    laplace_error: float
    better_error: float
    log_evidence: float
    log_evidence_error: float
    passes: int
    method: Better = "ep"


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """Whether to believe a posterior, why, and what to do.

    Parameters
    ----------
    verdict
        `exact`, `trusted`, `corrected`, `needs-mcmc` or `sampled`.
    reason, next_step
        The sentence that explains it; what to do.
    importance
        The evidence of importance sampling, where the approximation was weighed.
    propagation
        The evidence of a better Gaussian, by expectation propagation or variational, where there is one.
    diagnosis
        The diagnosis of sampled draws.
    before
        The verdict on the fast approximation that was tried before sampling.
    monte_carlo
        The Monte Carlo errors of the probabilities of training rows, where these are means over sampled draws.
    """

    verdict: Word
    reason: str
    next_step: str
    importance: Importance | None = None
    diagnosis: "Diagnosis | None" = None
    before: "Verdict | None" = None
    monte_carlo: MonteCarlo | None = None
    propagation: Propagation | None = None

    def __str__(self) -> str:
        return f"{self.verdict}: {self.reason} {self.next_step}"

    def _repr_html_(self) -> str:
        return verdict_html(self.verdict, self.reason, self.next_step, self.light)

    @property
    def light(self) -> Light:
        """Traffic light of the verdict; of sampled draws that of their diagnosis. Too few draws are amber."""
        sampled = self.verdict == "sampled" and self.diagnosis is not None
        light = _DIAGNOSED[self.diagnosis.verdict] if sampled and self.diagnosis else _LIGHTS[self.verdict]
        rough = self.monte_carlo is not None and not self.monte_carlo.within
        return "amber" if rough and light == "green" else light

    @property
    def pareto_k(self) -> float:
        """k̂ of the raw approximation's importance ratios; nan if it was not weighed."""
        return np.nan if self.importance is None else self.importance.pareto_k

    @property
    def ess_fraction(self) -> float:
        """Effective share of the raw approximation's draws: 1 if exact, nan if it was not weighed."""
        if self.importance is None:
            return 1.0 if self.verdict == "exact" else np.nan
        return self.importance.ess_fraction

    @property
    def shift(self) -> PredictionShift | None:
        """How far the approximate probabilities are off; None if that was not measured."""
        evidence = self.importance or self.propagation
        return None if evidence is None else evidence.shift

    @property
    def log_evidence(self) -> float:
        """Log evidence by importance sampling or a better Gaussian; nan if there is neither."""
        evidence = self.importance or self.propagation
        return np.nan if evidence is None else evidence.log_evidence

    @property
    def log_evidence_error(self) -> float:
        """Its standard error, or for a better Gaussian the size of the last change."""
        evidence = self.importance or self.propagation
        return np.nan if evidence is None else evidence.log_evidence_error


# ── Single rows ─────────────────────────────────────────────────────────────────────────────────────────────────────


def judge_rows(model: FittedModel, verdict: Verdict, X: Floats, tolerance: float) -> RowTrust:
    """Return how far the probabilities of rows X (n, d) may be off.

    Parameters
    ----------
    model, verdict
        The fitted model, and the verdict on it, whose evidence is used.
    X
        Rows.
    tolerance
        How far a probability may be off.
    """
    P, error = probabilities(model, X)
    monte_carlo, link = error.max(axis=1, initial=0.0), model.link_errors(X)
    none = np.zeros(len(X))
    if verdict.verdict in ("exact", "sampled"):
        return RowTrust(np.full(len(X), verdict.verdict), none, monte_carlo, link, tolerance)
    errors = model.approximation_errors(X)
    if errors is None:
        errors = _by_weights(model, verdict, X, P)
    words = decide_rows(errors, ERRORS * monte_carlo + link, tolerance)
    return RowTrust(words, errors.own, monte_carlo, link, tolerance)


def _by_weights(model: FittedModel, verdict: Verdict, X: Floats, P: Floats) -> RowErrors:
    """Return the distance of the probabilities P (n, K) to those of weighted draws, with two of their errors."""
    unknown = np.full(len(X), np.nan)
    if verdict.importance is None or verdict.verdict == "needs-mcmc":
        return RowErrors(unknown, unknown, unknown)
    if verdict.verdict == "corrected" and model.averages_draws:  # they are those draws, whose error is Monte Carlo's
        return RowErrors(np.zeros(len(X)), unknown, np.zeros(len(X)))
    variables = model.variables_of(verdict.importance.draws)
    if variables is None:
        return RowErrors(unknown, unknown, unknown)
    distance = weighted_distance(model, variables, verdict.importance.log_weights, X, P)
    return RowErrors(distance, distance, unknown)
