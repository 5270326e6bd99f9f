"""An analysis as one tree of plain values: what report.json holds, and all that the page shows.

Tables are lists of rows, so that a number's address (`comparison.loo.0.elpd`) never contains a name of the user.
"""

import math
import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from bayes_gda._version import __version__
from bayes_gda.evaluation.calibration import JOINT_PROB
from bayes_gda.evaluation.compare import compare_evidence
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.evaluation.sensitivity import FINE
from bayes_gda.methods.settings import TOLERANCE
from bayes_gda.reporting.analysis.analysis import Analysis
from bayes_gda.reporting.analysis.detail import PROB
from bayes_gda.reporting.analysis.settings import FORMATS
from bayes_gda.reporting.analysis.words import Conclusion
from bayes_gda.reporting.page.sections import (
    assumptions_section,
    data_section,
    effects_section,
    explore_section,
    known_evidence,
    novelty_section,
    performance_section,
    records,
    share_error,
)

# Of report.schema.json: raised when a key is removed or changes its meaning; keys may be added without.
SCHEMA_VERSION = 1
# Lines of a table, beyond which the rest is counted.
PARAMETERS, ROWS = 6, 10
PACKAGES = ("numpy", "scipy", "pandas", "arviz", "matplotlib", "pymc")
# Evidence is held to the method that errs least, in this order.
EVIDENCE = ("exact", "bridge", "corrected", "ep", "variational", "laplace")
SAMPLER_COLUMNS = ("r_hat", "ess_bulk", "ess_tail", "mcse_mean")


def content(analysis: Analysis, conclusions: tuple[Conclusion, ...], title: str) -> dict[str, Any]:
    """Return everything that the report says, as dicts, lists, texts and numbers.

    Parameters
    ----------
    analysis, conclusions
        What was computed, and what follows from it.
    title
        Of the report.
    """
    chosen = analysis.chosen.fitted.family
    tree = {
        "schema_version": SCHEMA_VERSION,
        "title": title,
        "conclusions": [
            {"topic": c.topic, "light": c.light, "sentence": c.sentence, "step": c.step, "call": c.call}
            for c in conclusions
        ],
        "chosen": {"name": chosen.name, "title": chosen.title, "method": analysis.chosen.method},
        "data": data_section(analysis),
        "performance": performance_section(analysis),
        "effects": effects_section(analysis),
        "assumptions": assumptions_section(analysis),
        "explore": explore_section(analysis),
        "models": [_model(model) for model in analysis.models.values()],
        "failed": [{"name": name, "reason": reason} for name, reason in analysis.failed.items()],
        "incomplete": [{"name": name, "reason": reason} for name, reason in analysis.incomplete.items()],
        "sampling": [_sampling(model, analysis) for model in analysis.models.values() if model.verdict.diagnosis],
        "predictions": _predictions(analysis),
        "calibration": _calibration(analysis),
        "decisions": _decisions(analysis),
        "comparison": _comparison(analysis),
        "sensitivity": _sensitivity(analysis),
        "reproduce": _reproduce(analysis),
    }
    cleaned: dict[str, Any] = clean(tree)
    return cleaned


