"""Class shares that differ between training and use: probabilities for new ones, and an estimate of them.

Only the shares of the classes change, not what the classes look like:

    p'(x | y) = p(x | y)   ⟹   p'(y=k | x) ∝ p(y=k | x) π'_k/π_k

For a generative model this is its joint with π replaced by π'; for a regression it moves the log odds by log π'/π. The
rule is the same for a draw θ of the parameters and for their posterior. It makes x informative about θ, of a regression
too: where the shares are π', rows have the density p'(x | θ) = p(x) Σ_k p(y=k | x, θ) π'_k/π_k, so that

    p'(y=k | x, D) = Σ_s w_s p'(y=k | x, θ_s),   w_s ∝ p'(x | θ_s),   is again ∝ p(y=k | x, D) π'_k/π_k

The average of the draws p'(y=k | x, θ_s) with equal weights is another number, and scores worse.

From unlabelled rows the new shares are estimated by maximum likelihood, with r_ik = p(y=k | x_i)/π_k:

    ℓ(π') = Σ_i log Σ_k r_ik π'_k,   concave;   ∂ℓ/∂π'_k ≤ n, with equality where π'_k > 0

EM comes near the maximum and slows down; Newton steps finish. They minimise −ℓ/n + Σ_k π'_k over π' ≥ 0, whose minimum
sums to one by itself, so each step is a small non-negative least-squares problem and zeros come out exact.

The r_ik are estimates themselves. With draws (θ_s, π_s) of the parameters and of the training shares,

    g_s = mean_i r_si/(r_siᵀπ̂')              score of π̂' under the draw, (∂ℓ/∂π')/n
    cov(π̂') = V + n²V cov_s(g_s) V           V: with the r_ik known
    2ℓ(π̂') ~ Σ_j λ_j χ²₁  if π' = π          λ: eigenvalues of I + nC⁻¹ cov_s(u_s),  u_s = E p_s(· | x) − π_s

where C is the covariance of p(· | x), and it and E are over rows with the old shares: those at hand, with the weights
`old_weights`. The law of the sum is taken for a scaled χ² with its mean and variance
(Satterthwaite; Rao and Scott for surveys). With 50 training and 1000 new rows λ is about 13, and the test that takes
the r_ik for known rejects shares that did not change in two of three cases.

References
----------
Saerens, Latinne & Decaestecker (2002), Adjusting the outputs of a classifier to new a priori probabilities, Neural
Computation 14.
Kim, Carbonetto, Stephens & Anitescu (2020), A fast algorithm for maximum likelihood estimation of mixture proportions
using sequential quadratic programming, J. Computational and Graphical Statistics 29.
Rao & Scott (1984), On chi-squared tests for multiway contingency tables with cell proportions estimated from survey
data, Annals of Statistics 12.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import nnls
from scipy.special import gammaincc

from bayes_gda.checks import Floats, finite, frozen, numbers, positive_number, whole
from bayes_gda.errors import ConvergenceError, DataError, PriorError
from bayes_gda.linalg import gram
from bayes_gda.prediction.normalised import log_class_probabilities

# Shares read from a file with six decimals still sum to one within this.
SUM_TOLERANCE = 1e-6
# EM steps before Newton's: they bring any start to where a quadratic model of ℓ is of use.
EM_STEPS = 10
# Added to the diagonal of the correlation-scaled Hessian of a step. It changes the way to the maximum, not the maximum.
RIDGE = 1e-10
# Rounding of a mean of logarithms, summed in pairs, in ulps.
ULPS = 8
# A correlation matrix with an eigenvalue below this cannot be told from a singular one in double precision.
SINGULAR = 1e-12


def reweigh(log_joint: ArrayLike, old_prior: ArrayLike, new_prior: ArrayLike) -> Floats:
    """Return log p'(y=k | x) (…, K) under new class shares: log p(y=k | x) + log π'_k/π_k, normalised.

    Parameters
    ----------
    log_joint
        (…, K) log p(x, y=k) or log p(y=k | x): what a row's entries have in common cancels.
    old_prior
        (K,) class shares π that `log_joint` stands on: E[π] of a generative posterior, α/Σα; for a regression the
        shares in its training data.
    new_prior
        (K,) class shares π' where it is used. A zero makes the class impossible.
    """
    log_p = _check_log(log_joint)
    return normalise_possible(log_p + log_share_ratio(old_prior, new_prior, log_p.shape[-1]), "under `new_prior`")


def log_share_ratio(old_prior: ArrayLike, new_prior: ArrayLike, K: int) -> Floats:
    """Return log π'_k/π_k (K,) for class shares that are checked; −inf where the new share is 0."""
    old, new = _check_prior("old_prior", old_prior, K), _check_prior("new_prior", new_prior, K)
    if ((old == 0) & (new > 0)).any():
        k = int(np.flatnonzero((old == 0) & (new > 0))[0])
        raise PriorError(
            f"`old_prior` must be positive where `new_prior` is; got 0 for class {k}. Train on rows of it."
        )
    with np.errstate(divide="ignore", invalid="ignore"):  # log 0, and 0/0 where both are zero
        return np.where(new > 0, np.log(new) - np.log(old), -np.inf)


