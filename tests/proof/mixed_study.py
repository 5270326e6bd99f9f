"""Tables as they come: `python -m proof.mixed_study` scores BayesianNaive beside models on dummies, over splits.

Ten real tables with text, truth values, counts, measurements and gaps. `mixed` and the naive Gaussian model take gaps
as they are; the others have them filled in, by the median or the most frequent level of the training rows, and all but
`mixed` and scikit-learn's pair get categories as 0/1 columns. Differences are paired; their standard errors allow for
splits that overlap (Nadeau & Bengio 2003).
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from proof.mixed_tables import TABLES, load
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from bayes_gda import BayesianLDA, BayesianLogisticRegression, BayesianNaive, BayesianNaiveGaussian, BayesianQDA
from bayes_gda.checks import Floats

FOLDER = Path(__file__).resolve().parents[2] / "reports" / "proof"
SPLITS = 30
TEST_SHARE = 1 / 3
# Training rows at most: large tables say the same of every split, and take longer.
MOST = 1500
# A probability below this counts as this, whoever gave it.
FLOOR = 1e-15
REFERENCE = "mixed"

NUMBERS = make_column_selector(dtype_include="number")
TEXT = make_column_selector(dtype_exclude="number")


def dummies(*, scaled: bool = False) -> Any:
    """Return a transformer to numbers without gaps: median or most frequent level, 0/1 columns but for the first."""
    numeric = [SimpleImputer(strategy="median"), *([StandardScaler()] if scaled else [])]
    text = [SimpleImputer(strategy="most_frequent"), OneHotEncoder(drop="first", handle_unknown="ignore")]
    return make_column_transformer(
        (make_pipeline(*numeric), NUMBERS), (make_pipeline(*text), TEXT), sparse_threshold=0.0
    )


class Pair:
    """What users of scikit-learn write: GaussianNB of the numbers times CategoricalNB of the text."""

    def fit(self, X: pd.DataFrame, y: Any) -> "Pair":
        """Fit both to their columns."""
        self.numbers, self.text = list(NUMBERS(X)), list(TEXT(X))
        self.classes_ = np.unique(y)
        self.prior = np.log(np.array([(y == k).mean() for k in self.classes_]))
        self.parts = []
        if self.numbers:
            self.parts.append((self.numbers, make_pipeline(SimpleImputer(strategy="median"), GaussianNB())))
        if self.text:
            code = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
            shift = _Shift()
            steps = SimpleImputer(strategy="most_frequent"), code, shift
            levels = [X[name].nunique() + 1 for name in self.text]
            self.parts.append((self.text, make_pipeline(*steps, CategoricalNB(min_categories=levels))))
        for names, part in self.parts:
            part.fit(X[names], y)
        return self

    def predict_proba(self, X: pd.DataFrame) -> Floats:
        """Multiply the likelihoods, and normalise."""
        log_p = self.prior + sum(part.predict_log_proba(X[names]) - self.prior for names, part in self.parts)
        p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
        return np.asarray(p / p.sum(axis=1, keepdims=True))


class _Shift:
    """Codes from −1 (a new level) on become codes from 0 on."""

    def fit(self, X: Floats, y: Any = None) -> "_Shift":
        """Learn nothing."""
        return self

    def transform(self, X: Floats) -> Floats:
        """Add 1."""
        return X + 1

    fit_transform = staticmethod(lambda X, y=None: X + 1)


def _regression() -> Any:
    # Where importance weights would ask for MCMC, Laplace's probabilities are off by a hundredth: enough here.
    return make_pipeline(dummies(), BayesianLogisticRegression(inference="laplace"))


MODELS: dict[str, Callable[[], Any]] = {
    "mixed": BayesianNaive,
    "mixed, by type": lambda: BayesianNaive(distributions="type"),
    "naive Gaussian, dummies": BayesianNaiveGaussian,
    "LDA, dummies": lambda: make_pipeline(dummies(), BayesianLDA()),
    "QDA, dummies": lambda: make_pipeline(dummies(), BayesianQDA()),
    "logistic, dummies": _regression,
    "scikit-learn GaussianNB, dummies": lambda: make_pipeline(dummies(), GaussianNB()),
    "scikit-learn GaussianNB × CategoricalNB": Pair,
    "scikit-learn logistic, dummies": lambda: make_pipeline(dummies(scaled=True), LogisticRegression(max_iter=2000)),
}


def score_table(name: str, splits: int = SPLITS) -> dict[str, Any]:
    """Return the log loss of every model on held-out rows, a number a split, and what was learnt from."""
    X, y = load(name)
    loss: dict[str, list[float]] = {model: [] for model in MODELS}
    error: dict[str, list[float]] = {model: [] for model in MODELS}
    sizes = (0, 0)
    for split in range(splits):
        train, test, y_train, y_test = train_test_split(X, y, test_size=TEST_SHARE, random_state=split, stratify=y)
        if len(train) > MOST:
            train, _, y_train, _ = train_test_split(
                train, y_train, train_size=MOST, random_state=split, stratify=y_train
            )
        sizes = len(train), len(test)
        for model, make in MODELS.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = make().fit(train, y_train.to_numpy())
                P = np.asarray(fitted.predict_proba(test))
            codes = np.searchsorted(fitted.classes_, y_test.to_numpy())
            own = P[np.arange(len(P)), codes]
            loss[model].append(float(-np.log(np.maximum(own, FLOOR)).mean()))
            error[model].append(float((P.argmax(axis=1) != codes).mean()))
    chosen = BayesianNaive().fit(X, y).choice_
    return {"train": sizes[0], "test": sizes[1], "classes": int(y.nunique()), "loss": loss, "error": error} | {
        "columns": X.shape[1],
        "gaps": int(X.isna().any(axis=1).sum()),
        "rows": len(X),
        "choice": chosen,
    }


def paired(result: dict[str, Any], model: str, score: str = "loss") -> tuple[float, float]:
    """Return by how much a model's mean score exceeds that of `mixed`, and its standard error."""
    gap = np.array(result[score][model]) - np.array(result[score][REFERENCE])
    variance = gap.var(ddof=1) * (1 / len(gap) + result["test"] / result["train"])
    return float(gap.mean()), float(np.sqrt(variance))


def run(folder: Path = FOLDER, splits: int = SPLITS) -> Path:
    """Score all tables, and write mixed.json."""
    begun = time.process_time()
    results = {}
    for name in TABLES:
        results[name] = score_table(name, splits)
        sys.stdout.write(f"{name} {time.process_time() - begun:.0f} s\n")
        sys.stdout.flush()
    path = folder / "mixed.json"
    content = {"splits": splits, "cpu_seconds": round(time.process_time() - begun), "tables": results}
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


if __name__ == "__main__":
    from proof.page import write_page

    run(splits=int(sys.argv[1]) if len(sys.argv) > 1 else SPLITS)
    sys.stdout.write(f"{write_page()}\n")
