"""Are the classes Gaussian, and shaped as the model says? Checks of LDA, QDA and the naive model on training rows.

    margins          each feature of each class normal: K² of D'Agostino & Pearson, of skewness and kurtosis
    Mardia           skewness b₁ = n⁻² Σᵢⱼ (zᵢᵀzⱼ)³ and kurtosis b₂ = n⁻¹ Σᵢ (zᵢᵀzᵢ)² of the whitened rows of a class
    Box              M = Σ_k (n_k − 1)(log|S| − log|S_k|): do the classes share their covariance?
    independence     −(n_k − 1) log|R_k|, R_k the correlations within a class: are the features independent there?

Whitened rows and log-determinants do not depend on the means and covariances of Gaussian classes. Their distribution is
therefore the same for all parameters, for the posterior predictive too, and is simulated: these p-values are exact up
to Monte Carlo error, whatever the posterior.

References
----------
Mardia (1970), Measures of multivariate skewness and kurtosis with applications, Biometrika 57.
Box (1949), A general distribution theory for a class of likelihood criteria, Biometrika 36.
D'Agostino & Pearson (1973), Tests for departure from normality, Biometrika 60.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.stats import kurtosis, normaltest, skew

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.families.assumptions import Assumptions, Check, Part, Quantiles, joint_p_value, smallest_p_value

# Simulated data sets: a p-value of 5 % then has a standard error of 1 %.
SIMULATIONS = 400
# Rows of a class that Mardia's statistics look at, spread over all: b₁ costs their square.
MOST_ROWS = 400
# The omnibus test is rough below, and a class must determine its covariance.
FEWEST_ROWS = 20
# Level at which a margin, adjusted for their number, asks for its remedy.
LEVEL = 0.05
# In standard deviations of all rows: a feature whose spread in a class is below this does not vary there.
CONSTANT = 1e-9
ROBUST = "Transform skewed features (log, square root), or use a family with heavier tails or several components."
LIGHT = "The tails are lighter than Gaussian, as bounded or two-valued features make them: compare with a regression."
TWO_VALUES = "Features of two values cannot be Gaussian: use a regression, or the mixed model."
SKEWNESS, KURTOSIS = "Mardia's skewness", "Mardia's kurtosis"
SHAPES = "Use qda, whose classes have covariances of their own, or rda, which lies between."
DEPENDENT = "Use lda or qda, which model correlations."


def gaussian_assumptions(data: Dataset, *, shared: bool, diagonal: bool, random_seed: int) -> Assumptions:
    """Check Gaussian classes on complete rows.

    Parameters
    ----------
    data
        Training rows.
    shared, diagonal
        Whether the classes share one covariance; whether the features are independent within a class.
    random_seed
        For the simulated distributions.
    """
    rng = np.random.default_rng(random_seed)
    # In units of their own, so that no determinant overflows; nothing here depends on units.
    spread = data.X.std(axis=0)
    X = (data.X - data.X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    rows = [X[data.y == k] for k in range(data.K)]
    names = [str(name) for name in data.class_names]
    checks = [check_margins(rows, names, data.feature_names)]
    distances: dict[str, Quantiles] = {}
    wide = [k for k, x in enumerate(rows) if len(x) >= max(FEWEST_ROWS, data.d + 2) and _full_rank(x)]
    left = [names[k] for k in range(data.K) if k not in wide]
    note = (
        f"Not checked: {', '.join(left)} (too few rows, a feature that does not vary, or collinear ones)."
        if left
        else ""
    )
    chosen, labels = [rows[k] for k in wide], [names[k] for k in wide]
    if data.d > 1:
        if diagonal:
            checks.append(check_independence(chosen, labels, note, rng))
        else:
            mardia, distances = _mardia(chosen, labels, note, rng)
            checks += mardia
    if shared:
        checks.append(_box(chosen, labels, note, rng))
    return Assumptions(tuple(checks), distances)


def _full_rank(x: Floats) -> bool:
    """Whether the rows of a class vary in every direction, beyond rounding."""
    spread = x.std(axis=0)
    if not (spread > CONSTANT).all():
        return False
    return bool(np.linalg.matrix_rank((x - x.mean(axis=0)) / spread) == x.shape[1])


# ── Margins ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def check_margins(rows: Sequence[Floats], names: Sequence[str], features: Sequence[str]) -> Check:
    """Test each feature in each class; parts are skewness and excess kurtosis of those that stand out most."""
    margins: list[tuple[float, Part]] = []
    binary = [len(np.unique(np.concatenate([x[:, j] for x in rows]))) <= 2 for j in range(rows[0].shape[1])]
    remedies: list[tuple[float, str]] = []
    for x, name in zip(rows, names, strict=True):
        vary = np.flatnonzero(x.std(axis=0) > CONSTANT) if len(x) >= FEWEST_ROWS else np.empty(0, dtype=np.intp)
        if not len(vary):
            continue
        p = np.atleast_1d(normaltest(x[:, vary], axis=0).pvalue)
        n = len(x)
        # Under normality skewness has mean 0 and variance 6(n−2)/((n+1)(n+3)); excess kurtosis −6/(n+1) and 24 n (n−2)
        # (n−3) / ((n+1)² (n+3)(n+5)).
        skewed = np.sqrt(6 * (n - 2) / ((n + 1) * (n + 3)))
        heavy = np.sqrt(24 * n * (n - 2) * (n - 3) / ((n + 1) ** 2 * (n + 3) * (n + 5)))
        for j, value, b1, b2 in zip(vary.tolist(), p, skew(x[:, vary]), kurtosis(x[:, vary]), strict=True):
            where = f"{features[j]} in {name}"
            pair = (
                Part(f"skewness of {where}", float(b1), 0.0, float(skewed)),
                Part(f"excess kurtosis of {where}", float(b2), -6 / (n + 1), float(heavy)),
            )
            margins.append((float(value), max(pair, key=lambda part: abs(part.z))))
            remedies.append((float(value), TWO_VALUES if binary[j] else ROBUST))
    parts = tuple(part for _, part in sorted(margins, key=lambda item: item[0]))
    note = "" if margins else f"Not checked: no class has {FEWEST_ROWS} rows and a feature that varies."
    statistic = "D'Agostino and Pearson's K²"
    # What each rejected margin asks for, of the smallest p-values first.
    asked = [remedy for p, remedy in sorted(remedies, key=lambda item: item[0]) if p * len(margins) < LEVEL]
    remedy = " ".join(dict.fromkeys(asked)) or ROBUST
    return Check("normal features", statistic, smallest_p_value([p for p, _ in margins]), parts, remedy, note)


# ── Mardia ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def whitened_gram(x: Floats) -> Floats:
    """Return zᵢᵀzⱼ (n, n) of the rows x (n, d) of a class, whitened by its own mean and covariance (over n)."""
    Q, _ = np.linalg.qr(x - x.mean(axis=0))
    return np.asarray(len(x) * (Q @ Q.T))


def mardia_statistics(x: Floats) -> tuple[float, float, Floats]:
    """Return Mardia's skewness b₁ and kurtosis b₂ of rows x (n, d), and the ordered squared distances (n,)."""
    G = whitened_gram(x)
    squared = np.sort(np.diag(G))
    return float((G * G * G).mean()), float((squared**2).mean()), squared


