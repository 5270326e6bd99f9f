"""Regressions batch by batch: the Gaussian after one batch is the prior of the next, assumed-density filtering."""

from dataclasses import dataclass, field

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.families.linear.logistic import GaussianTerms
from bayes_gda.families.linear.mode import RegressionTarget
from bayes_gda.methods.laplace import GaussianPosterior


@dataclass(frozen=True, slots=True, eq=False)
class FilteredTarget:
    """The log posterior after one more batch, with the Gaussian found before it as the prior (a `Target`).

        log p(y_t, w) = log p(y_t | w) + log N(w | ŵ_{t−1}, H_{t−1}⁻¹)

    Parameters
    ----------
    batch
        The target of the batch alone, under a flat prior, which adds nothing.
    before
        The Gaussian posterior of all batches before.
    """

    batch: RegressionTarget
    before: GaussianPosterior
    gaussian: GaussianTerms = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.before.dim != self.batch.dim:
            raise DataError(f"The posterior has {self.before.dim} weights, the batch {self.batch.dim}.")
        L = self.before.chol_precision
        # log √|2πH⁻¹| = (m/2) log 2π − log|L|
        log_normalizer = 0.5 * len(L) * np.log(2 * np.pi) - np.log(np.diag(L)).sum()
        object.__setattr__(self, "gaussian", GaussianTerms(self.before.mean, L @ L.T, float(log_normalizer)))

    @property
    def dim(self) -> int:
        """Length of the weight vector w."""
        return self.batch.dim

    def log_density(self, w: Floats) -> Floats:
        """Return log p(y_t, w | batches before), () for one w (dim,), (S,) for S of them (S, dim)."""
        w = np.asarray(w, dtype=np.float64)
        return self.batch.log_likelihood(w) + self.gaussian.log_density(w)

    def log_likelihood(self, w: Floats) -> Floats:
        """Return log p(y_t | w), () for one w (dim,), (S,) for S of them (S, dim)."""
        return self.batch.log_likelihood(w)

    def gradient(self, w: Floats) -> Floats:
        """Return ∂ log p/∂w (dim,)."""
        return self.batch.gradient(w) + self.gaussian.gradient(w)

    def precision(self, w: Floats) -> Floats:
        """Return minus the Hessian (dim, dim)."""
        return self.batch.precision(w) + self.gaussian.precision

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log density, gradient and precision in one pass over the batch."""
        value, g, H = self.batch.value_gradient_precision(w)
        terms = self.gaussian
        return value + float(terms.log_density(w)), g + terms.gradient(w), H + terms.precision

    def third_order_trace(self, w: Floats, V: Floats) -> Floats:
        """Return Σ_jk ∂³ log p/∂wᵢ∂w_j∂w_k V_jk (dim,); a Gaussian adds nothing."""
        return self.batch.third_order_trace(w, V)

    def third_order_form(self, w: Floats, h: Floats) -> Floats:
        """Return Σ_ijk ∂³ log p/∂wᵢ∂w_j∂w_k hᵢh_jh_k; a Gaussian adds nothing."""
        return self.batch.third_order_form(w, h)
