"""Fitting a model by its name, and what is known of a fitted one."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bayes_gda.checks import inside_unit
from bayes_gda.cli.inputs import labels_of
from bayes_gda.cli.outputs import number, sampler_bars, show, show_facts, show_table, show_verdict
from bayes_gda.cli.shell import check_interrupted, in_options
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.estimators import estimator_of
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.families.gaussian.continuum import Continuum
from bayes_gda.families.registry import family_names, get_family
from bayes_gda.methods.settings import TOLERANCE
from bayes_gda.methods.verdict import BETTER, Verdict

if TYPE_CHECKING:
    from bayes_gda.methods.diagnostics import Diagnosis


@dataclass(frozen=True, slots=True)
class FitOptions:
    """How to fit: the method, its draws, and for regressions the prior scale and the degree of the features.

    Parameters
    ----------
    inference, sampler
        As the estimators have them.
    draws, chains, seed
        Draws of each chain, number of chains, seed of all draws.
    prior_scale, degree, link
        Of regressions only; None for the defaults.
    tolerance
        How far a probability may be off.
    own
        Parameters of the model's own as text, such as `covariances=diagonal` of mixture.
    """

    inference: str = "auto"
    sampler: str = "auto"
    draws: int = 1000
    chains: int = 4
    seed: int = 0
    prior_scale: str | None = None
    degree: int | None = None
    tolerance: float = TOLERANCE
    link: str | None = None
    own: Sequence[str] | None = None

    def __post_init__(self) -> None:
        inside_unit("--tolerance", self.tolerance, hint=" Use 0.01 for probabilities within one percentage point.")


def make_estimator(name: str, K: int, fit_options: FitOptions) -> BayesianClassifier:
    """Return the estimator of a model, not fitted yet.

    Parameters
    ----------
    name, fit_options
        As in `fit_model`.
    K
        Number of classes.
    """
    family = get_family(name)
    family.check(K)
    options: dict[str, Any] = (
        {} if fit_options.prior_scale is None else {"prior_scale": _scale(fit_options.prior_scale)}
    )
    options |= {} if fit_options.degree is None else {"features": fit_options.degree}
    options |= {} if fit_options.link is None else {"link": fit_options.link}
    own = own_parameters(name, fit_options.own or ())
    estimator = estimator_of(
        family,
        inference=fit_options.inference,
        draws=fit_options.draws,
        chains=fit_options.chains,
        sampler=fit_options.sampler,
        random_state=fit_options.seed,
        progress=sampler_bars(),
        tolerance=fit_options.tolerance,
        **options,
        **own,
    )
    fitted = estimator._family(K).name
    if fitted != name:  # softmax regression of two classes is logistic regression
        raise DataError(f"`{name}` does not apply to {K} classes. Use {fitted}.")
    params = estimator.get_params(deep=False)
    if not set(options) <= set(params):
        takers = [known for known in family_names() if "prior_scale" in _params(known)]
        raise DataError(
            f"`--prior-scale`, `--degree` and `--link` are for {' and '.join(takers)}; got {name}. Leave them out."
        )
    if "inference" not in params and fit_options.inference not in ("auto", "exact"):
        raise DataError(f"`--inference` must be auto or exact for {name}; got {fit_options.inference}. Leave it out.")
    return estimator


def own_parameters(name: str, given: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of a model's own from text: numbers, several of them with commas, or words.

    Parameters
    ----------
    name
        Name of a family, which says by its `options` what it takes.
    given
        NAME=VALUE of each parameter.
    """
    known = [option for option in get_family(name).options if option != "prior"]
    own = {}
    for text in given:
        option, _, value = (part.strip() for part in text.partition("="))
        if not option or not value:
            raise DataError(f"`--set` must be NAME=VALUE, such as covariances=diagonal; got {text!r}.")
        if option not in known:
            takes = " and ".join(known) if known else "none"
            raise DataError(f"`--set` has {option!r}, but {name} takes {takes}. Leave it out.")
        own[option] = _value(value)
    return own


