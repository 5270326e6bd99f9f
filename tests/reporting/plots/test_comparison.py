"""k̂, model scores and prior sensitivity are drawn with the numbers given."""

import numpy as np
import pytest
from reporting.plots.fits import comparison, loo, sensitivity
from reporting.plots.scenes import lines, scene, texts

from bayes_gda.errors import DataError
from bayes_gda.evaluation.loo import Loo
from bayes_gda.reporting import plots


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


def test_sensitivity_shows_the_worst_first():
    given = sensitivity().worst(12)
    axes = scene("sensitivity").figure.axes[0]
    np.testing.assert_array_equal(lines(axes)[0][:, 0], given["prior"])
    np.testing.assert_array_equal(lines(axes)[1][:, 0], given["likelihood"])


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(DataError, match="exact one"):
        plots.plot_pareto_k(Loo("joint", np.zeros(3), np.zeros(3)))
