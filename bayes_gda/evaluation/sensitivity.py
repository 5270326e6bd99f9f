"""Sensitivity of posterior and predictions to the prior and to the likelihood, by power-scaling, without refitting.

The prior, or the likelihood, is raised to a power α near 1, and draws get Pareto-smoothed importance weights:

    p_α(θ | data) ∝ p(data | θ) p(θ)^α,     w_s ∝ p(θ_s)^(α−1)

For a parameter the change is the cumulative Jensen-Shannon distance of its weighted and unweighted draws, per log₂ α.
For a prediction it is the change of the reported probability itself, per log₂ α: 0.05 is five percentage points when
the prior counts double.

    prior ≥ 0.05, likelihood ≥ 0.05    potential prior-data conflict: they pull in different directions
    prior ≥ 0.05, likelihood < 0.05    potential strong prior / weak likelihood: the data say little

References
----------
Kallioinen, Paananen, Bürkner & Vehtari (2023), Detecting and diagnosing prior and likelihood sensitivity with
power-scaling, Statistics and Computing 34.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from bayes_gda.checks import Floats, numbers
from bayes_gda.errors import DataError
from bayes_gda.evaluation.calibration import LARGEST
from bayes_gda.evaluation.loo import FEWEST_DRAWS, good_k
from bayes_gda.methods.diagnostics import CONSTANT, ESS_BAD, scalars
from bayes_gda.methods.importance.psis import smooth
from bayes_gda.prediction.normalised import log_class_probabilities

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# A quarter more or less, the same on the scale of logs: enough to see a shift of probabilities, near enough for
# weighting. The distance is close to linear in log α, so that ArviZ's 0.99 and 1.01 give nearly the same gradients.
ALPHAS = (0.8, 1.25)
# Kallioinen et al. (2023). A normal posterior has this distance when its mean moves by about a quarter sd, or its sd by
# a quarter.
THRESHOLD = 0.05
CONFLICT, STRONG, FINE = "potential prior-data conflict", "potential strong prior / weak likelihood", "-"
COMPONENTS = ("prior", "likelihood")


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivity:
    """Sensitivity of parameters and predictions to the prior and to the likelihood.

    Parameters
    ----------
    parameters
        One line per scalar parameter that varies: `prior` and `likelihood` sensitivity, and the `diagnosis`.
    predictions
        One line per row: the most probable `class`, its `probability`, and what that becomes if the prior counts less
        (`lower`) and more (`upper`); the largest change of a class probability per log₂ α of the `prior` and of the
        `likelihood`; whether the decision `flips` under either prior; the `diagnosis`. None if no rows were given.
    weights
        k̂ and effective share of the draws behind each `component` and `alpha`.
    alphas, threshold
        Powers, and the sensitivity from which a diagnosis is made.
    reason, next_step
        The findings in sentences; what to do about them.
    """

    parameters: "pd.DataFrame" = field(repr=False)
    predictions: "pd.DataFrame | None" = field(repr=False)
    weights: "pd.DataFrame" = field(repr=False)
    alphas: tuple[float, float]
    threshold: float
    reason: str
    next_step: str

    def worst(self, n: int = 5) -> "pd.DataFrame":
        """Return the lines of the n parameters that are most sensitive to the prior, the worst first."""
        return self.parameters.sort_values("prior", ascending=False, kind="stable").head(n)


@dataclass(frozen=True, slots=True, eq=False)
class PowerWeights:
    """Weights of draws that stand for a posterior with one component raised to a power.

    Parameters
    ----------
    alpha
        The power.
    log_weights
        (S,) normalised log weights.
    pareto_k, ess_fraction
        k̂ and 1/(S Σw²): whether means over the weighted draws can be relied upon.
    """

    alpha: float
    log_weights: Floats
    pareto_k: float
    ess_fraction: float

    @property
    def reliable(self) -> bool:
        """Whether k̂ is good and enough draws are effective."""
        S = len(self.log_weights)
        return self.pareto_k < good_k(S) and self.ess_fraction * S >= ESS_BAD


def power_weights(log_density: ArrayLike, alpha: float) -> PowerWeights:
    """Weigh draws of a posterior so that one of its factors counts with the power α: w_s ∝ exp((α − 1) l_s).

    Parameters
    ----------
    log_density
        (S,) or (chains, draws) log prior, or log likelihood of all rows, at each draw; up to a constant.
    alpha
        Power above 0; 1 changes nothing.
    """
    values = numbers("log_density", log_density).reshape(-1)
    if not (np.isfinite(alpha) and alpha > 0):
        raise DataError(f"`alpha` must be finite and greater than 0; got {alpha}.")
    if len(values) < FEWEST_DRAWS or not np.isfinite(values).all():
        raise DataError(
            f"`log_density` must hold at least {FEWEST_DRAWS} finite numbers, one per draw; got {len(values)}, "
            f"{int(np.sum(~np.isfinite(values)))} of them not finite."
        )
    return PowerWeights(alpha, *smooth((alpha - 1) * values))


def weighted_probabilities(log_joint: Floats, log_weights: Floats) -> Floats:
    """Return Σ_s w_s p(x, k | θ_s) (n, K), normalised over the classes: densities are averaged, not probabilities.

    Log probabilities of a regression do as well: their averages sum to one already.
    """
    return np.asarray(np.exp(log_class_probabilities(logsumexp(log_weights[:, None, None] + log_joint, axis=0))))


def prior_sensitivity(
    tree: "xr.DataTree",
    *,
    log_joint: ArrayLike | None = None,
    class_names: Sequence[Any] | None = None,
    var_names: Sequence[str] | None = None,
    alphas: tuple[float, float] = ALPHAS,
    threshold: float = THRESHOLD,
    parameters: "pd.DataFrame | None" = None,
) -> Sensitivity:
    """Measure how parameters and predictions change if the prior, or the likelihood, counts for less or more.

    Parameters
    ----------
    tree
        Groups `posterior`, `log_prior` and `log_likelihood`; whatever is in the last two is summed for each draw. The
        weights of a softmax regression in symmetric coding are always sensitive, since the likelihood does not know
        their mean over the classes: put w − w.mean("class") in their place.
    log_joint
        (S, n, K) or (chains, draws, n, K) log p(x_i, k | θ_s) of chosen rows, or log p(y = k | x_i, w_s) of a
        regression, for the draws of the posterior in their order; None for parameters alone.
    class_names
        (K,) names for the table of predictions; by default the codes.
    var_names
        Variables of the posterior to look at; by default all. Those that do not vary are left out.
    alphas
        Powers below and above 1.
    threshold
        Sensitivity from which a diagnosis is made.
    parameters
        The table of parameters of an earlier call with the same draws, not to compute it again.

    Examples
    --------
    >>> from bayes_gda import BayesianLogisticRegression, load_example, prior_sensitivity
    >>> model = BayesianLogisticRegression().fit(load_example("lda-mixture"))
    >>> prior_sensitivity(model.posterior_).reason
    'No parameter is sensitive to the prior: at most 0.035 (w[x2]; limit 0.05).'
    """
    lower, upper = alphas
    if not 0 < lower < 1 < upper:
        raise DataError(f"`alphas` must be one power in (0, 1) and one above 1; got {alphas}.")
    draws, components = _read_tree(tree, var_names)
    scaled = {name: [power_weights(values, alpha) for alpha in alphas] for name, values in components.items()}
    if parameters is None:
        parameters = _parameter_table(_distinct(draws), scaled, threshold)
    predictions = None
    if log_joint is not None:
        S = next(iter(components.values())).size
        predictions = _prediction_table(_check_joint(log_joint, S), class_names, scaled, threshold)
    reason, next_step = _describe_sensitivity(parameters, predictions, scaled, threshold)
    return Sensitivity(parameters, predictions, _weights_table(scaled), (lower, upper), threshold, reason, next_step)


def _distinct(draws: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return parameters without those whose draws are another's, as Sigma[b, a] has those of Sigma[a, b]."""
    seen: set[bytes] = set()
    kept = {}
    for label, x in draws.items():
        key = np.ascontiguousarray(x).tobytes()
        if key not in seen:
            seen.add(key)
            kept[label] = x
    return kept


