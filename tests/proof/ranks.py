"""What is ranked: every quantity that one reads off a posterior of a simulation."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from proof.simulate import Simulation
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.families.fused import FusedFamily
from bayes_gda.families.gaussian.predictive import log_joint_per_draw
from bayes_gda.families.mixed.family import Mixed
from bayes_gda.validation.ranks import scalar_quantities

# The groups of quantities, in the order in which they are shown.
GROUPS = ("parameters", "probabilities", "log likelihood")


def quantities(simulation: Simulation, variables: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return every quantity (S,) by its name, at S values of the parameters; probabilities as their log odds.

    Parameters
    ----------
    simulation
        The data, and the rows to predict.
    variables
        The model's variables (S, …), from any method, or the truth with S = 1.
    """
    out = scalar_quantities(simulation.parameters(variables))
    odds = _log_odds(simulation, variables)
    for i, k in np.ndindex(odds.shape[1:]):
        if k > 0 or odds.shape[2] > 2:  # of two classes, one says it all
            out[f"p(y={k} | x{i + 1})"] = odds[:, i, k]
    given = dict(variables)
    if "sigma2" in given:
        given.setdefault("sigma", np.sqrt(given["sigma2"]))  # what the LKJ prior of the naive model is written in
    likelihood = simulation.log_likelihood(given)
    out |= {"log likelihood": likelihood}
    if simulation.density is None:
        return out
    prior = sum(simulation.density.log_prior(given).values(), np.zeros(len(likelihood)))
    return out | {"log joint": likelihood + prior}


def group_of(name: str) -> str:
    """Return the group that a quantity belongs to."""
    if name.startswith("log "):
        return GROUPS[2]
    return GROUPS[1] if name.startswith("p(") else GROUPS[0]


def _log_odds(simulation: Simulation, variables: Mapping[str, Floats]) -> Floats:
    """Return log p_k − log(1 − p_k) of p(y=k | x, θ) (S, n, K): it ranks as p_k does, and does not tie at 0 or 1."""
    rows = simulation.new_rows
    family: Any = simulation.family
    if isinstance(family, Mixed):
        a = family.exact().model.log_terms(variables, rows)
    elif isinstance(family, FusedFamily):
        a = family.from_variables(variables).log_terms(variables, rows)
    elif "w" not in variables:
        a = log_joint_per_draw(variables, rows)
    else:
        a = variables["w"] @ rows.T  # (S, n) for two classes, else (S, K, n)
        a = np.stack([np.zeros_like(a), a], axis=-1) if a.ndim == 2 else np.moveaxis(a, 1, 2)
    others = [logsumexp(np.delete(a, k, axis=-1), axis=-1) for k in range(a.shape[-1])]
    return a - np.stack(others, axis=-1)
