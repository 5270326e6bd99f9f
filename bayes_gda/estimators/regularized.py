"""Regularised discriminant analysis as a scikit-learn classifier: the average between naive, LDA and QDA."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from bayes_gda.data.moments import Moments
from bayes_gda.estimators.streaming import Generative
from bayes_gda.families.gaussian.averaged import AveragedClassifier
from bayes_gda.families.gaussian.continuum import Continuum, Grid
from bayes_gda.fitting.defaults import Rows, pooled_covariance
from bayes_gda.methods.ladder import Fit, Inference, Verdict
from bayes_gda.priors import Dirichlet

_TRUST = Verdict(
    "exact",
    "The average over the grid of models is exact; what their covariances are drawn towards is estimated from the same "
    "rows (empirical Bayes), and charged to their evidence.",
    "Use it.",
    ess_fraction=1.0,
)


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

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        Labels (K,), and the features.
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
    """

    model_: AveragedClassifier
    prior_: Grid
    # What other estimators choose is fixed here.
    inference: Inference = "exact"
    sampler: str = "pymc"
    progress: bool | None = False

    def __init__(self, *, draws: int = 1000, chains: int = 4, random_state: Any = 0) -> None:
        self.draws = draws
        self.chains = chains
        self.random_state = random_state

    def _fit_rows(self, rows: Rows) -> None:
        self._require_complete(
            rows.X, "the moments of rows with gaps do not add up. Drop those rows, or use BayesianQDA."
        )
        self._hold(Moments.from_arrays(rows.X, rows.codes, rows.K, sample_weight=rows.weight), rows, anew=True)

    @property
    def continuum_(self) -> Continuum:
        """The models between naive, LDA and QDA with their weights."""
        check_is_fitted(self, "model_")
        return self.model_.continuum

    def _hold(self, moments: Moments, rows: Rows | None = None, *, anew: bool = False) -> None:
        anew = anew or not hasattr(self, "model_")
        rows = self._no_rows(moments.d) if rows is None else rows
        grid = Grid() if anew else self.prior_
        seed = self._new_seed() if anew else self.seed_
        self._settings(self.inference, seed)  # checks draws and chains
        model = AveragedClassifier(moments, Dirichlet().vector(moments.K), pooled_covariance(moments), grid)
        self.classes_, self.prior_, self.seed_ = rows.classes, grid, seed
        self._keep(Fit(model, "exact", _TRUST, model.continuum.log_mean_evidence, np.nan), rows)
