"""What Gaussian classes say of the columns that they were given."""

import numpy as np

from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset


def remark_on_binaries(data: Dataset, moments: Moments | None) -> tuple[str, ...]:
    """Say that columns of 0 and 1 are taken for measurements, and which model would not; nothing if there are none.

    Parameters
    ----------
    data
        Rows, or the names alone where their moments are given.
    moments
        Sufficient statistics; None if rows have gaps.
    """
    if moments is None:
        two = ((data.X == 0) | (data.X == 1) | np.isnan(data.X)).all(axis=0)
    else:
        # Σx² = Σx of no other numbers than 0 and 1, but for pairs that nobody has.
        n = moments.count[:, None]
        squares = np.diagonal(moments.scatter, axis1=1, axis2=2) + n * moments.mean**2
        two = np.abs(squares - n * moments.mean).max(axis=0) < 1e-9 * moments.n
    names = [name for name, binary in zip(data.feature_names, two, strict=True) if binary]
    if not names:
        return ()
    said = f"{', '.join(names[:4])}{' …' if len(names) > 4 else ''}"
    return (
        f"{len(names)} of {len(two)} features {'holds' if len(names) == 1 else 'hold'} 0 and 1 only ({said}), which "
        "Gaussian classes treat as measurements. BayesianNaive (model mixed) models them as yes or no, and "
        "categories by their levels.",
    )
