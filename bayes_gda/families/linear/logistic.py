"""Log posterior of logistic regression with a Gaussian prior, and its derivatives to third order.

With aᵢ = wᵀφᵢ, pᵢ = σ(aᵢ), sᵢ successes out of tᵢ trials (t = 1 for a 0/1 label) and row weights cᵢ:

    log p(y, w) = Σ cᵢ [log C(tᵢ, sᵢ) + sᵢ log pᵢ + (tᵢ − sᵢ) log(1 − pᵢ)] + log N(w | m₀, S₀)
    gradient    = Φᵀ c(s − tp) − S₀⁻¹(w − m₀)
    precision H = Φᵀ diag(c t p(1 − p)) Φ + S₀⁻¹            minus the Hessian, so positive definite
    ∂³/∂w³      = −Σ vᵢ φᵢ⊗φᵢ⊗φᵢ,   vᵢ = cᵢ tᵢ pᵢ(1 − pᵢ)(1 − 2pᵢ)

Targets are immutable; `softmax.SoftmaxTarget` is another.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, gammaln

from bayes_gda.checks import Floats, check_design, check_rows, frozen
from bayes_gda.data.features import Design
from bayes_gda.errors import DataError
from bayes_gda.linalg import (
    activation_blocks,
    block_rows,
    draw_parts,
    gram,
    in_threads,
    one_blas_thread,
    parts,
    product,
    row_blocks,
)
from bayes_gda.priors import Normal


@dataclass(frozen=True, slots=True, eq=False)
class LogisticTarget:
    """Binary logistic regression: y ~ Binomial(t, σ(Φw)), w ~ N(m₀, S₀).

    Parameters
    ----------
    Phi
        (n, m) design matrix. Not copied if it is a C-ordered float64 array: do not change it afterwards.
    y
        (n,) labels 0 or 1; with `trials`, the number of successes.
    prior
        Prior of the weights. A flat direction adds 0 to the log density.
    sample_weight
        (n,) weights ≥ 0; a row of weight 2 counts as two rows. None is 1 for all.
    trials
        (n,) number of trials of each row; None is 1 for all.
    """

    Phi: Floats
    y: Floats | NDArray[np.intp]
    prior: Normal
    sample_weight: Floats | None = None
    trials: Floats | None = None
    # c s, c(t − s) and Σ c log C(t, s): all that the labels, weights and trials are needed for.
    successes: Floats = field(init=False, repr=False)
    failures: Floats = field(init=False, repr=False)
    log_coefficient: float = field(init=False, repr=False)
    gaussian: "GaussianTerms" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        design: Any = self.Phi
        Phi = self.Phi if type(design) is Design else check_design(design)
        n, m = Phi.shape
        y = check_rows("y", self.y, n)
        t: Floats | float = 1.0 if self.trials is None else check_rows("trials", self.trials, n)
        c: Floats | float = 1.0
        if self.sample_weight is not None:
            c = check_rows("sample_weight", self.sample_weight, n)
        log_choose = 0.0
        if self.trials is None:
            if not ((y == 0) | (y == 1)).all():
                bad = y[(y != 0) & (y != 1)][0]
                raise DataError(f"`y` must be 0 or 1; got {bad:g}. Give `trials` if `y` counts successes.")
        else:
            odd = (y > t) | (y % 1 != 0) | (np.asarray(t) % 1 != 0)
            if odd.any():
                i = int(np.argmax(odd))
                trials = float(np.asarray(t)[i])
                raise DataError(f"`y` and `trials` must be whole, y ≤ trials; got {y[i]:g} of {trials:g} in row {i}.")
            log_choose = float(np.sum(c * (gammaln(t + 1) - gammaln(y + 1) - gammaln(t - y + 1))))
        # Of plain labels nothing is copied but the failures.
        successes = y if self.sample_weight is None else frozen(c * y)
        values = {"Phi": Phi, "y": y, "successes": successes, "failures": frozen(c * (t - y))}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "log_coefficient", float(log_choose))
        object.__setattr__(self, "gaussian", GaussianTerms.of(self.prior, m))

    @property
    def dim(self) -> int:
        """Length of the weight vector, m."""
        return int(self.Phi.shape[1])

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.Phi)

    def subset(self, rows: ArrayLike, *, weight: float = 1.0) -> Self:
        """Return the target of the given rows (indices or mask), each weighing `weight` times as much."""
        index = np.asarray(rows)
        c = np.ones(self.n) if self.sample_weight is None else self.sample_weight
        t = None if self.trials is None else np.asarray(self.trials)[index]
        return type(self)(self.Phi[index], self.y[index], self.prior, weight * c[index], t)

    def log_density(self, w: Floats) -> Floats:
        """Return log p(y, w), () for one w (m,), (S,) for S of them (S, m); the prior is normalised."""
        w = np.asarray(w, dtype=np.float64)
        return self.log_likelihood(w) + self.gaussian.log_density(w)

    def log_likelihood(self, w: Floats) -> Floats:
        """Return log p(y | w), () for one w (m,), (S,) for S of them (S, m).

        With e = exp(−|a|): log σ(a) = min(a, 0) − log(1 + e) and log σ(−a) = −max(a, 0) − log(1 + e). No term
        overflows or cancels, so a = 1000 with y = 1 gives exactly 0 and a = 40 gives −4e-18.
        """
        W = np.atleast_2d(np.asarray(w, dtype=np.float64))
        out = np.concatenate(in_threads(lambda draws: self._log_likelihood(W[draws]), draw_parts(len(W), self.n)))
        return out.reshape(np.shape(w)[:-1])

    def _log_likelihood(self, W: Floats) -> Floats:
        """Log likelihood (S,) of one chunk of draws (S, m)."""
        out = np.full(len(W), self.log_coefficient)
        for draws, rows, A, E in activation_blocks(self.Phi, W):
            s, f = self.successes[rows], self.failures[rows]
            np.abs(A, out=E)
            np.negative(E, out=E)
            np.exp(E, out=E)
            out[draws] -= weighted_log1p(E, s + f)
            np.minimum(A, 0.0, out=E)
            out[draws] += E @ s
            np.maximum(A, 0.0, out=E)
            out[draws] -= E @ f
        return out

    def gradient(self, w: Floats) -> Floats:
        """Return ∂ log p(y, w)/∂w (m,)."""
        g = self.gaussian.gradient(w)
        for rows, Phi, a in self._blocks(w):
            p, q, _ = sigmoid(a)
            g += (self.successes[rows] * q - self.failures[rows] * p) @ Phi
        return g

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return log p(y, w) and its gradient (m,): few calls, for samplers that ask for it ten thousand times."""
        g = self.gaussian.gradient(w)
        value = self.log_coefficient + 0.5 * float((w - self.gaussian.mean) @ g) - self.gaussian.log_normalizer
        for rows, Phi, a in self._blocks(w):
            s = self.successes[rows]
            t = s + self.failures[rows]
            e = np.abs(a)
            np.log1p(np.exp(np.negative(e, out=e), out=e), out=e)
            e += np.maximum(a, 0.0)  # log(1 + eᵃ) = max(a, 0) + log(1 + e^{−|a|})
            value += float(s @ a - t @ e)
            p = expit(a)
            p *= t
            g += (s - p) @ Phi
        return value, g

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return log p(y, w) (S,) and its gradients (S, m) at S points (S, m): for chains that step together."""
        G = self.gaussian.gradient(W)
        value = 0.5 * np.einsum("sm,sm->s", W - self.gaussian.mean, G) + self.log_coefficient
        value -= self.gaussian.log_normalizer
        for draws, rows, A, E in activation_blocks(self.Phi, W):
            s = self.successes[rows]
            t = s + self.failures[rows]
            np.exp(np.negative(np.abs(A, out=E), out=E), out=E)
            P = np.where(A >= 0, 1.0, E)  # σ(a) = 1/(1 + e) or e/(1 + e)
            P /= 1 + E
            P *= t
            value[draws] += A @ s - np.maximum(A, 0.0, out=A) @ t - weighted_log1p(E, t)
            G[draws] += product(np.subtract(s, P, out=P), self.Phi[rows])
        return value, G

    def precision(self, w: Floats) -> Floats:
        """Return H = −∂² log p(y, w)/∂w² (m, m)."""
        return self.value_gradient_precision(w)[2]

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log p(y, w), its gradient (m,) and precision (m, m), in one pass over the data."""
        value = self.log_coefficient + float(self.gaussian.log_density(w))
        g, H = self.gaussian.gradient(w), self.gaussian.precision.copy()
        pieces = parts(self.n, self.dim)
        with one_blas_thread() if len(pieces) > 1 else nullcontext():
            for value_part, g_part, H_part in in_threads(lambda part: self._sums(w, part), pieces):
                value += value_part
                g += g_part
                H += H_part
        return value, g, H

    def _sums(self, w: Floats, part: slice) -> tuple[float, Floats, Floats]:
        """Log likelihood, its gradient and its precision, summed over a part of the rows."""
        value, g, H = 0.0, np.zeros(self.dim), np.zeros((self.dim, self.dim))
        scaled = np.empty((min(self.n, block_rows(self.dim)), self.dim))
        for rows, Phi, a in self._blocks(w, part):
            s, f = self.successes[rows], self.failures[rows]
            p, q, e = sigmoid(a)
            value += float(s @ np.minimum(a, 0.0) - f @ np.maximum(a, 0.0) - (s + f) @ np.log1p(e))
            g += (s * q - f * p) @ Phi
            root = np.sqrt((s + f) * (p * q))
            # B = √r Φ, H += BᵀB: half the work of ΦᵀrΦ
            H += gram(np.multiply(Phi, root[:, None], out=scaled[: len(Phi)]))
        return value, g, H

    def third_order_trace(self, w: Floats, V: Floats) -> Floats:
        """Return Σ_jk ∂³ log p/∂wᵢ∂w_j∂w_k V_jk = Φᵀ(−v ∘ diag(ΦVΦᵀ)) (m,), for V (m, m)."""
        g = np.zeros(self.dim)
        for rows, Phi, a in self._blocks(w):
            g -= (self._third(rows, a) * np.einsum("ij,ij->i", product(Phi, V), Phi)) @ Phi
        return g

    def third_order_form(self, w: Floats, h: Floats) -> Floats:
        """Return Σ_ijk ∂³ log p/∂wᵢ∂w_j∂w_k hᵢh_jh_k = −Σ vᵢ(φᵢᵀh)³, () for h (m,), (S,) for (S, m)."""
        v = np.concatenate([self._third(rows, a) for rows, _, a in self._blocks(w)])
        directions = np.atleast_2d(np.asarray(h, dtype=np.float64))
        out = np.zeros(len(directions))
        for draws, rows, U, cube in activation_blocks(self.Phi, directions):
            np.multiply(U, U, out=cube)
            cube *= U
            out[draws] -= cube @ v[rows]
        return out.reshape(np.shape(h)[:-1])

    def _third(self, rows: slice, a: Floats) -> Floats:
        """v = c t pq(q − p) of a block."""
        p, q, _ = sigmoid(a)
        return (self.successes[rows] + self.failures[rows]) * (p * q * (q - p))

    def _blocks(self, w: Floats, part: slice | None = None) -> Iterator[tuple[slice, Floats, Floats]]:
        """Rows, Φ and a = Φw, block by block, of a part of the rows or of all."""
        start, stop = (0, self.n) if part is None else (part.start, part.stop)
        for rows in row_blocks(stop, self.dim, start=start):
            Phi = self.Phi[rows]
            yield rows, Phi, Phi @ w


