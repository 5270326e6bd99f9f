"""What all generative models answer alike, once they have a predictive density and draws of their parameters.

    p(y=k | x, D) ∝ E[π_k] p(x | y=k, D)

A subclass holds `moments` and `alpha`, and says how its log joint density and its draws come about.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import ObservedCounts, has_gaps
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.gaps.predictive import log_joint_observed_per_draw
from bayes_gda.families.gaussian.predictive import draw_rows, log_class_probabilities, log_joint_per_draw
from bayes_gda.prediction.decisions import generative_draws
from bayes_gda.prediction.shift import reweigh
from bayes_gda.priors import Seed


class GenerativeClassifier:
    """A fitted model of p(x, y) whose data are known by their moments."""

    __slots__ = ()

    moments: Moments | ObservedCounts
    alpha: Floats

    @property
    def K(self) -> int:
        """Number of classes."""
        return self.moments.K

    @property
    def class_shares(self) -> Floats:
        """E[π | D] (K,): π is independent of means and covariances given the data, whatever their prior."""
        alpha = self.alpha + self.moments.count
        return np.asarray(alpha / alpha.sum())

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | D) (n, K) of rows (n, d)."""
        raise NotImplementedError

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `pi`, `mu` and `Sigma` or `sigma2` (size, …)."""
        raise NotImplementedError

    def log_probabilities(self, X: Floats, class_prior: ArrayLike | None = None) -> Floats:
        """Return log p(y=k | x, D) (n, K), with the class shares (K,) in place of E[π] if they are given."""
        log_joint = self.log_joint(X)
        if class_prior is not None:
            return reweigh(log_joint, self.class_shares, class_prior)
        return log_class_probabilities(log_joint)

    def draw_log_joint(self, X: Floats, size: int, *, random_seed: Seed = None) -> Floats:
        """Return log p(x, y=k | θ_s) (size, n, K) under draws of the parameters."""
        return joint_per_draw(self.draw_variables(size, random_seed=random_seed), X)

    def probability_draws(
        self, variables: Mapping[str, Floats], X: Floats, class_prior: ArrayLike | None = None
    ) -> tuple[Floats, Floats | None]:
        """Return p(y=k | x, θ_s) (S, n, K) and weights ∝ p(x | θ_s) (S, n)."""
        if class_prior is None:
            return generative_draws(joint_per_draw(variables, X))
        pi = variables["pi"]
        conditional = joint_per_draw(dict(variables) | {"pi": np.ones_like(pi)}, X)
        uniform = np.full(self.K, 1 / self.K)
        # reweigh checks the shares, and returns log p(y | x, θ); log p(x | θ) is the difference of any class.
        log_p = reweigh(conditional, uniform, class_prior)
        with np.errstate(divide="ignore"):
            log_x = logsumexp(conditional + np.log(np.asarray(class_prior, dtype=np.float64)), axis=2)
        return np.exp(log_p), np.asarray(softmax(log_x, axis=0))

    def sample(self, size: int, *, random_seed: Seed = None) -> tuple[Floats, NDArray[np.intp]]:
        """Draw new rows (size, d) and their class codes (size,) from the posterior predictive."""
        rng = np.random.default_rng(random_seed)
        return draw_rows(self.draw_variables(size, random_seed=rng), random_seed=rng)


def joint_per_draw(draws: Mapping[str, Floats], X: Floats) -> Floats:
    """Return log p(x, y=k | θ_s) (S, n, K) of what each row has."""
    return (log_joint_observed_per_draw if has_gaps(X) else log_joint_per_draw)(draws, X)