def _parameter_table(
    draws: Mapping[str, Floats], scaled: Mapping[str, list[PowerWeights]], threshold: float
) -> "pd.DataFrame":
    import pandas as pd
    from arviz_stats.base import array

    arviz: Any = array.array_stats

    def gradient(x: Floats, pair: list[PowerWeights]) -> float:
        low, high = (np.exp(p.log_weights).reshape(x.shape) for p in pair)
        # The distance has no unit, but ArviZ's integrals would underflow in one that is far too large.
        x = np.ldexp(x, -int(np.frexp(np.abs(x).max())[1]))
        return float(arviz.power_scale_sense(x, low, high, pair[0].alpha, pair[1].alpha))

    lines = {label: [gradient(x, scaled[name]) for name in COMPONENTS] for label, x in draws.items()}
    table = pd.DataFrame(
        list(lines.values()), index=pd.Index(list(lines), name="parameter"), columns=list(COMPONENTS), dtype=float
    )
    table["diagnosis"] = _diagnose_lines(table, threshold)
    return table


def _prediction_table(
    L: Floats, class_names: Sequence[Any] | None, scaled: Mapping[str, list[PowerWeights]], threshold: float
) -> "pd.DataFrame":
    import pandas as pd

    S, n, K = L.shape
    names = list(range(K)) if class_names is None else list(class_names)
    if len(names) != K:
        raise DataError(f"`class_names` must hold {K} names, one for each class of `log_joint`; got {len(names)}.")
    P = weighted_probabilities(L, np.full(S, -np.log(S)))
    scaled_P = {name: [weighted_probabilities(L, p.log_weights) for p in pair] for name, pair in scaled.items()}
    top = P.argmax(axis=1)
    cells = np.arange(n), top
    table = pd.DataFrame(
        {
            "class": [names[k] for k in top],
            "probability": P[cells],
            "lower": scaled_P["prior"][0][cells],
            "upper": scaled_P["prior"][1][cells],
        },
        index=pd.RangeIndex(n, name="row"),
    )
    for name in COMPONENTS:
        steps = [np.abs(np.log2(p.alpha)) for p in scaled[name]]
        table[name] = np.mean(
            [np.abs(Q - P).max(axis=1) / step for Q, step in zip(scaled_P[name], steps, strict=True)], axis=0
        )
    table["flips"] = np.any([Q.argmax(axis=1) != top for Q in scaled_P["prior"]], axis=0)
    table["diagnosis"] = _diagnose_lines(table, threshold)
    return table


