"""How the benchmarks measure: everything in one run, by turns."""

import sys
import time

import numpy as np

# OpenBLAS's threads spin for some 25 ms after a large product, and would take a core from the function that comes next.
PAUSE = 0.1


def alternate(functions, rounds=9):
    """Median seconds of each function, called in turn so that a busy spell of the machine strikes all alike."""
    times = {name: [] for name in functions}
    for _ in range(rounds):
        for name, function in functions.items():
            time.sleep(PAUSE)
            start = time.perf_counter()
            function()
            times[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in times.items()}


def report(benchmark, what, ratio, target, figures, *, at_least=False, unit="s"):
    """Record a ratio and say whether it meets its target; a benchmark measures, it does not fail on a noisy machine."""
    benchmark.extra_info.update(figures, ratio=ratio, target=target)
    listed = ", ".join(f"{name} {value:.3f} {unit}" for name, value in figures.items())
    verdict = "met" if (ratio >= target if at_least else ratio <= target) else "MISSED"
    bound = "at least" if at_least else "at most"
    sys.stderr.write(f"\n{what}: {ratio:.2f} (target: {bound} {target:g}, {verdict}; {listed})\n")
