"""Distances are drawn against what is expected."""

import numpy as np
from reporting.plots.fits import distances
from reporting.plots.scenes import lines, scene


def test_points_are_observed_against_expected():
    for axes, found in zip(scene("distances-hostile").figure.axes, distances("hostile").values(), strict=False):
        np.testing.assert_array_equal(lines(axes)[1], np.column_stack([found.expected, found.observed]))
