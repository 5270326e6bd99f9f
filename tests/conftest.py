"""Settings that must stand before PyTensor is imported."""

import os

# Plain Python thunks and no search for a C BLAS: tests evaluate small models a few times, and compiling them takes far
# longer than that. What the package itself chooses is tested where it chooses.
os.environ["PYTENSOR_FLAGS"] = "blas__ldflags=,mode=FAST_COMPILE"
