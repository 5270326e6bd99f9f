"""Leave-one-out: how well a model predicts each row from all the others, exact or from draws of one posterior.

Two quantities, which must not be mixed:

    joint          log p(x_i, y_i | D₋ᵢ)     generative models alone: it also scores how well x is described
    conditional    log p(y_i | x_i, D₋ᵢ)     every classifier: what makes generative and discriminative comparable

From draws θ_s of the posterior of all rows, row i is taken out by weights w_s ∝ 1/L_si, Pareto-smoothed, where L_si is
the row's term in the likelihood that the posterior was made with: p(x_i, y_i | θ_s) of a generative model, also for the
conditional quantity, and p(y_i | x_i, θ_s) of a regression. A generative model then averages densities and normalises:

    p(x_i, k | D₋ᵢ) = Σ_s w_s p(x_i, k | θ_s),    p(y_i | x_i, D₋ᵢ) = p(x_i, y_i | D₋ᵢ) / Σ_k p(x_i, k | D₋ᵢ)

Weights 1/p(y_i | x_i, θ_s) over averaged p(k | x_i, θ_s) have the same limit; ours let one k̂ judge both quantities.

References
----------
Vehtari, Gelman & Gabry (2017), Practical Bayesian model evaluation using leave-one-out cross-validation and WAIC.
Vehtari, Simpson, Gelman, Yao & Gabry (2024), Pareto smoothed importance sampling, JMLR 25.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from bayes_gda.checks import Floats, frozen, numbers
from bayes_gda.errors import DataError
from bayes_gda.evaluation.calibration import LARGEST
from bayes_gda.families.gaussian.predictive import log_joint_per_draw
from bayes_gda.linalg import wide_blocks
from bayes_gda.methods.importance.psis import FEWEST, smooth
from bayes_gda.prediction.normalised import log_class_probabilities

Kind = Literal["joint", "conditional"]
Codes = NDArray[np.intp]
# Log densities (S, rows, K) of a block of rows, so that (S, n, K) never stands in memory.
Blocks = Callable[[slice], Floats]

LISTED = 3  # rows in a sentence
# The Pareto fit takes the largest fifth of the ratios, and FEWEST of them.
FEWEST_DRAWS = 5 * FEWEST
# Log probabilities of a draw's classes may miss log 1 by rounding, not by more.
SUM_TOLERANCE = 1e-6

# Sivula et al. (2020): below this models predict alike, and the standard error of the difference is not to be relied
# upon. A difference beyond so many standard errors is more than noise, at about 95 %.
SMALL, BEYOND = 4.0, 2.0


def told_apart(difference: float, se: float) -> bool:
    """Whether a difference in elpd is more than noise: SMALL or more, and beyond its standard error, or infinite."""
    return difference >= SMALL and (difference > BEYOND * se or bool(np.isinf(difference)))


@dataclass(frozen=True, slots=True, eq=False)
class Loo:
    """Leave-one-out log densities of all rows, and how far they can be relied upon.

    Parameters
    ----------
    kind
        `joint`, log p(x_i, y_i | D₋ᵢ), or `conditional`, log p(y_i | x_i, D₋ᵢ).
    pointwise
        (n,) log density of each row given the others.
    fitted
        (n,) the same given all rows, its own among them: what leave-one-out corrects.
    pareto_k
        (n,) k̂ of each row's importance ratios, before any refit; None in closed form.
    threshold
        k̂ below this is good: min(1 − 1/log₁₀ S, 0.7); None in closed form.
    log_probabilities
        (n, K) log p(y = k | x_i, D₋ᵢ), for other scores; None if not known.
    refitted
        Rows whose value is that of a fit without them: those whose k̂ is not below the threshold, and others that were
        to be scored in the same way.
    row_numbers
        (n,) numbers of the rows in their table, by which they are named; positions from 0 if None.
    """

    kind: Kind
    pointwise: Floats
    fitted: Floats
    pareto_k: Floats | None = None
    threshold: float | None = None
    log_probabilities: Floats | None = field(default=None, repr=False)
    refitted: Codes = field(default_factory=lambda: np.empty(0, dtype=np.intp), repr=False)
    row_numbers: Codes | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        for name in ("pointwise", "fitted", "pareto_k", "log_probabilities"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, frozen(numbers(name, value)))
        if self.pointwise.ndim != 1 or len(self.pointwise) == 0 or self.fitted.shape != self.pointwise.shape:
            shapes = f"{self.pointwise.shape} and {self.fitted.shape}"
            raise DataError(f"`pointwise` and `fitted` must both be (n,), one entry a row; got {shapes}.")
        # A density of e^(−1e150) is none, and squares of larger numbers overflow.
        if not ((np.abs(self.pointwise) <= LARGEST) | np.isneginf(self.pointwise)).all():
            raise DataError(f"`pointwise` must hold log densities, within ±{LARGEST:g} or −inf. Check the densities.")

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.pointwise)

    @property
    def elpd(self) -> float:
        """Σ_i of the pointwise log densities: the expected log predictive density of n new rows."""
        return float(self.pointwise.sum())

    @property
    def se(self) -> float:
        """Standard error √n sd of elpd, over data sets of n rows; nan for one row."""
        return float(np.sqrt(self.n) * self.pointwise.std(ddof=1)) if self.n > 1 else float("nan")

    @property
    def p_eff(self) -> float:
        """Effective number of parameters: what the fit to all rows gains over elpd."""
        return float(self.fitted.sum()) - self.elpd

    @property
    def bad(self) -> Codes:
        """Rows whose k̂ is not below the threshold and which were not refitted; the worst first."""
        if self.pareto_k is None or self.threshold is None:
            return np.empty(0, dtype=np.intp)
        bad = rank_bad(self.pareto_k, self.threshold)
        return bad[~np.isin(bad, self.refitted)]

    @property
    def n_refitted(self) -> int:
        """Number of rows whose value is that of a fit without them."""
        return len(self.refitted)

    @property
    def n_bad(self) -> int:
        """Number of rows whose estimate cannot be relied upon."""
        return len(self.bad)

    @property
    def reason(self) -> str:
        """Whether the estimate can be relied upon, in a sentence."""
        if self.pareto_k is None or self.threshold is None:
            return f"Leave-one-out of the {self.n} rows is in closed form."
        limit = f"k̂ is not below {self.threshold:.2f}"
        passed = int((~(self.pareto_k < self.threshold)).sum()) - self.n_bad
        again = f"the model was refitted without each of {self.n_refitted} rows, because {limit} for {passed} of them"
        if self.n_refitted == 1:
            again = f"the model was refitted without 1 row, for which {limit}"
        if not self.n_bad:
            shown = f"k̂ is at most {self.pareto_k.max():.2f} (good below {self.threshold:.2f})"
            return f"Leave-one-out of the {self.n} rows is reliable: {again if self.n_refitted else shown}."
        names = np.arange(self.n) if self.row_numbers is None else self.row_numbers
        named = ", ".join(f"row {names[i]} {self.pareto_k[i]:.2f}" for i in self.bad[:LISTED])
        more = f" and {self.n_bad - LISTED} more" if self.n_bad > LISTED else ""
        others = f" {again[0].upper()}{again[1:]}; these are reliable." if self.n_refitted else ""
        return (
            f"Leave-one-out is unreliable for {self.n_bad} of {self.n} rows, for which {limit}: {named}{more}. Each "
            f"of them moves the posterior too far for weighting; elpd may be too high.{others}"
        )

    @property
    def next_step(self) -> str:
        """What to do about it."""
        if not self.n_bad:
            return "Use it as it is."
        return (
            "Use exact leave-one-out if the prior is conjugate (exact_loo); else refit without these rows, or use "
            "K-fold cross-validation (kfold)."
        )


@dataclass(frozen=True, slots=True, eq=False)
class GenerativeLoo:
    """Both leave-one-out quantities of a generative model; compare like with like.

    Parameters
    ----------
    joint
        Of log p(x_i, y_i | D₋ᵢ): against other generative models of the same features.
    conditional
        Of log p(y_i | x_i, D₋ᵢ): against any classifier.
    """

    joint: Loo
    conditional: Loo


class ExactPosterior(Protocol):
    """A posterior whose predictive densities are closed form, such as `NIWPosterior` and `NIGPosterior`."""

    def log_joint(self, X: Floats) -> Floats:
        """Return log p(x, y = k | all rows) (n, K)."""

    def leave_one_out(self, X: Floats, y: Any) -> Floats:
        """Return log p(x_i, y = k | all rows but i) (n, K)."""


# ── Exact ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def exact_loo(posterior: ExactPosterior, X: ArrayLike, y: ArrayLike) -> GenerativeLoo:
    """Return leave-one-out of a conjugate Gaussian model, in closed form.

    Parameters
    ----------
    posterior
        Exact posterior of all the rows.
    X, y
        (n, d) features and (n,) class codes: the rows that it was fitted to.
    """
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or 0 in X.shape:
        raise DataError(f"`X` must be a matrix with rows and columns; got shape {X.shape}.")
    K = posterior.log_joint(X[:1]).shape[1]
    y = _check_codes(y)
    if len(y) != len(X) or y.max() >= K:
        raise DataError(f"`y` must hold one code in 0…{K - 1} for each of {len(X)} rows; got {len(y)} up to {y.max()}.")
    left, full = np.empty((len(X), K)), np.empty((len(X), K))
    for rows in wide_blocks(len(X), K * X.shape[1]):
        left[rows] = posterior.leave_one_out(X[rows], y[rows])
        full[rows] = posterior.log_joint(X[rows])
    return both_kinds(left, full, y, None, None)


# ── From draws ──────────────────────────────────────────────────────────────────────────────────────────────────────


def psis_loo(log_likelihood: ArrayLike, *, kind: Kind) -> Loo:
    """Return leave-one-out from pointwise log likelihoods of posterior draws.

        log p(· | D₋ᵢ) = log Σ_s w_s L_si,   w_s ∝ 1/L_si, Pareto-smoothed

    Parameters
    ----------
    log_likelihood
        (S, n) or (chains, draws, n), of the rows that the posterior was fitted to.
    kind
        What L is: `joint`, p(x_i, y_i | θ), or `conditional`, p(y_i | x_i, θ) of a regression. A generative model's
        conditional quantity needs the densities of all classes: `psis_loo_generative`.
    """
    if kind not in ("joint", "conditional"):
        raise DataError(f"`kind` must be 'joint' or 'conditional'; got {kind!r}.")
    L = np.asarray(log_likelihood, dtype=np.float64)
    if L.ndim not in (2, 3) or 0 in L.shape:
        raise DataError(f"`log_likelihood` must be (S, n) or (chains, draws, n); got shape {L.shape}.")
    L = L.reshape(-1, L.shape[-1])[:, :, None]
    left, full, k, threshold = take_out(_from_array(L), np.zeros(L.shape[1], dtype=np.intp), "log_likelihood")
    return Loo(kind, left[:, 0], full[:, 0], k, threshold)


def psis_loo_generative(log_joint: ArrayLike | Blocks, y: ArrayLike) -> GenerativeLoo:
    """Return leave-one-out of a generative model from the joint densities of posterior draws.

    Parameters
    ----------
    log_joint
        (S, n, K) or (chains, draws, n, K) log p(x_i, k | θ_s) of the rows that the posterior was fitted to; or a
        function from a slice of rows to (S, rows, K), such as `joint_blocks(draws, X)`, for flat memory.
    y
        (n,) class codes.
    """
    codes = _check_codes(y)
    left, full, k, threshold = take_out(_as_blocks(log_joint, codes, "log_joint"), codes, "log_joint")
    return both_kinds(left, full, codes, k, threshold)


def psis_loo_discriminative(log_probabilities: ArrayLike | Blocks, y: ArrayLike) -> Loo:
    """Return leave-one-out of a regression, with the probabilities of all classes.

    Parameters
    ----------
    log_probabilities
        (S, n, K) or (chains, draws, n, K) log p(y_i = k | x_i, w_s), or a function of a slice of rows.
    y
        (n,) class codes.
    """
    codes = _check_codes(y)
    blocks = _as_blocks(log_probabilities, codes, "log_probabilities")

    def checked(rows: slice) -> Floats:
        block = blocks(rows)
        total = logsumexp(block, axis=-1)
        if (np.abs(total) > SUM_TOLERANCE).any():
            worst = np.exp(total.flat[np.abs(total).argmax()])
            raise DataError(
                f"`log_probabilities` must sum to one over the classes; got a sum of {worst:.6g}. "
                "Use psis_loo_generative for joint densities."
            )
        return block

    left, full, k, threshold = take_out(checked, codes, "log_probabilities")
    # Means of probabilities sum to one already, so normalising them changes nothing but rounding.
    return both_kinds(left, full, codes, k, threshold).conditional


def joint_blocks(draws: Mapping[str, Floats], X: Floats) -> Blocks:
    """Return a function from a slice of rows to log p(x_i, k | θ_s) (S, rows, K).

    Parameters are those of `prediction.predictive.log_joint_per_draw`.
    """
    return lambda rows: log_joint_per_draw(draws, X[rows])


def good_k(S: int) -> float:
    """Return the k̂ below which S draws give a good estimate: min(1 − 1/log₁₀ S, 0.7)."""
    return float(min(1 - 1 / np.log10(S), 0.7))


def rank_bad(pareto_k: Floats, threshold: float) -> Codes:
    """Return the rows whose k̂ is not below the threshold, the worst first."""
    order = np.argsort(-pareto_k, kind="stable")
    return order[~(pareto_k[order] < threshold)]


def take_out(
    blocks: Blocks, y: Codes, name: str, log_weights: Floats | None = None
) -> tuple[Floats, Floats, Floats, float]:
    """Return log Σ_s w_s L_sik (n, K) without row i, the same with it, k̂ (n,), and what is good for k̂.

    Rows are smoothed one at a time: a millisecond each with 4000 draws, most of it in sorting and in the Pareto fit,
    which a loop over rows inside NumPy would not make faster.
    """
    n = len(y)
    S, _, K = _check_block(blocks(slice(0, 1)), slice(0, 1), name).shape
    if S < FEWEST_DRAWS:
        raise DataError(f"`{name}` must have at least {FEWEST_DRAWS} draws; got {S}. Sample more.")
    if y.max() >= K:
        raise DataError(f"`y` must hold codes in 0…{K - 1}, one for each class of `{name}`; got {y.max()}.")
    left, full, pareto_k = np.empty((n, K)), np.empty((n, K)), np.empty(n)
    prior = np.full(S, -np.log(S)) if log_weights is None else log_weights - logsumexp(log_weights)
    for rows in wide_blocks(n, S * K):
        L = _check_block(blocks(rows), rows, name)
        full[rows] = logsumexp(L + prior[:, None, None], axis=0)
        for i in range(rows.start, rows.stop):
            own = L[:, i - rows.start]
            if np.isneginf(own[:, y[i]]).any():
                raise DataError(
                    f"`{name}` must be finite for a row's own class; got -inf in row {i}. Compute it in the log domain."
                )
            smoothed, pareto_k[i], _ = smooth(prior - own[:, y[i]])
            left[i] = logsumexp(smoothed[:, None] + own, axis=0)
    return left, full, pareto_k, good_k(S)


def both_kinds(
    left: Floats,
    full: Floats,
    y: Codes,
    pareto_k: Floats | None,
    threshold: float | None,
    refitted: Codes | None = None,
) -> GenerativeLoo:
    """Pick the row's own class from log densities (n, K), before and after normalising over the classes."""
    own = np.arange(len(y)), y
    P = log_class_probabilities(left)
    refitted = np.empty(0, dtype=np.intp) if refitted is None else refitted
    fitted = log_class_probabilities(full)[own]
    return GenerativeLoo(
        Loo("joint", left[own], full[own], pareto_k, threshold, refitted=refitted),
        Loo("conditional", P[own], fitted, pareto_k, threshold, P, refitted),
    )


