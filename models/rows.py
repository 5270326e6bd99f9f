"""Rows in models whose log density does not go through them one by one.

    p(x, y=k | θ) = π_k p(x | y=k, θ),   p(x | θ) = Σ_k p(x, y=k | θ),   p(y=k | x, θ) = p(x, y=k | θ) / p(x | θ)

The log density of all rows is a sum over sufficient statistics, or over the distinct values of a column: a gradient
then costs as much for a million rows as for a hundred. What PyMC asks of single rows it asks of two observed variables:
`x`, with the density p(x | θ), and `y`, with the probability p(y | x, θ). Their product is the same likelihood, and `y`
means what it means in a regression, so that `az.compare` sets like beside like. `y` is drawn for the rows in the
container `X`, which `pm.set_data` replaces by new ones.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.tensor import TensorVariable

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import has_gaps
from bayes_gda.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows as a PyMC model holds them.

    Parameters
    ----------
    X, y
        (n, d) rows and (n,) their classes.
    dim
        Name of the d columns.
    """

    X: Floats
    y: NDArray[np.intp]
    dim: str = "feature"

    @property
    def observed(self) -> NDArray[np.bool_] | None:
        """Which values (n, d) were observed; None if there are no gaps."""
        return ~np.isnan(self.X) if has_gaps(self.X) else None


def log_probability(y: TensorVariable, terms: TensorVariable) -> TensorVariable:
    """Return log p(y=k | x) (n,) of classes (n,) from log π_j p(x | y=j) (n, K), with the digits of p near 1.

    −log(1 + Σ_{j≠k} e^{t_j − t_k}); a softmax would round what is near 0 to 0, in all draws, where `az.loo` fails.
    """
    own = pt.take_along_axis(terms, y[..., None], axis=-1)
    others = pt.switch(pt.eq(pt.arange(terms.shape[-1]), y[..., None]), -np.inf, terms - own)
    return -pt.softplus(pt.logsumexp(others, axis=-1))


class SummedModel(pm.Model):  # type: ignore[misc]  # PyMC ships no types
    """A PyMC model of rows whose log density has the sum over the rows in closed form.

    A copy that PyMC makes of it (`pm.do`, `freeze_model` and the like) goes through the rows: the same density, at a
    cost that grows with them.
    """

    # Parts of the log likelihood of all rows, by name; empty if it goes through the rows.
    summed: Mapping[str, TensorVariable] = MappingProxyType({})
    _learnt: Floats | None = None

    def logp(self, vars: Any = None, jacobian: bool = True, sum: bool = True) -> Any:
        """Return the log density, as `pm.Model.logp`; where all of it is summed, the rows enter by their sum."""
        if vars is not None or not sum or not self.summed:
            return super().logp(vars, jacobian, sum)
        self._require_rows()
        rest = super().logp([*self.free_RVs, *self.potentials], jacobian)
        total = pt.add(rest, *self.replace_rvs_by_values(list(self.summed.values())))
        total.name = rest.name
        return total

    def observe(
        self,
        sums: Mapping[str, TensorVariable],
        rows: Rows | None,
        parameters: Sequence[TensorVariable],
        *,
        log_density: Callable[..., TensorVariable],
        draw: Callable[..., TensorVariable],
    ) -> None:
        """Add the likelihood: its sums, and the variables `x` and `y` of the rows; call it in the model's context.

        Parameters
        ----------
        sums
            Parts of the log likelihood of all rows, by name.
        rows
            The rows. None has none to hold, and the sums become potentials. Rows with gaps (NaN) cannot be replaced:
            PyMC has no container for them.
        parameters
            The class shares (K,), and what the two functions take.
        log_density
            From k, rows (n, d) and the parameters after the first to log p(x | y=k, θ) (n,).
        draw
            From classes (n,) and these parameters to new rows (n, d).
        """
        if rows is None:
            for name, value in sums.items():
                pm.Potential(name, value)
            return
        self.summed, dims = dict(sums), ("row", rows.dim)
        if has_gaps(rows.X):
            self.add_coord("row", range(len(rows.X)))
            X = pt.constant(rows.X)
        else:
            X, self._learnt = pm.Data("X", rows.X, dims=dims), rows.X

        def log_terms(x: TensorVariable, pi: TensorVariable, *others: TensorVariable) -> TensorVariable:
            K = len(self.coords["class"])
            return pt.log(pi) + pt.stack([log_density(k, x, *others) for k in range(K)], axis=1)

        def log_marginal(x: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
            return pt.logsumexp(log_terms(x, *parameters), axis=1)

        def draw_rows(pi: TensorVariable, *others_and_size: Any) -> TensorVariable:
            *others, size = others_and_size
            return draw(pm.Categorical.dist(p=pi, size=size), *others)

        # pm.Categorical would take the logarithm of a probability that may have underflowed.
        pm.CustomDist(
            "y",
            log_terms(X, *parameters),
            logp=log_probability,
            dist=lambda terms, size: pm.Categorical.dist(logit_p=terms, size=size),
            observed=rows.y,
            dims="row",
            signature="(k)->()",
        )
        sizes: dict[str, Any] = {"ndim_supp": 1, "ndims_params": [variable.ndim for variable in parameters]}
        pm.CustomDist("x", *parameters, logp=log_marginal, dist=draw_rows, observed=X, dims=dims, **sizes)

    def _require_rows(self) -> None:
        """Raise if `pm.set_data` has replaced the rows that the sums are of."""
        if self._learnt is None:
            return
        rows = self["X"].get_value(borrow=True)
        if rows.shape != self._learnt.shape or not np.array_equal(rows, self._learnt):
            raise DataError(
                f"The log density is of the {len(self._learnt)} rows that the model was built from; pm.set_data has "
                f"put {len(rows)} others into `X`. Build a model of these, or one with rowwise=True."
            )
