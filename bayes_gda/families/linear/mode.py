"""The Laplace approximation of logistic and softmax regression: a good start, and clear words when there is no mode.

Newton's method takes some eight passes over the data from the origin, of nm² operations each. With many rows, the mode
of a subsample is found first, which lies within a few posterior standard deviations, and two or three passes over all
rows finish. With many weights gradients, of nm operations, lead to the mode first (L-BFGS in coordinates in which the
precision at the start is I), and one or two passes finish.

Data that a hyperplane splits without error have no finite maximum likelihood. A direction v separates if y-signed
activations are never negative, and some are positive:

    binary   (2y_i − 1) φ_iᵀv ≥ 0 for all rows i           softmax   φ_iᵀ(v_{y_i} − v_k) ≥ 0 for all rows and classes k

Along v the likelihood only rises. It is found, or ruled out, by a linear program over the coefficients whose prior is
flat; a proper prior holds all the others.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linprog, minimize, minimize_scalar

from bayes_gda.checks import Floats, frozen, positive
from bayes_gda.data.features import FeatureMap
from bayes_gda.errors import ConvergenceError, PriorError
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.variational.sites import POINTS
from bayes_gda.linalg import blas_threads, solve_triangular
from bayes_gda.memory import announce_work, require_memory
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.priors import HierarchicalScale, Normal

RegressionTarget = LogisticTarget | SoftmaxTarget

# Rows of the subsample, the larger of the two; it is used if the data have four times as many. 50 rows a weight put its
# mode well inside the region where Newton converges at once.
SUBSAMPLE_ROWS = 20_000
SUBSAMPLE_ROWS_PER_WEIGHT = 50
SUBSAMPLE_SEED = 0
# From so many weights and elements of the design matrix on gradients are so much cheaper than precisions that they come
# first, until none of their components is longer than GRADIENT_LENGTH posterior standard deviations (beyond, what is
# gained drowns in the rounding of the log density); or up to so many, which cost some three precisions.
GRADIENT_WEIGHTS, GRADIENT_ELEMENTS = 32, 2**18
GRADIENT_LENGTH, MAX_GRADIENTS, LINE_SEARCH = 1e-6, 24, 5
# Steps after these by the precision that L-BFGS has learned, each of which leaves a tenth to a third: Newton's is then
# negligible.
LAST_STEPS = 3
# An activation whose standard deviation is this large is not known at all: probabilities from 0 to 1 are all possible.
# Only separation, or a column that is a combination of others, does that under a flat prior.
UNKNOWN_ACTIVATION = 50.0
# Prior scales among which empirical Bayes looks: from no effect at all to practically flat, on standardised features.
SCALE_BOUNDS = (1e-3, 1e3)
# Square matrices of all weights that stand in memory at the same time; passes of Newton's method and of expectation
# propagation together, and operations for each cube of the weights in the products of square matrices of the latter.
# Measured with 200 rows: 1.5 s for 1000 columns; for 5000 Laplace took 11 s, propagation over 5 minutes.
MATRICES, PASSES, OF_SQUARES = 8, 25, 30
# Passes of the variational approximation of several classes (2 to 8), with what its certificate takes, some 4 more; and
# the operations that a point of a row takes for each class, and for each pair of classes. Measured with 1000 rows of 5
# columns, a pass takes .1 s with 10 classes, 1.4 s with 50, 29 s with 200. With many rows a weight an expansion spares
# the points: the variances of the activations of a row average to weights/rows, and up to some .05 they are narrow.
VARIATIONAL_PASSES, OF_CLASS, OF_PAIR, NARROW_VARIANCE = 12, 800, 4, 0.05


def check_effort(rows: int, weights: int, classes: int) -> None:
    """Raise if a fit would take more memory than is free, and say so if it is expected to take more than a minute.

    Parameters
    ----------
    rows, weights
        Of the data, and of all classes together.
    classes
        Classes with weights of their own; 1 for two classes.
    """
    remedy = "Use fewer columns or classes, or LDA or the naive model, whose posteriors have a closed form."
    require_memory(8.0 * MATRICES * weights**2, f"The curvature of {weights} weights", remedy)
    passes = PASSES * (weights**3 / 3 + 2.0 * rows * weights**2)
    if classes == 1:
        passes += OF_SQUARES * float(weights) ** 3
    else:
        points = max(POINTS, 1 << (4 * classes - 1).bit_length())
        wide = min(1.0, weights / (rows * NARROW_VARIANCE))
        at_points = wide * rows * points * classes * (OF_CLASS + OF_PAIR * classes)
        passes += VARIATIONAL_PASSES * (2.0 * rows * weights**2 + at_points)
    announce_work(passes, f"A regression of {weights} weights given {rows} rows", remedy)


def regression_laplace(
    target: RegressionTarget, start: Floats | None = None, *, names: Sequence[str] | None = None
) -> GaussianPosterior:
    """Approximate the posterior of the weights by a Gaussian at its mode.

    Parameters
    ----------
    target
        The log posterior.
    start
        (dim,) where to begin; None begins on a subsample, or at the origin if there are few rows.
    names
        Names of the weights, for messages; w[0], w[1], … if None.

    Raises
    ------
    ConvergenceError
        If the prior is flat and the classes are perfectly separated (the message names a separating direction) or the
        weights are not identified (it names the direction that is not).
    """
    try:
        with blas_threads(target.dim):
            posterior = laplace_approximation(target, _find_start(target) if start is None else start)
    except ConvergenceError as error:
        _explain(target, names, error)
        raise
    if not target.prior.is_proper:
        # Under separation Newton creeps along the ridge until the gradient vanishes to rounding, and seems to converge.
        sample = target.Phi[:: max(1, target.n // 1000)]
        widest = max(_activation_sd(posterior, sample, k) for k in range(target.dim // sample.shape[1]))
        if widest > UNKNOWN_ACTIVATION:
            _explain(target, names, posterior)
    return posterior


def empirical_bayes(
    make_target: Callable[[float], RegressionTarget], *, names: Sequence[str] | None = None
) -> tuple[float, GaussianPosterior]:
    """Choose the prior scale of the slopes by maximising the Laplace evidence; return it and the posterior at it.

    Parameters
    ----------
    make_target
        From a prior scale to the target with that prior; see `with_prior_scale`.
    names
        Names of the weights, for messages.

    Raises
    ------
    ConvergenceError
        If the evidence has no maximum within reason: the data carry no information on the scale, or want none.
    """
    posteriors: dict[float, GaussianPosterior] = {}
    start: Floats | None = None

    def loss(log_scale: float) -> float:
        nonlocal start
        posterior = regression_laplace(make_target(float(np.exp(log_scale))), start, names=names)
        posteriors[log_scale] = posterior
        start = posterior.mean  # the modes of neighbouring scales are close
        return -posterior.log_evidence

    low, high = np.log(SCALE_BOUNDS)
    # The evidence is flat at both ends: a coarse look first, so that the search begins at the hill.
    grid = np.linspace(low, high, 13)
    best = grid[int(np.argmin([loss(x) for x in grid]))]
    if best in (grid[0], grid[-1]):
        end = "smallest" if best == grid[0] else "largest"
        raise ConvergenceError(
            f"The evidence is highest at the {end} prior scale tried, {np.exp(best):g}: the data do not determine it. "
            "Give `prior_scale` a number, or use the hierarchical prior.",
            partial=posteriors[best],
        )
    step = grid[1] - grid[0]
    result = minimize_scalar(loss, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(result.x)), posteriors[float(result.x)]


def with_prior_scale(target: RegressionTarget, scale: float) -> RegressionTarget:
    """Return the target with prior sd `scale` on all slopes and the intercept's, the first column's, as it was."""
    m = target.Phi.shape[1]
    if target.prior.covariance is not None:
        raise PriorError("The scale of a prior with a full covariance cannot be replaced. Give Normal(scale=…).")
    scales = np.full(m, scale)
    scales[0] = target.prior.scale_vector(m)[0]
    return replace(target, prior=Normal(mean=target.prior.mean, scale=frozen(scales)))


def _find_start(target: RegressionTarget) -> Floats | None:
    """Return where Newton's method should begin; None for the origin, if the data are few."""
    found: GaussianPosterior | None = None
    size = max(SUBSAMPLE_ROWS, SUBSAMPLE_ROWS_PER_WEIGHT * target.dim)
    if target.n >= 4 * size:  # the mode of a random subsample that stands for all rows, if it has one
        rows = np.sort(np.random.default_rng(SUBSAMPLE_SEED).choice(target.n, size, replace=False))
        part = target.subset(rows, weight=target.n / size)
        try:
            found = laplace_approximation(part, _climb_by_gradients(part))
        except ConvergenceError:
            return None
    return _climb_by_gradients(target, found)