@dataclass(frozen=True, slots=True, eq=False)
class ClassPriorEstimate:
    """Class shares of unlabelled rows, by maximum likelihood.

    From an estimator, standard errors and test allow for densities and training shares being estimates, too; they
    assume that the model is right, and that only the class shares may differ. From `estimate_class_prior` of this
    module, which is given probabilities only, both count as known.

    Parameters
    ----------
    prior
        (K,) the shares.
    standard_error
        (K,) square roots of the diagonal of `covariance`. A share at 0 has none (nan), as its likelihood is no hill but
        a slope; those of the others then hold with that share at 0.
    covariance
        (K, K) from the observed information on the simplex, and from training; 0 for a share at 0.
    log_likelihood
        ℓ(π̂) − ℓ(π): log density of all rows, relative to that under the old shares.
    p_value
        Of the likelihood-ratio test that the shares are still the old ones: 2·`log_likelihood` against χ² with K − 1
        degrees of freedom, or the scaled χ² that allows for training.
    n_iter
        Steps taken, EM's and Newton's.
    converged
        Whether ℓ is proved to lie within the tolerance of its maximum; False only inside a `ConvergenceError`.
    """

    prior: Floats
    standard_error: Floats
    covariance: Floats
    log_likelihood: float
    p_value: float
    n_iter: int
    converged: bool


def estimate_class_prior(
    log_probabilities: ArrayLike, old_prior: ArrayLike, *, tolerance: float = 1e-8, max_iter: int = 200
) -> ClassPriorEstimate:
    """Estimate the class shares π' of unlabelled rows by maximising Σ_i log Σ_k p(y=k | x_i) π'_k/π_k.

    Parameters
    ----------
    log_probabilities
        (n, K) log p(y=k | x_i), or log p(x_i, y=k), under the old shares. They must be calibrated there.
    old_prior
        (K,) the old shares, all positive; see `reweigh`.
    tolerance
        How far ℓ may be from its maximum, in nats; ℓ is concave, so max_k ∂ℓ/∂π'_k − n bounds that distance. At 1e-8
        the shares are within about 1e-4 standard errors.
    max_iter
        Most steps to take.

    Returns
    -------
    The estimate. `reweigh(log_probabilities, old_prior, estimate.prior)` are the class probabilities that go with it.
    """
    log_p = _check_log(log_probabilities)
    if log_p.ndim != 2 or len(log_p) == 0:
        raise DataError(f"`log_probabilities` must be (n, K) with at least one row; got shape {log_p.shape}.")
    K = log_p.shape[1]
    old = _check_prior("old_prior", old_prior, K)
    if (old == 0).any():
        raise PriorError(f"`old_prior` must be positive; got 0 for class {int(old.argmin())}. Leave the class out.")
    tolerance, max_iter = positive_number("tolerance", tolerance, error=DataError), whole("max_iter", max_iter, 0)
    log_r = normalise_possible(log_p, "as given") - np.log(old)
    # Rows scaled to a maximum of one: nothing overflows, and ℓ changes by the constant `offset`. Columns lie together
    # in memory, where NumPy sums in pairs: else ∂ℓ/∂π of a million rows is off by 2e-8, more than the tolerance.
    top = log_r.max(axis=1, keepdims=True)
    R, offset = np.asfortranarray(np.exp(log_r - top)), float(top.sum())

    pi, n_iter, converged = _maximise(R, old, tolerance, max_iter)
    log_likelihood = float(np.log(R @ pi).sum()) + offset
    covariance = _covariance(R, pi)
    # χ²_{K−1} beyond 2ℓ; rounding may leave a ratio of −1e-16 where the old shares are the maximum.
    p_value = float(gammaincc((K - 1) / 2, max(log_likelihood, 0.0)))
    error = _standard_error(covariance)
    estimate = ClassPriorEstimate(
        frozen(pi), frozen(error), frozen(covariance), log_likelihood, p_value, n_iter, converged
    )
    if not converged:
        raise ConvergenceError(
            f"The class prior is not within {tolerance:g} nats of the best after {max_iter} steps. Raise `max_iter`.",
            estimate,
        )
    return estimate


