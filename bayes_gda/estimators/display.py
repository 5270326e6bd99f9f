"""A fitted model as a small HTML table for notebooks; all text that a user may have chosen is escaped."""

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.display import verdict_html

if TYPE_CHECKING:
    from bayes_gda.estimators.base import BayesianClassifier

# Class labels that are listed before the rest is counted.
LISTED = 10


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
        "features": str(estimator.n_features_in_),
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
