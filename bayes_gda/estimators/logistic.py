"""Logistic and softmax regression as a scikit-learn classifier."""

from dataclasses import replace
from typing import Any

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.columns import Unseen
from bayes_gda.data.features import FeatureSpec
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.estimators.online import Online
from bayes_gda.families.linear.family import Linear
from bayes_gda.methods.settings import TOLERANCE, Inference, Link, Settings
from bayes_gda.missing import COMPLETE, Complete
from bayes_gda.priors import HierarchicalScale, Normal


class BayesianLogisticRegression(Online):
    """Bayesian logistic regression, p(y=1 | x) = σ(wᵀφ(x)), and softmax regression for more than two classes.

    Parameters
    ----------
    inference
        `auto`: Laplace, judged and corrected by a better Gaussian or importance weights where that is enough, else
        MCMC, with a warning. The better Gaussian is that of expectation propagation for two classes, and the
        variational one for more. `laplace`, `ep`, `variational` or `mcmc` ask for one method. There is no exact
        posterior.
    prior
        Normal or HierarchicalScale for the weights on φ, the intercept first; overrides the scales below.
    prior_scale
        Standard deviation of the slopes, on the scale that `standardize` sets; inf is flat, `"hierarchical"` learns one
        scale with the weights, `"empirical-bayes"` takes the one of greatest evidence.
    intercept_scale
        Standard deviation of the intercept; inf is flat.
    standardize
        Whether to centre and scale the columns of φ: one that takes two values, such as a dummy, by their difference,
        so that the prior does not depend on how rare a level is; any other by its standard deviation. A constant one is
        only centred, so that its weight keeps its prior. See `bayes_gda.data.features`.
    features
        The feature map φ: None for the features themselves, a degree (2 adds squares and products), a row-wise
        function, or a fitted FeatureMap, which is used as it is.
    link
        How a Gaussian posterior becomes probabilities: `exact` integrates the link; `probit` is MacKay's approximation
        σ(μ/√(1 + πs²/8)), in its mean-field form for more than two classes. Draws are averaged in any case.
    missing
        What rows with missing values (NaN) do in `fit`: raise ("error"), or stay out, with their labels and weights
        ("drop"). In predictions they are always an error; the Gaussian models take them.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, the
        corrected posterior, intervals, entropies and decisions.
    sampler
        For MCMC: `pymc` (NUTS), `hmc` (split HMC in 16 chains or more, which take `draws` × `chains` draws in all), or
        `nutpie` or `numpyro` if installed. `auto` is `pymc`; where the method is chosen, `hmc`, and `pymc` where that
        does not do.
    random_state
        Seed, a RandomState or None. The default is fixed so that fitting twice gives the same answer; None is new each
        time.
    progress
        Whether MCMC shows a bar; None shows it on a terminal.
    tolerance
        How far a probability may be off, for the verdict and for warnings: by the approximation of the posterior, or by
        two Monte Carlo standard errors where it is a mean over draws.
    formula
        Features as formulaic reads them, such as `y ~ x + C(z)*u`, of the columns of a data frame; None takes all of
        them. Needs `pip install 'bayes-gda[formula]'`.
    unseen
        What a level of a text column does in predictions that `fit` has not seen: raise ("error"), or count as the
        average level of the training rows ("pool").
    class_weight
        Weights of the classes, {label: weight} or "balanced", times `sample_weight`; None is 1 for all. Probabilities
        are then those of a population with these class shares: to change these alone, use `class_prior`.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        Labels (K,), and the columns of X.
    encoding_
        How columns that are not all numbers, or a formula, become features; None if X is used as it is.
    prior_, features_
        The prior and the fitted feature map in fact used.
    inference_
        The method in fact used: `laplace`, `ep` (expectation propagation), `variational` (the Gaussian that maximises
        the evidence bound), `corrected` (Laplace, importance weighted) or `mcmc`.
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

    Examples
    --------
    >>> from bayes_gda import BayesianLogisticRegression, load_example
    >>> data = load_example("pima")
    >>> model = BayesianLogisticRegression().fit(data.X, data.y)
    >>> model.inference_, model.trust_.verdict
    ('laplace', 'trusted')
    >>> model.predict_proba(data.X[:1]).round(2)
    array([[0.93, 0.07]])
    >>> model.decide(data.X[:1], costs=[[0, 5], [1, 0]]).chosen
    array(['0'], dtype='<U1')
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
        link: Link = "exact",
        missing: Complete = "error",
        draws: int = 1000,
        chains: int = 4,
        sampler: str = "auto",
        random_state: Any = 0,
        progress: bool | None = False,
        tolerance: float = TOLERANCE,
        formula: str | None = None,
        unseen: Unseen = "error",
        class_weight: Any = None,
    ) -> None:
        self.inference = inference
        self.prior = prior
        self.prior_scale = prior_scale
        self.intercept_scale = intercept_scale
        self.standardize = standardize
        self.features = features
        self.link = link
        self.missing = missing
        self.draws = draws
        self.chains = chains
        self.sampler = sampler
        self.random_state = random_state
        self.progress = progress
        self.tolerance = tolerance
        self.formula = formula
        self.unseen = unseen
        self.class_weight = class_weight

    def _present(self, X: Floats, y: Any, sample_weight: Any) -> tuple[Floats, Any, Floats | None]:
        """Return the complete rows of positive weight, or raise if others are not to be dropped."""
        if self.missing not in COMPLETE:
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

    def _settings(self, inference: Any, seed: int) -> Settings:
        return replace(super()._settings(inference, seed), link=self.link)

    def _bind(self, data: Dataset) -> Linear:
        return self._family(data.K).bind(
            data,
            self.prior,
            features=self.features,
            standardize=self.standardize,
            prior_scale=self.prior_scale,
            intercept_scale=self.intercept_scale,
        )
