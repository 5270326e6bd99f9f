"""How far the probabilities of Laplace and of EP are off for logistic regression, in closed form."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.families.linear.ep.logistic import LogisticSites, logistic_ep, moments_of_rows
from bayes_gda.families.linear.ep.predictive import expected_sigmoid, skewed_sigmoid
from bayes_gda.families.linear.ep.row_certificate import LEAST_VARIANCE, RowCertificate
from bayes_gda.families.linear.ep.summed import NEGLIGIBLE, Gaussian, judge_summed
from bayes_gda.families.linear.links import probit_logistic
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.linalg import blas_threads, row_blocks, solve_triangular
from bayes_gda.methods.ep.certificate import (
    EP,
    Changes,
    Estimate,
    Rule,
    estimate_errors,
    exact_changes,
    sketch_changes,
    third_cumulants,
)
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.verdict import PredictionShift, Propagation

# Rows for which the third cumulants are summed: those with the widest activations near p = ½, where skewness matters
# most, and as many again evenly spaced.
JUDGED = 64
# Fewer of them, and fewer pairs of the sketch, where there are more training rows than this over JUDGED: what they are
# summed for falls with the rows, and their cost stays below that of the passes.
JUDGED_WORK, LEAST_JUDGED = 1_000_000, 8
# Rows, spread over all, that tell the typical change where rows are so many that none is kept.
SPREAD = 2000
# Up to so many rows per weight all pairs of rows are summed; beyond, a sketch serves.
PAIRED_ROWS = 8
# Multiplications of a sketch, which set how many rows it takes, and the least number of these per weight: half are the
# rows that count most, the others a random part that stands for the rest.
SKETCH_WORK, LEAST_SKETCHED = 2**24, 16
# Pairs of the sketch where it can only matter for rows far away: known to √(2/16) = .35 there.
FEW_PAIRS = 16
# Numbers of a row at work where its probabilities are computed.
WORKED_COLUMNS = 16


class Certificate(NamedTuple):
    """What is seen of the errors on some rows.

    Parameters
    ----------
    shift
        p_Laplace against p_EP, and the probit link against the integrated one.
    cert
        max |p − p_EP|, p with the third cumulant or with the change of variance as well; a bound of it where that is
        negligible.
    rule
        How the errors are estimated from both.
    """

    shift: PredictionShift
    cert: float
    rule: Rule = EP

    @property
    def gap(self) -> float:
        """max |p_Laplace − p_EP|."""
        return self.shift.largest

    @property
    def estimate(self) -> Estimate[float]:
        """Estimated largest errors of Laplace and of the better Gaussian; no probability is off by more than 1."""
        laplace, better = estimate_errors(self.gap, self.cert, rule=self.rule)
        return Estimate(min(laplace, 1.0), min(better, 1.0))


class LogisticBeyond:
    """What EP's Gaussian leaves out of a logistic posterior: third cumulants and the change of the covariance.

    Parameters
    ----------
    posterior
        EP's Gaussian.
    sites
        Its sites.
    """

    def __init__(self, posterior: GaussianPosterior, sites: LogisticSites) -> None:
        self.posterior = posterior
        self.Phi = sites.target.Phi
        self.start = sites.start
        self.third, self.squared, self.mean, self.variance, self.largest = sites.third_derivatives(posterior)
        self._root = solve_triangular(posterior.chol_precision, np.eye(posterior.dim)).T
        self.V = self._root @ self._root.T
        self.judged = max(LEAST_JUDGED, min(JUDGED, JUDGED_WORK // max(len(self.Phi), 1)))

    @cached_property
    def changes(self) -> Changes:
        """What it changes of the covariance, the third cumulants and the evidence."""
        n, m = self.Phi.shape
        # All pairs of rows cost no more than the passes of the fit where there are few rows for a weight.
        if n <= PAIRED_ROWS * m:
            return exact_changes(self.V, self.Phi[:], self.third, self.squared)
        negligible = self.bound(self.variance.max(initial=0.0)) <= NEGLIGIBLE
        pairs = min(self.judged, FEW_PAIRS) if negligible else self.judged
        size = max(SKETCH_WORK // (m * (4 * pairs + m)), LEAST_SKETCHED * m)
        if n <= 2 * size:
            return sketch_changes(self.V, self._root, self._blocks, pairs=pairs)
        own = np.abs(self.third) * self.variance**1.5  # the part of a row in its own third cumulant
        most = np.argpartition(own, -size)[-size:]
        rest = np.random.default_rng(0).choice(n, size, replace=False)
        rest = np.setdiff1d(rest, most)
        rows, weight = np.concatenate([most, rest]), np.repeat([1.0, (n - size) / len(rest)], [size, len(rest)])

        def blocks() -> Iterator[tuple[Floats, Floats, Floats]]:
            for part in row_blocks(len(rows), m):
                chosen, c = rows[part], weight[part]
                yield self.Phi[chosen], c * self.third[chosen], c * c * self.squared[chosen]

        return sketch_changes(self.V, self._root, blocks, pairs=pairs)

    @property
    def log_evidence(self) -> float:
        """EP's log evidence with the change of second order."""
        return self.posterior.log_evidence + self.changes.evidence

    def probabilities(self, rows: Floats) -> tuple[Floats, Floats, Floats]:
        """Return p (k,) of class 1 for rows (k, m): by EP, with skewness, and with skewness and the other variance."""
        mu = rows @ self.posterior.mean
        s2 = np.einsum("ij,ij->i", rows @ self.V, rows)
        kappa3 = third_cumulants(rows, self.V, self._blocks)
        changed = np.maximum(s2 + np.einsum("ij,ij->i", rows @ self.changes.covariance, rows), LEAST_VARIANCE * s2)
        none = np.zeros(len(rows))
        return skewed_sigmoid(mu, s2, none), skewed_sigmoid(mu, s2, kappa3), skewed_sigmoid(mu, changed, kappa3)

    def bound(self, s2: Any) -> Any:
        """Return a bound (n,) of |p − p_EP| from the variances alone: |σ‴| ≤ ⅛, |σ″| ≤ .0963."""
        r = self.largest
        return r * s2**1.5 / 48 + 0.5 * r * r * s2 * 0.0963 / 2

    def _blocks(self) -> Iterator[tuple[Floats, Floats, Floats]]:
        for rows in row_blocks(*self.Phi.shape):
            yield self.Phi[rows], self.third[rows], self.squared[rows]


