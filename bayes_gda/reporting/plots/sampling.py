"""Convergence of a sampler, drawn by ArviZ: traces with ranks, energy, and the growth of the effective number of draws.

ArviZ computes and draws on our axes (`arviz_axes`).
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.methods.diagnostics import E_BFMI, TAIL, Thresholds, diagnose
from bayes_gda.reporting.plots.arviz_axes import KEEP_AXIS, collect, dataset_of, tree_of
from bayes_gda.reporting.plots.posteriors import Draws, read_draws
from bayes_gda.reporting.plots.style import (
    BLUE,
    CLASS_COLORS,
    FONT,
    ORANGE,
    VERMILLION,
    Plot,
    labels,
    legend,
    listing,
    new_figure,
    note,
    plain,
    styled,
)

if TYPE_CHECKING:
    import xarray as xr

# Points of a trace: as many as its panel has pixels.
TRACE_POINTS = 400
# Level of the test that the ranks of all chains are uniform: ArviZ's own.
ALARM = 0.01
# Draws of a chain whose ranks are compared, at the least: fewer say nothing.
FEWEST_RANKS = 25
ESS_POINTS = 15  # points of an ESS curve


@styled
def plot_traces(tree: "xr.DataTree", *, parameters: Sequence[str] | None = None, most: int = 4) -> Plot:
    """Show the draws in their order, and the ranks of each chain's draws among those of all chains.

    A good trace is noise without drift, the same for all chains. Ranks are uniform if all chains sample the same
    distribution; lines are their cumulative distribution less the uniform one, of draws thinned to nearly independent
    ones, and black points mark ranks that a test of uniformity finds improbable.

    Parameters
    ----------
    tree
        Group `posterior`.
    parameters
        Labels such as `w[glu]`, all of which are shown; None for the worst by R-hat and ESS.
    most
        How many of these at most.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_traces
    >>> from bayes_gda import sample
    >>> from bayes_gda.models import lda
    >>> model = lda.build(load_example("lda-mixture"))
    >>> tree = sample(model, draws=150, chains=2, random_seed=1, progress=False)
    >>> plot_traces(tree).alt.split()[0]
    'Traces'
    """
    import arviz_plots as azp

    draws, chosen, left_out, table = _select_parameters(tree, parameters, most)
    chains, n = draws[chosen[0]].shape
    thinned = np.unique(np.linspace(0, n - 1, min(n, TRACE_POINTS)).astype(int))
    names = [f"p{i}" for i in range(len(chosen))]
    whole = dataset_of({name: draws[label] for name, label in zip(names, chosen, strict=True)})
    figure, grid = new_figure(0.7 + 1.35 * len(chosen), len(chosen), 2, width_ratios=[1.5, 1])
    aes = {"color": ["chain"], "overlay": ["chain"]} if chains > 1 else {}
    quiet: dict[Any, Any] = {"title": False, "xlabel": False}
    left = collect(figure, dict(zip(names, grid[:, 0], strict=True)), whole, aes)
    traces: dict[Any, Any] = {"trace": {"width": 0.5, "alpha": 0.8}, "divergence": False, "ticklabels": False}
    azp.plot_trace(tree_of(whole.isel(draw=thinned)), plot_collection=left, visuals=traces | quiet)
    right = collect(figure, dict(zip(names, grid[:, 1], strict=True)), whole, aes)
    uneven = []
    if chains > 1:
        drawn: dict[Any, Any] = {"ecdf_lines": {"width": 1.1}} | quiet | KEEP_AXIS
        independent = whole.isel(draw=slice(None, None, _thinning([draws[label] for label in chosen])))
        azp.plot_rank(tree_of(independent), plot_collection=right, thin=False, envelope_prob=1 - ALARM, visuals=drawn)
        apart = _uneven(independent)
        uneven = [label for name, label in zip(names, chosen, strict=True) if name in apart]
    for (trace, ranks), label in zip(grid, chosen, strict=True):
        for text in list(ranks.texts):
            text.remove()  # ArviZ's p-value, which would lie on the lines
        diagnostics = table.loc[label]
        trace.set_title(labels([label], 60, inches=3.6)[0], fontsize=FONT)
        ranks.set_title(f"R-hat {diagnostics['r_hat']:.3f}, ESS {diagnostics['ess_bulk']:.0f}", fontsize=FONT)
        trace.margins(x=0)
        for axes in (trace, ranks):
            axes.locator_params(axis="y", nbins=4)
            axes.tick_params(labelbottom=label == chosen[-1])
    grid[-1, 0].set_xlabel("draw")
    grid[-1, 1].set_xlabel("rank among the draws of all chains")
    handles = [Line2D([], [], color=CLASS_COLORS[c % len(CLASS_COLORS)]) for c in range(chains)]
    legend(figure, handles, [f"chain {c + 1}" for c in range(chains)])
    note(figure, left_out)
    caption = (
        "Left, draws in their order: a good chain is noise without drift. Right, cumulative ranks of each chain's "
        "draws less the uniform distribution: lines near zero mean that the chains explore the same posterior; black "
        "points mark ranks that are improbable if they do."
    )
    caption += f" {left_out}." if left_out else ""
    evenness = f"ranks are uneven for {listing(uneven)}" if uneven else "all ranks are even"
    largest_r_hat = float(table.loc[chosen, "r_hat"].max())
    return Plot(
        figure, caption, f"Traces and ranks of {listing(chosen)}: {evenness}, R-hat is at most {largest_r_hat:.3f}."
    )


def _thinning(draws: Sequence[Floats]) -> int:
    """Return every how many-th draw is nearly independent, by the ESS of single chains.

    That of all chains together is small where chains disagree, and would thin the disagreement away.
    """
    from arviz_stats.base import array

    arviz: Any = array.array_stats
    steps = [1.0]
    for x in draws:
        z = _standardised(x)
        # A chain that is stuck has no ESS of its own, and is left as it is.
        ess = [float(arviz.ess(chain[None], method="bulk")) for chain in z if np.ptp(chain)]
        steps += [x.shape[1] / np.mean(ess)] if ess else []
    return int(np.ceil(min(max(steps), draws[0].shape[1] / FEWEST_RANKS)))


def _uneven(posterior: "xr.Dataset") -> set[str]:
    """Return the variables whose ranks differ between the chains by ArviZ's test, at ALARM."""
    ranks = posterior.azstats.compute_ranks(dim=["chain", "draw"], relative=True)
    p_values, *_ = ranks.azstats.mchain_uniformity_test(dim=["chain", "draw"])
    return {str(name) for name, p in p_values.items() if float(p) < ALARM}


