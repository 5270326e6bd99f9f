"""Settings of the whole process are after a call what they were before, whatever other threads do meanwhile."""

import logging
import random
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pymc as pm
import pytensor
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bayes_gda import load_example, sample
from bayes_gda.estimators import BayesianLDA, BayesianLogisticRegression
from bayes_gda.linalg import one_blas_thread
from bayes_gda.models import naive
from bayes_gda.processes.state import Shared, quiet_logger, warning_rule

IRIS = load_example("iris")


def blas_threads():
    return [line["num_threads"] for line in threadpool_info() if line["user_api"] == "blas"]


@pytest.fixture
def two_blas_threads():
    """The tests run with one BLAS thread; with two there is something to lose."""
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


def test_the_limit_goes_with_the_last_who_needed_it(two_blas_threads):
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()
    assert set(blas_threads()) == {1}
    first.__exit__(None, None, None)
    assert set(blas_threads()) == {1}, "the second still needs it"
    second.__exit__(None, None, None)
    assert set(blas_threads()) == {2}


def test_an_error_inside_gives_the_limit_back(two_blas_threads):
    with pytest.raises(ValueError, match="inside"), one_blas_thread():
        raise ValueError("inside")
    assert set(blas_threads()) == {2}


def test_nobody_waits_inside(two_blas_threads):
    """All threads are inside at the same time: a lock around the work would break the barrier."""
    barrier = threading.Barrier(8, timeout=20)

    def enter(_):
        with one_blas_thread():
            barrier.wait()
            assert set(blas_threads()) == {1}
            barrier.wait()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(enter, range(8)))
    assert set(blas_threads()) == {2}


def test_predictions_from_many_threads_leave_blas_as_it_was(two_blas_threads):
    """Four threads left the whole process at one BLAS thread for good in 6 of 20 trials."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 6)), rng.integers(2, size=400)
    models = [BayesianLDA(draws=50, chains=2).fit(X, y), BayesianLogisticRegression(inference="laplace").fit(X, y)]
    expected = [model.predict_proba(X) for model in models]

    def predict(i):
        np.testing.assert_array_equal(models[i % 2].predict_proba(X), expected[i % 2])

    for _ in range(20):
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(predict, range(16)))
        assert set(blas_threads()) == {2}


def state():
    return (
        logging.getLogger("pymc").level,
        list(warnings.filters),
        pytensor.config.mode,
        pytensor.config.floatX,
        set(blas_threads()),
    )


def test_sampling_from_threads_leaves_no_trace(two_blas_threads):
    model = naive.build(IRIS)
    with pm.Model() as other:  # compiled, not ours
        pm.Normal("x", 0, 1)

    def run(i):
        time.sleep(0.03 * i)  # staggered: the first to come is not the last to go
        sample(model, draws=5, tune=5, chains=2, cores=1, random_seed=i)

    before = state()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))
    sample(other, draws=5, tune=5, chains=1, cores=1, random_seed=1)
    assert state() == before


def test_any_order_of_entering_and_leaving():
    values = [0]

    class Change:
        def __enter__(self):
            assert values == [0]
            values[0] = 1

        def __exit__(self, *_):
            assert values == [1]
            values[0] = 0

    shared = Shared(Change)

    def visit(seed):
        order = random.Random(seed)
        for _ in range(30):
            time.sleep(order.random() * 1e-4)
            with shared:
                assert values == [1]
                time.sleep(order.random() * 1e-4)
                with shared:  # one inside another, of the same thread
                    assert values == [1]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, range(8)))
    assert values == [0]


def test_a_rule_for_warnings_goes_alone():
    warnings.filterwarnings("ignore", message="first")  # the user's own, pytest puts the filters back
    before = list(warnings.filters)
    with warning_rule("ignore", "first", UserWarning):
        warnings.filterwarnings("ignore", message="meanwhile")
        warnings.warn("first of all", UserWarning, stacklevel=1)
    assert list(warnings.filters)[1:] == before
    assert "meanwhile" in str(warnings.filters[0])


@pytest.mark.parametrize("ours_first", [True, False])
def test_a_rule_and_catch_warnings_in_another_thread(ours_first):
    before = list(warnings.filters)
    ours, theirs = warning_rule("ignore", "quiet", UserWarning), warnings.catch_warnings()
    first, second = (ours, theirs) if ours_first else (theirs, ours)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert list(warnings.filters) == before


def test_a_level_that_the_user_sets_meanwhile_stays():
    logger = logging.getLogger("bayes_gda.test")
    logger.setLevel(logging.INFO)
    with quiet_logger("bayes_gda.test"):
        assert logger.level == logging.ERROR
    assert logger.level == logging.INFO
    with quiet_logger("bayes_gda.test"):
        logger.setLevel(logging.DEBUG)
    assert logger.level == logging.DEBUG
