"""Log posterior of softmax regression with a Gaussian prior on each class's weights, and its derivatives.

With aᵢ = Wφᵢ (K,), pᵢ = softmax(aᵢ), row weights cᵢ, and w the rows of W one after the other:

    log p(y, w)  = Σ cᵢ log p_{i,yᵢ} + Σ_k log N(w_k | m₀, S₀)
    gradient_k   = Σ cᵢ (1[yᵢ = k] − p_ik) φᵢ − S₀⁻¹(w_k − m₀)
    precision_kl = Σ cᵢ (p_ik 1[k = l] − p_ik p_il) φᵢφᵢᵀ + 1[k = l] S₀⁻¹
    ∂³/∂w³       = −Σ cᵢ κ₃(pᵢ) ⊗ φᵢ⊗φᵢ⊗φᵢ,   κ₃ = E[(e − p)⊗(e − p)⊗(e − p)], e a one-hot draw from p

The symmetric coding has a row of W for each class; in the reference coding the last class has zero weights.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bayes_gda.checks import Floats, check_design, check_rows
from bayes_gda.errors import DataError
from bayes_gda.families.linear.logistic import GaussianTerms
from bayes_gda.linalg import block_rows, draw_blocks, draw_parts, gram, in_threads, product, row_blocks
from bayes_gda.priors import Normal


@dataclass(frozen=True, slots=True, eq=False)
class SoftmaxTarget:
    """Softmax regression: y ~ Categorical(softmax(WΦᵀ)), every row of W ~ N(m₀, S₀).

    Parameters
    ----------
    Phi
        (n, m) design matrix. Not copied if it is a C-ordered float64 array: do not change it afterwards.
    y
        (n,) class codes 0…K−1.
    K
        Number of classes, at least 2.
    prior
        Prior of each class's weights. A flat direction adds 0 to the log density.
    sample_weight
        (n,) weights ≥ 0; a row of weight 2 counts as two rows. None is 1 for all.
    reference
        Whether the last class has zero weights, so that W is (K − 1, m); else W is (K, m).
    """

    Phi: Floats
    y: NDArray[np.intp]
    K: int
    prior: Normal
    sample_weight: Floats | None = None
    reference: bool = False
    gaussian: GaussianTerms = field(init=False, repr=False)

    def __post_init__(self) -> None:
        Phi = check_design(self.Phi)
        n, m = Phi.shape
        if self.K < 2:
            raise DataError(f"`K` must be at least 2 classes; got {self.K}.")
        codes = check_rows("y", self.y, n)
        if (codes % 1 != 0).any() or (codes >= self.K).any():
            bad = codes[(codes % 1 != 0) | (codes >= self.K)][0]
            raise DataError(f"`y` must hold class codes 0 to {self.K - 1}; got {bad:g}.")
        y = codes.astype(np.intp)
        y.setflags(write=False)
        c = None if self.sample_weight is None else check_rows("sample_weight", self.sample_weight, n)
        terms = GaussianTerms.of(self.prior, m)
        for name, value in {"Phi": Phi, "y": y, "sample_weight": c, "gaussian": terms}.items():
            object.__setattr__(self, name, value)

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of W: (K, m), or (K − 1, m) in the reference coding."""
        return self.K - self.reference, int(self.Phi.shape[1])

    @property
    def dim(self) -> int:
        """Length of w, the rows of W one after the other."""
        rows, m = self.shape
        return rows * m

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.Phi)

    def subset(self, rows: ArrayLike, *, weight: float = 1.0) -> Self:
        """Return the target of the given rows (indices or mask), each weighing `weight` times as much."""
        index = np.asarray(rows)
        c = np.ones(self.n) if self.sample_weight is None else self.sample_weight
        return type(self)(self.Phi[index], self.y[index], self.K, self.prior, weight * c[index], self.reference)

    def log_density(self, w: Floats) -> Floats:
        """Return log p(y, w), () for one w (dim,), (S,) for S of them (S, dim); the prior is normalised."""
        W = np.reshape(w, (*np.shape(w)[:-1], *self.shape))
        return self.log_likelihood(w) + self.gaussian.log_density(W).sum(axis=-1)

    def log_likelihood(self, w: Floats) -> Floats:
        """Return log p(y | w), () for one w (dim,), (S,) for S of them (S, dim)."""
        W = np.reshape(w, (-1, self.dim))

        def of(block: slice) -> Floats:
            out = np.zeros(block.stop - block.start)
            for draws, rows, A in self._activations(W[block]):
                A -= A.max(axis=1, keepdims=True)
                label = A[:, self.y[rows], np.arange(A.shape[-1])]
                label -= np.log(np.exp(A, out=A).sum(axis=1))
                out[draws] += label @ self._weight(rows)
            return out

        out = np.concatenate(in_threads(of, draw_parts(len(W), self.n)))
        return out.reshape(np.shape(w)[:-1])

    def gradient(self, w: Floats) -> Floats:
        """Return ∂ log p(y, w)/∂w (dim,)."""
        G = self.gaussian.gradient(np.reshape(w, self.shape))
        for _, rows, A in self._activations(w):
            P, Q, _ = _probabilities(A[0])
            G += self._residual(rows, P, Q) @ self.Phi[rows]
        return G.ravel()

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """Return log p(y, w) and its gradient (dim,): few calls, for samplers that ask for it ten thousand times."""
        W, R = np.reshape(w, self.shape), self.shape[0]
        value, G = float(self.gaussian.log_density(W).sum()), self.gaussian.gradient(W)
        for _, rows, (A,) in self._activations(w):
            label = (self.y[rows], np.arange(A.shape[-1]))
            A -= A.max(axis=0)
            P = np.exp(A)
            total = P.sum(axis=0)
            log_p = A[label] - np.log(total)
            P /= total
            P[label] -= 1.0
            if self.sample_weight is not None:
                P *= self.sample_weight[rows]
                log_p *= self.sample_weight[rows]
            value += float(log_p.sum())
            G -= P[:R] @ self.Phi[rows]
        return value, G.ravel()

    def values_and_gradients(self, W: Floats) -> tuple[Floats, Floats]:
        """Return log p(y, w) (S,) and its gradients (S, dim) at S points (S, dim): for chains that step together."""
        V, (R, m) = W.reshape(len(W), *self.shape), self.shape
        value, G = self.gaussian.log_density(V).sum(axis=1), self.gaussian.gradient(V)
        for draws, rows, A in self._activations(W):
            label = (slice(None), self.y[rows], np.arange(A.shape[-1]))
            A -= A.max(axis=1, keepdims=True)
            log_p = A[label]
            P = np.exp(A, out=A)
            total = P.sum(axis=1)
            log_p -= np.log(total)
            P /= total[:, None]
            P[label] -= 1.0
            if self.sample_weight is not None:
                P *= self.sample_weight[rows]
                log_p *= self.sample_weight[rows]
            value[draws] += log_p.sum(axis=1)
            slopes = product(np.ascontiguousarray(P[:, :R]).reshape(-1, P.shape[-1]), self.Phi[rows])
            G[draws] -= slopes.reshape(-1, R, m)
        return value, G.reshape(len(W), -1)

    def precision(self, w: Floats) -> Floats:
        """Return H = −∂² log p(y, w)/∂w² (dim, dim)."""
        return self.value_gradient_precision(w)[2]

    def value_gradient_precision(self, w: Floats) -> tuple[float, Floats, Floats]:
        """Return log p(y, w), its gradient (dim,) and precision (dim, dim), in one pass over the data."""
        W = np.reshape(w, self.shape)
        (R, m), value, G = self.shape, float(self.gaussian.log_density(W).sum()), self.gaussian.gradient(W)
        outer, diagonal = np.zeros((R * m, R * m)), np.tile(self.gaussian.precision, (R, 1, 1))
        buffer = self._buffer()
        scaled = np.empty((len(buffer), m))
        for _, rows, A in self._activations(w):
            Phi, c, y = self.Phi[rows], self._weight(rows), self.y[rows]
            P, Q, log_p = _probabilities(A[0])
            value += float(log_p[y, np.arange(len(y))] @ c)
            G += self._residual(rows, P, Q) @ Phi
            # Off the diagonal −Σ c p_k p_l φφᵀ: one product for all pairs, with rows √c (p_1 φ, …, p_R φ).
            Z = self._kronecker(np.sqrt(c) * P, Phi, buffer)
            outer += gram(Z)
            # On it Σ c p_k q_k φφᵀ, with q = 1 − p exact, so that saturated rows keep their curvature.
            for k in range(R):
                B = np.multiply(Phi, np.sqrt(c * P[k] * Q[k])[:, None], out=scaled[: len(Phi)])
                diagonal[k] += gram(B)
        H = -outer
        for k in range(R):
            H[k * m : (k + 1) * m, k * m : (k + 1) * m] = diagonal[k]
        return value, G.ravel(), H

    def third_order_trace(self, w: Floats, V: Floats) -> Floats:
        """Return Σ_jk ∂³ log p/∂wᵢ∂w_j∂w_k V_jk (dim,), for V (dim, dim).

        With Vᵢ (K, K) the matrix φᵢᵀV_klφᵢ: Σ_bc κ_abc V_bc = E[(e_a − p_a)(e − p)ᵀV(e − p)] = p_a(u_a − Σ_k p_k u_k),
        u_k = V_kk − 2(Vp)_k, because the rest of (e_k − p)ᵀV(e_k − p) is the same for all k.
        """
        R, m = self.shape
        V = (V + V.T) / 2
        G, buffer = np.zeros((R, m)), self._buffer()
        for _, rows, A in self._activations(w):
            Phi, P = self.Phi[rows], _probabilities(A[0])[0]
            Vp = product(self._kronecker(P, Phi, buffer), V).reshape(-1, R, m)
            U = np.zeros(P.shape)  # the reference class, whose weights do not vary, has u = 0
            U[:R] = -2 * np.einsum("ikj,ij->ki", Vp, Phi)
            for k in range(R):
                block = slice(k * m, (k + 1) * m)
                U[k] += np.einsum("ij,ij->i", product(Phi, V[block, block]), Phi)
            U -= (P * U).sum(axis=0)
            G -= (self._weight(rows) * P * U)[:R] @ Phi
        return G.ravel()

    def third_order_form(self, w: Floats, h: Floats) -> Floats:
        """Return Σ_ijk ∂³ log p/∂wᵢ∂w_j∂w_k hᵢh_jh_k = −Σ cᵢ E[(u − E u)³], () for h (dim,), (S,) for (S, dim).

        u is the activation of direction h in the class drawn from pᵢ: its third cumulant.
        """
        P = np.concatenate([_probabilities(A[0])[0] for _, _, A in self._activations(w)], axis=-1)
        out = np.zeros(np.size(h) // self.dim)
        for draws, rows, U in self._activations(h):
            p = P[:, rows]
            U -= (p * U).sum(axis=1, keepdims=True)
            out[draws] -= (p * (U * U * U)).sum(axis=1) @ self._weight(rows)
        return out.reshape(np.shape(h)[:-1])

    def _weight(self, rows: slice) -> Floats:
        return np.ones(rows.stop - rows.start) if self.sample_weight is None else self.sample_weight[rows]

    def _residual(self, rows: slice, P: Floats, Q: Floats) -> Floats:
        """c(1[y = k] − p_k) (R, b), without the subtraction."""
        hit = self.y[rows] == np.arange(self.shape[0])[:, None]
        R = self.shape[0]
        return np.asarray(self._weight(rows) * np.where(hit, Q[:R], -P[:R]))

    def _buffer(self) -> Floats:
        """Room for p ⊗ φ of one block (b, R m): a new array of megabytes each time costs ten times the product."""
        return np.empty((min(self.n, block_rows(self._width)), self.dim))

    def _kronecker(self, P: Floats, Phi: Floats, buffer: Floats) -> Floats:
        """Rows p_i ⊗ φ_i (b, R m), without the reference class, in `buffer`."""
        R, m = self.shape
        out = buffer[: len(Phi)]
        np.multiply(P[:R].T[:, :, None], Phi[:, None, :], out=out.reshape(-1, R, m))
        return out

    @property
    def _width(self) -> int:
        """Numbers a row and draw: K activations, or R m in the outer products."""
        return max(self.K, self.dim)

    def _activations(self, w: Floats) -> Iterator[tuple[slice, slice, Floats]]:
        """Draws, rows and the activations A = WΦᵀ (draws, K, rows), block by block; each A is new."""
        R, m = self.shape
        W = np.reshape(np.asarray(w, dtype=np.float64), (-1, R, m))
        for draws in draw_blocks(len(W), self.K):
            count = draws.stop - draws.start
            for rows in row_blocks(self.n, max(count * self.K, self._width)):
                A = np.zeros((count, self.K, rows.stop - rows.start))
                A[:, :R] = product(W[draws].reshape(-1, m), self.Phi[rows].T).reshape(count, R, -1)
                yield draws, rows, A


def _largest(A: Floats) -> tuple[Floats, Floats]:
    """max_k a_k and Σ_{others} e^{a_k − max} over the class axis −2, the largest term itself left out exactly."""
    top, rest = A[..., 0, :].copy(), np.zeros(A[..., 0, :].shape)
    for k in range(1, A.shape[-2]):
        a = A[..., k, :]
        e = np.exp(-np.abs(a - top))
        # A new largest turns the old one into e, and scales the rest by e.
        rest = np.where(a > top, (rest + 1) * e, rest + e)
        top = np.maximum(top, a)
    return top, rest


def _probabilities(A: Floats) -> tuple[Floats, Floats, Floats]:
    """p, q = 1 − p and log p (K, b) for activations A (K, b), each exact in the tails."""
    top, rest = _largest(A)
    log_p = A - top - np.log1p(rest)
    P = np.exp(A - top) / (1 + rest)
    return P, np.where(top == A, rest / (1 + rest), 1 - P), log_p
