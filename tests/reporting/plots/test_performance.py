"""The confusion matrix and the curves show the numbers given."""

import numpy as np
import pytest
from reporting.plots.fits import data, judged
from reporting.plots.scenes import lines, scene
from sklearn.inspection import permutation_importance

from bayes_gda import BayesianLDA
from bayes_gda.errors import DataError
from bayes_gda.evaluation.performance import performance
from bayes_gda.reporting import plots


def test_every_count_is_written():
    axes = scene("confusion-hostile").figure.axes[0]
    shown = np.array([int(text.get_text()) for text in axes.texts]).reshape(3, 3)
    np.testing.assert_array_equal(shown, judged("hostile").confusion)


def test_of_many_classes_those_that_are_mistaken_most_are_shown():
    counts = np.diag(np.full(30, 5))
    counts[7, 25] = 3
    plot = plots.plot_confusion(counts, [f"c{k}" for k in range(30)])
    names = [label.get_text().split()[0] for label in plot.figure.axes[0].get_yticklabels()]
    assert {"c7", "c25"} <= set(names)
    assert len(names) == 20
    assert "most often c7 is taken for c25, 3 times" in plot.alt


def test_columns_have_their_names_where_there_is_room():
    """Digits: class 9 stood in column 10, and its line was called `9  10`."""
    for names, numbered in (([str(k) for k in range(10)], False), ([f"glass of type {k}" for k in range(10)], True)):
        plot = plots.plot_confusion(np.diag(np.full(10, 5)), names)
        ticks = [label.get_text() for label in plot.figure.axes[0].get_xticklabels()]
        assert ticks == ([str(k + 1) for k in range(10)] if numbered else names)
        assert ("Columns have the numbers" in plot.caption) == numbered


def test_curves_are_those_of_the_second_of_two_classes():
    left, right = scene("curves-pima").figure.axes
    found = judged("pima").curves[data("pima").class_names[1]]
    np.testing.assert_array_equal(lines(left)[0], np.column_stack([found.fall_out, found.recall]))
    np.testing.assert_array_equal(lines(right)[0], np.column_stack([found.recall, found.precision]))


def test_importances_are_those_of_scikit_learn():
    """A feature that is the class in disguise comes first, and the mark is the mean of its permutations."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = np.column_stack([rng.normal(size=200), y + 0.1 * rng.normal(size=200)])
    model = BayesianLDA().fit(X, y)
    falls = permutation_importance(model, X, y, n_repeats=4, random_state=0).importances
    plot = plots.plot_importance(falls, ["noise", "class itself"])
    [axes] = plot.figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["class itself", "noise"]
    single, mean = lines(axes)[:2]
    np.testing.assert_allclose(mean[:, 0], falls.mean(axis=1)[::-1])
    np.testing.assert_allclose(single[:4, 0], falls[1])
    assert plot.alt.startswith("Permutation importance of 2 features: class itself 0.")
    many = plots.plot_importance(np.arange(40.0)[:, None], [f"f{j}" for j in range(40)])
    assert len(many.figure.axes[0].get_yticklabels()) == 25
    assert "25 of 40 features shown, the most important." in many.caption


def test_what_cannot_be_shown_is_refused():
    with pytest.raises(DataError, match="must be \\(d, R\\) for the 2 features; got shape \\(2,\\)"):
        plots.plot_importance([0.1, 0.2], ["a", "b"])
    with pytest.raises(DataError, match="must be \\(K, K\\)"):
        plots.plot_confusion(np.ones((2, 3)), ["a", "b"])
    with pytest.raises(DataError, match="no curve"):
        plots.plot_curves(performance([[0.2, 0.8]], [1]), ["0", "1"])
    with pytest.raises(DataError, match="at least one class"):
        plots.plot_distances({})
