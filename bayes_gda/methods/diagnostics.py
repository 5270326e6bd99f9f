"""Whether draws can stand for their posterior, and if not, what to do.

Chains are held against each other (R-hat), their draws counted at what they are worth (ESS, MCSE), and the sampler's
own complaints heard (divergences, energy, tree depth, acceptance). The figures are ArviZ's; the verdict is made here.

Tail ESS is that of the 5 % and 95 % quantiles, as Vehtari et al. (2021) define it and Stan reports it: the ends of the
90 % intervals of `summary`. `az.summary` takes the quantiles of its setting `stats.ci_prob`, by default 0.89, so that
its `ess_tail` is that of the 11 % and 89 % quantiles and usually larger. With `stats.ci_prob` at 0.95 both are equal.

`good`      nothing found: use the draws.
`caution`   a limit is passed: act on the next step, or say with the result that it was passed.
`bad`       the draws are not a sample of one posterior, or far too few: do not use them.

References
----------
Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), Rank-normalization, folding, and localization: an improved R̂.
Betancourt (2016), Diagnosing suboptimal cotangent disintegrations in Hamiltonian Monte Carlo.
Betancourt (2017), A conceptual introduction to Hamiltonian Monte Carlo.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy.special import ndtri

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Verdict = Literal["good", "caution", "bad"]
VERDICTS: tuple[Verdict, ...] = ("good", "caution", "bad")

# Vehtari et al. (2021) advise 1.01; the older 1.1 let chains through that had not met.
R_HAT = 1.01
# R̂ ≈ √(1 + chains/ESS) (Vats & Knudson 2021), so 1.05 is ten effective draws per chain: nothing can be read from those.
R_HAT_BAD = 1.05
# Vehtari et al. (2021): 50 for each half of a chain, below which R-hat and ESS themselves cannot be relied upon; with
# the usual four chains that is 400, where the error of a mean is 5 % of a posterior sd.
ESS_PER_CHAIN, ESS_TOTAL = 100.0, 400.0
# The error of a mean is 10 % of a posterior sd, and the ends of a 90 % interval rest on five draws each.
ESS_BAD = 100.0
# Betancourt (2016): below this, momentum resampling is too timid to carry the chain through the tails.
E_BFMI = 0.3
# Betancourt (2017): each may mark a region that the sampler cannot enter, so even one is said. A few can be false
# alarms; one transition in a hundred is not.
DIVERGENCES, DIVERGENCE_SHARE_BAD = 0, 0.01
# A cut trajectory costs efficiency, not validity (Stan reference manual); PyMC warns at the same share.
MAX_DEPTH_SHARE = 0.05
# The limit that PyMC and NumPyro have by default, for samplers that record the depth but not whether it was the limit.
TREE_DEPTH = 10
# Betancourt, Byrne & Girolami (2014): NUTS does best between .6 and .9. Less means that the step size did not settle.
ACCEPTANCE = 0.6

# R-hat and ESS halve each chain, and a variance takes two draws.
FEWEST_DRAWS = 4
# Draws that differ by less than this share of their size differ by rounding: L Lᵀ has 1 ± 1e-15 on its diagonal.
CONSTANT = 1e-12
# The quantiles of tail ESS (Vehtari et al. 2021), whatever ArviZ's settings are.
TAIL = (0.05, 0.95)
# Draws to ask for beyond the shortfall, since ESS is an estimate; how many times more are still worth asking for.
MARGIN, MOST = 1.2, 20
LISTED = 3  # names in a sentence
COLUMNS = ("mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk", "ess_tail", "r_hat")
REPARAMETRISE = "Reparametrise or use a stronger prior."
# A limit that was passed: how bad, the sentence, what to do.
Finding = tuple[Verdict, str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Where `caution` and `bad` begin; the reason of each default stands beside its constant.

    ESS is short below the larger of `ess_per_chain` × chains and `ess_total`. `tree_depth` is the depth that counts as
    the limit where the sampler did not say.
    """

    r_hat: float = R_HAT
    r_hat_bad: float = R_HAT_BAD
    ess_per_chain: float = ESS_PER_CHAIN
    ess_total: float = ESS_TOTAL
    ess_bad: float = ESS_BAD
    e_bfmi: float = E_BFMI
    divergences: int = DIVERGENCES
    divergence_share_bad: float = DIVERGENCE_SHARE_BAD
    max_depth_share: float = MAX_DEPTH_SHARE
    tree_depth: int = TREE_DEPTH
    acceptance: float = ACCEPTANCE

    def __post_init__(self) -> None:
        for name, value in ((f.name, getattr(self, f.name)) for f in fields(self)):
            if not (np.isfinite(value) and value >= 0):
                raise DataError(f"`{name}` must be finite and at least 0; got {value}.")
        if not 1 < self.r_hat <= self.r_hat_bad:
            raise DataError(f"`r_hat` must be above 1, `r_hat_bad` not below it; got {self.r_hat}, {self.r_hat_bad}.")

    def ess_needed(self, chains: int) -> float:
        """Return the ESS that so many chains must have together."""
        return max(self.ess_per_chain * chains, self.ess_total)


