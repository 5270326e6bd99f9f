"""From ranks to verdicts: which quantities leave the band, in what way, and by how much.

One rule for the whole page. The quantities of all methods that must hold make one family; each is judged at
α = 0.01/M, M their number, so that all of them together are inside with probability 99 % if every method is right
(Bonferroni). Approximations are judged at the same α. How many leave their own 95 % bands is counted beside how many
would by chance, with the correlations of the quantities (`power`). What the bands would have seen stands beside it.

How far a posterior is off is said in its own standard deviations. With z = Φ⁻¹((rank + ½)/(L + 1)), the mean of z says
how far the truth lies above the posterior, in posterior sd, and the sd of z is the true spread over the posterior's.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from proof.bands import Band, band, cumulative, p_value
from proof.methods import DRAWN, DRAWS, SOUND
from proof.power import POWER, chance_counts, detectable
from proof.ranks import group_of
from scipy.special import ndtri

FAMILY = 0.99
SINGLE = 0.95
# Two of the 100 possible ranks a bin: what a page can show, and the edges still see the outermost fiftieth.
BINS = (DRAWS + 1) // 2
# A shift or a spread is put in words from three standard errors on.
ERRORS = 3.0


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """All simulations of one model by one method.

    Parameters
    ----------
    model, method, setting
        Names, and the prior and size in one line.
    quantities
        Names of the Q quantities.
    ranks
        (N, Q) ranks in 0…99 of the simulations that have draws.
    outcomes
        Outcome of every simulation, those without draws too.
    effective
        Effective draws of each simulation, where draws are not independent.
    """

    model: str
    method: str
    setting: str
    quantities: tuple[str, ...]
    ranks: NDArray[np.int64]
    outcomes: tuple[str, ...]
    effective: tuple[float, ...] = ()

    @property
    def must_hold(self) -> bool:
        """Whether the method claims to draw from the posterior itself."""
        return self.method in SOUND


def judge(records: Sequence[Records]) -> dict[str, Any]:
    """Return the verdict on every model and method, and on all together, as plain values."""
    records = [record for record in records if len(record.ranks)]
    M = sum(len(record.quantities) for record in records if record.must_hold)
    alpha = (1 - FAMILY) / max(M, 1)
    results = [_judge_one(record, alpha) for record in records]
    sound = [result for result in results if result["must_hold"]]
    return {
        "family": {
            "level": FAMILY,
            "quantities": M,
            "alpha": alpha,
            "outside": sum(result["outside"] for result in sound),
            "single_level": SINGLE,
            "outside_single": sum(result["outside_single"] for result in sound),
            "expected_single": (1 - SINGLE) * M,
        },
        "holds": all(result["outside"] == 0 for result in sound),
        "draws": DRAWS,
        "bins": BINS,
        "power": [
            {
                "simulations": N,
                "share": POWER,
                "family": detectable(N, BINS, alpha),
                "single": detectable(N, BINS, 1 - SINGLE),
            }
            for N in sorted({_rounded(result["simulations"]) for result in sound}, reverse=True)
        ],
        "results": results,
    }


def band_of(result: Mapping[str, Any], alpha: float) -> Band:
    """Return the band that a result's curves were judged by."""
    return band(result["simulations"], BINS, alpha)


def histogram(ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many ranks (N,) fall into each bin (BINS,)."""
    return np.bincount(ranks * BINS // (DRAWS + 1), minlength=BINS)


def _judge_one(record: Records, alpha: float) -> dict[str, Any]:
    quantities = [
        _judge_quantity(name, column, alpha) for name, column in zip(record.quantities, record.ranks.T, strict=True)
    ]
    worst = min(quantities, key=lambda q: (q["p_value"], -abs(q["difference"])))
    # Of an approximation the number has no meaning.
    chance = chance_counts(record.ranks, BINS, 1 - SINGLE) if record.must_hold else np.zeros(0)
    return {
        "model": record.model,
        "method": record.method,
        "setting": record.setting,
        "must_hold": record.must_hold,
        "simulations": len(record.ranks),
        "refused": sum(outcome not in DRAWN for outcome in record.outcomes),
        "outcomes": dict(sorted(Counter(record.outcomes).items())),
        "outside": sum(q["outside"] for q in quantities),
        "outside_single": sum(q["outside_single"] for q in quantities),
        "expected_single": (1 - SINGLE) * len(quantities),
        "chance_single": chance.round(4).tolist(),
        "largest_difference": max(abs(q["difference"]) for q in quantities),
        "largest_shift": max((q["shift"] for q in quantities), key=abs),
        "spreads": [min(q["spread"] for q in quantities), max(q["spread"] for q in quantities)],
        "worst": worst["name"],
        "effective": float(np.median(record.effective)) if record.effective else None,
        "quantities": quantities,
    }


def _rounded(N: int) -> int:
    """Return a number of simulations to the nearest hundred: some are left out, which does not change what is seen."""
    return max(round(N, -2), min(N, 100))


def _judge_quantity(name: str, ranks: NDArray[np.int64], alpha: float) -> dict[str, Any]:
    counts = histogram(ranks)
    N = len(ranks)
    difference = cumulative(counts) / N - np.arange(1, BINS) / BINS
    at = int(np.abs(difference).argmax())
    z = ndtri((ranks + 0.5) / (DRAWS + 1))
    # Ranks stop at the outermost draw: uniform ones have an sd a little below 1.
    uniform = ndtri((np.arange(DRAWS + 1) + 0.5) / (DRAWS + 1)).std()
    shift, spread = float(z.mean()), float(z.std() / uniform)
    p = p_value(counts)
    return {
        "name": name,
        "group": group_of(name),
        "counts": counts.tolist(),
        "p_value": float(f"{p:.3g}"),
        "outside": bool(p <= alpha),
        "outside_single": bool(p <= 1 - SINGLE),
        "difference": round(float(difference[at]), 5),
        "at": (at + 1) / BINS,
        "shift": round(shift, 4),
        "spread": round(spread, 4),
        "words": _words(shift, spread, N),
    }


def _words(shift: float, spread: float, N: int) -> str:
    """Say what a shift and a spread mean for the posterior, where they are more than noise."""
    parts = []
    if abs(shift) > ERRORS / np.sqrt(N):
        parts.append(f"{'too low' if shift > 0 else 'too high'} by {abs(shift):.2f} sd")
    if spread - 1 > ERRORS / np.sqrt(2 * N):
        parts.append(f"too narrow: its sd is {1 / spread:.2f} of the right one")
    elif 1 - spread > ERRORS / np.sqrt(2 * N):
        parts.append(f"too wide: its sd is {1 / spread:.2f} of the right one")
    return ", ".join(parts) or "of another shape"
