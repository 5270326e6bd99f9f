"""The promise of the verdict: `trusted` never where a probability is off by more than .02.

Ten data sets from easy to hopeless; the truth is long MCMC of the PyMC model.
"""

import sys

import numpy as np
import pymc as pm
import pytest
from ten_cases import CASES, simulate

from bayes_gda.data.features import FeatureMap
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.methods.importance.trust import assess
from bayes_gda.methods.skew import lindley_mean
from bayes_gda.models import logistic
from bayes_gda.priors import Normal


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_trusted_is_never_said_where_a_probability_is_off_by_more_than_two_hundredths(case, record_property):
    data = simulate(*CASES[case], seed=list(CASES).index(case))
    phi = FeatureMap.fit(data.X, data.feature_names)
    Phi = phi(data.X)
    target = LogisticTarget(Phi, data.y, Normal.default(Phi.shape[1]))
    posterior = regression_laplace(target)
    rows = BinaryPredictor(Phi)
    result = assess(target, posterior, mean=lindley_mean(posterior, target), predictor=rows)
    with logistic.build(data):
        sampled = pm.sample(
            3000,
            tune=1000,
            chains=4,
            cores=2,
            random_seed=1,
            progressbar=False,
            nuts_sampler="pymc",
            target_accept=0.9,
            compile_kwargs={"mode": "NUMBA"},
        )
    w = sampled["posterior"]["w"].values.reshape(-1, Phi.shape[1])
    truth, _ = rows.averaged(w, np.full(len(w), 1 / len(w)))
    fast_error = np.abs(rows.gaussian(posterior, "probit") - truth).max()
    corrected, _ = rows.averaged(result.importance.draws, np.exp(result.importance.log_weights))
    corrected_error = np.abs(corrected - truth).max()
    found = f"{case}: {result.verdict}, fast off by {fast_error:.3f}, corrected by {corrected_error:.3f}"
    record_property("found", found)
    sys.stderr.write(f"\n{found}. {result.reason}\n")
    if result.verdict == "trusted":
        assert fast_error <= 0.02
    if result.verdict in {"trusted", "corrected"}:
        assert corrected_error <= 0.02
