"""What the experiments of the debate share: learners, decisions, and their loss in excess of Bayes' rule."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning

from bayes_gda.baselines import Perceptron, PlugInLDA
from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.errors import InferenceWarning
from bayes_gda.estimators.gaussian import BayesianLDA
from bayes_gda.families.student import Student
from bayes_gda.teaching.learning import bayesian_logistic_weights

# Passes of the perceptron over rows that no line separates, where it would never end.
EPOCHS = 50


def regret(chosen: ArrayLike, eta: Floats, costs: ArrayLike = ((0.0, 1.0), (1.0, 0.0))) -> float:
    """Return the expected loss of decisions less that of Bayes' rule, a mean over rows.

        mean of Σ_k L[a, k] p_k − min_b Σ_k L[b, k] p_k

    Parameters
    ----------
    chosen
        (n,) actions, 0 or 1.
    eta
        (n,) true p(y = 1 | x).
    costs
        (2, 2) loss L of each action under each class; the 0/1 loss by default.
    """
    expected = np.column_stack([1 - eta, eta]) @ np.asarray(costs, dtype=np.float64).T
    of_chosen = expected[np.arange(len(eta)), np.asarray(chosen, dtype=np.intp)]
    return float((of_chosen - expected.min(axis=1)).mean())


def standard_error(values: Any) -> float:
    """Return the standard error of a mean of independent values; nan for a single one."""
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


def summarise(losses: Mapping[Any, Sequence[float]], setting: str, *more: str) -> pd.DataFrame:
    """Return means and standard errors of the replicates, a row for each (setting, learner, …)."""
    names = (setting, "learner", *more)
    return pd.DataFrame(
        [
            dict(zip(names, key, strict=True)) | {"excess": np.mean(v), "se": standard_error(v)}
            for key, v in losses.items()
        ]
    )


def choose_cheapest(P: Floats, costs: Floats) -> NDArray[np.intp]:
    """Return the actions of least expected loss (n,)."""
    return np.argmin(P @ costs.T, axis=1)


def fit_quietly(model: Any, X: Floats, y: ArrayLike) -> Any:
    """Fit a learner without its warnings, which are expected here: classes overlap, and Laplace is approximate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", InferenceWarning)
        return model.fit(X, y)


def fit_perceptron(X: Floats, y: ArrayLike, seed: int) -> Perceptron:
    """Return a perceptron after EPOCHS passes at most, with its best weights on the way."""
    model: Perceptron = fit_quietly(Perceptron(max_epochs=EPOCHS, random_state=seed), X, y)
    return model


def decide_by_three(X: Floats, y: Any, Z: Floats, seed: int) -> dict[str, NDArray[np.intp]]:
    """Return the decisions (n,) of the three learners of the notes, trained on X and y, for rows Z.

    LDA is Bayesian and exact, logistic regression Bayesian by Laplace's approximation, with default priors.
    """
    codes = y.astype(np.intp)
    varies = np.ptp(X, axis=0) > 0  # a feature of few values may be constant in a few rows
    return {
        "LDA": BayesianLDA().fit(X[:, varies], codes).predict(Z[:, varies]),
        "logistic": _decide_logistic(X, codes, Z),
        "perceptron": fit_perceptron(X[:, varies], codes, seed).predict(Z[:, varies]),
    }


def decide_student(X: Floats, y: NDArray[np.intp], Z: Floats) -> NDArray[np.intp]:
    """Return the decisions (n,) for rows Z of Student-t classes with one scale matrix, near their posterior mode by EM.

    The full posterior is that of `BayesianStudent(scales="shared")`, which takes seconds a fit.
    """
    names = tuple(f"x{j + 1}" for j in range(X.shape[1]))
    block = Student.bind(Dataset(X, y, names, (0, 1)), scales="shared").block()
    shares = (np.bincount(y, minlength=2) + 1) / (len(y) + 2)  # the posterior mean of π
    variables = block.variables(block.start[None]) | {"pi": shares[None]}
    return np.argmax(Student.log_terms(variables, Z)[0], axis=1)


def decide_with_gaps(X: Floats, y: NDArray[np.intp], Z: Floats) -> dict[str, NDArray[np.intp]]:
    """Return the decisions (n,) for rows Z after training rows X, both with gaps, in three ways."""
    complete = ~np.isnan(X).any(axis=1)
    means = np.nanmean(X, axis=0)
    filled, new = np.where(np.isnan(X), means, X), np.where(np.isnan(Z), means, Z)
    out = {"LDA, observed values": PlugInLDA().fit(X, y).predict(Z)}
    if min(np.bincount(y[complete], minlength=2)) < 2:
        out["logistic, complete rows"] = np.full(len(Z), np.bincount(y).argmax())  # nothing to learn from
    else:
        out["logistic, complete rows"] = _decide_logistic(X[complete], y[complete], new)
    return out | {"logistic, means filled in": _decide_logistic(filled, y, new)}


def _decide_logistic(X: Floats, y: NDArray[np.intp], Z: Floats) -> NDArray[np.intp]:
    """Return the decisions (n,) of Bayesian logistic regression by Laplace: the sign of the mean activation."""
    w = bayesian_logistic_weights(X, y.astype(np.float64))
    return (w[0] + Z @ w[1:] > 0).astype(np.intp)
