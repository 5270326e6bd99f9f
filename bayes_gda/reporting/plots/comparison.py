"""Comparison of models by leave-one-out, the reliability of that comparison, and sensitivity to the prior."""

import warnings
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from bayes_gda.errors import DataError
from bayes_gda.evaluation.loo import Loo, told_apart
from bayes_gda.evaluation.sensitivity import Sensitivity
from bayes_gda.reporting.plots.arviz_axes import KEEP_AXIS, collect, dataset_of, tree_of
from bayes_gda.reporting.plots.posteriors import read_draws
from bayes_gda.reporting.plots.style import (
    BLUE,
    FONT,
    GREEN,
    GREY,
    MANY_POINTS,
    ORANGE,
    PURPLE,
    VERMILLION,
    Plot,
    counted,
    labels,
    legend,
    listing,
    new_figure,
    note,
    plain,
    row_axis,
    styled,
)

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

BAD_ROWS = 5  # numbered in a k̂ plot
MODELS = 20  # lines of a comparison
# Above 1 the importance ratios have no mean, and no number of draws helps (Vehtari et al. 2024).
INFINITE_MEAN_K = 1.0
DENSITY_STEP = 4  # of the points of ArviZ's densities, 512, which no eye tells apart
SENSITIVE = 12  # parameters, and rows, of a sensitivity plot


@styled
def plot_pareto_k(loo: Loo, *, numbers: Sequence[int] | None = None) -> Plot:
    """Show k̂ of each row's leave-one-out weights, with the limits; drawn by ArviZ.

    Below the dashed line the estimate for a row is reliable. Rows above it change the posterior so much that it
    must be fitted again without them; above 1 no number of draws would help. Crosses are rows that were not refitted.

    Parameters
    ----------
    loo
        From draws; an exact one has no k̂.
    numbers
        What the rows are called; None counts from 0.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_pareto_k
    >>> import numpy as np
    >>> from bayes_gda.evaluation.loo import Loo
    >>> k = np.array([0.1, 0.3, 0.9, 0.2])
    >>> loo = Loo("conditional", np.zeros(4), np.ones(4), k, 0.7)
    >>> plot_pareto_k(loo).alt
    'k̂ of 4 rows: largest 0.90, 1 above 0.70, 1 of them unreliable.'
    """
    import arviz_plots as azp
    import xarray as xr

    if loo.pareto_k is None or loo.threshold is None:
        raise DataError("`loo` must be from draws to have k̂; got an exact one, which needs none.")
    k, n = loo.pareto_k, loo.n
    # A row that is not moved at all has k̂ of −inf, one out of reach +inf: both stand at the edge.
    finite = k[np.isfinite(k)]
    low = min(0.0, float(finite.min(initial=0.0)))
    high = max(INFINITE_MEAN_K, float(finite.max(initial=INFINITE_MEAN_K)))
    drawn_k = np.clip(np.nan_to_num(k, nan=high, posinf=high, neginf=low), low, high)
    figure, [[axes]] = new_figure(3.0)
    row = np.arange(n)
    bad = np.isin(np.arange(len(k)), loo.bad)
    pareto_k = xr.DataArray(drawn_k, dims="row", name="pareto_k")
    # All that ArviZ reads of its own leave-one-out results.
    elpd = SimpleNamespace(pareto_k=pareto_k, good_k=loo.threshold)
    azp.plot_khat(
        elpd,
        plot_collection=collect(figure, {"pareto_k": axes}, pareto_k.to_dataset(), {}),
        visuals={
            "khat": {"color": BLUE, "size": 9, "alpha": 0.8, "width": 0, "rasterized": n > MANY_POINTS},
            "xlabel": False,
            "ylabel": False,
        },
    )
    axes.plot(row[bad], drawn_k[bad], "X", color=VERMILLION, markersize=6, markeredgewidth=0)
    axes.axhline(loo.threshold, color=ORANGE, linestyle="--", linewidth=1.2)
    axes.axhline(INFINITE_MEAN_K, color=VERMILLION, linestyle=":", linewidth=1.2)
    known = loo.row_numbers if numbers is None else numbers
    span = high - low
    occupied = [(float(i), float(drawn_k[i])) for i in np.flatnonzero(bad)]
    for i in loo.bad[:BAD_ROWS]:
        # Beside the point where no other point or label is: the worst row is named first, one in a crowd goes without.
        for side in (1, -1):
            middle = i + side * 0.045 * n
            room = all(abs(x - middle) > 0.04 * n or abs(v - drawn_k[i]) > 0.1 * span for x, v in occupied)
            if room and 0.02 * n < middle < 0.97 * n:
                axes.annotate(
                    str(i if known is None else known[i]),
                    (row[i], drawn_k[i]),
                    xytext=(side * 5, 0),
                    textcoords="offset points",
                    ha="left" if side > 0 else "right",
                    va="center",
                )
                occupied.append((middle, float(drawn_k[i])))
                break
    axes.set(xlabel="rows in their order", ylabel="Pareto k̂", ylim=(low - 0.06 * span, high + 0.06 * span))
    axes.set_xlim(-0.02 * n - 0.5, 1.02 * n)
    handles = [
        Line2D([], [], color=BLUE, marker="o", linestyle="none", markersize=4),
        Line2D([], [], color=VERMILLION, marker="X", linestyle="none", markersize=6),
        Line2D([], [], color=ORANGE, linestyle="--"),
        Line2D([], [], color=VERMILLION, linestyle=":"),
    ]
    names = [f"reliable: {n - loo.n_bad}", f"unreliable: {loo.n_bad}", f"limit {loo.threshold:.2f}", "void above 1"]
    legend(figure, handles, names)
    caption = f"k̂ of each row: points below the dashed line have a reliable leave-one-out estimate. {loo.reason}"
    above = int((~(k < loo.threshold)).sum())
    facts = f"largest {k.max():.2f}, {above} above {loo.threshold:.2f}, {loo.n_bad} of them unreliable"
    return Plot(figure, caption, f"k̂ of {counted(n, 'row')}: {facts}.")


