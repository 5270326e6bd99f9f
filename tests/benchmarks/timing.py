"""How the benchmarks measure: everything in one run, by turns."""

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
