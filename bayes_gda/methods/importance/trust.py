"""Whether the fast approximation can be trusted on these data, and if not, what then.

Draws w_s from an approximation q are weighed by the ratio to the target p, r_s = p(w_s)/q(w_s). The ratios say three
things: how far q is from p (the tail index k̂ of their Pareto fit, and the effective share of draws ESS/S), what the
posterior is (the weighted draws), and what the evidence is (their mean).

    1. Weigh draws of the Laplace approximation itself: k̂ and ESS/S of the raw approximation.
    2. Draw from better proposals, refitted round by round while that pays: the corrected posterior.
    3. Compare what the user acts on: means, spreads, and the probabilities of given rows.

`trusted`     the fast answer differs from the corrected one by less than a tolerance: use it.
`corrected`   it does not, but the weighted draws are reliable: use those.
`needs-mcmc`  not even the best proposal comes close to the target: sample.

No check of this kind can see a mode that no draw came near; for the log-concave posteriors of logistic regression there
is none.

References
----------
Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling.
"""

from typing import Protocol

import numpy as np
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.methods.density import LogDensity
from bayes_gda.methods.importance.proposal import SplitT
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Link
from bayes_gda.methods.verdict import SAMPLE, USE_CORRECTED, Importance, PredictionShift, Verdict, Word
from bayes_gda.prediction.monte_carlo import ERRORS, small
from bayes_gda.priors import Seed

# The predictive integral behind the probabilities that are judged: (nearly) exact, or the probit approximation.

# Draws of each round. 4000 give 3400 effective ones on an easy posterior (pima), so that one round is enough there.
DRAWS = 4000
# k̂ has no scale: it sees a heavy tail also in ratios between 1 and 1.001, as those of a million rows are. At this share
# of effective draws they vary by 7 %, and the tail is no cause for alarm.
STEADY = 0.995
# Effective draws below which weighted means are too rough to act on: their error is then 5 % of a posterior sd.
ENOUGH = 400.0
# Effective draws to aim for: they put the error of a mean at 2 % of a posterior sd.
WANTED = 3000.0
# A refit must add this share of its draws to the effective ones to be followed by another; at most so many are made.
PAYS = 0.01
ROUNDS = 5
# The last round may have so many times the draws of the others.
MOST = 8
# How far a probability may move before the fast answer is not good enough.
TOLERANCE = 0.02
# Without rows to predict, the posterior itself is compared: shifts in sd, and the effective share of draws. A tenth of
# a standard deviation is what a report rounds away; with half of the draws effective k̂ was at most .55 in all that we
# measured, well inside what importance sampling can correct.
SHIFT_TOLERANCE = 0.1
SHARE_TOLERANCE = 0.5
# Where one draw has all the weight no spread is left to measure shifts by: this one, in the approximation's sd.
SMALLEST_SD = 1e-12


