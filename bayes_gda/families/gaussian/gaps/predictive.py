"""Predictions for rows with missing features, and which of these would be worth measuring.

A generative model needs no filling in: what is missing is integrated out. The marginal of a Gaussian is a Gaussian, and
of a Student-t a Student-t with the same degrees of freedom, on the features that are there:

    Σ ~ IW(Ψ, ν)  ⇒  Σ_oo ~ IW(Ψ_oo, ν − number missing)

Rows go by pattern of missingness, so that the cost of the factorisations grows with the patterns, not the rows.

To measure feature j of a row would show x_j, whose distribution given x_o is a mixture over the classes of conditional
Student-t's. It pays by what it takes off the expected loss, by the time we know it:

    worth_j = min_a E[L(a) | x_o] − E[ min_a E[L(a) | x_o, x_j] | x_o ] ≥ 0

References
----------
Raiffa & Schlaifer (1961), Applied Statistical Decision Theory: the expected value of sample information.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, logsumexp, ndtri, softmax, stdtrit

from bayes_gda.checks import Floats, finite
from bayes_gda.data.gaps import Mask, check_gapped, find_patterns
from bayes_gda.errors import DataError
from bayes_gda.families.gaussian.exact import NIGPosterior, NIWPosterior
from bayes_gda.families.gaussian.predictive import log_density_of_single_rows, log_joint_of_draws, log_joint_per_draw
from bayes_gda.linalg import wide_blocks

# An exact posterior, or draws: `pi` (S, K), `mu` (S, K, d) and `Sigma` (S, [K,] d, d) or `sigma2` (S, K, d).
type Source = NIWPosterior | NIGPosterior | Mapping[str, Floats]

# Quadrature points a class. The loss has kinks where the decision turns, so the error falls as 1/N² and no faster; 128
# left at most 7e-6 of the largest cost in LDA, QDA and naive models of 80 rows.
NODES = 128
# Draws that stand for all in `worth_measuring`, whose cost grows with their square. On pima with QDA, 100 rows take
# .2 s and are within .004 (rms) of the exact worth; with 256 draws they take 4 s for .003.
WORTH_DRAWS = 64
# Points of each of them, at least: with two, the worth of pima's features was four times too large.
DRAW_NODES = 4


# ── Class probabilities ─────────────────────────────────────────────────────────────────────────────────────────────


def marginal(source: Source, observed: Mask) -> Source:
    """Integrate features out: the same posterior, or the same draws, of the features that are `observed` (d,).

    An exact marginal has no evidence of its own, as it does not know what the other features said: it is NaN.
    """
    o = np.flatnonzero(observed)
    if isinstance(source, NIWPosterior):
        gone = len(observed) - len(o)
        Psi = source.Psi[:, o[:, None], o]
        return NIWPosterior(source.m[:, o], source.kappa, Psi, source.nu - gone, source.alpha, np.nan)
    if isinstance(source, NIGPosterior):
        m, kappa, a, b = (part[:, o] for part in (source.m, source.kappa, source.a, source.b))
        return NIGPosterior(m, kappa, a, b, source.alpha, np.nan)
    spread = {name: source[name][..., o] for name in ("sigma2",) if name in source}
    if "Sigma" in source:
        spread = {"Sigma": source["Sigma"][..., o[:, None], o]}
    return {"pi": source["pi"], "mu": source["mu"][..., o]} | spread


def log_joint_observed(source: Source, X: ArrayLike) -> Floats:
    """Return log p(x_observed, y=k | data) (n, K) of rows that may lack any of their features.

    A row with nothing observed gets the class shares.

    Parameters
    ----------
    source
        Exact posterior, or draws of the parameters.
    X
        (n, d) features; NaN is a missing value.
    """
    X = check_source(source, X)
    out = np.empty((len(X), number_of_classes(source)))
    for observed, rows in find_patterns(X):
        part = marginal(source, observed)
        if not observed.any():
            out[rows] = np.log(_shares(source))
        elif isinstance(part, Mapping):
            out[rows] = log_joint_of_draws(part, X[np.ix_(rows, observed)])
        else:
            out[rows] = part.log_joint(X[np.ix_(rows, observed)])
    return out


def log_joint_observed_per_draw(draws: Mapping[str, Floats], X: ArrayLike) -> Floats:
    """Return log p(x_observed, y=k | θ_s) (S, n, K) of rows that may lack any of their features, for each draw."""
    X = check_source(draws, X)
    out = np.empty((len(draws["pi"]), len(X), number_of_classes(draws)))
    for observed, rows in find_patterns(X):
        if observed.any():
            part = marginal(draws, observed)
            assert isinstance(part, Mapping)
            out[:, rows] = log_joint_per_draw(part, X[np.ix_(rows, observed)])
        else:
            out[:, rows] = np.log(draws["pi"])[:, None]
    return out


def log_density_observed_of_single_rows(
    posterior: NIWPosterior | NIGPosterior, X: ArrayLike, size: int, random_seed: int
) -> Floats:
    """Draw log p(x_observed | y=k, θ_s) (S, n, K) for each row by itself; it does not depend on the other rows."""
    X = check_source(posterior, X)
    out = np.zeros((size, len(X), number_of_classes(posterior)))  # log 1 where nothing is observed
    for observed, rows in find_patterns(X):
        if observed.any():
            part = posterior if observed.all() else marginal(posterior, observed)
            assert not isinstance(part, Mapping)
            seen = X[np.ix_(rows, observed)]
            out[:, rows] = log_density_of_single_rows(part, seen, size, random_seed=random_seed)
    return out


def check_source(source: Source, X: ArrayLike) -> Floats:
    """Return X (n, d) as float64 with NaN where missing, or raise if it does not fit the model."""
    X = check_gapped(X)
    d = _means(source).shape[-1]
    if X.shape[1] != d:
        raise DataError(f"`X` must have the {d} features that the model was fitted to; got {X.shape[1]}.")
    return X


def thin(draws: Mapping[str, Floats], size: int) -> dict[str, Floats]:
    """Return at most `size` of the draws, evenly spread."""
    S = len(draws["pi"])
    chosen = np.linspace(0, S - 1, min(S, size)).round().astype(np.intp)
    return {name: np.asarray(value)[chosen] for name, value in draws.items()}


def number_of_classes(source: Source) -> int:
    """Return K."""
    return int(_means(source).shape[-2])


# ── What to measure ─────────────────────────────────────────────────────────────────────────────────────────────────


def worth_measuring(source: Source, X: ArrayLike, costs: ArrayLike | None = None, *, nodes: int = NODES) -> Floats:
    """Return by how much measuring each missing feature would lower the expected loss (n, d); NaN where it is known.

    Each class gets `nodes` points at quantiles of its distribution of x_j given x_o. The loss before and after is
    taken over the same points, so that the worth is never negative, and exactly zero where no value could change the
    decision. It does not count what the measurement costs: take that off.

    Parameters
    ----------
    source
        Exact posterior, or draws of the parameters, of which at most 64, evenly spread, are used.
    X
        (n, d) features; NaN is a missing value.
    costs
        (A, K) loss of each action under each class; None counts errors, so that the worth is in lower error rate.
    nodes
        Points of the quadrature for each class.
    """
    X = check_source(source, X)
    K = number_of_classes(source)
    C = 1.0 - np.eye(K) if costs is None else finite("costs", costs, error=DataError)
    if C.ndim != 2 or C.shape[1] != K or len(C) < 2:
        raise DataError(f"`costs` must be (A, {K}), actions (A ≥ 2) by classes; got shape {C.shape}.")
    if nodes < 1:
        raise DataError(f"`nodes` must be at least 1; got {nodes}.")
    if isinstance(source, Mapping):
        source = thin(source, WORTH_DRAWS)
    out = np.full(X.shape, np.nan)
    for observed, rows in find_patterns(X):
        if observed.all():
            continue
        missing = np.flatnonzero(~observed)
        width = _width(source, nodes)
        for block in wide_blocks(len(rows), width):
            chosen = rows[block]
            parts = _conditionals(source, X[np.ix_(chosen, observed)], observed)
            for j, part in zip(missing, parts, strict=True):
                out[chosen, j] = _worth(part, C, nodes)
    return out


@dataclass(frozen=True, slots=True, eq=False)
class _Mixture:
    """Distribution of one missing feature given what r rows have: Student-t's, or Gaussians where `dof` is infinite.

    Parameters
    ----------
    log_weight
        (r, S, K) log p(x_o, y=k) of each component, up to a constant in each row; S = 1 for an exact posterior.
    location, scale
        (r, S, K) centre and scale.
    dof
        (S, K) or broadcast to it, degrees of freedom.
    """

    log_weight: Floats
    location: Floats
    scale: Floats
    dof: Floats

    def log_density(self, x: Floats) -> Floats:
        """Return log density of each component (r, N, S, K) at points x (r, N)."""
        z = (x[:, :, None, None] - self.location[:, None]) / self.scale[:, None]
        nu = self.dof
        if np.isinf(nu).all():
            kernel = -0.5 * z**2 - 0.5 * np.log(2 * np.pi)
        else:
            constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
            kernel = constant - 0.5 * (nu + 1) * np.log1p(z**2 / nu)
        return np.asarray(kernel - np.log(self.scale)[:, None])


def _worth(mixture: _Mixture, costs: Floats, nodes: int) -> Floats:
    """Return the value (r,) of seeing the feature."""
    r, S, K = mixture.log_weight.shape
    each = _nodes_each(nodes, S)
    # Midpoints, shifted from draw to draw so that the points of all draws interleave, and crowded towards the tails by
    # the substitution u = 30 ∫ v²(1 − v)² dv: even points in u, of weight 1/N all, miss the tails and err as 1/N.
    v = (np.arange(each)[:, None] + (np.arange(S) + 0.5) / S) / each  # (each, S)
    u = v**3 * (10 - 15 * v + 6 * v**2)
    share = (v * (1 - v)) ** 2
    share /= share.sum(axis=0)
    dof = np.broadcast_to(mixture.dof, (S, K))
    standard = ndtri(u)[..., None] if np.isinf(dof).all() else stdtrit(dof, u[..., None])
    x = mixture.location[:, None] + mixture.scale[:, None] * standard  # (r, each, S, K)
    weight = softmax(mixture.log_weight.reshape(r, -1), axis=1).reshape(r, 1, S, K) * share[..., None]
    log_joint = mixture.log_weight[:, None] + mixture.log_density(x.reshape(r, -1))
    P = softmax(logsumexp(log_joint, axis=2), axis=2)  # p(y=k | x_o, x_j) (r, N, K)
    loss = P @ costs.T
    w = np.broadcast_to(weight, x.shape).reshape(r, -1)
    before = np.einsum("rn,rna->ra", w, loss).min(axis=1)
    after = np.einsum("rn,rn->r", w, loss.min(axis=2))
    # Not negative but for rounding, since the least of sums is no less than the sum of the least.
    worth = before - after
    return np.where(worth > 1e-14 * np.abs(costs).max(), worth, 0.0)


def _conditionals(source: Source, X: Floats, observed: Mask) -> list[_Mixture]:
    """Return the distribution of each missing feature given the observed ones X (r, p)."""
    gap = ~observed
    if isinstance(source, NIGPosterior):  # features are independent given the class
        log_weight = _log_weight(source, X, observed)
        scale = np.sqrt(source.b * (source.kappa + 1) / (source.a * source.kappa))
        shape = log_weight.shape
        return [
            _Mixture(log_weight, np.broadcast_to(source.m[:, j], shape), np.broadcast_to(scale[:, j], shape), dof)
            for j, dof in ((j, 2 * source.a[:, j]) for j in np.flatnonzero(gap))
        ]
    m, V, dof = _components(source)  # (S, K, d), (S, K, d, d), (S, K)
    o, u = np.flatnonzero(observed), np.flatnonzero(gap)
    L = np.linalg.cholesky(V[..., o[:, None], o])
    W = np.linalg.solve(L, V[..., o[:, None], u])  # (S, K, p, missing)
    z = np.linalg.solve(L, np.moveaxis(X[:, None, None, :] - m[..., o], 0, -1))  # (S, K, p, r)
    location = m[..., u][..., None] + np.swapaxes(W, -1, -2) @ z  # (S, K, missing, r)
    rest = V[..., u, u] - (W**2).sum(axis=-2)
    # Far out in the observed features, a Student-t is wider in the others.
    q, p = (z**2).sum(axis=-2), len(o)
    wider = np.ones_like(q) if np.isinf(dof).all() else (dof[..., None] + q) / (dof + p)[..., None]
    scale = np.sqrt(rest[..., None] * wider[:, :, None])
    location, scale = (np.moveaxis(part, -1, 0) for part in (location, scale))  # (r, S, K, missing)
    log_weight = _log_weight(source, X, observed)
    return [_Mixture(log_weight, location[..., i], scale[..., i], dof + p) for i in range(len(u))]


def _components(source: NIWPosterior | Mapping[str, Floats]) -> tuple[Floats, Floats, Floats]:
    """Return centres (S, K, d), scale matrices (S, K, d, d) and degrees of freedom (S, K) of the predictives."""
    if isinstance(source, NIWPosterior):
        K, d = source.m.shape
        dof = np.broadcast_to(source.nu - d + 1, (K,))
        V = source.Psi * ((source.kappa + 1) / (source.kappa * dof))[:, None, None]
        return source.m[None], V[None], dof[None]
    mu = source["mu"]
    if "sigma2" in source:
        return mu, source["sigma2"][..., None] * np.eye(mu.shape[-1]), np.full(mu.shape[:2], np.inf)
    Sigma = source["Sigma"] if source["Sigma"].ndim == 4 else source["Sigma"][:, None]
    return mu, np.broadcast_to(Sigma, (*mu.shape, mu.shape[-1])), np.full(mu.shape[:2], np.inf)


def _log_weight(source: Source, X: Floats, observed: Mask) -> Floats:
    """Return log p(x_o, y=k | θ_s) (r, S, K); S = 1 for an exact posterior."""
    full = np.full((len(X), len(observed)), np.nan)
    full[:, observed] = X
    if isinstance(source, Mapping):
        return np.swapaxes(log_joint_observed_per_draw(source, full), 0, 1)
    return log_joint_observed(source, full)[:, None]


def _nodes_each(nodes: int, S: int) -> int:
    """Points of each of S draws, or of the one exact posterior."""
    return nodes if S == 1 else max(DRAW_NODES, nodes // S)


def _width(source: Source, nodes: int) -> int:
    """Numbers that one row takes up: points of all components × components."""
    S = len(source["pi"]) if isinstance(source, Mapping) else 1
    components = number_of_classes(source) * S
    return components * _nodes_each(nodes, S) * components


def _shares(source: Source) -> Floats:
    """E[π] (K,)."""
    if isinstance(source, Mapping):
        return np.asarray(source["pi"].mean(axis=0))
    return np.asarray(source.alpha / source.alpha.sum())


def _means(source: Source) -> NDArray[np.float64]:
    return source["mu"] if isinstance(source, Mapping) else source.m
