"""Learning curves held to truths: more rows help, the true model wins with few rows, and Efron's efficiency."""

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from bayes_gda import BayesianLDA, BayesianLogisticRegression, load_example
from bayes_gda.errors import DataError
from bayes_gda.validation import learning_curves

LEARNERS = {"LDA": LinearDiscriminantAnalysis(), "logistic": LogisticRegression(C=1e6, max_iter=1000)}


def two_gaussians(n, rng):
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 2)) + 1.5 * y[:, None], y


def test_losses_fall_with_rows_and_the_true_model_is_ahead():
    curves = learning_curves(LEARNERS, two_gaussians, rows=[20, 80, 320], replicates=30)
    means = curves.log_loss.mean(axis=0)
    assert (np.diff(means, axis=0) < 0).all()
    assert means[0, 0] < means[0, 1]  # LDA, whose model is true, needs fewer rows (Efron 1975)
    assert curves.crossing("LDA", "logistic") is None or curves.crossing("LDA", "logistic") > 80
    bayes = 0.5 * np.mean([np.mean(curves.error[:, -1, j]) for j in (0, 1)]) * 2
    assert bayes == pytest.approx(0.1444, abs=0.02)  # Φ(−1.5/√2)


def test_scores_are_those_of_the_definition():
    data = load_example("iris")
    curves = learning_curves({"LDA": BayesianLDA()}, data, rows=[60], replicates=3, random_seed=5)
    order = np.random.default_rng([5, 0]).permutation(data.n)
    X, y = data.X[order], data.y[order]
    P = BayesianLDA().fit(X[:60], y[:60]).predict_proba(X[60:])
    assert curves.log_loss[0, 0, 0] == pytest.approx(-np.log(P[np.arange(90), y[60:]]).mean())
    assert curves.error[0, 0, 0] == np.mean(P.argmax(axis=1) != y[60:])
    row = curves.table.iloc[0]
    assert row["log_loss"] == pytest.approx(curves.log_loss.mean())
    assert row["log_loss_se"] == pytest.approx(curves.log_loss.std(ddof=1) / np.sqrt(3))


def test_the_plot_and_bayesian_learners():
    learners = {"LDA": BayesianLDA(), "logistic": BayesianLogisticRegression(inference="laplace")}
    curves = learning_curves(learners, two_gaussians, rows=[20, 40], replicates=2)
    plot = curves.plot()
    assert plot.alt.startswith("Log loss of 2 learners")
    assert "Bayes" not in plot.caption  # no excess over a known truth


def test_errors_name_what_is_wrong():
    data = load_example("iris")
    with pytest.raises(DataError, match="`rows` must be increasing"):
        learning_curves(LEARNERS, data, rows=[50, 20])
    with pytest.raises(DataError, match="must leave test rows of the table's 150; got 150"):
        learning_curves(LEARNERS, data, rows=[150])
    with pytest.raises(DataError, match="3 rows do not hold every class twice"):
        learning_curves(LEARNERS, data, rows=[3, 50])
    with pytest.raises(DataError, match="The learners are LDA, logistic; got 'QDA'"):
        learning_curves(LEARNERS, data, rows=[40], replicates=2).crossing("LDA", "QDA")
