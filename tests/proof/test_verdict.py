"""The verdict study in small: its truth against quadrature, its counts, its page."""

import json

import numpy as np
import pytest
from proof import verdict, verdict_cases
from proof.page import write_page
from proof.verdict_cases import GROUPS, random_case, true_probabilities
from proof.verdict_section import section
from scipy.special import expit, log_expit, log_softmax, softmax

from bayes_gda.data.table import Dataset
from bayes_gda.families.linear.family import Logistic, Softmax


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(verdict_cases, "ROWS", (15, 60))
    monkeypatch.setattr(verdict_cases, "FEATURES", (1, 4))


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("by_chains", [False, True])
def test_the_truth_against_quadrature(K, by_chains, monkeypatch):
    """Intercepts alone matter where the one feature is tiny: a posterior of K numbers, on a grid."""
    if by_chains:
        monkeypatch.setattr(verdict_cases, "SMALL_WORK", 0)
    y = np.array([0, 0, 0, 1, 1, 0, 1, 0] if K == 2 else [0, 0, 1, 2, 0, 1])
    x = np.linspace(-1, 1, len(y))[:, None]
    family = (Logistic if K == 2 else Softmax).bind(
        Dataset(x, y, ("x",), tuple(range(K))), prior_scale=1e-6, intercept_scale=2.0
    )
    case = verdict_cases.Case(family, dict.fromkeys(GROUPS, x[:2]), {})
    found = true_probabilities(case, family.laplace(), 0.2, 0.001, 1)
    grid = np.linspace(-9, 9, 61 if K == 3 else 2001)
    if K == 2:
        log_p = log_expit(grid) * (y == 1).sum() + log_expit(-grid) * (y == 0).sum() - grid**2 / 8
        weight = np.exp(log_p - log_p.max())
        truth = (np.column_stack([expit(-grid), expit(grid)]) * weight[:, None]).sum(axis=0) / weight.sum()
    else:
        a = np.stack(np.meshgrid(grid, grid, grid, indexing="ij"), axis=-1).reshape(-1, 3)
        log_p = log_softmax(a, axis=1) @ np.bincount(y) - (a**2).sum(axis=1) / 8
        weight = np.exp(log_p - log_p.max())
        truth = weight @ softmax(a, axis=1) / weight.sum()
    assert (found.error < 0.004).all()
    assert (np.abs(found.p - truth) < 5 * found.error + 1e-4).all()


def test_cases_are_the_same_again_and_differ_from_each_other(small):
    for multiclass in (False, True):
        one, again, other = (random_case(index, multiclass) for index in (3, 3, 4))
        np.testing.assert_array_equal(one.rows["far"], again.rows["far"])
        assert one.about == again.about != other.about
        assert (one.family.data.K == 2) != multiclass
        assert (one.family.data.class_counts >= 2).all()


def test_a_study_can_be_taken_up_and_is_told_on_the_page(small, tmp_path, monkeypatch):
    arguments = ["--binary", "2", "--multiclass", "1", "--seconds", "0.1", "--folder", str(tmp_path)]
    verdict.main(arguments)
    cache = tmp_path / "cache" / "verdict.jsonl"
    before = cache.read_text()
    assert len(before.splitlines()) == 3
    monkeypatch.setattr(verdict, "judge_case", None)  # known cases are not run again
    verdict.main(arguments)
    assert cache.read_text() == before
    tree = json.loads((tmp_path / "verdict.json").read_text())
    assert tree["summary"]["all"]["cases"] == 3
    page = write_page(tmp_path).read_text()
    assert 'id="verdict"' in page
    assert "3 random logistic and softmax regressions" in page


def record(index, word, beyond, *, false_rows=0, corrected=0.001):
    figures = {
        "rows": 10,
        "noise": 0.001,
        "error": beyond,
        "beyond": beyond,
        "claimed": 8,
        "clear": 8,
        "estimate": 0.01,
    }
    figures |= {"false_rows": false_rows, "corrected_error": corrected}
    about = {"index": index, "multiclass": False, "n": 20, "d": 2, "K": 2, "outcome": "judged", "verdict": word}
    return about | dict.fromkeys(GROUPS, figures)


def test_false_verdicts_are_counted_and_red():
    records = [record(0, "trusted", 0.002), record(1, "trusted", 0.03), record(2, "corrected", 0.001)]
    records += [record(3, "needs-mcmc", 0.5), record(4, "needs-mcmc", 0.5, corrected=0.2, false_rows=2)]
    found = verdict.summarise(records)["all"]
    assert (found["trusted"]["false"], found["trusted"]["of"], found["trusted"]["indices"]) == (1, 2, [1])
    assert (found["corrected"]["false"], found["corrected"]["of"]) == (0, 1)
    assert (found["sampled"]["cases"], found["sampled"]["needless"]) == (2, 1)
    assert found["rows_new"]["false"] == 2
    head = {"cases": records, "summary": verdict.summarise(records), "tolerance": 0.01, "noise": 4.0, "seed": 1}
    html = section(head | {"package": "1", "command": "x"})
    assert "trusted was wrong." in html
    assert "No false verdict corrected was observed." in html
    assert "Claims on single rows were wrong." in html


def test_the_bound_of_a_rate():
    """No event in n trials: 1 − .05^{1/n}, the rule of three."""
    assert verdict.rate(0, 100)["at_most"] == pytest.approx(1 - 0.05 ** (1 / 100), abs=1e-4)
    assert verdict.rate(0, 0)["at_most"] == 1
