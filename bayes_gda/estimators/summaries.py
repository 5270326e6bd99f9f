"""What an estimator shows of a fitted model: a table of parameters, HTML for notebooks, a warning of rough draws."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.display import verdict_html
from bayes_gda.errors import DataError, warn_user

if TYPE_CHECKING:
    import pandas as pd

    from bayes_gda.estimators.base import BayesianClassifier
    from bayes_gda.prediction.monte_carlo import MonteCarlo

# Class labels that are listed before the rest is counted.
LISTED = 10


def summary_table(estimator: "BayesianClassifier", prob: float) -> "pd.DataFrame":
    """Return mean, sd, a central interval that holds `prob`, and ESS and R-hat if they were sampled, by parameter."""
    import pandas as pd

    from bayes_gda.methods.diagnostics import scalars

    if not 0 < prob < 1:
        raise DataError(f"`prob` must lie between 0 and 1; got {prob:g}. Use 0.9 for 90 %.")
    low, high = (1 - prob) / 2, (1 + prob) / 2
    lines = {
        name: [x.mean(), x.std(ddof=1), *np.quantile(x, [low, high])]
        for name, x in scalars(estimator._draws()["posterior"].to_dataset()).items()
    }
    columns = ["mean", "sd", f"{100 * low:g}%", f"{100 * high:g}%"]
    table = pd.DataFrame.from_dict(lines, orient="index", columns=columns).rename_axis("parameter")
    diagnosis = estimator.trust_.diagnosis
    if diagnosis is not None:
        table = table.join(diagnosis.table[["ess_bulk", "ess_tail", "r_hat"]])
    return table


def warn_of_errors(estimator: "BayesianClassifier", error: "MonteCarlo") -> None:
    """Warn if Monte Carlo errors of predicted probabilities exceed the tolerance, with the draws that would mend it."""
    if error.within:
        return
    # The weights limit a corrected posterior. Sampled draws of a probability p have a variance of p(1 − p) ≤ ¼ each.
    weighted = estimator.inference_ == "corrected"
    diagnosis = estimator.trust_.diagnosis  # a run may have been extended
    taken = estimator.draws if diagnosis is None else diagnosis.chains * diagnosis.draws // estimator.chains
    draws = -(-int(1 / error.tolerance**2) // estimator.chains) if weighted else error.draws_needed(taken)
    how = f"inference='mcmc' and draws={draws}" if weighted else f"draws={draws}"
    warn_user(f"{error.sentence} Fit with {how}, or set a larger tolerance.")


def fitted_html(estimator: "BayesianClassifier") -> str:
    """Return inference, verdict, evidence, classes and features of a fitted estimator as HTML."""
    trust = estimator.trust_
    labels = [str(label) for label in estimator.classes_]
    more = f" and {len(labels) - LISTED} more" if len(labels) > LISTED else ""
    lines: dict[str, str] = {
        "inference": escape(estimator.inference_),
        "verdict": verdict_html(trust.verdict, trust.reason, trust.next_step, trust.light),
        "log evidence": _evidence(estimator),
        "classes": escape(", ".join(labels[:LISTED]) + more),
        "features": str(len(estimator._names())),
    }
    model: Any = estimator.model_
    if hasattr(model, "moments"):
        lines["rows"] = f"{model.moments.n:g}"
    body = "".join(
        f'<tr><th style="text-align:left">{name}</th><td style="text-align:left">{value}</td></tr>'
        for name, value in lines.items()
    )
    return f"<table>{body}</table>"


def _evidence(estimator: "BayesianClassifier") -> str:
    value, error = estimator.log_evidence_, estimator.log_evidence_error_
    if not np.isfinite(value):
        return "not known"
    return f"{value:.2f}" + (f" ± {error:.2g}" if error > 0 else "")
