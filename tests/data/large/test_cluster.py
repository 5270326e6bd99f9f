"""A pass over a cluster, made by a client that computes in this process: the sums and messages need no workers."""

import builtins
import subprocess
import sys
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from bayes_gda.data.large import cluster, partitions
from bayes_gda.data.large.batches import open_batches
from bayes_gda.data.large.cluster import FAN_IN, connect, current_client, is_dask, open_cluster, require_dask
from bayes_gda.errors import ClusterError, DataError, MissingDependencyError

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")


class Result(Future):
    """A future of Dask's kind that is done."""

    def __init__(self, value):
        super().__init__()
        self.set_result(value)
        self.status, self.released = "finished", 0

    def release(self):
        self.released += 1


class HereAndNow:
    """What a pass asks of a `distributed.Client`, computed at once in this process; `fail` is raised instead."""

    status = "running"

    def __init__(self, fail=None):
        self.fail, self.results = fail, []

    def submit(self, function, *args, **_):
        return Result(function(*args))

    def map(self, function, values, **_):
        return [Result(function(value)) for value in values]

    def gather(self, futures):
        return [future.result() for future in futures]

    def compute(self, values, **_):
        if self.fail is not None:
            raise self.fail
        self.results = [Result(value) for value in dask.compute(*values, scheduler="synchronous")]
        return self.results


