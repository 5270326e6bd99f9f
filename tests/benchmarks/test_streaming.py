"""Row by row at d = 30, K = 3, in one run: predict the class of a row, then learn it.

refit         the exact QDA posterior of all rows so far, some 10 000, and the predictive of one more
GaussianNB    scikit-learn's partial_fit and predict of one row: means and variances only, d numbers in place of d²
stream        rank-one updates: QDA, LDA, and the naive model for a like comparison with GaussianNB
"""

import numpy as np
import pytest
from benchmarks.timing import alternate, report
from sklearn.naive_bayes import GaussianNB

from bayes_gda.data.moments import Moments
from bayes_gda.inference.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.inference.priors import NIG, NIW
from bayes_gda.inference.streaming import StreamingGaussian, StreamingNaive

N, D, K = 10_000, 30, 3
# Rows of a round: refitting takes some 10 ms a row.
STREAMED, REFITTED = 500, 10


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, N)
    return rng.standard_normal((N, D)) @ rng.standard_normal((D, D)) + y[:, None], y


def test_rows_per_second(benchmark, rows):
    X, y = rows
    moments = Moments.from_arrays(X, y, K)
    niw, nig = NIW.default(moments), NIG.default(moments)
    streams = {
        "QDA": StreamingGaussian(qda_posterior(moments, niw)),
        "LDA": StreamingGaussian(lda_posterior(moments, niw)),
        "naive": StreamingNaive(naive_posterior(moments, nig)),
    }
    theirs = GaussianNB().fit(X, y)

    def run(stream):
        for x, k in zip(X[:STREAMED], y[:STREAMED], strict=True):
            stream.log_joint(x).argmax()
            stream.update(x, k)

    def scikit_learn():
        for i in range(STREAMED):
            theirs.predict(X[i : i + 1])
            theirs.partial_fit(X[i : i + 1], y[i : i + 1])

    def refit():
        for i in range(REFITTED):
            qda_posterior(Moments.from_arrays(X[i:], y[i:], K), niw).log_joint(X[i : i + 1]).argmax()

    functions = {name: (lambda s=stream: run(s)) for name, stream in streams.items()}
    seconds = alternate(functions | {"GaussianNB": scikit_learn, "refit": refit}, rounds=5)
    rate = {name: (REFITTED if name == "refit" else STREAMED) / value for name, value in seconds.items()}
    at_least = {"at_least": True, "unit": "rows/s"}
    report(benchmark, "QDA stream / refit, d = 30", rate["QDA"] / rate["refit"], 20, rate, **at_least)
    report(benchmark, "QDA stream / GaussianNB, d = 30", rate["QDA"] / rate["GaussianNB"], 1, rate, **at_least)
    benchmark.pedantic(run, args=(streams["QDA"],), rounds=3)
