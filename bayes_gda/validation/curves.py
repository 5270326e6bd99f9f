"""Learning curves: how classifiers get better with rows, on a table or under a truth that rows are drawn from.

Every replicate draws one training set, of which each number of rows is the first part, so that learners and numbers are
compared on the same rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.teaching.learning import crossing

if TYPE_CHECKING:
    import pandas as pd

    from bayes_gda.reporting.plots.style import Plot

Draw = Callable[[int, np.random.Generator], tuple[Floats, NDArray[Any]]]
# Log loss counts a probability of the observed class below this as this: scikit-learn's plain models state zeros.
FLOOR = 1e-15
# Tries to draw a training set that has every class twice in its smallest part.
TRIES = 1000


@dataclass(frozen=True, slots=True, eq=False)
class LearningCurves:
    """Scores of learners by the number of training rows.

    Parameters
    ----------
    learners, rows
        Names (L,), and numbers of training rows (R,).
    log_loss, error
        (replicates, R, L) mean log loss and share of wrong decisions on the test rows of each replicate.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda.validation import LearningCurves
    >>> loss = np.array([[[0.9, 0.8], [0.5, 0.6]]] * 2)  # 2 replicates, 20 and 40 rows, 2 learners
    >>> round(LearningCurves(("flexible", "rigid"), (20, 40), loss, loss).crossing("rigid", "flexible"))
    26
    """

    learners: tuple[str, ...]
    rows: tuple[int, ...]
    log_loss: Floats
    error: Floats

    @property
    def table(self) -> "pd.DataFrame":
        """A row for each learner and number of rows: means over replicates with their standard errors."""
        import pandas as pd

        root = np.sqrt(len(self.log_loss))
        lines = [
            {
                "learner": name,
                "rows": n,
                "log_loss": self.log_loss[:, i, j].mean(),
                "log_loss_se": self.log_loss[:, i, j].std(ddof=1) / root,
                "error": self.error[:, i, j].mean(),
                "error_se": self.error[:, i, j].std(ddof=1) / root,
            }
            for j, name in enumerate(self.learners)
            for i, n in enumerate(self.rows)
        ]
        return pd.DataFrame(lines)

    def crossing(self, first: str, second: str) -> float | None:
        """Return from how many rows on the second learner has the smaller log loss; None if it never stays ahead."""
        for name in (first, second):
            if name not in self.learners:
                raise DataError(f"The learners are {', '.join(self.learners)}; got {name!r}.")
        columns = [self.learners.index(first), self.learners.index(second)]
        rows = crossing(self.rows, self.log_loss.mean(axis=0)[:, columns])["rows"]
        return None if rows is None else float(rows)

    def plot(self) -> "Plot":
        """Show the mean log loss by training rows, with two standard errors to both sides."""
        from bayes_gda.reporting.plots.textbook.debate import plot_excess

        table = self.table.rename(columns={"log_loss": "excess", "log_loss_se": "se"})
        plot = plot_excess(table, "rows", label="training rows", quantity="log loss", logarithmic=True)
        return replace(plot, caption="Mean log loss by training rows; bars are two standard errors to both sides.")


def learning_curves(
    learners: Mapping[str, Any],
    source: Dataset | Draw,
    *,
    rows: Sequence[int],
    replicates: int = 20,
    test_rows: int | None = None,
    random_seed: int = 0,
) -> LearningCurves:
    """Fit classifiers to more and more rows, and score them on rows that they have not seen.

    Parameters
    ----------
    learners
        Unfitted scikit-learn classifiers with `predict_proba`, ours or others, by name.
    source
        A table, which is split at random in each replicate; or `source(n, rng)`, which draws n rows (n, d) and labels
        (n,) from a known truth.
    rows
        Numbers of training rows, increasing.
    replicates
        Training sets, each with test rows of its own.
    test_rows
        Test rows; None takes all others of the table, or draws 2000.
    random_seed
        The same seed gives the same curves.

    Examples
    --------
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from bayes_gda import BayesianLDA, load_example
    >>> from bayes_gda.validation import learning_curves
    >>> learners = {"Bayesian LDA": BayesianLDA(), "plain naive Bayes": GaussianNB()}
    >>> curves = learning_curves(learners, load_example("iris"), rows=[15, 60], replicates=5)
    >>> curves.table.groupby("learner")["log_loss"].is_monotonic_decreasing.tolist()
    [True, True]
    """
    from sklearn.base import clone

    sizes = tuple(int(n) for n in rows)
    if len(sizes) == 0 or sizes[0] < 2 or any(b <= a for a, b in pairwise(sizes)):
        raise DataError(f"`rows` must be increasing numbers of at least 2; got {list(rows)}.")
    if replicates < 2:
        raise DataError(f"`replicates` must be at least 2, for standard errors; got {replicates}.")
    if isinstance(source, Dataset) and source.n <= sizes[-1]:
        raise DataError(f"`rows` must leave test rows of the table's {source.n}; got {sizes[-1]}.")
    shape = (replicates, len(sizes), len(learners))
    log_loss, error = np.empty(shape), np.empty(shape)
    for r in range(replicates):
        X, y, Z, t = _draw(source, sizes, test_rows, np.random.default_rng([random_seed, r]))
        for i, n in enumerate(sizes):
            for j, learner in enumerate(learners.values()):
                fitted = clone(learner).fit(X[:n], y[:n])
                P, codes = fitted.predict_proba(Z), np.searchsorted(fitted.classes_, t)
                log_loss[r, i, j] = -np.log(np.maximum(P[np.arange(len(t)), codes], FLOOR)).mean()
                error[r, i, j] = np.mean(P.argmax(axis=1) != codes)
    return LearningCurves(tuple(learners), sizes, log_loss, error)


def _draw(
    source: Dataset | Draw, sizes: tuple[int, ...], test_rows: int | None, rng: np.random.Generator
) -> tuple[Floats, NDArray[Any], Floats, NDArray[Any]]:
    """Draw training and test rows, the smallest training part with two rows of every class of them."""
    for _ in range(TRIES):
        if isinstance(source, Dataset):
            order = rng.permutation(source.n)
            X, y = source.X[order], source.y[order]
            last = source.n if test_rows is None else sizes[-1] + test_rows
            Z, t = X[sizes[-1] : last], y[sizes[-1] : last]
        else:
            X, y = source(sizes[-1], rng)
            Z, t = source(test_rows or 2000, rng)
        classes, counts = np.unique(y[: sizes[0]], return_counts=True)
        if counts.min() >= 2 and np.isin(t, classes).all() and np.isin(y, classes).all():
            return X, np.asarray(y), Z, np.asarray(t)
    raise DataError(f"{sizes[0]} rows do not hold every class twice in {TRIES} tries. Begin `rows` with more.")
