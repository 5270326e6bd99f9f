"""Gaussian discriminant analysis as scikit-learn classifiers: LDA, QDA and naive Gaussian."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from bayes_gda.checks import Floats
from bayes_gda.data.moments import Moments
from bayes_gda.errors import DataError
from bayes_gda.estimators.streaming import Streaming
from bayes_gda.fitting.choice import Inference, Problem
from bayes_gda.fitting.defaults import Rows
from bayes_gda.fitting.generative import GaussianProblem
from bayes_gda.inference.priors import LKJ, NIG, NIW, Dirichlet


class _Gaussian(Streaming):
    """What the three have in common; they differ in `_covariance` and the conjugate family of their prior."""

    def __init__(
        self,
        *,
        inference: Inference = "auto",
        prior: NIW | NIG | LKJ | None = None,
        draws: int = 1000,
        chains: int = 4,
        sampler: str = "pymc",
        random_state: Any = 0,
        progress: bool | None = False,
    ) -> None:
        self.inference = inference
        self.prior = prior
        self.draws = draws
        self.chains = chains
        self.sampler = sampler
        self.random_state = random_state
        self.progress = progress

    def _problem(self, rows: Rows) -> tuple[Problem, Any]:
        moments = Moments.from_arrays(rows.X, rows.codes, rows.K, sample_weight=rows.weight)
        prior = self._prior_for(moments)
        return GaussianProblem(self._covariance, rows, moments, prior, Dirichlet().vector(rows.K)), prior

    def sample(self, n: int = 1, random_state: Any = None) -> tuple[Floats, NDArray[Any]]:
        """Draw new rows (n, d) with their labels (n,) from the posterior predictive.

        Parameters
        ----------
        n
            Number of rows, each with parameters of its own from the posterior.
        random_state
            Seed; None gives the same rows each time, as long as the model is not fitted again.
        """
        check_is_fitted(self, "model_")
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise DataError(f"`n` must be a whole number of at least 1; got {n!r}.")
        seed = self.seed_ if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))
        X, codes = self.model_.sample(int(n), random_seed=seed)
        labels: NDArray[Any] = self.classes_[codes]
        return X, labels


class BayesianLDA(_Gaussian):
    """Bayesian linear discriminant analysis: x | y=k ~ N(μ_k, Σ), one covariance for all classes.

    The class shares π have a uniform Dirichlet prior.

    Parameters
    ----------
    inference
        `auto`: exact where the prior is conjugate, else Laplace, verified and corrected, else MCMC, with a warning.
        `exact`, `laplace` or `mcmc` ask for one method.
    prior
        NIW (conjugate) or LKJ, for the means and covariances. None is weakly informative on the scale of the data; a
        feature that does not vary within any class then takes its variance over all rows as scale, or 1 if it is
        constant.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, intervals,
        entropies and decisions.
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
    prior_
        The prior in fact used.
    inference_
        The method in fact used: `exact`, `laplace`, `corrected` (Laplace, importance weighted) or `mcmc`.
    trust_
        Whether to believe it: `verdict`, `reason`, `next_step`, `pareto_k`, `ess_fraction` …
    posterior_
        DataTree with `pi`, `mu` and `Sigma` (d, d).
    log_evidence_, log_evidence_error_
        log p(X, y) and its standard error, 0 where it is closed form, nan where it is not known.
    model_
        The fitted model, plain arrays and functions.
    n_iter_
        Newton steps to the mode, if there was a search.
    """

    _covariance = "shared"


class BayesianQDA(_Gaussian):
    """Bayesian quadratic discriminant analysis: x | y=k ~ N(μ_k, Σ_k), each class with its own covariance.

    The class shares π have a uniform Dirichlet prior.

    Parameters
    ----------
    inference
        `auto`: exact where the prior is conjugate, else Laplace, verified and corrected, else MCMC, with a warning.
        `exact`, `laplace` or `mcmc` ask for one method.
    prior
        NIW (conjugate) or LKJ, for the means and covariances. None is weakly informative on the scale of the data; a
        feature that does not vary within any class then takes its variance over all rows as scale, or 1 if it is
        constant.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, intervals,
        entropies and decisions.
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
    """

    _covariance = "own"


class BayesianNaiveGaussian(_Gaussian):
    """Bayesian naive Gaussian classifier: x_j | y=k ~ N(μ_kj, σ²_kj), features independent within a class.

    The class shares π have a uniform Dirichlet prior.

    Parameters
    ----------
    inference
        `auto`: exact where the prior is conjugate, else Laplace, verified and corrected, else MCMC, with a warning.
        `exact`, `laplace` or `mcmc` ask for one method.
    prior
        NIG (conjugate) or LKJ (its scales), for the means and variances. None is weakly informative on the scale of the
        data; a feature that does not vary within any class then takes its variance over all rows as scale, or 1 if it
        is constant.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once, for `posterior_`, intervals,
        entropies and decisions.
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
    """

    _covariance = "diagonal"
    _conjugate = NIG
