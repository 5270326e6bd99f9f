"""How to compute: what every fit is asked for."""

import secrets
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from bayes_gda.checks import inside_unit
from bayes_gda.errors import DataError

# How a Gaussian posterior becomes probabilities: the link integrated, or its probit approximation.
Link = Literal["exact", "probit"]
LINKS: tuple[Link, ...] = ("exact", "probit")
Inference = Literal["auto", "exact", "laplace", "ep", "variational", "mcmc"]
INFERENCES: tuple[Inference, ...] = ("auto", "exact", "laplace", "ep", "variational", "mcmc")
# Which sampler MCMC uses: `auto` is `pymc` for inference='mcmc', and `hmc` before `pymc` where the method is chosen.
SAMPLERS = ("auto", "pymc", "hmc", "nutpie", "numpyro")
# A reported probability may be off by so much for `trusted`. It is less than the .02 of `importance.trust`, because the
# estimators integrate the link and so have only the posterior's share of the error to spend.
TOLERANCE = 0.01


@dataclass(frozen=True, slots=True)
class Settings:
    """How to compute.

    Parameters
    ----------
    inference, sampler
        The method asked for; which sampler to use for MCMC. `pymc`, `nutpie` and `numpyro` are NUTS, `hmc` is split HMC
        in many chains; `auto` is `pymc`, but with inference `auto` it is `hmc`, and `pymc` where that does not do.
    draws, chains
        Draws of each chain, and the number of chains; other methods draw as many altogether.
    random_seed
        Seed of all draws.
    progress
        Whether to show a bar; None shows it on a terminal.
    tolerance
        How far a probability may be off, between 0 and 1: by the posterior's approximation for the verdict `trusted`,
        and by two Monte Carlo standard errors of draws.
    link
        How a Gaussian posterior of the weights of a regression becomes probabilities; other models have no link.
    """

    inference: Inference = "auto"
    draws: int = 1000
    chains: int = 4
    sampler: str = "auto"
    random_seed: int = 0
    progress: bool | None = False
    tolerance: float = TOLERANCE
    link: Link = "exact"

    def __post_init__(self) -> None:
        if self.inference not in INFERENCES:
            raise DataError(f"`inference` must be one of {', '.join(INFERENCES)}; got {self.inference!r}.")
        if self.link not in LINKS:
            raise DataError(f"`link` must be 'exact' or 'probit'; got {self.link!r}.")
        if self.sampler not in SAMPLERS:
            raise DataError(f"`sampler` must be one of {', '.join(SAMPLERS)}; got {self.sampler!r}.")
        for name in ("draws", "chains"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
                raise DataError(f"`{name}` must be a whole number of at least 1; got {value!r}.")
        inside_unit("tolerance", self.tolerance, hint=" Use 0.01 for probabilities within one percentage point.")

    @property
    def size(self) -> int:
        """Draws altogether."""
        return self.draws * self.chains


def seed_of(random_state: Any) -> int:
    """Return the seed behind all draws of a fit, from a user's seed or RandomState; None is new each time."""
    if random_state is None:
        return secrets.randbelow(2**31 - 1)
    if type(random_state) is int:
        return _seed_of_number(random_state)
    if not isinstance(random_state, np.random.RandomState):
        random_state = np.random.RandomState(random_state)
    return int(random_state.randint(2**31 - 1))


@lru_cache
def _seed_of_number(random_state: int) -> int:
    # A RandomState takes 60 µs to set up, a fifteenth of a small fit.
    return int(np.random.RandomState(random_state).randint(2**31 - 1))
