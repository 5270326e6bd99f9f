"""Linear classifiers by subgradient descent on the hinge loss: the linear support vector machine.

    J(w) = (1/n) Σ max(0, 1 − y_i wᵀφ_i) + (λ/2) |slopes|²,   y = ±1,   λ = l2/n
    subgradient of a row   −y φ 1[y wᵀφ < 1] + λ (0, slopes)

A subgradient step may raise J, so the steps must fall, and the end point is the best of the last weights and of their
average, in which weights t count t times (Lacoste-Julien, Schmidt & Bach 2012). With steps 1/(λt) the distance of the
average from the minimum falls as 1/t.
"""

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from bayes_gda.baselines.linear import LinearClassifier, Training, not_negative, whole
from bayes_gda.baselines.steps import Steps
from bayes_gda.checks import Floats

# Epochs before the rule of stopping is asked: its two halves need some epochs each.
LEAST_EPOCHS = 20
# Without a penalty there is no curvature to set the steps by. Then the error falls as t^−(1 − power): 0.6 is near the
# best power, ½, and still meets Robbins–Monro. The first 100 batch steps are nearly equal.
FREE_POWER, FREE_OFFSET = 0.6, 100


class HingeClassifier(LinearClassifier):
    """Linear classifier of least hinge loss, by (sub)gradient descent; more than two classes one against the rest.

    Parameters
    ----------
    online
        Whether each row makes a step of its own; else all rows one step together.
    step
        A number is a fixed step; `Steps` falls with the steps t. None is 1/(λt + L), L the largest eigenvalue of ΦᵀΦ/n,
        or online the largest |φ|².
    l2
        Penalty: C = 1/l2 in the notation of support vector machines. Intercepts are free.
    tol
        Stop when the second half of all epochs lowered J by no more: an error that falls as 1/t halves meanwhile, so
        that about as much remains to be gained; without a penalty, some three times as much.
    max_epochs
        Passes over the data at most.
    random_state
        Seed of the order of the rows, which is new in every online epoch.

    Attributes
    ----------
    classes_, coef_, intercept_
        Labels (K,), slopes (R, d) and intercepts (R,); R = 1 for two classes, else K.
    converged_, n_iter_
        Whether `tol` was reached, for every class; epochs.
    learning_curve_
        Table: `epoch`, `loss` (J of the last weights), `best` (the lowest J so far), each summed over classes, and
        `errors` (rows that the best weights misclassify).

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.baselines import HingeClassifier
    >>> data = load_example("lda-mixture")
    >>> round(HingeClassifier(tol=0.01).fit(data.X, data.y).score(data.X, data.y), 2)
    0.91
    """

    def __init__(
        self,
        *,
        online: bool = False,
        step: float | Steps | None = None,
        l2: float = 1.0,
        tol: float = 1e-3,
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
        """Learn from rows X (n, d) and labels y (n,); warns if the loss was still falling."""
        training = self._training(X, y)
        l2, tol = not_negative("l2", self.l2), not_negative("tol", self.tol)
        epochs = whole("max_epochs", self.max_epochs)
        steps = _default_steps(training, l2, online=self.online) if self.step is None else Steps.of(self.step)
        rng, descent = check_random_state(self.random_state), _Descent(training, l2, steps)
        curve, lowest, gain = [], [], np.inf
        for epoch in range(1, epochs + 1):
            if self.online:
                for i in rng.permutation(training.n):
                    descent.step(slice(i, i + 1))
            else:
                descent.step(slice(None))
            loss = descent.look()
            lowest.append(descent.lowest)
            curve.append(
                {"epoch": epoch, "loss": loss, "best": descent.lowest.sum(), "errors": training.errors(descent.best)}
            )
            if epoch >= LEAST_EPOCHS:
                gain = float((lowest[epoch // 2 - 1] - lowest[-1]).max())
            if gain <= tol:
                break
        self._store(descent.best, curve, converged=gain <= tol)
        if not self.converged_:
            self._warn(self._remedy(steps, gain, tol))
        return self

    def _remedy(self, steps: Steps, gain: float, tol: float) -> str:
        if not steps.robbins_monro:
            return (
                f"the steps fall as t^−{steps.power:g}, which does not meet the Robbins–Monro conditions, so that the "
                "loss need not settle at its minimum. Use Steps with ½ < power ≤ 1."
            )
        fell = f"the loss fell by {gain:.2g} in the second half" if np.isfinite(gain) else "too few to tell"
        return (
            f"not settled after {self.max_epochs} epochs: {fell}, tol={tol:g}. "
            "Raise max_epochs, standardise the features, or raise l2."
        )


class _Descent:
    """Weights of all classes on their way down, their average, and the best so far."""

    def __init__(self, training: Training, l2: float, steps: Steps) -> None:
        self.Phi, self.signs, self.steps = training.Phi, training.signs, steps
        R, m = len(self.signs), self.Phi.shape[1]
        self.shrink = np.full(m, l2 / training.n)  # λ, none for the intercept
        self.shrink[0] = 0.0
        self.W, self.mean, self.best = np.zeros((R, m)), np.zeros((R, m)), np.zeros((R, m))
        self.lowest = self.objective(self.W)
        self.t = 0

    def step(self, rows: slice) -> None:
        """Go down the subgradient of the given rows, and move the average along."""
        Phi, Y = self.Phi[rows], self.signs[:, rows]
        active = np.where(Y * (self.W @ Phi.T) < 1, Y, 0.0)
        self.W = self.W + self.steps(self.t) * (active @ Phi / len(Phi) - self.shrink * self.W)
        self.t += 1
        # Weights of step t count t times: their share of 1 + 2 + … + t is 2/(t + 1).
        self.mean += 2 / (self.t + 1) * (self.W - self.mean)

    def objective(self, W: Floats) -> Floats:
        """Return J (R,) of the weights of each class."""
        hinge = np.maximum(0.0, 1 - self.signs * (W @ self.Phi.T)).mean(axis=1)
        out: Floats = hinge + 0.5 * W**2 @ self.shrink
        return out

    def look(self) -> float:
        """Keep what is better than the best so far; return the sum of J at the current weights."""
        J = self.objective(self.W)
        for candidate, value in ((self.W, J), (self.mean, self.objective(self.mean))):
            better = value < self.lowest
            self.best = np.where(better[:, None], candidate, self.best)
            self.lowest = np.where(better, value, self.lowest)
        return float(J.sum())


def _default_steps(training: Training, l2: float, *, online: bool) -> Steps:
    """Return 1/(λt + L), or 1/L falling as t^−0.6 if there is no penalty."""
    n, Phi = training.n, training.Phi
    L = float((Phi**2).sum(axis=1).max() if online else np.linalg.eigvalsh(Phi.T @ Phi / n)[-1])
    if l2 > 0:
        return Steps(a=n / l2, b=L * n / l2)
    b = float(n if online else FREE_OFFSET)
    return Steps(a=b**FREE_POWER / L, b=b, power=FREE_POWER)
