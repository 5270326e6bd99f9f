"""Every plot on real data: no warning, no text that overlaps or leaves the page, and the numbers that were given."""

import re
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text
from scipy.special import expit, softmax
from scipy.stats import chi2, norm
from sklearn.metrics import roc_auc_score

from bayes_gda.data.examples import load_example, simulate_gaussian
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.evaluation.loo import Loo
from bayes_gda.evaluation.model_comparison import ModelScore, compare_models
from bayes_gda.evaluation.reliability import one_class, reliability_curve, top_label
from bayes_gda.evaluation.sensitivity import prior_sensitivity
from bayes_gda.families.gaussian.continuum import fit_continuum
from bayes_gda.families.gaussian.discriminant import plug_in_lda, plug_in_qda
from bayes_gda.families.gaussian.exact import lda_posterior
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.prediction.decisions import cost_curve, decide, decide_with_draws, net_benefit, threshold_curve
from bayes_gda.priors import NIW, Normal
from bayes_gda.reporting import plots
from bayes_gda.reporting.plots.plane import discriminant_plane, feature_plane

HOSTILE = (
    "<script>alert('$x^2$')</script>",
    "price in $ and $",
    "שלום עולם \u202emoc.elgoog",
    "😀😀 emoji 温度",
    "W" * 300,
    "W" * 299 + "V",
    "line\nbreak\ttab\x00nul",
)
COSTS = [[0, 5], [1, 0]]


# ── Data and fits ───────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def data(name):
    if name == "twelve":
        rng = np.random.default_rng(3)
        drawn = simulate_gaussian(rng.normal(size=(12, 5)) * 3, np.eye(5), counts=[30] * 12, random_seed=4)
        names = [f"a rather long class name {chr(65 + k)}" for k in range(12)]
        return Dataset(drawn.X, drawn.y, drawn.feature_names, tuple(names))
    if name == "hostile":
        rng = np.random.default_rng(5)
        d = len(HOSTILE)
        drawn = simulate_gaussian(rng.normal(size=(3, d)) * 1.5, np.eye(d), counts=[60, 50, 40], random_seed=6)
        return Dataset(drawn.X * 1e6, drawn.y, HOSTILE, ("$\\frac{", "W" * 300, "😀"))
    if name == "one":
        drawn = load_example("iris")
        return Dataset(drawn.X[:, 2:3], drawn.y, drawn.feature_names[2:3], drawn.class_names)
    return load_example(name)


@cache
def gaussians(name, shared=True):
    moments = Moments.from_arrays(data(name).X, data(name).y, data(name).K)
    return plug_in_lda(moments) if shared else plug_in_qda(moments)


def probabilities(name, shared=True):
    model = gaussians(name, shared)
    return lambda X: softmax(model.log_joint(X), axis=1)


@cache
def logistic(name):
    """The Laplace posterior, its predictor, and draws by method."""
    d = data(name)
    phi = FeatureMap.fit(d.X, d.feature_names)(d.X)
    target = LogisticTarget(phi, d.y, Normal(scale=2.5))
    posterior = regression_laplace(target)
    rng = np.random.default_rng(0)
    laplace = posterior.draw(2000, random_seed=1)
    moved = lindley_mean(posterior, target) + laplace - posterior.mean
    # Independence Metropolis: a real chain of the posterior, with the moved Laplace draws as proposals.
    proposal = moved[rng.permutation(2000)].reshape(4, 500, -1)
    log_ratio = target.log_density(proposal.reshape(2000, -1)) - posterior.log_density(
        proposal.reshape(2000, -1) - lindley_mean(posterior, target) + posterior.mean
    )
    log_ratio = log_ratio.reshape(4, 500)
    chain = proposal.copy()
    for c in range(4):
        for t in range(1, 500):
            if np.log(rng.random()) > log_ratio[c, t] - log_ratio[c, t - 1]:
                chain[c, t], log_ratio[c, t] = chain[c, t - 1], log_ratio[c, t - 1]
    coords = coordinates(class_names=d.class_names, coefficient_names=["intercept", *d.feature_names])
    draws = {"mcmc": chain.reshape(2000, -1), "laplace": laplace, "corrected": moved}
    trees = {method: to_datatree({"w": w}, coords, chains=4) for method, w in draws.items()}
    energy = rng.normal(size=(4, 500)).cumsum(axis=1) * 0.3 + rng.normal(size=(4, 500))
    trees["mcmc"]["sample_stats"] = xr.Dataset({"energy": (("chain", "draw"), energy)})
    return phi, posterior, trees, draws["mcmc"]


