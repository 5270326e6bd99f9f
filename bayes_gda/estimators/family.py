"""Any registered family as a scikit-learn classifier: what a new family gets without a class of its own.

`FamilyClassifier(name)` takes any family with its default prior. A family that names an estimator of its own, such as
`BayesianStudent`, gets it from `make_class`: the parameters of `bind` become those of the estimator.
"""

import inspect
import re
from textwrap import fill, indent
from typing import Any, ClassVar, Self, get_type_hints

from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.data.columns import Unseen
from bayes_gda.data.large.batches import Source
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.estimators.abilities import Generating
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.families.base import Family
from bayes_gda.families.drawn import DrawnModel
from bayes_gda.families.registry import get_family
from bayes_gda.methods.ladder import Fit
from bayes_gda.methods.settings import TOLERANCE, Inference


class FamilyClassifier(Generating, BayesianClassifier):
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
        For MCMC: `pymc` (NUTS), `hmc` (split HMC in 16 chains or more, which take `draws` × `chains` draws in all), or
        `nutpie` or `numpyro` if installed. `auto` is `pymc`; where the method is chosen, `hmc`, and `pymc` where that
        does not do.
    random_state
        Seed, a RandomState or None. The default is fixed so that fitting twice gives the same answer.
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

    Examples
    --------
    >>> from bayes_gda import FamilyClassifier, load_example
    >>> FamilyClassifier("qda").fit(load_example("iris")).inference_
    'exact'
    """

    _stored: ClassVar[dict[str, Any]] = {"model_": DrawnModel}

    def __init__(
        self,
        family: str = "lda",
        *,
        inference: Inference = "auto",
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
        self.family = family
        self.inference = inference
        self.draws = draws
        self.chains = chains
        self.sampler = sampler
        self.random_state = random_state
        self.progress = progress
        self.tolerance = tolerance
        self.formula = formula
        self.unseen = unseen
        self.class_weight = class_weight

    def _family(self, K: int) -> type[Family]:
        return get_family(self.family)

    def fit_batches(self, batches: Source) -> Self:
        """Raise: these families need their rows in memory."""
        raise DataError(
            f"{get_family(self.family).title} needs its rows in memory; got a table. Read it with "
            "bayes_gda.read_table, or a random part of it if it is too large."
        )

    def _present(self, X: Floats, y: Any, sample_weight: Any) -> tuple[Floats, Any, Floats | None]:
        """Return the rows of positive weight, or raise if the family does not take their gaps."""
        if not self._takes_gaps:
            self._require_complete(
                X,
                f"{get_family(self.family).title} needs complete rows. Leave the others out, or use BayesianLDA, "
                "BayesianQDA or BayesianNaiveGaussian, which integrate out what is missing.",
            )
        return super()._present(X, y, sample_weight)

    def _keep(self, fitted: Fit, classes: NDArray[Any], seed: int) -> None:
        super()._keep(fitted, classes, seed)
        self.n_samples_seen_ = fitted.family.data.total_weight


# One class for each family, so that pickles and clones know theirs again.
_made: dict[type[Family], type[FamilyClassifier]] = {}


def make_class(family: type[Family]) -> type[FamilyClassifier]:
    """Return the estimator of a family: `FamilyClassifier` with the parameters of the family's `bind`.

    Parameters
    ----------
    family
        A family of the registry that names an estimator. The parameters of its `bind` after the data, with their
        annotations and defaults, are parameters of the estimator; `options` says what each of them is.
    """
    if family in _made:
        return _made[family]
    _, *own = inspect.signature(family.bind).parameters.values()
    of_all = inspect.signature(FamilyClassifier.__init__).parameters
    common = [parameter for name, parameter in of_all.items() if name not in ("self", "family")]
    keywords = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *common)]
    signature = inspect.Signature([of_all["self"], *keywords])

    def __init__(self: Any, **params: Any) -> None:
        bound = signature.bind(self, **params)
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            if name != "self":
                setattr(self, name, value)

    def _bind(self: Any, data: Dataset) -> Family:
        return self._family(data.K).bind(data, **{parameter.name: getattr(self, parameter.name) for parameter in own})

    hints = get_type_hints(family.bind) | get_type_hints(FamilyClassifier.__init__)
    __init__.__signature__ = signature  # type: ignore[attr-defined]  # what scikit-learn reads the parameters from
    __init__.__annotations__ = {parameter.name: hints[parameter.name] for parameter in keywords}
    namespace = {
        "__init__": __init__,
        "_bind": _bind,
        "__doc__": _describe(family),
        "__module__": "bayes_gda.estimators",
        "family": family.name,
    }
    _made[family] = type(family.estimator, (FamilyClassifier,), namespace)
    return _made[family]


def _describe(family: type[Family]) -> str:
    """Return the docstring: what the model is, its own parameters, then those of all families."""
    of_all = inspect.getdoc(FamilyClassifier) or ""
    options = "\n".join(f"{name}\n{indent(fill(text, 112), '    ')}" for name, text in family.options.items())
    _, rest = re.split(r"^family\n(?:    .*\n)+", of_all, flags=re.MULTILINE)
    formula = "\n".join(f"    {line}" for line in family.formula)
    return f"{family.title}. {family.sentence}\n\n{formula}\n\nParameters\n----------\n{options}\n{rest}"
