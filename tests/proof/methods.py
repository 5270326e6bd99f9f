"""Posterior draws by each method of the package, in the number and the independence that ranks need.

    exact        independent draws of the conjugate posterior
    laplace      the Gaussian at the mode, in unconstrained coordinates
    skew-modal   the same with the skewness of the third derivatives; for the regressions
    corrected    weighted draws of the fitted proposal, resampled; none where the verdict is `needs-mcmc`
    mcmc         NUTS, two chains, run longer if they mix slowly, thinned to draws that are nearly independent

A method may refuse a data set: there is no mode, the verdict says that MCMC is needed, or the chains do not mix. To
leave these simulations out is fair, because whether it refuses depends on the data and its own random numbers, not on
the truth: given the data, θ still has the law of the posterior.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from proof.simulate import Model, Simulation

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.methods.ladder import Settings, verify
from bayes_gda.methods.skew import SkewModal

# Draws of each posterior: the rank of the truth among them is one of 100 numbers.
DRAWS = 99
# Chains, and draws of each. NUTS with the Laplace mass matrix has some 300 effective draws in 300, and one in three is
# kept. Where the worst parameter has fewer effective ones than are kept, the chains are run anew, longer.
CHAINS, CHAIN_DRAWS = 2, (150, 1000)
# Outcomes that have draws.
DRAWN = frozenset({"drawn", "trusted", "corrected"})


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Draws, or why there are none.

    Parameters
    ----------
    outcome
        `drawn`; for the corrected method the verdict, `trusted`, `corrected` or `needs-mcmc`; `no mode`, `not mixed`.
    variables
        The model's variables (S, …), or None.
    effective
        Effective draws that the kept ones were thinned from, of the parameter with the fewest; None if independent.
    """

    outcome: str
    variables: dict[str, Floats] | None = None
    effective: float | None = None


Method = Callable[[Simulation, int, int], Posterior]


def exact(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Draw from the conjugate posterior."""
    found = simulation.family.exact()
    assert found is not None
    model: Any = found.model
    return Posterior("drawn", model.posterior.draw(size, random_seed=seed))


def laplace(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Draw from the Gaussian at the mode."""
    try:
        w = simulation.family.laplace().draw(size, random_seed=seed)
    except ConvergenceError:
        return Posterior("no mode")
    return Posterior("drawn", simulation.density.variables(w))


def skew_modal(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Draw from the skew-modal approximation."""
    family = simulation.family
    w = SkewModal(family.laplace(), family.target).draw(size, random_seed=seed)
    return Posterior("drawn", simulation.density.variables(w))


def corrected(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Resample the weighted draws behind the verdict, whatever it says but `needs-mcmc`."""
    try:
        posterior = simulation.family.laplace()
    except ConvergenceError:
        return Posterior("no mode")
    trust = verify(simulation.family, posterior, Settings(random_seed=seed))
    if trust.verdict == "needs-mcmc":
        return Posterior("needs-mcmc")
    assert trust.importance is not None
    w = trust.importance.draw(size, random_seed=seed)
    return Posterior(trust.verdict, simulation.density.variables(w))


def mcmc(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Sample the PyMC model and keep draws that are as far apart as they can be."""
    from bayes_gda import sample

    for draws in CHAIN_DRAWS:
        # One core: the simulations themselves share them.
        tree = sample(simulation.family.build(), draws=draws, chains=CHAINS, cores=1, random_seed=seed, progress=False)
        posterior = tree["posterior"].to_dataset()[sorted(simulation.theta)]
        effective = _least_effective(posterior)
        if effective >= size:
            kept = np.linspace(0, CHAINS * draws - 1, size).round().astype(np.intp)
            flat = {str(name): x.to_numpy().reshape(-1, *x.shape[2:])[kept] for name, x in posterior.items()}
            return Posterior("drawn", flat, effective)
    return Posterior("not mixed")


def _least_effective(posterior: Any) -> float:
    """Return the effective draws of the parameter that has the fewest."""
    import arviz_stats

    ess = arviz_stats.ess(posterior)
    return min(float(np.nanmin(ess[name])) for name in posterior.data_vars)


METHODS: dict[str, Method] = {
    "exact": exact,
    "laplace": laplace,
    "skew-modal": skew_modal,
    "corrected": corrected,
    "mcmc": mcmc,
}
# These claim to draw from the posterior itself; the others are approximations.
SOUND = ("exact", "corrected", "mcmc")


def methods_of(model: Model) -> tuple[str, ...]:
    """Return the methods that a model has."""
    left_out = {"exact"} if not model.conjugate else set()
    left_out |= {"skew-modal"} if not model.regression else set()
    return tuple(name for name in METHODS if name not in left_out)
