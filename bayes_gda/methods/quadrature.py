"""Posteriors of one or two parameters by the trapezoidal rule, whose error is below rounding for densities like these.

In coordinates u without ends (logarithms, log odds) a posterior of n rows is smooth and falls to zero on all sides. The
trapezoidal rule then converges faster than any power of the step: for a Gaussian with a step of h standard deviations
its relative error is 2 exp(−2π²/h²), 1e-95 at h = .3 and 1e-13 at h = .8. So the rule needs a box that holds the
posterior, at a step below: the box is narrowed, or widened, until what matters fills half of it.

References
----------
Trefethen & Weideman (2014), The exponentially convergent trapezoidal rule, SIAM Review 56.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline, RectBivariateSpline
from scipy.special import logsumexp

from bayes_gda.checks import Floats
from bayes_gda.errors import ConvergenceError

# What is this far below the peak, in logarithms, is left out, for one coordinate and for two: e⁻³⁰ is 1e-13.
DEPTH = {1: 45.0, 2: 30.0}
# Points in each direction.
POINTS = {1: 129, 2: 161}
# Boxes tried; each is at least half as wide as the last, and a prior's whole box is some 2⁸ times a posterior's.
MOST = 60
# No logarithm of a parameter lies this far from another: exp would overflow.
WIDEST = 300.0
# Points between two of the rule from which draws are made, by a spline through the log density.
FINE = 8

# Returns log p (C, G) at points (C, G, q), for each of C posteriors.
LogDensity = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Points of the rule and their weights, for C posteriors of q coordinates.

    Parameters
    ----------
    axes
        (C, q, G) points along each coordinate.
    log_density
        (C, G^q) log p at all points, in the order of `points`.
    """

    axes: Floats
    log_density: Floats

    @property
    def points(self) -> Floats:
        """(C, G^q, q) all points."""
        return _mesh(self.axes)

    @property
    def log_integral(self) -> Floats:
        """(C,) log ∫ p du."""
        step = self.axes[:, :, 1] - self.axes[:, :, 0]
        return np.asarray(logsumexp(self.log_density, axis=1) + np.log(step).sum(axis=1))

    @property
    def error(self) -> Floats:
        """(C,) by how much `log_integral` differs from that of every second point: far more than its own error.

        Halving the step squares the relative error, so that 1e-4 here means about 1e-8.
        """
        C, q, G = self.axes.shape
        half = (slice(None), *(slice(None, None, 2),) * q)
        coarse = self.log_density.reshape(C, *(G,) * q)[half].reshape(C, -1)
        return np.abs(logsumexp(coarse, axis=1) + q * np.log(2) - logsumexp(self.log_density, axis=1))

    @property
    def log_weight(self) -> Floats:
        """(C, G^q) log probabilities of the points, which sum to 1."""
        return self.log_density - logsumexp(self.log_density, axis=1, keepdims=True)

    @property
    def box(self) -> Floats:
        """(C, q, 2) ends of the axes."""
        return self.axes[:, :, [0, -1]]

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw points (size, C, q): from the cells of a finer mesh, by their probability, and anywhere within."""
        C, q, G = self.axes.shape
        out = np.empty((size, C, q))
        for c in range(C):
            fine = [np.linspace(axis[0], axis[-1], FINE * (G - 1) + 1) for axis in self.axes[c]]
            if q == 1:
                log_p = CubicSpline(self.axes[c, 0], self.log_density[c])(fine[0])
            else:
                spline = RectBivariateSpline(*self.axes[c], self.log_density[c].reshape(G, G))
                log_p = spline(*fine).ravel()
            edges = np.cumsum(np.exp(log_p - log_p.max()))
            chosen = np.searchsorted(edges, rng.random(size) * edges[-1]).clip(0, len(edges) - 1)
            index = np.unravel_index(chosen, (len(fine[0]),) * q)
            for j in range(q):
                step = fine[j][1] - fine[j][0]
                out[:, c, j] = fine[j][index[j]] + step * (rng.random(size) - 0.5)
        return out


def find_rule(log_density: LogDensity, box: Floats) -> Rule:
    """Return the rule of posteriors of which a box (C, q, 2) is known that holds, or touches, what matters.

    Parameters
    ----------
    log_density
        Smooth, with one peak that matters.
    box
        Where to begin, such as ten standard deviations about the prior's centre.
    """
    box = np.array(box, dtype=np.float64)
    C, q, _ = box.shape
    G = POINTS[q]
    for _ in range(MOST):
        axes = np.linspace(box[..., 0], box[..., 1], G, axis=-1)
        log_p = log_density(_mesh(axes))
        log_p = np.where(np.isnan(log_p), -np.inf, log_p)
        lattice = log_p.reshape(C, *(G,) * q)
        peak = log_p.max(axis=1)[:, None]
        first, last = np.empty((C, q), dtype=np.intp), np.empty((C, q), dtype=np.intp)
        for j in range(q):
            others = tuple(i + 1 for i in range(q) if i != j)
            high = lattice.max(axis=others) > peak - DEPTH[q]
            first[:, j], last[:, j] = high.argmax(axis=1), G - 1 - high[:, ::-1].argmax(axis=1)
        low_end, high_end = first == 0, last == G - 1
        filled = (last - first >= G // 2) & ~low_end & ~high_end
        if filled.all():
            return Rule(axes, log_p)
        step, width = axes[..., 1] - axes[..., 0], box[..., 1] - box[..., 0]
        start = (
            np.take_along_axis(axes, first[..., None], axis=-1)[..., 0] - 2 * step - np.where(low_end, 0.2 * width, 0.0)
        )
        stop = (
            np.take_along_axis(axes, last[..., None], axis=-1)[..., 0] + 2 * step + np.where(high_end, 0.2 * width, 0.0)
        )
        if (stop - start).max() > WIDEST:
            break
        # A box that is right in one coordinate stays there, so that the others have a fixed view.
        box = np.where(filled[..., None], box, np.stack([start, stop], axis=-1))
    raise ConvergenceError(
        "The posterior of a column has no box that holds it. Give its prior numbers nearer to the scale of its values."
    )


def _mesh(axes: Floats) -> Floats:
    """Return all points (C, G^q, q) of axes (C, q, G)."""
    C, q, G = axes.shape
    if q == 1:
        return axes.transpose(0, 2, 1)
    first = np.broadcast_to(axes[:, 0, :, None], (C, G, G)).reshape(C, -1)
    second = np.broadcast_to(axes[:, 1, None, :], (C, G, G)).reshape(C, -1)
    return np.stack([first, second], axis=-1)
