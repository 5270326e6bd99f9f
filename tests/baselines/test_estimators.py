"""The contract of scikit-learn, for every baseline."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayes_gda.baselines import (
    GradientLogistic,
    HingeClassifier,
    IRLSLogistic,
    Perceptron,
    PlugInLDA,
    PlugInNaiveGaussian,
    PlugInQDA,
    Steps,
)


# Some of the checks' data are not separable, or need more epochs than we spend here: both are said by a warning.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(
    [
        Perceptron(max_epochs=50),
        Perceptron(online=False, max_epochs=50),
        GradientLogistic(max_epochs=100),
        GradientLogistic(online=True, max_epochs=10),
        IRLSLogistic(),
        HingeClassifier(max_epochs=50),
        HingeClassifier(online=True, max_epochs=10),
        PlugInLDA(),
        PlugInNaiveGaussian(),
        PlugInQDA(),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([Perceptron(), GradientLogistic(), HingeClassifier()])
def test_scikit_learn_contract_with_the_defaults(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize(
    "model",
    [
        Perceptron(online=False, max_epochs=50),
        Perceptron(step=Steps(1, 50), random_state=0, max_epochs=50),
        GradientLogistic(),
        GradientLogistic(online=True, step=Steps(5, 50), random_state=0, max_epochs=10),
        IRLSLogistic(),
        HingeClassifier(online=True, random_state=0, max_epochs=10),
        PlugInLDA(),
        PlugInQDA(),
        PlugInNaiveGaussian(),
    ],
    ids=str,
)
def test_every_learner_has_a_curve_and_says_whether_it_converged(model, K):
    X, y = make_blobs(90, centers=[[0, 0], [3, 0], [0, 3]][:K], random_state=0)
    model = clone(model).fit(X, np.array(["a", "b", "c"])[y])
    curve = model.learning_curve_
    assert {"loss", "errors"} <= set(curve.columns)
    assert np.isfinite(curve["loss"]).all()
    assert isinstance(model.converged_, bool)
    wrong = (model.predict(X) != np.array(["a", "b", "c"])[y]).sum()
    # The perceptron keeps the best weights, which need not be the last; one against the rest, by the sum of units.
    assert wrong == curve["errors"].iloc[-1] or isinstance(model, Perceptron)
    assert model.score(X, np.array(["a", "b", "c"])[y]) > 0.8
    # The same seed gives the same model.
    again = clone(model).fit(X, np.array(["a", "b", "c"])[y])
    assert again.learning_curve_.equals(curve)


def test_a_warning_points_to_the_line_of_the_user():
    with pytest.warns(ConvergenceWarning) as caught:
        Perceptron(max_epochs=2).fit([[0.0], [1.0], [2.0]], [0, 1, 0])
    assert caught[0].filename == __file__
