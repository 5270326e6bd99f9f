"""The truth of the verdict study against quadrature, and the study itself on a few cases."""

import json

import numpy as np
import pytest
from proof import verdict_study
from proof.split_hmc import sample_truth
from scipy.special import expit, log_expit

from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.priors import Normal


@pytest.mark.parametrize("weighted", [False, True])
def test_split_hmc_against_quadrature(weighted):
    """A skew posterior of one weight: 8 rows, separated."""
    x = np.array([0.3, 0.8, 1.5, 2.0, -0.5, -1.0, 0.9, -0.2])
    y, weight = (x > 0).astype(float), np.array([1, 2, 0.5, 1, 1, 1, 3, 1]) if weighted else None
    target = LogisticTarget(x[:, None], y, Normal(scale=2.5), weight)
    grid = np.linspace(-15, 25, 40_001)
    c = np.ones(8) if weight is None else weight
    log_p = log_expit(np.outer(grid, x * (2 * y - 1))) @ c - grid**2 / (2 * 2.5**2)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    rows = np.array([[-1.0], [0.3], [1.0], [3.0]])
    truth = sample_truth(target, regression_laplace(target), rows, seconds=0.5, random_seed=1)
    assert (truth.error < 0.002).all()
    assert (np.abs(truth.p - expit(rows * grid) @ p) < 4.5 * truth.error).all()
    assert truth.mean[0] == pytest.approx(p @ grid, abs=0.03)
    assert truth.acceptance > 0.8


def test_a_study_of_two_small_cases(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(verdict_study, "ROWS", (30, 60))
    monkeypatch.setattr(verdict_study, "FEATURES", (1, 4))
    output = tmp_path / "cases.jsonl"
    arguments = ["--cases", "2", "--seconds", "0.1", "--output", str(output)]
    verdict_study.main(arguments)
    records = [json.loads(line) for line in output.read_text().splitlines()]
    assert [record["seed"] for record in records] == [0, 1]
    for record in records:
        for group in verdict_study.GROUPS:
            figures = record[group]
            assert figures["better"] < figures["laplace"] + 4 * figures["noise"]
            assert abs(figures["laplace"] - figures["gap"]) <= figures["better"] + 1e-6 or group == "training"
    before = output.read_text()
    verdict_study.main(arguments)  # known cases are not run again
    assert output.read_text() == before
    assert "2 cases" in capsys.readouterr().out


def test_an_upper_bound_of_a_rate():
    """No event in n trials: 1 − .05^{1/n}, the rule of three."""
    assert verdict_study._upper(0, 100) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert verdict_study._upper(0, 0) == 1