def birds(n=400):
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    return df.assign(island=rng.choice(["Dream", "Biscoe"], n), kind=np.array(["u", "v"])[rng.integers(0, 2, n)])


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A file of 40 row groups, each a partition: more than two levels of sums."""
    monkeypatch.setattr(partitions, "PART_ROWS", 10)
    monkeypatch.setattr(cluster, "FAN_IN", 3)
    birds().to_parquet(tmp_path / "t.parquet", row_group_size=10)
    return tmp_path / "t.parquet"


# ── Sums ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_sums_over_partitions_are_those_of_one_machine(path):
    there, here = open_cluster(path, "kind", client=HereAndNow()), open_batches(path, target="kind")
    assert (there.rows, there.part_rows) == (400, (10,) * 40)
    assert (there.encoding, there.class_names) == (here.encoding, here.class_names)
    rows = np.concatenate(there.sum(lambda X, y: [X]))  # a list is put together in the order of the rows
    np.testing.assert_array_equal(rows, np.concatenate([X for X, _ in here]))
    found, truth = there.moments(), here.moments()
    for name in ("count", "mean", "scatter"):
        np.testing.assert_allclose(getattr(found, name), getattr(truth, name), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("parts", [1, FAN_IN, FAN_IN + 1, FAN_IN**2 + 1])
def test_the_tree_of_sums_leaves_no_partition_out(parts):
    dd = pytest.importorskip("dask.dataframe")
    df = birds()
    source = open_cluster(dd.from_pandas(df, npartitions=parts), "kind", client=HereAndNow(), drop=["island"])
    assert len(source.part_rows) == parts
    assert source.sum(lambda X, y: len(y)) == 400
    np.testing.assert_array_equal(np.concatenate(source.sum(lambda X, y: [X])), df[["a", "b"]])


def test_progress_counts_the_rows_done_and_nothing_is_kept_after_a_pass(path):
    calls, client = [], HereAndNow()
    source = open_cluster(path, "kind", client=client, progress=calls.append)
    calls.clear()
    source.moments()
    assert calls == list(range(10, 401, 10))
    assert len(client.results) == 41
    assert all(result.released for result in client.results)


def test_errors_of_the_table_name_its_rows_and_not_those_of_the_partition(path):
    df = birds()
    df.loc[57, "b"] = np.nan
    df.to_parquet(path, row_group_size=10)
    with pytest.raises(DataError, match=r"^Rows 51 to 60: Missing values in 'b' \(1\)"):
        open_cluster(path, "kind", client=HereAndNow()).moments()
    assert open_cluster(path, "kind", missing="drop", client=HereAndNow()).moments().n == 399


def test_a_table_that_changes_between_two_passes_is_noticed(path):
    source = open_cluster(path, "kind", client=HereAndNow())
    changed = replace(source, part_rows=(9, 11, *source.part_rows[2:]))
    with pytest.raises(DataError, match="The table changed between two passes"):
        changed.moments()


# ── What is wrong with the cluster ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            distributed.KilledWorker("part-3", SimpleNamespace(address="tcp://a:1"), 3),
            r"^A partition took several workers with it \(.*part-3.*\), .*smaller partitions",
        ),
        (
            ModuleNotFoundError("No module named 'bayes_gda'"),
            r"A worker lacks a package \(No module named 'bayes_gda'\)\. Install bayes-gda",
        ),
        (distributed.CancelledError("sum"), "The Dask cluster went away"),
        (OSError("Timed out\nwith a traceback"), "The Dask cluster went away"),
    ],
)
def test_a_failing_cluster_is_explained_in_one_line(path, error, message):
    source = open_cluster(path, "kind", client=HereAndNow())
    with pytest.raises(ClusterError, match=message) as raised:
        replace(source, client=HereAndNow(fail=error)).moments()
    assert "\n" not in str(raised.value)
    assert raised.value.__cause__ is error


def test_errors_of_the_table_and_of_the_program_pass_as_they_are(path):
    source = open_cluster(path, "kind", client=HereAndNow())
    for error in (DataError("Row 3 is bad."), ZeroDivisionError("in the sum")):
        with pytest.raises(type(error), match=str(error)):
            replace(source, client=HereAndNow(fail=error)).moments()


def test_a_closed_client_is_noticed_before_anything_is_sent(path):
    source, closed = open_cluster(path, "kind", client=HereAndNow()), HereAndNow()
    closed.status = "closed"
    with pytest.raises(ClusterError, match="The Dask cluster went away"):
        replace(source, client=closed).moments()
    assert closed.results == []


def test_an_address_without_a_scheduler_is_named():
    with pytest.raises(ClusterError, match=r"Cannot reach a Dask cluster at 'tcp://127\.0\.0\.1:1'"):
        connect("tcp://127.0.0.1:1", timeout=0.2)
    with pytest.raises(ClusterError, match=r"Cannot reach a Dask cluster at 'nonsense://x'"):
        connect("nonsense://x", timeout=0.2)


def test_without_a_client_the_remedy_is_to_connect(monkeypatch):
    def no_client():
        raise ValueError("No global client found")

    monkeypatch.setattr(distributed, "get_client", no_client)
    with pytest.raises(ClusterError, match=r"No Dask cluster is connected\. Connect first: client = "):
        current_client()


# ── What can be on a cluster ────────────────────────────────────────────────────────────────────────────────────────


def test_other_tables_and_targets_are_refused(path):
    dd = pytest.importorskip("dask.dataframe")
    for table in (np.ones((3, 2)), birds(), [1, 2]):
        with pytest.raises(DataError, match=f"`table` must be a Dask DataFrame.* got {type(table).__name__}"):
            open_cluster(table, "kind", client=HereAndNow())
    for table in (path, dd.from_pandas(birds(), npartitions=2)):
        with pytest.raises(DataError, match="`target` must be the name of the class column; got int"):
            open_cluster(table, 3, client=HereAndNow())


def test_dask_collections_are_told_from_other_tables():
    da, dd = pytest.importorskip("dask.array"), pytest.importorskip("dask.dataframe")
    frame = dd.from_pandas(birds(), npartitions=2)
    assert all(is_dask(value) for value in (frame, frame["a"], da.zeros(3)))
    assert not any(is_dask(value) for value in (birds(), np.zeros(3), "dask", None, dask))


def test_tables_in_memory_do_not_import_dask():
    code = (
        "import sys, numpy, pandas; from bayes_gda.data.large.cluster import is_dask;"
        "assert not is_dask(numpy.zeros(3)) and not is_dask(pandas.DataFrame({'a': [1]}));"
        "sys.exit(', '.join({'dask', 'distributed'} & set(sys.modules)) or None)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")


def test_without_dask_the_command_that_installs_it_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("dask", "distributed"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"Run: pip install 'bayes-gda\[dask\]'"):
        require_dask()
