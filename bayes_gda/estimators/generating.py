"""New labelled rows from a fitted generative model."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError


class Generating:
    """What an estimator can do whose model is one of p(x, y): draw new rows."""

    classes_: NDArray[Any]
    model_: Any
    seed_: int

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Floats, NDArray[Any]]:
        """Draw new rows (n, d) with their labels (n,) from the posterior predictive.

        Parameters
        ----------
        n
            Number of rows, each with parameters of its own from the posterior.
        random_state
            Seed; None gives the same rows each time, as long as the model is not fitted again.
        """
        check_is_fitted(self, "model_")
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise DataError(f"`n` must be a whole number of at least 1; got {n!r}.")
        if not getattr(self.model_, "generates", hasattr(self.model_, "sample")):
            raise DataError(
                "The rows of this model cannot be generated: its family has no `draw_rows`, or models p(y | x) alone."
            )
        seed = self.seed_ if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        X, codes = self.model_.sample(int(n), random_seed=seed)
        labels: NDArray[Any] = self.classes_[codes]
        return X, labels
