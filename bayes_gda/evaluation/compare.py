"""Comparison of posteriors of one model by different methods: parameters, predictions, evidence.

A posterior is a DataTree with a group `posterior`; its name in the mapping is the method. One of the methods is the
reference that the others are compared with. Every difference is reported with its Monte Carlo noise. All results are
tables.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.evaluation.calibration import LARGEST
from bayes_gda.evaluation.distances import (
    FOLDS,
    energy_distance,
    gaussian_kl,
    skewness,
    thin,
    total_variation,
    wasserstein,
)
from bayes_gda.evaluation.reliability import check_probabilities
from bayes_gda.methods.diagnostics import CONSTANT, scalars

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# The reference, if none is named: closed forms, then draws of the posterior itself, then weighted draws, then the rest.
PREFERENCE = ("exact", "mcmc", "nuts", "corrected", "ep", "variational", "skew-modal", "laplace")
PARAMETER_COLUMNS = (
    "mean",
    "sd",
    "mcse",
    "mean_difference_sd",
    "mean_difference_mcse",
    "sd_ratio",
    "total_variation",
    "total_variation_error",
    "accuracy",
    "wasserstein",
    "skewness",
    "skewness_error",
)


@dataclass(frozen=True, slots=True, eq=False)
class PosteriorComparison:
    """Posteriors of one model, each compared with the reference.

    Parameters
    ----------
    reference
        The method that the others are compared with; it has rows in both tables, with differences of zero.
    parameters
        One row for each (method, parameter): `mean`, `sd` and `mcse` (of the mean); `mean_difference_sd`, mean less the
        reference's in reference sd, and `mean_difference_mcse`, the same in Monte Carlo standard errors of both;
        `sd_ratio` to the reference; `total_variation` of the two marginals with its standard error, and `accuracy`,
        100 (1 − TV) %; `wasserstein` in reference sd; `skewness` with its standard error.
    joint
        One row per method: `kl`, KL(method ‖ reference) of the Gaussians with their moments, from equally many draws
        of each, `kl_noise`, what equal distributions would have, and `kl_excess`, the difference; `energy_distance`,
        `energy_noise` (what 95 % of equal distributions stay below) and `energy_p_value`; `largest_mean_difference_sd`
        (absolute) and the `parameter` that has it.
    constant
        Parameters that are the same in every draw of every method, such as weights of a reference class; not in the
        tables.
    left_out
        Variables that not all methods have, and that were not compared.
    """

    reference: str
    parameters: "pd.DataFrame"
    joint: "pd.DataFrame"
    constant: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def to_datatree(self) -> "xr.DataTree":
        """Return the tables as groups `parameters` (method × parameter) and `joint` (method).

        xarray's `sel` has an argument `method` of its own: select with a mapping, `.sel({"method": "laplace"})`.
        """
        import xarray as xr

        methods, labels = self.joint.index.to_numpy(dtype=str), self.parameters.index.unique("parameter")
        coords = {"method": methods, "parameter": labels.to_numpy(dtype=str)}
        table = {
            name: (("method", "parameter"), column.to_numpy().reshape(len(methods), len(labels)))
            for name, column in self.parameters.items()
        }
        joint = {str(name): ("method", column.to_numpy()) for name, column in self.joint.items()}
        joint["parameter"] = ("method", self.joint["parameter"].to_numpy(dtype=str))
        groups = {
            "parameters": xr.Dataset(table, coords=coords),
            "joint": xr.Dataset(joint, coords={"method": methods}),
        }
        tree = xr.DataTree.from_dict(groups)
        tree.attrs["reference"] = self.reference
        return tree


@dataclass(frozen=True, slots=True, eq=False)
class _Scalar:
    """Draws (S,) of one parameter by one method, chain after chain, with their effective number, mean and sd.

    `distinct` is the effective number of draws as far as repetitions alone go.
    """

    draws: Floats
    ess: float
    distinct: float
    mean: float
    sd: float

    @property
    def mcse(self) -> float:
        return self.sd / float(np.sqrt(self.ess))


def compare_posteriors(
    posteriors: "Mapping[str, xr.DataTree]", *, reference: str | None = None, var_names: Sequence[str] | None = None
) -> PosteriorComparison:
    """Compare posteriors of one model with that of the reference method.

    Parameters
    ----------
    posteriors
        DataTrees with a group `posterior`, by method, with the same names, dims and coords.
    reference
        The method to compare the others with. None for the first of exact, mcmc, nuts, corrected, skew-modal and
        laplace that is present, or the first method if none of them is.
    var_names
        The variables to compare; None for all that every method has.

    Examples
    --------
    >>> from bayes_gda import BayesianQDA, compare_posteriors, load_example
    >>> data = load_example("qda-mixture").subset(range(0, 1000, 10))
    >>> posteriors = {name: BayesianQDA(inference=name).fit(data).posterior_ for name in ("exact", "laplace")}
    >>> compare_posteriors(posteriors).joint.index.tolist()
    ['exact', 'laplace']
    """
    import pandas as pd

    reference = _choose_reference(posteriors, reference)
    draws, left_out = _align_draws(posteriors, var_names)
    labels = draws[reference].keys()
    constant = tuple(label for label in labels if _is_constant(own_draws[label] for own_draws in draws.values()))
    if len(constant) == len(labels):
        raise DataError("Every parameter is the same in all draws of all methods. There is nothing to compare.")
    summaries: dict[tuple[tuple[int, ...], bytes], _Scalar] = {}
    scalars_of = {
        method: {label: _summarise_draws(x, summaries) for label, x in own_draws.items() if label not in constant}
        for method, own_draws in draws.items()
    }
    reference_scalars = scalars_of[reference]
    # The divergence grows with noise, so that a method with fewer draws would look worse: all have as many.
    equal = min(len(scalar.draws) for own_scalars in scalars_of.values() for scalar in own_scalars.values())
    rows, joint = {}, []
    for method, own_scalars in scalars_of.items():
        # Covariances hold the same draws twice; what was compared once is not compared again.
        columns_of: dict[tuple[int, int], list[float]] = {}
        for label, scalar in own_scalars.items():
            pair = (id(scalar), id(reference_scalars[label]))
            if pair not in columns_of:
                columns_of[pair] = _compare_scalar(scalar, reference_scalars[label])
            rows[method, label] = columns_of[pair]
        joint.append(_compare_jointly(own_scalars, reference_scalars, equal))
    index = pd.MultiIndex.from_tuples(list(rows), names=["method", "parameter"])
    parameters = pd.DataFrame(list(rows.values()), index=index, columns=list(PARAMETER_COLUMNS))
    joint_table = pd.DataFrame(joint, index=pd.Index(list(scalars_of), name="method"))
    difference = parameters["mean_difference_sd"].abs().to_numpy().reshape(len(scalars_of), -1)
    joint_table["largest_mean_difference_sd"] = difference.max(axis=1)
    joint_table["parameter"] = np.array(list(reference_scalars))[difference.argmax(axis=1)]
    return PosteriorComparison(reference, parameters, joint_table, constant, left_out)


def compare_predictions(probabilities: Mapping[str, ArrayLike], *, reference: str | None = None) -> "pd.DataFrame":
    """Compare predicted probabilities (n, K) of the same rows with those of the reference method.

    Returns one row per method. The change of a row is its largest |Δp|; `max_change`, `mean_change` and `q95_change`
    are its maximum, mean and 95 % quantile over rows. `flips` is the share of rows whose most probable class changes,
    `agreement` that of the others. `mean_kl` is the mean over rows of KL(reference ‖ method) in nats: the log score
    that a user of the method loses if the reference is right.
    """
    import pandas as pd

    reference = _choose_reference(probabilities, reference)
    P = {method: check_probabilities(p) for method, p in probabilities.items()}
    reference_P = P[reference]
    if mismatch := next((method for method, p in P.items() if p.shape != reference_P.shape), None):
        raise DataError(
            f"`probabilities` must be of the same rows and classes; got {P[mismatch].shape} of {mismatch!r} and "
            f"{reference_P.shape} of {reference!r}."
        )
    rows = []
    for p in P.values():
        change = np.abs(p - reference_P).max(axis=1)
        flips = float(np.mean(p.argmax(axis=1) != reference_P.argmax(axis=1)))
        rows.append(
            {
                "max_change": change.max(),
                "mean_change": change.mean(),
                "q95_change": np.quantile(change, 0.95),
                "flips": flips,
                "agreement": 1 - flips,
                "mean_kl": rel_entr(reference_P, p).sum(axis=1).mean(),
            }
        )
    return pd.DataFrame(rows, index=pd.Index(list(P), name="method"))


def compare_evidence(evidence: Mapping[str, tuple[float, float]], *, reference: str | None = None) -> "pd.DataFrame":
    """Compare log evidences, given with their standard errors, with that of the reference method.

    Returns one row per method: `log_evidence`, `error`, `difference` to the reference, and `z`, the difference in
    standard errors of both. The error is 0 for a closed form and nan if it is not known, as of a Laplace approximation,
    whose z is then nan.
    """
    import pandas as pd

    reference = _choose_reference(evidence, reference)
    for method, pair in evidence.items():
        if len(pair) != 2 or not np.isfinite(pair[0]) or pair[1] < 0:
            raise DataError(f"`evidence` must be (log evidence, error ≥ 0) of each method; got {pair} of {method!r}.")
    value, error = np.array([(float(v), float(e)) for v, e in evidence.values()]).T
    best = list(evidence).index(reference)
    difference = value - value[best]
    z = [_ratio(d, float(np.hypot(e, error[best]))) for d, e in zip(difference, error, strict=True)]
    z[best] = 0.0
    columns = {"log_evidence": value, "error": error, "difference": difference, "z": z}
    return pd.DataFrame(columns, index=pd.Index(list(evidence), name="method"))


def _choose_reference(methods: Mapping[str, Any], reference: str | None) -> str:
    """Return `reference` if it is one of the methods, or the most accurate method by PREFERENCE if it is None."""
    if not methods:
        raise DataError("There is nothing to compare; got an empty mapping.")
    if reference is None:
        return min(methods, key=_preference_rank)  # the first of equal rank
    if reference not in methods:
        raise DataError(f"`reference` must be one of {', '.join(map(repr, methods))}; got {reference!r}.")
    return reference


def _preference_rank(name: str) -> int:
    """Return the place of a method in PREFERENCE; methods that are not listed come last."""
    key = name.casefold().replace("_", "-")
    return PREFERENCE.index(key) if key in PREFERENCE else len(PREFERENCE)


def _align_draws(
    posteriors: "Mapping[str, xr.DataTree]", var_names: Sequence[str] | None
) -> tuple[dict[str, dict[str, Floats]], tuple[str, ...]]:
    """Return draws (chain, draw) of every scalar by method and label, and the variables that not all methods have."""
    groups: dict[str, xr.Dataset] = {}
    for method, tree in posteriors.items():
        if "posterior" not in getattr(tree, "children", {}):
            raise DataError(f"`posteriors` must have a group 'posterior'; {method!r} has none. Fit the model first.")
        groups[method] = tree["posterior"].to_dataset()
    names = dict.fromkeys(str(name) for group in groups.values() for name in group.data_vars)
    chosen = [name for name in names if all(name in group for group in groups.values())]
    if var_names is not None:
        if absent := [name for name in var_names if name not in chosen]:
            raise DataError(f"`var_names` must be variables of every method; got {absent}. All have {chosen}.")
        chosen = list(var_names)
    if not chosen:
        raise DataError("The posteriors have no variable in common. Compare methods of one model.")
    draws = {method: scalars(group[chosen]) for method, group in groups.items()}
    first, labels = next((method, own_draws.keys()) for method, own_draws in draws.items())
    for method, own_draws in draws.items():
        if unshared := sorted(own_draws.keys() ^ labels):
            raise DataError(
                f"`posteriors` must have the same coords; {unshared[0]!r} is not in both {first!r} and {method!r}. "
                "Compare methods of one model on the same data."
            )
        for label, x in own_draws.items():
            if x.size < FOLDS or not (np.abs(x) <= LARGEST).all():
                problem = "draws beyond 1e150" if np.isfinite(x).all() else "draws that are not finite"
                problem = f"{x.size} draws" if x.size < FOLDS else problem
                raise DataError(
                    f"Comparison takes at least {FOLDS} finite draws; {method!r} has {problem} of {label!r}."
                )
    left_out = () if var_names is not None else tuple(name for name in names if name not in chosen)
    return draws, left_out


def _is_constant(samples: Iterable[Floats]) -> bool:
    """Return whether all draws of all samples are equal up to rounding."""
    ends = np.array([(x.min(), x.max()) for x in samples])
    # Squares of differences below 1/LARGEST are 0.
    return bool(np.ptp(ends) <= max(CONSTANT * np.abs(ends).max(), 1 / LARGEST))


def _summarise_draws(x: Floats, summaries: dict[tuple[tuple[int, ...], bytes], _Scalar]) -> _Scalar:
    """Return the summary of draws (chain, draw), computed once for draws that parameters or methods share."""
    key = x.shape, x.tobytes()
    if key not in summaries:
        constant = _is_constant([x])
        distinct = _distinct_draws(x)
        ess, sd = (float(x.size), 0.0) if constant else (_effective_draws(x, distinct), float(x.std(ddof=1)))
        summaries[key] = _Scalar(x.ravel(), ess, float(x.size) if constant else distinct, float(x.mean()), sd)
    return summaries[key]


def _distinct_draws(x: Floats) -> float:
    """Return (Σc)²/Σc², the effective number of draws with multiplicities c."""
    count = np.unique(x, return_counts=True)[1]
    return float(x.size**2 / (count.astype(float) ** 2).sum())


def _effective_draws(x: Floats, distinct: float) -> float:
    """Return the effective number of draws for the mean.

    ArviZ accounts for autocorrelation. It cannot see that resampled posteriors repeat draws in random order, as
    `distinct` does. The smaller of the two numbers is returned.
    """
    from arviz_stats.base import array

    # Standardised, because ArviZ takes a range below 1e-15 for constant.
    arviz: Any = array.array_stats
    ess = float(arviz.ess((x - x.mean()) / x.std(), method="mean"))
    if np.isnan(ess):  # chains of three draws or fewer, in which autocorrelation cannot be seen
        ess = float(x.size)
    return min(ess, distinct)


def _compare_scalar(a: _Scalar, b: _Scalar) -> list[float]:
    """Return the values of PARAMETER_COLUMNS for a scalar a, compared with the reference b."""
    shift = a.mean - b.mean
    variation, error = (0.0, 0.0) if a is b else total_variation(a.draws, b.draws, ess=(a.ess, b.ess))
    # A reference that does not vary has no unit: what differs from it is infinitely far away.
    distance = wasserstein(a.draws, b.draws, scale=b.sd) if b.sd > 0 else _ratio(wasserstein(a.draws, b.draws), 0.0)
    return [
        a.mean,
        a.sd,
        a.mcse,
        _ratio(shift, b.sd),
        _ratio(shift, float(np.hypot(a.mcse, b.mcse))),
        1.0 if a.sd == b.sd else _ratio(a.sd, b.sd),
        variation,
        error,
        100 * (1 - variation),
        distance,
        *skewness(a.draws, ess=a.ess),
    ]


def _compare_jointly(
    own_scalars: Mapping[str, _Scalar], reference_scalars: Mapping[str, _Scalar], equal: int
) -> dict[str, float]:
    """Return KL divergence and energy distance of the joint distributions of all parameters, with their noise.

    The divergence is that of `equal` draws of each, evenly spaced.
    """
    columns = ["kl", "kl_noise", "kl_excess", "energy_distance", "energy_noise", "energy_p_value"]
    if own_scalars is reference_scalars:
        return dict(zip(columns, [0.0, 0.0, 0.0, 0.0, 0.0, 1.0], strict=True))
    sides = (own_scalars, reference_scalars)
    a, b = (np.column_stack([scalar.draws for scalar in side.values()]) for side in sides)
    # Directions differ in what their draws are worth; half of the parameters have more.
    n, m = (float(np.median([scalar.ess for scalar in side.values()])) for side in sides)
    distinct = [float(np.median([scalar.distinct for scalar in side.values()])) for side in sides]
    energy = energy_distance(a, b, ess=(n, m))
    kl, noise = gaussian_kl(thin(a, equal), thin(b, equal), ess=(min(distinct[0], equal), min(distinct[1], equal)))
    figures = [kl, noise, kl - noise, energy.value, energy.noise, energy.p_value]
    return dict(zip(columns, figures, strict=True))


def _ratio(value: float, divisor: float) -> float:
    """Return value/divisor, where 0/0 is 0 and anything else over 0 is infinite."""
    if divisor == 0 and value != 0:
        return float(np.copysign(np.inf, value))
    return value / divisor if divisor != 0 else 0.0
