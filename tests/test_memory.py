"""What would take more memory than is free is refused before it is taken, in one line with a remedy."""

import gzip
import sys
import tracemalloc
import warnings
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hostile.limited import limited

from bayes_gda import memory, read_table
from bayes_gda.errors import DataError, InferenceWarning, SizeError
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression, BayesianQDA, BayesianRDA
from bayes_gda.families.gaussian import effort
from bayes_gda.families.gaussian.exact import NIWPosterior
from bayes_gda.families.linear import mode
from bayes_gda.families.linear.mode import check_effort
from bayes_gda.memory import announce_work, require_memory
from bayes_gda.prediction import fitted, uncertainty


@pytest.fixture
def two_gigabytes(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 2e9)


def test_a_refusal_names_what_and_how_much_and_the_remedy(two_gigabytes):
    require_memory(1e9, "A table", "Use less.")
    require_memory(1.5e9, "A table", "Use less.")
    with pytest.raises(SizeError, match=r"^A table would take 1\.7 GB of memory; 2\.0 GB are free\. Use less\.$"):
        require_memory(1.7e9, "A table", "Use less.")
    assert issubclass(SizeError, MemoryError)


def test_work_of_more_than_a_minute_is_announced():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        announce_work(59e10, "A fit", "Use less.")
    with pytest.warns(InferenceWarning, match=r"^A fit is expected to take about 1 minute on one core\. Use less\.$"):
        announce_work(61e10, "A fit", "Use less.")
    with pytest.warns(InferenceWarning, match="about 3 hours"):
        announce_work(3 * 3600e10, "A fit", "Use less.")


