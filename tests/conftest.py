"""Settings that must stand before NumPy and PyTensor are imported, and which tests share a process."""

import os
import random
from pathlib import Path

import pytest
from hypothesis import settings

# Two test processes share two cores: BLAS threads on top of them spin and wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Plain Python thunks and no search for a C BLAS: tests evaluate small models a few times, and compiling them takes far
# longer than that. What the package itself chooses is tested where it chooses.
os.environ["PYTENSOR_FLAGS"] = "blas__ldflags=,mode=FAST_COMPILE"

HERE = Path(__file__).parent

# Hypothesis would fail a test that takes .2 s, which on a busy machine any may.
settings.register_profile("ours", deadline=None)
settings.load_profile("ours")

# Files whose tests share something that is dear to make, and so run in one process. Paths, because several folders have
# a file of the same name.
TOGETHER = {
    "reporting/analysis/test_explore.py": "reports",
    "reporting/test_gallery.py": "reports",
    "reporting/test_markdown.py": "reports",
    "reporting/test_report.py": "reports",
    "reporting/test_report_browser.py": "reports",
    "reporting/test_report_robust.py": "reports",
    "reporting/test_schema.py": "reports",
    "estimators/test_arviz.py": "arviz",
    "store/test_store.py": "store",
    "hostile/test_interruption.py": "interruption",
    "proof/test_calibration.py": "calibration",
    "test_package.py": "package",
}


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads the marks
def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.is_relative_to(HERE) and (group := TOGETHER.get(item.path.relative_to(HERE).as_posix())):
            item.add_marker(pytest.mark.xdist_group(group))


def pytest_addoption(parser):
    parser.addoption(
        "--global-seed",
        metavar="N",
        help="set the global random states of Python and NumPy to N before every test, or each time to another number "
        "if N is `random`; no result may depend on them",
    )


@pytest.fixture(autouse=True)
def _global_seed(request):
    if (given := request.config.getoption("--global-seed")) is None:
        return
    import numpy as np

    seed = random.SystemRandom().randrange(2**32) if given == "random" else int(given)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002, the point is the old global state
