"""Gaussian discriminant analysis with plug-in estimates: shares, means and covariances taken as if they were true.

    p(y=k | x) ∝ π_k N(x | μ_k, Σ_k)

The Bayesian models average over what these estimates do not know. Rows may have gaps (NaN): the estimates then maximise
the likelihood of what was observed, by EM, and what a row lacks is integrated out of its prediction.
"""

from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayes_gda.baselines.linear import encode, feature_names, new_rows
from bayes_gda.checks import Floats
from bayes_gda.data.gaps import PatternMoments, has_gaps
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.discriminant import Gaussians, plug_in_lda, plug_in_naive, plug_in_qda
from bayes_gda.families.gaussian.gaps.em import PointEstimate, maximum_likelihood, maximum_likelihood_naive
from bayes_gda.families.gaussian.gaps.predictive import log_joint_observed


class _PlugIn(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """Fit by moments, predict by Bayes' rule; the subclasses say how the covariances are estimated."""

    classes_: NDArray[Any]
    gaussians_: Gaussians
    converged_: bool
    learning_curve_: pd.DataFrame
    _name: ClassVar[str]

    def __init__(self, *, unbiased: bool = False) -> None:
        self.unbiased = unbiased

    def __sklearn_tags__(self) -> Any:
        """Rows may lack values."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Estimate from rows X (n, d) and labels y (n,); NaN in X is a missing value."""
        X, codes, self.classes_ = encode(self, X, y, gaps=True)
        if has_gaps(X):
            self._check_values(X, codes)
            point = self._estimate_observed(X, codes)
            self.gaussians_ = Gaussians(point.pi, point.mu, point.Sigma)
        else:
            moments = Moments.from_arrays(X, codes, len(self.classes_))
            self._check_counts(moments)
            self.gaussians_ = self._estimate(moments)
        scores = self._scores(X)
        log_p = log_softmax(scores, axis=1)[np.arange(len(X)), codes]
        errors = int((scores.argmax(axis=1) != codes).sum())
        # A closed form has no steps, and EM's are of another loss: the curve is one point.
        self.learning_curve_ = pd.DataFrame([{"epoch": 1, "loss": -log_p.mean(), "errors": errors}])
        self.converged_ = True
        return self

    def decision_function(self, X: Any) -> Floats:
        """Return log p(x, y=k) (n, K) of rows (n, d); for two classes the log-odds (n,) of the second."""
        A = self._log_joint(X)
        return A[:, 1] - A[:, 0] if A.shape[1] == 2 else A

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class labels (n,) of rows (n, d)."""
        codes = self._log_joint(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    def predict_log_proba(self, X: Any) -> Floats:
        """Return the logarithms of the class probabilities (n, K) of rows (n, d)."""
        return np.asarray(log_softmax(self._log_joint(X), axis=1))

    def predict_proba(self, X: Any) -> Floats:
        """Return the class probabilities (n, K) of rows (n, d)."""
        return np.exp(self.predict_log_proba(X))

    def _log_joint(self, X: Any) -> Floats:
        check_is_fitted(self)
        return self._scores(new_rows(self, X, gaps=True))

    def _scores(self, X: Floats) -> Floats:
        """Return log p(x, y=k) (n, K) of what each row has."""
        gaussians = self.gaussians_
        if not has_gaps(X):
            return gaussians.log_joint(X)
        return log_joint_observed(
            {"pi": gaussians.pi[None], "mu": gaussians.mu[None], "Sigma": gaussians.Sigma[None]}, X
        )

    def _estimate(self, moments: Moments) -> Gaussians:
        """Estimate from complete rows."""
        raise NotImplementedError

    def _estimate_observed(self, X: Floats, codes: NDArray[np.intp]) -> PointEstimate:
        """Estimate from rows with gaps."""
        raise NotImplementedError

    def _minimum_rows(self, d: int) -> int:
        raise NotImplementedError

    def _check_values(self, X: Floats, codes: NDArray[np.intp]) -> None:
        """Name the class and feature that EM knows too little of, and what has no meaning with gaps."""
        if self.unbiased:
            raise DataError(
                "unbiased=True needs complete rows, as EM maximises the likelihood. Use unbiased=False, or drop rows."
            )
        for k, label in enumerate(self.classes_.tolist()):
            values = (~np.isnan(X[codes == k])).sum(axis=0)
            if values.min() < 2:
                name = feature_names(self, X.shape[1])[int(values.argmin())]
                raise DataError(
                    f"Class {label!r} has {values.min()} observed values of feature {name!r}; plug-in {self._name} "
                    "needs at least 2. Drop the feature, or use the Bayesian model, whose prior fills in."
                )

    def _check_counts(self, moments: Moments) -> None:
        """Name the class that has too few rows, by its label."""
        k, least = int(np.argmin(moments.count)), self._minimum_rows(moments.d)
        if moments.count[k] < least:
            label, count = self.classes_.tolist()[k], int(moments.count[k])
            rows = "1 row (one sample)" if count == 1 else f"{count} rows"
            raise DataError(
                f"Class {label!r} has {rows}; plug-in {self._name} needs at least {least}. "
                "Merge classes, or use the Bayesian model, whose prior fills in."
            )


class PlugInLDA(_PlugIn):
    """Linear discriminant analysis: one covariance for all classes, Σ = Σ_k S_k/n.

    Parameters
    ----------
    unbiased
        Whether to divide by n − K, as Hastie et al. and R's MASS, instead of n, maximum likelihood, as scikit-learn.

    Attributes
    ----------
    classes_, gaussians_
        Labels (K,) and the estimates: `pi` (K,), `mu` (K, d), `Sigma` (d, d).
    converged_, learning_curve_
        True, and the one line of a closed form: `loss` (−mean log p(y|x)) and `errors` on the training rows.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.baselines import PlugInLDA
    >>> data = load_example("iris")
    >>> round(PlugInLDA().fit(data.X, data.y).score(data.X, data.y), 2)
    0.98
    """

    _name = "LDA"

    def _estimate(self, moments: Moments) -> Gaussians:
        return plug_in_lda(moments, unbiased=self.unbiased)

    def _estimate_observed(self, X: Floats, codes: NDArray[np.intp]) -> PointEstimate:
        return maximum_likelihood(PatternMoments.from_arrays(X, codes, len(self.classes_)), shared=True)

    def _minimum_rows(self, d: int) -> int:
        return 1


class PlugInQDA(_PlugIn):
    """Quadratic discriminant analysis: a covariance for each class, Σ_k = S_k/n_k.

    Parameters
    ----------
    unbiased
        Whether to divide by n_k − 1 instead of n_k, maximum likelihood.

    Attributes
    ----------
    classes_, gaussians_
        Labels (K,) and the estimates: `pi` (K,), `mu` (K, d), `Sigma` (K, d, d).
    converged_, learning_curve_
        True, and the one line of a closed form: `loss` (−mean log p(y|x)) and `errors` on the training rows.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.baselines import PlugInQDA
    >>> data = load_example("iris")
    >>> round(PlugInQDA().fit(data.X, data.y).score(data.X, data.y), 2)
    0.98
    """

    _name = "QDA"

    def _estimate(self, moments: Moments) -> Gaussians:
        return plug_in_qda(moments, unbiased=self.unbiased)

    def _estimate_observed(self, X: Floats, codes: NDArray[np.intp]) -> PointEstimate:
        return maximum_likelihood(PatternMoments.from_arrays(X, codes, len(self.classes_)), shared=False)

    def _minimum_rows(self, d: int) -> int:
        return d + 1


class PlugInNaiveGaussian(_PlugIn):
    """Naive Gaussian classifier: a variance for each class and feature, no correlations.

    Parameters
    ----------
    unbiased
        Whether to divide by n_k − 1 instead of n_k, maximum likelihood.

    Attributes
    ----------
    classes_, gaussians_
        Labels (K,) and the estimates: `pi` (K,), `mu` (K, d), `Sigma` (K, d, d), diagonal.
    converged_, learning_curve_
        True, and the one line of a closed form: `loss` (−mean log p(y|x)) and `errors` on the training rows.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.baselines import PlugInNaiveGaussian
    >>> data = load_example("iris")
    >>> round(PlugInNaiveGaussian().fit(data.X, data.y).score(data.X, data.y), 2)
    0.96
    """

    _name = "naive Gaussian"

    def _estimate(self, moments: Moments) -> Gaussians:
        return plug_in_naive(moments, unbiased=self.unbiased)

    def _estimate_observed(self, X: Floats, codes: NDArray[np.intp]) -> PointEstimate:
        return maximum_likelihood_naive(X, codes, len(self.classes_))

    def _minimum_rows(self, d: int) -> int:
        return 2
