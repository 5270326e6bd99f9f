"""Settings that must stand before NumPy and PyTensor are imported, and which tests share a process."""

import os

import pytest

# Two test processes share two cores: BLAS threads on top of them spin and wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Plain Python thunks and no search for a C BLAS: tests evaluate small models a few times, and compiling them takes far
# longer than that. What the package itself chooses is tested where it chooses.
os.environ["PYTENSOR_FLAGS"] = "blas__ldflags=,mode=FAST_COMPILE"

# Files whose tests share something that is dear to make, and so run in one process.
TOGETHER = {
    "test_report.py": "reports",
    "test_report_browser.py": "reports",
    "test_store.py": "store",
    "test_calibration.py": "calibration",
    "test_package.py": "package",
}


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.name in TOGETHER:
            item.add_marker(pytest.mark.xdist_group(TOGETHER[item.path.name]))