def _diagnose_lines(table: "pd.DataFrame", threshold: float) -> list[str]:
    """Return the diagnosis of each line: conflict, strong prior, or none, by both sensitivities."""
    prior, likelihood = (table[name].to_numpy() >= threshold for name in COMPONENTS)
    return [(CONFLICT if b else STRONG) if a else FINE for a, b in zip(prior, likelihood, strict=True)]


def _weights_table(scaled: Mapping[str, list[PowerWeights]]) -> "pd.DataFrame":
    """Return k̂ and the effective share of draws for each component and power."""
    import pandas as pd

    lines = {(name, p.alpha): (p.pareto_k, p.ess_fraction, p.reliable) for name, pair in scaled.items() for p in pair}
    index = pd.MultiIndex.from_tuples(list(lines), names=["component", "alpha"])
    return pd.DataFrame(list(lines.values()), index=index, columns=["pareto_k", "ess_fraction", "reliable"])


def _describe_sensitivity(
    parameters: "pd.DataFrame",
    predictions: "pd.DataFrame | None",
    scaled: Mapping[str, list[PowerWeights]],
    threshold: float,
) -> tuple[str, str]:
    """Return the findings in sentences (`reason`) and what to do about them (`next_step`)."""
    reasons, steps = [], []
    for name, pair in scaled.items():
        for p in pair:
            if not p.reliable:
                reasons.append(
                    f"The weights for {name}^{p.alpha:g} are unreliable (k̂ = {p.pareto_k:.2f}, "
                    f"{100 * p.ess_fraction:.0f} % of the draws effective)."
                )
                steps.append("Sample more draws, or compare with a fit under a second prior.")
    if not all(p.reliable for p in scaled["prior"]):
        reasons.append("The sensitivities to the prior that follow cannot be relied on.")
    for diagnosis, remedy in (
        (CONFLICT, "Check the prior's location and scale against what is known of these quantities, and the data."),
        (STRONG, "Say why this prior, or report the results under a second one; more data would make it matter less."),
    ):
        flagged = parameters[parameters["diagnosis"] == diagnosis]
        if len(flagged):
            worst = f"{flagged['prior'].idxmax()} ({flagged['prior'].max():.2f}; limit {threshold:g})"
            what = f"shows a {diagnosis}:" if len(flagged) == 1 else f"show a {diagnosis}, most of all"
            reasons.append(f"{len(flagged)} of {len(parameters)} parameters {what} {worst}.")
            steps.append(remedy)
    if not (parameters["diagnosis"] != FINE).any():
        label = parameters["prior"].idxmax()
        reasons.append(
            f"No parameter is sensitive to the prior: at most {parameters['prior'].max():.3f} ({label}; limit "
            f"{threshold:g})."
        )
    if predictions is not None:
        worst_row, largest_change = predictions["prior"].idxmax(), predictions["prior"].max()
        count, flips = int((predictions["prior"] >= threshold).sum()), int(predictions["flips"].sum())
        rows_changed = (
            f"{count} of {len(predictions)} rows change" if count else f"No row of {len(predictions)} changes"
        )
        reasons.append(
            f"{rows_changed} a probability by {threshold:g} or more when the prior counts double (at most "
            f"{largest_change:.3f}, row {worst_row}); {flips or 'no'} "
            f"decision{'s' if flips > 1 else ''} flip{'s' if flips < 2 else ''}."
        )
        if (count or flips) and not steps:
            steps.append("Report these rows under a second prior too.")
        elif steps and not count and not flips:
            steps.append("The predictions of these rows can be used as they are.")
    return " ".join(reasons), " ".join(dict.fromkeys(steps)) or "Report the results as they are."