@dataclass(frozen=True, slots=True, eq=False)
class Diagnosis:
    """The verdict on a set of draws, and the figures behind it.

    Parameters
    ----------
    verdict, reasons, next_steps
        `good`, `caution` or `bad`; the sentences that explain it, and what to do, weightiest first.
    notes
        What was not judged, or only in part, and why.
    chains, draws
        Number of chains, and of draws in each.
    divergences, max_depth_share
        Number of divergent transitions; share of transitions at the tree-depth limit. None if not recorded.
    e_bfmi, acceptance
        (chains,) E-BFMI and mean acceptance rate of each chain. None if not recorded.
    constant
        Parameters that never vary, such as the weights of a reference class; they are not in the table.
    thresholds
        The limits that applied.
    table
        One row a scalar parameter, with COLUMNS; nan if not all its draws are finite. `ess_tail` is of the 5 % and
        95 % quantiles, that of `az.summary` by default of the 11 % and 89 % quantiles.
    """

    verdict: Verdict
    reasons: tuple[str, ...]
    next_steps: tuple[str, ...]
    notes: tuple[str, ...]
    chains: int
    draws: int
    divergences: int | None
    max_depth_share: float | None
    e_bfmi: Floats | None
    acceptance: Floats | None
    constant: tuple[str, ...]
    thresholds: Thresholds
    table: "pd.DataFrame" = field(repr=False)

    def worst(self, n: int = 5) -> "pd.DataFrame":
        """Return the rows of the n worst parameters, worst first: furthest past the limit of R-hat or ESS.

        Of parameters with the same draws, such as Sigma[a, b] and Sigma[b, a], the first stands for both.
        """
        rows = self.table[~(self.table.duplicated() & self.table["mean"].notna())]
        excess = (rows["r_hat"] - 1) / (self.thresholds.r_hat - 1)
        shortfall = self.thresholds.ess_needed(self.chains) / rows[["ess_bulk", "ess_tail"]].min(axis=1)
        score = excess.combine(shortfall, max).fillna(np.inf)
        return rows.loc[score.sort_values(ascending=False, kind="stable").index[:n]]


