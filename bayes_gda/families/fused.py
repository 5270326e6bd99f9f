"""What a generative family gets that brings a hand-written density: mode, draws and evidence without PyMC's graph.

Its variables are `pi` and those of the classes; the density stands on simplex coordinates of π and a block of the rest.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.families.base import Family
from bayes_gda.families.drawn import DrawnModel
from bayes_gda.families.gaussian.densities import ClassBlock
from bayes_gda.linalg import one_blas_thread
from bayes_gda.methods.density import COORDINATES, Block, Parts, Smoothed, ThirdOrder
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.prediction.fitted import FittedModel


@dataclass(frozen=True, eq=False)
class FusedFamily(Family):
    """A generative family with a hand-written density of its classes.

    Parameters
    ----------
    data, prior
        As every family has them.
    alpha
        (K,) Dirichlet parameters of the class shares.
    """

    alpha: Floats = field(repr=False, kw_only=True)

    kind = "generative"

    def block(self) -> Block:
        """Return the density of all but the class shares, with its start near the mode."""
        raise NotImplementedError

    @cached_property
    def density(self) -> Parts:
        """The log posterior in the coordinates of the PyMC model."""
        weight = np.ones(self.data.n) if self.data.weight is None else self.data.weight
        return Parts([ClassBlock(np.bincount(self.data.y, weight, self.data.K), self.alpha), self.block()])

    @cached_property
    def target(self) -> ThirdOrder:
        """The log posterior with its derivatives."""
        return Smoothed(self.density)

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode: Newton's method from where the block starts."""
        with one_blas_thread():
            return laplace_approximation(self.target, self.density.start)

    def from_coordinates(self, w: Floats) -> FittedModel:
        """Return the model with draws (S, dim) of unconstrained coordinates."""
        return self.from_variables(self.density.variables(w) | {COORDINATES: w})

    def sampled_evidence(self, model: FittedModel, chains: int) -> tuple[float, float]:
        """Return the evidence by the bridge from the draws."""
        assert isinstance(model, DrawnModel)
        return self.bridge_evidence(self.density.coordinates(model.draws), chains)


def joint_terms(
    variables: Mapping[str, Floats], X: Floats, log_density: Callable[[Mapping[str, Floats], Floats, int], Floats]
) -> Floats:
    """Return log π_k p(x | y=k, θ_s) (S, n, K), of a function from draws, rows and k to log p(x | y=k, θ_s) (S, n)."""
    S, K = variables["pi"].shape
    out = np.empty((S, len(X), K))
    with np.errstate(divide="ignore"):  # of a class that a draw takes for impossible
        log_pi = np.log(variables["pi"])
    with one_blas_thread():
        for k in range(K):
            out[:, :, k] = log_density(variables, X, k) + log_pi[:, k, None]
    return out


def choose(shares: Floats, rng: np.random.Generator) -> NDArray[np.intp]:
    """Draw a class (S,) for each row of shares (S, K), by the inverse of their cumulative distribution."""
    # The last class takes what rounding leaves.
    return np.asarray((rng.random((len(shares), 1)) > np.cumsum(shares, axis=1)[:, :-1]).sum(axis=1))
