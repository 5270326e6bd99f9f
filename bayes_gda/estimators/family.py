"""Any registered family as a scikit-learn classifier: what a new family gets without a class of its own."""

from typing import Any, ClassVar

from numpy.typing import NDArray

from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.families.base import Family
from bayes_gda.families.drawn import DrawnModel
from bayes_gda.families.registry import get_family
from bayes_gda.methods.ladder import Fit
from bayes_gda.methods.settings import TOLERANCE, Inference


class FamilyClassifier(BayesianClassifier):
    """A classifier of any family in the registry, with its default prior.

    Parameters
    ----------
    family
        Name of the family, such as one that `bayes_gda.families.registry.register` added.
    inference
        `auto`: exact where there is a closed form, else Laplace, verified and corrected, else MCMC, with a warning.
        `exact`, `laplace` or `mcmc` ask for one method.
    draws, chains
        Draws of each chain, and their number. What is not sampled draws as many at once.
    sampler
        `pymc`, or `nutpie` or `numpyro` if installed; for MCMC only.
    random_state
        Seed, a RandomState or None. The default is fixed so that fitting twice gives the same answer.
    progress
        Whether MCMC shows a bar; None shows it on a terminal.
    tolerance
        How far a probability may be off, for the verdict and for warnings: by the approximation of the posterior, or by
        two Monte Carlo standard errors where it is a mean over draws.

    Attributes
    ----------
    classes_, n_features_in_, feature_names_in_
        Labels (K,), and the features.
    inference_, trust_
        The method in fact used, and whether to believe it.
    posterior_
        DataTree with the parameters of the family.
    log_evidence_, log_evidence_error_
        log evidence and its standard error, nan where it is not known.
    model_
        The fitted model, plain arrays and functions.
    n_samples_seen_
        Rows learnt, or the sum of their weights.
    """

    _stored: ClassVar[dict[str, Any]] = {"model_": DrawnModel}

    def __init__(
        self,
        family: str = "lda",
        *,
        inference: Inference = "auto",
        draws: int = 1000,
        chains: int = 4,
        sampler: str = "pymc",
        random_state: Any = 0,
        progress: bool | None = False,
        tolerance: float = TOLERANCE,
    ) -> None:
        self.family = family
        self.inference = inference
        self.draws = draws
        self.chains = chains
        self.sampler = sampler
        self.random_state = random_state
        self.progress = progress
        self.tolerance = tolerance

    def _family(self, K: int) -> type[Family]:
        return get_family(self.family)

    def _keep(self, fitted: Fit, classes: NDArray[Any], seed: int) -> None:
        super()._keep(fitted, classes, seed)
        self.n_samples_seen_ = fitted.family.data.total_weight
