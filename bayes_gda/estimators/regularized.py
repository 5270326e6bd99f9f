"""Regularised discriminant analysis as a scikit-learn classifier: the average between naive, LDA and QDA."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from bayes_gda.checks import Floats
from bayes_gda.data.columns import Unseen
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.estimators.streaming import Generative
from bayes_gda.families.base import Family
from bayes_gda.families.gaussian.classifier import AveragedClassifier
from bayes_gda.families.gaussian.continuum import Continuum, Grid
from bayes_gda.families.gaussian.family import RDA
from bayes_gda.methods.settings import TOLERANCE, Inference


class BayesianRDA(Generative):
    """Bayesian regularised discriminant analysis: x | y=k ~ N(μ_k, Σ_k), with Σ_k drawn towards what classes share.

        Σ_k ~ IW(w T, w + d + 1),   E[Σ_k] = T = (1 − δ) S + δ diag(S)

    S is the pooled covariance within classes. w = 1 is QDA, w → ∞ is LDA; δ takes the pooled correlations away, and the
    naive model stands beside as one without any. All models of a grid of w and δ are averaged, weighted by their
    evidence: there is nothing to tune. The class shares π have a uniform Dirichlet prior.

    The evidence is that of features and classes together. Where the features are far from Gaussian, the models that
    describe them best need not be those that tell the classes best; `compare_models` says whether another does.

    All follows from the moments of the rows, S too. So `partial_fit`, `fit_batches`, `merge` and `unlearn` give what
    `fit` to all those rows would give; no prior is kept from a first batch, which must have more rows than classes.

    Parameters
    ----------
    draws, chains
        Draws for `posterior_`, intervals, entropies and decisions are draws × chains, independent; `posterior_` has
        them in so many chains.
    random_state
        Seed, a RandomState or None. The default is fixed so that fitting twice gives the same answer; None is new each
        time.
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
    continuum_
        The models with their weights: `toward_lda`, `toward_naive` and `sentence` say where the data sit.
    prior_
        The grid of models, all alike before the data.
    inference_
        `exact`.
    trust_
        What is exact, and what is estimated: `verdict`, `reason`, `next_step`.
    posterior_
        DataTree with `pi`, `mu` and `Sigma` (K, d, d); each draw is from a model drawn by its weight, and the
        covariances of a naive one are diagonal.
    log_evidence_, log_evidence_error_
        log of the mean evidence over the grid, after the charge for the estimated S. The charge is by Laplace's method,
        whose error is not known: nan.
    model_
        The fitted model, plain arrays and functions.

    References
    ----------
    Friedman (1989), Regularized discriminant analysis, JASA 84.

    Examples
    --------
    >>> from bayes_gda import BayesianRDA, load_example
    >>> print(BayesianRDA().fit(load_example("iris")).continuum_.sentence.split(": ")[1])
    a covariance for each class.
    """

    model_: AveragedClassifier
    prior_: Grid
    # What other estimators choose is fixed here.
    inference: Inference = "exact"
    sampler: str = "auto"
    progress: bool | None = False
    tolerance: float = TOLERANCE
    _stored: ClassVar[dict[str, Any]] = {"model_": AveragedClassifier}

    def __init__(
        self,
        *,
        draws: int = 1000,
        chains: int = 4,
        random_state: Any = 0,
        formula: str | None = None,
        unseen: Unseen = "error",
        class_weight: Any = None,
    ) -> None:
        self.draws = draws
        self.chains = chains
        self.random_state = random_state
        self.formula = formula
        self.unseen = unseen
        self.class_weight = class_weight

    def _family(self, K: int) -> type[Family]:
        return RDA

    def _fit_rows(self, data: Dataset, classes: NDArray[Any]) -> None:
        self._require_complete(
            data.X, "the moments of rows with gaps do not add up. Drop those rows, or use BayesianQDA."
        )
        moments = Moments.from_arrays(data.X, data.y, data.K, sample_weight=data.weight)
        self._hold(moments, data, classes, anew=True)

    def _of_moments(self, moments: Moments, rows: Dataset, *, anew: bool) -> Family:
        return RDA(rows, Grid() if anew else self.prior_, moments=moments)

    def _squares(self, moments: Moments) -> Floats:
        return np.diagonal(moments.scatter.sum(axis=0))[None]

    @property
    def continuum_(self) -> Continuum:
        """The models between naive, LDA and QDA with their weights."""
        check_is_fitted(self, "model_")
        return self.model_.continuum
