"""From ranks to verdicts: which quantities leave the band, in what way, and by how much.

One rule for the whole page. The quantities of all methods that must hold make one family; each is judged at
α = 0.01/M, M their number, so that all of them together are inside with probability 99 % if every method is right
(Bonferroni). Approximations are judged at the same α. How many leave their own 95 % bands is counted beside how many
would by chance, with the correlations of the quantities (`power`). What the bands would have seen stands beside it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from proof.methods import DRAWN, SOUND
from proof.ranks import group_of

from bayes_gda.validation.bands import Band, band
from bayes_gda.validation.calibration import DRAWS
from bayes_gda.validation.power import POWER, chance_counts, detectable
from bayes_gda.validation.ranks import bins_of, rank_uniformity

FAMILY = 0.99
SINGLE = 0.95
BINS = bins_of(DRAWS)


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
                "family": detectable(N, DRAWS, alpha),
                "single": detectable(N, DRAWS, 1 - SINGLE),
            }
            for N in sorted({_rounded(result["simulations"]) for result in sound}, reverse=True)
        ],
        "results": results,
    }


def band_of(result: Mapping[str, Any], alpha: float) -> Band:
    """Return the band that a result's curves were judged by."""
    return band(result["simulations"], BINS, alpha)


def _judge_one(record: Records, alpha: float) -> dict[str, Any]:
    quantities = [
        _judge_quantity(name, column, alpha) for name, column in zip(record.quantities, record.ranks.T, strict=True)
    ]
    worst = min(quantities, key=lambda q: (q["p_value"], -abs(q["difference"])))
    # Of an approximation the number has no meaning.
    chance = chance_counts(record.ranks, DRAWS, 1 - SINGLE) if record.must_hold else np.zeros(0)
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
    test = rank_uniformity(ranks, DRAWS, name=name)
    return {
        "name": name,
        "group": group_of(name),
        "counts": test.counts.tolist(),
        "p_value": float(f"{test.p_value:.3g}"),
        "outside": bool(test.p_value <= alpha),
        "outside_single": bool(test.p_value <= 1 - SINGLE),
        "difference": round(test.difference, 5),
        "at": test.at,
        "shift": round(test.shift, 4),
        "spread": round(test.spread, 4),
        "words": test.misfit,
    }
