"""Hand-written log densities in a PyMC model's unconstrained coordinates: the same functions as its graph, fused.

A graph of a Gaussian model has hundreds of nodes, whose compilation takes from seconds to minutes and dwarfs a fit. The
same log density and gradient are a dozen matrix products. `Parts` puts a density together from independent blocks of
coordinates, in the order of the model's variables; `Smoothed` adds the derivatives that Laplace's method needs.
Every method takes one point (dim,) or many (…, dim).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods import differences

# Where draws of a model that goes by its graph keep the unconstrained coordinates that they were made of.
COORDINATES = "unconstrained"


class LogDensity(Protocol):
    """A log density that can be taken of many points at once: all that importance sampling needs."""

    def log_density(self, w: Floats) -> Floats:
        """Return log p(w) up to a constant, () for one w (dim,), (S,) for S of them (S, dim)."""


class Smooth(LogDensity, Protocol):
    """One with two derivatives: all that the Laplace approximation needs."""

    @property
    def dim(self) -> int:
        """Length of w."""

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log p(w), its gradient (dim,) and H = −∂² log p (dim, dim)."""


class ThirdOrder(Smooth, Protocol):
    """One that also knows two contractions of its third derivatives T: what corrections of Laplace's method need."""

    def third_order_trace(self, w: Floats, V: Floats) -> Floats:
        """Return Σ_jk T_ijk V_jk (dim,)."""

    def third_order_form(self, w: Floats, h: Floats) -> Floats:
        """Return Σ_ijk T_ijk h_i h_j h_k, () for one direction h (dim,), (S,) for (S, dim)."""


class Block:
    """A block of coordinates of a density, with its share of the log posterior."""

    @property
    def independent(self) -> Sequence[NDArray[np.intp]]:
        """Groups of coordinates whose shares of log p do not depend on each other: differences take them at once."""
        return [np.arange(self.dim)]

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        raise NotImplementedError

    @property
    def start(self) -> Floats:
        """(dim,) a point near the mode."""
        raise NotImplementedError

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return this share of log p (…) and its gradient (…, dim) at W (…, dim)."""
        raise NotImplementedError

    def values(self, W: Floats) -> Floats:
        """Return this share of log p (…) alone, where that is cheaper than with the gradient."""
        return self.values_and_gradients(W)[0]

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return the model's variables (S, …) at S points (S, dim)."""
        raise NotImplementedError

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of the model's variables: the inverse of `variables`."""
        raise NotImplementedError

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log prior densities (S,) of the named parameters, positive ones by their logarithm.

        With respect to d log σ², |Σ|^{−(d+1)/2} dΣ and Π dπ_k/π_k: the same whether one thinks of a variance, a scale
        or a precision. For the conjugate priors the α-th power is then the prior of α times as many imagined rows,
        which is what power-scaling means to ask.
        """
        raise NotImplementedError

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return this share of each row's log likelihood (S, n): joint for generative models, else conditional."""
        raise NotImplementedError

    def total_log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return the log likelihood (S,) of all rows, each as often as it counts; some draws at a time."""
        weight = np.ones(rows.n) if rows.weight is None else rows.weight
        S = len(next(iter(variables.values())))
        totals = [
            self.log_likelihood({name: x[draws] for name, x in variables.items()}, rows) @ weight
            for draws in wide_blocks(S, rows.n * rows.d)
        ]
        return np.concatenate(totals)


class Density(Block):
    """A posterior in unconstrained coordinates, with the Jacobian; normalised as its model is."""


@dataclass(frozen=True, eq=False)
class Parts(Density):
    """A density whose coordinates fall into independent blocks: log p is the sum of theirs."""

    blocks: Sequence[Block]

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self._edges[-1]

    @property
    def start(self) -> Floats:
        """(dim,) a point near the mode."""
        return np.concatenate([block.start for block in self.blocks])

    @cached_property
    def _edges(self) -> list[int]:
        return list(accumulate((block.dim for block in self.blocks), initial=0))

    @property
    def independent(self) -> Sequence[NDArray[np.intp]]:
        """Groups of independent coordinates: those of the blocks."""
        return [i + group for i, block in zip(self._edges, self.blocks, strict=False) for group in block.independent]

    def _split(self, W: Floats) -> list[Floats]:
        return [W[..., i:j] for i, j in pairwise(self._edges)]

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return log p (…) and its gradient (…, dim) at W (…, dim)."""
        results = [block.values_and_gradients(part) for block, part in zip(self.blocks, self._split(W), strict=True)]
        value = sum((value for value, _ in results), np.zeros(()))
        return value, np.concatenate([gradient for _, gradient in results], axis=-1)

    def values(self, W: Floats) -> Floats:
        """Return log p (…) at W (…, dim)."""
        parts = zip(self.blocks, self._split(W), strict=True)
        return np.asarray(sum((block.values(part) for block, part in parts), np.zeros(())))

    def variables(self, W: Floats) -> dict[str, Floats]:
        """Return the model's variables (S, …) at S points (S, dim)."""
        out: dict[str, Floats] = {}
        for block, part in zip(self.blocks, self._split(W), strict=True):
            out |= block.variables(part)
        return out

    def coordinates(self, variables: Mapping[str, Floats]) -> Floats:
        """Return the points (S, dim) of draws of the model's variables."""
        return np.hstack([block.coordinates(variables) for block in self.blocks])

    def log_prior(self, variables: Mapping[str, Floats]) -> dict[str, Floats]:
        """Return the log prior densities (S,) of the named parameters."""
        out: dict[str, Floats] = {}
        for block in self.blocks:
            out |= block.log_prior(variables)
        return out

    def log_likelihood(self, variables: Mapping[str, Floats], rows: Dataset) -> Floats:
        """Return the joint log likelihood (S, n) of every row."""
        return np.asarray(sum(block.log_likelihood(variables, rows) for block in self.blocks))


@dataclass(frozen=True, slots=True, eq=False)
class Smoothed:
    """A density with the higher derivatives of Laplace's method and its checks, by differences of the gradient."""

    density: Density

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return self.density.dim

    def log_density(self, w: Floats) -> Floats:
        """Return log p, () for one w (dim,), (S,) for S of them (S, dim)."""
        return self.density.values(np.asarray(w))

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log p, its gradient (dim,) and H = −∂² log p (dim, dim)."""
        value, gradient = self.density.values_and_gradients(w)
        return float(value), gradient, differences.precision(self._gradients, w, self.density.independent)

    def third_order_trace(self, w: Floats, V: Floats) -> Floats:
        """Return Σ_jk ∂³ log p/∂wᵢ∂w_j∂w_k V_jk (dim,)."""
        return differences.third_order_trace(self._gradients, w, V, self.density.independent)

    def third_order_form(self, w: Floats, h: Floats) -> Floats:
        """Return Σ_ijk ∂³ log p/∂wᵢ∂w_j∂w_k hᵢh_jh_k, () for one direction h (dim,), (S,) for (S, dim)."""
        return differences.third_order_form(self._gradients, w, h)

    def _gradients(self, W: Floats) -> Floats:
        return self.density.values_and_gradients(W)[1]
