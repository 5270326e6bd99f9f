"""What all estimators share: scikit-learn's contract around a fitted model, and what scikit-learn has no word for."""

from datetime import UTC, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from bayes_gda.checks import Floats, finite
from bayes_gda.data.classes import as_labels
from bayes_gda.data.frames.convert import as_values
from bayes_gda.data.labels import to_datatree
from bayes_gda.data.large.batches import Source
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.estimators.inputs import Inputs
from bayes_gda.estimators.sources import source_of
from bayes_gda.estimators.summaries import fitted_html, interval_table, named_costs, summary_table, warn_of_errors
from bayes_gda.families.base import Family
from bayes_gda.families.groups import add_groups
from bayes_gda.methods.density import COORDINATES
from bayes_gda.methods.ladder import Fit, fit
from bayes_gda.methods.settings import Settings, seed_of
from bayes_gda.methods.verdict import Verdict, judge_rows
from bayes_gda.prediction import uncertainty
from bayes_gda.prediction.conformal import Conformal
from bayes_gda.prediction.decisions import Decisions
from bayes_gda.prediction.fitted import EntropySplit, FittedModel
from bayes_gda.prediction.monte_carlo import judge_errors, probabilities
from bayes_gda.prediction.row_errors import RowTrust
from bayes_gda.prediction.shift import ClassPriorEstimate

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# Numbers that the training rows may have which a fitted estimator keeps at hand for the groups of `posterior_`.
KEPT_NUMBERS = 2_000_000
# They, and `posterior_` with all its groups, live as long as their estimator, but are no part of it: a pickle, a file
# and a copy are without.
_SOURCES: "WeakKeyDictionary[Any, Family]" = WeakKeyDictionary()
_COMPLETE: "WeakKeyDictionary[Any, xr.DataTree]" = WeakKeyDictionary()


