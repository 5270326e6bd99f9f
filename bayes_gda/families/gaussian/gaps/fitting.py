"""The Gaussian families on rows with gaps: the naive one exact, the others drawn by data augmentation.

Values are taken to be missing at random: whether one is missing may depend on the class and on what was observed, but
not on the value itself.
"""

import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bayes_gda.data.gaps import ObservedCounts, PatternMoments, moments_by_feature
from bayes_gda.data.labels import to_datatree
from bayes_gda.data.table import Dataset
from bayes_gda.errors import PriorError
from bayes_gda.families.gaussian.exact import NIGPosterior
from bayes_gda.families.gaussian.gaps.augmentation import draw_posterior
from bayes_gda.families.gaussian.gaps.chib import chib_evidence
from bayes_gda.families.gaussian.gaps.em import naive_posterior_missing
from bayes_gda.methods.settings import Settings
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet

if TYPE_CHECKING:
    import xarray as xr

    from bayes_gda.families.gaussian.classifier import GaussianClassifier
    from bayes_gda.families.gaussian.family import Gaussian

# Sweeps before those that are kept. A chain forgets its start about as fast as EM converges; at .9 a sweep, which takes
# half of the values missing, 200 leave 1e-9 of it.
WARMUP = 200


def check(family: "Gaussian") -> None:
    """Raise unless the prior is conjugate and proper."""
    if not family.proper:
        raise PriorError(
            f"Missing values need a proper `prior`; got {family.conjugate.__name__}.jeffreys. Give another or None."
        )
    if isinstance(family.prior, LKJ):
        raise PriorError(
            f"Missing values need a conjugate `prior`; got LKJ. Give {family.conjugate.__name__} or None, leave out "
            "the incomplete rows, or sample the PyMC model: bayes_gda.sample(bayes_gda.models.….build(data, prior))."
        )


def counts(data: Dataset) -> ObservedCounts:
    """Return how many values of each class and feature were observed."""
    values = [part.count for part in moments_by_feature(data.X, data.y, data.K)]
    return ObservedCounts(np.bincount(data.y, minlength=data.K).astype(np.float64), np.stack(values, axis=1))


def exact(family: "Gaussian") -> NIGPosterior | None:
    """Return the conjugate posterior of the naive model, None for the others."""
    if not isinstance(family.prior, NIG):
        return None
    data = family.data
    return naive_posterior_missing(data.X, data.y, data.K, family.prior, Dirichlet(family.alpha))


def no_exact(family: "Gaussian") -> str:
    """Say which methods there are."""
    if family.covariance == "diagonal":
        return "With missing values the naive model is exact, or sampled. Use inference='auto' or 'mcmc'."
    return (
        "With missing values LDA and QDA have no closed form and no Laplace approximation. Use inference='auto' or "
        "'mcmc', which draw from the posterior, or leave out the incomplete rows."
    )


def augmented(family: "Gaussian", settings: Settings) -> "xr.DataTree":
    """Draw from the posterior of LDA or QDA by data augmentation."""
    started = time.perf_counter()
    rows, prior = _centred(family)
    draws = draw_posterior(
        rows,
        prior,
        Dirichlet(family.alpha),
        shared=family.covariance == "shared",
        draws=settings.draws,
        warmup=WARMUP,
        chains=settings.chains,
        random_seed=settings.random_seed,
    )
    attrs = {
        "method": "mcmc",
        "sampler": "data augmentation",
        "tuning_steps": WARMUP,
        "random_seed": settings.random_seed,
        "draw_time": time.perf_counter() - started,
    }
    draws["mu"] = draws["mu"] + family.prior.m
    flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in draws.items()}
    return to_datatree(flat, family.coords, chains=settings.chains, attrs=attrs)


def evidence(family: "Gaussian", model: "GaussianClassifier", chains: int) -> tuple[float, float]:
    """Return the log evidence by Chib's method from draws of LDA or QDA, and its standard error."""
    assert model.draws is not None
    about = dict(model.draws) | {"mu": model.draws["mu"] - family.prior.m}
    draws = {name: value.reshape(chains, -1, *value.shape[1:]) for name, value in about.items()}
    rows, prior = _centred(family)
    return chib_evidence(rows, prior, Dirichlet(family.alpha), draws)


def _centred(family: "Gaussian") -> tuple[PatternMoments, NIW]:
    """Return rows and prior about the prior's mean: a large offset of a feature would eat the digits of draws."""
    assert isinstance(family.prior, NIW)
    m, data = family.prior.m, family.data
    return PatternMoments.from_arrays(data.X - m, data.y, data.K), replace(family.prior, m=np.zeros_like(m))
