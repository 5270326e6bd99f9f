"""Where the data sit between naive, LDA and QDA, and what averaging over that continuum gains on held-out rows.

The average is scored, not dissected: its prior is estimated from the data, and some of its models have fewer parameters
than others, so that neither prior sensitivity nor a comparison of methods has a meaning for it.
"""

from dataclasses import dataclass

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.calibration import paired_difference
from bayes_gda.evaluation.loo import BEYOND
from bayes_gda.families.base import Family
from bayes_gda.families.gaussian.classifier import AveragedClassifier
from bayes_gda.families.gaussian.continuum import Continuum
from bayes_gda.reporting.analysis.words import signed


@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """The continuum of the training rows, and its average on the held-out ones.

    Parameters
    ----------
    continuum
        The models with their weights.
    log_score
        Mean log probability of the held-out rows' classes.
    rows
        (n_test,) the same row by row.
    """

    continuum: Continuum
    log_score: float
    rows: Floats

    def against(self, name: str, rows: Floats) -> str:
        """Hold the average against a model, by its log probabilities (n_test,) of the same rows' classes."""
        gain, error = paired_difference(self.rows, rows)
        head = f"The model average over this continuum (rda) has a mean log score of {signed(self.log_score)} on the "
        head += "held-out rows"
        if not np.isfinite(gain):
            return f"{head}; {name} gave the true class of a row probability 0."
        sentence = f"{head}, {abs(gain):.3f} (SE {error:.3f}) {'above' if gain > 0 else 'below'} that of {name}"
        if not abs(gain) > BEYOND * error:
            return f"{sentence}: less than two standard errors."
        why = "Consider BayesianRDA." if gain > 0 else "Its weights follow the fit to the features, not to the classes."
        return f"{sentence}: more than two standard errors. {why}"


def place(family: type[Family], train: Dataset, test: Dataset) -> Placement | None:
    """Fit the continuum to the training rows and score it on others; None if there are too few rows to tell."""
    if train.n <= train.K:
        return None
    exact = family.bind(train).exact()
    assert exact is not None
    model = exact.model
    assert isinstance(model, AveragedClassifier)
    rows = model.log_probabilities(test.X)[np.arange(test.n), test.y]
    return Placement(model.continuum, float(rows.mean()), rows)
