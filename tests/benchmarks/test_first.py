"""The way from arrays to a corrected posterior that the benchmarks time is one that still exists, without PyMC."""

import subprocess
import sys
from textwrap import dedent

from benchmarks.group_first import ARRAYS


def test_arrays_to_a_corrected_posterior_without_pymc():
    done = subprocess.run([sys.executable, "-c", dedent(ARRAYS)], check=True, capture_output=True, text=True)
    _, effective, imported = map(float, done.stdout.split())
    assert effective > 3000
    assert not imported
