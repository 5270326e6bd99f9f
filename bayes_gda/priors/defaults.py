"""What was observed of rows with gaps, feature by feature: counts, moments, and the default priors that they suggest.

Each feature is seen alone, in the rows that have it: all that the naive model needs, and enough for the scale of a
prior.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bayes_gda.data.gaps import check_gapped, moments_by_feature
from bayes_gda.errors import PriorError
from bayes_gda.priors.distributions import NIG, NIW


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
