"""Generative classifiers that learn batch by batch, merge, unlearn and forget.

All of it is exact: counts, means and scatter matrices are what they know of their rows, and these add and subtract.

    fit_batches    moments of a table on disk         as if it had been read at once
    partial_fit    moments + those of the batch       as if all rows had come at once
    merge          moments + those of another model   as if one model had seen both parts
    unlearn        moments − those of the rows        as if these had never come
    forget         counts and scatter × a factor      as if every row weighed so much less
"""

from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from bayes_gda.checks import Floats, positive
from bayes_gda.data.large.batches import Source
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, PriorError
from bayes_gda.estimators.abilities import Generating
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.estimators.sources import require_source
from bayes_gda.families.base import Family
from bayes_gda.families.gaussian.classifier import AveragedClassifier, GaussianClassifier
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.families.gaussian.family import Gaussian
from bayes_gda.families.gaussian.streaming import StreamingGaussian, StreamingNaive
from bayes_gda.families.registry import get_family
from bayes_gda.methods.ladder import fit
from bayes_gda.methods.settings import seed_of
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.priors import LKJ, NIG, NIW

# A scatter matrix may have an eigenvalue below zero by so much of its scale before the rows were removed: sums over
# 10⁶ rows round by some 1e-10 of it, and rows that were never learnt overshoot by their own size.
ROUNDING = 1e-8
# Share of a sum of squares before that must remain of it after, prior included: 1e-10 leaves six digits.
REMAINDER = 1e-10


