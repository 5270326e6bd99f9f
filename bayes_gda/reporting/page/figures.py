"""The figures of a report, by section, in the order in which they are read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.labels import draws_of
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.linalg import wide_blocks
from bayes_gda.reporting import plots
from bayes_gda.reporting.analysis.analysis import Analysis, ranking
from bayes_gda.reporting.analysis.detail import PROB
from bayes_gda.reporting.plots import Plot
from bayes_gda.reporting.plots.plane import default_plane

# Parameters in the figure of a model's posteriors: two rows of panels.
MARGINALS = 6
# Those in the forest of the chosen model.
FOREST = 12
# Probabilities of a picture come from so few draws, where there is no closed form: 1 % is a shade that no eye sees.
PICTURE_DRAWS = 300


@dataclass(frozen=True, slots=True, eq=False)
class Figure:
    """A plot and its place.

    Parameters
    ----------
    name
        File name without its ending, and anchor in the page.
    section
        Section of the report that shows it.
    title
        Heading above it.
    draw
        Function that makes the plot: figure, caption and alt text.
    """

    name: str
    section: str
    title: str
    draw: Callable[[], Plot]


def figures(analysis: Analysis) -> Iterator[Figure]:
    """Plan the figures of a report; each is drawn when its turn comes, by whichever process takes it.

    What cannot be planned is a figure that cannot be drawn: it costs itself alone.
    """
    chosen, detail, test = analysis.chosen, analysis.detail, analysis.test
    if analysis.train.d > 1:
        yield Figure(
            "projection", "data", "The training rows", partial(plots.plot_projection, analysis.train.complete())
        )
    yield from _performance(analysis)
    if analysis.curves:
        curves = partial(plots.plot_effects, analysis.curves, chosen.name, PROB)
        yield Figure("effects", "effects", "Partial effects of the strongest features", curves)
    yield from _densities(analysis)
    if chosen.fitted.tree is not None:
        tree, name = chosen.fitted.tree, chosen.name
        yield Figure("traces", "sampling", f"Traces and ranks of {name}", partial(plots.plot_traces, tree))
        if "sample_stats" in tree.children:  # data augmentation has none
            yield Figure("energy", "sampling", f"Energy of {name}", partial(plots.plot_energy, tree))
        yield Figure("ess", "sampling", f"Effective draws of {name}", partial(plots.plot_ess, tree))
    for name, model in analysis.models.items():
        if len(model.trees) > 1:
            yield Figure(
                f"marginals-{name}",
                f"posterior-{name}",
                f"Posteriors of {name} by method",
                partial(plots.plot_marginals, model.trees, parameters=_worst(model), most=MARGINALS),
            )
        # Where the posterior is exact the table says enough; a regression's link is the question.
        if len(model.probabilities) > 1 and (model.kind == "discriminative" or model is chosen):
            yield Figure(
                f"methods-{name}",
                f"posterior-{name}",
                f"Predictions of {name} by method",
                partial(plots.plot_predictions, model.probabilities, reference=model.method),
            )
    if len(chosen.trees) > 1:
        forest = partial(plots.plot_forest, chosen.trees, most=FOREST)
        yield Figure("forest", "posteriors", f"Parameters of {chosen.name} by method", forest)
    yield from _held_out(analysis)
    yield Figure("reliability", "calibration", "Reliability curves", partial(plots.plot_reliability, detail.curves))
    yield Figure(
        "decisions", "decisions", "Decisions", partial(plots.plot_decisions, analysis.decisions[analysis.best])
    )
    if detail.thresholds is not None:
        curve = detail.thresholds
        thresholds = partial(plots.plot_thresholds, curve, class_name=str(test.class_names[1]))
        yield Figure("thresholds", "decisions", "Cost of a threshold", thresholds)
        yield Figure("costs", "decisions", "If the costs were others", partial(plots.plot_costs, {chosen.name: curve}))
    if analysis.comparison.loo is not None and len(analysis.models) > 1:
        models = partial(plots.plot_models, analysis.comparison.loo)
        yield Figure("models", "comparison", "Models by leave-one-out", models)
    if analysis.placement is not None:
        continuum = partial(plots.plot_continuum, analysis.placement.continuum)
        yield Figure("continuum", "comparison", "Between naive, LDA and QDA", continuum)
    numbers = analysis.train.row_numbers.tolist()
    for name, model in analysis.models.items():
        loo = model.attempted_loo[0]
        if loo is not None and loo.pareto_k is not None and (loo.n_bad or model is chosen):
            yield Figure(
                f"pareto-{name}", "comparison", f"k̂ of {name}", partial(plots.plot_pareto_k, loo, numbers=numbers)
            )
    if detail.sensitivity is not None:
        sensitivity = partial(plots.plot_sensitivity, detail.sensitivity)
        yield Figure("sensitivity", "sensitivity", f"Prior of {chosen.name}", sensitivity)
        scaled = partial(plots.plot_power_scaling, chosen.power_scaling, detail.sensitivity)
        yield Figure("power-scaling", "sensitivity", f"Posteriors of {chosen.name} under scaled priors", scaled)


def _performance(analysis: Analysis) -> Iterator[Figure]:
    """Draw how well the chosen model tells the classes apart, and whether its classes are Gaussian."""
    chosen, names = analysis.chosen, analysis.test.class_names
    performance = chosen.performance
    confusion = partial(plots.plot_confusion, performance.confusion, names)
    yield Figure("confusion", "performance", f"Confusion matrix of {chosen.name}", confusion)
    if performance.curves:
        curves = partial(plots.plot_curves, performance, names)
        yield Figure("curves", "performance", f"ROC and precision-recall curves of {chosen.name}", curves)
    if distances := chosen.assumptions.distances:
        distant = partial(plots.plot_distances, distances)
        yield Figure("distances", "assumptions", f"Distances of training rows under {chosen.name}", distant)


def _worst(model: Scorecard) -> list[str]:
    """Return the parameters on which the methods differ most, of those that were compared."""
    assert model.posteriors is not None
    table = model.posteriors.parameters
    table = table[~table.duplicated(["mean", "sd"])]
    off = table["mean_difference_sd"].abs() + np.log(table["sd_ratio"].clip(1e-300)).abs()
    by = off.groupby("parameter").max().sort_values(ascending=False, kind="stable")
    order = list(model.posteriors.parameters.index.unique("parameter"))
    chosen = [str(name) for name in by.index[:MARGINALS]]
    return sorted(chosen, key=order.index)


def _densities(analysis: Analysis) -> Iterator[Figure]:
    """Draw the Gaussian classes of the best model that has them, with their boundary."""
    if analysis.train.d < 2:
        return
    for name in map(str, ranking(analysis.comparison).index):
        card = analysis.models[name]
        classes = card.fitted.family.mean_gaussians(draws_of(card.trees[card.method]))
        if classes is not None:
            plot = partial(plots.plot_densities, classes, analysis.train.complete())
            yield Figure("densities", "models", f"Posterior means of {name}", plot)
            return


def _held_out(analysis: Analysis) -> Iterator[Figure]:
    chosen, detail, test = analysis.chosen, analysis.detail, analysis.test
    P = np.exp(chosen.log_probabilities)
    names = [str(name) for name in test.class_names]
    # Of many classes the most uncertain: the one whose intervals are widest.
    k = 1 if test.K == 2 else int((detail.interval[..., 1] - detail.interval[..., 0]).mean(axis=0).argmax())
    low, high = np.moveaxis(detail.interval[:, k], -1, 0)
    # Rounding may put the ends of a narrow interval a hair outside.
    low, high = np.clip(low, 0, 1), np.clip(high, 0, 1)
    words: dict[str, Any] = {"class_name": names[k], "prob": PROB, "binary": test.K == 2}
    plot = partial(plots.plot_intervals, P[:, k], low, high, y=test.y == k, **words)
    yield Figure("intervals", "predictions", "Probabilities with their intervals", plot)
    if not chosen.model.discrete_features:  # a plane lies between the values that counts and levels have
        yield Figure("regions", "predictions", "Regions of decision", partial(_regions, analysis))
    separation = partial(plots.plot_separation, P, test.y, class_names=names)
    yield Figure("separation", "predictions", "Separation", separation)


def _regions(analysis: Analysis) -> Plot:
    # The plane of the training rows: a class may be without held-out rows.
    plane = default_plane(analysis.train.complete()) if analysis.train.d > 1 else None
    return plots.plot_regions(_function(analysis), analysis.test.complete(), plane=plane, model=analysis.best)


def _function(analysis: Analysis) -> Callable[[Floats], Floats]:
    """Return class probabilities as a function of rows, from few draws where there is no closed form."""
    model, test = analysis.chosen.model, analysis.test

    def probabilities(X: Floats) -> Floats:
        if X is test.X:
            return np.exp(analysis.chosen.log_probabilities)  # as everywhere else in the report
        if not model.averages_draws:
            return np.exp(model.log_probabilities(X))
        variables = model.draw_variables(PICTURE_DRAWS)
        out = np.empty((len(X), model.K))
        for rows in wide_blocks(len(X), PICTURE_DRAWS * model.K):
            P, weight = model.probability_draws(variables, X[rows])
            out[rows] = P.mean(axis=0) if weight is None else np.einsum("sn,snk->nk", weight, P)
        return out

    return probabilities
