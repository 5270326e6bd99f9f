"""The regressions on a table that is summed over, in batches or on a cluster: one pass a Newton step.

    log p(y, w) = Σ_chunks log p(y_c | w) + log p(w)

and so are gradient, precision and third derivatives, each in one pass over the chunks. Where the chunks are, and
whether one or a thousand of them are summed at a time, is the business of the source.

sample    one pass: a random part, held in memory; it sets the feature map, the start and the proposal's mean
Newton    two or three passes from that start
verdict   expectation propagation for two classes, the Gaussian variational approximation for more: some three passes,
          and one or two for its certificate on all rows; where that is not enough, one pass for the log density of all
          draws over all rows, a second one only where the first will not do, and a third to refine a corrected
          posterior whose probabilities are rough
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import methodcaller
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError, DataError
from bayes_gda.families.linear.classifier import RegressionClassifier
from bayes_gda.families.linear.ep.logistic import chunk_sums
from bayes_gda.families.linear.ep.summed import judge_summed
from bayes_gda.families.linear.family import FLAT, Linear
from bayes_gda.families.linear.logistic import GaussianTerms, LogisticTarget
from bayes_gda.families.linear.mode import RegressionTarget, regression_laplace
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.sites import RepeatedPrior
from bayes_gda.families.linear.variational.sites import chunk_sums as softmax_sums
from bayes_gda.families.linear.variational.summed import judge_summed as judge_softmax_summed
from bayes_gda.methods.density import ThirdOrder
from bayes_gda.methods.ep.propagation import SiteSums, expectation_propagation
from bayes_gda.methods.ep.variational import variational_gaussian
from bayes_gda.methods.ladder import Propagated
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.priors import Normal

# Passes over a table beyond memory: two or three do where the rows are many; some ten where a few rows are extreme.
CHUNKED_PASSES = 15
Chunk = tuple[Floats, NDArray[np.intp]]


class Summed(Protocol):
    """Rows that can be summed over."""

    def sum[T](self, function: Callable[[Floats, NDArray[np.intp]], T]) -> T:
        """Return Σ function(X, y) over chunks X (n, d), y (n,) of all rows; the same rows each time."""


@dataclass(frozen=True, slots=True, eq=False)
class ChunkSum:
    """What is taken of one chunk: an answer of its likelihood. Of plain values, so that it can travel to a worker.

    Parameters
    ----------
    features
        The feature map, from X (n, d) to Φ (n, m).
    K
        Number of classes.
    answer
        What to take of the chunk's log likelihood, which adds.
    """

    features: Callable[[Floats], Floats]
    K: int
    answer: Callable[[RegressionTarget], Any]

    def __call__(self, X: Floats, y: NDArray[np.intp]) -> Any:
        """Return the answer of one chunk, without the prior."""
        return self.answer(_target(np.ascontiguousarray(self.features(X)), y, self.K, FLAT))


@dataclass(frozen=True, slots=True, eq=False)
class ChunkedTarget:
    """Log posterior of logistic (K = 2) or softmax regression over all rows of a source.

    Parameters
    ----------
    source
        The rows.
    features
        The feature map, from X (n, d) to Φ (n, m).
    m
        Columns of Φ.
    K
        Number of classes.
    prior
        Prior of the weights, for softmax of those of each class; proper.
    """

    source: Summed
    features: Callable[[Floats], Floats]
    m: int
    K: int
    prior: Normal
    gaussian: GaussianTerms = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if not self.prior.is_proper:
            raise DataError("`prior` must be proper where rows come in chunks. Give Normal a finite `scale`.")
        object.__setattr__(self, "gaussian", GaussianTerms.of(self.prior, self.m))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of weights, one for logistic regression and K for softmax, and m."""
        return (1 if self.K == 2 else self.K), self.m

    @property
    def dim(self) -> int:
        """Length of w, the rows of weights one after the other."""
        return self.shape[0] * self.m

    def of_rows(self, Phi: Floats, y: NDArray[np.intp], *, weight: float | None = None) -> RegressionTarget:
        """Return the target of given rows in memory, with this prior; each counts `weight` times."""
        c = None if weight is None else np.full(len(Phi), weight)
        return _target(Phi, y, self.K, self.prior, c)

    def log_density(self, w: Floats) -> Floats:
        """Return log p(y, w), () for one w (dim,), (S,) for S of them (S, dim)."""
        W = np.reshape(w, (*np.shape(w)[:-1], *self.shape))
        return self.log_likelihood(w) + self.gaussian.log_density(W).sum(axis=-1)

    def log_likelihood(self, w: Floats) -> Floats:
        """Return log p(y | w), () for one w (dim,), (S,) for S of them (S, dim)."""
        return np.asarray(self._sum("log_likelihood", w))

    def gradient(self, w: Floats) -> Floats:
        """Return ∂ log p(y, w)/∂w (dim,)."""
        return np.asarray(self._sum("gradient", w) + self._prior_gradient(w))

    def precision(self, w: Floats) -> Floats:
        """Return H = −∂² log p(y, w)/∂w² (dim, dim)."""
        return self.value_gradient_precision(w)[2]

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log density, gradient and precision, in one pass over the chunks."""
        value, g, H = self._sum("value_gradient_precision", w)
        value += float(self.gaussian.log_density(np.reshape(w, self.shape)).sum())
        return value, g + self._prior_gradient(w), H + np.kron(np.eye(self.shape[0]), self.gaussian.precision)

    def third_order_trace(self, w: Floats, V: Floats) -> Floats:
        """Return Σ_jk ∂³ log p/∂wᵢ∂w_j∂w_k V_jk (dim,), for V (dim, dim)."""
        return np.asarray(self._sum("third_order_trace", w, V))

    def third_order_form(self, w: Floats, h: Floats) -> Floats:
        """Return Σ_ijk ∂³ log p/∂wᵢ∂w_j∂w_k hᵢh_jh_k, () for one direction h (dim,), (S,) for (S, dim)."""
        return np.asarray(self._sum("third_order_form", w, h))

    def _prior_gradient(self, w: Floats) -> Floats:
        return self.gaussian.gradient(np.reshape(w, self.shape)).ravel()

    def _sum(self, ask: str, *arguments: Floats) -> Any:
        return self.sum(methodcaller(ask, *arguments))

    def sum(self, answer: Callable[[Any], Any]) -> Any:
        """Sum an answer of the likelihoods of all chunks."""
        return self.source.sum(ChunkSum(self.features, self.K, answer))


def _target(Phi: Floats, y: NDArray[np.intp], K: int, prior: Normal, weight: Floats | None = None) -> RegressionTarget:
    if K == 2:
        return LogisticTarget(Phi, y.astype(np.float64), prior, weight)
    return SoftmaxTarget(Phi, y, K, prior, weight)


def chunked_laplace(target: ChunkedTarget, sample: Chunk | None = None, n: float = 0.0) -> GaussianPosterior:
    """Approximate the posterior by a Gaussian at its mode, in one pass a Newton step.

    Parameters
    ----------
    target
        The log posterior of all rows.
    sample
        A random part of the rows (Φ, y), held in memory, whose mode is the start; None starts at the origin, which
        takes some eight passes in place of two or three.
    n
        Rows altogether, for which those in `sample` stand.
    """
    start = None
    if sample is not None and len(sample[0]):
        Phi, y = sample
        start = regression_laplace(target.of_rows(Phi, y, weight=max(n, len(Phi)) / len(Phi))).mean
    return laplace_approximation(target, start)


def chunked_ep(target: ChunkedTarget, start: GaussianPosterior) -> GaussianPosterior:
    """Return the Gaussian of expectation propagation for a logistic regression on a table that is summed over.

    Parameters
    ----------
    target
        The log posterior of all rows, one pass a look; two classes.
    start
        Its Laplace approximation.

    Raises
    ------
    ConvergenceError
        If some row has an activation of such variance that its site must be kept between passes, or too many passes
        would be needed.
    """

    def site_pass(mean: Floats, root: Floats, _: float) -> SiteSums:
        return SiteSums(*target.sum(partial(chunk_sums, mean=mean, root=root)))

    return expectation_propagation(site_pass, target.gaussian, start, max_passes=CHUNKED_PASSES)


def chunked_variational(target: ChunkedTarget, start: GaussianPosterior) -> GaussianPosterior:
    """Return the Gaussian variational approximation of a softmax regression on a table that is summed over.

    Parameters
    ----------
    target
        The log posterior of all rows, one pass a look; more than two classes.
    start
        Its Laplace approximation.

    Raises
    ------
    ConvergenceError
        If too many passes would be needed.
    """

    def site_pass(mean: Floats, root: Floats, _: float) -> SiteSums:
        return SiteSums(*target.sum(partial(softmax_sums, mean=mean, root=root)))

    prior = RepeatedPrior(target.gaussian, target.K)
    return variational_gaussian(site_pass, prior, start, max_passes=CHUNKED_PASSES)


@dataclass(frozen=True, eq=False)
class InPasses(Linear):
    """A regression on all rows of a table that is summed over, here or on a cluster: every look at it is a pass.

    Parameters
    ----------
    data, prior, features, Phi
        A random part of the rows, held in memory: it sets the feature map, the start and the proposal's mean.
    source
        All rows.
    count
        (K,) rows of each class in all.
    """

    source: Summed = field(repr=False, kw_only=True)
    count: Floats = field(repr=False, kw_only=True)

    @property
    def binary(self) -> bool:  # type: ignore[override]  # by its classes
        """Whether it is logistic regression."""
        return self.data.K == 2

    @classmethod
    def of(cls, part: Linear, source: Summed, count: Floats) -> Self:
        """Return the model of all rows whose feature map and prior are those of a part of them."""
        part.require_gaussian_prior()
        return cls(part.data, part.prior, features=part.features, Phi=part.Phi, source=source, count=count)

    @cached_property
    def target(self) -> ThirdOrder:
        """The log posterior of all rows, one pass a look."""
        assert isinstance(self.prior, Normal)
        return ChunkedTarget(self.source, self.features, self.Phi.shape[1], self.data.K, self.prior)

    @property
    def third_order(self) -> ThirdOrder:
        """The part for all rows: a proposal need not be exact, as its draws are weighed, and a pass is saved."""
        target = self.target
        assert isinstance(target, ChunkedTarget)
        return target.of_rows(self.Phi, self.data.y, weight=self.cost_rows / len(self.Phi))

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode, from the part's mode in two or three passes."""
        target = self.target
        assert isinstance(target, ChunkedTarget)
        return chunked_laplace(target, (self.Phi, self.data.y), float(self.count.sum()))

    @property
    def cost_rows(self) -> int:
        """Rows of the table."""
        return int(self.count.sum())

    @property
    def single_look(self) -> bool:
        """A look is a pass over the table."""
        return True

    @property
    def can_sample(self) -> bool:
        """There is no MCMC here: its thousands of gradients would each be a pass."""
        return False

    def propagate(self, gaussian: GaussianPosterior) -> Propagated | None:
        """Return the better Gaussian over all rows: by expectation propagation for two classes, else variational."""
        target = self.target
        assert isinstance(target, ChunkedTarget)
        spread = self.spread_rows
        try:
            if self.binary:
                posterior = chunked_ep(target, gaussian)
                judged = judge_summed(target.sum, self.cost_rows, gaussian, posterior, self.Phi[spread])
                return Propagated(posterior, *judged)
            posterior = chunked_variational(target, gaussian)
        except ConvergenceError:
            return None
        part = target.of_rows(self.Phi[spread], self.data.y[spread])
        assert isinstance(part, SoftmaxTarget)
        return Propagated(posterior, *judge_softmax_summed(target.sum, self.data.K, gaussian, posterior, part))

    def _fitted(self, **source: Any) -> RegressionClassifier:
        return replace(super()._fitted(**source), shares=self.count / self.count.sum())
