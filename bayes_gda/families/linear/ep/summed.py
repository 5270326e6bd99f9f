"""The certificate of a logistic regression whose rows are summed over: many rows in memory, in batches or on a cluster.

Nothing is kept of a row, but for a few that are most exposed. One pass compares Laplace with EP on all rows and sums
the sketch of what EP leaves out; a second one sums the third cumulants of the exposed rows, where these are not
negligible.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.families.linear.ep.logistic import LogisticSites
from bayes_gda.families.linear.ep.predictive import expected_sigmoid, skewed_sigmoid
from bayes_gda.families.linear.ep.row_certificate import LEAST_VARIANCE, RowCertificate
from bayes_gda.families.linear.ep.sites import SMALL
from bayes_gda.families.linear.links import probit_logistic
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.linalg import in_threads, linear_and_quadratic, one_blas_thread, parts, row_blocks, solve_triangular
from bayes_gda.methods.ep.certificate import SketchSums, estimate_errors, sketch_directions, third_cumulants
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.verdict import PredictionShift, Propagation

# Exposed rows that are kept, and pairs of the sketch: what they are for falls with the rows, which are many here.
EXPOSED = PAIRS = 16
# Rows of the sketch, and the least number of them per weight: every so-maniest row stands for those between. Rows with
# a wide activation, few where rows are many, stand for themselves.
SKETCHED_ROWS, LEAST_SKETCHED = 20_000, 32
# Where the bounds of all rows are below this, no third cumulant is summed: a tolerance of .01 is decided by the rest.
NEGLIGIBLE = 5e-4

# Sums what it is given of the rows: of a part of them as a `LogisticTarget` under a flat prior.
type Ask = Callable[[Callable[[LogisticTarget], Any]], Any]


class Gaussian(NamedTuple):
    """Mean (m,) and a root R (m, m) of the covariance RRᵀ: what the moments of activations need."""

    mean: Floats
    root: Floats

    @classmethod
    def of(cls, posterior: GaussianPosterior) -> Self:
        """Return those of a posterior."""
        return cls(posterior.mean, solve_triangular(posterior.chol_precision, np.eye(posterior.dim)).T)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What a look at some rows sums up.

    Parameters
    ----------
    rows, flips
        How many there are, and of how many Laplace and EP name different classes.
    gap, link
        Largest distances of Laplace's probabilities to EP's, and of the probit link to the exact one.
    widest, ratio
        Largest variance of an activation, and largest |Σu₃|√v/Στ.
    sketch
        Sums of what EP leaves out.
    exposed, exposure
        (k, m) the rows that skewness can change most, and (k,) by how much, up to a factor.
    """

    rows: int
    flips: int
    gap: float
    link: float
    widest: float
    ratio: float
    sketch: SketchSums
    exposed: Floats
    exposure: Floats

    def __add__(self, other: "Seen") -> "Seen":
        exposure = np.concatenate([self.exposure, other.exposure])
        top = np.argsort(-exposure, kind="stable")[:EXPOSED]
        return Seen(
            self.rows + other.rows,
            self.flips + other.flips,
            max(self.gap, other.gap),
            max(self.link, other.link),
            max(self.widest, other.widest),
            max(self.ratio, other.ratio),
            SketchSums(*map(add, self.sketch, other.sketch)),
            np.concatenate([self.exposed, other.exposed])[top],
            exposure[top],
        )

    @property
    def bound(self) -> float:
        """Bound of |p − p_EP| over all rows, from the variances alone: |σ‴| ≤ ⅛, |σ″| ≤ .0963."""
        return self.ratio * self.widest**1.5 / 48 + 0.5 * self.ratio**2 * self.widest * 0.0963 / 2


def look(target: LogisticTarget, *, laplace: Gaussian, ep: Gaussian, directions: Floats, step: int) -> Seen:
    """Look at rows in blocks and threads.

    Parameters
    ----------
    target
        The rows.
    laplace, ep
        Both Gaussians.
    directions
        (m, 3 pairs) of the sketch.
    step
        Every how maniest row the sketch takes.
    """
    sites, m = LogisticSites(target, stored=False), target.dim

    def look_at(part: slice) -> Seen:
        blocks = row_blocks(part.stop, m, start=part.start)
        return reduce(add, (_look(sites, rows, laplace, ep, directions, step) for rows in blocks))

    with one_blas_thread():
        return reduce(add, in_threads(look_at, parts(target.n, m)))


