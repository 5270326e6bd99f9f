"""Any number of posteriors of one model side by side: parameters, predictions, evidence.

A posterior is a DataTree with a group `posterior`, whatever made it; its name in the mapping is the method. One of them
is the reference that the others are held to, and every difference stands beside the noise that it is to be read
against. Everything is returned as tables.
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
    total_variation,
    wasserstein,
)
from bayes_gda.evaluation.reliability import check_probabilities
from bayes_gda.methods.diagnostics import CONSTANT, scalars

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

# The reference, if none is named: closed forms, then draws of the posterior itself, then weighted draws, then the rest.
PREFERENCE = ("exact", "mcmc", "nuts", "corrected", "skew-modal", "laplace")
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
    """Posteriors of one model, held to one of them.

    Parameters
    ----------
    reference
        The method that the others are held to; it has rows in both tables, with differences of zero.
    parameters
        One row for each (method, parameter): `mean`, `sd` and `mcse` (of the mean); `mean_difference_sd`, mean less the
        reference's in reference sd, and `mean_difference_mcse`, the same in Monte Carlo standard errors of both;
        `sd_ratio` to the reference; `total_variation` of the two marginals with its standard error, and `accuracy`,
        100 (1 − TV) %; `wasserstein` in reference sd; `skewness` with its standard error.
    joint
        One row a method: `kl`, KL(method ‖ reference) of the Gaussians with their moments, and `kl_noise`, what equal
        distributions would have; `energy_distance`, `energy_noise` (what 95 % of equal distributions stay below) and
        `energy_p_value`; `largest_mean_difference_sd` (absolute) and the `parameter` that has it.
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
    """Draws (S,) of one parameter by one method, chains one after the other, and what they say of it alone."""

    draws: Floats
    ess: float
    mean: float
    sd: float

    @property
    def mcse(self) -> float:
        return self.sd / float(np.sqrt(self.ess))


def compare_posteriors(
    posteriors: "Mapping[str, xr.DataTree]", *, reference: str | None = None, var_names: Sequence[str] | None = None
) -> PosteriorComparison:
    """Hold posteriors of one model to one of them.

    Parameters
    ----------
    posteriors
        DataTrees with a group `posterior`, by method, with the same names, dims and coords.
    reference
        The method to hold the others to. None for the best there is: exact, mcmc, nuts, corrected, skew-modal, laplace,
        in this order; if none of them is there, the first.
    var_names
        The variables to compare; None for all that every method has.
    """
    import pandas as pd

    reference = _reference(posteriors, reference)
    draws, left_out = _aligned(posteriors, var_names)
    labels = draws[reference].keys()
    constant = tuple(label for label in labels if _same(by[label] for by in draws.values()))
    if len(constant) == len(labels):
        raise DataError("Every parameter is the same in all draws of all methods. There is nothing to compare.")
    known: dict[tuple[tuple[int, ...], bytes], _Scalar] = {}
    measured = {
        method: {label: _measure(x, known) for label, x in by.items() if label not in constant}
        for method, by in draws.items()
    }
    best = measured[reference]
    rows, joint = {}, []
    for method, by in measured.items():
        # Covariances hold the same draws twice; what was compared once is not compared again.
        compared: dict[tuple[int, int], list[float]] = {}
        for label, scalar in by.items():
            pair = (id(scalar), id(best[label]))
            if pair not in compared:
                compared[pair] = _compare(scalar, best[label])
            rows[method, label] = compared[pair]
        joint.append(_jointly(by, best))
    index = pd.MultiIndex.from_tuples(list(rows), names=["method", "parameter"])
    parameters = pd.DataFrame(list(rows.values()), index=index, columns=list(PARAMETER_COLUMNS))
    together = pd.DataFrame(joint, index=pd.Index(list(measured), name="method"))
    off = parameters["mean_difference_sd"].abs().to_numpy().reshape(len(measured), -1)
    together["largest_mean_difference_sd"] = off.max(axis=1)
    together["parameter"] = np.array(list(best))[off.argmax(axis=1)]
    return PosteriorComparison(reference, parameters, together, constant, left_out)


def compare_predictions(probabilities: Mapping[str, ArrayLike], *, reference: str | None = None) -> "pd.DataFrame":
    """Hold predicted probabilities (n, K) of the same rows to those of one method.

    Returns one row a method. The change of a row is its largest |Δp|: `max_change`, `mean_change` and `q95_change` are
    its largest value, mean and 95 % quantile over rows. `flips` is the share of rows whose most probable class changes,
    `agreement` that of the others. `mean_kl` is the mean over rows of KL(reference ‖ method) in nats: the log score
    that a user of the method loses if the reference is right.
    """
    import pandas as pd

    reference = _reference(probabilities, reference)
    P = {method: check_probabilities(p) for method, p in probabilities.items()}
    best = P[reference]
    if odd := next((method for method, p in P.items() if p.shape != best.shape), None):
        raise DataError(
            f"`probabilities` must be of the same rows and classes; got {P[odd].shape} of {odd!r} and {best.shape} of "
            f"{reference!r}."
        )
    rows = []
    for p in P.values():
        change = np.abs(p - best).max(axis=1)
        flips = float(np.mean(p.argmax(axis=1) != best.argmax(axis=1)))
        rows.append(
            {
                "max_change": change.max(),
                "mean_change": change.mean(),
                "q95_change": np.quantile(change, 0.95),
                "flips": flips,
                "agreement": 1 - flips,
                "mean_kl": rel_entr(best, p).sum(axis=1).mean(),
            }
        )
    return pd.DataFrame(rows, index=pd.Index(list(P), name="method"))


