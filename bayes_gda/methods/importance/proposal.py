"""Proposals for importance sampling: from the Laplace approximation to something close to the posterior itself.

    split-t   w = location + A x,   x_j = (ε_j − b_j)/c_j,   ε = two half-normals of scales 1 + s_j (right) and 1 − s_j
              (left), all divided by √(χ²_ν/ν)

Mean-corrected (location), heavier-tailed (ν = 20) and skew-aware (s), with a density in closed form. The first one
comes from the third derivatives at the mode; each further one from the weighted draws of the one before, which costs a
matrix product and no derivative.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import gammaln

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.linalg import solve_triangular
from bayes_gda.methods.laplace import GaussianPosterior

# Degrees of freedom: heavy enough to keep the ratios bounded where the posterior's tail is longer than the Gaussian's,
# light enough to lose only 6 % of the draws where it is not (measured: 0.94 effective on pima).
DEGREES = 20.0
# The Laplace scale is that of the mode, and too small where the posterior is skewed: a little wider costs nothing, and
# keeps the ratios bounded. Breast-cancer with N(0, 1) weights, effective share at 1, 1.05, 1.1, 1.2 times the scale,
# means of four seeds: .36, .36, .35, .27.
INFLATION = 1.1
# A split-normal cannot follow a skewness beyond ±1; s = ±.6 is near it.
LARGEST_SKEW = 0.6


@dataclass(frozen=True, slots=True, eq=False)
class SplitT:
    """A skewed multivariate t.

    Parameters
    ----------
    location
        (m,) its mean.
    root
        (m, m) A, lower triangular: AAᵀ is the covariance of the Gaussian limit.
    skew
        (m,) s in (−1, 1), one for each axis of A.
    """

    location: Floats
    root: Floats
    skew: Floats

    @classmethod
    def from_laplace(cls, posterior: GaussianPosterior, mean: Floats) -> Self:
        """Start at the corrected mean with the Laplace covariance, a little wider, not skewed."""
        V = posterior.covariance
        return cls(mean, INFLATION * np.linalg.cholesky((V + V.T) / 2), np.zeros(posterior.dim))

    @classmethod
    def from_weighted(cls, w: Floats, weight: Floats) -> Self:
        """Match mean, covariance and the axes' skewness of weighted draws w (S, m), weights (S,) summing to one.

        A skewness that its own sampling error explains is shrunk away: k² / (k² + variance of k).
        """
        location = weight @ w
        centered = w - location
        covariance = centered.T @ (centered * weight[:, None])
        try:
            root = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            raise ConvergenceError(
                f"Too few effective draws ({1 / (weight**2).sum():.0f}) to adapt a proposal in {w.shape[1]} "
                "dimensions. Use MCMC."
            ) from None
        x = solve_triangular(root, centered.T).T
        k = weight @ x**3
        noise = 60.0 * (weight**2).sum()  # the variance of a mean of x³, 15 for a normal, taken four times over
        # A split normal of small s has skewness 1.6 s.
        skew = np.clip(k / 1.6 * k**2 / (k**2 + noise), -LARGEST_SKEW, LARGEST_SKEW)
        return cls(location, root, skew)

    def _standard(self) -> tuple[Floats, Floats]:
        """Mean b and standard deviation c of the split normal."""
        b = np.sqrt(8 / np.pi) * self.skew
        return b, np.sqrt(1 + 3 * self.skew**2 - b**2)

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw w (size, m) and return it with its log density (size,)."""
        m = len(self.location)
        e = np.abs(rng.standard_normal((size, m)))
        right = rng.random((size, m)) < (1 + self.skew) / 2
        e = np.where(right, (1 + self.skew) * e, -(1 - self.skew) * e)
        e *= np.sqrt(DEGREES / rng.chisquare(DEGREES, (size, 1)))
        b, c = self._standard()
        return self.location + ((e - b) / c) @ self.root.T, self._log_density(e)

    def log_density(self, w: Floats) -> Floats:
        """Return the log density at w (S, m)."""
        b, c = self._standard()
        x = solve_triangular(self.root, (w - self.location).T).T
        return self._log_density(b + c * x)

    def _log_density(self, e: Floats) -> Floats:
        m = len(self.location)
        y = e / np.where(e > 0, 1 + self.skew, 1 - self.skew)
        log_c = np.log(self._standard()[1]).sum() - np.log(np.diag(self.root)).sum()
        constant = gammaln((DEGREES + m) / 2) - gammaln(DEGREES / 2) - 0.5 * m * np.log(DEGREES * np.pi)
        square = np.einsum("ij,ij->i", y, y)
        out: Floats = constant + log_c - 0.5 * (DEGREES + m) * np.log1p(square / DEGREES)
        return out
