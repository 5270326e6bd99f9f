"""How many examples Hypothesis tries: few and always the same by default, many with HYPOTHESIS_PROFILE=thorough."""

import os

# PyTensor raises Python's recursion limit when it is imported; Hypothesis warns if that happens in the midst of a test.
import pymc  # noqa: F401
from hypothesis import HealthCheck, settings

# A fit takes milliseconds to seconds on a busy machine; tables are large examples by Hypothesis' measure.
_COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck)}
THOROUGH = os.environ.get("HYPOTHESIS_PROFILE") == "thorough"


def examples(few, many=200):
    """Settings of one test: `few` examples, the same on every run, or `many` new ones in the thorough profile."""
    if THOROUGH:
        return settings(max_examples=many, **_COMMON)
    return settings(max_examples=few, derandomize=True, database=None, **_COMMON)
