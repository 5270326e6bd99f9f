"""Tables larger than memory: memory that stays flat in n, rows per second, and how many passes a fit takes.

BENCH_ROWS rows (10⁸ unless told, or if the disk is too small) of ten features and two classes are simulated into a
folder of Parquet files, chunk by chunk, and a hundredth of them into another. Each fit runs in a process of its own,
whose peak memory is the kernel's figure, imports and all.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.rows import power
from benchmarks.timing import report

D = 10
# Twice what 10⁸ rows take.
ROOM = 2 * 10**8 * (D + 1) * 8
ROWS = int(
    float(os.environ.get("BENCH_ROWS") or (1e8 if shutil.disk_usage(tempfile.gettempdir()).free > ROOM else 1e7))
)
# Rows of a row group, which Arrow reads at once, and of a file.
GROUP, FILE = 100_000, 5_000_000

CHILD = """
import json, resource, sys, time
from bayes_gda.data.large.batches import open_batches
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

name, path = sys.argv[1:]
cls = {"lda": BayesianLDA, "logistic": BayesianLogisticRegression}[name]
imported, ticks = peak(), []
start = time.perf_counter()
table = open_batches(path, target="y", progress=ticks.append)
opened = time.perf_counter()
model = cls().fit(table)
end = time.perf_counter()
passes = ticks.count(table.rows) - 1
print(json.dumps({
    "megabytes": peak(), "after imports": imported, "rows": table.rows, "passes": passes, "seconds": end - start,
    "rows per second and pass": passes * table.rows / (end - opened), "verdict": model.trust_.verdict,
}))
"""


def simulate(folder, n):
    """Write n rows, never more than a row group of them in memory."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    w = rng.normal(size=D)
    names = [f"x{j}" for j in range(D)]
    schema = pa.schema([*((name, pa.float64()) for name in names), ("y", pa.int8())])
    for i, start in enumerate(range(0, n, FILE)):
        with pq.ParquetWriter(folder / f"{i:05d}.parquet", schema, compression="none", use_dictionary=False) as writer:
            for first in range(start, min(n, start + FILE), GROUP):
                size = min(GROUP, n - first)
                X = rng.standard_normal((size, D))
                y = (X @ w + rng.logistic(size=size) > 0).astype(np.int8)
                writer.write_table(pa.table([*X.T, y], schema=schema), row_group_size=GROUP)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    path = tmp_path_factory.mktemp("out_of_core")
    sizes = {"few": ROWS // 100, "many": ROWS}
    return {name: simulate(path / name, n) for name, n in sizes.items()}


@pytest.mark.parametrize("name", ["lda", "logistic"])
def test_memory_is_flat_and_the_rows_flow(benchmark, folders, name):
    def run(which):
        args = [sys.executable, "-c", CHILD, name, str(folders[which])]
        return json.loads(subprocess.run(args, check=True, capture_output=True, text=True).stdout)

    few = run("few")
    many = benchmark.pedantic(lambda: run("many"), rounds=1)
    for told in (few, many):
        sys.stderr.write(f"\n{name}: {json.dumps(told)}\n")
    figures = {"few": few["megabytes"], "many": many["megabytes"], "the table as float64": ROWS * (D + 1) * 8 / 2**20}
    what = f"{name}: peak memory at {power(ROWS)} rows / at {power(ROWS // 100)}"
    report(benchmark, what, many["megabytes"] / few["megabytes"], 1.25, figures, unit="MB")
    # A verdict over all rows is a pass of a regression too, and takes longer than all its others.
    rate = many["rows per second and pass"] / 1e6
    figures = {"passes": many["passes"], "seconds": many["seconds"]}
    what = f"{name}: million rows a second at {power(ROWS)} rows, mean of its passes"
    report(benchmark, what, rate, 0.1, figures, at_least=True, unit="")
