"""The one evaluation of a fit: what `compare`, `report`, `check` and Python say of a model comes from its scorecard.

Leave-one-out, scores on held-out rows, calibration, the methods held against each other, decisions and the sensitivity
to the prior are each computed once, when they are first asked for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.labels import to_datatree
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, attempt
from bayes_gda.evaluation.calibration import calibration_table
from bayes_gda.evaluation.compare import PosteriorComparison, compare_posteriors, compare_predictions
from bayes_gda.evaluation.fitted_loo import Refits, model_loo
from bayes_gda.evaluation.loo import Loo
from bayes_gda.evaluation.model_comparison import Evidence, ModelComparison, ModelScore, compare_scores
from bayes_gda.evaluation.performance import Performance, performance
from bayes_gda.evaluation.sensitivity import Sensitivity, prior_sensitivity
from bayes_gda.families.assumptions import Assumptions
from bayes_gda.families.base import Family, Kind
from bayes_gda.families.gaussian.classifier import AveragedClassifier
from bayes_gda.families.gaussian.continuum import Continuum
from bayes_gda.methods.density import COORDINATES
from bayes_gda.methods.ladder import Fit
from bayes_gda.methods.settings import Settings
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.decisions import Decisions
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.monte_carlo import MonteCarlo, judge_errors, probabilities
from bayes_gda.prediction.uncertainty import decisions

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Scalars of a posterior that are compared and weighed for their prior; each takes 20 ms a method. Beyond, covariances
# are left out: there are d² of them, and they matter through the predictions, which are compared in any case.
MOST_SCALARS = 150
# Numbers (draws × rows) of the prior sensitivity; beyond, draws are thinned, to no fewer than so many.
MOST_NUMBERS, FEWEST_DRAWS = 20_000_000, 400
# Draws behind intervals, entropies and decisions of held-out rows: the ends of a 90 % interval then rest on 50 each.
ROW_DRAWS = 1000


@dataclass(frozen=True, eq=False)
class Scorecard:
    """A fitted model judged on the rows it was fitted to and on held-out ones.

    Parameters
    ----------
    name, kind
        Name of the family, and whether it models p(x, y) or p(y | x).
    model, method, verdict
        What predicts, by which method it was found, and whether to believe it.
    evidence
        log evidence and its standard error; nan where they are not known.
    train, test
        The rows that it was fitted to, as they were given; held-out rows, or None.
    settings
        Draws and seed.
    fit
        The fit with every posterior; None for an estimator, which keeps one.
    family
        Returns the model with its data and prior, or None if they are not known; for refits of leave-one-out.
    row_numbers
        (n,) numbers of the training rows in their table; None if they are not known.
    """

    name: str
    kind: Kind
    model: FittedModel = field(repr=False)
    method: str
    verdict: Verdict
    evidence: tuple[float, float]
    train: Dataset
    test: Dataset | None
    settings: Settings
    fit: Fit | None = field(default=None, repr=False)
    family: Callable[[], Family | None] = field(default=lambda: None, repr=False)
    row_numbers: NDArray[np.intp] | None = field(default=None, repr=False)

    @classmethod
    def of_fit(cls, fitted: Fit, train: Dataset, test: Dataset | None, settings: Settings) -> Self:
        """Judge what the ladder returned."""
        family = fitted.family
        return cls(
            family.name,
            family.kind,
            fitted.model,
            fitted.chosen,
            fitted.verdict,
            fitted.best_evidence if len(fitted.models) > 1 else fitted.log_evidence,
            train,
            test,
            settings,
            fitted,
            lambda: family,
        )

    @classmethod
    def of_estimator(cls, name: str, estimator: Any, train: Dataset, test: Dataset | None) -> Self:
        """Judge a fitted estimator; the classes of the rows are in the order of its `classes_`."""
        settings = Settings(
            draws=estimator.draws,
            chains=estimator.chains,
            random_seed=estimator.seed_,
            tolerance=estimator.tolerance,
        )
        model: FittedModel = estimator.model_
        return cls(
            name,
            "generative" if model.generative else "discriminative",
            model,
            estimator.inference_,
            estimator.trust_,
            (estimator.log_evidence_, estimator.log_evidence_error_),
            train,
            test,
            settings,
            family=lambda: _bind_again(estimator, train),
        )

    # ── Scores ──────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def loo(self) -> Loo:
        """Leave-one-out of the training rows, log p(y | x, other rows)."""
        importance = self.verdict.importance if self.method == "corrected" else None
        size, seed = self.settings.size, self.settings.random_seed
        rows, refits = self.train, Refits(self.family, self.method == "laplace", self.settings)
        loo = model_loo(self.model, rows.X, rows.y, size=size, random_seed=seed, importance=importance, refits=refits)
        return replace(loo.conditional, row_numbers=self.row_numbers)

    @cached_property
    def attempted_loo(self) -> tuple[Loo | None, str]:
        """Leave-one-out, or None and why it failed."""
        return attempt(lambda: self.loo)

    @cached_property
    def log_probabilities(self) -> Floats:
        """(n_test, K) log probabilities of the held-out rows."""
        return self.model.log_probabilities(self._held_out.X)

    @cached_property
    def calibration(self) -> "pd.DataFrame":
        """Scores and calibration on the held-out rows."""
        rows = self._held_out
        return calibration_table(
            np.exp(self.log_probabilities), rows.y, class_names=[str(name) for name in rows.class_names]
        )

    @cached_property
    def performance(self) -> Performance:
        """How well the classes of the held-out rows are told apart: confusion, recall, precision, ROC, PR."""
        rows = self._held_out
        return performance(np.exp(self.log_probabilities), rows.y, class_names=[str(name) for name in rows.class_names])

    @property
    def score(self) -> ModelScore:
        """What a comparison of models asks for."""
        value, error = self.evidence
        known = np.isfinite(value) and np.isfinite(error)
        evidence = Evidence(value, self.model.evidence_of, error) if known else None
        held_out = None if self.test is None else self.log_probabilities
        return ModelScore(self.kind, loo=self.attempted_loo[0], held_out=held_out, evidence=evidence)

    @property
    def _held_out(self) -> Dataset:
        if self.test is None:
            raise DataError("There are no held-out rows. Give `test`.")
        return self.test

    # ── The methods held against each other ─────────────────────────────────────────────────────────────────────────

    @property
    def fitted(self) -> Fit:
        """The fit with every posterior."""
        assert self.fit is not None
        return self.fit

    @cached_property
    def trees(self) -> "dict[str, xr.DataTree]":
        """Draws by method under the user's names, as many of each as the sampler has, to be compared on equal terms."""
        fitted, settings = self.fitted, self.settings
        # Independent draws have no chains of their own.
        out: dict[str, xr.DataTree] = {}
        for i, (method, model) in enumerate(fitted.models.items()):
            if method == "mcmc" and fitted.tree is not None:
                out[method] = fitted.tree
                continue
            variables = model.draw_variables(self._affordable(model), random_seed=settings.random_seed + i)
            shown = {name: x for name, x in variables.items() if name != COORDINATES}
            out[method] = to_datatree(shown, fitted.family.coords, chains=settings.chains, attrs={"method": method})
        return out

    def _affordable(self, model: FittedModel) -> int:
        """Draws of each chain's share that hold at most MOST_NUMBERS numbers; no fewer than FEWEST_DRAWS."""
        settings = self.settings
        width = sum(np.asarray(x).size for x in model.draw_variables(1, random_seed=0).values())
        size = min(settings.size, max(FEWEST_DRAWS, MOST_NUMBERS // max(width, 1)))
        return max(1, size // settings.chains) * settings.chains

    @cached_property
    def compared(self) -> tuple[str, ...]:
        """The variables that are compared: all, or all but the covariances if they are too many."""
        posterior = self.trees[self.method]["posterior"]
        sizes = {str(name): int(np.prod(x.shape[2:])) for name, x in posterior.data_vars.items()}
        small = (
            tuple(sizes) if sum(sizes.values()) <= MOST_SCALARS else tuple(n for n in sizes if not n.endswith("Sigma"))
        )
        return small or tuple(sizes)

    @cached_property
    def posteriors(self) -> PosteriorComparison | None:
        """The posteriors compared with the best of them; None if there is one only."""
        if len(self.trees) < 2:
            return None
        return compare_posteriors({k: spread_scalars(x) for k, x in self.trees.items()}, var_names=self.compared)

    @cached_property
    def probabilities(self) -> dict[str, Floats]:
        """(n_test, K) probabilities of the held-out rows by method; a regression's Gaussian by either link."""
        fitted, X = self.fitted, self._held_out.X
        out = {} if fitted.gaussian is None else fitted.family.probabilities(X, fitted.gaussian)
        for method, model in fitted.models.items():
            if method == self.method:
                out[method] = np.exp(self.log_probabilities)
            elif method not in out and method != "skew-modal":
                out[method] = np.exp(model.log_probabilities(X))
        return out

    @cached_property
    def predictions(self) -> "pd.DataFrame":
        """The table that compares these probabilities with those of the chosen method."""
        return compare_predictions(self.probabilities, reference=self.method)

    @cached_property
    def monte_carlo(self) -> MonteCarlo | None:
        """The Monte Carlo errors of the held-out rows' probabilities; None if these are closed forms."""
        if not self.model.averages_draws:
            return None
        error = probabilities(self.model, self._held_out.X)[1]
        return judge_errors(error, self.settings.tolerance, "held-out")

    def largest_error(self, method: str) -> tuple[float, float]:
        """Return how far another method's probabilities of held-out rows are off at most, and that one's noise."""
        P, X = self.probabilities, self._held_out.X
        errors = [probabilities(self.fitted.models[name], X)[1] for name in (method, self.method)]
        change = np.abs(P[method] - P[self.method])
        return float(change.max()), float(np.hypot(*errors).flat[change.argmax()])

    @cached_property
    def assumptions(self) -> Assumptions:
        """What the model assumes, checked on its training rows."""
        fitted = self.fitted
        return fitted.family.assumptions(fitted.gaussian, self.settings.random_seed)

    # ── Decisions and prior ─────────────────────────────────────────────────────────────────────────────────────────

    def decisions(self, costs: Floats, action_names: list[str]) -> Decisions:
        """Choose actions for the held-out rows under costs (A, K)."""
        return decisions(
            self.model,
            self._held_out.X,
            costs,
            size=min(self.settings.size, ROW_DRAWS),
            random_seed=self.settings.random_seed,
            action_names=action_names,
        )

    @cached_property
    def power_scaling(self) -> "xr.DataTree":
        """Draws of the compared parameters with their log prior and log likelihood, for power-scaling by ArviZ."""
        import xarray as xr

        family, variables = self.fitted.family, self._scaled_variables()
        shown = family.identified({name: variables[name] for name in self.compared})
        tree = spread_scalars(to_datatree(shown, family.coords))
        for name, values in zip(("log_prior", "log_likelihood"), family.prior_and_likelihood(variables), strict=True):
            tree[name] = xr.DataTree(xr.Dataset({"all": (("chain", "draw"), np.asarray(values)[None])}))
        return tree

    def _scaled_variables(self) -> dict[str, Floats]:
        size = int(min(self._affordable(self.model), max(FEWEST_DRAWS, MOST_NUMBERS // max(self.train.n, 1))))
        return self.model.draw_variables(size, random_seed=self.settings.random_seed)

    @cached_property
    def _parameter_sensitivity(self) -> Sensitivity:
        return prior_sensitivity(self.power_scaling)

    def sensitivity(self, rows: Floats | None = None, class_names: tuple[str, ...] = ()) -> Sensitivity:
        """Measure the sensitivity to the prior of the parameters, and of the probabilities of rows (n, d) if given."""
        known = self._parameter_sensitivity
        if rows is None:
            return known
        terms = self.model.log_terms(self._scaled_variables(), rows)
        log_joint = terms if self.model.generative else np.maximum(terms, np.log(np.finfo(float).tiny))
        return prior_sensitivity(
            self.power_scaling, log_joint=log_joint, class_names=class_names or None, parameters=known.parameters
        )


def spread_scalars(tree: "xr.DataTree", most: int = MOST_SCALARS) -> "xr.DataTree":
    """Return the posterior with at most about `most` scalars: evenly spaced entries along its longest dimension."""
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    total = sum(int(np.prod(x.shape[2:])) for x in posterior.data_vars.values())
    sizes = {dim: size for dim, size in posterior.sizes.items() if dim not in ("chain", "draw")}
    if total <= most or not sizes:
        return tree
    longest = max(sizes, key=lambda dim: sizes[dim])
    kept = np.unique(np.linspace(0, sizes[longest] - 1, max(1, sizes[longest] * most // total)).round().astype(int))
    groups = {name: node.to_dataset() for name, node in tree.children.items() if name != "posterior"}
    return xr.DataTree.from_dict({"posterior": posterior.isel({longest: kept})} | groups)


def compare_models(
    models: Mapping[str, Any],
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    *,
    X_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    continuum: Continuum | None = None,
) -> ModelComparison:
    """Compare models on one data set: by leave-one-out, on held-out rows, and by their evidence.

    Parameters
    ----------
    models
        Fitted estimators, scorecards, or scores (`ModelScore`), by name.
    X, y
        (n, d) features and (n,) labels that the estimators were fitted to; for scorecards and scores y is the class
        codes (n,), or None where a scorecard has the rows.
    X_test, y_test
        Held-out rows; None compares without.
    continuum
        The models between naive, LDA and QDA fitted to the same rows; None takes that of a model that has it.
    """
    if not models:
        raise DataError("`models` must hold at least one model; got none.")
    entries: dict[str, ModelScore] = {}
    codes, codes_test = y, y_test
    notes: list[str] = []
    for name, model in models.items():
        if isinstance(model, ModelScore):
            entries[name] = model
            continue
        card = model if isinstance(model, Scorecard) else _card_of(name, model, (X, y), (X_test, y_test))
        codes, codes_test = card.train.y, None if card.test is None else card.test.y
        entries[name] = card.score
        if failure := card.attempted_loo[1]:
            notes.append(f"{name!r} has no leave-one-out: {failure}")
        if continuum is None and isinstance(card.model, AveragedClassifier):
            continuum = card.model.continuum
    comparison = compare_scores(entries, y=codes, y_test=codes_test, continuum=continuum)
    return replace(comparison, sentences=(*comparison.sentences, *notes))


def _card_of(name: str, estimator: Any, train: tuple[Any, Any], test: tuple[Any, Any]) -> Scorecard:
    if not hasattr(estimator, "model_"):
        raise DataError(f"`models` must hold fitted estimators; {name!r} is not fitted. Call fit(X, y) first.")
    if train[0] is None or train[1] is None:
        raise DataError("`X` and `y` must be the rows that the estimators were fitted to; got none. Give both.")
    parts = [_rows_of(estimator, *part) if part[0] is not None else None for part in (train, test)]
    assert parts[0] is not None
    return Scorecard.of_estimator(name, estimator, parts[0], parts[1])


def _bind_again(estimator: Any, rows: Dataset) -> Family | None:
    """Return the model of a fitted estimator with its rows; None if it was fitted to others, or with weights."""
    family: type[Family] = estimator._family(rows.K)
    bound: Family = estimator._bind(family.prepare(rows, estimator.inference, getattr(estimator, "prior", None)))
    # Of weights the estimator keeps the shares of the classes.
    shares = getattr(estimator.model_, "shares", rows.shares)
    return bound if np.allclose(shares, rows.shares, rtol=0, atol=1e-9) else None


def _rows_of(estimator: Any, X: Any, y: Any) -> Dataset:
    labels = estimator.classes_.tolist()
    place = {label: k for k, label in enumerate(labels)}
    given = np.asarray(y).tolist()
    if unknown := [label for label in given if label not in place]:
        raise DataError(f"`y` holds {unknown[0]!r}, which is none of the classes {labels}.")
    codes = np.array([place[label] for label in given], dtype=np.intp)
    features = np.ascontiguousarray(estimator._known_rows(X))
    encoding = estimator.encoding_
    return Dataset.of_checked(features, codes, estimator._names(), tuple(labels), encoding=encoding)
