"""Logistic regression by gradient ascent, on all rows at once or on one row at a time.

    J(W) = (1/n) Σ log p(y_i | x_i) − (l2/2n) |slopes|²
    batch    W ← W + η_t ∂J/∂W,                  ∂J/∂w_k = (1/n) Σ (1[y_i = k] − p_ik) φ_i − (l2/n) w_k
    online   W ← W + η_t (one term of the sum)

J is concave, and its gradient changes by at most L = c λ_max(ΦᵀΦ/n) + l2/n times the step, with c = ¼ for two classes
and ½ for more (Böhning 1992). With η = 1/L no batch step lowers J. Single rows are noisy: there the steps must fall as
Robbins & Monro say.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from bayes_gda.baselines.likelihood import (
    ProbabilisticLinear,
    as_rows,
    objective,
    regression_target,
    separation_message,
)
from bayes_gda.baselines.linear import Training, not_negative, whole
from bayes_gda.baselines.steps import Steps
from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError

# Fall of the default online steps: fast enough for Robbins–Monro (above ½), slow enough not to stop short where J is
# flat, as 1/t does if its factor is below 1/curvature.
ONLINE_POWER = 0.75


class GradientLogistic(ProbabilisticLinear):
    """Logistic regression, binary or with the last class as reference, by gradient ascent.

    Parameters
    ----------
    online
        Whether each row makes a step of its own.
    step
        A number is a fixed step; `Steps` falls with the steps t. None is 1/L in batch, which never overshoots, and
        online 1/L₁ (1 + t/n)^−¾, L₁ being the largest L of a single row.
    l2
        Penalty ½ l2 |slopes|² on the log-likelihood; 1/C of scikit-learn.
    tol
        Stop when no entry of ∂J/∂W is larger.
    max_epochs
        Passes over the data at most.
    random_state
        Seed of the order of the rows, which is new in every online epoch.

    Attributes
    ----------
    classes_, coef_, intercept_
        Labels (K,), slopes and intercepts: one row for two classes, else K rows of which the last is zero.
    converged_, n_iter_
        Whether `tol` was reached at a maximum that exists; epochs.
    learning_curve_
        Table of what holds at the end of each `epoch`: `loss` (−J), `errors` (rows misclassified) and `gradient` (its
        largest entry).

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.baselines import GradientLogistic
    >>> data = load_example("lda-mixture")
    >>> round(GradientLogistic(tol=0.001).fit(data.X, data.y).score(data.X, data.y), 2)
    0.91
    """

    def __init__(
        self,
        *,
        online: bool = False,
        step: float | Steps | None = None,
        l2: float = 1.0,
        tol: float = 1e-4,
        max_epochs: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.online = online
        self.step = step
        self.l2 = l2
        self.tol = tol
        self.max_epochs = max_epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X (n, d) and labels y (n,); warns if the maximum was not reached, and says why.

        Raises
        ------
        ConvergenceError
            If steps that are too long make the weights overflow.
        """
        training = self._training(X, y)
        l2, tol = not_negative("l2", self.l2), not_negative("tol", self.tol)
        epochs = whole("max_epochs", self.max_epochs)
        target, rng = regression_target(training, l2), check_random_state(self.random_state)
        safe = safe_steps(training, l2, online=self.online)
        steps = safe if self.step is None else Steps.of(self.step)
        w, curve = np.zeros(target.dim), []
        g = target.gradient(w) / training.n
        with np.errstate(over="ignore", invalid="ignore"):  # steps that are too long are seen by the gradient
            for epoch in range(epochs):
                w = _online_epoch(w, training, steps, epoch, l2, rng) if self.online else w + steps(epoch) * g
                g = target.gradient(w) / training.n
                size = float(np.abs(g).max())
                curve.append(
                    {
                        "epoch": epoch + 1,
                        "loss": objective(target, w, l2),
                        "errors": training.errors(as_rows(w, training)),
                        "gradient": size,
                    }
                )
                if not size > tol:
                    break
        if not np.isfinite(size):
            raise ConvergenceError(
                f"GradientLogistic: the weights overflow in epoch {len(curve)}. {self._remedy(steps, safe)}", partial=w
            )
        separated = separation_message(target, self._names(), self.classes_.tolist()) if l2 == 0 else None
        self._store(as_rows(w, training), curve, converged=size <= tol and separated is None)
        if separated is not None:
            self._warn(separated)
        elif not self.converged_:
            self._warn(
                f"the gradient is {size:.2g} after {len(curve)} epochs, above tol={tol:g}. {self._remedy(steps, safe)}"
            )
        return self

    def _remedy(self, steps: Steps, safe: Steps) -> str:
        if steps(0) > 2 * safe(0):
            return f"The first step, {steps(0):.2g}, is above 2/L = {2 * safe(0):.2g} and overshoots. Use step=None."
        if self.online and not steps.robbins_monro:
            return (
                f"Steps that fall as t^−{steps.power:g} do not meet the Robbins–Monro conditions, so that single rows "
                "do not settle. Use Steps with ½ < power ≤ 1."
            )
        if not self.online and not steps.sum_diverges:
            return "The steps have a finite sum and may never get there. Use a power of at most 1."
        return "Raise max_epochs, standardise the features, or use IRLSLogistic."


def safe_steps(training: Training, l2: float, *, online: bool) -> Steps:
    """Return the default steps: 1/L in batch, falling from 1/L₁ online."""
    n, c = training.n, 0.25 if training.K == 2 else 0.5
    if not online:
        return Steps.fixed(1 / (c * np.linalg.eigvalsh(training.Phi.T @ training.Phi / n)[-1] + l2 / n))
    longest = (training.Phi**2).sum(axis=1).max()
    return Steps(a=n**ONLINE_POWER / (c * longest + l2 / n), b=n, power=ONLINE_POWER)


def _online_epoch(
    w: Floats, training: Training, steps: Steps, epoch: int, l2: float, rng: np.random.RandomState
) -> Floats:
    """Let every row make its step once, in a random order; return the new weights."""
    n, m = training.Phi.shape
    W = w.reshape(-1, m).copy()
    # Classes with weights of their own: the second of two, or all but the last.
    hit = (training.y[:, None] == (np.array([1]) if training.K == 2 else np.arange(training.K - 1))).astype(float)
    shrink = np.full(m, l2 / n)
    shrink[0] = 0.0
    for t, i in enumerate(rng.permutation(n), start=epoch * n):
        phi, a = training.Phi[i], W @ training.Phi[i]
        top = max(0.0, a.max())  # the reference class has activation 0
        e = np.exp(a - top)
        residual = hit[i] - e / (e.sum() + np.exp(-top))
        W += steps(t) * (residual[:, None] * phi - shrink * W)
    return W.ravel()
