"""Simulation-based calibration in small: parameters from the prior, rows given them, ranks in the corrected posterior.

The rank of the truth among draws of the posterior is uniform, for parameters, the log likelihood and probabilities.
"""

import numpy as np
import pytest
from scipy import stats

from bayes_gda.data.table import Dataset
from bayes_gda.errors import ConvergenceError
from bayes_gda.families.mixture.family import Mixture
from bayes_gda.families.student import Student
from bayes_gda.methods.ladder import verify
from bayes_gda.methods.settings import Settings
from bayes_gda.priors import NIW

PRIOR = NIW(m=np.zeros(1), kappa=0.25, Psi=2 * np.eye(1), nu=5.0)
ROWS, DRAWS, ALPHA = 40, 99, np.full(2, 20.0)


def student_truth(rng):
    theta = {"pi": rng.dirichlet(ALPHA)[None], "nu": 1 + rng.gamma(2.0, 10.0, size=(1, 2))}
    theta |= {name: value[None] for name, value in PRIOR.draw(2, random_seed=rng).items()}
    X, y = Student.draw_rows({name: np.repeat(value, ROWS, axis=0) for name, value in theta.items()}, rng)
    return theta, Student(_rows(X, y), PRIOR, alpha=ALPHA, freedom=(2.0, 0.1))


def mixture_truth(rng):
    """Class 0 has two components, in order along the first feature."""
    drawn = PRIOR.draw(3, random_seed=rng)
    order = [*np.argsort(drawn["mu"][:2, 0]), 2]
    omega = rng.dirichlet(np.ones(2))
    theta = {"pi": rng.dirichlet(ALPHA)[None], "weight": np.array([[*omega, 1.0]])}
    theta |= {f"component_{name}": value[order][None] for name, value in drawn.items()}
    empty = Mixture(_rows(np.zeros((2, 1)), np.arange(2)), PRIOR, alpha=ALPHA, components=(2, 1), axis=np.ones((2, 1)))
    X, y = empty.from_variables({name: np.repeat(value, ROWS, axis=0) for name, value in theta.items()}).sample(
        ROWS, random_seed=rng
    )
    return theta, Mixture(_rows(X, y), PRIOR, alpha=ALPHA, components=(2, 1), axis=np.ones((2, 1)))


def _rows(X, y):
    return Dataset.of_checked(X, y, ("x",), (0, 1))


def _quantities(family, theta):
    out = {name: theta[name].reshape(len(theta["pi"]), -1)[:, 0] for name in theta if name != "unconstrained"}
    out["log likelihood"] = family.density.log_likelihood(theta, family.data).sum(axis=1)
    terms = family.from_variables(theta).log_terms(theta, np.array([[0.5]]))[:, 0]
    return out | {"log odds": terms[:, 1] - terms[:, 0]}


@pytest.mark.parametrize(
    "draw",
    [pytest.param(student_truth, id="student"), pytest.param(mixture_truth, id="mixture", marks=pytest.mark.slow)],
)
def test_ranks_are_uniform(draw):
    ranks: dict[str, list[float]] = {}
    refused = 0
    for i in range(40):
        rng = np.random.default_rng([20261118, i])
        theta, family = draw(rng)
        try:
            trust = verify(family, family.laplace(), Settings(random_seed=i))
        except ConvergenceError:
            refused += 1
            continue
        if trust.verdict == "needs-mcmc":
            refused += 1
            continue
        drawn = family.density.variables(trust.importance.draw(DRAWS, random_seed=i))
        truth, found = _quantities(family, theta), _quantities(family, drawn)
        for name, value in truth.items():
            ranks.setdefault(name, []).append((found[name] < value).sum() + rng.random())
    assert refused < 20  # whether it refuses depends on the data alone, so that those left out are no bias
    for name, values in ranks.items():
        assert stats.kstest(np.array(values) / (DRAWS + 1), "uniform").pvalue > 0.001, name
