"""What a fit costs together with the verdict on it, against the fastest of scikit-learn's solvers, which has neither.

Every fit is `BayesianLogisticRegression().fit(X, y)`: mode, covariance, expectation propagation, its certificate on all
training rows, the verdict, and the corrected posterior where that is better.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from bayes_gda import BayesianLDA, BayesianLogisticRegression, BayesianQDA
from benchmarks.record import Session, Target, compared
from benchmarks.rows import gaussian_rows, power
from benchmarks.timing import by_turns

TITLE = "Fit and verdict"
READING = (
    "Seconds of a fit with its verdict over those of the fastest of scikit-learn's solvers (lbfgs, newton-cholesky) on "
    "the same rows, by turns in one run. A covariance costs n·d², which lbfgs does not pay. Then rows per second that "
    "`trust_for` judges over those that `predict_proba` predicts, and fits of the Gaussian models with all checks over "
    "one product X.T @ X."
)
PENALTY = 6.25  # C of the ridge penalty that is our default prior on the slopes, sd 2.5
# Rows, features, and how many times as long a fit with its verdict may take.
SIZES = (
    (1_000, 10, 6.0),
    (1_000, 50, 15.0),
    (10_000, 10, 5.0),
    (10_000, 50, 5.0),
    (100_000, 10, 5.0),
    (100_000, 50, 5.0),
    (1_000_000, 10, 5.0),
    (10_000, 200, 10.0),
)
# Sizes whose verdict must be decided, without a bound of the time.
DECIDED = ((100_000, 200), (10_000, 500))
BUDGET = 4.0


def run(session: Session) -> None:
    """Measure fits with their verdicts, judgements of rows, and fits of the Gaussian models."""
    warnings.simplefilter("ignore")  # verdicts: they are in the notes
    sizes = ((300, 3, 6.0), (2_000, 5, 5.0)) if session.quick else SIZES
    session.settings |= {"n": [n for n, *_ in sizes], "d": [d for _, d, _ in sizes], "C": PENALTY}
    for n, d, most in sizes:
        _fit(session, n, d, most)
    for n, d in () if session.quick else DECIDED:
        _fit(session, n, d, None)
    _fit(session, 500 if session.quick else 10_000, 10, 15.0, K=10)
    _rows(session, 5_000 if session.quick else 200_000)
    _gaussian(session, 20_000 if session.quick else 1_000_000)


def _solver(name: str, X: Any, y: Any) -> Any:
    return lambda: LogisticRegression(C=PENALTY, solver=name, max_iter=1000).fit(X, y)


def _fit(session: Session, n: int, d: int, most: float | None, K: int = 2) -> None:
    X, y = gaussian_rows(n, d, K)
    fitted: dict[str, Any] = {}

    def ours() -> None:
        fitted["model"] = BayesianLogisticRegression().fit(X, y)

    solvers = ("lbfgs", "newton-cholesky") if d <= 50 else ("lbfgs",)
    functions = {"ours": ours} | {name: _solver(name, X, y) for name in solvers}
    ours()  # first calls
    seconds = by_turns(functions, rounds=3 if session.quick else 9, budget=BUDGET)
    fastest = min(solvers, key=lambda name: float(np.median(seconds[name])))
    verdict = fitted["model"].trust_
    session.add(
        compared(
            f"{'logistic' if K == 2 else 'softmax'}, n = {power(n)}, d = {d}{'' if K == 2 else f', K = {K}'}",
            seconds["ours"],
            seconds[fastest],
            ours_name="fit and verdict",
            theirs_name=fastest,
            target=None if most is None else Target(1 / most),
            at={"n": n, "d": d, "K": K, "verdict": verdict.verdict},
            note=f"verdict: {verdict.verdict}; the method is {fitted['model'].inference_}",
        )
    )


def _rows(session: Session, n: int) -> None:
    """Judgement and probabilities of new rows, of a posterior by expectation propagation."""
    X, y = gaussian_rows(2_000, 30)
    new, _ = gaussian_rows(n, 30)
    model = BayesianLogisticRegression(inference="ep").fit(X, y)
    functions = {"judged": lambda: model.trust_for(new), "predicted": lambda: model.predict_proba(new)}
    for function in functions.values():
        function()
    seconds = by_turns(functions, rounds=3 if session.quick else 7, budget=BUDGET)
    rate = {name: [n / s for s in values] for name, values in seconds.items()}
    words = {"lower": False, "unit": "rows/s", "rival": False, "at": {"n": n, "d": 30, "K": 2}}
    names = {"ours_name": "trust_for", "theirs_name": "its own predict_proba"}
    session.add(compared("trust_for of a corrected model, d = 30", rate["judged"], rate["predicted"], **names, **words))
    rival = LogisticRegression(max_iter=1000).fit(X, y)
    pair = {"ours": lambda: model.predict_proba(new), "theirs": lambda: rival.predict_proba(new)}
    seconds = by_turns(pair, rounds=3 if session.quick else 7, budget=BUDGET)
    rate = {name: [n / s for s in values] for name, values in seconds.items()}
    names = {"ours_name": "corrected (EP)", "theirs_name": "LogisticRegression"}
    target = None if session.quick else Target(1_000_000, of="ours")
    words |= {"rival": True, "target": target}
    session.add(compared("predict_proba of a corrected model, d = 30", rate["ours"], rate["theirs"], **names, **words))


def _gaussian(session: Session, n: int) -> None:
    """LDA and QDA from arrays, with the estimator's checks, against one product of the same matrix."""
    X, y = gaussian_rows(n, 30)
    models = {"BayesianLDA": BayesianLDA, "BayesianQDA": BayesianQDA}
    functions = {name: (lambda cls=cls: cls().fit(X, y)) for name, cls in models.items()}
    functions["X.T @ X"] = lambda: X.T @ X
    for function in functions.values():
        function()
    seconds = by_turns(functions, rounds=3 if session.quick else 7, budget=BUDGET)
    for name in models:
        session.add(
            compared(
                f"{name} with all checks, n = {power(n)}, d = 30, against one matrix product",
                seconds[name],
                seconds["X.T @ X"],
                ours_name=name,
                theirs_name="X.T @ X",
                rival=False,
                target=Target(1 / 2.5),  # at most 2.5 times as long
                at={"n": n, "d": 30, "K": 2},
            )
        )
