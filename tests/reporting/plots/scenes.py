"""Every plot on real and on hostile data, drawn once for all test files, and what is read off a figure."""

from functools import cache

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from reporting.plots.fits import (
    HOSTILE,
    all_decisions,
    comparison,
    continuum,
    curves,
    data,
    distances,
    draws_of_probability,
    gaussian_trees,
    gaussians,
    judged,
    logistic,
    loo,
    methods,
    power_scaling,
    probabilities,
    sensitivity,
    thresholds,
)

from bayes_gda.prediction.decisions import decide
from bayes_gda.prediction.effects import PartialEffect
from bayes_gda.reporting import plots
from bayes_gda.reporting.plots import textbook
from bayes_gda.reporting.plots.plane import feature_plane

# ── Scenes ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def interval_plot(name, y=True):
    q = draws_of_probability(name)
    low, high = np.quantile(q, [0.05, 0.95], axis=0)
    d = data(name)
    return plots.plot_intervals(q.mean(axis=0), low, high, y=d.y if y else None, class_name=d.class_names[1])


def effect_curves(name, draws=40):
    """Partial effects of up to six features: of two classes by two models, else of up to six classes."""
    d, out = data(name), []
    for j in range(min(d.d, 6)):
        x = np.linspace(*np.quantile(d.X[:, j], [0.05, 0.95]), 15)
        X = np.tile(d.X[:draws], (15, 1))
        X[:, j] = np.repeat(x, len(X) // 15)
        for model, shared in (("lda", True), ("qda", False))[: 2 if d.K == 2 else 1]:
            mean = probabilities(name, shared)(X).reshape(15, -1, d.K).mean(axis=1)
            for k in [1] if d.K == 2 else range(min(d.K, 6)):
                band = (np.maximum(mean[:, k] - 0.05, 0), np.minimum(mean[:, k] + 0.05, 1)) if shared else ()
                out.append(PartialEffect(model, d.feature_names[j], str(d.class_names[k]), x, mean[:, k], *band))
    return out


def falls(name, repeats=5):
    """Falls of a score, the first feature the most important, the last one without effect."""
    d = data(name).d
    return np.linspace(0.2, 0, d)[:, None] + 0.01 * np.random.default_rng(0).normal(size=(d, repeats))


def on(plot, *names):
    """Scenes of one plot, by the data that it is made of."""
    return {f"{plot}-{name}": lambda name=name: MAKE[plot](name) for name in names}


def perceptron_path():
    """The path of the fixed-increment perceptron on the notes' three examples."""
    X, signs, path = np.array([[1.0, 1.0], [0.5, 3.0], [2.0, 2.0]]), np.array([1, 1, -1]), [np.zeros(3)]
    S = signs[:, None] * np.column_stack([np.ones(3), X])
    while (S @ path[-1] <= 0).any():
        for s in S:
            if s @ path[-1] <= 0:
                path.append(path[-1] + s)
    return np.array(path), X, signs


MAKE = {
    "regions": lambda name: plots.plot_regions(probabilities(name), data(name)),
    "densities": lambda name: plots.plot_densities(gaussians(name), data(name)),
    "projection": lambda name: plots.plot_projection(data(name)),
    "marginals": lambda name: plots.plot_marginals(logistic(name)[2]),
    "marginals-lda": lambda name: plots.plot_marginals(gaussian_trees(name)),
    "forest": lambda name: plots.plot_forest(logistic(name)[2]),
    "forest-lda": lambda name: plots.plot_forest(gaussian_trees(name)),
    "traces": lambda name: plots.plot_traces(logistic(name)[2]["mcmc"]),
    "predictions": lambda name: plots.plot_predictions(methods(name)),
    "separation": lambda name: plots.plot_separation(
        probabilities(name)(data(name).X), data(name).y, class_names=data(name).class_names
    ),
    "reliability": lambda name: plots.plot_reliability(curves(name)),
    "confusion": lambda name: plots.plot_confusion(judged(name).confusion, data(name).class_names),
    "curves": lambda name: plots.plot_curves(judged(name), data(name).class_names),
    "distances": lambda name: plots.plot_distances(distances(name)),
    "importance": lambda name: plots.plot_importance(falls(name), data(name).feature_names),
    "effects": lambda name: plots.plot_effects(effect_curves(name), "lda"),
}
SCENES = {
    **on("regions", "iris", "pima", "breast-cancer", "twelve", "hostile", "one", "lda-mixture"),
    "regions-two-features": lambda: plots.plot_regions(
        probabilities("iris", False), data("iris"), plane=feature_plane(data("iris"), 2, 3), model="QDA"
    ),
    **on("densities", "lda-mixture", "hostile", "twelve"),
    "densities-qda": lambda: plots.plot_densities(
        gaussians("qda-mixture", False), data("qda-mixture"), truth=gaussians("qda-mixture")
    ),
    "densities-iris": lambda: plots.plot_densities(gaussians("iris", False), data("iris")),
    **on("projection", "iris", "pima", "breast-cancer", "twelve", "hostile", "three-spheres"),
    **on("marginals", "pima", "breast-cancer"),
    **on("marginals-lda", "iris", "hostile"),
    **on("forest", "pima", "breast-cancer"),
    **on("forest-lda", "iris", "hostile", "pima"),
    "pair-pima": lambda: plots.plot_pair(logistic("pima")[2], "w[glu]", "w[intercept]"),
    "pair-hostile": lambda: plots.plot_pair(
        gaussian_trees("hostile"), f"mu[😀, {HOSTILE[0]}]", f"mu[😀, {HOSTILE[4]}]"
    ),
    **on("traces", "pima", "breast-cancer"),
    "traces-hostile": lambda: plots.plot_traces(gaussian_trees("hostile")["exact"]),
    "energy-pima": lambda: plots.plot_energy(logistic("pima")[2]["mcmc"]),
    "ess-pima": lambda: plots.plot_ess(logistic("pima")[2]["mcmc"]),
    "ess-hostile": lambda: plots.plot_ess(gaussian_trees("hostile")["exact"]),
    **on("predictions", "pima", "breast-cancer"),
    "predictions-twelve": lambda: plots.plot_predictions(
        {"lda": probabilities("twelve")(data("twelve").X), "qda": probabilities("twelve", False)(data("twelve").X)}
    ),
    "intervals-pima": lambda: interval_plot("pima"),
    "intervals-unknown": lambda: interval_plot("breast-cancer", False),
    **on("separation", "pima", "iris", "twelve", "hostile"),
    **on("reliability", "pima", "iris", "twelve", "hostile"),
    **on("confusion", "pima", "twelve", "hostile"),
    **on("curves", "pima", "twelve", "hostile"),
    **on("distances", "pima", "twelve", "hostile"),
    **on("importance", "breast-cancer", "hostile"),
    **on("effects", "pima", "twelve", "hostile"),
    "reliability-top": lambda: plots.plot_reliability({"top label": curves("pima")["top label"]}),
    "thresholds-pima": lambda: plots.plot_thresholds(thresholds()["logistic"], class_name="Yes"),
    "costs-pima": lambda: plots.plot_costs(thresholds()),
    "decisions-pima": lambda: plots.plot_decisions(all_decisions("pima")),
    "decisions-twelve": lambda: plots.plot_decisions(
        decide(probabilities("twelve")(data("twelve").X), 1 - np.eye(12), action_names=data("twelve").class_names)
    ),
    "pareto-k": lambda: plots.plot_pareto_k(loo()),
    "pareto-k-good": lambda: plots.plot_pareto_k(loo(60, 0)),
    "models": lambda: plots.plot_models(comparison().loo),
    "models-30": lambda: plots.plot_models(comparison(30).loo),
    "continuum-iris": lambda: plots.plot_continuum(continuum("iris", 4)),
    "continuum-one-feature": lambda: plots.plot_continuum(continuum("pima", 1)),
    "power-scaling": lambda: plots.plot_power_scaling(power_scaling(), sensitivity()),
    "sensitivity": lambda: plots.plot_sensitivity(sensitivity()),
    "sensitivity-parameters": lambda: plots.plot_sensitivity(sensitivity(False)),
    **{
        f"textbook-{name.removeprefix('plot_')}": getattr(textbook, name)
        for name in textbook.__all__
        if name != "plot_perceptron_path"
    },
    "textbook-perceptron_path": lambda: textbook.plot_perceptron_path(*perceptron_path()),
}
# Drawing all of them takes a minute; these have a sibling that is drawn each time, with as much text or more.
LATER = {
    "regions-pima",
    "regions-two-features",
    "densities-iris",
    "densities-lda-mixture",
    "densities-twelve",
    "projection-pima",
    "projection-three-spheres",
    "marginals-pima",
    "marginals-lda-iris",
    "forest-pima",
    "forest-lda-iris",
    "forest-lda-pima",
    "pair-pima",
    "traces-pima",
    "traces-breast-cancer",
    "ess-pima",
    "predictions-breast-cancer",
    "predictions-twelve",
    "separation-iris",
    "separation-hostile",
    "reliability-iris",
    "reliability-top",
    "confusion-pima",
    "curves-twelve",
    "distances-twelve",
    "decisions-twelve",
    "pareto-k-good",
    "continuum-one-feature",
    "sensitivity-parameters",
}
EACH = [pytest.param(name, marks=pytest.mark.slow) if name in LATER else name for name in SCENES]


@cache
def scene(name):
    return SCENES[name]()


# ── What a figure shows ─────────────────────────────────────────────────────────────────────────────────────────────


def texts(figure):
    """Every text of a figure, which is laid out already, with its box in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    unseen = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis, *([axes.zaxis] if axes.name == "3d" else [])):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * (high - low)
            for tick in axis.get_major_ticks() + axis.get_minor_ticks():
                if not low - slack <= tick.get_loc() <= high + slack or not axes.axison:
                    unseen |= {tick.label1, tick.label2}
    return [
        (text, text.get_window_extent(renderer))
        for text in figure.findobj(Text)
        if text.get_visible()
        and text.get_text().strip()
        and text not in unseen
        and text.get_window_extent(renderer).width > 1
    ]


def lines(axes):
    return [line.get_xydata() for line in axes.get_lines()]
