"""How many test rows each class gives in a stratified split."""

import numpy as np
from numpy.typing import NDArray

from bayes_gda.data.classes import Label
from bayes_gda.errors import DataError


def number_of_rows(test_size: float, n: int) -> int:
    """Return a share of n rows, or a number of them, as a number."""
    if isinstance(test_size, int | np.integer) and not isinstance(test_size, bool) and 0 < test_size < n:
        return int(test_size)
    if isinstance(test_size, float | np.floating) and 0 < test_size < 1:
        return round(float(test_size) * n)
    raise DataError(f"`test_size` must be a share between 0 and 1 or a whole number in 1…{n - 1}; got {test_size!r}.")


def share_by_class(counts: NDArray[np.intp], n_test: int, names: tuple[Label, ...]) -> NDArray[np.intp]:
    """Share the test rows among the classes by largest remainders, with at least one row on either side."""
    for name, count in zip(names, counts, strict=True):
        if count == 1:
            raise DataError(
                f"Class {name!r} has 1 row; a stratified split needs at least 2. Merge classes or add rows."
            )
    n, present = int(counts.sum()), int((counts > 0).sum())
    if not present <= n_test <= n - present:
        raise DataError(
            f"A stratified split of {n} rows in {present} classes needs {present} to {n - present} test rows; "
            f"`test_size` gives {n_test}."
        )
    quota = n_test * counts / n
    low, high = np.minimum(counts, 1), np.maximum(counts - 1, 0)
    share = np.clip(np.floor(quota).astype(np.intp), low, high)
    while (gap := n_test - int(share.sum())) != 0:
        rest = quota - share
        k = (
            np.argmax(np.where(share < high, rest, -np.inf))
            if gap > 0
            else np.argmin(np.where(share > low, rest, np.inf))
        )
        share[k] += np.sign(gap)
    return share
