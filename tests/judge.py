"""One judge for every method: do these draws come from this posterior?"""

import numpy as np


def assert_same_mean(draws, truth, *, z=4.5, ess=None):
    """Hold the mean of independent draws (size, …) to the true mean, entry by entry, within `z` standard errors."""
    draws, truth = np.asarray(draws), np.asarray(truth)
    size = len(draws) if ess is None else ess
    error = draws.std(axis=0) / np.sqrt(size)
    score = np.abs(draws.mean(axis=0) - truth) / np.where(error > 0, error, 1.0)
    assert (score < z).all(), f"a mean is {score.max():.1f} standard errors from the truth"


def assert_same_posterior(draws, truth, *, z=4.5):
    """Hold two sets of independent draws to each other: means, and means of squares, of every variable they share."""
    shared = draws.keys() & truth.keys()
    assert shared
    for name in shared:
        a, b = np.asarray(draws[name]), np.asarray(truth[name])
        assert a.shape[1:] == b.shape[1:], name
        for power in (1, 2):
            # Centred and scaled first, so that squares say something about spread.
            center, scale = b.mean(axis=0), b.std(axis=0) + 1e-300
            p, q = ((a - center) / scale) ** power, ((b - center) / scale) ** power
            error = np.sqrt(p.var(axis=0) / len(p) + q.var(axis=0) / len(q)) + 1e-300
            score = np.abs(p.mean(axis=0) - q.mean(axis=0)) / error
            assert score.max() < z, f"{name}: moment {power} is {score.max():.1f} standard errors off"
