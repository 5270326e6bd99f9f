"""Simulation-based calibration: whether a method finds the parameters of simulated data as often as it claims.

    θ ~ prior,  data ~ p(data | θ),  θ₁…θ_L ~ the method's posterior given the data
    rank of f(θ) among f(θ₁)…f(θ_L): uniform on 0…L if the method is right

Every simulation has seeds of its own, from the seed of the run and its number.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.validation.power import detectable
from bayes_gda.validation.ranks import RankTest, rank_truth, rank_uniformity, scalar_quantities

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

Variables = Mapping[str, ArrayLike]
Simulate = Callable[[np.random.Generator], tuple[Variables, Any]]
Posterior = Callable[[Any, int, int], Variables | None]
Quantities = Callable[[Mapping[str, Floats], Any], Mapping[str, Floats]]

# Independent draws of each posterior: the rank of the truth among them is one of 100 numbers.
DRAWS = 99
# With fewer a rank says little.
LEAST_DRAWS = 9
# Probability that all quantities of a right method are inside their bands together.
PROB = 0.99


@dataclass(frozen=True, eq=False)
class Calibration:
    """The ranks of all simulations, and what they say.

    Parameters
    ----------
    names
        Of the Q quantities.
    ranks
        (N, Q) rank of each true value among `draws` posterior draws.
    draws
        L, so that ranks are 0…L.
    refused
        Simulations without a posterior, which are left out: fair, as long as this depends on the data alone.

    Examples
    --------
    >>> import numpy as np
    >>> from bayes_gda.validation import Calibration
    >>> ranks = np.random.default_rng(1).integers(100, size=(200, 2))
    >>> Calibration(("a", "b"), ranks, 99).outside()
    ()
    """

    names: tuple[str, ...]
    ranks: NDArray[np.int64]
    draws: int
    refused: int = 0

    @cached_property
    def tests(self) -> tuple[RankTest, ...]:
        """The test of each quantity."""
        return tuple(
            rank_uniformity(column, self.draws, name=name)
            for name, column in zip(self.names, self.ranks.T, strict=True)
        )

    def outside(self, prob: float = PROB) -> tuple[RankTest, ...]:
        """Return the quantities whose ranks are not uniform.

        All quantities of a right method are inside together with probability at least `prob` (Bonferroni).
        """
        alpha = (1 - prob) / len(self.names)
        return tuple(test for test in self.tests if test.p_value <= alpha)

    def summary(self) -> "pd.DataFrame":
        """Return a table with p-value, shift and spread of each quantity, the least uniform first."""
        import pandas as pd

        columns = ("p_value", "shift", "spread", "misfit")
        tree = {test.name: [getattr(test, column) for column in columns] for test in self.tests}
        table = pd.DataFrame.from_dict(tree, orient="index", columns=list(columns))
        noise = table["p_value"] > (1 - PROB) / len(self.names)
        return table.assign(misfit=table["misfit"].where(~noise, "")).sort_values("p_value", kind="stable")

    def to_datatree(self, *, random_seed: int = 0) -> "xr.DataTree":
        """Return the ranks as ArviZ takes them: (rank + U)/(L + 1), uniform on [0, 1], in the group `prior_sbc`."""
        import xarray as xr

        u = np.random.default_rng(random_seed).random(self.ranks.shape)
        pit = (self.ranks + u) / (self.draws + 1)
        values = {name: (("chain", "draw"), pit[None, :, i]) for i, name in enumerate(self.names)}
        return xr.DataTree.from_dict({"prior_sbc": xr.Dataset(values)})

    def plot(self, names: list[str] | None = None, **options: Any) -> Any:
        """Show the ECDF of the ranks less that of uniform ones, by `arviz_plots.plot_ecdf_pit`.

        Parameters
        ----------
        names
            Quantities; None shows the four least uniform ones.
        options
            For `plot_ecdf_pit`.

        Returns
        -------
        ArviZ's PlotCollection.
        """
        import arviz_plots

        chosen = list(self.summary().index[:4]) if names is None else names
        return arviz_plots.plot_ecdf_pit(self.to_datatree(), var_names=chosen, group="prior_sbc", **options)

    def __str__(self) -> str:
        outside, N, Q = self.outside(), len(self.ranks), len(self.names)
        size = f"{N} simulation{'s' * (N != 1)}, {Q} {'quantity' if Q == 1 else 'quantities'}"
        if self.refused:
            size += f", {self.refused} more without a posterior"
        if outside:
            worst = min(outside, key=lambda test: test.p_value)
            said = f"Ranks of {len(outside)} of {Q} are not uniform, so the posterior is wrong"
            said += f"; {worst.name} is {worst.misfit}"
        else:
            seen = detectable(N, self.draws, (1 - PROB) / Q)["shift"]
            shift = "not even a shift of 1.5 posterior sd" if seen is None else f"a shift of {seen:.2f} posterior sd"
            said = f"All ranks are compatible with uniform ones. Of misfits, {shift} is detected in 80 % of runs"
        return f"{said} ({size})."


def simulation_based_calibration(
    simulate: Simulate,
    posterior: Posterior,
    *,
    simulations: int = 200,
    draws: int = DRAWS,
    quantities: Quantities | None = None,
    random_seed: int = 0,
) -> Calibration:
    """Simulate data sets with known parameters, and rank these among the draws of a method.

    Parameters
    ----------
    simulate
        `simulate(rng)` draws the parameters from the prior and data given them, and returns `{name: array}` and the
        data, of any type.
    posterior
        `posterior(data, draws, seed)` returns `{name: (draws, …)}` for the same names: independent draws, so those of
        a chain have to be thinned. None leaves the simulation out.
    simulations
        Number of data sets.
    draws
        L, draws of each posterior.
    quantities
        `quantities(variables, data)` returns further numbers (S,) of variables (S, …), such as the log likelihood: it
        alone sees a method that ignores the data.
    random_seed
        The same seed gives the same ranks.

    References
    ----------
    Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based calibration, arXiv:1804.06788.
    Modrák et al. (2023), Simulation-based calibration checking for Bayesian computation, Bayesian Analysis 20.

    Examples
    --------
    The mean of a normal distribution, N(0, 1) before and N(Σx/(n + 1), 1/(n + 1)) after n rows:

    >>> import numpy as np
    >>> from bayes_gda.validation import simulation_based_calibration
    >>> def simulate(rng):
    ...     mu = rng.normal()
    ...     return {"mu": mu}, rng.normal(mu, 1, size=5)
    >>> def posterior(x, draws, seed):
    ...     return {"mu": np.random.default_rng(seed).normal(x.sum() / 6, 6**-0.5, size=draws)}
    >>> print(simulation_based_calibration(simulate, posterior, simulations=300))  # doctest: +NORMALIZE_WHITESPACE
    All ranks are compatible with uniform ones. Of misfits, a shift of 0.24 posterior sd is detected in 80 % of runs
    (300 simulations, 1 quantity).
    """
    for name, value, least in (("simulations", simulations, 2), ("draws", draws, LEAST_DRAWS)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise DataError(f"`{name}` must be a whole number of at least {least}; got {value!r}.")
    rows: list[dict[str, int]] = []
    for index in range(simulations):
        truth, data = simulate(np.random.default_rng([random_seed, index, 0]))
        rng = np.random.default_rng([random_seed, index, 1])
        drawn = posterior(data, draws, int(rng.integers(2**31)))
        if drawn is None:
            continue
        known = {name: np.asarray(value, dtype=np.float64)[None] for name, value in truth.items()}
        draws_by_name = {name: _checked(name, drawn, known[name].shape[1:], draws) for name in known}
        rows.append(rank_truth(_numbers(known, data, quantities), _numbers(draws_by_name, data, quantities), rng))
    if len(rows) < 2:
        raise DataError(f"{len(rows)} of {simulations} simulations have a posterior. Look at why `posterior` refuses.")
    ranks = np.array([list(row.values()) for row in rows], dtype=np.int64)
    return Calibration(tuple(rows[0]), ranks, draws, simulations - len(rows))


def _numbers(variables: Mapping[str, Floats], data: Any, quantities: Quantities | None) -> dict[str, Floats]:
    more = {} if quantities is None else {name: np.asarray(x) for name, x in quantities(variables, data).items()}
    return scalar_quantities(dict(variables) | more)


def _checked(name: str, drawn: Variables, shape: tuple[int, ...], draws: int) -> Floats:
    if name not in drawn:
        raise DataError(f"`posterior` must return every variable of `simulate`; {name!r} is missing.")
    values = np.asarray(drawn[name], dtype=np.float64)
    if values.shape != (draws, *shape):
        raise DataError(f"`posterior` must return {name!r} of shape {(draws, *shape)}; got {values.shape}.")
    return values
