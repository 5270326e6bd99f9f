"""A regression on a table that is summed over: Laplace, one pass a Newton step, and one more for the verdict.

    sample    one pass: a random part, held in memory; it sets the feature map, the start and the proposal's mean
    Newton    two or three passes from that start
    verdict   one pass: the log density of all draws over all rows; a second one only where the first will not do

There is no MCMC here: its thousands of gradients would each be a pass.
"""

import warnings
from dataclasses import replace
from pathlib import Path

from bayes_gda.checks import Floats
from bayes_gda.errors import InferenceWarning
from bayes_gda.families.classifier import RegressionClassifier
from bayes_gda.families.linear.chunked import ChunkedTarget, Summed, chunked_laplace
from bayes_gda.fitting.regressions import WeightsProblem
from bayes_gda.methods.importance.at_once import assess_at_once
from bayes_gda.methods.ladder import CORRECTED_DRAWS, TOLERANCE, Fit, Settings
from bayes_gda.methods.skew import lindley_mean

# MCMC on a table that is larger than memory is no remedy; a part of it is.
REMEDY = "Fit a random part of the rows that fits into memory with inference='mcmc', or use a tighter prior."
_PACKAGE = str(Path(__file__).resolve().parents[1])


def fit_chunked(source: Summed, part: WeightsProblem, count: Floats, settings: Settings) -> Fit:
    """Fit a regression with a proper Gaussian prior to all rows of a source, and check it on all of them.

    Parameters
    ----------
    source
        The rows.
    part
        The same problem with a random part of them, whose feature map and prior are used.
    count
        (K,) rows of each class.
    settings
        How to compute; `inference` is "laplace", or "auto" for the corrected posterior where that is better.
    """
    design, n, seed = part.design, float(count.sum()), settings.random_seed
    Phi, y = design.Phi, design.rows.codes
    target = ChunkedTarget(source, design.features, Phi.shape[1], design.rows.K, part.prior)
    posterior = chunked_laplace(target, (Phi, y), n)
    # A proposal need not be exact, as its draws are weighed: the part stands for all rows, and a pass is saved.
    mean = lindley_mean(posterior, target.of_rows(Phi, y, weight=n / len(Phi)))
    trust = assess_at_once(
        target, posterior, mean=mean, predictor=design.predictor(), tolerance=TOLERANCE, random_seed=seed
    )
    if trust.verdict == "needs-mcmc":
        trust = replace(trust, next_step=REMEDY)
        message = f"{trust.reason} The Laplace approximation is kept. {REMEDY}"
        warnings.warn(message, InferenceWarning, skip_file_prefixes=(_PACKAGE,), stacklevel=2)
    corrected = trust.verdict == "corrected" and settings.inference != "laplace"
    model: RegressionClassifier
    if corrected:
        model = part.from_draws(trust.draw(max(settings.size, CORRECTED_DRAWS), random_seed=seed))
    else:
        model = part.from_gaussian(posterior, settings)
    return Fit(
        replace(model, shares=count / n),
        "corrected" if corrected else "laplace",
        trust,
        trust.log_evidence,
        trust.log_evidence_error,
        posterior.info.n_iter,
    )
