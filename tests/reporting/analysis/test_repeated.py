"""Cross-validation in a report is scikit-learn's, and how often it is repeated depends on the data alone."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, log_loss

from bayes_gda.data.examples import load_example
from bayes_gda.data.moments import Moments
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.families.gaussian.exact import lda_posterior
from bayes_gda.families.registry import get_family
from bayes_gda.methods.ladder import fit_every
from bayes_gda.methods.settings import Settings
from bayes_gda.priors import NIW
from bayes_gda.reporting.analysis import repeated
from bayes_gda.reporting.analysis.repeated import FOLDS, cross_validate


def cards(data, *names):
    out = {}
    for name in names:
        family = get_family(name)
        fitted = fit_every(family.bind(family.prepare(data, "auto")), Settings(), sampling=False)
        out[name] = Scorecard.of_fit(fitted, data, None, Settings())
    return out


def test_scores_are_the_means_over_folds_fitted_by_hand(monkeypatch):
    data = load_example("pima").subset(np.arange(0, 532, 2))
    monkeypatch.setattr(repeated, "MOST_REPEATS", 2)
    found = cross_validate(cards(data, "lda", "logistic"), data, quick=True)
    assert (found.folds, found.repeats, found.rows) == (FOLDS, 2, 266)
    assert found.methods == {"lda": "exact", "logistic": "ep"}
    losses, hits, constant = [], [], []
    for seed in range(2):
        # The folds are dealt class by class.
        rng = np.random.default_rng(seed)
        order = np.concatenate([rng.permutation(np.flatnonzero(data.y == k)) for k in range(2)])
        fold = np.empty(data.n, dtype=int)
        fold[order] = np.arange(data.n) % FOLDS
        P = np.empty((data.n, 2))
        for f in range(FOLDS):
            train = data.subset(fold != f)
            moments = Moments.from_arrays(train.X, train.y, 2)
            joint = lda_posterior(moments, NIW.default(moments)).log_joint(data.X[fold == f])
            shares = np.log((train.class_counts + 1) / (train.n + 2))  # a row is added to each class
            constant.extend(shares[data.y[fold == f]])
            P[fold == f] = np.exp(joint - np.logaddexp(*joint.T)[:, None])
        losses.append(log_loss(data.y, P))
        hits.append(accuracy_score(data.y, P.argmax(axis=1)))
    line = found.table.loc["lda"]
    assert line["log_score"] == pytest.approx(-np.mean(losses), rel=1e-9)
    assert line["accuracy"] == pytest.approx(np.mean(hits), rel=1e-9)
    assert sorted([line["least"], line["most"]]) == pytest.approx(sorted(-np.array(losses)), rel=1e-9)
    # The best model has no difference from itself; the other's is that of the mean scores.
    best, other = found.table.index
    assert found.table.loc[best, "difference"] == 0
    gap = found.table.loc[other, "log_score"] - found.table.loc[best, "log_score"]
    assert found.table.loc[other, "difference"] == pytest.approx(gap, rel=1e-9)
    assert found.baseline == pytest.approx(np.mean(constant), rel=1e-9)
    assert line["gain"] == pytest.approx(line["log_score"] - found.baseline, rel=1e-9)
    assert 0 < line["gain_se"] < line["log_score_se"] + 0.05
    assert 0 < found.table.loc[other, "difference_se"] < found.table.loc[other, "log_score_se"]


def test_what_would_take_long_is_not_done(monkeypatch):
    data = load_example("iris")
    models = cards(data, "qda")
    assert cross_validate(models, data, quick=True).repeats == repeated.MOST_REPEATS
    monkeypatch.setattr(repeated, "QUICK_SECONDS", 0.9 * cross_validate(models, data, quick=True).seconds)
    found = cross_validate(models, data, quick=True)
    assert (found.repeats, found.table) == (0, None)
    assert found.reason == f"It would take about {found.seconds:.0f} seconds of one core a repetition."
    rare = data.subset(np.r_[0:50, 50:100, 100:102])
    assert cross_validate(cards(rare, "naive"), rare, quick=True).reason == (
        "Class “virginica” has 2 rows; each class needs 3."
    )


def test_a_model_without_a_closed_form_or_a_mode_says_why_it_is_left_out():
    data = load_example("iris")
    X = data.X.copy()
    X[::10, 1] = np.nan
    kept = Dataset.from_arrays(X, data.y, missing="keep")
    family = get_family("lda")
    with pytest.raises(DataError, match="neither a closed form nor a mode, and folds are not fitted by sampling"):
        repeated._fit(family.bind(family.prepare(kept, "auto")), Settings())


def test_a_model_that_fails_costs_itself_alone(monkeypatch):
    data = load_example("iris")
    models = cards(data, "qda", "naive")
    monkeypatch.setattr(type(models["naive"].fitted.family), "exact", lambda self: 1 / 0)
    found = cross_validate(models, data, quick=True)
    assert list(found.table.index) == ["qda"]
    assert "division by zero" in found.left_out["naive"]
