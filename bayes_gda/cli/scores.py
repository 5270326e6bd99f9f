"""Models against each other: leave-one-out on the training rows, scores on held-out rows, evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax

from bayes_gda.checks import Floats
from bayes_gda.cli.fits import FitOptions, check_gaps, continuum_figures, fit_model, light, summary
from bayes_gda.cli.outputs import Advance, number, show, show_table, show_verdict
from bayes_gda.cli.shell import in_options
from bayes_gda.data.table import Dataset
from bayes_gda.estimators import BayesianRDA
from bayes_gda.estimators.base import BayesianClassifier
from bayes_gda.evaluation.loo import Loo, exact_loo, joint_blocks, psis_loo_discriminative, psis_loo_generative
from bayes_gda.evaluation.model_comparison import Evidence, ModelComparison, ModelScore, compare_models
from bayes_gda.families.classifier import GaussianClassifier, RegressionClassifier
from bayes_gda.families.gaussian.averaged import AveragedClassifier
from bayes_gda.families.gaussian.gaps.predictive import log_joint_observed_per_draw
from bayes_gda.families.gaussian.generative import GenerativeClassifier

# Draws × rows × classes behind leave-one-out, which goes row by row at a millisecond for 4000 draws.
LOO_DRAWS = 4000


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Fitted models and what they score.

    Parameters
    ----------
    train, test
        The rows they were fitted to, and the held-out ones.
    fitted
        The estimators by name.
    scores
        Their comparison.
    """

    train: Dataset
    test: Dataset
    fitted: dict[str, BayesianClassifier]
    scores: ModelComparison


def compare(data: Dataset, models: Sequence[str], test_size: float, how: FitOptions, advance: Advance) -> Comparison:
    """Fit models to a part of the rows, and score them on it by leave-one-out, and on the rest.

    Parameters
    ----------
    data
        Rows; with gaps for models that take them.
    models
        Names of the models.
    test_size
        Share or number of rows to hold out.
    how
        The method and its settings, the same for all.
    advance
        Told of the progress.
    """
    for name in models:  # before the first takes its time
        check_gaps(name, data)
    train, test = data.split(test_size, how.seed)
    fitted: dict[str, BayesianClassifier] = {}
    entries: dict[str, ModelScore] = {}
    for i, name in enumerate(models):
        advance(f"fitting {name}", i / len(models))
        # The average over the continuum has one method, whatever the others are asked for.
        estimator = fit_model(name, train, replace(how, inference="auto") if name == "rda" else how)
        advance(f"leave-one-out of {name}", (i + 0.5) / len(models))
        fitted[name], entries[name] = estimator, _score(estimator, train, test)
    advance("comparing", 1.0)
    # Wherever it is compared, it says where the data sit.
    continuum = next((e.continuum_ for e in fitted.values() if isinstance(e, BayesianRDA)), None)
    return Comparison(train, test, fitted, compare_models(entries, y=train.y, y_test=test.y, continuum=continuum))


def _score(estimator: BayesianClassifier, train: Dataset, test: Dataset) -> ModelScore:
    model = estimator.model_
    generative = isinstance(model, GenerativeClassifier)
    order = _order(estimator, train)
    value, error = estimator.log_evidence_, estimator.log_evidence_error_
    known = np.isfinite(value) and np.isfinite(error)
    return ModelScore(
        "generative" if generative else "discriminative",
        loo=_loo(estimator, train, order),
        held_out=model.log_probabilities(test.X)[:, order],
        evidence=Evidence(value, "joint" if generative else "conditional", error) if known else None,
    )


def _order(estimator: BayesianClassifier, data: Dataset) -> list[int]:
    """Return where the classes of the data set stand in the estimator, which sorts them."""
    labels = estimator.classes_.tolist()
    return [labels.index(name) for name in data.class_names]


