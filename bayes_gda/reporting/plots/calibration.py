"""Calibration of predicted probabilities, and the cost of decisions that are based on them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from bayes_gda.errors import DataError
from bayes_gda.evaluation.reliability import ReliabilityCurve
from bayes_gda.prediction.decisions import Decisions, ThresholdCurve, cost_curve, net_benefit
from bayes_gda.reporting.plots.arviz_axes import collect
from bayes_gda.reporting.plots.style import (
    BLUE,
    FONT,
    GREEN,
    GREY,
    LIGHT,
    ORANGE,
    VERMILLION,
    Plot,
    class_style,
    counted,
    labels,
    legend,
    listing,
    new_figure,
    note,
    plain,
    styled,
)

PANELS = 6  # reliability curves that fit on a page
BINS = 20  # of the histograms of forecasts, and of how firm decisions are
FORECASTS = 0.22  # height of that histogram, as a part of the panel
# Net benefit is t/(1 − t) on false positives, which runs away towards 1.
LAST_THRESHOLD = 0.95
ACTIONS = 12  # in a bar chart of decisions
FIRM = 0.95  # a decision that is best with this posterior probability is called firm


@styled
def plot_reliability(curves: Mapping[Any, ReliabilityCurve]) -> Plot:
    """Show the observed frequency of events against their predicted probability, one panel per event.

    Calibrated forecasts lie on the diagonal. A curve outside the grey consistency band departs from calibration by more
    than chance; the coloured confidence band is where the true curve may lie. Bars below count the forecasts.

    Parameters
    ----------
    curves
        From `reliability_curve`, by event: class names, in the order of their codes, or `top label`.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_reliability
    >>> from bayes_gda import BayesianLDA
    >>> train, test = load_example("pima").split()
    >>> model = BayesianLDA().fit(train)
    >>> from bayes_gda.evaluation.reliability import reliability_curve
    >>> curve = reliability_curve(model.predict_proba(test)[:, 1], test.y)
    >>> plot_reliability({"Yes": curve}).alt
    'Reliability curves; mean distance from the diagonal: Yes 0.061.'
    """
    if not curves:
        raise DataError("`curves` must hold at least one reliability curve; got none.")
    colors = {name: class_style(k)[0] for k, name in enumerate(curves)}
    error = {
        name: float(curve.count @ np.abs(curve.recalibrated - curve.forecast) / curve.count.sum())
        for name, curve in curves.items()
    }
    least_calibrated = sorted(curves, key=lambda name: -error[name])[:PANELS]
    shown = [name for name in curves if name in least_calibrated]
    texts = dict(zip(curves, labels(curves, inches=1.4), strict=True))
    columns = len(shown) if len(shown) <= 4 else 3
    rows = -(-len(shown) // columns)
    # Panels are square; one alone would be as high as the page is wide.
    height = 0.7 + {1: 3.2, 2: 2.9, 3: 2.35, 4: 1.8}[columns] * rows
    figure, grid = new_figure(height, rows, columns, sharex=True, sharey=True)
    for axes, name in zip(grid.flat, shown, strict=False):
        curve, color = curves[name], colors[name]
        axes.set_box_aspect(1)
        for band, shade, alpha in ((curve.consistency, LIGHT, 0.9), (curve.confidence, color, 0.22)):
            axes.fill_between(band.forecast, band.lower, band.upper, color=shade, alpha=alpha, linewidth=0)
        _draw_curve(figure, axes, curve, color)
        share, edges = np.histogram(curve.forecast, bins=BINS, range=(0, 1), weights=curve.count)
        axes.bar(edges[:-1], FORECASTS * share / share.max(), width=1 / BINS, align="edge", color=GREY, alpha=0.45)
        axes.set_title(texts[name], fontsize=FONT)
        axes.set(xlim=(0, 1), ylim=(0, 1), xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
    for axes in grid.flat[len(shown) :]:
        axes.set_axis_off()
    for axes in grid.flat[max(0, len(shown) - columns) : len(shown)]:
        axes.set_xlabel("predicted probability")
        axes.tick_params(labelbottom=True)
    for row in grid:
        row[0].set_ylabel("observed frequency")
    prob = curves[shown[0]].consistency.prob
    handles = [
        Line2D([], [], color=BLUE),
        Patch(color=LIGHT),
        Patch(color=BLUE, alpha=0.22),
        Patch(color=GREY, alpha=0.45),
    ]
    names = ["recalibrated", f"{100 * prob:.0f} % if calibrated", f"{100 * prob:.0f} % confidence", "forecasts"]
    legend(figure, handles, names)
    left_out = f"{len(shown)} of {len(curves)} events shown, the least calibrated" if len(shown) < len(curves) else ""
    note(figure, left_out)
    caption = (
        "Observed against predicted frequency. On the diagonal they agree; a curve outside the grey band departs from "
        "it by more than chance; the coloured band is where the true curve may lie. Bars count the forecasts."
    )
    caption += f" {left_out}." if left_out else ""
    figures = ", ".join(f"{plain(name, 40)} {error[name]:.3f}" for name in shown)
    return Plot(figure, caption, f"Reliability curves; mean distance from the diagonal: {figures}.")


def _draw_curve(figure: Figure, axes: Any, curve: ReliabilityCurve, color: str) -> None:
    """Draw the diagonal and the curve by ArviZ.

    ArviZ pools adjacent violators of rows; here they are pooled already, by forecast and with counts, and pooling an
    increasing curve again changes nothing. Its band needs simulated outcomes, and it has none around the curve: both
    bands are ours.
    """
    import arviz_plots as azp
    import xarray as xr

    forecast = xr.Dataset({"p": (("chain", "draw", "row"), curve.forecast[None, None])})
    tree = xr.DataTree.from_dict(
        {"posterior_predictive": forecast, "observed_data": xr.Dataset({"p": ("row", curve.recalibrated)})}
    )
    look: dict[Any, Any] = {
        "reference_line": {"color": GREY, "linestyle": "-", "width": 0.8},
        "lines": {"color": color, "width": 1.5, "gid": "curve"},
    }
    absent = dict.fromkeys(("credible_interval", "xlabel", "ylabel", "title"), False)
    azp.plot_ppc_pava(
        tree, ci_prob=0.9, plot_collection=collect(figure, {"p": axes}, forecast, {}), visuals=look | absent
    )


@styled
def plot_thresholds(curve: ThresholdCurve, *, class_name: Any = "class 1") -> Plot:
    """Show the mean cost of deciding for a class where its probability exceeds a threshold.

    The full line is the realised cost on these rows, the dashed one the cost that the probabilities expect: if the two
    are far apart, the probabilities are not calibrated. The green line is the threshold that the costs alone imply.

    Parameters
    ----------
    curve
        From `threshold_curve`.
    class_name
        Name of class 1.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_thresholds
    >>> from bayes_gda import BayesianLDA
    >>> train, test = load_example("pima").split()
    >>> model = BayesianLDA().fit(train)
    >>> from bayes_gda.prediction.decisions import threshold_curve
    >>> curve = threshold_curve(model.predict_proba(test), test.y, [[0, 5], [1, 0]])
    >>> plot_thresholds(curve, class_name="Yes").alt
    'Cost against threshold: 0.481 a row at 0.167, at least 0.436 at 0.183.'
    """
    t = np.append(np.clip(curve.thresholds, 0, 1), 1.0)
    figure, [[axes]] = new_figure(3.1)
    for values, color, dashes in ((curve.cost, BLUE, "-"), (curve.expected_cost, ORANGE, "--")):
        axes.plot(t, np.append(values, values[-1]), color=color, linestyle=dashes, drawstyle="steps-post")
    best = max(curve.best_threshold, 0.0)
    axes.axvline(curve.optimal_threshold, color=GREEN, linewidth=1.2)
    axes.axvline(best, color=VERMILLION, linewidth=1.2, linestyle=(0, (1, 1)))
    name = labels([class_name])[0]
    axes.set(xlabel=f"threshold on the probability of {name}", ylabel="mean cost of a row", xlim=(0, 1))
    handles = [
        Line2D([], [], color=BLUE),
        Line2D([], [], color=ORANGE, linestyle="--"),
        Line2D([], [], color=GREEN),
        Line2D([], [], color=VERMILLION, linestyle=(0, (1, 1))),
    ]
    names = [
        "cost on these rows",
        "expected by the probabilities",
        f"threshold by the costs: {curve.optimal_threshold:.3g}",
        f"cheapest on these rows: {best:.3g}",
    ]
    legend(figure, handles, names)
    cost_at_optimal, least_cost = (
        float(curve.cost[curve.at(x)]) for x in (curve.optimal_threshold, curve.best_threshold)
    )
    caption = (
        f"Mean cost of deciding for {plain(class_name)} above each threshold. At the threshold that the costs ask for, "
        f"{curve.optimal_threshold:.3g}, a row costs {cost_at_optimal:.3g}; the cheapest possible here is "
        f"{least_cost:.3g}, which was chosen on the same rows and is optimistic."
    )
    alt = (
        f"Cost against threshold: {cost_at_optimal:.3g} a row at {curve.optimal_threshold:.3g}, at least "
        f"{least_cost:.3g} at {best:.3g}."
    )
    return Plot(figure, caption, alt)


@styled
def plot_costs(curves: Mapping[str, ThresholdCurve]) -> Plot:
    """Compare models over all costs: cost curves, the lower the better, and net benefit, the higher the better.

    Grey lines are decisions without a model. Where a model's line is on their wrong side, the model is of no use for
    such costs.

    Parameters
    ----------
    curves
        From `threshold_curve` on the same rows, by model.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_costs
    >>> from bayes_gda import BayesianLDA
    >>> train, test = load_example("pima").split()
    >>> model = BayesianLDA().fit(train)
    >>> from bayes_gda.prediction.decisions import threshold_curve
    >>> curve = threshold_curve(model.predict_proba(test), test.y, [[0, 5], [1, 0]])
    >>> plot_costs({"LDA": curve}).alt
    'Cost curves and net benefit; mean normalised cost: LDA 0.175.'
    """
    if not curves:
        raise DataError("`curves` must hold at least one threshold curve; got none.")
    figure, [[left, right]] = new_figure(3.3, 1, 2)
    q = np.linspace(0, 1, 101)
    left.plot(q, np.minimum(q, 1 - q), color=GREY, linewidth=1, linestyle="--")
    t = np.linspace(0, LAST_THRESHOLD, 191)
    benefit_of_all = net_benefit(next(iter(curves.values())), t)[1]
    right.plot(t, benefit_of_all, color=GREY, linewidth=1, linestyle="--")
    right.axhline(0, color=GREY, linewidth=1, linestyle="--")
    handles, mean_cost, largest_benefit = [], {}, 0.0
    for k, (name, curve) in enumerate(curves.items()):
        color, _ = class_style(k)
        cost = cost_curve(curve)
        handles += left.plot(cost.probability_cost, cost.own_cost, color=color)
        left.plot(cost.probability_cost, cost.cost, color=color, linewidth=0.9, linestyle=":")
        benefit, _ = net_benefit(curve, t)
        right.plot(t, benefit, color=color)
        mean_cost[name] = float(np.trapezoid(cost.own_cost, cost.probability_cost))
        largest_benefit = max(largest_benefit, float(benefit.max()), curve.prevalence)
    left.set(xlabel="part of class 1 in the cost of errors", ylabel="normalised cost", xlim=(0, 1))
    left.set_ylim(bottom=0)
    right.set(
        xlabel="threshold", ylabel="net benefit", xlim=(0, 1), ylim=(-0.15 * largest_benefit, 1.08 * largest_benefit)
    )
    handles.append(Line2D([], [], color=GREY, linestyle="--", linewidth=1))
    handles.append(Line2D([], [], color=GREY, linestyle=":", linewidth=0.9))
    legend(figure, handles, [*labels(curves), "without a model", "at its best threshold"])
    caption = (
        "Left, the mean cost as the ratio of the two errors' costs changes, at the threshold that these costs imply "
        "(solid) and at the best one in hindsight (dotted): lower is better. Right, net benefit of acting above a "
        "threshold: higher is better. A model is useful where it is better than the grey lines."
    )
    figures = ", ".join(f"{plain(name)} {value:.3f}" for name, value in mean_cost.items())
    return Plot(figure, caption, f"Cost curves and net benefit; mean normalised cost: {figures}.")


@styled
def plot_decisions(decisions: Decisions) -> Plot:
    """Show how many rows each action was chosen for, and the posterior probability that the action is optimal.

    On the right, bars near 1 count rows whose action is optimal under nearly all of the posterior; the decisions on
    rows further left depend on parameters that the data leave uncertain.

    Parameters
    ----------
    decisions
        From `decide_with_draws`; or from `decide`, without the probability of being optimal, then one panel is drawn.

    Examples
    --------
    >>> from bayes_gda import load_example
    >>> from bayes_gda.reporting.plots import plot_decisions
    >>> from bayes_gda import BayesianLDA
    >>> train, test = load_example("pima").split()
    >>> model = BayesianLDA().fit(train)
    >>> plot_decisions(model.decide(test, costs=[[0, 5], [1, 0]])).alt
    'Decisions of 133 rows: No 49, Yes 84. 105 of 133 decisions are firm: best with posterior probability 95 % or more.'
    """
    probability_optimal = decisions.probability_optimal
    counts = np.bincount(decisions.action, minlength=len(decisions.names))
    shown = sorted(np.argsort(-counts, kind="stable")[:ACTIONS])
    n = len(decisions.action)
    panels = 1 if probability_optimal is None else 2
    figure, [axes] = new_figure(max(2.4, 0.9 + 0.26 * len(shown)), 1, panels)
    texts = labels(decisions.names)
    axes[0].barh(np.arange(len(shown)), counts[shown], color=[class_style(k)[0] for k in shown], height=0.7)
    for i, k in enumerate(shown):
        axes[0].text(counts[k], i, f" {counts[k]}", va="center")
    axes[0].set_yticks(np.arange(len(shown)), [texts[k] for k in shown])
    axes[0].set_ylim(len(shown) - 0.4, -0.6)
    axes[0].set_xlabel("rows")
    axes[0].margins(x=0.15)
    sentence = ""
    if probability_optimal is not None:
        firmness = probability_optimal[np.arange(n), decisions.action]
        axes[1].hist(
            [firmness[decisions.action == k] for k in shown],
            bins=BINS,
            range=(0, 1),
            stacked=True,
            color=[class_style(k)[0] for k in shown],
        )
        axes[1].set(xlabel="posterior probability that the action is the best", ylabel="rows", xlim=(0, 1))
        firm_count = int((firmness >= FIRM).sum())
        share = f"posterior probability {100 * FIRM:.0f} % or more"
        sentence = f" {firm_count} of {counted(n, 'decision')} are firm: best with {share}."
    left_out = f"{len(shown)} of {len(counts)} actions shown, the most frequent" if len(shown) < len(counts) else ""
    note(figure, left_out)
    caption = f"Rows that each action was chosen for, by least expected cost.{sentence}"
    caption += f" {left_out}." if left_out else ""
    figures = listing([f"{plain(decisions.names[k])} {counts[k]}" for k in shown], ACTIONS)
    return Plot(figure, caption, f"Decisions of {counted(n, 'row')}: {figures}.{sentence}")
