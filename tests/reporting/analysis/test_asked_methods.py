"""A report whose predictions rest on the method and the link that were asked for, like an estimator's."""

import numpy as np
import pytest

from bayes_gda import BayesianLogisticRegression, load_example
from bayes_gda.data.table import Dataset
from bayes_gda.errors import DataError
from bayes_gda.reporting.analysis.analysis import analyse
from bayes_gda.reporting.analysis.conclusions import approximations
from bayes_gda.reporting.analysis.settings import ReportSettings


@pytest.fixture(scope="module")
def rows() -> Dataset:
    data = load_example("pima")
    return data.subset(np.arange(data.n) % 8 == 0)


@pytest.mark.filterwarnings("ignore:needs-mcmc:bayes_gda.errors.InferenceWarning")  # it says so, and is taken
@pytest.mark.parametrize("inference", ["laplace", "ep"])
def test_predictions_are_those_of_the_estimator(rows, inference):
    settings = ReportSettings(quick=True, models=("logistic", "lda"), inference=inference, link="probit", draws=200)
    analysis = analyse(rows, settings)
    card = analysis.models["logistic"]
    assert card.method == inference
    assert {"laplace", "ep"} <= set(card.fitted.models)  # all others stand beside it
    assert analysis.models["lda"].method == {"laplace": "laplace", "ep": "exact"}[inference]  # as it has the method
    own = BayesianLogisticRegression(inference=inference, link="probit").fit(analysis.train)
    P = own.predict_log_proba(analysis.test.X)
    np.testing.assert_allclose(card.log_probabilities, P, atol=1e-6)
    exact = BayesianLogisticRegression(inference=inference).fit(analysis.train)
    assert np.abs(np.exp(P) - exact.predict_proba(analysis.test.X)).max() > 1e-4  # the link does matter here
    words = [c for c in approximations({"logistic": card}, settings) if "logistic" in c.topic]
    name = {"laplace": "the Laplace approximation", "ep": "expectation propagation"}[inference]
    assert any(f"This report uses {name}, as asked." in c.step for c in words)
    assert f"--inference {inference} --link probit" in settings.own_command()


def test_laplace_is_kept_where_it_is_asked_for_beside_an_exact_posterior(rows):
    settings = ReportSettings(quick=True, models=("qda",), inference="laplace", draws=200)
    card = analyse(rows, settings).models["qda"]
    assert card.method == "laplace"
    assert {"exact", "laplace"} <= set(card.fitted.models)
    off = np.abs(np.exp(card.log_probabilities) - card.probabilities["exact"]).max()
    (conclusion,) = approximations({"qda": card}, settings)
    assert f"by the Laplace approximation is {off:.2g} ±" in conclusion.sentence
    assert conclusion.light == ("green" if off <= settings.tolerance else "amber")
    assert "as asked. Without --inference it uses the exact posterior" in conclusion.step


def test_mcmc_cannot_be_asked_for_and_left_out():
    with pytest.raises(DataError, match="`inference` must not be 'mcmc' with quick=True"):
        ReportSettings(quick=True, inference="mcmc")
    with pytest.raises(DataError, match="`link` must be 'exact' or 'probit'"):
        ReportSettings(link="logit")
