"""What the linear learners share: rows as they train on them, scores, decisions, and the words of a warning.

a_k(x) = w_kᵀφ(x),   φ(x) = (1, x)          two classes: the second if a > 0; more: the largest a_k
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from bayes_gda.checks import Floats, finite
from bayes_gda.data.validate import check_size
from bayes_gda.errors import DataError


@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """Rows to learn from.

    Parameters
    ----------
    Phi
        (n, m) design matrix; column 0 is the intercept.
    y
        (n,) class codes 0…K−1.
    K
        Number of classes.
    """

    Phi: Floats
    y: NDArray[np.intp]
    K: int

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.Phi)

    @property
    def signs(self) -> Floats:
        """(R, n) +1 for the rows of a class and −1 for all others; R = 1 for two classes, the second is +1, else K."""
        positive = np.array([1]) if self.K == 2 else np.arange(self.K)
        return np.where(self.y == positive[:, None], 1.0, -1.0)

    def errors(self, W: Floats) -> int:
        """Return how many rows the weights (R, m) misclassify."""
        return int((decide(self.Phi @ W.T) != self.y).sum())


def decide(A: Floats) -> NDArray[np.intp]:
    """Return the class codes (n,) of scores (n, 1), by their sign, or (n, K), by the largest."""
    return (A[:, 0] > 0).astype(np.intp) if A.shape[1] == 1 else np.argmax(A, axis=1)


def encode(estimator: Any, X: Any, y: Any, *, gaps: bool = False) -> tuple[Floats, NDArray[np.intp], NDArray[Any]]:
    """Return X (n, d) as floats, class codes (n,) and the sorted class labels (K,); sets `n_features_in_`.

    With `gaps`, NaN stands for a missing value; otherwise it is an error.
    """
    X, y = validate_data(estimator, X, y, dtype=np.float64, ensure_all_finite="allow-nan" if gaps else True)
    check_classification_targets(y)
    _check_size(estimator, X)
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) < 2:
        raise DataError(f"`y` has one class only, {classes.tolist()[0]!r}; a classifier needs at least 2 classes.")
    return X, codes.astype(np.intp), classes


def new_rows(estimator: Any, X: Any, *, gaps: bool = False) -> Floats:
    """Return rows (n, d) to predict as floats, checked against those that were learnt; `gaps` as in `encode`."""
    finite = "allow-nan" if gaps else True
    rows: Floats = validate_data(estimator, X, dtype=np.float64, reset=False, ensure_all_finite=finite)
    _check_size(estimator, rows)
    return rows


def feature_names(estimator: Any, d: int) -> list[str]:
    """Return the names of the features that the estimator was given, or their numbers."""
    return [str(name) for name in getattr(estimator, "feature_names_in_", range(d))]


def _check_size(estimator: Any, X: Floats) -> None:
    check_size(X, feature_names(estimator, X.shape[1]))


class LinearClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier with linear scores; see the subclasses for how the weights are learnt."""

    classes_: NDArray[Any]
    coef_: Floats
    intercept_: Floats
    n_iter_: int
    converged_: bool
    learning_curve_: pd.DataFrame

    def decision_function(self, X: Any) -> Floats:
        """Return the scores of rows (n, d): (n,) of the second class against the first, or (n, K) for K > 2."""
        check_is_fitted(self)
        A: Floats = new_rows(self, X) @ self.coef_.T + self.intercept_
        return A[:, 0] if A.shape[1] == 1 else A

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class labels (n,) of rows (n, d)."""
        A = self.decision_function(X)
        labels: NDArray[Any] = self.classes_[decide(A[:, None] if A.ndim == 1 else A)]
        return labels

    def _training(self, X: Any, y: Any) -> Training:
        X, codes, self.classes_ = encode(self, X, y)
        return Training(np.column_stack([np.ones(len(X)), X]), codes, len(self.classes_))

    def _store(self, W: Floats, curve: Sequence[Mapping[str, float]], *, converged: bool) -> None:
        self.intercept_, self.coef_ = W[:, 0].copy(), W[:, 1:].copy()
        self.learning_curve_ = pd.DataFrame(curve)
        self.n_iter_ = len(curve)
        self.converged_ = converged

    def _names(self) -> list[str]:
        """Names of the m weights of a class, for messages."""
        numbered = [f"x{j}" for j in range(self.n_features_in_)]
        return ["intercept", *map(str, getattr(self, "feature_names_in_", numbered))]

    def _warn(self, message: str) -> None:
        # Level 3: past this method and `fit`, to the line of the user.
        warnings.warn(f"{type(self).__name__}: {message}", ConvergenceWarning, stacklevel=3)


def whole(name: str, value: Any) -> int:
    """Return `value` as a whole number of at least 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise DataError(f"`{name}` must be a whole number of at least 1; got {value!r}.")
    return int(value)


def not_negative(name: str, value: Any) -> float:
    """Return `value` as a finite number ≥ 0."""
    array = finite(name, value, error=DataError)
    if array.ndim or array < 0:
        raise DataError(f"`{name}` must be one number of at least 0; got {value!r}.")
    return float(array)
