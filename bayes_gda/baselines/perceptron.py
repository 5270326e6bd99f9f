"""The perceptron: correct the weights by each row that stands on the wrong side.

    online   for one row after the other:  if y wᵀφ ≤ 0:  w ← w + η_t y φ
    batch    w ← w + η_t Σ y_i φ_i over all rows with y_i wᵀφ_i ≤ 0

with y = ±1. Both are subgradient steps of the mean of max(0, −y wᵀφ). The comparison is ≤, not <: at the start w = 0
every wᵀφ is 0, and with < no row would ever correct. From w = 0 a constant factor of the steps, such as the 1/n of a
mean, only scales w, and decides nothing.

If a hyperplane separates the classes with margin γ, the online rule with a fixed step makes at most (R/γ)² corrections,
R the length of the longest row (Novikoff 1962). If none does, it never ends: the best weights on the way are kept (the
pocket, Gallant 1990), and a linear programme tells the two cases apart.
"""

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from bayes_gda.baselines.linear import LinearClassifier, Training, whole
from bayes_gda.baselines.separable import mistake_bound, separating_weights
from bayes_gda.baselines.steps import Steps
from bayes_gda.checks import Floats

# Rows whose margins are found in one product: a correction then wastes at most this many, and a pass without mistakes
# costs n/64 calls.
BLOCK = 64


