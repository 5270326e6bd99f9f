"""What estimators take: arrays, data frames of any library, data sets, batches; from these to checked rows."""

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from bayes_gda.checks import Floats
from bayes_gda.data.classes import unique_codes
from bayes_gda.data.columns import Column, Encoding, Unseen
from bayes_gda.data.frames.convert import as_frame, as_values
from bayes_gda.data.frames.encode import AnyEncoding, encode_features, is_plain
from bayes_gda.data.frames.formula import split_formula
from bayes_gda.data.gaps import has_gaps
from bayes_gda.data.labels import distinct
from bayes_gda.data.large.batches import Source
from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import check_range, check_size, columns_hint
from bayes_gda.errors import DataError
from bayes_gda.estimators.sources import check_kinds, check_targets
from bayes_gda.processes.state import Shared, warning_rule

# The sum of the weights, at most, and its inverse at least: a weight stands for so many rows, and times the square of
# a feature it must be a double. Nobody has 1e50 rows.
HEAVIEST = 1e50
# An array of the columns of a Dataset is as good as the Dataset.
_NAMELESS = Shared(lambda: warning_rule("ignore", "X does not have valid feature names", UserWarning))
_FLOATS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}


class Inputs(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """From what a user gives to rows: the encoding of a frame is learnt in `fit` and repeated in predictions.

    `n_features_in_` and `feature_names_in_` are of the columns as they were given. Where these are not all numbers, or
    a formula is used, `encoding_` says how they become features, whose names are those of `posterior_`.
    """

    n_features_in_: int
    classes_: NDArray[Any]
    # How the columns of a frame become features; None if all are numbers.
    encoding_: AnyEncoding | None = None
    # Whether the rows came as a Dataset, whose arrays go without names from there on.
    _by_position = False
    # Parameters of the subclasses.
    formula: str | None = None
    unseen: Unseen = "error"
    class_weight: Any = None

    @property
    def _takes_gaps(self) -> bool:
        """Whether missing values (NaN) are integrated out, in `fit` and in predictions."""
        raise NotImplementedError

    @property
    def _reads_levels(self) -> bool:
        """Whether the model reads categories as such, so that a level it has not seen has a place."""
        raise NotImplementedError

    # ── Rows to learn from ──────────────────────────────────────────────────────────────────────────────────────────

    def _validated(self, X: Any, y: Any, *, reset: bool = True) -> tuple[Floats, Any]:
        """Return features and labels as arrays; NaN in X is left for each method to take or to refuse."""
        self._check_unseen()
        if isinstance(X, Dataset):
            return self._of_dataset(X, y, reset)
        if reset:
            self.__dict__.pop("_by_position", None)  # of an earlier fit
        frame = as_frame(X)
        if frame is not None:
            X, y = self._without_target(frame, y)
        elif self.formula is not None:
            raise DataError(f"`formula` needs a data frame with named columns; got {type(X).__name__}.")
        y = as_values(y)
        check_kinds(X if frame is None else None, y)
        if frame is None or (self.formula is None and is_plain(X) and (reset or self.encoding_ is None)):
            if not reset and self.encoding_ is not None:
                X, y = check_X_y(self._encoded(X), y, **_FLOATS)
            else:
                X, y = validate_data(self, X, y, reset=reset, **_FLOATS)
                self.__dict__.pop("encoding_", None)
        elif reset:
            right = None if self.formula is None else split_formula(self.formula)[1]
            if y is None:
                validate_data(self, X, y, skip_check_array=True)  # raises: labels are needed
            encoding, values = encode_features(X, right)
            X, y = check_X_y(values, y, **_FLOATS)
            self._take_encoding(encoding)
        else:
            X, y = check_X_y(self._encoded(X), y, **_FLOATS)
        check_targets(y)
        return X, y

    def _of_dataset(self, data: Dataset, y: Any, reset: bool) -> tuple[Floats, Any]:
        """Return the rows of a data set, and take over how they were encoded."""
        if y is not None:
            raise DataError("`y` must be None where `X` is a Dataset, which has its classes. Leave it out.")
        if self.formula is not None:
            raise DataError("`formula` is for data frames; got a Dataset. Use Dataset.from_frame(df, formula=…).")
        labels = np.array(data.class_names, dtype=object if isinstance(data.class_names[0], str) else None)[data.y]
        if not reset:
            return self._of_known(data), labels
        self.__dict__.pop("encoding_", None)  # of an earlier fit
        self.feature_names_in_ = np.array(data.feature_names, dtype=object)
        self.n_features_in_, self._by_position = data.d, True
        if data.encoding is not None and not data.encoding.plain:
            self._take_encoding(data.encoding)
        return data.X, labels

    def _without_target(self, frame: Any, y: Any) -> tuple[Any, Any]:
        """Return the feature columns of a frame, and its labels where y, or the formula, names them."""
        left = None if self.formula is None else split_formula(self.formula)[0]
        name = y if isinstance(y, str) else left
        if name is None:
            return frame, y
        if name not in frame.columns:
            if y is None or isinstance(y, str):
                raise DataError(f"The frame has no target column {name!r}.{columns_hint(name, frame.columns)}")
            return frame, y
        labels = frame[name] if y is None or isinstance(y, str) else y
        return frame.drop(columns=name), labels

    def _take_encoding(self, encoding: AnyEncoding) -> None:
        """Keep how a frame becomes features, and make its columns those that were seen in `fit`."""
        self.encoding_ = encoding
        self.feature_names_in_ = np.array([column.name for column in encoding.columns], dtype=object)
        self.n_features_in_ = len(encoding.columns)

    # ── Rows to predict ─────────────────────────────────────────────────────────────────────────────────────────────

    def _checked(self, X: Any) -> Floats:
        """Return rows to predict as an array (n, d); NaN stays where the model integrates gaps out."""
        check_is_fitted(self, "model_")
        rows = self._known_rows(X)
        if not self._takes_gaps:
            self._require_complete(
                rows,
                f"{type(self).__name__} predicts complete rows only. Fill them in, or use BayesianLDA, BayesianQDA or "
                "BayesianNaiveGaussian, which integrate out what is missing.",
            )
        check_size(rows, self._names())
        return rows

    def _known_rows(self, X: Any) -> Floats:
        if isinstance(X, Dataset):
            return self._of_known(X)
        frame = as_frame(X)
        check_kinds(X if frame is None else None)
        if self.encoding_ is None and (frame is None or is_plain(frame)):
            with _NAMELESS if frame is None and self._by_position else nullcontext():
                rows: Floats = validate_data(self, X if frame is None else frame, reset=False, **_FLOATS)
            return rows
        encoded: Floats = check_array(self._encoded(X if frame is None else frame), **_FLOATS)
        return encoded

    def _of_known(self, data: Dataset) -> Floats:
        """Return the rows of a data set, which must have the features of this model."""
        if data.feature_names != self._names():
            raise DataError(
                f"The data set must have the features {list(self._names())}; got {list(data.feature_names)}."
            )
        return data.X

    def _encoded(self, X: Any) -> Any:
        """Return raw columns, a frame or an array in the order of `feature_names_in_`, as features; these as they are.

        What has the names of the features, or is an array of as many numbers, has been encoded already.
        """
        self._check_unseen()
        if not hasattr(X, "columns"):
            array = np.asarray(X)
            if array.ndim == 2 and array.shape[1] == len(self._names()) and array.dtype.kind in "biuf":
                return array
            validate_data(self, array, skip_check_array=True, reset=False)  # raises if it has another width
            import pandas as pd

            X = pd.DataFrame(array, columns=list(getattr(self, "feature_names_in_", ())))
        encoding = self.encoding_
        if encoding is None:
            names = getattr(self, "feature_names_in_", None)
            if names is None:  # fitted without names: by position
                names = list(X.columns)
                validate_data(self, X, skip_check_array=True, reset=False)
            encoding = Encoding(tuple(Column(str(name), "numeric") for name in names))
        elif tuple(X.columns) == encoding.feature_names and not all(c.name in X.columns for c in encoding.columns):
            return X
        return encoding.encode(X, missing="keep", unseen=self.unseen)

    def _check_unseen(self) -> None:
        """Raise unless the model knows what `unseen` asks for."""
        known = ("error", "keep") if self._reads_levels else ("error", "pool")
        if self.unseen not in known:
            raise DataError(f"`unseen` must be {known[0]!r} or {known[1]!r} for this model; got {self.unseen!r}.")

    # ── Checked rows ────────────────────────────────────────────────────────────────────────────────────────────────

    def _require_complete(self, X: Floats, rule: str) -> None:
        """Raise if values of X are missing; `rule` says what needs them, and what to do."""
        if has_gaps(X):
            gaps = np.isnan(X)
            column = self._names()[int(gaps.any(axis=0).argmax())]
            rows = gaps.any(axis=1).sum()
            raise DataError(f"`X` has missing values (NaN) in {rows} of {len(X)} rows, such as in {column!r}; {rule}")

    def _rows(self, X: Floats, y: Any, sample_weight: Any) -> tuple[Dataset, NDArray[Any]]:
        X, y, weight = self._present(X, y, sample_weight)
        classes, codes = unique_codes(y)
        if len(classes) < 2:
            raise DataError(
                f"`y` has 1 class only, {classes.tolist()[0]!r}; a classifier needs at least 2 classes. "
                "Add rows of another class."
            )
        return self._dataset(X, codes, classes, weight), classes

    def _dataset(self, X: Floats, y: NDArray[np.intp], classes: NDArray[Any], weight: Floats | None) -> Dataset:
        names = self._names()
        check_range(X, names)
        return Dataset.of_checked(X, y, names, tuple(classes.tolist()), weight, encoding=self.encoding_)

    def _batch(self, X: Floats, y: Any, classes: ArrayLike | None, sample_weight: Any) -> tuple[Dataset, NDArray[Any]]:
        """Rows of one batch among others: of the classes known, or those announced, or else those it has."""
        check_targets(y)
        X, y, weight = self._present(X, y, sample_weight)
        if not len(X):
            raise DataError("`sample_weight` is 0 for all rows; give at least one row a positive weight.")
        known = getattr(self, "classes_", None)
        if classes is not None:
            announced = np.unique(np.asarray(classes))
            if known is not None and known.tolist() != announced.tolist():
                raise DataError(
                    f"`classes` must be those of the first call, {known.tolist()}; got {announced.tolist()}."
                )
            known = announced
        elif known is None:
            known = np.unique(y)
        if len(known) < 2:
            raise DataError(f"A classifier needs at least 2 classes; got {known.tolist()}. Announce all in `classes`.")
        labels, inverse = unique_codes(y)
        # By a dictionary, because NumPy takes '1' and 1 for equal.
        code = {label: k for k, label in enumerate(known.tolist())}
        new = [label for label in labels.tolist() if label not in code]
        if new:
            raise DataError(
                f"`y` holds {new[0]!r}, which is none of the classes {known.tolist()}. "
                "Announce all with partial_fit(…, classes=…) at the first call."
            )
        codes = np.array([code[label] for label in labels.tolist()], dtype=np.intp)[inverse]
        return self._dataset(X, codes, known, weight), known

    def _table_rows(self, batches: Source, X: Floats, codes: NDArray[np.intp]) -> tuple[Dataset, NDArray[Any]]:
        """Rows of a table; the number of its features, and their names if it has any, become the estimator's."""
        self.__dict__.pop("encoding_", None)  # of an earlier fit
        if batches.layout.named:
            self.feature_names_in_ = np.array(batches.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # of an earlier fit
        self.n_features_in_ = len(batches.feature_names)
        if batches.layout.named and not batches.encoding.plain:
            self._take_encoding(batches.encoding)
        classes = np.array(batches.class_names)
        return self._dataset(X, codes, classes, None), classes

    def _present(self, X: Floats, y: Any, sample_weight: Any) -> tuple[Floats, Any, Floats | None]:
        """Return the rows of positive weight, with their labels and weights."""
        if sample_weight is None and self.class_weight is None:
            return X, y, None
        weight: Floats = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if self.class_weight is not None:
            weight = weight * compute_sample_weight(self.class_weight, y)
        with np.errstate(over="ignore"):
            total = float(weight.sum())
        if total > 0 and not 1 / HEAVIEST <= total <= HEAVIEST:
            raise DataError(
                f"`sample_weight` must sum to between {1 / HEAVIEST:g} and {HEAVIEST:g}; got {total:.3g}. "
                "A weight is a number of rows: rescale them."
            )
        present = weight > 0
        return X[present], y[present], weight[present]

    def _names(self) -> tuple[str, ...]:
        """Distinct names (d,) of the features."""
        if self.encoding_ is not None:
            return self.encoding_.feature_names
        numbered = [f"x{j + 1}" for j in range(self.n_features_in_)]
        return distinct([str(name) for name in getattr(self, "feature_names_in_", numbered)])
