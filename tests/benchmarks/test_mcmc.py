"""Effective draws a second against plain `pm.sample`: same model, same priors, 4 chains on the same cores, one run.

plain       `pm.sample` with its defaults and PyMC's own NUTS; seconds of sampling, compilation left out
bayes_gda   `bayes_gda.sample`; seconds of warm-up and draws, compilation left out
"""

import logging
import time

import arviz_stats as azs
import numpy as np
import pymc as pm
from benchmarks.timing import report

from bayes_gda import Dataset, Moments, Normal, load_example, sample
from bayes_gda.models import lda, logistic, qda


def gaussian_rows(n):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 3
    X = rng.standard_normal((n, 4)) @ rng.standard_normal((4, 4)) + 2 * rng.standard_normal((3, 4))[y]
    return Dataset.from_arrays(X, y)


def rate(tree, names, seconds):
    """Smallest effective number of draws of a scalar, a second."""
    ess = azs.ess(tree["posterior"].to_dataset()[names])
    return min(float(x.min()) for x in ess.data_vars.values()) / seconds


def plain(model, names, **settings):
    logging.getLogger("pymc").setLevel(logging.ERROR)
    with model:
        tree = pm.sample(
            chains=4,
            nuts_sampler="pymc",
            progressbar=False,
            random_seed=1,
            compute_convergence_checks=False,
            **settings,
        )
    return rate(tree, names, tree["posterior"].attrs["sampling_time"])


def ours(model, names):
    tree = sample(model, random_seed=1, progress=False)
    attrs = tree["posterior"].attrs
    return rate(tree, names, attrs["warm_up_time"] + attrs["draw_time"])


def compare(benchmark, what, model, names, target, **settings):
    rates = {"plain": plain(model, names, **settings), "bayes_gda": ours(model, names)}
    ratio = rates["bayes_gda"] / rates["plain"]
    report(
        benchmark,
        f"min-ESS per second on {what}, against plain pm.sample",
        ratio,
        target,
        rates,
        at_least=True,
        unit="ESS/s",
    )
    benchmark.pedantic(lambda: sample(model, draws=100, random_seed=1, progress=False), rounds=1)


def test_pima(benchmark):
    compare(benchmark, "pima", logistic.build(load_example("pima")), ["w"], 2.0)


def test_breast_cancer(benchmark):
    model = logistic.build(load_example("breast-cancer"), Normal(scale=5.0))
    compare(benchmark, "breast-cancer, N(0, 5²)", model, ["w"], 8.0)


def test_qda_on_moments(benchmark):
    compare(benchmark, "QDA d=4 K=3 n=1000, on moments", qda.build(gaussian_rows(1000)), ["mu", "Sigma"], 10.0)


def test_qda_row_by_row(benchmark):
    """The textbook form, a tenth of the draws for the plain run, which is slow; ESS a second does not mind."""
    model = qda.build(gaussian_rows(1000), rowwise=True)
    compare(benchmark, "QDA d=4 K=3 n=1000, row-wise", model, ["mu", "Sigma"], 100.0, draws=100, tune=200)


def test_cost_does_not_grow_with_rows(benchmark):
    seconds = {}
    for n in (1_000, 1_000_000):
        moments = Moments.from_arrays(*(lambda data: (data.X, data.y))(gaussian_rows(n)), 3)
        models = [qda.build(moments), lda.build(moments)]
        start = time.perf_counter()
        for model in models:
            sample(model, random_seed=1, progress=False)
        seconds[f"n = {n}"] = time.perf_counter() - start
    ratio = seconds["n = 1000000"] / seconds["n = 1000"]
    report(benchmark, "sampling QDA and LDA, n = 10⁶ / n = 10³", ratio, 1.25, seconds)
    benchmark.pedantic(lambda: None, rounds=1)
