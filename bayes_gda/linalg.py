"""Tall, narrow matrices: their products, in blocks that stay in cache and in threads that do not wait for each other.

A design matrix has many rows and few columns. All sums over its rows go block by block, so that memory stays flat, and
part by part in our own threads; the products of a block are cut small enough for BLAS to start no threads of its own.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.linalg import bandwidth
from scipy.linalg.lapack import dtrtrs
from threadpoolctl import OpenBLASController, ThreadpoolController

from bayes_gda.checks import Floats
from bayes_gda.errors import DataError
from bayes_gda.processes.state import Shared

# Elements of a block of rows: 2¹⁷ doubles are 1 MB. On 1 000 000 × 30, blocks of 2¹⁷ to 2¹⁹ take the same time: smaller
# ones pay for calls, larger ones leave the cache. Memory beside the data is a few blocks, whatever n is.
BLOCK_ELEMENTS = 2**17
# Draws evaluated at once: with the above this leaves blocks of 256 rows, enough for an efficient matrix product.
BLOCK_DRAWS = 512
# Numbers a row where all draws are averaged block by block: 64 rows at once, so that a thousand keep threads busy.
AVERAGED_WIDTH = 4 * BLOCK_DRAWS
# Numbers in a block of draws × rows × classes, whatever the data's size: 4·10⁶ doubles are 32 MB, of which a handful
# are alive at a time. Smaller blocks would factor the covariances of all draws once more for each.
WIDE_ELEMENTS = 4_000_000
# OpenBLAS shares a product of more than 2¹⁸ multiplications among threads, which spin while they wait. For
# our narrow matrices that gains nothing, and next to another busy process one pass over 1 000 000 × 30 went from .12 s
# to between 1.7 and 12 s. So products are cut into pieces that stay below, unless a piece would be too thin to be
# efficient; then the matrices are wide, and the threads are worth it.
SERIAL_PRODUCT = 2**18
# Parts of a large problem that our own threads take up, 1.5 times as fast on two cores. A fixed number, whatever
# the cores, so that sums round alike on every machine; four are enough to use the bandwidth of the memory.
PARTS = 4
# Multiplications of a pass, as of XᵀX, from which on it is cut into parts; narrow rows count as if they had so many
# columns, for what is computed of each beside.
SHARED_PASS, LEAST_COLUMNS = 2**27, 64
# Multiplications of a triangular solve, some 30 ms, from which on BLAS may share it among its threads.
SHARED_SOLVE = 2**26
# Columns of a square matrix from which on BLAS may share its products and factors among its threads. Below, ours share
# the rows, and BLAS's spin for longer than they work: on a busy machine with two cores a regression of 10⁴ × 200 took
# fifteen times as long, an LDA of 10³ × 200 seventeen times.
SHARED_COLUMNS = 1024
# Columns from which on a triangular root is taken in strips: a quarter less time with 100 columns, a third with 200.
TRIANGULAR_COLUMNS = 96
# What an error calls the covariances of posterior draws.
DRAWN = "Some of the drawn covariances"
# Rows from which on a part of a block of draws is worth a thread: 512 draws of 65 536 rows take 117 ms, not 176.
MANY_ROWS = 20_000


def block_rows(width: int) -> int:
    """Return how many rows of `width` numbers make a block."""
    return max(1, BLOCK_ELEMENTS // width)


def row_blocks(n: int, width: int, *, start: int = 0) -> Iterator[slice]:
    """Yield slices that cover the rows from `start` to n, of `width` numbers each, a block at a time."""
    step = block_rows(width)
    return (slice(i, min(i + step, n)) for i in range(start, n, step))


def wide_blocks(n: int, width: int) -> Iterator[slice]:
    """Yield slices of rows that have `width` numbers each, one for every draw and class: bounded by memory."""
    step = max(1, WIDE_ELEMENTS // max(1, width))
    return (slice(i, min(i + step, n)) for i in range(0, n, step))


def moment_width(m: int, K: int) -> int:
    """Return how many numbers a row of m counts as in a block where covariances (K, K) are made of it.

    With many classes these leave the cache whatever the blocks are; all threads together must keep to WIDE_ELEMENTS.
    """
    return max(m, PARTS * K * K * BLOCK_ELEMENTS // WIDE_ELEMENTS)


def parts(n: int, width: int) -> list[slice]:
    """Cut n rows of `width` numbers into PARTS for the threads, or leave them whole if they are few."""
    step = max(n, 1) if n * width * max(width, LEAST_COLUMNS) < SHARED_PASS else -(-n // PARTS)
    return [slice(i, min(i + step, n)) for i in range(0, n, step)]


def in_threads[T](f: Callable[[slice], T], slices: list[slice]) -> list[T]:
    """Return f of every slice, in order; NumPy lets go of the interpreter's lock, so threads share the work."""
    if len(slices) <= 1:
        return [f(part) for part in slices]
    with ThreadPoolExecutor(min(PARTS, os.cpu_count() or 1)) as pool:
        return list(pool.map(f, slices))


