"""The fitted average over the continuum between naive, LDA and QDA.

    p(x, y=k | D) = Σ_c w_c p_c(x, y=k | D),   w_c ∝ evidence of cell c, after its charge

The moments of the rows say all: the grid of models is fitted to them when the classifier is made, in some hundredths of
a second, so that the moments are all that travels or is stored.
"""

from dataclasses import dataclass, field

from bayes_gda.checks import Floats, frozen
from bayes_gda.data.gaps import has_gaps
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.continuum import Continuum, Grid, fit_continuum
from bayes_gda.families.gaussian.gaps.predictive import log_joint_observed
from bayes_gda.families.gaussian.generative import GenerativeClassifier
from bayes_gda.priors import Dirichlet, Seed


@dataclass(frozen=True, slots=True, eq=False)
class AveragedClassifier(GenerativeClassifier):
    """Fitted regularised discriminant analysis: models between naive, LDA and QDA, averaged by their evidence.

    Parameters
    ----------
    moments
        Sufficient statistics of the training rows.
    alpha
        (K,) Dirichlet parameters of the class shares, before the data.
    pooled
        (d, d) covariance within classes that the targets are made of.
    grid
        Which models are averaged.

    Attributes
    ----------
    continuum
        The models with their weights; it follows from the others.
    """

    moments: Moments
    alpha: Floats
    pooled: Floats
    grid: Grid = field(default_factory=Grid)
    continuum: Continuum = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", frozen(self.alpha))
        object.__setattr__(self, "pooled", frozen(self.pooled))
        continuum = fit_continuum(self.moments, Dirichlet(self.alpha), pooled=self.pooled, grid=self.grid)
        object.__setattr__(self, "continuum", continuum)

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y=k | D) (n, K) of rows (n, d), a sum of Student-t densities; NaN is integrated out."""
        if has_gaps(X):
            return self.continuum.average(lambda posterior: log_joint_observed(posterior, X))
        return self.continuum.log_joint(X)

    def draw_variables(self, size: int, *, random_seed: Seed = None) -> dict[str, Floats]:
        """Draw `pi` (size, K), `mu` (size, K, d) and `Sigma` (size, K, d, d), each from a model drawn by its weight."""
        return self.continuum.draw(size, random_seed=random_seed)
