"""Rows a second: class probabilities, intervals on them, and one row at a time."""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from bayes_gda import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.data.moments import Moments
from bayes_gda.families.gaussian.exact import lda_posterior, naive_posterior, qda_posterior
from bayes_gda.families.gaussian.streaming import StreamingGaussian, StreamingNaive
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.methods.laplace import laplace_approximation
from bayes_gda.priors import NIG, NIW, Normal
from benchmarks.record import Row, Session, Target, compared
from benchmarks.rows import gaussian_rows, power
from benchmarks.timing import by_turns

TITLE = "Prediction"
READING = (
    "Rows per second. scikit-learn plugs a point estimate in; ours averages over the posterior: Student-t densities "
    "for the Gaussian models, the integral over the weights for the regressions, by Laplace or expectation "
    "propagation. Intervals of the probabilities have no counterpart there: their price is stated against our own "
    "predict_proba. In a stream each row is predicted first and learnt then."
)
FITTED, D = 2_000, 30
# Rows of a round: refitting takes some 10 ms a row.
STREAMED, REFITTED = 500, 10


def run(session: Session) -> None:
    """Measure predict_proba, intervals, the probit formula and the stream."""
    n = 5_000 if session.quick else 200_000
    rounds = 3 if session.quick else 7
    session.settings |= {"n": n, "d": D, "rows_fitted": FITTED, "streamed": STREAMED}
    warnings.simplefilter("ignore")  # verdicts: not what is measured
    for K in (2, 3):
        _probabilities(session, n, K, rounds)
    _intervals(session, 200 if session.quick else 2_000, rounds)
    _probit(session, 20_000 if session.quick else 1_000_000, rounds)
    _stream(session, 3 if session.quick else 5)