def _climb_by_gradients(target: RegressionTarget, about: GaussianPosterior | None = None) -> Floats | None:
    """Return a point near the mode, found by gradients alone; the start itself where these would not pay.

    Parameters
    ----------
    target
        The log posterior.
    about
        A Gaussian near the mode, whose mean is the start and whose precision sets the coordinates; None for the origin
        and the precision there.
    """
    start = np.zeros(target.dim) if about is None else about.mean
    if target.dim < GRADIENT_WEIGHTS or target.n * target.dim < GRADIENT_ELEMENTS:
        return None if about is None else start
    if about is not None:
        L, z = about.chol_precision, np.zeros(target.dim)
    else:
        _, g, H = target.value_gradient_precision(start)
        try:
            L = np.linalg.cholesky(H)
        except np.linalg.LinAlgError:  # a flat prior that the rows do not make up for
            return None
        z = solve_triangular(L, g)  # Newton's first step

    def loss(z: Floats) -> tuple[float, Floats]:
        value, g = target.value_and_gradient(start + solve_triangular(L, z, transposed=True))
        return -value, -solve_triangular(L, g)

    options = {"gtol": GRADIENT_LENGTH, "ftol": 0.0, "maxfun": MAX_GRADIENTS, "maxls": LINE_SEARCH}
    with np.errstate(over="ignore", invalid="ignore"):
        found = minimize(loss, z, jac=True, method="L-BFGS-B", options=options)
        z, slope = found.x, found.jac
        for i in range(LAST_STEPS if found.success else 0):
            slope = loss(z)[1] if i else slope
            z = z - found.hess_inv @ slope
    return start + solve_triangular(L, z, transposed=True) if np.isfinite(z).all() else None


