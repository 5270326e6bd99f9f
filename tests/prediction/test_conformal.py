"""Split conformal sets: their coverage is exact on average, whatever the model."""

import numpy as np
import pytest

from bayes_gda import BayesianLDA, load_example
from bayes_gda.errors import DataError
from bayes_gda.prediction.conformal import Conformal

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("power", [1.0, 4.0, 0.1], ids=["right", "overconfident", "timid"])
def test_coverage_is_the_rank_over_n_plus_one(power):
    """99 calibration rows and coverage .9: 90 of 100 on average, also where the probabilities are wrong."""
    repeats, n, new = 2000, 99, 20
    truth = RNG.dirichlet(np.ones(3), size=(repeats, n + new))
    y = (truth.cumsum(axis=2) < RNG.random((repeats, n + new, 1))).sum(axis=2)
    P = truth**power / (truth**power).sum(axis=2, keepdims=True)
    covered = []
    for i in range(repeats):
        sets = Conformal.calibrate(P[i, :n], y[i, :n], 0.9).sets(P[i, n:])
        covered.append(sets[np.arange(new), y[i, n:]].mean())
    assert np.mean(covered) == pytest.approx(0.9, abs=4 * np.std(covered) / np.sqrt(repeats))


def test_the_threshold_by_hand():
    P = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]])
    found = Conformal.calibrate(P, np.array([0, 0, 0, 1]), 0.6)  # scores .1, .4, .8, .3; rank ⌈5 · .6⌉ = 3
    assert found.threshold == pytest.approx(0.4)
    np.testing.assert_array_equal(found.sets(np.array([[0.65, 0.35], [0.5, 0.5]])), [[True, False], [False, False]])


def test_sets_of_an_estimator():
    train, rest = load_example("iris").split(0.5, 0)
    calibration, test = rest.split(0.5, 0)
    model = BayesianLDA().fit(train)
    labels = np.array(calibration.class_names)[calibration.y]
    sets = model.predict_set(test, calibration, labels, 0.8)
    assert sets.shape == (test.n, 3)
    assert sets[np.arange(test.n), test.y].mean() > 0.6


@pytest.mark.parametrize(
    ("n", "coverage", "message"),
    [(5, 0.9, "needs at least 9 calibration rows; got 5"), (50, 1.0, "`coverage` must lie between 0 and 1")],
)
def test_what_cannot_be_promised(n, coverage, message):
    with pytest.raises(DataError, match=message):
        Conformal.calibrate(np.full((n, 2), 0.5), np.zeros(n, dtype=int), coverage)
