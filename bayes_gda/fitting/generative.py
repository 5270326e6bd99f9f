"""The Gaussian models as problems: the steps of each method for LDA, QDA and the naive Gaussian classifier."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.labels import coordinates
from bayes_gda.data.moments import Moments
from bayes_gda.errors import PriorError
from bayes_gda.families.classifier import Covariance, GaussianClassifier
from bayes_gda.families.fused import fused_density
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior, lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.gaussian.generative import joint_per_draw
from bayes_gda.families.gaussian.predictive import log_joint_per_draw, row_blocks
from bayes_gda.fitting.defaults import Rows
from bayes_gda.fitting.trees import add_rows, draws_of, named_tree
from bayes_gda.methods.density import Density, Smoothed
from bayes_gda.methods.importance.trust import Trust, assess
from bayes_gda.methods.ladder import TOLERANCE, Settings
from bayes_gda.methods.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.models.blueprint import GaussianBlueprint
from bayes_gda.priors import LKJ, NIG, NIW, Dirichlet

if TYPE_CHECKING:
    import xarray as xr

# Rows whose probabilities are compared for the verdict. Each costs draws × classes × features², so fewer than for a
# regression; with 500 spread over the data, the largest change is seen for one row in 200 with 92 % probability.
VERDICT_ROWS = 500
# Draws of the Gaussian that stand for it in the comparison: as many as a round of the check has.
GAUSSIAN_DRAWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class GaussianProblem:
    """A Gaussian model with its data and prior.

    Parameters
    ----------
    covariance
        Which covariances the classes have.
    rows, moments
        The training rows and their sufficient statistics.
    prior
        Of means and covariances.
    alpha
        (K,) Dirichlet parameters.
    """

    covariance: Covariance
    rows: Rows
    moments: Moments
    prior: NIW | NIG | LKJ
    alpha: Floats

    def __post_init__(self) -> None:
        if len(self.prior.m) != self.moments.d:
            raise PriorError(
                f"`prior` has {len(self.prior.m)} features, `X` has {self.moments.d}. Give one entry a feature."
            )

    @property
    def proper(self) -> bool:
        """All priors of the Gaussian models can be normalised."""
        return True

    def exact(self) -> tuple[GaussianClassifier, float] | None:
        """Return the conjugate posterior, or None under an LKJ prior."""
        class_prior = Dirichlet(self.alpha)
        posterior: NIWPosterior | NIGPosterior
        if isinstance(self.prior, LKJ):
            return None
        if isinstance(self.prior, NIG):
            posterior = naive_posterior(self.moments, self.prior, class_prior)
        elif self.covariance == "shared":
            posterior = lda_posterior(self.moments, self.prior, class_prior)
        else:
            posterior = qda_posterior(self.moments, self.prior, class_prior)
        return self._model(posterior=posterior), posterior.log_evidence

    def no_exact(self) -> str:
        """Say why there is no closed form."""
        conjugate = "NIG" if self.covariance == "diagonal" else "NIW"
        return f"inference='exact' needs a conjugate prior; got LKJ. Give a {conjugate} prior, or use inference='auto'."

    def laplace(self) -> GaussianPosterior:
        """Return the Gaussian at the mode, in unconstrained coordinates."""
        density = self._density()
        return laplace_approximation(Smoothed(density), density.start)

    def assess(self, posterior: GaussianPosterior, random_seed: int) -> Trust:
        """Weigh the Gaussian, by the probabilities of some training rows."""
        density = self._density()
        target = Smoothed(density)
        chosen = np.linspace(0, len(self.rows.X) - 1, min(VERDICT_ROWS, len(self.rows.X))).round().astype(np.intp)
        return assess(
            target,
            posterior,
            mean=lindley_mean(posterior, target),
            predictor=_Densities(density, self.rows.X[chosen], self.moments.K, random_seed),
            tolerance=TOLERANCE,
            random_seed=random_seed,
        )

    def log_density(self, w: Floats) -> Floats:
        """Return the log posterior (S,) at unconstrained coordinates (S, dim)."""
        return Smoothed(self._density()).log_density(w)

    @property
    def n(self) -> int:
        """The moments of a class count as a row, whatever the rows behind them."""
        return self.moments.K

    def from_gaussian(self, posterior: GaussianPosterior, settings: Settings) -> GaussianClassifier:
        """Return the model with draws of the Gaussian, mapped to means and covariances."""
        return self.from_draws(posterior.draw(settings.size, random_seed=settings.random_seed))

    def from_draws(self, w: Floats) -> GaussianClassifier:
        """Return the model with draws (S, dim) of unconstrained coordinates."""
        return self._model(draws=self._density().variables(w))

    def sample(self, settings: Settings) -> tuple[GaussianClassifier, "xr.DataTree"]:
        """Sample the PyMC model."""
        from bayes_gda.methods.nuts.sampling import LIKELIHOOD_LIMIT, sample
        from bayes_gda.models import lda, naive, qda

        build: Any = {"shared": lda.build, "own": qda.build, "diagonal": naive.build}[self.covariance]
        tree = sample(
            build(self.moments, self.prior, Dirichlet(self.alpha)),
            draws=settings.draws,
            chains=settings.chains,
            sampler=settings.sampler,
            random_seed=settings.random_seed,
            progress=settings.progress,
        )
        spread = "sigma2" if self.covariance == "diagonal" else "Sigma"
        coords = coordinates(class_names=self.rows.classes.tolist(), feature_names=self.rows.names)
        tree = named_tree(tree, ("pi", "mu", spread), coords)
        draws, rows = draws_of(tree), self.rows.original or self.rows
        fits = len(draws["pi"]) * len(rows.X) <= LIKELIHOOD_LIMIT
        add_rows(tree, rows, {"log_likelihood": log_likelihood(draws, rows)} if fits else {})
        return self._model(draws=draws), tree

    def sampled_evidence(self, model: object, chains: int) -> tuple[float, float]:
        """Return the closed form where there is one; draws of an LKJ posterior are not taken back to coordinates."""
        exact = self.exact()
        return (np.nan, np.nan) if exact is None else (exact[1], 0.0)

    def _density(self) -> Density:
        return fused_density(GaussianBlueprint(self.moments, self.prior, self.alpha, self.covariance))

    def _model(
        self,
        posterior: NIWPosterior | NIGPosterior | None = None,
        draws: dict[str, Floats] | None = None,
    ) -> GaussianClassifier:
        return GaussianClassifier(self.covariance, self.moments, self.prior, self.alpha, posterior, draws)


@dataclass(frozen=True, slots=True, eq=False)
class _Densities:
    """A `Predictor` of `inference.trust`: the generative predictive of rows X from draws of coordinates."""

    density: Density
    X: Floats
    K: int
    random_seed: int

    def fast(self, posterior: GaussianPosterior) -> Floats:
        """Return the probabilities that the user gets: those of draws of the Gaussian."""
        w = posterior.draw(GAUSSIAN_DRAWS, random_seed=self.random_seed)
        return self.averaged(w, np.full(len(w), 1 / len(w)))[0]

    def reference(self, posterior: GaussianPosterior) -> Floats:
        """Return the same: there is no link to approximate."""
        return self.fast(posterior)

    def averaged(self, draws: Floats, weight: Floats) -> tuple[Floats, Floats]:
        """Return p_k = Σ_s w_s f_sk/F, f_sk = p(x, k | θ_s), F = Σ_sk w_s f_sk, and √Σ_s w_s²(f_sk − p_k f_s)²/F."""
        n, K = len(self.X), self.K
        # Sums over s of w f_sk, of w² f_sk², w² f_sk f_s and w² f_s², with f relative to the first draws' largest.
        sums, squares, cross, whole = np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, K)), np.zeros((n, 1))
        top = None
        for part in row_blocks(len(draws), n * K):
            log_f = log_joint_per_draw(self.density.variables(draws[part]), self.X)
            top = log_f.max(axis=(0, 2), keepdims=True) if top is None else top
            # e^500 is still a number; a row for which the first block is so far off has no usable weights at all.
            f = weight[part, None, None] * np.exp(np.minimum(log_f - top, 500.0))
            f_all = f.sum(axis=2, keepdims=True)
            sums += f.sum(axis=0)
            squares += (f * f).sum(axis=0)
            cross += (f * f_all).sum(axis=0)
            whole += (f_all * f_all).sum(axis=0)
        total = sums.sum(axis=1, keepdims=True)
        p = sums / total
        variance = squares - 2 * p * cross + p**2 * whole
        return p, np.sqrt(np.maximum(variance, 0.0)) / total


def log_likelihood(draws: dict[str, Floats], rows: Rows) -> Floats:
    """Return log p(x_i, y_i | θ_s) (S, n) of what each row has, times the row's weight."""
    out = np.empty((len(draws["pi"]), len(rows.X)))
    for part in row_blocks(len(rows.X), draws["pi"].size):
        log_joint = joint_per_draw(draws, rows.X[part])
        out[:, part] = np.take_along_axis(log_joint, rows.codes[None, part, None], axis=2)[..., 0]
    return out if rows.weight is None else out * rows.weight
