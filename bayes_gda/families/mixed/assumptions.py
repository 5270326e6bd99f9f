"""Checks of the mixed model: the distributions of its columns, and their independence within a class.

By normal scores: with F the posterior predictive distribution of a column in the row's class,

    z = Φ⁻¹(F(x))        of counts Φ⁻¹(F(x−) + u (F(x) − F(x−))), u uniform (randomised quantile residuals)

are standard normal if the distribution holds, whatever it is, so that the tests of Gaussian classes apply: skewness and
kurtosis of each column in each class, and the determinant of their correlations. F is found from draws of the
predictive. Categories have any distribution that there is, and no order: they are left out.

References
----------
Dunn and Smyth (1996), Randomized quantile residuals.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.families.assumptions import Assumptions, Check
from bayes_gda.families.gaussian.assumptions import FEWEST_ROWS, check_independence, check_margins
from bayes_gda.families.mixed.classifier import MixedClassifier

# Draws of the predictive of a column in a class: quantiles are right to 4 standard deviations.
SIMULATED = 50_000
DISTRIBUTION = "Transform these columns, or use a regression, which does not model their distributions."
DEPENDENT = "Use lda, qda or a regression: dependent columns make naive probabilities too extreme."


def mixed_assumptions(model: MixedClassifier, data: Dataset, random_seed: int) -> Assumptions:
    """Check a model of columns by their type on complete rows without weights.

    Parameters
    ----------
    model
        With its exact posterior.
    data
        Its training rows.
    random_seed
        For the draws of the predictive and the randomised scores.
    """
    rng = np.random.default_rng(random_seed)
    columns = [j for j, spec in enumerate(model.prior.columns) if not spec.levels]
    what = "distributions of the columns", "D'Agostino and Pearson's K² of normal scores"
    if not columns:
        none = "Not checked: all columns are categories, which may have any distribution."
        return Assumptions((Check(*what, np.nan, (), DISTRIBUTION, none),))
    X = np.column_stack([model.read(data.X)[j] for j in columns])
    whole = ~np.isnan(X).any(axis=1)
    Z = normal_scores(model, columns, X[whole], data.y[whole], rng)
    rows = [Z[data.y[whole] == k] for k in range(data.K)]
    classes = [str(name) for name in data.class_names]
    # A yes or no has one parameter, and nothing else that could be wrong.
    shaped = [i for i, j in enumerate(columns) if model.prior.columns[j].distribution != "bernoulli"]
    names = [model.prior.columns[j].name for j in columns]
    checks = []
    if shaped:
        margins = check_margins([z[:, shaped] for z in rows], classes, [names[i] for i in shaped])
        checks.append(replace(margins, assumption=what[0], statistic=what[1], remedy=DISTRIBUTION))
    if len(columns) > 1:
        wide = [k for k, z in enumerate(rows) if len(z) >= max(FEWEST_ROWS, len(columns) + 2)]
        left = [classes[k] for k in range(data.K) if k not in wide]
        note = f"Not checked: {', '.join(left)} (too few rows)." if left else ""
        joint = check_independence([rows[k] for k in wide], [classes[k] for k in wide], note, rng)
        checks.append(replace(joint, assumption="independent columns", remedy=DEPENDENT))
    return Assumptions(tuple(checks))


def normal_scores(
    model: MixedClassifier, columns: list[int], X: Floats, y: NDArray[np.intp], rng: np.random.Generator
) -> Floats:
    """Return Φ⁻¹ of the predictive distribution, in its class, of each value X (n, c) of the given columns."""
    Z = np.empty_like(X)
    for i, j in enumerate(columns):
        column = model.columns[j]
        for k in np.unique(y):
            draws = {name: value[:, k] for name, value in column.draw(SIMULATED, rng).items()}
            values = np.sort(column.draw_values(draws, rng))
            x = X[y == k, i]
            # An own value of the column stands between the draws below it and those that are not above it.
            below, upto = (np.searchsorted(values, x, side=side) for side in ("left", "right"))
            u = (below + rng.uniform(size=len(x)) * (upto - below + 1)) / (SIMULATED + 1)
            Z[y == k, i] = ndtri(np.clip(u, 0.5 / (SIMULATED + 1), 1 - 0.5 / (SIMULATED + 1)))
    return Z