def _mardia(
    rows: Sequence[Floats], names: Sequence[str], note: str, rng: np.random.Generator
) -> tuple[list[Check], dict[str, Quantiles]]:
    parts: tuple[list[Part], list[Part]] = ([], [])
    drawn: tuple[list[Floats], list[Floats]] = ([], [])
    distances: dict[str, Quantiles] = {}
    nulls: dict[int, tuple[Floats, Floats]] = {}
    for x, name in zip(rows, names, strict=True):
        n, d = min(len(x), MOST_ROWS), x.shape[1]
        x = x[np.linspace(0, len(x) - 1, n).round().astype(np.intp)]
        *values, squared = mardia_statistics(x)
        if n not in nulls:  # serves all classes of as many rows, in another order
            nulls[n] = _simulate_mardia(n, d, rng)
        moments, order = nulls[n]
        simulated = moments if name == names[0] else rng.permutation(moments)
        for i, value in enumerate(values):
            mean, spread = float(simulated[:, i].mean()), float(simulated[:, i].std(ddof=1))
            parts[i].append(Part(name, value, mean, spread))
            drawn[i].append((simulated[:, i] - mean) / spread)
        low, high = np.quantile(order, [0.05, 0.95], axis=0)
        distances[name] = Quantiles(squared, order.mean(axis=0), low, high)
    checks = []
    for what, statistic, own, null in zip(
        ("symmetric classes", "Gaussian tails"),
        (SKEWNESS, KURTOSIS),
        parts,
        drawn,
        strict=True,
    ):
        p = joint_p_value(np.array([part.z for part in own]), np.column_stack(null)) if own else np.nan
        worst = max(own, key=lambda part: abs(part.z), default=None)
        lighter = statistic == KURTOSIS and worst is not None and worst.z < 0
        checks.append(Check(what, statistic, p, tuple(own), LIGHT if lighter else ROBUST, note))
    return checks, distances


