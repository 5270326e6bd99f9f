"""Sections that an analyst reads first, as plain values: data, performance, assumptions, and what can be explored."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bayes_gda.data.table import Dataset
from bayes_gda.data.validate import Origin
from bayes_gda.evaluation.calibration import brier_rows
from bayes_gda.evaluation.model_comparison import EVIDENCE_ERROR
from bayes_gda.evaluation.performance import Performance, share_interval
from bayes_gda.prediction.effects import PartialEffect
from bayes_gda.reporting.analysis.analysis import Analysis
from bayes_gda.reporting.analysis.detail import PROB
from bayes_gda.reporting.analysis.explore import MOST_ROWS, Polynomial, as_polynomial, contributions
from bayes_gda.reporting.analysis.quality import coded_columns
from bayes_gda.reporting.analysis.repeated import class_shares
from bayes_gda.reporting.analysis.soundness import LEVEL, check_sentence

if TYPE_CHECKING:
    import pandas as pd

# Lines of a table, beyond which the rest is counted.
FEATURES, CLASSES, EFFECTS = 30, 40, 60
# Probabilities of held-out rows that the page counts decisions over, about 500 kB.
MOST_FORECASTS = 60_000
# Standard error of a log evidence, in nats, beyond which its value says nothing.
USELESS = 10.0
# Novel rows that are listed.
ROWS = 10
# Features that are named beside a row, those that move its log odds most.
REASONS = 3


def records(table: "pd.DataFrame", *names: str) -> list[dict[str, Any]]:
    """Return the lines of a table as dicts, its index levels under `names`."""
    out = []
    for key, line in zip(table.index, table.to_dict("records"), strict=True):
        keys = key if isinstance(key, tuple) else (key,)
        out.append(dict(zip(names, keys, strict=True)) | {str(k): v for k, v in line.items()})
    return out


def share_error(share: float, error: float) -> float | None:
    """Return the standard error of a share, which cannot be estimated where all rows, or none, are hits."""
    return error if 0 < share < 1 else None


def known_evidence(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a line of log evidences without what its error leaves unknown: its probability, and then the value."""
    error = line["error"]
    unknown: set[str] = set()
    if np.isfinite(error) and error > EVIDENCE_ERROR:
        unknown = {"probability"} if error < USELESS else {"probability", "log_evidence", "difference", "z"}
    return {key: None if key in unknown else value for key, value in line.items()}


def data_section(analysis: Analysis) -> dict[str, Any]:
    """Return what went in: rows, classes, features, and what deserves a look."""
    train, test, given = analysis.train, analysis.test, analysis.data
    counts = np.bincount(test.y, minlength=test.K)
    every = train.class_counts + counts
    balance = [
        {"class": c, "train": train.class_counts[k], "test": counts[k], "share": every[k] / every.sum()}
        for k, c in enumerate(train.class_names)
    ]
    features = [
        {
            "feature": name,
            "mean": np.nanmean(train.X[:, j]),
            "sd": np.nanstd(train.X[:, j], ddof=1),
            "least": np.nanmin(train.X[:, j]),
            "most": np.nanmax(train.X[:, j]),
        }
        for j, name in enumerate(train.feature_names)
    ]
    origin = given.origin
    return {
        "source": analysis.settings.data_name,
        "target": analysis.settings.target,
        "findings": [{"light": r.light, "sentence": r.sentence, "step": r.step} for r in analysis.remarks],
        "table_rows": given.n if origin is None else origin.total,
        "dropped": 0 if origin is None else origin.total - given.n,
        "missing_columns": _missing(_gap_counts(given) if origin is None else _gaps(origin, analysis.settings.target)),
        "gaps": _incomplete(analysis),
        "rows": train.n + test.n,
        "features_count": given.d,
        "classes_count": given.K,
        "missing": sum(_gap_counts(given).values()) + (0 if origin is None else sum(_gaps(origin, None).values())),
        "train_rows": train.n,
        "test_rows": test.n,
        "test_given": given.n == train.n,
        "test_source": analysis.settings.test_name,
        "test_dropped": 0 if test.origin is None or given.n != train.n else test.origin.total - test.n,
        "test_repeated": _repeated_rows(train, test) if given.n == train.n else 0,
        "test_size": analysis.settings.test_size,
        "seed": analysis.settings.random_seed,
        "balance": balance[:CLASSES],
        "balance_left_out": max(0, len(balance) - CLASSES),
        "features": features[:FEATURES],
        "features_left_out": max(0, len(features) - FEATURES),
    }


