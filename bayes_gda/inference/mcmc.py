"""Full MCMC: NUTS on the same PyMC models, started where the posterior is and scaled to its shape.

Plain sampling spends most of its time on compiling the graph and on learning what Laplace's approximation knows:

    1. The log density and its gradient become one node of a graph (`FusedDensity`). For our own models they are the
       hand-written ones of `inference.fused`, and nothing is compiled; any other model is compiled once.
    2. The mode and the curvature there give the dense mass matrix, and wide draws of that Gaussian the starts.
    3. Warm-up then has only the step size to find. Where there is no mode (a funnel), the mass matrix is learnt too.

The draws are mapped back to the model's own variables and labelled as every other posterior of this package.
"""

import importlib.util
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pymc.step_methods.hmc.quadpotential import QuadPotentialFull, QuadPotentialFullAdapt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.vm import VMLinker

from bayes_gda._version import __version__
from bayes_gda.checks import Floats
from bayes_gda.data.labels import to_datatree
from bayes_gda.errors import ConvergenceError, DataError, MissingDependencyError
from bayes_gda.inference.adapter import ModelDensity
from bayes_gda.inference.adapter import laplace as graph_laplace
from bayes_gda.inference.density import Density, Smoothed
from bayes_gda.inference.fused import fused_density
from bayes_gda.inference.hierarchical import WeightsDensity
from bayes_gda.inference.laplace import GaussianPosterior, laplace_approximation
from bayes_gda.inference.regression import regression_laplace
from bayes_gda.linalg import one_blas_thread
from bayes_gda.models.blueprint import blueprint_of

if TYPE_CHECKING:
    import xarray as xr

Sampler = Literal["pymc", "nutpie", "numpyro"]
SAMPLERS: tuple[Sampler, ...] = ("pymc", "nutpie", "numpyro")

# Iterations of warm-up: with the shape known, the step size settles within 200; without, PyMC's own 1000 learn both.
KNOWN_TUNE = 200
LEARNT_TUNE = 1000
# Starts are drawn this many times as wide as the Gaussian, so that R-hat can see chains that have not met.
OVERDISPERSION = 1.5
# A dense mass matrix costs dim² a step. Beyond this many coordinates its diagonal must do.
DENSE_LIMIT = 2000
# The log likelihood of each draw and row is kept up to so many numbers (160 MB); leave-one-out needs it.
LIKELIHOOD_LIMIT = 20_000_000
# The graph is one node, so no time is spent on rewriting it, and there is nothing to compile.
MODE = Mode(linker=VMLinker(use_cloop=False, c_thunks=False), optimizer="fast_compile")

ValueAndGradient = Callable[[Floats], tuple[Floats, Floats]]


class FusedDensity(Op):  # type: ignore[misc]
    """A log density and its gradient as one node: θ (dim,) → log p (), ∂ log p/∂θ (dim,)."""

    __props__ = ()

    def __init__(self, function: ValueAndGradient) -> None:
        self.function = function

    def make_node(self, theta: Any) -> Apply:
        """Return the node with its two outputs."""
        return Apply(self, [pt.as_tensor_variable(theta)], [pt.dscalar(), pt.dvector()])

    def perform(self, node: Apply, inputs: list[Floats], outputs: list[list[Any]]) -> None:
        """Evaluate both."""
        value, gradient = self.function(inputs[0])
        outputs[0][0], outputs[1][0] = np.asarray(value, dtype=float), gradient

    def pullback(self, inputs: list[Any], outputs: list[Any], cotangents: list[Any]) -> list[Any]:
        """Return the gradient, which is the node's own second output."""
        return [cotangents[0] * outputs[1]]


@dataclass(slots=True)
class _Clock:
    """Where the wall time went, as the sampler reports each step."""

    started: float = field(default_factory=time.perf_counter)
    first: float = 0.0
    tuning: float = 0.0
    drawing: float = 0.0

    def __call__(self, trace: Any, draw: Any) -> None:
        self.first = self.first or time.perf_counter()
        took = draw.stats[0].get("perf_counter_diff", 0.0)
        if draw.tuning:
            self.tuning += took
        else:
            self.drawing += took

    def split(self) -> dict[str, float]:
        """Seconds until the first step, and the rest shared out in proportion to the steps' own times."""
        now = time.perf_counter()
        first = self.first or now
        share = self.tuning / (self.tuning + self.drawing) if self.drawing else 0.5
        warm_up = (now - first) * share
        return {"compile_time": first - self.started, "warm_up_time": warm_up, "draw_time": now - first - warm_up}


