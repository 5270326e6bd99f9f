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
    units = estimator._odds_units()
    if units is not None:  # exp is monotone: quantiles of a ratio are those of the weight
        scale = np.array([units.get(name, np.nan) for name in table.index])
        for column, name in zip(("mean", *columns[2:]), ("", f"_{columns[2]}", f"_{columns[3]}"), strict=True):
            table[f"odds_ratio{name}"] = np.exp(scale * table[column].to_numpy())
    diagnosis = estimator.trust_.diagnosis
    if diagnosis is not None:
        table = table.join(diagnosis.table[["ess_bulk", "ess_tail", "r_hat"]])
    return table


def interval_table(classes: list[Any], ends: Any) -> "pd.DataFrame":
    """Return intervals (n, K, 2) as a table with the columns low[class] and high[class]."""
    import pandas as pd

    sides = [(label, side, k) for k, label in enumerate(classes) for side in (0, 1)]
    return pd.DataFrame({f"{('low', 'high')[side]}[{label}]": ends[:, k, side] for label, side, k in sides})


def named_costs(costs: Any, classes: list[Any]) -> tuple[Any, list[str]] | None:
    """Return costs given by name as a matrix (A, K) in the order of the classes, and the actions; None for an array.

    Parameters
    ----------
    costs
        {action: {class: cost}}, or a data frame with a row for each action and a column for each class.
    classes
        (K,) labels.
    """
    if hasattr(costs, "to_dict") and hasattr(costs, "columns"):
        costs = costs.to_dict(orient="index")
    if not isinstance(costs, dict):
        return None
    for action, row in costs.items():
        given = set(row) if isinstance(row, dict) else set()
        if given != set(classes):
            raise DataError(f"`costs` of {action!r} must name the classes {classes}; got {sorted(map(str, given))}.")
    return [[row[label] for label in classes] for row in costs.values()], [str(action) for action in costs]


def warn_of_errors(estimator: "BayesianClassifier", error: "MonteCarlo") -> None:
    """Warn if Monte Carlo errors of predicted probabilities exceed the tolerance, with the draws that would mend it."""
    if error.within:
        return
    # The weights limit a corrected posterior. Sampled draws of a probability p have a variance of p(1 − p) ≤ ¼ each.
    weighted = estimator.inference_ == "corrected"
    diagnosis = estimator.trust_.diagnosis  # a run may have been extended
    taken = estimator.draws if diagnosis is None else diagnosis.chains * diagnosis.draws // estimator.chains
    draws = -(-int(1 / error.tolerance**2) // estimator.chains) if weighted else error.draws_needed(taken)
    remedy = f"inference='mcmc' and draws={draws}" if weighted else f"draws={draws}"
    warn_user(f"{error.sentence} Fit with {remedy}, or set a larger tolerance.")


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