def certify(laplace: GaussianPosterior, beyond: LogisticBeyond, rows: Floats | None = None) -> Certificate:
    """Return the certificate of some rows.

    Parameters
    ----------
    laplace
        The Laplace approximation.
    beyond
        What EP leaves out.
    rows
        (k, m) rows of the design matrix to judge; None takes the training rows. The distance of Laplace to EP is taken
        over all of them, the certificate over the most exposed and some others.
    """
    Phi, mean, variance = beyond.Phi, beyond.mean, beyond.variance
    fast_mean, fast_variance = beyond.start or _moments(Phi, laplace)
    if rows is not None:
        Phi = rows
        mean, variance = _moments(rows, beyond.posterior)
        fast_mean, fast_variance = _moments(rows, laplace)
    change, link, exposure = (np.zeros(len(Phi)) for _ in range(3))
    flips, bound = 0, 0.0
    for block in row_blocks(len(Phi), WORKED_COLUMNS):
        mu, s2, moments = mean[block], variance[block], (fast_mean[block], fast_variance[block])
        p, fast = expected_sigmoid(mu, s2), expected_sigmoid(*moments)
        change[block], link[block] = np.abs(fast - p), np.abs(probit_logistic(*moments) - fast)
        flips += int(((fast > 0.5) != (p > 0.5)).sum())
        bounds = beyond.bound(s2)
        bound = max(bound, float(bounds.max(initial=0.0)))
        exposure[block] = bounds * p * (1 - p)
    (gap, typical), (link_gap, link_typical) = ((float(x.max()), float(np.quantile(x, 0.95))) for x in (change, link))
    shift = PredictionShift(gap, typical, gap, typical, link_gap, link_typical, flips / len(Phi), 0.0, rows=len(Phi))
    if bound <= NEGLIGIBLE:
        return Certificate(shift, bound)
    if len(Phi) > 2 * beyond.judged:
        exposed = np.argpartition(exposure, -beyond.judged)[-beyond.judged :]
        Phi = Phi[np.union1d(exposed, np.linspace(0, len(Phi) - 1, beyond.judged).astype(int))]
    p, skewed, changed = beyond.probabilities(Phi)
    return Certificate(shift, float(np.maximum(np.abs(skewed - p), np.abs(changed - p)).max(initial=0.0)))


def _moments(rows: Floats, posterior: GaussianPosterior) -> tuple[Floats, Floats]:
    """Return mean and variance (n,) of the activations of rows (n, m)."""
    return moments_of_rows(rows, *Gaussian.of(posterior))


def judge_laplace(
    target: LogisticTarget, laplace: GaussianPosterior
) -> tuple[GaussianPosterior, Propagation, RowCertificate]:
    """Return EP's Gaussian, what it and its certificate say of Laplace's on the training rows, and one for new rows.

    `ConvergenceError` if the passes do not settle.
    """
    with blas_threads(laplace.dim):
        posterior, sites = logistic_ep(target, laplace)
        if not sites.stored:  # so many rows that nothing is kept of each
            spread = target.Phi[np.linspace(0, target.n - 1, SPREAD).astype(int)]
            return posterior, *judge_summed(lambda answer: answer(target), target.n, laplace, posterior, spread)
        beyond = LogisticBeyond(posterior, sites)
        certified, value = certify(laplace, beyond), beyond.log_evidence
        evidence = Propagation(
            replace(certified.shift, which="training"),
            certified.cert,
            *certified.estimate,
            log_evidence=value,
            log_evidence_error=abs(value - posterior.log_evidence),
            passes=posterior.info.n_iter,
        )
        changes = beyond.changes
        return posterior, evidence, RowCertificate(laplace, posterior, changes.covariance, changes.third, certified.gap)
