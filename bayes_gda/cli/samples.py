"""Tables to try things on: the examples as they are, and simulated rows with the parameters they were drawn from."""

from typing import TYPE_CHECKING

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.cli.inputs import EXAMPLE_TARGET, labels_of
from bayes_gda.data.examples import EXAMPLE_TRUTHS, GaussianTruth, simulate_gaussian
from bayes_gda.data.table import Dataset

if TYPE_CHECKING:
    import pandas as pd

# Degrees of freedom of the simulated covariances, beyond the features: correlations of about ±0.4.
WISHART = 4


def table_of(data: Dataset) -> "pd.DataFrame":
    """Return a data set as a table whose last column, `class`, holds the labels."""
    import pandas as pd

    frame = pd.DataFrame(data.X, columns=list(data.feature_names))
    return frame.assign(**{EXAMPLE_TARGET: labels_of(data)})


def textbook_rows(name: str, n: int, seed: int) -> tuple[Dataset, GaussianTruth]:
    """Draw n rows of a textbook simulation."""
    truth = EXAMPLE_TRUTHS[name]
    return simulate_gaussian(truth.mu, truth.Sigma, class_prob=truth.pi, n=n, random_seed=seed), truth


def gaussian_rows(
    n: int, d: int, classes: int, *, separation: float, shared: bool, seed: int
) -> tuple[Dataset, GaussianTruth]:
    """Draw n rows of Gaussian classes of equal shares, whose parameters are drawn first.

        μ_k ~ N(0, separation² I),   Σ_k ~ Wishart(d + WISHART, I)/(d + WISHART)

    Parameters
    ----------
    n, d, classes
        Rows, features, classes.
    separation
        How far the means are apart, in standard deviations of a class.
    shared
        Whether the classes share one covariance, as LDA has it.
    seed
        Of parameters and rows.
    """
    rng = np.random.default_rng(seed)
    mu = separation * rng.standard_normal((classes, d))
    df = d + WISHART
    Z: Floats = rng.standard_normal((1 if shared else classes, df, d))
    Sigma = np.swapaxes(Z, 1, 2) @ Z / df
    truth = GaussianTruth(np.full(classes, 1 / classes), mu, Sigma[0] if shared else Sigma)
    rows = simulate_gaussian(truth.mu, truth.Sigma, class_prob=truth.pi, n=n, random_seed=int(rng.integers(2**31)))
    return rows, truth
