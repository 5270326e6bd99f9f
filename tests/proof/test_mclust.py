"""The rows that mclust was run on are those at hand, and its figures are ours where the models are the same."""

import pytest
from proof import mclust
from proof.mclust import PUBLISHED, error, load, log_likelihood, score, section

from bayes_gda import BayesianLDA


def test_rows_and_likelihood_are_those_of_mclust():
    X, y, _, truth = load()
    assert (len(y), y.sum(), len(truth)) == (985, 544, 104)
    assert log_likelihood(X, y) == pytest.approx(PUBLISHED["LDA"]["log_likelihood"], abs=5e-4)


def test_lda_makes_the_decisions_of_mclust():
    X, y, new, truth = load()
    found = score(BayesianLDA().fit(X, y).predict_proba(new), truth)
    assert found["confusion"] == PUBLISHED["LDA"]["confusion"]
    assert found["brier"] == pytest.approx(PUBLISHED["LDA"]["brier"], abs=5e-4)
    assert error(found["confusion"]) == 0.375


def test_the_section_says_what_the_numbers_say():
    same = {name: figures | {"inference": "exact"} for name, figures in PUBLISHED.items()}
    data = {"rows": [985, 104], "log_likelihood": -2204.237, "published": PUBLISHED, "ours": same}
    html = section(data)
    assert html.count("<tr>") == 5
    assert html.count("0.452") == 2
    assert "&amp;P 500" in html


@pytest.mark.slow
def test_mixtures_err_about_as_often_as_mclust():
    ours = mclust.study()["ours"]["mixture"]
    assert error(ours["confusion"]) == pytest.approx(error(PUBLISHED["mixture"]["confusion"]), abs=0.03)
    assert ours["brier"] == pytest.approx(PUBLISHED["mixture"]["brier"], abs=0.005)