def diagnose(tree: "xr.DataTree", *, thresholds: Thresholds | None = None) -> Diagnosis:
    """Judge the draws of a posterior.

    Parameters
    ----------
    tree
        Groups `posterior` and, from a sampler, `sample_stats` with PyMC's names; what was not recorded is not judged,
        so independent draws go by R-hat and ESS alone. The posterior's attribute `incomplete` marks an interrupted run.
    thresholds
        Limits of your own; None for the defaults.
    """
    limits = Thresholds() if thresholds is None else thresholds
    groups = getattr(tree, "children", {})
    if "posterior" not in groups:
        raise DataError(f"`tree` must have a group 'posterior'; got the groups {sorted(groups)}. Fit the model first.")
    posterior = tree["posterior"].to_dataset()
    draws_of = scalars(posterior)
    chains, draws = next(iter(draws_of.values())).shape
    if chains < 1 or draws < FEWEST_DRAWS:
        raise DataError(f"Diagnostics need a chain of {FEWEST_DRAWS} draws; got {chains} of {draws}. Sample more.")
    table, constant = _measure(draws_of)
    findings = [*_broken(draws_of, table, posterior["chain"].to_numpy())]
    notes = [f"Left out, because constant: {_some(constant)}."] if constant else []
    # netCDF has no booleans: the mark may come back as 1 or as text.
    if str(posterior.attrs.get("incomplete", False)).lower() in {"true", "1"}:
        stopped = f"Sampling was interrupted, with {draws} draws per chain."
        findings.append(("caution", stopped, ("Sample again, to the end.",)))
    stats = tree["sample_stats"].to_dataset() if "sample_stats" in groups else None
    figures = _sampler_figures(stats, limits)
    lone = "One chain cannot show disagreement between chains: R-hat compares its two halves."
    if stats is None:
        check = "Check that all chains were drawn from one posterior, after their warm-up."
        findings += _mixing(table, chains, draws, check, limits)
        notes.append("There is no `sample_stats`: R-hat and ESS alone were judged.")
        notes += [lone] if chains == 1 else []
    else:
        tune = int((posterior.attrs | stats.attrs).get("tuning_steps", 0))
        warm_up = f"Warm up longer: tune={2 * tune}." if tune else "Warm up longer: double `tune`."
        findings += _mixing(table, chains, draws, warm_up, limits)
        findings += _sampling(figures, stats, warm_up, limits)
        findings += [("caution", lone, ("Sample at least 4 chains: chains=4.",))] if chains == 1 else []
        if absent := [name.replace("_", " ") for name, figure in figures.items() if figure is None]:
            notes.append(f"Not judged, because not in `sample_stats`: {', '.join(absent)}.")
    findings.sort(key=lambda finding: -VERDICTS.index(finding[0]))
    return Diagnosis(
        verdict=findings[0][0] if findings else "good",
        reasons=tuple(reason for _, reason, _ in findings) or (_praise(table, chains, draws, limits),),
        # Several findings may ask for the same: say it once.
        next_steps=tuple(dict.fromkeys(s for *_, steps in findings for s in steps)) or ("Use the draws as they are.",),
        notes=tuple(notes),
        chains=chains,
        draws=draws,
        constant=constant,
        thresholds=limits,
        table=table,
        **figures,
    )


def scalars(dataset: "xr.Dataset") -> dict[str, Floats]:
    """Return the draws (chain, draw) of every scalar by its label, such as `mu[setosa, petal width (cm)]`.

    Labels are made of the coords in the order of the variable's dims; a dim without coords is numbered from 0.
    """
    labelled: dict[str, Floats] = {}
    for name, variable in dataset.data_vars.items():
        if not {"chain", "draw"} <= set(variable.dims):
            raise DataError(f"`{name}` must have the dims chain and draw; got {variable.dims}.")
        inner = [dim for dim in variable.dims if dim not in ("chain", "draw")]
        values = np.ascontiguousarray(variable.transpose(*inner, "chain", "draw").to_numpy(), dtype=np.float64)
        coords = [[str(label) for label in variable[dim].to_numpy()] for dim in inner]
        for index, labels in zip(np.ndindex(values.shape[:-2]), product(*coords), strict=True):
            label = f"{name}[{', '.join(labels)}]" if labels else str(name)
            if label in labelled:
                raise DataError(f"Two parameters are called {label!r}. Give the coords of `{name}` distinct names.")
            labelled[label] = values[index]
    if not labelled:
        raise DataError("There are no variables to read draws from; got an empty data set.")
    return labelled


def _measure(draws_of: Mapping[str, Floats]) -> tuple["pd.DataFrame", tuple[str, ...]]:
    """Return the table of all parameters that vary, and the names of those that do not."""
    import pandas as pd

    rows: dict[str, list[float]] = {}
    # Covariances hold the same draws twice, and measuring takes 5 ms a scalar: measure once.
    known: dict[bytes, list[float]] = {}
    for label, x in draws_of.items():
        if not _still(x):
            key = blake2b(x.tobytes(), digest_size=16).digest()
            if key not in known:
                known[key] = _figures(x) if np.isfinite(x).all() else [np.nan] * len(COLUMNS)
            rows[label] = known[key]
    table = pd.DataFrame(list(rows.values()), index=pd.Index(list(rows), name="parameter"), columns=list(COLUMNS))
    return table.astype(float), tuple(label for label in draws_of if label not in rows)


