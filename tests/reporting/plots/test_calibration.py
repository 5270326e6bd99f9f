"""Reliability curves, thresholds, costs and decisions are drawn with the numbers given."""

import numpy as np
import pytest
from reporting.plots.fits import all_decisions, curves, thresholds
from reporting.plots.scenes import lines, scene

from bayes_gda.errors import DataError
from bayes_gda.prediction.decisions import cost_curve, net_benefit
from bayes_gda.reporting import plots


def test_reliability_shows_the_curve_and_its_bands():
    figure = scene("reliability-pima").figure
    for axes, curve in zip(figure.axes, curves("pima").values(), strict=False):
        [shown] = [line.get_xydata() for line in axes.get_lines() if line.get_gid() == "curve"]
        np.testing.assert_allclose(shown, np.column_stack([curve.forecast, curve.recalibrated]), rtol=1e-12)
        consistency, confidence = axes.collections
        for band, given in ((consistency, curve.consistency), (confidence, curve.confidence)):
            box = band.get_paths()[0].vertices
            assert set(np.round(box[:, 1], 12)) >= set(np.round([*given.lower, *given.upper], 12))


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


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(DataError, match="at least one reliability curve"):
        plots.plot_reliability({})