def sample(
    model: pm.Model,
    *,
    draws: int = 1000,
    tune: int | None = None,
    chains: int = 4,
    cores: int | None = None,
    sampler: Sampler = "pymc",
    random_seed: int | None = None,
    progress: bool | None = None,
) -> "xr.DataTree":
    """Sample the posterior of a model.

    Parameters
    ----------
    model
        One of `bayes_gda.models`, or any PyMC model of continuous variables.
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
    A DataTree with the groups posterior, sample_stats, log_likelihood (of each row: joint for the Gaussian models,
    conditional for the regressions), log_prior, observed_data and constant_data. The attributes of the posterior say
    versions, seed, the fingerprint of the data, where the time went, and whether the run was `complete`: Ctrl-C
    returns what was sampled until then.
    """
    _check(draws, chains, sampler)
    shown = sys.stdout.isatty() if progress is None else progress
    blueprint = blueprint_of(model)
    density = None if blueprint is None else fused_density(blueprint)
    run = _Run(model, density, draws, tune, chains, cores, random_seed, shown)
    tree = run.by_pymc() if sampler == "pymc" else run.by_other(sampler)
    if density is not None:
        _add_groups(tree, density)
    _add_data(tree, model, density)
    return tree


@dataclass(frozen=True, slots=True, eq=False)
class _Run:
    model: pm.Model
    density: Density | None
    draws: int
    tune: int | None
    chains: int
    cores: int | None
    random_seed: int | None
    shown: bool

    def by_pymc(self) -> "xr.DataTree":
        """Run PyMC's NUTS on the fused density."""
        clock = _Clock()
        seed = np.random.default_rng(self.random_seed)
        with one_blas_thread(), _quiet():
            function, variables, start, shape = self._prepare()
            tune = self.tune if self.tune is not None else LEARNT_TUNE if shape is None else KNOWN_TUNE
            theta = _starts(function, start, shape, self.chains, seed)
            with pytensor.config.change_flags(mode=MODE, floatX="float64"), pm.Model() as fused:
                vector = pm.Flat("theta", shape=len(start))
                pm.Potential("density", FusedDensity(function)(vector)[0])
                potential = _potential(start, shape)
                step = pm.NUTS(potential=potential, model=fused, initial_point={"theta": theta[0]})
                step._logp_dlogp_func._pytensor_function.trust_input = True  # 10 µs a step for checks of our own array
                tree = pm.sample(
                    self.draws,
                    tune=tune,
                    chains=self.chains,
                    cores=self.cores,
                    step=step,
                    initvals=[{"theta": point} for point in theta],
                    random_seed=int(seed.integers(2**31)),
                    progressbar="split+stats" if self.shown else False,
                    compute_convergence_checks=False,
                    nuts_sampler="pymc",
                    callback=clock,
                )
        w = tree["posterior"]["theta"].values
        sampled = w.shape[:2]
        attrs = self._attributes("pymc", clock, tune, sampled)
        coords = {name: list(values) for name, values in self.model.coords.items() if values is not None}
        named = to_datatree(
            variables(w.reshape(-1, w.shape[-1])),
            coords,
            chains=sampled[0],
            dims=self.model.named_vars_to_dims,
            attrs=attrs,
        )
        named["sample_stats"] = tree["sample_stats"]
        return named

    def by_other(self, sampler: Sampler) -> "xr.DataTree":
        """Run another sampler on the model as it is written."""
        clock = _Clock()
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
        sizes = tree["posterior"].sizes
        tree["posterior"].attrs |= self._attributes(sampler, clock, tune, (sizes["chain"], sizes["draw"]))
        return tree

    def _prepare(self) -> tuple[ValueAndGradient, Callable[[Floats], dict[str, Floats]], Floats, Floats | None]:
        """Return the fused function, the map to the model's variables, the centre, and the covariance if known."""
        if self.density is not None:
            gaussian = _laplace(self.density)
            start = self.density.start if gaussian is None else gaussian.mean
            shape = None if gaussian is None else gaussian.covariance
            return self.density.values_and_gradients, self.density.variables, start, shape
        graph = ModelDensity.of(self.model)
        try:
            posterior = graph_laplace(self.model).gaussian
            start, shape = posterior.mean, posterior.covariance
        except ConvergenceError:
            start, shape = graph.start, None
        compiled = self.model.logp_dlogp_function(ravel_inputs=True)
        compiled.set_extra_values({})
        compiled.trust_input = True
        return compiled._pytensor_function, graph.draws, start, shape

    def _attributes(self, sampler: str, clock: _Clock, tune: int, sampled: tuple[int, int]) -> dict[str, Any]:
        import arviz

        rows = None if self.density is None else self.density.rows
        complete = sampled == (self.chains, self.draws)
        return {
            "method": "mcmc",
            "sampler": sampler,
            "complete": int(complete),
            "requested_draws": self.draws,
            "requested_chains": self.chains,
            "tuning_steps": tune,
            "random_seed": "none" if self.random_seed is None else self.random_seed,
            "fingerprint": "unknown" if rows is None else rows.fingerprint,
            "versions": f"bayes_gda {__version__}, pymc {pm.__version__}, pytensor {pytensor.__version__}, "
            f"arviz {arviz.__version__}, numpy {np.__version__}",
            **clock.split(),
        }


