"""Gaussian discriminant analysis as scikit-learn classifiers: LDA, QDA and naive Gaussian."""

from typing import Any

from numpy.typing import ArrayLike

from bayes_gda.checks import Floats
from bayes_gda.data.columns import Unseen
from bayes_gda.estimators.abilities import Projecting
from bayes_gda.estimators.streaming import Streaming
from bayes_gda.families.gaussian.gaps.predictive import worth_measuring
from bayes_gda.methods.settings import TOLERANCE, Inference
from bayes_gda.prediction.novelty import Novelty
from bayes_gda.priors import LKJ, NIG, NIW


class _Gaussian(Streaming):
    """What the three have in common; they differ in their family."""

    def __init__(
        self,
        *,
        inference: Inference = "auto",
        prior: NIW | NIG | LKJ | None = None,
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
        self.draws = draws
        self.chains = chains
        self.sampler = sampler
        self.random_state = random_state
        self.progress = progress
        self.tolerance = tolerance
        self.formula = formula
        self.unseen = unseen
        self.class_weight = class_weight

    def novelty(self, X: Any, false_alarm: float = 0.01) -> Novelty:
        """Say which rows (n, d) are like nothing that the model has seen: far out for every class.

        Where the posterior is exact, the rate of false alarms is that at fixed true parameters, on average over
        training sets of this size, if the classes are Gaussian; see `bayes_gda.families.gaussian.novelty` for what is
        not guaranteed.

        Parameters
        ----------
        X
            Features; NaN is a missing value, which the distance leaves out.
        false_alarm
            Probability, between 0 and 1, that a new row of the classes is called novel.

        Returns
        -------
        `novel` (n,), the tail probabilities behind it in `probability` (n, K) and `largest` (n,), and the `threshold`
        (n,) of each row.
        """
        return self.model_.novelty(
            self._checked(X), false_alarm=false_alarm, default_prior=self.prior is None, random_seed=self.seed_
        )

    def worth_measuring(self, X: Any, costs: ArrayLike | None = None) -> Floats:
        """Return by how much each missing feature, if measured, would lower the expected loss (n, d); nan where known.

        worth_j = min_a E[L(a) | x_o] − E[ min_a E[L(a) | x_o, x_j] | x_o ] ≥ 0, before what the measurement costs.

        Parameters
        ----------
        X
            Features; NaN is a missing value.
        costs
            (A, K) loss of each action under each class, in the order of `classes_`; None counts errors, so that the
            worth is in lower error rate.
        """
        rows = self._checked(X)
        return worth_measuring(self.model_.source, rows, costs)


class BayesianLDA(Projecting, _Gaussian):
    """Bayesian linear discriminant analysis: x | y=k ~ N(μ_k, Σ), one covariance for all classes.

    The class shares π have a uniform Dirichlet prior.

    Parameters
    ----------
    inference
        `auto`: exact where the prior is conjugate, else Laplace, verified and corrected, else MCMC, with a warning.
        `exact`, `laplace` or `mcmc` ask for one method.
    prior
        NIW (conjugate; `NIW.jeffreys(d)` is improper) or LKJ, for the means and covariances. None is `NIW.default`; a
        feature that does not vary within any class then takes its variance over all rows as scale, or 1 if it is
        constant.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, intervals,
        entropies and decisions.
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
    prior_
        The prior in fact used.
    inference_
        The method in fact used: `exact`, `laplace`, `corrected` (Laplace, importance weighted) or `mcmc`.
    trust_
        Whether to believe it: `verdict`, `reason`, `next_step`, `pareto_k`, `ess_fraction` …
    posterior_
        DataTree with `pi`, `mu` and `Sigma` (d, d).
    coef_, intercept_
        Posterior means of the linear discriminants, in the units of the features: (1, d) and (1,) for two classes,
        (K, d) and (K,) for more.
    log_evidence_, log_evidence_error_
        log p(X, y) and its standard error, 0 where it is closed form, nan where it is not known.
    model_
        The fitted model, plain arrays and functions.
    n_iter_
        Newton steps to the mode, if there was a search.

    Notes
    -----
    Missing values (NaN) are integrated out, in predictions exactly. `fit` to rows with gaps draws from the posterior by
    data augmentation (`mcmc`), which needs the conjugate prior. Values are taken to be missing at random.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda import BayesianLDA, load_example
    >>> train, test = load_example("iris").split()
    >>> model = BayesianLDA().fit(train)
    >>> model.inference_, round(float((model.predict(test) == np.array(test.class_names)[test.y]).mean()), 2)
    ('exact', 0.95)
    >>> model.predict_proba(test.subset(range(1))).round(3)
    array([[1., 0., 0.]])
    """

    _name = "lda"


class BayesianQDA(_Gaussian):
    """Bayesian quadratic discriminant analysis: x | y=k ~ N(μ_k, Σ_k), each class with its own covariance.

    The class shares π have a uniform Dirichlet prior.

    Parameters
    ----------
    inference
        `auto`: exact where the prior is conjugate, else Laplace, verified and corrected, else MCMC, with a warning.
        `exact`, `laplace` or `mcmc` ask for one method.
    prior
        NIW (conjugate; `NIW.jeffreys(d)` is improper) or LKJ, for the means and covariances. None is `NIW.default`; a
        feature that does not vary within any class then takes its variance over all rows as scale, or 1 if it is
        constant.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, intervals,
        entropies and decisions.
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
    prior_
        The prior in fact used.
    inference_
        The method in fact used: `exact`, `laplace`, `corrected` (Laplace, importance weighted) or `mcmc`.
    trust_
        Whether to believe it: `verdict`, `reason`, `next_step`, `pareto_k`, `ess_fraction` …
    posterior_
        DataTree with `pi`, `mu` and `Sigma` (K, d, d).
    log_evidence_, log_evidence_error_
        log p(X, y) and its standard error, 0 where it is closed form, nan where it is not known.
    model_
        The fitted model, plain arrays and functions.
    n_iter_
        Newton steps to the mode, if there was a search.

    Notes
    -----
    Missing values (NaN) are integrated out, in predictions exactly. `fit` to rows with gaps draws from the posterior by
    data augmentation (`mcmc`), which needs the conjugate prior. Values are taken to be missing at random.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda import BayesianQDA, load_example
    >>> data = load_example("iris")
    >>> model = BayesianQDA().fit(data.X, data.y)
    >>> model.predict(np.array([[5.0, np.nan, 1.4, np.nan]]))  # what is missing is integrated out
    array([0])
    >>> round(model.log_evidence_, 2)
    -301.37
    """

    _name = "qda"


class BayesianNaiveGaussian(_Gaussian):
    """Bayesian naive Gaussian classifier: x_j | y=k ~ N(μ_kj, σ²_kj), features independent within a class.

    The class shares π have a uniform Dirichlet prior.

    Parameters
    ----------
    inference
        `auto`: exact where the prior is conjugate, else Laplace, verified and corrected, else MCMC, with a warning.
        `exact`, `laplace` or `mcmc` ask for one method.
    prior
        NIG (conjugate; `NIG.jeffreys(d)` is improper) or LKJ (its scales), for the means and variances. None is
        `NIG.default`; a feature that does not vary within any class then takes its variance over all rows as scale, or
        1 if it is constant.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, intervals,
        entropies and decisions.
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
    prior_
        The prior in fact used.
    inference_
        The method in fact used: `exact`, `laplace`, `corrected` (Laplace, importance weighted) or `mcmc`.
    trust_
        Whether to believe it: `verdict`, `reason`, `next_step`, `pareto_k`, `ess_fraction` …
    posterior_
        DataTree with `pi`, `mu` and `sigma2` (K, d).
    log_evidence_, log_evidence_error_
        log p(X, y) and its standard error, 0 where it is closed form, nan where it is not known.
    model_
        The fitted model, plain arrays and functions.
    n_iter_
        Newton steps to the mode, if there was a search.

    Notes
    -----
    Missing values (NaN) are integrated out exactly, in `fit` as in predictions, with the conjugate prior; values are
    taken to be missing at random.

    The 0/1 columns of a category with three levels or more count as independent features, so that the answers depend on
    which level is left out as the reference. LDA, QDA and RDA do not depend on it.

    Examples
    --------
    >>> from bayes_gda import BayesianNaiveGaussian, load_example
    >>> data = load_example("iris")
    >>> model = BayesianNaiveGaussian().fit(data.X, data.y)
    >>> lower, upper = model.predict_interval(data.X[:1])[0, 0]  # of the probability of the first class
    >>> bool(0.99 < lower < upper <= 1)
    True
    """

    _name = "naive"