class Predictor(Protocol):
    """Class probabilities of given rows: of a Gaussian posterior by either link, and of weighted draws."""

    def gaussian(self, posterior: GaussianPosterior, link: Link) -> Floats:
        """Return probabilities (n, K) of the Gaussian; a model without a link returns the same for both."""

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return the weighted mean (n, K) over draws (S, m), and its standard error (n, K)."""


def assess(
    target: LogDensity,
    posterior: GaussianPosterior,
    *,
    mean: Floats | None = None,
    predictor: Predictor | None = None,
    link: Link = "probit",
    tolerance: float = TOLERANCE,
    draws: int = DRAWS,
    random_seed: Seed = 0,
) -> Verdict:
    """Weigh an approximation against its target and decide whether it can be trusted.

    Parameters
    ----------
    target
        The log density that was approximated.
    posterior
        The approximation.
    mean
        (m,) a better mean to start the correction from, such as `lindley_mean`; None for the posterior's.
    predictor
        Rows whose probabilities matter; None compares means and spreads only.
    link
        The link by which the user gets these probabilities: its error counts.
    tolerance
        How far a probability may move for the verdict `trusted`.
    draws
        Draws of each round; the target is evaluated at 2 to 14 times as many points.
    random_seed
        The verdict is a Monte Carlo estimate; the same seed gives the same one.
    """
    rng = np.random.default_rng(random_seed)
    raw = posterior.draw(draws, random_seed=rng)
    raw_ratios = target.log_density(raw) - posterior.log_density(raw)
    start = SplitT.from_laplace(posterior, posterior.mean if mean is None else mean)
    return judge(posterior, raw_ratios, correct(target, start, draws, rng), predictor, tolerance, link)


def judge(
    posterior: GaussianPosterior,
    raw_ratios: Floats,
    corrected: tuple[Floats, Floats, Floats, float, float],
    predictor: Predictor | None,
    tolerance: float,
    link: Link,
) -> Verdict:
    """Return the verdict on an approximation, given its own log ratios and the corrected draws with theirs."""
    _, pareto_k, ess = smooth(raw_ratios)
    threshold = float(min(1 - 1 / np.log10(len(raw_ratios)), 0.7))
    return judge_corrected(posterior, (pareto_k, ess, threshold), corrected, predictor, tolerance, link)


def judge_corrected(
    posterior: GaussianPosterior,
    raw: tuple[float, float, float],
    corrected: tuple[Floats, Floats, Floats, float, float],
    predictor: Predictor | None,
    tolerance: float,
    link: Link,
) -> Verdict:
    """Return the same verdict, given k̂, ESS/S and the limit of k̂ of the approximation's own draws."""
    pareto_k, ess, threshold = raw
    w, ratios, log_weights, corrected_k, corrected_ess = corrected
    weight = np.exp(log_weights)
    # Not products of BLAS, whose threads would round them by their number.
    center = np.einsum("s,sd->d", weight, w)
    sd = np.sqrt(np.einsum("s,sd->d", weight, (w - center) ** 2))
    sd = np.maximum(sd, SMALLEST_SD * posterior.sd)
    mean_shift, sd_ratio = (center - posterior.mean) / sd, posterior.sd / sd
    shift = None if predictor is None else _compare(predictor, posterior, w, weight, link, tolerance)
    # log (1/S) Σ r_s and, by the delta method, the relative error of that mean.
    log_evidence = float(logsumexp(ratios) - np.log(len(w)))
    relative = np.exp(ratios - log_evidence)
    evidence = Importance(
        pareto_k=pareto_k,
        ess_fraction=ess,
        threshold=threshold,
        corrected_k=corrected_k,
        corrected_ess_fraction=corrected_ess,
        log_evidence=log_evidence,
        log_evidence_error=float(relative.std() / np.sqrt(len(w))),
        mean_shift=mean_shift,
        sd_ratio=sd_ratio,
        shift=shift,
        draws=w,
        log_weights=log_weights,
    )
    return Verdict(*decide_verdict(evidence, tolerance), importance=evidence)


def correct(
    target: LogDensity, proposal: SplitT, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, float, float]:
    """Fit a proposal round by round, then weigh fresh draws of it; return draws, log ratios, log weights, k̂, ESS/S.

    The fits use the draws of all rounds, each weighed against the mixture of all proposals so far (Cornuet et al.
    2012), so that a bad first round neither spoils the weights nor the next fit. The answer does not use them: weights
    of draws that a proposal was fitted to are biased (we measured the log evidence four standard errors low).
    """
    proposals, effective = [proposal], 0.0
    pool, log_p = np.empty((0, len(proposal.location))), np.empty(0)
    log_q: list[Floats] = []  # of each proposal at all draws
    for _ in range(ROUNDS):
        fresh = weigh(target, proposals[-1], draws, rng)
        if fresh[4] * draws >= WANTED:
            return fresh
        w, own, *_ = fresh
        pool = np.vstack([pool, w])
        log_q = [np.append(old, q.log_density(w)) for old, q in zip(log_q, proposals, strict=False)]
        log_q.append(proposals[-1].log_density(pool))
        log_p = np.append(log_p, own + log_q[-1][-draws:])  # own is log p − log q at the new draws
        log_weights, _, share = smooth(log_p - (logsumexp(log_q, axis=0) - np.log(len(proposals))))
        gained, effective = share * len(pool) - effective, share * len(pool)
        # Fewer effective draws than twice the parameters cannot carry a covariance.
        if gained < PAYS * draws or effective < 2 * pool.shape[1]:
            break
        proposals.append(SplitT.from_weighted(pool, np.exp(log_weights)))
    if fresh[4] * MOST * draws < ENOUGH:
        return fresh  # hopeless: no number of draws within reason would do
    # As many fresh draws as it takes, at the share that the last round had.
    size = int(np.clip(WANTED / fresh[4], draws, MOST * draws))
    return weigh(target, proposals[-1], size, rng)


