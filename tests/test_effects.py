"""Effects: those of statsmodels in the flat-prior limit, by hand on a few draws, and what they refuse."""

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from sklearn.base import clone

from bayes_gda import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
    load_example,
)
from bayes_gda.effects import comparisons, predictions, slopes
from bayes_gda.errors import DataError
from bayes_gda.estimators import BayesianMixture, BayesianNaive, BayesianStudent
from bayes_gda.prediction.effects import average_comparison, average_prediction

RNG = np.random.default_rng(0)
N = 3000
FRAME = pd.DataFrame(
    {
        "age": RNG.normal(50, 10, N),
        "sex": RNG.choice(["f", "m"], N),
        "smoker": RNG.random(N) < 0.3,
        "bmi": RNG.normal(size=N),
    }
)
ETA = 0.05 * (FRAME["age"] - 50) + 0.8 * (FRAME["sex"] == "m") + 0.6 * FRAME["smoker"] - 0.4 * FRAME["bmi"] - 0.5
Y = np.where(RNG.random(N) < 1 / (1 + np.exp(-ETA)), "ill", "well")
QUICK = {"draws": 50, "inference": "laplace"}
OTHERS = [
    BayesianLDA(draws=50),
    BayesianQDA(draws=50),
    BayesianNaiveGaussian(draws=50),
    BayesianNaive(draws=50),
    BayesianRDA(draws=50),
    BayesianStudent(scales="shared", **QUICK),
    BayesianMixture(components=1, covariances="shared", **QUICK),
]
FLAT = {"prior_scale": np.inf, "intercept_scale": np.inf, "inference": "laplace", "draws": 2000}


@pytest.fixture(scope="module")
def model():
    return BayesianLogisticRegression(**FLAT).fit(FRAME, Y)


@pytest.fixture(scope="module")
def margins():
    design = pd.DataFrame(
        {"age": FRAME["age"], "m": FRAME["sex"] == "m", "smoker": FRAME["smoker"], "bmi": FRAME["bmi"]}
    ).astype(float)
    fitted = sm.Logit((Y == "well").astype(float), sm.add_constant(design)).fit(disp=0)
    return fitted.get_margeff(dummy=True).summary_frame()


def of_class(table, label="well"):
    return table[table["class"] == label].iloc[0]


@pytest.mark.parametrize("name", ["age", "bmi"])
def test_slopes_are_the_marginal_effects_of_statsmodels(model, margins, name):
    ours, theirs = of_class(slopes(model, FRAME, name)), margins.loc[name]
    assert ours["estimate"] == pytest.approx(theirs["dy/dx"], abs=0.06 * theirs["Std. Err."])
    assert ours["sd"] == pytest.approx(theirs["Std. Err."], rel=0.05)


@pytest.mark.parametrize(("name", "theirs"), [("sex", "m"), ("smoker", "smoker")])
def test_comparisons_are_the_discrete_changes_of_statsmodels(model, margins, name, theirs):
    ours, line = of_class(comparisons(model, FRAME, name)), margins.loc[theirs]
    assert ours["estimate"] == pytest.approx(line["dy/dx"], abs=0.06 * line["Std. Err."])
    assert ours["sd"] == pytest.approx(line["Std. Err."], rel=0.05)


def test_the_changes_of_all_classes_cancel(model):
    table = comparisons(model, FRAME, "sex")
    assert table["estimate"].sum() == pytest.approx(0, abs=1e-12)
    ill, well = of_class(table, "ill"), of_class(table, "well")
    assert ill["P(> 0)"] == pytest.approx(1 - well["P(> 0)"])
    assert ill["P(> 0)"] > 0.99
    assert ill["5%"] < ill["estimate"] < ill["95%"]
    assert ill["contrast"] == "m − f"


def test_predictions_average_to_the_observed_shares(model):
    """The score equations of a flat prior: mean predicted probabilities of a dummy's groups are the observed shares."""
    table = predictions(model, FRAME, by="sex")
    for sex in ("f", "m"):
        share = (Y[FRAME["sex"] == sex] == "well").mean()
        found = table[(table["sex"] == sex) & (table["class"] == "well")]["estimate"].iloc[0]
        assert found == pytest.approx(share, abs=0.003)


@pytest.mark.parametrize("sex", ["f", "m"])
def test_slopes_by_group_are_those_of_statsmodels(model, sex):
    """Its marginal effects of each row, averaged over the rows of the group."""
    design = sm.add_constant(FRAME.assign(sex=FRAME["sex"] == "m").astype(float))
    fitted = sm.Logit((Y == "well").astype(float), design).fit(disp=0)
    rows = np.asarray(fitted.get_margeff(at="all").margeff).reshape(N, -1)
    group = (FRAME["sex"] == sex).to_numpy()
    for name, theirs in zip(("age", "bmi"), rows[group][:, [0, 3]].mean(axis=0), strict=True):
        table = slopes(model, FRAME, name, by="sex")
        ours = of_class(table[table["sex"] == sex])
        assert ours["estimate"] == pytest.approx(theirs, abs=0.06 * ours["sd"])


