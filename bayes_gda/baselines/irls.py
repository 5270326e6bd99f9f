"""Logistic regression by iteratively reweighted least squares: Newton's method on the log-likelihood.

    two classes   log p₁/p₀ = wᵀφ
    more          log p_k/p_K = w_kᵀφ,  k < K: the last class is the reference
    step          w ← w + H⁻¹g,  g = Φᵀ(y − p),  H = Φᵀ diag(r) Φ,  r = p(1 − p)

The step solves the least-squares problem with weights r and response Φw + (y − p)/r, whence the name. With K classes it
is the full Newton step on all (K − 1)m weights. A penalty adds −½ l2 |slopes|², which is the log density of the prior
N(0, 1/l2); intercepts are free.
"""

from typing import Any, Self

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bayes_gda.baselines.likelihood import (
    ProbabilisticLinear,
    as_rows,
    objective,
    regression_target,
    separation_message,
)
from bayes_gda.baselines.linear import not_negative, whole
from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.linear.mode import RegressionTarget

# A pivot of the scaled curvature below this is rounding, not information.
SINGULAR = 1e-7


class IRLSLogistic(ProbabilisticLinear):
    """Logistic regression, binary or with a reference class, by IRLS.

    Parameters
    ----------
    l2
        Penalty ½ l2 |slopes|² on the log-likelihood; 1/C of scikit-learn. 0 is maximum likelihood, which exists only
        if the classes are not separated. With more than two classes it shrinks towards the reference class, the last.
    tol
        Stop when a step changes no activation by more than this. Under separation the steps do not shrink, so that a
        vanishing gradient is not mistaken for a maximum.
    max_iter
        Newton steps at most.

    Attributes
    ----------
    classes_, coef_, intercept_
        Labels (K,), slopes and intercepts: one row for two classes, else K rows of which the last is zero.
    converged_, n_iter_
        Always True, as anything else raises; steps taken.
    learning_curve_
        Table: `iteration`, `loss` (−log-likelihood + penalty, a row), `errors` (rows misclassified) and `gradient` (its
        largest entry, a row), the start first.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.baselines import IRLSLogistic
    >>> data = load_example("lda-mixture")
    >>> round(IRLSLogistic().fit(data.X, data.y).score(data.X, data.y), 2)
    0.91
    """

    def __init__(self, *, l2: float = 1.0, tol: float = 1e-8, max_iter: int = 100) -> None:
        self.l2 = l2
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X (n, d) and labels y (n,).

        Raises
        ------
        ConvergenceError
            If there is no maximum: the classes are separated, or columns are collinear, and l2 is 0.
        """
        training = self._training(X, y)
        l2, tol, max_iter = not_negative("l2", self.l2), not_negative("tol", self.tol), whole("max_iter", self.max_iter)
        target = regression_target(training, l2)
        w, curve, change = np.zeros(target.dim), [], np.inf
        for iteration in range(max_iter + 1):
            value, g, H = target.value_gradient_precision(w)
            curve.append(
                {
                    "iteration": iteration,
                    "loss": objective(target, w, l2),
                    "errors": training.errors(as_rows(w, training)),
                    "gradient": np.abs(g).max() / training.n,
                }
            )
            if change <= tol or iteration == max_iter:
                break
            step = _solve(H, g)
            if step is None:
                break
            # Halve until the log-likelihood does not fall; a loss below its rounding cannot be seen.
            while not float(target.log_density(w + step)) >= value - 1e-13 * (1 + abs(value)):
                step = step / 2
            w = w + step
            change = float(np.abs(training.Phi @ step.reshape(-1, training.Phi.shape[1]).T).max())
        if change > tol:
            raise ConvergenceError(f"IRLSLogistic: {self._reason(target, change)}", partial=w)
        self._store(as_rows(w, training), curve, converged=True)
        self.n_iter_ = len(curve) - 1
        return self

    def _reason(self, target: RegressionTarget, change: float) -> str:
        separated = separation_message(target, self._names(), self.classes_.tolist())
        if separated is not None:
            return separated
        if _solve(target.precision(np.zeros(target.dim)), np.zeros(target.dim)) is None:
            return (
                "the columns of X are collinear, or one is constant: many weights fit alike. Drop one, or give l2 > 0."
            )
        return (
            f"the activations still changed by {change:.2g} in the last of {self.max_iter} steps. "
            "Raise max_iter or tol, or standardise the features."
        )


def _solve(H: Floats, g: Floats) -> Floats | None:
    """Return H⁻¹g, in units of H's diagonal; None if H is not positive definite to rounding."""
    d = np.sqrt(np.diag(H))
    if not (d > 0).all():
        return None
    try:
        factor = cho_factor(H / d[:, None] / d, lower=True)
    except LinAlgError:
        return None
    if np.diag(factor[0]).min() < SINGULAR:
        return None
    return np.asarray(cho_solve(factor, g / d) / d)
