"""Logistic and softmax regression as a scikit-learn classifier."""

from typing import Any, Literal

import numpy as np

from bayes_gda.checks import Floats, frozen, positive
from bayes_gda.data.features import FeatureMap
from bayes_gda.errors import DataError, PriorError
from bayes_gda.estimators.online import Online
from bayes_gda.families.linear.mode import empirical_bayes, with_prior_scale
from bayes_gda.fitting.defaults import FeatureSpec, Rows, fit_features
from bayes_gda.fitting.regressions import Design, HierarchicalProblem, WeightsProblem
from bayes_gda.methods.ladder import Inference, Problem
from bayes_gda.priors import HierarchicalScale, Normal


class BayesianLogisticRegression(Online):
    """Bayesian logistic regression, p(y=1 | x) = σ(wᵀφ(x)), and softmax regression for more than two classes.

    Parameters
    ----------
    inference
        `auto`: Laplace, verified and corrected where that is enough, else MCMC, with a warning. `laplace` or `mcmc` ask
        for one method. There is no exact posterior.
    prior
        Normal or HierarchicalScale for the weights on φ, the intercept first; overrides the scales below.
    prior_scale
        Standard deviation of the slopes, per standard deviation of their feature; inf is flat, `"hierarchical"` learns
        one scale with the weights, `"empirical-bayes"` takes the one of greatest evidence.
    intercept_scale
        Standard deviation of the intercept; inf is flat.
    standardize
        Whether to centre and scale the columns of φ; a constant one is only centred, so that its weight keeps its
        prior.
    features
        The feature map φ: None for the features themselves, a degree (2 adds squares and products), a row-wise
        function, or a fitted FeatureMap, which is used as it is.
    missing
        What rows with missing values (NaN) do in `fit`: raise ("error"), or stay out, with their labels and weights
        ("drop"). In predictions they are always an error; the Gaussian models take them.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, the
        corrected posterior, intervals, entropies and decisions.
    sampler
        `pymc`, or `nutpie` or `numpyro` if installed; for MCMC only.
    random_state
        Seed, a RandomState or None. The default is fixed so that fitting twice gives the same answer; None is new each
        time.
    progress
        Whether MCMC shows a bar; None shows it on a terminal.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        Labels (K,), and the features.
    prior_, features_
        The prior and the fitted feature map in fact used.
    inference_
        The method in fact used: `laplace`, `corrected` (Laplace, importance weighted) or `mcmc`.
    trust_
        Whether to believe it: `verdict`, `reason`, `next_step`, `pareto_k`, `ess_fraction` …
    posterior_
        DataTree with `w` (coefficient), or (class, coefficient) for softmax, and `tau` if the scale is learnt.
    log_evidence_, log_evidence_error_
        log p(y | X) and its standard error; nan under a flat prior, where it has no meaning.
    model_
        The fitted model, plain arrays and functions.
    n_iter_
        Newton steps to the mode, if there was a search.
    n_samples_seen_
        Rows learnt, or the sum of their weights.

    Notes
    -----
    More than two classes are coded symmetrically, all with weights of the same prior. If a scale is infinite that
    leaves a direction which nothing determines, and the last class becomes the reference, with weights zero.
    """

    def __init__(
        self,
        *,
        inference: Inference = "auto",
        prior: Normal | HierarchicalScale | None = None,
        prior_scale: float | str = 2.5,
        intercept_scale: float = 5.0,
        standardize: bool = True,
        features: FeatureSpec = None,
        missing: Literal["error", "drop"] = "error",
        draws: int = 1000,
        chains: int = 4,
        sampler: str = "pymc",
        random_state: Any = 0,
        progress: bool | None = False,
    ) -> None:
        self.inference = inference
        self.prior = prior
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.standardize = standardize
        self.features = features
        self.missing = missing
        self.draws = draws
        self.chains = chains
        self.sampler = sampler
        self.random_state = random_state
        self.progress = progress

    def _present(self, X: Floats, y: Any, sample_weight: Any) -> tuple[Floats, Any, Floats | None]:
        """Return the complete rows of positive weight, or raise if others are not to be dropped."""
        if self.missing not in ("error", "drop"):
            raise DataError(f"`missing` must be 'error' or 'drop'; got {self.missing!r}.")
        X, y, weight = super()._present(X, y, sample_weight)
        if self.missing == "error":
            self._require_complete(
                X,
                "regression needs complete rows. Leave the others out with missing='drop', or use BayesianLDA, "
                "BayesianQDA or BayesianNaiveGaussian, which integrate out what is missing.",
            )
            return X, y, weight
        complete = ~np.isnan(X).any(axis=1)
        if not complete.any():
            raise DataError(
                f"`X` has no complete row among {len(X)}. Fill in values or drop columns, or use BayesianLDA, "
                "BayesianQDA or BayesianNaiveGaussian, which integrate out what is missing."
            )
        return X[complete], y[complete], None if weight is None else weight[complete]

    def _problem(self, rows: Rows) -> tuple[Problem, Any]:
        features = fit_features(rows, self.features, standardize=self.standardize)
        prior = self._stated_prior(features)
        proper = isinstance(prior, HierarchicalScale) or prior.is_proper
        Phi = np.ascontiguousarray(features(rows.X))
        design = Design(rows, features, Phi, reference=rows.K > 2 and not proper)
        if isinstance(prior, HierarchicalScale):
            if not features.intercept:
                raise PriorError(
                    "A hierarchical scale needs a feature map with an intercept. Fit it with intercept=True."
                )
            return HierarchicalProblem(design, prior), prior
        if self.prior is None and self.prior_scale == "empirical-bayes":
            prior = _greatest_evidence(design, prior)
        return WeightsProblem(design, prior), prior

    def _stated_prior(self, features: FeatureMap) -> Normal | HierarchicalScale:
        """Return the prior that the parameters state; for empirical Bayes, where its search begins."""
        if self.prior is not None:
            if not isinstance(self.prior, (Normal, HierarchicalScale)):
                raise PriorError(f"`prior` must be Normal, HierarchicalScale or None; got {self.prior!r}.")
            return self.prior
        if self.prior_scale == "hierarchical":
            return HierarchicalScale(intercept_scale=self.intercept_scale)
        m, scale = len(features.names), self.prior_scale
        if scale == "empirical-bayes":
            if not features.intercept:
                raise PriorError("Empirical Bayes needs a feature map with an intercept. Fit it with intercept=True.")
            scale = 1.0
        if isinstance(scale, str):
            raise PriorError(
                f"`prior_scale` must be a number, 'hierarchical' or 'empirical-bayes'; got {self.prior_scale!r}."
            )
        slopes = _one_number("prior_scale", scale)
        intercept = _one_number("intercept_scale", self.intercept_scale) if features.intercept else slopes
        return Normal(scale=frozen([intercept, *[slopes] * (m - 1)]))


def _greatest_evidence(design: Design, prior: Normal) -> Normal:
    """Return the prior with the slopes' scale that maximises the Laplace evidence."""
    target = design.target(prior)
    scale, _ = empirical_bayes(lambda s: with_prior_scale(target, s), names=design.weight_names())
    return with_prior_scale(target, scale).prior


def _one_number(name: str, value: Any) -> float:
    array: Floats = positive(name, value, infinite=True)
    if array.ndim:
        raise PriorError(f"`{name}` must be one number; got shape {array.shape}. Give Normal(scale=…) as `prior`.")
    return float(array)
