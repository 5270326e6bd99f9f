"""Chains give the same draws in forks, in new processes and in this one, wherever they are called from."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import joblib
import pytest
from numpy.testing import assert_array_equal

from bayes_gda import load_example, sample
from bayes_gda.models import naive
from bayes_gda.processes import chains as subject
from bayes_gda.processes.chains import preferred_start, run_chains
from bayes_gda.processes.work import ChainError

MODEL = naive.build(load_example("iris"))


def sampled(**settings):
    tree = sample(MODEL, **{"draws": 30, "tune": 30, "chains": 3, "random_seed": 5, "progress": False} | settings)
    return tree["posterior"]["mu"].values, tree["sample_stats"]["energy"].values


@pytest.fixture(scope="module")
def expected():
    return sampled(cores=1)


@pytest.mark.parametrize("start", ["fork", "fresh", "here"])
def test_the_draws_do_not_depend_on_how_processes_start(start, expected, monkeypatch):
    if start == "fork" and "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork here")
    monkeypatch.setattr(subject, "preferred_start", lambda: start)
    for ours, truth in zip(sampled(cores=2), expected, strict=True):
        assert_array_equal(ours, truth)


def test_a_thread_starts_new_processes(expected):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(preferred_start).result() == "fresh"
        assert_array_equal(pool.submit(sampled, cores=2).result()[0], expected[0])


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_other_systems_start_new_processes(platform, monkeypatch):
    """macOS has fork, and libraries there whose threads do not survive it."""
    monkeypatch.setattr("sys.platform", platform)
    assert preferred_start() == "fresh"


def _from_a_worker(_):
    return preferred_start(), sampled(cores=2)[0]


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="a pool of forks")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.parametrize("kind", ["pool", "joblib"])
def test_a_worker_that_may_have_no_children_runs_the_chains_itself(kind, expected):
    if kind == "pool":
        with multiprocessing.get_context("fork").Pool(2) as pool:
            results = pool.map(_from_a_worker, range(2))
    else:
        results = joblib.Parallel(2, backend="multiprocessing")(joblib.delayed(_from_a_worker)(i) for i in range(2))
    for start, mu in results:
        assert start == "here"
        assert_array_equal(mu, expected[0])


@pytest.mark.parametrize("start", ["fork", "fresh", "here"])
def test_results_errors_and_deaths_arrive(start):
    assert run_chains(lambda chain, report: chain**2, 5, iterations=0, cores=2, start=start) == [0, 1, 4, 9, 16]

    def failing(chain, report):
        raise ValueError(f"chain {chain}")

    with pytest.raises(ValueError, match=r"chain \d"):
        run_chains(failing, 2, iterations=1, cores=2, start=start)
    if start == "here":
        return

    def dying(chain, report):
        import os

        os._exit(1)

    with pytest.raises(ChainError, match=r"died before it had a result.*cores=1"):
        run_chains(dying, 2, iterations=1, cores=2, start=start)

    def unpicklable(chain, report):
        import threading

        return threading.Lock()

    with pytest.raises(ChainError, match="Chain 0: lock"):
        run_chains(unpicklable, 2, iterations=1, cores=2, start=start)


def test_what_cannot_be_sent_runs_here():
    lock = threading.Lock()

    def work(chain, report):
        with lock:
            report(1, 0)
            return chain

    assert run_chains(work, 2, iterations=1, cores=2, start="fresh") == [0, 1]


def test_a_new_process_says_its_progress(capfd):
    def work(chain, report):
        import time

        print("work may print", flush=True)  # noqa: T201, which must not break the answers
        for i in range(3):
            time.sleep(0.15)
            report(i + 1, 2)
        return chain

    assert run_chains(work, 2, iterations=3, cores=2, start="fresh", shown=True) == [0, 1]
    assert "2 divergences" in capfd.readouterr().out