@styled
def plot_models(table: "pd.DataFrame") -> Plot:
    """Show how much worse than the best each model predicts, with two standard errors, and its stacking weight.

    A model whose line reaches zero cannot be distinguished from the best. Stacking weights are those of the mixture of
    models that predicts best.

    Parameters
    ----------
    table
        `ModelComparison.loo`, `.kfold` or `.held_out`; the last has no weights.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_models
    >>> from bayes_gda import BayesianLDA, BayesianQDA, compare_models
    >>> data = load_example("iris")
    >>> models = {"LDA": BayesianLDA().fit(data.X, data.y), "QDA": BayesianQDA().fit(data.X, data.y)}
    >>> compared = compare_models(models, data.X, data.y)
    >>> plot_models(compared.loo).alt
    'Comparison of 2 models: best QDA with a mean log score of -0.052; not distinguishable: QDA, LDA.'
    """
    required = {"family", "difference", "difference_se", "log_score"}
    if not required <= set(table.columns) or not len(table):
        raise DataError(f"`table` must be a score table of compare_models; got the columns {list(table.columns)}.")
    shown = table.head(MODELS)
    position = np.arange(len(shown))
    weights = shown.get("stacking")
    figure, panels = new_figure(
        max(2.0, 1.1 + 0.3 * len(shown)),
        1,
        1 if weights is None else 2,
        sharey=True,
        width_ratios=[1] if weights is None else [2.2, 1],
    )
    axes = panels[0, 0]
    difference = shown["difference"].to_numpy(dtype=float)
    error = np.nan_to_num(shown["difference_se"].to_numpy(dtype=float), posinf=0.0)
    # A model that held a truth impossible is infinitely worse: it stands at the edge, with its reason.
    impossible = ~np.isfinite(difference)
    edge = 1.15 * min(-1.0, float((difference - 2 * error)[~impossible].min(initial=-1.0)))
    generative = (shown["family"] == "generative").to_numpy()
    for mask, color, marker in ((generative, BLUE, "o"), (~generative, ORANGE, "s")):
        finite = mask & ~impossible
        axes.errorbar(
            difference[finite],
            position[finite],
            xerr=2 * error[finite],
            fmt=marker,
            color=color,
            markersize=5,
            elinewidth=1.4,
        )
        axes.plot(np.full((mask & impossible).sum(), edge), position[mask & impossible], "<", color=color, markersize=7)
    axes.axvline(0, color=GREY, linewidth=0.9, linestyle="--")
    row_axis(axes, labels(shown.index))
    axes.set_xlabel("elpd less that of the best model, ± 2 standard errors")
    if weights is not None:
        colors = np.where(generative, BLUE, ORANGE)
        panels[0, 1].barh(position, weights.to_numpy(dtype=float), color=colors, height=0.55)
        panels[0, 1].set(xlabel="stacking weight", xlim=(0, 1.02))
        panels[0, 1].tick_params(axis="y", length=0)
        panels[0, 1].grid(visible=False, axis="y")
    handles, names = [], []
    for present, color, marker, name in (
        (generative.any(), BLUE, "o", "generative"),
        ((~generative).any(), ORANGE, "s", "discriminative"),
        (impossible.any(), GREY, "<", "held a true class impossible: −∞"),
    ):
        if present:
            handles.append(Line2D([], [], color=color, marker=marker, linestyle="none"))
            names.append(name)
    legend(figure, handles, names)
    left_out = f"{len(shown)} of {len(table)} models shown, the best" if len(shown) < len(table) else ""
    note(figure, left_out)
    indistinguishable = [n for n, d, e in zip(shown.index, difference, error, strict=True) if not told_apart(-d, e)]
    caption = (
        "How much worse than the best model each one predicts, in log score summed over rows, with two standard "
        "errors; a model whose line reaches zero, or that is less than 4 below, cannot be distinguished from the best."
    )
    caption += " Stacking weights are those of the best mixture." if weights is not None else ""
    caption += f" {left_out}." if left_out else ""
    alt = (
        f"Comparison of {counted(len(table), 'model')}: best {plain(shown.index[0], 40)} with a mean log score of "
        f"{shown['log_score'].iloc[0]:.3f}; not distinguishable: {listing(indistinguishable, 6)}."
    )
    return Plot(figure, caption, alt)


