"""Split HMC as a sampler: from a density and a Gaussian near it to an ArviZ tree like that of NUTS.

It knows no model and compiles nothing: PyMC is not imported. `draws` × `chains` draws are taken in all, by at least
`CHAINS` chains, since chains cost little once their gradients are one product.
"""

import sys
import time
from importlib.metadata import version
from typing import TYPE_CHECKING

import numpy as np

from bayes_gda._version import __version__
from bayes_gda.data.labels import add_log_prior, draws_of, to_datatree
from bayes_gda.linalg import one_blas_thread
from bayes_gda.methods.density import Density
from bayes_gda.methods.hmc.split import draw, warm_up
from bayes_gda.methods.laplace import GaussianPosterior
from bayes_gda.processes.work import progress_bars

if TYPE_CHECKING:
    import xarray as xr

# Enough for the products to be efficient, and for R-hat to compare; so few that 4000 draws leave each chain 250, whose
# own effective draws, 100 or more, R-hat and ESS need.
CHAINS = 16


def sample_density(
    density: Density,
    gaussian: GaussianPosterior,
    *,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int | None = None,
    progress: bool | None = None,
) -> "xr.DataTree":
    """Sample a density by split HMC about a Gaussian.

    Parameters
    ----------
    density
        Log density with gradients, of many points at once.
    gaussian
        An approximation in its coordinates.
    draws, chains
        As of NUTS. As many draws in all are taken by 16 chains or more, which step together.
    random_seed
        The same seed gives the same draws.
    progress
        Whether to show a bar; None shows it on a terminal.

    Returns
    -------
    A DataTree with the groups posterior, sample_stats and log_prior, as of NUTS. Ctrl-C returns what was sampled.

    Raises
    ------
    ConvergenceError
        If the density is too far from the Gaussian.
    """
    import xarray as xr

    shown = sys.stdout.isatty() if progress is None else progress
    started, count = time.perf_counter(), max(CHAINS, chains)
    each = -(-draws * chains // count)
    rng = np.random.default_rng(random_seed)
    with one_blas_thread(), progress_bars(1, each, shown, names=(f"{count} chains",)) as update:
        warm = warm_up(density, gaussian, count, rng)
        ready = time.perf_counter()
        drawn = draw(warm, each, rng, lambda done, divergences: update(0, done, divergences))
    taken, wall = drawn.w.shape[1], time.perf_counter() - started
    attrs = {
        "method": "mcmc",
        "sampler": "hmc",
        "incomplete": int(taken < each),
        "requested_draws": each,
        "requested_chains": count,
        "tuning_steps": warm.trajectories,
        "random_seed": "none" if random_seed is None else random_seed,
        "fingerprint": "unknown",
        "versions": f"bayes_gda {__version__}, arviz {version('arviz')}, numpy {np.__version__}",
        "compile_time": 0.0,
        "warm_up_time": ready - started,
        "draw_time": wall - (ready - started),
    }
    points = drawn.w.reshape(-1, drawn.w.shape[2])
    tree = to_datatree(density.variables(points), {}, chains=count, attrs=attrs)
    stats = {
        "lp": drawn.log_p,
        "acceptance_rate": drawn.acceptance,
        "energy": drawn.energy,
        "diverging": drawn.diverging,
        "n_steps": np.full(drawn.log_p.shape, warm.kicks),
    }
    labels = {name: tree["posterior"].to_dataset()[name] for name in ("chain", "draw")}
    named = {name: (("chain", "draw"), values) for name, values in stats.items()}
    tree["sample_stats"] = xr.DataTree(
        xr.Dataset(named, coords=labels, attrs={"tuning_steps": warm.trajectories, "sampling_time": wall})
    )
    add_log_prior(tree, density.log_prior(draws_of(tree)))
    return tree
