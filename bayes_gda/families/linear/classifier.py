"""Fitted regressions: a Gaussian posterior of the weights or draws of them, and what they say of new rows.

p(y=k | x, D) = ∫ p(y=k | φ(x), w) p(w | D) dw
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit, log_softmax, softmax

from bayes_gda.checks import LARGEST_STORED, Floats, finite, frozen, positive
from bayes_gda.data.features import FeatureMap
from bayes_gda.errors import StoreError
from bayes_gda.families.linear import links, softmax_links
from bayes_gda.families.linear.ep.row_certificate import RowCertificate
from bayes_gda.families.linear.ep.sites import match
from bayes_gda.families.linear.predictors import Activations, binary_activations, softmax_activations
from bayes_gda.families.linear.variational.row_certificate import SoftmaxRowCertificate
from bayes_gda.families.linear.variational.sites import leave_row_out
from bayes_gda.linalg import AVERAGED_WIDTH, draw_blocks, for_blocks, moment_width, product, wide_blocks
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Link
from bayes_gda.prediction.fitted import EntropySplit, FittedModel, check_source, choose_draws, in_batches
from bayes_gda.prediction.row_errors import RowErrors
from bayes_gda.prediction.shift import reweigh
from bayes_gda.priors import Seed


@dataclass(frozen=True, slots=True, eq=False)
class RegressionClassifier(FittedModel):
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
    cavities
        Whether `posterior` is a better Gaussian than Laplace's, whose cavities leave a row out.
    link
        How `posterior` becomes probabilities: `exact`, the link integrated, or `probit`, σ(μ/√(1 + πs²/8)) for two
        classes and the mean-field form of it for more.
    certificate
        What new rows are judged by; None if the fit did not leave it.
    """

    features: FeatureMap
    K: int
    binary: bool
    reference: bool
    shares: Floats
    posterior: GaussianPosterior | None = None
    draws: Floats | None = None
    tau: Floats | None = None
    cavities: bool = False
    certificate: RowCertificate | SoftmaxRowCertificate | None = None
    link: Link = "exact"

    def __post_init__(self) -> None:
        check_source(self.posterior, self.draws)
        object.__setattr__(self, "shares", frozen(self.shares))
        if self.draws is not None:
            object.__setattr__(self, "draws", frozen(self.draws))

    @property
    def d(self) -> int:
        """Number of features."""
        return len(self.features.feature_names)

    @property
    def averages_draws(self) -> bool:
        """Whether predictions are means over stored draws."""
        return self.posterior is None

    @property
    def class_shares(self) -> Floats:
        """The shares (K,) of the classes that the probabilities stand on."""
        return self.shares

    def log_probabilities(self, X: Floats, class_prior: ArrayLike | None = None) -> Floats:
        """Return log p(y=k | x, D) (n, K); other class shares (K,) move the log-odds by log π'_k/π_k."""
        out = np.empty((len(X), self.K))
        if self.posterior is None:
            for rows in wide_blocks(len(X), len(self.features.names)):
                out[rows] = self._of_draws(self.features(X[rows]))
        else:
            self._of_gaussian(X, self.posterior, self.link, out)
        return out if class_prior is None else reweigh(out, self.shares, class_prior)

    def _of_gaussian(self, X: Floats, posterior: GaussianPosterior, link: Link, out: Floats) -> None:
        """Write log p(y=k | x, D) of the rows of X into `out`, block by block while they are in cache."""
        activations = self.activations(posterior)
        log_link: Callable[[Floats, Floats], Floats]
        if self.binary:
            log_link = links.log_expected_sigmoids if link == "exact" else links.log_probit_logistics
        else:
            log_link = softmax_links.log_expected_softmax if link == "exact" else softmax_links.log_mean_field

        def write(rows: slice) -> None:
            out[rows] = log_link(*activations(self.features(X[rows])))

        for_blocks(write, len(X), self._width)

    def _of_draws(self, Phi: Floats) -> Floats:
        assert self.draws is not None
        S, out = len(self.draws), np.empty((len(Phi), self.K))
        W = self.draws if self.binary else np.ascontiguousarray(self._full(self.draws).swapaxes(0, 1))

        def mean(part: Floats, draws: slice) -> Floats:
            if self.binary:
                return links.sigmoid_means(part @ W[draws].T)
            return softmax_links.softmax_of_draws(part, W[:, draws]).mean(axis=-1)

        def log_terms(part: Floats) -> Floats:
            if self.binary:
                return links.log_sigmoids(part @ W.T)
            return log_softmax((part @ W.reshape(-1, Phi.shape[1]).T).reshape(-1, self.K, S), axis=1)

        def average(rows: slice) -> None:
            part = Phi[rows]
            total = sum((draws.stop - draws.start) * mean(part, draws) for draws in draw_blocks(S, self.K))
            out[rows] = links.log_of_mean(np.asarray(total / S), lambda tiny: log_terms(part[tiny]))

        for_blocks(average, len(Phi), AVERAGED_WIDTH)
        return out

    @property
    def _width(self) -> int:
        """Numbers that a row counts as in a block."""
        return moment_width(len(self.features.names), 1 if self.binary else self.K)

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
        chosen = choose_draws(len(self.draws), size, random_seed)
        variables = {"w": self._full(self.draws[chosen])}
        return variables if self.tau is None else {"tau": np.asarray(self.tau)[chosen]} | variables

    @property
    def coordinates(self) -> Floats | None:
        """The stored draws (S, dim) of w, or of (log τ, w)."""
        if self.draws is None or self.tau is None:
            return self.draws
        return np.column_stack([np.log(self.tau), self.draws])

    def variables_of(self, W: Floats) -> dict[str, Floats]:
        """Return `w`, and `tau` if the scale is unknown, at coordinates w, or (log τ, w), (S, dim)."""
        if self.tau is None:
            return {"w": self._full(W)}
        return {"tau": np.exp(W[:, 0]), "w": self._full(W[:, 1:])}

    def log_terms(self, variables: Mapping[str, Floats], X: Floats) -> Floats:
        """Return log p(y=k | x, w_s) (S, n, K), also where a probability is too small for a number."""
        a = self._activations(variables["w"], X)
        if self.binary:
            return np.stack([log_expit(-a), log_expit(a)], axis=2)
        return np.asarray(log_softmax(a, axis=2))

    def probability_draws(
        self, variables: Mapping[str, Floats], X: Floats, class_prior: ArrayLike | None = None
    ) -> tuple[Floats, Floats | None]:
        """Return p(y=k | x, w_s) (S, n, K), all of equal weight; under other class shares with weights (S, n)."""
        if class_prior is not None:
            return FittedModel.probability_draws(self, variables, X, class_prior)
        a = self._activations(variables["w"], X)
        return (np.stack([expit(-a), expit(a)], axis=2) if self.binary else np.asarray(softmax(a, axis=2))), None

    def batch_means(self, X: Floats) -> tuple[Floats, Floats] | None:
        """Return the log means (B, n, K) of probabilities over batches of the draws, and the batches' shares (B,)."""
        if self.draws is None:
            return None
        draws, Phi = self.draws, self.features(X)
        return in_batches(len(draws), lambda b: replace(self, draws=draws[b], tau=None)._of_draws(Phi))

    def approximation_errors(self, X: Floats) -> RowErrors | None:
        """Return the estimated errors of rows (n, d) by their certificate; None without one."""
        if self.certificate is None or self.posterior is None:
            return None
        certificate, out = self.certificate, np.empty((2, len(X)))

        def write(rows: slice) -> None:
            out[:, rows] = certificate.errors(self.features(X[rows]))

        for_blocks(write, len(X), self._width)
        return RowErrors(out[int(self.cavities)], *out)

    def link_errors(self, X: Floats) -> Floats:
        """Return the largest distance (n,) of a row's probabilities by the probit link to those by the exact one."""
        if self.link == "exact" or self.posterior is None:
            return np.zeros(len(X))
        exact, probit = np.empty((len(X), self.K)), np.empty((len(X), self.K))
        self._of_gaussian(X, self.posterior, "exact", exact)
        self._of_gaussian(X, self.posterior, self.link, probit)
        return np.asarray(np.abs(np.exp(exact) - np.exp(probit)).max(axis=1))

    def leave_one_out(self, X: Floats, y: NDArray[np.intp]) -> tuple[Floats, Floats] | None:
        """Return log p(y=k | x_i, D₋ᵢ) and log p(y=k | x_i, D) (n, K) by a better Gaussian; None without it.

        The cavity of a row, N(a | μ_c, v_c) with v_c = v/(1 − vτ) and μ_c = v_c(μ/v − ν), is the posterior of its
        activation given the other rows. So it is for K classes with matrices in place of v and τ.
        """
        if not self.cavities or self.posterior is None:
            return None
        activations, left, full = (self.activations(self.posterior), *np.empty((2, len(X), self.K)))

        def write_softmax(rows: slice) -> None:
            mean, cov = activations(self.features(X[rows]))
            full[rows] = softmax_links.log_expected_softmax(mean, cov)
            D = self.K - 1  # the last activation is 0, as the others are less it
            without = leave_row_out(mean[:, :D], np.ascontiguousarray(cov[:, :D, :D]), y[rows], self.K)
            mean, cov = np.zeros(mean.shape), np.zeros(cov.shape)
            mean[:, :D], cov[:, :D, :D] = without
            left[rows] = softmax_links.log_expected_softmax(mean, cov)

        def write(rows: slice) -> None:
            mu, v = activations(self.features(X[rows]))
            site = match(mu, v, np.where(y[rows] == 1, 1.0, -1.0), np.ones(len(mu)))
            # ν = slope + τμ, so that μ_c = μ − v_c slope.
            v_c = v / (1 - v * site.tau)
            left[rows] = links.log_expected_sigmoids(mu - v_c * site.slope, v_c)
            full[rows] = links.log_expected_sigmoids(mu, v)

        for_blocks(
            write if self.binary else write_softmax, len(X), max(self._width, len(self.features.names) * (self.K - 1))
        )
        return left, full

    def closed_interval(self, X: Floats, prob: float) -> Floats | None:
        """Return the exact intervals (n, 2, 2) of a Gaussian posterior of logistic regression, or None."""
        if not self.binary or self.posterior is None:
            return None
        activations, out = self.activations(self.posterior), np.empty((len(X), 2, 2))

        def write(rows: slice) -> None:
            mu, s2 = activations(self.features(X[rows]))
            out[rows, 0] = links.sigmoid_interval(-mu, s2, prob=prob)
            out[rows, 1] = links.sigmoid_interval(mu, s2, prob=prob)

        for_blocks(write, len(X), len(self.features.names))
        return out

    def closed_entropy(self, X: Floats) -> EntropySplit | None:
        """Return the split of the entropy under a Gaussian posterior, by quadrature; None for draws."""
        if self.posterior is None:
            return None
        activations = self.activations(self.posterior)
        split = links.entropy_binary if self.binary else softmax_links.entropy_softmax
        parts = [split(*activations(self.features(X[rows]))) for rows in wide_blocks(len(X), 512 * self.K)]
        return EntropySplit(*(np.concatenate([getattr(p, f) for p in parts]) for f in EntropySplit.__slots__))

    def _activations(self, w: Floats, X: Floats) -> Floats:
        """Activations (S, n), or (S, n, K), of weights in the shape of the model."""
        Phi = self.features(X)
        if self.binary:
            return product(np.ascontiguousarray(w), Phi.T)
        a = product(np.ascontiguousarray(w).reshape(-1, w.shape[-1]), Phi.T)
        return np.swapaxes(a.reshape(len(w), self.K, -1), 1, 2)

    def _full(self, W: Floats) -> Floats:
        """Weights (S, dim) in the shape of the model: (S, m), or (S, K, m) with the reference class put in."""
        if self.binary:
            return W
        free = W.reshape(len(W), self.K - self.reference, -1)
        zeros = np.zeros((len(W), self.K - free.shape[1], free.shape[2]))
        return np.concatenate([free, zeros], axis=1)

    def check_whole(self) -> None:
        """Raise `StoreError` unless the parts of a model from a file fit each other."""
        if self.K < 2 or (self.binary and self.K != 2):
            rule = "2 where `binary` is true" if self.binary else "at least 2"
            raise StoreError(f"`K` must be {rule}; got {self.K}.")
        # Shares are counts over their sum, so that rounding alone keeps them from summing to one.
        if self.shares.shape != (self.K,) or not ((self.shares >= 0).all() and abs(self.shares.sum() - 1) < 1e-9):
            raise StoreError(f"`shares` must be {self.K} numbers, not negative, that sum to 1.")
        dim = len(self.features.names) * (1 if self.binary else self.K - self.reference)
        if self.posterior is not None and self.posterior.mean.shape != (dim,):
            raise StoreError(f"`posterior.mean` must have shape ({dim},); got {self.posterior.mean.shape}.")
        if self.draws is not None:
            if self.draws.ndim != 2 or self.draws.shape[1:] != (dim,) or not len(self.draws):
                raise StoreError(f"`draws` must have shape (S, {dim}), S at least 1; got {self.draws.shape}.")
            finite("draws", self.draws, largest=LARGEST_STORED, error=StoreError)
        if self.tau is not None:
            if self.draws is None or self.tau.shape != (len(self.draws),):
                raise StoreError("`tau` must have one entry for each draw of the weights.")
            positive("tau", self.tau, error=StoreError)
        if self.certificate is not None and self.certificate.better.mean.shape != (dim,):
            raise StoreError(f"`certificate` must be one of {dim} weights; got {self.certificate.better.mean.shape}.")
        if self.cavities and self.posterior is None:
            raise StoreError("`cavities` must be false but for a Gaussian posterior.")
