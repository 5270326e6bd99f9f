"""Perfect separation: data that a hyperplane splits without error have no finite maximum likelihood.

A direction v separates if y-signed activations are never negative, and some are positive:

    binary   (2y_i − 1) φ_iᵀv ≥ 0 for all rows i           softmax   φ_iᵀ(v_{y_i} − v_k) ≥ 0 for all rows and classes k

Along v the likelihood only rises. Found, or ruled out, by a linear program over the coefficients whose prior is flat;
a proper prior holds all the others.
"""

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from bayes_gda.checks import Floats
from bayes_gda.families.linear.logistic import LogisticTarget
from bayes_gda.families.linear.softmax import SoftmaxTarget


def separating_direction(target: LogisticTarget | SoftmaxTarget) -> Floats | None:
    """Return a direction v (dim,), largest entry ±1, along which the likelihood only rises; None if there is none."""
    flat = np.diag(target.gaussian.precision) == 0
    if not flat.any():
        return None
    if isinstance(target, LogisticTarget):
        margins, columns = _binary_margins(target), np.flatnonzero(flat)
    else:
        margins = _softmax_margins(target)
        columns = np.flatnonzero(np.tile(flat, target.shape[0]))
    A = margins[:, columns]
    # max Σ A v subject to 0 ≤ A v ≤ 1: positive exactly if a direction exists. In units of the columns, for HiGHS.
    scale = np.sqrt(np.asarray(A.multiply(A).mean(axis=0)).ravel())
    scale[scale == 0] = 1.0
    A = A @ sparse.diags_array(1 / scale)
    n = A.shape[0]
    solution = linprog(
        -np.asarray(A.sum(axis=0)).ravel(),
        A_ub=sparse.vstack([-A, A], format="csr"),
        b_ub=np.concatenate([np.zeros(n), np.ones(n)]),
        bounds=(None, None),
        method="highs",
    )
    if solution.status != 0 or -solution.fun < 1e-7:
        return None
    v = np.zeros(target.dim)
    v[columns] = solution.x / scale
    return v / np.abs(v).max()


def describe_direction(v: Floats, names: list[str], most: int = 3) -> str:
    """Write the largest terms of a direction, such as `+1·glu −0.31·age`."""
    order = np.argsort(-np.abs(v), kind="stable")
    order = order[np.abs(v[order]) > 0.01]
    terms = [f"{v[j]:+.2g}·{names[j]}" for j in order[:most]]
    return " ".join(terms) + (f" and {len(order) - most} more" if len(order) > most else "")


def _binary_margins(target: LogisticTarget) -> sparse.csr_array:
    """Rows with successes pull one way, rows with failures the other; a row with both pins its activation to zero."""
    blocks = [target.Phi[target.successes > 0], -target.Phi[target.failures > 0]]
    return sparse.csr_array(np.vstack(blocks))


def _softmax_margins(target: SoftmaxTarget) -> sparse.csr_array:
    rows, m = target.shape
    seen = np.flatnonzero(np.ones(target.n) if target.sample_weight is None else target.sample_weight)
    blocks = []
    for k in range(target.K):
        of_class = target.Phi[seen][target.y[seen] == k]
        for other in range(target.K):
            if other == k:
                continue
            block = np.zeros((len(of_class), target.K, m))
            block[:, k], block[:, other] = of_class, -of_class
            blocks.append(sparse.csr_array(block[:, :rows].reshape(len(of_class), rows * m)))
    return sparse.csr_array(sparse.vstack(blocks, format="csr"))
