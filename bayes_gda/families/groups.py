"""The groups that ArviZ knows beside `posterior`: what the rows say of the draws, and what the draws say of the rows.

    log_likelihood          y: log p(y | x, θ_s);  and x: log p(x | θ_s) where it is modelled: their sum is the joint
    log_prior               log p(θ_s), by parameter, with respect to the measures of `Density.log_prior`
    observed_data           y, and x where it is modelled;  constant_data: X where it is not
    posterior_predictive    y ~ p(y | x, θ_s) for the training rows
    prior                   draws of the prior, where it is proper

`y` means the same in every model, so that `az.loo(…, var_name="y")` and `az.compare(…, var_name="y")` set like beside
like. For a model of p(x, y) it is leave-one-out of the class, too: without the factor p(y_i | x_i, θ) the posterior is
p(θ | x_i, D₋ᵢ), under which the mean of p(y_i | x_i, θ) is p(y_i | x_i, D₋ᵢ). Without `var_name` ArviZ refuses a model
that has both, rather than to compare a density of features with a probability.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, logsumexp

from bayes_gda.checks import Floats
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.density import COORDINATES
from bayes_gda.prediction.fitted import FittedModel

if TYPE_CHECKING:
    import xarray as xr

    from bayes_gda.data.table import Dataset
    from bayes_gda.families.base import Family

# Numbers that the log likelihood may have (160 MB), and draws of the prior.
LIKELIHOOD_LIMIT = 20_000_000
PRIOR_DRAWS = 500
COPIES = (
    "The posterior is made of weighted draws, resampled: leave-one-out of the copies would be wrong. Use "
    "compare_models, or inference='mcmc'."
)
TOO_MANY = f"More than {LIKELIHOOD_LIMIT:,} numbers (draws × rows). Fit with fewer draws."


def likelihood_parts(
    model: FittedModel, variables: Mapping[str, Floats], X: Floats, y: NDArray[np.intp]
) -> dict[str, Floats]:
    """Return log p(y | x, θ_s) (S, n) as `y`, and log p(x | θ_s) as `x` if the model has one."""
    S = len(next(iter(variables.values())))
    own, marginal = np.empty((S, len(X))), np.empty((S, len(X)))
    for rows in wide_blocks(len(X), S * model.K):
        terms = model.log_terms(variables, X[rows])
        at = np.broadcast_to(y[None, rows, None], (S, len(y[rows]), 1))
        of_class = np.take_along_axis(terms, at, axis=2)[..., 0]
        if not model.generative:
            own[:, rows] = of_class
            continue
        marginal[:, rows] = logsumexp(terms, axis=2)
        # log p(y | x) = log σ(log p(x, y) − log Σ_{k≠y} p(x, k)) keeps digits where p is all but 1.
        np.put_along_axis(terms, at, -np.inf, axis=2)
        own[:, rows] = log_expit(of_class - logsumexp(terms, axis=2))
    return {"y": own, "x": marginal} if model.generative else {"y": own}


def add_rows(
    tree: "xr.DataTree",
    rows: "Dataset",
    model: FittedModel,
    variables: Mapping[str, Floats],
    *,
    resampled: bool = False,
) -> None:
    """Add the rows as they were given, their fingerprint, and their log likelihood unless it is too large.

    Parameters
    ----------
    tree
        Has the group posterior.
    rows
        Training rows; one of weight 2 counts twice in the log likelihood.
    model, variables
        The model, and its draws in the order of the tree, `{name: (S, …)}`.
    resampled
        Whether draws are copies of weighted ones, whose log likelihood would mislead leave-one-out: it is left out.
    """
    import xarray as xr

    posterior = tree["posterior"].to_dataset()
    size = posterior.sizes["chain"] * posterior.sizes["draw"]
    if resampled:
        posterior.attrs["log_likelihood_left_out"] = COPIES
    elif size * rows.n <= LIKELIHOOD_LIMIT:
        weight = 1.0 if rows.weight is None else rows.weight
        parts = likelihood_parts(model, variables, rows.X, rows.y)
        tree["log_likelihood"] = _group({name: weight * value for name, value in parts.items()}, posterior)
    else:
        posterior.attrs["log_likelihood_left_out"] = TOO_MANY
    observed = {"y": ("row", rows.y)} | ({"x": (("row", "feature"), rows.X)} if model.generative else {})
    names = {"feature": list(rows.feature_names)}
    tree["observed_data"] = xr.DataTree(xr.Dataset(observed, coords=names if model.generative else None))
    if not model.generative:
        tree["constant_data"] = xr.DataTree(xr.Dataset({"X": (("row", "feature"), rows.X)}, coords=names))
    tree["posterior"].attrs.update(posterior.attrs, fingerprint=rows.fingerprint)


def add_groups(
    tree: "xr.DataTree",
    family: "Family",
    model: FittedModel,
    variables: Mapping[str, Floats],
    random_seed: int,
    *,
    resampled: bool = False,
) -> None:
    """Add every group that the tree lacks and that has a meaning for the model; parameters as in `add_rows`.

    Parameters
    ----------
    tree, model, variables, resampled
        As in `add_rows`.
    family
        The model with its rows, which may be without any, and its prior.
    random_seed
        Of the predictive and prior draws.
    """
    rows = family.rows
    posterior = tree["posterior"].to_dataset()
    if rows.n and "observed_data" not in tree.children:
        add_rows(tree, rows, model, variables, resampled=resampled)
    if "log_prior" not in tree.children and (log_prior := _log_prior(family, variables)) is not None:
        tree["log_prior"] = _group({name: np.asarray(value) for name, value in log_prior.items()}, posterior)
    if rows.n and "posterior_predictive" not in tree.children:
        _add_predictive(tree, rows, model, variables, random_seed)
    if "prior" not in tree.children:
        size = min(posterior.sizes["draw"], PRIOR_DRAWS)
        drawn = family.draw_prior(size, random_seed)
        if drawn is not None:
            tree["prior"] = _like(drawn, posterior)


def _log_prior(family: "Family", variables: Mapping[str, Floats]) -> dict[str, Floats] | None:
    """Return the log prior densities (S,) of draws by parameter; None if the family does not know them."""
    if family.density is not None:
        return family.density.log_prior(variables)
    return {"all": family.prior_and_likelihood(variables)[0]} if COORDINATES in variables else None


def _add_predictive(
    tree: "xr.DataTree", rows: "Dataset", model: FittedModel, variables: Mapping[str, Floats], random_seed: int
) -> None:
    posterior = tree["posterior"].to_dataset()
    S = posterior.sizes["chain"] * posterior.sizes["draw"]
    if S * rows.n > LIKELIHOOD_LIMIT:
        return
    # Of all draws, as `az.loo_pit` and others set them beside the log likelihood; in two bytes each.
    rng = np.random.default_rng(random_seed)
    y = np.empty((S, rows.n), dtype=np.int16)
    for part in wide_blocks(rows.n, S * model.K):
        P = model.probability_draws(variables, rows.X[part])[0]
        u = rng.random(P.shape[:2])
        y[:, part] = np.minimum((P.cumsum(axis=2) < u[..., None]).sum(axis=2), model.K - 1)
    tree["posterior_predictive"] = _group({"y": y}, posterior)


def _group(values: Mapping[str, NDArray[Any]], posterior: "xr.Dataset") -> "xr.DataTree":
    """Label values (S,) or (S, n) by chain, draw and row."""
    import xarray as xr

    shape = posterior.sizes["chain"], posterior.sizes["draw"]
    dims = {1: ("chain", "draw"), 2: ("chain", "draw", "row")}
    arrays = {name: (dims[x.ndim], x.reshape(*shape, *x.shape[1:])) for name, x in values.items()}
    return xr.DataTree(xr.Dataset(arrays, coords={dim: posterior[dim] for dim in ("chain", "draw")}))


def _like(drawn: Mapping[str, Floats], posterior: "xr.Dataset") -> "xr.DataTree":
    """Label draws (S, …) of the prior as the posterior's are, in one chain."""
    import xarray as xr

    dims = {name: tuple(posterior[name].dims[2:]) for name in drawn if name in posterior}
    arrays = {name: (("chain", "draw", *dims[name]), x[None]) for name, x in drawn.items() if name in dims}
    labels = {dim: posterior[dim] for names in dims.values() for dim in names if dim in posterior.coords}
    return xr.DataTree(xr.Dataset(arrays, coords=labels))
