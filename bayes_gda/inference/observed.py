"""What was observed of rows with gaps, feature by feature: counts, moments, and the default priors that they suggest.

Each feature is seen alone, in the rows that have it: all that the naive model needs, and enough for the scale of a
prior.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError, PriorError
from bayes_gda.inference.patterns import check_gapped
from bayes_gda.inference.priors import NIG, NIW


@dataclass(frozen=True, slots=True, eq=False)
class ObservedCounts:
    """How much a model knows that was fitted to rows with gaps: the moments of such rows do not add up.

    Parameters
    ----------
    count
        (K,) rows of each class.
    values
        (K, d) values of each feature that they have.
    """

    count: Floats
    values: Floats

    def __post_init__(self) -> None:
        count, values = frozen(self.count), frozen(self.values)
        if values.ndim != 2 or count.shape != values.shape[:1]:
            raise DataError(f"Counts need `count` (K,) and `values` (K, d); got {count.shape} and {values.shape}.")
        if not ((values >= 0) & (values <= count[:, None])).all():
            raise DataError("`values` must not be negative, nor more than the rows of their class.")
        for name, value in (("count", count), ("values", values)):
            object.__setattr__(self, name, value)

    @property
    def K(self) -> int:
        """Number of classes."""
        return len(self.count)

    @property
    def d(self) -> int:
        """Number of features."""
        return int(self.values.shape[1])

    @property
    def n(self) -> float:
        """Number of rows."""
        return float(self.count.sum())


def moments_by_feature(X: Floats, y: ArrayLike, K: int) -> list[Moments]:
    """Return the moments of each feature alone, of the rows that have it: all that the naive model needs of them."""
    codes, there = np.asarray(y), ~np.isnan(X)
    return [Moments.from_arrays(X[there[:, j], j : j + 1], codes[there[:, j]], K) for j in range(X.shape[1])]


def default_nig(X: ArrayLike, y: ArrayLike, K: int) -> NIG:
    """Return the default prior of the naive model, feature by feature from the values at hand."""
    parts = []
    for j, moments in enumerate(moments_by_feature(check_gapped(X), y, K)):
        if not moments.scatter.sum() > 0:
            raise PriorError(
                f"Feature {j} does not vary within any class, or has no values, so the default prior has no scale for "
                "it. Drop the feature or give `prior`."
            )
        parts.append(NIG.default(moments))
    return side_by_side(parts)


def default_niw(X: ArrayLike, y: ArrayLike, K: int) -> NIW:
    """Return the default prior of LDA and QDA: centre and variances feature by feature from the values at hand."""
    return as_niw(default_nig(X, y, K))


def side_by_side(parts: Sequence[NIG]) -> NIG:
    """Join priors of single features into one of all."""
    return NIG(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("m", "kappa", "a", "b")))


def as_niw(each: NIG) -> NIW:
    """Return the default NIW prior that has the centre and the scales of a default NIG prior."""
    return NIW(m=each.m, kappa=float(each.kappa[0]), Psi=np.diag(2 * each.b), nu=len(each.m) + 2.0)