class BayesianClassifier(ClassifierMixin, Inputs):  # type: ignore[misc]  # scikit-learn ships no types
    """A classifier that is a posterior: predictions average over it, and know what they do not know.

    The subclasses say what the model and its prior are.
    """

    classes_: NDArray[Any]
    model_: FittedModel
    prior_: Any
    inference_: str
    trust_: Verdict
    log_evidence_: float
    log_evidence_error_: float
    seed_: int

    # What `fit` leaves behind beside the attributes above, and its type, for the store.
    _stored: ClassVar[dict[str, Any]] = {}

    # The parameters that all subclasses have; each sets them in its own __init__, as scikit-learn wants.
    inference: Any
    draws: int
    chains: int
    sampler: str
    random_state: Any
    progress: bool | None
    tolerance: float

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_gaps
        return tags

    # ── Fitting ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit to rows X (n, d) and labels y (n,), or to a table that need not fit into memory.

        Parameters
        ----------
        X, y
            Features and labels. X is an array, or a data frame of pandas, polars or Arrow, whose columns may hold
            numbers, booleans, text or categories; y holds labels of any kind, or is the name of a column of the frame,
            or None where the formula names it. Or a `Dataset`, and no y. Or a table that is fitted by `fit_batches`: a
            path (.csv, .tsv, .parquet, .feather, a folder of .parquet) or a Dask DataFrame, and the name of its target
            column; two Dask arrays; or what `open_batches` or `open_cluster` returned, and no y.
        sample_weight
            (n,) weights ≥ 0: a row of weight 2 counts as two, one of weight 0 as absent. None is 1 for all. Not for a
            table.
        """
        table = source_of(X, y, sample_weight)
        if table is not None:
            return self.fit_batches(table)
        if isinstance(X, Dataset):
            sample_weight = X.weight if sample_weight is None else sample_weight
        X, y = self._validated(X, y)
        self._fit_rows(*self._rows(X, y, sample_weight))
        return self

    def _family(self, K: int) -> type[Family]:
        """Return the family of the model, for K classes."""
        raise NotImplementedError

    def _bind(self, data: Dataset) -> Family:
        """Join the family with rows and the prior that the parameters state."""
        return self._family(data.K).bind(data, getattr(self, "prior", None))

    @property
    def _takes_gaps(self) -> bool:
        """Whether missing values (NaN) are integrated out, in `fit` and in predictions."""
        return self._family(2).takes_gaps

    @property
    def _reads_levels(self) -> bool:
        """Whether the model reads categories as such, so that a level it has not seen has a place."""
        return self._family(2).reads_levels

    def _fit_rows(self, data: Dataset, classes: NDArray[Any]) -> None:
        """Fit to checked rows by the method asked for, or by the fastest one that holds."""
        settings = self._settings(self.inference, seed_of(self.random_state))
        data = self._family(data.K).prepare(data, self.inference, getattr(self, "prior", None))
        self._keep(fit(self._bind(data), settings), classes, settings.random_seed)

    def fit_batches(self, batches: Source) -> Self:
        """Fit to a table larger than memory, in passes over its rows."""
        raise NotImplementedError

    def _settings(self, inference: Any, seed: int) -> Settings:
        return Settings(inference, self.draws, self.chains, self.sampler, seed, self.progress, self.tolerance)

    def _keep(self, fitted: Fit, classes: NDArray[Any], seed: int) -> None:
        """Take over what was fitted; a fit that failed has left the estimator as it was."""
        self.classes_, self.prior_, self.seed_ = classes, fitted.family.prior, seed
        self.model_, self.inference_, self.trust_ = fitted.model, fitted.chosen, fitted.verdict
        self.log_evidence_, self.log_evidence_error_ = fitted.log_evidence
        self._tree = fitted.tree
        # Training rows, for the groups of `posterior_` that need them; not of a table, nor beyond 16 MB.
        data = fitted.family.data
        for kept in (_SOURCES, _COMPLETE):
            kept.pop(self, None)  # of an earlier fit
        if data.n * data.d <= KEPT_NUMBERS:
            _SOURCES[self] = fitted.family
        if fitted.gaussian is not None and fitted.tree is None:
            self.n_iter_ = fitted.gaussian.info.n_iter
        elif hasattr(self, "n_iter_"):
            del self.n_iter_  # of an earlier fit by another method

    def _restore(self) -> None:
        """Set what a file leaves to the model, and raise if the parts do not fit; called once all else is loaded."""

    # ── Predictions ─────────────────────────────────────────────────────────────────────────────────────────────────

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable labels (n,) of rows (n, d)."""
        codes = self.predict_log_proba(X).argmax(axis=1)  # raises if there is no fit yet
        return np.asarray(self.classes_[codes])

    def predict_proba(self, X: Any, class_prior: ArrayLike | None = None, *, return_std_error: bool = False) -> Any:
        """Return the class probabilities (n, K) of rows (n, d), averaged over the posterior.

        Where they are means over draws, and two Monte Carlo standard errors of one exceed the tolerance, an
        `InferenceWarning` says so, unless the standard errors are asked for.

        Parameters
        ----------
        X
            Features.
        class_prior
            (K,) class shares where the predictions are used, in the order of `classes_`, if they differ from those of
            the training rows. None keeps those. The averaged probabilities are reweighed, ∝ p(y=k | x, D) π'_k/π_k,
            and decisions stand on the result; see `bayes_gda.prediction.shift`.
        return_std_error
            Whether to return the Monte Carlo standard errors (n, K) too, as a second array: how far other draws would
            move each probability. They are 0 where probabilities are closed forms.
        """
        rows = self._checked(X)
        P, error = probabilities(self.model_, rows, class_prior)
        if return_std_error:
            return P, error
        warn_of_errors(self, judge_errors(error, self.tolerance, "predicted"))
        return P

    def trust_for(self, X: Any) -> RowTrust:
        """Return how far the probabilities of rows X (n, d) may be off by each cause, and a verdict on each row.

        `trust_` is of the training rows; these may lie far outside them.
        """
        rows = self._checked(X)
        return judge_rows(self.model_, self.trust_, rows, self.tolerance)

    def predict_log_proba(self, X: Any, class_prior: ArrayLike | None = None) -> Floats:
        """Return the logarithms (n, K) of `predict_proba`, accurate also where a probability is tiny."""
        rows = self._checked(X)
        return self.model_.log_probabilities(rows, class_prior)

    def decision_function(self, X: Any) -> Floats:
        """Return the log odds (n,) of the second class, or the log probabilities (n, K) of more than two."""
        log_p = self.predict_log_proba(X)
        return np.asarray(log_p[:, 1] - log_p[:, 0]) if len(self.classes_) == 2 else log_p

    def predict_interval(self, X: Any, prob: float = 0.9, *, as_frame: bool = False) -> Any:
        """Return the central credible intervals (n, K, 2) of p(y=k | x, θ) under the posterior of θ.

        They say how well the probability itself is known, not how certain the class is. For the Gaussian models the
        prediction also weighs θ by how well it explains x; far from all data it may then leave the interval.

        Parameters
        ----------
        X
            Features.
        prob
            Posterior probability that each interval holds.
        as_frame
            Whether to return a data frame with the columns low[class] and high[class].
        """
        rows = self._checked(X)
        ends = uncertainty.interval(self.model_, rows, prob=prob, size=self._size, random_seed=self.seed_)
        return interval_table(self.classes_.tolist(), ends) if as_frame else ends

    def predict_set(self, X: Any, X_calibration: Any, y_calibration: Any, coverage: float = 0.9) -> NDArray[np.bool_]:
        """Return which classes belong to each row's prediction set (n, K), by split conformal prediction.

        A set holds the row's class with probability `coverage` or more, whether the model is right or not, if the row
        and the calibration rows are exchangeable; see `bayes_gda.prediction.conformal`.

        Parameters
        ----------
        X
            Features.
        X_calibration, y_calibration
            Rows with their labels that the model was not fitted to, at least coverage/(1 − coverage).
        coverage
            Probability that a set holds the class.
        """
        P = self.predict_proba(X_calibration)
        codes = as_labels(as_values(y_calibration), "`y_calibration`").code_known(
            self.classes_.tolist(), "`y_calibration`", "class"
        )
        if len(codes) != len(P):
            raise DataError(f"Calibration rows and labels must be as many; got {len(P)} and {len(codes)}.")
        return Conformal.calibrate(P, codes, coverage).sets(self.predict_proba(X))

    def uncertainty(self, X: Any) -> EntropySplit:
        """Split the predictive entropy of each row, in nats: `total` = `aleatoric` + `epistemic`, (n,) each."""
        rows = self._checked(X)
        return uncertainty.entropy(self.model_, rows, size=self._size, random_seed=self.seed_)

    def decide(
        self,
        X: Any,
        costs: ArrayLike,
        *,
        reject_cost: ArrayLike | None = None,
        action_names: Any = None,
        class_prior: ArrayLike | None = None,
    ) -> Decisions:
        """Choose the action of least expected loss for each row, and say how firm the choice is.

        Parameters
        ----------
        X
            Features.
        costs
            (A, K) loss of each action under each class, in the order of `classes_`, or (n, A, K); or by name,
            {action: {class: loss}} or a data frame with a row for each action.
        reject_cost
            What it costs not to decide, a number or (n,); None offers no such way out.
        action_names
            A names; by default the classes if there are as many actions.
        class_prior
            As in `predict_proba`.
        """
        rows, named = self._checked(X), named_costs(costs, self.classes_.tolist())
        if named is not None:
            costs, actions = named
            action_names = actions if action_names is None else action_names
        costs = finite("costs", costs, error=DataError)
        if action_names is None and costs.ndim >= 2 and costs.shape[-2] == len(self.classes_):
            action_names = self.classes_.tolist()
        return uncertainty.decisions(
            self.model_,
            rows,
            costs,
            size=self._size,
            random_seed=self.seed_,
            class_prior=class_prior,
            reject_cost=reject_cost,
            action_names=action_names,
        )

    def estimate_class_prior(self, X: Any) -> ClassPriorEstimate:
        """Estimate the class shares of unlabelled rows (n, d) by maximum likelihood, and test whether they changed.

        Standard errors and p-value allow for what training leaves unsure, of the class densities and of the old shares.
        They assume that the model is right, and that nothing but the shares may differ from the training rows.
        """
        rows, seen = self._checked(X), getattr(self, "n_samples_seen_", np.nan)
        return uncertainty.class_prior(self.model_, rows, trained=seen, random_seed=self.seed_)

    @property
    def _size(self) -> int:
        """Draws behind intervals, entropies and decisions: those of `posterior_`."""
        return self.draws * self.chains

    # ── The posterior ───────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def posterior_(self) -> "xr.DataTree":
        """The posterior as an ArviZ DataTree, drawn when it is first asked for, unless it was sampled.

        With the groups log_likelihood, log_prior, observed_data, posterior_predictive and prior, as far as the model
        has them and while its training rows are at hand: in the process that fitted it to rows in memory, of at most
        two million numbers. The log likelihood of the labels is `y`, that of the features, if they are modelled, `x`.
        """
        tree, source, made = self._draws(), _SOURCES.get(self), _COMPLETE.get(self)
        if made is not None:
            return made
        if source is None:
            return tree
        # Beside the draws, which are what a file holds: those do not depend on whether one has looked.
        made = tree.copy()
        said = dict(tree["posterior"].attrs)
        size = tree["posterior"].sizes["chain"] * tree["posterior"].sizes["draw"]
        variables = self.model_.draw_variables(size, random_seed=self.seed_)
        add_groups(made, source, self.model_, variables, self.seed_, resampled=self.inference_ == "corrected")
        # What is said of these groups stands at the root; the posterior is the same as without them.
        more = {name: value for name, value in made["posterior"].attrs.items() if name not in said}
        made["posterior"].attrs = said
        library = {name: said[name] for name in said if name.startswith("inference_library")}
        made.attrs = {"created_at": datetime.now(UTC).isoformat(), **library, **more}
        _COMPLETE[self] = made
        return made

    def _draws(self) -> "xr.DataTree":
        """The draws alone, with what the sampler returned if it was run."""
        check_is_fitted(self, "model_")
        if self._tree is None:
            drawn = self.model_.draw_variables(self._size, random_seed=self.seed_)
            draws = {name: values for name, values in drawn.items() if name != COORDINATES}
            attrs = {"method": self.inference_, "random_seed": self.seed_}
            self._tree = to_datatree(draws, self._coords(), chains=self.chains, attrs=attrs)
        return self._tree

    def _coords(self) -> dict[str, list[str]]:
        return self._family(len(self.classes_)).model_coords(self.model_, self.classes_.tolist(), self._names())

    def _odds_units(self) -> dict[str, float] | None:
        """By what to multiply each weight of `summary` for a log odds ratio per unit; None if there are no such."""
        return None

    def summary(self, prob: float = 0.9) -> "pd.DataFrame":
        """Return a table of the parameters: mean, sd, a central interval, and ESS and R-hat if they were sampled.

        Weights of a logistic regression have odds ratios, too: exp of the weight per unit of the column as it was
        given, where the features are the columns themselves; `mean` and `sd` are on the scale of the standardised ones.

        `ess_tail` is of the 5 % and 95 % quantiles; that of `az.summary` by default of the 11 % and 89 % quantiles.

        Parameters
        ----------
        prob
            Posterior probability of the interval.
        """
        return summary_table(self, prob)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the fitted model to one file, which `bayes_gda.store.load` reads; nothing is pickled."""
        from bayes_gda.store import save

        check_is_fitted(self, "model_")
        save(self, path)

    def __getstate__(self) -> dict[str, Any]:
        # Draws that can be made again need not travel to joblib's workers.
        state: dict[str, Any] = super().__getstate__()
        if state.get("_tree") is not None and state.get("inference_") != "mcmc":
            state = state | {"_tree": None}
        return state

    def _html_repr(self) -> str:
        """scikit-learn's diagram, and below it what was fitted."""
        diagram: str = super()._html_repr()
        return diagram + (fitted_html(self) if hasattr(self, "model_") else "")