def test_wide_regressions_say_that_they_take_long():
    """5000 columns went straight into MCMC; 200 classes of 1000 rows ran for minutes without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_effort(10**4, 500, 1)
        check_effort(1797, 650, 10)  # digits
    with pytest.warns(InferenceWarning, match="A regression of 5001 weights given 100 rows is expected to take about"):
        check_effort(100, 5001, 1)
    with pytest.warns(InferenceWarning, match=r"1200 weights given 1000 rows is expected to take about 7 minutes"):
        check_effort(1000, 1200, 200)


@pytest.mark.parametrize(
    ("rows", "weights", "classes", "seconds"),
    [(1000, 60, 10, 0.4), (1000, 300, 50, 12), (300, 1200, 200, 117), (10**5, 60, 10, 1), (200, 1001, 1, 1.5)],
)
def test_announced_times_are_near_measured_ones(rows, weights, classes, seconds, monkeypatch):
    """Processor time of a fit with its verdict on one core, 5 columns in several classes, 1000 in two."""
    said = []
    monkeypatch.setattr(mode, "announce_work", lambda operations, *_: said.append(operations / memory.OPERATIONS))
    check_effort(rows, weights, classes)
    assert 0.7 < said[0] / seconds < 5


def test_very_wide_regressions_are_refused(two_gigabytes):
    X = np.eye(4, 20_000)
    tracemalloc.start()
    try:
        with pytest.raises(
            SizeError, match=r"The curvature of 20001 weights would take 25\.6 GB.*LDA or the naive model"
        ):
            BayesianLogisticRegression().fit(X, [0, 0, 1, 1])
        assert tracemalloc.get_traced_memory()[1] < 50e6  # before anything of its square was made
    finally:
        tracemalloc.stop()


def test_long_sampling_is_announced(monkeypatch):
    monkeypatch.setattr(memory, "UNANNOUNCED", 0.0)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 2))
    model = BayesianLogisticRegression(inference="mcmc", draws=50, chains=1, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, X[:, 0] > 0)
    said = [str(w.message) for w in caught if "Sampling 3 parameters given 50 rows is expected" in str(w.message)]
    assert len(said) == 1
    assert "progress=True" in said[0]


def test_covariances_of_many_levels_are_refused(two_gigabytes):
    X = np.zeros((4, 6000))
    with pytest.raises(SizeError, match=r"covariances of 6000 features in 2 classes would take 5\.2 GB.*naive model"):
        BayesianLDA().fit(X, [0, 0, 1, 1])
    with pytest.raises(SizeError, match=r"covariances of 2000 features in 2 classes would take 5\.8 GB.*naive model"):
        BayesianRDA().fit(X[:, :2000], [0, 0, 1, 1])


@pytest.mark.parametrize(("Model", "models"), [(BayesianLDA, 0), (BayesianQDA, 0), (BayesianRDA, 77)])
def test_the_memory_of_covariances_is_known_before(Model, models, monkeypatch):
    said, (n, d, K) = [], (1200, 150, 3)
    monkeypatch.setattr(effort, "require_memory", lambda size, *_: said.append(size))
    X = np.random.default_rng(0).standard_normal((n, d))
    Model().fit(X, np.arange(n) % K)  # imports what it needs, which is not counted
    tracemalloc.start()
    try:
        Model().fit(X, np.arange(n) % K)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert said == [8 * d**2 * K * (models + 13 if models else 9)] * 2
    assert 0.4 < most / said[0] < 1.1


def test_a_parquet_file_that_says_it_is_large_is_refused(two_gigabytes, tmp_path):
    """Equal values are stored once: 10⁸ of them in some kilobytes."""
    column = pa.array(np.zeros(10**6))
    with pq.ParquetWriter(tmp_path / "t.parquet", pa.schema([("a", pa.float64())])) as writer:
        for _ in range(100):
            writer.write_table(pa.table({"a": column}))
    assert (tmp_path / "t.parquet").stat().st_size < 2_000_000
    with pytest.raises(SizeError, match=r"The table in 't.parquet' would take 2\.4 GB"):
        read_table(tmp_path / "t.parquet", target="a")


def test_a_compressed_text_that_grows_is_refused(tmp_path, monkeypatch):
    from bayes_gda.data import files

    for module in (memory, files):
        monkeypatch.setattr(module, "free_memory", lambda: 3.5e8)
    with gzip.open(tmp_path / "t.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"a,b\n")
        for _ in range(400):
            file.write(b"0,\n" * 333_333)
    with pytest.raises(SizeError, match=r"The table in 't\.csv\.gz' would take"):
        read_table(tmp_path / "t.csv.gz", target="b")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.jsonl"])
def test_a_cell_without_end_is_refused(tmp_path, name):
    """A cell of 1 GB took 11 GB; the message does not repeat it."""
    cell = b"a,y\n1,u\n" + b"x" * 51_000_000 + b",v\n"
    (tmp_path / name).write_bytes(gzip.compress(cell, 1) if name.endswith("gz") else cell)
    with pytest.raises(DataError, match=rf"^A line of '{name}' has more than 50 MB, which .{{,200}}$"):
        read_table(tmp_path / name, target="y")


def test_a_message_does_not_repeat_a_long_cell(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b,y\n1,1,u\n2,2,v\n" + b"x" * 10**6 + b",3,v\n4,4,u\n")
    with pytest.raises(DataError) as caught:
        read_table(tmp_path / "t.csv", target="y")
    assert len(str(caught.value)) < 400


def test_a_sheet_that_grows_is_refused(two_gigabytes, tmp_path):
    with (
        zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as parts,
        parts.open("xl/worksheets/sheet1.xml", "w", force_zip64=True) as part,
    ):
        for _ in range(60):
            part.write(bytes(10**7))
    assert (tmp_path / "t.xlsx").stat().st_size < 5_000_000
    with pytest.raises(SizeError, match=r"The table in 't.xlsx' would take 1\.8 GB"):
        read_table(tmp_path / "t.xlsx", target="a")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
def test_a_limit_on_the_process_counts():
    free = limited("from bayes_gda.memory import free_memory", "print(json.dumps(free_memory()))", megabytes=300)
    assert 2e8 < free < 3.3e8


@pytest.mark.parametrize(
    ("Model", "gaps"),
    [(BayesianLDA, False), (BayesianLDA, True), (BayesianQDA, False), (BayesianQDA, True), (BayesianRDA, False)],
)
def test_answers_of_large_draws_are_those_of_all_at_once(monkeypatch, Model, gaps):
    """Where draws of the parameters would be large, rows have draws of their own, of the same distribution."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    model = Model(draws=2000, chains=2, random_state=1).fit(X, y)
    rows = X[:5].copy()
    if gaps:
        rows[1, :3] = rows[3] = np.nan
    costs = [[0, 1], [2, 0]]
    whole = model.predict_interval(rows), model.uncertainty(rows), model.decide(rows, costs)
    for module in (fitted, uncertainty):
        monkeypatch.setattr(module, "MOST_NUMBERS", 1000)
    few = model.predict_interval(rows), model.uncertainty(rows), model.decide(rows, costs)
    assert (few[0] != whole[0]).any()
    # 4000 draws each: an end of a 90 % interval has a standard error of some .02 of its width.
    assert np.abs(few[0] - whole[0]).max() < 0.1 * (whole[0][..., 1] - whole[0][..., 0]).max()
    np.testing.assert_array_equal(few[1].total, whole[1].total)
    np.testing.assert_allclose(few[1].aleatoric, whole[1].aleatoric, atol=0.03)
    np.testing.assert_allclose(few[2].probability_optimal, whole[2].probability_optimal, atol=0.05)
    np.testing.assert_allclose(model.predict_interval(rows[2:3]), few[0][2:3], rtol=1e-10)  # alone as among others


