"""Laplace against scikit-learn's optimisers, and the whole way to a corrected posterior, each in one run.

scikit-learn   the point estimate, by each of its solvers that can do without a penalty path
bayes_gda      mode, covariance and log evidence
"""

import sys
import time

import numpy as np
from benchmarks.timing import alternate, report
from sklearn.linear_model import LogisticRegression

from bayes_gda.data.examples import load_example
from bayes_gda.inference.logistic import LogisticTarget
from bayes_gda.inference.priors import Normal
from bayes_gda.inference.regression import regression_laplace
from bayes_gda.inference.skew import lindley_mean
from bayes_gda.inference.trust import assess


def test_laplace_of_a_million_rows(benchmark):
    rng = np.random.default_rng(0)
    n, m = 1_000_000, 30
    Phi = np.column_stack([np.ones(n), rng.standard_normal((n, m - 1))])
    y = (rng.random(n) < 1 / (1 + np.exp(-Phi @ (0.3 * rng.normal(size=m))))).astype(int)
    X = np.ascontiguousarray(Phi[:, 1:])

    def ours():
        return regression_laplace(LogisticTarget(Phi, y, Normal(scale=2.5)))

    def sklearn(solver):
        return lambda: LogisticRegression(C=6.25, solver=solver).fit(X, y)

    solvers = ("lbfgs", "newton-cholesky", "newton-cg")
    seconds = alternate({"bayes_gda": ours} | {solver: sklearn(solver) for solver in solvers}, rounds=5)
    fastest = min(seconds[solver] for solver in solvers)
    ratio = seconds["bayes_gda"] / fastest
    report(benchmark, "Laplace / scikit-learn's fastest solver on 1 000 000 × 30", ratio, 1.0, seconds)
    benchmark.pedantic(ours, rounds=3)


def test_pima_from_arrays_to_a_corrected_posterior(benchmark):
    """At least 3000 effective draws in under half a second, without PyMC."""
    data = load_example("pima")
    X, y = np.array(data.X), np.array(data.y)

    def run():
        target = LogisticTarget(np.column_stack([np.ones(len(X)), X]), y, Normal(scale=np.sqrt(10)))
        posterior = regression_laplace(target)
        return assess(target, posterior, mean=lindley_mean(posterior, target))

    start = time.perf_counter()
    result = run()
    first = time.perf_counter() - start
    benchmark(run)
    effective = result.corrected_ess_fraction * len(result.draws)
    seconds = {"first call": first}
    report(benchmark, f"pima, arrays to {effective:.0f} effective draws, seconds", first, 0.5, seconds)
    assert effective >= 3000
    assert "pymc" not in sys.modules
