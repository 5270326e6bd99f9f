"""Priors: small frozen objects that check themselves, say why their default is what it is, and can be drawn from.

For Gaussian discriminant analysis

    NIW        Σ ~ IW(Ψ, ν),           μ_k | Σ ~ N(m, Σ/κ)             conjugate, LDA and QDA
    NIG        σ²_j ~ IG(a_j, b_j),    μ_kj | σ² ~ N(m_j, σ²_j/κ_j)    conjugate, naive Gaussian
    LKJ        Σ = diag(s) R diag(s),  s_j ~ N⁺(0, scale_j²), R ~ LKJ(η), μ_kj ~ N(m_j, mean_scale_j²)
    Dirichlet  π ~ Dir(α)

and for the weights of logistic and softmax regression

    Normal             w ~ N(m₀, S₀), flat where the scale is infinite
    HierarchicalScale  τ ~ N⁺(0, scale²),  w_j | τ ~ N(0, τ²) for the slopes
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy import stats
from scipy.special import betaln

from bayes_gda.checks import Floats, covariance, finite, frozen, positive, positive_number, vector
from bayes_gda.data.moments import Moments
from bayes_gda.errors import PriorError

# Prior weight of the class means, in rows. One hundredth of a row lets class means lie some ten within-class standard
# deviations from the common centre, which covers the best separated of our examples (iris: 5.4) without being flat.
DEFAULT_KAPPA = 0.01

Seed = int | np.random.Generator | None


@contextmanager
def _within_floats() -> Iterator[None]:
    """Say in our own words that draws overflow, or that a variance among them underflows."""
    try:
        with np.errstate(over="raise", divide="raise", invalid="raise"):
            yield
    except (FloatingPointError, np.linalg.LinAlgError):
        raise PriorError("Draws of this prior leave the range of floats. Give scales nearer to 1.") from None


@dataclass(frozen=True, slots=True, eq=False)
class NIW:
    """Normal-inverse-Wishart: Σ ~ IW(Ψ, ν), μ | Σ ~ N(m, Σ/κ); E[Σ] = Ψ/(ν − d − 1).

    Parameters
    ----------
    m
        (d,) centre of the class means.
    kappa
        Weight of `m`, in rows of data.
    Psi
        (d, d) scale matrix, symmetric positive definite.
    nu
        Degrees of freedom, greater than d − 1.
    """

    m: Floats
    kappa: float
    Psi: Floats
    nu: float

    def __post_init__(self) -> None:
        Psi = finite("Psi", self.Psi)
        Psi = covariance("Psi", Psi if Psi.ndim else Psi[None, None])
        d = len(Psi)
        m = frozen(vector("m", finite("m", self.m), d))
        nu = positive_number("nu", self.nu)
        if nu - d + 1 <= 0:  # also if it exceeds d − 1 by less than rounding
            raise PriorError(f"`nu` must exceed d - 1 = {d - 1} for {d} features; got {nu:g}.")
        _store(self, m=m, kappa=positive_number("kappa", self.kappa), Psi=Psi, nu=nu)

    @classmethod
    def default(cls, moments: Moments) -> Self:
        """Weakly informative, on the scale of the data.

        E[Σ] is the diagonal of the pooled within-class covariance: the data set the units, and no correlation is
        assumed. ν = d + 2 is the smallest whole number for which that mean exists, so the prior weighs as little as it
        can. m is the mean of all rows, and κ = 0.01 leaves the class means free.
        """
        center, variance = _center_and_variance(moments)
        d = len(center)
        return cls(m=center, kappa=DEFAULT_KAPPA, Psi=np.diag(variance), nu=d + 2.0)

    @_within_floats()
    def draw(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `mu` (size, d) and `Sigma` (size, d, d)."""
        rng = np.random.default_rng(random_seed)
        d = len(self.m)
        Sigma = stats.invwishart(self.nu, self.Psi).rvs(size, random_state=rng).reshape(size, d, d)
        noise = np.linalg.cholesky(Sigma) @ rng.standard_normal((size, d, 1))
        return {"mu": self.m + noise[..., 0] / np.sqrt(self.kappa), "Sigma": Sigma}