@styled
def plot_energy(tree: "xr.DataTree") -> Plot:
    """Show the distributions of the energy and of its change in one transition.

    If that of the change is much narrower, the sampler explores the posterior's tails slowly and may miss them; E-BFMI,
    the ratio of both variances, is then below 0.3.

    Parameters
    ----------
    tree
        Group `sample_stats` with `energy`.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_energy
    >>> from bayes_gda import sample
    >>> from bayes_gda.models import lda
    >>> model = lda.build(load_example("lda-mixture"))
    >>> tree = sample(model, draws=150, chains=2, random_seed=1, progress=False)
    >>> plot_energy(tree).alt.split(":")[0]
    'Energy plot'
    """
    import arviz_plots as azp
    import xarray as xr
    from arviz_stats.base import array

    groups = getattr(tree, "children", {})
    stats = tree["sample_stats"].to_dataset() if "sample_stats" in groups else None
    if stats is None or "energy" not in stats:
        raise DataError("`tree` must have `energy` in the group sample_stats; independent draws have none.")
    energy = stats["energy"].transpose("chain", "draw").to_numpy().astype(np.float64)
    if energy.shape[1] < 3 or not np.isfinite(energy).all() or not np.ptp(energy, axis=1).all():
        raise DataError(f"`energy` must vary and be finite in every chain; got shape {energy.shape}.")
    arviz: Any = array.array_stats
    e_bfmi = np.atleast_1d(arviz.bfmi(energy))
    figure, [[axes]] = new_figure(2.7)
    kinds = ["marginal", "transition"]  # ArviZ's names
    both = xr.Dataset({"Energy": (("energy", "draw"), np.zeros((2, 1)))}, coords={"energy": kinds})
    pc = collect(figure, {"Energy": axes}, both, {"color": ["energy"]})
    only = xr.DataTree.from_dict({"sample_stats": dataset_of({"energy": energy})})
    azp.plot_energy(only, show_bfmi=False, plot_collection=pc, visuals={"legend": False, "title": False} | KEEP_AXIS)
    axes.set(xlabel="energy, less its mean", ylabel="density")
    axes.set_ylim(bottom=0)
    handles = [Line2D([], [], color=color) for color in CLASS_COLORS[:2]]
    legend(figure, handles, ["energy of the draws", "change in one transition"])
    e_bfmi_text = ", ".join(f"{value:.3f}" for value in e_bfmi[:8]) + (" …" if len(e_bfmi) > 8 else "")
    note(figure, f"E-BFMI of the chains: {e_bfmi_text} (good from {E_BFMI:g})")
    quality = "good" if e_bfmi.min() >= E_BFMI else "too low"
    caption = (
        "Energy of the draws and its change in one transition; if the second is much narrower, the sampler crosses the "
        f"tails slowly. E-BFMI is at least {e_bfmi.min():.3f}, which is {quality} (limit {E_BFMI:g})."
    )
    return Plot(figure, caption, f"Energy plot: E-BFMI is at least {e_bfmi.min():.3f}, limit {E_BFMI:g}.")