def _value(text: str) -> Any:
    """Return a number, several as a tuple, or else the text itself."""
    try:
        numbers = tuple(float(part) if "." in part else int(part) for part in text.split(","))
    except ValueError:
        return text
    return numbers[0] if len(numbers) == 1 else numbers


def _params(name: str) -> dict[str, Any]:
    params: dict[str, Any] = estimator_of(get_family(name)).get_params(deep=False)
    return params


def fit_model(name: str, data: Dataset, fit_options: FitOptions) -> BayesianClassifier:
    """Fit a model to rows.

    Parameters
    ----------
    name
        Name of a family.
    data
        Training rows.
    fit_options
        The method and its settings.
    """
    import pandas as pd

    estimator = make_estimator(name, data.K, fit_options)
    check_gaps(name, data)
    data.require_rows(2, name, remedy="Merge classes or add rows.")
    if get_family(name).reads_levels:  # a category is one column to it
        estimator.fit(data)
    else:
        # One who fits by name wants the name of the column in a message, which a frame carries.
        estimator.fit(pd.DataFrame(data.X, columns=list(data.feature_names)), labels_of(data))
    check_interrupted()
    return estimator


def check_gaps(name: str, data: Dataset) -> None:
    """Raise if rows have gaps that a model does not take."""
    if data.has_missing and not get_family(name).takes_gaps:
        takers = gap_takers()
        raise DataError(f"`--missing keep` is for {takers}; got {name}. Use --missing drop.")


def gap_takers() -> str:
    """Return the names of the models that take rows with gaps, for messages."""
    *names, last = [name for name in family_names() if get_family(name).takes_gaps]
    return f"{', '.join(names)} and {last}" if names else last


def model_name(estimator: BayesianClassifier) -> str:
    """Return the name of a fitted estimator's model."""
    return estimator._family(len(estimator.classes_)).name


def summary(estimator: BayesianClassifier) -> dict[str, Any]:
    """Return what is known of a fitted model, for JSON."""
    continuum: Continuum | None = getattr(estimator.model_, "continuum", None)
    return {
        "model": model_name(estimator),
        "classes": estimator.classes_,
        "features": list(estimator._names()),
        **verdict_summary(estimator.inference_, estimator.trust_),
        "log_evidence": estimator.log_evidence_,
        "log_evidence_error": estimator.log_evidence_error_,
        "continuum": None if continuum is None else continuum_figures(continuum),
        "distributions": getattr(estimator, "distributions_", None),
    }


def verdict_summary(method: str, verdict: Verdict) -> dict[str, Any]:
    """Return a verdict and its figures, for JSON."""
    return {
        "method": method,
        "verdict": verdict.verdict,
        "light": verdict.light,
        "reason": verdict.reason,
        "next_step": in_options(verdict.next_step),
        "pareto_k": verdict.pareto_k,
        "ess_fraction": verdict.ess_fraction,
        "corrected_k": None if verdict.importance is None else verdict.importance.corrected_k,
        "shift": None if verdict.shift is None else asdict(verdict.shift),
        "errors": None
        if verdict.propagation is None
        else {
            "laplace": verdict.propagation.laplace_error,
            verdict.propagation.method: verdict.propagation.better_error,
        },
        "monte_carlo": None if verdict.monte_carlo is None else asdict(verdict.monte_carlo),
        "diagnostics": None if verdict.diagnosis is None else _figures(verdict.diagnosis),
    }


def continuum_figures(continuum: Continuum) -> dict[str, Any]:
    """Return where between naive, LDA and QDA the data sit, for JSON."""
    return {
        "toward_lda": continuum.toward_lda,
        "toward_naive": continuum.toward_naive,
        "sentence": continuum.sentence,
    }