@pytest.mark.parametrize("estimator", OTHERS, ids=lambda estimator: type(estimator).__name__)
def test_effects_of_every_estimator(estimator):
    """The data have one truth, of which every model with a linear or local boundary finds the signs."""
    some, labels = FRAME[:400], Y[:400]
    fitted = clone(estimator).fit(some, labels)
    for table in (
        slopes(fitted, some, "age"),
        slopes(fitted, some, "age", by="sex"),
        comparisons(fitted, some, "sex"),
        comparisons(fitted, some, "smoker", by="sex"),
    ):
        well = table[table["class"] == "well"]
        assert (well["estimate"] < 0).all()
        assert (well["5%"] < well["estimate"]).all()
        assert (well["estimate"] < well["95%"]).all()
        assert well["P(> 0)"].between(0, 0.3).all()
    shares = predictions(fitted, some, by="sex")
    np.testing.assert_allclose(shares.groupby("sex")["estimate"].sum(), 1, rtol=1e-9)


def test_groups_average_to_the_whole(model):
    some = FRAME[:500]
    whole, parts = of_class(slopes(model, some, "age")), slopes(model, some, "age", by="sex")
    parts = parts[parts["class"] == "well"].set_index("sex")["estimate"]
    share = (some["sex"] == "m").mean()
    assert share * parts["m"] + (1 - share) * parts["f"] == pytest.approx(whole["estimate"], rel=1e-9)


def test_the_core_is_the_mean_over_rows_of_each_draw():
    data = load_example("iris")
    fitted = BayesianLDA(draws=20, chains=1).fit(data).model_
    draws = fitted.draw_variables(20, random_seed=0)
    X = data.X[:7]
    high = X + np.array([0, 0, 0.5, 0])
    P, Q = fitted.probability_draws(draws, X)[0], fitted.probability_draws(draws, high)[0]
    effect = average_comparison(fitted, draws, X, high, step=0.5)
    np.testing.assert_allclose(effect.draws[:, 0], (Q - P).mean(axis=1) / 0.5, atol=1e-12)
    groups = np.array([0, 0, 1, 1, 1, 0, 1])
    by = average_prediction(fitted, draws, X, groups)
    np.testing.assert_allclose(by.draws[:, 1], P[:, groups == 1].mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(by.interval(0.5)[1, 2], np.quantile(by.draws[:, 1, 2], [0.25, 0.75]))


def test_values_arrays_and_other_models(model):
    given = of_class(comparisons(model, FRAME[:200], "age", values=(40, 60)))
    assert given["contrast"] == "60 − 40"
    assert given["estimate"] < 0
    plain = BayesianLDA(draws=50).fit(FRAME[["age", "bmi"]].to_numpy(), Y)
    assert len(slopes(plain, FRAME[["age", "bmi"]].to_numpy()[:50], "x1")) == 2


def test_odds_ratios_of_the_summary_are_per_unit_of_the_column(model):
    """By the maximum-likelihood estimates of statsmodels, whose odds ratios are exp(β)."""
    design = FRAME.assign(sex=FRAME["sex"] == "m").astype(float)
    fitted = sm.Logit((Y == "well").astype(float), sm.add_constant(design)).fit(disp=0)
    table = model.summary()
    for ours, theirs in (("w[age]", "age"), ("w[sex[m]]", "sex"), ("w[smoker]", "smoker"), ("w[bmi]", "bmi")):
        assert np.log(table.loc[ours, "odds_ratio"]) == pytest.approx(
            fitted.params[theirs], abs=0.06 * fitted.bse[theirs]
        )
        low, high = fitted.conf_int(0.1).loc[theirs]
        found = np.log(table.loc[ours, ["odds_ratio_5%", "odds_ratio_95%"]].to_numpy(dtype=float))
        np.testing.assert_allclose(found, [low, high], atol=0.1 * fitted.bse[theirs])
    assert np.isnan(table.loc["w[intercept]", "odds_ratio"])
    np.testing.assert_allclose(model.coef_[0], fitted.params[["age", "sex", "smoker", "bmi"]], rtol=1e-4)
    np.testing.assert_allclose(model.intercept_, fitted.params["const"], rtol=1e-4)


def test_what_effects_refuse(model):
    with pytest.raises(DataError, match=r"no column 'agee'\. Did you mean 'age'"):
        slopes(model, FRAME, "agee")
    with pytest.raises(DataError, match="'sex' holds levels"):
        slopes(model, FRAME, "sex")
    with pytest.raises(DataError, match="`values` must be two values"):
        comparisons(model, FRAME, "age", values=(1, 2, 3))
    with pytest.raises(DataError, match="`prob` must lie between 0 and 1"):
        predictions(model, FRAME, prob=1.5)


def test_counts_have_no_slope_in_a_model_of_counts():
    """Their slope was 0: the model takes what lies between two counts for missing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"children": rng.poisson(1.5, 200), "age": rng.normal(size=200)})
    fitted = BayesianNaive(draws=50).fit(frame, np.where(frame["children"] + rng.normal(size=200) > 1.5, "a", "b"))
    with pytest.raises(DataError, match=r"'children' holds counts or levels. Use comparisons"):
        slopes(fitted, frame, "children")
    assert slopes(fitted, frame, "age")["estimate"].notna().all()
    assert comparisons(fitted, frame, "children")["estimate"].abs().min() > 0.05