@dataclass(frozen=True, slots=True, eq=False)
class NIG:
    """Normal-inverse-gamma per feature: σ² ~ IG(a, b), μ | σ² ~ N(m, σ²/κ); E[σ²] = b/(a − 1).

    The one-dimensional NIW with ν = 2a and Ψ = 2b.

    Parameters
    ----------
    m, kappa, a, b
        (d,) or scalar; at least one must be a vector so that d is known.
    """

    m: Floats
    kappa: Floats
    a: Floats
    b: Floats

    def __post_init__(self) -> None:
        parts = {"m": finite("m", self.m)} | {name: positive(name, getattr(self, name)) for name in ("kappa", "a", "b")}
        d = max(part.size for part in parts.values())
        _store(self, **{name: frozen(vector(name, part, d)) for name, part in parts.items()})

    @classmethod
    def default(cls, moments: Moments) -> Self:
        """The NIW default, feature by feature: E[σ²] is the pooled within-class variance, worth 2a = 3 rows."""
        center, variance = _center_and_variance(moments)
        return cls(m=center, kappa=frozen(DEFAULT_KAPPA), a=frozen(1.5), b=frozen(variance / 2))

    @_within_floats()
    def draw(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `mu` and `sigma2`, both (size, d)."""
        rng = np.random.default_rng(random_seed)
        shape = (size, len(self.m))
        sigma2 = self.b / rng.gamma(self.a, size=shape)
        return {"mu": self.m + np.sqrt(sigma2 / self.kappa) * rng.standard_normal(shape), "sigma2": sigma2}


@dataclass(frozen=True, slots=True, eq=False)
class Dirichlet:
    """π ~ Dir(α) for the class probabilities.

    Parameters
    ----------
    alpha
        (K,) or a scalar for all classes. The default 1 is uniform over the simplex: one imagined row in each class.
    """

    alpha: Floats = field(default_factory=lambda: frozen(1.0))

    def __post_init__(self) -> None:
        alpha = positive("alpha", self.alpha)
        if alpha.ndim > 1:
            raise PriorError(f"`alpha` must be a number or a vector, one entry a class; got shape {alpha.shape}.")
        _store(self, alpha=alpha)

    def vector(self, K: int) -> Floats:
        """Return α as a vector of length K."""
        return frozen(vector("alpha", self.alpha, K))

    @_within_floats()
    def draw(self, size: int, K: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `pi` (size, K)."""
        return {"pi": np.random.default_rng(random_seed).dirichlet(self.vector(K), size=size)}


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
        _store(
            self,
            scale=frozen(vector("scale", scale, d)),
            m=frozen(vector("m", finite("m", self.m), d)),
            mean_scale=frozen(vector("mean_scale", positive("mean_scale", self.mean_scale), d)),
            eta=positive_number("eta", self.eta),
        )

    @classmethod
    def default(cls, moments: Moments) -> Self:
        """Weakly informative: scales of 2, class means of 10 pooled within-class standard deviations (as the NIW)."""
        center, variance = _center_and_variance(moments)
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

    @_within_floats()
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


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """w ~ N(m₀, S₀) for the weights of logistic and softmax regression (there, for each class's row of weights).

    Parameters
    ----------
    mean
        (m,) or a scalar.
    scale
        (m,) or scalar standard deviations; inf is flat. Leave it out if `covariance` is given.
    covariance
        (m, m) full covariance S₀.
    """

    mean: Floats = field(default_factory=lambda: frozen(0.0))
    scale: Floats | None = None
    covariance: Floats | None = None

    def __post_init__(self) -> None:
        if (self.scale is None) == (self.covariance is None):
            raise PriorError(
                "Normal needs either `scale` or `covariance`, not both or none. Example: Normal(scale=2.5)."
            )
        if self.covariance is not None:
            S = covariance("covariance", self.covariance)
            _store(self, mean=frozen(vector("mean", finite("mean", self.mean), len(S))), covariance=S)
        else:
            assert self.scale is not None
            _store(self, mean=finite("mean", self.mean), scale=positive("scale", self.scale, infinite=True))

    @classmethod
    def default(cls, m: int, *, prior_scale: float = 2.5, intercept_scale: float = 5.0) -> Self:
        """For m weights on standardised features, the intercept first.

        A slope of 2.5 per standard deviation, or between the values of a feature that has two, takes a probability from
        .5 to .92: larger effects are rare, and the prior keeps the posterior proper under perfect separation (after
        Gelman et al. 2008, with normal in place of Cauchy tails). The intercept is twice as free: sd 5 on the
        log-odds admits base rates of 1 in 10 000.
        """
        slope = positive_number("prior_scale", prior_scale, infinite=True)
        intercept = positive_number("intercept_scale", intercept_scale, infinite=True)
        return cls(scale=frozen([intercept, *[slope] * (m - 1)]))

    @property
    def is_proper(self) -> bool:
        """Whether the density can be normalised: no scale is infinite."""
        return self.scale is None or bool(np.isfinite(self.scale).all())

    def mean_vector(self, m: int) -> Floats:
        """Return m₀ (m,)."""
        return vector("mean", self.mean, m)

    def scale_vector(self, m: int) -> Floats:
        """Return the marginal standard deviations (m,)."""
        if self.covariance is not None:
            return vector("covariance", np.sqrt(np.diag(self.covariance)), m)
        assert self.scale is not None
        return vector("scale", self.scale, m)

    def precision(self, m: int) -> Floats:
        """Return S₀⁻¹ (m, m); a flat direction has zeros."""
        if self.covariance is not None:
            vector("covariance", np.diag(self.covariance), m)
            with np.errstate(over="ignore", invalid="ignore"):
                # A positive definite matrix may still be singular to rounding, or too small to be inverted.
                P = _inverse(self.covariance)
                return _check_precision((P + P.T) / 2)
        with np.errstate(over="ignore"):
            return _check_precision(np.diag(self.scale_vector(m) ** -2.0))

    def log_normalizer(self, m: int) -> float:
        """Return log √|2πS₀| over the proper directions, so that log p(w) = −½(w−m₀)ᵀS₀⁻¹(w−m₀) − this."""
        if self.covariance is not None:
            log_det = np.linalg.slogdet(self.covariance)[1]
            return float(0.5 * (m * np.log(2 * np.pi) + log_det))
        scale = self.scale_vector(m)
        return float(np.sum(np.log(scale[np.isfinite(scale)]) + 0.5 * np.log(2 * np.pi)))

    @_within_floats()
    def draw(self, size: int, m: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `w` (size, m)."""
        if not self.is_proper:
            raise PriorError("A flat prior cannot be drawn from. Give Normal a finite `scale`.")
        z = np.random.default_rng(random_seed).standard_normal((size, m))
        if self.covariance is not None:
            vector("covariance", np.diag(self.covariance), m)
            return {"w": self.mean_vector(m) + z @ np.linalg.cholesky(self.covariance).T}
        return {"w": self.mean_vector(m) + z * self.scale_vector(m)}


@dataclass(frozen=True, slots=True, eq=False)
class HierarchicalScale:
    """τ ~ N⁺(0, scale²), slopes w_j | τ ~ N(0, τ²), intercept ~ N(0, intercept_scale²): the data choose the shrinkage.

    Parameters
    ----------
    scale
        Scale of the half-normal hyperprior. The default 2.5 is the fixed default of the slopes: τ is then below 5 with
        probability .95, and a τ near 0 (no feature matters) stays possible.
    intercept_scale
        Standard deviation of the intercept, which is not shrunk with the slopes.
    """

    scale: float = 2.5
    intercept_scale: float = 5.0

    def __post_init__(self) -> None:
        _store(
            self,
            scale=positive_number("scale", self.scale),
            intercept_scale=positive_number("intercept_scale", self.intercept_scale),
        )

    @_within_floats()
    def draw(self, size: int, m: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `tau` (size,) and `w` (size, m), the intercept first."""
        rng = np.random.default_rng(random_seed)
        tau = self.scale * np.abs(rng.standard_normal(size))
        w = rng.standard_normal((size, m)) * tau[:, None]
        w[:, 0] = self.intercept_scale * rng.standard_normal(size)
        return {"tau": tau, "w": w}


def _inverse(S: Floats) -> Floats:
    try:
        return np.linalg.inv(S)
    except np.linalg.LinAlgError:
        return np.full_like(S, np.inf)


def _check_precision(P: Floats) -> Floats:
    if not np.isfinite(P).all():
        raise PriorError("The prior is too narrow: its precision leaves the range of floats. Use other units.")
    return P


def _center_and_variance(moments: Moments) -> tuple[Floats, Floats]:
    """Mean of all rows (d,) and pooled within-class variances (d,), the units that the default priors are set in."""
    center = moments.count @ moments.mean / moments.count.sum()
    variance = np.diagonal(moments.scatter.sum(axis=0)) / moments.count.sum()
    if not (variance > 0).all():
        j = int(np.argmin(variance > 0))
        raise PriorError(
            f"Feature {j} does not vary within any class, so the default prior has no scale for it. "
            "Drop the feature or give `prior`."
        )
    return frozen(center), frozen(variance)


def _store(prior: object, **values: object) -> None:
    """Set the cleaned values of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(prior, name, value)
