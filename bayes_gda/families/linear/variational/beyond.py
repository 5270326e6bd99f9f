"""What the variational Gaussian leaves out of a softmax posterior, to leading order.

Where gradient and precision of U = −log p(w, y) agree with those of the Gaussian N(mean, V) in expectation, U − ½|z|²
has no part of first or second order in Hermite polynomials; it begins with E∇³U. With T = E κ₃(p), κ₃ the third central
moments of a one-hot draw from p, and aᵢ the activations of training row i, the posterior differs from the Gaussian by

    the probabilities of a row      −⅙ E[p(a) He₃(z)],   He₃(z) the third-order part of Σᵢ cᵢTᵢ[uᵢ, uᵢ, uᵢ],
                                    uᵢ = E[aᵢ − E aᵢ | z], z the whitened activations of the row
    the covariance                  ½ V E[ttᵀ] V,        t = Σᵢ cᵢTᵢ[aᵢ(x), aᵢ(y), ·] ⊗ φᵢ  over x, y ~ N(0, V)
    the log evidence                (1/12) E[tᵀVt]       above the evidence bound

T[u, v, ·]ₖ = E[pₖ(uₖ − ū)(vₖ − v̄)] − E[pₖ Cov(u, v)], with ū = Σpⱼuⱼ. All pairs of rows count, a row with itself too:
unlike the sites of expectation propagation, the variational ones have not taken in their own part.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from bayes_gda.checks import Floats
from bayes_gda.families.linear.predictors import softmax_activations
from bayes_gda.families.linear.softmax import SoftmaxTarget
from bayes_gda.families.linear.softmax_links import contrast_root, softmax_in_place
from bayes_gda.families.linear.variational.sites import normal_points
from bayes_gda.linalg import row_blocks, solve_triangular, wide_blocks
from bayes_gda.methods.ep.certificate import SKETCH_SEED
from bayes_gda.methods.laplace import GaussianPosterior

# Training rows that are summed over: all, or so many of them drawn in proportion to what they may contribute.
SUMMED_ROWS = 1000
# Random pairs (x, y) of the sketch: its relative error is about √(2/pairs).
PAIRS = 32
# T is averaged over points of a row's activations where the variance of a difference of them exceeds WIDE; elsewhere it
# is taken at their mean. So many points are shared out among the rows, other ones for each, at most MOST to one.
POINTS, MOST, SPREAD, WIDE = 4096, 512, 1024, 0.1
# Points (half mirror images) over a judged row's activations, for each dimension of them, and at least.
JUDGED_POINTS, LEAST_POINTS = 12, 64


class _Group(NamedTuple):
    """Training rows whose T is averaged over as many points: Φ (b, m), p (b, Q, K) and weights c (b,)."""

    Phi: Floats
    P: Floats
    c: Floats


@dataclass(frozen=True, eq=False)
class SoftmaxBeyond:
    """What the variational Gaussian leaves out.

    Parameters
    ----------
    posterior
        The Gaussian.
    K, reference
        Number of classes; whether the last one has weights zero.
    Phi
        (b, m) training rows that are summed over.
    counts
        (b,) how many rows each of them stands for.
    """

    posterior: GaussianPosterior
    K: int
    reference: bool
    Phi: Floats
    counts: Floats

    @classmethod
    def of(cls, posterior: GaussianPosterior, target: SoftmaxTarget, sizes: Floats, most: int = SUMMED_ROWS) -> Self:
        """Return it for rows in memory.

        Parameters
        ----------
        posterior
            The Gaussian.
        target
            The posterior that it approximates.
        sizes
            (n,) what each row may contribute, up to a factor; rows are drawn in proportion to it.
        most
            Rows that are summed over.
        """
        chosen, counts = draw_in_proportion(sizes, most)
        if target.sample_weight is not None:
            counts = counts * target.sample_weight[chosen]
        return cls(posterior, target.K, target.reference, target.Phi[chosen], counts)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows of weights, and m."""
        return self.K - self.reference, self.Phi.shape[1]

    @cached_property
    def _root(self) -> Floats:
        """R with V = RRᵀ."""
        return solve_triangular(self.posterior.chol_precision, np.eye(self.posterior.dim)).T

    @cached_property
    def V(self) -> Floats:
        """The covariance (dim, dim)."""
        return self._root @ self._root.T

    @cached_property
    def _groups(self) -> list[_Group]:
        Phi, c = self.Phi, self.counts
        activations = softmax_activations(self.posterior, self.K, reference_class=self.reference)
        mean, wide = np.empty((len(Phi), self.K)), np.empty(len(Phi), dtype=bool)
        for rows in self._moment_blocks(len(Phi)):
            mean[rows], cov = activations(Phi[rows])
            wide[rows] = np.einsum("nkk->nk", cov).max(axis=1) > WIDE
        groups = []
        if not wide.all():
            P = softmax_in_place(mean[~wide][:, :, None]).swapaxes(1, 2)
            groups.append(_Group(Phi[~wide], P, c[~wide]))
        if wide.any():
            z = _points(int(wide.sum()), self.K - 1)
            some, P = Phi[wide], np.empty((len(z), 2 * z.shape[2], self.K))
            for rows in self._moment_blocks(len(z)):
                P[rows] = _point_probabilities(*activations(some[rows]), z[rows])
            groups.append(_Group(some, P, c[wide]))
        return groups

    def _moment_blocks(self, n: int) -> Iterator[slice]:
        """Blocks of rows with the covariances (K, K) of their activations, a handful of which are alive at a time."""
        return wide_blocks(n, 8 * self.K**2)

    def _blocks(self, width: int) -> Iterator[_Group]:
        for group in self._groups:
            for rows in row_blocks(len(group.Phi), width * group.P.shape[1]):
                yield _Group(group.Phi[rows], group.P[rows], group.c[rows])

    @cached_property
    def _sketch(self) -> Floats:
        """V t for each random pair (dim, pairs), and tᵀVt in the last row."""
        (R, m), S = self.shape, PAIRS
        XY = self._root @ np.random.default_rng(SKETCH_SEED).standard_normal((self.posterior.dim, 2 * S))
        t = np.zeros((R, m, S))
        for Phi, P, c in self._blocks(2 * S * self.K):
            A = self._activations(Phi, XY)
            t += np.einsum("nm,nks->kms", Phi, c[:, None, None] * third_moments(P, A[..., :S], A[..., S:])[:, :R])
        flat = t.reshape(R * m, S)
        Vt = self.V @ flat
        return np.vstack([Vt, np.einsum("ms,ms->s", flat, Vt)])

    @property
    def covariance_root(self) -> Floats:
        """C (dim, pairs), the change of the covariance being CCᵀ."""
        return self._sketch[:-1] / np.sqrt(2 * PAIRS)

    @property
    def evidence_change(self) -> float:
        """The log evidence less the evidence bound, to leading order."""
        return float(self._sketch[-1].mean()) / 12

    def _activations(self, Phi: Floats, W: Floats) -> Floats:
        """Activations (b, K, S) of directions W (dim, S)."""
        R, m = self.shape
        A = np.zeros((len(Phi), self.K, W.shape[1]))
        A[:, :R] = np.matmul(Phi, W.reshape(R, m, -1)).swapaxes(0, 1)
        return A

    def changes(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return what skewness adds to probabilities (k, K) of rows (k, m), and what the change of covariance adds."""
        K, (R, m) = self.K, self.shape
        D = K - 1
        half = max(LEAST_POINTS, 1 << (JUDGED_POINTS * D - 1).bit_length()) // 2
        z = normal_points(D, 2 * half)[:, :half]
        mean, cov = softmax_activations(self.posterior, K, reference_class=self.reference)(rows)
        B, inverse = contrast_root(cov)
        skewed, widened = np.empty((len(rows), K)), np.empty((len(rows), K))
        C = self.covariance_root.reshape(R, m, -1)
        for block in wide_blocks(len(rows), self.posterior.dim * half):
            k = block.stop - block.start
            # E[w | z] = mean + V(I ⊗ φ)(B⁺)ᵀz
            cross = np.zeros((k, self.posterior.dim, K))
            cross[..., :R] = np.einsum("dkm,nm->ndk", self.V.reshape(-1, R, m), rows[block])
            direction = (cross - cross.mean(axis=-1, keepdims=True)) @ inverse[block].swapaxes(1, 2)
            third = self._third_forms(direction, z)
            a = B[block] @ z
            plus, minus = softmax_in_place(mean[block, :, None] + a), softmax_in_place(mean[block, :, None] - a)
            odd = (plus - minus) / 2
            odd -= (odd @ z.T / half) @ z  # the part of first order is exact: of third order and more the rest is
            skewed[block] = -np.einsum("nks,ns->nk", odd, third) / (6 * half)
            # With ΔS = EEᵀ, S + ΔS = B(I + FFᵀ)Bᵀ, F = B⁺E
            E = np.zeros((k, K, C.shape[-1]))
            E[:, :R] = np.einsum("kms,nm->nks", C, rows[block])
            F = inverse[block] @ (E - E.mean(axis=1, keepdims=True))
            other = B[block] @ (np.linalg.cholesky(np.eye(D) + F @ F.swapaxes(1, 2)) @ z)
            wide = softmax_in_place(mean[block, :, None] + other) + softmax_in_place(mean[block, :, None] - other)
            widened[block] = (wide - plus - minus).mean(axis=-1) / 2
        return skewed, widened

    def _third_forms(self, direction: Floats, z: Floats) -> Floats:
        """Return Σᵢ cᵢTᵢ[uᵢ, uᵢ, uᵢ] (k, S) for directions (k, dim, D) of the weights at points z (D, S)."""
        k, S = len(direction), z.shape[1]
        W = np.ascontiguousarray((direction @ z).swapaxes(0, 1)).reshape(self.posterior.dim, k * S)
        total = np.zeros(k * S)
        for Phi, P, c in self._blocks(self.K * k * S):
            total += c @ third_form(P, self._activations(Phi, W))
        return total.reshape(k, S)


def third_moments(P: Floats, U: Floats, V: Floats) -> Floats:
    """Return T[u, v, ·] (b, K, S), averaged over the points of P (b, Q, K), for activations u, v (b, K, S)."""
    Q = P.shape[1]
    Pt = P.swapaxes(1, 2)
    M, UV = Pt @ P / Q, U * V  # E[ppᵀ]
    out = P.mean(axis=1)[:, :, None] * UV - U * (M @ V) - V * (M @ U) - M @ UV
    return np.asarray(out + (2 / Q) * (Pt @ ((P @ U) * (P @ V))))


def third_form(P: Floats, U: Floats) -> Floats:
    """Return T[u, u, u] (b, S), averaged over the points of P (b, Q, K), for activations u (b, K, S), overwritten."""
    U -= U[:, :1]  # what all classes share has no part in it
    first, square = P @ U, U * U
    second = P @ square
    square *= U
    third = P @ square
    second *= 3
    second -= 2 * first * first  # T = E u³ − 3 E u E u² + 2(E u)³
    first *= second
    third -= first
    return np.asarray(third.mean(axis=1))


def draw_in_proportion(sizes: Floats, most: int) -> tuple[NDArray[np.intp], Floats]:
    """Return numbers of at most `most` rows, drawn systematically in proportion to their sizes, and 1/their chances.

    Rows that are larger than their share are all taken.
    """
    n = len(sizes)
    if n <= most:
        return np.arange(n), np.ones(n)
    chance = np.maximum(sizes, sizes.max(initial=0.0) * 1e-9 + 1e-300)
    certain = np.zeros(n, dtype=bool)
    while True:
        rest = most - certain.sum()
        chance = np.where(certain, 1.0, chance * rest / chance[~certain].sum())
        if not (over := (chance > 1) & ~certain).any():
            break
        certain |= over
    edges = np.floor(np.concatenate([[0.5], 0.5 + np.cumsum(chance)]))
    chosen = np.flatnonzero(np.diff(edges) > 0)
    return chosen, 1 / chance[chosen]


def _points(b: int, D: int) -> Floats:
    """Return standard normal points (b, D, Q/2), others for each of b rows; their mirror images count as well."""
    half = int(np.clip(POINTS // (2 * b), 1, MOST // 2))
    stock = normal_points(D, SPREAD)
    return stock[:, np.random.default_rng(SKETCH_SEED).integers(0, stock.shape[1], (b, half))].transpose(1, 0, 2)


def _point_probabilities(mean: Floats, cov: Floats, z: Floats) -> Floats:
    """Return softmax (b, Q, K) of Gaussian activations at points z (b, D, Q/2) and their mirror images."""
    a = contrast_root(cov)[0] @ z
    return softmax_in_place(mean[:, :, None] + np.concatenate([a, -a], axis=2)).swapaxes(1, 2)
