"""Settings that must stand before NumPy and PyTensor are imported, and which tests share a process."""

import os
import random

import pytest
from hypothesis import settings

# Two test processes share two cores: BLAS threads on top of them spin and wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Plain Python thunks, no compiler and no search for a C BLAS: tests evaluate small models a few times, and compiling
# them takes far longer than that. What the package itself chooses is tested where it chooses.
os.environ["PYTENSOR_FLAGS"] = "blas__ldflags=,mode=FAST_COMPILE,cxx="

# Hypothesis would fail a test that takes .2 s, which on a busy machine any may.
settings.register_profile("ours", deadline=None)
settings.load_profile("ours")

# Files whose tests share something that is dear to make, and so run in one process, one after the other.
TOGETHER = {
    "reports": (
        "reporting/analysis/test_explore.py",
        "reporting/test_gallery.py",
        "reporting/test_markdown.py",
        "reporting/test_report.py",
        "reporting/test_report_browser.py",
        "reporting/test_report_robust.py",
        "reporting/test_schema.py",
    ),
    "arviz": ("estimators/test_arviz.py",),
    "calibration": ("proof/test_calibration.py",),
    "cluster": ("estimators/test_cluster.py",),
    "interruption": ("hostile/test_interruption.py",),
    "mixed": ("families/mixed/test_family.py",),
    "mixture": ("families/test_mixture.py",),
    "nuts": ("methods/nuts/test_sampling.py",),
    "package": ("test_package.py",),
    "store": ("store/test_store.py",),
    "student": ("families/test_student.py",),
    "toy": ("families/test_toy_family.py",),
}
GROUPS = {f"tests/{path}": group for group, paths in TOGETHER.items() for path in paths}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Hand the tests of a group to one process, and all others one by one."""
    # pytest-xdist's own groups are lost under pytest 9.2, without a word: they are written into a field that is gone.
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return GROUPS.get(nodeid.split("::")[0], nodeid)

    return Together(config, log)


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
