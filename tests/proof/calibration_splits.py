"""Repeated splits of real data: our classifiers and scikit-learn's, learnt and scored on the same rows.

References
----------
Nadeau & Bengio (2003), Inference for the generalization error, Machine Learning 52.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from sklearn.calibration import CalibratedClassifierCV
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bayes_gda import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianNaiveGaussian,
    BayesianQDA,
    InferenceWarning,
    load_example,
)
from bayes_gda.checks import Floats
from bayes_gda.data.examples import load_example_split
from bayes_gda.evaluation.calibration import brier_score, calibration_error, top_label
from bayes_gda.teaching.truths import seed_of

DATA = ("iris", "wine", "breast-cancer", "pima", "synth", "crabs", "penguins")
# Few rows are where uncertainty matters; two thirds are what one would have.
SMALL = 30
SIZES = ("few", "most")
# A probability below this counts as this, whoever gave it: a single zero would make a mean log score −∞.
FLOOR = 1e-15
# Bins of the calibration error: tests have 30 to 190 rows, and 15 bins would hold two of them.
BINS = 5
# Labels drawn to find the error that calibrated forecasts would show; the mean over the splits averages the rest out.
RESAMPLES = 50
SCORES = ("log_loss", "brier", "ece", "error")

# Where the posterior must be sampled, 500 draws give probabilities to a twentieth of their posterior sd, at a fifth of
# the time of the default.
CHAINS = {"draws": 250, "chains": 2}
OURS = {
    "LDA": BayesianLDA,
    "QDA": BayesianQDA,
    "naive": BayesianNaiveGaussian,
    "logistic": BayesianLogisticRegression,
}
# Which learners of scikit-learn stand against which of ours; each plain, and calibrated in two ways.
RIVALS: Mapping[str, tuple[str, ...]] = {
    "LDA": ("LDA",),
    "QDA": ("QDA",),
    "naive": ("GaussianNB",),
    "logistic": ("LR C=1", "LR C=1e6"),
}
VARIANTS = ("plain", "sigmoid", "isotonic")


# ── One split ───────────────────────────────────────────────────────────────────────────────────────────────────────


@cache
def pools(name: str) -> tuple[Floats, NDArray[np.intp], Floats, NDArray[np.intp]]:
    """Return rows to learn from and rows to test on, without incomplete ones; the same rows twice if not published."""
    parts = load_example_split(name) if name == "synth" else (load_example(name),) * 2
    whole = [~np.isnan(part.X).any(axis=1) for part in parts]
    (X, y), (Z, t) = ((part.X[keep], part.y[keep]) for part, keep in zip(parts, whole, strict=True))
    return X, y, Z, t


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Rows to learn (X, y) and to test (Z, t)."""

    X: Floats
    y: NDArray[np.intp]
    Z: Floats
    t: NDArray[np.intp]


def draw_split(name: str, size: str, index: int) -> Split:
    """Return a stratified random split: two thirds and one third, or 30 rows and 30 others.

    The published training and test parts of `synth` stay apart; its tests are drawn from the latter.
    """
    X, y, Z, t = pools(name)
    n = SMALL if size == "few" else round(2 * len(X) / 3)
    tests = SMALL if size == "few" else len(X) - n
    seed = seed_of("split", name, size, index)
    if name == "synth":
        X, _, y, _ = train_test_split(X, y, train_size=n, stratify=y, random_state=seed)
        Z, _, t, _ = train_test_split(Z, t, train_size=tests, stratify=t, random_state=seed)
        return Split(X, y, Z, t)
    X, Z, y, t = train_test_split(X, y, train_size=n, test_size=tests, stratify=y, random_state=seed)
    return Split(X, y, Z, t)


def rivals() -> dict[str, Any]:
    """Return scikit-learn's learners by name, plain and calibrated."""
    base = {
        "LDA": LinearDiscriminantAnalysis(),
        "QDA": QuadraticDiscriminantAnalysis(),
        "GaussianNB": GaussianNB(),
        "LR C=1": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "LR C=1e6": make_pipeline(StandardScaler(), LogisticRegression(C=1e6, max_iter=500)),
    }
    out = {f"{name} plain": learner for name, learner in base.items()}
    for variant in VARIANTS[1:]:
        out |= {f"{name} {variant}": CalibratedClassifierCV(it, method=variant, cv=5) for name, it in base.items()}
    return out


def score(P: Floats, t: NDArray[np.intp], *, random_seed: int = 0) -> dict[str, float]:
    """Return the scores of forecasts (n, K), all the better the smaller, and how many truths were held impossible."""
    truth = P[np.arange(len(P)), t]
    error = calibration_error(*top_label(P, t), bins=BINS, resamples=RESAMPLES, random_seed=random_seed)
    return {
        "log_loss": float(-np.log(np.maximum(truth, FLOOR)).mean()),
        "brier": brier_score(P, t),
        "ece": error.ece_debiased,
        "ece_plain": error.ece,
        "error": float((P.argmax(axis=1) != t).mean()),
        "impossible": float((truth == 0).sum()),
    }


