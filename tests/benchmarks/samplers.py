"""The samplers, each to be run in a process of its own: JAX's threads and PyMC's forks do not go together.

Every call builds its model anew, as a script would, and returns plain numbers.
"""

import logging
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

CHAINS, TUNE = 4, 1000


@dataclass(frozen=True, slots=True)
class Job:
    """A posterior to sample.

    Parameters
    ----------
    problem
        A key of `PROBLEMS`.
    draws, tune
        Of each chain; ours chooses its own warm-up.
    cores, seed
        Chains at once, and the seed.
    """

    problem: str
    draws: int
    tune: int
    cores: int
    seed: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """Smallest bulk ESS of a scalar, seconds of warm-up and draws, and seconds of the whole call."""

    ess: float
    sampling: float
    wall: float
    largest_rhat: float
    scalars: int


def run_job(sampler: str, job: Job) -> Outcome:
    """Run one sampler on one problem; the imports come before the clock."""
    import arviz_stats as azs
    import pymc  # noqa: F401

    import bayes_gda.models.logistic
    import bayes_gda.models.qda
    import bayes_gda.models.softmax  # noqa: F401

    logging.getLogger("pymc").setLevel(logging.ERROR)
    logging.getLogger("bambi").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    draws, sampling = SAMPLERS[sampler](job)
    wall = time.perf_counter() - start
    sampling -= COMPILATION.get(sampler, _nothing)(job)
    ess, rhat = azs.ess(draws), azs.rhat(draws)
    return Outcome(
        min(float(x.min()) for x in ess.data_vars.values()),
        sampling,
        wall,
        max(float(x.max()) for x in rhat.data_vars.values()),
        sum(int(np.prod(x.shape)) for x in ess.data_vars.values()),
    )


# ── Problems ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _pima() -> Any:
    from bayes_gda import load_example
    from bayes_gda.models import logistic

    return logistic.build(load_example("pima"))


def _breast_cancer() -> Any:
    from bayes_gda import Normal, load_example
    from bayes_gda.models import logistic

    return logistic.build(load_example("breast-cancer"), Normal(scale=5.0))


def _iris() -> Any:
    from bayes_gda import load_example
    from bayes_gda.models import softmax

    return softmax.build(load_example("iris"))


def _qda(*, rowwise: bool = False) -> Any:
    from bayes_gda.models import qda
    from benchmarks.rows import correlated_rows

    return qda.build(correlated_rows(1000), rowwise=rowwise)


# The model, and the variables whose effective draws count.
PROBLEMS: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "pima": (_pima, ["w"]),
    "breast-cancer": (_breast_cancer, ["w"]),
    "iris": (_iris, ["w"]),
    "qda": (_qda, ["mu", "Sigma"]),
    "qda-rowwise": (lambda: _qda(rowwise=True), ["mu", "Sigma"]),
}
# For Bambi: data, sd of the slopes and of the intercept, family.
FORMULAS = {
    "pima": ("pima", 2.5, 5.0, "bernoulli"),
    "breast-cancer": ("breast-cancer", 5.0, 5.0, "bernoulli"),
    "iris": ("iris", 2.5, 5.0, "categorical"),
}


# ── Samplers ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _ours(job: Job, sampler: str = "pymc") -> tuple[Any, float]:
    from bayes_gda import sample

    build, names = PROBLEMS[job.problem]
    how: dict[str, Any] = {"draws": job.draws, "chains": CHAINS, "random_seed": job.seed, "progress": False}
    tree = sample(build(), cores=job.cores, sampler=sampler, **how)
    attrs = tree["posterior"].attrs
    return tree["posterior"].to_dataset()[names], attrs["warm_up_time"] + attrs["draw_time"]


def _hmc(job: Job) -> tuple[Any, float]:
    """As many draws in all, by more chains that step together on one core."""
    return _ours(job, "hmc")


def _pymc(job: Job, nuts: str = "pymc") -> tuple[Any, float]:
    build, names = PROBLEMS[job.problem]
    tree = _sample(build(), job, nuts)
    return tree["posterior"].to_dataset()[names], tree["posterior"].attrs["sampling_time"]


def _nutpie(job: Job) -> tuple[Any, float]:
    return _pymc(job, "nutpie")


def _numpyro(job: Job) -> tuple[Any, float]:
    return _pymc(job, "numpyro")


def _jax_compilation(job: Job) -> float:
    """Seconds that NumPyro counts as sampling but compiles: those of a run of two iterations, which has little else."""
    build, _ = PROBLEMS[job.problem]
    tree = _sample(build(), Job(job.problem, 1, 1, job.cores, job.seed), "numpyro")
    return float(tree["posterior"].attrs["sampling_time"])


def _nothing(_: Job) -> float:
    return 0.0


def _sample(model: Any, job: Job, nuts: str) -> Any:
    import pymc as pm

    return pm.sample(
        job.draws,
        tune=job.tune,
        chains=CHAINS,
        cores=job.cores,
        nuts_sampler=nuts,
        progressbar=False,
        random_seed=job.seed,
        compute_convergence_checks=False,
        model=model,
    )


def _bambi(job: Job) -> tuple[Any, float]:
    """The same data, standardised, and the same priors by a formula; softmax with the first class as reference."""
    import bambi as bmb
    import pandas as pd

    from bayes_gda import load_example

    name, slope, intercept, family = FORMULAS[job.problem]
    data = load_example(name)
    columns = [f"x{j}" for j in range(data.d)]
    frame = pd.DataFrame((data.X - data.X.mean(0)) / data.X.std(0), columns=columns)
    labels = np.array(data.class_names)[data.y]
    frame["y"] = data.y if family == "bernoulli" else pd.Categorical(labels, categories=list(data.class_names))
    priors = {column: bmb.Prior("Normal", mu=0, sigma=slope) for column in columns}
    priors["Intercept"] = bmb.Prior("Normal", mu=0, sigma=intercept)
    model = bmb.Model(f"y ~ {' + '.join(columns)}", frame, family=family, priors=priors)
    tree = model.fit(
        draws=job.draws,
        tune=job.tune,
        chains=CHAINS,
        cores=job.cores,
        random_seed=job.seed,
        progressbar=False,
        compute_convergence_checks=False,
    )
    return tree["posterior"].to_dataset()[["Intercept", *columns]], tree["posterior"].attrs["sampling_time"]


SAMPLERS: dict[str, Callable[[Job], tuple[Any, float]]] = {
    "bayes_gda": _ours,
    "bayes_gda hmc": _hmc,
    "PyMC": _pymc,
    "nutpie": _nutpie,
    "NumPyro": _numpyro,
    "Bambi": _bambi,
}
# What each counts as sampling and is not; measured after the clock of the whole call has stopped.
COMPILATION: dict[str, Callable[[Job], float]] = {"NumPyro": _jax_compilation}