@cache
def gaussian_trees(name):
    d = data(name)
    moments = Moments.from_arrays(d.X, d.y, d.K)
    posterior = lda_posterior(moments, NIW.default(moments))
    coords = coordinates(class_names=d.class_names, feature_names=d.feature_names)
    trees = {"exact": to_datatree(posterior.draw(1000, random_seed=0), coords, chains=4)}
    shifted = posterior.draw(1000, random_seed=1)
    shifted["mu"] = shifted["mu"] + 0.3 * shifted["mu"].std(axis=0)
    return trees | {"my own method": to_datatree(shifted, coords, chains=4)}


@cache
def draws_of_probability(name):
    """(S, n) draws of the probability of class 1."""
    phi, _, _, w = logistic(name)
    return expit(w[::4] @ phi.T)


@cache
def curves(name):
    P, y = probabilities(name)(data(name).X), data(name).y
    out = {c: reliability_curve(*one_class(P, y, k), resamples=99) for k, c in enumerate(data(name).class_names)}
    return out | {"top label": reliability_curve(*top_label(P, y), resamples=99)}


@cache
def thresholds():
    p = draws_of_probability("pima").mean(axis=0)
    y = data("pima").y
    lda = probabilities("pima")(data("pima").X)
    return {
        "logistic": threshold_curve(np.column_stack([1 - p, p]), y, COSTS),
        "lda": threshold_curve(lda, y, COSTS),
    }


@cache
def loo(n=532, bad=9):
    rng = np.random.default_rng(2)
    k = rng.uniform(-0.2, 0.6, n)
    k[rng.choice(n, bad, replace=False)] = rng.uniform(0.71, 1.4, bad)
    values = -rng.exponential(0.5, n)
    return Loo("conditional", values, values + 0.01, k, 0.7)


@cache
def comparison(models=4):
    rng = np.random.default_rng(8)
    base = rng.normal(size=300)
    families = ("generative", "discriminative")
    return compare_models(
        {
            f"model {m} of the zoo": ModelScore(
                families[m % 2],
                loo=Loo("conditional", -np.exp(base + 0.1 * m * rng.normal(size=300)) - 0.02 * m, base),
            )
            for m in range(models)
        }
    )


@cache
def continuum(name, d):
    rows = data(name)
    return fit_continuum(Moments.from_arrays(rows.X[:, :d], rows.y, rows.K))


@cache
def sensitivity(with_rows=True):
    phi, _, trees, w = logistic("pima")
    tree = trees["mcmc"].copy()
    y = data("pima").y
    a = w @ phi.T
    shape = (4, 500)
    prior = (-0.5 * (w / 0.8) ** 2).sum(axis=1).reshape(shape)
    likelihood = (y * a - np.logaddexp(0, a)).sum(axis=1).reshape(shape)
    tree["log_prior"] = xr.Dataset({"w": (("chain", "draw"), prior)})
    tree["log_likelihood"] = xr.Dataset({"y": (("chain", "draw"), likelihood)})
    rows = np.stack([-np.logaddexp(0, a[:, :40]), -np.logaddexp(0, -a[:, :40])], axis=2)
    return prior_sensitivity(tree, log_joint=rows if with_rows else None, class_names=data("pima").class_names)


def methods(name):
    phi, posterior, _, w = logistic(name)
    predictor = BinaryPredictor(phi)
    p = expit(w @ phi.T).mean(axis=0)
    return {
        "probit": predictor.fast(posterior),
        "reference": predictor.reference(posterior),
        "mcmc": np.column_stack([1 - p, p]),
    }


def interval_plot(name, y=True):
    q = draws_of_probability(name)
    low, high = np.quantile(q, [0.05, 0.95], axis=0)
    d = data(name)
    return plots.plot_intervals(q.mean(axis=0), low, high, y=d.y if y else None, class_name=d.class_names[1])


def all_decisions(name):
    q = draws_of_probability(name)
    p = q.mean(axis=0)
    return decide_with_draws(
        np.column_stack([1 - p, p]),
        np.stack([1 - q, q], axis=2),
        COSTS,
        reject_cost=0.4,
        action_names=data(name).class_names,
    )


