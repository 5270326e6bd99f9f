"""Are the log odds linear in the features? A score test of logistic and softmax regression for each squared feature.

For a numeric feature xⱼ with standardised square cⱼ, and an activation f, the score of a term β cⱼ added to it is

    s = Σᵢ c̃ᵢᵀ rᵢ,    c̃ᵢ = e_f cᵢⱼ − (H⁻¹B)ᵀφᵢ,    B = Σᵢ Vᵢe_f cᵢⱼ ⊗ φᵢ,    rᵢ = yᵢ − pᵢ,    Vᵢ = cov(yᵢ)

with H the precision of the posterior at its mode. c̃ has no part in the directions of the fitted weights, so that s has
mean 0 to first order though they were estimated and shrunk (Neyman's C(α) test). Its distribution under the model is
simulated from classes drawn with the fitted probabilities, for all features at once, which gives the joint p-value.

Measured: share of p ≤ .05 under the model over 400 data sets of n = 200, d = 5: .058 (logistic), .040 (softmax, K = 3);
of n = 100 and steep slopes, where few classes are in doubt, .025.

References
----------
Neyman (1959), Optimal asymptotic tests of composite statistical hypotheses.
Smyth (2003), Pearson's goodness of fit statistic as a score test statistic.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.families.assumptions import Assumptions, Check, Part, joint_p_value
from bayes_gda.linalg import solve_triangular
from bayes_gda.methods.laplace import GaussianPosterior

# Simulated data sets, as many at a time: a p-value of 5 % then has a standard error of 1 %.
SIMULATIONS, AT_ONCE = 400, 20
# Rows that the check looks at, spread over all, and features, of those with more than two values: the strongest, by the
# share of their variance that is between the classes.
MOST_ROWS, MOST_FEATURES = 4000, 64
# A square of whose information the weights of the design take 98 % is nearly a linear function of it: nothing to test.
COLLINEAR = 0.02
REMEDY = "Add squares or splines of these features: features=2 adds squares and products."
WHAT, STATISTIC = "log odds linear in the features", "score test of a squared feature"


def linear_assumptions(
    data: Dataset, Phi: Floats, P: Floats, gaussian: GaussianPosterior, free: int, random_seed: int
) -> Assumptions:
    """Check a regression on complete rows without weights.

    Parameters
    ----------
    data, Phi
        Training rows, and their design matrix (n, m).
    P
        (n, K) probabilities at the mode.
    gaussian
        The Gaussian at the mode, of the weights of `free` activations.
    free
        Activations with weights of their own: 1 for logistic regression, whose activation is that of the second class;
        K or K − 1 for softmax regression.
    random_seed
        For the simulated classes.
    """
    rows = np.linspace(0, data.n - 1, min(data.n, MOST_ROWS)).round().astype(np.intp)
    several = [j for j in range(data.d) if len(np.unique(data.X[rows, j])) > 2]
    columns = _strongest(data.X[rows], data.y[rows], several)
    if not columns:
        check = Check(WHAT, STATISTIC, np.nan, (), REMEDY, "Not checked: no feature has more than two values.")
        return Assumptions((check,))
    X = data.X[np.ix_(rows, columns)]
    squares = ((X - X.mean(axis=0)) / X.std(axis=0)) ** 2
    squares -= squares.mean(axis=0)
    first = 1 if free == 1 else 0
    own = P[rows, first : first + free]
    outcomes = (data.y[rows, None] == np.arange(first, first + free)).astype(np.float64)
    # All rows have their part in H; a part of them stands for all.
    directions, known = _directions(squares, Phi[rows], own, gaussian, data.n / len(rows))
    labels = _labels([data.feature_names[j] for j in columns], data.class_names, free)
    names = [name for name, keep in zip(labels, known, strict=True) if keep]
    if not names:
        return Assumptions((Check(WHAT, STATISTIC, np.nan, (), REMEDY, "Not checked: the design holds all squares."),))
    simulated = _simulate(directions, P[rows], first, free, np.random.default_rng(random_seed))
    spread = simulated.std(axis=0, ddof=1)
    scores = np.einsum("nfc,nf->c", directions, outcomes - own)
    parts = tuple(Part(name, float(s), 0.0, float(e)) for name, s, e in zip(names, scores, spread, strict=True))
    p = joint_p_value(scores / spread, simulated / spread)
    omitted = []
    if two := data.d - len(several):
        omitted.append(f"{two} of {data.d} features have two values: no square of theirs can be tested.")
    if len(columns) < len(several):
        omitted.append(
            f"Tested were the {len(columns)} of {len(several)} other features whose means differ most between classes."
        )
    return Assumptions((Check(WHAT, STATISTIC, p, parts, REMEDY, " ".join(omitted)),))


def _strongest(X: Floats, y: NDArray[np.intp], columns: list[int]) -> list[int]:
    """Return at most MOST_FEATURES of the columns: those whose means differ most between the classes, in their sd."""
    if len(columns) <= MOST_FEATURES:
        return columns
    Z = (X[:, columns] - X[:, columns].mean(axis=0)) / X[:, columns].std(axis=0)
    between = sum((y == k).sum() * Z[y == k].mean(axis=0) ** 2 for k in np.unique(y))
    return [columns[i] for i in np.sort(np.argsort(-between, kind="stable")[:MOST_FEATURES])]


def _labels(features: Sequence[str], classes: Sequence[object], free: int) -> list[str]:
    if free == 1:
        return list(features)
    return [f"{feature} ({classes[f]})" for f in range(free) for feature in features]


def _directions(C: Floats, Phi: Floats, P: Floats, gaussian: GaussianPosterior, scale: float) -> tuple[Floats, Floats]:
    """Return c̃ (n, F, c) of the squares C (n, q) for each activation, those that can be tested, and which these are."""
    (n, q), m, F = C.shape, Phi.shape[1], P.shape[1]
    V = -P[:, :, None] * P[:, None, :]
    V[:, np.arange(F), np.arange(F)] += P
    out = np.zeros((n, F, F * q))
    known = np.zeros(F * q, dtype=bool)
    for f in range(F):
        # B (F, m, q) of all squares for activation f, then H⁻¹B.
        B = scale * np.stack([Phi.T @ (V[:, g, f, None] * C) for g in range(F)])
        half = solve_triangular(gaussian.chol_precision, B.reshape(F * m, q))
        solved = solve_triangular(gaussian.chol_precision, half, transposed=True).reshape(F, m, q)
        block = slice(f * q, (f + 1) * q)
        out[:, :, block] = -np.stack([Phi @ solved[g] for g in range(F)], axis=1)
        out[:, f, block] += C
        information = scale * np.einsum("n,nc->c", V[:, f, f], C**2)
        known[block] = information - np.einsum("ic,ic->c", half, half) > COLLINEAR * information
    return out[:, :, known], known


def _simulate(directions: Floats, P: Floats, first: int, free: int, rng: np.random.Generator) -> Floats:
    """Return scores (R, c) of classes that are drawn with the probabilities P (n, K)."""
    edges = np.cumsum(P, axis=1)[:, :-1]
    own = P[:, first : first + free]
    out = np.empty((SIMULATIONS, directions.shape[2]))
    flat = np.ascontiguousarray(directions).reshape(-1, directions.shape[2])
    for start in range(0, SIMULATIONS, AT_ONCE):
        y = (rng.random((AT_ONCE, len(P), 1)) > edges).sum(axis=2)
        residuals = (y[:, :, None] == np.arange(first, first + free)) - own
        out[start : start + AT_ONCE] = residuals.reshape(AT_ONCE, -1) @ flat
    return out