def _look(sites: LogisticSites, rows: slice, laplace: Gaussian, ep: Gaussian, directions: Floats, step: int) -> Seen:
    Phi = np.ascontiguousarray(sites.target.Phi[rows])
    moments, (mu, s2) = linear_and_quadratic(Phi, *laplace), linear_and_quadratic(Phi, *ep)
    p, fast = expected_sigmoid(mu, s2), expected_sigmoid(*moments)
    site = sites.at(rows, mu, s2)
    # A site without precision, as of a row without weight, has no third derivative either.
    ratio = np.abs(site.third) * np.sqrt(s2) / np.where(site.tau > 0, site.tau, np.inf)
    weight = np.zeros(len(mu))
    weight[::step] = step
    weight[s2 > SMALL] = 1.0
    chosen = np.flatnonzero(weight)
    c = weight[chosen]
    sketch = SketchSums.of(Phi[chosen], c * site.third[chosen], c * c * site.third_squared[chosen], directions)
    exposure = s2**1.5 * p * (1 - p)
    top = np.argpartition(-exposure, min(EXPOSED, len(mu) - 1))[:EXPOSED]
    return Seen(
        len(mu),
        int(((fast > 0.5) != (p > 0.5)).sum()),
        float(np.abs(fast - p).max(initial=0.0)),
        float(np.abs(probit_logistic(*moments) - fast).max(initial=0.0)),
        float(s2.max(initial=0.0)),
        float(ratio.max(initial=0.0)),
        sketch,
        Phi[top],
        exposure[top],
    )


def cumulants(target: LogisticTarget, *, ep: Gaussian, rows: Floats) -> Floats:
    """Return the part (k,) that some training rows have in the third cumulants of rows (k, m)."""
    sites, V = LogisticSites(target, stored=False), ep.root @ ep.root.T

    def blocks() -> Any:
        for block in row_blocks(target.n, target.dim):
            Phi = np.ascontiguousarray(target.Phi[block])
            moments = sites.at(block, *linear_and_quadratic(Phi, *ep))
            yield Phi, moments.third, moments.third_squared

    return third_cumulants(rows, V, blocks)


def judge_summed(
    ask: Ask, n: int, laplace: GaussianPosterior, posterior: GaussianPosterior, spread: Floats
) -> tuple[Propagation, RowCertificate]:
    """Return what EP and its certificate say of Laplace on all rows, and a certificate for new rows.

    Parameters
    ----------
    ask
        Sums over the rows, one pass a call.
    n
        Rows in all.
    laplace, posterior
        The Gaussians of Laplace and EP.
    spread
        (k, m) some rows of the design matrix, for the typical change and to be judged beside the exposed ones.
    """
    ep, about = Gaussian.of(posterior), Gaussian.of(laplace)
    step = max(1, n // max(SKETCHED_ROWS, LEAST_SKETCHED * posterior.dim))
    directions = sketch_directions(ep.root, PAIRS)
    seen: Seen = ask(partial(look, laplace=about, ep=ep, directions=directions, step=step))
    V = ep.root @ ep.root.T
    changes = seen.sketch.changes(V)
    cert = seen.bound
    if cert > NEGLIGIBLE:
        rows = np.concatenate([seen.exposed, spread[:EXPOSED]])
        kappa3 = ask(partial(cumulants, ep=ep, rows=rows))
        mu, s2 = linear_and_quadratic(np.ascontiguousarray(rows), *ep)
        changed = np.maximum(s2 + np.einsum("ij,ij->i", rows @ changes.covariance, rows), LEAST_VARIANCE * s2)
        p = skewed_sigmoid(mu, s2, np.zeros(len(rows)))
        beyond = [np.abs(skewed_sigmoid(mu, v, kappa3) - p) for v in (s2, changed)]
        cert = float(np.maximum(*beyond).max(initial=0.0))
    moments = [linear_and_quadratic(np.ascontiguousarray(spread), *q) for q in (about, ep)]
    p_laplace, p_ep = (expected_sigmoid(*pair) for pair in moments)
    typical = [
        min(float(np.quantile(np.abs(a - p_laplace), 0.95)), most)
        for a, most in ((p_ep, seen.gap), (probit_logistic(*moments[0]), seen.link))
    ]
    gap, link, flips = seen.gap, seen.link, seen.flips / seen.rows
    shift = PredictionShift(gap, typical[0], gap, typical[0], link, typical[1], flips, 0.0, rows=n, which="training")
    evidence = Propagation(
        shift,
        cert,
        *estimate_errors(gap, cert),
        log_evidence=posterior.log_evidence + changes.evidence,
        log_evidence_error=abs(changes.evidence),
        passes=posterior.info.n_iter,
    )
    return evidence, RowCertificate(laplace, posterior, changes.covariance, changes.third, gap)
