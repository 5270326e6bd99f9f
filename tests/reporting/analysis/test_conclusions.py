"""Every light can be reached, and whatever is not green names a call."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

from bayes_gda.data.table import Dataset
from bayes_gda.evaluation.calibration import calibration_table
from bayes_gda.evaluation.loo import Loo
from bayes_gda.evaluation.performance import performance
from bayes_gda.families.assumptions import Assumptions
from bayes_gda.families.gaussian.assumptions import gaussian_assumptions
from bayes_gda.families.registry import get_family
from bayes_gda.methods.verdict import Verdict
from bayes_gda.prediction.monte_carlo import MonteCarlo
from bayes_gda.reporting.analysis.conclusions import Conclusion, converged, judged, prior, reliable, what_next
from bayes_gda.reporting.analysis.forecasts import better_than_chance, calibrated, doubted, graded
from bayes_gda.reporting.analysis.settings import ReportSettings
from bayes_gda.reporting.analysis.soundness import Remark, assumptions_hold, check_sentence
from bayes_gda.reporting.analysis.words import signed, significant

SETTINGS = ReportSettings(quick=True, data_name="my data.csv", target="class")
ASKED = ReportSettings(inference="laplace", data_name="my data.csv", target="class")
LOGISTIC = "BayesianLogisticRegression"


def trust(verdict):
    return Verdict(verdict, "Reason.", "Step.")


def sensitivity(prior_value, flips=0, marked=False, reliable_weights=True):
    rows = pd.DataFrame({"prior": [prior_value] * 4, "flips": [True] * flips + [False] * (4 - flips)})
    parameters = pd.DataFrame({"diagnosis": ["potential strong prior / weak likelihood" if marked else "-"]})
    index = pd.MultiIndex.from_product([["prior", "likelihood"], [0.8, 1.25]], names=["component", "alpha"])
    weights = pd.DataFrame({"reliable": reliable_weights}, index=index)
    words = {"threshold": 0.05, "reason": "Reason.", "next_step": "Report these rows."}
    return SimpleNamespace(predictions=rows, parameters=parameters, weights=weights, **words)


def forecasts(n, slope=1.0):
    """The table of calibrated forecasts of two classes, or of ones that are too extreme by a slope in log-odds."""
    rng = np.random.default_rng(1)
    c = rng.beta(2, 2, n)
    p = expit(slope * logit(c))
    return calibration_table(np.column_stack([1 - p, p]), (rng.random(n) < c).astype(int))


def verdicts(*levels):
    return {f"model{i}": (level, "Reason.", "Step.") for i, level in enumerate(levels)}


def noise(error):
    return MonteCarlo(40, "held-out", 7 * (error > 0.005), error, 0.01)


GREEN = Conclusion("How good is it?", "green", "It is good.", "No action is needed.")
LEAK = Remark("amber", "bwt tells the classes apart.", "Leave it out.", ("bwt",), leak=True)
CASES = [
    (lambda: graded("It does.", 0.2, 0.05, LOGISTIC), "green"),
    (lambda: graded("It does.", 0.05, 0.05, LOGISTIC), "amber"),
    (lambda: graded("It does.", -0.05, 0.05, LOGISTIC), "amber"),
    (lambda: graded("It does.", -0.2, 0.05, LOGISTIC), "red"),
    (lambda: graded("It does.", -np.inf, np.inf, LOGISTIC), "red"),
    (lambda: reliable("It is.", {}, True, LOGISTIC), "green"),
    (lambda: reliable("It is.", {"logistic": 3}, True, LOGISTIC), "amber"),
    (lambda: judged("logistic", LOGISTIC, "laplace", trust("trusted"), SETTINGS), "green"),
    (lambda: judged("logistic", LOGISTIC, "corrected", trust("corrected"), SETTINGS), "amber"),
    (lambda: judged("logistic", LOGISTIC, "mcmc", trust("corrected"), SETTINGS), "amber"),
    (lambda: judged("logistic", LOGISTIC, "laplace", trust("needs-mcmc"), SETTINGS), "red"),
    (lambda: judged("logistic", LOGISTIC, "mcmc", trust("needs-mcmc"), SETTINGS), "amber"),
    (lambda: judged("logistic", LOGISTIC, "laplace", trust("trusted"), ASKED), "green"),
    (lambda: judged("logistic", LOGISTIC, "laplace", trust("corrected"), ASKED), "amber"),
    (lambda: judged("logistic", LOGISTIC, "laplace", trust("needs-mcmc"), ASKED), "red"),
    (lambda: converged({}, [], SETTINGS, {}), "green"),
    (lambda: converged({}, [], SETTINGS, {"logistic": noise(0.002)}), "green"),
    (lambda: converged({}, [], SETTINGS, {"logistic": noise(0.006)}), "amber"),
    (lambda: converged(verdicts("good"), [], SETTINGS, {"logistic": noise(0.002)}), "green"),
    (lambda: converged(verdicts("good"), [], SETTINGS, {"lda": noise(0.002), "logistic": noise(0.006)}), "amber"),
    (lambda: converged({}, ["softmax"], SETTINGS, {}), "red"),
    (lambda: converged(verdicts("good", "good"), [], SETTINGS, {}), "green"),
    (lambda: converged(verdicts("good", "caution"), [], SETTINGS, {}), "amber"),
    (lambda: converged(verdicts("caution", "bad"), [], SETTINGS, {}), "red"),
    (lambda: calibrated(forecasts(6000), 6000, LOGISTIC, SETTINGS), "green"),
    (lambda: calibrated(forecasts(57), 57, LOGISTIC, SETTINGS), "amber"),
    (lambda: calibrated(forecasts(44), 44, LOGISTIC, SETTINGS), "amber"),
    (lambda: calibrated(forecasts(2000, slope=1.3), 2000, LOGISTIC, SETTINGS), "amber"),
    (lambda: calibrated(forecasts(2000, slope=2.5), 2000, LOGISTIC, SETTINGS), "red"),
    (lambda: prior(sensitivity(0.01), get_family("logistic")), "green"),
    (lambda: prior(sensitivity(0.01, flips=1), get_family("logistic")), "amber"),
    (lambda: prior(sensitivity(0.01, marked=True), get_family("lda")), "amber"),
    (lambda: prior(sensitivity(0.2), get_family("naive")), "red"),
    # digits, quick: k̂ of the weights .83, and 40 of 40 rows "moved"
    (lambda: prior(sensitivity(0.2, reliable_weights=False), get_family("naive")), "amber"),
    (lambda: graded("It does.", 0.05, 0.05, LOGISTIC, ranking="AUC .7"), "amber"),
    (lambda: graded("It does.", 0.2, 0.05, LOGISTIC, missed=["rare"]), "amber"),
    (lambda: doubted(GREEN, "The scores", [LEAK], SETTINGS), "amber"),
    (lambda: doubted(GREEN, "The scores", [], SETTINGS), "green"),
]


@pytest.mark.parametrize(("make", "light"), CASES, ids=[f"{i}-{light}" for i, (_, light) in enumerate(CASES)])
def test_each_light_is_reached_and_names_a_call(make, light):
    found = make()
    assert found.light == light
    assert found.sentence
    assert found.step
    assert bool(found.call) or light == "green"


def test_the_call_is_one_that_can_be_pasted():
    assert judged("logistic", LOGISTIC, "laplace", trust("needs-mcmc"), SETTINGS).call == (
        "bayes-gda report 'my data.csv' --target class --models logistic"
    )
    assert converged(verdicts("bad"), [], SETTINGS, {}).call == (
        "bayes-gda report 'my data.csv' --target class --models model0 --draws 2000 --chains 4"
    )
    rough = converged(verdicts("good"), [], SETTINGS, {"softmax": noise(0.006)})
    assert "0.0060 on 40 held-out rows (tolerance 0.01); for 7 of them" in rough.sentence
    # (2 · .006/.01)² = 1.44 times the draws
    assert rough.call == ("bayes-gda report 'my data.csv' --target class --models softmax --draws 1500 --chains 4")
    assert ReportSettings(data_name="example:pima").own_command() == (
        "bayes-gda report example:pima --test-size 0.3 --seed 0 --draws 1000 --chains 4"
    )
    assert ReportSettings(data_name="example:pima", tolerance=0.002).own_command().endswith("--tolerance 0.002")
    assert ReportSettings(inference="ep", link="probit").own_command().endswith("--inference ep --link probit")
    asked = judged("logistic", LOGISTIC, "laplace", trust("corrected"), ASKED)
    assert asked.step.startswith("This report uses the Laplace approximation, as asked.")
    assert asked.call == "bayes-gda report 'my data.csv' --target class --models logistic"
    assert "DATA --target COLUMN" in ReportSettings().command()


@pytest.mark.parametrize(("lights", "expected"), [("green", "green"), ("amber", "amber"), ("red", "red")])
def test_what_next_follows_the_worst_light(lights, expected):
    family = SimpleNamespace(title="Logistic regression")
    chosen = SimpleNamespace(name="logistic", method="ep", fitted=SimpleNamespace(family=family))
    found = [
        Conclusion("Did it?", "green", "Yes.", "Nothing."),
        Conclusion("How good is it?", lights, "So.", "Do this.", "" if lights == "green" else "this()"),
        # What is wrong with another model does not bear on the chosen one.
        Conclusion("Is Laplace's approximation accurate for softmax?", "red", "No.", "Do that.", "that()"),
    ]
    last = what_next(found, chosen, SETTINGS)
    assert last.light == expected
    assert last.call == (
        "this()"
        if expected == "red"
        else "bayes-gda fit 'my data.csv' --target class --model logistic --out logistic.nc"
    )


def test_columns_to_leave_out_come_before_any_fit():
    """birthwt: the last line told to fit with `bwt`, which defines the class."""
    family = SimpleNamespace(title="Logistic regression")
    chosen = SimpleNamespace(name="logistic", method="ep", fitted=SimpleNamespace(family=family))
    command = SETTINGS.command("report", "--drop", "bwt")
    found = [Conclusion("Are the data sound?", "amber", "bwt tells the classes apart.", "Leave it out.", command)]
    last = what_next(found, chosen, SETTINGS)
    assert last.call == command
    assert last.sentence.startswith("First settle: Are the data sound?")
    # What this report leaves out already is no column to leave out.
    again = ReportSettings(data_name="t.csv", target="low", table_options=("--drop", "rownames"))
    rare = Conclusion("Are the data sound?", "amber", "Few.", "Decide.", again.command("report", "--cost", "COSTS.csv"))
    assert what_next([rare], chosen, again).call.startswith("bayes-gda fit")
    # fgl with its row numbers: a posterior that cannot be used is another one without them.
    found.append(Conclusion("Did the sampler converge?", "red", "No.", "Sample.", "sample()"))
    last = what_next(found, chosen, SETTINGS)
    assert (last.light, last.call) == ("red", command)
    assert "Did the sampler converge?" in last.sentence


def test_a_model_is_not_called_chance_where_it_ranks_better():
    """Caravan: a gain of .010 (SE .007) beside an AUC of .71 (.67 to .75)."""
    rng = np.random.default_rng(0)
    y = (rng.random(1500) < 0.06).astype(int)
    p = expit(-2.7 + 0.8 * y + rng.normal(size=1500))
    found = performance(np.column_stack([1 - p, p]), y, class_names=["No", "Yes"])
    said = better_than_chance(found)
    assert f"{found.table.loc['Yes', 'auc']:.3f}" in said
    assert said in graded("It does.", 0.010, 0.007, LOGISTIC, ranking=said).sentence
    assert "say nothing" not in graded("It does.", 0.010, 0.007, LOGISTIC, ranking=said).sentence
    assert "may say nothing" in graded("It does.", 0.010, 0.007, LOGISTIC).sentence
    shuffled = p[rng.permutation(1500)]
    assert better_than_chance(performance(np.column_stack([1 - shuffled, shuffled]), y)) == ""


def test_rows_to_hold_out_are_rows_that_there_are():
    few = calibrated(forecasts(44), 44, LOGISTIC, SETTINGS, total=100)
    wanted = int(few.step.split()[1])
    assert wanted > 50
    assert "cross_val_predict" in few.call
    assert f"--test-size {wanted}" in calibrated(forecasts(44), 44, LOGISTIC, SETTINGS, total=100 * wanted).call


def test_what_was_not_checked_is_not_green():
    """Mroz, cleaned: mixed was green though nothing of it was checked; the failing lwg of Gaussian classes is named."""
    nothing = assumptions_hold(Assumptions(), "naive Bayes for mixed columns", 500, "compare", "BayesianNaive")
    assert nothing.light == "amber"
    assert "Not checked" in nothing.sentence
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.exponential(size=300), rng.normal(size=300), rng.exponential(size=300) ** 2])
    rows = Dataset.from_arrays(X, np.repeat(["a", "b"], 150), feature_names=["k5", "age", "lwg"])
    found = gaussian_assumptions(rows, shared=False, diagonal=False, random_seed=0)
    assert assumptions_hold(found, "QDA", 300, "compare", "BayesianQDA").light == "amber"
    said = check_sentence(found.checks[0], 0.001)
    assert "of k5 in" in said
    assert "of lwg in" in said
    assert "of age in" not in said


def test_cross_validated_scores_are_named_where_there_are_any():
    """Caravan: "judge by the cross-validated scores", of which there were none."""
    told = {crossed: graded("It does.", 0.05, 0.05, LOGISTIC, ranking="AUC .7", crossed=crossed) for crossed in (0, 1)}
    assert "Judge by the cross-validated scores" in told[1].step
    assert "Cross-validate it" in told[0].step


def test_classes_that_a_check_leaves_out_are_named():
    """Penguins: two of three classes live on one island, and nothing was said of their checks."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(180, 2))
    X[120:, 0] = 0.0
    rows = Dataset.from_arrays(X, np.repeat(["a", "b", "c"], 60), feature_names=["u", "v"])
    found = gaussian_assumptions(rows, shared=True, diagonal=False, random_seed=0)
    told = assumptions_hold(found, "LDA", 180, "compare", "BayesianLDA")
    assert "Not checked: c (" in told.sentence
    assert told.sentence.count("Not checked") == 1
    assert "Not checked: c (" in check_sentence(found.checks[1], 0.5)
    alone = gaussian_assumptions(rows.subset(np.r_[0:60, 120:180]), shared=True, diagonal=False, random_seed=0)
    told = assumptions_hold(alone, "LDA", 120, "compare", "BayesianLDA")
    assert "No check of equal covariances was possible." in told.sentence


