"""Seconds of fits and predictions of the families beyond the Gaussian, against the packages that have such classes.

Half of the rows is learnt, the other half predicted; its log loss and accuracy, of both, stand in the note.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.naive_bayes import CategoricalNB, GaussianNB

from bayes_gda import BayesianMixture, BayesianNaive, BayesianStudent
from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.families.mixture.family import Mixture
from bayes_gda.families.student import Student
from bayes_gda.methods.settings import Settings
from benchmarks.record import Session, compared
from benchmarks.rows import gaussian_rows, power
from benchmarks.timing import by_turns

TITLE = "Mixed columns, mixtures and robust classes, against their peers"
READING = (
    "Seconds of one fit, and of the probabilities of as many new rows; the log loss and the accuracy on those rows are "
    "in the note, ours first. The peers return point estimates by maximum likelihood. Ours returns a posterior with "
    "its evidence: exact for mixed columns, where “choosing” picks each column's distribution by evidence; for "
    "mixtures and Student-t classes “Laplace” is mode, covariance and evidence, “checked” adds the verdict on it, "
    "“choosing” picks the number of components. Where the verdict asks for MCMC, a fit by default would go on to it. "
    "Predictions average over 4000 draws there."
)
ROUNDS, BUDGET = 7, 6.0
# A probability below this counts as this, whoever gave it.
FLOOR = 1e-15


@dataclass(frozen=True, slots=True)
class Case:
    """A table, the estimators of it, and which of them to compare.

    Parameters
    ----------
    name
        What the rows are.
    X, y
        All of them; the first half is learnt.
    estimators
        Functions that make an unfitted estimator, by the name that the page has.
    pairs
        Names of ours and theirs.
    """

    name: str
    X: Any
    y: np.ndarray
    estimators: Mapping[str, Callable[[], Any]]
    pairs: tuple[tuple[str, str], ...]


class Alone:
    """Mode, covariance and evidence of a family by default priors, without the check; predictions by draws of it."""

    def __init__(self, bind: Callable[[Dataset], Any]) -> None:
        self.bind = bind

    def fit(self, X: Floats, y: np.ndarray) -> "Alone":
        """Fit the Gaussian at the mode."""
        self.family = self.bind(Dataset.from_arrays(X, y))
        self.gaussian = self.family.laplace()
        return self

    def predict_proba(self, X: Floats) -> Floats:
        """Average over as many draws as the estimators."""
        return np.exp(self.family.from_gaussian(self.gaussian, Settings()).log_probabilities(X))


def run(session: Session) -> None:
    """Measure every case."""
    n = 600 if session.quick else 20_000
    session.settings |= {"n": n, "rounds": ROUNDS, "learnt": 0.5}
    warnings.simplefilter("ignore")  # verdicts and convergence: what they say is not measured here
    for case in (*mixed_cases(session, n), *mixture_cases(session, n), *student_cases(n)):
        _measure(session, case)


def mixed_rows(n: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return n rows of two classes: two measurements, a count, a 0/1, and a category of five levels as text."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    level = np.where(y == 1, rng.choice(5, n, p=[0.1, 0.1, 0.2, 0.3, 0.3]), rng.choice(5, n))
    columns = {
        "size": rng.normal(0.6 * y, 1.0),
        "weight": rng.normal(0.4 * y, 1.0 + 0.5 * y),
        "visits": rng.poisson(np.where(y == 1, 3.0, 2.0)),
        "smoker": (rng.random(n) < np.where(y == 1, 0.5, 0.3)).astype(int),
        "region": np.array(["north", "east", "south", "west", "middle"], dtype=object)[level],
    }
    return pd.DataFrame(columns), y


def mixed_cases(session: Session, n: int) -> tuple[Case, ...]:
    """Columns of several types beside `wnb`; categories alone and measurements alone beside scikit-learn."""
    X, y = mixed_rows(n)
    code = pd.factorize(X["region"])[0]
    codes = {name: np.random.default_rng(j).permutation(code) for j, name in enumerate("abc")}
    categories = pd.DataFrame(codes | {"region": code, "smoker": X["smoker"]})
    words = dict(zip(X, ("normal", "normal", "poisson", "bernoulli", "categorical"), strict=True))
    mixed: dict[str, Callable[[], Any]] = {
        "BayesianNaive": lambda: BayesianNaive(distributions=words),
        "BayesianNaive, choosing": BayesianNaive,
    }
    pairs: tuple[tuple[str, str], ...] = ()
    if find_spec("wnb"):
        from wnb import Distribution, GeneralNB

        kinds = [Distribution[word.upper()] for word in words.values()]
        mixed["wnb.GeneralNB"] = lambda: GeneralNB(distributions=kinds)
        pairs = tuple((name, "wnb.GeneralNB") for name in ("BayesianNaive", "BayesianNaive, choosing"))
    else:
        session.skip("wnb: not installed; it is for Python below 3.14")
    numbers = X[["size", "weight"]]
    return (
        Case("five columns of four types", X, y, mixed, pairs),
        Case(
            "five categories",
            categories,
            y,
            {
                "BayesianNaive": lambda: BayesianNaive(distributions=dict.fromkeys(categories, "categorical")),
                "CategoricalNB": CategoricalNB,
            },
            (("BayesianNaive", "CategoricalNB"),),
        ),
        Case(
            "two measurements",
            numbers,
            y,
            {
                "BayesianNaive": lambda: BayesianNaive(distributions=dict.fromkeys(numbers, "normal")),
                "GaussianNB": GaussianNB,
            },
            (("BayesianNaive", "GaussianNB"),),
        ),
    )


def mixture_cases(session: Session, n: int) -> tuple[Case, ...]:
    """Two classes of two clouds each, which cross: every class has its mean in the middle."""
    if not find_spec("sklego"):
        session.skip("scikit-lego: not installed")
        return ()
    from sklego.mixture import GMMClassifier

    cases = []
    size = max(n // 10, 600)
    for d in (2, 5):
        rng = np.random.default_rng(1)
        y = np.arange(size) % 2
        side = rng.choice([-1.5, 1.5], size)
        X = rng.standard_normal((size, d))
        X[:, 0] += np.where(y == 1, side, 0.0)
        X[:, 1] += np.where(y == 1, 0.0, side)
        estimators = {
            "Laplace": lambda: Alone(partial(Mixture.bind, components=2)),
            "Laplace, checked": lambda: BayesianMixture(components=2, inference="laplace"),
            "Laplace, choosing": lambda: Alone(Mixture.bind),
            "GMMClassifier": lambda: GMMClassifier(n_components=2, random_state=0),
            "GMMClassifier, 10 starts": lambda: GMMClassifier(n_components=2, n_init=10, random_state=0),
        }
        pairs = (
            ("Laplace", "GMMClassifier"),
            ("Laplace", "GMMClassifier, 10 starts"),
            ("Laplace, checked", "GMMClassifier"),
            ("Laplace, choosing", "GMMClassifier"),
        )
        cases.append(Case(f"classes of two clouds, d = {d}", X, y, estimators, pairs))
    return tuple(cases)


def student_cases(n: int) -> tuple[Case, ...]:
    """Two Gaussian classes, clean and with a tenth of the learnt rows thrown far out; the others stay clean."""
    X, y = gaussian_rows(max(n // 10, 600), 5)
    rng = np.random.default_rng(2)
    spoilt = X.copy()
    learnt = np.flatnonzero(rng.random(len(X) // 2) < 0.1)
    spoilt[learnt] = 10 * rng.standard_normal((len(learnt), X.shape[1])) + 0.5
    estimators = {
        "own, Laplace": lambda: Alone(partial(Student.bind, scales="own")),
        "own, checked": lambda: BayesianStudent(scales="own", inference="laplace"),
        "shared, Laplace": lambda: Alone(partial(Student.bind, scales="shared")),
        "shared, checked": lambda: BayesianStudent(scales="shared", inference="laplace"),
        "QDA": QuadraticDiscriminantAnalysis,
        "LDA": LinearDiscriminantAnalysis,
    }
    pairs = tuple(
        (f"{scales}, {what}", usual)
        for scales, usual in (("own", "QDA"), ("shared", "LDA"))
        for what in ("Laplace", "checked")
    )
    return (
        Case("Student-t for Gaussian classes, d = 5", X, y, estimators, pairs),
        Case("Student-t, 10 % of the learnt rows corrupted", spoilt, y, estimators, pairs),
    )


def _measure(session: Session, case: Case) -> None:
    """Measure fits by turns, then predictions by turns, and score both on the rows that were not learnt."""
    half = len(case.y) // 2
    (X, new), (y, truth) = (case.X[:half], case.X[half:]), (case.y[:half], case.y[half:])
    fitted = {name: make().fit(X, y) for name, make in case.estimators.items()}  # imports and first calls, too
    scores = {name: _scores(model.predict_proba(new), truth) for name, model in fitted.items()}
    limits: Any = {"rounds": 3 if session.quick else ROUNDS, "budget": BUDGET}
    fits = by_turns({name: partial(_fit, make, X, y) for name, make in case.estimators.items()}, **limits)
    predictions = by_turns({name: partial(model.predict_proba, new) for name, model in fitted.items()}, **limits)
    for ours, theirs in case.pairs:
        (our_loss, our_accuracy), (their_loss, their_accuracy) = scores[ours], scores[theirs]
        note = f"log loss {our_loss:.4f} and {their_loss:.4f}, accuracy {our_accuracy:.3f} and {their_accuracy:.3f}"
        if ours.endswith("checked"):
            note += f"; verdict: {fitted[ours].trust_.verdict}"
        names = {"ours_name": ours, "theirs_name": theirs, "at": {"n": half, "case": case.name}}
        for what, seconds, words in (("fit", fits, note), ("predict", predictions, "")):
            if what == "predict" and theirs.endswith("10 starts"):
                continue  # the same figure as with one start
            title = f"{case.name}: {what}, n = {power(half)}"
            session.add(compared(title, seconds[ours], seconds[theirs], note=words, **names))


def _fit(make: Callable[[], Any], X: Any, y: np.ndarray) -> None:
    make().fit(X, y)


def _scores(probabilities: Floats, y: np.ndarray) -> tuple[float, float]:
    """Return log loss and accuracy."""
    own = probabilities[np.arange(len(y)), y]
    return float(-np.log(np.maximum(own, FLOOR)).mean()), float((probabilities.argmax(axis=1) == y).mean())
