"""How the benchmarks measure: everything in one run, by turns."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

# OpenBLAS's threads spin for some 25 ms after a large product, and would take a core from the function that comes next.
PAUSE = 0.1
# Three rounds are the fewest that have quartiles worth the name.
FEWEST = 3
# One round that takes longer than this, in seconds, is not repeated: the whole run has half an hour.
LONG = 12.0


def by_turns(
    functions: Mapping[str, Callable[[], Any]], *, rounds: int = 9, budget: float | None = None, pause: float = PAUSE
) -> dict[str, list[float]]:
    """Seconds of each function in each round, called in turn so that a busy spell of the machine strikes all alike.

    Parameters
    ----------
    functions
        What to call, by name.
    rounds
        How often at most.
    budget
        Seconds after which no new round begins, once there are FEWEST; rounds beyond LONG are not repeated at all.
        None makes all rounds.
    pause
        Seconds of rest before each call.
    """
    times: dict[str, list[float]] = {name: [] for name in functions}
    begun = time.perf_counter()
    for done in range(rounds):
        spent = time.perf_counter() - begun
        if budget is not None and done and (spent / done > LONG or (done >= FEWEST and spent > budget)):
            break
        for name, function in functions.items():
            time.sleep(pause)
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return times


def alternate(functions: Mapping[str, Callable[[], Any]], rounds: int = 9) -> dict[str, float]:
    """Median seconds of each function, called by turns."""
    return {name: float(np.median(values)) for name, values in by_turns(functions, rounds=rounds).items()}


def quartiles(values: Any) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile."""
    low, middle, high = np.quantile(np.asarray(values, dtype=float), [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


def per_call(function: Callable[[], Any], *, seconds: float = 0.05, repeats: int = 5) -> float:
    """Seconds of one call of a short function: the best of a few runs of so many calls that a run takes `seconds`."""
    start = time.perf_counter()
    function()
    calls = max(1, int(seconds / max(time.perf_counter() - start, 1e-7)))
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            function()
        best = min(best, (time.perf_counter() - start) / calls)
    return float(best)


def slope(x: Any, seconds: Any) -> tuple[float, float]:
    """Slope of log seconds on log x by least squares, and its standard error."""
    u, v = np.log(np.asarray(x, dtype=float)), np.log(np.asarray(seconds, dtype=float))
    u = u - u.mean()
    b = float(u @ v / (u @ u))
    residual = v - v.mean() - b * u
    return b, float(np.sqrt(residual @ residual / max(len(u) - 2, 1) / (u @ u)))


def report(benchmark, what, ratio, target, figures, *, at_least=False, unit="s"):
    """Record a ratio and say whether it meets its target; a benchmark measures, it does not fail on a noisy machine.

    For benchmarks that pytest runs; a group has `Session.add`.
    """
    told = {
        "what": what,
        "ratio": ratio,
        "target": target,
        "figures": dict(figures),
        "at_least": at_least,
        "unit": unit,
    }
    benchmark.extra_info.setdefault("reports", []).append(told)  # for the page
    listed = ", ".join(f"{name} {value:.3f} {unit}" for name, value in figures.items())
    verdict = "met" if (ratio >= target if at_least else ratio <= target) else "MISSED"
    bound = "at least" if at_least else "at most"
    sys.stderr.write(f"\n{what}: {ratio:.2f} (target: {bound} {target:g}, {verdict}; {listed})\n")
