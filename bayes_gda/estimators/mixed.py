"""Naive Bayes for columns of any type as a scikit-learn classifier, which also learns batch by batch."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from bayes_gda.checks import Floats, positive
from bayes_gda.data.large.batches import Source
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, PriorError, warn_user
from bayes_gda.estimators.abilities import Generating
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.families.base import Family
from bayes_gda.families.mixed import novelty
from bayes_gda.families.mixed.choice import SUPPORT, Choice, describe
from bayes_gda.families.mixed.classifier import MixedClassifier
from bayes_gda.families.mixed.column import Statistic
from bayes_gda.families.mixed.distributions import DISTRIBUTIONS
from bayes_gda.families.mixed.family import Mixed, summarise
from bayes_gda.methods.ladder import Fit, fit
from bayes_gda.methods.settings import TOLERANCE, Inference, seed_of
from bayes_gda.prediction.novelty import Novelty
from bayes_gda.priors.mixed import MixedPrior

# The sign of rows that are learnt, and of rows that are taken out again.
LEARN, UNLEARN = 1.0, -1.0


class BayesianNaive(Generating, BayesianClassifier):
    """Bayesian naive Bayes for columns of any type: within a class they are independent, each with its distribution.

        y ~ Categorical(π),   x_j | y=k ~ f_j(θ_kj)

    Text and categories are categorical, truth values Bernoulli; numbers are normal, log-normal, gamma, Poisson,
    negative-binomial … as the evidence says. Nothing is turned into dummies: a category is one column, and a level that
    was never seen has a probability of its own. The posterior is exact; so are leave-one-out and what is learnt batch
    by batch. Missing values are left out, in `fit` as in predictions, and taken to be missing at random.

    Parameters
    ----------
    distributions
        `evidence` chooses each column's distribution by its evidence among those that its values allow; `type` takes
        the first of these (counts are Poisson, measurements normal); a dict names that of some columns, and the others
        go by evidence. The words are normal, log-normal, logit-normal, gamma, beta, poisson, negative-binomial,
        bernoulli, binomial or binomial(10), and categorical.
    prior
        `bayes_gda.priors.mixed.MixedPrior`: distributions and priors of all columns. None is weakly informative: see
        `bayes_gda.priors.mixed`.
    inference
        `auto` and `exact`: the exact posterior. `laplace` or `mcmc` ask for these.
    unseen
        What a level does in new rows that `fit` has not seen: `keep` gives it the probability that the prior leaves for
        it, the more the fewer rows a class has; `error` raises.
    formula
        As in `BayesianLDA`; the columns of the formula's design count as numbers.
    class_weight
        Weights of the classes: a dict, `balanced` or None.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, intervals,
        entropies and decisions.
    sampler
        `pymc`, or `nutpie` or `numpyro` if installed; for MCMC only.
    random_state
        Seed, a RandomState or None. The default is fixed so that fitting twice gives the same answer.
    progress
        Whether MCMC shows a bar; None shows it on a terminal.
    tolerance
        How far a probability may be off, for the verdict and for warnings.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        Labels (K,), and the columns as they were given.
    distributions_, choice_
        The distribution of each column by its name; and in a sentence how it was chosen.
    prior_
        The prior in fact used.
    inference_, trust_
        The method in fact used, and whether to believe it.
    posterior_
        DataTree with `pi`, and the parameters of the distributions in use: `mu` and `sigma2`, `p`, `theta`, `rate` …
    log_evidence_, log_evidence_error_
        log p(X, y) and its error.
    model_
        The fitted model, plain arrays and functions.

    Notes
    -----
    The evidence of whole numbers under a density, such as the normal, is that of intervals of length 1. A value that a
    column's distribution cannot have, such as a negative count, is refused in `fit`; in new rows it counts as missing,
    and a warning says so.

    Examples
    --------
    >>> import pandas as pd
    >>> from bayes_gda import BayesianNaive
    >>> colours, visits = ["red", "blue", None, "red", "blue", "blue"], [3, 0, 1, 4, 0, 2]
    >>> table = pd.DataFrame({"colour": colours * 10, "visits": visits * 10})
    >>> model = BayesianNaive().fit(table, [1, 0, 0, 1, 0, 1] * 10)
    >>> model.predict_proba(pd.DataFrame({"colour": ["red", None], "visits": [3, 0]})).round(2)
    array([[0.01, 0.99],
           [0.95, 0.05]])
    """

    model_: MixedClassifier
    prior_: MixedPrior
    _stored: ClassVar[dict[str, Any]] = {"model_": MixedClassifier}

    def __init__(
        self,
        *,
        distributions: str | Mapping[str, str] = "evidence",
        prior: MixedPrior | None = None,
        inference: Inference = "auto",
        unseen: Literal["error", "keep"] = "keep",
        formula: str | None = None,
        class_weight: Any = None,
        draws: int = 1000,
        chains: int = 4,
        sampler: str = "pymc",
        random_state: Any = 0,
        progress: bool | None = False,
        tolerance: float = TOLERANCE,
    ) -> None:
        self.distributions = distributions
        self.prior = prior
        self.inference = inference
        self.unseen = unseen
        self.formula = formula
        self.class_weight = class_weight
        self.draws = draws
        self.chains = chains
        self.sampler = sampler
        self.random_state = random_state
        self.progress = progress
        self.tolerance = tolerance

    def _family(self, K: int) -> type[Mixed]:
        return Mixed

    def _bind(self, data: Dataset) -> Family:
        return Mixed.bind(data, self.prior, self.distributions)

    @property
    def distributions_(self) -> dict[str, str]:
        """The distribution of each column, by its name."""
        check_is_fitted(self, "model_")
        return self.prior_.distributions

    @property
    def choice_(self) -> str:
        """How the distributions were chosen, in a sentence or two."""
        check_is_fitted(self, "model_")
        return describe(self.model_.choices)

    @property
    def choices_(self) -> tuple[Choice, ...]:
        """How the distribution of each column was chosen, with the evidence of the candidates."""
        check_is_fitted(self, "model_")
        return self.model_.choices

    # ── Learning batch by batch ─────────────────────────────────────────────────────────────────────────────────────

    def fit_batches(self, batches: Source) -> Self:
        """Raise: the rows are needed in memory, whole or batch by batch."""
        raise DataError(
            "BayesianNaive takes its rows from memory; got a table. Read parts of it and learn them one by one with "
            "`partial_fit`, which is exact."
        )

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None) -> Self:
        """Learn one more batch of rows with their labels (n,); with a given `prior`, as if all had come at once.

        The first batch chooses distributions and default priors, which are kept in `prior_`, and the levels of its
        columns; later ones may have gaps and new levels.

        Parameters
        ----------
        X, y
            Rows and labels, as in `fit`. After `fit` it goes on from there.
        classes
            All labels that will ever come, at the first call; None takes those of its batch.
        sample_weight
            (n,) weights ≥ 0, as in `fit`.
        """
        first = not hasattr(self, "model_")
        X, y = self._validated(X, y, reset=first)
        rows, labels = self._batch(X, y, classes, sample_weight)
        if first:
            self._hold(Mixed.bind(rows, self.prior, self.distributions), labels)
            return self
        self._move(rows, LEARN)
        return self

    def merge(self, other: Self) -> Self:
        """Learn all that another model has learnt from other rows, under the same prior: as if one had seen both.

        Parameters
        ----------
        other
            A fitted model with the same classes, columns and prior; it is left as it is.
        """
        check_is_fitted(self, "model_")
        if not isinstance(other, BayesianNaive) or not hasattr(other, "model_"):
            raise DataError(f"`other` must be a fitted {type(self).__name__}; got {other!r}.")
        if self.classes_.tolist() != other.classes_.tolist():
            raise DataError(
                f"`other` must have the classes {self.classes_.tolist()}; got {other.classes_.tolist()}. "
                "Announce all with partial_fit(…, classes=…)."
            )
        if not self.prior_.same_as(other.prior_):
            raise PriorError("`other` must have the same prior; got another. Fit both with prior=model.prior_.")
        self._join(other.model_.class_count, other.model_.statistics, LEARN)
        return self

    def unlearn(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows out again: the posterior is that of all other rows, exactly. The prior stays as it is.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were learnt, with the labels and weights they were learnt with.

        Raises
        ------
        DataError
            If those rows cannot have been learnt. The model stays as it was.
        """
        check_is_fitted(self, "model_")
        X, y = self._validated(X, y, reset=False)
        self._move(self._batch(X, y, None, sample_weight)[0], UNLEARN)
        return self

    def forget(self, factor: float) -> Self:
        """Let all rows learnt so far count `factor` times as much: before each batch, for data that drift.

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
        model = self.model_
        pairs = zip(model.prior.columns, model.statistics, strict=True)
        scaled = tuple(DISTRIBUTIONS[spec.distribution].scale(statistic, float(f)) for spec, statistic in pairs)
        self._hold_statistics(float(f) * model.class_count, scaled)
        return self

    def _move(self, rows: Dataset, sign: float) -> None:
        self._join(*summarise(rows, self.prior_), sign)

    def _join(self, count: Floats, statistics: tuple[Statistic, ...], sign: float) -> None:
        model = self.model_
        left = model.class_count + sign * count
        for label, has, gone in zip(self.classes_.tolist(), model.class_count, count, strict=True):
            if sign < 0 and gone > has * (1 + 1e-9):
                raise DataError(
                    f"Class {label!r} has {has:g} rows; cannot unlearn {gone:g}. Give only rows that were learnt."
                )
        triples = zip(model.prior.columns, model.statistics, statistics, strict=True)
        joined = tuple(DISTRIBUTIONS[spec.distribution].add(a, b, sign) for spec, a, b in triples)
        self._hold_statistics(np.maximum(left, 0.0), joined)

    def _hold_statistics(self, count: Floats, statistics: tuple[Statistic, ...]) -> None:
        """Make the model that of these statistics, or raise if they cannot be those of rows."""
        for spec, statistic in zip(self.prior_.columns, statistics, strict=True):
            DISTRIBUTIONS[spec.distribution](spec.numbers, statistic).check(spec.name)
        names, classes = self._names(), tuple(self.classes_.tolist())
        no_rows = Dataset.of_checked(np.empty((0, self.model_.d)), np.empty(0, np.intp), names, classes)
        model = self.model_
        family = Mixed.of_statistics(no_rows, self.prior_, count, statistics, choices=model.choices, alpha=model.alpha)
        self._hold(family, self.classes_)

    def _hold(self, family: Mixed, classes: NDArray[Any]) -> None:
        if self.inference not in ("auto", "exact"):
            raise PriorError(
                f"Streaming needs the exact posterior: inference 'auto' or 'exact'; got {self.inference!r}. Use `fit`."
            )
        settings = self._settings("exact", getattr(self, "seed_", seed_of(self.random_state)))
        self._keep(fit(family, settings), classes, settings.random_seed)

    def _keep(self, fitted: Fit, classes: NDArray[Any], seed: int) -> None:
        super()._keep(fitted, classes, seed)
        self.n_samples_seen_ = float(self.model_.class_count.sum())

    # ── Because x is modelled ───────────────────────────────────────────────────────────────────────────────────────

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Any, NDArray[Any]]:
        """Draw new rows with their labels (n,) from the posterior predictive, in the columns that `fit` was given.

        Parameters
        ----------
        n
            Number of rows, each with parameters of its own from the posterior.
        random_state
            Seed; None gives the same rows each time, as long as the model is not fitted again.

        Returns
        -------
        A data frame if `fit` had one with text or categories, else an array (n, d); and the labels.
        """
        X, labels = super().sample(n, random_state)
        if not any(spec.coded for spec in self.prior_.columns):
            return X, labels
        import pandas as pd

        columns = {}
        for spec in self.prior_.columns:
            x = spec.read(X)
            columns[spec.name] = np.array(spec.levels, dtype=object)[x.astype(np.intp)] if spec.coded else x
        return pd.DataFrame(columns), labels

    def novelty(self, X: Any, false_alarm: float = 0.01) -> Novelty:
        """Say which rows are like nothing that the model has seen: of low density in every class.

        Parameters
        ----------
        X
            Rows; what is missing is left out.
        false_alarm
            Probability, between 0 and 1, that a row of the posterior predictive is called novel.

        Returns
        -------
        `novel` (n,), the tail probabilities behind it in `probability` (n, K) and `largest` (n,), and the `threshold`
        (n,) of each row; see `bayes_gda.families.mixed.novelty`.
        """
        rows = super()._checked(X)
        return novelty.detect_novelty(self.model_, rows, false_alarm=false_alarm, random_seed=self.seed_)

    def worth_measuring(self, X: Any, costs: ArrayLike | None = None) -> Floats:
        """Return by how much each missing feature, if measured, would lower the expected loss (n, d); nan where known.

        worth_j = min_a E[L(a) | x_o] − E[ min_a E[L(a) | x_o, x_j] | x_o ] ≥ 0, before what the measurement costs. The
        0/1 features of a category are measured together, and each has its worth.

        Parameters
        ----------
        X
            Rows with gaps.
        costs
            (A, K) loss of each action under each class, in the order of `classes_`; None counts errors.
        """
        rows = self._checked(X)
        return novelty.by_feature(self.model_, novelty.worth_measuring(self.model_, rows, costs))

    def _checked(self, X: Any) -> Floats:
        rows = super()._checked(X)
        for spec in self.prior_.columns:
            x = spec.read(rows)
            outside = DISTRIBUTIONS[spec.distribution].outside(x, spec.numbers)
            if outside.any():
                warn_user(
                    f"{int(outside.sum())} of {len(x)} rows have a value that {spec.name!r}, {spec.distribution}, "
                    f"cannot have: {SUPPORT[spec.distribution]}; got {x[outside][0]:g}. It counts as missing there."
                )
        return rows

    def _restore(self) -> None:
        self.n_samples_seen_ = float(self.model_.class_count.sum())
