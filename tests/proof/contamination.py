"""What corrupted training rows do to the classifiers: `python -m proof.contamination` writes contamination.json.

A share of the training rows, or of the single values, is corrupted; the rows that are predicted are not.

    rows      x ← m + 10 s·z, all features of the row
    features  x_j ← m_j + 10 s_j·z, single values of any row

with m_j and s_j the mean plus half a standard deviation, and the standard deviation, of feature j in the clean training
rows, and z standard normal. The labels stay as they are. Every model sees the same rows; differences to LDA and QDA are
paired over the repeats.
"""

import sys
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from proof import store

from bayes_gda import BayesianLDA, BayesianQDA
from bayes_gda.checks import Floats
from bayes_gda.data.examples import load_example
from bayes_gda.data.table import Dataset
from bayes_gda.families.student import Student
from bayes_gda.methods.settings import Settings

FOLDER = Path(__file__).resolve().parents[2] / "reports" / "proof"
NUMBERS = "contamination.json"
SEED = 20261118
REPEATS = 40
# Kind of corruption, and its share.
SETTINGS = (("none", 0.0), ("rows", 0.05), ("rows", 0.1), ("features", 0.05), ("features", 0.1))
TABLES = ("two clouds of one shape", "two clouds of own shapes", "iris", "pima")
MODELS = ("LDA", "QDA", "Student-t, shared", "Student-t, own")
# Each robust model beside the one that it replaces.
PAIRS = {"Student-t, shared": "LDA", "Student-t, own": "QDA"}


def corrupt(X: Floats, kind: str, share: float, rng: np.random.Generator) -> Floats:
    """Return the rows with a share of them, or of their values, corrupted."""
    if kind == "none":
        return X
    hit = rng.random((len(X), 1 if kind == "rows" else X.shape[1])) < share
    sd = X.std(axis=0)
    return np.where(hit, X.mean(axis=0) + 0.5 * sd + 10 * sd * rng.standard_normal(X.shape), X)


def split(table: str, rng: np.random.Generator) -> tuple[Dataset, Dataset]:
    """Return clean rows to learn from and to predict: 200 and 2000 simulated ones, or two thirds and a third."""
    if table in TABLES[:2]:
        y = np.arange(2200) % 2
        X = rng.standard_normal((2200, 4))
        if table == TABLES[1]:
            X[y == 1] *= [2.0, 0.5, 2.0, 0.5]
        X += (1.2 if table == TABLES[0] else 0.6) * y[:, None]
        return Dataset.from_arrays(X[:200], y[:200]), Dataset.from_arrays(X[200:], y[200:])
    return load_example(table).split(1 / 3, int(rng.integers(2**31)))


def log_probabilities(model: str, train: Dataset, X: Floats) -> Floats:
    """Return log p(y=k | x) (n, K) of a model that is fitted by its default prior; Student-t ones by Laplace."""
    if model in ("LDA", "QDA"):
        estimator = (BayesianLDA if model == "LDA" else BayesianQDA)().fit(train.X, train.y)
        return np.asarray(estimator.predict_log_proba(X))
    family = Student.bind(train, scales="shared" if model.endswith("shared") else "own")
    return family.from_gaussian(family.laplace(), Settings(draws=500, chains=1)).log_probabilities(X)


def scores(table: str, kind: str, share: float, repeats: int) -> dict[str, Floats]:
    """Return error rate and log loss (repeats, 2) on clean rows of each model, over new splits and corruptions."""
    out: dict[str, list[list[float]]] = {model: [] for model in MODELS}
    for i in range(repeats):
        # The same split for every setting; the corruption has numbers of its own.
        train, test = split(table, np.random.default_rng([SEED, TABLES.index(table), i]))
        rng = np.random.default_rng([SEED, TABLES.index(table), i, SETTINGS.index((kind, share))])
        X = corrupt(train.X, kind, share, rng)
        spoilt = Dataset.of_checked(X, train.y, train.feature_names, train.class_names)
        for model in MODELS:
            log_p = log_probabilities(model, spoilt, test.X)
            error = float((log_p.argmax(axis=1) != test.y).mean())
            out[model].append([error, float(-log_p[np.arange(test.n), test.y].mean())])
    return {model: np.array(values) for model, values in out.items()}


def study(repeats: int = REPEATS) -> dict[str, Any]:
    """Return all figures: means over the repeats, and paired differences with their standard errors."""
    results = []
    for table in TABLES:
        for kind, share in SETTINGS:
            found = scores(table, kind, share, repeats)
            line: dict[str, Any] = {"table": table, "kind": kind, "share": share, "models": {}, "pairs": {}}
            for model, values in found.items():
                line["models"][model] = [round(float(x), 4) for x in values.mean(axis=0)]
            for robust, usual in PAIRS.items():
                change = found[robust] - found[usual]
                se = change.std(axis=0, ddof=1) / np.sqrt(repeats)
                line["pairs"][robust] = [
                    [round(float(m), 4), round(float(s), 4)] for m, s in zip(change.mean(axis=0), se, strict=True)
                ]
            results.append(line)
    return {
        "schema": 1,
        "command": "python -m proof.contamination",
        "seed": SEED,
        "repeats": repeats,
        "results": results,
    }


def section(data: Mapping[str, Any]) -> str:
    """Return the section of the page as HTML: a table a score, each robust model beside the usual one."""
    head = "<tr><th>data</th><th>corrupted</th>" + "".join(f"<th>{escape(model)}</th>" for model in MODELS)
    head += "".join(f"<th>{escape(robust)} less {usual} (SE)</th>" for robust, usual in PAIRS.items()) + "</tr>"
    parts = ["<h2>Corrupted training rows</h2>", f"<p>{_conclusion(data)}</p>"]
    for j, (score, digits) in enumerate((("Error rate", 3), ("Log loss", 3))):
        rows = []
        for line in data["results"]:
            what = (
                "nothing"
                if line["kind"] == "none"
                else f"{100 * line['share']:g} % of the {'rows' if line['kind'] == 'rows' else 'values'}"
            )
            cells = [escape(line["table"]), what]
            cells += [f"{line['models'][model][j]:.{digits}f}" for model in MODELS]
            cells += ["{:+.3f} ({:.3f})".format(*line["pairs"][robust][j]).replace("-", "\u2212") for robust in PAIRS]
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        parts.append(f'<h3>{score} on clean rows</h3><div class="scroll"><table>{head}{"".join(rows)}</table></div>')
    return "\n".join(parts)


def _conclusion(data: Mapping[str, Any]) -> str:
    """Say over how many settings the robust models err less, and what they lose where nothing is corrupted."""
    spoilt = [line for line in data["results"] if line["kind"] != "none"]
    clean = [line for line in data["results"] if line["kind"] == "none"]
    total = better = worse = 0
    for line in spoilt:
        for robust in PAIRS:
            mean, se = line["pairs"][robust][1]
            total, better, worse = total + 1, better + (mean < -2 * se), worse + (mean > 2 * se)
    loss = max(line["pairs"][robust][1][0] for line in clean for robust in PAIRS)
    error = max(line["pairs"][robust][0][0] for line in clean for robust in PAIRS)
    return (
        "With corrupted training rows the log loss of the Student-t model is lower than that of LDA or QDA by more "
        f"than two standard errors in {better} of {total} comparisons, and higher in {worse}. Where nothing is "
        f"corrupted it is higher by at most {loss:.3f}, and the error rate by at most {error:.3f}. "
        f"{data['repeats']} repeats each, paired; the Student-t models by Laplace's approximation."
    )


if __name__ == "__main__":
    store.write_json(FOLDER / NUMBERS, study(int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS))
