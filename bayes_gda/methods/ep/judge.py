"""The verdict that expectation propagation gives on the Laplace approximation, and on itself."""

from bayes_gda.methods.verdict import SAMPLE, USE_CORRECTED, Propagation, Word
from bayes_gda.prediction.monte_carlo import small


def judge_itself(found: Propagation, tolerance: float) -> tuple[Word, str, str]:
    """Return the verdict on expectation propagation itself, where that is what was asked for."""
    error = f"its largest error of a probability is estimated at {small(found.ep_error)} {_where(found, tolerance)}"
    if found.ep_error <= tolerance:
        return "trusted", f"Expectation propagation is accurate: {error}.", "Use it as it is."
    return "needs-mcmc", f"Expectation propagation is not accurate enough: {error}.", SAMPLE


def decide_verdict(found: Propagation, tolerance: float) -> tuple[Word, str, str]:
    """Return the verdict that the estimated errors justify, its reason, and the next step."""
    shift = found.shift
    where = _where(found, tolerance)
    flips = f"{100 * shift.flips:.2g} % of decisions flip" if shift.flips else "no decision flips"
    laplace = f"its largest error of a probability is estimated at {small(found.laplace_error)} {where}, and {flips}"
    if found.laplace_error <= tolerance:
        return "trusted", f"The Laplace approximation is accurate: {laplace}.", "Use it as it is."
    if found.ep_error <= tolerance:
        reason = (
            f"The Laplace approximation is inaccurate: {laplace}. Expectation propagation corrects it, with a largest "
            f"error estimated at {small(found.ep_error)}."
        )
        return "corrected", reason, USE_CORRECTED
    reason = (
        f"Neither Laplace nor expectation propagation is accurate enough: their largest errors of a probability are "
        f"estimated at {small(found.laplace_error)} and {small(found.ep_error)} {where}."
    )
    return "needs-mcmc", reason, SAMPLE


def _where(found: Propagation, tolerance: float) -> str:
    rows = found.shift.rows
    return f"on {rows} {found.shift.which} row{'s' * (rows != 1)} (tolerance {tolerance:g})"
