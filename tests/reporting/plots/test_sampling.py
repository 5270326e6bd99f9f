"""Ranks and effective draws are those of the chains."""

import numpy as np
import pytest
from reporting.plots.fits import logistic
from reporting.plots.scenes import lines

from bayes_gda.data.labels import coordinates, to_datatree
from bayes_gda.errors import DataError
from bayes_gda.reporting import plots


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


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(DataError, match="independent draws have none"):
        plots.plot_energy(logistic("pima")[2]["laplace"])
