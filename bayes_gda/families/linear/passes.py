"""The regressions on a table that is summed over, in batches or on a cluster: one pass a Newton step.

sample    one pass: a random part, held in memory; it sets the feature map, the start and the proposal's mean
Newton    two or three passes from that start
verdict   one pass: the log density of all draws over all rows; a second one only where the first will not do, and a
          third to refine a corrected posterior whose probabilities are rough
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from bayes_gda.checks import Floats
from bayes_gda.families.linear.chunked import ChunkedTarget, Summed, chunked_laplace
from bayes_gda.families.linear.classifier import RegressionClassifier
from bayes_gda.families.linear.family import Linear
from bayes_gda.methods.density import ThirdOrder
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.priors import Normal


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

    def _fitted(self, **source: Any) -> RegressionClassifier:
        return replace(super()._fitted(**source), shares=self.count / self.count.sum())
