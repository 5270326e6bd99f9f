"""The continuum between naive, LDA and QDA: covariances drawn towards the pooled one, and the pooled to its diagonal.

With S the pooled within-class covariance and D its diagonal, the covariance of each class is drawn towards a target:

    Σ_k ~ IW(w T, w + d + 1),   T = (1 − δ) S + δ D,   E[Σ_k] = T

The target counts as w rows beside the n_k of the class, so that E[Σ_k | data] puts the share s = w/(w + n_k) on T and
takes the share δs of the pooled correlations away. w = 1 is QDA with the default prior, w → ∞ is LDA. An inverse
Wishart cannot forbid correlations within a class, so the naive model, σ²_kj ~ IG((w + 2)/2, w S_jj/2), stands beside it
as a column of its own, from the usual naive model (w = 1) to one whose classes share their variances (w → ∞).

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

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.inference.exact import NIGPosterior, NIWPosterior, naive_posterior, qda_posterior
from bayes_gda.inference.priors import NIG, NIW, Dirichlet

# Shares s of the pooled covariance in a class of mean size, beside the default prior's single row. 1 − s falls by about
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
        return f"The data sit {lda:.2f} of the way from QDA to LDA, and {naive:.2f} of the way to naive{near}."

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | data) (n, K), averaged over the cells by their weights."""
        order = np.argsort(self.weight)[::-1]
        # The largest weights until what remains is negligible.
        used = order[: 1 + int(np.searchsorted(np.cumsum(self.weight[order]), 1 - NEGLIGIBLE))]
        log_weight = np.log(self.weight[used])
        total = np.full((len(X), len(self.posteriors[0].alpha)), -np.inf)
        for cell, part in zip(used, log_weight, strict=True):
            total = np.logaddexp(total, part + self.posteriors[cell].log_joint(X))
        return total - logsumexp(log_weight)


def fit_continuum(moments: Moments, class_prior: Dirichlet | None = None) -> Continuum:
    """Fit every model of the grid, and weigh them by their evidence.

    If the pooled covariance is singular, as with fewer rows than features, the cells that would draw towards it (δ = 0)
    are left out; the others are regular as long as each feature varies.

    Parameters
    ----------
    moments
        Counts, means and scatter matrices of the classes.
    class_prior
        Of the class shares, by default uniform.
    """
    default = NIW.default(moments)
    d, n, K = moments.d, moments.count, moments.K
    if moments.n <= K:
        raise DataError(f"The continuum needs more rows than classes; got {moments.n:g} rows of {K}. Add rows.")
    pooled = moments.scatter.sum(axis=0) / moments.n
    diagonal = np.diag(np.diag(pooled))
    # One feature has no correlations to take away.
    deltas = [delta for delta in DIAGONAL if (d > 1 or delta == 0) and (delta > 0 or _regular(pooled))]
    size = moments.n / K
    prior_rows = [1.0, *(w for s in POOLING if (w := size * s / (1 - s)) > 1)]
    cells: list[tuple[float, float, float, float]] = []
    evidence: list[float] = []
    posteriors: list[NIWPosterior | NIGPosterior] = []
    for w in prior_rows:
        share = w / (w + n)
        told = float(n @ share)  # rows that speak of the pooled covariance
        s = told / moments.n
        for delta in deltas:
            T = (1 - delta) * pooled + delta * diagonal
            exact = qda_posterior(moments, NIW(default.m, default.kappa, w * T, w + d + 1), class_prior)
            cells.append((w, s, delta * s, delta))
            evidence.append(exact.log_evidence - _charge(d, told, delta))
            posteriors.append(exact)
        if d > 1:
            prior = NIG(default.m, frozen(default.kappa), frozen((w + 2) / 2), w * np.diag(pooled) / 2)
            naive = naive_posterior(moments, prior, class_prior)
            cells.append((w, s, 1.0, np.nan))
            evidence.append(naive.log_evidence - _charge(d, told, 1.0))
            posteriors.append(naive)
    rows, pooling, independence, delta_of = np.array(cells).T
    return Continuum(
        rows, pooling, independence, delta_of, frozen(evidence), softmax(np.array(evidence)), tuple(posteriors)
    )


def _charge(d: int, told: float, delta: float) -> float:
    """Cost of integrating over the pooled covariance; see the top of this file."""
    off = d * (d - 1) / 2
    return float(0.5 * d * np.log1p(told) + 0.5 * off * np.log1p((1 - delta) ** 2 * told))


def _regular(S: Floats) -> bool:
    sd = np.sqrt(np.diag(S))
    return bool(np.linalg.eigvalsh(S / np.outer(sd, sd)).min() > SINGULAR)
