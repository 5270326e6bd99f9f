"""k̂, model scores and prior sensitivity are drawn with the numbers given."""

import re
import warnings

import numpy as np
import pytest
import xarray as xr
from reporting.plots.fits import comparison, loo, power_scaling, sensitivity
from reporting.plots.scenes import lines, scene, texts

from bayes_gda.errors import DataError
from bayes_gda.evaluation.loo import Loo
from bayes_gda.evaluation.sensitivity import power_weights, prior_sensitivity
from bayes_gda.methods.diagnostics import scalars
from bayes_gda.reporting import plots


def test_pareto_k_shows_each_row_on_its_side():
    axes = scene("pareto-k").figure.axes[0]
    given = loo()
    # ArviZ draws all rows; crosses lie on those that are unreliable.
    [rows] = [c.get_offsets() for c in axes.collections]
    np.testing.assert_array_equal(rows, np.column_stack([np.arange(given.n), given.pareto_k]))
    bad = lines(axes)[0]
    assert len(bad) == given.n_bad == 9
    np.testing.assert_array_equal(bad[:, 1], given.pareto_k[bad[:, 0].astype(int)])


def test_unreliable_rows_are_called_by_the_numbers_of_the_table():
    k = np.array([0.1, 0.2, 0.9, 0.3] * 10)
    plot = plots.plot_pareto_k(Loo("conditional", np.zeros(40), np.ones(40), k, 0.7), numbers=range(101, 141))
    shown = {text.get_text() for text in plot.figure.axes[0].texts}
    assert shown
    assert shown <= {str(i) for i in range(103, 141, 4)}


def test_infinite_k_and_scores_stand_at_the_edge():
    k = np.array([-np.inf, 0.1, np.inf, 0.2])
    axes = plots.plot_pareto_k(Loo("conditional", np.zeros(4), np.ones(4), k, 0.7)).figure.axes[0]
    assert np.isfinite(axes.collections[0].get_offsets()).all()
    assert np.isfinite(np.concatenate(lines(axes))).all()
    table = comparison().loo.copy()
    table.loc[table.index[-1], ["difference", "difference_se"]] = [-np.inf, np.inf]
    assert "impossible" in " ".join(text.get_text() for text, _ in texts(plots.plot_models(table).figure))


def test_power_scaled_densities_are_those_of_the_weighted_draws():
    figure = scene("power-scaling").figure
    low, _ = sensitivity().alphas
    label = sensitivity().worst(1).index[0]
    tree = power_scaling()
    draws = scalars(tree["posterior"].to_dataset())[label].ravel()
    panels = figure.axes[:2]
    for axes, group in zip(panels, ("log_prior", "log_likelihood"), strict=True):
        weakened, as_it_is, _ = axes.get_lines()
        weights = np.exp(power_weights(sum(x.to_numpy() for x in tree[group].data_vars.values()), low).log_weights)
        for line, w in ((weakened, weights), (as_it_is, None)):
            x, density = line.get_data()
            mean = np.trapezoid(x * density, x) / np.trapezoid(density, x)
            # Resampled, and smoothed by a kernel: within a tenth of a posterior sd.
            assert mean == pytest.approx(np.average(draws, weights=w), abs=0.1 * draws.std())
    assert [axes.get_title(loc="left").split(":")[0] for axes in panels] == ["prior", "likelihood"]


def test_one_parameter_can_be_shown_alone():
    """ArviZ makes an array of a single variable, and then fails with a TypeError."""
    figure = plots.plot_power_scaling(power_scaling(), sensitivity(), most=1).figure
    first = scene("power-scaling").figure
    assert len(figure.axes) == 2
    for axes, other in zip(figure.axes, first.axes[:2], strict=True):
        for line, same in zip(axes.get_lines(), other.get_lines(), strict=True):
            np.testing.assert_allclose(line.get_data(), same.get_data())


def test_models_show_differences_with_two_standard_errors():
    table = comparison().loo
    axes, weights = scene("models").figure.axes
    shown = {round(y): x for line in lines(axes) for x, y in line if list(line[:, 0]) != [0, 0]}
    np.testing.assert_allclose([shown[i] for i in range(4)], table["difference"])
    segments = np.concatenate([c.get_segments() for c in axes.collections])
    lengths = {round(s[0, 1]): np.ptp(s[:, 0]) for s in segments}
    np.testing.assert_allclose([lengths[i] for i in range(4)], 4 * table["difference_se"])
    np.testing.assert_allclose([bar.get_width() for bar in weights.patches], table["stacking"])


def test_sensitivity_shows_the_worst_first():
    given = sensitivity().worst(12)
    axes = scene("sensitivity").figure.axes[0]
    np.testing.assert_array_equal(lines(axes)[0][:, 0], given["prior"])
    np.testing.assert_array_equal(lines(axes)[1][:, 0], given["likelihood"])


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(DataError, match="exact one"):
        plots.plot_pareto_k(Loo("joint", np.zeros(3), np.zeros(3)))


def test_power_scaling_of_unreliable_weights_says_so_and_warns_of_nothing():
    """One draw far below the others has all the weight of likelihood^0.8: ArviZ finds no density, and warned of it."""
    tree = power_scaling()
    far = tree["log_likelihood"].to_dataset().copy(deep=True)
    next(iter(far.data_vars.values()))[0, 0] -= 500.0
    spoilt = xr.DataTree.from_dict({name: node.to_dataset() for name, node in tree.children.items()})
    spoilt["log_likelihood"] = xr.DataTree(far)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot = plots.plot_power_scaling(spoilt, prior_sensitivity(spoilt), most=1)
    assert re.search(r"missing, are the lines of likelihood\^0\.8 \(k̂ = \d", plot.caption)
    assert "missing" not in plots.plot_power_scaling(tree, sensitivity(), most=1).caption
