"""Probabilities, their intervals and their separation are drawn with the numbers given."""

import numpy as np
import pytest
from reporting.plots.fits import data, draws_of_probability, methods, probabilities
from reporting.plots.scenes import lines, scene, texts
from sklearn.metrics import roc_auc_score

from bayes_gda.errors import DataError
from bayes_gda.reporting import plots


def test_predictions_show_the_differences():
    given = methods("pima")
    axes = scene("predictions-pima").figure.axes[1]
    shown = [xy for xy in lines(axes) if len(xy) > 2]
    best = given["mcmc"][:, 1]
    expected = [np.column_stack([best, 100 * (given[name][:, 1] - best)]) for name in ("probit", "laplace")]
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


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: plots.plot_predictions({"mcmc": [[0.5, 0.5]]}), "two methods or more"),
        (lambda: plots.plot_intervals([0.5], [0.6], [0.4]), "`lower` ≤ `upper`"),
    ],
)
def test_what_cannot_be_shown_is_refused(call, match):
    with pytest.raises(DataError, match=match):
        call()
