"""Fits on a Dask cluster of two processes against the same fits on one machine, also when a process is killed."""

import builtins
import os
import signal
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from command_line import run, run_json

from bayes_gda.data.large.batches import open_batches
from bayes_gda.data.large.cluster import ClusterBatches, connect, open_cluster
from bayes_gda.errors import ClusterError, DataError, InferenceWarning, MissingDependencyError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
PARTS = {BayesianNaiveGaussian: ("m", "kappa", "a", "b", "alpha")}


def table(n=900, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) * [1, 5, 0.2] + [0, 2, 10]
    y = ((X - [0, 2, 10]) / [2, 10, 0.4] @ rng.normal(size=(3, K)) + rng.gumbel(size=(n, K))).argmax(axis=1)
    df = pd.DataFrame(X, columns=["a", "b", "c"])
    return df.assign(island=rng.choice(["Dream", "Biscoe", "Torgersen"], n), kind=np.array(["u", "v", "w"])[y])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Seven files of unequal length, with two row groups each."""
    path, df = tmp_path_factory.mktemp("parquet"), table()
    for i, rows in enumerate(np.split(np.arange(len(df)), [30, 210, 390, 391, 600, 780])):
        df.iloc[rows].to_parquet(path / f"part{i}.parquet", row_group_size=max(1, (len(rows) + 1) // 2))
    return path


@pytest.fixture(scope="module")
def client():
    """Two workers, each a process with one thread."""
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def make(cls):
    """Return an estimator whose posterior is a Gaussian, whatever the verdict on it."""
    return cls(inference="laplace") if cls is BayesianLogisticRegression else cls()


def assert_same(found, truth):
    """The posteriors, the evidence and the names, to 1e-10; what the verdict averages over random points, to theirs."""
    a, b = found.model_.posterior, truth.model_.posterior
    evidence = {"rel": 1e-10}
    if isinstance(truth, BayesianLogisticRegression):
        names = ("mean", "chol_precision")
        np.testing.assert_array_equal(found.model_.shares, truth.model_.shares)
        np.testing.assert_allclose(found.features_.inner, truth.features_.inner, rtol=1e-12)
        for name in ("laplace_error", "better_error"):
            seen, whole = (getattr(model.trust_.propagation, name) for model in (found, truth))
            assert seen == pytest.approx(whole, rel=1e-3)
        evidence = {"abs": 0.01 * truth.log_evidence_error_}
    else:
        names = PARTS.get(type(truth), ("m", "kappa", "Psi", "nu", "alpha"))
    for name in names:
        x, y = getattr(a, name), getattr(b, name)
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-10 * np.abs(y).max())
    assert found.log_evidence_ == pytest.approx(truth.log_evidence_, **evidence)
    np.testing.assert_array_equal(found.classes_, truth.classes_)


@pytest.mark.parametrize("cls", [BayesianLDA, BayesianQDA, BayesianNaiveGaussian, BayesianLogisticRegression])
def test_a_folder_is_fitted_as_on_one_machine(cls, folder, client):
    calls = []
    on_cluster = open_cluster(folder, "kind", client=client, progress=calls.append)
    assert on_cluster.part_rows == (30, 180, 180, 1, 209, 180, 120)
    assert calls[-1] == 900
    assert sorted(calls) == calls
    assert_same(make(cls).fit(on_cluster), make(cls).fit(folder, "kind"))


def test_partitions_of_a_file_follow_its_row_groups(tmp_path, client, monkeypatch):
    table().to_parquet(tmp_path / "t.parquet", row_group_size=100)
    monkeypatch.setattr("bayes_gda.data.large.partitions.PART_ROWS", 250)
    source = open_cluster(tmp_path / "t.parquet", "kind")
    assert source.part_rows == (200, 200, 200, 200, 100)
    here = open_batches(tmp_path / "t.parquet", target="kind")
    assert source.encoding == here.encoding
    assert source.class_names == here.class_names
    # The rows of a random part do not depend on the partitions.
    some, same = source.sample(500, random_seed=3), here.sample(500, random_seed=3)
    for name in ("X", "y", "count"):
        np.testing.assert_array_equal(getattr(some, name), getattr(same, name))


def test_many_partitions_are_added_up_in_a_tree(client):
    import dask.dataframe as dd

    df = table(1200)
    source = open_cluster(dd.from_pandas(df, npartitions=40), "kind", drop=["island"])
    assert len(source.part_rows) == 40
    X = source.sum(lambda X, y: [X])
    np.testing.assert_array_equal(np.concatenate(X), df[["a", "b", "c"]])
    assert source.sum(lambda X, y: (len(y), X.sum(axis=0)))[0] == 1200


@pytest.mark.parametrize("cls", [BayesianLDA, BayesianLogisticRegression])
def test_dask_data_frames_and_arrays(cls, folder, client):
    import dask.array as da
    import dask.dataframe as dd

    # Dask reads several of these files as one partition, but not for any selection of columns.
    assert_same(make(cls).fit(dd.read_parquet(folder), "kind"), make(cls).fit(folder, "kind"))
    df = table()
    X, y = df[["a", "b", "c"]].to_numpy(), df["kind"].to_numpy(dtype=object)
    blocks = da.from_array(X, chunks=(300, 2))
    truth = make(cls).fit(open_batches(folder, target="kind", drop=["island"]))
    column = da.from_array(y[:, None], chunks=(300, 1))
    series = dd.from_dask_array(da.from_array(y, chunks=300), columns="kind")
    for labels in [da.from_array(y, chunks=250), column, series][: 3 if cls is BayesianLDA else 1]:
        found = make(cls).fit(blocks, labels)
        assert_same(found, truth)
        assert not hasattr(found, "feature_names_in_")
        np.testing.assert_array_equal(found.predict(X), truth.predict(df[["a", "b", "c"]]))


def test_a_worker_that_is_killed_in_the_middle_changes_nothing(folder, client):
    truth = make(BayesianLogisticRegression).fit(folder, "kind")
    before, calls = set(client.run(os.getpid).values()), []

    def kill(rows):
        calls.append(rows)
        if len(calls) == 10:  # in the middle of the first Newton pass
            os.kill(min(before), signal.SIGKILL)

    source = replace(open_cluster(folder, "kind"), progress=kill)
    assert_same(make(BayesianLogisticRegression).fit(source), truth)
    assert len(calls) > 20
    assert calls.count(900) == len(calls) / 7  # each partition once a pass, also those read twice
    assert min(before) not in client.run(os.getpid).values()


@pytest.mark.slow
def test_a_worker_samples_by_itself(client):
    """Workers of Dask are daemonic: they may have no children, and failed with a raw AssertionError."""

    def sampled():
        import multiprocessing

        from bayes_gda import load_example
        from bayes_gda.estimators import BayesianLogisticRegression

        pima = load_example("pima")
        model = BayesianLogisticRegression(inference="mcmc", draws=20, chains=2, random_state=1).fit(pima.X, pima.y)
        return multiprocessing.current_process().daemon, model.predict_proba(pima.X)

    daemonic, there = client.submit(sampled).result(timeout=120)
    assert daemonic
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InferenceWarning)
        np.testing.assert_array_equal(there, sampled()[1])


def test_gaps_and_what_is_wrong_with_a_table(tmp_path, client):
    df = table(600)
    df.loc[[50, 450], "b"] = np.nan
    for i in range(3):
        df[200 * i : 200 * (i + 1)].to_parquet(tmp_path / f"{i}.parquet")
    source = open_cluster(tmp_path, "kind")
    with pytest.raises(
        DataError, match=r"Rows (1 to 200|401 to 600): Missing values in 'b' \(1\); pass missing=\"drop"
    ):
        source.moments()
    kept = open_cluster(tmp_path, "kind", missing="drop").moments()
    assert kept.n == 598
    with pytest.raises(DataError, match="changed between two passes"):
        replace(source, part_rows=(200, 199, 201), layout=replace(source.layout, missing="drop")).moments()
    with pytest.raises(DataError, match=r"no target column 'knd'\. Did you mean 'kind'\?"):
        open_cluster(tmp_path, "knd")
    with pytest.raises(DataError, match="No such file"):
        open_cluster(tmp_path / "nowhere.parquet", "kind")
    with pytest.raises(DataError, match=r"A cluster reads \.parquet files"):
        open_cluster(tmp_path / "t.csv", "kind")


def test_what_is_wrong_with_the_arguments(client):
    import dask.array as da
    import dask.dataframe as dd

    X, y, frame = da.zeros((10, 2), chunks=5), da.arange(10, chunks=5), dd.from_pandas(table(10), npartitions=1)
    for args, message in [
        ((X, np.arange(10)), "`y` must be a Dask array or Series like `X`; got ndarray"),
        ((X, da.arange(9, chunks=5)), "`X` has 10 rows and `y` 9"),
        ((X, dd.from_dask_array(y.rechunk(2))), "`X` has 2 blocks of rows and `y` 5"),
        ((X[:, 0], y), "`X` must be 2-d"),
        ((X.astype(str), y), "`X` must hold numbers"),
        ((X, X), "`y` must be 1-d"),
        ((X, frame), "`y` must have one column; got 5"),
        ((frame, None), "`y` must be the name of the target column where `X` is a Dask DataFrame"),
        ((frame, "kind", np.ones(10)), "`sample_weight` is for rows in memory"),
    ]:
        with pytest.raises(DataError, match=message):
            BayesianLDA().fit(*args)
    with pytest.raises(DataError, match="`table` must be a Dask DataFrame"):
        open_cluster(np.ones((3, 2)), "y")
    with pytest.raises(DataError, match="`target` must be the name"):
        open_cluster(frame, 3)


def test_the_command_line(folder, client, tmp_path):
    address = client.scheduler.address
    fit = ("fit", folder, "-t", "kind", "-m", "lda", "-o", tmp_path / "m.nc")
    on_cluster = run_json(*fit, "--cluster", address)
    here = run_json(*fit)
    assert on_cluster["n"] == here["n"] == 900
    assert on_cluster["log_evidence"] == pytest.approx(here["log_evidence"], rel=1e-10)
    assert "no target column" in run("fit", folder, "-t", "x", "-m", "lda", "-o", tmp_path / "m.nc", code=2).stderr
    # The client of the command is its own, and is closed.
    assert distributed.default_client() is client


# ── Clusters that are not there ─────────────────────────────────────────────────────────────────────────────────────


def test_no_cluster_is_said_in_one_line(folder, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("distributed.get_client", lambda: (_ for _ in ()).throw(ValueError("No global client found")))
        with pytest.raises(ClusterError, match="No Dask cluster is connected"):
            open_cluster(folder, "kind")
    with pytest.raises(ClusterError, match=r"Cannot reach a Dask cluster at 'tcp://127.0.0.1:1'"):
        connect("tcp://127.0.0.1:1", timeout=0.2)
    monkeypatch.setattr("bayes_gda.data.large.cluster.CONNECT", 0.2)
    fit = ("fit", folder, "-t", "kind", "-m", "lda", "-o", tmp_path / "m.nc")
    assert "`--cluster` must be an address such as" in run(*fit, "--cluster", "nonsense://x", code=2).stderr


def test_a_cluster_without_workers_and_one_that_is_closed(folder, monkeypatch):
    monkeypatch.setattr("bayes_gda.data.large.cluster.LOOK", 0.1)
    monkeypatch.setattr("bayes_gda.data.large.cluster.WITHOUT_WORKERS", 0.3)
    here = open_batches(folder, target="kind")
    with distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty:
        connected = distributed.Client(empty, set_as_default=False)
        from bayes_gda.data.large.partitions import Files, look_at

        columns, files = look_at(folder, "kind")
        parts = Files.of("kind", columns, files, [[30], [180], [180], [1], [209], [180], [120]])
        source = ClusterBatches(parts, here.layout, 900, parts.part_rows, connected)
        with pytest.raises(ClusterError, match="has had no workers for"):
            source.moments()
        connected.close()
        with pytest.raises(ClusterError, match="The Dask cluster went away"):
            source.moments()


def test_without_dask_the_remedy_is_named(folder, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.split(".")[0] in ("dask", "distributed"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingDependencyError, match=r"pip install 'bayes-gda\[dask\]'"):
        open_cluster(folder, "kind")
