"""Seconds of a fit against scikit-learn's, over a grid of rows and features.

Theirs are point estimates. Ours, in the same time or another, is the exact posterior and its evidence; for the
regressions the Laplace posterior and its evidence, and where it says so the check of it.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from bayes_gda import BayesianLDA, BayesianLogisticRegression, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.data.features import FeatureMap
from bayes_gda.data.moments import Moments
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.priors import Normal
from benchmarks.record import Session, Target, compared
from benchmarks.rows import gaussian_rows, power
from benchmarks.timing import by_turns

TITLE = "Fitting, against scikit-learn"
READING = (
    "Seconds of one fit from arrays in memory. scikit-learn returns a point estimate. Ours returns the posterior with "
    "its evidence: exact for LDA, QDA and the naive model; for the regressions “Laplace” is mode, covariance and "
    "evidence, “checked” adds the verdict on it (by expectation propagation, for softmax by the Gaussian variational "
    "approximation, with the certificate of either), and “auto” predicts by that posterior where the verdict asks for "
    "it. The verdict costs passes over all rows, and no point estimate pays for one."
)
# A fit that would take longer than this, in seconds, is left out, by extrapolation from a tenth of the rows: ten times
# the rows take ten times as long.
LIMIT, GROWTH = 10.0, 10.0
# Seconds that the rounds of one model at one size may take.
BUDGET = 2.0
# C of scikit-learn's ridge penalty that is our default prior on the slopes, sd 2.5.
PENALTY = 6.25

Fit = Callable[[Any, Any], Any]


@dataclass(frozen=True, slots=True)
class Family:
    """Ways to fit the same model, and which of them to compare."""

    name: str
    fits: Mapping[str, Fit]
    pairs: tuple[tuple[str, str], ...]


def laplace_alone(X: Any, y: Any) -> Any:
    """Mode, covariance and evidence of the estimator's own design and prior, without the check."""
    phi = FeatureMap.fit(X, [f"x{j}" for j in range(X.shape[1])])
    Phi, K = np.ascontiguousarray(phi(X)), int(y.max()) + 1
    prior = Normal.default(Phi.shape[1])
    target = LogisticTarget(Phi, y.astype(float), prior) if K == 2 else SoftmaxTarget(Phi, y, K, prior)
    return regression_laplace(target)


def _auto(X: Any, y: Any) -> Any:
    return BayesianLogisticRegression().fit(X, y)


def _checked(X: Any, y: Any) -> Any:
    return BayesianLogisticRegression(inference="laplace").fit(X, y)


def _ridge(solver: str) -> Fit:
    return lambda X, y: LogisticRegression(C=PENALTY, solver=solver, max_iter=1000).fit(X, y)


FAMILIES = (
    Family(
        "LDA",
        {
            "BayesianLDA": lambda X, y: BayesianLDA().fit(X, y),
            "LDA svd": lambda X, y: LinearDiscriminantAnalysis(solver="svd").fit(X, y),
            "LDA lsqr": lambda X, y: LinearDiscriminantAnalysis(solver="lsqr").fit(X, y),
        },
        (("BayesianLDA", "LDA svd"), ("BayesianLDA", "LDA lsqr")),
    ),
    Family(
        "QDA",
        {
            "BayesianQDA": lambda X, y: BayesianQDA().fit(X, y),
            "QDA": lambda X, y: QuadraticDiscriminantAnalysis().fit(X, y),
        },
        (("BayesianQDA", "QDA"),),
    ),
    Family(
        "naive",
        {
            "BayesianNaiveGaussian": lambda X, y: BayesianNaiveGaussian().fit(X, y),
            "GaussianNB": lambda X, y: GaussianNB().fit(X, y),
        },
        (("BayesianNaiveGaussian", "GaussianNB"),),
    ),
    Family(
        "logistic",
        {
            "Laplace": laplace_alone,
            "Laplace, checked": _checked,
            "auto": _auto,
            "lbfgs": _ridge("lbfgs"),
            "newton-cholesky": _ridge("newton-cholesky"),
        },
        (("Laplace", "lbfgs"), ("Laplace", "newton-cholesky"), ("Laplace, checked", "lbfgs"), ("auto", "lbfgs")),
    ),
)


def run(session: Session) -> None:
    """Measure the grid, a row of ten classes, and the two fits of a million rows that have targets."""
    sizes = (300, 3_000) if session.quick else (1_000, 10_000, 100_000, 1_000_000)
    widths = (2, 5) if session.quick else (2, 10, 50, 200)
    session.settings |= {"n": sizes, "d": widths, "K": [2, 10], "limit_seconds": LIMIT, "C": PENALTY}
    warnings.simplefilter("ignore")  # verdicts and slow convergence: what they say is in the notes
    X, y = gaussian_rows(200, 3)
    for family in FAMILIES:
        for fit in family.fits.values():
            fit(X, y)  # lazy imports and first calls
    for d in widths:
        known: dict[str, float] = {}
        for n in sizes:
            _cell(session, n, d, 2, known)
    known = {}
    for n in (300,) if session.quick else (10_000, 100_000):
        _cell(session, n, 10, 10, known)
    _million(session, 20_000 if session.quick else 1_000_000)
    _moments(session, 20_000 if session.quick else 1_000_000)


