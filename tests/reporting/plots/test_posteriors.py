"""Marginals and intervals are those of the draws."""

import numpy as np
import pytest
from matplotlib.colors import to_hex
from reporting.plots.fits import logistic
from reporting.plots.scenes import lines
from scipy.stats import norm

from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.errors import DataError
from bayes_gda.reporting import plots
from bayes_gda.reporting.plots.style import METHODS


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
    # ArviZ draws each interval as a line of its own, in the colour of its method.
    own = [line for line in axes.get_lines() if line.get_color() == METHODS["mcmc"][0]]
    for width, share in ((0.9, 0.9), (2.6, 0.5)):
        shown = sorted((line for line in own if line.get_linewidth() == width), key=lambda line: line.get_ydata()[0])
        ends = np.array([line.get_xdata() for line in shown])
        np.testing.assert_allclose(ends, np.quantile(w, [(1 - share) / 2, (1 + share) / 2], axis=0).T)
    dots = [c.get_offsets()[0] for c in axes.collections if to_hex(c.get_edgecolor()[0]) == METHODS["mcmc"][0].lower()]
    np.testing.assert_allclose([x for x, _ in sorted(dots, key=lambda dot: dot[1])], np.median(w, axis=0))


def test_methods_with_different_numbers_of_draws_stand_side_by_side():
    names, rng = coordinates(class_names=["a", "b"], coefficient_names=["x"]), np.random.default_rng(0)
    trees = {name: to_datatree({"w": rng.normal(size=(n, 1))}, names) for name, n in (("mcmc", 400), ("ep", 1000))}
    axes = plots.plot_forest(trees, standardised=False).figure.axes[0]
    dots = sorted(c.get_offsets()[0, 0] for c in axes.collections)
    medians = sorted(float(tree["posterior"]["w"].median()) for tree in trees.values())
    np.testing.assert_allclose(dots, medians)


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


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: plots.plot_marginals({}), "at least one method"),
        (lambda: plots.plot_marginals(logistic("pima")[2], parameters=["w[x]"]), "labels such as"),
        (lambda: plots.plot_forest(logistic("pima")[2], prob=2), "`prob`"),
        (lambda: plots.plot_pair(logistic("pima")[2], "w[glu]", "w[glu]"), "must differ"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, match):
    with pytest.raises(DataError, match=match):
        call()