def on(plot, *names):
    """Scenes of one plot, by the data that it is made of."""
    return {f"{plot}-{name}": lambda name=name: MAKE[plot](name) for name in names}


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
    "sensitivity": lambda: plots.plot_sensitivity(sensitivity()),
    "sensitivity-parameters": lambda: plots.plot_sensitivity(sensitivity(False)),
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
    "decisions-twelve",
    "pareto-k-good",
    "continuum-one-feature",
    "sensitivity-parameters",
}
EACH = [pytest.param(name, marks=pytest.mark.slow) if name in LATER else name for name in SCENES]


@cache
def scene(name):
    return SCENES[name]()


# ── What holds for all of them ──────────────────────────────────────────────────────────────────────────────────────


def texts(figure):
    """Every text of a figure, which is laid out already, with its box in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    unseen = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
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


@pytest.mark.parametrize("name", EACH)
def test_text_is_readable(name):
    plot = scene(name)
    found = texts(plot.figure)
    width, height = plot.figure.bbox.size
    assert found
    assert plot.figure.get_size_inches()[0] == 7.2
    for text, box in found:
        assert text.get_fontsize() >= 8, text
        assert box.x0 >= -1, text
        assert box.y0 >= -1, text
        assert box.x1 <= width + 1, text
        assert box.y1 <= height + 1, text
    for (a, box), (b, other) in combinations(found, 2):
        # A pixel of shared margin is not seen.
        overlap_x = min(box.x1, other.x1) - max(box.x0, other.x0)
        overlap_y = min(box.y1, other.y1) - max(box.y0, other.y0)
        assert overlap_x <= 1 or overlap_y <= 1, f"{a.get_text()!r} lies on {b.get_text()!r}"


@pytest.mark.parametrize("name", EACH)
def test_data_keep_their_room(name):
    """Legends and labels must not squeeze the axes away."""
    figure = scene(name).figure
    boxes = [axes.get_position() for axes in figure.axes if axes.axison]
    width, height = figure.get_size_inches()
    assert min(box.width * width for box in boxes) > 1.1
    assert min(box.height * height for box in boxes) > 0.3
    assert sum(box.width * box.height for box in boxes) > 0.25


@pytest.mark.parametrize("name", EACH)
def test_words_are_sentences(name):
    plot = scene(name)
    for words in (plot.caption, plot.alt):
        assert words.endswith(".")
        assert ".." not in words
        assert not re.search(r"\bnan\b", words)
        assert not any(ord(char) < 32 or char == "\u202e" for char in words)
    assert any(char.isdigit() for char in plot.alt) or name.startswith("densities")
    assert len(plot.alt) < 600


@pytest.mark.parametrize(
    ("name", "kind"),
    [("regions-iris", "svg"), ("pair-hostile", "svg"), ("pareto-k", "png"), ("separation-pima", "svg")],
)
def test_files_are_the_same_byte_for_byte(name, kind, tmp_path):
    a, b = (
        plots.save(plot, tmp_path / f"{i}.{kind}").read_bytes() for i, plot in enumerate((scene(name), SCENES[name]()))
    )
    assert a == b
    # A report holds some thirty of them.
    assert 1000 < len(a) < 400_000


def test_every_plot_is_drawn_here():
    """A plot that is added must be drawn too."""
    used = set(re.findall(r"plots\.(plot_\w+)", Path(__file__).read_text(encoding="utf-8")))
    assert {name for name in plots.__all__ if name.startswith("plot_")} <= used
    assert set(SCENES) > LATER


# ── The numbers shown are the numbers given ─────────────────────────────────────────────────────────────────────────


def lines(axes):
    return [line.get_xydata() for line in axes.get_lines()]


def test_reliability_shows_the_curve_and_its_bands():
    figure = scene("reliability-pima").figure
    for axes, curve in zip(figure.axes, curves("pima").values(), strict=False):
        [shown] = [line.get_xydata() for line in axes.get_lines() if line.get_gid() == "curve"]
        np.testing.assert_array_equal(shown, np.column_stack([curve.forecast, curve.recalibrated]))
        consistency, confidence = axes.collections
        for band, given in ((consistency, curve.consistency), (confidence, curve.confidence)):
            box = band.get_paths()[0].vertices
            assert set(np.round(box[:, 1], 12)) >= set(np.round([*given.lower, *given.upper], 12))


def test_ellipses_hold_ninety_percent_of_a_gaussian():
    drawn = data("lda-mixture")
    axes = scene("regions-lda-mixture").figure.axes[0]
    for k, outline in enumerate(lines(axes)[-2:]):
        own = drawn.X[drawn.y == k]
        z = np.linalg.solve(np.linalg.cholesky(np.cov(own.T)), (outline - own.mean(axis=0)).T)
        np.testing.assert_allclose((z**2).sum(axis=0), chi2(2).ppf(0.9), rtol=1e-9)


def test_boundaries_lie_where_two_classes_are_equally_probable():
    axes = scene("densities-qda").figure.axes[0]
    model = gaussians("qda-mixture", False)
    *_, boundary, _truth = axes.collections
    vertices = np.concatenate([path.vertices for path in boundary.get_paths()])
    assert len(vertices) > 20
    delta = model.log_joint(vertices)
    # Linear interpolation on a grid of 200: off by about the square of a cell.
    np.testing.assert_allclose(delta[:, 0], delta[:, 1], atol=0.02)


def test_density_outlines_are_at_their_distances():
    axes = scene("densities-lda-mixture").figure.axes[0]
    model = gaussians("lda-mixture")
    outlines = axes.collections[2]  # after the points of two classes
    for path, share in zip(outlines.get_paths(), (0.5, 0.9, 0.99), strict=True):
        np.testing.assert_allclose(model.mahalanobis(path.vertices)[:, 0], chi2(2).ppf(share), atol=0.02)


def test_the_plane_leads_back_and_keeps_the_decision():
    d = data("iris")
    plane = discriminant_plane(d)
    Z = np.random.default_rng(0).normal(size=(50, 2)) * 4
    np.testing.assert_allclose(plane.to_plane(plane.to_space(Z)), Z, atol=1e-9)
    # Two directions are all there is for three classes: LDA decides alike for a row and for its shadow on the plane.
    shadow = plane.to_space(plane.to_plane(d.X))
    P = probabilities("iris")
    np.testing.assert_allclose(P(shadow), P(d.X), atol=1e-9)


def test_the_plane_of_two_classes_has_a_second_direction():
    """Classes differ in mean along x1, in spread along x3: that is what is found."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    y = np.arange(4000) % 2
    X[y == 1, 0] += 5
    X[y == 1, 2] *= 4
    plane = discriminant_plane(Dataset(X, y, ("a", "b", "c", "d"), ("0", "1")))
    direction = np.abs(plane.forward[:, 1]) * X.std(axis=0)
    assert direction.argmax() == 2
    assert direction[2] > 5 * np.delete(direction, 2).max()
    np.testing.assert_allclose(plane.to_plane(plane.to_space(np.eye(2))), np.eye(2), atol=1e-9)


