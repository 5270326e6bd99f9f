"""Fitted models: a posterior, however it was found, and what it says of new rows.

    GaussianClassifier      p(y=k | x, D) ∝ E[π_k] ∫ N(x | μ_k, Σ_k) p(μ, Σ | D)
    AveragedClassifier      an average of the former over a grid of priors, in `averaged`
    RegressionClassifier    p(y=k | x, D) = ∫ p(y=k | φ(x), w) p(w | D) dw

Each holds an exact or Gaussian posterior, from which the integral is taken in closed form or near it, or draws, over
which it is a mean. All answer the same few questions, so that `prediction.uncertainty` need not ask how a model was
fitted. All work goes in blocks of rows: memory beside the answer does not grow with n.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_softmax, softmax

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.gaps import ObservedCounts, has_gaps
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.averaged import AveragedClassifier
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.families.gaussian.gaps.predictive import Source, log_joint_observed
from bayes_gda.families.gaussian.generative import GenerativeClassifier
from bayes_gda.families.gaussian.predictive import log_joint_of_draws, row_blocks
from bayes_gda.families.linear import links, softmax_links
from bayes_gda.families.linear.predictors import Activations, binary_activations, softmax_activations
from bayes_gda.linalg import AVERAGED_WIDTH, draw_blocks, for_blocks, product
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.prediction.shift import reweigh
from bayes_gda.priors import LKJ, NIG, NIW, Seed

Covariance = Literal["shared", "own", "diagonal"]


# ── Generative ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class GaussianClassifier(GenerativeClassifier):
    """Fitted LDA (`shared` covariance), QDA (`own`) or naive Gaussian classifier (`diagonal`).

    All that it is asked of rows X (n, d) it answers of incomplete ones, too: what is NaN is integrated out.

    Parameters
    ----------
    covariance
        Which covariances the classes have.
    moments
        Sufficient statistics of the training rows; if these had gaps, what was counted.
    prior, alpha
        Prior of means and covariances; (K,) Dirichlet parameters of the class shares, before the data.
    posterior
        The exact posterior, or None.
    draws
        `pi` (S, K), `mu` (S, K, d) and `Sigma` (S, [K,] d, d) or `sigma2` (S, K, d), all of equal weight, or None.
    """

    covariance: Covariance
    moments: Moments | ObservedCounts
    prior: NIW | NIG | LKJ
    alpha: Floats
    posterior: NIWPosterior | NIGPosterior | None = None
    draws: Mapping[str, Floats] | None = None

    def __post_init__(self) -> None:
        _check_source(self.posterior, self.draws)
        object.__setattr__(self, "alpha", frozen(self.alpha))
        if self.draws is not None:
            spread = "sigma2" if self.covariance == "diagonal" else "Sigma"
            kept = {name: np.asarray(self.draws[name], dtype=np.float64) for name in ("pi", "mu", spread)}
            object.__setattr__(self, "draws", kept)

    @property
    def source(self) -> Source:
        """The exact posterior, or the draws."""
        if self.posterior is not None:
            return self.posterior
        assert self.draws is not None
        return self.draws

    def log_density(self, X: Floats) -> Floats:
        """Return log p(x | y=k, D) (n, K): Student-t if exact, else the log of the mean density over the draws."""
        gaps = has_gaps(X)
        if self.posterior is not None:
            alpha = self.posterior.alpha
            log_joint = log_joint_observed(self.posterior, X) if gaps else self.posterior.log_joint(X)
            return log_joint - np.log(alpha / alpha.sum())
        assert self.draws is not None
        # log π = 0: the share is put in afterwards, exactly
        conditional = dict(self.draws) | {"pi": np.ones_like(self.draws["pi"])}
        out = np.empty((len(X), self.K))
        for rows in row_blocks(len(X), self.K * 64):  # 64 draws at once at least
            out[rows] = (log_joint_observed if gaps else log_joint_of_draws)(conditional, X[rows])
        return out

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | D) (n, K) of rows (n, d)."""
        return self.log_density(X) + np.log(self.class_shares)

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `pi`, `mu` and `Sigma` or `sigma2` (size, …); of draws that are at hand, as many as asked for."""
        if self.posterior is not None:
            return self.posterior.draw(size, random_seed=random_seed)
        assert self.draws is not None
        chosen = _choose(len(self.draws["pi"]), size, random_seed)
        return {name: value[chosen] for name, value in self.draws.items()}


# ── Regression ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, eq=False)
class RegressionClassifier:
    """Fitted logistic or softmax regression.

    Parameters
    ----------
    features
        The feature map φ.
    K
        Number of classes.
    binary, reference
        Whether it is logistic regression; whether the last class of a softmax regression has weights zero.
    shares
        (K,) shares of the classes in the training rows, which the probabilities stand on.
    posterior
        Gaussian posterior of the weights (dim,), the rows of W one after the other; or None.
    draws
        (S, dim) draws of the weights, of equal weight; or None.
    tau
        (S,) draws of a hierarchical prior's scale that go with `draws`; None if the scale is fixed.
    """

    features: FeatureMap
    K: int
    binary: bool
    reference: bool
    shares: Floats
    posterior: GaussianPosterior | None = None
    draws: Floats | None = None
    tau: Floats | None = None

    def __post_init__(self) -> None:
        _check_source(self.posterior, self.draws)
        object.__setattr__(self, "shares", frozen(self.shares))
        if self.draws is not None:
            object.__setattr__(self, "draws", frozen(self.draws))

    @property
    def class_shares(self) -> Floats:
        """The shares (K,) of the classes that the probabilities stand on."""
        return self.shares

    def log_probabilities(self, X: Floats, class_prior: ArrayLike | None = None) -> Floats:
        """Return log p(y=k | x, D) (n, K); other class shares (K,) move the log-odds by log π'_k/π_k."""
        out = np.empty((len(X), self.K))
        if self.posterior is None:
            for rows in row_blocks(len(X), len(self.features.names)):
                out[rows] = self._of_draws(self.features(X[rows]))
        else:
            self._of_gaussian(X, self.posterior, out)
        return out if class_prior is None else reweigh(out, self.shares, class_prior)

    def _of_gaussian(self, X: Floats, posterior: GaussianPosterior, out: Floats) -> None:
        """Write log p(y=k | x, D) of the rows of X into `out`, block by block while they are in cache."""
        activations = self.activations(posterior)
        link = links.log_expected_sigmoids if self.binary else softmax_links.log_sobol

        def write(rows: slice) -> None:
            out[rows] = link(*activations(self.features(X[rows])))

        for_blocks(write, len(X), len(self.features.names))

    def _of_draws(self, Phi: Floats) -> Floats:
        assert self.draws is not None
        S, out = len(self.draws), np.empty((len(Phi), self.K))
        W = self.draws if self.binary else np.ascontiguousarray(self._full(self.draws).swapaxes(0, 1))

        def mean(part: Floats, some: slice) -> Floats:
            if self.binary:
                return links.sigmoid_means(part @ W[some].T)
            return softmax_links.softmax_of_draws(part, W[:, some]).mean(axis=-1)

        def log_terms(part: Floats) -> Floats:
            if self.binary:
                return links.log_sigmoids(part @ W.T)
            return log_softmax((part @ W.reshape(-1, Phi.shape[1]).T).reshape(-1, self.K, S), axis=1)

        def average(rows: slice) -> None:
            part = Phi[rows]
            total = sum((some.stop - some.start) * mean(part, some) for some in draw_blocks(S, self.K))
            out[rows] = links.log_of_mean(np.asarray(total / S), lambda tiny: log_terms(part[tiny]))

        for_blocks(average, len(Phi), AVERAGED_WIDTH)
        return out

    def activations(self, posterior: GaussianPosterior) -> Activations:
        """Return the function from rows of a design matrix to the moments of their activations."""
        if self.binary:
            return binary_activations(posterior)
        return softmax_activations(posterior, self.K, reference_class=self.reference)

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `w` (size, m), or (size, K, m) for softmax, and `tau` (size,) if it is unknown."""
        if self.posterior is not None:
            return {"w": self._full(self.posterior.draw(size, random_seed=random_seed))}
        assert self.draws is not None
        chosen = _choose(len(self.draws), size, random_seed)
        variables = {"w": self._full(self.draws[chosen])}
        return variables if self.tau is None else {"tau": np.asarray(self.tau)[chosen]} | variables

    def draw_probabilities(self, X: Floats, size: int, *, random_seed: Seed = None) -> Floats:
        """Return p(y=k | x, w_s) (size, n, K) under draws of the weights."""
        return self.probability_draws(self.draw_variables(size, random_seed=random_seed), X)[0]

    def probability_draws(
        self, variables: Mapping[str, Floats], X: Floats, class_prior: ArrayLike | None = None
    ) -> tuple[Floats, Floats | None]:
        """Return p(y=k | x, w_s) (S, n, K); all weigh alike, since x says nothing of w."""
        Phi, w = self.features(X), variables["w"]
        if self.binary:
            a = product(w, Phi.T)
            P = np.stack([expit(-a), expit(a)], axis=2)
        else:
            a = product(np.ascontiguousarray(w).reshape(-1, w.shape[-1]), Phi.T)
            P = softmax(np.swapaxes(a.reshape(len(w), self.K, -1), 1, 2), axis=2)
        if class_prior is None:
            return P, None
        with np.errstate(divide="ignore"):  # log 0 where a class is impossible
            return np.exp(reweigh(np.log(P), self.shares, class_prior)), None

    def _full(self, W: Floats) -> Floats:
        """Weights (S, dim) in the shape of the model: (S, m), or (S, K, m) with the reference class put in."""
        if self.binary:
            return W
        free = W.reshape(len(W), self.K - self.reference, -1)
        zeros = np.zeros((len(W), self.K - free.shape[1], free.shape[2]))
        return np.concatenate([free, zeros], axis=1)


FittedClassifier = GaussianClassifier | AveragedClassifier | RegressionClassifier


def _choose(available: int, size: int, random_seed: Seed) -> NDArray[np.intp] | slice:
    """Indices of `size` draws: all, or evenly spread, which thins chains; with replacement if there are too few."""
    if size == available:
        return slice(None)
    if size < available:
        return np.linspace(0, available - 1, size).round().astype(np.intp)
    return np.random.default_rng(random_seed).integers(available, size=size)


def _check_source(posterior: object, draws: Mapping[str, Floats] | Floats | None) -> None:
    if (posterior is None) == (draws is None):
        raise DataError("A fitted model needs either `posterior` or `draws`, not both or none.")