def test_shares_and_new_rows_of_large_draws_are_made_some_at_a_time(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 8))
    y = (X[:, 0] + rng.standard_normal(60) > 0).astype(int)
    model = BayesianLDA(draws=200, chains=2, random_state=1).fit(X, y)
    whole = model.estimate_class_prior(X)
    monkeypatch.setattr(fitted, "MOST_NUMBERS", 1000)
    monkeypatch.setattr(fitted, "CHUNK_NUMBERS", 5000)
    most = []
    draw = NIWPosterior.draw
    monkeypatch.setattr(NIWPosterior, "draw", lambda self, size, **seed: most.append(size) or draw(self, size, **seed))
    few = model.estimate_class_prior(X)
    rows, labels = model.sample(1000)
    assert max(most) <= 5000 // 64
    np.testing.assert_array_equal(few.prior, whole.prior)
    np.testing.assert_allclose(few.standard_error, whole.standard_error, rtol=0.2)
    np.testing.assert_allclose(rows.mean(axis=0), X.mean(axis=0), atol=0.25)
    assert len(labels) == 1000


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
@pytest.mark.parametrize("name", ["BayesianLDA", "BayesianQDA", "BayesianRDA"])
def test_intervals_of_five_rows_of_500_features(name):
    """They took 15 GB and, some draws at a time, 74 s; now they have 1 GB, and take a second."""
    shape, seconds = limited(
        f"import numpy as np\nfrom bayes_gda.estimators import {name} as Model\nimport scipy.linalg, pandas, xarray",
        """
        X = np.random.default_rng(0).standard_normal((300, 500))
        y = np.repeat([0, 1], 150)
        model = Model().fit(X, y)
        begun = time.process_time()
        shape = model.predict_interval(X[:5]).shape
        print(json.dumps([shape, time.process_time() - begun]))
        """,
        megabytes=1000,
        timeout=300,
    )
    assert shape == [5, 2, 2]
    assert seconds < 10


def test_a_feather_file_whose_texts_point_beyond_its_end_is_refused(tmp_path):
    """Arrow itself takes the offsets as they are, and pandas crashed with them."""
    path = tmp_path / "t.feather"
    labels = ["u", "vv"] * 20
    feather.write_feather(pa.table({"a": np.arange(40.0), "y": labels}), path, compression="uncompressed")
    offsets = np.concatenate([[0], np.cumsum([len(label) for label in labels])]).astype("<i4").tobytes()
    whole = bytearray(path.read_bytes())
    at = whole.index(offsets)
    whole[at + 80 : at + 84] = (2**30).to_bytes(4, "little")
    path.write_bytes(bytes(whole))
    with pytest.raises(DataError, match=r"Cannot read .* as feather"):
        read_table(path, target="y")
