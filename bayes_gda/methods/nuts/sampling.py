"""Full MCMC: NUTS on the same PyMC models, started where the posterior is and scaled to its shape.

Plain sampling spends most of its time on compiling the graph and on learning what Laplace's approximation knows:

    1. The log density and its gradient become one node of a graph (`FusedDensity`). For our own models they are the
       hand-written ones of their families, and nothing is compiled; any other model is compiled once.
    2. The mode and the curvature there give the dense mass matrix, and wide draws of that Gaussian the starts.
    3. Warm-up then has only the step size to find. Where there is no mode (a funnel), the mass matrix is learnt too.

The draws are mapped back to the model's own variables and labelled as every other posterior of this package.
"""

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor
from pymc.step_methods.hmc.quadpotential import QuadPotentialDiag, QuadPotentialDiagAdapt, QuadPotentialFull

from bayes_gda._version import __version__
from bayes_gda.checks import Floats
from bayes_gda.data.labels import add_log_prior, draws_of, to_datatree
from bayes_gda.errors import ConvergenceError, DataError, MissingDependencyError
from bayes_gda.linalg import one_blas_thread
from bayes_gda.methods.adapter import NO_BLAS_NEEDED, ModelDensity
from bayes_gda.methods.adapter import laplace as graph_laplace
from bayes_gda.methods.density import COORDINATES, Density
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.methods.nuts.chain import Chain, ValueAndGradient, longest, nuts_step, sample_chain
from bayes_gda.processes.chains import run_chains
from bayes_gda.processes.state import Shared, quiet_logger
from bayes_gda.processes.work import Report

if TYPE_CHECKING:
    import xarray as xr

SAMPLERS = ("pymc", "nutpie", "numpyro")

# Iterations of warm-up: with the shape known, the step size settles within 200; without, PyMC's own 1000 learn both.
KNOWN_TUNE = 200
LEARNT_TUNE = 1000
# Starts are drawn this many times as wide as the Gaussian, so that R-hat can see chains that have not met.
OVERDISPERSION = 1.5
# A dense mass matrix costs dim² a step. Beyond this many coordinates its diagonal must do.
DENSE_LIMIT = 2000