def test_light_tails_are_not_called_heavy():
    rng = np.random.default_rng(0)
    rows = Dataset.from_arrays(rng.uniform(size=(400, 3)), np.repeat(["a", "b"], 200))
    found = gaussian_assumptions(rows, shared=False, diagonal=False, random_seed=0)
    tails = next(check for check in found.checks if check.assumption == "Gaussian tails")
    assert tails.worst.z < -2
    assert "lighter than Gaussian" in tails.remedy


def test_rows_without_leave_one_out_are_named_as_in_the_table():
    loo = Loo("conditional", -np.ones(4), -np.ones(4), pareto_k=np.array([0.1, 0.9, 0.2, 0.1]), threshold=0.7)
    assert "row 1 0.90" in loo.reason
    assert "row 17 0.90" in replace(loo, row_numbers=np.array([3, 17, 20, 21])).reason


def test_zero_has_no_sign_and_large_numbers_no_exponent():
    assert signed(-0.001, 2) == "0.00"
    assert signed(-0.3, 1) == "\u22120.3"
    assert [significant(x) for x in (13_322.0, 0.254, -34.84)] == ["13\u202f300", "0.254", "\u221234.8"]


def test_the_test_that_rejects_is_named():
    """pima, Titanic: the ECE rejected beside a likelihood-ratio p of .26 and .92, and the reader wondered."""
    table = forecasts(2000)
    table["ece_p_value"] = table["ece_p_value"].where(table["ece_p_value"].isna(), 0.001)
    assert "rejected by the ECE" in calibrated(table, 2000, LOGISTIC, SETTINGS).sentence
    assert (
        "rejected by Cox's recalibration" in calibrated(forecasts(2000, slope=1.3), 2000, LOGISTIC, SETTINGS).sentence
    )


def test_a_p_value_is_never_zero():
    said = calibrated(forecasts(2000, slope=2.5), 2000, LOGISTIC, SETTINGS).sentence
    assert "p < 0.001" in said
    assert "p = 0.000" not in said