def show_fit(estimator: BayesianClassifier) -> None:
    """Print the verdict on a fitted model, and the figures behind it."""
    trust = estimator.trust_
    diagnosis = trust.diagnosis
    classes, d = len(estimator.classes_), len(estimator._names())
    show(f"{model_name(estimator)}, {classes} classes, {d} features, fitted by: {estimator.inference_}")
    word = trust.verdict if diagnosis is None else f"{trust.verdict}, {diagnosis.verdict}"
    show_verdict(trust.light, word, in_options(f"{trust.reason} {trust.next_step}"))
    facts = {"log evidence": _with_error(estimator.log_evidence_, estimator.log_evidence_error_)}
    if diagnosis is not None:
        facts |= {name: _shown(value) for name, value in _worst_figures(diagnosis).items()}
    elif trust.verdict != "exact":
        if (propagation := trust.propagation) is not None:
            facts["largest error of Laplace, estimated"] = number(propagation.laplace_error, 4)
            facts[f"largest error of {BETTER[propagation.method]}, estimated"] = number(propagation.better_error, 4)
        facts["Pareto k̂ of the raw approximation"] = number(trust.pareto_k, 2)
        facts["effective share of its draws"] = number(trust.ess_fraction, 2)
        if trust.verdict == "corrected" and trust.importance is not None:
            facts["Pareto k̂ of the corrected one"] = number(trust.importance.corrected_k, 2)
    show_facts({name: value for name, value in facts.items() if value != "–"})
    if hasattr(estimator.model_, "continuum"):
        show(estimator.model_.continuum.sentence)
    if hasattr(estimator, "choice_"):
        show(estimator.choice_)
    if diagnosis is not None:
        show("")
        worst = diagnosis.worst()
        columns = {"mean": 3, "sd": 3, "r_hat": 3, "ess_bulk": 0, "ess_tail": 0}
        rows = [
            (str(name), *(number(float(line[column]), digits) for column, digits in columns.items()))
            for name, line in worst.iterrows()
        ]
        title = f"The {len(rows)} worst of {len(diagnosis.table)} parameters"
        show_table(title, ("parameter", "mean", "sd", "R-hat", "bulk ESS", "tail ESS"), rows)
        show(*diagnosis.notes)


def _worst_figures(diagnosis: "Diagnosis") -> dict[str, Any]:
    table = diagnosis.table
    return {
        "chains": diagnosis.chains,
        "draws of each": diagnosis.draws,
        "largest R-hat": float(table["r_hat"].max()),
        "least bulk ESS": float(table["ess_bulk"].min()),
        "least tail ESS": float(table["ess_tail"].min()),
        "divergences": diagnosis.divergences,
        "least E-BFMI": None if diagnosis.e_bfmi is None else float(diagnosis.e_bfmi.min()),
        "mean acceptance": None if diagnosis.acceptance is None else float(diagnosis.acceptance.mean()),
        "share at the tree-depth limit": diagnosis.max_depth_share,
    }


def _figures(diagnosis: "Diagnosis") -> dict[str, Any]:
    named = {name.replace(" ", "_").replace("-", "_").lower(): x for name, x in _worst_figures(diagnosis).items()}
    steps = [in_options(step) for step in diagnosis.next_steps]
    head = {"verdict": diagnosis.verdict, "reasons": list(diagnosis.reasons), "next_steps": steps}
    return {**head, "notes": list(diagnosis.notes), **named, "parameters": diagnosis.table}


def _shown(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    return number(value, 0 if value is not None and abs(value) >= 100 else 3)


def _with_error(value: float, error: float) -> str:
    if not error >= 0.0005:  # exact, or as good as that
        return number(value, 2)
    digits = 2 if error >= 0.005 else 3
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def _scale(text: str) -> float | str:
    if text in ("hierarchical", "empirical-bayes"):
        return text
    try:
        return float(text)
    except ValueError:
        raise DataError(f"`--prior-scale` must be a number, hierarchical or empirical-bayes; got {text!r}.") from None
