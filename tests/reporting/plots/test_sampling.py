"""Ranks and effective draws are those of the chains."""

import numpy as np
import pytest
from reporting.plots.fits import logistic
from reporting.plots.scenes import lines
from scipy.stats import rankdata

from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.errors import DataError
from bayes_gda.reporting import plots


def test_ranks_are_those_of_arviz_and_show_a_chain_apart():
    rng = np.random.default_rng(0)
    w = rng.normal(size=(4, 500, 1))
    coords = coordinates(class_names=["a", "b"], coefficient_names=["x"])
    good = plots.plot_traces(to_datatree({"w": w.reshape(-1, 1)}, coords, chains=4))
    assert "all ranks are even" in good.alt
    w[2] += 1
    apart = plots.plot_traces(to_datatree({"w": w.reshape(-1, 1)}, coords, chains=4))
    assert "uneven for w[x]" in apart.alt
    # The largest distance of a chain's cumulative ranks to the uniform distribution: that of the third chain.
    ranks = rankdata(w).reshape(4, 500) / 2000
    truth = [np.abs(np.arange(1, 501) / 500 - np.sort(r)).max() for r in ranks]
    curves = [line for line in apart.figure.axes[1].get_lines() if len(line.get_xdata()) > 10]
    shown = [np.abs(np.asarray(line.get_ydata())).max() for line in curves]
    assert int(np.argmax(shown)) == int(np.argmax(truth)) == 2
    assert max(shown) == pytest.approx(max(truth), abs=0.06)  # of thinned draws


def test_traces_are_the_draws():
    tree = logistic("pima")[2]["mcmc"]
    plot = plots.plot_traces(tree, parameters=["w[glu]"])
    x = tree["posterior"]["w"].sel(coefficient="glu").to_numpy()
    shown = [np.asarray(line.get_ydata()) for line in plot.figure.axes[0].get_lines()]
    kept = np.unique(np.linspace(0, 499, 400).astype(int))
    np.testing.assert_array_equal(shown, x[:, kept])


def test_the_densities_are_of_the_energy_and_its_changes():
    tree = logistic("pima")[2]["mcmc"]
    energy = tree["sample_stats"]["energy"].to_numpy()
    plot = plots.plot_energy(tree)
    for line, values in zip(lines(plot.figure.axes[0]), (energy - energy.mean(), np.diff(energy, axis=1)), strict=True):
        x, density = line.T
        width = np.trapezoid(density * x**2, x) - np.trapezoid(density * x, x) ** 2
        assert np.trapezoid(density, x) == pytest.approx(1, abs=0.02)
        assert width == pytest.approx(values.var(), rel=0.15)


def test_ess_ends_at_arviz():
    from arviz_stats.base import array_stats

    plot = plots.plot_ess(logistic("pima")[2]["mcmc"], parameters=["w[glu]"])
    drawn = [line for line in plot.figure.axes[0].get_lines() if len(line.get_xdata()) == 15]
    bulk, tail = (line.get_xydata() for line in drawn if line.get_linestyle() == "-")
    x = logistic("pima")[2]["mcmc"]["posterior"]["w"].sel(coefficient="glu").to_numpy()
    assert bulk[-1, 0] == 2000
    np.testing.assert_allclose(bulk[-1, 1], array_stats.ess(x, method="bulk"), rtol=1e-6)
    assert f"at least {min(bulk[-1, 1], tail[-1, 1]):.0f}, 400 needed" in plot.alt
    np.testing.assert_allclose(tail[-1, 1], array_stats.ess(x, method="tail", prob=(0.05, 0.95)), rtol=1e-6)


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(DataError, match="independent draws have none"):
        plots.plot_energy(logistic("pima")[2]["laplace"])