def sample_model(
    model: pm.Model,
    *,
    density: Density | None = None,
    gaussian: GaussianPosterior | None = None,
    keep_coordinates: bool = False,
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    cores: int | None = None,
    sampler: str = "pymc",
    random_seed: int | None = None,
    progress: bool | None = None,
) -> "xr.DataTree":
    """Sample the posterior of a PyMC model of continuous variables.

    Parameters
    ----------
    model
        The model.
    density
        Its hand-written log density, in its coordinates; None compiles its graph.
    gaussian
        An approximation in these coordinates, for starts and mass matrix; None is sought where there is no `density`.
    keep_coordinates
        Whether the posterior of a model without `density` has the unconstrained coordinates of each draw, too.
    draws, tune, chains
        Draws kept and warm-up iterations of each chain, and the number of chains. None tunes for as long as it takes.
    cores
        Chains sampled at once; None for all that the machine has. The draws do not depend on it.
    sampler
        `pymc`, or `nutpie` or `numpyro` if installed; these compile the model and adapt in their own way.
    random_seed
        The same seed gives the same draws.
    progress
        Whether to show a bar; None shows it on a terminal.

    Returns
    -------
    A DataTree with the groups posterior, sample_stats and, where the density is known, log_prior. The attributes of the
    posterior say versions, seed, where the time went, and whether the run is `incomplete`: Ctrl-C returns what was
    sampled until then.
    """
    _check(draws, chains, sampler)
    shown = sys.stdout.isatty() if progress is None else progress
    run = _Run(model, density, gaussian, keep_coordinates, draws, tune, chains, cores, random_seed, shown)
    tree = run.by_pymc() if sampler == "pymc" else run.by_other(sampler)
    if density is not None:
        add_log_prior(tree, density.log_prior(draws_of(tree)))
    return tree


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    model: pm.Model
    density: Density | None
    gaussian: GaussianPosterior | None
    keep_coordinates: bool
    draws: int
    tune: int | None
    chains: int
    cores: int | None
    random_seed: int | None
    shown: bool

    def by_pymc(self) -> "xr.DataTree":
        """Run PyMC's NUTS on the fused density, every chain in one process."""
        import xarray as xr

        started = time.perf_counter()
        rng = np.random.default_rng(self.random_seed)
        with one_blas_thread(), _quiet():
            function, variables, start, shape = self._prepare()
            tune = self.tune if self.tune is not None else LEARNT_TUNE if shape is None else KNOWN_TUNE
            starts = _starts(function, start, shape, self.chains, rng)
            seeds = rng.integers(2**31, size=self.chains)
            nuts = nuts_step(function, starts[0], _potential(start, shape))
            ready, draws = time.perf_counter(), self.draws

            def work(chain: int, report: Report) -> Chain:
                with one_blas_thread(), _quiet():  # also where this is a process of its own
                    return sample_chain(nuts, starts[chain], int(seeds[chain]), tune, draws, report)

            results = run_chains(work, self.chains, iterations=tune + self.draws, cores=self.cores, shown=self.shown)
        sampled = longest(results)
        if not sampled:
            raise KeyboardInterrupt  # in the warm-up: there is nothing to return
        length = min(len(chain.theta) for chain in sampled)
        wall, warm_up = time.perf_counter() - ready, sum(chain.warm_up for chain in results)
        share = warm_up / max(warm_up + sum(chain.drawing for chain in results), 1e-9)
        times = {"compile_time": ready - started, "warm_up_time": share * wall, "draw_time": (1 - share) * wall}
        attrs = self._attributes("pymc", times, tune, (len(sampled), length))
        coords = {name: list(values) for name, values in self.model.coords.items() if values is not None}
        tree = to_datatree(
            variables(np.concatenate([chain.theta[:length] for chain in sampled])),
            coords,
            chains=len(sampled),
            dims=self.model.named_vars_to_dims,
            attrs=attrs,
        )
        stats = xr.concat(
            [chain.stats.isel(draw=slice(length)) for chain in sampled if chain.stats is not None], "chain"
        )
        stats = stats.assign_coords(chain=np.arange(len(sampled)))
        tree["sample_stats"] = xr.DataTree(stats.assign_attrs(tuning_steps=tune, sampling_time=wall))
        return tree

    def by_other(self, sampler: str) -> "xr.DataTree":
        """Run another sampler on the model as it is written."""
        started = time.perf_counter()
        tune = LEARNT_TUNE if self.tune is None else self.tune
        with one_blas_thread(), _quiet():
            tree = pm.sample(
                self.draws,
                tune=tune,
                chains=self.chains,
                cores=self.cores,
                random_seed=self.random_seed,
                progressbar=self.shown,
                compute_convergence_checks=False,
                nuts_sampler=sampler,
                model=self.model,
            )
        sizes, posterior = tree["posterior"].sizes, tree["posterior"]
        wall = time.perf_counter() - started
        sampling = float(posterior.attrs.get("sampling_time", wall))
        # These samplers do not say how their time was shared between warm-up and draws: by iterations.
        share = tune / (tune + self.draws)
        times = {"compile_time": wall - sampling, "warm_up_time": share * sampling, "draw_time": (1 - share) * sampling}
        posterior.attrs |= self._attributes(sampler, times, tune, (sizes["chain"], sizes["draw"]))
        return tree

    def _prepare(self) -> tuple[ValueAndGradient, Callable[[Floats], dict[str, Floats]], Floats, Floats | None]:
        """Return the fused function, the map to the model's variables, the centre, and the covariance if known."""
        if self.density is not None:
            start = self.density.start if self.gaussian is None else self.gaussian.mean
            shape = None if self.gaussian is None else self.gaussian.covariance
            return self.density.values_and_gradients, self.density.variables, start, shape
        graph = ModelDensity.of(self.model)
        try:
            posterior = graph_laplace(graph).gaussian if self.gaussian is None else self.gaussian
            start, shape = posterior.mean, posterior.covariance
        except ConvergenceError:
            start, shape = graph.start, None

        def variables(W: Floats) -> dict[str, Floats]:
            return graph.draws(W) | ({COORDINATES: W} if self.keep_coordinates else {})

        compiled = self.model.logp_dlogp_function(ravel_inputs=True)
        compiled.set_extra_values({})
        compiled.trust_input = True
        return compiled._pytensor_function, variables, start, shape

    def _attributes(self, sampler: str, times: dict[str, float], tune: int, sampled: tuple[int, int]) -> dict[str, Any]:
        complete = sampled == (self.chains, self.draws)
        return {
            "method": "mcmc",
            "sampler": sampler,
            "incomplete": int(not complete),
            "requested_draws": self.draws,
            "requested_chains": self.chains,
            "tuning_steps": tune,
            "random_seed": "none" if self.random_seed is None else self.random_seed,
            "fingerprint": "unknown",
            "versions": f"bayes_gda {__version__}, pymc {pm.__version__}, pytensor {pytensor.__version__}, "
            f"arviz {version('arviz')}, numpy {np.__version__}",
            **times,
        }


def _check(draws: int, chains: int, sampler: str) -> None:
    for name, value in (("draws", draws), ("chains", chains)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise DataError(f"`{name}` must be a whole number, at least 1; got {value!r}.")
    if sampler not in SAMPLERS:
        raise DataError(f"`sampler` must be hmc or one of {', '.join(SAMPLERS)}; got {sampler!r}.")
    if sampler != "pymc" and importlib.util.find_spec(sampler) is None:
        raise MissingDependencyError(f"Sampler {sampler!r} is not installed. Run: pip install 'bayes-gda[{sampler}]'")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyMC's and PyTensor's remarks from the user: what matters of them is in the diagnostics."""
    # A trajectory that flies off overflows on its way, and is counted as a divergence.
    with _LOGGER, NO_BLAS_NEEDED, np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        yield


_LOGGER = Shared(lambda: quiet_logger("pymc"))


def _starts(
    function: ValueAndGradient, center: Floats, shape: Floats | None, chains: int, rng: np.random.Generator
) -> Floats:
    """Draw over-dispersed starts (chains, dim), each drawn in until the density is finite there."""
    root = np.eye(len(center)) if shape is None else np.linalg.cholesky(shape)
    offsets = OVERDISPERSION * rng.standard_normal((chains, len(center))) @ root.T
    for offset in offsets:
        while not np.isfinite(function(center + offset)[0]) and np.abs(offset).max() > 0:
            offset *= 0.5
    return center + offsets


def _potential(center: Floats, shape: Floats | None) -> Any:
    """Return the kinetic energy: the known covariance, or one to be learnt."""
    n = len(center)
    if shape is None:
        return QuadPotentialDiagAdapt(n, center, np.ones(n), 10)
    return QuadPotentialFull(shape) if n <= DENSE_LIMIT else QuadPotentialDiag(np.diag(shape))
