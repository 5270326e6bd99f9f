"""Effects are differences of predictions; odds ratios those of the weights."""

import numpy as np
import pandas as pd
import pytest

from bayes_gda.data.examples import load_example
from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.scorecard import Scorecard
from bayes_gda.families.registry import get_family
from bayes_gda.methods.ladder import fit
from bayes_gda.methods.settings import Settings
from bayes_gda.reporting.analysis.effects import effects, linear_log_odds, partial_effects
from bayes_gda.reporting.analysis.explore import contributions


def card(model, data, **options):
    settings = Settings(**options)
    family = get_family(model)
    fitted = fit(family.bind(family.prepare(data, settings.inference)), settings)
    return Scorecard.of_fit(fitted, data, None, settings)


def test_odds_ratios_of_logistic_regression_are_its_weights():
    data = load_example("pima")
    fitted = card("logistic", data, inference="laplace")
    found = effects(fitted, 0.9).odds.set_index("feature")
    posterior = fitted.fitted.gaussian
    np.testing.assert_allclose(np.log(found["per_sd"]), posterior.mean[1:], atol=5 * posterior.sd[1:].max() / 30)
    np.testing.assert_allclose(np.log(found["per_unit"]), np.log(found["per_sd"]) / data.X.std(axis=0), rtol=1e-9)
    width = np.log(found["per_sd_upper"]) - np.log(found["per_sd_lower"])
    np.testing.assert_allclose(width, 2 * 1.645 * posterior.sd[1:], rtol=0.15)


def test_the_log_odds_of_lda_are_linear_and_those_of_qda_are_not():
    data = load_example("pima")
    lda = card("lda", data)
    slopes = linear_log_odds(lda.model, data)
    variables = lda.model.draw_variables(1000, random_seed=0)
    mu, Sigma = variables["mu"], variables["Sigma"]
    truth = np.linalg.solve(Sigma, (mu[:, 1] - mu[:, 0])[..., None])[..., 0] * data.X.std(axis=0)
    np.testing.assert_allclose(slopes[:, 0], truth, rtol=1e-6, atol=1e-8)
    assert linear_log_odds(card("qda", data).model, data) is None
    assert effects(card("qda", data), 0.9).odds is None


@pytest.mark.parametrize("model", ["logistic", "naive"])
def test_average_effects_are_differences_of_mean_predictions(model):
    data = load_example("pima")
    fitted = card(model, data)
    found = effects(fitted, 0.9).average.set_index("feature")
    rows = np.linspace(0, data.n - 1, 200).round().astype(int)
    for name in ("glu", "age"):
        j = data.feature_names.index(name)
        step = np.zeros(data.d)
        step[j] = data.X[:, j].std() / 2
        high, low = (np.exp(fitted.model.log_probabilities(data.X[rows] + s * step))[:, 1].mean() for s in (1, -1))
        line = found.loc[name]
        assert line["estimate"] == pytest.approx(high - low, abs=0.01)
        assert line["lower"] < line["estimate"] < line["upper"]
        assert line["positive"] == pytest.approx(1.0, abs=0.05)


def test_levels_are_compared_with_the_first_one_and_two_values_with_each_other():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"x": rng.normal(size=120), "z": rng.choice(list("abc"), 120), "two": rng.integers(2, size=120)}
    )
    frame["y"] = (frame["x"] + 2 * (frame["z"] == "c") + rng.normal(size=120) > 0.5).map({True: "yes", False: "no"})
    data = Dataset.from_frame(frame, target="y")
    fitted = card("logistic", data)
    found = effects(fitted, 0.9)
    average, odds = found.average.set_index("feature"), found.odds.set_index("feature")
    assert average.loc["z[c]", "change"] == "c instead of a"
    assert average.loc["two", "change"] == "from 0 to 1"
    assert average.loc["x", "change"].startswith("by 1 sd")
    X = np.array(data.X[np.linspace(0, 119, 120).round().astype(int)])
    first, third = X.copy(), X.copy()
    first[:, 1:3], third[:, 1:3] = 0, [0, 1]
    change = [np.exp(fitted.model.log_probabilities(x))[:, 1].mean() for x in (third, first)]
    assert average.loc["z[c]", "estimate"] == pytest.approx(change[0] - change[1], abs=0.02)
    assert np.isnan(odds.loc["two", "per_sd"])
    assert found.reference == "no"


def test_of_many_features_the_strongest_are_shown_and_the_rest_counted():
    """Caravan has 86 features: the ones that matter stand last, and were never looked at."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 50))
    y = np.where(X[:, 49] - X[:, 48] + 0.5 * rng.normal(size=300) > 0, "yes", "no")
    data = Dataset.from_arrays(X, y)
    found = effects(card("logistic", data, inference="laplace"), 0.9)
    assert len(found.average) == 40
    assert found.left_out == 10
    assert set(data.feature_names[48:]) <= set(found.average["feature"])
    assert len(found.odds) == 50


def test_average_effects_and_odds_ratios_agree_on_the_direction():
    data = load_example("pima")
    found = effects(card("logistic", data), 0.9)
    pd.testing.assert_series_equal(
        found.average.set_index("feature")["positive"], found.odds.set_index("feature")["positive"]
    )


def test_odds_ratios_of_large_and_small_units_can_be_read():
    """Chile's population had 1.0000014 (0.99999905 to 1.0000038) per inhabitant."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(300, 3)) * [150_000, 1, 0.003]
    y = np.where(X @ [1 / 150_000, 1, 1 / 0.003] + rng.normal(size=300) > 0, "yes", "no")
    odds = effects(card("logistic", Dataset.from_arrays(X, y), inference="laplace"), 0.9).odds
    assert odds["unit"].tolist() == [100_000, 1, 0.001]
    np.testing.assert_allclose(np.log(odds["per_unit"]), np.log(odds["per_sd"]) * odds["unit"] / X.std(axis=0))