class Generative(Generating, BayesianClassifier):
    """What models of p(x, y) can do because their moments add and subtract; `fit` starts anew.

    The subclasses say how the moments become a model.
    """

    model_: GaussianClassifier | AveragedClassifier

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None) -> Self:
        """Learn one more batch of rows X (n, d) with labels y (n,); with a given `prior`, as if all had come at once.

        A default prior takes its scale from the first batch and is kept in `prior_`. So give `prior`, or a first batch
        that shows the scale of every feature.

        Parameters
        ----------
        X, y
            Features and labels, as in `fit`. After `fit` it goes on from there.
        classes
            All labels that will ever come, at the first call; None takes those of its batch.
        sample_weight
            (n,) weights ≥ 0, as in `fit`.
        """
        first = not hasattr(self, "model_")
        X, y = self._validated(X, y, reset=first)
        rows, labels = self._complete_batch(X, y, classes, sample_weight)
        part = Moments.from_arrays(rows.X, rows.y, rows.K, sample_weight=rows.weight)
        self._hold(part if first else self._moments + part, rows, labels)
        return self

    def fit_batches(self, batches: Source) -> Self:
        """Fit to a table larger than memory in one pass: the same as `fit` to all its rows.

        Parameters
        ----------
        batches
            The table, from `bayes_gda.data.large.batches.open_batches` or `bayes_gda.data.large.cluster.open_cluster`.
        """
        require_source(batches)
        moments = batches.moments()
        rows = self._table_rows(batches, np.empty((0, moments.d)), np.empty(0, dtype=np.intp))
        self._hold(moments, *rows, anew=True)
        return self

    def merge(self, other: Self) -> Self:
        """Learn all that another model has learnt from other rows, under the same prior: as if one had seen both.

        Parameters
        ----------
        other
            A fitted model of the same kind, with the same classes and features; it is left as it is.
        """
        check_is_fitted(self, "model_")
        if type(other) is not type(self) or not hasattr(other, "model_"):
            raise DataError(f"`other` must be a fitted {type(self).__name__}; got {other!r}.")
        if self.classes_.tolist() != other.classes_.tolist():
            raise DataError(
                f"`other` must have the classes {self.classes_.tolist()}; got {other.classes_.tolist()}. "
                "Announce all with partial_fit(…, classes=…)."
            )
        if self._names() != other._names():
            raise DataError(f"`other` must have the features {list(self._names())}; got {list(other._names())}.")
        if not _same(self.prior_, other.prior_):
            raise PriorError("`other` must have the same prior; got another. Give the same `prior` to both and refit.")
        self._hold(self._moments + other._moments)
        return self

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again: the posterior is that of all other rows, exactly. A default prior stays as it is.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were learnt, with the labels and weights they were learnt with.

        Raises
        ------
        DataError
            If those rows cannot have been learnt: a class would have fewer than no rows, or its scatter matrix a
            negative eigenvalue. Or if they are so far out, a million standard deviations, that what remains is lost to
            rounding. The model stays as it was.
        """
        check_is_fitted(self, "model_")
        X, y = self._validated(X, y, reset=False)
        rows, _ = self._complete_batch(X, y, None, sample_weight)
        part = Moments.from_arrays(rows.X, rows.y, rows.K, sample_weight=rows.weight)
        left = _without(self._moments, part, self.classes_)
        before = np.diagonal(self._moments.scatter, axis1=1, axis2=2)
        lost = (self._squares(left) < REMAINDER * before).any(axis=0)
        if lost.any():
            name = self._names()[int(np.argmax(lost))]
            raise DataError(
                f"Those rows are so far out in {name!r} that rounding hides what remains without them. "
                "Use `fit` with all other rows."
            )
        self._hold(left)
        return self

    def forget(self, factor: float) -> Self:
        """Let all rows learnt so far count `factor` times as much: before each batch, for data that drift.

        With a factor f before each batch a row that is t batches old weighs f^t, and the model remembers some 1/(1 − f)
        batches. The prior keeps its weight.

        Parameters
        ----------
        factor
            Above 0, at most 1.
        """
        check_is_fitted(self, "model_")
        f = positive("factor", factor, error=DataError)
        if f.ndim or f > 1:
            raise DataError(
                f"`factor` must be a number above 0 and at most 1; got {factor}. Use 0.99 to forget slowly."
            )
        moments = self._moments
        self._hold(Moments(f * moments.count, moments.mean, f * moments.scatter))
        return self

    def _hold(
        self,
        moments: Moments,
        rows: Dataset | None = None,
        classes: NDArray[Any] | None = None,
        *,
        anew: bool = False,
    ) -> None:
        """Make the model that of these moments; rows and classes are needed where the classes are not known yet."""
        anew = anew or not hasattr(self, "model_")
        classes = self.classes_ if classes is None else classes
        names = self._names()
        no_rows = Dataset.of_checked(np.empty((0, moments.d)), np.empty(0, np.intp), names, tuple(classes.tolist()))
        family = self._of_moments(moments, no_rows if rows is None else rows, anew=anew)
        settings = self._settings("exact", seed_of(self.random_state) if anew else self.seed_)
        self._keep(fit(family, settings), classes, settings.random_seed)

    def _of_moments(self, moments: Moments, rows: Dataset, *, anew: bool) -> Family:
        """Join the family with moments, under the prior of before unless the model starts anew."""
        raise NotImplementedError

    def _squares(self, moments: Moments) -> Floats:
        """Return the sums of squares (K, d) or (1, d) that variances are estimated from, the prior's among them."""
        raise NotImplementedError

    @property
    def _moments(self) -> Moments:
        """The moments of all rows learnt so far, or an error if these had gaps."""
        moments = self.model_.moments
        if not isinstance(moments, Moments):
            raise DataError(
                "This model was fitted to rows with missing values, whose moments do not add up. Use `fit` with all "
                "rows instead."
            )
        return moments

    def _complete_batch(
        self, X: Floats, y: Any, classes: ArrayLike | None, sample_weight: Any
    ) -> tuple[Dataset, NDArray[Any]]:
        rows, labels = self._batch(X, y, classes, sample_weight)
        self._require_complete(rows.X, "a batch needs complete rows. Use `fit` with all rows, which takes such values.")
        return rows, labels


