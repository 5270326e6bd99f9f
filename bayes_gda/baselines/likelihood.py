"""The likelihood that the logistic learners climb, from the package's own targets, and its probabilities.

    −n J = Σ log p(y_i | x_i) − ½ l2 |slopes|²

Two classes have one weight vector, of the second against the first; K classes have K − 1, each against the last. The
penalty is the log density of the prior N(0, 1/l2) on slopes; intercepts are free.
"""

from typing import Any

import numpy as np
from scipy.special import expit, log_expit, log_softmax, softmax

from bayes_gda.baselines.linear import LinearClassifier, Training
from bayes_gda.checks import Floats, frozen
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import RegressionTarget, describe_direction, separating_direction
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.priors import Normal


def regression_target(training: Training, l2: float) -> RegressionTarget:
    """Return the penalised log-likelihood with its derivatives, as the log posterior under N(0, 1/l2) slopes."""
    m = training.Phi.shape[1]
    slope_scale = np.inf if l2 == 0 else l2**-0.5
    prior = Normal(scale=frozen([np.inf, *[slope_scale] * (m - 1)]))
    if training.K == 2:
        return LogisticTarget(training.Phi, training.y.astype(float), prior)
    return SoftmaxTarget(training.Phi, training.y, training.K, prior, reference=True)


def as_rows(w: Floats, training: Training) -> Floats:
    """Return the weights as rows: (1, m) for two classes, (K, m) for more, the reference class with zeros."""
    W = w.reshape(-1, training.Phi.shape[1])
    return W if training.K == 2 else np.vstack([W, np.zeros((1, W.shape[1]))])


def objective(target: RegressionTarget, w: Floats, l2: float) -> float:
    """Return (−log-likelihood + ½ l2 |slopes|²)/n, what is minimised."""
    slopes = w.reshape(-1, target.Phi.shape[1])[:, 1:]
    return float((0.5 * l2 * np.sum(slopes**2) - target.log_likelihood(w)) / target.n)


def separation_message(target: RegressionTarget, names: list[str], classes: list[Any]) -> str | None:
    """Say along which direction the classes are separated, so that no maximum exists; None if there is a maximum."""
    v = separating_direction(target)
    if v is None:
        return None
    rows = len(v) // len(names)
    labels = names if rows == 1 else [f"{name}[{classes[k]}]" for k in range(rows) for name in names]
    return (
        f"the classes are perfectly separated along {describe_direction(v, labels)}, so without a penalty the weights "
        "grow for ever. Give l2 > 0, or use the Bayesian model, whose prior holds them."
    )


class ProbabilisticLinear(LinearClassifier):
    """A linear classifier whose scores are log-odds: of the second class, or of each against the last."""

    def predict_proba(self, X: Any) -> Floats:
        """Return the class probabilities (n, K) of rows (n, d)."""
        A = self.decision_function(X)
        # Both classes by σ itself: no probability is found by subtraction.
        return np.column_stack([expit(-A), expit(A)]) if A.ndim == 1 else np.asarray(softmax(A, axis=1))

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the class probabilities (n, K)."""
        A = self.decision_function(X)
        return np.column_stack([log_expit(-A), log_expit(A)]) if A.ndim == 1 else np.asarray(log_softmax(A, axis=1))
