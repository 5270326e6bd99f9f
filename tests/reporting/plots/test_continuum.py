"""The map between naive, LDA and QDA shows each model's weight in its place."""

import numpy as np
import pytest
from reporting.plots.fits import continuum
from reporting.plots.scenes import scene


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