def test_the_odds_ratio_of_two_values_is_that_of_one_against_the_other():
    rng = np.random.default_rng(0)
    two = rng.choice([0.0, 10.0], size=200)
    y = np.where(rng.random(200) < np.where(two > 0, 0.7, 0.3), "yes", "no")
    data = Dataset.from_arrays(np.column_stack([two, rng.normal(size=200)]), y)
    fitted = card("logistic", data, inference="laplace")
    slopes = linear_log_odds(fitted.model, data)[:, 0, 0].mean() / two.std()
    line = effects(fitted, 0.9).odds.iloc[0]
    assert np.log(line["per_unit"]) == pytest.approx(10 * slopes)
    table = pd.crosstab(two, y)
    assert np.log(line["per_unit"]) == pytest.approx(
        np.log(table.iloc[1, 1] * table.iloc[0, 0] / (table.iloc[1, 0] * table.iloc[0, 1])), abs=0.15
    )


def test_partial_effects_are_mean_predictions_with_the_feature_set():
    data = load_example("pima")
    models = {name: card(name, data) for name in ("logistic", "naive")}
    found = partial_effects(models, "logistic", effects(models["logistic"], 0.9).average, 0.9)
    assert len({curve.feature for curve in found}) == 6
    assert found[0].feature == "glu"
    rows = np.linspace(0, data.n - 1, 60).round().astype(int)
    for curve in found:
        j = data.feature_names.index(curve.feature)
        X = data.X[rows].copy()
        X[:, j] = curve.x[-1]
        truth = np.exp(models[curve.model].model.log_probabilities(X))[:, 1].mean()
        if curve.model == "logistic":
            # From 200 draws; the band holds the mean.
            assert curve.mean[-1] == pytest.approx(truth, abs=0.02)
            assert (curve.lower < curve.mean).all()
            assert (curve.mean < curve.upper).all()
        else:
            assert curve.mean[-1] == pytest.approx(truth, rel=1e-9)
            assert curve.lower is None


def test_of_several_classes_the_chosen_model_has_a_curve_for_each():
    data = load_example("iris")
    models = {"qda": card("qda", data), "naive": card("naive", data)}
    found = partial_effects(models, "qda", effects(models["qda"], 0.9).average, 0.9)
    assert {curve.model for curve in found} == {"qda"}
    assert len(found) == 4 * 3
    for at in range(0, 12, 3):
        np.testing.assert_allclose(sum(curve.mean for curve in found[at : at + 3]), 1.0)


def counted_rows():
    """Rows of two classes whose counts have means 1 and 2, beside a measurement."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 300)
    X = np.column_stack([rng.poisson(1.0 + y), rng.normal(0.3 * y, 1.0)]).astype(float)
    return Dataset.from_arrays(X, y, feature_names=["k5", "wage"])


def test_counts_change_in_whole_numbers():
    """Mroz: the strongest feature, a count, had an effect of 0.000: a model of counts sees nothing between them."""
    data = counted_rows()
    fitted = card("mixed", data)
    assert 0 in fitted.model.discrete_features
    line = effects(fitted, 0.9).average.set_index("feature").loc["k5"]
    assert line["change"].startswith("by 1 (1 sd is 1.")
    rows = np.linspace(0, data.n - 1, 200).round().astype(int)
    low, high = data.X[rows].copy(), data.X[rows].copy()
    low[:, 0] = np.minimum(low[:, 0], data.X[:, 0].max() - 1)
    high[:, 0] = low[:, 0] + 1
    P = [np.exp(fitted.model.log_probabilities(X))[:, 1].mean() for X in (low, high)]
    assert line["estimate"] == pytest.approx(P[1] - P[0], abs=0.02)
    assert line["estimate"] > 0.1
    assert line["positive"] > 0.99
    curve = next(c for c in partial_effects({"mixed": fitted}, "mixed", effects(fitted, 0.9).average, 0.9))
    assert curve.feature == "k5"
    assert set(curve.x) <= set(data.X[:, 0])
    assert (np.diff(curve.mean) > 0).all()


def test_a_count_is_compared_with_the_nearest_one_to_its_mean():
    data = counted_rows()
    fitted = card("mixed", data)
    fitted = Scorecard.of_fit(fitted.fitted, data, data, Settings())
    mean = data.X[:, 0].mean()
    at = np.flatnonzero(data.X[:, 0] == round(mean))[:3]
    assert mean != round(mean)
    np.testing.assert_allclose(contributions(fitted, at)[:, 0], 0.0, atol=1e-12)
