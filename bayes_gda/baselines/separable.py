"""Whether a hyperplane separates two classes strictly: S w > 0 in every row of S, the signed rows y_i φ_i.

`families.linear.mode` asks for less, S w ≥ 0 and not all zero: that is when maximum likelihood fails. A perceptron
needs every row strictly on its side.
"""

import numpy as np
from scipy.optimize import linprog

from bayes_gda.checks import Floats


def separating_weights(S: Floats) -> Floats | None:
    """Return weights w (m,) with S w > 0 for signed rows S (n, m); None if there are none.

    The linear programme S w ≥ 1 is feasible exactly if the classes are separable. A w that it finds is checked on the
    rows themselves, so a yes is certain; a no is as good as the solver, whose tolerance is 1e-7.
    """
    # Positive factors of rows and columns change nothing but the solver's ease.
    rows = S / np.linalg.norm(S, axis=1, keepdims=True)
    scale = np.sqrt(np.mean(rows**2, axis=0))
    scale[scale == 0] = 1.0
    m = S.shape[1]
    solution = linprog(np.zeros(m), A_ub=-rows / scale, b_ub=-np.ones(len(S)), bounds=(None, None), method="highs")
    if solution.x is None:
        return None
    w: Floats = solution.x / scale
    w = w / np.abs(w).max()
    return w if (S @ w > 0).all() else None


def mistake_bound(S: Floats, w: Floats) -> float:
    """Return Novikoff's bound (R/γ)² on a perceptron's corrections: R = max |s_i|, γ = min s_iᵀw/|w|.

    Any separating w gives a valid bound; the one of the largest margin gives the best. inf is beyond floats.
    """
    w = w / np.abs(w).max()
    gamma = (S @ w).min() / np.linalg.norm(w)
    with np.errstate(over="ignore", divide="ignore"):
        return float((np.linalg.norm(S, axis=1).max() / gamma) ** 2)
