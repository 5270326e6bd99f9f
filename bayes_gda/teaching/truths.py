"""Truths to learn from: two classes whose p(y=1 | x) is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from scipy.special import expit, gammaln, logsumexp
from scipy.stats import norm, qmc, t

from bayes_gda.checks import Floats

# Test rows; every block of replicates has others, so that their error averages out.
TEST_ROWS = 2**13


def seed_of(*parts: object) -> int:
    """Return a seed that depends on these names alone, so that any order and number of processes gives the same."""
    return crc32("/".join(map(str, parts)).encode())


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Two equally frequent classes.

    Parameters
    ----------
    description
        What it is, in a few words.
    d
        Number of features.
    transform
        (u, y) → x: rows of class y from uniform numbers (n, d + 1).
    log_odds
        x → log p(x | 1)/p(x | 0).
    delta
        Distance of the means, if the classes are Gaussian with the same covariance.
    """

    description: str
    d: int
    transform: Callable[[Floats, Floats], Floats]
    log_odds: Callable[[Floats], Floats]
    delta: float | None = None

    def draw(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw rows (n, d) and labels (n,) of 0 and 1."""
        u = rng.random((n, self.d + 2))
        y = (u[:, 0] < 0.5).astype(np.float64)
        return self.transform(u[:, 1:], y), y

    def test_rows(self, seed: int) -> Floats:
        """Return quasi-random rows of both classes (TEST_ROWS, d)."""
        u = qmc.Sobol(self.d + 2, rng=np.random.default_rng(seed)).random(TEST_ROWS)
        # A scrambled point may round to 0 or 1, where quantiles are infinite.
        u = np.clip(u, 1e-12, 1 - 1e-12)
        return self.transform(u[:, 1:], (u[:, 0] < 0.5).astype(np.float64))

    def probability(self, X: Floats) -> Floats:
        """Return p(y=1 | x) (n,)."""
        return np.asarray(expit(self.log_odds(X)))


def gaussian(delta: float) -> Truth:
    """N(±Δ/2 e₁, I) in two dimensions: Efron's."""
    shift = np.array([delta / 2, 0.0])
    return Truth(
        f"Gaussian, Δ = {delta:g}",
        2,
        lambda u, y: norm.ppf(u[:, :2]) + (2 * y - 1)[:, None] * shift,
        lambda X: delta * X[:, 0],
        delta,
    )


def _exponential() -> Truth:
    """x_j ~ Exp(mean 1 or 3): the log-odds are linear, the classes far from Gaussian and of unequal spread."""
    mean = np.array([1.0, 3.0])
    return Truth(
        "exponential features, means 1 and 3",
        2,
        lambda u, y: -np.log(u[:, :2]) * mean[y.astype(int)][:, None],
        lambda X: X.sum(axis=1) * (1 / mean[0] - 1 / mean[1]) - 2 * np.log(mean[1] / mean[0]),
    )


def _lognormal() -> Truth:
    """x = exp(z), z Gaussian with means 0 and 1.5 in the first feature: log-odds linear in log x."""
    return Truth(
        "log-normal features",
        2,
        lambda u, y: np.exp(norm.ppf(u[:, :2]) + np.column_stack([1.5 * y, 0 * y])),
        lambda X: 1.5 * np.log(X[:, 0]) - 1.5**2 / 2,
    )


def _outliers() -> Truth:
    """Gaussian at distance 2.5, but a tenth of class 1 lies far out: a mixture."""
    share, far = 0.1, np.array([12.0, 6.0])
    centre = np.array([[-1.25, 0.0], [1.25, 0.0]])

    def transform(u: Floats, y: Floats) -> Floats:
        moved = (u[:, 2] < share) & (y == 1)
        return np.asarray(norm.ppf(u[:, :2]) + np.where(moved[:, None], far, centre[y.astype(int)]))

    def log_density(X: Floats, mean: Floats) -> Floats:
        return np.asarray(-0.5 * ((X - mean) ** 2).sum(axis=1))

    def log_odds(X: Floats) -> Floats:
        parts = [np.log(1 - share) + log_density(X, centre[1]), np.log(share) + log_density(X, far)]
        return np.asarray(logsumexp(parts, axis=0) - log_density(X, centre[0]))

    return Truth("a tenth of one class far out", 2, transform, log_odds)


def _heavy_tails() -> Truth:
    """Student-t with 1.5 degrees of freedom in each feature, medians two apart: no covariance exists."""
    nu, shift = 1.5, np.array([1.0, 0.0])

    def log_density(x: Floats) -> Floats:
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu * np.pi)
        return np.asarray(constant - (nu + 1) / 2 * np.log1p(x**2 / nu))

    return Truth(
        "heavy tails (t, 1.5 degrees of freedom)",
        2,
        lambda u, y: t.ppf(u[:, :2], nu) + (2 * y - 1)[:, None] * shift,
        lambda X: log_density(X[:, 0] - 1) - log_density(X[:, 0] + 1),
    )


def _yes_no() -> Truth:
    """Six independent features of 0 and 1: log-odds linear."""
    p = np.array([[0.3, 0.3, 0.2, 0.5, 0.5, 0.05], [0.7, 0.5, 0.3, 0.5, 0.3, 0.5]])
    return Truth(
        "six yes/no features",
        6,
        lambda u, y: (u[:, :6] < p[y.astype(int)]).astype(np.float64),
        lambda X: X @ np.log(p[1] / p[0]) + (1 - X) @ np.log((1 - p[1]) / (1 - p[0])),
    )


# Where the two rules begin to differ, and as far as Efron's table goes.
DELTAS = (2.0, 3.0, 4.0)
TRUTHS: Mapping[str, Truth] = {f"gaussian-{delta:g}": gaussian(delta) for delta in DELTAS} | {
    "exponential": _exponential(),
    "log-normal": _lognormal(),
    "outliers": _outliers(),
    "heavy-tails": _heavy_tails(),
    "yes-no": _yes_no(),
}