def for_blocks(f: Callable[[slice], None], n: int, width: int) -> None:
    """Call f on every block of n rows of `width` numbers, the parts in threads; f writes its rows of an answer.

    BLAS is held to one thread meanwhile: ours share the work already.
    """

    def all_of(part: slice) -> None:
        for rows in row_blocks(part.stop, width, start=part.start):
            f(rows)

    with one_blas_thread():
        in_threads(all_of, parts(n, width))


def one_blas_thread() -> AbstractContextManager[Any]:
    """Hold BLAS to one thread inside a `with` block, at a cost of 10 µs, or of 1 inside another such block.

    For many small products or solves: BLAS threads spin while they wait for each other, which made the thousands of
    tiny solves of a QDA model two hundred times slower on a busy machine. Where the limit is one of the whole process
    it holds until the last of the threads that asked for it has left its block.
    """
    return _one_blas_thread() if _libraries(own=True) else _SHARED_LIMIT


def blas_threads(m: int) -> AbstractContextManager[Any]:
    """Hold BLAS to one thread inside a `with` block that works on matrices of few columns m."""
    return one_blas_thread() if m < SHARED_COLUMNS else nullcontext()


def solve_triangular(L: Floats, B: Floats, *, transposed: bool = False) -> Floats:
    """Return L⁻¹B, or L⁻ᵀB, for a lower triangular L (m, m) and B (m,) or (m, r).

    SciPy has a BLAS of its own, whose threads share even a solve of 30 × 30 and then spin for a tenth of a second, in
    which they take a core from whatever comes next: predictions of a million rows took 102 ms after one, 57 without.
    """
    with one_blas_thread() if 1 < B.size // len(L) < SHARED_SOLVE // L.size else nullcontext():
        # LAPACK itself: the checks of scipy.linalg.solve_triangular take ten times as long as a small solve. It wants
        # columns one after the other, as the rows of Lᵀ are.
        out, info = dtrtrs(L.T, B, lower=0, trans=int(not transposed))
    if info:
        raise np.linalg.LinAlgError(f"singular matrix: entry {info - 1} of the diagonal is 0")
    return np.asarray(out)


@contextmanager
def regular(what: str) -> Iterator[None]:
    """Turn a factor that does not exist into one line with a remedy, where `what` are matrices in the plural."""
    try:
        yield
    except np.linalg.LinAlgError:
        raise DataError(
            f"{what} are singular to within rounding: scales, weights or offsets that are far apart leave no digits. "
            "Centre and scale the features, and drop those that others determine."
        ) from None


def drawn_root(Sigma: Floats) -> Floats:
    """Return the Cholesky factors L (…, d, d) of drawn covariances, or raise as `regular` does."""
    with regular(DRAWN):
        return np.linalg.cholesky(Sigma)


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


@lru_cache
def _libraries(*, own: bool) -> dict[str, int]:
    """Return the limits, by path, of the BLAS libraries that limit each thread on its `own`, or all at once."""
    libraries = [library for library in _controller().lib_controllers if library.user_api == "blas"]
    alone = {lib.filepath for lib in libraries if getattr(lib, "threading_layer", "") == "openmp"}
    alone |= {lib.filepath for lib in libraries if lib.internal_api == "mkl"}
    return {lib.filepath: 1 for lib in libraries if (lib.filepath in alone) == own}


@contextmanager
def _one_blas_thread() -> Iterator[None]:
    with _SHARED_LIMIT, _controller().limit(limits=_libraries(own=True)):
        yield


@contextmanager
def _process_limit() -> Iterator[None]:
    """Limit the libraries that have one limit for all threads.

    threadpoolctl lets only the thread that changed such a limit first change it again, so that none undoes another's.
    We count who needs it ourselves, and the last to leave may be another than the first who came.
    """
    let_go = getattr(OpenBLASController, "clear_controlling_thread", lambda force: None)
    paths = _libraries(own=False)
    libraries = [library for library in _controller().lib_controllers if library.filepath in paths]
    # Not the controller's `limit`, which looks up all there is to know of every library, at three times the cost.
    before = [library.get_num_threads() for library in libraries]

    def limit(threads: Iterable[int]) -> None:
        let_go(force=True)
        for library, number in zip(libraries, threads, strict=True):
            library.set_num_threads(number)
        let_go(force=True)

    limit(1 for _ in libraries)
    try:
        yield
    finally:
        limit(before)


_SHARED_LIMIT = Shared(_process_limit)