def _loo(estimator: BayesianClassifier, train: Dataset, order: list[int]) -> Loo:
    """Return log p(y | x, other rows) of the training rows: in closed form, or by weighted draws."""
    model, X = estimator.model_, train.X
    y = np.asarray(order)[train.y]  # codes of the estimator
    if isinstance(model, AveragedClassifier):
        loo = exact_loo(model.continuum, X, y).conditional
    elif isinstance(model, GaussianClassifier) and model.posterior is not None and not train.has_missing:
        loo = exact_loo(model.posterior, X, y).conditional
    else:
        size = min(LOO_DRAWS, estimator.draws * estimator.chains)
        draws = model.draw_variables(size, random_seed=estimator.seed_)
        if isinstance(model, GaussianClassifier):
            gapped = train.has_missing
            joint = (lambda rows: log_joint_observed_per_draw(draws, X[rows])) if gapped else joint_blocks(draws, X)
            loo = psis_loo_generative(joint, y).conditional
        else:
            loo = psis_loo_discriminative(lambda rows: _log_probabilities(model, draws["w"], X[rows]), y)
    assert loo.log_probabilities is not None
    ordered = loo.log_probabilities[:, order]
    return Loo(loo.kind, loo.pointwise, loo.fitted, loo.pareto_k, loo.threshold, ordered)


def _log_probabilities(model: RegressionClassifier, w: Floats, X: Floats) -> Floats:
    """Return log p(y=k | x, w_s) (S, n, K), also where a probability is too small for a number."""
    Phi = model.features(X)
    if model.binary:
        a = w @ Phi.T
        return np.stack([log_expit(-a), log_expit(a)], axis=2)
    return np.asarray(log_softmax(np.swapaxes(w @ Phi.T, 1, 2), axis=2))


# ── What is printed ─────────────────────────────────────────────────────────────────────────────────────────────────


def as_json(result: Comparison, source: str) -> dict[str, Any]:
    """Return a comparison for JSON."""
    scores = result.scores
    return {
        "data": source,
        "fingerprint": result.train.fingerprint,
        "n_train": result.train.n,
        "n_test": result.test.n,
        "classes": list(result.train.class_names),
        "models": {name: summary(estimator) for name, estimator in result.fitted.items()},
        "loo": scores.loo,
        "held_out": scores.held_out,
        "evidence": scores.evidence,
        "continuum": None if scores.continuum is None else continuum_figures(scores.continuum),
        "sentences": list(scores.sentences),
    }


def show_comparison(result: Comparison) -> None:
    """Print the tables and sentences of a comparison."""
    scores, n, n_test = result.scores, result.train.n, result.test.n
    if scores.loo is not None:
        rows = [_score_line(name, line, ("stacking", "p_eff", "bad_k")) for name, line in scores.loo.iterrows()]
        head = ("model", "elpd", "difference", "accuracy", "stacking", "p_eff", "bad k̂")
        show_table(f"Leave-one-out, {n} training rows", head, rows)
    if scores.held_out is not None:
        rows = [_score_line(name, line, ("log_score", "brier")) for name, line in scores.held_out.iterrows()]
        show_table(f"Held-out, {n_test} rows", ("model", "elpd", "difference", "accuracy", "log score", "Brier"), rows)
    if scores.evidence is not None:
        kinds = scores.evidence["of"].value_counts()  # one of its kind has nothing to be compared with
        what = {"joint": "p(X, y)", "conditional": "p(y | X)"}
        rows = [
            (
                str(name),
                what[e["of"]],
                number(e["log_evidence"], 2),
                number(e["error"], 2),
                number(e["probability"], 3) if kinds[e["of"]] > 1 else "–",
            )
            for name, e in scores.evidence.iterrows()
        ]
        show_table("Evidence", ("model", "of", "log evidence", "error", "probability"), rows, left=2)
    show("elpd: sum of log p(class | features); difference: to the best, ± its standard error.", "")
    for name, estimator in result.fitted.items():
        trust = estimator.trust_
        show_verdict(light(estimator), f"{name}, {trust.verdict}", in_options(f"{trust.reason} {trust.next_step}"))
    show("", *(in_options(sentence) for sentence in scores.sentences))


def _score_line(name: Any, line: Any, more: Sequence[str]) -> tuple[str, ...]:
    digits = {"stacking": 2, "p_eff": 1, "bad_k": 0, "log_score": 3, "brier": 3}
    return (
        str(name),
        number(line["elpd"], 1),
        f"{number(line['difference'], 1)} ± {number(line['difference_se'], 1)}",
        f"{number(line['accuracy'], 3)} ± {number(line['accuracy_se'], 3)}",
        *(number(line[column], digits[column]) for column in more),
    )
