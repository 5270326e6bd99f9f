"""Marginals and intervals are those of the draws."""

import numpy as np
import pytest
from reporting.plots.fits import logistic
from reporting.plots.scenes import lines
from scipy.stats import norm

from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.errors import DataError
from bayes_gda.reporting import plots


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
