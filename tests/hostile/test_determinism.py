"""The same seed gives the same numbers, bit for bit: in a new process, with other hashes, on one core or on two."""

import json
import os
import subprocess
import sys

import pytest

# One core, as the package sees it and as the system gives it, against two with BLAS threads and other hashes of text.
MACHINES = (
    {"PYTHON_CPU_COUNT": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "1"},
    {"PYTHON_CPU_COUNT": "2", "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "PYTHONHASHSEED": "2"},
)

HEAD = """
import hashlib, json, sys, warnings
import numpy as np
warnings.simplefilter("ignore")
from bayes_gda import load_example
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA
found = {}
def digest(*arrays):
    return hashlib.sha256(b"".join(np.ascontiguousarray(a, dtype=float).tobytes() for a in arrays)).hexdigest()
def note(name, model, rows):
    draws = [v.values for _, v in sorted(model.posterior_["posterior"].to_dataset().data_vars.items())]
    found[name] = [
        model.inference_, float(model.log_evidence_).hex(), digest(model.predict_proba(rows)), digest(*draws),
        digest(model.predict_interval(rows)), digest(model.sample(5)[0]) if hasattr(model, "sample") else "",
    ]
iris, pima = load_example("iris"), load_example("pima")
"""
FAST = (
    HEAD
    + """
for cls in (BayesianLDA, BayesianQDA, BayesianNaiveGaussian):
    note(cls.__name__, cls(draws=50, chains=2).fit(iris.X, iris.y), iris.X)
note("logistic", BayesianLogisticRegression(inference="laplace", draws=50, chains=2).fit(pima.X, pima.y), pima.X)
note("corrected", BayesianLogisticRegression(draws=500, chains=4).fit(pima.X[:60], pima.y[:60]), pima.X)
note("softmax", BayesianLogisticRegression(inference="laplace", draws=50, chains=2).fit(iris.X, iris.y), iris.X)
# Enough rows for the threads of `linalg` and for those of BLAS to share them.
rng = np.random.default_rng(0)
X, y = rng.standard_normal((80_000, 30)), rng.integers(2, size=80_000)
note("many rows", BayesianLDA(draws=5, chains=1).fit(X, y), X[:100])
print(json.dumps(found))
"""
)
SAMPLED = (
    HEAD
    + """
for cls in (BayesianLDA, BayesianQDA, BayesianNaiveGaussian):
    note(cls.__name__, cls(inference="mcmc", draws=50, chains=4).fit(iris.X, iris.y), iris.X)
note("logistic", BayesianLogisticRegression(inference="mcmc", draws=50, chains=4).fit(pima.X, pima.y), pima.X)
print(json.dumps(found))
"""
)


def cores_of(machine):
    """Hold the process to as many cores as it is told of, where the system can."""
    if not hasattr(os, "sched_setaffinity"):
        return None
    cores = sorted(os.sched_getaffinity(0))[: int(machine["PYTHON_CPU_COUNT"])]
    return lambda: os.sched_setaffinity(0, cores)


def run(machine, *args):
    done = subprocess.run(
        [sys.executable, *args],
        env=os.environ | machine,
        capture_output=True,
        text=True,
        preexec_fn=cores_of(machine),
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_exact_and_laplace_fits_are_the_same_on_every_number_of_cores():
    first, second = (json.loads(run(machine, "-c", FAST)) for machine in MACHINES)
    assert first["corrected"][0] == "corrected"
    assert first == second


@pytest.mark.slow
def test_draws_are_the_same_on_every_number_of_cores():
    first, second = (json.loads(run(machine, "-c", SAMPLED)) for machine in MACHINES)
    assert first == second


@pytest.mark.slow
def test_reports_are_the_same_on_every_number_of_cores(tmp_path):
    """All numbers but the times, and every figure."""
    found = []
    for i, machine in enumerate(MACHINES):
        out = tmp_path / str(i) / "report"
        run(machine, "-m", "bayes_gda.cli", "report", "example:iris", "--quick", "--out", str(out))
        numbers = json.loads((out / "report.json").read_text(encoding="utf-8"))
        numbers["reproduce"].pop("timings")
        text = json.dumps(numbers).replace(str(out), "")
        found.append([text, *((p.name, p.read_bytes()) for p in sorted((out / "figures").iterdir()))])
    assert found[0] == found[1]


def test_models_are_saved_with_the_same_bytes(tmp_path):
    """So that a file can be compared with another by its checksum."""
    files = []
    for i, machine in enumerate(MACHINES):
        path = tmp_path / f"{i}.nc"
        args = ("fit", "example:iris", "-m", "qda", "-o", str(path), "--draws", "20", "--chains", "2")
        run(machine, "-m", "bayes_gda.cli", *args)
        files.append(path.read_bytes())
    assert files[0] == files[1]