def test_projection_puts_class_means_at_their_crosses():
    model = gaussians("iris")
    axes = scene("projection-iris").figure.axes[0]
    np.testing.assert_allclose(lines(axes)[0], model.projection().means[:, :2])


def test_marginals_are_the_density_that_the_draws_come_from():
    # Quantiles in random order: a sample without its noise.
    w = np.random.default_rng(0).permutation(norm(3, 2).ppf((np.arange(4000) + 0.5) / 4000))[:, None]
    tree = to_datatree({"w": w}, coordinates(class_names=["a", "b"], coefficient_names=["x"]), chains=4)
    axes = plots.plot_marginals({"mcmc": tree}).figure.axes[0]
    [(x, density)] = [line.T for line in lines(axes)]
    assert np.trapezoid(density, x) == pytest.approx(0.998, abs=0.01)
    np.testing.assert_allclose(density, norm(3, 2).pdf(x), atol=0.006)


def test_forest_shows_medians_and_intervals():
    axes = plots.plot_forest(logistic("pima")[2], standardised=False).figure.axes[0]
    w = logistic("pima")[2]["mcmc"]["posterior"]["w"].to_numpy().reshape(2000, -1)
    thin, thick = axes.collections[:2]
    for collection, share in ((thin, 0.9), (thick, 0.5)):
        ends = np.array([segment[:, 0] for segment in collection.get_segments()])
        np.testing.assert_allclose(ends, np.quantile(w, [(1 - share) / 2, (1 + share) / 2], axis=0).T)
    np.testing.assert_allclose(lines(axes)[0][:, 0], np.median(w, axis=0))


def test_many_parameters_leave_the_most_different_ones():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(2, 1000, 40))
    w[1, :, [7, 31]] += 3
    names = [f"x{j}" for j in range(40)]
    trees = {
        method: to_datatree({"w": x}, coordinates(class_names=["a", "b"], coefficient_names=names))
        for method, x in zip(("mcmc", "laplace"), w, strict=True)
    }
    plot = plots.plot_marginals(trees, most=2)
    assert [axes.get_title(loc="left") for axes in plot.figure.axes] == ["x7", "x31"]
    assert "2 of 40 parameters shown" in plot.caption
    assert "laplace" in plot.alt


