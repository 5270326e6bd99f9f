"""Checks of columns by their type: level under the model, departures that are found by name."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from bayes_gda.data.table import Dataset
from bayes_gda.families.mixed.assumptions import normal_scores
from bayes_gda.families.registry import get_family


def frame(n, seed):
    """Two classes of independent columns: log-normal, gamma, count, yes or no, category."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    columns = {
        "income": rng.lognormal(0.4 * y, 0.7),
        "wait": rng.gamma(2.0 + y),
        "visits": rng.poisson(1.5 + y).astype(float),
        "member": rng.random(n) < 0.3 + 0.3 * y,
        "ward": rng.choice(["north", "south", "west"], n),
        "y": np.where(y == 1, "yes", "no"),
    }
    return pd.DataFrame(columns)


def check(table):
    data = Dataset.from_frame(table, target="y")
    return {c.assumption: c for c in get_family("mixed").bind(data).assumptions(None, 0).checks}


def test_levels():
    found = [check(frame(160, seed)) for seed in range(60)]
    for name in ("distributions of the columns", "independent columns"):
        p = np.array([checks[name].p_value for checks in found])
        for level in (0.05, 0.2):
            # The distributions are chosen and fitted by the same rows, which makes the check a little cautious.
            assert (p <= level).mean() <= level + 3 * np.sqrt(level * (1 - level) / 60)
    assert np.mean([c["independent columns"].p_value <= 0.5 for c in found]) > 0.2


def test_scores_of_the_model_are_standard_normal():
    data = Dataset.from_frame(frame(4000, 0), target="y")
    family = get_family("mixed").bind(data)
    model = family.exact().model
    X = np.column_stack(model.read(data.X)[:3])
    Z = normal_scores(model, [0, 1, 2], X, data.y, np.random.default_rng(1))
    for z in Z.T:
        assert kstest(z, "norm").pvalue > 0.01


def test_departures_are_found_by_name():
    table = frame(300, 1)
    rng = np.random.default_rng(2)
    table["bimodal"] = rng.normal(size=300) + 4 * rng.choice([-1, 1], 300)
    shape = check(table)["distributions of the columns"]
    assert shape.p_value < 0.001
    assert shape.worst.where.startswith("excess kurtosis of bimodal in")
    assert check(table)["independent columns"].p_value > 0.01
    table["again"] = table["income"] * rng.lognormal(0, 0.3, 300)
    joint = check(table)["independent columns"]
    assert joint.p_value < 0.01
    assert "too extreme" in joint.remedy


def test_categories_alone_have_nothing_to_check():
    table = frame(100, 3)[["ward", "y"]].assign(colour=np.random.default_rng(4).choice(["red", "blue", "green"], 100))
    [only] = check(table).values()
    assert np.isnan(only.p_value)
    assert "all columns are categories" in only.note


@pytest.mark.parametrize("gaps", [False, True])
def test_rows_with_gaps_are_left_out(gaps):
    table = frame(200, 5)
    if gaps:
        table.loc[::9, "wait"] = np.nan
    data = Dataset.from_frame(table, target="y", missing="keep" if gaps else "error")
    checks = get_family("mixed").bind(data).assumptions(None, 0).checks
    assert all(np.isfinite(c.p_value) for c in checks)
