"""Posterior draws by each method of the package, in the number and the independence that ranks need.

    exact        independent draws of the conjugate posterior
    laplace      the Gaussian at the mode, in unconstrained coordinates
    skew-modal   the same with the skewness of the third derivatives; for the regressions
    ep           the Gaussian of expectation propagation; for logistic regression
    variational  the Gaussian that maximises the evidence bound; for softmax regression
    corrected    weighted draws of the fitted proposal, resampled; none where the verdict is `needs-mcmc`
    mcmc         NUTS, two chains, run longer if they mix slowly, thinned to draws that are nearly independent; for
                 rows with gaps data augmentation
    hmc          split HMC, thinned likewise; for Student-t classes and mixtures
    empirical-bayes
                 draws given a prior whose scale, or target, was estimated from the same rows. It uses the data twice:
                 no posterior, and its ranks need not be uniform

A method may refuse a data set: there is no mode, the verdict says that MCMC is needed, or the chains do not mix. To
leave these simulations out is fair, because whether it refuses depends on the data and its own random numbers, not on
the truth: given the data, θ still has the law of the posterior.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from proof.simulate import Simulation

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.base import Family
from bayes_gda.methods.ladder import verify
from bayes_gda.methods.settings import Settings
from bayes_gda.methods.skew import SkewModal
from bayes_gda.validation.subjects import CHAIN_DRAWS, CHAINS, least_effective, thinned

# Outcomes that have draws.
DRAWN = frozenset({"drawn", "trusted", "corrected"})


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Draws, or why there are none.

    Parameters
    ----------
    outcome
        `drawn`; for the corrected method the verdict, `trusted`, `corrected` or `needs-mcmc`; `no mode`, `not
        settled`, `not mixed`.
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
    source = model.posterior if hasattr(model, "posterior") else None
    drawn = model.draw_variables(size, random_seed=seed) if source is None else source.draw(size, random_seed=seed)
    return Posterior("drawn", drawn)


def laplace(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Draw from the Gaussian at the mode."""
    try:
        w = simulation.family.laplace().draw(size, random_seed=seed)
    except ConvergenceError:
        return Posterior("no mode")
    return _drawn(simulation, w)


def skew_modal(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Draw from the skew-modal approximation."""
    family = simulation.family
    w = SkewModal(family.laplace(), family.target).draw(size, random_seed=seed)
    return _drawn(simulation, w)


def better_gaussian(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Draw from the Gaussian by which the family judges Laplace's: that of EP, or the variational one."""
    found = simulation.family.propagate(simulation.family.laplace())
    if found is None:
        return Posterior("not settled")
    return _drawn(simulation, found.gaussian.draw(size, random_seed=seed))


def corrected(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Resample the weighted draws behind the verdict, whatever it says but `needs-mcmc`."""
    return _corrected(simulation, simulation.family, size, seed)


def _corrected(simulation: Simulation, family: Family, size: int, seed: int) -> Posterior:
    try:
        posterior = family.laplace()
    except ConvergenceError:
        return Posterior("no mode")
    trust = verify(family, posterior, Settings(random_seed=seed))
    if trust.verdict == "needs-mcmc":
        return Posterior("needs-mcmc")
    assert trust.importance is not None
    return _drawn(simulation, trust.importance.draw(size, random_seed=seed), trust.verdict)


def empirical_bayes(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Draw under the prior that the data choose; a regression's draws are corrected, so that only that is seen."""
    family: Any = simulation.family
    if family.averages:
        return Posterior("drawn", family.exact().model.draw_variables(size, random_seed=seed))
    try:
        estimated = family.bind(simulation.data, features=family.features, prior_scale="empirical-bayes")
    except ConvergenceError:  # the evidence has no maximum
        return Posterior("no mode")
    return _corrected(simulation, estimated, size, seed)


def _drawn(simulation: Simulation, w: Floats, outcome: str = "drawn") -> Posterior:
    assert simulation.density is not None
    return Posterior(outcome, simulation.density.variables(w))


def mcmc(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Sample the PyMC model and keep draws that are as far apart as they can be."""
    from bayes_gda import sample

    family = simulation.family

    def nuts(draws: int) -> Any:
        if np.isnan(simulation.data.X).any():
            return family.sample(Settings(draws=draws, chains=CHAINS, random_seed=seed), None)[1]
        # One core: the simulations themselves share them.
        return sample(family.build(), draws=draws, chains=CHAINS, cores=1, random_seed=seed, progress=False)

    return _thinned(simulation, nuts, size)


def hmc(simulation: Simulation, size: int, seed: int) -> Posterior:
    """Sample by split HMC, and keep draws that are as far apart as they can be."""
    family = simulation.family
    try:
        gaussian = family.laplace()
    except ConvergenceError:
        return Posterior("no mode")
    how: dict[str, Any] = {"chains": CHAINS, "random_seed": seed, "sampler": "hmc"}
    try:
        return _thinned(simulation, lambda draws: family.sample(Settings(draws=draws, **how), gaussian)[1], size)
    except ConvergenceError:  # it says that the posterior is too far from a Gaussian, and asks for NUTS
        return Posterior("not mixed")


def _thinned(simulation: Simulation, run: Callable[[int], Any], size: int) -> Posterior:
    """Run chains, longer ones if they mix slowly, and keep draws that are as far apart as they can be."""
    for draws in CHAIN_DRAWS:
        tree = run(draws)
        posterior = tree["posterior"].to_dataset()[sorted(simulation.theta)]
        chains = posterior.sizes["chain"]
        flat = {str(name): x.to_numpy().reshape(-1, *x.shape[2:]) for name, x in posterior.items()}
        effective = least_effective(_by_chain(simulation.parameters(flat), chains))
        if effective >= size:
            return Posterior("drawn", thinned(flat, size), effective)
    return Posterior("not mixed")


def _by_chain(parameters: Mapping[str, Floats], chains: int) -> Any:
    """Return parameters (S, …) from chains one after the other as a data set with a dimension of chains."""
    import xarray as xr

    return xr.Dataset(
        {
            name: (("chain", "draw", *(f"{name}_{i}" for i in range(x.ndim - 1))), x.reshape(chains, -1, *x.shape[1:]))
            for name, x in parameters.items()
        }
    )


METHODS: dict[str, Method] = {
    "exact": exact,
    "laplace": laplace,
    "skew-modal": skew_modal,
    "ep": better_gaussian,
    "variational": better_gaussian,
    "corrected": corrected,
    "mcmc": mcmc,
    "hmc": hmc,
    "empirical-bayes": empirical_bayes,
}
# These claim to draw from the posterior itself; the others are approximations.
SOUND = ("exact", "corrected", "mcmc", "hmc")