def add_training_error(
    known: ClassPriorEstimate, probabilities: Floats, old_prior: Floats, draws: Floats, shares: Floats
) -> ClassPriorEstimate:
    """Return an estimate with the standard errors and the p-value that allow for what training leaves unsure.

    Parameters
    ----------
    known
        The estimate that takes densities and training shares for known.
    probabilities, old_prior
        (n, K) p(y=k | x_i) of the rows under the old shares, and these (K,).
    draws, shares
        (S, n', K) p(y=k | x_i) of some of the rows, and (S, K) training shares, under draws of both together.
    """
    n = len(probabilities)
    ratio = draws / np.maximum(shares, np.finfo(float).tiny)[:, None]
    # A row that a draw gives to a class whose share is estimated as 0 has mixture 0: V below leaves its score out.
    mixture = np.maximum(ratio @ known.prior, np.finfo(float).eps * ratio.max(axis=2))
    score = (ratio / mixture[..., None]).mean(axis=1)
    V = known.covariance
    covariance = V + n**2 * V @ np.cov(score, rowvar=False) @ V
    # λ in the coordinates in which C/n is the identity; directions that no row speaks of have λ = 1.
    weight = old_weights(probabilities, old_prior, known.prior)
    values, vectors = np.linalg.eigh(np.cov(probabilities, rowvar=False, bias=True, aweights=weight) / n)
    root = vectors / np.sqrt(np.where(values > SINGULAR * values[-1], values, np.inf))
    weight = old_weights(draws.mean(axis=0), old_prior, known.prior)
    training = root.T @ np.cov(np.tensordot(draws, weight, (1, 0)) - shares, rowvar=False) @ root
    eigenvalues = 1 + np.linalg.eigvalsh(training)[1:]  # Σ_k p_k = 1: one direction is none
    df = eigenvalues.sum() ** 2 / (eigenvalues**2).sum()
    scale = eigenvalues.sum() / df
    p_value = float(gammaincc(df / 2, max(known.log_likelihood, 0.0) / scale))
    error = _standard_error(covariance)
    return replace(known, standard_error=frozen(error), covariance=frozen(covariance), p_value=p_value)


def old_weights(probabilities: Floats, old_prior: Floats, new_prior: Floats) -> Floats:
    """Return weights (n,) that sum to one and turn rows with new class shares into rows with the old ones.

    They are ∝ 1/Σ_k p(y=k | x) π'_k/π_k, the density of x under the old shares over that under the new ones. Those of
    more than √n times the mean are cut (Ionides 2008), so that no row stands for all.
    """
    weight = 1 / np.maximum(probabilities @ (new_prior / old_prior), np.finfo(float).tiny)
    weight = np.minimum(weight / weight.mean(), np.sqrt(len(weight)))
    return np.asarray(weight / weight.sum())


def _maximise(R: Floats, pi: Floats, tolerance: float, max_iter: int) -> tuple[Floats, int, bool]:
    """Maximise Σ_i log (Rπ)_i over the simplex; return π, the number of steps, and whether the maximum is reached."""
    n = len(R)
    for step in range(max_iter + 1):
        B = R / (R @ pi)[:, None]
        slope = B.mean(axis=0)
        # Newton's steps alone give exact zeros, so there is at least one.
        if step > EM_STEPS and n * (slope.max() - 1) <= tolerance:
            return pi, step, True
        if step == max_iter:
            break
        pi = pi * slope if step < EM_STEPS else _newton(R, B, slope, pi)
        pi = pi / pi.sum()
    return pi, max_iter, False