def _activation_sd(posterior: GaussianPosterior, Phi: Floats, block: int) -> float:
    """Largest standard deviation of an activation of the given rows, of one block of weights."""
    m = Phi.shape[1]
    padded = np.zeros((posterior.dim, len(Phi)))
    padded[block * m : (block + 1) * m] = Phi.T
    root = solve_triangular(posterior.chol_precision, padded)
    return float(np.sqrt(np.einsum("mn,mn->n", root, root).max()))


def _explain(target: RegressionTarget, names: Sequence[str] | None, partial: object) -> None:
    """Raise the reason why there is no mode, if it is separation or a direction that nothing determines."""
    labels = list(names) if names is not None else [f"w[{j}]" for j in range(target.dim)]
    direction = separating_direction(target)
    if direction is not None:
        raise ConvergenceError(
            f"The classes are perfectly separated along {describe_direction(direction, labels)}, so under a flat prior "
            "the weights have no finite mode. Give a proper prior, such as prior_scale=2.5.",
            partial=partial,
        )
    H = target.precision(np.zeros(target.dim))
    scale = np.sqrt(np.maximum(np.diag(H), 1e-300))
    values, vectors = np.linalg.eigh(H / scale[:, None] / scale)
    if values[0] < 1e-10:
        v = vectors[:, 0] / scale
        raise ConvergenceError(
            f"Nothing determines the weights along {describe_direction(v / np.abs(v).max(), labels)}: the columns are "
            "collinear there and the prior is flat. Drop a column, use reference=True for softmax, or a proper prior.",
            partial=partial,
        )