def weigh(
    target: LogDensity, proposal: SplitT, size: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, float, float]:
    """Draw from a proposal and weigh the draws; return them, log ratios, log weights, k̂ and ESS/S."""
    w, log_q = proposal.draw(size, rng)
    ratios = target.log_density(w) - log_q
    return w, ratios, *smooth(ratios)


def _compare(
    predictor: Predictor, posterior: GaussianPosterior, w: Floats, weight: Floats, link: Link, tolerance: float
) -> PredictionShift:
    exact, probit = predictor.gaussian(posterior, "exact"), predictor.gaussian(posterior, "probit")
    used = probit if link == "probit" else exact
    truth, error = predictor.averaged(w, weight)

    def largest_and_typical(a: Floats, b: Floats) -> tuple[float, float]:
        change = np.abs(a - b).max(axis=1)
        return float(change.max()), float(np.quantile(change, 0.95))

    flips = float(np.mean(used.argmax(axis=1) != truth.argmax(axis=1)))
    furthest = np.unravel_index(np.abs(used - truth).argmax(), used.shape)
    return PredictionShift(
        *largest_and_typical(used, truth),
        *largest_and_typical(exact, truth),
        *largest_and_typical(probit, exact),
        flips,
        float(error.max()),
        float(error[furthest]),
        float(tolerance),
        len(used),
    )


def decide_verdict(evidence: Importance, tolerance: float) -> tuple[Word, str, str]:
    """Return the verdict that the figures justify, its reason, and the next step."""
    k, ess, threshold, shift = evidence.pareto_k, evidence.ess_fraction, evidence.threshold, evidence.shift
    draws = len(evidence.draws)
    better_k, effective = evidence.corrected_k, evidence.corrected_ess_fraction * draws
    after = f"k̂ = {better_k:.2f}, limit {threshold:.2f}; {effective:.0f} of {draws} draws effective"
    if (better_k >= threshold and ess < STEADY) or effective < ENOUGH:
        reason = (
            f"Even the corrected approximation is far from the posterior ({after}), so nothing here measures its error."
        )
        return "needs-mcmc", reason, SAMPLE
    moved, steady = float(np.abs(evidence.mean_shift).max()), k < threshold or ess >= STEADY
    if shift is None:
        spread = float(np.abs(np.log(evidence.sd_ratio)).max())
        close = ess >= SHARE_TOLERANCE and max(moved, spread) <= SHIFT_TOLERANCE
        figures = (
            f"its means are off by up to {moved:.2f} posterior sd and its spreads by up to "
            f"{100 * np.expm1(spread):.0f} %, with {SHIFT_TOLERANCE:g} sd and "
            f"{100 * np.expm1(SHIFT_TOLERANCE):.0f} % tolerated"
        )
    else:
        close = shift.largest + ERRORS * shift.error <= tolerance
        figures = describe_shift(shift)
    raw = f"k̂ = {k:.2f}, limit {threshold:.2f}; {100 * ess:.0f} % of the draws effective"
    if close and steady:
        reason = f"The fast approximation is accurate: {figures}. Its importance weights are reliable ({raw})."
        return "trusted", reason, "Use it as it is."
    if close:
        fault = f"is not reliable by its own importance weights ({raw})"
    elif shift is None and max(moved, spread) <= SHIFT_TOLERANCE:
        fault = f"may be inaccurate, as only {100 * ess:.0f} % of its importance-weighted draws are effective"
    elif shift is not None and shift.largest <= tolerance:
        fault = "may be inaccurate, as its error with two Monte Carlo standard errors exceeds the tolerance"
    else:
        fault = "is inaccurate"
    reason = f"The fast approximation {fault}: {figures}. Importance weighting corrects it ({after})."
    return "corrected", reason, USE_CORRECTED


def describe_shift(shift: PredictionShift) -> str:
    """Return in words how far probabilities are off: by how much, on which rows, and what is tolerated."""
    flips = f"{100 * shift.flips:.1f} % of decisions flip" if shift.flips else "no decision flips"
    rows = f"{shift.rows} {shift.which} row{'s' * (shift.rows != 1)}"
    return (
        f"the largest error of a probability is {small(shift.largest)} ± {small(shift.largest_error)} on {rows} "
        f"(tolerance {shift.tolerance:g}; 95 % of the rows: at most {small(shift.typical)}), and {flips}"
    )