def _from_array(L: Floats) -> Blocks:
    return lambda rows: L[:, rows]


def _as_blocks(values: ArrayLike | Blocks, y: Codes, name: str) -> Blocks:
    if callable(values):
        return values
    L = np.asarray(values, dtype=np.float64)
    if L.ndim not in (3, 4) or 0 in L.shape:
        raise DataError(f"`{name}` must be (S, n, K), (chains, draws, n, K) or a function; got shape {L.shape}.")
    if L.shape[-2] != len(y):
        raise DataError(f"`{name}` must have the {len(y)} rows of `y`; got {L.shape[-2]}.")
    return _from_array(L.reshape(-1, *L.shape[-2:]))


def _check_block(block: Floats, rows: slice, name: str) -> Floats:
    """Return log densities (S, rows, K) that are numbers; only another class than the row's own may have none."""
    if block.ndim != 3 or block.shape[1] != rows.stop - rows.start:
        raise DataError(f"`{name}` must give (S, {rows.stop - rows.start}, K) for {rows}; got shape {block.shape}.")
    bad = np.isnan(block) | np.isposinf(block)
    if bad.any():
        s, i, _ = np.argwhere(bad)[0]
        raise DataError(f"`{name}` must not be nan or inf; got it in draw {s}, row {rows.start + i}.")
    return block


def _check_codes(y: ArrayLike) -> Codes:
    codes = np.asarray(y)
    if codes.ndim != 1 or not codes.size or codes.dtype.kind not in "iu" or codes.min() < 0:
        raise DataError(
            f"`y` must be (n,) class codes 0, 1, …; got {codes.dtype} of shape {codes.shape}. Use Dataset.y."
        )
    return codes.astype(np.intp)