@dataclass(frozen=True, slots=True, eq=False)
class GaussianTerms:
    """What a Gaussian prior adds to a log density and its derivatives, computed once.

    Parameters
    ----------
    mean
        (m,) m₀.
    precision
        (m, m) S₀⁻¹, zero in flat directions.
    log_normalizer
        log √|2πS₀| over the proper directions.
    """

    mean: Floats
    precision: Floats
    log_normalizer: float

    @classmethod
    def of(cls, prior: Normal, m: int) -> Self:
        """Return the terms of `prior` for m weights."""
        return cls(prior.mean_vector(m), prior.precision(m), prior.log_normalizer(m))

    def log_density(self, w: Floats) -> Floats:
        """Return log N(w | m₀, S₀) for w (..., m)."""
        h = w - self.mean
        return np.asarray(-0.5 * np.einsum("...i,...i->...", h @ self.precision, h) - self.log_normalizer)

    def gradient(self, w: Floats) -> Floats:
        """Return −S₀⁻¹(w − m₀) for w (..., m)."""
        return np.asarray((self.mean - w) @ self.precision)


def sigmoid(a: Floats) -> tuple[Floats, Floats, Floats]:
    """Return p = σ(a), q = σ(−a) and e = exp(−|a|); p and q are both exact in the tails."""
    e = np.exp(-np.abs(a))
    large = 1 / (1 + e)
    small = e * large
    positive = a >= 0
    return np.where(positive, large, small), np.where(positive, small, large), e


def weighted_log1p(E: Floats, t: Floats) -> Floats:
    """Return Σ_j t_j log(1 + E_ij) (draws,), for E (draws, rows) in [0, 1], which is overwritten.

    (1 + x)(1 + y) = 1 + (x + y + xy): where all weights are equal eight rows share a logarithm, the dearest operation
    (12 of 22 ns an element). The form without the 1 keeps tiny terms.
    """
    if (t == t[0]).all():
        for _ in range(3):
            half, odd = divmod(E.shape[1], 2)
            if half < 64:  # shorter runs cost more in calls than they save
                break
            x, y, last = E[:, :half], E[:, half : 2 * half], E[:, -1]
            xy = x * y
            x += y
            x += xy
            if odd:
                x[:, 0] += last * (1 + x[:, 0])
            E = x
    np.log1p(E, out=E)
    return np.asarray(E @ t[: E.shape[1]])
