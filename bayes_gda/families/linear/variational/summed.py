"""The certificate of a softmax regression whose rows are summed over, in batches or on a cluster.

One pass compares Laplace with the variational Gaussian on all rows. It keeps the rows that are most exposed, and a
sample in proportion to what each may contribute to what that Gaussian leaves out. The sample is by priorities, which
needs no total beforehand and may be taken of each chunk and then of what they kept: row i has the priority
qᵢ = sizeᵢ/uᵢ with u uniform, the k largest are kept, and each stands for max(sizeᵢ, q_{k+1})/sizeᵢ rows. Sums over it
are unbiased.

References
----------
Duffield, Lund and Thorup (2007), "Priority sampling for estimation of arbitrary subset sums".
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.families.linear.ep.certificate import Certificate
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.beyond import SUMMED_ROWS, SoftmaxBeyond
from bayes_gda.families.linear.variational.certificate import JUDGED, Survey, conclude, largest_change, survey
from bayes_gda.families.linear.variational.row_certificate import SoftmaxRowCertificate
from bayes_gda.linalg import blas_threads
from bayes_gda.methods.ep.certificate import SKETCH_SEED, VARIATIONAL
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.verdict import PredictionShift, Propagation

# Sums what it is given of the rows: of a part of them as a `SoftmaxTarget` under a flat prior.
type Ask = Callable[[Callable[[SoftmaxTarget], Any]], Any]


class Kept(NamedTuple):
    """Some rows Phi (k, m) of the design matrix, what each may contribute (k,), and by what they were kept (k,)."""

    Phi: Floats
    size: Floats
    rank: Floats

    def joined(self, other: "Kept", most: int) -> "Kept":
        """Return those of both that rank highest."""
        return Kept(*map(np.concatenate, zip(self, other, strict=True))).top(most)

    def top(self, most: int) -> "Kept":
        """Return the `most` that rank highest."""
        order = np.argsort(-self.rank, kind="stable")[:most]
        return Kept(self.Phi[order], self.size[order], self.rank[order])


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What a look at some rows sums up.

    Parameters
    ----------
    rows, flips
        How many there are, and of how many Laplace and the variational Gaussian name different classes.
    gap, link
        Largest distances of Laplace's probabilities to the variational ones, and of the mean-field link to the exact
        one.
    exposed, sample
        The rows that skewness can change most, and those drawn by priority, one more than are summed over.
    """

    rows: int
    flips: int
    gap: float
    link: float
    exposed: Kept
    sample: Kept

    def __add__(self, other: "Seen") -> "Seen":
        return Seen(
            self.rows + other.rows,
            self.flips + other.flips,
            max(self.gap, other.gap),
            max(self.link, other.link),
            self.exposed.joined(other.exposed, JUDGED),
            self.sample.joined(other.sample, SUMMED_ROWS + 1),
        )

    def drawn(self, most: int = SUMMED_ROWS) -> tuple[Floats, Floats]:
        """Return the rows to be summed over (b, m), all or `most`, and how many each stands for (b,)."""
        Phi, size, priority = self.sample
        if self.rows <= most:
            return Phi, np.ones(len(Phi))
        return Phi[:most], np.maximum(size[:most], priority[most]) / size[:most]


def look(target: SoftmaxTarget, *, laplace: GaussianPosterior, better: GaussianPosterior) -> Seen:
    """Look at some rows."""
    with blas_threads(better.dim):
        seen = survey(laplace, better, target, target.Phi)
    size = np.maximum(seen.size, 1e-300)
    # Other numbers for each chunk, and the same ones on each pass.
    rng = np.random.default_rng([SKETCH_SEED, zlib.crc32(np.ascontiguousarray(target.Phi[:16]).tobytes())])
    priority = size / (1 - rng.random(len(size)))
    exposed, sample = (Kept(target.Phi, size, rank) for rank in (size, priority))
    return Seen(
        target.n,
        int(seen.flips.sum()),
        float(seen.change.max()),
        float(seen.link.max()),
        exposed.top(JUDGED),
        sample.top(SUMMED_ROWS + 1),
    )


def judge_summed(
    ask: Ask, K: int, laplace: GaussianPosterior, posterior: GaussianPosterior, spread: SoftmaxTarget
) -> tuple[Propagation, SoftmaxRowCertificate]:
    """Return what the variational Gaussian and its certificate say of Laplace on all rows, and one for new rows.

    Parameters
    ----------
    ask
        Sums over the rows, one pass a call.
    K
        Number of classes.
    laplace, posterior
        The Gaussians: Laplace's and the variational one.
    spread
        Some rows, for the typical change and to be judged beside the exposed ones.
    """
    seen: Seen = ask(partial(look, laplace=laplace, better=posterior))
    beyond = SoftmaxBeyond(posterior, K, False, *seen.drawn())
    typical = survey(laplace, posterior, spread, spread.Phi)
    rows = np.concatenate([seen.exposed.Phi, spread.Phi[np.linspace(0, spread.n - 1, JUDGED).astype(int)]])
    certified = Certificate(_shift(seen, typical), largest_change(beyond, rows), VARIATIONAL)
    return conclude(laplace, beyond, certified)


def _shift(seen: Seen, typical: Survey) -> PredictionShift:
    gap, link = (
        min(float(np.quantile(x, 0.95)), most) for x, most in ((typical.change, seen.gap), (typical.link, seen.link))
    )
    return PredictionShift(seen.gap, gap, seen.gap, gap, seen.link, link, seen.flips / seen.rows, 0.0, rows=seen.rows)
