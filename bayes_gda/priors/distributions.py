"""Priors: small frozen objects that check themselves, say why their default is what it is, and can be drawn from.

For Gaussian discriminant analysis (LKJ stands in a file of its own)

    NIW        Σ ~ IW(Ψ, ν),           μ_k | Σ ~ N(m, Σ/κ)             conjugate, LDA and QDA
    NIG        σ²_j ~ IG(a_j, b_j),    μ_kj | σ² ~ N(m_j, σ²_j/κ_j)    conjugate, naive Gaussian
    Dirichlet  π ~ Dir(α)

and for the weights of logistic and softmax regression

    Normal             w ~ N(m₀, S₀), flat where the scale is infinite
    HierarchicalScale  τ ~ N⁺(0, scale²),  w_j | τ ~ N(0, τ²) for the slopes
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import Self

import numpy as np
from scipy import stats

from bayes_gda.checks import Floats, covariance, finite, frozen, positive, positive_number, vector
from bayes_gda.data.moments import Moments
from bayes_gda.errors import PriorError
from bayes_gda.priors.units import (
    center_and_variance,
    degrees_of_freedom,
    evident_scale,
    find_categories,
    independent_part,
    pooled_scatter,
)

# Prior weight of the class means, in rows. One hundredth of a row lets class means lie some ten within-class standard
# deviations from the common centre, which covers the best separated of our examples (iris: 5.4) without being flat.
DEFAULT_KAPPA = 0.01

# Degrees of freedom of the default beyond d: ν = d + 2 is the smallest whole number for which E[Σ] exists. As the scale
# is learnt, the choice hardly matters: ν = d gives the same log loss within .015 on our examples.
DEFAULT_FREEDOM = 2.0

Seed = int | np.random.Generator | None


def within_floats[**P](draw: Callable[P, dict[str, Floats]]) -> Callable[P, dict[str, Floats]]:
    """Let a method that draws say in our own words that draws overflow, or that a variance among them underflows."""

    @wraps(draw)
    def checked(*args: P.args, **kwargs: P.kwargs) -> dict[str, Floats]:
        return _finite_draws(lambda: draw(*args, **kwargs))

    return checked


def _finite_draws(draw: Callable[[], dict[str, Floats]]) -> dict[str, Floats]:
    """Draw; BLAS and LAPACK return inf and nan without a word, so that the draws themselves are looked at."""
    draws: dict[str, Floats] = {}
    with suppress(FloatingPointError, np.linalg.LinAlgError), np.errstate(all="raise", under="ignore"):
        draws = draw()
    if not draws or not all(np.isfinite(values).all() for values in draws.values()):
        raise PriorError("Draws of this prior leave the range of floats. Give scales nearer to 1.")
    return draws


def _is_zero(value: object) -> bool:
    """Return whether a value, of whatever kind, is a number or an array of zeros."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (OverflowError, TypeError, ValueError):
        return False
    return array.size > 0 and not array.any()


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
        Psi = Psi if Psi.ndim else Psi[None, None]
        if all(_is_zero(value) for value in (self.kappa, Psi, self.nu)):  # what `jeffreys` makes
            m = vector("m", finite("m", self.m), len(Psi))
            store(self, m=frozen(m), kappa=0.0, Psi=frozen(np.zeros((len(m), len(m)))), nu=0.0)
            return
        Psi = covariance("Psi", Psi)
        d = len(Psi)
        m = frozen(vector("m", finite("m", self.m), d))
        nu = positive_number("nu", self.nu)
        if nu - d + 1 <= 0:  # also if it exceeds d − 1 by less than rounding
            raise PriorError(f"`nu` must exceed d - 1 = {d - 1} for {d} features; got {nu:g}.")
        store(self, m=m, kappa=positive_number("kappa", self.kappa), Psi=Psi, nu=nu)

    @classmethod
    def default(cls, moments: Moments) -> Self:
        """Weakly informative: independent features in the units of the data, at a scale that the data choose.

        Ψ = s D, with D the pooled variances within classes and ν = d + 2. The data set the units and no correlation is
        assumed. The one number s is chosen by the evidence (empirical Bayes): the pooled scatter within classes,
        S ~ Wishart(Σ, f) with f = n − K, has the marginal density ∝ s^{dν/2} |sD + S|^{−(ν+f)/2}, whose maximum solves

            (ν + f) Σ_j s/(s + f r_j) = d ν,   r_j the eigenvalues of D⁻¹S/f, the correlation matrix within classes.

        Without correlations s = ν, so that E[Σ⁻¹] = D⁻¹: the prior adds ν degrees of freedom and as much scatter, and
        predictive tails keep their width. With s = 1 (E[Σ] = D) it would add the degrees of freedom with one row of
        scatter, and the tails would be too light. Strong correlations make s small, so that the prior does not fill in
        the narrow directions of Σ. m is the mean of all rows, and κ = 0.01 leaves the class means free.

        A prior that is invariant to all linear maps of the features must have Ψ ∝ S, which counts the same rows twice
        or, as s → 0, does not shrink at all; with few rows a feature both predict far worse. The default follows the
        units of each feature exactly, and rotations only approximately, the better the more rows there are. Columns
        that are the indicators of one category have a block in D that is the same whichever level is the reference.
        """
        center, _ = center_and_variance(moments)
        nu = len(center) + DEFAULT_FREEDOM
        S, f = pooled_scatter(moments), degrees_of_freedom(moments)
        D = independent_part(S / f, find_categories(moments))
        return cls(m=center, kappa=DEFAULT_KAPPA, Psi=evident_scale(S, D, f, nu) * D, nu=nu)

    @classmethod
    def jeffreys(cls, d: int) -> Self:
        """p(μ, Σ) ∝ |Σ|^{−(d+1)/2}: flat means and Jeffreys' prior of Σ, for d features. It is improper.

        The posterior is that of the sampling theory: Σ | D ~ IW(S, n − 1), for LDA IW(S, n − K), and the predictive is
        the distribution of Hotelling's T². It needs more than d rows in each class (LDA: n − K ≥ d), has no evidence,
        cannot be drawn from before the data, and is exact only: there is no PyMC model of it.
        """
        return cls(m=np.zeros(d), kappa=0.0, Psi=np.zeros((d, d)), nu=0.0)

    @property
    def is_proper(self) -> bool:
        """Whether the density can be normalised: it cannot for `jeffreys`."""
        return self.kappa != 0

    @within_floats
    def draw(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `mu` (size, d) and `Sigma` (size, d, d)."""
        _check_proper(self)
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
        m, rest = finite("m", self.m), ("kappa", "a", "b")
        if all(_is_zero(getattr(self, name)) for name in rest):  # what `jeffreys` makes
            parts = {"m": m} | {name: finite(name, getattr(self, name)) for name in rest}
        else:
            parts = {"m": m} | {name: positive(name, getattr(self, name)) for name in rest}
        d = max(part.size for part in parts.values())
        store(self, **{name: frozen(vector(name, part, d)) for name, part in parts.items()})

    @classmethod
    def default(cls, moments: Moments) -> Self:
        """The NIW default, feature by feature, where s = ν = 3: b = a σ̂² with a = 3/2, so that E[1/σ²] = 1/σ̂².

        σ̂² is the pooled variance within classes: the prior is worth 3 rows that have it.
        """
        center, variance = center_and_variance(moments)
        a = (1 + DEFAULT_FREEDOM) / 2
        return cls(m=center, kappa=frozen(DEFAULT_KAPPA), a=frozen(a), b=frozen(a * variance))

    @classmethod
    def jeffreys(cls, d: int) -> Self:
        """p(μ, σ²) ∝ 1/σ² for each of d features: improper, see `NIW.jeffreys`. Each class needs two rows."""
        return cls(*(frozen(np.zeros(d)) for _ in range(4)))

    @property
    def is_proper(self) -> bool:
        """Whether the density can be normalised: it cannot for `jeffreys`."""
        return bool((self.kappa != 0).all())

    @within_floats
    def draw(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `mu` and `sigma2`, both (size, d)."""
        _check_proper(self)
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
        store(self, alpha=alpha)

    def vector(self, K: int) -> Floats:
        """Return α as a vector of length K."""
        return frozen(vector("alpha", self.alpha, K))

    @within_floats
    def draw(self, size: int, K: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `pi` (size, K)."""
        return {"pi": np.random.default_rng(random_seed).dirichlet(self.vector(K), size=size)}


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
            store(self, mean=frozen(vector("mean", finite("mean", self.mean), len(S))), covariance=S)
        else:
            assert self.scale is not None
            store(self, mean=finite("mean", self.mean), scale=positive("scale", self.scale, infinite=True))

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

    @within_floats
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
        store(
            self,
            scale=positive_number("scale", self.scale),
            intercept_scale=positive_number("intercept_scale", self.intercept_scale),
        )

    @within_floats
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


def _check_proper(prior: NIW | NIG) -> None:
    if not prior.is_proper:
        raise PriorError(f"{type(prior).__name__}.jeffreys is improper and cannot be drawn from. Give a proper prior.")


def store(prior: object, **values: object) -> None:
    """Set the cleaned values of a frozen dataclass."""
    for name, value in values.items():
        object.__setattr__(prior, name, value)
