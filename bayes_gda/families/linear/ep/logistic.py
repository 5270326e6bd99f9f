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
from bayes_gda.families.linear.ep.sites import SMALL, expand, match, update
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.linalg import (
    block_rows,
    for_blocks,
    gram,
    in_threads,
    linear_and_quadratic,
    one_blas_thread,
    parts,
    row_blocks,
    solve_triangular,
)
from bayes_gda.methods.ep.propagation import TOLERANCE, Prior, SiteSums, expectation_propagation
from bayes_gda.methods.laplace import GaussianPosterior

# Up to so many rows the sites are kept between passes, two numbers each. With more, variances are small but for a few
# rows, and a site is found from the moments of its activation alone: memory stays flat, and rows may come in chunks.
STORED_ROWS = 100_000
# The mean is settled by the expansion for small variances, where none is above this: there its slopes are off by less
# than .01, and the pass that follows has the exact ones. Gradients at most, and the length of a step in posterior
# standard deviations at which they stop: each leaves some tenth of the one before.
SETTLED_VARIANCE = 0.5
MAX_GRADIENTS, SETTLED_LENGTH = 6, TOLERANCE / 10


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
    settle = sites.settle if sites.stored else None
    return expectation_propagation(sites, target.gaussian, start, settle=settle, tolerance=tolerance), sites


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
    # Mean and variance (n,) of the activations at the start, and the variances under the covariance of a root.
    start: tuple[Floats, Floats] | None = field(init=False, default=None)
    variance: Floats | None = field(init=False, default=None)
    root: Floats | None = field(init=False, default=None)
    # (n,) what the slopes of the last pass have beyond the expansion for small variances; 0 before.
    beyond: Floats | float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        s, f = self.target.successes, self.target.failures
        self.mixed = self.target.trials is not None and bool(((s > 0) & (f > 0)).any())

    def __call__(self, mean: Floats, root: Floats, damping: float = 1.0) -> SiteSums:
        """Return the sums over new sites, given N(mean, root rootᵀ); kept ones move by the share `damping`."""
        n, m = self.target.Phi.shape
        first = self.stored and self.kept is None
        if first:
            self.kept = np.empty((1 + self.mixed, 2, n))
        known = self.variance if root is self.root else None

        def sums(part: slice) -> tuple[Floats, Floats, float]:
            precision, gradient, log_ratio = np.zeros((m, m)), np.zeros(m), 0.0
            scaled = np.empty((min(n, block_rows(m)), m))
            for rows in row_blocks(part.stop, m, start=part.start):
                Phi = self.target.Phi[rows]
                mu, v = linear_and_quadratic(Phi, mean, root) if known is None else (Phi @ mean, known[rows])
                sites = self._sites(rows, mu, v, damping, first)
                if isinstance(self.beyond, np.ndarray):
                    self.beyond[rows] = sites.slope - self._expanded_slope(rows, mu, v)
                precision += gram(np.multiply(Phi, np.sqrt(sites.tau)[:, None], out=scaled[: len(Phi)]))
                gradient += sites.slope @ Phi
                log_ratio += float(sites.log_ratio.sum())
            return precision, gradient, log_ratio

        pieces = parts(n, m)
        with one_blas_thread() if len(pieces) > 1 else nullcontext():
            precision, gradient, log_ratio = (sum(x) for x in zip(*in_threads(sums, pieces), strict=True))
        return SiteSums(precision, gradient, log_ratio + self.target.log_coefficient)

    def settle(self, mean: Floats, root: Floats, prior: Prior) -> Floats:
        """Return where the gradient nearly vanishes while the variances stay those of root rootᵀ, which are kept."""
        mu, v = moments_of_rows(self.target.Phi, mean, root)
        if self.start is None:
            self.start = mu, v
        self.variance, self.root = v, root
        if (widest := v.max(initial=0.0)) > SETTLED_VARIANCE:
            return mean
        last = np.inf
        for _ in range(MAX_GRADIENTS):
            g = prior.gradient(mean)
            for rows in row_blocks(*self.target.Phi.shape):
                Phi = self.target.Phi[rows]
                slope = self._expanded_slope(rows, Phi @ mean, v[rows])
                g += (slope + (self.beyond[rows] if isinstance(self.beyond, np.ndarray) else 0.0)) @ Phi
            step = root.T @ g
            length = float(np.sqrt(step @ step))
            if not length < last:
                break
            mean, last = mean + root @ step, length
            if length < SETTLED_LENGTH:
                break
        if widest > SMALL and not isinstance(self.beyond, np.ndarray):
            self.beyond = np.zeros(len(v))
        return mean

    def _expanded_slope(self, rows: slice, mu: Floats, v: Floats) -> Floats:
        """Return Σslope (b,) over the sites of a block of rows, by the expansion."""
        kinds = self._kinds(rows)
        return sum(
            (kind.multiplicity * expand(mu, v, kind.sign, kind.power).slope for kind in kinds), np.zeros(len(mu))
        )

    def third_derivatives(self, posterior: GaussianPosterior) -> "Thirds":
        """Return what the Gaussian leaves out of each row's sites."""
        n, m = self.target.Phi.shape
        root = solve_triangular(posterior.chol_precision, np.eye(posterior.dim)).T
        third, squared, mean, variance, ratio = (np.empty(n) for _ in range(5))

        def look(rows: slice) -> None:
            mu, v = linear_and_quadratic(self.target.Phi[rows], posterior.mean, root)
            sites = self.at(rows, mu, v)
            third[rows], squared[rows], mean[rows], variance[rows] = sites.third, sites.third_squared, mu, v
            # A site without precision, as of a row without weight, has no third derivative either.
            ratio[rows] = np.abs(sites.third) * np.sqrt(v) / np.where(sites.tau > 0, sites.tau, np.inf)

        for_blocks(look, n, m)
        return Thirds(third, squared, mean, variance, float(ratio.max(initial=0.0)))

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


def moments_of_rows(Phi: Floats, mean: Floats, root: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance (n,) of the activations of rows (n, m) under N(mean, root rootᵀ)."""
    mu, v = np.empty(len(Phi)), np.empty(len(Phi))

    def look(rows: slice) -> None:
        mu[rows], v[rows] = linear_and_quadratic(Phi[rows], mean, root)

    for_blocks(look, *Phi.shape)
    return mu, v
