"""One chain of PyMC's NUTS on a log density that is one node of a graph."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.vm import VMLinker

from bayes_gda.checks import Floats
from bayes_gda.processes.state import Shared
from bayes_gda.processes.work import Report

if TYPE_CHECKING:
    import xarray as xr

# The graph is one node, so no time is spent on rewriting it, and there is nothing to compile.
MODE = Mode(linker=VMLinker(use_cloop=False, c_thunks=False), optimizer="fast_compile")

# PyTensor's flags are those of the whole process.
_ONE_NODE = Shared(lambda: pytensor.config.change_flags(mode=MODE, floatX="float64"))

ValueAndGradient = Callable[[Floats], tuple[Floats, Floats]]


class FusedDensity(Op):  # type: ignore[misc]  # PyTensor is treated as Any
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


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """What one chain brought: draws (draws, dim), statistics of each, and the seconds of its warm-up and draws."""

    theta: Floats
    stats: "xr.Dataset | None"
    warm_up: float
    drawing: float


def nuts_step(function: ValueAndGradient, start: Floats, potential: Any) -> pm.NUTS:
    """Return the NUTS step of a model of one vector, whose density is the function."""
    with _ONE_NODE, pm.Model() as fused:
        theta = pm.Flat("theta", shape=len(start))
        pm.Potential("density", FusedDensity(function)(theta)[0])
        nuts = pm.NUTS(potential=potential, model=fused, initial_point={"theta": start})
    nuts._logp_dlogp_func._pytensor_function.trust_input = True  # 10 µs a step for checks of our own array
    return nuts


def sample_chain(nuts: pm.NUTS, start: Floats, seed: int, tune: int, draws: int, report: Report) -> Chain:
    """Sample one chain, until it is done or `report` stops it."""
    fresh, divergences = nuts.sampling_state, 0
    seconds = {True: 0.0, False: 0.0}  # by whether the step was tuning

    def follow(trace: Any, draw: Any) -> None:
        nonlocal divergences
        stats = draw.stats[0]
        divergences += bool(stats["diverging"]) and not draw.tuning
        seconds[draw.tuning] += stats["perf_counter_diff"]
        report(draw.draw_idx + 1, divergences)

    try:
        with _ONE_NODE:
            tree = pm.sample(
                draws,
                tune=tune,
                chains=1,
                cores=1,
                step=nuts,
                initvals={"theta": start},
                random_seed=seed,
                progressbar=False,
                compute_convergence_checks=False,
                nuts_sampler="pymc",
                callback=follow,
                model=nuts._model,
            )
    except ValueError as error:
        if "Not enough samples" not in str(error):
            raise
        return Chain(np.empty((0, len(start))), None, seconds[True], seconds[False])
    finally:
        nuts.sampling_state = fresh  # the next chain of this process begins as this one did
    stats = tree["sample_stats"].to_dataset()
    return Chain(tree["posterior"]["theta"].values[0], stats, seconds[True], seconds[False])


def longest(chains: list[Chain]) -> list[Chain]:
    """Return the chains to keep: all if they are complete, else those whose common length gives the most draws."""
    lengths = sorted((len(chain.theta) for chain in chains), reverse=True)
    keep = max(lengths, key=lambda length: length * sum(other >= length for other in lengths))
    return [chain for chain in chains if len(chain.theta) >= keep > 0]
