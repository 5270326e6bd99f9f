"""Sampling where the ladder ends: by which sampler, and for how long.

A named sampler is run once, as it was asked for. Where the method is chosen (`auto`), split HMC comes first, as it
takes a tenth of the time of NUTS, and PyMC's NUTS where that does not apply or its chains do not meet. Such a run is
extended until the Monte Carlo errors of the training rows' probabilities are within the tolerance, up to a limit.
"""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bayes_gda.errors import ConvergenceError
from bayes_gda.memory import announce_work
from bayes_gda.methods.diagnostics import Diagnosis
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.settings import Settings
from bayes_gda.prediction.fitted import FittedModel
from bayes_gda.prediction.monte_carlo import WANTED_ERRORS, MonteCarlo

if TYPE_CHECKING:
    import xarray as xr

    from bayes_gda.families.base import Family

# How many times as long a run may become, and the numbers that its draws may hold (320 MB).
LONGEST, MOST_NUMBERS = 10, 40_000_000
# Gradients of a draw, about; and what an operation takes in them, in those of matrix products: split HMC has a matrix
# of chains, NUTS one vector. An exponential and what goes with it, one for each row and class, takes so many.
GRADIENTS, OF_HMC, OF_NUTS, OF_EXPONENTIALS = 10.0, 2.0, 10.0, 100.0


@dataclass(frozen=True, slots=True, eq=False)
class Sampled:
    """What sampling brought.

    Parameters
    ----------
    model, tree
        The model with the draws, and what the sampler returned.
    diagnosis
        Whether the chains can be relied upon.
    error
        The Monte Carlo errors of the training rows' probabilities; None if these do not rest on the draws.
    draws
        Draws of each of the chains that were asked for.
    extension
        A sentence on how far the run was extended; empty if it was not.
    """

    model: FittedModel
    tree: "xr.DataTree"
    diagnosis: Diagnosis
    error: MonteCarlo | None
    draws: int
    extension: str = ""


def sample_posterior(
    family: "Family", settings: Settings, start: GaussianPosterior | None, *, chosen: bool = False
) -> Sampled:
    """Sample a posterior.

    Parameters
    ----------
    family, settings
        The model, and how to compute.
    start
        An approximation for starts and scales; None for the family's own.
    chosen
        Whether the sampler and the length of the run are to be chosen, where `settings` name none: for the answer of
        `auto`. Else the run is what `settings` say, with PyMC's NUTS for `auto`.
    """
    free = chosen and settings.inference == "auto"
    sampled = None
    if free and settings.sampler == "auto":
        try:
            sampled = _run(family, replace(settings, sampler="hmc"), start)
        except ConvergenceError:  # NUTS then says what there is to say
            sampled = None
        if sampled is not None and sampled.diagnosis.verdict != "bad":
            return _extended(sampled, family, replace(settings, sampler="hmc"), start)
    sampled = _run(family, settings, start)
    return _extended(sampled, family, settings, start) if free else sampled


def _run(family: "Family", settings: Settings, start: GaussianPosterior | None) -> Sampled:
    # Products of rows and parameters; exponentials; coordinates whitened, or multiplied by a mass matrix.
    gradient = 4.0 * family.cost_rows * family.parameters + 4.0 * family.parameters**2
    gradient *= OF_HMC if settings.sampler == "hmc" else OF_NUTS
    gradient += OF_EXPONENTIALS * family.cost_rows * family.data.K
    announce_work(
        gradient * GRADIENTS * settings.draws * settings.chains,
        f"Sampling {family.parameters} parameters given {family.cost_rows} rows",
        "Use fewer columns or `draws`, or inference='laplace'; progress=True shows how far it is.",
    )
    model, tree = family.sample(settings, start)
    return Sampled(model, tree, family.diagnose(tree), family.monte_carlo(model, settings.tolerance), settings.draws)


def _extended(sampled: Sampled, family: "Family", settings: Settings, start: GaussianPosterior | None) -> Sampled:
    """Run again, longer, if chains have met but errors are not within the tolerance."""
    error = sampled.error
    if error is None or sampled.diagnosis.verdict == "bad" or sampled.tree["posterior"].attrs.get("incomplete"):
        return sampled
    numbers = sum(x.size for x in sampled.tree["posterior"].to_dataset().data_vars.values())
    longest = settings.draws * min(LONGEST, MOST_NUMBERS / max(numbers, 1))
    draws = int(min(error.draws_needed(settings.draws, WANTED_ERRORS), longest))
    if error.is_settled or draws <= settings.draws:
        return sampled
    longer = _run(family, replace(settings, draws=draws), start)
    sentence = (
        f"The run was extended from {settings.draws} to {draws} draws of each of {settings.chains} chains, "
        "as Monte Carlo errors exceeded the tolerance."
    )
    return replace(longer, extension=sentence)