def _still(x: Floats) -> bool:
    """Whether draws are all the same but for rounding; draws that are not finite are not."""
    low, high = x.min() / 2, x.max() / 2  # halved, because ±1e308 are too far apart for a float
    return bool(np.isfinite([low, high]).all() and high - low <= CONSTANT * max(-low, high))


def _figures(x: Floats) -> list[float]:
    """Return the columns of the table for finite draws x (chain, draw) that vary."""
    arviz = _arviz()
    # ArviZ takes a range below 1e-15 for constant, and powers overflow. Scaling by 2ᵉ is exact: ranks keep their ties.
    e = np.frexp(np.abs(x).max())[1]
    u = np.ldexp(x, -e)
    mean, sd = u.mean(), u.std(ddof=1)
    z = (u - mean) / sd
    # Stuck chains have no variance within (R-hat is inf), two-valued draws none once folded (the other part counts).
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = [arviz.mcse(z, method=moment) * sd for moment in ("mean", "sd")]
        r_hat = arviz.rhat(u, method="rank") if len(u) > 1 else _lone_r_hat(u)
        worth = [arviz.ess(u, method="bulk"), arviz.ess(u, method="tail", prob=TAIL), r_hat]
    return [float(figure) for figure in (*np.ldexp([mean, sd, *errors], e), *worth)]


def _lone_r_hat(x: Floats) -> float:
    """Return the rank-normalised R-hat of the two halves of one chain; ArviZ has none for it. nan below 8 draws."""
    from scipy.stats import rankdata

    half = x.shape[1] // 2
    halves = np.vstack([x[:, :half], x[:, -half:]])
    both = np.stack([halves, np.abs(halves - np.median(halves))])
    # z = Φ⁻¹((rank − 3/8)/(S + 1/4)), of the draws and of their distances from the median
    z = ndtri((rankdata(both.reshape(2, -1), axis=1).reshape(both.shape) - 3 / 8) / (halves.size + 1 / 4))
    return float(np.fmax(*_arviz().rhat(z, method="identity")))


def _arviz() -> Any:
    """ArviZ's functions of plain arrays; importing them takes two seconds."""
    from arviz_stats.base import array

    return array.array_stats


def _sampler_figures(stats: "xr.Dataset | None", limits: Thresholds) -> dict[str, Any]:
    """Return what the sampler wrote about itself, None for what it did not."""

    def figure(name: str, of: Callable[[Floats], Any]) -> Any:
        if stats is None or name not in stats or set(stats[name].dims) != {"chain", "draw"}:
            return None
        # A stuck chain has one energy, and 0/0 for E-BFMI; figures that are no numbers count as low below.
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return of(stats[name].transpose("chain", "draw").to_numpy().astype(np.float64))

    share = figure("reached_max_treedepth", lambda a: float(a.mean()))
    if share is None:
        share = figure("tree_depth", lambda a: float((a >= limits.tree_depth).mean()))
    e_bfmi = figure("energy", lambda a: _arviz().bfmi(a))
    return {
        "divergences": figure("diverging", lambda a: int((a > 0).sum())),
        "max_depth_share": share,
        "e_bfmi": e_bfmi,
        "acceptance": figure("acceptance_rate", lambda a: a.mean(axis=1)),
    }


def _broken(draws_of: Mapping[str, Floats], table: "pd.DataFrame", chain_names: Iterable[Any]) -> Iterator[Finding]:
    """Find draws that are no numbers, and chains that do not move."""
    if table.empty:
        reason = f"Nothing varies: all {len(draws_of)} parameters have the same value in every draw."
        yield "bad", reason, ("Check the model and where the chains start.",)
    bad = {label: int(np.sum(~np.isfinite(draws_of[label]))) for label in table.index}
    if lost := [f"{count} of {label}" for label, count in bad.items() if count]:
        yield "bad", f"Draws are nan or infinite: {_some(lost)}.", (REPARAMETRISE,)
    for c, name in enumerate(chain_names):
        if stuck := [label for label in table.index if _still(draws_of[label][c])]:
            reason = f"Chain {name} is stuck: its draws are all the same for {_some(stuck)}."
            yield "bad", reason, ("Start the chains elsewhere, or warm up longer.", REPARAMETRISE)


