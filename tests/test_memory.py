"""What would take more memory than is free is refused before it is taken, in one line with a remedy."""

import gzip
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile.limited import limited

from bayes_gda import memory, read_table
from bayes_gda.errors import SizeError
from bayes_gda.estimators import BayesianLDA
from bayes_gda.memory import require_memory
from bayes_gda.prediction import uncertainty

RNG = np.random.default_rng(0)


@pytest.fixture
def two_gigabytes(monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 2e9)


def test_a_refusal_names_what_and_how_much_and_the_remedy(two_gigabytes):
    require_memory(1e9, "A table", "Use less.")
    require_memory(1.5e9, "A table", "Use less.")
    with pytest.raises(SizeError, match=r"^A table would take 1\.7 GB of memory; 2\.0 GB are free\. Use less\.$"):
        require_memory(1.7e9, "A table", "Use less.")
    assert issubclass(SizeError, MemoryError)


def test_covariances_of_many_levels_are_refused(two_gigabytes):
    X = np.zeros((4, 6000))
    with pytest.raises(SizeError, match=r"covariances of 6000 features in 2 classes would take 2\.9 GB.*naive model"):
        BayesianLDA().fit(X, [0, 0, 1, 1])


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
            file.write(b"0" * 10**6)
    with pytest.raises(SizeError, match=r"The table in 't\.csv\.gz' would take"):
        read_table(tmp_path / "t.csv.gz", target="b")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
def test_a_limit_on_the_process_counts():
    free = limited("from bayes_gda.memory import free_memory", "print(json.dumps(free_memory()))", megabytes=300)
    assert 2e8 < free < 3.3e8


def test_intervals_of_large_draws_are_those_of_all_at_once(monkeypatch):
    """Draws a few at a time are draws of the same posterior: ends within the noise of 400 draws."""
    X = RNG.standard_normal((60, 8))
    y = (X[:, 0] + RNG.standard_normal(60) > 0).astype(int)
    model = BayesianLDA(draws=2000, chains=2, random_state=1).fit(X, y)
    whole = model.predict_interval(X[:5])
    monkeypatch.setattr(uncertainty, "MOST_NUMBERS", 1000)
    monkeypatch.setattr(uncertainty, "CHUNK_NUMBERS", 1000)
    few = model.predict_interval(X[:5])
    assert few.shape == whole.shape
    width = (whole[..., 1] - whole[..., 0])[..., None]
    assert (few != whole).any()
    assert np.abs(few - whole).max() < 0.2 * width.max()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory as Linux has them")
@pytest.mark.parametrize("name", ["BayesianLDA", "BayesianQDA", "BayesianRDA"])
def test_intervals_of_five_rows_of_500_features(name):
    """They took 15 GB; now they have 1.5."""
    shape = limited(
        f"import numpy as np\nfrom bayes_gda.estimators import {name} as Model\nimport scipy.linalg, pandas, xarray",
        """
        X = np.random.default_rng(0).standard_normal((300, 500))
        y = np.repeat([0, 1], 150)
        print(json.dumps(Model().fit(X, y).predict_interval(X[:5]).shape))
        """,
        megabytes=1500,
        timeout=300,
    )
    assert shape == [5, 2, 2]