def _gaps(origin: Origin, target: str | None) -> dict[str, int]:
    """Return missing values by column, those of the class too."""
    own = {f"{target or 'class'} (class)": origin.unlabelled} if origin.unlabelled else {}
    return {**origin.missing, **own}


def _missing(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    order = sorted(counts, key=lambda name: -counts[name])
    return [{"column": name, "missing": counts[name]} for name in order[:FEATURES]]


def _gap_counts(data: Dataset) -> dict[str, int]:
    """Return missing values by column of the table: a category with several 0/1 features is one."""
    coded = coded_columns(data)
    counts = {
        coded[j].name if j in coded else name: int(count)
        for j, (name, count) in enumerate(zip(data.feature_names, np.isnan(data.X).sum(axis=0), strict=True))
    }
    return {name: count for name, count in counts.items() if count}


def _incomplete(analysis: Analysis) -> dict[str, Any] | None:
    """Return how many rows are incomplete, and what each model did with them; None if all are complete."""
    counts = {
        name: int(np.isnan(part.X).any(axis=1).sum())
        for name, part in (("train", analysis.train), ("test", analysis.test))
    }
    if not any(counts.values()):
        return None
    used = "learns from all training rows and predicts all held-out rows: missing values are integrated out"
    not_fitted = "is not fitted: it needs complete rows"
    lines = [{"model": name, "use": used} for name in analysis.models]
    lines += [{"model": name, "use": not_fitted} for name in analysis.settings.left_out(analysis.data)]
    return counts | {"models": lines}


def _repeated_rows(train: Dataset, test: Dataset) -> int:
    """Return how many test rows also stand among the training rows, with the same class."""
    known = {row.tobytes() for row in np.column_stack([train.X, train.y])}
    return sum(row.tobytes() in known for row in np.column_stack([test.X, test.y]))


def performance_section(analysis: Analysis) -> dict[str, Any]:
    """Return how well the chosen model tells the classes of held-out rows apart."""
    performance = analysis.chosen.performance
    low, high = performance.accuracy_interval
    counts = np.bincount(analysis.test.y, minlength=analysis.test.K)
    top = int(analysis.train.class_counts.argmax())
    constant, gain, gain_se = analysis.baseline
    own: Any = analysis.chosen.calibration.loc[("all classes", "")]
    table: Any = analysis.comparison.held_out
    line: Any = table.loc[analysis.best]
    shares = np.tile(class_shares(analysis.train), (analysis.test.n, 1))
    return {
        "prob": performance.prob,
        "classes": records(performance.table.head(CLASSES), "class"),
        "classes_left_out": max(0, len(performance.table) - CLASSES),
        "confusion": performance.confusion[:CLASSES, :CLASSES],
        "accuracy": performance.accuracy,
        "accuracy_lower": low,
        "accuracy_upper": high,
        "balanced_accuracy": performance.balanced_accuracy,
        "majority": analysis.test.class_names[top],
        "majority_accuracy": counts[top] / counts.sum(),
        "balanced_accuracy_se": balanced_error(performance),
        "log_score": line["log_score"],
        "log_score_se": line["se"] / analysis.test.n,
        "brier": own["brier"],
        "brier_se": line["brier_se"],
        "baseline_log_score": constant,
        "baseline_brier": brier_rows(shares, analysis.test.y).mean(),
        "gain": gain,
        "gain_se": gain_se,
        "repeated": _repeated(analysis),
    }


def balanced_error(performance: Performance) -> float:
    """Return the standard error of the mean recall: of each recall that of its Jeffreys posterior, which is never 0."""
    rows = performance.table["rows"].to_numpy(dtype=float)
    hits = np.diag(performance.confusion)[rows > 0] + 0.5
    total = rows[rows > 0] + 1
    variance = hits * (total - hits) / (total**2 * (total + 1))
    return float(np.sqrt(variance.sum()) / len(total))


def _repeated(analysis: Analysis) -> dict[str, Any]:
    """Return the cross-validation of all models, or that there is none."""
    repeated = analysis.repeated
    table = [] if repeated.table is None else records(repeated.table, "model")
    if repeated.repeats == 1:
        table = [line | {"least": None, "most": None} for line in table]
    return {
        "folds": repeated.folds,
        "repeats": repeated.repeats,
        "rows": repeated.rows,
        "seconds": repeated.seconds,
        "reason": repeated.reason,
        "baseline_log_score": repeated.baseline,
        "models": [line | {"method": repeated.methods[line["model"]]} for line in table],
        "left_out": [{"model": name, "reason": reason} for name, reason in repeated.left_out.items()],
    }


def effects_section(analysis: Analysis) -> dict[str, Any]:
    """Return what the features do in the chosen model, the strongest effects first if they are many."""
    effects = analysis.effects
    average, odds = effects.average, effects.odds
    kept = average.loc[
        average["estimate"].abs().sort_values(ascending=False, kind="stable").index[:EFFECTS]
    ].sort_index()
    shown = None if odds is None else odds.loc[odds["size"].nlargest(EFFECTS, keep="first").index].sort_index()
    return {
        "average": [] if not len(kept) else kept.to_dict("records"),
        "average_left_out": len(average) - len(kept) + effects.left_out,
        "odds": []
        if shown is None
        else [line | _absent(line) for line in shown.drop(columns="size").to_dict("records")],
        "odds_left_out": 0 if odds is None or shown is None else len(odds) - len(shown),
        "linear": odds is not None,
        "curves": [_curve(curve) for curve in analysis.curves],
        "reference": effects.reference,
        "prob": effects.prob,
    }


def _curve(curve: PartialEffect) -> dict[str, Any]:
    ends = {name: None if x is None else _rounded(x) for name, x in (("lower", curve.lower), ("upper", curve.upper))}
    what = {"model": curve.model, "feature": curve.feature, "class": curve.class_name}
    return what | {"x": _rounded(curve.x), "mean": _rounded(curve.mean)} | ends


def _absent(line: Mapping[Any, Any]) -> dict[str, Any]:
    """Return None for figures that a feature does not have."""
    return {name: None for name, x in line.items() if isinstance(x, float) and np.isnan(x)}


def assumptions_section(analysis: Analysis) -> dict[str, Any]:
    """Return the checks of every model's assumptions: the largest departure of each; of the chosen one in words."""
    lines: list[dict[str, Any]] = []
    for name, card in analysis.models.items():
        for check, adjusted in zip(card.assumptions.checks, card.assumptions.adjusted(), strict=True):
            worst = check.worst
            departure: dict[str, Any] = {"where": check.note or None, "observed": None, "expected": None, "z": None}
            if worst is not None:
                figures = {"observed": worst.observed, "expected": worst.expected, "z": worst.z}
                departure = {"where": worst.where} | figures
            what = {"model": name, "assumption": check.assumption, "statistic": check.statistic}
            lines.append(what | {"p_value": check.p_value, "adjusted": adjusted} | departure)
    own = analysis.chosen.assumptions
    said = [
        {"assumption": c.assumption, "sentence": check_sentence(c, p), "remedy": c.remedy, "rejected": bool(p < LEVEL)}
        for c, p in zip(own.checks, own.adjusted(), strict=True)
    ]
    unchecked = [name for name, card in analysis.models.items() if not card.assumptions.checks]
    return {"checks": lines, "chosen": said, "unchecked": unchecked, "level": LEVEL}


def explore_section(analysis: Analysis) -> dict[str, Any]:
    """Return what the page's panels compute with: held-out rows, their explanations, and the model as polynomials."""
    card, test, detail = analysis.chosen, analysis.test, analysis.detail
    P = np.exp(card.log_probabilities)
    # Rows that are like no class, and the most uncertain ones, if there are too many.
    novelty = None if analysis.novelty is None else analysis.novelty.novelty
    usual = np.zeros(test.n, dtype=bool) if novelty is None else ~novelty.novel
    order = np.sort(np.lexsort((-detail.entropy.total, usual))[:MOST_ROWS])
    top = P.argmax(axis=1)
    why = contributions(card, order)
    model = as_polynomial(card.model, analysis.train)
    rows: list[dict[str, Any]] = []
    for r, i in enumerate(order):
        low, high = detail.interval[i, top[i]]
        line = {"row": analysis.row_numbers[i], "y": test.y[i], "p": _rounded(P[i]), "low": _rounded(low)}
        line["high"] = _rounded(high)
        if why is not None:
            largest = np.argsort(-np.abs(why[r]), kind="stable")[:REASONS]
            line["why"] = [[int(j), _rounded(why[r, j])] for j in largest]
        if novelty is not None:
            line |= {"tail": _rounded(novelty.largest[i]), "novel": bool(novelty.novel[i])}
        if model is not None:
            line["x"] = test.X[i].tolist()
        rows.append(line)
    # Decisions under other costs are counted over all rows, thinned only where a page could not hold them.
    counted = np.unique(np.linspace(0, test.n - 1, min(test.n, MOST_FORECASTS // test.K)).round().astype(np.intp))
    forecasts = P[counted, 1] if test.K == 2 else P[counted]
    return {
        "all": {"y": test.y[counted], "p": _rounded(forecasts), "left_out": test.n - len(counted)},
        "classes": [str(name) for name in test.class_names],
        "features": list(test.feature_names),
        "rows": rows,
        "left_out": test.n - len(rows),
        "explained": why is not None,
        "novelty": None if analysis.novelty is None else analysis.novelty.model,
        "tail": (1 - PROB) / 2,
        "prob": PROB,
        "model": None if model is None else _model(model),
    }


def _model(model: Polynomial) -> dict[str, Any]:
    return {
        "coefficients": _rounded(model.coefficients),
        "monomials": [list(m) for m in model.monomials],
        "mean": model.mean.tolist(),
        "sd": model.sd.tolist(),
        "start": [float(f"{x:.4g}") for x in model.mean],
        "generative": model.generative,
        "draws": len(model.coefficients),
    }


def _rounded(x: Any) -> Any:
    """Return numbers with six significant digits: a third of the room, and more than a page shows."""
    values = np.asarray(x, dtype=np.float64)
    return [_rounded(y) for y in values] if values.ndim else float(f"{values:.6g}")


def novelty_section(analysis: Analysis) -> dict[str, Any] | None:
    """Return the held-out rows that are like no class, the farthest first."""
    if analysis.novelty is None:
        return None
    novelty, test = analysis.novelty.novelty, analysis.test
    P = np.exp(analysis.chosen.log_probabilities)
    novel = np.flatnonzero(novelty.novel)
    order = novel[np.argsort(novelty.largest[novel], kind="stable")][:ROWS]
    nearest = novelty.probability.argmax(axis=1)
    rows = [
        {
            "row": analysis.row_numbers[i],
            "class": test.class_names[test.y[i]],
            "nearest": test.class_names[nearest[i]],
            "tail": novelty.largest[i],
            "threshold": novelty.threshold[i],
            "predicted": test.class_names[P[i].argmax()],
            "probability": P[i].max(),
        }
        for i in order
    ]
    low, high = share_interval(len(novel), test.n)
    return {
        "model": analysis.novelty.model,
        "false_alarm": novelty.false_alarm,
        "novel": len(novel),
        "share": len(novel) / test.n,
        "share_lower": low,
        "share_upper": high,
        "rows": rows,
        "left_out": len(novel) - len(rows),
    }