@styled
def plot_ess(tree: "xr.DataTree", *, parameters: Sequence[str] | None = None, most: int = 4) -> Plot:
    """Show how the effective number of draws grows with the number of draws.

    Lines should rise steadily past the dashed one. A line that flattens or falls shows a chain that reached a new part
    of the posterior late.

    Parameters
    ----------
    tree
        Group `posterior`.
    parameters
        Labels such as `w[glu]`, all of which are shown; None for the worst by R-hat and ESS.
    most
        How many of these at most.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_ess
    >>> from bayes_gda import sample
    >>> from bayes_gda.models import lda
    >>> model = lda.build(load_example("lda-mixture"))
    >>> tree = sample(model, draws=150, chains=2, random_seed=1, progress=False)
    >>> plot_ess(tree).alt.split()[0]
    'ESS'
    """
    import arviz_plots as azp

    draws, chosen, left_out, _ = _select_parameters(tree, parameters, most)
    chains, n = draws[chosen[0]].shape
    # ArviZ halves chains, and wants four draws of each half.
    if n < 8 * ESS_POINTS:
        raise DataError(f"`tree` must have at least {8 * ESS_POINTS} draws per chain to see them grow; got {n}.")
    needed = Thresholds().ess_needed(chains)
    columns = min(len(chosen), 4)
    rows = -(-len(chosen) // columns)
    figure, grid = new_figure(0.7 + 2.0 * rows, rows, columns, sharey=True, sharex=True)
    names = [f"p{i}" for i in range(len(chosen))]
    # Per standard deviation: ESS has no units, and ArviZ does not overflow.
    whole = dataset_of({k: _standardised(draws[label]) for k, label in zip(names, chosen, strict=True)})
    pc = collect(figure, dict(zip(names, grid.flat, strict=False)), whole, {})
    drawn: dict[Any, Any] = {"min_ess": {"color": VERMILLION, "linestyle": "--", "width": 1.1}}
    for kind, color in (("bulk", BLUE), ("tail", ORANGE)):
        drawn |= {f"ess_{kind}": {"color": color, "size": 9}, f"ess_{kind}_line": {"color": color, "width": 1.5}}
    drawn |= dict.fromkeys(("title", "xlabel", "ylabel"), False)
    azp.plot_ess_evolution(
        tree_of(whole),
        n_points=ESS_POINTS,
        min_ess=needed,
        plot_collection=pc,
        visuals=drawn,
        stats={"ess_tail": {"prob": TAIL}},
    )
    for axes, label in zip(grid.flat, chosen, strict=False):
        axes.set_title(labels([label], 30, inches=1.6)[0], fontsize=FONT)
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="x", nbins=3)
    for axes in grid.flat[len(chosen) :]:
        axes.set_axis_off()
    for axes in grid[-1]:
        axes.set_xlabel("draws")
    for row in grid:
        row[0].set_ylabel("effective draws")
    handles = [Line2D([], [], color=BLUE, marker="o"), Line2D([], [], color=ORANGE, marker="o")]
    handles.append(Line2D([], [], color=VERMILLION, linestyle="--"))
    legend(figure, handles, ["bulk", "tail (5 % and 95 % quantiles)", f"needed: {needed:g}"])
    note(figure, left_out)
    ends = [line for axes in grid.flat[: len(chosen)] for line in axes.get_lines() if line.get_color() != VERMILLION]
    final = [float(np.asarray(line.get_ydata())[-1]) for line in ends]
    caption = (
        "Effective draws against the draws of all chains; lines should rise steadily and end above the dashed one. A "
        "line that bends down indicates that a chain reached a new region late."
    )
    caption += f" {left_out}." if left_out else ""
    alt = f"ESS of {listing(chosen)} as draws grow: at the end at least {min(final):.0f}, {needed:g} needed."
    return Plot(figure, caption, alt)


def _standardised(x: Floats) -> Floats:
    return np.asarray((x - x.mean()) / x.std())


def _select_parameters(
    tree: "xr.DataTree", parameters: Sequence[str] | None, most: int
) -> tuple[dict[str, Floats], list[str], str, Any]:
    """Return draws by label, the labels to show, a remark how these were chosen, and the table of diagnostics."""
    if most < 1:
        raise DataError(f"`most` must be at least 1; got {most}.")
    diagnosis = diagnose(tree)
    method_draws: Draws = read_draws({"draws": tree}, parameters)
    draws = method_draws.by_method["draws"]
    if parameters is not None:
        chosen, left_out = list(draws), ""
    else:
        chosen = [label for label in diagnosis.worst(len(draws)).index if label in draws][:most]
        left_out = f"{len(chosen)} of {len(draws)} parameters shown, the worst" if len(chosen) < len(draws) else ""
    unusable = [label for label in chosen if label not in diagnosis.table.index or not np.isfinite(draws[label]).all()]
    if unusable or not chosen:
        raise DataError(f"`parameters` must vary and be finite; got {[plain(label) for label in unusable]}.")
    return draws, chosen, left_out, diagnosis.table
