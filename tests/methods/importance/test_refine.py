"""More weighted draws say the same with less noise."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from scipy.stats import norm

from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.mode import regression_laplace
from bayes_gda.families.linear.predictors import BinaryPredictor
from bayes_gda.methods.importance import refine as module
from bayes_gda.methods.importance.refine import refine
from bayes_gda.methods.importance.trust import assess
from bayes_gda.priors import Normal

# One weight and three rows, so that the truth is a quadrature.
PHI, Y, PRIOR = np.array([[0.5], [1.0], [2.0]]), np.array([0.0, 1.0, 1.0]), Normal(scale=2.0)


def weighed(tolerance):
    target = LogisticTarget(PHI, Y, PRIOR)
    posterior = regression_laplace(target)
    options = {"predictor": BinaryPredictor(PHI), "link": "exact", "tolerance": tolerance}
    return target, posterior, assess(target, posterior, **options), options | {"random_seed": 0, "rows": 3}


def test_refined_draws_have_the_quadratures_evidence_and_probabilities():
    _, _, rough, _ = weighed(0.01)
    tolerance = rough.shift.error  # four standard errors of which are to be within
    target, posterior, trust, options = weighed(tolerance)
    refined = refine(target, posterior, trust, **options)
    assert len(refined.importance.draws) > 10 * len(trust.importance.draws)
    assert module.WANTED_ERRORS * refined.shift.error == pytest.approx(tolerance, rel=0.1)
    assert refine(target, posterior, trust, **options | {"tolerance": 4.1 * trust.shift.error}) is trust

    def joint(w):
        a = PHI[:, 0] * w
        return norm.pdf(w, 0, 2) * np.prod(np.where(Y == 1, expit(a), expit(-a)))

    evidence = quad(joint, -30, 30, limit=200)[0]
    assert abs(refined.log_evidence - np.log(evidence)) < 4 * refined.log_evidence_error
    truth = [quad(lambda w, x=x: expit(x * w) * joint(w), -30, 30, limit=200)[0] / evidence for x in PHI[:, 0]]
    predictor = options["predictor"]
    found, _ = predictor.averaged(refined.importance.draws, np.exp(refined.importance.log_weights))
    assert np.abs(found[:, 1] - truth).max() < 4 * refined.shift.error
    # The verdict's figures are those of the refined draws: the error of the Gaussian against quadrature.
    off = np.abs(predictor.gaussian(posterior, "exact")[:, 1] - truth)
    assert abs(refined.shift.largest - off.max()) < 4 * refined.shift.largest_error
    assert abs(refined.shift.largest - off.max()) < abs(trust.shift.largest - off.max())


def test_work_is_bounded():
    target, posterior, trust, options = weighed(1e-9)
    assert len(refine(target, posterior, trust, **options).importance.draws) == module.MOST_DRAWS
    assert refine(target, posterior, trust, **options | {"rows": 10**9}) is trust


@pytest.mark.parametrize(("k", "share", "better"), [(0.2, 1.0, True), (0.8, 1.0, False), (0.2, 1e-6, False)])
def test_draws_that_are_no_better_are_not_taken(k, share, better, monkeypatch):
    target, posterior, trust, options = weighed(0.002)
    smooth = module.smooth
    monkeypatch.setattr(module, "smooth", lambda ratios: (smooth(ratios)[0], k, share))
    assert (refine(target, posterior, trust, **options) is not trust) == better


def test_draws_are_evaluated_in_blocks_unless_each_is_a_pass_over_a_table():
    target, posterior, trust, options = weighed(1e-9)
    sizes = []

    class Counted:
        def log_density(self, w):
            sizes.append(len(w))
            return target.log_density(w)

    refine(Counted(), posterior, trust, **options)
    assert max(sizes) == module.BLOCK < sum(sizes) == module.MOST_DRAWS
    sizes.clear()
    refine(Counted(), posterior, trust, **options, at_once=True)
    assert sizes == [module.MOST_DRAWS]
