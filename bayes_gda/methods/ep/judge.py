"""The verdict that a better Gaussian gives on the Laplace approximation, and on itself."""

from bayes_gda.methods.ep.certificate import Estimate, decide_outcome
from bayes_gda.methods.verdict import BETTER, SAMPLE, USE_CORRECTED, Propagation, Word
from bayes_gda.prediction.monte_carlo import small


def judge_itself(evidence: Propagation, tolerance: float) -> tuple[Word, str, str]:
    """Return the verdict on the better Gaussian itself, where that is what was asked for."""
    name = _capital(BETTER[evidence.method])
    where = _where(evidence, tolerance)
    error = f"its largest error of a probability is estimated at {small(evidence.better_error)} {where}"
    if evidence.better_error <= tolerance:
        return "trusted", f"{name} is accurate: {error}.", "Use it as it is."
    return "needs-mcmc", f"{name} is not accurate enough: {error}.", SAMPLE


def decide_verdict(evidence: Propagation, tolerance: float) -> tuple[Word, str, str]:
    """Return the verdict that the estimated errors justify, its reason, and the next step."""
    shift, better = evidence.shift, BETTER[evidence.method]
    where = _where(evidence, tolerance)
    flips = f"{100 * shift.flips:.2g} % of decisions flip" if shift.flips else "no decision flips"
    laplace = f"its largest error of a probability is estimated at {small(evidence.laplace_error)} {where}, and {flips}"
    word = decide_outcome(Estimate(evidence.laplace_error, evidence.better_error), tolerance)
    if word == "trusted":
        return word, f"The Laplace approximation is accurate: {laplace}.", "Use it as it is."
    if word == "corrected":
        reason = (
            f"The Laplace approximation is inaccurate: {laplace}. {_capital(better)} corrects it, with a largest "
            f"error estimated at {small(evidence.better_error)}."
        )
        return word, reason, USE_CORRECTED
    reason = (
        f"Neither Laplace nor {better} is accurate enough: their largest errors of a probability are "
        f"estimated at {small(evidence.laplace_error)} and {small(evidence.better_error)} {where}."
    )
    return word, reason, SAMPLE


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _where(evidence: Propagation, tolerance: float) -> str:
    rows = evidence.shift.rows
    return f"on {rows} {evidence.shift.which} row{'s' * (rows != 1)} (tolerance {tolerance:g})"