# ── Perfect separation ──────────────────────────────────────────────────────────────────────────────────────────────


def separating_direction(target: LogisticTarget | SoftmaxTarget) -> Floats | None:
    """Return a direction v (dim,), largest entry ±1, along which the likelihood only rises; None if there is none."""
    flat = np.diag(target.gaussian.precision) == 0
    if not flat.any():
        return None
    if isinstance(target, LogisticTarget):
        margins, columns = _binary_margins(target), np.flatnonzero(flat)
    else:
        margins = _softmax_margins(target)
        columns = np.flatnonzero(np.tile(flat, target.shape[0]))
    A = margins[:, columns]
    # max Σ A v subject to 0 ≤ A v ≤ 1: positive exactly if a direction exists. In units of the columns, for HiGHS.
    scale = np.sqrt(np.asarray(A.multiply(A).mean(axis=0)).ravel())
    scale[scale == 0] = 1.0
    A = A @ sparse.diags_array(1 / scale)
    n = A.shape[0]
    solution = linprog(
        -np.asarray(A.sum(axis=0)).ravel(),
        A_ub=sparse.vstack([-A, A], format="csr"),
        b_ub=np.concatenate([np.zeros(n), np.ones(n)]),
        bounds=(None, None),
        method="highs",
    )
    if solution.status != 0 or -solution.fun < 1e-7:
        return None
    v = np.zeros(target.dim)
    v[columns] = solution.x / scale
    return v / np.abs(v).max()


def describe_direction(v: Floats, names: list[str], most: int = 3) -> str:
    """Write the largest terms of a direction, such as `+1·glu −0.31·age`."""
    order = np.argsort(-np.abs(v), kind="stable")
    order = order[np.abs(v[order]) > 0.01]
    terms = [f"{v[j]:+.2g}·{names[j]}" for j in order[:most]]
    return " ".join(terms) + (f" and {len(order) - most} more" if len(order) > most else "")


def _binary_margins(target: LogisticTarget) -> sparse.csr_array:
    """Rows with successes pull one way, rows with failures the other; a row with both pins its activation to zero."""
    blocks = [target.Phi[target.successes > 0], -target.Phi[target.failures > 0]]
    return sparse.csr_array(np.vstack(blocks))


def _softmax_margins(target: SoftmaxTarget) -> sparse.csr_array:
    rows, m = target.shape
    seen = np.flatnonzero(np.ones(target.n) if target.sample_weight is None else target.sample_weight)
    blocks = []
    for k in range(target.K):
        of_class = target.Phi[seen][target.y[seen] == k]
        for other in range(target.K):
            if other == k:
                continue
            block = np.zeros((len(of_class), target.K, m))
            block[:, k], block[:, other] = of_class, -of_class
            blocks.append(sparse.csr_array(block[:, :rows].reshape(len(of_class), rows * m)))
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))


def state_prior(phi: FeatureMap, prior_scale: float | str, intercept_scale: float) -> Normal | HierarchicalScale:
    """Return the prior that the scales state; for empirical Bayes, where its search begins."""
    if prior_scale == "hierarchical":
        return HierarchicalScale(intercept_scale=intercept_scale)
    scale = prior_scale
    if scale == "empirical-bayes":
        if not phi.intercept:
            raise PriorError("Empirical Bayes needs a feature map with an intercept. Fit it with intercept=True.")
        scale = 1.0
    if isinstance(scale, str):
        raise PriorError(f"`prior_scale` must be a number, 'hierarchical' or 'empirical-bayes'; got {prior_scale!r}.")
    slopes = _single("prior_scale", scale)
    intercept = _single("intercept_scale", intercept_scale) if phi.intercept else slopes
    return Normal(scale=frozen([intercept, *[slopes] * (len(phi.names) - 1)]))


def _single(name: str, value: Any) -> float:
    array: Floats = positive(name, value, infinite=True)
    if array.ndim:
        raise PriorError(f"`{name}` must be one number; got shape {array.shape}. Give Normal(scale=…) as `prior`.")
    return float(array)