def _newton(R: Floats, B: Floats, slope: Floats, pi: Floats) -> Floats:
    """Step to the minimum over v ≥ 0 of ½(v − π)ᵀH(v − π) + (v − π)ᵀ(1 − slope), the quadratic model of f = −ℓ/n + Σπ.

    With B_ik = r_ik/(Rπ)_i the Hessian is H = BᵀB/n.
    """
    H = gram(B) / len(B)
    # H_kk ≥ slope_k² by Jensen, so H_kk < 1 says that share k must fall: raising H_kk to 1 costs no speed at a positive
    # share of the maximum, and keeps the scales of classes that hardly a row can have in proportion.
    np.fill_diagonal(H, np.maximum(np.diagonal(H), 1.0))
    s = np.sqrt(np.diagonal(H))
    # In u = v·s the Hessian is a correlation matrix LLᵀ: minimise ½|Lᵀu − L⁻¹b|², u ≥ 0, b = (H̃π − 1 + slope)/s. What
    # was added to H is in H̃ too, so that it acts on the step and vanishes at the maximum.
    C = H / np.outer(s, s) + RIDGE * np.eye(len(s))
    L = np.linalg.cholesky(C)
    u, _ = nnls(L.T, np.linalg.solve(L, C @ (s * pi) - (1 - slope) / s))
    target = u / s

    def f(v: Floats) -> float:
        mixture = R @ v
        return float(v.sum() - np.log(mixture).mean()) if (mixture > 0).all() else np.inf

    # f is convex and the step goes down: halve it until f does, by a part of what the slope 1 − ∂ℓ/∂π/n promises. The
    # last steps change f by less than its rounding, which is let pass.
    start, promise, t = f(pi), float((1 - slope) @ (target - pi)), 1.0
    rounding = ULPS * np.finfo(float).eps * (1 + abs(start))
    while f(pi + t * (target - pi)) > start + 1e-4 * t * promise + rounding and t > np.finfo(float).eps:
        t /= 2
    return np.maximum(pi + t * (target - pi), 0.0)


def _standard_error(covariance: Floats) -> Floats:
    """Return the square roots of the diagonal, nan for what is 0."""
    variance = np.diagonal(covariance)
    return np.sqrt(np.where(variance > 0, variance, np.nan))


def _covariance(R: Floats, pi: Floats) -> Floats:
    """Return V = J⁻¹ − ππᵀ/n (K, K) of the positive shares, 0 for the others; J = Σ_i r_i r_iᵀ/(r_iᵀπ)².

    This is Z(ZᵀJZ)⁻¹Zᵀ with Z a basis of the directions that keep Σπ = 1, since Jπ = n·1 at the maximum. For rows
    whose class is certain it is the multinomial's √(π(1 − π)/n).
    """
    out = np.zeros((len(pi), len(pi)))
    free = np.flatnonzero(pi > 0)
    if len(free) < 2:
        return out
    J = gram(R[:, free] / (R @ pi)[:, None])
    s = np.sqrt(np.diagonal(J))
    values, vectors = np.linalg.eigh(J / np.outer(s, s))
    if values[0] < SINGULAR:
        k, j = free[np.sort(np.argsort(-np.abs(vectors[:, 0]))[:2])]
        raise DataError(
            f"`log_probabilities` must tell the classes apart; in these {len(R)} rows the shares of classes {k} and "
            f"{j} can be traded without changing the likelihood. Merge classes or add rows."
        )
    out[np.ix_(free, free)] = (vectors / values) @ vectors.T / np.outer(s, s) - np.outer(pi[free], pi[free]) / len(R)
    return out


def normalise_possible(log_p: Floats, when: str) -> Floats:
    """Return log probabilities (…, K) that sum to one; raise if a row has no possible class, and say `when`."""
    impossible = np.isneginf(log_p).all(axis=-1)
    if impossible.any():
        row = int(np.flatnonzero(impossible)[0])
        raise DataError(f"Row {row} must have a possible class {when}; all its log probabilities are −inf.")
    return log_class_probabilities(log_p)


def _check_log(value: ArrayLike) -> Floats:
    """Return log probabilities (…, K), finite or −inf."""
    array = numbers("log_probabilities", value)
    if array.ndim == 0 or array.shape[-1] < 2:
        raise DataError(f"Log probabilities must be (…, K) with at least two classes; got shape {array.shape}.")
    if not (array < np.inf).all():
        raise DataError(f"Log probabilities must be finite or −inf; got {array[~(array < np.inf)].flat[0]:g}.")
    return array


def _check_prior(name: str, value: ArrayLike, K: int) -> Floats:
    prior = finite(name, value)
    if prior.shape != (K,):
        raise PriorError(f"`{name}` must hold a share for each of the {K} classes; got shape {prior.shape}.")
    if (prior < 0).any():
        raise PriorError(f"`{name}` must not be negative; got {prior.min():g}.")
    with np.errstate(over="ignore"):
        total = prior.sum()
    if abs(total - 1) > SUM_TOLERANCE:
        raise PriorError(f"`{name}` must sum to one; it sums to {total:.6g}. Divide it by its sum.")
    return np.asarray(prior / total)
