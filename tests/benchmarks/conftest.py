"""Benchmarks measure what a user gets: what makes tests quick is taken back before PyTensor is imported."""

import os

os.environ.pop("PYTENSOR_FLAGS", None)
os.environ.pop("OPENBLAS_NUM_THREADS", None)
