"""Fitted models to ask questions of: the three Gaussian ones of iris, and regressions with made-up posteriors."""

import numpy as np

from bayes_gda.data.examples import load_example
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.classifier import GaussianClassifier
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.linear.classifier import RegressionClassifier
from bayes_gda.methods.laplace import GaussianPosterior, NewtonInfo
from bayes_gda.priors import NIG, NIW

IRIS = load_example("iris")
MOMENTS = Moments.from_arrays(IRIS.X, IRIS.y, 3)
MAKERS = {"shared": (lda_posterior, NIW), "own": (qda_posterior, NIW), "diagonal": (naive_posterior, NIG)}


def generative(covariance, *, size=None, seed=0, moments=MOMENTS):
    make, family = MAKERS[covariance]
    prior, alpha = family.default(moments), np.ones(moments.K)
    posterior = make(moments, prior)
    if size is None:
        return GaussianClassifier(covariance, moments, prior, alpha, posterior=posterior)
    draws = posterior.draw(size, random_seed=seed)
    return GaussianClassifier(covariance, moments, prior, alpha, draws=draws)


def regression(K, *, reference=False, size=None, seed=0):
    rng = np.random.default_rng(seed)
    phi = FeatureMap.fit(IRIS.X, IRIS.feature_names)
    m, binary = len(phi.names), K == 2
    dim = m if binary else m * (K - reference)
    A = rng.normal(size=(dim, dim))
    L = np.linalg.cholesky(A @ A.T / dim + np.eye(dim))
    posterior = GaussianPosterior(2 * rng.normal(size=dim), L, 0.0, NewtonInfo(True, 1, 0.0))
    source = {"posterior": posterior} if size is None else {"draws": posterior.draw(size, random_seed=seed)}
    return RegressionClassifier(phi, K, binary, reference, np.full(K, 1 / K), **source)
