"""Convergence of a sampler: traces with ranks, energy, and the growth of the effective number of draws."""

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
ESS_POINTS = 15  # points of an ESS curve


@styled
def plot_traces(tree: "xr.DataTree", *, parameters: Sequence[str] | None = None, most: int = 4) -> Plot:
    """Show the draws in their order, and the histogram of each chain's ranks among the draws of all chains.

    A good trace is noise without drift, the same for all chains. Ranks are uniform if all chains sample the same
    distribution: a line that leaves the grey band shows a chain that samples another one.

    Parameters
    ----------
    tree
        Group `posterior`.
    parameters
        Labels such as `w[glu]`, all of which are shown; None for the worst by R-hat and ESS.
    most
        How many of these at most.
    """
    draws, chosen, left_out, table = _select_parameters(tree, parameters, most)
    figure, grid = new_figure(0.7 + 1.35 * len(chosen), len(chosen), 2, width_ratios=[1.5, 1])
    chains = 0
    uneven = []
    for (trace, ranks), label in zip(grid, chosen, strict=True):
        x = draws[label]
        chains, n = x.shape
        draw_index = np.unique(np.linspace(0, n - 1, min(n, TRACE_POINTS)).astype(int))
        edges, counts, low, high = _count_ranks(x)
        ranks.axhspan(low, high, color=LIGHT, linewidth=0)
        ranks.axhline(x.shape[1] / RANK_BINS, color=GREY, linewidth=0.8)
        for c in range(chains):
            color = CLASS_COLORS[c % len(CLASS_COLORS)]
            trace.plot(draw_index, x[c, draw_index], color=color, linewidth=0.5, alpha=0.8)
            ranks.stairs(counts[c], edges, color=color, linewidth=1.1)
        if ((counts < low) | (counts > high)).any():
            uneven.append(label)
        trace.set_title(labels([label], 60, inches=3.6)[0], fontsize=FONT)
        trace.margins(x=0)
        diagnostics = table.loc[label]
        ranks.set_title(f"R-hat {diagnostics['r_hat']:.3f}, ESS {diagnostics['ess_bulk']:.0f}", fontsize=FONT)
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
    evenness = f"ranks are uneven for {listing(uneven)}" if uneven else "all ranks are even"
    largest_r_hat = float(table.loc[chosen, "r_hat"].max())
    return Plot(
        figure, caption, f"Traces and ranks of {listing(chosen)}: {evenness}, R-hat is at most {largest_r_hat:.3f}."
    )


@styled
def plot_energy(tree: "xr.DataTree") -> Plot:
    """Show the distributions of the energy and of its change in one transition.

    If that of the change is much narrower, the sampler explores the posterior's tails slowly and may miss them; E-BFMI,
    the ratio of both variances, is then below 0.3.

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
    """
    from arviz_stats.base import array

    arviz: Any = array.array_stats
    draws, chosen, left_out, _ = _select_parameters(tree, parameters, most)
    chains, n = draws[chosen[0]].shape
    lengths = np.unique(np.linspace(n / ESS_POINTS, n, ESS_POINTS).astype(int))
    lengths = lengths[lengths >= 8]  # ArviZ halves chains, and wants four draws of each half
    if len(lengths) < 2:
        raise DataError(f"`tree` must have at least 16 draws a chain to see them grow; got {n}.")
    ess_needed = Thresholds().ess_needed(chains)
    figure, [panels] = new_figure(3.0, 1, 2, sharey=True)
    final_ess = []
    for axes, kind in zip(panels, ("bulk", "tail"), strict=True):
        options = {} if kind == "bulk" else {"prob": TAIL}
        for i, label in enumerate(chosen):
            x = draws[label]
            x = (x - x.mean()) / x.std()
            ess = [float(arviz.ess(x[:, :length], method=kind, **options)) for length in lengths]
            final_ess.append(ess[-1])
            axes.plot(lengths * chains, ess, "o-", color=CLASS_COLORS[i % len(CLASS_COLORS)], markersize=3)
        axes.axhline(ess_needed, color=VERMILLION, linestyle="--", linewidth=1.1)
        axes.set_title(f"{kind}: {'the middle' if kind == 'bulk' else 'the 5 % and 95 % quantiles'}", fontsize=FONT)
        axes.set_xlabel("draws of all chains")
        axes.set_ylim(bottom=0)
        axes.locator_params(axis="x", nbins=5)
    panels[0].set_ylabel("effective draws")
    handles = [Line2D([], [], color=CLASS_COLORS[i % len(CLASS_COLORS)], marker="o") for i in range(len(chosen))]
    handles.append(Line2D([], [], color=VERMILLION, linestyle="--"))
    legend(figure, handles, [*labels(chosen, 32), f"needed: {ess_needed:g}"])
    note(figure, left_out)
    caption = (
        "Effective draws against draws; lines should rise steadily and end above the dashed one. A line that bends "
        "down tells of a chain that found something new late."
    )
    caption += f" {left_out}." if left_out else ""
    alt = f"ESS of {listing(chosen)} as draws grow: at the end at least {min(final_ess):.0f}, {ess_needed:g} needed."
    return Plot(figure, caption, alt)


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


def _count_ranks(x: Floats) -> tuple[Floats, Floats, float, float]:
    """Return bin edges, counts (chains, bins) of ranks, and the band that they lie in if the chains agree.

    The count of a bin is binomial with n draws and p = 1/bins. Ranks are taken among all chains, which lowers its
    variance by 1 − 1/chains; autocorrelation raises it: n p (1 − p) (1 − 1/chains) · S/ESS. The ESS is the sum of those
    of single chains: the ESS of all chains together is small where chains disagree, and would widen the band.
    """
    from arviz_stats.base import array

    arviz: Any = array.array_stats
    z = (x - x.mean()) / x.std()
    # A chain that is stuck has no ESS of its own, and is shown as one.
    chain_ess = [float(arviz.ess(chain[None], method="bulk")) if np.ptp(chain) else 1.0 for chain in z]
    chains, n = x.shape
    ranks = rankdata(x).reshape(x.shape)
    edges = np.linspace(0.5, x.size + 0.5, RANK_BINS + 1)
    counts = np.array([np.histogram(chain, bins=edges)[0] for chain in ranks], dtype=np.float64)
    p = 1 / RANK_BINS
    between_chains = max(1 - 1 / chains, 1 / n)
    sd = np.sqrt(n * p * (1 - p) * between_chains * max(1.0, x.size / np.nansum(chain_ess)))
    # Each of chains × bins bars has its part of the false alarms.
    half_width = ndtri(1 - FALSE_ALARM / (2 * chains * RANK_BINS)) * sd
    return edges, counts, max(0.0, n * p - half_width), n * p + half_width
