"""The check of `inference.trust` where a look at the target is a pass over very many rows: all draws at once."""

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.methods.density import LogDensity
from bayes_gda.methods.importance.proposal import SplitT
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.methods.importance.trust import DRAWS, TOLERANCE, Predictor, judge, weigh
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Link
from bayes_gda.methods.verdict import Verdict
from bayes_gda.priors import Seed

# Draws of the pass over all rows: 400 of them must be effective for a verdict, and more would make the pass longer than
# all others together; at 10 features it takes as long as 15 Newton passes. Three quarters are of the approximation
# itself, whose k̂ they tell to ±.14; the rest, of a proposal with heavier tails, bound the ratios.
DRAWS_AT_ONCE, OWN_SHARE = 512, 0.75


def first_look(
    target: LogDensity,
    posterior: GaussianPosterior,
    *,
    mean: Floats | None = None,
    predictor: Predictor | None = None,
    link: Link = "probit",
    tolerance: float = TOLERANCE,
    draws: int = DRAWS_AT_ONCE,
    random_seed: Seed = 0,
) -> Verdict:
    """Weigh an approximation with one look at the target: enough to say `trusted`, as it is with many rows.

    Most draws are of the approximation itself, the others of the proposal about `mean`. All are weighed against the
    mixture of the two, so that all of them make up the corrected posterior.

    Parameters
    ----------
    target
        The log density that was approximated; one call of it is a pass over all rows.
    posterior, mean, predictor, link, tolerance, random_seed
        As in `assess`.
    draws
        Points of the look.
    """
    rng = np.random.default_rng(random_seed)
    return _look(target, posterior, mean, predictor, link, tolerance, draws, rng)[0]


def assess_at_once(
    target: LogDensity,
    posterior: GaussianPosterior,
    *,
    mean: Floats | None = None,
    predictor: Predictor | None = None,
    link: Link = "probit",
    tolerance: float = TOLERANCE,
    draws: int = DRAWS_AT_ONCE,
    random_seed: Seed = 0,
) -> Verdict:
    """Weigh an approximation as `assess` does, with one look at the target, or two where one is not enough.

    If the corrected posterior of the first look is too rough, a proposal is fitted to it and DRAWS fresh ones are
    weighed. Parameters are those of `first_look`.
    """
    rng = np.random.default_rng(random_seed)
    verdict, raw_ratios = _look(target, posterior, mean, predictor, link, tolerance, draws, rng)
    first = verdict.importance
    assert first is not None
    effective = first.corrected_ess_fraction * draws
    # Of many rows some are off by three standard errors, and two more are granted: beyond an eighth of the tolerance
    # that may decide the verdict. A table of 10⁴ rows or more has less.
    rough = verdict.verdict == "needs-mcmc" or (first.shift is not None and first.shift.error > tolerance / 8)
    # Fewer effective draws than twice the parameters cannot carry a covariance.
    if verdict.verdict == "trusted" or not rough or effective < 2 * posterior.dim:
        return verdict
    better = weigh(target, SplitT.from_weighted(first.draws, np.exp(first.log_weights)), DRAWS, rng)
    if better[4] * DRAWS < effective:
        return verdict
    return judge(posterior, raw_ratios, better, predictor, tolerance, link)


def _look(
    target: LogDensity,
    posterior: GaussianPosterior,
    mean: Floats | None,
    predictor: Predictor | None,
    link: Link,
    tolerance: float,
    draws: int,
    rng: np.random.Generator,
) -> tuple[Verdict, Floats]:
    """Return the verdict of one look, and the approximation's own log ratios."""
    proposal = SplitT.from_laplace(posterior, posterior.mean if mean is None else mean)
    own = int(OWN_SHARE * draws)
    w = np.vstack([posterior.draw(own, random_seed=rng), proposal.draw(draws - own, rng)[0]])
    log_p, log_q = target.log_density(w), posterior.log_density(w)
    mixture = np.logaddexp(np.log(own) + log_q, np.log(draws - own) + proposal.log_density(w)) - np.log(draws)
    weighted = w, log_p - mixture, *smooth(log_p - mixture)
    raw_ratios = (log_p - log_q)[:own]
    return judge(posterior, raw_ratios, weighted, predictor, tolerance, link), raw_ratios