class Streaming(Generative):
    """What the three Gaussian models have beyond: a conjugate prior, kept, and an exact posterior that moves by rows.

    The subclasses say which covariances the classes have and which prior is conjugate.
    """

    model_: GaussianClassifier
    prior_: NIW | NIG | LKJ
    prior: NIW | NIG | LKJ | None
    _name: ClassVar[str]
    _stored: ClassVar[dict[str, Any]] = {"model_": GaussianClassifier}

    def _family(self, K: int) -> type[Gaussian]:
        family = get_family(self._name)
        assert issubclass(family, Gaussian)
        return family

    def stream(self) -> StreamingGaussian | StreamingNaive:
        """Return the posterior as one that learns, removes and predicts single rows in O(d²) a class.

        It is a copy that goes its own way; its class codes are positions in `classes_`.
        """
        check_is_fitted(self, "model_")
        model, count = self.model_, self._moments.count
        if isinstance(model.posterior, NIWPosterior):
            return StreamingGaussian(model.posterior, count)
        if isinstance(model.posterior, NIGPosterior):
            return StreamingNaive(model.posterior, count)
        raise PriorError(_needs_exact(self))

    def _of_moments(self, moments: Moments, rows: Dataset, *, anew: bool) -> Family:
        alpha = None if anew else self.model_.alpha
        family = self._family(moments.K).of_moments(moments, rows, self.prior if anew else self.prior_, alpha)
        if self.inference not in ("auto", "exact") or isinstance(family.prior, LKJ):
            raise PriorError(_needs_exact(self))
        exact = family.exact()
        assert exact is not None
        _check_definite(exact.model)
        return family

    def _squares(self, moments: Moments) -> Floats:
        prior, squares = self.prior_, np.diagonal(moments.scatter, axis1=1, axis2=2)
        if isinstance(prior, NIG):
            return 2 * prior.b + squares
        if isinstance(prior, LKJ):
            raise PriorError(_needs_exact(self))
        posterior = self.model_.posterior
        shared = isinstance(posterior, NIWPosterior) and posterior.shared
        return np.diagonal(prior.Psi) + (squares.sum(axis=0, keepdims=True) if shared else squares)


def _needs_exact(estimator: Streaming) -> str:
    return (
        "Streaming needs the exact posterior: "
        f"{estimator._family(2).conjugate.__name__} as `prior`, or None, and inference 'auto' or 'exact'; "
        f"got {type(estimator.prior).__name__} and {estimator.inference!r}. Use `fit` with all rows."
    )


def _same(a: object, b: object) -> bool:
    """Whether two priors are the same, number by number."""
    return type(a) is type(b) and all(
        np.array_equal(getattr(a, field.name), getattr(b, field.name))
        for field in fields(a)  # type: ignore[arg-type]  # a prior: all of them are dataclasses
    )


def _without(moments: Moments, part: Moments, classes: NDArray[Any]) -> Moments:
    """Return the moments less those of a part, or raise if what remains cannot be that of rows."""
    for label, has, gone in zip(classes.tolist(), moments.count, part.count, strict=True):
        if gone > has * (1 + 1e-9):  # weights that were summed in another order
            raise DataError(
                f"Class {label!r} has {has:g} rows; cannot unlearn {gone:g}. Give only rows that were learnt."
            )
    left = moments - part
    scale = np.sqrt(np.diagonal(moments.scatter, axis1=1, axis2=2))
    scale = np.where(scale > 0, scale, 1.0)
    lowest = np.linalg.eigvalsh(left.scatter / (scale[:, :, None] * scale[:, None, :]))[:, 0]
    if (lowest < -ROUNDING).any():
        label = classes.tolist()[int(np.argmin(lowest))]
        raise DataError(
            f"Some of those rows of class {label!r} were never learnt: a negative variance would remain. "
            "Give them as they were learnt."
        )
    return left


def _check_definite(model: FittedModel) -> None:
    """Raise if rounding after many removals outweighs a very weak prior."""
    assert isinstance(model, GaussianClassifier)
    posterior = model.posterior
    if isinstance(posterior, NIGPosterior):
        good = bool((posterior.b > 0).all())
    else:
        assert posterior is not None
        try:
            np.linalg.cholesky(posterior.Psi)
            good = True
        except np.linalg.LinAlgError:
            good = False
    if not good:
        raise DataError("The rows left are too few to tell from rounding under so weak a prior. Use `fit` with them.")
