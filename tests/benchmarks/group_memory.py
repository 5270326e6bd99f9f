"""Memory that a fit and a prediction take beyond the data themselves: the peak of a fresh process over its baseline."""

import json
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.record import Row, Session, Target, compared

TITLE = "Memory"
READING = (
    "Peak resident memory of a fresh process during the call, less what it had before: data, packages, and a first "
    "call on a few rows. The data themselves take 24 MB at n = 10⁵ and 240 MB at n = 10⁶. Less than 1 MB is taken as "
    "1 MB. One run each: memory hardly varies."
)
D = 30
# Pages and threads' buffers come and go by fractions of this.
LEAST_MB = 1.0
# Seconds after which a process is given up.
PATIENCE = 120.0
PAIRS = (
    ("BayesianLDA", "LDA svd"),
    ("BayesianLDA", "LDA lsqr"),
    ("BayesianQDA", "QDA"),
    ("BayesianNaiveGaussian", "GaussianNB"),
    ("logistic, checked", "LogisticRegression"),
)


def run(session: Session) -> None:
    """Measure every estimator in a process of its own."""
    from benchmarks.rows import power

    sizes = (10_000,) if session.quick else (100_000, 1_000_000)
    session.settings |= {"n": sizes, "d": D, "K": 2}
    for n in sizes:
        found: dict[str, dict[str, float]] = {}
        for name in dict.fromkeys(name for pair in PAIRS for name in pair):
            words = [sys.executable, "-m", "benchmarks.group_memory", name, str(n)]
            try:
                done = subprocess.run(words, check=True, capture_output=True, text=True, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                session.skip(f"{name}, n = {power(n)}: given up after {PATIENCE:.0f} s")
                continue
            except subprocess.CalledProcessError as error:
                reason = (error.stderr.strip().splitlines() or ["failed"])[-1][:200]
                session.skip(f"{name}, n = {power(n)}: {reason}")
                continue
            found[name] = json.loads(done.stdout)
            session.say(f"{name}, n = {n}: {found[name]}")
        for step in ("fit", "predict"):
            for ours, theirs in PAIRS:
                what = f"{step}, n = {power(n)}, d = {D}"
                words_ = {"ours_name": ours, "theirs_name": theirs, "unit": "MB", "at": {"n": n, "step": step}}
                if ours in found and theirs in found:
                    both = [max(found[name][step], LEAST_MB) for name in (ours, theirs)]
                    # A logistic fit may take twice as much; the others have no bound.
                    bounded = ours == "logistic, checked" and step == "fit" and n >= 1_000_000
                    session.add(compared(what, both[:1], both[1:], target=Target(0.5) if bounded else None, **words_))
                else:
                    session.add(Row(what, None, None, note="did not finish", **words_))


# ── The process that is measured ────────────────────────────────────────────────────────────────────────────────────


def peak_megabytes(function: Callable[[], Any]) -> float:
    """Peak resident memory during a call, less that before it.

    Linux keeps the peak itself and can be told to forget it; elsewhere a thread looks every millisecond.
    """
    import psutil

    process = psutil.Process()
    before = process.memory_info().rss
    forget, status = Path("/proc/self/clear_refs"), Path("/proc/self/status")
    if forget.exists():
        forget.write_text("5", encoding="ascii")
        function()
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return max(int(line.split()[1]) * 1024 - before, 0) / 1e6
    seen, done = [before], threading.Event()

    def look() -> None:
        while not done.is_set():
            seen.append(process.memory_info().rss)
            time.sleep(0.001)

    thread = threading.Thread(target=look)
    thread.start()
    function()
    done.set()
    thread.join()
    return (max(seen) - before) / 1e6


def _estimator(name: str) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    import bayes_gda

    makers: dict[str, Callable[[], Any]] = {
        "BayesianLDA": lambda: bayes_gda.BayesianLDA(),
        "BayesianQDA": lambda: bayes_gda.BayesianQDA(),
        "BayesianNaiveGaussian": lambda: bayes_gda.BayesianNaiveGaussian(),
        "logistic, checked": lambda: bayes_gda.BayesianLogisticRegression(inference="laplace"),
        "LDA svd": lambda: LinearDiscriminantAnalysis(solver="svd"),
        "LDA lsqr": lambda: LinearDiscriminantAnalysis(solver="lsqr"),
        "QDA": QuadraticDiscriminantAnalysis,
        "GaussianNB": GaussianNB,
        "LogisticRegression": lambda: LogisticRegression(max_iter=1000),
    }
    return makers[name]()


def _measured(name: str, n: int) -> dict[str, float]:
    from benchmarks.rows import gaussian_rows

    warnings.simplefilter("ignore")
    X, y = gaussian_rows(n, D)
    first = _estimator(name).fit(X[:2000].copy(), y[:2000])
    first.predict_proba(X[:2000].copy())
    model = _estimator(name)
    fit = peak_megabytes(lambda: model.fit(X, y))
    predict = peak_megabytes(lambda: model.predict_proba(X))
    return {"fit": fit, "predict": predict}


if __name__ == "__main__":
    sys.stdout.write(json.dumps(_measured(sys.argv[1], int(sys.argv[2]))))