def draw_blocks(S: int, width: int = 1) -> list[slice]:
    """Cut S draws, of `width` numbers a row, into blocks of BLOCK_DRAWS numbers a row."""
    step = max(1, BLOCK_DRAWS // width)
    return [slice(i, min(i + step, S)) for i in range(0, S, step)]


def draw_parts(S: int, n: int) -> list[slice]:
    """Cut S draws for the threads: into blocks, or a single block that is to see many rows into PARTS."""
    return draw_blocks(S, PARTS if S <= BLOCK_DRAWS and n >= MANY_ROWS else 1)


def activation_blocks(Phi: Floats, W: Floats) -> Iterator[tuple[slice, slice, Floats, Floats]]:
    """Yield draws, rows, their activations A = WΦᵀ (draws, rows), and a buffer of that shape; overwritten each time."""
    n, S = len(Phi), len(W)
    width = max(min(S, BLOCK_DRAWS), Phi.shape[1])
    size = min(S, BLOCK_DRAWS) * min(n, block_rows(width))
    first, second = np.empty(size), np.empty(size)
    for draws in draw_blocks(S):
        for rows in row_blocks(n, width):
            shape = (draws.stop - draws.start, rows.stop - rows.start)
            A, buffer = (x[: shape[0] * shape[1]].reshape(shape) for x in (first, second))
            yield draws, rows, product(W[draws], Phi[rows].T, out=A), buffer


def dependent_columns(X: Floats, *, tolerance: float) -> dict[int, Floats]:
    """Return the columns of X (n, d) that are sums of columns before them, with their coefficients (d,).

    Column j is one if 1 − R² of it on the columns before it that are none is below `tolerance`. A pivot-by-pivot sweep
    of XᵀX finds them, and least squares, which does not square the condition, confirms them.
    """
    size = np.linalg.norm(X, axis=0)
    Z = X / np.where(size > 0, size, 1.0)
    S = gram(Z)
    suspects = []
    for j in range(len(S)):
        if S[j, j] < 2 * tolerance:
            suspects.append(j)
        else:
            S[j + 1 :, j:] -= np.outer(S[j + 1 :, j], S[j, j:] / S[j, j])
    if not suspects:
        return {}
    kept = np.setdiff1d(np.arange(len(S)), suspects)
    solved = np.linalg.lstsq(Z[:, kept], Z[:, suspects], rcond=None)[0]
    left = ((Z[:, suspects] - Z[:, kept] @ solved) ** 2).sum(axis=0)
    sums = {}
    for k, j in enumerate(suspects):
        if left[k] < tolerance:
            sums[j] = np.zeros(len(S))
            sums[j][kept] = solved[:, k] * size[j] / size[kept]
    return sums


def gram(B: Floats) -> Floats:
    """Return BᵀB (m, m), in pieces of rows; NumPy sees the same array twice and calls syrk."""
    n, m = B.shape
    step = SERIAL_PRODUCT // (m * m)
    if step < 32 or n <= step:
        return B.T @ B
    whole = n // step * step
    pieces = B[:whole].reshape(-1, step, m)
    return np.asarray(np.matmul(pieces.transpose(0, 2, 1), pieces).sum(axis=0) + B[whole:].T @ B[whole:])


def product(A: Floats, B: Floats, out: Floats | None = None) -> Floats:
    """Return AB for a C-ordered A, in pieces of its rows."""
    (n, inner), m = A.shape, B.shape[1]
    out = np.empty((n, m)) if out is None else out
    step = SERIAL_PRODUCT // (inner * m)
    if step < 4 or n <= step:
        return np.matmul(A, B, out=out)
    whole = n // step * step
    np.matmul(A[:whole].reshape(-1, step, inner), B, out=out[:whole].reshape(-1, step, m))
    np.matmul(A[whole:], B, out=out[whole:])
    return out


def _triangular_quadratic(Phi: Floats, root: Floats) -> Floats:
    """Return |rootᵀφᵢ|² (n,) for an upper triangular root, in four strips of columns that leave out its zeros."""
    m = Phi.shape[1]
    out, step = np.zeros(len(Phi)), -(-m // 32) * 8  # a multiple of the tile of the BLAS kernels
    for start in range(0, m, step):
        stop = min(start + step, m)
        A = root[:stop, start:stop].T @ Phi[:, :stop].T
        out += np.einsum("ij,ij->j", A, A)
    return out


def linear_and_quadratic(Phi: Floats, w: Floats, root: Floats) -> tuple[Floats, Floats]:
    """Return φᵢᵀw (n,) and |rootᵀφᵢ|² (n,) for the rows of a block of a C-ordered Φ (n, m).

    A = [rootᵀ; wᵀ] Φᵀ holds both. Its rows are filled up to a multiple of 8, the tile of the BLAS kernels; this and the
    order, which sums the squares along the rows of A, save a third of the time of Φ root and Φw (1 000 000 × 30).
    """
    m = Phi.shape[1]
    if m >= TRIANGULAR_COLUMNS and bandwidth(root)[0] == 0:
        return Phi @ w, _triangular_quadratic(Phi, root)
    R = np.zeros((-(-(m + 1) // 8) * 8, m))
    R[:m], R[m] = root.T, w
    A = R @ Phi.T
    return A[m], np.einsum("ij,ij->j", A[:m], A[:m])