def _read_tree(tree: "xr.DataTree", var_names: Sequence[str] | None) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Return the draws (chain, draw) of each scalar that varies, and log prior and log likelihood (chain, draw)."""
    groups = getattr(tree, "children", {})
    for name in ("posterior", "log_prior", "log_likelihood"):
        if name not in groups:
            raise DataError(
                f"`tree` must have the groups posterior, log_prior and log_likelihood; {name} is missing. "
                "PyMC adds the last two with compute_log_prior and compute_log_likelihood."
            )
    posterior = tree["posterior"].to_dataset()
    if var_names is not None:
        if absent := [name for name in var_names if name not in posterior.data_vars]:
            raise DataError(
                f"`var_names` must be variables of the posterior, {list(posterior.data_vars)}; got {absent}."
            )
        posterior = posterior[list(var_names)]
    by_label = scalars(posterior)
    for label, x in by_label.items():
        if x.size < FEWEST_DRAWS or not (np.abs(x) <= LARGEST).all():
            problem = f"{x.size} draws" if x.size < FEWEST_DRAWS else "draws that are not finite, or beyond 1e150"
            raise DataError(f"Power-scaling takes at least {FEWEST_DRAWS} finite draws; {label!r} has {problem}.")
    draws = {label: x for label, x in by_label.items() if np.ptp(x) > CONSTANT * np.abs(x).max()}
    if not draws:
        raise DataError("No parameter of the posterior varies; there is nothing to measure.")
    shape = next(iter(draws.values())).shape
    components = {}
    for name in COMPONENTS:
        total = _sum_log_density(tree[f"log_{name}"].to_dataset(), f"log_{name}")
        if total.shape != shape:
            raise DataError(f"`log_{name}` must have the {shape} chains and draws of the posterior; got {total.shape}.")
        components[name] = total
    return draws, components


def _sum_log_density(dataset: "xr.Dataset", name: str) -> Floats:
    """Return the sum of all variables of a group of log densities, over all dims but chain and draw."""
    total: Any = 0.0
    for variable in dataset.data_vars.values():
        if not {"chain", "draw"} <= set(variable.dims):
            raise DataError(f"`{name}` must have the dims chain and draw; {variable.name!r} has {variable.dims}.")
        summed = variable.sum([dim for dim in variable.dims if dim not in ("chain", "draw")], skipna=False)
        total = total + summed.transpose("chain", "draw").to_numpy()
    return np.asarray(total, dtype=np.float64)


def _check_joint(log_joint: ArrayLike, S: int) -> Floats:
    """Return `log_joint` as (S, n, K), checked against the number of draws."""
    L = numbers("log_joint", log_joint)
    if L.ndim not in (3, 4) or 0 in L.shape:
        raise DataError(f"`log_joint` must be (S, n, K) or (chains, draws, n, K); got shape {L.shape}.")
    L = L.reshape(-1, *L.shape[-2:])
    if len(L) != S:
        raise DataError(f"`log_joint` must have the {S} draws of the posterior; got {len(L)}.")
    if np.isnan(L).any():
        raise DataError("`log_joint` must not be nan. Check the rows for missing values.")
    return L