def clean(value: Any) -> Any:
    """Return a value as JSON has it: NumPy's numbers as Python's, nan and inf as None, tuples as lists."""
    if isinstance(value, Mapping):
        return {str(key): clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [clean(inner) for inner in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return None if value is None else str(value)


# ── Models ─────────────────────────────────────────────────────────────────────────────────────────────────


def _model(model: Scorecard) -> dict[str, Any]:
    family, weighing = model.fitted.family, model.fitted.weighing
    importance, propagation = weighing.importance, weighing.propagation
    out: dict[str, Any] = {
        "name": family.name,
        "title": family.title,
        "words": family.sentence,
        "family": family.kind,
        "formula": family.formula,
        "prior": family.describe_prior(),
        "remarks": family.remarks(),
        "parameters": family.parameters,
        "estimator": family.estimator,
        "method": model.method,
        "methods": list(model.fitted.models),
        "verdict": weighing.verdict,
        "pareto_k": weighing.pareto_k,
        "ess_fraction": None if importance is None else importance.ess_fraction,
        "corrected_k": None if importance is None else importance.corrected_k,
        "corrected_ess_fraction": None if importance is None else importance.corrected_ess_fraction,
        "laplace_error": None if propagation is None else propagation.laplace_error,
        "better_error": None if propagation is None else propagation.better_error,
        "reason": weighing.reason,
        "evidence": _evidence(model),
        # One method alone has nothing to be compared with.
        "predictions": records(model.predictions, "method") if len(model.predictions) > 1 else [],
        "predictions_reference": model.method,
        "monte_carlo": None if model.monte_carlo is None else asdict(model.monte_carlo),
        "loo": _loo(model),
    }
    return out | {"posterior": _posterior(model)}


def _loo(model: Scorecard) -> dict[str, Any]:
    loo, failure = model.attempted_loo
    if loo is None:
        return {"reason": f"Leave-one-out failed: {failure}", "next_step": "", "bad": None, "refitted": None}
    return {"reason": loo.reason, "next_step": loo.next_step, "bad": loo.n_bad, "refitted": loo.n_refitted}


def _evidence(model: Scorecard) -> list[dict[str, Any]]:
    known = {name: model.fitted.evidence[name] for name in EVIDENCE if name in model.fitted.evidence}
    if not known:
        return []
    return [known_evidence(line) for line in records(compare_evidence(known, reference=next(iter(known))), "method")]


def _posterior(model: Scorecard) -> dict[str, Any]:
    posteriors = model.posteriors
    if posteriors is None:
        return {"reference": model.method, "joint": [], "parameters": [], "left_out": 0, "compared": []}
    others = posteriors.parameters.drop(index=posteriors.reference, level="method")
    # The worst parameters of any method, each of them for all methods; the draws of Σ_ij and Σ_ji are the same.
    distance = others["mean_difference_sd"].abs() + np.log(others["sd_ratio"].clip(1e-300)).abs()
    table = others.assign(distance=distance.to_numpy())
    unique = table[~table.duplicated(["mean", "sd"])]
    shown = unique.sort_values("distance", ascending=False, kind="stable").head(PARAMETERS).drop(columns="distance")
    return {
        "reference": posteriors.reference,
        "joint": records(posteriors.joint.drop(index=posteriors.reference), "method"),
        "parameters": records(shown, "method", "parameter"),
        "left_out": len(unique) - len(shown),
        "compared": list(model.compared),
        "constant": len(posteriors.constant),
        "skipped": [str(n) for n in model.trees[model.method]["posterior"].data_vars if n not in model.compared],
    }


def _sampling(model: Scorecard, analysis: Analysis) -> dict[str, Any]:
    diagnosis = model.verdict.diagnosis
    assert diagnosis is not None
    worst = diagnosis.table
    return {
        "model": model.name,
        "verdict": diagnosis.verdict,
        "chains": diagnosis.chains,
        "draws": diagnosis.draws,
        "r_hat": worst["r_hat"].max(),
        "ess_bulk": worst["ess_bulk"].min(),
        "ess_tail": worst["ess_tail"].min(),
        "divergences": diagnosis.divergences,
        "max_depth_share": diagnosis.max_depth_share,
        "e_bfmi": None if diagnosis.e_bfmi is None else diagnosis.e_bfmi.min(),
        "acceptance": None if diagnosis.acceptance is None else diagnosis.acceptance.mean(),
        "seconds": analysis.clock.seconds.get(f"sample {model.name}"),
        "reason": " ".join(diagnosis.reasons),
        "next_step": " ".join(diagnosis.next_steps),
        "worst": records(diagnosis.worst(PARAMETERS)[["mean", "sd", *SAMPLER_COLUMNS]], "parameter"),
        "worst_left_out": max(0, len(diagnosis.table) - PARAMETERS),
    }


# ── Held-out rows ───────────────────────────────────────────────────────────────────────────────────────────────────


def _predictions(analysis: Analysis) -> dict[str, Any]:
    detail, test = analysis.detail, analysis.test
    P, parts = np.exp(analysis.chosen.log_probabilities), detail.entropy
    top = P.argmax(axis=1)
    own = np.arange(test.n), top
    low, high = detail.interval[own[0], top].T
    order = np.argsort(-parts.total, kind="stable")[:ROWS]
    names = test.class_names
    rows = [
        {
            "row": analysis.row_numbers[i],
            "class": names[test.y[i]],
            "predicted": names[top[i]],
            "probability": P[i, top[i]],
            "lower": low[i],
            "upper": high[i],
            "entropy": parts.total[i],
            "epistemic": parts.epistemic[i],
        }
        for i in order
    ]
    total = float(parts.total.mean())
    return {
        "prob": PROB,
        "uncertain": rows,
        "left_out": max(0, test.n - ROWS),
        "median_width": np.median(high - low),
        "largest_width": (high - low).max(),
        "entropy": total,
        "aleatoric": parts.aleatoric.mean(),
        "epistemic": parts.epistemic.mean(),
        "epistemic_share": float(parts.epistemic.mean()) / total if total > 0 else 0.0,
        "most_entropy": math.log(test.K),
        "errors": int((top != test.y).sum()),
        "rows": test.n,
        "novelty": novelty_section(analysis),
    }


def _calibration(analysis: Analysis) -> dict[str, Any]:
    keep = ["brier", "miscalibration", "discrimination", "uncertainty", "ece", "ece_debiased", "impossible"]
    together: list[dict[str, Any]] = [
        {"model": name}
        | {k: m.calibration.loc[("all classes", ""), k] for k in keep}
        | {"log_score": m.log_probabilities[np.arange(analysis.test.n), analysis.test.y].mean()}  # P may underflow
        for name, m in analysis.models.items()
    ]
    together.sort(key=lambda line: -line["log_score"])
    events = records(analysis.chosen.calibration, "event", "class")
    if analysis.test.K == 2:
        events = events[1:]  # of two classes one is the other's mirror image
    *_, curve = analysis.detail.curves.values()
    return {
        "models": together,
        "events": events,
        "joint_prob": JOINT_PROB,
        "prob": curve.consistency.prob,
    }


def _decisions(analysis: Analysis) -> dict[str, Any]:
    test, costs = analysis.test, analysis.costs
    lines: list[dict[str, Any]] = []
    for name, made in analysis.decisions.items():
        firm = made.probability_optimal
        assert firm is not None
        assert made.value_of_information is not None
        lines.append(
            {
                "model": name,
                "expected_loss": made.loss.mean(),
                "realised_loss": costs[made.action, test.y].mean(),
                "realised_se": costs[made.action, test.y].std(ddof=1) / math.sqrt(test.n),
                "firm": (firm[np.arange(test.n), made.action] >= 0.95).mean(),
                "value_of_information": made.value_of_information.mean(),
            }
        )
    lines.sort(key=lambda line: line["realised_loss"])
    for line in lines:
        if line["realised_se"] == 0:  # every row cost the same: there is nothing to estimate an error from
            line["realised_se"] = None
    made = analysis.decisions[analysis.best]
    constant = (costs[:, test.y]).mean(axis=1)
    curve = analysis.detail.thresholds
    return {
        "default_costs": analysis.settings.costs is None,
        "classes": test.class_names,
        "costs": [
            {"action": name, "losses": row, "chosen": int((made.action == a).sum())}
            for a, (name, row) in enumerate(zip(made.names, costs, strict=True))
        ],
        "models": lines,
        "constant_action": made.names[int(constant.argmin())],
        "constant_loss": constant.min(),
        "threshold": None if curve is None else curve.optimal_threshold,
        "threshold_action": None if curve is None else made.names[int(costs[:, 0].argmax())],
        "best_threshold": None if curve is None else max(curve.best_threshold, 0.0),
    }


# ── Models against each other, priors, reproduction ─────────────────────────────────────────────────────────────────


def _comparison(analysis: Analysis) -> dict[str, Any]:
    comparison = analysis.comparison
    tables = {"loo": comparison.loo, "held_out": comparison.held_out, "evidence": comparison.evidence}
    out: dict[str, Any] = {name: [] if t is None else records(t, "model") for name, t in tables.items()}
    for name, n in (("loo", analysis.train.n), ("held_out", analysis.test.n)):
        out[name] = [
            line | {"log_score_se": line["se"] / n, "accuracy_se": share_error(line["accuracy"], line["accuracy_se"])}
            for line in out[name]
        ]
    out["evidence"] = [known_evidence(line) for line in out["evidence"]]
    said = {"families": comparison.generative_vs_discriminative, "sentences": comparison.sentences}
    return out | said | {"continuum": _continuum(analysis)}


def _continuum(analysis: Analysis) -> dict[str, Any] | None:
    placed, chosen = analysis.placement, analysis.chosen
    if placed is None:
        return None
    own = chosen.log_probabilities[np.arange(analysis.test.n), analysis.test.y]
    return {
        "toward_lda": placed.continuum.toward_lda,
        "toward_naive": placed.continuum.toward_naive,
        "log_score": placed.log_score,
        "sentence": placed.against(chosen.name, own),
    }


def _sensitivity(analysis: Analysis) -> dict[str, Any] | None:
    detail = analysis.detail.sensitivity
    if detail is None:
        return None
    assert detail.predictions is not None
    models = [
        {
            "model": name,
            "prior": sensitivity.parameters["prior"].max(),
            "likelihood": sensitivity.parameters["likelihood"].max(),
            "marked": int((sensitivity.parameters["diagnosis"] != FINE).sum()),
            "parameters": len(sensitivity.parameters),
            "worst": sensitivity.parameters["prior"].idxmax(),
            "pareto_k": sensitivity.weights["pareto_k"].max(),
        }
        for name, sensitivity in analysis.sensitivities.items()
    ]
    rows = detail.predictions.sort_values("prior", ascending=False, kind="stable").head(ROWS)
    return {
        "alphas": detail.alphas,
        "threshold": detail.threshold,
        "reason": detail.reason,
        "next_step": detail.next_step,
        "models": models,
        "parameters": records(detail.worst(PARAMETERS).replace({"diagnosis": {FINE: "fine"}}), "parameter"),
        "parameters_left_out": max(0, len(detail.parameters) - PARAMETERS),
        "rows": records(rows, "row"),
        "rows_left_out": max(0, len(detail.predictions) - len(rows)),
    }


def _reproduce(analysis: Analysis) -> dict[str, Any]:
    settings = analysis.settings
    options = (
        [f"quick={settings.quick}"] if settings.quick else [f"draws={settings.draws}", f"chains={settings.chains}"]
    )
    if settings.models is not None:
        options.insert(0, f"models={tuple(settings.models)!r}")
    given = analysis.data.n == analysis.train.n
    options += [*([] if given else [f"test_size={settings.test_size!r}"]), f"random_seed={settings.random_seed}"]
    for name, default in (("inference", "auto"), ("link", "exact"), ("tolerance", TOLERANCE)):
        if getattr(settings, name) != default:
            options.append(f"{name}={getattr(settings, name)!r}")
    if settings.costs is not None:
        options.append(f"costs={np.asarray(settings.costs).tolist()!r}")
    if settings.action_names is not None:
        options.append(f"action_names={list(settings.action_names)!r}")
    if settings.formats != FORMATS:
        options.append(f"formats={list(settings.formats)!r}")
    rows = "test=test, " if given else ""
    packages = [
        {"package": "bayes_gda", "version": __version__},
        {"package": "Python", "version": platform.python_version()},
    ]
    packages += [
        {"package": name, "version": version(name)} for name in PACKAGES if name != "pymc" or not settings.quick
    ]
    return {
        "command": settings.own_command(),
        "python": f"write_report(data, out, {rows}settings=ReportSettings({', '.join(options)}))",
        "python_data": settings.python_data(),
        "seed": settings.random_seed,
        "tolerance": settings.tolerance,
        "inference": settings.inference,
        "link": settings.link,
        "sampler": None if settings.quick else settings.sampler,
        "fingerprint": analysis.data.fingerprint,
        "test_fingerprint": analysis.test.fingerprint,
        "platform": platform.platform(),
        "versions": packages,
        "timings": [],
    }
