"""Where EM begins: clusters of the rows of a class by k-means, from random rows that are likely to be far apart."""

import numpy as np

from bayes_gda.checks import Floats
from bayes_gda.families.gaussian.densities import Indices

KMEANS_STEPS = 10


def cluster(Y: Floats, count: Floats, order: Indices, C: int, rng: np.random.Generator) -> Floats:
    """Return shares (n, C), 0 or 1, of the clusters of rows Y (n, d) with weights `count` (n,).

    `order` (n,) sorts the rows by their values, so that a row of weight 2 starts as two equal ones do, wherever these
    stand.
    """
    if C == 1 or not len(Y):
        return np.full((len(Y), C), 1 / C)
    center = Y[_pick(count, order, rng)][None]
    while len(center) < C:
        center = np.vstack([center, Y[_pick(count * _squares(Y, center).min(axis=1), order, rng)]])
    for _ in range(KMEANS_STEPS):
        share = np.eye(C)[_squares(Y, center).argmin(axis=1)] * count[:, None]
        size = share.sum(axis=0)[:, None]
        center = np.where(size > 0, share.T @ Y / np.where(size > 0, size, 1.0), center)
    return np.eye(C)[_squares(Y, center).argmin(axis=1)]


def _pick(weight: Floats, order: Indices, rng: np.random.Generator) -> int:
    """Return one of the rows at random, by their weights (n,)."""
    total = np.cumsum(weight[order])
    return int(order[min(np.searchsorted(total, rng.random() * total[-1]), len(order) - 1)])


def _squares(Y: Floats, center: Floats) -> Floats:
    return np.asarray(((Y[:, None] - center) ** 2).sum(axis=2))
