"""Training on rows with missing values: point estimates by EM, and the naive model's exact posterior.

Values are taken to be missing at random: whether one is missing may depend on the class and on what was observed, but
not on the value itself. Then p(X_observed, y | θ) is all that the data say of θ.

EM raises it step by step. With the groups, A and C of `patterns`, the missing part is filled in by its expectation,

    x̂ = μ + A(x̄ − μ),   Ŝ = A S Aᵀ + n C,

and μ and Σ are estimated from the completed moments as if nothing were missing. Each step sets out from the best means
given Σ, which have a closed form that needs no filling in; without it, a mean of which little was observed would creep
(an ECME algorithm: it rises as EM does, and faster). The naive model needs no EM: its
likelihood is a product over features, in which a missing value does not appear. Its conjugate posterior stays exact,
with a count for each feature. The posterior of LDA and QDA has no closed form; `augmentation` draws from it.

References
----------
Dempster, Laird & Rubin (1977), Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39.
Little & Rubin (2019), Statistical Analysis with Missing Data, 3rd edition, chapter 11.
Liu & Rubin (1994), The ECME algorithm, Biometrika 81.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.gaps import PatternMoments, check_gapped, moments_by_feature
from bayes_gda.data.moments import Moments
from bayes_gda.errors import ConvergenceError, DataError, PriorError
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior, naive_posterior
from bayes_gda.priors import NIG, NIW, Dirichlet

# EM stops when no mean moves by more standard deviations than this, and no covariance by more products of two. It
# closes in by a constant factor a step; at a factor of .99, with most values missing, what remains is 1e-7.
TOLERANCE = 1e-9
# At a factor of .99 the tolerance takes some 2000 steps.
MAX_ITER = 5000
# Smallest eigenvalue of an estimated correlation matrix; below, the likelihood has no maximum and EM creeps to it.
SINGULAR = 1e-8


@dataclass(frozen=True, slots=True, eq=False)
class EMInfo:
    """How EM went.

    Parameters
    ----------
    n_iter
        Steps taken.
    converged
        Whether the last step was below the tolerance.
    log_density
        (n_iter + 1,) log p(X_observed, y | θ) at the start and after each step, plus log p(μ, Σ) up to a constant if
        there is a prior. It never falls.
    """

    n_iter: int
    converged: bool
    log_density: Floats


@dataclass(frozen=True, slots=True, eq=False)
class PointEstimate:
    """Parameters of K Gaussians, as `prediction.discriminant.Gaussians` takes them.

    Parameters
    ----------
    pi
        (K,) class probabilities.
    mu
        (K, d) class means.
    Sigma
        (d, d) shared covariance, or (K, d, d) one per class.
    info
        How they were found; None if in closed form.
    """

    pi: Floats
    mu: Floats
    Sigma: Floats
    info: EMInfo | None = None

    def __post_init__(self) -> None:
        for name in ("pi", "mu", "Sigma"):
            object.__setattr__(self, name, frozen(getattr(self, name)))


# ── LDA and QDA, by EM ──────────────────────────────────────────────────────────────────────────────────────────────


def maximum_likelihood(
    data: PatternMoments, *, shared: bool, max_iter: int = MAX_ITER, tolerance: float = TOLERANCE
) -> PointEstimate:
    """Maximise log p(X_observed, y | θ): the plug-in estimate of LDA (`shared` covariance) or QDA.

    Parameters
    ----------
    data
        Moments by pattern.
    shared
        Whether all classes have one covariance.
    max_iter, tolerance
        Steps at most, and the step size, in standard deviations, at which to stop.
    """
    _check_observed(data)
    problem = _Problem(data, data.class_count / data.class_count.sum(), shared)
    mu, variance = _available(data)
    try:
        point = _em(problem, (mu, _spread(variance, data.K, shared)), max_iter, tolerance)
    except np.linalg.LinAlgError:
        raise _singular() from None
    sd = np.sqrt(np.diagonal(point.Sigma, axis1=-2, axis2=-1))
    if np.linalg.eigvalsh(point.Sigma / sd[..., :, None] / sd[..., None, :]).min() < SINGULAR:
        raise _singular()
    return _converged(point)


def maximum_posterior(
    data: PatternMoments,
    prior: NIW,
    class_prior: Dirichlet | None = None,
    *,
    shared: bool,
    max_iter: int = MAX_ITER,
    tolerance: float = TOLERANCE,
) -> PointEstimate:
    """Maximise log p(X_observed, y | θ) + log p(μ, Σ): the MAP estimate of LDA (`shared` covariance) or QDA.

    The mode is that of the density of (μ, Σ) as they stand: with completed data μ = m' and Σ = Ψ'/(ν' + d + 1 + c),
    where c classes share Σ. π, which does not depend on what is missing, is its mean E[π], as in the predictive.

    Parameters
    ----------
    data
        Moments by pattern.
    prior, class_prior
        Of means and covariances; of the class shares, by default uniform.
    shared, max_iter, tolerance
        As in `maximum_likelihood`.
    """
    begin = prior_of(data, prior, class_prior, shared=shared)
    alpha = begin.alpha + data.used_count
    mu, variance = _available(data)
    mu = np.where(data.values > 0, mu, prior.m)
    # Where nothing varies in the data, the prior has the scale.
    variance = np.where(variance > 0, variance, np.diag(prior.Psi) / prior.nu)
    problem = _Problem(data, alpha / alpha.sum(), shared, begin)
    return _converged(_em(problem, (mu, _spread(variance, data.K, shared)), max_iter, tolerance))


def prior_of(data: PatternMoments, prior: NIW, class_prior: Dirichlet | None = None, *, shared: bool) -> NIWPosterior:
    """Return the state before the data, but for the rows without any value, which only the class shares know of."""
    if len(prior.m) != data.d:
        raise PriorError(f"`prior` has {len(prior.m)} features, `X` has {data.d}. Give one entry a feature.")
    begin = NIWPosterior.from_prior(prior, class_prior or Dirichlet(), data.K, shared=shared)
    return replace(begin, alpha=begin.alpha + (data.class_count - data.used_count))


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """What EM maximises: the likelihood, times the prior of means and covariances if there is one."""

    data: PatternMoments
    pi: Floats
    shared: bool
    prior: NIWPosterior | None = None

    @property
    def sharing(self) -> int:
        """Number of class means that stand on one covariance."""
        return self.data.K if self.shared else 1

    def best_means(self, Sigma: Floats) -> Floats:
        """Return the means (K, d) of highest density for given covariances."""
        Sigma = np.broadcast_to(Sigma, (self.data.K, self.data.d, self.data.d))
        Q, h = self.data.mean_information(Sigma)
        if self.prior is not None:
            P = self.prior.kappa[:, None, None] * np.linalg.inv(Sigma)
            Q, h = Q + P, h + (P @ self.prior.m[..., None])[..., 0]
        return np.asarray(np.linalg.solve(Q, h[..., None])[..., 0])

    def estimate(self, center: Floats, scatter: Floats) -> tuple[Floats, Floats]:
        """Return means and covariances of highest density for completed moments."""
        n = self.data.used_count
        if self.prior is None:
            return center, scatter.sum(axis=0) / n.sum() if self.shared else scatter / n[:, None, None]
        posterior = self.prior.update(Moments(n, center, scatter))
        Sigma = posterior.Psi / (posterior.nu + self.data.d + 1 + self.sharing)[:, None, None]
        return posterior.m, Sigma[0] if self.shared else Sigma

    def log_density(self, mu: Floats, Sigma: Floats) -> float:
        """Return log p(X_observed, y | θ) + log p(μ, Σ), the latter up to a constant."""
        log_likelihood = float(self.data.log_likelihood(self.pi, mu, Sigma))
        if self.prior is None:
            return log_likelihood
        # log p(μ, Σ) = −½(ν + d + 1 + c) log|Σ| − ½ tr Σ⁻¹(Ψ + Σ_k κ_k (μ_k − m)(μ_k − m)ᵀ), summed over covariances
        delta = mu - self.prior.m
        squares = self.prior.kappa[:, None, None] * delta[:, :, None] * delta[:, None, :]
        inner = self.prior.Psi + (squares.sum(axis=0) if self.shared else squares)
        trace = np.trace(np.linalg.solve(Sigma, inner), axis1=-2, axis2=-1)
        weight = self.prior.nu + self.data.d + 1 + self.sharing
        return log_likelihood - 0.5 * float(np.sum(weight * np.linalg.slogdet(Sigma)[1] + trace))


def _em(problem: _Problem, start: tuple[Floats, Floats], max_iter: int, tolerance: float) -> PointEstimate:
    """Complete the moments and estimate from them, until the step is small."""
    data, (mu, Sigma) = problem.data, start
    scatter = data.scatter
    trace, converged = [problem.log_density(mu, Sigma)], False
    while not converged and len(trace) <= max_iter:
        mu_g, Sigma_g = data.in_groups(problem.best_means(Sigma), Sigma)
        A, C = data.regress(Sigma_g)
        completed = mu_g + (A @ (data.mean - mu_g)[..., None])[..., 0]
        spread = A @ scatter @ np.swapaxes(A, 1, 2) + data.count[:, None, None] * C
        new_mu, new_Sigma = problem.estimate(*data.merge(completed, spread))
        sd = np.sqrt(np.diagonal(new_Sigma, axis1=-2, axis2=-1))
        move = np.abs((new_mu - mu) / sd).max()
        turn = np.abs((new_Sigma - Sigma) / sd[..., :, None] / sd[..., None, :]).max()
        mu, Sigma, converged = new_mu, new_Sigma, bool(max(move, turn) < tolerance)
        trace.append(problem.log_density(mu, Sigma))
    return PointEstimate(problem.pi, mu, Sigma, EMInfo(len(trace) - 1, converged, frozen(trace)))


def _converged(point: PointEstimate) -> PointEstimate:
    if point.info is not None and not point.info.converged:
        raise ConvergenceError(
            f"EM did not settle in {point.info.n_iter} steps: too little was observed together. Raise `max_iter`, or "
            "draw from the posterior.",
            point,
        )
    return point


def _available(data: PatternMoments) -> tuple[Floats, Floats]:
    """Means (K, d) and pooled within-class variances (d,) of the values at hand; zero where there are none."""
    values, mu, squares = data.by_feature()
    return mu, squares.sum(axis=0) / np.maximum(values.sum(axis=0), 1)


def _spread(variance: Floats, K: int, shared: bool) -> Floats:
    Sigma = np.diag(variance)
    return Sigma if shared else np.tile(Sigma, (K, 1, 1))


# ── Naive, in closed form ───────────────────────────────────────────────────────────────────────────────────────────


def naive_posterior_missing(
    X: ArrayLike, y: ArrayLike, K: int, prior: NIG, class_prior: Dirichlet | None = None
) -> NIGPosterior:
    """Return the exact posterior of the naive model; a missing value does not count for its feature.

    Parameters
    ----------
    X
        (n, d) features; NaN is a missing value.
    y
        (n,) class codes in 0…K−1.
    K
        Number of classes.
    prior, class_prior
        Of means and variances; of the class shares, by default uniform.
    """
    X, y, class_prior = check_gapped(X), np.asarray(y), class_prior or Dirichlet()
    if len(prior.m) != X.shape[1]:
        raise PriorError(f"`prior` has {len(prior.m)} features, `X` has {X.shape[1]}. Give one entry a feature.")
    alone = [
        naive_posterior(moments, NIG(*(part[j : j + 1] for part in (prior.m, prior.kappa, prior.a, prior.b))))
        for j, moments in enumerate(moments_by_feature(X, y, K))
    ]
    m, kappa, a, b = (np.hstack([getattr(feature, name) for feature in alone]) for name in ("m", "kappa", "a", "b"))
    # The evidence is a product over features and the classes; each part was found with the classes' beside it.
    features = sum(feature.log_evidence - _class_evidence(np.ones(K), feature.alpha - 1) for feature in alone)
    alpha, count = class_prior.vector(K), np.bincount(y, minlength=K).astype(np.float64)
    return NIGPosterior(m, kappa, a, b, alpha + count, float(features + _class_evidence(alpha, count)))


def maximum_likelihood_naive(X: ArrayLike, y: ArrayLike, K: int) -> PointEstimate:
    """Return the plug-in estimate of the naive model: mean and 1/n variance of the values of each class and feature."""
    X, y = check_gapped(X), np.asarray(y)
    parts = moments_by_feature(X, y, K)
    count = np.stack([part.count for part in parts], axis=1)
    if (count < 2).any():
        k, j = np.argwhere(count < 2)[0]
        raise DataError(
            f"Class {k} has {count[k, j]:g} values in column {j}; the plug-in estimate needs at least 2. Drop the "
            "column, or use the Bayesian model, whose prior fills in."
        )
    mu = np.hstack([part.mean for part in parts])
    variance = np.stack([part.scatter[:, 0, 0] for part in parts], axis=1) / count
    if not (variance > 0).all():
        k, j = np.argwhere(variance <= 0)[0]
        raise DataError(f"Column {j} does not vary in class {k}. Drop it, or use the Bayesian model.")
    return PointEstimate(np.bincount(y, minlength=K) / len(y), mu, variance[:, :, None] * np.eye(X.shape[1]))


def naive_mode(posterior: NIGPosterior) -> PointEstimate:
    """Return the MAP estimate of the naive model, μ = m and σ² = b/(a + 3/2), with E[π] for the class shares."""
    variance = posterior.b / (posterior.a + 1.5)
    eye = np.eye(variance.shape[1])
    return PointEstimate(posterior.alpha / posterior.alpha.sum(), posterior.m, variance[:, :, None] * eye)


def _class_evidence(alpha: Floats, count: Floats) -> float:
    """log p(y) of class counts under Dirichlet(α) shares."""
    return float(
        gammaln(alpha + count).sum() - gammaln(alpha).sum() + gammaln(alpha.sum()) - gammaln((alpha + count).sum())
    )


def _check_observed(data: PatternMoments) -> None:
    if (data.values == 0).any():
        k, j = np.argwhere(data.values == 0)[0]
        raise DataError(
            f"Class {k} has no values in column {j}, so maximum likelihood knows no mean for it. Drop the column, or "
            "use the Bayesian model, whose prior fills in."
        )


def _singular() -> DataError:
    return DataError(
        "EM: the estimated covariance is singular, as with collinear features or too few values. Drop features, or use "
        "the Bayesian model, whose prior keeps it regular."
    )
