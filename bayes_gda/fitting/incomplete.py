"""The Gaussian models on rows with gaps as problems: the naive one exact, the others drawn by data augmentation.

Values are taken to be missing at random: whether one is missing may depend on the class and on what was observed, but
not on the value itself.
"""

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.gaps import ObservedCounts, PatternMoments, moments_by_feature
from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError, PriorError
from bayes_gda.families.classifier import Covariance, GaussianClassifier
from bayes_gda.families.gaussian.gaps.augmentation import draw_posterior
from bayes_gda.families.gaussian.gaps.chib import chib_evidence
from bayes_gda.families.gaussian.gaps.em import naive_posterior_missing
from bayes_gda.fitting.defaults import Rows, default_prior
from bayes_gda.fitting.generative import log_likelihood
from bayes_gda.fitting.trees import add_rows, draws_of, named_tree
from bayes_gda.methods.ladder import Settings
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet
from bayes_gda.priors.defaults import as_niw, side_by_side

if TYPE_CHECKING:
    import xarray as xr

    from bayes_gda.families.gaussian.exact import NIGPosterior

# Sweeps before those that are kept. A chain forgets its start about as fast as EM converges; at .9 a sweep, which takes
# half of the values missing, 200 leave 1e-9 of it.
WARMUP = 200
# The log likelihood of each draw and row is kept up to so many numbers (160 MB), as in `inference.mcmc`.
LIKELIHOOD_LIMIT = 20_000_000


@dataclass(frozen=True, slots=True, eq=False)
class IncompleteProblem:
    """A Gaussian model with a conjugate prior, and rows of which some values are missing (NaN).

    Parameters
    ----------
    covariance
        Which covariances the classes have.
    rows
        The training rows, all of weight 1.
    prior
        NIG for the naive model, else NIW.
    alpha
        (K,) Dirichlet parameters.
    """

    covariance: Covariance
    rows: Rows
    prior: NIW | NIG | LKJ
    alpha: Floats

    def __post_init__(self) -> None:
        if isinstance(self.prior, LKJ):
            conjugate = "NIG" if self.covariance == "diagonal" else "NIW"
            raise PriorError(
                f"Missing values need a conjugate `prior`; got LKJ. Give {conjugate} or None, leave out the incomplete "
                "rows, or sample the PyMC model: bayes_gda.sample(bayes_gda.models.….build(data, prior))."
            )
        d = self.rows.X.shape[1]
        if len(self.prior.m) != d:
            raise PriorError(f"`prior` has {len(self.prior.m)} features, `X` has {d}. Give one entry a feature.")

    @property
    def proper(self) -> bool:
        """All priors of the Gaussian models can be normalised."""
        return True

    def exact(self) -> tuple[GaussianClassifier, float] | None:
        """Return the conjugate posterior of the naive model, None for the others."""
        if not isinstance(self.prior, NIG):
            return None
        rows = self.rows
        posterior = naive_posterior_missing(rows.X, rows.codes, rows.K, self.prior, Dirichlet(self.alpha))
        return self._model(posterior=posterior), posterior.log_evidence

    def no_exact(self) -> str:
        """Say which methods there are."""
        if self.covariance == "diagonal":
            return "With missing values the naive model is exact, or sampled. Use inference='auto' or 'mcmc'."
        return (
            "With missing values LDA and QDA have no closed form and no Laplace approximation. Use inference='auto' or "
            "'mcmc', which draw from the posterior, or leave out the incomplete rows."
        )

    def sample(self, settings: Settings) -> tuple[GaussianClassifier, "xr.DataTree"]:
        """Draw by data augmentation; the naive model, which has no need of it, by NUTS."""
        tree = self._augmented(settings) if isinstance(self.prior, NIW) else self._by_nuts(settings)
        draws, rows = draws_of(tree), self.rows
        fits = len(draws["pi"]) * len(rows.X) <= LIKELIHOOD_LIMIT
        add_rows(tree, rows, {"log_likelihood": log_likelihood(draws, rows)} if fits else {})
        return self._model(draws=draws), tree

    def sampled_evidence(self, model: object, chains: int) -> tuple[float, float]:
        """Return the closed form of the naive model, for the others what their draws say by Chib's method."""
        exact = self.exact()
        if exact is not None:
            return exact[1], 0.0
        assert isinstance(self.prior, NIW)
        assert isinstance(model, GaussianClassifier)
        assert model.draws is not None
        about = dict(model.draws) | {"mu": model.draws["mu"] - self.prior.m}
        draws = {name: value.reshape(chains, -1, *value.shape[1:]) for name, value in about.items()}
        rows, prior = self._centred()
        return chib_evidence(rows, prior, Dirichlet(self.alpha), draws)

    def _centred(self) -> tuple[PatternMoments, NIW]:
        """Return rows and prior about the prior's mean: a large offset of a feature would eat the digits of draws."""
        assert isinstance(self.prior, NIW)
        m, rows = self.prior.m, self.rows
        return PatternMoments.from_arrays(rows.X - m, rows.codes, rows.K), replace(self.prior, m=np.zeros_like(m))

    def _augmented(self, settings: Settings) -> "xr.DataTree":
        started = time.perf_counter()
        rows, prior = self._centred()
        draws = draw_posterior(
            rows,
            prior,
            Dirichlet(self.alpha),
            shared=self.covariance == "shared",
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
        draws["mu"] = draws["mu"] + self.prior.m
        flat = {name: value.reshape(-1, *value.shape[2:]) for name, value in draws.items()}
        return to_datatree(flat, self._coords(), chains=settings.chains, attrs=attrs)

    def _by_nuts(self, settings: Settings) -> "xr.DataTree":
        from bayes_gda.methods.nuts.sampling import sample
        from bayes_gda.models import naive

        rows = self.rows
        assert isinstance(self.prior, NIG)
        # Labels of any kind become numbers here, and their own names again below.
        data = Dataset(rows.X, rows.codes, rows.names, tuple(range(rows.K)))
        tree = sample(
            naive.build(data, self.prior, Dirichlet(self.alpha)),
            draws=settings.draws,
            chains=settings.chains,
            sampler=settings.sampler,
            random_seed=settings.random_seed,
            progress=settings.progress,
        )
        return named_tree(tree, ("pi", "mu", "sigma2"), self._coords())

    def _coords(self) -> dict[str, list[str]]:
        return coordinates(class_names=self.rows.classes.tolist(), feature_names=self.rows.names)

    def _model(
        self, posterior: "NIGPosterior | None" = None, draws: dict[str, Floats] | None = None
    ) -> GaussianClassifier:
        rows = self.rows
        values = [part.count for part in moments_by_feature(rows.X, rows.codes, rows.K)]
        count = np.bincount(rows.codes, minlength=rows.K).astype(np.float64)
        counts = ObservedCounts(count, np.stack(values, axis=1))
        return GaussianClassifier(self.covariance, counts, self.prior, self.alpha, posterior, draws)


def default_incomplete_prior(rows: Rows, family: type[NIW] | type[NIG]) -> NIW | NIG:
    """Return the default prior of the family, on the scale of the values at hand; see `defaults`."""
    parts = moments_by_feature(rows.X, rows.codes, rows.K)
    for name, part in zip(rows.names, parts, strict=True):
        if not part.n:
            raise DataError(f"Feature {name!r} has no values: all are missing. Drop it, or give `prior`.")
    each = side_by_side([_of_one(part) for part in parts])
    return each if family is NIG else as_niw(each)


def _of_one(moments: Moments) -> NIG:
    prior = default_prior(moments, NIG)
    assert isinstance(prior, NIG)
    return prior
