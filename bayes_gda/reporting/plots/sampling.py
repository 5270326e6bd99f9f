"""How a sampler did: traces with ranks, energy, and effective draws as they grow."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D
from scipy.special import ndtri
from scipy.stats import rankdata

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.methods.diagnostics import E_BFMI, TAIL, Thresholds, diagnose
from bayes_gda.reporting.plots.posteriors import Draws, read_draws
from bayes_gda.reporting.plots.style import (
    BLUE,
    CLASS_COLORS,
    FONT,
    GREY,
    LIGHT,
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
RANK_BINS = 20  # ArviZ's and Vehtari et al.'s choice
# Chance that any bar of a panel leaves its band, if the chains have met.
FALSE_ALARM = 0.05
PARTS = 15  # points of an ESS curve


@styled
def plot_traces(tree: "xr.DataTree", *, parameters: Sequence[str] | None = None, most: int = 4) -> Plot:
    """Show draws in their order, and how the ranks of each chain are spread among all chains.

    A good trace is noise without drift, the same for all chains. Ranks are even if the chains explore the same
    posterior: lines that leave the grey band belong to a chain that lives elsewhere.

    Parameters
    ----------
    tree
        Group `posterior`.
    parameters
        Labels such as `w[glu]`, all of which are shown; None for the worst by R-hat and ESS.
    most
        How many of these at most.
    """
    draws, chosen, left_out, table = _worst(tree, parameters, most)
    figure, grid = new_figure(0.7 + 1.35 * len(chosen), len(chosen), 2, width_ratios=[1.5, 1])
    chains = 0
    outside = []
    for (trace, ranks), label in zip(grid, chosen, strict=True):
        x = draws[label]
        chains, n = x.shape
        every = np.unique(np.linspace(0, n - 1, min(n, TRACE_POINTS)).astype(int))
        edges, counts, low, high = _rank_counts(x)
        ranks.axhspan(low, high, color=LIGHT, linewidth=0)
        ranks.axhline(x.shape[1] / RANK_BINS, color=GREY, linewidth=0.8)
        for c in range(chains):
            color = CLASS_COLORS[c % len(CLASS_COLORS)]
            trace.plot(every, x[c, every], color=color, linewidth=0.5, alpha=0.8)
            ranks.stairs(counts[c], edges, color=color, linewidth=1.1)
        if ((counts < low) | (counts > high)).any():
            outside.append(label)
        trace.set_title(labels([label], 60, inches=3.6)[0], fontsize=FONT)
        trace.margins(x=0)
        figures = table.loc[label]
        ranks.set_title(f"R-hat {figures['r_hat']:.3f}, ESS {figures['ess_bulk']:.0f}", fontsize=FONT)
        ranks.set_ylim(bottom=0)
        ranks.margins(x=0)
        for axes in (trace, ranks):
            axes.locator_params(axis="y", nbins=4)
            axes.tick_params(labelbottom=label == chosen[-1])
    grid[-1, 0].set_xlabel("draw")
    grid[-1, 1].set_xlabel("rank among the draws of all chains")
    handles = [Line2D([], [], color=CLASS_COLORS[c % len(CLASS_COLORS)]) for c in range(chains)]
    legend(figure, handles, [f"chain {c + 1}" for c in range(chains)])
    note(figure, left_out)
    caption = (
        "Left, draws in their order: a good chain is noise without drift. Right, how often draws of a chain have each "
        "rank: lines within the grey band mean that the chains explore the same posterior."
    )
    caption += f" {left_out}." if left_out else ""
    verdict = f"ranks are uneven for {listing(outside)}" if outside else "all ranks are even"
    worst = float(table.loc[chosen, "r_hat"].max())
    return Plot(figure, caption, f"Traces and ranks of {listing(chosen)}: {verdict}, R-hat is at most {worst:.3f}.")


@styled
def plot_energy(tree: "xr.DataTree") -> Plot:
    """Show how the energy is spread, and how far one transition moves it.

    If the transitions' line is much narrower, the sampler crosses the posterior's tails slowly and may miss them;
    E-BFMI below 0.3 says so in a number.

    Parameters
    ----------
    tree
        Group `sample_stats` with `energy`.
    """
    groups = getattr(tree, "children", {})
    stats = tree["sample_stats"].to_dataset() if "sample_stats" in groups else None
    if stats is None or "energy" not in stats:
        raise DataError("`tree` must have `energy` in the group sample_stats; independent draws have none.")
    from arviz_stats.base import array

    arviz: Any = array.array_stats
    energy = stats["energy"].transpose("chain", "draw").to_numpy().astype(np.float64)
    if energy.shape[1] < 3 or not np.isfinite(energy).all() or not np.ptp(energy, axis=1).all():
        raise DataError(f"`energy` must vary and be finite in every chain; got shape {energy.shape}.")
    e_bfmi = np.atleast_1d(arviz.bfmi(energy))
    figure, [[axes]] = new_figure(2.7)
    handles = []
    for values, color, dashes in (
        ((energy - energy.mean(axis=1, keepdims=True)).ravel(), BLUE, "-"),
        (np.diff(energy, axis=1).ravel(), ORANGE, (0, (4, 2))),
    ):
        x, density, _ = arviz.kde(values)
        axes.fill_between(x, density, color=color, alpha=0.2, linewidth=0)
        handles += axes.plot(x, density, color=color, linestyle=dashes)
    axes.set(xlabel="energy, less its mean", ylabel="density")
    axes.set_ylim(bottom=0)
    legend(figure, handles, ["energy of the draws", "change in one transition"])
    shown = ", ".join(f"{value:.3f}" for value in e_bfmi[:8]) + (" …" if len(e_bfmi) > 8 else "")
    note(figure, f"E-BFMI of the chains: {shown} (good from {E_BFMI:g})")
    verdict = "good" if e_bfmi.min() >= E_BFMI else "too low"
    caption = (
        "Energy of the draws and its change in one transition; if the second is much narrower, the sampler crosses the "
        f"tails slowly. E-BFMI is at least {e_bfmi.min():.3f}, which is {verdict} (limit {E_BFMI:g})."
    )
    return Plot(figure, caption, f"Energy plot: E-BFMI is at least {e_bfmi.min():.3f}, limit {E_BFMI:g}.")


@styled
def plot_ess(tree: "xr.DataTree", *, parameters: Sequence[str] | None = None, most: int = 4) -> Plot:
    """Show how the effective number of draws grows with the draws.

    Lines should rise steadily past the dashed one. A line that levels off or falls shows a chain that found something
    new late.

    Parameters
    ----------
    tree
        Group `posterior`.
    parameters
        Labels such as `w[glu]`, all of which are shown; None for the worst by R-hat and ESS.
    most
        How many of these at most.
    """
    from arviz_stats.base import array

    arviz: Any = array.array_stats
    draws, chosen, left_out, _ = _worst(tree, parameters, most)
    chains, n = draws[chosen[0]].shape
    parts = np.unique(np.linspace(n / PARTS, n, PARTS).astype(int))
    parts = parts[parts >= 8]  # ArviZ halves chains, and wants four draws of each half
    if len(parts) < 2:
        raise DataError(f"`tree` must have at least 16 draws a chain to see them grow; got {n}.")
    needed = Thresholds().ess_needed(chains)
    figure, [panels] = new_figure(3.0, 1, 2, sharey=True)
    last = []
    for axes, kind in zip(panels, ("bulk", "tail"), strict=True):
        options = {} if kind == "bulk" else {"prob": TAIL}
        for i, label in enumerate(chosen):
            x = draws[label]
            x = (x - x.mean()) / x.std()
            worth = [float(arviz.ess(x[:, :part], method=kind, **options)) for part in parts]
            last.append(worth[-1])
            axes.plot(parts * chains, worth, "o-", color=CLASS_COLORS[i % len(CLASS_COLORS)], markersize=3)
        axes.axhline(needed, color=VERMILLION, linestyle="--", linewidth=1.1)
        axes.set_title(f"{kind}: {'the middle' if kind == 'bulk' else 'the 5 % and 95 % quantiles'}", fontsize=FONT)
        axes.set_xlabel("draws of all chains")
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="x", nbins=5)
    panels[0].set_ylabel("effective draws")
    handles = [Line2D([], [], color=CLASS_COLORS[i % len(CLASS_COLORS)], marker="o") for i in range(len(chosen))]
    handles.append(Line2D([], [], color=VERMILLION, linestyle="--"))
    legend(figure, handles, [*labels(chosen, 32), f"needed: {needed:g}"])
    note(figure, left_out)
    caption = (
        "Effective draws against draws; lines should rise steadily and end above the dashed one. A line that bends "
        "down tells of a chain that found something new late."
    )
    caption += f" {left_out}." if left_out else ""
    alt = f"ESS of {listing(chosen)} as draws grow: at the end at least {min(last):.0f}, {needed:g} needed."
    return Plot(figure, caption, alt)


def _worst(
    tree: "xr.DataTree", parameters: Sequence[str] | None, most: int
) -> tuple[dict[str, Floats], list[str], str, Any]:
    """Return draws by label, the labels to show, how they were chosen, and the table of diagnostics."""
    if most < 1:
        raise DataError(f"`most` must be at least 1; got {most}.")
    diagnosis = diagnose(tree)
    read: Draws = read_draws({"draws": tree}, parameters)
    by = read.by_method["draws"]
    if parameters is not None:
        chosen, left_out = list(by), ""
    else:
        chosen = [label for label in diagnosis.worst(len(by)).index if label in by][:most]
        left_out = f"{len(chosen)} of {len(by)} parameters shown, the worst" if len(chosen) < len(by) else ""
    absent = [label for label in chosen if label not in diagnosis.table.index or not np.isfinite(by[label]).all()]
    if absent or not chosen:
        raise DataError(f"`parameters` must vary and be finite; got {[plain(label) for label in absent]}.")
    return by, chosen, left_out, diagnosis.table


def _rank_counts(x: Floats) -> tuple[Floats, Floats, float, float]:
    """Return bin edges, counts (chains, bins) of ranks, and the band that they lie in if the chains agree.

    A bar counts n draws with chance p = 1/bins each, less what the chain itself adds to the ranks; draws that hang
    together have the variance of fewer ones: n p (1 − p) (1 − 1/chains) · S/ESS. The ESS is that of each chain by
    itself, summed: that of all together is small where chains disagree, and would hide it.
    """
    from arviz_stats.base import array

    arviz: Any = array.array_stats
    z = (x - x.mean()) / x.std()
    # A chain that is stuck has no ESS of its own, and is shown as one.
    own = [float(arviz.ess(chain[None], method="bulk")) if np.ptp(chain) else 1.0 for chain in z]
    chains, n = x.shape
    ranks = rankdata(x).reshape(x.shape)
    edges = np.linspace(0.5, x.size + 0.5, RANK_BINS + 1)
    counts = np.array([np.histogram(chain, bins=edges)[0] for chain in ranks], dtype=np.float64)
    p = 1 / RANK_BINS
    share = max(1 - 1 / chains, 1 / n)
    sd = np.sqrt(n * p * (1 - p) * share * max(1.0, x.size / np.nansum(own)))
    # Each of chains × bins bars has its part of the false alarms.
    width = ndtri(1 - FALSE_ALARM / (2 * chains * RANK_BINS)) * sd
    return edges, counts, max(0.0, n * p - width), n * p + width