def _mixing(table: "pd.DataFrame", chains: int, draws: int, remedy: str, limits: Thresholds) -> Iterator[Finding]:
    """Hold R-hat and ESS to their limits; `remedy` is for chains that have not met."""
    needed = limits.ess_needed(chains)
    fewest = float(table[["ess_bulk", "ess_tail"]].min(axis=1).min())
    # ESS grows with the draws, but only of chains that have met.
    factor = MARGIN * needed / fewest if fewest < needed else 2.0
    step = 10 ** np.floor(np.log10(factor * draws)) / 2  # asks for 4000 when 3630 would do
    more = f"Sample more: draws={np.ceil(factor * draws / step) * step:.0f}."
    steps = [more if factor <= MOST else REPARAMETRISE]
    r_hat = table["r_hat"].sort_values(ascending=False, kind="stable")
    if above := [(label, value) for label, value in r_hat.items() if value > limits.r_hat]:
        apart = above[0][1] > limits.r_hat_bad
        steps = [remedy, REPARAMETRISE] if apart else steps
        named = _some(f"{label} {value:.5g}" for label, value in above)
        reason = f"R-hat is above {limits.r_hat:g} for {len(above)} of {len(table)} parameters: {named}."
        yield "bad" if apart else "caution", reason, tuple(steps)
    for column, word in (("ess_bulk", "Bulk"), ("ess_tail", "Tail")):
        ess = table[column].sort_values(kind="stable")
        if short := [(label, value) for label, value in ess.items() if value < needed]:
            named = _some(f"{label} {int(value)}" for label, value in short)
            reason = f"{word} ESS is below {needed:g} for {len(short)} of {len(table)} parameters: {named}."
            yield "bad" if short[0][1] < limits.ess_bad else "caution", reason, tuple(steps)


def _sampling(figures: Mapping[str, Any], stats: "xr.Dataset", warm_up: str, limits: Thresholds) -> Iterator[Finding]:
    """Hold the sampler's figures to their limits."""
    acceptance = figures["acceptance"]
    # The mean acceptance comes out near its target, so it tells whether .95 was tried already.
    raise_target = f"Raise target_accept to {0.95 if acceptance is None or acceptance.mean() < 0.93 else 0.99}."
    divergences = figures["divergences"] or 0
    if divergences > limits.divergences:
        share, most = divergences / stats["diverging"].size, limits.divergence_share_bad
        reason = (
            f"{divergences} transitions diverged (limit {limits.divergences}), {100 * share:.2f} % "
            f"(bad above {100 * most:.2f} %)."
        )
        yield "bad" if share > most else "caution", reason, (raise_target, REPARAMETRISE)
    share = figures["max_depth_share"] or 0.0
    if share > limits.max_depth_share:
        most = 100 * limits.max_depth_share
        reason = f"{100 * share:.1f} % of the transitions reached the tree-depth limit (limit {most:.1f} %)."
        yield "caution", reason, ("Raise max_treedepth by 2.", REPARAMETRISE)
    for name, word, steps in (
        ("e_bfmi", "E-BFMI", (REPARAMETRISE,)),
        ("acceptance", "The acceptance rate", (warm_up, raise_target)),
    ):
        values, limit = figures[name], getattr(limits, name)
        # `not >=`, so that nan counts as low.
        if values is not None and (low := [i for i, value in enumerate(values) if not value >= limit]):
            named = _some(f"chain {stats['chain'].to_numpy()[i]} {values[i]:.2g}" for i in low)
            yield "caution", f"{word} is below {limit:g}: {named}.", steps


def _praise(table: "pd.DataFrame", chains: int, draws: int, limits: Thresholds) -> str:
    r_hat, ess = table["r_hat"], table[["ess_bulk", "ess_tail"]].min(axis=1)
    return (
        f"R-hat is at most {r_hat.max():.5g} ({r_hat.idxmax()}; limit {limits.r_hat:g}) and ESS at least "
        f"{int(ess.min())} ({ess.idxmin()}; {limits.ess_needed(chains):g} needed) over "
        f"{len(table)} parameters, from {chains} × {draws} draws."
    )


def _some(names: Iterable[str]) -> str:
    """List the first few names, and count the rest."""
    names = list(names)
    rest = len(names) - LISTED
    return ", ".join(names[:LISTED]) + (f" and {rest} more" if rest > 0 else "")