def _probabilities(session: Session, n: int, K: int, rounds: int) -> None:
    X, y = gaussian_rows(FITTED, D, K)
    new, _ = gaussian_rows(n, D, K)
    pairs: dict[str, tuple[Any, Any]] = {
        "LDA": (BayesianLDA(), LinearDiscriminantAnalysis()),
        "QDA": (BayesianQDA(), QuadraticDiscriminantAnalysis()),
        "naive": (BayesianNaiveGaussian(), GaussianNB()),
        "logistic, Laplace" if K == 2 else "softmax, Laplace": (
            BayesianLogisticRegression(inference="laplace"),
            LogisticRegression(max_iter=1000),
        ),
    }
    if K == 2:
        pairs["logistic, auto"] = (BayesianLogisticRegression(), LogisticRegression())
    for name, (ours, theirs) in pairs.items():
        ours.fit(X, y)
        theirs.fit(X, y)
        few = new[: n // 20] if ours.inference_ == "corrected" else new  # an average over 16 000 draws
        functions = {"ours": _bound(ours.predict_proba, few), "theirs": _bound(theirs.predict_proba, few)}
        seconds = _warm(functions, rounds)
        rate = {key: [len(few) / s for s in values] for key, values in seconds.items()}
        session.add(
            compared(
                f"predict_proba, {name}, d = {D}, K = {K}",
                rate["ours"],
                rate["theirs"],
                lower=False,
                ours_name=type(ours).__name__,
                theirs_name=type(theirs).__name__,
                unit="rows/s",
                at={"n": len(few), "d": D, "K": K},
                note=f"posterior: {ours.inference_}",
                target=Target(1e6, of="ours") if name == "softmax, Laplace" else None,
            )
        )


def _intervals(session: Session, n: int, rounds: int) -> None:
    """Intervals against our own probabilities: the price of knowing how well they are known."""
    X, y = gaussian_rows(FITTED, D)
    new, _ = gaussian_rows(n, D)
    models = (BayesianLDA(), BayesianQDA(), BayesianNaiveGaussian(), BayesianLogisticRegression(inference="laplace"))
    for model, least in zip(models, (50_000, 10_000, 50_000, None), strict=True):
        model.fit(X, y)
        functions = {"ours": _bound(model.predict_interval, new), "theirs": _bound(model.predict_proba, new)}
        seconds = _warm(functions, rounds)
        rate = {key: [n / s for s in values] for key, values in seconds.items()}
        session.add(
            compared(
                f"predict_interval, d = {D}, K = 2",
                rate["ours"],
                rate["theirs"],
                lower=False,
                ours_name=f"{type(model).__name__}, intervals",
                theirs_name="its own predict_proba",
                unit="rows/s",
                rival=False,
                target=None if least is None or session.quick else Target(least, of="ours"),
                at={"n": n, "d": D, "K": 2},
            )
        )


def _probit(session: Session, n: int, rounds: int) -> None:
    """Mean and variance of the activation and the probit link, against one activation a row."""
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((n, D))
    y = rng.random(n) < expit(Phi @ rng.normal(0, 0.5, D))
    classic = LogisticRegression().fit(Phi[:FITTED], y[:FITTED])
    posterior = laplace_approximation(LogisticTarget(Phi[:FITTED], y[:FITTED], Normal(scale=2.5)))
    predictor = BinaryPredictor(Phi)
    predictor.gaussian(posterior, "probit")
    seconds = by_turns(
        {"theirs": lambda: classic.predict_proba(Phi), "ours": lambda: predictor.gaussian(posterior, "probit")},
        rounds=rounds + 2,
    )
    rate = {key: [n / s for s in values] for key, values in seconds.items()}
    session.add(
        compared(
            f"Probit predictions of a Laplace posterior, n = {power(n)}, d = {D}",
            rate["ours"],
            rate["theirs"],
            lower=False,
            ours_name="BinaryPredictor.fast",
            theirs_name="LogisticRegression",
            unit="rows/s",
            target=Target(1 / 1.5),  # at most 1.5 times as long
            at={"n": n, "d": D, "K": 2},
        )
    )


def _stream(session: Session, rounds: int) -> None:
    """Row by row: predict the class of a row, then learn it."""
    n, K = 10_000, 3
    rng = np.random.default_rng(0)
    y = rng.integers(0, K, n)
    X = rng.standard_normal((n, D)) @ rng.standard_normal((D, D)) + y[:, None]
    moments = Moments.from_arrays(X, y, K)
    niw, nig = NIW.default(moments), NIG.default(moments)
    streams = {
        "QDA": StreamingGaussian(qda_posterior(moments, niw)),
        "LDA": StreamingGaussian(lda_posterior(moments, niw)),
        "naive": StreamingNaive(naive_posterior(moments, nig)),
    }
    theirs = GaussianNB().fit(X, y)

    def run_stream(stream: Any) -> None:
        for x, k in zip(X[:STREAMED], y[:STREAMED], strict=True):
            stream.log_joint(x).argmax()
            stream.update(x, k)

    def scikit_learn() -> None:
        for i in range(STREAMED):
            theirs.predict(X[i : i + 1])
            theirs.partial_fit(X[i : i + 1], y[i : i + 1])

    def refit() -> None:
        for i in range(REFITTED):
            qda_posterior(Moments.from_arrays(X[i:], y[i:], K), niw).log_joint(X[i : i + 1]).argmax()

    functions: dict[str, Callable[[], Any]] = {name: _bound(run_stream, stream) for name, stream in streams.items()}
    seconds = by_turns(functions | {"GaussianNB": scikit_learn, "refit": refit}, rounds=rounds)
    rate = {name: [(REFITTED if name == "refit" else STREAMED) / s for s in x] for name, x in seconds.items()}
    words = {"lower": False, "unit": "rows/s", "at": {"n": n, "d": D, "K": K}}

    def row(name: str, other: str, target: Target | None, *, rival: bool) -> Row:
        what = f"Stream, {name}, d = {D}, K = {K}, a row at a time"
        label = {"refit": "our QDA refitted to all rows", "GaussianNB": "GaussianNB.partial_fit"}[other]
        names = {"ours_name": f"streaming {name}", "theirs_name": label, "target": target, "rival": rival}
        return compared(what, rate[name], rate[other], **names, **words)

    session.add(row("QDA", "refit", Target(20.0), rival=False))
    session.add(row("QDA", "GaussianNB", Target(1.0), rival=True))
    session.add(row("LDA", "GaussianNB", None, rival=True))
    session.add(row("naive", "GaussianNB", None, rival=True))


def _warm(functions: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    """Seconds by turns, after one call that does not count."""
    for function in functions.values():
        function()
    return by_turns(functions, rounds=rounds, budget=6.0)


def _bound(function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: function(*arguments)
