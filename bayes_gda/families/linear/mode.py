"""The Laplace approximation of logistic and softmax regression: a good start, and clear words when there is no mode.

Newton's method takes some eight passes over the data from the origin. With many rows, the mode of a subsample is found
first, which lies within a few posterior standard deviations, and two or three passes over all rows finish.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from bayes_gda.checks import Floats, frozen
from bayes_gda.errors import ConvergenceError, PriorError
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.separation import describe_direction, separating_direction
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.linalg import solve_triangular
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.priors import Normal

RegressionTarget = LogisticTarget | SoftmaxTarget

# Rows of the subsample, the larger of the two; it is used if the data have four times as many. 50 rows a weight put its
# mode well inside the region where Newton converges at once.
SUBSAMPLE_ROWS = 20_000
SUBSAMPLE_ROWS_PER_WEIGHT = 50
SUBSAMPLE_SEED = 0
# An activation whose standard deviation is this large is not known at all: probabilities from 0 to 1 are all possible.
# Only separation, or a column that is a combination of others, does that under a flat prior.
UNKNOWN_ACTIVATION = 50.0
# Prior scales among which empirical Bayes looks: from no effect at all to practically flat, on standardised features.
SCALE_BOUNDS = (1e-3, 1e3)


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
        posterior = laplace_approximation(target, _subsample_start(target) if start is None else start)
    except ConvergenceError as error:
        _explain(target, names, error)
        raise
    if not target.prior.is_proper:
        # Under separation Newton creeps along the ridge until the gradient vanishes to rounding, and seems to converge.
        some = target.Phi[:: max(1, target.n // 1000)]
        widest = max(_activation_sd(posterior, some, k) for k in range(target.dim // some.shape[1]))
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
    found: dict[float, GaussianPosterior] = {}
    start: Floats | None = None

    def loss(log_scale: float) -> float:
        nonlocal start
        posterior = regression_laplace(make_target(float(np.exp(log_scale))), start, names=names)
        found[log_scale] = posterior
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
            partial=found[best],
        )
    step = grid[1] - grid[0]
    result = minimize_scalar(loss, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-4})
    return float(np.exp(result.x)), found[float(result.x)]


def with_prior_scale(target: RegressionTarget, scale: float) -> RegressionTarget:
    """Return the target with prior sd `scale` on all slopes and the intercept's, the first column's, as it was."""
    m = target.Phi.shape[1]
    if target.prior.covariance is not None:
        raise PriorError("The scale of a prior with a full covariance cannot be replaced. Give Normal(scale=…).")
    scales = np.full(m, scale)
    scales[0] = target.prior.scale_vector(m)[0]
    return replace(target, prior=Normal(mean=target.prior.mean, scale=frozen(scales)))


def _subsample_start(target: RegressionTarget) -> Floats | None:
    """Return the mode of a random subsample that stands for all rows; None if the data are few or it has no mode."""
    size = max(SUBSAMPLE_ROWS, SUBSAMPLE_ROWS_PER_WEIGHT * target.dim)
    if target.n < 4 * size:
        return None
    rows = np.sort(np.random.default_rng(SUBSAMPLE_SEED).choice(target.n, size, replace=False))
    try:
        return laplace_approximation(target.subset(rows, weight=target.n / size)).mean
    except ConvergenceError:
        return None


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