def run_split(name: str, size: str, index: int) -> dict[str, Any]:
    """Return the scores of all learners on one split; None for one that cannot be fitted to so few rows."""
    split = draw_split(name, size, index)
    seed = seed_of("fit", name, size, index)
    out: dict[str, Any] = {"n_train": len(split.X), "n_test": len(split.Z), "scores": {}, "methods": {}}
    with warnings.catch_warnings():
        # What is warned of is counted here: sampling as `methods`, and a flat likelihood by its scores.
        warnings.simplefilter("ignore", InferenceWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)  # zero variances of GaussianNB, in its logarithms
        warnings.filterwarnings("ignore", "Variables are collinear")
        for model, kind in OURS.items():
            fitted = kind(random_state=seed, **CHAINS).fit(split.X, split.y)
            out["scores"][f"Bayesian {model}"] = score(fitted.predict_proba(split.Z), split.t, random_seed=seed)
            out["methods"][model] = fitted.inference_
        for label, learner in rivals().items():
            try:
                P = learner.fit(split.X, split.y).predict_proba(split.Z)
            except np.linalg.LinAlgError:
                P = None
            possible = P is not None and np.isfinite(P).all()
            out["scores"][label] = score(_summing_to_one(P), split.t, random_seed=seed) if possible else None
    return out


def _summing_to_one(P: Floats) -> Floats:
    """Mend what isotonic calibration may leave: rows whose classes are all 0, and sums off by rounding."""
    P = np.where(P.sum(axis=1, keepdims=True) > 0, P, 1.0)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


# ── Over the splits ─────────────────────────────────────────────────────────────────────────────────────────────────


def corrected_t(difference: ArrayLike, test_ratio: float) -> tuple[float, float, float]:
    """Return mean, standard error and two-sided p of differences (J,) over random splits that share rows.

        se² = (1/J + n_test/n_train) s²,   t = mean/se with J − 1 degrees of freedom   (Nadeau & Bengio 2003)

    Splits of one data set share rows, so that 1/J alone would promise any precision for enough of them.

    Parameters
    ----------
    difference
        Ours less theirs, one a split.
    test_ratio
        n_test/n_train.
    """
    d = np.asarray(difference, dtype=np.float64)
    mean, s = float(d.mean()), float(d.std(ddof=1))
    se = s * np.sqrt(1 / len(d) + test_ratio)
    if se == 0:
        return mean, 0.0, 1.0 if mean == 0 else 0.0
    return mean, float(se), float(2 * stats.t.sf(abs(mean) / se, len(d) - 1))


def compare(results: Sequence[dict[str, Any]], ours: str, theirs: str, score: str) -> dict[str, Any] | None:
    """Return the paired difference of a score with its error and the verdict; None if too few splits have both."""
    both = [r for r in results if r["scores"][theirs] is not None]
    if len(both) < max(3, len(results) // 2):
        return None
    difference = [r["scores"][ours][score] - r["scores"][theirs][score] for r in both]
    mean, se, p = corrected_t(difference, both[0]["n_test"] / both[0]["n_train"])
    verdict = "tie" if p > 0.05 else "win" if mean < 0 else "lose"
    return {"difference": mean, "error": se, "p": p, "verdict": verdict, "splits": len(both)}


def summarise(name: str, size: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return means of all scores, and the comparisons of ours with theirs, for one data set and size."""
    labels = list(results[0]["scores"])
    means: dict[str, Any] = {}
    for label in labels:
        found = [r["scores"][label] for r in results if r["scores"][label] is not None]
        means[label] = {key: float(np.mean([f[key] for f in found])) for key in found[0]} if found else None
        if found:
            means[label]["impossible"] = int(sum(f["impossible"] for f in found))
            means[label]["failed"] = len(results) - len(found)
    comparisons = [
        {"ours": model, "theirs": f"{rival} {variant}", "score": s, **found}
        for model, names in RIVALS.items()
        for rival in names
        for variant in VARIANTS
        for s in SCORES
        if (found := compare(results, f"Bayesian {model}", f"{rival} {variant}", s)) is not None
    ]
    methods = {
        model: {m: sum(r["methods"][model] == m for r in results) for m in ("exact", "laplace", "corrected", "mcmc")}
        for model in OURS
    }
    X, y, *_ = pools(name)
    return {
        "data": name,
        "size": size,
        "n_train": results[0]["n_train"],
        "n_test": results[0]["n_test"],
        "features": X.shape[1],
        "classes": len(np.unique(y)),
        "splits": len(results),
        "means": means,
        "comparisons": comparisons,
        "methods": methods,
    }