def _check(draws: int, chains: int, sampler: str) -> None:
    for name, value in (("draws", draws), ("chains", chains)):
        if not isinstance(value, (int, np.integer)) or value < 1:
            raise DataError(f"`{name}` must be a whole number, at least 1; got {value!r}.")
    if sampler not in SAMPLERS:
        raise DataError(f"`sampler` must be one of {', '.join(SAMPLERS)}; got {sampler!r}.")
    if sampler != "pymc" and importlib.util.find_spec(sampler) is None:
        raise MissingDependencyError(f"Sampler {sampler!r} is not installed. Run: pip install 'bayes-gda[{sampler}]'")


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep PyMC's and PyTensor's remarks from the user: what matters of them is in the diagnostics."""
    logger = logging.getLogger("pymc")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="PyTensor could not link to a BLAS")
            # Our worker threads have ended, and BLAS is held to one: a fork is safe.
            warnings.filterwarnings("ignore", message=".*multi-threaded, use of fork", category=DeprecationWarning)
            yield
    finally:
        logger.setLevel(level)


def _laplace(density: Density) -> GaussianPosterior | None:
    """Return the Gaussian at the mode, or None if there is none."""
    try:
        if isinstance(density, WeightsDensity):
            return regression_laplace(density.target)
        return laplace_approximation(Smoothed(density), density.start)
    except ConvergenceError:
        return None


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
        return QuadPotentialFullAdapt(n, center, np.eye(n), 10)
    return QuadPotentialFull(shape if n <= DENSE_LIMIT else np.diag(np.diag(shape)))


def _add_groups(tree: "xr.DataTree", density: Density) -> None:
    """Add the log prior, and the log likelihood of each row if it fits."""
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    shape = (posterior.sizes["chain"], posterior.sizes["draw"])
    variables = {str(name): x.values.reshape(-1, *x.shape[2:]) for name, x in posterior.data_vars.items()}
    indices = {dim: posterior[dim] for dim in ("chain", "draw")}
    prior = {name: (("chain", "draw"), x.reshape(shape)) for name, x in density.log_prior(variables).items()}
    tree["log_prior"] = xr.DataTree(xr.Dataset(prior, coords=indices))
    if density.rows is not None and shape[0] * shape[1] * density.rows.n <= LIKELIHOOD_LIMIT:
        with one_blas_thread():
            rows = density.log_likelihood(variables).reshape(*shape, -1)
        tree["log_likelihood"] = xr.DataTree(xr.Dataset({"y": (("chain", "draw", "row"), rows)}, coords=indices))


def _add_data(tree: "xr.DataTree", model: pm.Model, density: Density | None) -> None:
    """Add what was observed, and what was held constant."""
    import xarray as xr

    if density is None or density.rows is None:
        return
    rows = density.rows
    tree["observed_data"] = xr.DataTree(xr.Dataset({"y": ("row", rows.y)}))
    tree["constant_data"] = xr.DataTree(
        xr.Dataset({"X": (("row", "feature"), rows.X)}, coords={"feature": list(rows.feature_names)})
    )