def compare_evidence(evidence: Mapping[str, tuple[float, float]], *, reference: str | None = None) -> "pd.DataFrame":
    """Hold log evidences with their standard errors to those of one method.

    Returns one row a method: `log_evidence`, `error`, `difference` to the reference, and `z`, the difference in
    standard errors of both. The error is 0 for a closed form and nan if it is not known, as of a Laplace approximation,
    whose z is then nan.
    """
    import pandas as pd

    reference = _reference(evidence, reference)
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


def _reference(methods: Mapping[str, Any], reference: str | None) -> str:
    if not methods:
        raise DataError("There is nothing to compare; got an empty mapping.")
    if reference is None:
        return min(methods, key=_rank)  # the first of equal rank
    if reference not in methods:
        raise DataError(f"`reference` must be one of {', '.join(map(repr, methods))}; got {reference!r}.")
    return reference


def _rank(name: str) -> int:
    plain = name.casefold().replace("_", "-")
    return PREFERENCE.index(plain) if plain in PREFERENCE else len(PREFERENCE)


def _aligned(
    posteriors: "Mapping[str, xr.DataTree]", var_names: Sequence[str] | None
) -> tuple[dict[str, dict[str, Floats]], tuple[str, ...]]:
    """Return the draws (chain, draw) of every scalar by method and label, and the variables that were left out."""
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
    first, labels = next((method, by.keys()) for method, by in draws.items())
    for method, by in draws.items():
        if odd := sorted(by.keys() ^ labels):
            raise DataError(
                f"`posteriors` must have the same coords; {odd[0]!r} is not in both {first!r} and {method!r}. "
                "Compare methods of one model on the same data."
            )
        for label, x in by.items():
            if x.size < FOLDS or not (np.abs(x) <= LARGEST).all():
                what = "draws beyond 1e150" if np.isfinite(x).all() else "draws that are not finite"
                what = f"{x.size} draws" if x.size < FOLDS else what
                raise DataError(f"Comparison takes at least {FOLDS} finite draws; {method!r} has {what} of {label!r}.")
    left_out = () if var_names is not None else tuple(name for name in names if name not in chosen)
    return draws, left_out


def _same(samples: Iterable[Floats]) -> bool:
    """Whether all draws of all samples are the same but for rounding."""
    ends = np.array([(x.min(), x.max()) for x in samples])
    # Squares of differences below 1/LARGEST are 0.
    return bool(np.ptp(ends) <= max(CONSTANT * np.abs(ends).max(), 1 / LARGEST))


def _measure(x: Floats, known: dict[tuple[tuple[int, ...], bytes], _Scalar]) -> _Scalar:
    """Measure draws (chain, draw) once, however many parameters and methods have them."""
    key = x.shape, x.tobytes()
    if key not in known:
        still = _same([x])
        ess, sd = (float(x.size), 0.0) if still else (_effective(x), float(x.std(ddof=1)))
        known[key] = _Scalar(x.ravel(), ess, float(x.mean()), sd)
    return known[key]


def _effective(x: Floats) -> float:
    """Return the effective number of draws for the mean.

    Autocorrelation is ArviZ's affair. Resampled posteriors repeat their draws in random order, which it cannot see:
    draws of multiplicities c are worth (Σc)²/Σc².
    """
    from arviz_stats.base import array

    # Standardised, because ArviZ takes a range below 1e-15 for constant.
    arviz: Any = array.array_stats
    worth = float(arviz.ess((x - x.mean()) / x.std(), method="mean"))
    if np.isnan(worth):  # chains of three draws or fewer, in which autocorrelation cannot be seen
        worth = float(x.size)
    count = np.unique(x, return_counts=True)[1]
    return min(worth, x.size**2 / float((count.astype(float) ** 2).sum()))


def _compare(a: _Scalar, b: _Scalar) -> list[float]:
    """Return PARAMETER_COLUMNS of a, held to the reference b."""
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


def _jointly(by: Mapping[str, _Scalar], best: Mapping[str, _Scalar]) -> dict[str, float]:
    """Return the distances of all parameters together."""
    columns = ["kl", "kl_noise", "energy_distance", "energy_noise", "energy_p_value"]
    if by is best:
        return dict(zip(columns, [0.0, 0.0, 0.0, 0.0, 1.0], strict=True))
    a, b = (np.column_stack([scalar.draws for scalar in side.values()]) for side in (by, best))
    # Directions differ in what their draws are worth; half of the parameters have more.
    n, m = (float(np.median([scalar.ess for scalar in side.values()])) for side in (by, best))
    energy = energy_distance(a, b, ess=(n, m))
    figures = [*gaussian_kl(a, b, ess=(n, m)), energy.value, energy.noise, energy.p_value]
    return dict(zip(columns, figures, strict=True))


def _ratio(value: float, by: float) -> float:
    """Return value/by, where 0/0 is 0 and anything else over 0 is infinite."""
    if by == 0 and value != 0:
        return float(np.copysign(np.inf, value))
    return value / by if by != 0 else 0.0
