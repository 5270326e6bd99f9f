"""Naive Bayes with columns of any type: within a class they are independent, each with a distribution of its own.

    π ~ Dirichlet(α)                                   class probabilities
    y_i | π ~ Categorical(π)
    x_ij | y_i = k ~ f_j(θ_kj)                         column j in class k

where f_j with its parameters and their prior is one of

    normal              σ² ~ InverseGamma(a, b), μ | σ² ~ N(m, σ²/κ)      x ~ N(μ, σ²)
    log-normal          the same                                          log x ~ N(μ, σ²)
    logit-normal        the same                                          logit x ~ N(μ, σ²)
    bernoulli           p ~ Beta(a, b)                                    x ~ Bernoulli(p)
    binomial            p ~ Beta(a, b)                                    x ~ Binomial(N, p)
    categorical         θ ~ Dirichlet(α)                                  x ~ Categorical(θ), one entry for new levels
    poisson             r ~ Gamma(c, c/m)                                 x ~ Poisson(r)
    negative-binomial   log r ~ N(l, s²), p | r ~ Beta(1 + cr/m, c)       x ~ NegativeBinomial(r, p), of mean r(1 − p)/p
    gamma               log a ~ N(l, s²), t ~ InverseGamma(c, cm)         x ~ Gamma(a, a/t), of mean t
    beta                logit t ~ N(m, v²), log f ~ N(l, s²)              x ~ Beta(tf, (1 − t)f), of mean t

A missing value has no place in the likelihood: its column is left out of that row.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor import TensorVariable

from bayes_gda.checks import Floats
from bayes_gda.data.table import Dataset
from bayes_gda.models.rows import Rows, SummedModel
from bayes_gda.priors import Dirichlet
from bayes_gda.priors.mixed import ColumnPrior, MixedPrior

# Parameters of a column, (K,) or (K, levels) each, by the name of the variable that they become an entry of.
Parameters = dict[str, TensorVariable]
# The distribution of x given the parameters in the classes of the rows.
Likelihood = Callable[..., TensorVariable]

# The dim that the entries of each variable are named by.
DIMS = {
    "mu": "feature",
    "sigma2": "feature",
    "p": "yes_no",
    "success": "bounded",
    "theta": "level",
    "rate": "count",
    "size": "overdispersed",
    "success_share": "overdispersed",
    "gamma_shape": "positive",
    "gamma_mean": "positive",
    "beta_mean": "proportion",
    "beta_precision": "proportion",
}


def build(data: Dataset, prior: MixedPrior, class_prior: Dirichlet | None = None, *, rowwise: bool = False) -> pm.Model:
    """Write naive Bayes with columns of any type as a PyMC model.

    Parameters
    ----------
    data
        Rows; NaN is a missing value.
    prior
        The distribution of each column, and its prior; see `bayes_gda.priors.mixed`.
    class_prior
        Dirichlet of π; None for the uniform one.
    rowwise
        Write the likelihood row by row, as observed variables `y` and `x_…`, in place of over the distinct values of
        each column with their weights. Equal densities; row by row there are no weights.

    Notes
    -----
    Not row by row, `pm.compute_log_likelihood` has log p(y | x, θ) and log p(x | θ) of each row as `y` and `x`, and
    `pm.sample_posterior_predictive` draws `y` for the rows in the container `X`, with a category as its code; see
    `bayes_gda.models.rows`. Rows with weights leave neither to PyMC.
    """
    alpha = (class_prior or Dirichlet()).vector(data.K)
    with SummedModel(coords=coords(data, prior)) as model:
        pi = pm.Dirichlet("pi", a=alpha, dims="class")
        columns = [(column, *WRITERS[column.distribution](column.name, column.numbers)) for column in prior.columns]
        if rowwise:
            pm.Categorical("y", p=pi, observed=data.y)
            for column, parameters, likelihood in columns:
                rows = ~np.isnan(column.read(data.X))
                in_class = [value[data.y[rows]] for value in parameters.values()]
                likelihood(*in_class, name=f"x_{column.name}", observed=_as(column, column.read(data.X)[rows]))
        else:
            _observe(model, data, pi, columns)
        entries: dict[str, list[TensorVariable]] = {}
        for _, parameters, _ in columns:
            for variable, value in parameters.items():
                entries.setdefault(variable, []).append(value if value.ndim == 2 else value[:, None])
        for variable, parts in entries.items():
            pm.Deterministic(variable, pt.concatenate(parts, axis=1), dims=("class", DIMS[variable]))
    return model


def _observe(
    model: SummedModel, data: Dataset, pi: TensorVariable, columns: list[tuple[ColumnPrior, Parameters, Likelihood]]
) -> None:
    """Add the likelihood over the distinct values of each column, and the rows, with a category as its code."""
    sums = {"y": pt.sum(np.bincount(data.y, weights=data.weight, minlength=data.K) * pt.log(pi))}
    for column, parameters, likelihood in columns:
        x, y, weight = tally(column, data)
        if len(x):
            in_class = [value[y] for value in parameters.values()]
            sums[f"x_{column.name}"] = pt.sum(weight * _log_density(column, likelihood, in_class, pt.constant(x)))
    sizes = [len(parameters) for _, parameters, _ in columns]

    def split(values: tuple[TensorVariable, ...], at: Any) -> list[list[TensorVariable]]:
        """Return the parameters of each column in a class, or in the classes of rows."""
        ends = np.cumsum(sizes)
        return [[value[at] for value in values[end - size : end]] for size, end in zip(sizes, ends, strict=True)]

    def log_density(k: int, x: TensorVariable, *values: TensorVariable) -> TensorVariable:
        total = pt.zeros(x.shape[0])
        for j, ((column, _, likelihood), in_class) in enumerate(zip(columns, split(values, k), strict=True)):
            missing = pt.isnan(x[:, j])
            known = pt.switch(missing, 0 if column.distribution in _WHOLE else 0.5, x[:, j])  # within every range
            total += pt.switch(missing, 0.0, _log_density(column, likelihood, in_class, known))
        return total

    def draw(y: TensorVariable, *values: TensorVariable) -> TensorVariable:
        drawn = [likelihood(*own) for (_, _, likelihood), own in zip(columns, split(values, y), strict=True)]
        return pt.stack([x.astype("float64") for x in drawn], axis=-1)

    X = np.column_stack([column.read(data.X) for column, _, _ in columns])
    values = [value for _, parameters, _ in columns for value in parameters.values()]
    rows = Rows(X, data.y, "column") if data.weight is None else None
    model.observe(sums, rows, [pi, *values], log_density=log_density, draw=draw)


def coords(data: Dataset, prior: MixedPrior) -> dict[str, list[str]]:
    """Return the names of the classes, and of the entries of every variable."""
    out: dict[str, list[str]] = {"class": [str(name) for name in data.class_names]}
    out["column"] = [column.name for column in prior.columns]
    for column in prior.columns:
        out.setdefault(_dim(column), []).extend(column.entries)
    return out


def tally(column: ColumnPrior, data: Dataset) -> tuple[Floats, np.ndarray, Floats]:
    """Return the distinct pairs of value (m,) and class (m,) of a column, and the weight (m,) of their rows."""
    x = column.read(data.X)
    present = ~np.isnan(x)
    weight = None if data.weight is None else data.weight[present]
    pairs, index = np.unique(np.column_stack([data.y[present], x[present]]), axis=0, return_inverse=True)
    total: Floats = np.bincount(index.ravel(), weights=weight, minlength=len(pairs)).astype(np.float64)
    return pairs[:, 1], pairs[:, 0].astype(np.intp), total


# ── The distributions: parameters with their prior, and the likelihood ──────────────────────────────────────────────


def _normal(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    m, kappa, a, b = numbers
    sigma2 = pm.InverseGamma(f"sigma2_{name}", alpha=a, beta=b, dims="class")
    mu = pm.Normal(f"mu_{name}", mu=m, sigma=pt.sqrt(sigma2 / kappa), dims="class")
    return {"mu": mu, "sigma2": sigma2}, lambda mu, sigma2, **to: _made(pm.Normal, to, mu=mu, sigma=pt.sqrt(sigma2))


def _log_normal(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    parameters, _ = _normal(name, numbers)
    return parameters, lambda mu, sigma2, **to: _made(pm.LogNormal, to, mu=mu, sigma=pt.sqrt(sigma2))


def _logit_normal(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    parameters, _ = _normal(name, numbers)
    return parameters, lambda mu, sigma2, **to: _made(pm.LogitNormal, to, mu=mu, sigma=pt.sqrt(sigma2))


def _bernoulli(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    p = pm.Beta(f"p_{name}", alpha=numbers[0], beta=numbers[1], dims="class")
    return {"p": p}, lambda p, **to: _made(pm.Bernoulli, to, p=p)


def _binomial(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    N, a, b = numbers
    p = pm.Beta(f"success_{name}", alpha=a, beta=b, dims="class")
    return {"success": p}, lambda p, **to: _made(pm.Binomial, to, n=int(N), p=p)


def _categorical(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    K = len(pm.modelcontext(None).coords["class"])
    theta = pm.Dirichlet(f"theta_{name}", a=np.tile(numbers, (K, 1)))
    return {"theta": theta}, lambda theta, **to: _made(pm.Categorical, to, p=theta)


def _poisson(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    c, m = numbers
    rate = pm.Gamma(f"rate_{name}", alpha=c, beta=c / m, dims="class")
    return {"rate": rate}, lambda rate, **to: _made(pm.Poisson, to, mu=rate)


def _negative_binomial(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    c, m, center, spread = numbers
    r = pm.LogNormal(f"size_{name}", mu=center, sigma=spread, dims="class")
    p = pm.Beta(f"success_share_{name}", alpha=1 + c * r / m, beta=c, dims="class")
    return {"size": r, "success_share": p}, lambda r, p, **to: _made(pm.NegativeBinomial, to, n=r, p=p)


def _gamma(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    c, m, center, spread = numbers
    shape = pm.LogNormal(f"gamma_shape_{name}", mu=center, sigma=spread, dims="class")
    mean = pm.InverseGamma(f"gamma_mean_{name}", alpha=c, beta=c * m, dims="class")
    parameters = {"gamma_shape": shape, "gamma_mean": mean}
    return parameters, lambda shape, mean, **to: _made(pm.Gamma, to, alpha=shape, beta=shape / mean)


def _beta(name: str, numbers: Floats) -> tuple[Parameters, Likelihood]:
    m, v, center, spread = numbers
    mean = pm.math.sigmoid(pm.Normal(f"logit_mean_{name}", mu=m, sigma=v, dims="class"))
    precision = pm.LogNormal(f"beta_precision_{name}", mu=center, sigma=spread, dims="class")
    parameters = {"beta_mean": mean, "beta_precision": precision}
    return parameters, lambda t, f, **to: _made(pm.Beta, to, alpha=t * f, beta=(1 - t) * f)


WRITERS: dict[str, Callable[[str, Floats], tuple[Parameters, Likelihood]]] = {
    "normal": _normal,
    "log-normal": _log_normal,
    "logit-normal": _logit_normal,
    "bernoulli": _bernoulli,
    "binomial": _binomial,
    "categorical": _categorical,
    "poisson": _poisson,
    "negative-binomial": _negative_binomial,
    "gamma": _gamma,
    "beta": _beta,
}
# Distributions whose values PyMC wants as whole numbers.
_WHOLE = {"bernoulli", "binomial", "categorical", "poisson", "negative-binomial"}


def _made(distribution: type[pm.Distribution], to: dict[str, object], **parameters: object) -> TensorVariable:
    """Return the distribution: a variable of the model if it has a name, else on its own."""
    return distribution(to.pop("name"), **parameters, **to) if to else distribution.dist(**parameters)


def _log_density(
    column: ColumnPrior, likelihood: Likelihood, in_class: list[TensorVariable], x: TensorVariable
) -> TensorVariable:
    if column.distribution == "logit-normal":  # of which PyMC knows no log density on its own
        mu, sigma2 = in_class
        return pm.logp(pm.Normal.dist(mu, pt.sqrt(sigma2)), pt.log(x) - pt.log1p(-x)) - pt.log(x) - pt.log1p(-x)
    return pm.logp(likelihood(*in_class), _as(column, x))


def _as(column: ColumnPrior, x: Any) -> Any:
    return x.astype("int64") if column.distribution in _WHOLE else x


def _dim(column: ColumnPrior) -> str:
    words = {"normal": "mu", "log-normal": "mu", "logit-normal": "mu", "bernoulli": "p", "binomial": "success"}
    others = {"categorical": "theta", "poisson": "rate", "negative-binomial": "size", "gamma": "gamma_shape"}
    return DIMS[(words | others | {"beta": "beta_mean"})[column.distribution]]
