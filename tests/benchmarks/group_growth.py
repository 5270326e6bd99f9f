"""How the time grows with rows, features and classes: the slope of log seconds on log size, with its error."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from bayes_gda import BayesianLDA, BayesianNaiveGaussian, BayesianQDA, Dataset, Moments
from bayes_gda.families.built import family_of
from bayes_gda.families.linear.predictors import BinaryPredictor, SoftmaxPredictor
from bayes_gda.linalg import one_blas_thread
from bayes_gda.methods.laplace import GaussianPosterior
from benchmarks.group_fit import PENALTY, laplace_alone
from benchmarks.record import Row, Session, Target, compared
from benchmarks.rows import correlated_rows, gaussian_rows, power
from benchmarks.timing import by_turns, per_call, slope

TITLE = "How the time grows"
READING = (
    "An exponent of 1 in n means twice the rows, twice the time. It is the slope of log seconds on log size over the "
    "sizes measured, with its standard error; the other sizes stay at n = 20 000, d = 20, K = 2. Theory counts "
    "multiplications where the term with the highest power rules; below it, fixed costs still share the time. The "
    "target is theory and a fifth: what grows out of the processor's cache slows down by more than arithmetic says."
)
BASE = {"n": 20_000, "d": 20, "K": 2}
AXES = {
    "n": (10_000, 30_000, 100_000, 300_000, 1_000_000),
    "d": (10, 20, 40, 80, 160),
    "K": (2, 4, 8, 16),
}
QUICK = {"n": (1_000, 4_000, 16_000), "d": (5, 10, 20), "K": (2, 4, 8)}
SLACK = 0.2

Timed = Callable[[], Any]


@dataclass(frozen=True, slots=True, eq=False)  # found again by identity
class Operation:
    """Something whose cost grows.

    Parameters
    ----------
    name, kind
        What it is; `fit`, `predict` or `gradient`.
    ours, theirs
        From rows X, y to the call that is timed; scikit-learn's, if it has one.
    theory
        The exponents in n, d and K.
    """

    name: str
    kind: str
    ours: Callable[[Any, Any], Timed]
    theirs: Callable[[Any, Any], Timed] | None
    theory: Mapping[str, float]


def _fit(make: Callable[[], Any]) -> Callable[[Any, Any], Timed]:
    return lambda X, y: lambda: make().fit(X, y)


def _predict(make: Callable[[], Any]) -> Callable[[Any, Any], Timed]:
    def prepare(X: Any, y: Any) -> Timed:
        model = make().fit(X[:FITTED], y[:FITTED])
        return lambda: model.predict_proba(X)

    return prepare


def _laplace_fit(X: Any, y: Any) -> Timed:
    return lambda: laplace_alone(X, y)


def _laplace_predict(X: Any, y: Any) -> Timed:
    posterior: GaussianPosterior = laplace_alone(X[:FITTED], y[:FITTED])
    Phi, K = np.column_stack([np.ones(len(X)), X]), int(y.max()) + 1
    predictor = BinaryPredictor(Phi) if K == 2 else SoftmaxPredictor(Phi, K)
    return lambda: predictor.gaussian(posterior, "probit")


def _gradient(module: str) -> Callable[[Any, Any], Timed]:
    """One log density with its gradient, as the sampler calls it."""

    def prepare(X: Any, y: Any) -> Timed:
        from importlib import import_module

        name = "softmax" if module == "logistic" and y.max() > 1 else module
        model = import_module(f"bayes_gda.models.{name}").build(Dataset.from_arrays(X, y))
        family = family_of(model)
        assert family is not None
        density = family.density
        assert density is not None
        start = density.start
        return lambda: density.values_and_gradients(start)

    return prepare


def _powers(n: float, d: float, K: float) -> dict[str, float]:
    return {"n": n, "d": d, "K": K}


# Rows that a model is fitted to before it predicts: prediction does not depend on them.
FITTED = 2_000
_LSQR = partial(LinearDiscriminantAnalysis, solver="lsqr")
_RIDGE = partial(LogisticRegression, C=PENALTY, max_iter=1000)
OPERATIONS = (
    Operation("LDA", "fit", _fit(BayesianLDA), _fit(_LSQR), _powers(1, 2, 0)),
    Operation("QDA", "fit", _fit(BayesianQDA), _fit(QuadraticDiscriminantAnalysis), _powers(1, 2, 0)),
    Operation("naive", "fit", _fit(BayesianNaiveGaussian), _fit(GaussianNB), _powers(1, 1, 0)),
    Operation("Laplace", "fit", _laplace_fit, _fit(_RIDGE), _powers(1, 2, 2)),
    Operation("LDA", "predict", _predict(BayesianLDA), _predict(LinearDiscriminantAnalysis), _powers(1, 2, 1)),
    Operation("QDA", "predict", _predict(BayesianQDA), _predict(QuadraticDiscriminantAnalysis), _powers(1, 2, 1)),
    Operation("naive", "predict", _predict(BayesianNaiveGaussian), _predict(GaussianNB), _powers(1, 1, 1)),
    Operation("Laplace", "predict", _laplace_predict, _predict(_RIDGE), _powers(1, 2, 2)),
    Operation("LDA", "gradient", _gradient("lda"), None, _powers(0, 3, 1)),
    Operation("QDA", "gradient", _gradient("qda"), None, _powers(0, 3, 1)),
    Operation("naive", "gradient", _gradient("naive"), None, _powers(0, 1, 1)),
    Operation("logistic", "gradient", _gradient("logistic"), None, _powers(1, 1, 1)),
)


def run(session: Session) -> None:
    """Measure every operation along every axis, then the whole of sampling with a thousand times the rows."""
    warnings.simplefilter("ignore")  # slow convergence of scikit-learn's solvers: not what is measured
    axes = QUICK if session.quick else AXES
    base = BASE | {"n": 2_000} if session.quick else BASE
    session.settings |= {"base": base, "axes": axes}
    for axis, sizes in axes.items():
        ours: dict[Operation, list[float]] = {}
        theirs: dict[Operation, list[float]] = {}
        for size in sizes:
            at = base | {axis: size}
            X, y = gaussian_rows(at["n"], at["d"], at["K"])
            for operation in OPERATIONS:
                mine, other = _seconds(operation, X, y)
                ours.setdefault(operation, []).append(mine)
                if other is not None:
                    theirs.setdefault(operation, []).append(other)
            session.say(f"{axis} = {size}")
        for operation in OPERATIONS:
            _row(session, operation, axis, sizes, ours[operation], theirs.get(operation))
    _whole_sampling(session)


def _seconds(operation: Operation, X: Any, y: Any) -> tuple[float, float | None]:
    if operation.theirs is None:
        with one_blas_thread():  # as the sampler has it
            return per_call(operation.ours(X, y)), None
    functions = {"ours": operation.ours(X, y), "theirs": operation.theirs(X, y)}
    functions["ours"]()
    seconds = by_turns(functions, rounds=3, budget=6.0, pause=0.03)  # just above the threads' spinning
    # The least time is the one least disturbed; exponents want no noise, and there is no ratio to be fair to.
    return min(seconds["ours"]), min(seconds["theirs"])


def _row(session: Session, op: Operation, axis: str, sizes: Any, ours: list[float], theirs: list[float] | None) -> None:
    name = "softmax" if axis == "K" and op.name in ("Laplace", "logistic") else op.name
    what = f"{op.kind}, {name}, in {axis}"
    session.series.append({"what": what, "kind": op.kind, "name": name, "axis": axis, "x": sizes, "seconds": ours})
    exponent, error = slope(sizes, ours)
    other = None if theirs is None else slope(sizes, theirs)[0]
    session.add(
        Row(
            what,
            exponent,
            other,
            ours_name=f"bayes_gda, {op.kind}",
            theirs_name="–" if theirs is None else "scikit-learn",
            unit="exponent",
            rival=False,
            target=Target(op.theory[axis] + SLACK, of="ours", at_least=False),
            error=error,
            at={"axis": axis, "theory": op.theory[axis]},
        )
    )


def _whole_sampling(session: Session) -> None:
    """Sampling QDA and LDA from a million rows takes as long as from a thousand: both see their moments only."""
    from bayes_gda import sample
    from bayes_gda.models import lda, qda

    draws = 50 if session.quick else 1000
    few, many = 1_000, 20_000 if session.quick else 1_000_000
    models = {}
    for n in (few, many):
        data = correlated_rows(n)
        moments = Moments.from_arrays(data.X, data.y, 3)
        models[n] = [qda.build(moments), lda.build(moments)]

    def work(n: int) -> Timed:
        return lambda: [sample(model, draws=draws, random_seed=1, progress=False) for model in models[n]]

    seconds = by_turns({"few": work(few), "many": work(many)}, rounds=1 if session.quick else 3)
    session.add(
        compared(
            f"sampling QDA and LDA, n = {power(many)} against n = {power(few)}",
            seconds["many"],
            seconds["few"],
            ours_name=f"n = {power(many)}",
            theirs_name=f"ours at n = {power(few)}",
            rival=False,
            target=Target(1 / 1.25),  # at most a quarter longer
        )
    )