def test_rank_counts_add_up_and_show_a_chain_apart():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(4, 500, 1))
    coords = coordinates(class_names=["a", "b"], coefficient_names=["x"])
    good = plots.plot_traces(to_datatree({"w": w.reshape(-1, 1)}, coords, chains=4))
    stairs = [patch.get_data() for patch in good.figure.axes[1].patches if hasattr(patch, "get_data")]
    counts = np.array([data.values for data in stairs])
    np.testing.assert_array_equal(counts.sum(axis=1), 500)
    np.testing.assert_array_equal(counts.sum(axis=0), 100)
    assert "all ranks are even" in good.alt
    w[2] += 1
    apart = plots.plot_traces(to_datatree({"w": w.reshape(-1, 1)}, coords, chains=4))
    assert "uneven for w[x]" in apart.alt


def test_ess_ends_at_arviz():
    from arviz_stats.base import array_stats

    plot = plots.plot_ess(logistic("pima")[2]["mcmc"], parameters=["w[glu]"])
    bulk = lines(plot.figure.axes[0])[0]
    x = logistic("pima")[2]["mcmc"]["posterior"]["w"].sel(coefficient="glu").to_numpy()
    assert bulk[-1, 0] == 2000
    np.testing.assert_allclose(bulk[-1, 1], array_stats.ess(x, method="bulk"), rtol=1e-6)


def test_predictions_show_the_differences():
    given = methods("pima")
    axes = scene("predictions-pima").figure.axes[1]
    shown = [xy for xy in lines(axes) if len(xy) > 2]
    best = given["mcmc"][:, 1]
    expected = [np.column_stack([best, 100 * (given[name][:, 1] - best)]) for name in ("probit", "reference")]
    assert all(any(np.allclose(xy, e) for xy in shown) for e in expected)


def test_intervals_are_sorted_and_whole():
    q = draws_of_probability("breast-cancer")
    axes = scene("intervals-unknown").figure.axes[0]
    shown = lines(axes)[0][:, 1]
    assert len(shown) == 300
    assert (np.diff(shown) >= 0).all()
    assert {shown[0], shown[-1]} == {q.mean(axis=0).min(), q.mean(axis=0).max()}
    assert "300 of 569 rows shown" in [text.get_text()[:21] for text, _ in texts(axes.figure)]


def test_separation_has_the_area_of_scikit_learn():
    P = probabilities("pima")(data("pima").X)
    area = roc_auc_score(data("pima").y, P[:, 1])
    plot = scene("separation-pima")
    assert f"{area:.3f}" in plot.alt
    axes = plot.figure.axes[0]
    [image] = axes.get_images()
    np.testing.assert_array_equal(
        image.get_array()[0], data("pima").y[np.argsort(P[:, 1], kind="stable")].astype(float)
    )
    triangle = lines(axes)[1]
    np.testing.assert_allclose(triangle[0, 0], len(P) - P[:, 1].sum())
    assert "6 of 12 classes" in scene("separation-twelve").caption


def test_thresholds_and_costs_show_their_curves():
    curve = thresholds()["logistic"]
    cost = lines(scene("thresholds-pima").figure.axes[0])[0]
    np.testing.assert_array_equal(cost[:-1, 1], curve.cost)
    left, right = scene("costs-pima").figure.axes
    np.testing.assert_array_equal(lines(left)[1][:, 1], cost_curve(curve).own_cost)
    t = np.linspace(0, 0.95, 191)
    np.testing.assert_array_equal(lines(right)[2][:, 1], net_benefit(curve, t)[0])


def test_decisions_are_counted():
    chosen = all_decisions("pima")
    bars = scene("decisions-pima").figure.axes[0].patches
    assert [bar.get_width() for bar in bars] == [int((chosen.action == k).sum()) for k in range(3)]


def test_pareto_k_shows_each_row_on_its_side():
    good, bad = lines(scene("pareto-k").figure.axes[0])[:2]
    given = loo()
    assert len(bad) == given.n_bad == 9
    np.testing.assert_array_equal(bad[:, 1], given.pareto_k[bad[:, 0].astype(int)])
    np.testing.assert_array_equal(good[:, 1], given.pareto_k[good[:, 0].astype(int)])