class Perceptron(LinearClassifier):
    """Perceptron with pocket; more than two classes one against the rest.

    Parameters
    ----------
    online
        Whether each row corrects at once; else all wrong rows of an epoch together.
    step
        Size of a correction: a number is a fixed increment, `Steps(a, b)` falls as a/(b + t) with the corrections t
        (of each class).
    normalize
        Whether rows are scaled to unit length first, so that each correction is as long as the step.
    max_epochs
        Passes over the data at most.
    shuffle
        Whether an online epoch takes the rows in a new random order.
    random_state
        Seed of the order.
    record
        Whether to keep the weights after each correction, in `path_`.

    Attributes
    ----------
    classes_, coef_, intercept_
        Labels (K,), slopes (R, d) and intercepts (R,); R = 1 for two classes, else K.
    converged_
        Whether every row stands on its side of each hyperplane.
    separable_
        Whether hyperplanes that do so exist.
    mistakes_
        Number of corrections, all classes together.
    n_iter_, learning_curve_
        Epochs, and a table of them: `loss` (the mean of max(0, −y wᵀφ), summed over classes), `errors` (rows
        misclassified) and `mistakes` (corrections) of each, for the weights at its end.
    path_
        With `record`, for each row of `coef_` the weights (T, d + 1) before and after each correction, intercepts
        first; the first are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda.baselines import Perceptron
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    >>> model = Perceptron().fit(X, [0, 0, 0, 1])  # x₁ and x₂
    >>> model.predict(X)
    array([0, 0, 0, 1])
    """

    separable_: bool
    mistakes_: int
    path_: list[Floats]

    def __init__(
        self,
        *,
        online: bool = True,
        step: float | Steps = 1.0,
        normalize: bool = False,
        max_epochs: int = 1000,
        shuffle: bool = True,
        random_state: Any = None,
        record: bool = False,
    ) -> None:
        self.online = online
        self.step = step
        self.normalize = normalize
        self.max_epochs = max_epochs
        self.shuffle = shuffle
        self.random_state = random_state
        self.record = record

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X (n, d) and labels y (n,); warns if no separating hyperplane was found."""
        training = self._training(X, y)
        rows = training.Phi
        if self.normalize:
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        steps, epochs = Steps.of(self.step), whole("max_epochs", self.max_epochs)
        rng = check_random_state(self.random_state)
        units = [_Unit(signs[:, None] * rows, steps, [] if self.record else None) for signs in training.signs]
        curve = []
        for epoch in range(1, epochs + 1):
            before = sum(unit.t for unit in units)
            for unit in units:
                if unit.separated:
                    continue
                if self.online:
                    unit.online_epoch(self._order(training, rng))
                else:
                    unit.batch_epoch()
            W = np.stack([unit.w for unit in units])
            loss = sum(np.maximum(0.0, -(unit.S @ unit.w)).mean() for unit in units)
            curve.append(
                {
                    "epoch": epoch,
                    "loss": loss,
                    "errors": training.errors(W),
                    "mistakes": sum(unit.t for unit in units) - before,
                }
            )
            if all(unit.separated for unit in units):
                break
        self._store(np.stack([unit.best for unit in units]), curve, converged=all(unit.separated for unit in units))
        self.mistakes_ = sum(unit.t for unit in units)
        self.separable_ = self.converged_
        if self.record:
            self.path_ = [np.array([np.zeros_like(unit.w), *(unit.path or [])]) for unit in units]
        if not self.converged_:
            self._warn(self._reason(units, steps))
        return self

    def _order(self, training: Training, rng: np.random.RandomState) -> Any:
        return rng.permutation(training.n) if self.shuffle else slice(None)

    def _reason(self, units: "list[_Unit]", steps: Steps) -> str:
        """Find out whether the unsolved problems have solutions, and say so."""
        unsolved = [k for k, unit in enumerate(units) if not unit.separated]
        solutions = {k: separating_weights(units[k].S) for k in unsolved}
        hopeless = [k for k in unsolved if solutions[k] is None]
        self.separable_ = not hopeless
        if hopeless:
            return (
                f"no hyperplane separates {self._who(hopeless)}, so no perceptron can; kept the best weights seen. "
                "Add features such as products, or use IRLSLogistic, which needs no separation."
            )
        bound = sum(mistake_bound(units[k].S, w) for k, w in solutions.items() if w is not None)
        remedy = "Raise max_epochs, or standardise the features."
        if not steps.sum_diverges:
            remedy = "The steps have a finite sum and may never get there: use a power of at most 1."
        need = f"need at most {bound:.2g} corrections" if np.isfinite(bound) else "may need more than 1e308 corrections"
        return (
            f"a hyperplane separates {self._who(unsolved)}, but {self.max_epochs} epochs did not find it; fixed online "
            f"steps {need}. {remedy}"
        )

    def _who(self, which: list[int]) -> str:
        labels = self.classes_.tolist()
        if len(labels) == 2:
            return f"{labels[0]!r} from {labels[1]!r}"
        return " and ".join(f"{labels[k]!r} from the rest" for k in which)


@dataclass(slots=True, eq=False)
class _Unit:
    """One linear threshold unit in training.

    Parameters
    ----------
    S
        (n, m) signed rows y_i φ_i: all is well where S w > 0.
    steps
        Sizes of the corrections.
    path
        List that takes the weights after each correction; None to keep none.
    """

    S: Floats
    steps: Steps
    path: list[Floats] | None = None
    w: Floats = field(init=False)  # current weights
    t: int = 0  # corrections so far
    best: Floats = field(init=False)  # the pocket
    best_errors: tuple[int, int] = field(init=False)  # rows misclassified; rows not strictly on their side
    run: int = 0  # rows in a row that w got right
    best_run: int = 0

    def __post_init__(self) -> None:
        self.w = np.zeros(self.S.shape[1])
        self.best, self.best_errors = self.w, self.errors()

    @property
    def separated(self) -> bool:
        """Whether the pocket has every row strictly on its side."""
        return self.best_errors[1] == 0

    def online_epoch(self, order: Any) -> None:
        """Visit every row once, in the given order, correcting at once."""
        S, i = self.S[order], 0
        while i < len(S):
            block = S[i : i + BLOCK]
            wrong = block @ self.w <= 0
            first = int(np.argmax(wrong))
            if not wrong[first]:
                i += len(block)
                self.run += len(block)
                continue
            self.run += first
            self.ratchet()
            self.correct(block[first])
            i += first + 1
        self.pocket()

    def batch_epoch(self) -> None:
        """Correct by all wrong rows together."""
        self.correct(self.S[self.S @ self.w <= 0].sum(axis=0))
        self.pocket()

    def correct(self, direction: Floats) -> None:
        """Take a step."""
        self.w = self.w + self.steps(self.t) * direction
        self.t += 1
        self.run = 0
        if self.path is not None:
            self.path.append(self.w)

    def ratchet(self) -> None:
        """Count the errors if the run of right answers is the longest so far: promising, and rare enough to afford."""
        if self.run > self.best_run:
            self.best_run = self.run
            self.pocket()

    def pocket(self) -> None:
        """Keep the current weights if they err less than the best so far."""
        errors = self.errors()
        if errors < self.best_errors:
            self.best, self.best_errors = self.w, errors

    def errors(self) -> tuple[int, int]:
        """Return how many rows the weights misclassify, and how many stand on the wrong side or on the hyperplane."""
        margins = self.S @ self.w
        on_it = margins == 0
        # `decide` gives the hyperplane to the negative class; the sign of a row is that of its intercept.
        misclassified = (margins < 0) | (on_it & (self.S[:, 0] > 0))
        return int(misclassified.sum()), int((on_it | misclassified).sum())
