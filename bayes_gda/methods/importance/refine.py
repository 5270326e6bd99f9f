"""More weighted draws where a corrected posterior is right but its probabilities are still rough.

The check of `trust` stops at some 3000 effective draws. With few rows a probability may be anything from 0 to
1 under the posterior; its mean then has a standard error of .006, and the largest of many is off by more than .01.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.methods.importance.proposal import SplitT
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.methods.verdict import Verdict

# Standard error of a probability to aim for: four of them are the tolerance of .01.
WANTED_ERROR = 0.0025
# The most draws, and draws × rows (some 3 s at 16 ns), to spend on it. Few rows, where it matters, allow many draws.
MOST_DRAWS = 100_000
MOST_WORK = 200_000_000
# Points evaluated at once: densities of many parameters keep several matrices for each.
BLOCK = 4000


def refine(
    log_density: Callable[[Floats], Floats], verdict: Verdict, rows: int, random_seed: int, *, at_once: bool = False
) -> Verdict:
    """Return the verdict with as many weighted draws as the probabilities need, or as it was if they have enough.

    Parameters
    ----------
    log_density
        Log target (S,) at points (S, dim).
    verdict
        A verdict `corrected`, whose `shift.error` says how rough the probabilities are.
    rows
        Rows behind the target, which set the cost of a draw.
    random_seed
        Seed of the new draws.
    at_once
        Whether all draws are evaluated in one call, because each is a pass over a table.
    """
    before = verdict.importance
    if before is None or before.shift is None or before.shift.error <= WANTED_ERROR:
        return verdict
    have = len(before.draws)
    wanted = have * (before.shift.error / WANTED_ERROR) ** 2
    size = int(min(wanted, MOST_DRAWS, MOST_WORK / rows))
    if size <= have:
        return verdict
    try:
        proposal = SplitT.from_weighted(before.draws, np.exp(before.log_weights))
    except ConvergenceError:
        return verdict
    w, log_q = proposal.draw(size, np.random.default_rng(random_seed))
    block = size if at_once else BLOCK
    log_p = np.concatenate([log_density(w[i : i + block]) for i in range(0, size, block)])
    ratios = log_p - log_q
    log_weights, k, share = smooth(ratios)
    gain = share * size / (before.corrected_ess_fraction * have)
    if k >= before.threshold or gain <= 1:
        return verdict
    log_evidence = float(logsumexp(ratios) - np.log(size))
    refined = replace(
        before,
        corrected_k=k,
        corrected_ess_fraction=share,
        log_evidence=log_evidence,
        log_evidence_error=float(np.exp(ratios - log_evidence).std() / np.sqrt(size)),
        shift=replace(before.shift, error=before.shift.error / np.sqrt(gain)),
        draws=w,
        log_weights=log_weights,
    )
    return replace(verdict, importance=refined)