def test_infinite_k_and_scores_stand_at_the_edge():
    k = np.array([-np.inf, 0.1, np.inf, 0.2])
    plot = plots.plot_pareto_k(Loo("conditional", np.zeros(4), np.ones(4), k, 0.7))
    assert np.isfinite(np.concatenate(lines(plot.figure.axes[0]))).all()
    table = comparison().loo.copy()
    table.loc[table.index[-1], ["difference", "difference_se"]] = [-np.inf, np.inf]
    assert "impossible" in " ".join(text.get_text() for text, _ in texts(plots.plot_models(table).figure))


def test_models_show_differences_with_two_standard_errors():
    table = comparison().loo
    axes, weights = scene("models").figure.axes
    shown = {round(y): x for line in lines(axes) for x, y in line if list(line[:, 0]) != [0, 0]}
    np.testing.assert_allclose([shown[i] for i in range(4)], table["difference"])
    segments = np.concatenate([c.get_segments() for c in axes.collections])
    lengths = {round(s[0, 1]): np.ptp(s[:, 0]) for s in segments}
    np.testing.assert_allclose([lengths[i] for i in range(4)], 4 * table["difference_se"])
    np.testing.assert_allclose([bar.get_width() for bar in weights.patches], table["stacking"])


def test_continuum_shows_each_weight_in_its_place():
    given = continuum("iris", 4)
    axes = scene("continuum-iris").figure.axes[0]
    shown = np.asarray(axes.images[0].get_array())
    assert shown.sum() == pytest.approx(1)
    columns = [label.get_text().split("\n")[0] for label in axes.get_xticklabels()]
    lines_of = [label.get_text() for label in axes.get_yticklabels()]
    for weight, pooling, delta in zip(given.weight, given.pooling, given.delta, strict=True):
        line = lines_of.index("naive" if np.isnan(delta) else f"{delta:g}")
        assert shown[line, columns.index(f"{pooling:.2f}")] == weight
    assert axes.get_xticklabels()[0].get_text().endswith("QDA")
    assert axes.get_xticklabels()[-1].get_text().endswith("LDA")


def test_sensitivity_shows_the_worst_first():
    given = sensitivity().worst(12)
    axes = scene("sensitivity").figure.axes[0]
    np.testing.assert_array_equal(lines(axes)[0][:, 0], given["prior"])
    np.testing.assert_array_equal(lines(axes)[1][:, 0], given["likelihood"])


def test_regions_are_coloured_by_the_most_probable_class():
    """Where a class is certain its colour is deepest; where all are equal it is white."""
    from matplotlib.colors import to_rgb

    d = data("lda-mixture")

    def halves(X):
        p = np.where(X[:, 0] > d.X[:, 0].mean(), 1.0, 0.5)
        return np.column_stack([1 - p, p])

    image = plots.plot_regions(halves, d).figure.axes[0].get_images()[0].get_array()
    np.testing.assert_allclose(image[:, 0], 1.0)
    np.testing.assert_allclose(image[0, -1], 1 - 0.42 * (1 - np.array(to_rgb("#D55E00"))))


# ── What is refused ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (
            lambda: plots.plot_regions(lambda X: np.full((len(X), 2), 0.5), data("iris")),
            r"must return shape \(150, 3\)",
        ),
        (lambda: feature_plane(data("iris"), 1, 1), "two of the features 0…3"),
        (lambda: discriminant_plane(data("one")), "two features or more"),
        (lambda: plots.plot_densities(gaussians("iris"), data("pima")), "means of shape"),
        (lambda: plots.plot_marginals({}), "at least one method"),
        (lambda: plots.plot_marginals(logistic("pima")[2], parameters=["w[x]"]), "labels such as"),
        (lambda: plots.plot_forest(logistic("pima")[2], level=2), "`level`"),
        (lambda: plots.plot_pair(logistic("pima")[2], "w[glu]", "w[glu]"), "must differ"),
        (lambda: plots.plot_energy(logistic("pima")[2]["laplace"]), "independent draws have none"),
        (lambda: plots.plot_predictions({"mcmc": [[0.5, 0.5]]}), "two methods or more"),
        (lambda: plots.plot_intervals([0.5], [0.6], [0.4]), "`lower` ≤ `upper`"),
        (lambda: plots.plot_reliability({}), "at least one reliability curve"),
        (lambda: plots.plot_pareto_k(Loo("joint", np.zeros(3), np.zeros(3))), "exact one"),
        (lambda: plots.save(scene("pareto-k"), "figure.pdf"), "must end in .svg or .png"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, match):
    with pytest.raises(DataError, match=match):
        call()
