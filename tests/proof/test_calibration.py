"""The proof of calibration: its formulas against known answers, and a small version of the whole."""

import json
import re
import warnings
from dataclasses import replace
from urllib.parse import unquote
from xml.etree import ElementTree

import numpy as np
import pytest
from proof import calibration
from proof.calibration_coverage import DRAWS, covered, fit, intervals, simulate
from proof.calibration_section import section
from proof.calibration_splits import BINS, FLOOR, SMALL, compare, corrected_t, draw_split, pools, score
from proof.calibration_words import split_sentences
from sklearn.metrics import brier_score_loss, log_loss

from bayes_gda.prediction.uncertainty import interval

SMALL_PLAN = calibration.Plan(
    data=("iris",),
    sizes=("few",),
    splits=3,
    models=("lda",),
    rows=(20,),
    simulations=4,
    corrected=2,
    sampled=0,
    truths=("gaussian-2", "exponential"),
    gaussian_replicates=5,
    other_replicates=5,
    learning_rows=(40, 80),
)


# ── Splits ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_corrected_t_of_a_worked_example():
    # d = 1, 2, 3, 4, 5: mean 3, s² = 2.5; ninety rows to learn, ten to test: se² = (1/5 + 1/9) 2.5 = 7/9.
    # t = 3/√(7/9) = 3.4017 with 4 degrees of freedom, whose distribution is elementary:
    # P(|T| > t) = 1 − t(t² + 6)/(t² + 4)^{3/2}.
    mean, se, p = corrected_t([1, 2, 3, 4, 5], 1 / 9)
    t = 3 / np.sqrt(7 / 9)
    assert mean == 3
    assert se == pytest.approx(np.sqrt(7 / 9))
    assert p == pytest.approx(1 - t * (t**2 + 6) / (t**2 + 4) ** 1.5)


def test_without_overlap_it_is_the_usual_t():
    from scipy.stats import ttest_1samp

    d = np.random.default_rng(0).normal(0.3, 1, 30)
    assert corrected_t(d, 0.0)[2] == pytest.approx(ttest_1samp(d, 0).pvalue)


def test_equal_scores_tie():
    assert corrected_t(np.zeros(10), 0.5) == (0.0, 0.0, 1.0)


def test_verdicts_have_the_right_sign():
    def results(ours, theirs):
        return [
            {"n_train": 20, "n_test": 10, "scores": {"a": {"s": ours + i % 2}, "b": {"s": theirs + (i + 1) % 2}}}
            for i in range(40)
        ]

    assert compare(results(0, 9), "a", "b", "s")["verdict"] == "win"
    assert compare(results(9, 0), "a", "b", "s")["verdict"] == "lose"
    assert compare(results(0, 0), "a", "b", "s")["verdict"] == "tie"
    missing = [r | {"scores": {"a": {"s": 1}, "b": None}} for r in results(0, 0)]
    assert compare(missing, "a", "b", "s") is None


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    P, t = rng.dirichlet(np.ones(3), 50), rng.integers(3, size=50)
    found = score(P, t)
    assert found["log_loss"] == pytest.approx(log_loss(t, P, labels=[0, 1, 2]))
    assert found["brier"] == pytest.approx(brier_score_loss(t, P, labels=[0, 1, 2], scale_by_half=False))
    assert found["error"] == np.mean(P.argmax(axis=1) != t)
    sure = score(np.array([[1.0, 0.0]] * 4), np.array([0, 0, 0, 1]))
    assert sure["impossible"] == 1
    assert sure["log_loss"] == pytest.approx(-np.log(FLOOR) / 4)


def test_debiased_ece_of_calibrated_forecasts_is_zero_on_average():
    rng = np.random.default_rng(2)
    found = []
    for i in range(200):
        p = rng.uniform(0.1, 0.9, 40)
        t = (rng.random(40) < p).astype(int)
        found.append(score(np.column_stack([1 - p, p]), t, random_seed=i))
    ece, plain = (np.array([f[key] for f in found]) for key in ("ece", "ece_plain"))
    assert abs(ece.mean()) < 4 * ece.std() / np.sqrt(len(ece))
    assert plain.mean() > 0.08  # √(p(1−p)/8 rows a bin · 2/π), the bias that is taken away
    assert BINS == 5


@pytest.mark.parametrize(("name", "size"), [("iris", "few"), ("penguins", "most"), ("synth", "most")])
def test_splits_are_disjoint_stratified_and_repeatable(name, size):
    a, b = draw_split(name, size, 0), draw_split(name, size, 1)
    again = draw_split(name, size, 0)
    np.testing.assert_array_equal(a.X, again.X)
    assert not np.array_equal(a.X, b.X)
    X, y, *_ = pools(name)
    assert len(a.X) == (SMALL if size == "few" else round(2 * len(X) / 3))
    share = np.bincount(y) / len(y)
    assert np.abs(np.bincount(a.y) / len(a.y) - share).max() < 0.04
    if name == "penguins":  # no two penguins are alike
        assert not {*map(tuple, a.X)} & {*map(tuple, a.Z)}
    assert np.isfinite(a.X).all()


