"""Expectation propagation for logistic regression: passes over the rows, in blocks and threads.

A row with s successes and f failures (after weighting) has two kinds of factors, σ(a) and σ(−a). A count c ≥ 1 stands
for c copies of one factor, each with its own site and cavity: a row of weight 2 gives what two rows give. A count c < 1
is one factor σ(±a)ᶜ. So the sites of a kind are one site with power min(c, 1) and multiplicity max(c, 1).
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.families.linear.ep.sites import expand, match, update
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.linalg import (
    gram,
    in_threads,
    linear_and_quadratic,
    one_blas_thread,
    parts,
    row_blocks,
    solve_triangular,
)
from bayes_gda.methods.ep.propagation import TOLERANCE, SiteSums, expectation_propagation
from bayes_gda.methods.laplace import GaussianPosterior

# Up to so many rows the sites are kept between passes, two numbers each. With more, variances are small but for a few
# rows, and a site is found from the moments of its activation alone: memory stays flat, and rows may come in chunks.
STORED_ROWS = 100_000


def logistic_ep(
    target: LogisticTarget, start: GaussianPosterior, *, tolerance: float = TOLERANCE
) -> tuple[GaussianPosterior, "LogisticSites"]:
    """Return the Gaussian of expectation propagation for a logistic regression, and its sites.

    Parameters
    ----------
    target
        Rows, labels or counts, weights and prior.
    start
        Its Laplace approximation.
    tolerance
        See `methods.ep.propagation`.

    Raises
    ------
    ConvergenceError
        If the passes do not settle. It carries the last Gaussian.
    """
    sites = LogisticSites(target, stored=target.n <= STORED_ROWS)
    return expectation_propagation(sites, target.gaussian, start, tolerance=tolerance), sites


def chunk_sums(target: LogisticTarget, mean: Floats, root: Floats) -> SiteSums:
    """Return the site sums of some rows of a table: a pass is their sum over all chunks."""
    return LogisticSites(target, stored=False)(mean, root)


class Kind(NamedTuple):
    """Factors of one sign for some rows, (b,) each, and their sites τ and ν (2, b) of the last pass, or None."""

    sign: Floats
    power: Floats
    multiplicity: Floats
    kept: Floats | None


class RowSites(NamedTuple):
    """Sums over the sites of each row, (b,) each: Στ, Σslope, Σlog_ratio, Σu₃, Σu₃²."""

    tau: Floats
    slope: Floats
    log_ratio: Floats
    third: Floats
    third_squared: Floats


class Thirds(NamedTuple):
    """Σu₃ and Σu₃² over the sites of each row, mean and variance of its activation, (n,) each; max |Σu₃|√v/Στ."""

    third: Floats
    squared: Floats
    mean: Floats
    variance: Floats
    largest: float


@dataclass(slots=True, eq=False)
class LogisticSites:
    """The sites of a logistic regression: a `Pass` of expectation propagation.

    Parameters
    ----------
    target
        Rows, labels or counts, and weights; its prior has no part in the sums.
    stored
        Whether sites are kept between passes, which also converges where variances are large.
    """

    target: LogisticTarget
    stored: bool
    # Whether some row has successes and failures both, so that there are two kinds of sites.
    mixed: bool = field(init=False)
    kept: Floats | None = field(init=False, default=None)  # (kinds, 2, n) τ and ν

    def __post_init__(self) -> None:
        s, f = self.target.successes, self.target.failures
        self.mixed = self.target.trials is not None and bool(((s > 0) & (f > 0)).any())

    def __call__(self, mean: Floats, root: Floats, damping: float = 1.0) -> SiteSums:
        """Return the sums over new sites, given N(mean, root rootᵀ); kept ones move by the share `damping`."""
        n, m = self.target.Phi.shape
        first = self.stored and self.kept is None
        if first:
            self.kept = np.empty((1 + self.mixed, 2, n))

        def sums(part: slice) -> tuple[Floats, Floats, float]:
            precision, gradient, log_ratio = np.zeros((m, m)), np.zeros(m), 0.0
            for rows in row_blocks(part.stop, m, start=part.start):
                Phi = self.target.Phi[rows]
                sites = self._sites(rows, *linear_and_quadratic(Phi, mean, root), damping, first)
                precision += gram(Phi * np.sqrt(sites.tau)[:, None])
                gradient += sites.slope @ Phi
                log_ratio += float(sites.log_ratio.sum())
            return precision, gradient, log_ratio

        pieces = parts(n, m)
        with one_blas_thread() if len(pieces) > 1 else nullcontext():
            precision, gradient, log_ratio = (sum(x) for x in zip(*in_threads(sums, pieces), strict=True))
        return SiteSums(precision, gradient, log_ratio + self.target.log_coefficient)

    def third_derivatives(self, posterior: GaussianPosterior) -> "Thirds":
        """Return what the Gaussian leaves out of each row's sites."""
        third, squared, mean, variance = (np.empty(self.target.n) for _ in range(4))
        largest = 0.0
        for rows, _, mu, v in activations(self.target.Phi, posterior):
            sites = self.at(rows, mu, v)
            third[rows], squared[rows], mean[rows], variance[rows] = sites.third, sites.third_squared, mu, v
            # A site without precision, as of a row without weight, has no third derivative either.
            ratio = np.abs(sites.third) * np.sqrt(v) / np.where(sites.tau > 0, sites.tau, np.inf)
            largest = max(largest, float(ratio.max(initial=0.0)))
        return Thirds(third, squared, mean, variance, largest)

    def at(self, rows: slice, mu: Floats, v: Floats) -> RowSites:
        """Return the sites of a block of rows given the moments of their activations; kept ones stay as they are."""
        return self._sites(rows, mu, v, 0.0, False)

    def _sites(self, rows: slice, mu: Floats, v: Floats, damping: float, first: bool) -> RowSites:
        """Return the sites of a block of rows, and move the kept ones."""
        totals = np.zeros((5, len(mu)))
        for sign, power, multiplicity, kept in self._kinds(rows):
            if kept is None:
                site = match(mu, v, sign, power)
            else:
                if first:  # as Laplace has them
                    laplace = expand(mu, np.zeros(len(mu)), sign, power)
                    kept[0], kept[1] = laplace.tau, laplace.slope + laplace.tau * mu
                site = update(mu, v, kept[0], kept[1], sign, power)
                kept[0] += damping * (site.tau - kept[0])
                kept[1] += damping * (site.slope + site.tau * mu - kept[1])
            for total, value in zip(totals, (*site, site.third**2), strict=True):
                total += multiplicity * value
        return RowSites(*totals)

    def _kinds(self, rows: slice) -> Iterator[Kind]:
        s, f = self.target.successes[rows], self.target.failures[rows]
        ones = np.ones(len(s))
        kinds = [(ones, s), (-ones, f)] if self.mixed else [(np.where(s > 0, 1.0, -1.0), s + f)]
        for k, (sign, count) in enumerate(kinds):
            kept = None if self.kept is None else self.kept[k, :, rows]
            yield Kind(sign, np.minimum(count, 1.0), np.maximum(count, 1.0), kept)


def activations(Phi: Floats, posterior: GaussianPosterior) -> Iterator[tuple[slice, Floats, Floats, Floats]]:
    """Yield rows, Φ, and the mean and variance of their activations, block by block."""
    root = solve_triangular(posterior.chol_precision, np.eye(posterior.dim)).T
    for rows in row_blocks(*Phi.shape):
        yield rows, Phi[rows], *linear_and_quadratic(Phi[rows], posterior.mean, root)
