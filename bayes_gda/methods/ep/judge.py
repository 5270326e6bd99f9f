"""The verdict that a better Gaussian gives on the Laplace approximation, and on itself."""

from bayes_gda.methods.ep.certificate import Estimate, decide_outcome
from bayes_gda.methods.verdict import BETTER, SAMPLE, USE_CORRECTED, Propagation, Word
from bayes_gda.prediction.monte_carlo import small


def judge_itself(found: Propagation, tolerance: float) -> tuple[Word, str, str]:
    """Return the verdict on the better Gaussian itself, where that is what was asked for."""
    name = _capital(BETTER[found.method])
    error = f"its largest error of a probability is estimated at {small(found.better_error)} {_where(found, tolerance)}"
    if found.better_error <= tolerance:
        return "trusted", f"{name} is accurate: {error}.", "Use it as it is."
    return "needs-mcmc", f"{name} is not accurate enough: {error}.", SAMPLE


def decide_verdict(found: Propagation, tolerance: float) -> tuple[Word, str, str]:
    """Return the verdict that the estimated errors justify, its reason, and the next step."""
    shift, better = found.shift, BETTER[found.method]
    where = _where(found, tolerance)
    flips = f"{100 * shift.flips:.2g} % of decisions flip" if shift.flips else "no decision flips"
    laplace = f"its largest error of a probability is estimated at {small(found.laplace_error)} {where}, and {flips}"
    word = decide_outcome(Estimate(found.laplace_error, found.better_error), tolerance)
    if word == "trusted":
        return word, f"The Laplace approximation is accurate: {laplace}.", "Use it as it is."
    if word == "corrected":
        reason = (
            f"The Laplace approximation is inaccurate: {laplace}. {_capital(better)} corrects it, with a largest "
            f"error estimated at {small(found.better_error)}."
        )
        return word, reason, USE_CORRECTED
    reason = (
        f"Neither Laplace nor {better} is accurate enough: their largest errors of a probability are "
        f"estimated at {small(found.laplace_error)} and {small(found.better_error)} {where}."
    )
    return word, reason, SAMPLE


def _capital(name: str) -> str:
    return name[0].upper() + name[1:]


def _where(found: Propagation, tolerance: float) -> str:
    rows = found.shift.rows
    return f"on {rows} {found.shift.which} row{'s' * (rows != 1)} (tolerance {tolerance:g})"