# ── Coverage ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def shares():
    """Shares (S, 2) of the intervals of probability .9 and .75 that hold the truth."""
    return np.array([covered(simulate("lda", "prior", 20, i), "exact", i, [0.9, 0.75])[0] for i in range(200)])


def test_exact_intervals_cover_what_they_promise(shares):
    mean, error = shares[:, 0].mean(), shares[:, 0].std(ddof=1) / np.sqrt(len(shares))
    assert error < 0.02
    assert abs(mean - 0.9) < 3 * error


def test_narrow_intervals_are_found_out(shares):
    mean, error = shares[:, 1].mean(), shares[:, 1].std(ddof=1) / np.sqrt(len(shares))
    assert abs(mean - 0.9) > 3 * error


@pytest.mark.parametrize(("model", "method"), [("qda", "exact"), ("logistic", "laplace"), ("softmax", "laplace")])
def test_intervals_are_those_of_the_package(model, method):
    simulation = simulate(model, "fixed", 50, 0)
    fitted, _ = fit(simulation.family, method, 3)
    (low, high), _ = intervals(fitted, simulation.new, [0.9, 0.5], 3)
    ends = interval(fitted, simulation.new, prob=0.9, size=DRAWS, random_seed=3)[:, 1:]
    np.testing.assert_allclose(np.stack([low, high], axis=-1), ends)


def test_true_probabilities_are_those_of_the_labels():
    # Given θ the labels of new rows are 1 with the stated probability: their difference is noise.
    from proof.calibration_coverage import draw_parameters, draw_rows, probabilities

    rng = np.random.default_rng(5)
    for model in ("lda", "qda", "naive", "logistic", "softmax"):
        theta = draw_parameters(model, rng)
        X, y = draw_rows(theta, 20_000, rng)
        P = probabilities(theta, X)
        for k in range(P.shape[1]):
            gap, sd = (y == k) - P[:, k], np.sqrt((P[:, k] * (1 - P[:, k])).mean() / len(y))
            assert abs(gap.mean()) < 4 * sd + 1e-9
            # And where p is high, too.
            assert abs((gap * P[:, k]).mean()) < 4 * sd + 1e-9


# ── The whole ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_small_version_runs_resumes_and_renders(tmp_path, monkeypatch):
    whole = calibration.run(SMALL_PLAN, tmp_path, processes=1, shown=False)
    written = (tmp_path / "calibration.json").read_bytes()
    every = list(calibration.tasks(SMALL_PLAN))
    files = sorted(tmp_path.glob("cache/calibration/*"))
    assert len(files) == len(every) == len({task.file for task in every})

    # Taken up after two tasks were lost, only these are done, and the numbers are the same.
    done = []
    perform = calibration.perform
    monkeypatch.setattr(calibration, "perform", lambda task: done.append(task) or perform(task))
    lost = [next(task for task in every if task.kind == kind) for kind in ("coverage", "learning")]
    for task in lost:
        (tmp_path / "cache" / "calibration" / task.file).unlink()
    again = calibration.run(SMALL_PLAN, tmp_path, processes=1, shown=False)
    assert done == lost
    assert again | {"seconds": 0} == whole | {"seconds": 0}
    calibration.run(SMALL_PLAN, tmp_path, processes=1, shown=False)
    assert len(done) == 2

    tree = json.loads(written)
    html = section(tree)
    assert len(html) < 250_000
    assert html.count("<figure>") == html.count("</figure>") == 3
    for address in re.findall(r'<img src="data:image/svg\+xml,([^"]*)"', html):
        ElementTree.fromstring(unquote(address))
    assert "nan" not in re.sub(r'src="[^"]*"', "", html).lower()
    # Losses are named.
    worse = next(c for c in tree["splits"][0]["comparisons"] if c["score"] == "log_loss" and c["ours"] == "LDA")
    worse |= {"verdict": "lose", "difference": 0.4567}
    assert any("LDA to LDA plain on iris (by 0.457)" in sentence for sentence in split_sentences(tree))


def test_no_task_depends_on_the_plan():
    few = {task.file for task in calibration.tasks(replace(calibration.Plan(), splits=2))}
    assert few < {task.file for task in calibration.tasks(calibration.Plan())}


@pytest.mark.slow
def test_every_data_set_can_be_split_and_scored():
    from proof.calibration_splits import DATA, run_split

    for name in DATA:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = run_split(name, "few", 0)
        assert all(result["scores"][f"Bayesian {m}"] is not None for m in ("LDA", "QDA", "naive", "logistic"))