def _simulate_mardia(n: int, d: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return b₁ and b₂ (R, 2) and ordered squared distances (R, n) of Gaussian rows."""
    moments, order = np.empty((SIMULATIONS, 2)), np.empty((SIMULATIONS, n))
    for r in range(SIMULATIONS):
        moments[r, 0], moments[r, 1], order[r] = mardia_statistics(rng.standard_normal((n, d)))
    return moments, order


# ── Covariances ─────────────────────────────────────────────────────────────────────────────────────────────────────


def box_statistic(scatters: Floats, counts: NDArray[np.intp]) -> Floats:
    """Return Box's M (…,) of scatter matrices (…, K, d, d) about the means of classes of n_k rows."""
    dof = counts - 1.0
    pooled = np.linalg.slogdet(scatters.sum(axis=-3) / dof.sum())[1]
    own = np.linalg.slogdet(scatters / dof[:, None, None])[1]
    return np.asarray((dof * (pooled[..., None] - own)).sum(axis=-1))


def wishart_draws(dof: int, d: int, size: int, rng: np.random.Generator) -> Floats:
    """Return draws (size, d, d) of Wishart(dof, I) by Bartlett's factor: T Tᵀ, T_jj² ~ χ²(dof − j), T_ij ~ N(0, 1)."""
    T = np.tril(rng.standard_normal((size, d, d)), -1)
    j = np.arange(d)
    T[:, j, j] = np.sqrt(rng.chisquare(dof - j, size=(size, d)))
    return np.asarray(T @ T.transpose(0, 2, 1))


def _scatter(x: Floats) -> Floats:
    centered = x - x.mean(axis=0)
    return centered.T @ centered


def _box(rows: Sequence[Floats], names: Sequence[str], note: str, rng: np.random.Generator) -> Check:
    what, statistic = "equal covariances", "Box's M"
    if len(rows) < 2:
        return Check(what, statistic, np.nan, (), SHAPES, note or "Not checked: it takes two classes.")
    counts, d = np.array([len(x) for x in rows]), rows[0].shape[1]
    observed = float(box_statistic(np.stack([_scatter(x) for x in rows]), counts))
    draws = np.stack([wishart_draws(int(n) - 1, d, SIMULATIONS, rng) for n in counts], axis=1)
    simulated = box_statistic(draws, counts)
    # M is large where covariances differ, and small never: one-sided.
    p = float((1 + (simulated >= observed).sum()) / (SIMULATIONS + 1))
    part = Part("all classes" if not note else ", ".join(names), observed, float(simulated.mean()), _spread(simulated))
    return Check(what, statistic, p, (part,), SHAPES, note)


def check_independence(rows: Sequence[Floats], names: Sequence[str], note: str, rng: np.random.Generator) -> Check:
    """Test whether the correlations within each class are those of independent Gaussians: the determinant of R."""
    parts, drawn = [], []
    for x, name in zip(rows, names, strict=True):
        dof, d = len(x) - 1, x.shape[1]
        simulated = -dof * _log_correlation(wishart_draws(dof, d, SIMULATIONS, rng))
        observed = float(-dof * _log_correlation(_scatter(x)))
        mean, spread = float(simulated.mean()), _spread(simulated)
        parts.append(Part(name, observed, mean, spread))
        drawn.append((simulated - mean) / spread)
    z = np.array([part.z for part in parts])
    p = float((1 + (np.max(drawn, axis=0) >= z.max()).sum()) / (SIMULATIONS + 1)) if parts else np.nan
    return Check("independent features", "−(n − 1) log|R|, R the correlations", p, tuple(parts), DEPENDENT, note)


def _log_correlation(S: Floats) -> Floats:
    """Return log|R| (…,) of the correlations of scatter matrices (…, d, d)."""
    variances = np.diagonal(S, axis1=-2, axis2=-1)
    return np.asarray(np.linalg.slogdet(S)[1] - np.log(variances).sum(axis=-1))


def _spread(x: Floats) -> float:
    return float(x.std(ddof=1))
