"""Which model predicts better on one data set, and whether the difference is more than noise.

Models of both families meet on one ground alone, log p(y_i | x_i, other rows): by leave-one-out, by K-fold
cross-validation, or on held-out rows. Evidences are compared within a kind: p(X, y) of a generative model and p(y | X)
of a regression are densities of different things, and their ratio says nothing about the models.

References
----------
Sivula, Magnusson, Matamoros & Vehtari (2020), Uncertainty in Bayesian leave-one-out cross-validation based model
comparison.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax

from bayes_gda.checks import Floats, frozen, numbers, rectangle
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.evaluation.calibration import LARGEST, brier_rows, paired_difference
from bayes_gda.evaluation.loo import BEYOND, SMALL, Kind, Loo, told_apart
from bayes_gda.evaluation.reliability import SUM_TOLERANCE
from bayes_gda.evaluation.stacking import pseudo_bma_weights, stacking_weights
from bayes_gda.families.gaussian.continuum import Continuum

if TYPE_CHECKING:
    import pandas as pd

Family = Literal["generative", "discriminative"]

# Sivula et al. (2020): the standard error of a difference is not to be relied upon below so many rows.
FEW_ROWS = 100
# An error of a log evidence that changes the odds of two models by half.
EVIDENCE_ERROR = 0.4


@dataclass(frozen=True, slots=True)
class Evidence:
    """log p(data | model) with the standard error of its computation, and of which data it is.

    Parameters
    ----------
    log_value
        The log evidence.
    of
        `joint`, log p(X, y) as a density of real features; `mixed`, log p(X, y) where some features have probabilities,
        such as categories; `conditional`, log p(y | X).
    error
        Standard error; 0 if exact.
    """

    log_value: float
    of: Literal[Kind, "mixed"]
    error: float = 0.0

    def __post_init__(self) -> None:
        if self.of not in ("joint", "mixed", "conditional"):
            raise DataError(f"`of` must be 'joint' or 'mixed', for p(X, y), or 'conditional'; got {self.of!r}.")
        value, error = numbers("log_value", self.log_value), numbers("error", self.error)
        if value.ndim or error.ndim or not (np.isfinite(value) and error >= 0):
            got = f"{value.tolist()} and {error.tolist()}"
            raise DataError(f"`log_value` must be finite and `error` at least 0; got {got}.")


@dataclass(frozen=True, slots=True, eq=False)
class ModelScore:
    """What is known of a model; None for what is not.

    Parameters
    ----------
    family
        `generative`, a model of p(x, y), or `discriminative`, of p(y | x).
    loo
        Conditional leave-one-out, for the rows `y`.
    kfold
        (n, K) log probabilities of the classes by K-fold cross-validation, for the rows `y`.
    held_out
        (n_test, K) log probabilities for the rows `y_test`, which the model has not seen.
    evidence
        Evidence of the rows `y`.
    """

    family: Family
    loo: Loo | None = None
    kfold: Floats | None = field(default=None, repr=False)
    held_out: Floats | None = field(default=None, repr=False)
    evidence: Evidence | None = None

    def __post_init__(self) -> None:
        if self.family not in ("generative", "discriminative"):
            raise DataError(f"`family` must be 'generative' or 'discriminative'; got {self.family!r}.")
        if self.loo is not None and self.loo.kind != "conditional":
            raise DataError(
                "`loo` must be conditional, log p(y | x), to be compared; got joint. Use GenerativeLoo.conditional."
            )
        if self.family == "discriminative" and self.evidence is not None and self.evidence.of != "conditional":
            raise DataError("`evidence` of a discriminative model must be conditional, log p(y | X); got joint.")
        for name in ("kfold", "held_out"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, _check_log_probabilities(name, value))


@dataclass(frozen=True, slots=True, eq=False)
class ModelComparison:
    """Tables with one line a model, the best first, and what they say in sentences.

    In the score tables `elpd` is the sum of log p(y_i | x_i, ·) over the rows and `log_score` its mean; `difference` is
    elpd less that of the best model, with the standard error of paired rows; errors of others are of the column before
    them. None if no model has what a table needs.

    Parameters
    ----------
    loo, kfold, held_out
        Scores by leave-one-out, by K-fold cross-validation and on held-out rows; the first two with `stacking` and
        `pseudo_bma` weights, which are fitted to the rows, and leave-one-out with `p_eff` and counts of rows
        `refitted` and unreliable, `bad_k`.
    evidence
        `log_evidence`, its `error`, `of` what it is, and the posterior `probability` of the model among those of the
        same kind, with equal prior probabilities.
    generative_vs_discriminative
        Which family predicts better here, in a sentence; None if there is only one.
    sentences
        All there is to say: the former, the best model, where the data sit, and what to beware of.
    continuum
        The models between naive, LDA and QDA, weighted by their evidence; None if it was not asked for.
    """

    loo: "pd.DataFrame | None"
    kfold: "pd.DataFrame | None"
    held_out: "pd.DataFrame | None"
    evidence: "pd.DataFrame | None"
    generative_vs_discriminative: str | None
    sentences: tuple[str, ...]
    continuum: Continuum | None = None


@dataclass(frozen=True, slots=True, eq=False)
class _Ground:
    """One way to score: log p(y_i | x_i, ·) (n,) of each model, and (n, K) where all classes are known."""

    name: str
    rows: dict[str, Floats]
    log_P: dict[str, Floats]
    y: NDArray[np.intp] | None

    @property
    def order(self) -> list[str]:
        return sorted(self.rows, key=lambda name: -self.rows[name].sum())


def compare_scores(
    entries: Mapping[str, ModelScore],
    *,
    y: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    continuum: Continuum | None = None,
) -> ModelComparison:
    """Compare models on one data set by what is known of each; `scorecard.compare_models` takes fitted ones.

    Parameters
    ----------
    entries
        What is known of each model, by name.
    y, y_test
        (n,) class codes of the rows behind `loo`, `kfold` and `evidence`, and of those behind `held_out`. Without `y`,
        leave-one-out has no Brier score and no accuracy.
    continuum
        From `fit_continuum` to the same rows, for a sentence on where between naive, LDA and QDA they sit.
    """
    if not entries:
        raise DataError("`entries` must hold at least one model; got none.")
    grounds = _grounds(entries, y, y_test)
    loo, kfold, held_out = (_table(ground, entries) if ground.rows else None for ground in grounds)
    for table, ground in zip((loo, kfold), grounds, strict=False):
        if table is not None:
            pointwise = np.column_stack([ground.rows[name] for name in table.index])
            table["stacking"] = stacking_weights(pointwise)
            table["pseudo_bma"] = pseudo_bma_weights(pointwise)
    if loo is not None:
        known = [entry for name in loo.index if (entry := entries[name].loo) is not None]
        loo["p_eff"] = [entry.p_eff for entry in known]
        loo["refitted"] = [entry.n_refitted for entry in known]
        loo["bad_k"] = [entry.n_bad for entry in known]
    # The verdict stands where both families meet and most models do, and of two such grounds on the first.
    main = max(grounds, key=lambda ground: (len({entries[name].family for name in ground.rows}), len(ground.rows)))
    versus = _families(main, entries)
    place = [] if continuum is None else [continuum.sentence]
    sentences = [*([versus] if versus else []), *_best(main, entries), *place, *_warnings(main, entries)]
    return ModelComparison(loo, kfold, held_out, _evidence_table(entries), versus, tuple(sentences), continuum)


# ── K-fold ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def kfold(
    data: Dataset,
    fit_predict: Callable[[Dataset, Floats], ArrayLike],
    *,
    folds: int = 10,
    random_seed: int = 0,
) -> Floats:
    """Return log probabilities (n, K) of each row's classes, from a fit to the folds without it.

    Parameters
    ----------
    data
        Rows; they are dealt to the folds class by class, so that each fold has its share of every class.
    fit_predict
        Function of the training rows and (m, d) features of test rows, that returns their log probabilities (m, K).
    folds
        Number of folds, 2 to n; the same seed deals the same folds, so that models are compared on the same.
    random_seed
        Non-negative integer.
    """
    if not isinstance(folds, int | np.integer) or not 2 <= folds <= data.n:
        raise DataError(f"`folds` must be a whole number in 2…{data.n}, the number of rows; got {folds!r}.")
    data.require_rows(2, "K-fold cross-validation")
    rng = np.random.default_rng(random_seed)
    # Dealt like cards, one class after the other: folds differ by one row at most, in all and in every class.
    order = np.concatenate([rng.permutation(np.flatnonzero(data.y == k)) for k in range(data.K)])
    fold = np.empty(data.n, dtype=np.intp)
    fold[order] = np.arange(data.n) % folds
    out = np.empty((data.n, data.K))
    for f in range(folds):
        test = fold == f
        name = f"fit_predict, fold {f}"
        log_P = _check_log_probabilities(name, fit_predict(data.subset(~test), data.X[test]))
        if log_P.shape != (test.sum(), data.K):
            raise DataError(f"`{name}` must return shape {(int(test.sum()), data.K)}; got {log_P.shape}.")
        out[test] = log_P
    return out


# ── Tables ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _grounds(entries: Mapping[str, ModelScore], y: ArrayLike | None, y_test: ArrayLike | None) -> list[_Ground]:
    """Return the three grounds, checked: the models on each have been scored on the same rows."""
    codes = {name: None if value is None else rectangle(name, value) for name, value in (("y", y), ("y_test", y_test))}
    grounds = []
    for title, part, which in (
        ("leave-one-out", "loo", "y"),
        ("K-fold cross-validation", "kfold", "y"),
        ("held-out rows", "held_out", "y_test"),
    ):
        c, rows, log_P = codes[which], {}, {}
        for name, entry in entries.items():
            value: Loo | Floats | None = getattr(entry, part)
            if value is None:
                continue
            if isinstance(value, Loo):
                all_classes, n = value.log_probabilities, value.n
                rows[name] = value.pointwise
            elif c is None:
                raise DataError(f"`{which}` must be given, as {name!r} has {part} probabilities; got None.")
            else:
                all_classes, n = value, len(value)
            if c is not None and c.shape != (n,):
                raise DataError(f"`{which}` must have a code for each of the {n} rows of {name!r}; got {c.shape}.")
            if all_classes is not None and c is not None:
                if c.dtype.kind not in "iu" or c.min() < 0 or c.max() >= all_classes.shape[1]:
                    raise DataError(f"`{which}` must hold class codes in 0…{all_classes.shape[1] - 1}. Use Dataset.y.")
                log_P[name] = all_classes
                own = all_classes[np.arange(n), c]
                # Leave-one-out knows its classes: another `y` would mix two data sets.
                if not np.array_equal(rows.setdefault(name, own), own):
                    raise DataError(f"`{which}` must be the classes that the {title} of {name!r} was made with.")
        if len({len(r) for r in rows.values()}) > 1:
            counts = ", ".join(f"{name!r} {len(r)}" for name, r in rows.items())
            raise DataError(f"Models must be scored on the same rows; got by {title} {counts}. Score them again.")
        grounds.append(_Ground(title, rows, log_P, c))
    return grounds


def _table(ground: _Ground, entries: Mapping[str, ModelScore]) -> "pd.DataFrame":
    import pandas as pd

    best = ground.rows[ground.order[0]]
    lines = []
    for name in ground.order:
        elpd, se = _sum_and_error(ground.rows[name])
        difference, difference_se = _difference(ground, name, ground.order[0])
        line = {"family": entries[name].family, "elpd": elpd, "se": se}
        line |= {"difference": difference, "difference_se": difference_se, "log_score": elpd / len(best)}
        if (log_P := ground.log_P.get(name)) is not None and ground.y is not None:
            P, hits = np.exp(log_P), log_P.argmax(axis=1) == ground.y
            for column, rows in (("brier", brier_rows(P, ground.y)), ("accuracy", hits.astype(np.float64))):
                line[column], line[f"{column}_se"] = (figure / len(rows) for figure in _sum_and_error(rows))
        lines.append(line)
    return pd.DataFrame(lines, index=pd.Index(ground.order, name="model"))


def _evidence_table(entries: Mapping[str, ModelScore]) -> "pd.DataFrame | None":
    import pandas as pd

    known = {name: entry.evidence for name, entry in entries.items() if entry.evidence is not None}
    if not known:
        return None
    table = pd.DataFrame(
        [(e.of, e.log_value, e.error) for e in known.values()],
        index=pd.Index(list(known), name="model"),
        columns=["of", "log_evidence", "error"],
    ).sort_values(["of", "log_evidence"], ascending=[False, False], kind="stable")
    table["probability"] = table.groupby("of", sort=False)["log_evidence"].transform(softmax)
    return table


def _sum_and_error(rows: Floats) -> tuple[float, float]:
    """Σ of rows (n,) and its standard error √n sd; nan where that is not known."""
    finite = len(rows) > 1 and np.isfinite(rows).all()
    return float(rows.sum()), float(np.sqrt(len(rows)) * rows.std(ddof=1)) if finite else float("nan")


def _difference(ground: _Ground, a: str, b: str) -> tuple[float, float]:
    """Return elpd of a less that of b, and the standard error of paired rows."""
    n = len(ground.rows[a])
    if a == b:
        return 0.0, 0.0
    if n < 2:
        return float(ground.rows[a].sum()) - float(ground.rows[b].sum()), float("nan")
    mean, error = paired_difference(ground.rows[a], ground.rows[b])
    return n * mean, n * error


# ── Sentences ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _families(ground: _Ground, entries: Mapping[str, ModelScore]) -> str | None:
    """Hold the best model of one family against the best of the other."""
    first = ground.order[0] if ground.rows else None
    other = next((name for name in ground.order if first and entries[name].family != entries[first].family), None)
    return None if first is None or other is None else _contrast(ground, entries, first, other)


def _best(ground: _Ground, entries: Mapping[str, ModelScore]) -> Iterator[str]:
    """Hold the best model against the next one, if that is of its own family."""
    if len(ground.rows) > 1 and entries[ground.order[0]].family == entries[ground.order[1]].family:
        yield _contrast(ground, entries, *ground.order[:2])


def _contrast(ground: _Ground, entries: Mapping[str, ModelScore], a: str, b: str) -> str:
    difference, se = _difference(ground, a, b)
    n = len(ground.rows[a])
    if not np.isfinite(difference):
        return f"By {ground.name} {b} gave the true class of a row probability 0; {a} and {b} cannot be compared."
    pair = f"the {entries[a].family} model {a}", f"the {entries[b].family} model {b}"
    gap = f"{difference:.1f} (SE {se:.1f})"
    if not told_apart(difference, se):
        why = f"less than {SMALL:g}" if difference < SMALL else f"within noise ({BEYOND:g} standard errors)"
        both = " and ".join(pair)
        return f"By {ground.name} {both} cannot be distinguished: elpd differs by {gap} over {n} rows, {why}."
    few = f", though below {FEW_ROWS} rows the error is rough" if n < FEW_ROWS else ""
    return (
        f"By {ground.name} {pair[0]} predicts the class better than {pair[1]}: its elpd over {n} rows exceeds the "
        f"other's by {gap}, beyond noise ({BEYOND:g} standard errors){few}."
    )


def _warnings(ground: _Ground, entries: Mapping[str, ModelScore]) -> Iterator[str]:
    if absent := [repr(name) for name in entries if name not in ground.rows] if ground.rows else []:
        yield f"Not in this comparison, as not known by {ground.name}: {', '.join(absent)}."
    for name, entry in entries.items():
        if entry.loo is not None and entry.loo.n_bad:
            yield f"{name!r}: {entry.loo.reason} {entry.loo.next_step}"
        if entry.evidence is not None and entry.evidence.error > EVIDENCE_ERROR:
            yield (
                f"The log evidence of {name!r} has an error of {entry.evidence.error:.1f}: too much for its model "
                "probability. Bridge sampling of MCMC draws, or more draws, would reduce it."
            )
    if len({entry.evidence.of for entry in entries.values() if entry.evidence is not None}) > 1:
        yield (
            "Evidences of p(X, y) and of p(y | X), and those of features as real numbers or as categories, refer to "
            "different data: model probabilities are comparable among models of the same kind only."
        )


# ── Checks ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _check_log_probabilities(name: str, value: ArrayLike) -> Floats:
    log_P = numbers(name, value)
    log_P = frozen(np.where(log_P < -LARGEST, -np.inf, log_P))  # e^(−1e150) is 0, and sums of more could overflow
    if log_P.ndim != 2 or len(log_P) == 0 or log_P.shape[1] < 2:
        raise DataError(f"`{name}` must be (n, K) log probabilities of two classes or more; got shape {log_P.shape}.")
    with np.errstate(over="ignore", invalid="ignore"):  # what is no logarithm of a probability may be of any size
        off = np.abs(np.expm1(logsumexp(log_P, axis=1)))
        total = np.exp(log_P).sum(axis=1)
    if not (off <= SUM_TOLERANCE).all():
        row = int(np.where(np.isnan(off), np.inf, off).argmax())
        raise DataError(
            f"`{name}` must be log probabilities; those of row {row} sum to {total[row]:.6g}, not 1. "
            "Take logs, or normalise."
        )
    return log_P
