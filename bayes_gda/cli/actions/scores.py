"""Models against each other: leave-one-out on the training rows, scores on held-out rows, evidence."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bayes_gda.cli.actions.fits import FitOptions, check_gaps, continuum_figures, verdict_summary
from bayes_gda.cli.outputs import Advance, number, sampler_bars, show, show_table, show_verdict
from bayes_gda.cli.shell import check_interrupted, in_options
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.model_comparison import ModelComparison
from bayes_gda.evaluation.scorecard import Scorecard, compare_models
from bayes_gda.families.registry import get_family
from bayes_gda.methods.ladder import fit
from bayes_gda.methods.settings import INFERENCES, Settings, seed_of


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Fitted models and what they score.

    Parameters
    ----------
    train, test
        The rows they were fitted to, and the held-out ones.
    cards
        Their scorecards by name.
    scores
        Their comparison.
    """

    train: Dataset
    test: Dataset
    cards: dict[str, Scorecard]
    scores: ModelComparison


def compare(
    data: Dataset, models: Sequence[str], test_size: float, fit_options: FitOptions, advance: Advance
) -> Comparison:
    """Fit models to a part of the rows, and score them on it by leave-one-out, and on the rest.

    Parameters
    ----------
    data
        Rows; with gaps for models that take them.
    models
        Names of the models.
    test_size
        Share or number of rows to hold out.
    fit_options
        The method and its settings, the same for all.
    advance
        Told of the progress.
    """
    for name in models:  # before the first takes its time
        check_gaps(name, data)
        get_family(name).check(data.K)
    # In the order in which an estimator has the classes: the same draws then stand for the same weights.
    train, test = (part.in_natural_order() for part in data.split(test_size, fit_options.seed))
    cards: dict[str, Scorecard] = {}
    for i, name in enumerate(models):
        advance(f"fitting {name}", i / len(models))
        train.require_rows(2, name, remedy="Merge classes or add rows.")
        settings = _settings(name, fit_options)
        family = get_family(name)
        fitted = fit(family.bind(family.prepare(train, settings.inference)), settings)
        check_interrupted()
        advance(f"leave-one-out of {name}", (i + 0.5) / len(models))
        cards[name] = Scorecard.of_fit(fitted, train, test, settings)
        _ = cards[name].attempted_loo
    advance("comparing", 1.0)
    return Comparison(train, test, cards, compare_models(cards))


def _settings(name: str, fit_options: FitOptions) -> Settings:
    # A model that averages over others has one method, whatever the others are asked for.
    asked = "auto" if get_family(name).averages else fit_options.inference
    inference = next(known for known in INFERENCES if known == asked)
    return Settings(
        inference,
        fit_options.draws,
        fit_options.chains,
        fit_options.sampler,
        seed_of(fit_options.seed),
        sampler_bars(),
        fit_options.tolerance,
    )


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
        "models": {name: _model_summary(card) for name, card in result.cards.items()},
        "loo": scores.loo,
        "held_out": scores.held_out,
        "evidence": scores.evidence,
        "continuum": None if scores.continuum is None else continuum_figures(scores.continuum),
        "sentences": list(scores.sentences),
    }


def _model_summary(card: Scorecard) -> dict[str, Any]:
    value, error = card.evidence
    return {
        "model": card.name,
        "classes": list(card.train.class_names),
        "features": list(card.train.feature_names),
        **verdict_summary(card.method, card.verdict),
        "log_evidence": value,
        "log_evidence_error": error,
        "remarks": [] if card.fit is None else list(card.fit.family.remarks()),
    }


def show_comparison(result: Comparison) -> None:
    """Print the tables and sentences of a comparison."""
    scores, n, n_test = result.scores, result.train.n, result.test.n
    if scores.loo is not None:
        rows = [
            _score_line(name, line, ("stacking", "p_eff", "refitted", "bad_k")) for name, line in scores.loo.iterrows()
        ]
        head = ("model", "elpd", "difference", "accuracy", "stacking", "p_eff", "refitted", "bad k̂")
        show_table(f"Leave-one-out, {n} training rows", head, rows)
    if scores.held_out is not None:
        rows = [_score_line(name, line, ("log_score", "brier")) for name, line in scores.held_out.iterrows()]
        show_table(f"Held-out, {n_test} rows", ("model", "elpd", "difference", "accuracy", "log score", "Brier"), rows)
    if scores.evidence is not None:
        kinds = scores.evidence["of"].value_counts()  # one of its kind has nothing to be compared with
        what = {"joint": "p(X, y)", "mixed": "p(X, y) by type", "conditional": "p(y | X)"}
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
    show(
        "elpd: sum of log p(class | features); difference: to the best, ± its standard error; bad k̂: rows for which "
        "leave-one-out is unreliable.",
        "",
    )
    for name, card in result.cards.items():
        trust = card.verdict
        show_verdict(trust.light, f"{name}, {trust.verdict}", in_options(f"{trust.reason} {trust.next_step}"))
        if card.fit is not None:
            show(*card.fit.family.remarks())
    show("", *(in_options(sentence) for sentence in scores.sentences))


def _score_line(name: Any, line: Any, more: Sequence[str]) -> tuple[str, ...]:
    digits = {"stacking": 2, "p_eff": 1, "refitted": 0, "bad_k": 0, "log_score": 3, "brier": 3}
    return (
        str(name),
        number(line["elpd"], 1),
        f"{number(line['difference'], 1)} ± {number(line['difference_se'], 1)}",
        f"{number(line['accuracy'], 3)} ± {number(line['accuracy_se'], 3)}",
        *(number(line[column], digits[column]) for column in more),
    )
