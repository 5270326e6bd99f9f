"""The LKJ prior of Gaussian discriminant analysis: scales and correlations apart."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import betaln

from bayes_gda.checks import Floats, finite, frozen, positive, positive_number, vector
from bayes_gda.data.moments import Moments
from bayes_gda.errors import PriorError
from bayes_gda.priors.distributions import DEFAULT_KAPPA, Seed, store, within_floats
from bayes_gda.priors.units import center_and_variance


@dataclass(frozen=True, slots=True, eq=False)
class LKJ:
    """Scales × correlations: Σ = diag(s) R diag(s), s_j ~ N⁺(0, scale_j²), R ~ LKJ(η); μ_kj ~ N(m_j, mean_scale_j²).

    Unlike the NIW it does not tie the class means to Σ, nor the certainty about scales to that about correlations.
    It has no closed form: MCMC is the truth there. The naive Gaussian model, which has no correlations, uses the rest.

    Parameters
    ----------
    scale
        (d,) scales of the half-normal prior of the standard deviations.
    m, mean_scale
        (d,) centre and standard deviation of the class means.
    eta
        1 is uniform over correlation matrices; larger values favour small correlations. The default 2 is mildly
        against correlations near ±1.

    Examples
    --------
    >>> from bayes_gda import LKJ
    >>> prior = LKJ(scale=[1.5, 1.5], m=[0.0, 0.0], mean_scale=[2.0, 2.0], eta=2.0)
    >>> prior.draw(3, random_seed=1)["Sigma"].shape
    (3, 2, 2)
    """

    scale: Floats
    m: Floats
    mean_scale: Floats
    eta: float = 2.0

    def __post_init__(self) -> None:
        scale = np.atleast_1d(positive("scale", self.scale))
        d = scale.size
        if d == 0:
            raise PriorError("`scale` must have an entry for each feature; got none.")
        store(
            self,
            scale=frozen(vector("scale", scale, d)),
            m=frozen(vector("m", finite("m", self.m), d)),
            mean_scale=frozen(vector("mean_scale", positive("mean_scale", self.mean_scale), d)),
            eta=positive_number("eta", self.eta),
        )

    @classmethod
    def default(cls, moments: Moments) -> Self:
        """Weakly informative: scales of 2, class means of 10 pooled within-class standard deviations (as the NIW)."""
        center, variance = center_and_variance(moments)
        sd = np.sqrt(variance)
        return cls(scale=frozen(2 * sd), m=center, mean_scale=frozen(sd / np.sqrt(DEFAULT_KAPPA)))

    @property
    def log_normalizer(self) -> float:
        """Minus log ∫|R|^{η−1} dR over the d × d correlation matrices (Lewandowski, Kurowicka & Joe 2009, eq. 16).

        At level k of the vine, k = 1…d−1, there are d − k partial correlations with the density of a Beta(β, β) on
        (−1, 1), β = η + (d − 1 − k)/2, whose normaliser is 2^{2β−1} B(β, β).
        """
        d = len(self.m)
        k = np.arange(1, d)
        beta = self.eta + (d - 1 - k) / 2
        return float(-np.sum((d - k) * ((2 * beta - 1) * np.log(2) + betaln(beta, beta))))

    @within_floats
    def draw(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `mu` (size, d) and `Sigma` (size, d, d).

        Correlations by canonical partial correlations: z_ij ~ 2 Beta(β_j, β_j) − 1, β_j = η + (d − 2 − j)/2
        (Lewandowski, Kurowicka & Joe 2009).
        """
        rng = np.random.default_rng(random_seed)
        d = len(self.m)
        L = np.zeros((size, d, d))
        L[:, 0, 0] = 1.0
        rest = np.ones((size, d))  # 1 − Σ_{l<j} L_il²
        for j in range(d):
            L[:, j, j] = np.sqrt(rest[:, j])
            beta = self.eta + (d - 2 - j) / 2
            if j < d - 1:
                z = 2 * rng.beta(beta, beta, size=(size, d - 1 - j)) - 1
                L[:, j + 1 :, j] = z * np.sqrt(rest[:, j + 1 :])
                rest[:, j + 1 :] *= 1 - z**2
        sd = self.scale * np.abs(rng.standard_normal((size, d)))
        L *= sd[:, :, None]
        mu = self.m + self.mean_scale * rng.standard_normal((size, d))
        return {"mu": mu, "Sigma": L @ np.swapaxes(L, 1, 2)}
