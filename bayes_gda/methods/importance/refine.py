"""More weighted draws where a corrected posterior is right but its probabilities are still rough.

The check of `trust` stops at some 3000 effective draws. With few rows a probability may be anything from 0 to
1 under the posterior; its mean then has a standard error of .006, and the largest of many is off by more than .01.
"""

import numpy as np

from bayes_gda.errors import ConvergenceError
from bayes_gda.methods.density import LogDensity
from bayes_gda.methods.importance.proposal import SplitT
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.methods.importance.trust import Predictor, judge_corrected
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Link
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.monte_carlo import WANTED_ERRORS

# The most draws, and draws × rows (some 3 s at 16 ns), to spend on it. Few rows, where it matters, allow many draws.
MOST_DRAWS = 100_000
MOST_WORK = 200_000_000
# Points evaluated at once: densities of many parameters keep several matrices for each.
BLOCK = 4000


def refine(
    target: LogDensity,
    posterior: GaussianPosterior,
    verdict: Verdict,
    *,
    predictor: Predictor,
    link: Link,
    tolerance: float,
    rows: int,
    random_seed: int,
    at_once: bool = False,
) -> Verdict:
    """Return the verdict from as many weighted draws as the probabilities need, or as it was if they have enough.

    Parameters
    ----------
    target, posterior
        The log density that was approximated, and the approximation.
    verdict
        A verdict `corrected`, whose `shift.error` says how rough the probabilities are.
    predictor, link, tolerance
        As in `assess`.
    rows
        Rows behind the target, which set the cost of a draw.
    random_seed
        Seed of the new draws.
    at_once
        Whether all draws are evaluated in one call, because each is a pass over a table.
    """
    before = verdict.importance
    if before is None or before.shift is None:
        return verdict
    have = len(before.draws)
    wanted = have * (WANTED_ERRORS * before.shift.error / tolerance) ** 2
    size = int(min(wanted, MOST_DRAWS, MOST_WORK / rows))
    if size <= have:
        return verdict
    try:
        proposal = SplitT.from_weighted(before.draws, np.exp(before.log_weights))
    except ConvergenceError:
        return verdict
    w, log_q = proposal.draw(size, np.random.default_rng(random_seed))
    block = size if at_once else BLOCK
    log_p = np.concatenate([target.log_density(w[i : i + block]) for i in range(0, size, block)])
    log_weights, k, share = smooth(log_p - log_q)
    if k >= before.threshold or share * size <= before.corrected_ess_fraction * have:
        return verdict
    raw = before.pareto_k, before.ess_fraction, before.threshold
    return judge_corrected(posterior, raw, (w, log_p - log_q, log_weights, k, share), predictor, tolerance, link)