def _cell(session: Session, n: int, d: int, K: int, known: dict[str, float]) -> None:
    """Measure all families at one size; `known` holds the seconds of each fit at a tenth of the rows."""
    X, y = gaussian_rows(n, d, K)
    where = f"n = {power(n)}, d = {d}, K = {K}"
    for family in FAMILIES:
        results: dict[str, Any] = {}
        functions = {}
        for name, fit in family.fits.items():
            if GROWTH * known.get(name, 0.0) > LIMIT:
                known[name] *= GROWTH
                session.skip(f"{name}, {where}: some {known[name]:.0f} s by extrapolation from a tenth of the rows")
            else:
                functions[name] = _kept(fit, X, y, results, name)
        auto = functions.pop("auto", None)
        seconds = by_turns(functions, rounds=3 if session.quick else 9, budget=BUDGET)
        _add(session, family, where, seconds, {"n": n, "d": d, "K": K})
        if auto is not None and "lbfgs" in functions:
            # What it would do is known from the check; by turns with scikit-learn's default once more.
            verdict = (
                results["Laplace, checked"].trust_.verdict
                if "Laplace, checked" in results
                else "unknown, the check takes too long"
            )
            if verdict in ("trusted", "corrected"):
                pair = {"auto": auto, "lbfgs": functions["lbfgs"]}
                again = by_turns(pair, rounds=3 if session.quick else 9, budget=BUDGET)
                _add(session, family, where, again, {"n": n, "d": d, "K": K}, note=f"verdict: {verdict}")
                seconds |= again
            else:
                session.skip(
                    f"auto, {where}: the verdict is {verdict}, and a run of MCMC is no fit to compare with one"
                )
        known.update({name: float(np.median(values)) for name, values in seconds.items()})


def _kept(fit: Fit, X: Any, y: Any, results: dict[str, Any], name: str) -> Callable[[], None]:
    """The fit as a function without arguments that leaves its last result behind."""

    def call() -> None:
        results[name] = fit(X, y)

    return call


def _add(
    session: Session,
    family: Family,
    where: str,
    seconds: Mapping[str, list[float]],
    size: Mapping[str, int],
    *,
    note: str = "",
) -> None:
    """Add the rows of all pairs that were measured."""
    name = "softmax" if family.name == "logistic" and size["K"] > 2 else family.name
    for ours, theirs in family.pairs:
        if ours in seconds and theirs in seconds:
            session.add(
                compared(
                    f"{name}, {where}",
                    seconds[ours],
                    seconds[theirs],
                    ours_name=ours,
                    theirs_name=theirs,
                    at={"model": name, **size},
                    note=note,
                    target=_target(name, ours, size),
                )
            )


def _target(name: str, ours: str, size: Mapping[str, int]) -> Target | None:
    """Return what a checked fit may cost: of softmax, n = 10⁴, d = 10, K = 10, 15 times scikit-learn's."""
    bound = name == "softmax" and ours == "Laplace, checked" and size == {"n": 10_000, "d": 10, "K": 10}
    return Target(1 / 15) if bound else None


def _million(session: Session, n: int) -> None:
    """Laplace against the fastest of scikit-learn's solvers that can do without a penalty path."""
    rng = np.random.default_rng(0)
    m = 30
    Phi = np.column_stack([np.ones(n), rng.standard_normal((n, m - 1))])
    y = (rng.random(n) < 1 / (1 + np.exp(-Phi @ (0.3 * rng.normal(size=m))))).astype(int)
    X = np.ascontiguousarray(Phi[:, 1:])
    solvers = ("lbfgs", "newton-cholesky", "newton-cg")
    functions: dict[str, Callable[[], Any]] = {
        "ours": lambda: regression_laplace(LogisticTarget(Phi, y, Normal(scale=2.5)))
    }
    functions |= {name: partial(_ridge(name), X, y) for name in solvers}
    seconds = by_turns(functions, rounds=3 if session.quick else 5)
    fastest = min(solvers, key=lambda name: float(np.median(seconds[name])))
    session.add(
        compared(
            f"Laplace with evidence, n = {power(n)}, d = {m}, against the fastest solver",
            seconds["ours"],
            seconds[fastest],
            ours_name="Laplace, given the design",
            theirs_name=fastest,
            target=Target(1.0),
            at={"n": n, "d": m, "K": 2},
        )
    )


def _moments(session: Session, n: int) -> None:
    """Moments against the matrix product that any method must at least pay for."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((n, 30)), rng.integers(0, 3, n)
    Moments.from_arrays(X, y, 3)
    seconds = by_turns(
        {"Moments": lambda: Moments.from_arrays(X, y, 3), "X.T @ X": lambda: X.T @ X}, rounds=3 if session.quick else 9
    )
    session.add(
        compared(
            f"Moments of three classes, n = {power(n)}, d = 30, against one matrix product",
            seconds["Moments"],
            seconds["X.T @ X"],
            ours_name="Moments",
            theirs_name="X.T @ X",
            rival=False,
            target=Target(1 / 2.5),  # at most 2.5 times as long
            at={"n": n, "d": 30, "K": 3},
        )
    )
