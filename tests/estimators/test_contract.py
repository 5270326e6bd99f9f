"""scikit-learn's own checks of an estimator: nothing is left out but what scikit-learn itself skips."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from bayes_gda.estimators import (
    BayesianLDA,
    BayesianLogisticRegression,
    BayesianMixture,
    BayesianNaive,
    BayesianNaiveGaussian,
    BayesianQDA,
    BayesianRDA,
    BayesianStudent,
)

# One check has 93 weights on 15 rows, where the fast approximation will not do, and says so: few draws make it quick.
pytestmark = pytest.mark.filterwarnings("ignore::bayes_gda.errors.InferenceWarning")


@parametrize_with_checks(
    [
        BayesianLDA(),
        BayesianQDA(),
        BayesianNaiveGaussian(),
        BayesianNaive(),
        BayesianRDA(),
        BayesianLogisticRegression(draws=25, chains=2),
        BayesianStudent(draws=25, chains=2, inference="laplace", scales="shared"),
    ]
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(
    [
        BayesianLogisticRegression(),
        # By default the check of equal weights and repeated rows samples: 2796 parameters given 33 rows of 30 features.
        BayesianStudent(draws=25, chains=2, inference="laplace"),
        # Mixtures and Student's classes are estimators by the same class; `make test` has the latter's contract.
        BayesianMixture(draws=25, chains=2, inference="laplace", components=1, covariances="diagonal"),
        BayesianMixture(draws=25, chains=2, inference="laplace", components=1, covariances="shared"),
        BayesianMixture(draws=25, chains=2, inference="laplace", components=2, covariances="shared"),
        BayesianMixture(draws=25, chains=2, inference="laplace", components=2),
        BayesianMixture(draws=25, chains=2, inference="laplace", components=2, covariances="diagonal"),
    ]
)
def test_scikit_learn_contract_with_the_defaults(estimator, check):
    check(estimator)
