"""How far the probabilities of Laplace and of the variational Gaussian are off for softmax regression."""

from dataclasses import dataclass, replace

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.families.linear import softmax_links
from bayes_gda.families.linear.ep.certificate import Certificate
from bayes_gda.families.linear.predictors import softmax_activations
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.beyond import SoftmaxBeyond
from bayes_gda.families.linear.variational.row_certificate import SoftmaxRowCertificate
from bayes_gda.families.linear.variational.sites import softmax_variational
from bayes_gda.linalg import blas_threads, for_blocks, moment_width
from bayes_gda.methods.ep.certificate import VARIATIONAL
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.verdict import PredictionShift, Propagation

# Rows for which what is left out is summed: those with the widest activations among likely classes, and as many again
# evenly spaced.
JUDGED = 8
# Numbers of a row in a block, over K²: fewer rows at once would pay for calls.
BLOCK_WIDTH = 1
# Rows, spread over all, for which the links are compared.
LINKED = 2000
# Variance of a difference of activations up to which the first order serves where two Gaussians are compared.
SIMILAR = 0.15


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What is seen of every row, (n,) each but `link`.

    Parameters
    ----------
    change
        max_k |p_Laplace − p_variational|.
    flips
        Whether the most probable class changes.
    size
        Σ p(1 − p) v^{3/2}, v the largest variance of a difference of two activations: how much skewness may matter.
    link
        max_k of the mean-field link against the integrated one, under Laplace's Gaussian, of some rows.
    """

    change: Floats
    flips: Floats
    size: Floats
    link: Floats

    def shift(self) -> PredictionShift:
        """Return the largest changes, and the 95 % quantiles."""
        (gap, typical), (link, link_typical) = (
            (float(x.max()), float(np.quantile(x, 0.95))) for x in (self.change, self.link)
        )
        n = len(self.change)
        return PredictionShift(gap, typical, gap, typical, link, link_typical, float(self.flips.mean()), 0.0, rows=n)


def survey(laplace: GaussianPosterior, better: GaussianPosterior, target: SoftmaxTarget, Phi: Floats) -> Survey:
    """Compare the probabilities of two Gaussians for rows Phi (n, m)."""
    K, out = target.K, np.empty((3, len(Phi)))
    both = [softmax_activations(gaussian, K, reference_class=target.reference) for gaussian in (laplace, better)]

    def write(rows: slice) -> None:
        moments, (mean, cov) = (activations(Phi[rows]) for activations in both)
        fast, p = (softmax_links.expected_softmax(*x, first_order=SIMILAR) for x in (moments, (mean, cov)))
        out[0, rows] = np.abs(fast - p).max(axis=1)
        out[1, rows] = fast.argmax(axis=1) != p.argmax(axis=1)
        width = np.einsum("nkk->nk", cov).max(axis=1)
        out[2, rows] = (p * (1 - p)).sum(axis=1) * width**1.5

    for_blocks(write, len(Phi), max(Phi.shape[1] * 2, BLOCK_WIDTH * K * K))
    sample = np.ascontiguousarray(Phi[np.linspace(0, len(Phi) - 1, min(len(Phi), LINKED)).astype(int)])
    link = np.empty(len(sample))

    def compare(rows: slice) -> None:
        moments = both[0](sample[rows])
        link[rows] = np.abs(softmax_links.mean_field(*moments) - softmax_links.expected_softmax(*moments)).max(axis=1)

    for_blocks(compare, len(sample), moment_width(Phi.shape[1], K))
    return Survey(out[0], out[1], out[2], link)


def certify(laplace: GaussianPosterior, beyond: SoftmaxBeyond, rows: Floats, seen: Survey) -> Certificate:
    """Return the certificate of rows (k, m) of the design matrix from the survey of them.

    The distance of Laplace to the variational Gaussian is taken over all of them, what that leaves out over the most
    exposed and some others.
    """
    chosen = np.arange(len(rows))
    if len(rows) > 2 * JUDGED:
        exposed = np.argpartition(seen.size, -JUDGED)[-JUDGED:]
        chosen = np.union1d(exposed, np.linspace(0, len(rows) - 1, JUDGED).astype(int))
    return Certificate(seen.shift(), largest_change(beyond, rows[chosen]), VARIATIONAL)


def largest_change(beyond: SoftmaxBeyond, rows: Floats) -> float:
    """Return how much what is left out changes a probability of rows (k, m) at most, by skewness or by both parts."""
    with blas_threads(beyond.posterior.dim):
        skewed, widened = beyond.changes(rows)
    return float(np.maximum(np.abs(skewed), np.abs(skewed + widened)).max(initial=0.0))


def judge_softmax(
    target: SoftmaxTarget, laplace: GaussianPosterior
) -> tuple[GaussianPosterior, Propagation, SoftmaxRowCertificate]:
    """Return the variational Gaussian, what it says of Laplace's on the training rows, and a certificate for new rows.

    `ConvergenceError` if the passes do not settle.
    """
    posterior = softmax_variational(target, laplace)
    seen = survey(laplace, posterior, target, target.Phi)
    beyond = SoftmaxBeyond.of(posterior, target, seen.size)
    return posterior, *conclude(laplace, beyond, certify(laplace, beyond, target.Phi, seen))


def conclude(
    laplace: GaussianPosterior, beyond: SoftmaxBeyond, certified: Certificate
) -> tuple[Propagation, SoftmaxRowCertificate]:
    """Return what a certificate of all training rows says of Laplace, and what is kept to judge new rows by."""
    posterior, change = beyond.posterior, beyond.evidence_change
    evidence = Propagation(
        replace(certified.shift, which="training"),
        certified.cert,
        *certified.estimate,
        log_evidence=float(posterior.log_evidence + change),
        log_evidence_error=change,
        passes=posterior.info.n_iter,
        method="variational",
    )
    rows = SoftmaxRowCertificate(laplace, posterior, beyond.covariance_root, certified.gap, beyond.K, beyond.reference)
    return evidence, rows