@styled
def plot_sensitivity(sensitivity: Sensitivity) -> Plot:
    """Show how parameters, and predictions, change if the prior counts for more or less.

    A blue dot right of the dashed line is a parameter that is sensitive to the prior. If the orange dot is there too,
    prior and data disagree; if not, the data are weak. On the right, lines end at the probabilities under both priors.

    Parameters
    ----------
    sensitivity
        From `prior_sensitivity`.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_sensitivity
    >>> from bayes_gda import BayesianLogisticRegression, prior_sensitivity
    >>> model = BayesianLogisticRegression().fit(load_example("lda-mixture"))
    >>> plot_sensitivity(prior_sensitivity(model.posterior_)).alt
    'Prior sensitivity: at most 0.035 (w[x2]), limit 0.05; 0 of 3 parameters above it.'
    """
    table = sensitivity.worst(SENSITIVE)
    rows = sensitivity.predictions
    panels = 1 if rows is None else 2
    figure, [axes] = new_figure(0.9 + 0.24 * max(6, len(table)), 1, panels)
    position = np.arange(len(table))
    prior, likelihood = (table[name].to_numpy(dtype=float) for name in ("prior", "likelihood"))
    axes[0].hlines(position, np.minimum(prior, likelihood), np.maximum(prior, likelihood), color=GREY, linewidth=0.8)
    axes[0].plot(prior, position, "o", color=BLUE, markersize=5)
    axes[0].plot(likelihood, position, "s", color=ORANGE, markersize=4)
    axes[0].axvline(sensitivity.threshold, color=VERMILLION, linestyle="--", linewidth=1.1)
    row_axis(axes[0], labels(table.index, 30 if rows is None else 24))
    axes[0].set_xlim(left=0)
    axes[0].set_xlabel("sensitivity of the parameter")
    low, high = sensitivity.alphas
    omissions = []
    handles = [
        Line2D([], [], color=BLUE, marker="o", linestyle="none"),
        Line2D([], [], color=ORANGE, marker="s", linestyle="none", markersize=4),
        Line2D([], [], color=VERMILLION, linestyle="--"),
    ]
    names = ["to the prior", "to the likelihood", f"limit {sensitivity.threshold:g}"]
    if len(table) < len(sensitivity.parameters):
        omissions.append(f"{len(table)} of {len(sensitivity.parameters)} parameters")
    if rows is not None:
        shown_rows = rows.sort_values("prior", ascending=False, kind="stable").head(SENSITIVE)
        row_position = np.arange(len(shown_rows))
        p, p_weaker, p_stronger = (shown_rows[name].to_numpy(dtype=float) for name in ("probability", "lower", "upper"))
        axes[1].hlines(
            row_position, np.minimum(p_weaker, p_stronger), np.maximum(p_weaker, p_stronger), color=GREY, linewidth=0.9
        )
        axes[1].plot(p, row_position, "D", color="#333333", markersize=3, zorder=4)
        axes[1].plot(p_weaker, row_position, "v", color=GREEN, markersize=5)
        axes[1].plot(p_stronger, row_position, "^", color=PURPLE, markersize=5)
        row_axis(axes[1], [f"row {i}" for i in shown_rows.index])
        axes[1].set_xlabel("probability of its class")
        # Wide enough that changes of a tenth of a point do not look like much.
        middle, half_width = (p.min() + p.max()) / 2, max(0.05, float(np.ptp([*p, *p_weaker, *p_stronger])) * 0.6)
        axes[1].set_xlim(max(-0.02, middle - half_width), min(1.02, middle + half_width))
        axes[1].locator_params(axis="x", nbins=5)
        handles += [
            Line2D([], [], color=color, marker=marker, linestyle="none")
            for color, marker in ((GREEN, "v"), ("#333333", "D"), (PURPLE, "^"))
        ]
        names += [f"prior counts {low:g}×", "as it is", f"prior counts {high:g}×"]
        if len(shown_rows) < len(rows):
            omissions.append(f"{len(shown_rows)} of {len(rows)} rows")
    legend(figure, handles, names)
    left_out = f"{' and '.join(omissions)} shown, the most sensitive" if omissions else ""
    note(figure, left_out)
    caption = (
        "Left, sensitivity of each parameter: right of the dashed line it is sensitive to the prior; if the "
        "likelihood's is too, prior and data disagree. "
    )
    caption += "Right, what probabilities become if the prior counts less or more. " if rows is not None else ""
    caption += f"{left_out}. " if left_out else ""
    to_prior = sensitivity.parameters["prior"]
    alt = (
        f"Prior sensitivity: at most {to_prior.max():.3f} ({plain(to_prior.idxmax(), 40)}), limit "
        f"{sensitivity.threshold:g}; {int((to_prior >= sensitivity.threshold).sum())} of {len(to_prior)} parameters "
        "above it."
    )
    return Plot(figure, caption + sensitivity.reason, alt)


