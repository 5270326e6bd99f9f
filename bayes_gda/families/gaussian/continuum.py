"""The continuum between naive, LDA and QDA: covariances drawn towards the pooled one, and the pooled to its diagonal.

With S the pooled within-class covariance and D its diagonal (of the indicators of a category, a block that is the same
whichever level is the reference), the covariance of each class is drawn towards a target:

    Σ_k ~ IW(w T, w + d + 1),   T = (1 − δ) S + δ D,   E[Σ_k] = T

The target counts as w rows beside the n_k of the class, so that E[Σ_k | data] puts the share s = w/(w + n_k) on T and
takes the share δs of the pooled correlations away. w = 1 is QDA with a prior worth a row, w → ∞ is LDA. An inverse
Wishart cannot forbid correlations within a class, so the naive model, σ²_kj ~ IG((w + 2)/2, w S_jj/2), stands beside it
as a column of its own, from the usual naive model (w = 1) to one whose classes share their variances (w → ∞); but not
where a category has three levels or more, whose indicators cannot be independent.

Every cell (w, δ) of the grid has a closed-form evidence and a Student-t predictive; we average over the cells by their
evidence, which says where on the continuum the data sit. This is empirical Bayes: S is estimated from the same data.
Left at that, targets with more to estimate would always win. So the evidence of a cell is charged what it would cost to
integrate over S under a prior worth one row, by Laplace's method: ½ log(1 + N) for each entry of S that the cell uses,

    charge = ½ d log(1 + N) + ½ (d(d − 1)/2) log(1 + (1 − δ)² N),   N = Σ_k n_k s_k,

where N is the number of rows that speak of S through the classes, and the off-diagonal entries enter T times 1 − δ.

References
----------
Friedman (1989), Regularized discriminant analysis, JASA 84.
Greene & Rayens (1989), Partially pooled covariance matrix estimation in discriminant analysis, Comm. Statist. 18.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, softmax

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior, naive_posterior, qda_posterior
from bayes_gda.priors.distributions import DEFAULT_KAPPA, NIG, NIW, Dirichlet, Seed
from bayes_gda.priors.units import find_categories, independent_part

# Shares s of the pooled covariance in a class of mean size, beside the single row of w = 1. 1 − s falls by about
# a third each at the upper end, where LDA is; .999 is LDA for all that the data can tell.
POOLING = (0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95, 0.98, 0.999)
# How far the target goes from the pooled covariance to its diagonal.
DIAGONAL = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
# Cells that weigh less than this together are left out of the average. They could be felt only by a row so far out that
# their tails are 10⁹ times as heavy as those of the others.
NEGLIGIBLE = 1e-12
# Smallest eigenvalue of a correlation matrix that counts as regular; rounding alone leaves some 1e-16 · d.
SINGULAR = 1e-13
# Within this of a corner, the sentence names the corner.
NEAR = 0.1


@dataclass(frozen=True, slots=True)
class Grid:
    """The models to average over. A fitted model keeps its grid, so that a later default does not change it.

    Parameters
    ----------
    pooling
        Shares s of the target in a class of mean size, between 0 and 1.
    diagonal
        Shares δ of the correlations that the target leaves out, 0 to 1.
    """

    pooling: tuple[float, ...] = POOLING
    diagonal: tuple[float, ...] = DIAGONAL

    def __post_init__(self) -> None:
        if not (self.pooling and all(0 < s < 1 for s in self.pooling)):
            raise PriorError(f"`pooling` must hold shares above 0 and below 1; got {self.pooling}.")
        # The grid shall never run empty: δ = 1 is regular whatever the data, and one feature has δ = 0 alone.
        if not (1.0 in self.diagonal and 0.0 in self.diagonal and all(0 <= s <= 1 for s in self.diagonal)):
            raise PriorError(f"`diagonal` must hold shares in 0…1, both ends among them; got {self.diagonal}.")


@dataclass(frozen=True, slots=True, eq=False)
class Continuum:
    """Models on a grid between naive, LDA and QDA, weighted by their evidence.

    Parameters
    ----------
    prior_rows
        (C,) w, the rows that the target of each cell counts as.
    pooling
        (C,) share of the covariances that comes from the target, a mean over the rows: 0 is QDA, 1 is LDA.
    independence
        (C,) share of the pooled correlations that is taken away; 1 in the naive column.
    delta
        (C,) δ of the target; NaN in the naive column, which has no correlations to begin with.
    log_evidence
        (C,) log p(X, y) of each cell, after the charge for the pooled covariance.
    weight
        (C,) posterior weight of each cell, all having been alike before.
    posteriors
        The C exact posteriors.
    """

    prior_rows: Floats
    pooling: Floats
    independence: Floats
    delta: Floats
    log_evidence: Floats
    weight: Floats
    posteriors: tuple[NIWPosterior | NIGPosterior, ...]

    def __post_init__(self) -> None:
        for name in ("prior_rows", "pooling", "independence", "delta", "log_evidence", "weight"):
            object.__setattr__(self, name, frozen(getattr(self, name)))

    @property
    def toward_lda(self) -> float:
        """How far from QDA (0) to LDA (1) the data sit: the weighted mean of `pooling`."""
        return float(self.weight @ self.pooling)

    @property
    def toward_naive(self) -> float:
        """How far towards the naive model (1) the data sit: the weighted mean of `independence`."""
        return float(self.weight @ self.independence)

    @property
    def best(self) -> int:
        """The cell of highest evidence."""
        return int(np.argmax(self.log_evidence))

    @property
    def sentence(self) -> str:
        """Where the data sit, in plain words."""
        lda, naive = self.toward_lda, self.toward_naive
        near = ""
        if naive > 1 - NEAR:
            near = ": features independent within classes" + (", with one variance for all" if lda > 1 - NEAR else "")
        elif naive < NEAR and lda > 1 - NEAR:
            near = ": one covariance for all classes"
        elif naive < NEAR and lda < NEAR:
            near = ": a covariance for each class"
        return (
            f"By the evidence the covariances lie {lda:.2f} of the way from QDA to LDA, and {naive:.2f} of the way to "
            f"naive{near}."
        )

    @property
    def log_mean_evidence(self) -> float:
        """log p(X, y) of the average, each cell having been as probable as any other, after their charges."""
        return float(logsumexp(self.log_evidence) - np.log(len(self.log_evidence)))

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | data) (n, K), averaged over the cells by their weights."""
        return self.average(lambda posterior: posterior.log_joint(X))

    def average(self, log_density: Callable[[NIWPosterior | NIGPosterior], Floats]) -> Floats:
        """Return the log of the weighted mean over the cells of a predictive density, given by its log."""
        used, log_weight = self._used()
        parts = (part + log_density(self.posteriors[cell]) for cell, part in zip(used, log_weight, strict=True))
        return np.asarray(reduce(np.logaddexp, parts) - logsumexp(log_weight))

    def leave_one_out(self, X: Floats, y: NDArray[np.intp]) -> Floats:
        """Return log p(x_i, y=k | all rows but i) (n, K), given the targets, which are those of all rows.

        A cell c that finds row i unlikely owes its weight less to the other rows than one that foresaw it:

            p(x_i, k | D₋ᵢ) = Σ_c w_c⁻ⁱ p_c(x_i, k | D₋ᵢ),   w_c⁻ⁱ ∝ w_c / p_c(x_i, y_i | D₋ᵢ)
        """
        rows, y = np.arange(len(X)), np.asarray(y, dtype=np.intp)
        total = np.full((len(X), len(self.posteriors[0].alpha)), -np.inf)
        whole = np.full(len(X), -np.inf)
        for cell, part in zip(*self._used(), strict=True):
            left = self.posteriors[cell].leave_one_out(X, y)
            log_weight = part - left[rows, y]
            total = np.logaddexp(total, log_weight[:, None] + left)
            whole = np.logaddexp(whole, log_weight)
        return total - whole[:, None]

    def draw(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `pi` (size, K), `mu` (size, K, d) and `Sigma` (size, K, d, d), each from a cell drawn by its weight.

        The covariances of a naive cell are diagonal.
        """
        rng = np.random.default_rng(random_seed)
        K, d = self.posteriors[0].m.shape
        drawn = rng.choice(len(self.weight), size=size, p=self.weight)
        out = {"pi": np.empty((size, K)), "mu": np.empty((size, K, d)), "Sigma": np.empty((size, K, d, d))}
        for cell in np.unique(drawn):
            here = np.flatnonzero(drawn == cell)
            part = self.posteriors[cell].draw(len(here), random_seed=rng)
            if "sigma2" in part:
                part["Sigma"] = part["sigma2"][..., None] * np.eye(d)
            for name, values in out.items():
                values[here] = part[name]
        return out

    def _used(self) -> tuple[NDArray[np.intp], Floats]:
        """Return the cells of largest weight, until what remains is negligible, and their log weights."""
        order = np.argsort(self.weight)[::-1]
        used = order[: 1 + int(np.searchsorted(np.cumsum(self.weight[order]), 1 - NEGLIGIBLE))]
        return used, np.log(self.weight[used])


def fit_continuum(
    moments: Moments,
    class_prior: Dirichlet | None = None,
    *,
    pooled: Floats | None = None,
    grid: Grid | None = None,
) -> Continuum:
    """Fit every model of the grid, and weigh them by their evidence.

    If the pooled covariance is singular, as with fewer rows than features, the cells that would draw towards it (δ = 0)
    are left out; the others are regular as long as each feature varies.

    Parameters
    ----------
    moments
        Counts, means and scatter matrices of the classes.
    class_prior
        Of the class shares, by default uniform.
    pooled
        (d, d) S, by default that of the moments, which then must have some variance within classes in every feature.
    grid
        The models to average over, by default `Grid()`.
    """
    d, n, K, grid = moments.d, moments.count, moments.K, grid or Grid()
    if moments.n <= K:
        raise DataError(f"The continuum needs more rows than classes; got {moments.n:g} rows of {K}. Add rows.")
    if pooled is None:
        NIW.default(moments)  # raises where a feature does not vary
        pooled = moments.scatter.sum(axis=0) / moments.n
    if pooled.shape != (d, d) or not np.isfinite(pooled).all() or not (np.diag(pooled) > 0).all():
        raise PriorError(
            f"`pooled` must be a covariance of {d} features that vary; got {np.array2string(pooled)!r:.60}."
        )
    center = n @ moments.mean / moments.n
    categories = find_categories(moments)
    diagonal = independent_part(pooled, categories)
    # One feature has no correlations to take away.
    deltas = [delta for delta in grid.diagonal if (d > 1 or delta == 0) and (delta > 0 or _regular(pooled))]
    size = moments.n / K
    prior_rows = [1.0, *(w for s in grid.pooling if (w := size * s / (1 - s)) > 1)]
    cells: list[tuple[float, float, float, float]] = []
    evidence: list[float] = []
    posteriors: list[NIWPosterior | NIGPosterior] = []
    for w in prior_rows:
        share = w / (w + n)
        pooled_rows = float(n @ share)  # rows that speak of the pooled covariance
        s = pooled_rows / moments.n
        for delta in deltas:
            T = (1 - delta) * pooled + delta * diagonal
            exact = qda_posterior(moments, NIW(center, DEFAULT_KAPPA, w * T, w + d + 1), class_prior)
            cells.append((w, s, delta * s, delta))
            evidence.append(exact.log_evidence - _charge(d, pooled_rows, delta))
            posteriors.append(exact)
        if d > 1 and not categories:  # whose indicators cannot be independent
            prior = NIG(center, frozen(DEFAULT_KAPPA), frozen((w + 2) / 2), w * np.diag(pooled) / 2)
            naive = naive_posterior(moments, prior, class_prior)
            cells.append((w, s, 1.0, np.nan))
            evidence.append(naive.log_evidence - _charge(d, pooled_rows, 1.0))
            posteriors.append(naive)
    rows, pooling, independence, delta_of = np.array(cells).T
    return Continuum(
        rows, pooling, independence, delta_of, frozen(evidence), softmax(np.array(evidence)), tuple(posteriors)
    )


def _charge(d: int, pooled_rows: float, delta: float) -> float:
    """Cost of integrating over the pooled covariance; see the top of this file."""
    off = d * (d - 1) / 2
    return float(0.5 * d * np.log1p(pooled_rows) + 0.5 * off * np.log1p((1 - delta) ** 2 * pooled_rows))


def _regular(S: Floats) -> bool:
    sd = np.sqrt(np.diag(S))
    return bool(np.linalg.eigvalsh(S / np.outer(sd, sd)).min() > SINGULAR)
