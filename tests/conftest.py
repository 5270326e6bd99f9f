"""Settings that must stand before NumPy and PyTensor are imported."""

import os

# Two test processes share two cores: BLAS threads on top of them spin and wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Plain Python thunks and no search for a C BLAS: tests evaluate small models a few times, and compiling them takes far
# longer than that. What the package itself chooses is tested where it chooses.
os.environ["PYTENSOR_FLAGS"] = "blas__ldflags=,mode=FAST_COMPILE"
