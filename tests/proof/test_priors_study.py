"""The default prior against the other candidates, and its false alarms, in a few settings of the study."""

import numpy as np
import pytest
from proof.priors_study import ALARM_SETTINGS, LEVELS, MODELS, PRIORS, alarm_rates, real, regret, simulated

NOW = list(PRIORS).index("default")


@pytest.mark.parametrize(("n", "d", "rho"), [(15, 10, 0.5), (8, 5, 0.9), (30, 5, 0.0)])
@pytest.mark.parametrize("shared", [True, False], ids=["lda", "qda"])
def test_the_default_is_never_far_from_the_best(n, d, rho, shared):
    losses = simulated(n, d, rho, 3, shared=shared, own=False, repeats=6)
    assert regret(losses)[NOW] < 0.05


def test_crabs_are_told_apart_by_what_their_features_share():
    """The former default filled in the narrow directions of five features that correlate at .95 and more."""
    former, pooled, jeffreys, now = real("crabs", shared=False, splits=range(10))
    assert now < min(pooled, jeffreys)
    assert former > now + 0.1
    rotated = real("crabs", shared=False, splits=range(10), rotated=True)
    assert rotated[NOW] == pytest.approx(now, abs=0.01)


@pytest.mark.parametrize("model", MODELS)
def test_false_alarms_at_fixed_parameters(model):
    rates = alarm_rates(model, 12, 5, repeats=4)
    assert (np.abs(rates / LEVELS - 1) < [0.75, 0.5, 0.4]).all()  # four training sets: 1 % is uncertain by a fourth


@pytest.mark.slow
@pytest.mark.parametrize("separation", [2.0, 8.0])
@pytest.mark.parametrize(("n", "d"), ALARM_SETTINGS)
@pytest.mark.parametrize("model", MODELS)
def test_false_alarms_are_within_half_of_nominal(model, n, d, separation):
    rates = alarm_rates(model, n, d, repeats=40, separation=separation)
    assert (np.abs(rates / LEVELS - 1) < 0.5).all()