@styled
def plot_power_scaling(tree: "xr.DataTree", sensitivity: Sensitivity, *, most: int = 3) -> Plot:
    """Show the posterior of the most sensitive parameters if the prior, or the likelihood, counts for less or more.

    Lines on top of each other mean that it makes no difference. ArviZ resamples the draws with their weights and draws
    the densities.

    Parameters
    ----------
    tree
        Groups `posterior`, `log_prior` and `log_likelihood`, as for `prior_sensitivity`.
    sensitivity
        What `prior_sensitivity` said of the same draws.
    most
        How many parameters at most.
    """
    import arviz_plots as azp

    table = sensitivity.worst(most)
    draws = read_draws({"draws": tree}, list(table.index))
    names = {f"p{i}": label for i, label in enumerate(table.index)}
    posterior = dataset_of({name: draws.by_method["draws"][label] for name, label in names.items()})
    groups = {name: tree[name].to_dataset() for name in ("log_prior", "log_likelihood")}
    figure, grid = new_figure(0.8 + 1.35 * len(names), len(names), 2, sharex="row", sharey="row")
    colors = (GREEN, "#333333", PURPLE)
    along = ("component_group", ["prior", "likelihood"])
    scaled = posterior.isel(chain=0, draw=0, drop=True).expand_dims(
        alpha=[sensitivity.alphas[0], 1.0, sensitivity.alphas[1]]
    )
    axes = {name: list(row) for name, row in zip(names, grid, strict=True)}
    pc = collect(
        figure, axes, scaled.expand_dims(component_group=along[1]), {"color": ["alpha"]}, along=along, color=colors
    )
    absent = dict.fromkeys(("title", "credible_interval", "point_estimate", "rug"), False)
    # ArviZ resamples a single variable to an array without its name, and then asks for the name: give it two.
    companion = {"companion": next(iter(posterior.data_vars.values()))}
    with warnings.catch_warnings():
        # Where one draw has all the weight there is no density; the caption says which lines these are.
        warnings.filterwarnings("ignore", "Your data appears to have a single value")
        azp.plot_psense_dist(
            tree_of(posterior.assign(companion), **groups),
            var_names=list(names),
            alphas=sensitivity.alphas,
            kind="kde",
            plot_collection=pc,
            visuals={"dist": {"width": 1.2}} | absent | KEEP_AXIS,
        )
    for given in list(figure.legends):
        given.remove()  # ArviZ's: `legend` cannot be switched off, as it is handed on to a plot that does not know it
    for (left, right), label in zip(grid, table.index, strict=True):
        for panel, component in ((left, "prior"), (right, "likelihood")):
            panel.set_title(f"{component}: sensitivity {table.loc[label, component]:.3f}", fontsize=FONT)
            for line in panel.get_lines():
                line.set_data(*(np.asarray(x)[::DENSITY_STEP] for x in line.get_data()))
            panel.set_yticks([])
            panel.set_ylim(bottom=0)
            panel.locator_params(axis="x", nbins=5)
        left.set_ylabel(labels([draws.names[label]], 30, inches=1.2)[0])
    low, high = sensitivity.alphas
    handles = [Line2D([], [], color=color) for color in colors]
    legend(figure, handles, [f"counts {low:g}×", "as it is", f"counts {high:g}×"])
    shown = f"{len(table)} of {len(sensitivity.parameters)} parameters, the most sensitive to the prior"
    caption = (
        f"Posterior densities of {shown}, if the prior (left) or the likelihood (right) counts for less or more. Where "
        f"the lines agree it makes no difference; the sensitivity stands above each panel, limit "
        f"{sensitivity.threshold:g}."
    )
    bad = sensitivity.weights[~sensitivity.weights["reliable"]]
    if len(bad):
        rows = bad.reset_index()[["component", "alpha", "pareto_k"]].to_numpy()
        lines = listing([f"{component}^{alpha:g} (k̂ = {k:.2f})" for component, alpha, k in rows])
        caption += f" Not to be relied on, or missing, are the lines of {lines}, whose weights are unreliable."
    worst = table["prior"]
    alt = (
        f"Power-scaled posteriors of {listing(list(table.index))}: sensitivity to the prior at most {worst.max():.3f}."
    )
    return Plot(figure, caption, alt)
